"""The words that options take; light enough for the command line to import at start-up."""

from __future__ import annotations

import enum

__all__ = [
    "LAPLACE_SHARE",
    "SIGMA1_SHARE",
    "SIGMA2_SHARE",
    "THRESHOLD_SHARE",
    "Analysis",
    "Layout",
    "MechanismName",
    "Objective",
    "ReleaseKind",
]

# Defaults in units of the number of teachers: the proportions of the ICLR 2018 paper's MNIST runs
# (T = 200, sigma1 = 150, sigma2 = 40 and b = 20 of 250).
THRESHOLD_SHARE = 0.8
SIGMA1_SHARE = 0.6
SIGMA2_SHARE = 0.16
LAPLACE_SHARE = 0.08


class Layout(enum.StrEnum):
    """The four shapes votes come in; the values are the words `--layout` takes.

    COUNTS             [queries, classes]: how many teachers voted for each class.
    LABELS             [queries, teachers]: the class each teacher voted for.
    LABELS_BY_TEACHER  [teachers, queries]: the same, one row per teacher (NPY only).
    LONG               one row per vote: query_id, teacher_id, label (Parquet only).
    """

    COUNTS = "counts"
    LABELS = "labels"
    LABELS_BY_TEACHER = "labels-by-teacher"
    LONG = "long"


class MechanismName(enum.StrEnum):
    """The aggregators."""

    CONFIDENT = "confident"
    INTERACTIVE = "interactive"
    GNMAX = "gnmax"
    LNMAX = "lnmax"
    STABILITY = "stability"
    SPARSE_VECTOR = "sparse-vector"


class ReleaseKind(enum.StrEnum):
    """What is published about the data-dependent ε."""

    UPPER = "upper"
    UNBIASED = "unbiased"
    NONE = "none"


class Analysis(enum.StrEnum):
    """Which accounting: the sharp and sound one, or the published one for comparison."""

    TIGHT = "tight"
    PAPER = "paper"


class Objective(enum.StrEnum):
    """What `tune` maximises under a target ε: answers, or those that equal the plurality."""

    ANSWERS = "answers"
    AGREEMENT = "agreement"
