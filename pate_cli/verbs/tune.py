"""The verb that searches for parameters, and the rule that does without votes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Unpack

from pate_cli.core.errors import UsageError
from pate_cli.core.words import DELTA, MIN_AGREEMENT, Bound, Objective, ReleaseKind
from pate_cli.mechanisms.amounts import Amount, in_votes
from pate_cli.mechanisms.base import RunShape
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.tuning import (
    Goal,
    Grid,
    PriorSearch,
    PriorWeights,
    RuleOfThumb,
    Search,
    Tuned,
    VoteSample,
    Ways,
)
from pate_cli.tuning import rule_of_thumb as by_rule_of_thumb
from pate_cli.tuning.result import PriorTried
from pate_cli.tuning.source import TuneSource
from pate_cli.tuning.ways import OneWay
from pate_cli.verbs.keywords import ReadingWords, TuneWords, only, takes_keywords
from pate_cli.verbs.request import Votes


@takes_keywords
def tune(
    votes: Votes | None = None,
    *,
    target_epsilon: float | None = None,
    answers: float | None = None,
    objective: Objective | str = Objective.ANSWERS,
    min_agreement: float = MIN_AGREEMENT,
    release: ReleaseKind | str | None = None,
    bound: Bound | str = Bound.AUTO,
    prior: Any | None = None,
    synthetic: str | None = None,
    public_votes: bool = False,
    truth: Any = None,
    front: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
    interrupted: Callable[[], None] = lambda: None,
    **asked: Unpack[TuneWords],
) -> Tuned:
    """Find threshold, noise and release parameters for a goal, before any votes are spent.

    SECRET, unless the votes are public or made up: settings chosen on votes tell about them.
    `aggregate(votes, **tuned.settings)` runs what was found.

        >>> pate.tune(synthetic="teachers=100,classes=4,queries=400", target_epsilon=4,
        ...           release="none", thresholds=[60, 80], sigmas1=[40], sigmas2=[15])
        <Tuned: 173.6 expected answers at epsilon 3.9880>

    Args:
        votes: the votes; None with `synthetic`. Before there are any, `plan` answers.
        target_epsilon, answers: most expected answers at this published ε or less; least ε for so
            many; or with both the best agreement.
        objective: with only a target, `answers` or `agreement`.
        min_agreement: least expected share of answers that equal the plurality.
        release: what is published, one way to an ε; if left out, `target` (stated in advance, and
            tested) and `none` (for all votes, met always by a cap on answers), whichever serves the
            goal better. `upper` publishes a sanitized bound.
        bound: with `release` target: how the cost of the votes is bounded, as in `aggregate`.
        prior: as in `aggregate`; its weight is searched, and the result says what it buys.
        synthetic: made-up votes, `teachers=250,classes=10,queries=1000,agreement=0.85,…`; with
            `prior=0.85` among it made-up guesses, so many of them right.
        public_votes: the caller asserts that the votes are public.
        truth: true labels, to estimate accuracy from below.
        front: also find the Pareto front, and the least ε for as many answers as are wanted.
        progress: called after every step with 1 and with how many there are at most.
        interrupted: called when a search is broken off, before its best so far is priced.

    Raises:
        UnreachableError: no setting meets the goal; the message says what can be had.
    """
    kinds = _kinds(release, open_goal=target_epsilon is None and answers is None)
    by_target = ReleaseKind.TARGET in kinds
    if not by_target and Bound(bound) is not Bound.AUTO:
        raise UsageError("`bound` goes with `release` target")
    source = TuneSource(
        votes=votes,
        synthetic=synthetic,
        reading=dict(only(ReadingWords, asked)),
        max_queries=asked["max_queries"],
        truth=truth,
        prior=prior,
        public=public_votes,
        teachers_per_record=asked["teachers_per_record"],
    )
    source.check()
    goal = Goal(
        delta=asked["delta"],
        release=kinds[0],
        bound=Bound(bound),
        target_epsilon=target_epsilon,
        answers=answers,
        objective=Objective(objective),
        min_agreement=min_agreement,
    )
    sample, basis = source.sample()
    grid = Grid.for_teachers(
        sample.teachers,
        thresholds=asked["thresholds"],
        sigmas1=asked["sigmas1"],
        sigmas2=asked["sigmas2"],
        untested=by_target,
    )
    goals = [replace(goal, release=kind) for kind in kinds]
    weights = asked["prior_weights"]
    ways = Ways(_searches(sample, grid, goals, weights))
    found = _searched(ways, progress, interrupted, front=front or goal.open)
    if sample.guesses is not None and found.prior is None:
        values = PriorWeights.for_teachers(sample.teachers, weights).values
        tried = PriorTried(sample.guesses.name, sample.guesses.number, values)
        found = replace(found, prior=tried)
    return replace(
        found,
        basis=basis,
        public=source.releasable,
        votes=source.name,
        words=tuple(source.words),
        teachers_per_record=source.teachers_per_record,
    )


def _searches(
    sample: VoteSample,
    grid: Grid,
    goals: Sequence[Goal],
    prior_weights: Sequence[Amount | float | str] | None,
) -> list[OneWay]:
    """One for each goal, over weights of the prior if there is one.

    Settings without a test are for targets.
    """
    grids = [
        replace(grid, untested=grid.untested and goal.release is ReleaseKind.TARGET)
        for goal in goals
    ]
    ways = list(zip(grids, goals, strict=True))
    if sample.guesses is None:
        if prior_weights is not None:
            raise UsageError("`prior_weights` goes with `prior`")
        return [Search(sample, grid, goal) for grid, goal in ways]
    weights = PriorWeights.for_teachers(sample.teachers, prior_weights)
    if not goals[0].open:
        return [PriorSearch(sample, grid, goal, weights) for grid, goal in ways]
    if len(weights.values) > 1:
        raise UsageError(
            "a `prior` needs one of `prior_weights`, or a goal to choose among several: "
            "`target_epsilon` or `answers`"
        )
    return [Search(sample.under(weights.values[0]), grid, goal) for grid, goal in ways]


def _searched(
    ways: Ways,
    progress: Callable[[int, int], None],
    interrupted: Callable[[], None],
    *,
    front: bool,
) -> Tuned:
    """The best of all, or of what was looked at before an interruption."""
    try:
        return ways.run(lambda done: progress(done, ways.steps), front=front)
    except KeyboardInterrupt:
        interrupted()
        best = ways.best_so_far()
        if best is None:
            raise
        return best


def rule_of_thumb(
    target_epsilon: float,
    *,
    teachers: int | None,
    classes: int | None,
    queries: int | None,
    threshold: Amount | float | str | None = None,
    sigma1: Amount | float | str | None = None,
    sigma2: Amount | float | str | None = None,
    delta: float = DELTA,
    teachers_per_record: int = 1,
) -> RuleOfThumb:
    """Parameters of an upper release by rule for a target: no votes, no search; public.

    >>> pate.rule_of_thumb(2.0, teachers=250, classes=10, queries=1000).public.plan.order
    8.25
    """
    source = TuneSource(
        reading={"teachers": teachers, "classes": classes, "queries": queries},
        teachers_per_record=teachers_per_record,
    )
    settled = {"threshold": threshold, "sigma1": sigma1, "sigma2": sigma2}
    given = {name: value for name, value in settled.items() if value is not None}
    tau, m, k1 = source.shape
    shape = RunShape(
        teachers=tau,
        classes=m,
        queries=k1,
        delta=delta,
        teachers_per_record=teachers_per_record,
    )
    return by_rule_of_thumb(
        mechanism=ConfidentGNMax.for_run(shape, in_votes(given, tau)),
        queries=k1,
        target_epsilon=target_epsilon,
        delta=delta,
    )


def _kinds(release: ReleaseKind | str | None, *, open_goal: bool) -> tuple[ReleaseKind, ...]:
    """The ways to an ε that are tried; without a goal, one front of the votes at hand."""
    if release is not None:
        return (ReleaseKind(release),)
    return (ReleaseKind.UPPER,) if open_goal else (ReleaseKind.TARGET, ReleaseKind.NONE)
