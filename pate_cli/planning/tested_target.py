"""How settings serve a target that is tested: the most expected answers, by the chance to pass.

Rows are solved inside: of all numbers of rows the one is taken that gives the most expected
answers. Few numbers are priced, and between them the probability of passing is interpolated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.words import Bound
from pate_cli.disclosure.profile import settled_bound
from pate_cli.disclosure.target import TargetPlan, most_rows
from pate_cli.planning.forecast import expected_by_rows, worst_case_epsilon
from pate_cli.planning.query_costs import QueryCosts, quick_costs
from pate_cli.planning.search import Candidate
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import VoteModel

# Numbers of rows that are priced: all over the range, or around a good one.
_SPAN, _AROUND = 1.7, np.array([0.72, 0.85, 0.94, 1.0, 1.07, 1.2, 1.4])
_BETWEEN = 24
# Rows this close are looked at as they are, and nothing between them.
_CLOSE, _CLOSER = 1.2, np.linspace(0.92, 1.09, 15)
# How a shortfall of the chance to pass counts against answers, in logarithms, and what ensembles
# count that get none.
_PENALTY, _ANY_SHORTFALL, _LITTLE = 30.0, 0.1, 1.0
# What agreement counts: little where it is enough, so that of settings that give as much those win
# that agree more often; else so much that it does not pay to miss the floor, yet the way to the
# best along it is open.
_TIE, _FLOOR = 1e-3, 20.0


@dataclass(eq=False)
class TestedTarget:
    """Looks at settings for one target and one vote model.

    Attributes:
        votes: the votes, without a prior's; for a search a few thousand rows are enough.
        target: ε, δ and the price of failing.
        available: how many rows a run may ask.
        min_agreement: least share of answers equal to the plurality.
        bound: how a run bounds what votes cost, conditional or two-tail.
        stays_auto: whether a run settles the bound by its own rows.
        asked: how many rows are asked, where that is settled.
        least_chance: what passes with a smaller probability in the middle is worth little.
        above: a known correction of quick costs, by whether there is a test: [distances].
        worst: what a row costs at most at the target's decisive orders, if that is known.
    """

    votes: VoteModel
    target: TargetPlan
    available: int
    min_agreement: float
    bound: Bound
    stays_auto: bool = False
    asked: int | None = None
    least_chance: float = 0.0
    above: dict[bool, Floats] = field(default_factory=dict)
    worst: Floats | None = None

    def look(
        self, settings: Sequence[Tuning], near: int | None, *, closer: bool = False
    ) -> list[Candidate]:
        """Candidates for settings at quick costs, each with its best number of rows.

        Args:
            settings: to look at.
            near: about the best number of rows, if it is known.
            closer: whether to look at every number of rows right around it, for the last step.
        """
        found: list[Candidate] = []
        for weight in dict.fromkeys(each.prior_weight for each in settings):
            votes = self.votes.with_prior_weight(weight)
            some = [each for each in settings if each.prior_weight == weight]
            costs = quick_costs(
                votes,
                some,
                self.target,
                bound=self.bound,
                available=self.available,
                above=self.above,
            )
            if self.worst is not None:
                costs = [replace(each, worst=self.worst) for each in costs]
            for setting, cost in zip(some, costs, strict=True):
                found.append(self.serve(votes, setting, cost, near, closer=closer))
        return found

    def serve(
        self,
        votes: VoteModel,
        settings: Tuning,
        costs: QueryCosts,
        near: int | None,
        *,
        closer: bool = False,
    ) -> Candidate:
        """Settings at quick costs, with the best number of rows."""
        most = self._most_rows(votes, settings, near)
        rows = self.rows_to_price(near, most=most, closer=closer)
        return self.candidate(votes, settings, costs, rows, quick=True)

    def candidate(
        self,
        votes: VoteModel,
        settings: Tuning,
        costs: QueryCosts,
        rows: Ints,
        *,
        quick: bool,
    ) -> Candidate:
        """Settings with the best number of rows, by what they cost."""
        chances = np.zeros((votes.ensembles, rows.size))
        if self.target.reachable:
            chances = costs.pass_probability(self.target, rows, quick=quick)
        chances = np.where(costs.surely_passes(self.target, rows), 1.0, chances)
        every, chances = _between(rows, chances)
        answers, agreeing = expected_by_rows(votes, settings, every, self.available)
        expected = answers * chances
        # Ensembles that cannot be served count as if they got a little.
        merit = np.log(expected + _LITTLE * expected.mean(axis=0) + 1e-3).mean(axis=0)
        agreement = agreeing.sum(axis=0) / np.maximum(answers.sum(axis=0), 1e-300)
        merit += served_by(agreement, self.min_agreement)
        middle = chances[votes.middle].mean(axis=0)
        merit -= missed(self.least_chance - middle)
        place = int(np.argmax(merit))
        holds = bool(agreement[place] >= self.min_agreement)
        if self.least_chance > 0.0:  # of what is likely to pass at all
            holds = bool(middle[place] >= self.least_chance)
        return Candidate(settings, float(merit[place]), int(every[place]), holds)

    def middle_answers(self, settings: Tuning, rows: int) -> float:
        """Expected answers at the middle level of agreement, about."""
        votes = self.votes.with_prior_weight(settings.prior_weight)
        number = np.array([rows])
        (costs,) = quick_costs(votes, [settings], self.target, bound=self.bound, above=self.above)
        chances = np.ones((votes.ensembles, 1))
        if (
            worst_case_epsilon(votes.mechanism(settings), rows=rows, delta=self.target.delta)
            > self.target.epsilon
        ):
            chances = costs.pass_probability(self.target, number, quick=True)
        answers, _ = expected_by_rows(votes, settings, number, self.available)
        return float((answers * chances)[votes.middle].mean())

    def rows_to_price(self, near: int | None, *, most: int, closer: bool = False) -> Ints:
        """Numbers of rows to price: all over the range, or around good ones."""
        if self.asked is not None:
            return np.array([self.asked])
        if closer and near is not None:
            rows = near * _CLOSER
        elif near is None:
            number = 2 + int(np.ceil(np.log(most) / np.log(_SPAN)))
            rows = np.geomspace(1, most, number)
        else:
            rows = near * _AROUND
        return np.unique(np.clip(np.round(rows), 1, most).astype(np.int64))

    def _most_rows(self, votes: VoteModel, settings: Tuning, near: int | None) -> int:
        """The most rows worth a look; of more than these `auto` takes the looser bound."""
        most = self.available
        if near is not None:
            most = min(int(np.ceil(near * _AROUND[-1])), most)
        if self.bound is not Bound.CONDITIONAL or not self.stays_auto or votes.classes == 2:
            return most
        mechanism, orders = votes.mechanism(settings), self.target.orders

        def sharp(rows: int) -> bool:
            found = settled_bound(Bound.AUTO, mechanism, rows=rows, orders=orders)
            return found is Bound.CONDITIONAL

        return most if sharp(most) else max(most_rows(sharp, available=most), 1)


def _between(rows: Ints, chances: Floats) -> tuple[Ints, Floats]:
    """More numbers of rows, with chances interpolated in their logits over log rows."""
    if rows.size == 1 or rows[-1] < _CLOSE * rows[0]:
        return rows, chances
    number = _BETWEEN * (rows.size - 1)
    every = np.unique(np.geomspace(rows[0], rows[-1], number).round().astype(np.int64))
    clipped = np.clip(chances, 0.005, 0.995)
    logits = np.log(clipped) - np.log1p(-clipped)
    found = np.stack([np.interp(np.log(every), np.log(rows), each) for each in logits])
    return every, 1.0 / (1.0 + np.exp(-found))


def served_by(agreement: Floats, floor: float) -> Floats:
    """What agreement adds to merit, in logarithms, where a floor is asked for."""
    return _TIE * agreement - _FLOOR * np.maximum(floor - agreement, 0.0)


def missed(shortfall: Floats) -> Floats:
    """What a chance to pass that is too small costs in merit; 0 where it is large enough."""
    return np.where(shortfall > 0.0, _ANY_SHORTFALL + _PENALTY * shortfall, 0.0)
