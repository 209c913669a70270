"""Made-up people who answer a few of many queries: `python sample_votes/make_voters.py [FOLDER]`.

There are 1,000 voters and 100 queries over ten classes. Each voter answers queries of its own
choice, drawn without replacement: 20 of them, and 5% of voters answer 30. How often a voter is
right is drawn from a Beta distribution with mean 0.8; a wrong answer is one of the nine others,
each as likely. A row of the file is one answer (long form), in the order in which they came in.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from ensembles import FOLDER, keep
from numpy.typing import NDArray

VOTERS, QUERIES, CLASSES = 1000, 100, 10
VOTES, EAGER, MORE = 20, 0.05, 30
RIGHT = (8.0, 2.0)
SEED = 2026


def votes() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(answers [answers, 3]: query, voter and class; the true class of every query)."""
    random = np.random.default_rng(SEED)
    truth = random.integers(0, CLASSES, QUERIES)
    many = np.where(random.random(VOTERS) < EAGER, MORE, VOTES)
    query = np.concatenate([random.choice(QUERIES, size=each, replace=False) for each in many])
    voter = np.repeat(np.arange(VOTERS), many)
    right = random.random(voter.size) < random.beta(*RIGHT, VOTERS)[voter]
    wrong = (truth[query] + random.integers(1, CLASSES, voter.size)) % CLASSES
    rows = np.column_stack([query, voter, np.where(right, truth[query], wrong)])
    return random.permutation(rows), truth


def main() -> None:
    """Write answers and truth to the folder named, or the one of this script."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    rows, truth = votes()
    names, kinds = ("query_id", "teacher_id", "label"), (np.uint8, np.uint16, np.uint8)
    columns = {name: rows[:, at].astype(kinds[at]) for at, name in enumerate(names)}
    keep(pa.table(columns), "voters.parquet", folder)
    known = {"query_id": np.arange(QUERIES).astype(np.uint8), "label": truth.astype(np.uint8)}
    keep(pa.table(known), "voters_truth.parquet", folder)
    right = (rows[:, 2] == truth[rows[:, 0]]).mean()
    sys.stdout.write(
        f"voters: {VOTERS} voters, {QUERIES} queries, {len(rows)} votes, {right:.1%} right\n"
    )


if __name__ == "__main__":
    main()
