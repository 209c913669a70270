"""The words that options accept, and default values.

The command line imports this module first, so it must be quick to import.
"""

from __future__ import annotations

import enum
from pathlib import PurePath
from typing import ClassVar, Final, NoReturn

from pate_cli.core.errors import ParameterError, UsageError, without_credentials

# Defaults as shares of the number of teachers, as in the MNIST runs of the ICLR 2018 paper.
THRESHOLD_SHARE: Final = 0.8
SIGMA1_SHARE: Final = 0.6
SIGMA2_SHARE: Final = 0.16
LAPLACE_SHARE: Final = 0.08
OPEN_SHARE: Final = 0.08
# Defaults of the interactive student, priors, sparse vector, the guarantee and tuning.
CONFIDENCE: Final = 0.9
PRIOR_SHARE: Final = "20%"
REFUSALS: Final = 10
DELTA: Final = 1e-5
BUDGET_DELTA: Final = 100 * DELTA
"""Default δ of a budget, which is enough for a hundred runs at the default δ."""
MIN_AGREEMENT: Final = 0.9
# Above this ε hardly anybody is protected, so users must ask for it with `max_epsilon`.
CEILING: Final = 10.0
MIN_PASS: Final = 0.5
"""A run is not started if it would pass its release test with a smaller probability."""


_GONE: Final = {
    "permute-and-flip": "use lnmax, which has the same epsilon per answer",
    "unbiased": "use upper, which is a valid bound; unbiased was too low about half the time",
}
"""Replacements for words that a parameter no longer takes."""


class _Word(enum.StrEnum):
    """A word from a short list; the error for other words names the choices."""

    _called: ClassVar[str]

    def __init_subclass__(cls, *, called: str) -> None:
        cls._called = called

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        if isinstance(value, str) and value in _GONE:
            raise ParameterError(f"`{cls._called}` {value} is gone: {_GONE[value]}")
        raise ParameterError(f"`{cls._called}` must be one of {', '.join(cls)}, got {value!r}")


class Layout(_Word, called="layout"):
    """The layouts of votes in a file or array; the values are the words that `--layout` takes.

    COUNTS             [queries, classes]: how many teachers voted for each class.
    LABELS             [queries, teachers]: the class that each teacher voted for.
    LABELS_BY_TEACHER  [teachers, queries]: the class that each teacher voted for (arrays only).
    LONG               one row per vote: query_id, teacher_id, label (tables only).
    SPARSE             one row per query, with two lists: `label` has the classes with votes, and
                       `count` their numbers of votes (tables only).

    pate never infers the following layouts, because arrays in these layouts look alike:

    SCORES             [queries, teachers, classes]: scores; each teacher votes for the class that
                       has its highest score.
    SCORES_BY_TEACHER  [teachers, queries, classes]: scores as in SCORES.
    MULTILABEL_COUNTS  several labels per query: [queries, labels] counts of yes, or
                       [queries, labels, 2] counts of no and yes.
    MULTILABEL         [queries, teachers, labels]: 1 for yes, 0 for no.
    MULTILABEL_BY_TEACHER  [teachers, queries, labels]: 1 for yes, 0 for no.
    """

    COUNTS = "counts"
    LABELS = "labels"
    LABELS_BY_TEACHER = "labels-by-teacher"
    LONG = "long"
    SPARSE = "sparse"
    SCORES = "scores"
    SCORES_BY_TEACHER = "scores-by-teacher"
    MULTILABEL_COUNTS = "multilabel-counts"
    MULTILABEL = "multilabel"
    MULTILABEL_BY_TEACHER = "multilabel-by-teacher"

    @property
    def multilabel(self) -> bool:
        """Return whether a query has several labels, each of them yes or no."""
        return self.value.startswith("multilabel")


class Bound(_Word, called="bound"):
    """How the release test of a target bounds the RDP cost of the votes.

    AUTO         `conditional`, if the mechanism supports it, memory suffices and the estimated
                 time is about a minute or less; else `two-tail`. pate estimates the time from the
                 noise and the numbers of queries, teachers and classes.
    TWO_TAIL     a bound from the probability that the plurality loses; fast for large vote files,
                 too.
    CONDITIONAL  a bound that conditions on the noisy counts that one teacher does not change; it is
                 sharper and slower than TWO_TAIL.
    """

    AUTO = "auto"
    TWO_TAIL = "two-tail"
    CONDITIONAL = "conditional"


class MechanismName(_Word, called="mechanism"):
    """The mechanisms that aggregate votes."""

    CONFIDENT = "confident"
    INTERACTIVE = "interactive"
    GNMAX = "gnmax"
    LNMAX = "lnmax"
    STABILITY = "stability"
    SPARSE_VECTOR = "sparse-vector"
    OPEN_VOCABULARY = "open-vocabulary"


class Adjacency(_Word, called="adjacency"):
    """The adjacency in a guarantee of another tool: how two neighbouring data sets differ.

    REPLACE_ONE        one record is replaced by another.
    ADD_OR_REMOVE_ONE  one record is added or removed.
    REPLACE_SPECIAL    one record is replaced by a special one, such as zero.
    """

    REPLACE_ONE = "replace-one"
    ADD_OR_REMOVE_ONE = "add-or-remove-one"
    REPLACE_SPECIAL = "replace-special"


class ReleaseKind(_Word, called="release"):
    """Kinds of ε that are published: a sanitized upper bound, the worst case, or a target."""

    UPPER = "upper"
    NONE = "none"
    TARGET = "target"


class PublicFact(_Word, called="read_off"):
    """Facts that must be public for the guarantee, but that pate may have to read from votes."""

    CLASSES = "classes"
    QUERIES = "queries"


class Analysis(_Word, called="analysis"):
    """How RDP costs are computed: as pate does, or as in the PATE papers, for comparison."""

    TIGHT = "tight"
    PAPER = "paper"


class OrderChoice(_Word, called="orders"):
    """The Rényi orders that `cost` tries: many, or 2 to 9 for the 2017 paper's moments λ ≤ 8."""

    DEFAULT = "default"
    MOMENTS = "moments"


class LabelFormat(_Word, called="label_format"):
    """File formats of a label table."""

    PARQUET = "parquet"
    NPY = "npy"
    CSV = "csv"
    JSONL = "jsonl"
    ARROW = "arrow"

    @classmethod
    def from_path(cls, path: str | PurePath) -> LabelFormat:
        """Return the format that the suffix of `path` names, in upper or lower case.

        Raises:
            UsageError: the suffix names no format; `-`, for standard output, has no suffix.
        """
        found = LABEL_SUFFIXES.get(PurePath(path).suffix.lower())
        if found is None:
            name = without_credentials(str(path))
            raise UsageError(
                f"cannot tell the label format of '{name}': end the name in"
                f" {', '.join(LABEL_SUFFIXES)}, or give `label_format` {'|'.join(cls)}"
            )
        return found


LABEL_SUFFIXES: Final = {
    **{f".{label_format}": label_format for label_format in LabelFormat},
    ".ndjson": LabelFormat.JSONL,
}
"""The formats of labels by the suffixes of their files."""

VOTE_SUFFIXES: Final = {
    "NPY": (".npy",),
    "NPZ": (".npz",),
    "Parquet": (".parquet", ".parq", ".pq"),
    "CSV": (".csv", ".tsv"),
    "JSON lines": (".jsonl", ".ndjson"),
    "Arrow": (".arrow", ".feather", ".ipc"),
}
"""The formats of votes with their suffixes; pate recognises a file by its first bytes."""

VOTE_FORMATS: Final = ", ".join(VOTE_SUFFIXES)
"""The formats of votes, for messages and help."""
