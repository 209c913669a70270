"""Plans of a run before there are votes: a plan finds either teachers, ε or answers.

A goal is met if teachers with agreement in the middle of the range are expected to give enough
answers and pass the release test nine times in ten. (Answers are multiplied by the pass
probability.) Settings come from the public rule, and the forecast is that of all verbs. So a plan
agrees with the run whose command it prints.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.checks import check_delta, check_scale, check_whole
from pate_cli.core.errors import ParameterError, UnreachableError, UsageError
from pate_cli.core.said import Said
from pate_cli.core.words import DELTA, MechanismName
from pate_cli.disclosure.settings import Training
from pate_cli.disclosure.target import TargetPlan
from pate_cli.files.results import Result
from pate_cli.mechanisms.amounts import Amount
from pate_cli.planning import words
from pate_cli.planning.forecast import Forecast, forecast, worst_case_epsilon
from pate_cli.planning.rule import MOST_ROWS, SEARCHED_ROWS, choose, public_goal
from pate_cli.planning.search import (
    LEAST_CHANCE,
    Candidate,
    Tuning,
    keywords_of,
    least,
    line_of,
)
from pate_cli.planning.vote_model import PRIOR_ACCURACY, VoteModel, agreement_levels, made_up

# The start, the range and the precision of the search for teachers and for ε.
_START = {"teachers": 100.0, "epsilon": 2.0}
_RANGE = {"teachers": (3.0, 100_000.0), "epsilon": (0.01, 50.0)}
_PRECISION, _CORRECTION, _CORRECTIONS = 0.05, 1.03, 6
# Useful answers equal the plurality this often. The second number is the range of noise, as a share
# of the votes.
_SENSIBLE, _NOISE = 0.75, (0.01, 10.0)
# The number of rows in a plan's model, and how much more another mechanism must give to be
# mentioned.
_ROWS, _MORE = 1500, 1.05
# Fewer answers than this are too few to train a model.
_FEW = 10
_OTHER: Final = {
    MechanismName.CONFIDENT: MechanismName.GNMAX,
    MechanismName.GNMAX: MechanismName.CONFIDENT,
}


@dataclass(frozen=True)
class Question:
    """Public facts about a run; one of teachers, ε and answers may be left out.

    Attributes:
        classes: m ≥ 2, the classes of each label.
        teachers: τ ≥ 1, the votes of a query; None to be found.
        epsilon: target ε > 0, nats; None to be found.
        answers: wanted answers, ≥ 1; None to be found. If all three are given, the plan says
            whether they agree.
        queries: how many queries there are to ask; None for as many as needed.
        labels: the number of labels of a query; each is asked as a row of two classes.
        delta: δ in (0, 1).
        levels: how often a teacher is right on average, ascending; the whole range if left out.
        weights: votes of each teacher; empty if each has one.
        teachers_per_record: k, the most votes of a row that one record changes.
        training: how private the training of each teacher was; None if nobody states it.
        prior_weight: votes of a public prior, or their share of the teachers; None without one.
        prior_accuracy: how often the prior is right, in [0, 1].
        mechanism: confident, or gnmax, which answers every row.
    """

    classes: int
    teachers: int | None = None
    epsilon: float | None = None
    answers: int | None = None
    queries: int | None = None
    labels: int = 1
    delta: float = DELTA
    levels: tuple[float, ...] | None = None
    weights: tuple[int, ...] = ()
    teachers_per_record: int = 1
    training: Training | None = None
    prior_weight: Amount | None = None
    prior_accuracy: float = PRIOR_ACCURACY
    mechanism: MechanismName = MechanismName.CONFIDENT

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if self.epsilon is not None:
            check_scale("`target_epsilon`", self.epsilon)
        for name in ("teachers", "answers", "queries", "labels", "teachers_per_record"):
            if getattr(self, name) is not None:
                check_whole(f"`{name}`", getattr(self, name))
        if self.classes < 2:
            raise ParameterError(f"`classes` must be at least 2, got {self.classes}")
        if self.mechanism not in _OTHER:
            must = " or ".join(_OTHER)
            raise UsageError(f"`mechanism` of a plan must be {must}, got {self.mechanism}")
        if self.training is not None and self.teachers_per_record > 1 and not self.weights:
            raise UsageError("`teacher_epsilon` needs records that reach one teacher each")
        asked = {"teachers": self.teachers, "target_epsilon": self.epsilon, "answers": self.answers}
        missing = [f"`{name}`" for name, value in asked.items() if value is None]
        if len(missing) > 1:
            raise UsageError(f"{' and '.join(missing)} are left out; a plan finds one of them")
        if self.answers is not None and self.answers > self.rows:
            raise UsageError(f"{self.answers} answers are wanted, but there are {self.rows} rows")
        if not 0.0 <= self.prior_accuracy <= 1.0:
            raise ParameterError(f"`prior_accuracy` must be in [0, 1], got {self.prior_accuracy:g}")

    @property
    def unknown(self) -> str:
        """Return the name of the number to be found; answers if everything is given."""
        if self.teachers is None:
            return "teachers"
        return "epsilon" if self.epsilon is None else "answers"

    @property
    def rows(self) -> int:
        """Return how many rows there are to ask: one for each label of a query."""
        queries = MOST_ROWS // self.labels if self.queries is None else self.queries
        return queries * self.labels

    @property
    def trained(self) -> dict[str, float]:
        """Return the keywords that say how private the training of each teacher was, if any do."""
        if self.training is None:
            return {}
        beside = {"teacher_delta": self.training.delta} if self.training.delta else {}
        return {"teacher_epsilon": self.training.epsilon} | beside

    @property
    def voters(self) -> str:
        """Return the number of teachers, in words."""
        if self.weights:
            return f"{len(self.weights)} teachers of {self.teachers} votes"
        return f"{self.teachers} teachers"

    @property
    def target(self) -> TargetPlan:
        """Return the target, if ε is known."""
        if self.epsilon is None:
            raise TypeError("the target is not known")
        return TargetPlan.of(self.epsilon, delta=self.delta)

    @property
    def shown(self) -> tuple[float, ...]:
        """Return low, middle and high agreement, or fewer levels if there are fewer."""
        levels = self.levels or agreement_levels(None, self.classes)
        return tuple(dict.fromkeys((levels[0], levels[len(levels) // 2], levels[-1])))

    def with_value(self, value: float) -> Question:
        """Return the question with the missing number, rounded up."""
        if self.unknown == "teachers":
            return replace(self, teachers=math.ceil(value - 1e-9))
        return replace(self, epsilon=math.ceil(value * 1000.0 - 1e-6) / 1000.0)

    def votes(self, *, rows: int = SEARCHED_ROWS) -> VoteModel:
        """Return made-up ensembles of this shape, if the number of teachers is known."""
        teachers, prior = self.teachers or 1, self.prior_weight
        return made_up(
            teachers=teachers,
            classes=self.classes,
            levels=self.levels,
            rows=rows,
            teacher_weights=self.weights,
            teachers_per_record=self.teachers_per_record,
            votes_together=bool(self.weights),
            prior_accuracy=None if prior is None else self.prior_accuracy,
        ).with_prior_weight(0 if prior is None else round(prior.votes(teachers)))

    def rule(self, *, near: Tuning | None = None, quick: bool = False) -> Candidate:
        """Return the choice of the public rule, or the best choice near some settings."""
        goal = public_goal(self.votes(), self.target, available=self.rows)
        return choose(goal, self.mechanism, start=near, quick=quick)

    def facts(self) -> dict[str, Any]:
        """Return all facts in plain numbers; a number that was left out is None."""
        names = ("teachers", "classes", "labels", "queries", "answers")
        return {
            "mechanism": self.mechanism.value,
            **{name: getattr(self, name) for name in names},
            "target_epsilon": self.epsilon,
            "delta": self.delta,
            "agreement": [self.shown[0], self.shown[-1]],
            "teachers_per_record": self.teachers_per_record,
            **self.trained,
            "prior_accuracy": None if self.prior_weight is None else self.prior_accuracy,
        }


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """A run before the first vote. Public, because it looks at made-up teachers only.

    Attributes:
        question: the question, with the number that was left out.
        known: the same question with the number that was found.
        forecast: the forecast for made-up teachers with the settings and rows of the public rule.
        least_epsilon: about the smallest useful target, nats; see the function.
        other: a line with the command of the other mechanism, if it gives more.
    """

    question: Question
    known: Question
    forecast: Forecast
    least_epsilon: float = math.nan
    other: str | None = None

    @property
    def releasable(self) -> bool:
        """Return True, because a plan is made to be published."""
        return True

    @property
    def by_agreement(self) -> list[dict[str, float]]:
        """Return answers, agreement and pass probability at low, middle and high agreement."""
        return [self.forecast.at(level) for level in self.known.shown]

    @property
    def middle(self) -> dict[str, float]:
        """Return the row of `by_agreement` in the middle of the range."""
        return self.forecast.at(self.forecast.middle)

    @property
    def answers(self) -> float:
        """Return the expected answers in the middle of the range."""
        return self.middle["answers"]

    @property
    def record_epsilon(self) -> float | None:
        """Return ε for one training record at the target, nats; None unless training is private."""
        training, target = self.known.training, self.known.target
        return None if training is None else training.amplified(target.epsilon, target.delta)

    @property
    def likely(self) -> bool:
        """Return whether runs pass nine times in ten in the middle of the range."""
        return self.middle["pass_probability"] >= LEAST_CHANCE

    @property
    def meets_goal(self) -> bool:
        """Return whether the run is likely to pass and gives enough answers."""
        return self.likely and self.answers >= (self.question.answers or 0)

    @property
    def settings(self) -> dict[str, Any]:
        """Return keywords of `aggregate`, without groups and a prior, which are files.

        If `command` is None, these are the settings of a run that should not be started.
        """
        found, target = self.forecast, self.known.target
        return keywords_of(
            found.mechanism,
            queries=max(found.rows // self.known.labels, 1),
            delta=target.delta,
            target_epsilon=target.epsilon,
            refusal_epsilon=target.refusal_epsilon,
            **self.known.trained,
        )

    @property
    def command(self) -> str | None:
        """Return the `pate aggregate` line; None for a run that should not be started."""
        files = ["--groups", "GROUPS"] if self.known.weights else []
        files += ["--prior", "PRIOR"] if self.forecast.settings.prior_weight else []
        return line_of("VOTES", files, self.settings) if self.likely else None

    @property
    def sensible(self) -> bool:
        """Return whether answers are closer to the plurality than guesses are."""
        return self.middle["equal_to_plurality"] >= _SENSIBLE

    @property
    def frankly(self) -> str | None:
        """Return a warning if a run should not be started or gives few answers, else None."""
        known, got, wanted = self.known, math.floor(self.answers), self.question.answers
        least = f"the least target that is of use is about {self.least_epsilon:.3g}"
        if not self.likely:
            return (
                f"no settings that were tried pass {LEAST_CHANCE:.0%} of the time at epsilon "
                f"{known.epsilon:g}, not even with one query; {least}"
            )
        if not self.sensible:
            return (
                f"epsilon {known.epsilon:g} takes so much noise that answers are hardly better "
                f"than guesses; {least}"
            )
        carry = f"{known.voters} carry {got} answers at epsilon {known.epsilon:g}"
        if wanted is not None and not self.meets_goal:
            return f"{carry}, not {wanted}"
        return None if got >= min(_FEW, 0.25 * self.question.rows) else carry

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain numbers, for JSON."""
        found, known = self.forecast, self.known
        settings, rows = found.settings, self.by_agreement
        return {
            "schema_version": 1,
            "releasable": True,
            "asked": self.question.facts(),
            "found": self.question.unknown,
            "teachers": len(known.weights) or known.teachers,
            "votes": known.teachers,
            "target_epsilon": known.epsilon,
            **({} if self.record_epsilon is None else {"record_epsilon": self.record_epsilon}),
            "delta": known.delta,
            "answers": round(self.answers, 1),
            "meets_goal": self.meets_goal,
            "settings": {
                "mechanism": settings.mechanism_name.value,
                **settings.parameters,
                "prior_weight": settings.prior_weight,
                "queries": self.settings["max_queries"],
                "rows": found.rows,
                "refusal_epsilon": known.target.refusal_epsilon,
            },
            "by_agreement": [{name: round(row[name], 4) for name in row} for row in rows],
            "pass_probability": found.named_chances(),
            "untested_epsilon": found.worst_case,
            "least_epsilon": float(f"{self.least_epsilon:.3g}"),
            "frankly": self.frankly,
            "command": self.command,
            "other": self.other,
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return one row for low, middle and high agreement."""
        rows = self.by_agreement
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def said(self) -> Said:
        """Return its lines and tables."""
        return words.of_plan(self.to_dict())

    def plot(self, axes: Any = None, *, progress: Callable[[int], None] = lambda _: None) -> Any:
        """Draw answers against epsilon on matplotlib Axes, and return the Axes. Public.

        Args:
            axes: where to draw; new ones if left out. Needs the extra `plot`.
            progress: called with how many of the `POINTS` of the picture were computed.
        """
        from pate_cli.disclosure.pictures import draw_plan

        return draw_plan(self, points(self, progress), axes)

    def headline(self) -> str:
        """Return the plan in a few words."""
        known = self.known
        return (
            f"{known.voters}, epsilon {known.epsilon:g} at delta {known.delta:g}: about "
            f"{math.floor(self.answers)} answers of {self.forecast.rows}"
        )


def plan(question: Question) -> Plan:
    """Return the plan for a question; bisection finds the number that was left out.

    Raises:
        UnreachableError: no number of teachers, or no ε, reaches the goal.
    """
    known, value = question, 0.0
    if question.unknown != "answers":
        value = _needed(question)
        known = question.with_value(value)
    found = _planned(question, known)
    for _ in range(_CORRECTIONS if value else 0):
        if found.meets_goal:
            break
        # Quick costs decided so far; the accountant's own costs may need slightly more.
        value *= _CORRECTION
        known = question.with_value(value)
        found = _planned(question, known)
    otherwise, line = replace(known, mechanism=_OTHER[question.mechanism]), None
    rule = otherwise.rule(quick=True)
    if found.sensible and rule.likely and rule.answers > _MORE * found.answers:
        other = _planned(question, otherwise)
        if other.likely and other.answers > _MORE * found.answers:
            name = otherwise.mechanism.value
            line = f"{name} would give about {other.answers:.3g}: {other.command}"
    return replace(found, least_epsilon=least_epsilon(known), other=line)


def _planned(question: Question, known: Question) -> Plan:
    """Return the plan with the settings and the number of whole queries of the public rule."""
    rule = known.rule()
    rows = max(rule.rows // question.labels * question.labels, min(question.labels, known.rows))
    votes = known.votes(rows=_ROWS)
    return Plan(
        question, known, forecast(votes, rule.mechanism, known.target, rows=rows, rough=True)
    )


def _needed(question: Question) -> float:
    """Return the smallest number of teachers, or ε, that gives enough answers."""
    name, wanted = question.unknown, question.answers or 1

    def enough(value: float) -> bool:
        found = question.with_value(value).rule(quick=True)
        return found.likely and found.answers >= wanted

    try:
        return least(enough, start=_START[name], within=_RANGE[name], precision=_PRECISION)
    except UnreachableError:
        most = _RANGE[name][1]
        unit = f"{most:,.0f} teachers" if name == "teachers" else f"epsilon {most:g}"
        raise UnreachableError(f"even {unit} cannot give {wanted} answers") from None


def least_epsilon(known: Question) -> float:
    """Return about the smallest target, nats, at which an answer is the plurality 3 times in 4.

    At this target the worst case of one answer of gnmax is within ε, so that no test can fail. A
    smaller target needs more noise, and labels are then hardly better than guesses. The target
    falls with more teachers and does not depend on the number of queries.
    """
    votes = known.votes()
    weights = votes.row_weights[votes.middle].mean(axis=0)

    def too_noisy(share: float) -> bool:
        settings = Tuning(None, None, share * votes.most_votes, votes.prior_weight)
        return bool(weights @ votes.chances(votes.mechanism(settings))[1] < _SENSIBLE)

    share = least(too_noisy, start=0.2, within=_NOISE, precision=0.01)
    settings = Tuning(None, None, share * votes.most_votes, votes.prior_weight)
    return worst_case_epsilon(votes.mechanism(settings), rows=1, delta=known.delta)


def points(
    found: Plan, progress: Callable[[int], None] = lambda _done: None
) -> list[tuple[int, float, tuple[float, ...]]]:
    """Return teachers, ε and expected answers by level around a plan, for a picture.

    Args:
        found: the plan.
        progress: called with the number of points that were computed.
    """
    known, near, shown = found.known, found.forecast.settings, []
    teachers, epsilon = known.teachers or 1, known.epsilon or 1.0
    for share in (1.0,) if known.weights else (0.5, 0.7, 1.0, 1.4, 2.0):
        number = max(round(teachers * share), 2)
        start = near.scaled(number / teachers)
        for by in np.geomspace(0.5, 2.0, 7).tolist():
            at = replace(known, teachers=number, epsilon=round(epsilon * by, 4))
            answers = at.rule(near=start, quick=True).by_level
            shown.append((number, at.epsilon or 1.0, tuple(answers[each] for each in known.shown)))
            progress(1)
    return shown


POINTS: Final = 35
"""The largest number of points of a picture."""
