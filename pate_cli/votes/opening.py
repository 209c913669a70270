"""From a source to a VoteFile: find it, open it, and hand it to the layout it has."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np

from pate_cli.core.errors import ParameterError, VoteError, quoted
from pate_cli.core.words import Layout
from pate_cli.files.inputs import watched
from pate_cli.votes.aliases import Aliases
from pate_cli.votes.beside.query_list import Queries
from pate_cli.votes.columns import LABEL, QUERY, TEACHER
from pate_cli.votes.groups import Groups
from pate_cli.votes.layouts.choice import Opened, vote_file
from pate_cli.votes.names import LabelNames
from pate_cli.votes.reading import Reading, whole_or_none
from pate_cli.votes.sources.copies import CopyOptions
from pate_cli.votes.sources.files import locate
from pate_cli.votes.sources.formats import Format
from pate_cli.votes.sources.in_memory import ARRAY, TABLE, Held, in_memory
from pate_cli.votes.sources.npy import held_array, open_npy
from pate_cli.votes.sources.table import held_table
from pate_cli.votes.vote_file import VoteFile

_NUMERAL = re.compile(r"[-+.,0-9eE]+|nan|inf", re.IGNORECASE)


@contextlib.contextmanager
def open_votes(
    source: str | PathLike[str] | Held | VoteFile,
    *,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    queries: Queries | None = None,
    label_names: LabelNames | None = None,
    normalise: bool = False,
    aliases: Aliases | None = None,
    any_name: bool = False,
    groups: Groups | None = None,
    id_column: str | None = None,
    batch_rows: int | None = None,
    stdin: IO[bytes] | None = None,
    max_queries: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[VoteFile]:
    """Open votes for reading in batches: a context manager around a VoteFile. SECRET.

    For handing the same votes to several verbs, each of which opens a path by itself, alike.

        >>> with pate.open_votes("sample_votes/demo.parquet") as votes:
        ...     votes.queries, votes.classes, votes.teachers
        (1000, 10, 250)

    source: a file of NPY, NPZ with one array, Parquet, CSV (or with semicolons, tabs, bars or
    blanks), JSON (an object a line, or an array of objects) or Arrow (Feather), also packed by
    gzip, zstd or bzip2, told by content; a folder or glob of parts of one such table format, hive
    partitions (key=value/) included; a URI pyarrow knows (s3://, gs://, hdfs://, file://), a named
    pipe, or "-" for `stdin` (sys.stdin.buffer unless given). Pipes, and all but NPY and Parquet,
    are copied to temporary files of mode 0600, removed on exit. Or what is in memory, which is not
    copied and must stay as it is: an array, read as the .npy file that would hold it; a
    pyarrow.Table, read as the Parquet file; a data frame (of pandas, polars, or whatever has
    `__arrow_c_stream__`), read as the table it gives, without an index that is no query_id; a list
    of rows, or what else has `__array__`. Or a VoteFile that is open already: it is handed on as it
    is, and stays open.

    As labels true and false are classes 1 and 0, or with names of classes the words `true` and
    `false`.

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
    is no name is a missing vote, exactly as in `teachers`, whether that is given or not, though a
    row still has an entry for every teacher. Columns of counts that are called so are taken by
    name. Every bound holds where votes are missing. See VoteFile.unnamed for how many there are.
    normalise: texts and names match also where they differ in case, in blanks around them or
    several within, in punctuation at the end, in quotes around them or in Unicode form alone.
    aliases: other texts and the names they stand for, as a mapping or a file of them: a JSON
    object, or a table with the columns `alias` and `name`. Public, as the names are.
    any_name: where neither `classes` nor `label_names` are given, votes are texts of which each is
    a name, or numbers, each the name of itself; for mechanisms that need no list of them. Which
    were said is secret until they are released. Empty texts are missing votes. With `normalise`
    spellings that are alike are one name, in the form that they are compared by.
    groups: for layouts that tell who voted, the public group of each teacher with its weight and
    how many teachers one record may have trained, as a TeacherGroups or a file of them; see
    load_groups. Histograms then hold weights.
    id_column: the column of a table that stands for query_id.
    batch_rows: rows per batch at most, by default as many as keep a batch within 8 MB.
    max_queries: no more queries will be read, so that of a long file that has to be converted only
    these are: it then is as if it ended after them, or some time later. It limits nothing else.
    progress: called with 1 for each megabyte that is copied or converted on opening. If it has a
    method `expect`, that is told how many more there will be, once it is known.

    Raises:
        VoteError: the source cannot be read as votes, or the groups are not those of its teachers;
            rows are checked as they are read.
        UsageError: `queries` beside votes that are not in long form; `id_column` beside an array; a
            file of names that cannot be read; `normalise` or `aliases` without names of classes.
        ParameterError: a word out of range or of another type; names that are not distinct, or not
            as many as classes; another source; or any word beside votes that are open already.
    """
    copying = _copy_options(max_queries, progress)
    with contextlib.ExitStack() as stack:
        with watched() as read:
            reading = Reading.from_keywords(
                layout=layout,
                classes=classes,
                teachers=teachers,
                batch_rows=batch_rows,
                queries=queries,
                label_names=label_names,
                normalise=normalise,
                aliases=aliases,
                any_name=any_name,
                groups=groups,
                id_column=id_column,
            )
            _check_stdin(stdin)
            if isinstance(source, VoteFile):
                file = _as_it_is(source, reading)
            else:
                file = vote_file(_opened(source, reading, stdin, stack, copying), reading)
                file = replace(file, read=read.closed())
        yield file


def _copy_options(max_queries: int | None, progress: Callable[[int], None] | None) -> CopyOptions:
    rows = whole_or_none("max_queries", max_queries)
    if progress is None:
        return CopyOptions(rows)
    if not callable(progress):
        raise ParameterError(f"`progress` must be a function, got {quoted(progress)}")
    return CopyOptions(rows, progress, getattr(progress, "expect", lambda _more: None))


def _check_stdin(stdin: Any) -> None:
    """ParameterError for what no bytes can be read from."""
    if stdin is None:
        return
    there = all(callable(getattr(stdin, name, None)) for name in ("read", "isatty"))
    if not there or isinstance(stdin, io.TextIOBase):
        raise ParameterError(
            f"`stdin` must be an open binary file, as sys.stdin.buffer is, got {quoted(stdin)}"
        )


def _as_it_is(file: VoteFile, reading: Reading) -> VoteFile:
    if reading != Reading():
        raise ParameterError(
            f"{file.name} is open already; give layout, classes, teachers, queries, "
            "label_names, normalise, aliases, any_name, groups, id_column and batch_rows where it "
            "is opened"
        )
    return file


def _opened(
    source: Any,
    reading: Reading,
    stdin: IO[bytes] | None,
    stack: contextlib.ExitStack,
    copying: CopyOptions,
) -> Opened:
    """The source as an array or a table, in files or in memory; copies live as long as `stack`."""
    layout, names = reading.layout, reading.names
    ids = (reading.id_column or QUERY, TEACHER)
    if not isinstance(source, str | PathLike):
        held = in_memory(source, ids)
        if held is None:
            raise ParameterError(
                "votes are a path, a URI, -, a numpy array, a list of rows, a pyarrow.Table, a "
                "data frame or an opened file of votes, not " + type(source).__name__
            )
        if isinstance(held, np.ndarray):
            return held_array(held, ARRAY, layout, reading.matching)
        return held_table(
            held,
            TABLE,
            layout,
            names,
            id_column=reading.id_column,
            any_name=reading.any_name,
        )
    if layout is Layout.LONG:
        # A row is a vote there.
        copying = replace(copying, rows=None)
    path = os.fspath(source)
    if not isinstance(path, str):
        raise ParameterError(f"the name of the votes must be text, got {quoted(path)}")
    # What a vote is called must not depend on whether others look like numbers.
    exact = (*ids, LABEL) if reading.any_name else ids
    located = locate(path, stdin, stack, ids=exact, copying=copying, columns=names or ())
    if located.format is Format.NPY:
        file = Path(located.parts[0].path)
        return open_npy(file, located.name, layout, reading.matching)
    aliases = None if reading.matching is None else reading.matching.aliases
    for word, texts in (("label_names", names), ("aliases", aliases)) if located.digits else ():
        numeral = next(filter(_NUMERAL.fullmatch, texts or ()), None)
        if numeral is not None:
            raise VoteError(
                f"{located.name}: in CSV {quoted(numeral)} of `{word}` looks like the number of a "
                "class; use Parquet or JSONL, which tell texts from numbers"
            )
    # pyarrow takes a tenth of a second to import: NPY files do without.
    from pate_cli.votes.sources.parquet import open_table

    return open_table(
        located.parts,
        located.name,
        layout,
        stack,
        names,
        id_column=reading.id_column,
        any_name=reading.any_name,
    )
