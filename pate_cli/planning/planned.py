"""What a plan says: settings, and what teachers who agree more or less would give."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.conversion import round_up
from pate_cli.core.dataclass import dataclass
from pate_cli.disclosure.target import TargetPlan
from pate_cli.disclosure.worst_case import Spending, data_independent_cost
from pate_cli.files.results import Result
from pate_cli.planning.made_up_rule import Chosen
from pate_cli.planning.printed import aggregate_command
from pate_cli.planning.question import Question

# Fewer answers train nothing.
_FEW = 10


@dataclass(frozen=True)
class Point:
    """Expected answers of so many teachers at a target, at the levels that a plan shows."""

    teachers: int
    epsilon: float
    answers: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class Planned(Result):
    """A run before the first vote. Public: it looked at made-up teachers only.

    Attributes:
        question: what was asked, with what was left out.
        known: the same with what was found.
        chosen: settings, rows, and what made-up teachers would give.
        more: where only few answers are to be had, so many teachers and what they would carry.
        needed: what it takes at some levels of agreement, of what was left out; about, and None
            where nothing is enough.
    """

    question: Question
    known: Question
    chosen: Chosen
    more: tuple[int, float] | None = None
    needed: Mapping[float, float | None] = field(default_factory=dict)

    @property
    def releasable(self) -> bool:
        """Made to be published."""
        return True

    @property
    def levels(self) -> tuple[float, ...]:
        """Low, middle and high agreement; one where there is no range."""
        levels = self.question.agreement.levels
        return tuple(dict.fromkeys((levels[0], levels[len(levels) // 2], levels[-1])))

    @property
    def queries(self) -> int:
        """How many whole queries are asked."""
        return max(self.chosen.queries // self.question.labels, 1)

    @property
    def answers(self) -> float:
        """Expected answers in the middle of the range."""
        return self.by_agreement[len(self.by_agreement) // 2]["answers"]

    @cached_property
    def by_agreement(self) -> tuple[dict[str, float], ...]:
        """Answers, agreement and chances at the levels that are shown."""
        return tuple(self.chosen.forecast.at(level) for level in self.levels)

    @property
    def target(self) -> TargetPlan:
        """What is promised."""
        return TargetPlan.of(self.known.epsilon or 1.0, delta=self.known.delta)

    @cached_property
    def untested_epsilon(self) -> float:
        """ε for all votes of the same rows without a target."""
        rows, sample = self.chosen.queries, self.known.ensembles().sample
        spent = [Spending(sample.mechanism(self.chosen.setting), rows, rows)]
        return round_up(data_independent_cost(spent, delta=self.known.delta, plan=None).epsilon)

    @property
    def command(self) -> str:
        """The `pate aggregate` line that runs it."""
        words: list[str] = []
        if self.known.teachers_per_record != 1 and not self.known.weights:
            words += ["--teachers-per-record", str(self.known.teachers_per_record)]
        if self.known.weights:
            words += ["--groups", "GROUPS"]
        return aggregate_command(
            self.chosen.setting,
            None,
            queries=self.queries,
            max_answers=None,
            delta=self.known.delta,
            words=words,
            target=self.target,
        )

    @property
    def meets_goal(self) -> bool:
        """Whether as many answers are expected as are wanted."""
        return self.answers >= (self.question.answers or 0)

    def frankly(self) -> str | None:
        """What to say where it is hopeless, or nearly so."""
        known, got = self.known, math.floor(self.answers)
        carried = f"{known.voters} carry {got} answers at epsilon {known.epsilon:g}"
        wanted = self.question.answers
        if wanted is not None and not self.meets_goal:
            carried += f", not {wanted}"
        elif self.more is None and got >= min(_FEW, 0.25 * self.question.rows):
            return None
        if self.more is None:
            return carried
        return f"{carried}; {self.more[0]} would carry {math.floor(self.more[1])}"

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain numbers, for JSON."""
        setting, forecast = self.chosen.setting, self.chosen.forecast
        return {
            "schema_version": 1,
            "releasable": True,
            "asked": self.question.facts(),
            "found": self.question.unknown,
            "teachers": len(self.known.weights) or self.known.teachers,
            "votes": self.known.teachers,
            "target_epsilon": self.known.epsilon,
            "delta": self.known.delta,
            "answers": round(self.answers, 1),
            "meets_goal": self.meets_goal,
            "settings": {
                "mechanism": setting.name.value,
                **setting.parameters,
                "prior_weight": setting.prior_weight,
                "queries": self.queries,
                "rows": self.chosen.queries,
                "refusal_epsilon": self.target.refusal_epsilon,
            },
            "by_agreement": [
                {name: round(value, 4) for name, value in row.items()} for row in self.by_agreement
            ],
            "pass_probability": forecast.named(),
            "untested_epsilon": self.untested_epsilon,
            "needed": [
                {"agreement": level, self.question.unknown: value}
                for level, value in self.needed.items()
            ],
            "more_teachers": None
            if self.more is None
            else {"teachers": self.more[0], "answers": round(self.more[1], 1)},
            "frankly": self.frankly(),
            "command": self.command,
        }

    @property
    def settings(self) -> dict[str, Any]:
        """As keywords of `aggregate`; groups and a prior, which are files, are not among them."""
        setting, known = self.chosen.setting, self.known
        found: dict[str, Any] = {
            "mechanism": setting.name,
            **setting.parameters,
            "max_queries": self.queries,
            "target_epsilon": known.epsilon,
            "delta": known.delta,
        }
        if setting.prior_weight:
            found["prior_weight"] = setting.prior_weight
        if known.teachers_per_record != 1 and not known.weights:
            found["teachers_per_record"] = known.teachers_per_record
        return found

    def columns(self) -> dict[str, NDArray[Any]]:
        """By level of agreement."""
        names = self.by_agreement[0]
        return {name: np.array([row[name] for row in self.by_agreement]) for name in names}

    def headline(self) -> str:
        """The plan in a few words."""
        known = self.known
        return (
            f"{known.voters}, epsilon {known.epsilon:g} at delta {known.delta:g}: about "
            f"{math.floor(self.answers)} answers of {self.chosen.queries}"
        )
