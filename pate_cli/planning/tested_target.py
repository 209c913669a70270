"""How settings serve a tested target: the most expected answers, by the chance to pass.

Rows are solved inside: of all numbers of rows the one is taken that gives the most expected
answers. Few numbers are priced, and between them the probability of passing is interpolated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.words import Bound
from pate_cli.disclosure.profile import settled_bound
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.bisection import most_rows
from pate_cli.planning.forecast import expected_by_rows
from pate_cli.planning.query_costs import QueryCosts, quick_costs
from pate_cli.planning.search import Candidate
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import VoteModel

# Numbers of rows that are priced: all over the range, or around a good one; numbers between them.
_SPAN, _AROUND = 1.7, np.array([0.72, 0.85, 0.94, 1.0, 1.07, 1.2, 1.4])
_BETWEEN = 24
# How a shortfall of the chance to pass counts against answers, in logarithms, and what ensembles
# count that get none.
_PENALTY, _ANY_SHORTFALL, _LITTLE = 30.0, 0.1, 1.0
# What agreement counts: little where it is enough, so that of settings that give as much those win
# that agree more often; else so much that it does not pay to miss the floor, yet the way to the
# best along it is open.
_TIE, _FLOOR = 1e-3, 20.0
# Settings by which it is told which bound `auto` comes to, as shares of the votes.
_USUAL = (0.6, 0.4, 0.2)


@dataclass(eq=False)
class TestedTarget:
    """Looks at settings for one target and one vote model.

    Attributes:
        votes: the votes, without a prior's; for a search a few thousand rows are enough.
        target: ε, δ, the price of failing and the bound that is asked for.
        available: how many rows a run may ask.
        min_agreement: least share of answers equal to the plurality.
        asked: how many rows are asked, where that is settled.
        least_chance: what passes with a smaller probability in the middle is worth little.
        above: a known correction of quick costs, by whether there is a test: [distances].
    """

    votes: VoteModel
    target: TargetPlan
    available: int
    min_agreement: float
    asked: int | None = None
    least_chance: float = 0.0
    above: dict[bool, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        threshold, sigma1, sigma2 = (share * self.votes.most_votes for share in _USUAL)
        usual, target = self.votes.mechanism(Tuning(threshold, sigma1, sigma2)), self.target
        self._bound = settled_bound(target.bound, usual, rows=1, orders=target.orders)

    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Return candidates for settings at quick costs, each with its best number of rows.

        Args:
            settings: to look at.
            near: about the best number of rows, if it is known.
        """
        found: list[Candidate] = []
        for weight in dict.fromkeys(each.prior_weight for each in settings):
            votes = self.votes.with_prior_weight(weight)
            some = [each for each in settings if each.prior_weight == weight]
            for setting, costs in zip(some, self.costs(votes, some), strict=True):
                found.append(self._candidate(votes, setting, costs, near))
        return found

    def costs(self, votes: VoteModel, settings: Sequence[Tuning]) -> list[QueryCosts]:
        """Return quick costs of settings that have the prior weight of the votes."""
        return quick_costs(
            votes,
            settings,
            self.target,
            bound=self._bound,
            available=self.available,
            above=self.above,
        )

    def _candidate(
        self, votes: VoteModel, settings: Tuning, costs: QueryCosts, near: int | None
    ) -> Candidate:
        """Settings with the best number of rows."""
        rows = self._rows_to_price(votes, settings, near)
        chances = np.zeros((votes.ensembles, rows.size))
        if self.target.reachable:
            chances = costs.pass_probability(self.target, rows, quick=True)
        chances = np.where(costs.surely_passes(self.target, rows), 1.0, chances)
        rows, chances = _between(rows, chances)
        answers, agreeing = expected_by_rows(votes, settings, rows, self.available)
        agreement = agreeing.sum(axis=0) / np.maximum(answers.sum(axis=0), 1e-300)
        middle = chances[votes.middle].mean(axis=0)
        merit = served(answers * chances) + served_by(agreement, self.min_agreement)
        short = self.least_chance - middle
        merit -= np.where(short > 0.0, _ANY_SHORTFALL + _PENALTY * short, 0.0)
        place = int(np.argmax(merit))
        holds = agreement[place] >= self.min_agreement
        if self.least_chance > 0.0:  # of what is likely to pass at all
            holds = middle[place] >= self.least_chance
        return Candidate(settings, float(merit[place]), int(rows[place]), bool(holds))

    def _rows_to_price(self, votes: VoteModel, settings: Tuning, near: int | None) -> Ints:
        """Numbers of rows to price: all over the range, or around good ones."""
        if self.asked is not None:
            return np.array([self.asked])
        most = self.available
        if near is not None:
            most = min(int(np.ceil(near * _AROUND[-1])), most)
        if votes.classes > 2 and self._bound is Bound.CONDITIONAL:
            most = sharp_rows(votes.mechanism(settings), self.target, most)
        rows = np.geomspace(1, most, 2 + int(np.ceil(np.log(most) / np.log(_SPAN))))
        if near is not None:
            rows = near * _AROUND
        return np.unique(np.clip(np.round(rows), 1, most).astype(np.int64))


def sharp_rows(mechanism: ScoredMechanism, target: TargetPlan, most: int) -> int:
    """Return so many rows, or as many as `auto` has time for under the sharper bound if any."""

    def sharp(rows: int) -> bool:
        found = settled_bound(target.bound, mechanism, rows=rows, orders=target.orders)
        return found is Bound.CONDITIONAL

    if target.bound is not Bound.AUTO or sharp(most):
        return most
    return most_rows(sharp, available=most) or most


def _between(rows: Ints, chances: Floats) -> tuple[Ints, Floats]:
    """More numbers of rows, with chances interpolated in their logits over log rows."""
    if rows.size == 1:
        return rows, chances
    number = _BETWEEN * (rows.size - 1)
    every = np.unique(np.geomspace(rows[0], rows[-1], number).round().astype(np.int64))
    clipped = np.clip(chances, 0.005, 0.995)
    logits = np.log(clipped) - np.log1p(-clipped)
    found = np.stack([np.interp(np.log(every), np.log(rows), each) for each in logits])
    return every, 1.0 / (1.0 + np.exp(-found))


def served(expected: Floats) -> Floats:
    """Return how well expected answers serve all ensembles, [ensembles, ...] to [...].

    It is the mean of their logarithms, where ensembles that get none count as if they got a little.
    """
    return np.log(expected + _LITTLE * expected.mean(axis=0) + 1e-3).mean(axis=0)


def served_by(agreement: Floats, floor: float) -> Floats:
    """Return what agreement adds to merit, in logarithms, where a floor is asked for."""
    return _TIE * agreement - _FLOOR * np.maximum(floor - agreement, 0.0)
