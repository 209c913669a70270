"""The search for settings on votes that are there: coarse on the way, exact at the end.

SECRET unless the votes are public or made up: settings chosen on votes tell about them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.errors import UnreachableError
from pate_cli.core.words import CEILING, MechanismName, ReleaseKind
from pate_cli.disclosure.target import TargetPlan
from pate_cli.files.results import Result
from pate_cli.planning.command import line_of
from pate_cli.planning.goal import Found, Goal, Pricing
from pate_cli.planning.sanitized_votes import SanitizedVotes
from pate_cli.planning.search import Candidate, Search
from pate_cli.planning.tested_votes import TestedVotes
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import VoteModel
from pate_cli.planning.worst_case import CappedVotes

_PRICINGS: Mapping[ReleaseKind, Callable[[VoteModel, Goal], Pricing]] = {
    ReleaseKind.TARGET: TestedVotes,
    ReleaseKind.NONE: CappedVotes,
    ReleaseKind.UPPER: SanitizedVotes,
}
# Each round is corrected by what the best of the last one really costs: from how many starts it
# climbs by whole steps, and from how many of their ends by smaller ones. Then how often these halve
# their steps, and how far below the best settings may be that are priced, too.
_ROUNDS, _HALVINGS, _NEAR = ((2, 0), (12, 3), (0, 3), (0, 2)), 4, 0.25
# A round that gains less than this, in logarithms, is the last.
_GAIN = 0.002
_STARTS, _MARGIN = 4, 1.6


@dataclass(frozen=True, repr=False)
class Tuned(Result):
    """The best settings that a search found. SECRET if the votes are.

    Attributes:
        goal: what was sought.
        best: the best settings.
        others: the best of other mechanisms and releases that meet the goal, too.
        complete: False where an interruption ended the search.
        looked_at: how many settings were looked at.
        basis: in numbers, what the votes were.
        public: whether the votes are public, or made up.
        votes, words: the file, and options that describe it, for a command line.
        rows_per_query: how many rows are one query, where a query has several labels.
    """

    goal: Goal
    best: Found
    others: tuple[Found, ...]
    complete: bool
    looked_at: int
    basis: Mapping[str, Any] = field(default_factory=dict)
    public: bool = False
    votes: str = "VOTES"
    words: tuple[str, ...] = ()
    rows_per_query: int = 1

    @property
    def releasable(self) -> bool:
        """Only without private votes."""
        return self.public

    @property
    def settings(self) -> dict[str, Any]:
        """The best settings as keywords of `aggregate`."""
        return self._keywords(self.best)

    @property
    def command(self) -> str:
        """The `pate aggregate` line that runs the best settings."""
        return line_of(self.votes, self.words, self.settings)

    def _keywords(self, found: Found) -> dict[str, Any]:
        forecast, settings, plan = found.forecast, found.forecast.settings, found.release
        each: dict[str, Any] = {"mechanism": settings.mechanism_name.value}
        for name, value in settings.parameters.items():
            each[name] = value if value >= 1.0 else f"{value:g} votes"
        if settings.prior_weight:
            each["prior_weight"] = settings.prior_weight
        shared = forecast.mechanism.teachers_per_record
        if shared != 1 and not forecast.mechanism.votes_together:
            each["teachers_per_record"] = shared
        each["max_queries"] = max(forecast.rows // self.rows_per_query, 1)
        if found.max_answers is not None:
            each["max_answers"] = max(found.max_answers // self.rows_per_query, 1)
        each["delta"] = forecast.delta
        if self._kind(found) is ReleaseKind.TARGET:
            target = self._target(found)
            each |= {"target_epsilon": target.epsilon, "refusal_epsilon": target.refusal_epsilon}
            each["bound"] = self.goal.bound.value
        else:
            each["release"] = self._kind(found).value
        if plan is not None:
            each |= {"order": plan.order, "beta": plan.beta, "sigma_release": plan.sigma}
        most = max(forecast.worst_case if plan is None else 0.0, each.get("target_epsilon", 0.0))
        return each | ({"max_epsilon": most} if most > CEILING else {})

    def _kind(self, found: Found) -> ReleaseKind:
        if found.release is not None:
            return ReleaseKind.UPPER
        return ReleaseKind.TARGET if found.tested else ReleaseKind.NONE

    def _target(self, found: Found) -> TargetPlan:
        epsilon = found.forecast.epsilon if self.goal.epsilon is None else self.goal.epsilon
        return TargetPlan.of(epsilon, delta=self.goal.delta)

    def lines(self) -> list[str]:
        """The result in sentences, the command last."""
        found, forecast = self.best, self.best.forecast
        numbers = ", ".join(
            f"{name} {value:g}" for name, value in forecast.settings.parameters.items()
        )
        weight = forecast.settings.prior_weight
        prior = f", prior weight {weight}" if weight else ""
        cap = "" if found.max_answers is None else f", at most {found.max_answers} answers"
        name = forecast.settings.mechanism_name.value
        told = {
            ReleaseKind.NONE: f"epsilon {forecast.epsilon:.4f} whatever the votes",
            ReleaseKind.UPPER: f"published epsilon at most {forecast.epsilon:.4f} with probability "
            f"97.7%; whatever the votes {forecast.worst_case:.4f}",
            ReleaseKind.TARGET: f"epsilon {self._target(found).epsilon:g} as a tested target: the "
            "labels pass the release test with probability "
            f"{math.floor(1e3 * float(forecast.pass_probability[0])) / 10:g}%, by which the "
            f"answers count; failing costs {self._target(found).refusal_epsilon:g}",
        }[self._kind(found)]
        lines = [
            f"{float(forecast.expected_answers[0]):.1f} expected answers of {forecast.rows} "
            f"queries, {float(forecast.agreement[0]):.2%} of them equal to the plurality",
            f"{told}; delta {forecast.delta:g}",
            f"{name}: {numbers}{prior}{cap}",
        ]
        return [*lines, self.command]

    def headline(self) -> str:
        """The best settings in a few words."""
        forecast = self.best.forecast
        return (
            f"{float(forecast.expected_answers[0]):.1f} expected answers at epsilon "
            f"{forecast.epsilon:.4f}"
        )

    def preview(self) -> list[tuple[object, ...]]:
        """How to run the best settings."""
        return [(self.command,)]

    def columns(self) -> dict[str, NDArray[Any]]:
        """One row for the best settings and for each of the others."""
        rows = [self._described(each) for each in (self.best, *self.others)]
        names = ("mechanism", "release", "epsilon", "expected_answers", "agreement", "queries")
        return {name: np.array([row[name] for row in rows]) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain numbers, for JSON."""
        goal = self.goal
        return {
            "schema_version": 2,
            "releasable": self.releasable,
            "complete": self.complete,
            "goal": {
                "target_epsilon": goal.epsilon,
                "answers": goal.answers,
                "min_agreement": goal.min_agreement,
                "delta": goal.delta,
                "bound": goal.bound.value,
            },
            "basis": dict(self.basis),
            "looked_at": self.looked_at,
            "winner": self._described(self.best),
            "command": self.command,
            "others": [self._described(each) for each in self.others],
        }

    def _described(self, found: Found) -> dict[str, Any]:
        """Settings and what they are expected to give, in plain numbers."""
        forecast, settings, kind = found.forecast, found.forecast.settings, self._kind(found)
        tested, plan = kind is ReleaseKind.TARGET, found.release
        return {
            "mechanism": settings.mechanism_name.value,
            "threshold": settings.threshold,
            "sigma1": settings.sigma1,
            "sigma2": settings.sigma2,
            "prior_weight": settings.prior_weight,
            "queries": forecast.rows,
            "max_answers": found.max_answers,
            "release": kind.value,
            "epsilon": self._target(found).epsilon if tested else forecast.epsilon,
            "expected_answers": float(forecast.expected_answers[0]),
            "agreement": float(forecast.agreement[0]),
            "pass_probability": float(forecast.pass_probability[0]),
            "refusal_epsilon": self._target(found).refusal_epsilon if tested else None,
            "order": None if plan is None else plan.order,
            "beta": None if plan is None else plan.beta,
            "sigma_release": None if plan is None else plan.sigma,
            "data_independent_epsilon": forecast.worst_case,
        }


def tune(
    votes: VoteModel,
    goals: Sequence[Goal],
    *,
    given: Mapping[str, float] | None = None,
    mechanism: MechanismName | None = None,
    progress: Callable[[int], None] = lambda _looked_at: None,
    interrupted: Callable[[], None] = lambda: None,
) -> Tuned:
    """The settings that serve one of some goals best.

    Args:
        votes: of a file; with the guesses of a prior its weight is searched, too.
        goals: alike but for how the ε becomes publishable.
        given: threshold, sigma1, sigma2 or prior_weight in votes, where they are settled.
        mechanism: the one that is wanted, `confident` or `gnmax`; None for the better one.
        progress: called with how many settings were looked at since the last call.
        interrupted: called when a search is broken off, before its best is priced.

    Raises:
        UnreachableError: no settings meet the goal; the message says what comes closest.
        KeyboardInterrupt: nothing was found before an interruption.
    """
    searches = [_Rounds(votes, goal, given or {}, mechanism, progress) for goal in goals]
    complete = True
    try:
        for search in searches:
            search.run()
    except KeyboardInterrupt:
        interrupted()
        complete = False
        for search in searches:
            search.salvage()
        if not any(search.best_of_each() for search in searches):
            raise
    found = [(each, search.goal) for search in searches for each in search.best_of_each()]
    met = [(each, goal) for each, goal in found if goal.met_by(each)]
    if not met:
        raise UnreachableError(_closest(goals[0], [each for each, _ in found]))
    best, goal = max(met, key=lambda pair: pair[0].merit)
    others = tuple(each for each, _ in met if each is not best)
    return Tuned(goal, best, others, complete, sum(search.looked_at for search in searches))


class _Rounds:
    """A search in rounds, each corrected by what the best of the last one really costs."""

    def __init__(
        self,
        votes: VoteModel,
        goal: Goal,
        given: Mapping[str, float],
        mechanism: MechanismName | None,
        progress: Callable[[int], None],
    ) -> None:
        """Nothing is looked at yet."""
        self.goal, self.looked_at = goal, 0
        self._votes, self._given, self._mechanism, self._progress = (
            votes,
            given,
            mechanism,
            progress,
        )
        self._pricing = _PRICINGS[goal.release](votes, goal)
        self._search: Search | None = None
        self._found: dict[Tuning, Found] = {}

    def run(self) -> None:
        """Search until a round gains nothing, then price the best with care."""
        starts: list[Tuning] = []
        last = -math.inf
        for number, (strides, climbs) in enumerate(_ROUNDS):
            search = self._search = self._new_search()
            begin = [*(self._starts(search) if strides else ()), *starts]
            search.run(begin, strides=strides, climbs=climbs, halvings=_HALVINGS)
            self._price(self._finalists(search))
            if not self._found:
                return
            ranked = sorted(self._found.values(), key=self._rank)
            best, starts = ranked[-1], [each.forecast.settings for each in ranked[-_STARTS:]]
            if number > 1 and best.merit <= last + _GAIN:
                break
            last = best.merit
            self._pricing.learn(best)
        for best in self.best_of_each():
            settings = best.forecast.settings
            self._price([Candidate(settings, best.merit, best.forecast.rows)], last=True)

    def salvage(self) -> None:
        """Price the best of what was looked at before an interruption, if nothing is priced."""
        if not self._found and self._search is not None and self._search.seen:
            self._price([self._search.best])

    def best_of_each(self) -> list[Found]:
        """The best settings of each mechanism."""
        best: dict[MechanismName, Found] = {}
        for each in sorted(self._found.values(), key=self._rank):
            best[each.forecast.settings.mechanism_name] = each
        return list(best.values())

    def _rank(self, found: Found) -> tuple[bool, float]:
        return self.goal.met_by(found), found.merit

    def _price(self, candidates: Sequence[Candidate], *, last: bool = False) -> None:
        for candidate in candidates:
            found = self._pricing.price(candidate, last=last)
            if found is not None:
                self._found[candidate.settings] = found

    def _new_search(self) -> Search:
        return Search(
            self._pricing.look,
            votes=self._votes.teachers,
            given=self._given,
            weights=self._votes.guesses is not None,
            margin=_MARGIN,
            progress=self._count,
        )

    def _starts(self, search: Search) -> list[Tuning]:
        return search.starts(
            tested=self._mechanism is not MechanismName.GNMAX,
            untested=self._mechanism is not MechanismName.CONFIDENT,
        )

    def _count(self, looked_at: int) -> None:
        self.looked_at += looked_at
        self._progress(looked_at)

    def _finalists(self, search: Search) -> list[Candidate]:
        """The best candidates of either mechanism that have no exact price yet."""
        seen = sorted([*search.ends, *search.seen.values()], key=lambda each: each.rank)
        firsts = {each.settings.mechanism_name: each for each in seen}.values()
        finalists = dict.fromkeys([*firsts, *search.ends])
        return [
            each
            for each in finalists
            if each.settings not in self._found and each.merit > search.best.merit - _NEAR
        ]


def _closest(goal: Goal, found: Sequence[Found]) -> str:
    """What to say where no settings meet the goal."""
    wanted = "an answer" if goal.answers is None else f"{goal.answers:g} expected answers"
    under = "" if goal.epsilon is None else f" at epsilon {goal.epsilon:g}"
    message = (
        f"no settings give {wanted}{under} of which at least {goal.min_agreement:.0%} equal the "
        "plurality"
    )
    if not found:
        return message
    forecast = max(found, key=lambda each: each.merit).forecast
    return (
        f"{message}; the closest give {forecast.expected_answers[0]:.1f} at epsilon "
        f"{forecast.epsilon:g}, {forecast.agreement[0]:.0%} of them equal"
    )
