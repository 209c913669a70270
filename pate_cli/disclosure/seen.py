"""Records as this user last saw them: which one votes had, how many lines it had, and their hash.

They are kept in the user's state directory, in files of mode 0600, under a quick fingerprint of the
votes: nothing public holds a hash of votes. It is a help to who forgets, and no proof: where the
directory cannot be read or written nothing is known, and runs go on.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pate_cli.core.errors import LedgerError, UsageError
from pate_cli.files.document import Refusal, decoded, encoded

_BLOCK: Final = 1 << 16
_BLOCKS: Final = 16
_MOST_MEMBERS: Final = 1000
_LARGEST: Final = 1 << 16


@dataclass(frozen=True)
class Sighting:
    """A record as it was last seen.

    Attributes:
        record: its file, an absolute path.
        lines: how many events it told of.
        chain: the hash of all of them.
    """

    record: str
    lines: int
    chain: str


def state_folder() -> Path:
    """Return the folder of the user's own for what pate keeps.

    `$PATE_HOME`; else `pate` in `$XDG_STATE_HOME`, in `~/.local/state`, or in `%LOCALAPPDATA%`.

    Raises:
        UsageError: there is no home folder.
    """
    if own := os.environ.get("PATE_HOME"):
        return Path(own)
    home = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        return (Path(home) if home else Path.home() / ".local" / "state") / "pate"
    except RuntimeError:
        raise UsageError("there is no home folder to keep records in; name a file") from None


def keys_of_votes(path: Path) -> tuple[str, ...]:
    """Return fingerprints of a file of votes, or of every file in a folder: size and some blocks.

    Small files are read whole. Nothing where they cannot be read.
    """
    try:
        members = [path] if path.is_file() else sorted(path.iterdir())[:_MOST_MEMBERS]
        return tuple(_fingerprint(each) for each in members if each.is_file())
    except OSError:
        return ()


def recall(keys: Iterable[str]) -> Iterator[Sighting]:
    """Yield how records were last seen, under keys of votes or of the records."""
    with contextlib.suppress(UsageError):
        folder = state_folder() / "seen"
        for key in keys:
            with contextlib.suppress(OSError, ValueError, RecursionError, LedgerError):
                with (folder / key).open("rb") as file:
                    data = json.loads(file.read(_LARGEST))
                yield decoded(Sighting, data, Refusal(LedgerError, "no sighting: "))


def remember(keys: Iterable[str], seen: Sighting) -> None:
    """Keep under these keys how a record was seen, in the place of what was known."""
    with contextlib.suppress(OSError, UsageError):
        folder = state_folder() / "seen"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        content = json.dumps(encoded(seen)).encode()
        for key in keys:
            draft = folder / f"{key}.{os.getpid()}"
            opened = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            try:
                os.write(opened, content)
            finally:
                os.close(opened)
            draft.replace(folder / key)


def key_of_record(path: Path) -> str:
    """Return the name under which a record is known by its own place."""
    return hashlib.sha256(b"record " + os.fsencode(os.path.realpath(path))).hexdigest()


def _fingerprint(path: Path) -> str:
    size = path.stat().st_size
    digest = hashlib.sha256(b"votes %d " % size)
    step = max(_BLOCK, (size - _BLOCK) // (_BLOCKS - 1) if size > _BLOCK * _BLOCKS else _BLOCK)
    with path.open("rb") as file:
        for at in range(0, size, step):
            file.seek(at)
            digest.update(file.read(_BLOCK))
        file.seek(max(size - _BLOCK, 0))
        digest.update(file.read(_BLOCK))
    return digest.hexdigest()
