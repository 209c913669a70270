"""Which record belongs to votes: the one that is named, or the one beside them."""

from __future__ import annotations

import functools
import operator
import os
import re
from pathlib import Path
from typing import Any, Final, Self

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import LedgerError, OutputError, ParameterError, UsageError, quoted
from pate_cli.disclosure.record import SpendRecord
from pate_cli.files.addresses import is_address, public_name, refuse_address
from pate_cli.files.destinations import make_folder
from pate_cli.files.sealed_json import named

_ENSEMBLE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Places:
    """Where the record of some teachers is kept; nowhere, without paths.

    Attributes:
        paths: of the record; where there are several, each of them tells of every run.
        found: the one of them that nobody named and that is there all the same.
        votes: what the holder calls the votes.
    """

    paths: tuple[Path, ...] = ()
    found: Path | None = None
    votes: str | None = None

    @classmethod
    def of(
        cls,
        votes: Any,
        *,
        record: str | os.PathLike[str] | Places | bool | None,
        ensemble: str | None = None,
        seeded: bool = False,
    ) -> Self | Places:
        """The record that was named, by its file or its ensemble, and the one beside the votes.

        Args:
            votes: as the verbs take them; what lies on disk has a record beside it.
            record: its file; False for none.
            ensemble: a name, under which it is kept in a folder of the user's own.
            seeded: the run is for tests, and entered in a record only where one is named.

        Raises:
            UsageError: two ways to name it, or a name that is none.
        """
        if isinstance(record, Places):
            return record
        name, beside = _beside(votes)
        if not isinstance(record, str | os.PathLike | bool | None):
            raise ParameterError(f"`record` must be a path or False, got {quoted(record)}")
        if isinstance(record, bool):
            if record or ensemble is not None:
                raise UsageError("`record` is a file, or False for none")
            return cls(votes=name)
        if record is not None and ensemble is not None:
            raise UsageError("`record` and `ensemble` both name the record; give one of them")
        told = None
        if record is not None:
            refuse_address(record, "runs at once take turns at a record, by a lock")
            told = Path(record)
        elif ensemble is not None:
            told = record_of(ensemble)
        if told is None:
            if beside is None or seeded:
                return cls(votes=name)
            return cls((beside,), beside if beside.exists() else None, name)
        if beside is None or not beside.exists() or seeded or _same(told, beside):
            return cls((told,), None, name)
        return cls((told, beside), beside, name)

    def read(self) -> SpendRecord:
        """Return what any of them tells of; LedgerError for one that is damaged."""
        return functools.reduce(operator.or_, map(SpendRecord.read, self.paths), SpendRecord())

    @property
    def shown(self) -> str:
        """The names, for messages."""
        return " and ".join(map(public_name, self.paths))

    def make_folders(self) -> None:
        """Make the folder of an ensemble; any other is there or is not."""
        for path in self.paths:
            if path.parent == _state_folder():
                try:
                    make_folder(path.parent, 0o700)
                except OSError as error:
                    raise OutputError(f"cannot make {path.parent}: {error.strerror}") from None


def record_of(ensemble: str) -> Path:
    """The record of the teachers of this name, in a folder of the user's own.

    `$XDG_STATE_HOME/pate`, `~/.local/state/pate` where that is not set, `%LOCALAPPDATA%\\pate` on
    Windows.

    Raises:
        UsageError: no name that could be a file's.
    """
    if not _ENSEMBLE.fullmatch(ensemble):
        raise UsageError(
            "`ensemble` is a name of up to 100 letters, digits, '.', '_' and '-', the first one a "
            "letter or a digit"
        )
    return _state_folder() / f"{ensemble}.spent.json"


def _state_folder() -> Path:
    home = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        return (Path(home) if home else Path.home() / ".local" / "state") / "pate"
    except RuntimeError:
        raise UsageError("there is no home folder to keep records in; name a file") from None


def _beside(votes: Any) -> tuple[str | None, Path | None]:
    """What the votes are called, and the record that belongs beside them, if they are on disk."""
    if not isinstance(votes, str | os.PathLike):
        return None, None
    name = os.fspath(votes)
    if name == "-":
        return None, None
    shown = re.split(r"[/\\]", public_name(name).rstrip("/\\"))[-1] or None
    path = Path(name)
    try:
        on_disk = not is_address(name) and (path.is_file() or path.is_dir())
    except (OSError, ValueError):
        on_disk = False
    return shown, record_beside(path) if on_disk else None


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def record_beside(ledger: str | os.PathLike[str]) -> Path:
    """Where the record of what was released is kept: `<ledger>.spent.json` beside the ledger.

    Links are followed, so that another name of the ledger has no record of its own.

    Raises:
        LedgerError: a pipe or a device, beside which nothing can be kept.
    """
    path = Path(ledger)
    with named(path):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise LedgerError("no regular file, so no record of releases goes beside it")
        try:
            at = path.resolve()
        except (RuntimeError, ValueError):  # links in a circle; a null
            raise LedgerError("is no name of a file") from None
        if at.is_symlink():  # in a circle, from Python 3.13 on
            raise LedgerError("is no name of a file")
    return at.with_name(f"{at.name}.spent.json")
