"""How many answers the published analysis gives within an ε once its release is charged correctly.

The expected cost of the labels at an order fixed beforehand, the conversion of the paper's Theorem
5, and its noisy release with β and σ_SS that are best for what a draw truly costs: mean plus two
standard deviations must not exceed ε. That expectations and published sensitivities bound nothing
strictly is left out of account, so this is the best that can be said for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pate_cli.accounting.cost_table import Price
from pate_cli.core.errors import ValidityError
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.planning.forecast import expected_by_rows
from pate_cli.planning.sanitized import BestRelease, best_release
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import VoteModel
from pate_cli.published.account import PublishedAccount, PublishedPlan

_ORDERS = (3.0, 4.0, 5.5, 7.5, 10.0, 14.0, 20.0, 28.0, 40.0)
# Shares of the rows at which a release is priced as if all rows were alike, to choose by.
_SHARES = np.geomspace(0.001, 1.0, 30)
# So many of the choices are priced exactly, on their own first rows.
_FINALISTS = 4
# A price says at which order; β and σ_SS are chosen for it afterwards.
_NO_BETA, _NO_SIGMA = 1.0, 1.0


@dataclass(frozen=True)
class PaperOutcome:
    """A setting, its rows and its release, within an ε. SECRET on private votes.

    Attributes:
        setting: T, σ1, σ2.
        queries: rows that are asked.
        release: λ, β, σ_SS, mean and standard deviation of what is published.
        answers: how many are expected.
        agreement: which share of them is expected to equal the plurality.
    """

    setting: Tuning
    queries: int
    release: BestRelease
    answers: float
    agreement: float


class PaperBudget:
    """Some settings at nine orders, priced once for all targets."""

    def __init__(self, sample: VoteModel, settings: Sequence[Tuning], *, delta: float) -> None:
        """Settings at which C5 or C6 fails are passed over."""
        self._sample, self._delta = sample, delta
        self._known = [
            (setting, order, values)
            for setting in settings
            for order in _ORDERS
            if (values := self._values(setting, order)) is not None
        ]

    def best(self, target: float, *, min_agreement: float) -> PaperOutcome | None:
        """The most expected answers within ε; None if no setting has any that agree enough."""
        ranked: list[tuple[float, Tuning, float, int]] = []
        for setting, order, values in self._known:
            shares = _SHARES[np.array(values) <= target]
            if shares.size == 0:
                continue
            rows = max(int(shares[-1] * self._sample.rows), 1)
            answers, agreement = self._expected(setting, rows)
            if agreement >= min_agreement:
                ranked.append((answers, setting, order, rows))
        ranked.sort(key=lambda choice: choice[0], reverse=True)
        found = [
            outcome
            for _, setting, order, rows in ranked[:_FINALISTS]
            if (outcome := self._exact(setting, order, target, start=rows)) is not None
            and outcome.agreement >= min_agreement
        ]
        return max(found, key=lambda outcome: outcome.answers, default=None)

    def _expected(self, setting: Tuning, rows: int) -> tuple[float, float]:
        """Expected answers of the first rows, and the share equal to the plurality."""
        asked = np.array([rows])
        answers, agreeing = expected_by_rows(self._sample, setting, asked, self._sample.rows)
        return float(answers[0, 0]), float(agreeing[0, 0] / answers[0, 0])

    def _values(self, setting: Tuning, order: float) -> Sequence[float] | None:
        """What each share of the rows would publish; None where a condition fails."""
        try:
            price = self._price(setting, order, self._sample.rows)
        except ValidityError:
            return None
        found = [self._release(price.scaled(share), order) for share in _SHARES.tolist()]
        return [math.inf if release is None else release.value for release in found]

    def _exact(
        self, setting: Tuning, order: float, target: float, *, start: int
    ) -> PaperOutcome | None:
        """The most first rows whose own price is within the target; it grows with the rows."""
        low, high, rows = 0, self._sample.rows + 1, start
        fits: BestRelease | None = None
        while high - low > max(1, low // 200):
            release = self._release(self._price(setting, order, rows), order)
            if release is not None and release.value <= target:
                low, fits = rows, release
                rows = min(rows + max(rows // 10, 1), (rows + high) // 2)
            else:
                high = rows
                rows = (low + high) // 2
        if fits is None:
            return None
        return PaperOutcome(setting, low, fits, *self._expected(setting, low))

    def _price(self, setting: Tuning, order: float, rows: int) -> Price:
        mechanism = self._sample.mechanism(setting)
        plan = PublishedPlan.of(
            ReleasePlan(ReleaseKind.NONE, self._delta, order, _NO_BETA, _NO_SIGMA)
        )
        account = PublishedAccount(mechanism, plan)
        account.add(account.keep(mechanism, self._sample.counts[:rows]))
        return account.price

    def _release(self, price: Price, order: float) -> BestRelease | None:
        return best_release(
            price,
            order=order,
            delta=self._delta,
            conversion=-math.log(self._delta) / (order - 1.0),
            failure=0.0,
        )
