"""What stands beside votes, made by hand: predictions, true labels and guesses."""

import numpy as np

from pate_cli.votes.join import Joined


def a_student(probabilities, ids=None):
    """Predictions [queries, classes], by place or by id."""
    values = np.asarray(probabilities, dtype=np.float64)
    return values if ids is None else Joined("the student", values, _ids(ids))


def _ids(given):
    if given is None:
        return None
    ids = np.asarray(given)
    return ids.astype(np.int64) if ids.dtype.kind in "iu" else tuple(ids.tolist())
