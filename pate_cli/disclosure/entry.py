"""How a run is entered in the record of its teachers, and its outcome noted.

A run stands in the record before anything is made of its votes. Whatever ends it may follow from
the votes, or from a test whose outcome somebody has seen: were it free, there could be another try.
So nothing is struck out but a run whose file turned out to hold no votes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from pate_cli.core.errors import LedgerError, OutputError, UsageError, VoteError
from pate_cli.disclosure.budget import Budget
from pate_cli.disclosure.record import Outcome, RecordFile, Run, SpendRecord, held
from pate_cli.disclosure.record_place import Places
from pate_cli.disclosure.total import Spent, Total, refuse_beyond, total_of
from pate_cli.files.inputs import note


class Entry:
    """One run on its way into a record; without a place nothing is kept.

    Whatever ends the run before its outcome is noted leaves it pending, which counts in full.
    """

    def __init__(
        self,
        places: Places,
        run: Run | None,
        *,
        budget: Budget | None,
        beside: SpendRecord | None = None,
        refuse: Callable[[SpendRecord], None] = lambda record: None,
    ) -> None:
        """Refuse what would exceed the budget, if there is one.

        A run of the same id is the same one, started again.

        Args:
            places: where the record is kept.
            run: what is to be entered; None where only others are.
            budget: the most that all runs of the record may cost together.
            beside: what is known of other runs, which the record is to tell of, too.
            refuse: raises what speaks against the run, as things stand in the record.

        Raises:
            UnreachableError: earlier runs and this one together cost more than `budget`.
            UsageError: a budget, and no record that could tell what is spent of it; an output in
                the place of the record.
            LedgerError: the record is damaged, or runs in it protect others than this one does.
        """
        if budget is not None and not places.paths:
            raise UsageError(
                "`budget` needs a record of what was spent; name it with `ensemble` or `record`"
            )
        self._places, self._budget, self._refuse = places, budget, refuse
        self._run = run and replace(run, budget=budget, votes=places.votes)
        self._beside = SpendRecord() if beside is None else beside
        self._priced: tuple[SpendRecord, Total] | None = None
        self._fresh = False
        note("the record of what was spent", *places.paths)
        self._files = [RecordFile(path) for path in places.paths]
        places.refuse_lost(self._files)
        if self._files:
            self._check(self._told())
        else:
            self._beside.check_alike()

    def enter(self) -> None:
        """Enter the run, for good: from now on every record of the votes tells of it, on disk.

        If the same run has come further before, as far as its outcome, that stands. What one of
        several records tells of, and another does not, is entered there, too.

        Raises:
            UnreachableError: others have spent too much meanwhile.
            OutputError: a record cannot be written; the run is drawn from nowhere.
        """
        if not self._files:
            return
        self._places.make_folders()
        try:
            with held(self._files):
                record = self._told()
                total = self._check(record)
                self._fresh = self._run is not None and record.known(self._run.id) is None
                if self._run is not None and self._fresh:
                    self._run = _after(self._run, total)
                    record = record.with_run(self._run)
                elif record.runs and record.runs[-1].total_epsilon is None:
                    record = record.with_run(_after(record.runs[-1], total))
                for file in self._files:
                    file.enter(*(self._as_told(run) for run in record.missing_in(file.record)))
            self._places.remember(self._files)
        except OutputError as error:
            if not self._noted(error):
                error.add_note("the record of what was spent lies there; name another place for it")
            raise

    @contextlib.contextmanager
    def standing(self, *, until_read: bool) -> Iterator[None]:
        """Add to whatever ends the block, in a note, that the run counts.

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
        self._noted(error)

    def _noted(self, error: BaseException) -> bool:
        """Do so, and return whether the run counts."""
        if not self._files or self._run is None:
            return False
        run: Run | None = self._run
        # What failed may have been a change of the record, which took place or did not.
        with contextlib.suppress(OSError, OutputError, LedgerError):
            run = self._places.read().known(self._run.id)
        if run is not None:
            epsilon = "" if run.cost is None else f" at epsilon {run.cost:g}"
            error.add_note(f"the run{epsilon} stays in {self._places.shown} and counts")
        return run is not None

    def settle(self, outcome: Outcome, *, answers: int | None = None) -> Spent | None:
        """Note the outcome, and return what all runs cost together; None without a record.

        Raises:
            OutputError: the record cannot be written, and the run is pending in it.
        """
        if self._run is not None:
            self._run = replace(self._run, outcome=outcome, answers=answers)
        if not self._files:
            return None
        with held(self._files):
            record = self._told()
            total = self._total(record)
            if self._run is not None:
                self._run = _after(self._run, total)
                record = record.with_run(self._run)
                for file in self._files:
                    file.settle(self._run)
        self._places.remember(self._files)
        return Spent.of(record.runs, total)

    def account(self) -> SpendRecord:
        """Return all that is known: the record as it stands, and what is told beside it."""
        record = self._places.read() | self._beside
        return record if self._run is None else record.with_run(self._run)

    def _told(self) -> SpendRecord:
        """Return what any of the records tells of, and what is told beside them."""
        return SpendRecord.together(file.record for file in self._files) | self._beside

    def _as_told(self, run: Run) -> Run:
        """Return a run as it is entered here; a session that is kept elsewhere goes on there."""
        mine = self._run is not None and run.id == self._run.id
        return run if mine else replace(run, session=None)

    def _withdrawn(self) -> bool:
        """Strike the run out if nobody went on with it; True where it counts nowhere."""
        if not self._files:
            return True
        if self._run is None or not self._fresh:
            return False
        with contextlib.suppress(OSError, OutputError, LedgerError), held(self._files):
            known = [file.record.known(self._run.id) for file in self._files]
            if any(run is not None and run.outcome is not Outcome.PENDING for run in known):
                return False  # another process went on with the same run, and came to its end
            for file, run in zip(self._files, known, strict=True):
                if run is not None:
                    file.strike(run)
            return True
        return False

    def _total(self, record: SpendRecord) -> Total:
        """Return the total of the record and this run; found again only where a cost changed."""
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
        if self._budget is not None:
            fresh = () if self._run is None else (self._run,)
            refuse_beyond(self._budget, rest.runs, fresh, record=self._places.shown)
        return self._total(record)


def _after(run: Run, total: Total) -> Run:
    return replace(run, total_epsilon=total.epsilon, total_delta=total.delta)


def _costs(record: SpendRecord) -> list[tuple[Any, ...]]:
    return [(run.id, run.kind, run.cost, run.delta) for run in record.runs]
