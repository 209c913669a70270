"""The search for settings on given votes: coarse at first, exact at the end.

Settings that were chosen on votes reveal something about these votes. So the result is SECRET,
unless the votes are public or made up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.errors import UnreachableError
from pate_cli.core.said import Said
from pate_cli.core.words import MechanismName, ReleaseKind
from pate_cli.files.results import Result
from pate_cli.planning import words
from pate_cli.planning.goal import CappedVotes, Found, Goal, Pricing, TestedVotes
from pate_cli.planning.sanitized import SanitizedVotes
from pate_cli.planning.search import Candidate, Search, Tuning, keywords_of, line_of
from pate_cli.planning.vote_model import VoteModel

_PRICINGS: Mapping[ReleaseKind, type[Pricing]] = {
    ReleaseKind.TARGET: TestedVotes,
    ReleaseKind.NONE: CappedVotes,
    ReleaseKind.UPPER: SanitizedVotes,
}
# A search has at most five rounds, or four if each evaluation takes long. The first number of a
# round says from how many settings it climbs by whole steps. The second number says from how many
# of the reached settings it climbs further by smaller steps. After each round the exact costs of
# the best settings correct the approximate costs of the next round.
_ROUNDS = (2, 0), (12, 3), (0, 3), (0, 2), (0, 1)
_SLOW_ROUNDS = (2, 0), (4, 2), (0, 1), (0, 1)
# How often a climb halves its steps. Exact costs are computed for settings whose merit is at most
# .25 below the best merit.
_HALVINGS, _NEAR = 4, 0.25
# If a round improves the merit by less than this number, the search ends, or becomes careful if it
# was not careful yet.
_GAIN = 0.002
_STARTS, _MARGIN = 4, 1.6


@dataclass(frozen=True, repr=False)
class Tuned(Result):
    """The best settings that a search found on votes. A result for private votes is SECRET.

    Attributes:
        best: the best settings.
        others: the best settings of all other combinations of a mechanism and a kind of release, if
            they meet the goal.
        complete: whether the search ended by itself; False after an interruption.
        looked_at: how many settings were evaluated.
        basis: numbers that describe the votes, such as the number of teachers.
        public: whether the votes are public or made up.
        votes: the name of the file of votes, for the command line.
        words: the options that say how to read the file of votes, for the command line.
    """

    best: Found
    others: tuple[Found, ...]
    complete: bool
    looked_at: int
    basis: Mapping[str, Any] = field(default_factory=dict)
    public: bool = False
    votes: str = "VOTES"
    words: tuple[str, ...] = ()

    @property
    def releasable(self) -> bool:
        """Return whether the result may be published, because the votes are public or made up."""
        return self.public

    @property
    def settings(self) -> dict[str, Any]:
        """Return the best settings as keywords of `aggregate`."""
        told, each = self.best.forecast, self.basis.get("rows_per_query", 1)
        stated = dict(self.best.stated)
        if "max_answers" in stated:
            stated["max_answers"] = max(stated["max_answers"] // each, 1)
        rows = max(told.rows // each, 1)
        return keywords_of(told.mechanism, queries=rows, delta=told.delta, **stated)

    @property
    def command(self) -> str:
        """Return the `pate aggregate` line that runs the best settings."""
        return line_of(self.votes, self.words, self.settings)

    def said(self) -> Said:
        """Return the lines and tables that show the result to people."""
        return words.of_search(self.to_dict())

    def headline(self) -> str:
        """Return the expected answers and the ε of the best settings in one line."""
        told = self.best.forecast
        return f"{told.expected_answers[0]:.1f} expected answers at epsilon {told.epsilon:.4f}"

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a table with one row for the settings `best` and one row for each of `others`."""
        rows = [each.to_dict() for each in (self.best, *self.others)]
        names = ("mechanism", "release", "epsilon", "expected_answers", "agreement", "queries")
        return {name: np.array([row[name] for row in rows]) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return the goal, the settings that were found and their forecasts, ready for JSON."""
        goal = self.best.goal
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
            "winner": self.best.to_dict(),
            "command": self.command,
            "others": [each.to_dict() for each in self.others],
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
    """Return the best settings for a goal, and the kind of release that they need.

    Args:
        votes: the votes of a file, or made-up votes. If the votes have the guesses of a prior, the
            search also chooses the weight of the prior.
        goals: the same goal once for each kind of release that the search may choose.
        given: the values of threshold, sigma1, sigma2 or prior_weight that the caller fixed, in
            votes.
        mechanism: `confident` or `gnmax`; None for the better of both.
        progress: called with the number of settings that were evaluated since the last call.
        interrupted: called after an interruption, before the exact costs of the best settings so
            far are computed.

    Raises:
        UnreachableError: no settings meet the goal; the message says what comes closest.
        KeyboardInterrupt: the search was interrupted before it found any settings.
    """
    numbers, complete = [0], True

    def counted(looked_at: int) -> None:
        numbers.append(looked_at)
        progress(looked_at)

    searches = [_Rounds(votes, goal, given or {}, counted) for goal in goals]
    try:
        for search in searches:
            search.run(mechanism)
    except KeyboardInterrupt:
        interrupted()
        complete = False
        for search in searches:
            search.salvage()
        if not any(search.best for search in searches):
            raise
    found = [each for search in searches for each in search.best]
    met = [each for each in found if each.goal.met_by(each)]
    if not met:
        raise UnreachableError(_closest(goals[0], found))
    best = max(met, key=lambda each: each.merit)
    others = tuple(each for each in met if each is not best)
    return Tuned(best, others, complete, sum(numbers))


class _Rounds:
    """A search in rounds, which compares settings by their approximate costs.

    After each round, the exact costs of the best settings make the approximate costs of the next
    round more accurate.
    """

    def __init__(
        self,
        votes: VoteModel,
        goal: Goal,
        given: Mapping[str, float],
        progress: Callable[[int], None],
    ) -> None:
        """Prepare the search, without evaluating any settings."""
        self._pricing = _PRICINGS[goal.release](votes, goal)
        self._given, self._progress = given, progress
        self._search = self._new_search()
        self._found: dict[Tuning, Found] = {}

    def run(self, mechanism: MechanismName | None) -> None:
        """Search in rounds, until a round hardly improves the best settings.

        A round hardly improves the best settings if their merit (`Found.merit`: how good they are
        for the goal) grows by at most `_GAIN`. After the first round that hardly improves the best
        settings, a search that is not `careful` yet becomes careful and continues. The number of
        rounds is limited.
        """
        last, near = -math.inf, list[Tuning]()
        starts = self._search.starts(mechanism)
        slow = isinstance(self._pricing, SanitizedVotes)
        for number, (strides, climbs) in enumerate(_SLOW_ROUNDS if slow else _ROUNDS):
            search = self._search = self._new_search()
            begin = [*starts, *near] if strides else near
            search.run(begin, strides=strides, climbs=climbs, halvings=_HALVINGS)
            self._price(self._finalists(search))
            if not self._found:
                return
            ranked = sorted(self._found.values(), key=lambda each: each.rank)
            best, near = ranked[-1], [each.settings for each in ranked[-_STARTS:]]
            if number > 1 and best.merit <= last + _GAIN:
                if self._pricing.careful:
                    break
                self._pricing.careful = True
            last = best.merit
            self._pricing.learn(best)
        # The best settings may have a better number of rows near the number that was found.
        for best in self.best:
            told = best.forecast
            self._price([Candidate(told.mechanism, best.merit, told.rows)])

    def salvage(self) -> None:
        """After an interruption, compute the exact costs of the best settings, if still unknown."""
        if not self._found and self._search.seen:
            self._price([self._search.best])

    @property
    def best(self) -> list[Found]:
        """Return the best settings of each mechanism, by exact costs."""
        ranked = sorted(self._found.values(), key=lambda each: each.rank)
        return list({each.settings.mechanism_name: each for each in ranked}.values())

    def _price(self, candidates: Sequence[Candidate]) -> None:
        for candidate in candidates:
            found = self._pricing.price(candidate)
            if found is not None:
                self._found[candidate.settings] = found

    def _new_search(self) -> Search:
        return Search(
            self._pricing.look,
            votes=self._pricing.votes.usual_votes,
            given=self._given,
            weights=self._pricing.votes.guesses is not None,
            margin=_MARGIN,
            progress=self._progress,
        )

    def _finalists(self, search: Search) -> list[Candidate]:
        """Return the candidates whose exact costs are worth computing.

        Exact costs are worth computing only for candidates that no further step of the search
        improved, and for the best candidate of each mechanism.
        """
        seen = sorted(search.seen.values(), key=lambda each: each.rank)
        firsts = {each.settings.mechanism_name: each for each in seen}.values()
        return [
            each
            for each in dict.fromkeys([*firsts, *search.ends])
            if each.settings not in self._found and each.merit > search.best.merit - _NEAR
        ]


def _closest(goal: Goal, found: Sequence[Found]) -> str:
    """Return an error message: no settings meet the goal, and what the closest settings give."""
    wanted = "answers" if goal.answers is None else f"{goal.answers:g} expected answers"
    under = "" if goal.epsilon is None else f" at epsilon {goal.epsilon:g}"
    message = (
        f"no settings give {wanted}{under}, at least {goal.min_agreement:.0%} of which equal the "
        "plurality"
    )
    if not found:
        return message
    forecast = max(found, key=lambda each: each.merit).forecast
    return (
        f"{message}; the closest settings give {forecast.expected_answers[0]:.1f} expected "
        f"answers at epsilon {forecast.epsilon:g}, and {forecast.agreement[0]:.0%} of these "
        "answers equal the plurality"
    )
