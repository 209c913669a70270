"""Which record belongs to votes: the one that is named, and the one that they have already."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import LedgerError, OutputError, ParameterError, UsageError, quoted
from pate_cli.disclosure.known_records import (
    Sighting,
    key_of_record,
    keys_of_votes,
    recall,
    remember,
    state_folder,
)
from pate_cli.disclosure.record import RecordFile, SpendRecord
from pate_cli.files.addresses import is_address, public_name, refuse_address
from pate_cli.files.delivery import make_folder
from pate_cli.files.reading import named

_ENSEMBLE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Places:
    """Files of the record of some teachers; without paths nothing is kept.

    Attributes:
        paths: of the record; where there are several, each of them tells of every run.
        found: the one of them that nobody named and that is there all the same.
        votes: what the holder calls the votes.
        keys: fingerprints of the votes, for this user alone. SECRET.
        expected: how their record was last seen; one of the paths tells of as much, or it is lost.
        accept_lost: begin anew all the same.
        named: somebody named the record, or the ensemble.
    """

    paths: tuple[Path, ...] = ()
    found: Path | None = None
    votes: str | None = None
    keys: tuple[str, ...] = field(default=(), repr=False)
    expected: tuple[Sighting, ...] = ()
    accept_lost: bool = False
    named: bool = False

    @classmethod
    def of(
        cls,
        votes: Any,
        *,
        record: str | os.PathLike[str] | Places | bool | None,
        ensemble: str | None = None,
        seeded: bool = False,
        accept_lost: bool = False,
    ) -> Self | Places:
        """Find the record that was named, and the one that the votes have already.

        That lies beside them; or elsewhere, where they were moved, copied or linked since.

        Args:
            votes: as the verbs take them; what lies on disk has a record beside it.
            record: its file; False for none.
            ensemble: a name, under which it is kept in a folder of the user's own.
            seeded: the run is for tests, and entered in a record only where one is named.
            accept_lost: begin a record anew where the one that votes had is gone.

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
        if seeded or beside is None:
            alone = () if told is None else (told,)
            return cls(alone, None, name, accept_lost=accept_lost, named=True)
        keys = keys_of_votes(_local(votes))
        seen = tuple(recall(keys))
        there = [path for path in (beside, *(Path(one.record) for one in seen)) if path.exists()]
        # Every name of a record is the same one.
        paths = {os.path.realpath(path): path for path in there[::-1]}
        if told is not None:
            paths.pop(os.path.realpath(told), None)
        others = tuple(paths.values())[::-1]
        return cls(
            (told, *others) if told is not None else others or (beside,),
            next(iter(others), None),
            name,
            keys,
            seen,
            accept_lost,
            named=told is not None,
        )

    def read(self) -> SpendRecord:
        """Return what any of them tells of; LedgerError for one that is damaged."""
        return SpendRecord.together(map(SpendRecord.read, self.paths))

    @property
    def shown(self) -> str:
        """The names, for messages."""
        return " and ".join(map(public_name, self.paths))

    def twin(self, teachers: int, *, flag: str) -> str | None:
        """Say how to join another record in the folder of a new one, of as many teachers.

        Two records of the same teachers would each tell of a part of what was spent.

        Args:
            teachers: how many vote.
            flag: how the caller names an ensemble.

        Returns:
            One line; None where the record is named or there already, or no other is like it.
        """
        if self.named or not self.paths or any(path.exists() for path in self.paths):
            return None
        (place, *_) = self.paths
        for other in sorted(place.parent.glob("*.spent.json")):
            with contextlib.suppress(LedgerError):
                for run in SpendRecord.read(other).runs:
                    if run.asked is not None and run.asked.mechanism.get("teachers") == teachers:
                        return (
                            f"{place.name} begins a new record, and {other.name} beside it is of "
                            f"{teachers} teachers, too. If they are the same, name them for both "
                            f"with {flag}: their runs then add up"
                        )
        return None

    def refuse_lost(self, files: Sequence[RecordFile]) -> None:
        """LedgerError where a record told of more than any of these does, or is gone."""
        if self.accept_lost:
            return
        by_path = tuple(recall(key_of_record(path) for path in self.paths))
        for file in files:  # others may have appended since it was read
            file.refresh()
        for seen in (*self.expected, *by_path):
            if not any(file.tells_of(seen) for file in files):
                raise LedgerError(
                    f"the record {public_name(seen.record)} is gone, or lost some of the "
                    f"{seen.lines} lines that it had; restore it from a copy. To begin anew all "
                    "the same, as if nothing had been spent, say `accept_lost_record`"
                )

    def remember(self, files: Sequence[RecordFile]) -> None:
        """Keep for the next run where the record of these votes is, and how much it tells of."""
        if files:
            remember(self.keys, files[0].sighting)

    def make_folders(self) -> None:
        """Make the folder of an ensemble; any other is there or is not."""
        for path in self.paths:
            if path.parent == state_folder():
                try:
                    make_folder(path.parent, 0o700)
                except OSError as error:
                    raise OutputError(f"cannot make {path.parent}: {error.strerror}") from None


def record_of(ensemble: str) -> Path:
    """The record of the teachers of this name, in a folder of the user's own.

    Raises:
        UsageError: no name that could be a file's.
    """
    if not _ENSEMBLE.fullmatch(ensemble):
        raise UsageError(
            "`ensemble` is a name of up to 100 letters, digits, '.', '_' and '-', the first one a "
            "letter or a digit"
        )
    return state_folder() / f"{ensemble}.spent.json"


def _local(votes: str | os.PathLike[str]) -> Path:
    """Return the path of votes on disk, also where they are named by a file:// address.

    Raises:
        ValueError: the address of a store.
    """
    name = os.fspath(votes)
    if name.startswith("file://"):
        return Path(url2pathname(urlsplit(name).path))
    if is_address(name):
        raise ValueError(name)
    return Path(name)


def _beside(votes: Any) -> tuple[str | None, Path | None]:
    """Return the name of the votes, and the record that belongs beside them if they are on disk."""
    if not isinstance(votes, str | os.PathLike):
        return None, None
    name = os.fspath(votes)
    if name == "-":
        return None, None
    shown = re.split(r"[/\\]", public_name(name).rstrip("/\\"))[-1] or None
    try:
        path = _local(name)
        on_disk = path.is_file() or path.is_dir()
    except (OSError, ValueError):
        on_disk = False
    return shown, record_beside(path) if on_disk else None


def record_beside(ledger: str | os.PathLike[str]) -> Path:
    """Return the record that belongs beside votes or a ledger, `<name>.spent.json`.

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
