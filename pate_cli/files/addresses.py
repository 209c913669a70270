"""Addresses of object stores and distributed filesystems, which are reached through pyarrow.

It takes a tenth of a second to import and is therefore imported only for them.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Any, Final

from pate_cli.core.credentials import without_credentials
from pate_cli.core.errors import PateError, UsageError

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_address(text: str) -> bool:
    """Return whether `text` is a URI and not a path."""
    return _URI.match(text) is not None


_NO_MODE: Final = "an object store has no file mode, which keeps a secret"


def refuse_address(path: str | os.PathLike[str], why: str = _NO_MODE) -> None:
    """UsageError for what must stay on disk, and is named by the address of a store."""
    name = os.fspath(path)
    if is_address(name) and not name.startswith("file:"):
        raise UsageError(f"{public_name(name)} must be on disk: {why}; name a path")


def public_name(path: str | os.PathLike[str]) -> str:
    """Return what may be shown of a path or an address: all but credentials.

    UsageError for a name that is no UTF-8: libraries cannot open it and call the file damaged.
    """
    name = os.fspath(path)
    if not name.isascii() and name != name.encode(errors="replace").decode():
        raise UsageError(f"{name!a} is no UTF-8 text, as names of files have to be; rename it")
    return without_credentials(name) if ":/" in name else name


def filesystem_of(uri: str) -> tuple[Any, str]:
    """Return the pyarrow filesystem a URI speaks of, and the path on it."""
    from pyarrow import fs

    filesystem, path = fs.FileSystem.from_uri(uri)
    return filesystem, str(path)


@contextlib.contextmanager
def reachable(name: str, kind: type[PateError]) -> Iterator[None]:
    """Turn what pyarrow raises into one line; its reason may be the only clue to a bad key.

    Its own error may quote the address, and so is no cause that a traceback would show.
    """
    import pyarrow as pa

    try:
        yield
    except pa.ArrowInvalid:
        raise kind(f"{name}: no filesystem is known for this address") from None
    except FileNotFoundError:
        raise kind(f"{name}: no such file or folder") from None
    except (OSError, pa.ArrowException) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise kind(f"{name}: cannot be reached: {reason}") from None
