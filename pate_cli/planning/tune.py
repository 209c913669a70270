"""The search for settings on votes that are there: coarse on the way, exact at the end.

SECRET unless the votes are public or made up: settings chosen on votes tell about them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.errors import UnreachableError
from pate_cli.core.said import Said
from pate_cli.core.words import CEILING, MechanismName, ReleaseKind
from pate_cli.disclosure.target import TargetPlan
from pate_cli.files.results import Result
from pate_cli.planning import words
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
# climbs by whole steps, and from how many of their ends by smaller ones; fewer where each look
# takes long. Then how often these halve their steps, and how far below the best settings may be
# that are priced, too.
_ROUNDS, _SLOW_ROUNDS = ((2, 0), (12, 3), (0, 3), (0, 2)), ((2, 0), (4, 2), (0, 1), (0, 1))
_HALVINGS, _NEAR = 4, 0.25
# A round that gains less than this, in logarithms, is the last.
_GAIN = 0.002
_STARTS, _MARGIN = 4, 1.6
# Parameters of a sanitized release, as `aggregate` has them.
_DRAWN = ("order", "beta", "sigma_release")


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
        found, forecast, row = self.best, self.best.forecast, self._row(self.best)
        shared, each = forecast.mechanism.teachers_per_record, self.rows_per_query
        keywords: dict[str, Any] = {"mechanism": row["mechanism"]}
        for name, value in forecast.settings.parameters.items():
            keywords[name] = value if value >= 1.0 else f"{value:g} votes"
        if row["prior_weight"]:
            keywords["prior_weight"] = row["prior_weight"]
        if shared != 1 and not forecast.mechanism.votes_together:
            keywords["teachers_per_record"] = shared
        keywords["max_queries"] = max(forecast.rows // each, 1)
        if found.max_answers is not None:
            keywords["max_answers"] = max(found.max_answers // each, 1)
        keywords["delta"] = forecast.delta
        if found.kind is ReleaseKind.TARGET:
            keywords["target_epsilon"] = row["epsilon"]
            keywords["refusal_epsilon"] = row["refusal_epsilon"]
            keywords["bound"] = self.goal.bound.value
        else:
            keywords["release"] = found.kind.value
        if found.release is not None:
            keywords |= {name: row[name] for name in _DRAWN}
        most = row["epsilon"] if found.kind is ReleaseKind.TARGET else forecast.worst_case
        if most > CEILING and found.kind is not ReleaseKind.UPPER:
            keywords["max_epsilon"] = most
        return keywords

    @property
    def command(self) -> str:
        """The `pate aggregate` line that runs the best settings."""
        return line_of(self.votes, self.words, self.settings)

    def lines(self) -> list[str]:
        """Return the result in sentences, the command last."""
        row, forecast = self._row(self.best), self.best.forecast
        chance = math.floor(1e3 * row["pass_probability"]) / 10
        told = {
            ReleaseKind.NONE: f"epsilon {forecast.epsilon:.4f} whatever the votes",
            ReleaseKind.UPPER: f"published epsilon at most {forecast.epsilon:.4f} with probability "
            f"97.7%; whatever the votes {forecast.worst_case:.4f}",
            ReleaseKind.TARGET: f"epsilon {row['epsilon']:g} as a tested target: the labels pass "
            f"the release test with probability {chance:g}%, by which the answers count; failing "
            f"costs {row['refusal_epsilon']}",
        }[self.best.kind]
        named = [f"{name} {value:g}" for name, value in forecast.settings.parameters.items()]
        if row["prior_weight"]:
            named.append(f"prior weight {row['prior_weight']}")
        if row["max_answers"] is not None:
            named.append(f"at most {row['max_answers']} answers")
        return [
            f"{row['expected_answers']:.1f} expected answers of {row['queries']} queries, "
            f"{row['agreement']:.2%} of them equal to the plurality",
            f"{told}; delta {forecast.delta:g}",
            f"{row['mechanism']}: {', '.join(named)}",
            self.command,
        ]

    def said(self) -> Said:
        """Return its lines and tables."""
        return words.of_search(self.lines(), self.to_dict())

    def headline(self) -> str:
        """The best settings in a few words."""
        forecast = self.best.forecast
        return (
            f"{float(forecast.expected_answers[0]):.1f} expected answers at epsilon "
            f"{forecast.epsilon:.4f}"
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return one row for the best settings and for each of the others."""
        rows = [self._row(each) for each in (self.best, *self.others)]
        names = ("mechanism", "release", "epsilon", "expected_answers", "agreement", "queries")
        return {name: np.array([row[name] for row in rows]) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain numbers, for JSON."""
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
            "winner": self._row(self.best),
            "command": self.command,
            "others": [self._row(each) for each in self.others],
        }

    def _row(self, found: Found) -> dict[str, Any]:
        """Settings and what they are expected to give, in plain numbers."""
        forecast, settings = found.forecast, found.forecast.settings
        epsilon, refusal = forecast.epsilon, None
        if found.kind is ReleaseKind.TARGET:
            epsilon = epsilon if self.goal.epsilon is None else self.goal.epsilon
            refusal = TargetPlan.of(epsilon, delta=self.goal.delta).refusal_epsilon
        drawn: tuple[float | None, ...] = (None, None, None)
        if found.release is not None:
            drawn = (found.release.order, found.release.beta, found.release.sigma)
        return {
            "mechanism": settings.mechanism_name.value,
            **asdict(settings),
            "queries": forecast.rows,
            "max_answers": found.max_answers,
            "release": found.kind.value,
            "epsilon": epsilon,
            "expected_answers": float(forecast.expected_answers[0]),
            "agreement": float(forecast.agreement[0]),
            "pass_probability": float(forecast.pass_probability[0]),
            "refusal_epsilon": refusal,
            **dict(zip(_DRAWN, drawn, strict=True)),
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
        if not any(search.best for search in searches):
            raise
    found = [(each, search.goal) for search in searches for each in search.best]
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
        """Prepare to search; nothing is looked at yet."""
        self.goal, self.looked_at = goal, 0
        self._votes, self._given, self._mechanism = votes, given, mechanism
        self._progress = progress
        self._pricing = _PRICINGS[goal.release](votes, goal)
        self._search = self._new_search()
        self._found: dict[Tuning, Found] = {}

    def run(self) -> None:
        """Search until a round gains nothing, then price the best with care."""
        last, near = -math.inf, list[Tuning]()
        starts = self._search.starts(
            tested=self._mechanism is not MechanismName.GNMAX,
            untested=self._mechanism is not MechanismName.CONFIDENT,
        )
        rounds = _SLOW_ROUNDS if self.goal.release is ReleaseKind.UPPER else _ROUNDS
        for number, (strides, climbs) in enumerate(rounds):
            search = self._search = self._new_search()
            begin = [*starts, *near] if strides else near
            search.run(begin, strides=strides, climbs=climbs, halvings=_HALVINGS)
            self._price(self._finalists(search))
            if not self._found:
                return
            ranked = sorted(self._found.values(), key=self._rank)
            best, near = ranked[-1], [each.forecast.settings for each in ranked[-_STARTS:]]
            if number > 1 and best.merit <= last + _GAIN:
                break
            last = best.merit
            self._pricing.learn(best)
        for best in self.best:
            settings = best.forecast.settings
            self._price([Candidate(settings, best.merit, best.forecast.rows)], last=True)

    def salvage(self) -> None:
        """Price the best of what was looked at before an interruption, if nothing is priced."""
        if not self._found and self._search.seen:
            self._price([self._search.best])

    @property
    def best(self) -> list[Found]:
        """The best settings of each mechanism."""
        ranked = sorted(self._found.values(), key=self._rank)
        return list({each.forecast.settings.mechanism_name: each for each in ranked}.values())

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

    def _count(self, looked_at: int) -> None:
        self.looked_at += looked_at
        self._progress(looked_at)

    def _finalists(self, search: Search) -> list[Candidate]:
        """The ends of climbs and the best candidate of each mechanism, unless priced before."""
        seen = sorted(search.seen.values(), key=lambda each: each.rank)
        firsts = {each.settings.mechanism_name: each for each in seen}.values()
        return [
            each
            for each in dict.fromkeys([*firsts, *search.ends])
            if each.settings not in self._found and each.merit > search.best.merit - _NEAR
        ]


def _closest(goal: Goal, found: Sequence[Found]) -> str:
    """The message where no settings meet the goal, with what comes closest."""
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
