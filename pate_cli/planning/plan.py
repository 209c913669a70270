"""Plans of a run before there are votes: a plan finds the number of teachers, ε or the answers.

A plan meets its goal if a run at the middle level of agreement is expected to give enough answers
and passes the release test nine times in ten. An expected number of answers is multiplied by the
pass probability. The module `rule` chooses the settings, as for a run with a target. The plan uses
the forecast that a run makes before it starts (`forecast`). A plan agrees with the run whose
command it prints, because plans and runs use the same function `forecast`.

A plan for many voters with few votes each (`plan_voters`) finds noise and queries, and how often
labels are right. The privacy cost depends on the largest number of votes of one voter, and not on
the number of voters. With more voters, there can be more queries, or more votes on each query. The
plan assumes that voters are right independently of each other, that all wrong classes are equally
likely, and that votes are spread evenly over the queries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.few_votes import FewVotes
from pate_cli.core.checks import check_scale, check_whole
from pate_cli.core.errors import ParameterError, UnreachableError, UsageError
from pate_cli.core.said import Line, Pairs, Said
from pate_cli.core.words import DELTA, MechanismName
from pate_cli.disclosure.cost import shown
from pate_cli.disclosure.settings import Training
from pate_cli.disclosure.target import TargetPlan
from pate_cli.files.results import Result
from pate_cli.mechanisms import Amount
from pate_cli.mechanisms.gnmax import GNMax
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
    middle_of,
    three_digits,
)
from pate_cli.planning.vote_model import (
    PRIOR_ACCURACY,
    PUBLIC_SEED,
    VoteModel,
    agreement_levels,
    made_up,
    win_chance,
)

# The start, the range and the precision of the search for teachers and for ε.
_START = {"teachers": 100.0, "epsilon": 2.0}
_RANGE = {"teachers": (3.0, 100_000.0), "epsilon": (0.01, 50.0)}
_PRECISION, _CORRECTION, _CORRECTIONS = 0.05, 1.03, 6
# Answers are useful if 75% of them equal the plurality. The second value is the range in which
# `least_epsilon` searches for noise, as shares of the votes.
_SENSIBLE, _NOISE = 0.75, (0.01, 10.0)
# The number of rows of the made-up model of a plan. Another mechanism is mentioned if it gives 1.05
# times as many answers.
_ROWS, _MORE = 1500, 1.05
# With fewer answers than this number, a plan warns that they are few.
_FEW = 10
_OTHER: Final = {
    MechanismName.CONFIDENT: MechanismName.GNMAX,
    MechanismName.GNMAX: MechanismName.CONFIDENT,
}


@dataclass(frozen=True)
class Question:
    """Public facts about a run, from which a plan finds the number of teachers, ε or the answers.

    Attributes:
        classes: m ≥ 2, the number of classes of a label.
        teachers: τ ≥ 1, the number of votes on a query; None if the plan must find it.
        epsilon: the target ε > 0, nats; None if the plan must find it.
        answers: the wanted number of answers, ≥ 1; None if the plan must find it. If
            `answers`, `teachers` and `epsilon` are all given, the plan says whether the run can
            give the wanted number of answers.
        queries: how many queries there are to ask; None for any number.
        labels: how many labels a query has; each label is asked as a row of two classes.
        delta: δ in (0, 1).
        levels: mean probabilities that a teacher is right, ascending; None for the default levels.
        weights: the number of votes of each teacher; empty if each teacher has one vote.
        teachers_per_record: k, the largest number of votes on a row that one record changes.
        training: how private the training of each teacher was; None if this is unknown.
        prior_weight: how many votes a guess of the public prior counts for, as a number of votes or
            as a share of the number of teachers; None without a prior.
        prior_accuracy: how often the prior is right, in [0, 1].
        mechanism: confident or gnmax; gnmax answers every row.
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
            raise UsageError(
                "`teacher_epsilon` cannot be used if one record reached several teachers "
                "(`teachers_per_record`); leave out `teacher_epsilon`"
            )
        asked = {"teachers": self.teachers, "target_epsilon": self.epsilon, "answers": self.answers}
        missing = [f"`{name}`" for name, value in asked.items() if value is None]
        if len(missing) > 1:
            raise UsageError(
                f"{' and '.join(missing)} are missing, but a plan can find only one "
                "number; give two of `teachers`, `target_epsilon` and `answers`"
            )
        if self.answers is not None and self.answers > self.rows:
            raise UsageError(
                f"`answers` is {self.answers}, but there are only {self.rows} rows to label"
            )
        if not 0.0 <= self.prior_accuracy <= 1.0:
            raise ParameterError(f"`prior_accuracy` must be in [0, 1], got {self.prior_accuracy:g}")

    @property
    def unknown(self) -> str:
        """Return which number the plan must find: `teachers`, `epsilon` or `answers`.

        If the question gives all three numbers, the result is `answers`.
        """
        if self.teachers is None:
            return "teachers"
        return "epsilon" if self.epsilon is None else "answers"

    @property
    def rows(self) -> int:
        """Return how many rows there are to ask; a query has one row for each of its labels."""
        queries = MOST_ROWS // self.labels if self.queries is None else self.queries
        return queries * self.labels

    @property
    def trained(self) -> dict[str, float]:
        """Return the keywords of `aggregate` that say how private the training was, if known."""
        if self.training is None:
            return {}
        beside = {"teacher_delta": self.training.delta} if self.training.delta else {}
        return {"teacher_epsilon": self.training.epsilon} | beside

    @property
    def voters(self) -> str:
        """Return the number of teachers, and of their votes if some have several, in words."""
        if self.weights:
            return f"{len(self.weights)} teachers of {self.teachers} votes"
        return f"{self.teachers} teachers"

    @property
    def target(self) -> TargetPlan:
        """Return the target; raise TypeError if ε is not known."""
        if self.epsilon is None:
            raise TypeError("the target is not known")
        return TargetPlan.of(self.epsilon, delta=self.delta)

    @property
    def shown(self) -> tuple[float, ...]:
        """Return the levels of agreement that a plan shows: low, middle and high."""
        levels = self.levels or agreement_levels(None, self.classes)
        return tuple(dict.fromkeys((levels[0], middle_of(levels), levels[-1])))

    def with_value(self, value: float) -> Question:
        """Return the question with a missing number of teachers or ε filled in, rounded up."""
        if self.unknown == "teachers":
            return replace(self, teachers=math.ceil(value - 1e-9))
        return replace(self, epsilon=math.ceil(value * 1000.0 - 1e-6) / 1000.0)

    def votes(self, *, rows: int = SEARCHED_ROWS) -> VoteModel:
        """Return made-up votes for the teachers and classes of the question."""
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
        """Return the settings and rows that the public rule chooses.

        Args:
            near: settings to start from; None to start from settings of the whole usual range.
            quick: whether the search for settings stops before it tries smaller steps.
        """
        goal = public_goal(self.votes(), self.target, available=self.rows)
        return choose(goal, self.mechanism, start=near, quick=quick)

    def facts(self) -> dict[str, Any]:
        """Return all facts, ready for JSON; a number that the plan must find is None."""
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
    """The plan of a run before there are votes. The plan is public, because no votes are used.

    Attributes:
        question: the facts as they were given.
        known: the facts of the question, in which the plan has filled in the number of teachers or
            ε if it was missing.
        forecast: the forecast for made-up teachers, with the settings and rows of the public rule.
        least_epsilon: about the smallest useful target, nats, from the function `least_epsilon`.
        other: a line with the command of a run with gnmax instead of confident, or with confident
            instead of gnmax, if that run gives more answers; else None.
    """

    question: Question
    known: Question
    forecast: Forecast
    least_epsilon: float = math.nan
    other: str | None = None

    @property
    def releasable(self) -> bool:
        """Return True: the plan may be published, because it uses no votes."""
        return True

    @property
    def by_agreement(self) -> list[dict[str, float]]:
        """Return the forecast at low, middle and high agreement, a mapping for each level."""
        return [self.forecast.at(level) for level in self.known.shown]

    @property
    def middle(self) -> dict[str, float]:
        """Return the forecast at the middle level of agreement."""
        return self.forecast.at(self.forecast.middle)

    @property
    def answers(self) -> float:
        """Return the expected number of answers at the middle level of agreement."""
        return self.middle["answers"]

    @property
    def record_epsilon(self) -> float | None:
        """Return ε for one training record of a teacher, nats; None if training is not private."""
        training, target = self.known.training, self.known.target
        return None if training is None else training.amplified(target.epsilon, target.delta)

    @property
    def likely(self) -> bool:
        """Return whether at middle agreement at least nine of ten runs pass the release test."""
        return self.middle["pass_probability"] >= LEAST_CHANCE

    @property
    def meets_goal(self) -> bool:
        """Return whether a run likely passes the release test and has enough expected answers."""
        return self.likely and self.answers >= (self.question.answers or 0)

    @property
    def settings(self) -> dict[str, Any]:
        """Return keywords of `aggregate` for the planned run, except `votes`, `groups` and `prior`.

        If `command` is None, a run with these settings should not be started.
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
        """Return the `pate aggregate` line of the run; None if the run should not be started."""
        files = ["--groups", "GROUPS"] if self.known.weights else []
        files += ["--prior", "PRIOR"] if self.forecast.settings.prior_weight else []
        return line_of("VOTES", files, self.settings) if self.likely else None

    @property
    def sensible(self) -> bool:
        """Return whether at least 75% of the answers equal the plurality of the teachers."""
        return self.middle["equal_to_plurality"] >= _SENSIBLE

    @property
    def frankly(self) -> str | None:
        """Return a warning if the run should not be started or gives few answers; else None."""
        known, got, wanted = self.known, math.floor(self.answers), self.question.answers
        least = f"the smallest useful target is epsilon {self.least_epsilon:.3g}"
        if not self.likely:
            return (
                f"with epsilon {known.epsilon:g}, no settings that were tried pass the release "
                f"test {LEAST_CHANCE:.0%} of the time, not even for one query; {least}"
            )
        if not self.sensible:
            return (
                f"epsilon {known.epsilon:g} needs so much noise that labels are hardly better "
                f"than guesses; {least}"
            )
        carry = f"with {known.voters} and epsilon {known.epsilon:g}, expect {got} answers"
        if wanted is not None and not self.meets_goal:
            return f"{carry}, fewer than the {wanted} answers that you asked for"
        return None if got >= min(_FEW, 0.25 * self.question.rows) else carry

    def to_dict(self) -> dict[str, Any]:
        """Return the question, the settings that were found and their forecast, ready for JSON."""
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
            "least_epsilon": three_digits(self.least_epsilon),
            "frankly": self.frankly,
            "command": self.command,
            "other": self.other,
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the forecast as a table: a row each for low, middle and high agreement."""
        rows = self.by_agreement
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def said(self) -> Said:
        """Return the lines and tables that show the plan to people."""
        return words.of_plan(self.to_dict())

    def plot(self, axes: Any = None, *, progress: Callable[[int], None] = lambda _: None) -> Any:
        """Draw answers against epsilon on matplotlib Axes, and return the Axes. Public.

        The extra `plot` must be installed.

        Args:
            axes: the Axes to draw on; if left out, new Axes are made.
            progress: called with 1 for each point of the picture; there are at most `POINTS`.
        """
        from pate_cli.disclosure.pictures import draw_plan

        return draw_plan(self, points(self, progress), axes)

    def headline(self) -> str:
        """Return the number of teachers, ε and the expected answers in one line."""
        known = self.known
        return (
            f"{known.voters}, epsilon {known.epsilon:g} at delta {known.delta:g}: about "
            f"{math.floor(self.answers)} answers of {self.forecast.rows}"
        )


def plan(question: Question) -> Plan:
    """Return the plan for a question; bisection finds a missing number of teachers or a missing ε.

    Raises:
        UnreachableError: no number of teachers, or no ε, meets the goal.
    """
    known, value = question, 0.0
    if question.unknown != "answers":
        value = _needed(question)
        known = question.with_value(value)
    found = _planned(question, known)
    for _ in range(_CORRECTIONS if value else 0):
        if found.meets_goal:
            break
        # The bisection used approximate costs; by exact costs, slightly more may be needed.
        value *= _CORRECTION
        known = question.with_value(value)
        found = _planned(question, known)
    otherwise, line = replace(known, mechanism=_OTHER[question.mechanism]), None
    rule = otherwise.rule(quick=True)
    if found.sensible and rule.likely and rule.answers > _MORE * found.answers:
        other = _planned(question, otherwise)
        if other.likely and other.answers > _MORE * found.answers:
            name = otherwise.mechanism.value
            line = f"{name} would give about {other.answers:.3g} answers: {other.command}"
    return replace(found, least_epsilon=least_epsilon(known), other=line)


def _planned(question: Question, known: Question) -> Plan:
    """Return the plan for known facts; the public rule chooses settings and number of queries."""
    rule = known.rule()
    rows = max(rule.rows // question.labels * question.labels, min(question.labels, known.rows))
    votes = known.votes(rows=_ROWS)
    return Plan(
        question, known, forecast(votes, rule.mechanism, known.target, rows=rows, rough=True)
    )


def _needed(question: Question) -> float:
    """Return the smallest number of teachers, or the smallest ε, that gives enough answers."""
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
    """Return the approximate smallest target ε that is still useful, nats.

    The result is the worst-case ε of one answer of gnmax, with so much noise that the answer equals
    the plurality 3 times in 4. With this target, a run that asks one row needs no release test,
    because its worst-case ε does not exceed the target. A smaller target needs more noise, and
    labels are then hardly better than guesses. With more teachers the result is smaller. The number
    of queries does not change the result.
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
    """Return points for a picture of a plan: teachers, ε, and expected answers.

    Each point has the expected answers at every level of agreement that the plan shows. The
    points lie around the number of teachers and the ε of the plan.

    Args:
        found: the plan.
        progress: called with 1 after each point.
    """
    known, near, drawn = found.known, found.forecast.settings, []
    teachers, epsilon = known.teachers or 1, known.epsilon or 1.0
    for share in (1.0,) if known.weights else (0.5, 0.7, 1.0, 1.4, 2.0):
        number = max(round(teachers * share), 2)
        start = near.scaled(number / teachers)
        for by in np.geomspace(0.5, 2.0, 7).tolist():
            at = replace(known, teachers=number, epsilon=round(epsilon * by, 4))
            answers = at.rule(near=start, quick=True).by_level
            drawn.append((number, at.epsilon or 1.0, tuple(answers[each] for each in known.shown)))
            progress(1)
    return drawn


POINTS: Final = 35
"""The largest number of points in the picture of a plan."""

# The plan for voters shows the labels for three shares of right votes. It finds the largest number
# of queries at which 95% of the labels are right if 80% of the votes are.
_SHARES: Final = (0.6, 0.8, 0.95)
_USUAL, _GOOD = 0.8, 0.95
# The rule of thumb: with k votes of each voter, 22 √k/ε votes on a query make 95% of labels right.
_THUMB: Final = 22.0
_LEAST: Final = 1e-4  # the smallest ε above 0 that a result shows
# The range and the precision of the noise for voters, and how many queries are made up.
_SIGMAS, _FINE, _QUERIES = (0.5, 1e6), 1e-3, 500


@dataclass(frozen=True, repr=False)
class VoterPlan(Result):
    """Plan of a gnmax run on the votes of many voters who vote on few queries each. Public.

    Attributes:
        teachers: the number of voters.
        votes_per_teacher: the largest number of votes of one voter.
        queries: how many queries the run asks.
        delta: δ of the run.
        epsilon: ε of the run, at most the target, nats.
        sigma2: the smallest standard deviation of the noise at which ε is at most the target, in
            votes.
        votes_per_query: the number of votes on each query if votes are spread evenly.
        labels_right: the expected share of right labels, by the share of right votes.
        rule_of_thumb: about how many votes on a query make 95% of labels right, if 80% of votes are
            right.
        enough_for: the largest number of queries at which 95% of labels are right, if 80% of votes
            are right; 0 if fewer labels are right even when all voters vote on each query.
        command: the `pate aggregate` line of the run.
    """

    teachers: int
    votes_per_teacher: int
    queries: int
    delta: float
    epsilon: float
    sigma2: float
    votes_per_query: int
    labels_right: Mapping[str, float]
    rule_of_thumb: int
    enough_for: int
    command: str

    @property
    def releasable(self) -> bool:
        """Return True: the plan may be published, because it uses no votes."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes of the plan, ready for JSON."""
        return {"schema_version": 1, "releasable": True, **vars(self)}

    def columns(self) -> Mapping[str, NDArray[Any]]:
        """Return a table with the share of right labels for each share of right votes."""
        right = self.labels_right
        shares = np.array([float(share) for share in right])
        return {"voters_right": shares, "labels_right": np.array([*right.values()])}

    def headline(self) -> str:
        """Return the plan in a few words."""
        votes = f"{self.teachers} teachers with {self.votes_per_teacher} votes each"
        on_each = f"{self.votes_per_query} on each of {self.queries} queries"
        return f"{votes}, {on_each}: epsilon {shown(self.epsilon)} at delta {self.delta:g}"

    def said(self) -> Said:
        """Return lines with the share of right labels, the votes a query needs, and the command."""
        found = {
            f"voters right {float(share):.0%}": f"{right:.1%} of labels are right"
            for share, right in self.labels_right.items()
        }
        found["rule of thumb"] = (
            f"{self.rule_of_thumb} votes on a query (22 sqrt(votes per teacher) / epsilon) if "
            "voters are right 80% of the time"
        )
        found["enough for"] = (
            f"{self.enough_for} queries, of which 95% get right labels if voters are right 80% of "
            "the time"
        )
        pairs = Pairs([*found.items()])
        return [Line(self.headline(), "bold"), pairs, Line(self.command, whole=True)]


def plan_voters(asked: Mapping[str, Any]) -> VoterPlan:
    """Return the plan of a gnmax run for a target ε.

    If the number of queries is left out, the plan asks as many queries as possible while 95% of the
    labels are right.

    Args:
        asked: the parameters of `signatures.plan`, by name.

    Raises:
        UnreachableError: ε is above the target even with the most noise that is tried, or
            `queries` is left out and too few labels would be right even if all voters vote on each
            query.
    """
    target, teachers, classes = (asked[name] for name in ("target_epsilon", "teachers", "classes"))
    few, delta = FewVotes(asked["votes_per_teacher"], asked["assigned"]), asked["delta"]
    # A voter changes at most two queries for each vote, so further queries cost nothing.
    rows = asked["queries"] or 2 * few.votes

    def epsilon_at(sigma: float) -> float:
        mechanism = GNMax(teachers, classes, sigma2=sigma)
        return worst_case_epsilon(mechanism, rows=rows, delta=delta, few=few)

    def good(votes: float) -> bool:
        return _labels_right(_USUAL, round(votes), classes, sigma) >= _GOOD

    start = 20.0 * math.sqrt(few.votes / 40.0) / max(target, _LEAST)
    sigma = least(
        lambda noise: epsilon_at(noise) <= target, start=start, within=_SIGMAS, precision=_FINE
    )
    sigma = math.ceil(sigma * 1000.0) / 1000.0
    epsilon = epsilon_at(sigma)
    # With very much noise, ε is rounded to 0, and the rule of thumb would divide by 0.
    thumb = math.ceil(_THUMB * math.sqrt(few.votes) / max(epsilon, _LEAST))
    enough = 0
    if good(teachers):
        needed = least(good, start=thumb, within=(1.0, teachers), precision=0.01)
        enough = max(teachers * few.votes // math.ceil(needed), 1)
    queries = asked["queries"] or enough
    if not queries:
        raise UnreachableError(
            f"{teachers} teachers are too few for labels that are mostly right at epsilon "
            f"{target:g}, even if all of them vote on each query; take more teachers, fewer votes "
            "of each teacher or a larger epsilon"
        )
    on_each = min(teachers * few.votes // queries, teachers)
    told = keywords_of(
        GNMax(teachers, classes, sigma2=sigma),
        queries=queries,
        delta=delta,
        classes=classes,
        teachers=min(on_each + 1, teachers) if few.assigned else teachers,
        votes_per_teacher=few.votes,
    )
    right = {
        f"{share:g}": round(_labels_right(share, on_each, classes, sigma), 4) for share in _SHARES
    }
    command = line_of("VOTES", ["--assigned"] if few.assigned else [], told)
    noise = (delta, epsilon, sigma)
    return VoterPlan(teachers, few.votes, queries, *noise, on_each, right, thumb, enough, command)


def _labels_right(share: float, votes: int, classes: int, sigma: float) -> float:
    """Return the expected share of right labels of gnmax if `share` of the votes is right."""
    random = np.random.default_rng(PUBLIC_SEED)
    right = random.binomial(votes, share, _QUERIES)
    wrong = random.multinomial(votes - right, np.full(classes - 1, 1.0 / (classes - 1)))
    counts = np.column_stack([right, wrong]).astype(np.float64)
    return float(win_chance(counts, np.zeros(_QUERIES, dtype=np.int64), sigma).mean())
