"""Votes in object stores and on distributed filesystems, through pyarrow's filesystems."""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from pate_cli.errors import VoteError
from pate_cli.votes.source import GLOB, Part, visible_files


def public_name(uri: str) -> str:
    """Return `uri` without user, password and query, which may be credentials."""
    bits = urlsplit(uri)
    return f"{bits.scheme}://{bits.netloc.rpartition('@')[2]}{bits.path}"


def find(uri: str) -> tuple[bool, list[Part]]:
    """Return whether `uri` is a folder or glob, and its files sorted by name.

    A glob may be in the last piece of the path only.

    Raises:
        VoteError: unknown scheme, nothing there, or the store cannot be reached.
    """
    name = public_name(uri)
    with _reachable(name):
        last = uri.rpartition("/")[2]
        if GLOB.search(last.partition("?")[0]) and "://" not in last:
            return True, _matching(uri, name)
        filesystem, path = filesystem_of(uri)
        info = filesystem.get_file_info(path)
        kind = info.type.name
        if kind == "NotFound":
            raise VoteError(f"{name}: no such file or folder")
        if kind == "Directory":
            names = visible_files(_listing(filesystem, path), name)
            return True, [
                _part(f"{name.rstrip('/')}/{file}", f"{path.rstrip('/')}/{file}", filesystem)
                for file in names
            ]
        return False, [_part(name, path, filesystem)]


def _part(name: str, path: str, filesystem: Any) -> Part:
    local = filesystem.type_name == "local"
    return Part(name, path, None if local else filesystem)


def filesystem_of(uri: str) -> tuple[Any, str]:
    """Return the pyarrow filesystem a URI speaks of, and the path on it."""
    from pyarrow import fs

    filesystem, path = fs.FileSystem.from_uri(uri)
    return filesystem, str(path)


def _matching(uri: str, name: str) -> list[Part]:
    base, _, pattern = uri.rpartition("/")
    filesystem, path = filesystem_of(base)
    names = [
        file
        for file, is_folder in _listing(filesystem, path)
        if not is_folder and fnmatch.fnmatchcase(file, pattern)
    ]
    shown = public_name(base)
    parts = [
        _part(f"{shown}/{file}", f"{path.rstrip('/')}/{file}", filesystem)
        for file in visible_files([(file, False) for file in names], name)
    ]
    if not parts:
        raise VoteError(f"{name}: no file matches")
    return parts


def _listing(filesystem: Any, path: str) -> list[tuple[str, bool]]:
    from pyarrow import fs

    infos = filesystem.get_file_info(fs.FileSelector(path))
    return sorted((info.base_name, info.type.name == "Directory") for info in infos)


def head(part: Part, length: int) -> bytes:
    """Return the first bytes of a remote part."""
    with stream(part) as file:
        return bytes(file.read(length))


@contextlib.contextmanager
def stream(part: Part) -> Iterator[Any]:
    """Open a remote part for reading in order."""
    filesystem: Any = part.filesystem
    with _reachable(part.name), filesystem.open_input_file(part.path) as file:
        yield file


@contextlib.contextmanager
def _reachable(name: str) -> Iterator[None]:
    """Turn what pyarrow raises into one line; its reason may be the only clue to a bad key."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowInvalid as error:
        raise VoteError(f"{name}: no filesystem is known for this address") from error
    except FileNotFoundError as error:
        raise VoteError(f"{name}: no such file or folder") from error
    except (OSError, pa.ArrowException) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise VoteError(f"{name}: cannot be reached: {reason}") from error
