"""The search for settings on votes that are there: coarse on the way, exact at the end.

SECRET unless the votes are public or made up: settings chosen on votes tell about them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pate_cli.core.errors import UnreachableError
from pate_cli.core.words import MechanismName, ReleaseKind
from pate_cli.planning.goal import Found, Goal, Pricing
from pate_cli.planning.sanitized_votes import SanitizedVotes
from pate_cli.planning.search import Candidate, Search
from pate_cli.planning.settings import Settings
from pate_cli.planning.tested_votes import TestedVotes
from pate_cli.planning.vote_model import VoteModel
from pate_cli.planning.worst_case import CappedVotes

_PRICINGS: Mapping[ReleaseKind, Callable[[VoteModel, Goal], Pricing]] = {
    ReleaseKind.TARGET: TestedVotes,
    ReleaseKind.NONE: CappedVotes,
    ReleaseKind.UPPER: SanitizedVotes,
}
# How often a search is corrected by exact costs, how often each halves its steps, and how far below
# the best settings may be that are priced, too.
_ROUNDS, _HALVINGS, _NEAR = 3, 4, 0.25
# A round that gains less than this, in logarithms, is the last.
_GAIN = 0.002
_STARTS, _LATER_CLIMBS = 4, 2


@dataclass(frozen=True, eq=False)
class Tuned:
    """The best settings that a search found. SECRET if the votes are.

    Attributes:
        goal: what was sought.
        best: the best settings.
        others: the best of other mechanisms and releases, where those were looked at.
        complete: False where an interruption ended the search.
        looked_at: how many settings were looked at.
    """

    goal: Goal
    best: Found
    others: tuple[Found, ...]
    complete: bool
    looked_at: int


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
        self._found: dict[Settings, Found] = {}

    def run(self) -> None:
        """Search until a round gains nothing, then price the best with care."""
        starts, last = None, -float("inf")
        for _ in range(_ROUNDS):
            search = self._search = self._new_search()
            climbs = self._pricing.climbs if starts is None else _LATER_CLIMBS
            search.run(starts or self._starts(search), climbs=climbs, halvings=_HALVINGS)
            self._price(self._finalists(search))
            if not self._found:
                return
            ranked = sorted(self._found.values(), key=self._rank)
            best, starts = ranked[-1], [each.forecast.settings for each in ranked[-_STARTS:]]
            if best.merit <= last + _GAIN:
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
        given = {name: value for name, value in self._given.items() if name != "prior_weight"}
        return Search(
            self._pricing.look,
            votes=self._votes.teachers,
            given=given,
            weights=self._votes.guesses is not None,
            progress=self._count,
        )

    def _starts(self, search: Search) -> list[Settings]:
        return search.starts(
            tested=self._mechanism is not MechanismName.GNMAX,
            untested=self._mechanism is not MechanismName.CONFIDENT,
        )

    def _count(self, looked_at: int) -> None:
        self.looked_at += looked_at
        self._progress(looked_at)

    def _finalists(self, search: Search) -> list[Candidate]:
        """The best candidates of either mechanism that have no exact price yet."""
        ranked = search.ranked()
        best: dict[MechanismName, list[Candidate]] = {}
        for each in ranked:
            if each.settings not in self._found and each.merit > ranked[0].merit - _NEAR:
                best.setdefault(each.settings.mechanism_name, []).append(each)
        return [each for some in best.values() for each in some[: self._pricing.finalists]]


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
