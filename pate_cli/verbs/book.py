"""The record around a run: entered before the votes are priced, noted with its outcome.

Nothing is struck out but a run whose file turned out to hold no votes, before anything was made of
them. What else ends a run may follow from the votes, or from a coin whose outcome somebody has
seen: were it free, there could be another try.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self

from pate_cli.core.checks import check_positive
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import (
    LedgerError,
    OutputError,
    ParameterError,
    UnreachableError,
    UsageError,
    VoteError,
    quoted,
)
from pate_cli.disclosure.figures import nats
from pate_cli.disclosure.record import Outcome, Run, SpendRecord, record_beside
from pate_cli.disclosure.total import Spent, Total, total_of
from pate_cli.files.addresses import is_address, public_name, refuse_address
from pate_cli.files.delivery import make_folder, sync_folder
from pate_cli.files.existing import anything
from pate_cli.files.inputs import note, watched
from pate_cli.files.journal import content_with_lines, parts_of, refuse_held
from pate_cli.files.lock import locked
from pate_cli.files.outputs import Outputs, cause

_ROUND_OFF: Final = 1e-9  # sums of targets are sums of decimals
_ENSEMBLE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Places:
    """Where the account of some teachers is kept; nowhere, without paths.

    Attributes:
        paths: of the record; of every copy, where there are several, which are then made one.
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
        """What all copies tell of; LedgerError for one that is damaged."""
        return functools.reduce(operator.or_, map(SpendRecord.read, self.paths), SpendRecord())

    @property
    def shown(self) -> str:
        """The names, for messages."""
        return " and ".join(map(public_name, self.paths))


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


class Book:
    """One run in a record on disk; without a place nothing is kept.

    Whatever ends the run before its outcome is noted leaves it pending, which counts in full.
    """

    def __init__(
        self,
        places: Places,
        run: Run | None,
        *,
        budget: float | None,
        beside: SpendRecord | None = None,
        refuse: Callable[[SpendRecord], None] = lambda record: None,
    ) -> None:
        """Refuse what would exceed the budget, if there is one.

        A run of the same id is the same one, started again.

        Args:
            places: where the record is kept.
            run: what is to be entered; None where only others are.
            budget: the most that all of it may cost together, nats.
            beside: what is known of other runs, which the record is to tell of, too.
            refuse: raises what speaks against the run, as things stand in the record.

        Raises:
            UnreachableError: earlier runs and this one together cost more than `budget`.
            UsageError: a budget, and no record that could tell what is spent of it; an output in
                the place of the record.
            LedgerError: the record is damaged, or runs in it protect others than this one does.
        """
        self._places = places
        self._budget = None if budget is None else check_positive("`budget`", budget)
        if self._budget is not None and not places.paths:
            raise UsageError(
                "`budget` needs a record of what was spent; name it with `ensemble` or `record`"
            )
        self._run = run and replace(run, budget=self._budget, votes=places.votes)
        self._beside = SpendRecord() if beside is None else beside
        self._refuse = refuse
        self._priced: tuple[SpendRecord, Total] | None = None
        self._fresh = False
        note("the record of what was spent", *((path, None) for path in places.paths))
        if places.paths:
            self._check(places.read() | self._beside)
        else:
            self._beside.check_alike()

    def enter(self) -> None:
        """Note it as pending, for good: from now on the record tells of it, on disk.

        If the same run has come further before, as far as its outcome, that stands.

        Raises:
            UnreachableError: others have spent too much meanwhile.
            OutputError: the record cannot be written, and nothing was entered.
        """
        if not self._places.paths:
            return
        self._make_folders()
        try:
            with self._record() as kept:
                record = kept | self._beside
                total = self._check(record)
                self._fresh = self._run is not None and record.known(self._run.id) is None
                if self._run is not None and self._fresh:
                    self._run = _after(self._run, total)
                    record = record.with_run(self._run)
                elif record != kept and record.runs[-1].total_epsilon is None:
                    record = record.with_run(_after(record.runs[-1], total))
                if record != kept:
                    self._write(record)
                else:
                    self._settle_names()
        except OutputError as error:
            error.add_note("the record of what was spent lies there; name another place for it")
            raise

    @contextlib.contextmanager
    def standing(self, *, until_read: bool) -> Iterator[None]:
        """Whatever ends the block says, in a note, that the run counts.

        `until_read`: a file that turns out to hold no votes strikes it out again, as nothing has
        been made of them that anybody could know of.
        """
        try:
            yield
        except VoteError as error:
            if not until_read or not self._withdrawn():
                self.note(error)
            raise
        except BaseException as error:
            self.note(error)
            raise

    def note(self, error: BaseException) -> None:
        """Add to an error that the run counts, and what, if it does."""
        if not self._places.paths or self._run is None:
            return
        run: Run | None = self._run
        # What failed may have been a change of the record, which took place or did not.
        with contextlib.suppress(OSError, OutputError, LedgerError):
            run = self._places.read().known(self._run.id)
        if run is not None:
            epsilon = "" if run.cost is None else f" at epsilon {run.cost:g}"
            error.add_note(f"the run{epsilon} stays in {self._places.shown} and counts")

    def settle(self, outcome: Outcome, *, answers: int | None = None) -> Spent | None:
        """Note the outcome; what all runs cost together, None without a record.

        Raises:
            OutputError: the record cannot be written, and the run is pending in it.
        """
        if self._run is not None:
            self._run = replace(self._run, outcome=outcome, answers=answers)
        if not self._places.paths:
            return None
        with self._record() as earlier:
            total = self._total(earlier)
            record = earlier
            if self._run is not None:
                self._run = _after(self._run, total)
                record = earlier.with_run(self._run)
                self._write(record)
        return Spent.of(record.runs, total)

    def account(self) -> SpendRecord:
        """All that is known: the record as it stands, and what is told beside it."""
        record = self._places.read() | self._beside
        return record if self._run is None else record.with_run(self._run)

    def _withdrawn(self) -> bool:
        """Whether it was struck out."""
        if not self._places.paths:
            return True
        if self._run is None or not self._fresh:
            return False
        with contextlib.suppress(OSError, OutputError, LedgerError), self._record() as record:
            known = record.known(self._run.id)
            if known is not None and known.outcome is not Outcome.PENDING:
                return False  # another process went on with the same run, and came to its end
            rest = record.without(self._run)
            if rest.runs:
                self._write(rest)
            else:  # a file that is refused leaves nothing beside it
                for path in self._places.paths:
                    path.unlink(missing_ok=True)
            return True
        return False

    def _total(self, record: SpendRecord) -> Total:
        """Of the runs of the record and this one; outcomes that change no cost change nothing."""
        runs = record if self._run is None else record.with_run(self._run)
        known = _costs(runs)
        if self._priced is None or _costs(self._priced[0]) != known:
            self._priced = (runs, total_of(runs.runs))
        return self._priced[1]

    def _check(self, record: SpendRecord) -> Total:
        """UnreachableError where this run and those of the record exceed the budget."""
        self._refuse(record)
        rest = record if self._run is None else record.without(self._run)
        (record if self._run is None else record.with_run(self._run)).check_alike()
        total = self._total(record)
        if self._budget is None or total.epsilon <= self._budget + _ROUND_OFF:
            return total
        others = rest.runs
        earlier = total_of(others).epsilon if others else 0.0
        raise UnreachableError(
            f"the budget is {self._budget:g}, and {_counted(others)} in {self._places.shown} spent "
            f"{nats(earlier)}: with this one it would be {nats(total.epsilon)}"
        )

    def _make_folders(self) -> None:
        """That of an ensemble is made; any other is there or is not."""
        for path in self._places.paths:
            if path.parent == _state_folder():
                try:
                    make_folder(path.parent, 0o700)
                except OSError as error:
                    raise OutputError(f"cannot make {path.parent}: {error.strerror}") from None

    @contextlib.contextmanager
    def _record(self) -> Iterator[SpendRecord]:
        """The record as it stands, which nobody else changes meanwhile.

        OutputError while a session is under way: its lines go into the file that is there.
        """
        with locked(self._places.paths):
            for path in self._places.paths:
                refuse_held(path)
            yield self._places.read()

    def _write(self, record: SpendRecord) -> None:
        # What is read is not replaced, but for the record itself, which was read as one.
        with watched(), Outputs() as out:
            for path in self._places.paths:
                out.reserve(path, replaces=anything)
            for path in self._places.paths:
                # What was asked in sessions stands behind it.
                tail = parts_of(content_with_lines(path))[1] if path.exists() else b""
                out.write(path, record.to_json().encode() + tail)

    def _settle_names(self) -> None:
        """Whoever wrote the record may have been killed before its name was on disk."""
        for path in self._places.paths:
            if path.parent.is_dir():
                try:
                    sync_folder(Path(os.path.realpath(path)).parent)
                except OSError as error:
                    raise OutputError(cause(public_name(path), error)) from error


def _after(run: Run, total: Total) -> Run:
    return replace(run, total_epsilon=total.epsilon, total_delta=total.delta)


def _costs(record: SpendRecord) -> list[tuple[Any, ...]]:
    return [(run.id, run.kind, run.cost, run.delta) for run in record.runs]


def _counted(runs: Sequence[Run]) -> str:
    return "1 run" if len(runs) == 1 else f"{len(runs)} runs"
