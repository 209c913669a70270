"""Settings of a run, and so its promise: from keywords and public rules, before any vote.

A run or a session that could cost too much, or would hardly give labels, is refused here, by public
numbers alone, before anything is drawn or spent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any, Final

from pate_cli.core.errors import CeilingError, ParameterError, UnreachableError, UsageError
from pate_cli.core.noise import RunKey
from pate_cli.core.words import CEILING, Analysis, Bound, ReleaseKind
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.entry import RecordPlace
from pate_cli.disclosure.figures import shown
from pate_cli.disclosure.runs import Budget, Run
from pate_cli.disclosure.settings import ReleasePlan, Settings, Training
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms import RULED, MechanismChoice
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.run.labelling import LedgerAccount
from pate_cli.verbs.request import Request, mechanism_of, published

if TYPE_CHECKING:
    from pate_cli.planning.forecast import Forecast

_DRAW: Final = ("order", "beta", "sigma_release")
_SAYS_MORE: Final = ("max_queries", "max_answers", "release", *_DRAW, "keep_ledger", "checkpoint")
"""Keywords beside which a budget alone does not say what a run is to be."""
_ROUGH_BY: Final = 0.06
"""How far a rough pass probability may be off."""


def budget_of(asked: Mapping[str, Any]) -> Budget | None:
    """Return the budget that keywords state; None where they state none."""
    return Budget.of(asked["budget"], delta=asked["budget_delta"], order=asked["budget_order"])


def record_of(asked: Mapping[str, Any]) -> RecordPlace:
    """Return the record that keywords name, or that the votes have; a session has no votes."""
    return RecordPlace.of(
        asked.get("votes"),
        record=asked.get("record"),
        ensemble=asked.get("ensemble"),
        seeded=asked.get("seed") is not None,
        accept_lost=asked.get("accept_lost_record", False),
    )


def run_of(settings: Settings, key: RunKey, began: str, *, session: str | None = None) -> Run:
    """Return a run or a session as a record has it, before it has an outcome."""
    # The seed alone gives a report its name; in a record a run of one is its own.
    name = key.run_id if key.private else key.name("run")
    return Run.of(id=name, time=began, settings=settings, round=key.name("round"), session=session)


def promised(
    request: Request, asked: Mapping[str, Any], record: RecordPlace
) -> tuple[Request, Settings]:
    """Settle what a run is told before any vote is seen; a target is tested unless it need not be.

    Args:
        request: the votes and the mechanism.
        asked: every parameter of `aggregate`, by name.
        record: of these teachers.

    Returns:
        The request with the rows and the noise that a target decides, and the settings of the run.

    Raises:
        ParameterError: a δ beside which floating-point noise is not negligible.
        UsageError: keywords that contradict each other or the votes.
        UnreachableError: a target out of reach.
    """
    target = _target(asked, record, few=request.file.facts.voting is not None)
    if target is not None:
        request.refuse_few("`target_epsilon`; give `max_queries`")
    if target is not None and request.composed is None:
        request = request.by_rule(target, rows_given=asked["max_queries"] is not None)
    mechanism, queries = request.mechanism, request.queries
    _check_delta(request)
    plan = None if target is not None else _sanitizer(request, asked)
    analysis = "tight" if plan is None else plan.analysis.value
    settings = Settings(
        mechanism=mechanism.parameters(),
        queries=queries,
        max_answers=request.max_answers,
        private=asked["seed"] is None,
        delta=request.delta,
        analysis=analysis if request.composed is None else "composition",
        sanitizer=plan,
        training=Training.of(asked["teacher_epsilon"], asked["teacher_delta"]),
        **request.file.facts.of_round,
    )
    if target is None:
        return request, settings
    worst = Cost.of(settings).own.epsilon
    if isinstance(mechanism, ScoredMechanism):
        found = target.settled(mechanism, queries=queries, worst_case=worst)
        return request, replace(settings, target=found)
    if worst > target.epsilon:
        raise UnreachableError(
            f"{mechanism.name} has no Renyi cost to test, and costs {worst:g} for all votes, above "
            f"the target {target.epsilon:g}"
        )
    return request, settings


def account_of(request: Request, settings: Settings) -> LedgerAccount | None:
    """Return what keeps of the votes what a ledger needs; None where nothing is kept."""
    plan = settings.sanitizer
    if plan is None:
        return None
    paper = published(settings.analysis)
    return (LedgerAccount if paper is None else paper.account)(request.scored, plan)


def _target(asked: Mapping[str, Any], record: RecordPlace, *, few: bool) -> TargetPlan | None:
    """Return the target: as stated, or all that is left of a budget where that alone is stated.

    If teachers vote on few queries, a budget says nothing of a target.

    None without a target, and where nothing is left: the budget then refuses the run.
    """
    epsilon, budget, choice = asked["target_epsilon"], budget_of(asked), mechanism_of(asked)
    if epsilon is None and budget is not None and record.file is not None:
        plain = isinstance(choice, MechanismChoice) and choice.name in RULED and not choice.given
        tight = Analysis(asked["analysis"]) is Analysis.TIGHT
        if plain and tight and not few and not any(asked.get(name) for name in _SAYS_MORE):
            left = Decimal(repr(budget.left(budget.spent(record.record.runs)[-1])[0]))
            epsilon = float(left.quantize(Decimal("1e-4"), ROUND_FLOOR)) or None
    return stated_target({**asked, "target_epsilon": epsilon})


def stated_target(asked: Mapping[str, Any]) -> TargetPlan | None:
    """Return the target that keywords of a verb state; None where they state none.

    Raises:
        ParameterError: a number out of range.
        UsageError: what makes no sense without a target, or beside one.
    """
    epsilon, refusal = asked["target_epsilon"], asked["refusal_epsilon"]
    if epsilon is None:
        if refusal is not None:
            raise UsageError("`refusal_epsilon` goes with `target_epsilon`")
        return None
    for name in ("release", *_DRAW):
        if asked.get(name) not in (None, ReleaseKind.TARGET):
            raise UsageError(
                f"`{name}` does not go with `target_epsilon`: nothing is sanitized; the target "
                "itself is published"
            )
    analysis, bound = Analysis(asked["analysis"]), Bound(asked["bound"])
    if analysis is not Analysis.TIGHT:
        raise UsageError(f"`analysis` {analysis} does not go with `target_epsilon`")
    if asked.get("keep_ledger"):
        raise UsageError(
            "a ledger does not go with `target_epsilon`: the law of tested labels includes their "
            "test, so they add to other rounds as (epsilon, delta) and not by a ledger"
        )
    return TargetPlan.of(epsilon, delta=asked["delta"], refusal_epsilon=refusal, bound=bound)


def kind_of(release: ReleaseKind | str | None, *, default: ReleaseKind) -> ReleaseKind:
    """Return what is published beside the labels: a sanitized bound or nothing.

    UsageError for a target, which is tested and not drawn.
    """
    kind = default if release is None else ReleaseKind(release)
    if kind is ReleaseKind.TARGET:
        raise UsageError("`release` target goes with `aggregate` and its `target_epsilon`")
    return kind


def plan_of(
    kind: ReleaseKind, rounds: Sequence[tuple[ScoredMechanism, int]], asked: Mapping[str, Any]
) -> ReleasePlan:
    """Return how costs of rounds are kept and sanitized, by public numbers.

    Args:
        kind: what is published of them.
        rounds: the mechanism of each, and how many rows it is asked.
        asked: `delta`, `analysis`, `order`, `beta` and `sigma_release`.
    """
    from pate_cli.planning.sanitized import choose_plan

    plan = choose_plan(
        kind,
        rounds,
        delta=asked["delta"],
        order=asked["order"],
        beta=asked["beta"],
        sigma=asked["sigma_release"],
    )
    paper = published(asked["analysis"])
    return plan if paper is None else paper.plan(plan)


def _check_delta(request: Request) -> None:
    """ParameterError for a δ beside which floating-point noise is not negligible."""
    mechanism, delta, queries = request.mechanism, request.delta, request.queries
    least = mechanism.smallest_delta(queries)
    if delta < least and request.composed is None:
        least = Cost.of_rows(mechanism, queries, request.max_answers, delta).least_delta
    if delta < least:
        raise ParameterError(
            f"`delta` must be at least {least:g} for {queries} queries over "
            f"{request.file.classes} classes, got {delta:g}: below it what the resolution of "
            "floating-point noise adds to delta is no longer negligible"
        )


def _sanitizer(request: Request, asked: Mapping[str, Any]) -> ReleasePlan | None:
    """Return how costs of the votes are kept and sanitized, by public numbers.

    None where nothing is sanitized, now or later from a ledger: nothing is kept of the votes.
    """
    analysis, ledger = Analysis(asked["analysis"]), asked["keep_ledger"]
    tight = analysis is Analysis.TIGHT
    plain = tight and all(asked[name] is None for name in _DRAW)
    kind = kind_of(asked["release"], default=ReleaseKind.NONE if plain else ReleaseKind.UPPER)
    if not tight and request.file.facts.groups:
        raise UsageError(f"`analysis` {analysis} does not go with `groups`")
    if kind is ReleaseKind.NONE and plain and not ledger:
        return None
    if request.composed is None:
        return plan_of(kind, [(request.scored, request.queries)], asked)
    if tight and kind is ReleaseKind.NONE and not ledger:
        return None
    raise UsageError(
        f"{request.composed} has no Renyi cost to keep or to sanitize: `analysis` paper, `release` "
        "upper and a ledger do not go with it"
    )


def refuse_dear(settings: Settings, most: float | None) -> None:
    """Refuse what could cost more than `max_epsilon`, which is `CEILING` if left out.

    Seeded tests, runs that publish a sanitized ε beside their worst case, and teachers whose own
    training protects a record, have no such default.

    Args:
        settings: what a run or a session is told.
        most: `max_epsilon`, nats; None where it is left out.

    Raises:
        UnreachableError: it could cost more than `max_epsilon`.
        CeilingError: it promises practically nothing, and nobody asked for it so.
    """
    epsilon, plan = Cost.of(settings).own.epsilon, settings.sanitizer
    named = shown(epsilon)
    costs = f"this would cost epsilon {named} at delta {settings.delta:g}, whatever the votes"
    cheaper = (
        "nothing was drawn or spent. Lower `max_queries`, take more noise, or state a smaller "
        "`target_epsilon`"
    )
    if most is not None and epsilon > most:
        raise UnreachableError(f"{costs}, above `max_epsilon` {most:g}; {cheaper}")
    training = settings.training
    exempt = not settings.private or (plan is not None and plan.publishes_draw)
    if training is not None and training.amplified(epsilon, settings.delta) <= CEILING:
        exempt = True  # one training record is protected by its teacher's training
    if most is None and not exempt and epsilon > CEILING:
        raise CeilingError(
            f"{costs}, and above {CEILING:g} practically nothing is promised; {cheaper}. "
            f"To have it all the same, ask for it by name: `max_epsilon` {named}",
            epsilon=float(named),
        )


def foreseen(request: Request, settings: Settings, *, rough: bool = False) -> Forecast | None:
    """Return what made-up teachers would give in a run with a release test; None without a test.

    It looks at public numbers alone; `rough` is quicker, and off by up to 0.06.
    """
    if settings.tested is None:
        return None
    from pate_cli.planning.forecast import public_forecast

    shape = {"rows": settings.queries, "max_answers": settings.max_answers}
    return public_forecast(request.scored, settings.tested, **shape, rough=rough)


def refuse_hopeless(request: Request, settings: Settings, least: float) -> None:
    """Refuse a run that would hardly pass its release test, however well the teachers agree.

    Args:
        request: what is asked.
        settings: what the run is told.
        least: the pass probability below which a run is not started, at the most favourable level
            of agreement; 0 starts every run.

    Raises:
        UnreachableError: the probability is smaller; it says what would pass.
    """
    target = settings.tested
    if target is None or least == 0.0:
        return
    from pate_cli.planning.forecast import what_would_pass

    best = 0.0
    for rough in (True, False):
        found = foreseen(request, settings, rough=rough)
        best = 0.0 if found is None else found.best_chance
        if best >= least + (_ROUGH_BY if rough else 0.0):
            return
    fewer, larger = what_would_pass(request.scored, target, rows=settings.queries, least=least)
    advice = f"Take more noise, or a `target_epsilon` of about {larger:.2g}"
    if fewer:
        advice = f"Ask at most `max_queries` {fewer}"
    raise UnreachableError(
        f"this run would pass its release test with probability {best:.2g} at most, below "
        f"`min_pass` {least:g}; nothing was drawn or spent. {advice}; `min_pass` 0 starts it all "
        "the same"
    )
