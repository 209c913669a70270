"""Several labels a query: `python sample_votes/make_digit_labels.py [FOLDER]`.

scikit-learn's 8x8 digits again (see make_digits.py), but a teacher is asked for five properties of
the digit that it sees, each yes or no: even, prime, above 4, a multiple of 3, a square (one of 0,
1, 4, 9). The pictures are real; that these are the labels is our choice, for scikit-learn bundles
no set with several labels, and it makes them depend on each other: of 32 sets of labels ten occur.
1,200 digits are shared by 50 teachers, 24 each; 380 others are public queries.

A teacher answers with the properties of its nearest digit, as in make_digits.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from ensembles import FOLDER
from make_digits import digits
from numpy.typing import NDArray

TEACHERS, PER_TEACHER, QUERIES = 50, 24, 380
LABELS = {
    "even": (0, 2, 4, 6, 8),
    "prime": (2, 3, 5, 7),
    "above 4": (5, 6, 7, 8, 9),
    "multiple of 3": (0, 3, 6, 9),
    "square": (0, 1, 4, 9),
}


def properties(labels: NDArray[np.int8]) -> NDArray[np.int8]:
    """[digits, labels] 1 where the digit has the property, 0 where not."""
    return np.stack([np.isin(labels, each) for each in LABELS.values()], axis=1).astype(np.int8)


def votes(
    pixels: NDArray[np.int8], labels: NDArray[np.int8], *, teachers: int = TEACHERS
) -> NDArray[np.int8]:
    """Votes [queries, teachers, labels]; the first digits teach, the next ask."""
    from sklearn.neighbors import KNeighborsClassifier

    private = TEACHERS * PER_TEACHER
    known, asked = properties(labels), pixels[private : private + QUERIES]
    found = [
        KNeighborsClassifier(n_neighbors=1).fit(pixels[rows], known[rows]).predict(asked)
        for rows in np.split(np.arange(private), TEACHERS)[:teachers]
    ]
    return np.stack(found, axis=1).astype(np.int8)


def main() -> None:
    """Write votes, names and truth to the folder named, or to that of this script."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    pixels, labels = digits()
    ballots = votes(pixels, labels)
    private = TEACHERS * PER_TEACHER
    truth = properties(labels[private : private + QUERIES])
    np.save(folder / "digit_labels.npy", ballots)
    np.save(folder / "digit_labels_truth.npy", truth)
    (folder / "digit_labels_names.txt").write_text("\n".join(LABELS) + "\n", encoding="utf-8")
    yes = ballots.mean(axis=1) > 0.5
    sys.stdout.write(
        f"digit labels: {TEACHERS} teachers, {QUERIES} queries x {len(LABELS)} labels: a teacher "
        f"is right on {(ballots == truth[:, None]).mean():.1%} of the labels and on "
        f"{(ballots == truth[:, None]).all(axis=2).mean():.1%} of the sets, the plurality by label "
        f"on {(yes == truth).mean():.1%} and {(yes == truth).all(axis=1).mean():.1%}\n"
    )


if __name__ == "__main__":
    main()
