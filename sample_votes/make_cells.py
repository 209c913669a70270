"""Ballots in words on breast cancer cells: `python sample_votes/make_cells.py [FOLDER]`.

scikit-learn has 569 samples of cells, malignant or benign: 360 shared by 40 teachers, 9 each and
none twice; the other 209 are public queries. A teacher asks the three nearest of its own nine, the
nearer the more they count, and writes what it takes the sample for, or "unsure" where they speak
for both about equally. So it is with the ballots of language models: an answer that is no name of a
class is a missing vote, whatever it says.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from ensembles import FOLDER, keep
from numpy.typing import NDArray

TEACHERS, PER_TEACHER = 40, 9
SEED = 2018
NAMES = ("malignant", "benign")
UNSURE, SURE_ABOVE = "unsure", 0.6


def cells() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """(features [samples, 30], places in NAMES [samples]), shuffled."""
    from sklearn.datasets import load_breast_cancer

    features, labels = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(labels))
    return features[order], labels[order]


def ballots(
    features: NDArray[np.float64], labels: NDArray[np.int64], *, teachers: int = TEACHERS
) -> NDArray[np.str_]:
    """What every teacher says, [queries, teachers]; the first samples teach, the rest ask."""
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    queries = features[TEACHERS * PER_TEACHER :]
    said = np.full((len(queries), teachers), UNSURE, dtype="U16")
    for teacher in range(teachers):
        own = slice(teacher * PER_TEACHER, (teacher + 1) * PER_TEACHER)
        nearest = KNeighborsClassifier(n_neighbors=3, weights="distance")
        model = make_pipeline(StandardScaler(), nearest).fit(features[own], labels[own])
        shares = model.predict_proba(queries)
        sure = shares.max(axis=1) > SURE_ABOVE
        known = np.array(NAMES)[model.classes_]
        said[sure, teacher] = known[shares[sure].argmax(axis=1)]
    return said


def main() -> None:
    """Write ballots and truth to the folder named, or the one of this script."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    features, labels = cells()
    said = ballots(features, labels)
    truth = np.array(NAMES)[labels[TEACHERS * PER_TEACHER :]]
    columns = {
        f"teacher_{t}": pa.array(said[:, t].tolist()).dictionary_encode() for t in range(TEACHERS)
    }
    keep(pa.table({"query_id": np.arange(len(said)), **columns}), "cells.parquet", folder)
    keep(pa.table({"label": truth.tolist()}), "cells_truth.parquet", folder)
    votes = np.stack([(said == name).sum(axis=1) for name in NAMES], axis=1)
    right = np.array(NAMES)[votes.argmax(axis=1)] == truth
    sys.stdout.write(
        f"cells: {TEACHERS} teachers, {len(said)} queries: {(said == UNSURE).mean():.1%} of the "
        f"ballots are {UNSURE!r}; a teacher that is sure is right on "
        f"{(said == truth[:, np.newaxis])[said != UNSURE].mean():.1%}, the plurality on "
        f"{right.mean():.1%}\n"
    )


if __name__ == "__main__":
    main()
