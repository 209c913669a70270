"""From what the user names to files that can be opened: paths, folders, globs, URIs and pipes."""

from __future__ import annotations

import contextlib
import enum
import fnmatch
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pate_cli.errors import VoteError
from pate_cli.files.addresses import (
    filesystem_of,
    is_address,
    listing,
    public_name,
    reachable,
)

_GLOB = re.compile(r"[*?\[]")
_PARQUET_SUFFIXES = {".parquet", ".parq", ".pq", ""}
_CHUNK = 1 << 20


class Format(enum.Enum):
    """The two formats of votes, told by the first bytes of a file."""

    NPY = b"\x93NUMPY"
    PARQUET = b"PAR1"


def format_of(start: bytes) -> Format | None:
    """Return the format of a file that begins with `start`, None when it is neither."""
    return next((kind for kind in Format if start.startswith(kind.value)), None)


@dataclass(frozen=True)
class Part:
    """One file: a local path, or a path on a pyarrow filesystem; `name` is for messages."""

    name: str
    path: str
    filesystem: Any = None


@dataclass(frozen=True)
class Located:
    """The files of one source, all of one format, in the order their rows are numbered."""

    name: str
    format: Format
    parts: tuple[Part, ...]


def locate(source: str, stdin: IO[bytes] | None, stack: contextlib.ExitStack) -> Located:
    """Find the files behind `source`; temporary copies live until `stack` is closed.

    Raises:
        VoteError: nothing there, not readable, empty, or neither NPY nor Parquet.
    """
    if not source:
        raise VoteError("the name of the votes is empty; give a file, a folder, a URI or -")
    if source == "-":
        name = "standard input"
        if stdin is None and (sys.stdin is None or sys.stdin.closed):
            raise VoteError(f"{name}: is closed; pipe an NPY or Parquet file into it")
        stream = sys.stdin.buffer if stdin is None else stdin
        if stream.isatty():
            raise VoteError(f"{name}: is a terminal; pipe an NPY or Parquet file into it")
        return _from_pipe(stream, name, stack)
    if is_address(source):
        return _from_uri(source, stack)
    path = Path(source)
    with _readable(source):
        if not path.exists():
            if _GLOB.search(source):
                return _from_glob(source)
            raise VoteError(f"{source}: no such file or folder")
        if path.is_dir():
            entries = sorted(path.iterdir(), key=lambda entry: entry.name)
            names = _visible([(entry.name, entry.is_dir()) for entry in entries], source)
            return _together(source, [_local_part(path / name) for name in names])
        if not path.is_file():  # a named pipe, /dev/stdin, a shell's <(...): read once, in order
            with path.open("rb") as stream:
                return _from_pipe(stream, source, stack)
    return _alone(source, _local_part(path, source))


@contextlib.contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise VoteError(f"{name}: cannot be read: {reason}") from error


# One file, or several read as one.


def _local_part(path: Path, name: str | None = None) -> Part:
    """Absolute, for another process may stand in another folder."""
    return Part(str(path) if name is None else name, str(path.absolute()))


def _alone(name: str, part: Part) -> Located:
    return Located(name, _format(part, _head(part)), (part,))


def _together(source: str, candidates: Sequence[Part]) -> Located:
    """Keep the Parquet parts; what could be a damaged part is an error, not passed over."""
    if not candidates:
        raise VoteError(f"{source}: the folder is empty")
    heads = [(part, _head(part)) for part in candidates]
    if len(heads) == 1 and format_of(heads[0][1]) is Format.NPY:
        return Located(source, Format.NPY, (heads[0][0],))
    parts = []
    for part, start in heads:
        kind = format_of(start)
        if kind is Format.PARQUET:
            parts.append(part)
        elif kind is Format.NPY:
            raise VoteError(f"{part.name}: an NPY file cannot be one of several parts")
        elif Path(part.path).suffix.lower() in _PARQUET_SUFFIXES:
            _format(part, start)  # raises: empty, or neither format
    if not parts:
        raise VoteError(f"{source}: no Parquet parts here")
    return Located(source, Format.PARQUET, tuple(parts))


def _head(part: Part) -> bytes:
    if part.filesystem is not None:
        with _remote_stream(part) as stream:
            return bytes(stream.read(8))
    with _readable(part.name), Path(part.path).open("rb") as file:
        return file.read(8)


def _format(part: Part, start: bytes) -> Format:
    kind = format_of(start)
    if kind is not None:
        return kind
    if not start:
        raise VoteError(f"{part.name}: the file is empty (0 bytes)")
    if start.startswith(b"PK\x03\x04"):
        raise VoteError(f"{part.name}: is an archive (.npz?); save the one array as .npy")
    if start.startswith(b"\x80"):
        raise VoteError(f"{part.name}: is a pickle, which is never opened; save it as .npy")
    raise VoteError(f"{part.name}: is neither NPY nor Parquet; convert it to one of them")


# Folders and globs.


def _from_glob(source: str) -> Located:
    pieces = Path(source).parts
    plain = next(i for i, piece in enumerate(pieces) if _GLOB.search(piece))
    found = Path(*pieces[:plain]).glob(str(Path(*pieces[plain:])))
    paths = sorted(p for p in found if p.is_file() and not _hidden(p.name))
    if not paths:
        raise VoteError(f"{source}: no file matches")
    return _together(source, [_local_part(path) for path in paths])


def _visible(listed: Sequence[tuple[str, bool]], source: str) -> list[str]:
    """Return the names of the files in a folder listing of (name, is a folder), hidden ones out.

    A sub-folder is refused: to pass over it in silence could pass over votes.
    """
    names = []
    for name, is_folder in listed:
        if _hidden(name):
            continue
        if is_folder:
            raise VoteError(
                f"{source}: holds the sub-folder {name!r}; give a glob of the parts instead"
            )
        names.append(name)
    return names


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))


# Pipes: both formats are read from their end, a pipe has none.


def _from_pipe(stream: IO[bytes], name: str, stack: contextlib.ExitStack) -> Located:
    return _alone(name, Part(name, stack.enter_context(_spooled(stream, name))))


@contextlib.contextmanager
def _spooled(stream: IO[bytes], name: str) -> Iterator[str]:
    """Copy `stream` to a temporary file only its owner can read, removed on exit."""
    with contextlib.ExitStack() as stack:
        try:
            # mkstemp, beneath this, creates the file with mode 0600: nobody reads it half-way.
            file = stack.enter_context(tempfile.NamedTemporaryFile(prefix="pate-votes-"))
            shutil.copyfileobj(stream, file, _CHUNK)
            file.flush()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise VoteError(f"{name}: cannot be copied to a temporary file: {reason}") from error
        yield file.name


# URIs.


def _from_uri(uri: str, stack: contextlib.ExitStack) -> Located:
    name = public_name(uri)
    with reachable(name, VoteError):
        several, parts = _behind(uri, name)
    located = _together(name, parts) if several else _alone(name, parts[0])
    part = located.parts[0]
    if located.format is Format.NPY and part.filesystem is not None:
        # Memory-mapping needs a local file.
        with _remote_stream(part) as stream:
            copy = stack.enter_context(_spooled(stream, name))
        return Located(name, Format.NPY, (Part(name, copy),))
    return located


def _behind(uri: str, name: str) -> tuple[bool, list[Part]]:
    """Return whether `uri` is a folder or glob, and its files sorted by name.

    A glob may be in the last piece of the path only.
    """
    base, _, last = uri.rpartition("/")
    pattern, mark, query = last.partition("?")
    if _GLOB.search(pattern):
        filesystem, path = filesystem_of(base + mark + query)
        listed = [
            (file, False)
            for file, is_folder in listing(filesystem, path)
            if not is_folder and fnmatch.fnmatchcase(file, pattern)
        ]
        parts = _remote_parts(public_name(base), path, filesystem, _visible(listed, name))
        if not parts:
            raise VoteError(f"{name}: no file matches")
        return True, parts
    filesystem, path = filesystem_of(uri)
    kind = filesystem.get_file_info(path).type.name
    if kind == "NotFound":
        raise VoteError(f"{name}: no such file or folder")
    if kind == "Directory":
        names = _visible(listing(filesystem, path), name)
        return True, _remote_parts(name, path, filesystem, names)
    return False, [_remote_part(name, path, filesystem)]


def _remote_parts(folder: str, path: str, filesystem: Any, names: Sequence[str]) -> list[Part]:
    shown, inside = folder.rstrip("/"), path.rstrip("/")
    return [_remote_part(f"{shown}/{name}", f"{inside}/{name}", filesystem) for name in names]


def _remote_part(name: str, path: str, filesystem: Any) -> Part:
    return Part(name, path, None if filesystem.type_name == "local" else filesystem)


@contextlib.contextmanager
def _remote_stream(part: Part) -> Iterator[Any]:
    """Open a remote part for reading in order."""
    with reachable(part.name, VoteError), part.filesystem.open_input_file(part.path) as file:
        yield file
