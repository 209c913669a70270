"""What a student predicts, public: probabilities of the classes, or of yes for every label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import Floats
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, VoteError
from pate_cli.core.label_set import LabelSet
from pate_cli.votes.beside.side_files import (
    SideRows,
    as_floats,
    check_label_set,
    columns_of_labels,
    of_pairs,
    read_side,
    side_by_side,
    understood,
)
from pate_cli.votes.matching import Names, matching_of_names, order_of

_SUM_TOLERANCE = 1e-6


def _probabilities(given: Any) -> Floats:
    """An array of floats, as it is; of other numbers, or a list of rows, the array they make."""
    if isinstance(given, np.ndarray) and given.dtype.kind == "f":
        return given
    try:
        array = np.asarray(given)
    except (TypeError, ValueError):
        raise ParameterError("student predictions must be an array, a row a query") from None
    return as_floats(array)


@dataclass(frozen=True, eq=False)
class StudentPredictions:
    """What a student predicts: class probabilities per query, matched to votes by id or by order.

    For a second round with `interactive`, which spends teachers only where they contradict the
    student. It must have learnt from earlier labels of these teachers, or from public data.

        >>> student = pate.StudentPredictions([[0.97, 0.03], [0.3, 0.7]])
        >>> given = {"threshold": 40, "sigma1": 10, "sigma2": 8, "release": "none", "seed": 1}
        >>> given |= {"layout": "counts", "predictions": student, "order": 8}
        >>> done = pate.aggregate([[95, 5], [90, 10]], "interactive", **given)
        >>> done.labels.sources.tolist()
        ['student', 'teachers']

    Attributes:
        probabilities: [queries, classes]; rows sum to 1 within 1e-6.
        ids: the queries' ids, or None when rows match votes by their order.
        columns: what the classes are called here, None where they are not.
    """

    probabilities: Floats
    ids: Sequence[Any] | NDArray[Any] | None = None
    columns: tuple[str, ...] | None = None
    _rows: SideRows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values = _probabilities(self.probabilities)
        object.__setattr__(self, "probabilities", values)
        if values.ndim != 2 or values.shape[1] < 2 or values.shape[0] == 0:
            raise VoteError(
                "student predictions must be [queries, classes] with at least 2 classes, got "
                f"shape {values.shape}"
            )
        good = np.logical_and(values >= 0.0, values < np.inf).all(axis=1, keepdims=True)
        bad = np.abs(np.where(good, values, 0.0).sum(axis=1) - 1.0) > _SUM_TOLERANCE
        if bad.any():
            raise VoteError(
                f"student predictions, row {int(np.argmax(bad))}: not probabilities that sum to 1 "
                "within 1e-6; give the output of a softmax or predict_proba"
            )
        object.__setattr__(self, "_rows", SideRows("student predictions", len(values), self.ids))

    @property
    def classes(self) -> int:
        """m."""
        return self.probabilities.shape[1]

    def named(self, names: Names | None) -> StudentPredictions:
        """With classes in the order of these names, where the columns are called so.

        Otherwise as they stand: the first column is class 0.
        """
        matching = matching_of_names(names)
        order = order_of(self.columns or (), matching)
        if matching is None or order is None:
            return self
        return StudentPredictions(self.probabilities[:, order], self.ids, matching.names)

    def of(self, ids: Any, first_row: int) -> Floats:
        """Probabilities of the queries with these ids, or from `first_row` on.

        Raises:
            VoteError: a query without predictions.
        """
        rows = self._rows.of(ids, first_row)
        if (rows < 0).any():
            row = first_row + int(np.argmax(rows < 0))
            raise VoteError(f"student predictions: none for the query of row {row}")
        return self.probabilities[rows]


@dataclass(frozen=True, eq=False)
class YesProbabilities:
    """What a student predicts where a query has several labels: for each the probability of yes.

    For a second round with `interactive` on votes in a multi-label layout, as StudentPredictions is
    for those with one label a query.

        >>> student = pate.YesProbabilities([[0.97, 0.2], [0.4, 0.6]])
        >>> votes = [[90, 80], [35, 60]]  # so many of 100 teachers said yes, [queries, labels]
        >>> given = {"threshold": 40, "sigma1": 10, "sigma2": 8, "release": "none", "seed": 1}
        >>> given |= {"layout": "multilabel-counts", "teachers": 100}
        >>> given |= {"predictions": student, "order": 8}
        >>> pate.aggregate(votes, "interactive", **given).labels.sources.tolist()
        ['student', 'teachers', 'none', 'none']

    Attributes:
        probabilities: [queries, labels], each from 0 to 1.
        ids: the queries' ids, or None when rows match queries of the votes by their order.
        names: of the labels, [labels], where the file names them.
    """

    probabilities: Floats
    ids: Sequence[Any] | NDArray[Any] | None = None
    names: tuple[str, ...] | None = None
    classes: ClassVar[int] = 2
    _rows: SideRows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values = _probabilities(self.probabilities)
        object.__setattr__(self, "probabilities", values)
        if values.ndim != 2 or 0 in values.shape:
            raise VoteError(
                "student predictions for several labels must be [queries, labels], probabilities "
                f"of yes, got shape {values.shape}"
            )
        bad = ~((values >= 0.0) & (values <= 1.0)).all(axis=1)
        if bad.any():
            raise VoteError(
                f"student predictions, row {int(np.argmax(bad))}: not probabilities of yes, each "
                "from 0 to 1"
            )
        object.__setattr__(self, "_rows", SideRows("student predictions", len(values), self.ids))

    @property
    def labels(self) -> int:
        """L."""
        return self.probabilities.shape[1]

    def named(self, names: Names | None) -> YesProbabilities:
        """As it is: its classes are no and yes; names of labels must be those of the votes."""
        del names
        return self

    def of(self, ids: Any, first_row: int) -> Floats:
        """Probabilities (no, yes) of the pairs from `first_row` on, whose queries have these ids.

        Raises:
            VoteError: a query without predictions.
        """
        yes = of_pairs(self._rows, self.probabilities, ids, first_row, np.nan)
        if np.isnan(yes).any():
            query = (first_row + int(np.argmax(np.isnan(yes)))) // self.labels
            raise VoteError(f"student predictions: none for the query of row {query}")
        return np.stack([1.0 - yes, yes], axis=1)


def load_predictions(
    path: str | PathLike[str], *, pairs: bool = False, id_column: str | None = None
) -> StudentPredictions | YesProbabilities:
    """Read probabilities: an array [queries, classes], or a table with a column per class or one
    column of lists, and optionally `query_id`.

    pairs: the votes are on several labels a query, each by itself; [queries, labels] are then
    probabilities of yes.

    Raises:
        VoteError: a file that cannot be read as such.
    """
    noun = "student predictions"
    side = read_side(path, noun, id_column, what="the student's predictions")
    values, columns, names = side.values, None, None
    if not isinstance(values, np.ndarray):
        columns = tuple(values.column_names) if values.num_columns > 1 else None
        names = columns_of_labels(values)
        with understood(f"{side.name}: cannot be read as {noun}"):
            values = side_by_side(values, side.name)
    if pairs:
        return YesProbabilities(as_floats(values), side.ids, names)
    return StudentPredictions(as_floats(values), side.ids, columns)


def refuse_others(predictions: Any) -> None:
    """ParameterError for what are no predictions, such as an array of them."""
    if not isinstance(predictions, StudentPredictions | YesProbabilities):
        raise ParameterError(
            "`predictions` must be StudentPredictions(probabilities), or YesProbabilities(...) of "
            f"several labels, not {type(predictions).__name__}"
        )


def check_predictions(predictions: Any, label_set: LabelSet | None) -> None:
    """Refuse what are no predictions, or not of what the votes are on, however their shapes fit.

    Raises:
        ParameterError: what is there is neither None nor predictions.
        VoteError: the predictions are of something else.
    """
    if predictions is not None:
        refuse_others(predictions)
    pairs = label_set is not None
    if isinstance(predictions, YesProbabilities):
        if label_set is None:
            raise VoteError(
                "the student predicts yes or no for every label, the votes are not on labels one "
                "by one"
            )
        check_label_set(
            "the student's predictions", predictions.labels, predictions.names, label_set
        )
    elif pairs and isinstance(predictions, StudentPredictions) and predictions.ids is not None:
        raise VoteError(
            "the student's predictions are for queries, the votes are on pairs of a query and a "
            "label; give probabilities of yes, [queries, labels]"
        )
