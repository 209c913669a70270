"""How a run is entered in the record of its teachers, and its outcome noted.

A run stands in the record before anything is made of its votes. Whatever ends it may follow from
the votes, or from a test whose outcome somebody has seen: were it free, there could be another try.
So nothing is struck out but a run whose file turned out to hold no votes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace

from pate_cli.core.errors import LedgerError, OutputError, UsageError, VoteError
from pate_cli.disclosure.ledger import check_neighbours
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.record_place import RecordPlace, held
from pate_cli.disclosure.runs import Budget, Outcome, Run, Spent, total_of
from pate_cli.files.protected import note


class Entry:
    """One run on its way into a record; without a record nothing is kept.

    Whatever ends the run before its outcome is noted leaves it pending, which counts in full.
    """

    def __init__(
        self,
        place: RecordPlace,
        run: Run | None,
        *,
        budget: Budget | None,
        beside: SpendRecord | None = None,
        refuse: Callable[[SpendRecord], None] = lambda record: None,
    ) -> None:
        """Refuse what would exceed the budget, if there is one.

        A run of the same id is the same one, started again.

        Args:
            place: where the record is kept.
            run: what is to be entered; None where only others are.
            budget: the most that all runs of the record may cost together.
            beside: what is known of other runs, which the record is to tell of, too.
            refuse: raises what speaks against the run, as things stand in the record.

        Raises:
            UnreachableError: earlier runs and this one together cost more than `budget`.
            UsageError: a budget, and no record that could tell what is spent of it; an output in
                the place of the record.
            LedgerError: runs in the record protect others than this one does, or it goes on in
                another.
        """
        if budget is not None and place.file is None:
            raise UsageError(
                "`budget` needs a record of what was spent; name it with `ensemble` or `record`"
            )
        self._place, self._budget, self._refuse = place, budget, refuse
        self._run = run and replace(run, budget=budget, votes=place.votes)
        self._beside, self._fresh = beside or SpendRecord(), False
        note("the record of what was spent", *place.paths)
        self._check()

    def enter(self) -> None:
        """Enter the run, for good: from now on the record tells of it, on disk.

        If the same run has come further before, as far as its outcome, that stands. What earlier
        records of the votes tell of is entered, too; then they take no further run.

        Raises:
            UnreachableError: others have spent too much meanwhile.
            OutputError: the record cannot be written; the run is drawn from nowhere.
        """
        file, earlier = self._place.file, self._place.earlier
        if file is None:
            return
        self._place.make_folder()
        try:
            with held([file, *earlier]):
                self._check()
                new = self.record.missing_in(file.record)
                if new:
                    self._fresh = self._run is not None and new[-1].id == self._run.id
                    total = total_of(self.record.runs)
                    last = replace(new[-1], total_epsilon=total.epsilon, total_delta=total.delta)
                    # A session that is kept elsewhere goes on there; it is paid for in full.
                    file.enter(*(replace(run, session=None) for run in new[:-1]), last)
                for other in earlier:
                    other.go_on_in(file)
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
        except BaseException as error:
            if not (until_read and isinstance(error, VoteError) and self._withdrawn()):
                self._noted(error)
            raise

    def settle(self, outcome: Outcome, *, answers: int | None = None) -> Spent | None:
        """Note the outcome, and return what all runs cost together; None without a record.

        How a run ended stands as it was noted first, perhaps before it was resumed.

        Raises:
            OutputError: the record cannot be written, and the run is pending in it.
        """
        file = self._place.file
        self._run = self._run and replace(self._run, outcome=outcome, answers=answers)
        if file is None:
            return None
        with held([file]):
            spent = Spent.of(self.record.runs)
            if self._run is not None:
                epsilon, delta = spent.epsilon, spent.delta
                file.settle(replace(self._run, total_epsilon=epsilon, total_delta=delta))
        return replace(spent, runs=tuple(run.public for run in self.record.runs))

    @property
    def record(self) -> SpendRecord:
        """All runs of the record as it was last read, and what is told beside it; this one, too."""
        own = () if self._run is None else (self._run,)
        return self._place.record | self._beside | SpendRecord(own)

    def _check(self) -> None:
        """Raise what speaks against the run, as things stand in the record."""
        file, own = self._place.file, self._run
        if file is not None:
            file.refuse_run()
        self._refuse(self._place.record | self._beside)
        runs = self.record.runs
        check_neighbours(run.settings for run in runs if run.settings is not None)
        if self._budget is not None and file is not None:
            others = [run for run in runs if own is None or run.id != own.id]
            self._budget.refuse(others, [] if own is None else [own], record=file.name)

    def _noted(self, error: BaseException) -> bool:
        """Add to an error that the run counts, and return whether it does."""
        file, run = self._place.file, self._run
        if file is None or run is None:
            return False
        # What failed may have been a change of the record, which took place or did not.
        with contextlib.suppress(OSError, OutputError, LedgerError):
            run = SpendRecord.read(file.path).known(run.id)
        if run is not None:
            error.add_note(f"the run at epsilon {run.counted:g} stays in {file.name} and counts")
        return run is not None

    def _withdrawn(self) -> bool:
        """Strike the run out if nobody went on with it; True where it counts nowhere."""
        file, own = self._place.file, self._run
        if file is None or own is None or not self._fresh:
            return file is None
        with contextlib.suppress(OSError, OutputError, LedgerError), held([file]):
            known = file.record.known(own.id)
            # Another process may have gone on with the same run, and come to its end.
            if known is not None and known.outcome is Outcome.PENDING:
                file.strike(known)
                return True
        return False
