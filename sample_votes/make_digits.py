"""Votes on scikit-learn's 8x8 digits: `python sample_votes/make_digits.py [FOLDER]`.

1,797 handwritten digits: 1,200 shared by 100 teachers, 12 each and no digit twice; the other 597
are public queries. A teacher answers with the label of its nearest neighbour: of the models tried
it is right most often with so few examples. 100 teachers are as many as still learn something.
Twelve examples are about one a class, and a teacher alone is right half of the time, where
guessing is right on a tenth; together they are right on nine in ten. With fewer teachers the
plurality leads by fewer votes (so noise hurts more), with more of them by hardly more votes,
because a part no longer holds every class.

Public guesses: the last 97 queries play digits whose labels everybody knows. The nearest of them
labels the other 500, and is right on nine in ten; the 97 have no guess and are not to be asked.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from ensembles import FOLDER, count_votes, counts_table, describe, keep, truth_table
from numpy.typing import NDArray

TEACHERS, PER_TEACHER = 100, 12
PUBLIC = 97
SEED = 2018


def digits() -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """(pixels [digits, 64] from 0 to 16, labels [digits]), shuffled."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(labels))
    return pixels[order].astype(np.int8), labels[order].astype(np.int8)


def votes(
    pixels: NDArray[np.int8], labels: NDArray[np.int8], *, teachers: int = TEACHERS
) -> tuple[NDArray[np.int16], NDArray[np.int8]]:
    """(counts [queries, 10], ballots [teachers, queries]); the first digits teach, the rest ask."""
    from sklearn.neighbors import KNeighborsClassifier

    def teach(_teacher: int, rows: NDArray[np.int64]) -> Any:
        return KNeighborsClassifier(n_neighbors=1).fit(pixels[rows], labels[rows])

    private = TEACHERS * PER_TEACHER
    parts = np.split(np.arange(private), TEACHERS)[:teachers]
    return count_votes(teach, parts, pixels[private:], classes=10)


def guesses(pixels: NDArray[np.int8], labels: NDArray[np.int8]) -> NDArray[np.int8]:
    """What the last `PUBLIC` digits and their labels say of the queries before them."""
    from sklearn.neighbors import KNeighborsClassifier

    model = KNeighborsClassifier(n_neighbors=1).fit(pixels[-PUBLIC:], labels[-PUBLIC:])
    found: NDArray[np.int8] = model.predict(pixels[TEACHERS * PER_TEACHER : -PUBLIC])
    return found


def guess_table(found: NDArray[np.int8]) -> pa.Table:
    """One row a query, null for the `PUBLIC` last."""
    return pa.table({"label": pa.array([*found.tolist(), *[None] * PUBLIC], type=pa.int16())})


def main() -> None:
    """Write votes, truth, guesses and pixels to the folder named, or the one of this script."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    pixels, labels = digits()
    counts, ballots = votes(pixels, labels)
    queries, truth = pixels[TEACHERS * PER_TEACHER :], labels[TEACHERS * PER_TEACHER :]
    keep(counts_table(counts), "digits.parquet", folder)
    keep(truth_table(truth), "digits_truth.parquet", folder)
    found = guesses(pixels, labels)
    keep(guess_table(found), "digits_prior.parquet", folder)
    keep(
        pa.table({f"pixel_{j}": queries[:, j] for j in range(64)}), "digits_queries.parquet", folder
    )
    sys.stdout.write(
        f"digits: {describe(counts, ballots, truth)}; the guesses are right on "
        f"{(found == truth[:-PUBLIC]).mean():.1%} of {len(found)}\n"
    )


if __name__ == "__main__":
    main()
