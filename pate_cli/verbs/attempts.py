"""The spend record around an attempt at a target: written before the votes are priced.

Nothing is ever struck out. What ends a run after that may follow from the votes, or from the coin
whose outcome somebody has seen: were it free, there could be another try.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path

from pate_cli.core.checks import check_positive
from pate_cli.core.errors import UnreachableError
from pate_cli.disclosure.ledger import Attempt, Outcome, SpendRecord
from pate_cli.disclosure.report import Spent
from pate_cli.files.addresses import public_name
from pate_cli.files.lock import locked
from pate_cli.files.transaction import Outputs

# Sums of targets are sums of decimals.
_ROUND_OFF = 1e-9


class AttemptBook:
    """One attempt in a spend record on disk; without a path nothing is kept.

    Whatever ends the run before its outcome is noted leaves it pending, which counts like a pass.
    """

    def __init__(
        self,
        path: str | PathLike[str] | None,
        *,
        epsilon: float,
        delta: float,
        refusal_epsilon: float,
        budget: float | None,
        name: str,
    ) -> None:
        """Refuse what would exceed the budget, if there is one.

        An attempt of the same name is the same run, started again.

        Raises:
            UnreachableError: earlier attempts and this one together cost more than `budget`.
            LedgerError: the record is damaged.
        """
        self._path = None if path is None else Path(path)
        self._budget = None if budget is None else check_positive("`budget`", budget)
        self._attempt = Attempt(name, epsilon, delta, refusal_epsilon, Outcome.PENDING)
        self._check(SpendRecord() if path is None else SpendRecord.read(path))

    def enter(self) -> None:
        """Note it as pending, for good: from now on the record tells of it, on disk.

        If the same run has come further before, as far as its outcome, that stands.

        Raises:
            UnreachableError: others have spent too much meanwhile.
            OutputError: the record cannot be written, and nothing was entered.
        """
        with self._record() as record:
            self._check(record)
            if all(known.id != self._attempt.id for known in record.attempts):
                self._write(record.attempted(self._attempt))

    @contextlib.contextmanager
    def standing(self) -> Iterator[None]:
        """Whatever ends the block says, in a note, that the attempt counts."""
        try:
            yield
        except BaseException as error:
            if self._path is not None:
                error.add_note(
                    f"the attempt at epsilon {self._attempt.epsilon:g} stays in "
                    f"{public_name(self._path)} and counts"
                )
            raise

    def ended(self, *, passed: bool) -> Spent | None:
        """Note the outcome of the coin; what all attempts cost together.

        Raises:
            OutputError: the record cannot be written, and the attempt is pending in it.
        """
        outcome = Outcome.PASSED if passed else Outcome.REFUSED
        self._attempt = replace(self._attempt, outcome=outcome)
        with self._record() as earlier:
            record = earlier.attempted(self._attempt)
            self._write(record)
        if self._path is None:
            return None
        epsilon, delta = record.spent
        return Spent(len(record.attempts), epsilon, delta)

    def _check(self, record: SpendRecord) -> None:
        """UnreachableError where this attempt and those of the record exceed the budget."""
        earlier, _ = record.without(self._attempt).spent
        if self._budget is None or earlier + self._attempt.epsilon <= self._budget + _ROUND_OFF:
            return
        raise UnreachableError(
            f"the budget is {self._budget:g} and earlier attempts have spent {earlier:g}: an "
            f"attempt at {self._attempt.epsilon:g} would exceed it; at most "
            f"{max(self._budget - earlier, 0.0):g} is left"
        )

    @contextlib.contextmanager
    def _record(self) -> Iterator[SpendRecord]:
        """The record as it stands, which nobody else changes meanwhile."""
        if self._path is None:
            yield SpendRecord()
            return
        with locked([self._path]):
            yield SpendRecord.read(self._path)

    def _write(self, record: SpendRecord) -> None:
        if self._path is None:
            return
        with Outputs() as out:
            out.reserve(self._path, mode=0o600, replace=True)
            out.write(self._path, record.to_json().encode())
