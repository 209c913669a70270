"""Files beside the votes: predictions of a student, true labels where known, a list of queries.

All are public, small enough to be held in memory, and come in every format that votes come in: an
array whose rows follow the votes, or a table that may name its rows in a column: the one that names
them in the votes, or `query_id`.
"""

from __future__ import annotations

import contextlib
import os
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pate_cli.arrays import Floats, Ints
from pate_cli.errors import VoteError
from pate_cli.multilabel import LabelSet
from pate_cli.votes.checks import Ids
from pate_cli.votes.columns import LABEL, QUERY, is_text
from pate_cli.votes.copies import Part
from pate_cli.votes.files import locate
from pate_cli.votes.formats import Format
from pate_cli.words import Voting

__all__ = [
    "UNKNOWN",
    "PairTruth",
    "QueryList",
    "StudentPredictions",
    "Truth",
    "YesProbabilities",
    "check_predictions",
    "load_predictions",
    "load_queries",
    "load_truth",
    "query_list",
    "truth_of",
]

UNKNOWN = -1
"""The true label of a query nobody knows it of."""

_UNNAMED = -2
"""The true label of a query whose text is no name of a class."""

_SUM_TOLERANCE = 1e-6
_LARGEST_ID = 2**63 - 1
_DIGITS = re.compile(r"0|-?[1-9][0-9]{0,18}")
# What numpy and pyarrow raise over damaged files; pyarrow's errors derive from these.
_DAMAGE = (
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    SyntaxError,
    TypeError,
    ValueError,
    tokenize.TokenError,
)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Which row of a side file belongs to a query: by its id, or by order where the file has none.

    CSV does not tell numbers from text, so an id that is a number is found under its digits, too.
    """

    noun: str
    count: int
    ids: Sequence[Any] | NDArray[Any] | None
    _places: dict[Any, int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.ids is None:
            return
        ids = list(self.ids) if not isinstance(self.ids, np.ndarray) else self.ids.tolist()
        if len(ids) != self.count:
            raise VoteError(f"{self.noun}: {len(ids)} query ids for {self.count} rows")
        for row, query in enumerate(ids):
            first = self._places.setdefault(query, row)
            if first != row:
                raise VoteError(
                    f"{self.noun}: the query id of row {row} is that of row {first}, too"
                )

    def of(self, ids: Any, first_row: int) -> Ints:
        """Return the rows of the queries with these ids, or from `first_row` on; -1 for none.

        Raises:
            VoteError: the file ends before the votes do.
        """
        if self.ids is None:
            rows = np.arange(first_row, first_row + len(ids))
            if rows.size and rows[-1] >= self.count:
                raise VoteError(
                    f"{self.noun} end at row {self.count - 1}, the votes go on to row "
                    f"{int(rows[-1])}"
                )
            return rows
        return np.array([self._place(query) for query in np.asarray(ids).tolist()], dtype=np.int64)

    def _place(self, query: Any) -> int:
        found = self._places.get(query)
        return self._places.get(str(query), -1) if found is None else found


@dataclass(frozen=True, eq=False)
class StudentPredictions:
    """Class probabilities per query, matched to votes by id or by order: for Interactive-GNMax.

    Attributes:
        probabilities: [queries, classes]; rows sum to 1 within 1e-6.
        ids: the queries' ids, or None when rows match votes by their order.
        columns: what the classes are called here, None where they are not.
    """

    probabilities: Floats
    ids: Sequence[Any] | NDArray[Any] | None = None
    columns: tuple[str, ...] | None = None
    _rows: _Rows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values = self.probabilities
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
        object.__setattr__(self, "_rows", _Rows("student predictions", len(values), self.ids))

    @property
    def classes(self) -> int:
        """m."""
        return self.probabilities.shape[1]

    def named(self, names: Sequence[str] | None) -> StudentPredictions:
        """With classes in the order of these names, where the columns are called exactly so.

        Otherwise as they stand: the first column is class 0.
        """
        if names is None or self.columns is None or self.columns == tuple(names):
            return self
        if sorted(self.columns) != sorted(names):
            return self
        order = [self.columns.index(name) for name in names]
        return StudentPredictions(self.probabilities[:, order], self.ids, tuple(names))

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
    """Probabilities of yes for every label of a query, for Interactive-GNMax on several labels.

    Attributes:
        probabilities: [queries, labels], each from 0 to 1.
        ids: the queries' ids, or None when rows match queries of the votes by their order.
        names: of the labels, [labels], where the file names them.
    """

    probabilities: Floats
    ids: Sequence[Any] | NDArray[Any] | None = None
    names: tuple[str, ...] | None = None
    classes: ClassVar[int] = 2
    _rows: _Rows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values = self.probabilities
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
        object.__setattr__(self, "_rows", _Rows("student predictions", len(values), self.ids))

    @property
    def labels(self) -> int:
        """L."""
        return self.probabilities.shape[1]

    def named(self, names: Sequence[str] | None) -> YesProbabilities:
        """As it is: its classes are no and yes; names of labels must be those of the votes."""
        del names
        return self

    def of(self, ids: Any, first_row: int) -> Floats:
        """Probabilities (no, yes) of the pairs from `first_row` on, whose queries have these ids.

        Raises:
            VoteError: a query without predictions.
        """
        yes = _of_pairs(self._rows, self.probabilities, ids, first_row, np.nan)
        if np.isnan(yes).any():
            query = (first_row + int(np.argmax(np.isnan(yes)))) // self.labels
            raise VoteError(f"student predictions: none for the query of row {query}")
        return np.stack([1.0 - yes, yes], axis=1)


def _of_pairs(
    rows: _Rows, values: NDArray[Any], ids: Any, first_row: int, unknown: float
) -> NDArray[Any]:
    """What `values` [queries, labels] say of the pairs from `first_row` on; unknown where nothing.

    The votes must have as many labels, which whoever joins them sees to.
    """
    labels = values.shape[1]
    queries, label = np.divmod(np.arange(first_row, first_row + len(ids)), labels)
    if rows.ids is None:
        first = int(queries[0]) if len(ids) else 0
        last = int(queries[-1]) + 1 if len(ids) else 0
        found = rows.of(range(first, last), first)[queries - first]
    else:
        found = rows.of(ids, first_row)
    return np.where(found < 0, unknown, values[found, label])


@dataclass(frozen=True, eq=False)
class Truth:
    """One label a query, matched to votes by id or by order.

    Attributes:
        labels: [queries], classes from 0, or places in `words`; UNKNOWN where nothing is known.
        ids: the queries' ids, or None when rows match votes by their order.
        words: distinct texts, of which the labels are places; None for labels that are classes.
    """

    labels: Ints
    ids: Sequence[Any] | NDArray[Any] | None = None
    words: tuple[str, ...] | None = None
    _rows: _Rows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rows", _Rows("true labels", len(self.labels), self.ids))

    def named(self, names: Sequence[str] | None) -> Truth:
        """With texts turned into classes, of these names; labels that are classes stay as they are.

        Raises:
            VoteError: there are texts, and no names.
        """
        if self.words is None:
            return self
        if names is None:
            raise VoteError("true labels: they are texts; give `label_names`")
        known = {name: place for place, name in enumerate(names)}
        places = np.array([known.get(word, _UNNAMED) for word in self.words] + [UNKNOWN])
        # UNKNOWN is -1, and so finds the last.
        return Truth(places[self.labels].astype(np.int64), self.ids)

    def of(self, ids: Any, first_row: int, *, classes: int) -> Ints:
        """Labels of the queries with these ids, or from `first_row` on, UNKNOWN or below `classes`.

        A query whose id is not there is UNKNOWN.

        Raises:
            VoteError: fewer labels than queries, a label out of range or of no name, or texts that
                were not `named`.
        """
        if self.words is not None:
            return self.named(None).of(ids, first_row, classes=classes)
        rows = self._rows.of(ids, first_row)
        found = np.where(rows < 0, UNKNOWN, self.labels[rows])
        bad = (found < UNKNOWN) | (found >= classes)
        if bad.any():
            raise VoteError(
                f"true labels: the label of row {first_row + int(np.argmax(bad))} is not among the "
                f"{classes} classes of the votes"
            )
        return found


@dataclass(frozen=True, eq=False)
class PairTruth(Truth):
    """For every label of a query whether it is true of it.

    Attributes:
        labels: [queries, labels], 1 for yes, 0 for no, UNKNOWN where nothing is known.
        ids: the queries' ids, or None when rows match queries of the votes by their order.
    """

    def of(self, ids: Any, first_row: int, *, classes: int) -> Ints:
        """What is true of the pairs from `first_row` on, whose queries have these ids.

        Raises:
            VoteError: fewer queries than the votes have.
        """
        del classes
        return _of_pairs(self._rows, self.labels, ids, first_row, UNKNOWN)


@dataclass(frozen=True, eq=False)
class QueryList:
    """The queries that are asked, in order: public, and so no vote decides which there are.

    Attributes:
        ids: numbers below 2^63 or texts, each once, at least one: int64 [queries], or a tuple.
        digits: numbers may stand as text, for CSV does not tell one from the other.
    """

    ids: Ids
    digits: bool = False

    def __post_init__(self) -> None:
        ids: list[Any] = self.ids.tolist() if isinstance(self.ids, np.ndarray) else [*self.ids]
        kinds = {type(query) for query in ids}
        if kinds not in ({int}, {str}):
            raise VoteError("the list of queries must hold whole numbers, or texts, one a row")
        if kinds == {int}:
            large = [not -_LARGEST_ID - 1 <= query <= _LARGEST_ID for query in ids]
            if any(large):
                raise VoteError(f"the list of queries: row {large.index(True)} is above 2^63 - 1")
            object.__setattr__(self, "ids", np.array(ids, dtype=np.int64))
        # Each id once: refuses the first that occurs again.
        _Rows("the list of queries", len(ids), ids)

    def named_by(self, *, numbers: bool) -> Ids:
        """The ids as the votes name queries, by numbers or by texts.

        Raises:
            VoteError: the list names them otherwise.
        """
        if numbers == isinstance(self.ids, np.ndarray):
            return self.ids
        if not (numbers and self.digits):
            here, there = ("numbers", "texts") if numbers else ("texts", "numbers")
            raise VoteError(f"the votes name queries by {here}, the list of queries by {there}")
        texts = list(self.ids)
        bad = [not _DIGITS.fullmatch(text) or abs(int(text)) > _LARGEST_ID for text in texts]
        if any(bad):
            raise VoteError(
                f"the list of queries: row {bad.index(True)} is no number, but the votes name "
                "queries by numbers"
            )
        return np.array([int(text) for text in texts], dtype=np.int64)


def query_list(
    given: QueryList | Sequence[Any] | NDArray[Any] | str | PathLike[str],
    *,
    id_column: str | None = None,
) -> QueryList:
    """The list of queries that is given, or that is in a file of this name.

    `id_column` may stand for query_id in a file, here and below.

    Raises:
        VoteError: a file that cannot be read, an id that is neither number nor text, or one twice.
    """
    if isinstance(given, QueryList):
        return given
    if isinstance(given, str | PathLike):
        return load_queries(given, id_column=id_column)
    ids: list[Any] = given.tolist() if isinstance(given, np.ndarray) else list(given)
    whole: list[Any] = [int(query) if isinstance(query, np.integer) else query for query in ids]
    return QueryList(tuple(whole))


def load_queries(path: str | PathLike[str], *, id_column: str | None = None) -> QueryList:
    """Read ids: an array [queries], or a table with `query_id`, whose other columns do not matter.

    Raises:
        VoteError: a file that cannot be read as such.
    """
    side = read_side(path, "a list of queries", id_column)
    name, ids = side.name, side.ids
    if ids is None:
        values = side.values
        if not isinstance(values, np.ndarray):
            raise VoteError(f"{name}: a list of queries needs a column named {QUERY}")
        if values.ndim != 1 or values.dtype.kind not in "iuU":
            raise VoteError(f"{name}: a list of queries must be whole numbers or texts, one a row")
        ids = tuple(values.tolist())
    try:
        return QueryList(ids, digits=side.digits)
    except VoteError as error:
        raise VoteError(f"{name}: {error}") from None


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
    side = read_side(path, noun, id_column)
    values, columns, names = side.values, None, None
    if not isinstance(values, np.ndarray):
        columns = tuple(values.column_names) if values.num_columns > 1 else None
        names = _label_names(values)
        with _understood(f"{side.name}: cannot be read as {noun}"):
            values = _stacked(values, side.name)
    if pairs:
        return YesProbabilities(_as_floats(values), side.ids, names)
    return StudentPredictions(_as_floats(values), side.ids, columns)


def check_predictions(predictions: Any, label_set: LabelSet | None) -> None:
    """VoteError where predictions are not of what the votes are on, however their shapes fit."""
    pairs = label_set is not None and label_set.voting is Voting.BINARY
    if isinstance(predictions, YesProbabilities):
        if label_set is None or not pairs:
            raise VoteError(
                "the student predicts yes or no for every label, the votes are not on labels one "
                "by one"
            )
        _check_labels("the student's predictions", predictions.labels, predictions.names, label_set)
    elif pairs and isinstance(predictions, StudentPredictions) and predictions.ids is not None:
        raise VoteError(
            "the student's predictions are for queries, the votes are on pairs of a query and a "
            "label; give probabilities of yes, [queries, labels]"
        )


def _check_labels(
    what: str, labels: int, names: tuple[str, ...] | None, label_set: LabelSet
) -> None:
    if labels != label_set.count:
        raise VoteError(f"{what} have {labels} labels, the votes {label_set.count}")
    if None not in (names, label_set.names) and names != label_set.names:
        raise VoteError(f"{what} name other labels than the votes, or in another order")


def truth_of(
    truth: Truth | str | PathLike[str],
    label_set: LabelSet | None,
    *,
    id_column: str | None = None,
) -> Truth:
    """The truth that is given, or in a file of this name, for votes on these labels.

    Raises:
        VoteError: a file that cannot be read as such, or the truth of something else.
    """
    if not isinstance(truth, Truth):
        return load_truth(truth, label_set, id_column=id_column)
    pairs = label_set is not None and label_set.voting is Voting.BINARY
    if isinstance(truth, PairTruth):
        if label_set is None or not pairs:
            raise VoteError("the true labels are of pairs, the votes are on queries")
        _check_labels("the true labels", truth.labels.shape[1], None, label_set)
    elif pairs and truth.ids is not None:
        raise VoteError(
            "the true labels are of queries, the votes are on pairs; give [queries, labels]"
        )
    return truth


def load_truth(
    path: str | PathLike[str],
    label_set: LabelSet | None = None,
    *,
    id_column: str | None = None,
) -> Truth:
    """Read labels: an array [queries], or a table with `label` and optionally `query_id`.

    Labels may be texts, which `Truth.named` turns into classes; an empty one is not known.
    label_set: the labels of the votes, where a query has several: an array [queries, labels], or a
    table with a column per label or one column of lists, of 1 for yes, 0 for no and -1 for unknown.

    Raises:
        VoteError: a file that cannot be read as such.
    """
    noun = "true labels"
    side = read_side(path, noun, id_column)
    name, values, ids = side.name, side.values, side.ids
    if label_set is not None:
        if not isinstance(values, np.ndarray):
            names = _label_names(values)
            with _understood(f"{name}: cannot be read as {noun}"):
                values = _stacked(values, name)
            _check_labels(f"{name}: the true labels", values.shape[1], names, label_set)
        return _truth_of_sets(values, ids, label_set, name)
    if not isinstance(values, np.ndarray):
        with _understood(f"{name}: cannot be read as {noun}"):
            values = _label_column(values, name)
    words = None
    if values.ndim == 1 and values.dtype.kind == "U":
        found, values = np.unique(values, return_inverse=True)
        values = np.where(found[values] == "", UNKNOWN, values)
        words = tuple(found.tolist())
    if values.ndim != 1 or values.dtype.kind not in "iu" or values.size == 0:
        raise VoteError(f"{name}: {noun} must be whole numbers or texts, one a query")
    if ids is not None and len(set(ids)) != len(ids):
        raise VoteError(f"{name}: a query id occurs twice")
    # Above the largest int64 a label would come out negative, and so perhaps as unknown.
    largest = min(np.iinfo(np.int64).max, np.iinfo(values.dtype).max)
    return Truth(np.minimum(values, values.dtype.type(largest)).astype(np.int64), ids, words)


def _truth_of_sets(
    values: NDArray[Any], ids: tuple[Any, ...] | None, label_set: LabelSet, source: str
) -> Truth:
    """The truth of [queries, labels], as pairs or as sets, by how the teachers vote."""
    numbers = values.dtype.kind in "iufb"
    if not numbers or values.ndim != 2 or values.shape[1] != label_set.count or not len(values):
        raise VoteError(
            f"{source}: true labels must be [queries, {label_set.count} labels], 1, 0, or -1 for "
            "unknown"
        )
    bad = ~np.isin(values, (UNKNOWN, 0, 1)).all(axis=1)
    if bad.any():
        raise VoteError(
            f"{source}: row {int(np.argmax(bad))} has a true label that is neither 1, 0 nor -1"
        )
    known = values.astype(np.int64)
    if label_set.voting is Voting.BINARY:
        return PairTruth(known, ids)
    sets = known @ (1 << np.arange(label_set.count))
    return Truth(np.where((known == UNKNOWN).any(axis=1), UNKNOWN, sets), ids)


@dataclass(frozen=True, eq=False)
class Side:
    """What was read: an array, or a pyarrow.Table without its query ids, and these if it has any.

    digits: from CSV, where numbers and texts look alike; the ids are texts then.
    """

    name: str
    values: Any
    ids: tuple[Any, ...] | None = None
    digits: bool = False


def read_side(
    path: str | PathLike[str],
    noun: str,
    id_column: str | None = None,
    *,
    ids: Sequence[str] = (),
) -> Side:
    """Read a file of any format that votes come in; `noun` is what messages call it.

    The query ids are those in `id_column` if it is there, else in `query_id`. `ids` are other
    columns of names, which are numbers only if each is written as one.

    Raises:
        VoteError: a file that cannot be read, or a query id that is missing.
    """
    source = os.fspath(path)
    if source == "-":
        raise VoteError(f"{noun}: only votes are read from standard input; give a file")
    query_names = (id_column or QUERY, QUERY)
    with contextlib.ExitStack() as stack:
        located = locate(source, None, stack, ids=(*query_names, *ids))
        damaged = f"{located.name}: cannot be read as {noun}"
        with _understood(damaged):
            if located.format is Format.NPY:
                array = np.load(located.parts[0].path, allow_pickle=False)
                return Side(located.name, array)
        # pyarrow takes a tenth of a second to import: arrays do without.
        from pyarrow import concat_tables

        with _understood(damaged):
            table = concat_tables(
                [_table(part) for part in located.parts], promote_options="default"
            )
            query = next((name for name in query_names if name in table.column_names), None)
            if query is None:
                return Side(located.name, table, digits=located.digits)
            queries = tuple(table.column(query).to_pylist())
            table = table.drop_columns([query])
    if None in queries:
        raise VoteError(f"{located.name}: row {queries.index(None)} has no {query}")
    if located.digits:
        queries = tuple(map(str, queries))
    return Side(located.name, table, queries, located.digits)


def _table(part: Part) -> Any:
    from pyarrow import OSFile, parquet

    with _understood(f"{part.name}: a truncated or damaged Parquet file"):
        opened = (
            OSFile(part.path)
            if part.filesystem is None
            else part.filesystem.open_input_file(part.path)
        )
        with opened:
            return parquet.ParquetFile(opened).read()


@contextlib.contextmanager
def _understood(message: str) -> Iterator[None]:
    """Turn what readers raise over a damaged file into this message."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers written by Python 2 parse with a warning
            yield
    except _DAMAGE as error:
        raise VoteError(message) from error


def _stacked(table: Any, source: str) -> Floats:
    """Return the columns of a table side by side, or its one column of lists as a matrix."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if table.num_columns == 1 and pa.types.is_nested(table.column(0).type):
        lists = table.column(0)
        lengths = pc.list_value_length(lists).to_pylist()
        for row, length in enumerate(lengths):
            if length is None or length != lengths[0]:
                raise VoteError(
                    f"{source}: row {row} is the first with another number of classes than row 0"
                )
        flat = _as_floats(pc.list_flatten(lists).to_numpy())
        return flat.reshape(len(lengths), lengths[0] if lengths else 0)
    return np.column_stack([_as_floats(column.to_numpy()) for column in table.columns])


def _label_names(table: Any) -> tuple[str, ...] | None:
    """What the columns of a table name; None for one of lists."""
    import pyarrow as pa

    if table.num_columns == 1 and pa.types.is_nested(table.column(0).type):
        return None
    return tuple(table.column_names)


def _label_column(table: Any, source: str) -> NDArray[Any]:
    import pyarrow as pa

    if LABEL not in table.column_names:
        raise VoteError(f"{source}: true labels need a column named label")
    column = table.column(LABEL)
    if is_text(column.type):
        import pyarrow.compute as pc

        # Names are not empty, so an empty text is free to stand for what is not known.
        return np.array(pc.fill_null(column.cast(pa.string()), "").to_pylist(), dtype=np.str_)
    if pa.types.is_integer(column.type):
        column = column.cast(pa.int64()).fill_null(UNKNOWN)
    return column.to_numpy()


def _as_floats(values: NDArray[Any]) -> Floats:
    if values.dtype.kind not in "fiu":
        raise VoteError(f"student predictions must be numbers, got {values.dtype}")
    return values.astype(np.float64)
