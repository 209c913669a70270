"""SYNTHETIC votes of the paper's Glyph shape: `python sample_votes/make_glyph_like.py [FOLDER]`.

Nobody's data is behind them. 5,000 made-up teachers vote on 12,000 queries of 150 classes, whose
frequencies fall like 1/rank. One query in ten is mislabelled: its recorded label is wrong, and the
teachers, who saw such items with either label, agree on it far less. The file is for size and
speed; nothing about accuracy can be learnt from it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from ensembles import FOLDER, counts_table, keep, truth_table
from numpy.typing import NDArray

from pate_cli.planning.synthetic import SyntheticEnsemble

TEACHERS, CLASSES, QUERIES = 5000, 150, 12_000
MISLABELLED = 0.1
SEED = 2018


def votes(
    *, teachers: int = TEACHERS, classes: int = CLASSES, queries: int = QUERIES
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """(counts [queries, classes], recorded labels [queries], a tenth of them wrong)."""
    shape = {"teachers": teachers, "classes": classes, "queries": queries, "imbalance": 1.0}
    counts, label = SyntheticEnsemble(**shape, agreement=0.75, spread=0.4, confusion=0.05).draw(
        SEED
    )
    odd_counts, odd_label = SyntheticEnsemble(
        **shape, agreement=0.4, spread=0.3, confusion=0.05
    ).draw(SEED + 1)
    random = np.random.default_rng(SEED)
    odd = random.random(queries) < MISLABELLED
    counts[odd] = odd_counts[odd]
    label[odd] = (odd_label[odd] + random.integers(1, classes, size=int(odd.sum()))) % classes
    return counts, label


def main() -> None:
    """Write votes and recorded labels to the folder named, or the one of this script."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    counts, label = votes()
    keep(counts_table(counts), "glyph_like.parquet", folder)
    keep(truth_table(label), "glyph_like_truth.parquet", folder)
    right = (counts.argmax(axis=1) == label).mean()
    sys.stdout.write(
        f"glyph_like (synthetic): {TEACHERS} teachers, {QUERIES} queries, {CLASSES} classes: the "
        f"plurality equals the recorded label on {right:.1%}\n"
    )


if __name__ == "__main__":
    main()
