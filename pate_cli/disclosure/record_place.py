"""The place of a record: one file, which is found again wherever votes and record go.

A record lies beside its votes unless another is named. What the user saw of it last
(`disclosure.seen`) tells where it is once votes were moved, copied or linked, and that it is gone
or was rolled back while its votes remain.

Votes have one record. Where another is named it takes over all runs of the one that they had, which
from then on says where it goes on, and takes no further run.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pate_cli.core.errors import LedgerError, OutputError, ParameterError, UsageError, quoted
from pate_cli.disclosure.record import RecordFile, SpendRecord
from pate_cli.disclosure.seen import (
    Sighting,
    key_of_record,
    keys_of_votes,
    recall,
    remember,
    state_folder,
)
from pate_cli.files.addresses import is_address, public_name, refuse_address
from pate_cli.files.journal import locked
from pate_cli.files.places import make_folder
from pate_cli.files.reading import named

_ENSEMBLE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class RecordPlace:
    """The record of some teachers, which may not have begun yet; without a file nothing is kept.

    Attributes:
        file: the record.
        earlier: records that the votes had, and that `file` takes over.
        votes: what the holder calls the votes.
        keys: fingerprints of the votes, for this user alone. SECRET.
        named: somebody named the record, or the ensemble.
    """

    file: RecordFile | None = None
    earlier: tuple[RecordFile, ...] = ()
    votes: str | None = None
    keys: tuple[str, ...] = field(default=(), repr=False)
    named: bool = False

    @classmethod
    def of(
        cls,
        votes: Any,
        *,
        record: str | os.PathLike[str] | RecordPlace | bool | None,
        ensemble: str | None = None,
        seeded: bool = False,
        accept_lost: bool = False,
    ) -> Self | RecordPlace:
        """Find the record of votes: the one that is named, or the one that they have already.

        That lies beside them; or elsewhere, where they were moved, copied or linked since.

        Args:
            votes: as the verbs take them; what lies on disk has a record beside it.
            record: its file; False for none.
            ensemble: a name, under which it is kept in a folder of the user's own.
            seeded: the run is for tests, and entered in a record only where one is named.
            accept_lost: begin a record anew where the one that votes had is gone.

        Raises:
            UsageError: two ways to name it, or a name that is none.
            LedgerError: the record is damaged, gone or rolled back; or there are several.
        """
        if isinstance(record, RecordPlace):
            return record
        name, path = _on_disk(votes)
        told = told_record(record, ensemble)
        if record is False or (told is None and (seeded or path is None)):
            return cls(votes=name)
        if seeded or path is None:
            return cls.found(told, votes=name, accept_lost=accept_lost)
        beside, keys = record_beside(path), keys_of_votes(path)
        return cls.found(told, [beside], keys=keys, votes=name, accept_lost=accept_lost)

    @classmethod
    def found(
        cls,
        told: Path | None,
        known: Sequence[Path] = (),
        *,
        keys: tuple[str, ...] = (),
        votes: str | None = None,
        together: bool = False,
        accept_lost: bool = False,
    ) -> Self:
        """Find the one record of what lies at some places, or was seen with the votes before.

        Args:
            told: the record that is named, if one is.
            known: where else records of the same teachers may lie; the first of them is begun where
                there is none.
            keys: fingerprints of the votes.
            votes: what the holder calls them.
            together: somebody gave all that is known as of the same teachers, so that of several
                records the first goes on.
            accept_lost: begin a record anew where one that was there is gone.

        Raises:
            LedgerError: a record is damaged, gone or rolled back; there are several and none of
                them is named; or it goes on in another that is not known here.
        """
        seen = list(recall(keys))
        places = [*([] if told is None else [told]), *known, *(Path(one.record) for one in seen)]
        for path in places:  # which grow: a record that was taken over leads to the next
            for one in recall([key_of_record(path)]):
                seen.append(one)
                places += [] if Path(one.record) in places else [Path(one.record)]
        files: list[RecordFile] = []
        for path in places:  # links to a file are no other record
            if (path == told and not files) or _is_other(path, files):
                files.append(RecordFile(path))
        going_on = [each for each in files if each.goes_on_in is None]
        file = None if told is None else files[0]
        if file is None:
            file = _longest(going_on, first=together) or next(iter(files), None)
        if file is None and known:
            file = RecordFile(known[0])
        if not accept_lost:
            _refuse_lost(seen, files, file)
        earlier = tuple(each for each in going_on if each is not file)
        return cls(file, earlier, votes, keys, named=told is not None)

    @classmethod
    def at(cls, path: str | os.PathLike[str], *, votes: str | None = None) -> Self:
        """Return the place of a record by its file, whatever is known of it elsewhere."""
        return cls(RecordFile(path), votes=votes, named=True)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Files that no output may replace."""
        return tuple(file.path for file in (*self.files, *self.earlier))

    @property
    def files(self) -> tuple[RecordFile, ...]:
        """The record, if there is one."""
        return () if self.file is None else (self.file,)

    @property
    def record(self) -> SpendRecord:
        """All runs that are known: those of the record, and those that it takes over."""
        known = SpendRecord()
        for file in (*self.files, *self.earlier):
            known |= file.record
        return known

    @property
    def joined(self) -> str | None:
        """Say which record a run joins that nobody named, or which one is taken over; else None."""
        if self.file is None:
            return None
        taken = " and ".join(file.name for file in self.earlier)
        if taken:
            return f"the record {self.file.name} takes over {taken}, which takes no further runs"
        return None if self.named or self.file.empty else f"joins the record {self.file.name}"

    def twin(self, teachers: int, *, flag: str) -> str | None:
        """Say how to join another record in the folder of a new one, of as many teachers.

        Two records of the same teachers would each tell of a part of what was spent.

        Args:
            teachers: how many vote.
            flag: how the caller names an ensemble.

        Returns:
            One line; None where the record is named or there already, or no other is like it.
        """
        if self.named or self.file is None or not self.file.empty:
            return None
        path = self.file.path
        for other in sorted(path.parent.glob("*.spent.json")):
            with contextlib.suppress(LedgerError):
                told = (run.settings for run in SpendRecord.read(other).runs)
                if teachers in (each and each.mechanism.get("teachers") for each in told):
                    return (
                        f"{path.name} begins a new record, and {other.name} beside it is of "
                        f"{teachers} teachers, too. If they are the same, name them for both with "
                        f"{flag}: their runs then add up"
                    )
        return None

    def make_folder(self) -> None:
        """Make the folder of an ensemble; any other is there or is not."""
        folder = Path(os.path.realpath(state_folder()))
        try:
            if self.file is not None and self.file.path.parent == folder:
                make_folder(folder, 0o700)
        except OSError as error:
            raise OutputError(f"cannot make {folder}: {error.strerror}") from None

    def remember(self) -> None:
        """Keep for the next run where the record of these votes is, and how much it tells of."""
        if self.file is not None:
            taken = (key_of_record(file.path) for file in self.earlier)
            remember([*self.keys, *taken], self.file.sighting)


@contextlib.contextmanager
def held(files: Sequence[RecordFile]) -> Iterator[None]:
    """Let nobody else append to these records while the block runs; they are read to their ends.

    Raises:
        LedgerError: one of them lost what was read of it before.
        OutputError: no lock can be had, or a record cannot be written.
    """
    with locked([file.path for file in files]):
        for file in files:
            file.catch_up()
        before = [file.sighting for file in files]
        yield
        for file, known in zip(files, before, strict=True):
            if file.sighting != known:
                remember([key_of_record(file.path)], file.sighting)


def told_record(record: str | os.PathLike[str] | bool | None, ensemble: str | None) -> Path | None:
    """Return the file of the record that keywords name; None where they name none.

    Raises:
        ParameterError: no path.
        UsageError: two names, or one that no file has.
    """
    if not isinstance(record, str | os.PathLike | bool | None):
        raise ParameterError(f"`record` must be a path or False, got {quoted(record)}")
    if isinstance(record, bool):
        if record or ensemble is not None:
            raise UsageError("`record` is a file, or False for none")
        return None
    if record is not None and ensemble is not None:
        raise UsageError("`record` and `ensemble` both name the record; give one of them")
    if record is not None:
        refuse_address(record, "runs at once take turns at a record, by a lock")
        return Path(record)
    if ensemble is not None and not _ENSEMBLE.fullmatch(ensemble):
        raise UsageError(
            "`ensemble` is a name of up to 100 letters, digits, '.', '_' and '-', the first one a "
            "letter or a digit"
        )
    return None if ensemble is None else state_folder() / f"{ensemble}.spent.json"


def record_beside(votes: str | os.PathLike[str]) -> Path:
    """Return the record that belongs beside votes or a ledger, `<name>.spent.json`.

    Links are followed, so that every name of the file has the same record.

    Raises:
        LedgerError: a pipe or a device, beside which nothing can be kept.
    """
    path = Path(votes)
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


def _refuse_lost(
    seen: Sequence[Sighting], files: Sequence[RecordFile], chosen: RecordFile | None
) -> None:
    """LedgerError where no file tells of what was seen, or one leads to a record not among them."""
    for one in seen:
        if not any(file.tells_of(one) for file in files):
            raise LedgerError(
                f"the record {public_name(one.record)} is gone, or lost some of the {one.lines} "
                "lines that it had; restore it from a copy. To begin anew all the same, as if "
                "nothing had been spent, say `accept_lost_record`"
            )
    for file in files:
        known = (None, *(each.path.name for each in files))
        if file is not chosen and file.goes_on_in not in known:
            file.refuse_run()


def _longest(files: Sequence[RecordFile], *, first: bool) -> RecordFile | None:
    """Return the record of which all others are copies of an earlier day; None without any.

    If there is none, it is the `first`, or LedgerError.
    """
    longest = max(files, key=lambda file: file.sighting.lines, default=None)
    for file in files:
        if longest is not None and not longest.tells_of(file.sighting):
            if first:
                return files[0]
            raise LedgerError(
                f"{longest.name} and {file.name} are two records of these teachers; name the one "
                "that goes on, with `record` or `ensemble`: it takes over the runs of both"
            )
    return longest


def _is_other(path: Path, files: Sequence[RecordFile]) -> bool:
    """Return whether a file is there, under a name of its own or not, that is none of these."""
    try:
        return path.exists() and not any(
            file.path.exists() and file.path.samefile(path) for file in files
        )
    except (OSError, ValueError):
        return False


def _on_disk(votes: Any) -> tuple[str | None, Path | None]:
    """Return the name of the votes, and where they lie if they are on disk."""
    if not isinstance(votes, str | os.PathLike) or os.fspath(votes) == "-":
        return None, None
    name = os.fspath(votes)
    shown = re.split(r"[/\\]", public_name(name).rstrip("/\\"))[-1] or None
    path = url2pathname(urlsplit(name).path) if name.startswith("file://") else name
    try:
        there = not is_address(path) and (Path(path).is_file() or Path(path).is_dir())
    except (OSError, ValueError):
        there = False
    return shown, Path(path) if there else None
