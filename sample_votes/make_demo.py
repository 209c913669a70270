"""Draw the demo votes again: `python sample_votes/make_demo.py [FILE]`.

The same versions of numpy and pyarrow give the same bytes; other versions the same numbers.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pate_cli.planning.synthetic import SyntheticEnsemble

RECIPE = SyntheticEnsemble(teachers=250, classes=10, queries=1000, agreement=0.9, spread=0.3)
SEED = 1


def table() -> pa.Table:
    """One row a query, one whole-number column a class."""
    counts, _ = RECIPE.draw(SEED)
    # Whole counts up to 250: 16 bits are plenty, and keep the file small.
    return pa.table({f"class_{j}": counts[:, j].astype(np.int16) for j in range(RECIPE.classes)})


def main() -> None:
    """Write the file named on the command line, or the one beside this script."""
    beside = Path(__file__).with_name("demo.parquet")
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else beside
    pq.write_table(table(), target, version="2.6", compression="zstd")


if __name__ == "__main__":
    main()
