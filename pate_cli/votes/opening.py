"""From a source to a VoteFile: locate, read as a matrix, settle the layout, check the first row."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pate_cli.arrays import DENSE_CLASSES, Ints
from pate_cli.checks import MOST_CLASSES
from pate_cli.errors import ParameterError, UsageError, VoteError
from pate_cli.multilabel import LabelSet
from pate_cli.votes.checks import LARGEST, check_counts, first_bad
from pate_cli.votes.columns import QUERY, TEACHER
from pate_cli.votes.files import locate
from pate_cli.votes.formats import Format
from pate_cli.votes.groups import Group, Groups, TeacherGroups, teacher_groups
from pate_cli.votes.infer import SAMPLE_ENTRIES, Evidence, infer
from pate_cli.votes.multilabel import (
    Answers,
    Ballots,
    CountedBoth,
    CountedYes,
    PairsReader,
    SetsReader,
    first_total,
)
from pate_cli.votes.names import LabelNames, names_of, shown
from pate_cli.votes.npy import NpyCube, NpyMatrix, open_npy, take_array
from pate_cli.votes.ranges import cut, spans
from pate_cli.votes.reading import (
    CountedReader,
    CountsReader,
    LabelsReader,
    Matrix,
    Reader,
    VoteBatch,
)
from pate_cli.votes.scores import ScoresReader
from pate_cli.votes.side_files import QueryList, query_list
from pate_cli.words import Layout, PublicFact, Voting

if TYPE_CHECKING:
    import pyarrow as pa

    from pate_cli.votes.columns import Columns
    from pate_cli.votes.parquet import Parts

Queries: TypeAlias = "QueryList | Sequence[Any] | NDArray[Any] | str | PathLike[str]"
"""The ids of the queries, in order, or a file of them."""

_NUMERAL = re.compile(r"[-+.0-9eE]+|nan|inf", re.IGNORECASE)
LARGEST_UNTOLD_LABEL = (1 << 16) - 1
"""Without `classes` a label above this is damage: the histograms would be as wide as it is."""

ENTRIES_PER_BATCH = 1 << 20
"""At most this many int64 in one batch: 8 MB, so that many processes may read at once."""

_WIDTH_OF_TEXT = 4
"""How many integers a vote in words counts as, while it is read."""


def batch_size(width: int) -> int:
    """Return how many rows of `width` integers fit in one batch, at least 1."""
    return max(1, ENTRIES_PER_BATCH // max(1, width))


@dataclass(frozen=True)
class VoteFile:
    """An opened file: its shape, how it was read, and its batches.

    `teachers` is the most votes a row can have. Without `groups` that is `teachers`, else what the
    file says: the total of the first row, the number of labels in it, or the number of distinct
    teacher ids; `teachers_from_data` is true then. With groups it is the weight of all teachers,
    and histograms hold weights.
    `classes_from_data` is true when the number of classes is one more than the largest label
    seen; it then depends on the votes, so `classes` is the better source wherever the number of
    classes is known. `rows_from_data` is true where votes may be missing in long form and no list
    of queries was given: a query is there only if somebody voted on it, so one teacher can make a
    query appear, and `queries` and the place of later queries depend on the votes.
    `label_names` are what the classes are called, class 0 first, where that was said or the columns
    of the counts say so; public, and never taken from the votes.

    Queries come in the file's order, in long form in the order of the list of queries, or without
    one in order of their ids: numbers ascending, strings by code points ("10" before "9"). The
    order never depends on who voted.

    `label_set` tells of several labels a query. With binary voting `queries` then counts pairs of a
    query and a label, and `rows_per_query` of them are one query of the file.

    It can be pickled: a copy in another process reads the same votes, with the same checks, and
    infers nothing again.
    """

    name: str
    queries: int
    classes: int
    teachers: int
    layout: Layout
    inferred: bool
    classes_from_data: bool
    teachers_from_data: bool
    rows_from_data: bool
    rows_listed: bool
    reader: Reader = field(repr=False, compare=False)
    label_names: tuple[str, ...] | None = None
    strays: Callable[[int], int] | None = field(default=None, repr=False, compare=False)
    groups: tuple[Group, ...] | None = None
    label_set: LabelSet | None = None
    id_column: str | None = None

    def describe(self) -> str:
        """Return one line about the file, without any vote."""
        how = "inferred" if self.inferred else "as told"
        who = f"{self.teachers} teachers"
        if self.groups is not None:
            count = sum(group.teachers for group in self.groups)
            who = f"{count} teachers in {len(self.groups)} groups with {self.teachers} votes"
        shape = f"{self.queries} queries x {self.classes} classes"
        if self.label_set is not None:
            shape = f"{self.queries // self.rows_per_query} queries x {self.label_set.count} labels"
            binary = self.label_set.voting is Voting.BINARY
            shape += (
                f" = {self.queries} pairs, yes or no each"
                if binary
                else f", {self.classes} sets of labels"
            )
        line = f"{self.name}: {shape}, {who}, layout {self.layout} ({how})"
        if self.label_names is not None:
            line += f", named {shown(self.label_names)}"
        if self.layout is Layout.LONG:
            order = "the list of queries" if self.rows_listed else self.id_column or "query_id"
            line += f", in order of {order}"
        if self.rows_from_data:
            line += "; queries without any vote are not known"
        if self.classes_from_data:
            line += "; the number of classes was taken from the data, `classes` is safer"
        return line

    def stray_rows(self, limit: int | None = None) -> int:
        """How many rows have a vote in words that is no label name, and counts as missing. SECRET.

        Of the first `limit` rows, or all; in long form of all rows of the file. Reads them once
        more, where votes are words.
        """
        stop = self.queries if limit is None else min(limit, self.queries)
        return 0 if self.strays is None else self.strays(stop)

    @property
    def votes_together(self) -> bool:
        """Whether one record has trained one teacher at most, whatever its vote counts for."""
        return all(group.teachers_per_record == 1 for group in self.groups or ())

    @property
    def read_off(self) -> tuple[PublicFact, ...]:
        """What a guarantee takes as public and this file says only through its votes."""
        found = {
            PublicFact.CLASSES: self.classes_from_data,
            PublicFact.QUERIES: self.rows_from_data,
        }
        return tuple(fact for fact, from_votes in found.items() if from_votes)

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """What the classes are called; None where a query has several labels, which are named."""
        return self.label_names if self.label_set is None else None

    @property
    def rows_per_query(self) -> int:
        """How many rows are one query: 1, or with binary voting on several labels one a label."""
        return 1 if self.label_set is None else self.label_set.rows_per_query

    def limited(self, max_queries: int | None) -> int:
        """How many rows a public limit on queries leaves, all without one.

        ParameterError below 1.
        """
        if max_queries is None:
            return self.queries
        _at_least_one(max_queries=max_queries)
        return min(max_queries * self.rows_per_query, self.queries)

    def capped(self, max_answers: int | None) -> int:
        """How many rows a public cap leaves to be answered, all without one; errors as above."""
        if max_answers is None:
            return self.queries
        _at_least_one(max_answers=max_answers)
        return min(max_answers, self.queries)

    @property
    def portable(self) -> bool:
        """Whether pickling this carries no votes, but names of files that the copy reads.

        True for files and URIs, and for the temporary copy of a pipe while that is open; false for
        arrays and tables in memory, and for long form, which is counted on opening.
        """
        return self.reader.portable

    @property
    def parts(self) -> list[tuple[str, int, int]]:
        """The files behind it in order, as (name, start, stop): rows start..stop-1 are its own.

        One for a source in memory, and for long form, whose queries are not the rows of its files.
        """
        return spans(self.reader.stretches)

    def batches(self, *, start: int = 0, limit: int | None = None) -> Iterator[VoteBatch]:
        """Yield `limit` queries (default: all) from row `start` on in order, validating each.

        May be called again, and several iterators may be open at once. Fewer come where the file
        ends. Row groups of Parquet that end before `start` are not decoded.

        Raises:
            VoteError: at the first row that is no vote.
            ParameterError: for a negative start or limit.
        """
        _not_negative(start=start, limit=limit)
        stop = self.queries if limit is None else min(start + limit, self.queries)
        return self.reader.batches(start, max(start, stop))

    def ranges(self, *, limit: int, entries: int) -> list[tuple[int, int]]:
        """Return ranges (start, stop) that cover rows 0..limit-1 in order, for `batches`.

        Each has about `entries` entries, of histograms or labels, whichever are more. None spans
        two parts, or ends within a query. Row groups of Parquet stay whole, but one of more than
        `entries` is cut into at most 8: whoever reads a piece decodes its row group from the
        beginning. The ranges depend on the shape of the file and its footers only.

        Raises:
            ParameterError: for a negative limit, or entries below 1.
        """
        _not_negative(limit=limit)
        if entries < 1:
            raise ParameterError(f"entries must be at least 1, got {entries}")
        rows = max(1, entries // max(1, self.reader.width))
        return cut(
            self.reader.stretches,
            rows=rows,
            limit=min(limit, self.queries),
            together=self.rows_per_query,
        )


def _at_least_one(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise ParameterError(f"`{name}` must be at least 1, got {number}")


def _not_negative(**numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None and number < 0:
            raise ParameterError(f"{name} must be at least 0, got {number}")


@dataclass(frozen=True)
class _Told:
    """What the user said about the file."""

    layout: Layout | None = None
    classes: int | None = None
    teachers: int | None = None
    batch_rows: int | None = None
    queries: QueryList | None = None
    names: tuple[str, ...] | None = None
    groups: TeacherGroups | None = None
    voting: Voting | None = None
    id_column: str | None = None

    def __post_init__(self) -> None:
        if self.names is not None and not self.several:
            if self.classes not in (None, len(self.names)):
                raise ParameterError(
                    f"`classes` {self.classes} is not the number of `label_names`, "
                    f"{len(self.names)}"
                )
            object.__setattr__(self, "classes", len(self.names))
        if self.classes is not None and not 2 <= self.classes <= MOST_CLASSES:
            raise ParameterError(
                f"`classes` must be between 2 and {MOST_CLASSES}, got {self.classes}"
            )
        if self.teachers is not None and self.teachers < 1:
            raise ParameterError(f"`teachers` must be at least 1, got {self.teachers}")
        if self.batch_rows is not None and self.batch_rows < 1:
            raise ParameterError(f"batch_rows must be at least 1, got {self.batch_rows}")
        if self.groups is not None and self.teachers not in (None, len(self.groups)):
            raise ParameterError(
                f"`teachers` is {self.teachers}, but `groups` has {len(self.groups)} teachers"
            )
        if self.voting is None:
            return
        if not self.several:
            raise UsageError(
                "`voting` goes with several labels a query: `layout` "
                f"{'|'.join(layout for layout in Layout if layout.multilabel)}"
            )
        if self.voting is Voting.POWERSET and self.layout is Layout.MULTILABEL_COUNTS:
            raise UsageError(
                f"`voting` {self.voting} does not go with `layout` {self.layout}: counts by label "
                "do not tell how many teachers gave which set of labels"
            )

    @property
    def ensemble(self) -> int | None:
        """How many teachers there are, as far as that was said."""
        return len(self.groups) if self.groups is not None else self.teachers

    @property
    def several(self) -> bool:
        """Whether a query has several labels."""
        return self.layout is not None and self.layout.multilabel

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """Names of the classes, where the names are not those of several labels."""
        return None if self.several else self.names

    def absent_limit(self, width: int) -> int | None:
        """How many labels a row may have if some may be missing; None where none may.

        Names allow it, for a text that is no name is a missing vote.
        """
        return width if self.teachers is None and self.names is not None else self.teachers

    def size(self, width: int) -> int:
        return batch_size(width) if self.batch_rows is None else self.batch_rows

    def file(
        self,
        name: str,
        layout: Layout,
        *,
        queries: int,
        classes: int,
        teachers: int,
        reader: Reader,
        names: tuple[str, ...] | None = None,
        strays: Callable[[int], int] | None = None,
        label_set: LabelSet | None = None,
    ) -> VoteFile:
        from_labels = layout in (Layout.LABELS, Layout.LABELS_BY_TEACHER, Layout.LONG)
        return VoteFile(
            name,
            queries=queries,
            classes=classes,
            teachers=teachers if self.groups is None else self.groups.total,
            layout=layout,
            inferred=self.layout is None,
            classes_from_data=self.classes is None and from_labels,
            teachers_from_data=self.ensemble is None,
            rows_from_data=(
                self.teachers is not None and layout is Layout.LONG and self.queries is None
            ),
            rows_listed=self.queries is not None,
            reader=reader,
            label_names=names or self.names,
            strays=strays,
            groups=None if self.groups is None else self.groups.public,
            label_set=label_set,
            id_column=self.id_column,
        )

    def drawn(self, classes: int, teachers: int) -> int:
        """Numbers that labelling a row takes: a draw a class, or for every vote it might have."""
        if classes <= DENSE_CLASSES:
            return classes
        return teachers if self.groups is None else self.groups.total

    def weights(
        self, teachers: int, name: str, columns: tuple[str, ...] | None = None
    ) -> Ints | None:
        """How many votes each teacher of a file called `name` counts for; None for one each."""
        return None if self.groups is None else self.groups.in_columns(columns, teachers, name)

    def refuse_groups(self, name: str) -> None:
        """UsageError for groups of teachers beside histograms."""
        if self.groups is not None:
            raise UsageError(
                f"`groups` needs to know who voted, and the histograms of {name} do not tell; "
                "give the labels of the teachers"
            )

    def refuse_list(self, name: str) -> None:
        """UsageError for a list of queries beside votes whose rows are the queries."""
        if self.queries is not None:
            raise UsageError(
                f"`queries` goes with `layout` {Layout.LONG}; the rows of {name} are its queries"
            )

    def refuse_id_column(self, name: str) -> None:
        """UsageError for the name of a column beside an array, which has none."""
        if self.id_column is not None:
            raise UsageError(f"`id_column` names a column of a table; {name} is an array")


@contextlib.contextmanager
def open_votes(
    source: str | PathLike[str] | NDArray[Any] | pa.Table | VoteFile,
    *,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    queries: Queries | None = None,
    label_names: LabelNames | None = None,
    groups: Groups | None = None,
    id_column: str | None = None,
    batch_rows: int | None = None,
    voting: Voting | str | None = None,
    stdin: IO[bytes] | None = None,
) -> Iterator[VoteFile]:
    """Open votes for reading in batches: a context manager around a VoteFile.

    source: a file of NPY, NPZ with one array, Parquet, CSV (or with semicolons or tabs), JSON lines
    or Arrow (Feather), also packed by gzip, zstd or bzip2, told by content; a folder or glob of
    parts of one such table format, hive partitions (key=value/) included; a URI pyarrow knows
    (s3://, gs://, hdfs://, file://), a named pipe, or "-" for `stdin` (sys.stdin.buffer unless
    given). Pipes, and all but NPY and Parquet, are copied to temporary files of mode 0600, removed
    on exit. Or an array, read as the .npy file that would hold it; a pyarrow.Table, read as the
    Parquet file that would hold it; neither is copied, and both must stay as they are while they
    are read. Or a VoteFile that is open already: it is handed on as it is, and stays open.

    layout: what rows mean; None infers it from the numbers only where nothing else is possible
    (see `infer`). classes: how many classes there are, advised for label layouts, where it is
    otherwise taken from the largest label and so depends on the data; sparse histograms need it.
    teachers: how many teachers there are; given, rows may lack votes, even all of them (a smaller
    total, short lists, nulls among labels, absent long rows, NaN in arrays of three sides), else
    every row must have all. In long form a query that nobody voted on is then not there at all,
    unless `queries` lists it: see VoteFile.rows_from_data.
    queries: in long form, the ids that are asked, in this order: numbers or texts, or a file of
    them. A query on it that nobody voted on has an empty histogram.
    label_names: what the classes are called, class 0 first: texts, or a text of them with commas
    between, or a file of one name a line (a path, or "@NAME"). Votes may then be texts; one that
    is no name is a missing vote, exactly as in `teachers`, whether that is given or not. (Then a
    row still has an entry for every teacher: a column, a place in a list, a row in long form.)
    Columns of counts that are called so are taken by name. Missing votes are within what every
    bound holds for: neighbours differ in votes that move, appear or go missing, and a text that
    is no name is one that went missing, whatever it says.
    groups: for layouts that tell who voted, the public group of each teacher with its weight and
    how many teachers one record may have trained, as a TeacherGroups or a file of them; see
    load_groups. Histograms then hold weights.
    id_column: the column of a table that stands for query_id.
    batch_rows: rows per batch at most, by default as many as keep a batch within 8 MB.
    voting: in the multi-label layouts, on every label by itself (`binary`, if left out) or on sets
    of labels (`powerset`).

    Raises:
        VoteError: the source cannot be read as votes, or the groups are not those of its teachers;
            rows are checked as they are read.
        UsageError: `queries` beside votes that are not in long form; `id_column` beside an array;
            a file of names that cannot be read; `voting` without several labels a query, or one
            that their layout does not allow.
        ParameterError: an unknown layout; classes, teachers or batch_rows out of range; names that
            are not distinct, or not as many as classes; a source of another type; or any of these
            words beside votes that are open already.
    """
    told = _Told(
        layout=None if layout is None else Layout(layout),
        classes=classes,
        teachers=teachers,
        batch_rows=batch_rows,
        queries=None if queries is None else query_list(queries, id_column=id_column),
        names=None if label_names is None else names_of(label_names),
        groups=None if groups is None else teacher_groups(groups),
        voting=None if voting is None else Voting(voting),
        id_column=id_column,
    )
    if isinstance(source, VoteFile):
        if told != _Told():
            raise ParameterError(
                f"{source.name} is open already; give layout, classes, teachers, queries, "
                "label_names, groups, id_column, batch_rows and voting where it is opened"
            )
        yield source
        return
    with contextlib.ExitStack() as stack:
        yield _read(source, told, stdin, stack)


def _read(
    source: Any, told: _Told, stdin: IO[bytes] | None, stack: contextlib.ExitStack
) -> VoteFile:
    if isinstance(source, np.ndarray):
        return _from_array(take_array(source, "array", told.layout, told.class_names), told)
    arrow = sys.modules.get("pyarrow")  # whoever has a table has imported it
    if arrow is not None and isinstance(source, arrow.Table):
        from pate_cli.votes.parquet import table_parts

        held = table_parts(source, "table", told.layout, told.names, id_column=told.id_column)
        return _from_parts(held, told)
    if not isinstance(source, (str, PathLike)):
        raise ParameterError(
            "votes are a path, a URI, -, a numpy array, a pyarrow.Table or an opened file of "
            f"votes, not {type(source).__name__}"
        )
    ids = (told.id_column or QUERY, TEACHER)
    located = locate(os.fspath(source), stdin, stack, ids=ids)
    if located.format is Format.NPY:
        path = Path(located.parts[0].path)
        return _from_array(open_npy(path, located.name, told.layout, told.class_names), told)
    numeral = next(filter(_NUMERAL.fullmatch, told.names or ()), None) if located.digits else None
    if numeral is not None:
        raise VoteError(
            f"{located.name}: in CSV {numeral!r} of `label_names` looks like the number of a "
            "class; use Parquet or JSONL, which tell texts from numbers"
        )
    # pyarrow takes a tenth of a second to import: NPY files do without.
    from pate_cli.votes.parquet import open_parts

    parts = open_parts(
        located.parts, located.name, told.layout, stack, told.names, id_column=told.id_column
    )
    return _from_parts(parts, told)


def _from_array(matrix: NpyMatrix | NpyCube, told: _Told) -> VoteFile:
    told.refuse_list(matrix.where.name)
    told.refuse_id_column(matrix.where.name)
    if isinstance(matrix, NpyCube):
        return _from_cube(matrix, told)
    if told.layout is Layout.MULTILABEL_COUNTS:
        return _counted_yes(matrix, told, None)
    if told.layout in (Layout.LONG, Layout.SPARSE):
        raise VoteError(
            f"{matrix.where.name}: layout {told.layout} is for tables (Parquet, CSV, JSONL, Arrow)"
        )
    evidence = Evidence(matrix.rows, matrix.width, told.classes, told.ensemble, transposable=True)
    if matrix.texts:
        settled = _of_texts(matrix, told)
    else:
        settled = told.layout or _infer(matrix, told, evidence)
    if settled is Layout.COUNTS:
        return _counts(matrix, told)
    _check_orientation(matrix, settled, told, transposable=True)
    by_query = matrix.transposed() if settled is Layout.LABELS_BY_TEACHER else matrix
    size = told.size(by_query.width * _WIDTH_OF_TEXT)
    strays = functools.partial(by_query.stray_rows, size) if matrix.texts else None
    return _labels(by_query, settled, told, strays)


def _of_texts(matrix: NpyMatrix, told: _Told) -> Layout:
    """Return the layout of an array of texts: whoever is a row must be known."""
    name, sides = matrix.where.name, (matrix.width, matrix.rows)
    if told.layout is Layout.COUNTS:
        raise VoteError(f"{name}: the array holds strings; counts are integers")
    if told.layout is not None:
        return told.layout
    if told.teachers not in sides or matrix.width == matrix.rows:
        raise VoteError(
            f"{name}: the array holds strings, and who is a row cannot be told; say `layout` "
            f"{Layout.LABELS}|{Layout.LABELS_BY_TEACHER}"
        )
    return Layout.LABELS if told.teachers == matrix.width else Layout.LABELS_BY_TEACHER


def _from_parts(parts: Parts, told: _Told) -> VoteFile:
    from pate_cli.votes.parquet import open_matrix

    columns = parts.columns
    if columns.layout is Layout.LONG:
        return _long(parts, told)
    told.refuse_list(parts.where.name)
    if columns.layout is Layout.SPARSE:
        return _sparse(parts, told)
    matrix = open_matrix(
        parts,
        gaps_allowed=told.teachers is not None,
        names=told.names,
        placed=told.groups is not None,
    )
    if told.layout is Layout.MULTILABEL_COUNTS:
        return _counted_yes(matrix, told, None if columns.is_list else columns.votes)
    rows_are_queries = columns.has_ids or columns.by_teacher
    evidence = Evidence(
        matrix.rows,
        matrix.width,
        told.classes,
        told.ensemble,
        transposable=False,
        rows_are_queries=rows_are_queries,
        named=columns.layout,
    )
    # Words are no counts, so it is the shape alone that could be doubtful.
    known = Layout.LABELS if columns.texts else told.layout
    settled = known or _infer(matrix, told, evidence)
    if settled is Layout.COUNTS:
        _check_classes(columns, told, matrix.where.name)
        return _counts(matrix, told, columns.classes)
    if not rows_are_queries:
        _check_orientation(matrix, settled, told, transposable=False)
    size = told.size(matrix.width * _WIDTH_OF_TEXT)
    strays = functools.partial(matrix.stray_rows, size) if columns.texts else None
    teachers = None if columns.is_list else columns.votes
    return _labels(matrix, settled, told, strays, teachers)


def _check_classes(columns: Columns, told: _Told, name: str) -> None:
    """Refuse names beside columns of counts that have others."""
    if told.names is None or columns.classes is None:
        return
    others = sorted(set(columns.classes) ^ set(told.names))
    if others:
        raise VoteError(
            f"{name}: the columns and `label_names` do not name the same classes: {others[0]!r} "
            "is on one side only"
        )


def _infer(matrix: Matrix, told: _Told, evidence: Evidence) -> Layout:
    rows = max(1, SAMPLE_ENTRIES // max(1, matrix.width))
    limit = told.absent_limit(matrix.width)
    _, _, sample = next(matrix.blocks(rows, 0, min(rows, matrix.rows), absent_limit=limit))
    return infer(matrix.where.name, sample, evidence)


def _check_orientation(matrix: Matrix, layout: Layout, told: _Told, *, transposable: bool) -> None:
    """Refuse labels that may well be turned round, where nothing in the file tells.

    That is where the other side is the number of teachers, or, if that is not told, where there
    would be more teachers than queries: far more queries than teachers is what ensembles look like,
    and turned round they would pass for as many teachers, whose votes seem to cost next to nothing.
    """
    name, sides = matrix.where.name, (matrix.width, matrix.rows)
    here, there = sides if layout is Layout.LABELS else sides[::-1]
    if told.ensemble is None and here > there:
        raise VoteError(
            f"{name}: as {layout} it has {here} teachers and {there} queries, turned round {there} "
            f"teachers and {here} queries; give `teachers` {here} or {there} to say which"
        )
    if told.ensemble is not None and here != told.ensemble == there:
        said = "`teachers`" if told.groups is None else "`groups` of"
        if not transposable:
            raise VoteError(
                f"{name}: with {said} {told.ensemble} its {matrix.rows} rows are teachers; "
                "store one row per query, or query_id, teacher_id, label"
            )
        other = {Layout.LABELS: Layout.LABELS_BY_TEACHER, Layout.LABELS_BY_TEACHER: Layout.LABELS}
        raise VoteError(
            f"{name}: with {said} {told.ensemble} an array of {matrix.rows} x "
            f"{matrix.width} is `layout` {other[layout]}, not {layout}"
        )


def _from_cube(cube: NpyCube, told: _Told) -> VoteFile:
    """Read an array of three sides; its layout was told."""
    layout, missing = told.layout, told.teachers is not None
    if layout is None:
        raise ParameterError("an array of three sides needs its `layout`")
    if layout is Layout.MULTILABEL_COUNTS:
        return _counted_both(cube, told)
    _check_sides(cube, layout, told)
    teachers, width = cube.sides
    weights = told.weights(teachers, cube.where.name)
    if layout.multilabel:
        ballots = Ballots(cube=cube, missing_allowed=missing, weights=weights)
        several = _label_set(told, width, cube.where.name, None)
        if several.voting is Voting.BINARY:
            return _pairs(ballots, cube.where.name, cube.rows, several, told, teachers=teachers)
        entries = max(teachers * width, several.classes)
        sets = SetsReader(ballots=ballots, size=told.size(entries))
        return _several(cube.where.name, cube.rows, several, told, sets, teachers=teachers)
    if told.classes not in (None, width):
        raise VoteError(
            f"{cube.where.name}: has scores of {width} classes, but `classes` {told.classes}"
        )
    if width == 1:
        raise VoteError(
            f"{cube.where.name}: has scores of one class only; there is nothing to choose from"
        )
    return told.file(
        cube.where.name,
        layout,
        queries=cube.rows,
        classes=width,
        teachers=teachers,
        reader=ScoresReader(
            cube=cube,
            size=told.size(teachers * width),
            missing_allowed=missing,
            weights=weights,
        ),
    )


def _check_sides(cube: NpyCube, layout: Layout, told: _Told) -> None:
    """Refuse an array that may have queries and teachers the other way round."""
    teachers, queries = cube.sides[0], cube.rows
    other = Layout(
        layout.removesuffix("-by-teacher") if layout.by_teacher else f"{layout}-by-teacher"
    )
    shape = cube.source.shape
    if told.ensemble is None and teachers > queries:
        raise VoteError(
            f"{cube.where.name}: as {layout} an array of shape {shape} has {teachers} teachers and "
            f"only {queries} queries, as {other} {queries} teachers and {teachers} queries; give "
            "`teachers` N to settle it"
        )
    said = "`teachers`" if told.groups is None else "`groups` of"
    if told.ensemble == queries != teachers:
        raise VoteError(
            f"{cube.where.name}: with {said} {told.ensemble} an array of shape {shape} is "
            f"`layout` {other}, not {layout}"
        )
    if told.ensemble not in (None, teachers):
        raise VoteError(
            f"{cube.where.name}: as {layout} it has {teachers} teachers, but {said} "
            f"{told.ensemble}; one who is missing is NaN throughout"
        )


def _label_set(told: _Told, labels: int, name: str, names: tuple[str, ...] | None) -> LabelSet:
    """The labels of a file called `name`, whose columns have `names` where they have any."""
    if told.names is not None and len(told.names) != labels:
        raise VoteError(f"{name}: has {labels} labels, but {len(told.names)} `label_names`")
    if None not in (told.names, names) and told.names != names:
        raise VoteError(
            f"{name}: the columns and `label_names` do not name the same labels in the same order"
        )
    several = LabelSet(labels, told.voting or Voting.BINARY, told.names or names)
    if told.classes not in (None, several.classes):
        raise ParameterError(
            f"`classes` {told.classes} does not fit {labels} labels with `voting` "
            f"{several.voting}, which has {several.classes}; leave it out"
        )
    return several


def _several(
    name: str,
    queries: int,
    several: LabelSet,
    told: _Told,
    reader: Reader,
    *,
    teachers: int,
) -> VoteFile:
    """A file of so many queries with several labels each."""
    if told.layout is None:
        raise ParameterError("several labels a query need their `layout`")
    return told.file(
        name,
        told.layout,
        queries=queries * several.rows_per_query,
        classes=several.classes,
        teachers=teachers,
        reader=reader,
        names=several.names,
        label_set=several,
    )


def _pairs(
    answers: Answers, name: str, queries: int, several: LabelSet, told: _Told, *, teachers: int
) -> VoteFile:
    size = told.size(answers.width)
    pairs = PairsReader(answers=answers, size=size)
    return _several(name, queries, several, told, pairs, teachers=teachers)


def _counted_yes(matrix: Matrix, told: _Told, names: tuple[str, ...] | None) -> VoteFile:
    name = matrix.where.name
    told.refuse_groups(name)
    if told.teachers is None:
        raise VoteError(
            f"{name}: counts of yes do not tell how many teachers said no; give `teachers` N"
        )
    several = _label_set(told, matrix.width, name, names)
    answers = CountedYes(matrix=matrix, teachers=told.teachers)
    return _pairs(answers, name, matrix.rows, several, told, teachers=told.teachers)


def _counted_both(cube: NpyCube, told: _Told) -> VoteFile:
    name, (labels, sides) = cube.where.name, cube.sides
    told.refuse_groups(name)
    if sides != 2:
        raise VoteError(
            f"{name}: the array has shape {cube.source.shape}; its last side must be 2, the counts "
            "of no and of yes"
        )
    several = _label_set(told, labels, name, None)
    missing = told.teachers is not None
    teachers = told.teachers
    if teachers is None:
        _, first = next(cube.blocks(1, 0, 1))
        teachers = first_total(first, cube.where)
    answers = CountedBoth(cube=cube, teachers=teachers, missing_allowed=missing)
    next(answers.blocks(1, 0, 1))
    return _pairs(answers, name, cube.rows, several, told, teachers=teachers)


def _counts(matrix: Matrix, told: _Told, names: tuple[str, ...] | None = None) -> VoteFile:
    where, classes = matrix.where, matrix.width
    told.refuse_groups(where.name)
    if told.classes not in (None, classes):
        raise VoteError(
            f"{where.name}: has counts of {classes} classes, but `classes` {told.classes}"
        )
    if classes == 0:
        raise VoteError(f"{where.at(0)} has no entries")
    if classes == 1:
        raise VoteError(
            f"{where.name}: has counts of one class only; there is nothing to choose from"
        )
    _, _, first = next(matrix.blocks(1, 0, 1, absent_limit=None))
    missing = told.teachers is not None
    teachers = told.teachers or int(first.sum())
    check_counts(first, 0, where, teachers=teachers, missing_allowed=missing)

    reader = CountsReader(
        matrix=matrix,
        size=told.size(classes),
        width=classes,
        teachers=teachers,
        missing_allowed=missing,
    )
    return told.file(
        where.name,
        Layout.COUNTS,
        queries=matrix.rows,
        classes=classes,
        teachers=teachers,
        reader=reader,
        names=names,
    )


def _labels(
    matrix: Matrix,
    layout: Layout,
    told: _Told,
    strays: Callable[[int], int] | None = None,
    names: tuple[str, ...] | None = None,
) -> VoteFile:
    where, width = matrix.where, matrix.width
    weights = told.weights(width, where.name, names)
    if told.teachers is not None and width > told.teachers:
        raise VoteError(
            f"{where.name}: as {layout} it has {width} teachers, more than `teachers` "
            f"{told.teachers}"
        )
    classes = told.classes or _classes_seen(matrix, told)
    teachers = told.teachers or width
    entries = max(teachers, told.drawn(classes, teachers))
    read = entries if strays is None else max(entries, teachers * _WIDTH_OF_TEXT)
    reader = LabelsReader(
        matrix=matrix,
        size=told.size(read),
        width=entries,
        classes=classes,
        absent_limit=told.absent_limit(width),
        weights=weights,
    )
    return told.file(
        where.name,
        layout,
        queries=matrix.rows,
        classes=classes,
        teachers=teachers,
        reader=reader,
        strays=strays,
    )


def _sparse(parts: Parts, told: _Told) -> VoteFile:
    from pate_cli.votes.parquet import refuse_repeats
    from pate_cli.votes.sparse import SparseReader

    name, classes = parts.where.name, told.classes
    told.refuse_groups(name)
    if classes is None:
        raise UsageError(f"{name}: `layout` {Layout.SPARSE} needs `classes`, how many there are")
    if parts.columns.has_ids:
        refuse_repeats(parts)
    look = SparseReader(
        parts=parts,
        size=1,
        width=1,
        classes=classes,
        teachers=told.teachers or LARGEST,
        missing_allowed=True,
    )
    teachers = told.teachers or look.total(0)
    width = classes if classes <= DENSE_CLASSES else max(teachers, 1)
    reader = replace(
        look,
        size=told.size(width),
        width=width,
        teachers=teachers,
        missing_allowed=told.teachers is not None,
    )
    next(reader.batches(0, 1))
    return told.file(
        name,
        Layout.SPARSE,
        queries=parts.rows,
        classes=classes,
        teachers=teachers,
        reader=reader,
    )


def _classes_seen(matrix: Matrix, told: _Told) -> int:
    """Return the largest label of the file plus one; a pass over the whole file."""
    top = 0
    size = batch_size(told.teachers or matrix.width)
    for first_row, _, labels in matrix.blocks(size, 0, matrix.rows, absent_limit=told.teachers):
        top = max(top, int(labels.max()))
        if top > LARGEST_UNTOLD_LABEL:
            row = first_bad(labels > LARGEST_UNTOLD_LABEL, first_row)
            raise VoteError(
                f"{matrix.where.at(row)} has a label above {LARGEST_UNTOLD_LABEL}; "
                "if that is right, give `classes`"
            )
    return _at_least_two(top + 1, matrix.where.name)


def _at_least_two(classes: int, name: str) -> int:
    if classes < 2:
        raise VoteError(f"{name}: only label 0 occurs; give `classes`")
    return classes


def _long(parts: Parts, told: _Told) -> VoteFile:
    from pate_cli.votes.long import read_long

    name = parts.where.name
    votes = read_long(
        parts,
        classes=told.classes,
        teachers=told.teachers,
        largest_label=LARGEST_UNTOLD_LABEL,
        asked=told.queries,
        names=told.names,
        groups=told.groups,
    )
    classes = told.classes or _at_least_two(votes.top + 1, name)

    teachers = told.teachers or votes.teachers
    size = told.size(told.drawn(classes, teachers))
    reader = CountedReader(
        name=name, ids=votes.ids, counts=votes.counts, size=size, strays=votes.strays
    )
    return told.file(
        name,
        Layout.LONG,
        queries=len(votes.counts),
        classes=classes,
        teachers=teachers,
        reader=reader,
        strays=reader.stray_rows if parts.columns.texts else None,
    )
