"""The words that options take, and their defaults.

It is light, for the command line imports it first.
"""

from __future__ import annotations

import enum
from pathlib import PurePath
from typing import ClassVar, Final, NoReturn

from pate_cli.core.errors import ParameterError, UsageError, without_credentials

# Defaults in units of the number of teachers: the proportions of the ICLR 2018 paper's MNIST runs.
THRESHOLD_SHARE: Final = 0.8
SIGMA1_SHARE: Final = 0.6
SIGMA2_SHARE: Final = 0.16
LAPLACE_SHARE: Final = 0.08
OPEN_SHARE: Final = 0.08
# Other defaults: of the interactive student, of sparse vector, of the guarantee and of tuning.
CONFIDENCE: Final = 0.9
PRIOR_SHARE: Final = "20%"
REFUSALS: Final = 10
DELTA: Final = 1e-5
BUDGET_DELTA: Final = 100 * DELTA
"""δ of a budget that states none: room for a hundred runs at the default δ."""
MIN_AGREEMENT: Final = 0.9
# The ε above which practically nothing is promised; what costs more has to be asked for by name.
CEILING: Final = 10.0
MIN_PASS: Final = 0.5
"""A run that passes its release test with a smaller probability is not started."""


_GONE: Final = {
    "permute-and-flip": "use lnmax, which has the same epsilon an answer",
    "unbiased": "use upper, which is a bound and not too low about half the time",
}
"""What to use instead of words that a parameter took once."""


class _Word(enum.StrEnum):
    """One of a few words; another one is refused with the choices."""

    _called: ClassVar[str]

    def __init_subclass__(cls, *, called: str) -> None:
        cls._called = called

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        if isinstance(value, str) and value in _GONE:
            raise ParameterError(f"`{cls._called}` {value} is gone: {_GONE[value]}")
        raise ParameterError(f"`{cls._called}` must be one of {', '.join(cls)}, got {value!r}")


class Layout(_Word, called="layout"):
    """The shapes votes come in; the values are the words `--layout` takes.

    COUNTS             [queries, classes]: how many teachers voted for each class.
    LABELS             [queries, teachers]: the class each teacher voted for.
    LABELS_BY_TEACHER  [teachers, queries]: the same, one row per teacher (arrays only).
    LONG               one row per vote: query_id, teacher_id, label (tables only).
    SPARSE             [queries] lists `label` and `count`: the classes with votes (tables only).

    Never inferred, for nothing in the numbers tells one from the other:

    SCORES             [queries, teachers, classes]: scores, of which a teacher votes for the best.
    SCORES_BY_TEACHER  [teachers, queries, classes]: the same, teacher by teacher.
    MULTILABEL_COUNTS  several labels a query: [queries, labels] counts of yes, or
                       [queries, labels, 2] counts of no and yes.
    MULTILABEL         [queries, teachers, labels]: 1 for yes, 0 for no.
    MULTILABEL_BY_TEACHER  [teachers, queries, labels]: the same, teacher by teacher.
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
    """How a tested budget bounds what votes cost.

    AUTO         conditional where that takes about a minute at most, going by the number of rows,
                 teachers and classes and by the noise; else two-tail.
    TWO_TAIL     a function of the chance that the plurality loses: quick at any size.
    CONDITIONAL  given the classes that no vote touched, and tied to the test: sharper, slower.
    """

    AUTO = "auto"
    TWO_TAIL = "two-tail"
    CONDITIONAL = "conditional"


class MechanismName(_Word, called="mechanism"):
    """The aggregators."""

    CONFIDENT = "confident"
    INTERACTIVE = "interactive"
    GNMAX = "gnmax"
    LNMAX = "lnmax"
    STABILITY = "stability"
    SPARSE_VECTOR = "sparse-vector"
    OPEN_VOCABULARY = "open-vocabulary"


class Adjacency(_Word, called="adjacency"):
    """Which sets of records another mechanism's cost compares.

    REPLACE_ONE        one record replaced by another.
    ADD_OR_REMOVE_ONE  one record more or less.
    REPLACE_SPECIAL    one record replaced by a special one, such as zero.
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
    """Facts that every statement takes as public, and a file of votes does not always settle."""

    CLASSES = "classes"
    QUERIES = "queries"


class Analysis(_Word, called="analysis"):
    """Which accounting: the sharp and sound one, or the published one for comparison."""

    TIGHT = "tight"
    PAPER = "paper"


class OrderChoice(_Word, called="orders"):
    """Which Rényi orders `cost` tries: its own many, or 2 to 9, the 2017 paper's λ ≤ 8 moments."""

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
        """Return the format that the suffix of `path` names, in any case of letters.

        UsageError, naming the choices, when it names none (`-` for standard output never does).
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
"""The ends of names of files, by which a format is told."""

VOTE_SUFFIXES: Final = {
    "NPY": (".npy",),
    "NPZ": (".npz",),
    "Parquet": (".parquet", ".parq", ".pq"),
    "CSV": (".csv", ".tsv"),
    "JSON lines": (".jsonl", ".ndjson"),
    "Arrow": (".arrow", ".feather", ".ipc"),
}
"""The formats of votes, and how names of such files end; a file is told by its first bytes."""

VOTE_FORMATS: Final = ", ".join(VOTE_SUFFIXES)
"""The formats of votes, for messages and help."""
