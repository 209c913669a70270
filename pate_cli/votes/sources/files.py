"""From what the user names to files that can be opened: paths, folders, globs, URIs and pipes.

What is found is NPY or Parquet in the end. Votes are read several times, in ranges and by several
processes; what cannot be read so (text, Arrow, whatever is compressed, a pipe) is copied once, in
bounded memory, into a temporary file that can, and keeps its name in messages.
"""

from __future__ import annotations

import contextlib
import fnmatch
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError, quoted
from pate_cli.files.addresses import (
    filesystem_of,
    is_address,
    listing,
    public_name,
    reachable,
)
from pate_cli.files.inputs import note, note_stream
from pate_cli.votes.columns import LONG_COLUMNS, could_be_votes
from pate_cli.votes.sources.copies import Copies, CopyOptions, begun_with
from pate_cli.votes.sources.formats import (
    HEAD,
    Format,
    SourceFile,
    format_of,
    plain_suffix,
    suffix_format,
)
from pate_cli.votes.sources.unchanged import UNMARKED, Marked, mark_of, steady_stream

_GLOB = re.compile(r"[*?\[]")
_ARRAYS = (Format.NPY, Format.ZIP)
_PACKED = (Format.GZIP, Format.ZSTD, Format.BZIP2)
_NESTED = 3  # so often a file may be packed
_PARTITION = re.compile(r"([^=]+)=(.*)")
# What is in a folder while it is filled: by committers of Hadoop, Spark, Hive and Databricks, by
# Flink, and by what copies files.
_TABLE = r"\.(parquet|parq|pq|csv|tsv|jsonl|ndjson|arrow|feather|ipc)(\.(gz|zst|bz2))?"
_UNFINISHED = re.compile(
    r"_temporary|__magic.*|\.spark-staging.*|\.hive-staging.*|_tmp\..*|\.~tmp~|\.distcp\.tmp\..*"
    rf"|.*\._COPYING_|.*\.inprogress.*|.*{_TABLE}\.(tmp|part|partial|filepart|crdownload)"
    rf"|\..*{_TABLE}\.[A-Za-z0-9]{{6}}",
    re.IGNORECASE,
)
_BEGUN, _DONE = "_started_", "_committed_"
# Tables whose folder holds files that count no more, or not yet.
_LOGS = ("_delta_log", ".hoodie")


@dataclass(frozen=True)
class Located:
    """The files of one source, all of one format, in the order their rows are numbered.

    format: NPY or PARQUET. digits: they were CSV, which does not tell numbers from text. found: the
    files that were named, copied or not, as they were before they were read.
    """

    name: str
    format: Format
    parts: tuple[SourceFile, ...]
    digits: bool = False
    found: Marked = UNMARKED


def locate(
    source: str,
    stdin: IO[bytes] | None,
    stack: contextlib.ExitStack,
    *,
    ids: Collection[str] = LONG_COLUMNS[:2],
    what: str = "among the votes",
    copying: CopyOptions | None = None,
    columns: Collection[str] = (),
) -> Located:
    """Find the files behind `source`; temporary copies live until `stack` is closed.

    ids: columns whose values are names, and become numbers only if each is written as one.
    what: completes "the output is ...", which these files must not be. copying: rows that will be
    read at most, and who sees how far copies are. columns: that are votes, by their names.

    Raises:
        VoteError: nothing there, not readable, empty, not finished, or none of the formats.
        UsageError: one of them is an output of the command, too.
    """
    if not source:
        raise VoteError("the name of the votes is empty; give a file, a folder, a URI or -")
    locator = _Locator(Copies(stack, copying or CopyOptions()), frozenset(ids))
    inside_files = frozenset((*ids, *columns))
    if source == "-":
        name = "standard input"
        if stdin is None and (sys.stdin is None or sys.stdin.closed):
            raise VoteError(f"{name}: is closed; pipe a file of votes into it")
        stream = sys.stdin.buffer if stdin is None else stdin
        if stream.isatty():
            raise VoteError(f"{name}: is a terminal; pipe a file of votes into it")
        note_stream(what, stream)
        return locator.piped(stream, name)
    name = public_name(source)
    if is_address(source):
        with reachable(name, VoteError):
            several, parts = _behind(source, name, inside_files)
        _noted(parts, what)
        return locator.several_files(name, parts) if several else locator.one_file(name, parts[0])
    path = Path(source)
    with _readable(name):
        if not path.exists():
            if _GLOB.search(source):
                return locator.several_files(name, _noted(_matching(source, inside_files), what))
            raise VoteError(f"{name}: no such file or folder")
        if path.is_dir():
            inside = _walked(name, (), _entries_of(path), inside_files)
            parts = [_local_part(path.joinpath(*at)) for at in inside]
            return locator.several_files(name, _noted(parts, what))
        if not path.is_file():  # a named pipe, /dev/stdin, a shell's <(...): read once, in order
            with path.open("rb") as stream:
                return locator.piped(stream, name)
    (part,) = _noted([_local_part(path, name)], what)
    return locator.one_file(name, part)


def _noted(parts: list[SourceFile], what: str) -> list[SourceFile]:
    """The same files, of which it is known that they are read."""
    note(what, *((part.path, part.filesystem) for part in parts))
    return parts


@contextlib.contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise VoteError(f"{name}: cannot be read: {reason}") from error


# One file, or several read as one.


@dataclass(frozen=True)
class _Locator:
    """Makes what was found readable from anywhere."""

    copies: Copies
    ids: frozenset[str]

    def piped(self, stream: Any, name: str) -> Located:
        """A pipe, which has no end to read from, is spooled.

        Its beginning is looked at first: a device may have no end at all.
        """
        with steady_stream(stream, name):
            begun = begun_with(stream, HEAD, name)
            format_of(begun, name)
            copy = self.copies.spooled(stream, name, begun)
        return self._read(name, SourceFile(name, str(copy)), UNMARKED)

    def one_file(self, name: str, part: SourceFile) -> Located:
        """One file, of any format."""
        marked = _marked([part])
        with marked.steady():
            return self._read(name, part, marked)

    def _read(self, name: str, part: SourceFile, marked: Marked) -> Located:
        kind, part = self._unpacked(format_of(_head(part), part.name), part)
        return self._as_votes(name, kind, [part], marked)

    def several_files(self, source: str, candidates: Sequence[SourceFile]) -> Located:
        """Keep the parts of tables; what could be a damaged part is an error, not passed over."""
        if not candidates:
            raise VoteError(f"{source}: the folder is empty")
        if len(candidates) == 1 and _format_marked(_head(candidates[0])) in _ARRAYS:
            return self.one_file(source, candidates[0])
        marked = _marked(candidates)
        with marked.steady():
            return self._parts(source, candidates, marked)

    def _parts(self, source: str, candidates: Sequence[SourceFile], marked: Marked) -> Located:
        found = [(part, kinds) for part in candidates if (kinds := _kinds_of_part(part))]
        if not found:
            raise VoteError(f"{source}: no Parquet, CSV, JSONL or Arrow parts here")
        _, (first, _) = found[0]
        for part, (kind, _) in found:
            if kind is not first:
                raise VoteError(
                    f"{part.name}: is {kind.value} among parts of {first.value}; "
                    "give a glob of one kind"
                )
        parts = []
        for candidate, (kind, outside) in found:
            inside, part = self._unpacked(outside, candidate)
            if inside is not kind:
                raise VoteError(f"{part.name}: is {inside.value} under a name of {kind.value}")
            parts.append(part)
        return self._as_votes(source, first, parts, marked)

    def _unpacked(self, kind: Format, part: SourceFile) -> tuple[Format, SourceFile]:
        """Take off what a file is packed in, as often as it is."""
        stored = 0
        for _ in range(_NESTED + 1):
            if kind not in (*_PACKED, Format.ZIP):
                return kind, part
            stored = stored or _size(part)
            if kind is Format.ZIP:
                local = self._on_disk(part)
                copy = self.copies.only_array(local.path, part.name, stored)
                self.copies.drop(local.path)
            else:
                with _stream(part) as stream:
                    copy = self.copies.unpacked(stream, kind, part.name, stored)
                self.copies.drop(part.path)
            part = SourceFile(part.name, str(copy))
            kind = format_of(_head(part), part.name)
        raise VoteError(f"{part.name}: is packed more than {_NESTED} times; unpack it")

    def _as_votes(
        self, name: str, kind: Format, parts: Sequence[SourceFile], marked: Marked
    ) -> Located:
        """Turn what is not read in place into what is."""
        if kind is Format.PARQUET:
            return Located(name, kind, tuple(parts), found=marked)
        if kind is Format.NPY:  # rows of which are read anywhere, again and again
            return Located(name, kind, tuple(map(self._on_disk, parts)), found=marked)
        from pate_cli.votes.sources.converted import converted

        local = [self._on_disk(part) for part in parts]
        made = [
            SourceFile(part.name, str(path))
            for part, path in zip(parts, converted(local, kind, self.copies, self.ids), strict=True)
        ]
        digits = kind is Format.CSV
        return Located(name, Format.PARQUET, tuple(made), digits=digits, found=marked)

    def _on_disk(self, part: SourceFile) -> SourceFile:
        if part.filesystem is None:
            return part
        with _stream(part) as stream:
            return SourceFile(part.name, str(self.copies.spooled(stream, part.name)))


def _kinds_of_part(part: SourceFile) -> tuple[Format, Format] | None:
    """What a file in a folder is, by its name where it is packed, and what it is packed in, if so.

    None passes it over: text and archives count by their names only, a folder may hold others.
    """
    start = _head(part)
    kind, named = _format_marked(start), suffix_format(part.path)
    suffix = plain_suffix(part.path)
    if kind is Format.NPY or suffix in (".npy", ".npz"):
        raise VoteError(f"{part.name}: an NPY file cannot be one of several parts")
    if kind in (Format.PARQUET, Format.ARROW):
        return kind, kind
    if named is None and suffix:
        return None
    if kind in _PACKED and named is not None:
        return named, kind
    if kind is None:
        kind = format_of(start, part.name)  # raises: empty, or no format
        if named is None:
            raise VoteError(f"{part.name}: is text without a suffix; name parts .csv or .jsonl")
        if kind is named:
            return kind, kind
    raise VoteError(
        f"{part.name}: is {kind.value} and its name does not say so; name parts .parquet, .csv, "
        ".jsonl or .arrow, and .csv.gz and the like where they are packed"
    )


def _format_marked(start: bytes) -> Format | None:
    """The format of a file with a beginning that no other has."""
    with contextlib.suppress(VoteError):
        kind = format_of(start, "")
        return None if kind in (Format.CSV, Format.JSONL) else kind
    return None


def _marked(parts: Iterable[SourceFile]) -> Marked:
    found = []
    for part in parts:
        with _readable(part.name):
            found.append((part, mark_of(part)))
    return Marked(tuple(found))


def _local_part(path: Path, name: str | None = None) -> SourceFile:
    """Absolute, for another process may stand in another folder."""
    return SourceFile(public_name(path) if name is None else name, str(path.absolute()))


def _head(part: SourceFile) -> bytes:
    with _stream(part) as stream:
        return bytes(stream.read(HEAD))


def _size(part: SourceFile) -> int:
    with _stream(part) as stream:
        return int(stream.seek(0, 2))


@contextlib.contextmanager
def _stream(part: SourceFile) -> Iterator[Any]:
    """Open a part for reading in order."""
    if part.filesystem is None:
        with _readable(part.name), Path(part.path).open("rb") as file:
            yield file
    else:
        with reachable(part.name, VoteError), part.filesystem.open_input_file(part.path) as file:
            yield file


# Folders and globs. A place in a folder is the names that lead there, so that places sort as paths.


_Place = tuple[str, ...]
_Entries = Callable[[_Place], list[tuple[str, bool]]]


def _entries_of(folder: Path) -> _Entries:
    def entries(at: _Place) -> list[tuple[str, bool]]:
        inside = folder.joinpath(*at)
        return sorted((entry.name, entry.is_dir()) for entry in inside.iterdir())

    return entries


def _matching(source: str, inside_files: Collection[str]) -> list[SourceFile]:
    pieces = Path(source).parts
    wild = next(place for place, piece in enumerate(pieces) if _GLOB.search(piece))
    base = Path(*pieces[:wild])
    entries = cache(_entries_of(base))
    places = sorted(set(_matched(pieces[wild:], (), entries)))
    found = [path for path in (base.joinpath(*at) for at in places) if path.is_file()]
    if not found:
        raise VoteError(f"{public_name(source)}: no file matches")
    _refuse_partitions(public_name(source), places, inside_files)
    _refuse_unfinished_around(places, entries, lambda at: public_name(base.joinpath(*at)))
    return [_local_part(path) for path in found]


def _walked(
    source: str, at: _Place, entries: _Entries, inside_files: Collection[str]
) -> list[_Place]:
    """The files in a folder and in its partitions (sub-folders `key=value`), hidden ones out.

    Another sub-folder is refused: to pass over it in silence could pass over votes.
    """
    files: list[_Place] = []
    inside = entries(at)
    _refuse_unfinished(source, [name for name, _ in inside])
    for name, is_folder in inside:
        if _hidden(name):
            continue
        if not is_folder:
            files.append((*at, name))
            continue
        if _PARTITION.fullmatch(name) is None:
            raise VoteError(
                f"{source}: holds the sub-folder {quoted(name)}; give a glob of the parts instead"
            )
        _refuse_partitions(source, [(name, "")], inside_files)
        files += _walked(source, (*at, name), entries, inside_files)
    return files


def _refuse_partitions(
    source: str, places: Iterable[_Place], inside_files: Collection[str]
) -> None:
    """VoteError for a folder whose name says what a column of the votes would: nobody reads it."""
    for at in places:
        for partition in filter(None, map(_PARTITION.fullmatch, at[:-1])):
            if partition[1] in inside_files or could_be_votes(partition[1]):
                raise VoteError(
                    f"{source}: {quoted(partition[1])} is in the names of folders; write it into "
                    "the files"
                )


def _refuse_unfinished(source: str, names: Sequence[str]) -> None:
    """VoteError for a folder that is being filled, or whose files do not all count."""
    log = next((name for name in names if name in _LOGS), None)
    if log is not None:
        raise VoteError(
            f"{source}: holds {quoted(log)}, which says which of its files count; write the table "
            "as plain files first"
        )
    done = {name.removeprefix(_DONE) for name in names if name.startswith(_DONE)}
    for name in names:
        begun = name.startswith(_BEGUN) and name.removeprefix(_BEGUN) not in done
        if begun or _UNFINISHED.fullmatch(name):
            raise VoteError(
                f"{source}: is not finished: it holds {quoted(name)}; wait for whoever writes it, "
                "or remove that if nobody does"
            )


def _refuse_unfinished_around(
    places: Iterable[_Place], entries: _Entries, shown: Callable[[_Place], str]
) -> None:
    """VoteError where files of a glob lie in such a folder, or in partitions of one."""
    looked: set[_Place] = set()
    for *inside, _ in places:
        folder = tuple(inside)
        while folder not in looked:
            looked.add(folder)
            _refuse_unfinished(shown(folder), [name for name, _ in entries(folder)])
            if folder and _PARTITION.fullmatch(folder[-1]):
                folder = folder[:-1]


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))


# URIs.


def _behind(uri: str, name: str, inside_files: Collection[str]) -> tuple[bool, list[SourceFile]]:
    """Return whether `uri` is a folder or glob, and its files in order of their paths.

    A question mark begins the options of an address; in a glob it is no wildcard.
    """
    address, mark, query = uri.partition("?")
    pieces = address.split("/")
    wild = [place for place, piece in enumerate(pieces) if place > 2 and _GLOB.search(piece)]
    base = "/".join(pieces[: wild[0]]) if wild else address
    filesystem, path = filesystem_of(base + mark + query)
    inside, shown = path.rstrip("/"), public_name(base).rstrip("/")

    @cache
    def entries(at: _Place) -> list[tuple[str, bool]]:
        return listing(filesystem, "/".join((inside, *at)))

    if wild:
        places = sorted(set(_matched(pieces[wild[0] :], (), entries)))
        if not places:
            raise VoteError(f"{name}: no file matches")
        _refuse_partitions(name, places, inside_files)
        _refuse_unfinished_around(places, entries, lambda at: "/".join((shown, *at)))
    else:
        kind = filesystem.get_file_info(path).type.name
        if kind == "NotFound":
            raise VoteError(f"{name}: no such file or folder")
        if kind != "Directory":
            return False, [_remote_part(name, path, filesystem)]
        places = _walked(name, (), entries, inside_files)
    return True, [
        _remote_part("/".join((shown, *at)), "/".join((inside, *at)), filesystem) for at in places
    ]


def _matched(pieces: Sequence[str], at: _Place, entries: _Entries) -> Iterator[_Place]:
    """Places of the files that a glob names, piece by piece; ** is any number of folders."""
    first, rest = pieces[0], pieces[1:]
    if rest and not _GLOB.search(first):
        yield from _matched(rest, (*at, first), entries)
        return
    if rest and first == "**":
        yield from _matched(rest, at, entries)
    try:
        inside = entries(at)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name, is_folder in inside:
        if _hidden(name) and name != first:
            continue
        if first == "**":
            if is_folder:
                yield from _matched(pieces, (*at, name), entries)
        elif fnmatch.fnmatchcase(name, first):
            if is_folder and rest:
                yield from _matched(rest, (*at, name), entries)
            elif not is_folder and not rest:
                yield (*at, name)


def _remote_part(name: str, path: str, filesystem: Any) -> SourceFile:
    return SourceFile(name, path, None if filesystem.type_name == "local" else filesystem)
