"""What a run may give before there are votes: of teachers, ε and answers, the one left out.

A goal is met where teachers whose agreement is in the middle of the range are expected to give as
many answers, counted by the probability that the release test passes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from pate_cli.core.errors import UnreachableError, UsageError
from pate_cli.core.words import DELTA, Bound
from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.bisection import least
from pate_cli.planning.command import aggregate_command
from pate_cli.planning.forecast import Forecast, forecast
from pate_cli.planning.rule import MOST_ROWS, SEARCHED_ROWS, Rule, choose, public_votes
from pate_cli.planning.settings import Settings
from pate_cli.planning.vote_model import PRIOR_ACCURACY, ROWS, VoteModel

# Where the search for teachers and for ε begins, and its range.
_START = {"teachers": 100.0, "epsilon": 2.0}
_RANGE = {"teachers": (3.0, 100_000.0), "epsilon": (0.01, 50.0)}
_PRECISION, _CORRECTIONS, _LEAST_CHANCE = 0.03, 6, 0.9


@dataclass(frozen=True)
class Question:
    """Public facts about a run; of teachers, ε and answers one may be left out.

    Attributes:
        classes: number of classes.
        teachers: number of teachers, each with one vote; None to be found.
        epsilon: target; None to be found.
        answers: answers wanted; None to be found.
        queries: how many queries there are; None for as many as it takes.
        delta: δ.
        levels: mean agreement of the teachers, from hard to easy; None where nothing is known.
        teachers_per_record: how many votes of a query one record may move.
        prior_weight: votes of a public prior.
        prior_accuracy: how often the prior is right.
        tested, untested: which mechanisms may be chosen, Confident and GNMax.
    """

    classes: int
    teachers: int | None = None
    epsilon: float | None = None
    answers: int | None = None
    queries: int | None = None
    delta: float = DELTA
    levels: tuple[float, ...] | None = None
    teachers_per_record: int = 1
    prior_weight: int = 0
    prior_accuracy: float = PRIOR_ACCURACY
    tested: bool = True
    untested: bool = True

    @property
    def unknown(self) -> str:
        """What is to be found; answers where everything is given."""
        missing = [
            name for name in ("teachers", "epsilon", "answers") if getattr(self, name) is None
        ]
        if len(missing) > 1:
            raise UsageError(f"`{missing[0]}` and `{missing[1]}` are left out; give one of them")
        return missing[0] if missing else "answers"

    @property
    def available(self) -> int:
        """How many queries there are to ask."""
        return MOST_ROWS if self.queries is None else self.queries

    @property
    def target(self) -> TargetPlan:
        """The target, once ε is known."""
        if self.epsilon is None:
            raise TypeError("the target is not known")
        return TargetPlan.of(self.epsilon, delta=self.delta)

    def votes(self, *, rows: int = SEARCHED_ROWS) -> VoteModel:
        """Made-up ensembles of this shape, once the teachers are known."""
        found = public_votes(
            self.teachers or 1,
            self.classes,
            levels=self.levels,
            teachers_per_record=self.teachers_per_record,
            prior_accuracy=self.prior_accuracy if self.prior_weight else None,
            rows=rows,
        )
        return found.with_prior_weight(self.prior_weight)

    def with_value(self, value: float) -> Question:
        """The question with what was left out."""
        if self.unknown == "teachers":
            return replace(self, teachers=math.ceil(value - 1e-9))
        return replace(self, epsilon=math.ceil(value * 1000.0 - 1e-6) / 1000.0)

    def rule(self, near: Settings | None = None) -> Rule:
        """What the public rule chooses, or what is best near some settings."""
        return choose(
            self.votes(),
            self.target,
            available=self.available,
            tested=self.tested,
            untested=self.untested,
            starts=None if near is None else [near],
        )


@dataclass(frozen=True, eq=False)
class Plan:
    """A run before the first vote. Public: it looked at made-up teachers only.

    Attributes:
        question: what was asked, with what was left out filled in.
        wanted: how many answers are wanted; None where that was the question.
        forecast: what made-up teachers would give.
    """

    question: Question
    wanted: int | None
    forecast: Forecast

    @property
    def answers(self) -> float:
        """Expected answers at the middle level of agreement."""
        return self.forecast.at(self.forecast.middle)["answers"]

    @property
    def meets_goal(self) -> bool:
        """Whether the run is likely to pass, and gives as many answers as are wanted."""
        likely = self.forecast.at(self.forecast.middle)["pass_probability"] >= _LEAST_CHANCE
        return likely and self.answers >= (self.wanted or 0)

    @property
    def command(self) -> str | None:
        """The `pate aggregate` line that runs it; None for a run that should not be started."""
        found = self.forecast
        if not self.meets_goal:
            return None
        return aggregate_command(found.settings, found.rows, self.question.target)

    def table(self) -> dict[str, list[float]]:
        """Columns of a plain table: a row for each level of agreement."""
        rows = [self.forecast.at(level) for level in sorted(set(self.forecast.levels))]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def lines(self) -> list[str]:
        """The plan in sentences."""
        asked, found = self.question, self.forecast
        lines = [
            f"{asked.teachers} teachers, epsilon {asked.epsilon:g} at delta {asked.delta:g}: about "
            f"{math.floor(self.answers)} answers of {found.rows} queries"
        ]
        for level in sorted(set(found.levels)):
            row = found.at(level)
            lines.append(
                f"where teachers are right {level:.0%} of the time: {row['answers']:.0f} answers, "
                f"{row['equal_to_plurality']:.0%} equal the plurality; passes with probability "
                f"{row['pass_probability']:.1%}"
            )
        if self.command is None:
            return [*lines, "no settings are likely to pass and give as many answers"]
        return [*lines, self.command]


def plan(question: Question, *, bound: Bound = Bound.AUTO) -> Plan:
    """The plan for a question, with what was left out found by bisection.

    Raises:
        UnreachableError: no number of teachers, or no ε, reaches the goal.
    """
    wanted, known, value = question.answers, question, 0.0
    if question.unknown != "answers":
        name = question.unknown
        near: list[tuple[Settings, float]] = []

        def enough(value: float) -> bool:
            asked = question.with_value(value)
            start, at = near[-1] if near else (None, value)
            if start is not None and name == "teachers":
                start = start.times(**dict.fromkeys(start.parameters, value / at))
            found = asked.rule(start)
            near.append((found.settings, value))
            return found.answers >= (wanted or 1)

        low, high = _RANGE[name]
        value = least(enough, start=_START[name], low=low, high=high, precision=_PRECISION)
        known = question.with_value(value)
    found = _planned(known, wanted, bound)
    for _ in range(_CORRECTIONS if question.unknown != "answers" else 0):
        if found.meets_goal:
            break
        # Quick costs decided so far; by the accountant's own it takes a little more.
        value *= 1.0 + _PRECISION
        found = _planned(question.with_value(value), wanted, bound)
    return found


def _planned(known: Question, wanted: int | None, bound: Bound) -> Plan:
    """The plan of a question in which nothing is left out but the answers."""
    rule = known.rule()
    if rule.rows < 1:
        raise UnreachableError(f"epsilon {known.epsilon:g} is too small for a single query")
    votes = known.votes(rows=ROWS)
    found = forecast(
        votes, votes.mechanism(rule.settings), known.target, rows=rule.rows, bound=bound
    )
    return Plan(known, wanted, found)
