"""From what the user typed to files that can be opened: paths, folders, globs, URIs and pipes."""

from __future__ import annotations

import contextlib
import enum
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pate_cli.errors import VoteError
from pate_cli.votes.spool import spooled

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
GLOB = re.compile(r"[*?\[]")
_MAGIC_NPY = b"\x93NUMPY"
_MAGIC_PARQUET = b"PAR1"
_PARQUET_SUFFIXES = {".parquet", ".parq", ".pq", ""}


class Format(enum.Enum):
    """The two formats, told by their first bytes."""

    NPY = "NPY"
    PARQUET = "Parquet"


@dataclass(frozen=True)
class Part:
    """One file: a local path, or a path on a pyarrow filesystem; `name` is for messages."""

    name: str
    path: str
    filesystem: object | None = None


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
        stream = sys.stdin.buffer if stdin is None else stdin
        if stream.isatty():
            raise VoteError(f"{name}: is a terminal; pipe an NPY or Parquet file into it")
        return _from_pipe(stream, name, stack)
    if _URI.match(source):
        return _from_uri(source, stack)
    path = Path(source)
    with _readable(source):
        if not path.exists():
            if GLOB.search(source):
                return _from_glob(source)
            raise VoteError(f"{source}: no such file or folder")
        if path.is_dir():
            return _from_folder(source)
        if not path.is_file():  # a named pipe, /dev/stdin, a shell's <(...): read once, in order
            with path.open("rb") as stream:
                return _from_pipe(stream, source, stack)
    return _alone(source, Part(source, source))


@contextlib.contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise VoteError(f"{name}: cannot be read: {reason}") from error


def _from_pipe(stream: IO[bytes], name: str, stack: contextlib.ExitStack) -> Located:
    return _alone(name, Part(name, str(stack.enter_context(spooled(stream, name)))))


def _from_folder(source: str) -> Located:
    entries = sorted(Path(source).iterdir(), key=lambda entry: entry.name)
    listed = [(entry.name, entry.is_dir()) for entry in entries]
    names = visible_files(listed, source)
    parts = [Part(str(Path(source) / name), str(Path(source) / name)) for name in names]
    return _together(source, parts)


def _from_glob(source: str) -> Located:
    pieces = Path(source).parts
    plain = next(i for i, piece in enumerate(pieces) if GLOB.search(piece))
    found = Path(*pieces[:plain]).glob(str(Path(*pieces[plain:])))
    paths = sorted(p for p in found if p.is_file() and not _hidden(p.name))
    if not paths:
        raise VoteError(f"{source}: no file matches")
    return _together(source, [Part(str(p), str(p)) for p in paths])


def visible_files(listed: Sequence[tuple[str, bool]], source: str) -> list[str]:
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


def _together(source: str, candidates: Sequence[Part]) -> Located:
    """Keep the Parquet parts; what could be a damaged part is an error, not passed over."""
    if not candidates:
        raise VoteError(f"{source}: the folder is empty")
    heads = [(part, head(part)) for part in candidates]
    if len(heads) == 1 and heads[0][1].startswith(_MAGIC_NPY):
        return Located(source, Format.NPY, (heads[0][0],))
    parts = []
    for part, start in heads:
        if start.startswith(_MAGIC_PARQUET):
            parts.append(part)
        elif start.startswith(_MAGIC_NPY):
            raise VoteError(f"{part.name}: an NPY file cannot be one of several parts")
        elif Path(part.path).suffix.lower() in _PARQUET_SUFFIXES:
            _format(part)  # raises: empty, or neither format
    if not parts:
        raise VoteError(f"{source}: no Parquet parts here")
    return Located(source, Format.PARQUET, tuple(parts))


def head(part: Part, length: int = 8) -> bytes:
    """Return the first bytes of a part."""
    if part.filesystem is not None:
        from pate_cli.votes import remote

        return remote.head(part, length)
    with _readable(part.name), Path(part.path).open("rb") as file:
        return file.read(length)


def _alone(name: str, part: Part) -> Located:
    return Located(name, _format(part), (part,))


def _format(part: Part) -> Format:
    start = head(part)
    if start.startswith(_MAGIC_NPY):
        return Format.NPY
    if start.startswith(_MAGIC_PARQUET):
        return Format.PARQUET
    if not start:
        raise VoteError(f"{part.name}: the file is empty (0 bytes)")
    if start.startswith(b"PK\x03\x04"):
        raise VoteError(f"{part.name}: is an archive (.npz?); save the one array as .npy")
    if start.startswith(b"\x80"):
        raise VoteError(f"{part.name}: is a pickle, which is never opened; save it as .npy")
    raise VoteError(f"{part.name}: is neither NPY nor Parquet; convert it to one of them")


def _from_uri(source: str, stack: contextlib.ExitStack) -> Located:
    from pate_cli.votes import remote

    folder, parts = remote.find(source)
    name = remote.public_name(source)
    located = _together(name, parts) if folder else _alone(name, parts[0])
    only = located.parts[0]
    if located.format is Format.NPY and only.filesystem is not None:
        # Memory-mapping needs a local file.
        with remote.stream(only) as stream:
            path = stack.enter_context(spooled(stream, name))
        return Located(name, Format.NPY, (Part(name, str(path)),))
    return located
