"""The spend record around an attempt at a target: written before the votes are read."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import replace
from os import PathLike

from pate_cli.checks import check_positive
from pate_cli.disclosure.report import Spent
from pate_cli.errors import UnreachableError
from pate_cli.files.transaction import Outputs
from pate_cli.ledger import Attempt, Outcome, SpendRecord

__all__ = ["AttemptBook"]

# Sums of targets are sums of decimals.
_ROUND_OFF = 1e-9


class AttemptBook:
    """One attempt in a spend record on disk; without a path nothing is kept.

    A crash leaves it pending, which counts like a pass.
    """

    def __init__(
        self,
        path: str | PathLike[str] | None,
        *,
        epsilon: float,
        delta: float,
        refusal_epsilon: float,
        budget: float | None,
    ) -> None:
        """Refuse what would exceed the budget, if there is one.

        Raises:
            UnreachableError: earlier attempts and this one together cost more than `budget`.
            LedgerError: the record is damaged.
        """
        self._path = path
        self._attempt = Attempt(
            secrets.token_hex(16), epsilon, delta, refusal_epsilon, Outcome.PENDING
        )
        self._record = SpendRecord() if path is None else SpendRecord.read(path)
        earlier, _ = self._record.spent
        if budget is None:
            return
        check_positive("`budget`", budget)
        if earlier + epsilon > budget + _ROUND_OFF:
            raise UnreachableError(
                f"the budget is {budget:g} and earlier attempts have spent {earlier:g}: an attempt "
                f"at {epsilon:g} would exceed it; at most {max(budget - earlier, 0.0):g} is left"
            )

    @contextlib.contextmanager
    def under_way(self) -> Iterator[None]:
        """Until the coin is drawn: noted as pending, and struck out if the votes cannot be read.

        Nothing has been drawn then, so nothing was spent.
        """
        self._write(self._record.attempted(self._attempt))
        try:
            yield
        except BaseException:
            self._write(self._record.without(self._attempt))
            raise

    def ended(self, *, passed: bool) -> Spent | None:
        """Note how it ended; what all attempts cost together."""
        outcome = Outcome.PASSED if passed else Outcome.REFUSED
        self._attempt = replace(self._attempt, outcome=outcome)
        record = self._record.attempted(self._attempt)
        self._write(record)
        if self._path is None:
            return None
        epsilon, delta = record.spent
        return Spent(len(record.attempts), float(f"{epsilon:.9g}"), float(f"{delta:.9g}"))

    def _write(self, record: SpendRecord) -> None:
        if self._path is None:
            return
        with Outputs() as out:
            out.reserve(self._path, mode=0o600, replace=True)
            out.write(self._path, record.to_json().encode())
