"""The search for settings on votes that are there: coarse on the way, exact at the end.

SECRET unless the votes are public or made up: settings chosen on votes tell about them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.errors import UnreachableError
from pate_cli.core.words import Bound
from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.bisection import least
from pate_cli.planning.command import aggregate_command
from pate_cli.planning.forecast import Forecast, forecast_of_costs
from pate_cli.planning.query_costs import QueryCosts, exact_costs, measured_above
from pate_cli.planning.rule import rows_within, usual_bound
from pate_cli.planning.search import Candidate, Search
from pate_cli.planning.settings import Settings
from pate_cli.planning.tested_target import TestedTarget
from pate_cli.planning.vote_model import VoteModel
from pate_cli.planning.worst_case import CappedWorstCase, best_capped, expected_of

# Rows that a search looks at, how often it is corrected by exact costs, and with how many at once.
_MOST_ROWS, _ROUNDS, _FINALISTS = 3000, 3, 2
# Exact costs are found for so many more rows than a candidate asks.
_MORE_ROWS = 1.4
_EXACT_ROWS = np.array([0.75, 0.85, 0.92, 0.96, 1.0, 1.04, 1.1, 1.2, 1.35])
# So much more agreement is asked for while a search is coarse.
_LENIENCE = 1e-4
# A round that gains less than this factor is the last.
_GAIN = 1.002
# Targets among which the least is sought, to a relative precision, before it is tuned.
_TARGETS, _PRECISION = (0.02, 50.0), 0.005
_CORRECTIONS, _SURPLUS, _SLOPE = 5, 1.01, 0.75
_CAPPED_FINALISTS = 6


@dataclass(frozen=True, eq=False)
class Tuned:
    """The best settings that a search found, and what may be expected of them. SECRET.

    Attributes:
        forecast: of the settings, by the accountant's own costs.
        target: ε, δ and the price of failing.
        min_agreement: the floor that was asked for.
        other: the best settings of the other mechanism; None where none came near.
        looked_at: how many settings were looked at.
        votes: what the command calls the votes.
    """

    forecast: Forecast
    target: TargetPlan
    min_agreement: float
    other: Forecast | None = None
    looked_at: int = 0
    votes: str = "VOTES"

    @property
    def command(self) -> str:
        """The `pate aggregate` line that runs the settings."""
        found = self.forecast
        return aggregate_command(found.settings, found.rows, self.target, votes=self.votes)

    def lines(self) -> list[str]:
        """The result in sentences."""
        found, epsilon = self.forecast, self.target.epsilon
        settings = ", ".join(f"{k} {v:g}" for k, v in found.settings.parameters.items())
        lines = [
            f"{found.expected_answers[0]:.1f} expected answers of {found.rows} queries at epsilon "
            f"{epsilon:g}, of which {found.agreement[0]:.1%} equal the plurality",
            f"{found.settings.mechanism_name.value}: {settings}",
            f"the release test passes with probability {found.pass_probability[0]:.1%}"
            if found.tested
            else f"no release test: any votes cost at most {found.worst_case:g}",
        ]
        if self.other is not None:
            name = self.other.settings.mechanism_name.value
            lines.append(f"{name} would give {self.other.expected_answers[0]:.1f}")
        return [*lines, self.command]

    def table(self) -> dict[str, list[float]]:
        """Columns of a plain table: one row for each mechanism that came near."""
        found = [self.forecast, *([self.other] if self.other is not None else [])]
        return {
            "queries": [each.rows for each in found],
            "answers": [float(each.expected_answers[0]) for each in found],
            "equal_to_plurality": [float(each.agreement[0]) for each in found],
            "pass_probability": [float(each.pass_probability[0]) for each in found],
        }


@dataclass(eq=False)
class _Exact:
    """Prices candidates exactly on all the votes, and learns how far quick costs are off."""

    votes: VoteModel
    goal: TestedTarget
    bound: Bound
    min_agreement: float

    def price(self, candidate: Candidate, *, rough: bool = False) -> tuple[Forecast, Floats | None]:
        """A candidate with its best rows at exact costs, and how far these are above quick ones."""
        settings, target = candidate.settings, self.goal.target
        votes = self.votes.with_prior_weight(settings.prior_weight)
        near = int(min(candidate.rows * _MORE_ROWS + 20, votes.rows))
        first = votes.some(slice(near))
        above, chances = None, np.zeros(1)
        rows = np.unique(np.clip(np.ceil(candidate.rows * _EXACT_ROWS), 1, near).astype(np.int64))
        answers = self._good_answers(votes, settings)
        if target.reachable:
            costs = exact_costs(
                first,
                votes.mechanism(settings),
                target,
                bound=self.bound,
                rows=candidate.rows,
                rough=rough,
            )
            above = measured_above(first, settings, costs)
            rows, chances = self._rows(settings, costs, rows, answers)
        number, chance = self._best(rows, chances, answers)
        untested = rows_within(votes, settings, target, most=votes.rows)
        if untested and answers[untested - 1] >= answers[number - 1] * chance:
            number, chance = untested, 1.0
        return self._forecast(settings, number, chance), above

    def _good_answers(self, votes: VoteModel, settings: Settings) -> Floats:
        """Expected answers of the first rows, next to nothing where too few agree, [rows]."""
        answered = np.cumsum(votes.answer_chance(settings))
        agreeing = np.cumsum(votes.answer_chance(settings) * votes.agreement_chance(settings))
        return np.where(agreeing >= self.min_agreement * answered, answered, 1e-3 * answered)

    def _rows(
        self, settings: Settings, costs: QueryCosts, rows: Ints, answers: Floats
    ) -> tuple[Ints, Floats]:
        """Numbers of rows around the best, with their probabilities, in two rounds."""
        chances = costs.pass_probability(self.goal.target, rows)[0]
        best, _ = self._best(rows, chances, answers)
        near = np.unique(np.clip(best + np.arange(-8, 9) * max(best // 150, 1), 1, rows[-1]))
        rows = np.unique(np.concatenate([rows, near]))
        return rows, costs.pass_probability(self.goal.target, rows)[0]

    def _best(self, rows: Ints, chances: Floats, answers: Floats) -> tuple[int, float]:
        place = int(np.argmax(answers[rows - 1] * chances))
        return int(rows[place]), float(chances[min(place, chances.size - 1)])

    def _forecast(self, settings: Settings, rows: int, chance: float) -> Forecast:
        votes = self.votes.with_prior_weight(settings.prior_weight)
        mechanism = votes.mechanism(settings)
        return forecast_of_costs(votes, mechanism, self.goal.target, None, rows=rows, chance=chance)


def tune(
    votes: VoteModel,
    target: TargetPlan,
    *,
    min_agreement: float = 0.9,
    bound: Bound = Bound.AUTO,
    given: Mapping[str, float] | None = None,
    starts: Sequence[Settings] | None = None,
    progress: Callable[[int], None] = lambda _done: None,
    name: str = "VOTES",
) -> Tuned:
    """The settings that give the most expected answers under a tested target.

    Args:
        votes: of a file; with the guesses of a prior its weight is searched, too.
        target: ε, δ and the price of failing.
        min_agreement: least expected share of answers equal to the plurality of the teachers.
        bound: as a run is asked for.
        given: threshold, sigma1 or sigma2 in votes, where they are settled.
        starts: settings near which the best are; None where nothing is known.
        progress: called with how many settings were looked at.
        name: what the command calls the votes.

    Raises:
        UnreachableError: no settings give an answer under the target.
    """
    goal = TestedTarget(
        votes.thinned(_MOST_ROWS),
        target,
        votes.rows,
        min_agreement + _LENIENCE,
        usual_bound(votes, target, bound, rows=1),
        stays_auto=bound is Bound.AUTO,
    )
    exact = _Exact(votes, goal, bound, min_agreement)
    found: dict[Settings, Forecast] = {}
    looked: list[int] = []

    def told(done: int) -> None:
        looked.append(done)
        progress(done)

    try:
        _search(exact, found, starts, given or {}, told)
    except KeyboardInterrupt:
        if not found:
            raise
    good = [each for each in found.values() if each.agreement[0] >= min_agreement]
    good = sorted((each for each in good if _worth(each) > 0.0), key=_worth)
    if not good:
        raise UnreachableError(f"no settings give answers at epsilon {target.epsilon:g}")
    best, _ = exact.price(Candidate(good[-1].settings, 0.0, good[-1].rows))
    others = [each for each in good if each.settings.mechanism_name != best.settings.mechanism_name]
    return Tuned(best, target, min_agreement, others[-1] if others else None, sum(looked), name)


def _search(
    exact: _Exact,
    found: dict[Settings, Forecast],
    starts: Sequence[Settings] | None,
    given: Mapping[str, float],
    progress: Callable[[int], None],
) -> None:
    """Search in rounds, and put the finalists of each at exact costs into `found`."""
    votes, min_agreement, last = exact.votes, exact.min_agreement, 0.0
    for round_ in range(_ROUNDS):
        goal = exact.goal
        search = Search(
            goal.look,
            votes=votes.teachers,
            given=given,
            weights=votes.guesses is not None,
            progress=progress,
        )
        search.run(starts or search.starts(), climbs=3, halvings=4)
        for candidate in _finalists(search, found):
            forecast, above = exact.price(candidate, rough=True)
            found[forecast.settings] = forecast
            if above is not None:
                goal.above[forecast.settings.threshold is not None] = above
        good = [_worth(each) for each in found.values() if each.agreement[0] >= min_agreement]
        if round_ and good and max(good) <= last * _GAIN:
            break
        ranked = sorted(found.values(), key=_worth)
        last, starts = _worth(ranked[-1]), [each.settings for each in ranked[-4:]]
        exact.goal = _closer(goal, votes, ranked[-1], min_agreement)


def tune_for_answers(
    votes: VoteModel,
    answers: float,
    *,
    delta: float,
    min_agreement: float = 0.9,
    bound: Bound = Bound.AUTO,
    name: str = "VOTES",
) -> Tuned:
    """The settings that give so many expected answers under the least target.

    Args:
        votes, min_agreement, bound, name: like in `tune`.
        answers: how many answers are wanted.
        delta: δ.

    Raises:
        UnreachableError: no target up to the largest is enough.
    """
    epsilon, settings = _about_least(votes, answers, delta, min_agreement, bound)
    found, starts = None, [settings]
    for _ in range(_CORRECTIONS):
        target = TargetPlan.of(math.ceil(1000.0 * epsilon) / 1000.0, delta=delta)
        tuned = tune(
            votes, target, min_agreement=min_agreement, bound=bound, starts=starts, name=name
        )
        starts = [tuned.forecast.settings]
        got = _worth(tuned.forecast)
        if got >= answers and (found is None or target.epsilon < found.target.epsilon):
            found = tuned
        if answers <= got < answers * _SURPLUS:
            break
        # Answers grow a little faster than ε; the aim is in the middle of what is accepted.
        epsilon = target.epsilon * (answers * math.sqrt(_SURPLUS) / max(got, 1.0)) ** _SLOPE
    if found is None:
        raise UnreachableError(f"{answers:g} answers are out of reach")
    return found


def _about_least(
    votes: VoteModel, answers: float, delta: float, min_agreement: float, bound: Bound
) -> tuple[float, Settings]:
    """About the least target for so many answers, at quick costs corrected once, and settings."""
    best: dict[str, Settings] = {}
    above: dict[bool, Floats] = {}

    def enough(epsilon: float) -> bool:
        target = TargetPlan.of(epsilon, delta=delta)
        goal = TestedTarget(
            votes.thinned(_MOST_ROWS),
            target,
            votes.rows,
            min_agreement + _LENIENCE,
            usual_bound(votes, target, bound, rows=1),
            stays_auto=bound is Bound.AUTO,
            above=above,
        )
        search = Search(goal.look, votes=votes.teachers, weights=votes.guesses is not None)
        known = [best["settings"]] if best else search.starts()
        found = search.run(known, climbs=2, halvings=2)
        best["settings"] = found.settings
        if not above and target.reachable:
            _, ratio = _Exact(votes, goal, bound, min_agreement).price(found, rough=True)
            above.update({} if ratio is None else {True: ratio, False: ratio})
        return goal.middle_answers(found.settings, found.rows) >= answers

    low, high = _TARGETS
    epsilon = least(enough, start=1.0, low=low, high=high, precision=_PRECISION)
    return epsilon, best["settings"]


def tune_capped(
    votes: VoteModel,
    epsilon: float,
    *,
    delta: float,
    min_agreement: float = 0.9,
) -> tuple[Settings, int, float, float]:
    """Settings and a cap on answers whose ε holds whatever the votes.

    Returns:
        The settings, the cap, the expected answers, and the share equal to the plurality.

    Raises:
        UnreachableError: not even one answer is within ε.
    """
    goal = CappedWorstCase(votes, epsilon, delta, votes.rows, min_agreement)
    weights = votes.guesses is not None
    search = Search(goal.look, votes=votes.teachers, weights=weights)
    search.run(search.starts(), climbs=2)
    found = best_capped(goal, search.ranked()[:_CAPPED_FINALISTS])
    if found is None:
        raise UnreachableError(f"epsilon {epsilon:g} is too small for a single answer")
    answers, agreement = expected_of(votes, found, available=votes.rows)
    return found.settings, found.rows, answers, agreement


def _closer(
    goal: TestedTarget, votes: VoteModel, best: Forecast, min_agreement: float
) -> TestedTarget:
    """The goal for the next round: the rows that the best settings ask, and a floor that holds."""
    rows = int(min(_MORE_ROWS * best.rows + 20, votes.rows))
    missed = max(min_agreement - float(best.agreement[0]), 0.0)
    return replace(
        goal,
        votes=votes.some(slice(rows)).thinned(_MOST_ROWS),
        available=rows,
        min_agreement=goal.min_agreement + missed,
    )


def _worth(forecast: Forecast) -> float:
    return float(forecast.expected_answers[0])


def _finalists(search: Search, known: Mapping[Settings, Forecast]) -> list[Candidate]:
    """The best candidates of either mechanism that have no exact price yet."""
    ranked = search.ranked()
    best, kinds = [], set()
    for each in ranked:
        kind = each.settings.threshold is None
        if kind not in kinds and each.merit > ranked[0].merit - 0.25:
            kinds.add(kind)
            best.append(each)
    fresh = [each for each in best if each.settings not in known]
    return fresh[:_FINALISTS]
