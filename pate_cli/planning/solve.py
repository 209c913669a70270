"""Finding what was left out: teachers for a goal, ε for a goal, answers for a budget.

A goal is met where teachers whose agreement is in the middle of the range are expected to give so
many answers, by the chance that they pass. The settings are those of the rule, for the whole range.
While a number is sought they are looked for near those of the last guess only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from typing import Final

import numpy as np

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import UnreachableError
from pate_cli.core.words import MechanismName
from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.made_up_rule import Chosen
from pate_cli.planning.outlook import settings_for
from pate_cli.planning.planned import Planned, Point
from pate_cli.planning.question import Question
from pate_cli.planning.setting import Setting

# Where a search begins, and how far it goes.
_START: Final = {"teachers": 100.0, "epsilon": 2.0}
_RANGE: Final = {"teachers": (3.0, 100_000.0), "epsilon": (0.05, 50.0)}
_CLOSE = 1.03
_MOST_GUESSES, _TRIED_BELOW, _MOST_GROWTH = 30, 1, 1.5
# Below so many answers somebody is told how many teachers would carry more.
_FEW, _MORE_TEACHERS = 20, (250, 1000, 5000)
# Of the picture: how many times the teachers and the ε that were found.
_FACTORS: Final = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8)
POINTS: Final = len(_FACTORS) ** 2
"""How often `points` calls its progress, at most."""


def solve(question: Question) -> Planned:
    """What was left out, and the settings that go with it.

    Raises:
        UnreachableError: no number of teachers, or no ε, reaches the goal.
    """
    seeker = _Seeker(question)
    if question.epsilon is not None:
        TargetPlan.of(question.epsilon, delta=question.delta).check_reachable()
    if question.unknown == "answers":
        chosen = seeker.choose(question)
        return Planned(question, question, chosen, seeker.more(question, chosen))
    found, ends = seeker.least()
    chosen = seeker.choose(found)
    # What is near the last guess may be a little better, or worse, than what the rule settles on.
    while not _enough(found, chosen):
        missing = (question.answers or 1) / max(planned_middle(found, chosen), 1e-3)
        found = seeker.at(seeker.value(found) * max(_CLOSE, min(missing, _MOST_GROWTH)))
        chosen = seeker.choose(found)
    for _ in range(_TRIED_BELOW):
        less = seeker.at(seeker.value(found) / _CLOSE**3)
        other = seeker.choose(less)
        if not _enough(less, other):
            break
        found, chosen = less, other
    levels, value = question.agreement.levels, seeker.value(found)
    ends[levels[0]] = None if ends[levels[0]] is None else max(ends[levels[0]] or 0.0, value)
    ends[levels[-1]] = min(ends[levels[-1]] or value, value)
    ends[levels[len(levels) // 2]] = value
    return Planned(question, found, chosen, seeker.more(found, chosen), ends)


def points(planned: Planned, progress: Callable[[int], None] = lambda _done: None) -> list[Point]:
    """Expected answers around what was planned, for a picture: teachers and ε varied.

    Args:
        planned: what was found.
        progress: called with 1 after every point, `POINTS` of them at most.
    """
    known, found = planned.known, []
    numbers = (1.0,) if known.weights else _FACTORS
    for of_epsilon in _FACTORS:
        epsilon = float(f"{(known.epsilon or 1.0) * of_epsilon:.3g}")
        at = known.known(epsilon=epsilon, answers=None)
        # The rule for the teachers of the plan; near what it takes for more of them, and for fewer.
        seeker = _Seeker(planned.question)
        chosen = planned.chosen if of_epsilon == 1.0 else seeker.choose(at)
        for of_teachers in numbers:
            teachers = max(round((known.teachers or 1) * of_teachers), 3)
            here = chosen
            if of_teachers != 1.0:
                seeker.setting, seeker.teachers = chosen.setting, known.teachers or 1
                here = seeker.near(at.known(teachers=teachers))
            answers = tuple(here.forecast.at(level)["answers"] for level in planned.levels)
            found.append(Point(teachers, epsilon, answers))
            progress(1)
    return found


def planned_middle(question: Question, chosen: Chosen) -> float:
    """Expected answers in the middle of the range."""
    levels = question.agreement.levels
    return chosen.forecast.at(levels[len(levels) // 2])["answers"]


def _enough(question: Question, chosen: Chosen) -> bool:
    return planned_middle(question, chosen) >= (question.answers or 1)


@dataclass
class _Seeker:
    """Settings of the rule for one question after another, near the last ones if that will do.

    Attributes:
        question: what was asked.
        setting, teachers: good settings for so many teachers, once they are known.
    """

    question: Question
    setting: Setting | None = None
    teachers: int = 1
    seen: dict[float, tuple[float, ...]] = field(default_factory=dict)

    def choose(self, question: Question) -> Chosen:
        """By the whole rule."""
        return self._chosen(question, None)

    def near(self, question: Question) -> Chosen:
        """Near the last settings, in proportion to the teachers; by the whole rule at first."""
        teachers, start = question.teachers or 1, self.setting
        if start is not None:
            start = start.scaled(teachers / self.teachers)
        chosen = self._chosen(question, start)
        self.setting, self.teachers = chosen.setting, teachers
        return chosen

    def least(self) -> tuple[Question, dict[float, float | None]]:
        """The least teachers, or ε, for the goal; and what it takes at each level of agreement."""
        name, levels = self.question.unknown, self.question.agreement.levels
        low, high = _RANGE[name]
        ends = (0, len(levels) // 2, len(levels) - 1)
        value = _START[name]
        while value < high and not self._reached(value, ends[0]):
            value *= 2.0
        if not self._reached(value, ends[1]):
            raise UnreachableError(self._why_not())
        while value > low and self._reached(value, ends[2]):
            value /= 2.0
        below, above = self._bracket(ends[1])
        while above > below * _CLOSE and len(self.seen) < _MOST_GUESSES:
            self._reached(math.sqrt(below * above), ends[1])
            below, above = self._bracket(ends[1])
        return self.at(above), {levels[end]: self._needed(end) for end in ends}

    def more(self, question: Question, chosen: Chosen) -> tuple[int, float] | None:
        """Where only few answers are to be had: so many teachers, and what they would carry."""
        got, few = planned_middle(question, chosen), min(_FEW, 0.5 * question.rows)
        wanted = 0.5 * (self.question.answers or 0)
        if got >= max(few, wanted) or question.weights or self.question.unknown != "answers":
            return None
        self.setting, self.teachers = chosen.setting, question.teachers or 1
        for teachers in _MORE_TEACHERS:
            if teachers >= 2 * self.teachers:
                more = question.known(teachers=teachers, answers=None)
                answers = planned_middle(more, self.choose(more))
                if answers >= max(4.0 * got, few):
                    return teachers, answers
        return None

    def value(self, question: Question) -> float:
        """What was left out, once it is known."""
        return float(getattr(question, self.question.unknown))

    def at(self, value: float) -> Question:
        """The question with what was left out."""
        if self.question.unknown == "teachers":
            return self.question.known(teachers=math.ceil(value - 1e-9))
        return self.question.known(epsilon=math.ceil(value * 1000.0 - 1e-6) / 1000.0)

    def _reached(self, value: float, level: int) -> bool:
        """Whether so many teachers, or such an ε, meet the goal at a level of agreement."""
        value = self.value(self.at(value))
        if value not in self.seen:
            forecast = self.near(self.at(value)).forecast
            levels = self.question.agreement.levels
            self.seen[value] = tuple(forecast.at(level)["answers"] for level in levels)
        return self.seen[value][level] >= (self.question.answers or 1)

    def _bracket(self, level: int) -> tuple[float, float]:
        """The values next to where the goal is met, as far as they are known."""
        enough = [value for value in self.seen if self._reached(value, level)]
        above = min(enough, default=_RANGE[self.question.unknown][1])
        less = [value for value in self.seen if value < above]
        return max(less, default=above), above

    def _needed(self, level: int) -> float | None:
        """About what it takes at a level; None where nothing that was tried is enough."""
        values = np.array(sorted(self.seen))
        answers = np.array([self.seen[value][level] for value in values.tolist()])
        goal = self.question.answers or 1
        if answers.max() < goal:
            return None
        place = int(np.argmax(answers >= goal))
        if place == 0:
            return float(values[0])
        low, high = np.maximum(answers[place - 1 : place + 1], 1e-3)
        share = math.log(goal / low) / max(math.log(high / low), 1e-9)
        needed = float(values[place - 1] * (values[place] / values[place - 1]) ** share)
        return self.value(self.at(needed))

    def _chosen(self, question: Question, start: Setting | None) -> Chosen:
        if question.epsilon is None:
            raise TypeError("the target is not known")
        return settings_for(
            question.ensembles(),
            TargetPlan.of(question.epsilon, delta=question.delta),
            available=question.rows,
            tested=question.mechanism is MechanismName.CONFIDENT,
            start=start,
        )

    def _why_not(self) -> str:
        question, last = self.question, max(self.seen)
        most = self.seen[last][len(question.agreement.levels) // 2]
        what = "teachers" if question.unknown == "teachers" else "epsilon"
        return (
            f"{question.answers} answers are out of reach: {last:g} {what} carry about "
            f"{math.floor(most)} of {question.rows} rows; ask more queries, or for fewer answers"
        )
