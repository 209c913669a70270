"""Settings of a run, and so its promise: from keywords and public rules, before any vote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any, Final

from pate_cli.core.checks import check_positive
from pate_cli.core.errors import CeilingError, ParameterError, UnreachableError, UsageError
from pate_cli.core.noise import RunKey
from pate_cli.core.words import CEILING, Analysis, Bound, ReleaseKind
from pate_cli.disclosure.budget import Budget
from pate_cli.disclosure.cost import Cost, Rows
from pate_cli.disclosure.figures import shown
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.record import Run
from pate_cli.disclosure.record_place import RecordPlace
from pate_cli.disclosure.settings import Settings
from pate_cli.disclosure.target import TargetPlan
from pate_cli.disclosure.total import left_of
from pate_cli.mechanisms import RULED, MechanismChoice
from pate_cli.mechanisms.base import Mechanism, ScoredMechanism
from pate_cli.run.accounts import LedgerAccount
from pate_cli.verbs.analyses import analysis_of
from pate_cli.verbs.request import Request, Votes, mechanism_of

if TYPE_CHECKING:
    from pate_cli.planning.forecast import Forecast

# A rough pass probability is off by less.
_ROUGH_BY: Final = 0.15
_DRAW: Final = ("order", "beta", "sigma_release")
_SAYS_MORE: Final = (
    "release",
    *_DRAW,
    "max_answers",
    "max_queries",
    "keep_ledger",
    "checkpoint",
)
"""Keywords beside which a budget alone does not say what a run is to be."""


def budget_of(asked: Mapping[str, Any]) -> Budget | None:
    """Return the budget that keywords state; None where they state none."""
    return Budget.of(asked["budget"], delta=asked["budget_delta"], order=asked["budget_order"])


def record_of(votes: Votes, asked: Mapping[str, Any], *, seeded: bool) -> RecordPlace:
    """Return the record that keywords name, or that the votes have."""
    return RecordPlace.of(
        votes,
        record=asked["record"],
        ensemble=asked["ensemble"],
        seeded=seeded,
        accept_lost=asked["accept_lost_record"],
    )


def run_of(settings: Settings, key: RunKey, began: str) -> Run:
    """Return a run as a record has it, before it has an outcome."""
    # The seed alone gives a report its name; in a record a run of one is its own.
    name = key.run_id if key.private else key.name("run")
    return Run.of(settings, id=name, time=began, round=key.name("round"))


def target_of(
    mechanism: Mechanism | MechanismChoice | str,
    asked: Mapping[str, Any],
    budget: Budget | None,
    record: RecordPlace,
) -> TargetPlan | None:
    """Return the target: as stated, or all that is left of a budget where that alone is stated.

    None without a target, and where nothing is left: the budget then refuses the run.

    Raises:
        ParameterError, UsageError: a target out of range, or what makes no sense without one.
    """
    epsilon, refusal, bound = asked["target_epsilon"], asked["refusal_epsilon"], asked["bound"]
    if not 0.0 <= asked["min_pass"] <= 1.0:
        raise ParameterError(f"`min_pass` must be in [0, 1], got {asked['min_pass']:g}")
    if epsilon is None and budget is not None and record.file is not None:
        epsilon = _left(mechanism, asked, budget, record)
    if epsilon is not None:
        return TargetPlan.of(
            epsilon, delta=asked["delta"], refusal_epsilon=refusal, bound=Bound(bound)
        )
    if refusal is not None:
        raise UsageError("`refusal_epsilon` goes with `target_epsilon`")
    return None


def _left(
    mechanism: Mechanism | MechanismChoice | str,
    asked: Mapping[str, Any],
    budget: Budget,
    record: RecordPlace,
) -> float | None:
    """Return what is left of a budget, if a rule settles all that a run with it needs."""
    if isinstance(mechanism, Mechanism) or any(asked.get(name) for name in _SAYS_MORE):
        return None
    choice = mechanism_of(mechanism, asked)
    if choice.name not in RULED or choice.given or Analysis(asked["analysis"]) != Analysis.TIGHT:
        return None
    left, _ = left_of(budget, record.record.runs)
    return float(Decimal(repr(left)).quantize(Decimal("1e-4"), ROUND_FLOOR)) or None


def settled(
    request: Request, asked: Mapping[str, Any], target: TargetPlan | None
) -> tuple[Request, Settings]:
    """Return what a run is told, and the request with the rows that it asks.

    Args:
        request: the votes, and what they are put to.
        asked: keywords as `quote` takes them.
        target: the (ε, δ) stated in advance, if there is one.

    Raises:
        ParameterError: a δ beside which floating-point noise is not negligible.
        UsageError: keywords that contradict each other.
        UnreachableError: a target out of reach, or a worst case above `max_epsilon`.
    """
    if target is not None:
        _refuse_beside_target(asked)
        if isinstance(request.mechanism, ScoredMechanism):
            given = asked["max_queries"] is not None
            request = request.by_rule(target, bound=target.bound, rows_given=given)
    _check_delta(request)
    if target is None:
        settings = _told(request, _sanitizer(request, asked))
    else:
        settings = _at_target(request, target)
    most = asked["max_epsilon"]
    if most is not None and (cost := promised(settings)) > check_positive("`max_epsilon`", most):
        raise UnreachableError(
            f"this run would cost epsilon {cost:.4f} at delta {settings.delta:g} in the worst "
            f"case, above `max_epsilon` {most:g}; nothing was drawn or spent. {_cheaper(settings)}"
        )
    return request, settings


def account_of(request: Request, settings: Settings) -> LedgerAccount | None:
    """Return what keeps of the votes what a ledger needs; None for the worst case alone.

    Raises:
        UsageError, ValidityError: the published analysis does not cover the mechanism.
    """
    if settings.sanitizer is None:
        return None
    return analysis_of(settings.analysis).account(request.scored, settings.sanitizer)


def promised(settings: Settings) -> float:
    """Return the ε that is published at most: the worst case, or the target if that is less."""
    worst = Cost.of(replace(settings, target=None)).own.epsilon
    return worst if settings.target is None else min(worst, settings.target.epsilon)


def unnamed(settings: Settings, max_epsilon: float | None) -> str | None:
    """Return ε where a run promises practically nothing and nobody asked for it so; else None.

    A run that publishes a sanitized ε does not promise its worst case alone.
    """
    drawn = settings.sanitizer is not None and settings.sanitizer.publishes_draw
    if max_epsilon is not None or drawn:
        return None
    epsilon = promised(settings)
    return shown(epsilon) if epsilon > CEILING else None


def refuse_unnamed(settings: Settings, max_epsilon: float | None) -> None:
    """CeilingError for a run that promises practically nothing, and that nobody asked for so."""
    epsilon = unnamed(settings, max_epsilon)
    if epsilon is not None:
        raise CeilingError(
            f"this run would cost epsilon {epsilon} at delta {settings.delta:g}, whatever the "
            f"votes, and above {CEILING:g} practically nothing is promised; nothing was drawn or "
            f"spent. {_cheaper(settings)}. To have it all the same, ask for it by name: "
            f"`max_epsilon` {epsilon}",
            epsilon=float(epsilon),
        )


def foreseen(request: Request, target: TargetPlan, *, rough: bool = False) -> Forecast:
    """Return what made-up teachers would give in a run with a release test. Public.

    Args:
        request: what is asked.
        target: settled for this run.
        rough: as `planning.forecast.forecast` has it.
    """
    from pate_cli.planning.forecast import public_forecast

    return public_forecast(
        request.scored,
        target,
        rows=request.queries,
        max_answers=request.max_answers,
        bound=target.bound,
        rough=rough,
    )


def refuse_hopeless(request: Request, settings: Settings, least: float) -> None:
    """Refuse a run that would hardly pass its release test, however well the teachers agree.

    It looks at public numbers alone.

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
    if foreseen(request, target, rough=True).best_chance >= least + _ROUGH_BY:
        return
    chance = foreseen(request, target).best_chance
    if chance >= least:
        return
    from pate_cli.planning.forecast import what_would_pass

    fewer, larger = what_would_pass(
        request.scored, target, rows=request.queries, bound=target.bound, least=least
    )
    advice = f"Take more noise, or a `target_epsilon` of about {larger:.2g}"
    if fewer:
        advice = f"Ask at most `max_queries` {fewer}"
    raise UnreachableError(
        f"this run would pass its release test with probability {chance:.2g} at most, below "
        f"`min_pass` {least:g}; nothing was drawn or spent. {advice}; "
        "`min_pass` 0 starts it all the same"
    )


def kind_of(release: ReleaseKind | str | None, *, default: ReleaseKind) -> ReleaseKind:
    """Return what is published beside the labels: a sanitized bound or nothing.

    UsageError for a target, which is tested and not drawn.
    """
    kind = default if release is None else ReleaseKind(release)
    if kind is ReleaseKind.TARGET:
        raise UsageError("`release` target goes with `aggregate` and its `target_epsilon`")
    return kind


def _cheaper(settings: Settings) -> str:
    if settings.target is not None:
        return "State a smaller `target_epsilon`"
    return "Lower `max_queries` or `max_answers`, take more noise, or state `target_epsilon`"


def _check_delta(request: Request) -> None:
    """ParameterError for a δ beside which floating-point noise is not negligible."""
    mechanism, delta = request.mechanism, request.delta
    if isinstance(mechanism, ScoredMechanism):
        rows = (Rows(mechanism, request.queries, request.max_answers),)
        least = Cost(delta, rows).least_delta
    else:
        least = mechanism.smallest_delta(request.queries)
    if 0.0 < delta < least:
        raise ParameterError(
            f"`delta` must be at least {least:g} for {request.queries} queries over "
            f"{request.file.classes} classes, got {delta:g}: below it what the resolution of "
            "floating-point noise adds to delta is no longer negligible"
        )


def _told(request: Request, plan: ReleasePlan | None) -> Settings:
    """Return all that a run is told, and is priced by; `private` is for its key to say."""
    analysis = "tight" if plan is None else plan.analysis.value
    return Settings(
        mechanism=request.mechanism.parameters(),
        queries=request.queries,
        max_answers=request.max_answers,
        private=True,
        delta=request.delta,
        analysis=analysis if request.composed is None else "composition",
        sanitizer=plan,
        **request.file.facts.of_round,
    )


def _refuse_beside_target(asked: Mapping[str, Any]) -> None:
    """UsageError for what contradicts a target."""
    given = [name for name in _DRAW if asked[name] is not None]
    if asked["release"] not in (None, ReleaseKind.TARGET):
        given.insert(0, "release")
    if given:
        raise UsageError(
            f"`{given[0]}` does not go with `target_epsilon`: nothing is sanitized; the target "
            "itself is published"
        )
    analysis = Analysis(asked["analysis"])
    if analysis is not Analysis.TIGHT:
        raise UsageError(f"`analysis` {analysis} does not go with `target_epsilon`")


def _at_target(request: Request, target: TargetPlan) -> Settings:
    """Return the settings with a target, tested unless the worst case lies below it."""
    untested, mechanism = _told(request, None), request.mechanism
    worst = Cost.of(untested).own.epsilon
    if isinstance(mechanism, ScoredMechanism):
        found = target.settled(mechanism, queries=request.queries, worst_case=worst)
        return replace(untested, target=found)
    if worst > target.epsilon:
        raise UnreachableError(
            f"{mechanism.name} has no Renyi cost to test, and costs {worst:g} for all votes, above "
            f"the target {target.epsilon:g}"
        )
    return untested


def _sanitizer(request: Request, asked: Mapping[str, Any]) -> ReleasePlan | None:
    """Return how costs of the votes are kept and sanitized, by public numbers.

    None where nothing is sanitized, now or later from a ledger: nothing is kept of the votes.
    """
    release, analysis = asked["release"], Analysis(asked["analysis"])
    plain = analysis is Analysis.TIGHT and all(asked[name] is None for name in _DRAW)
    kind = kind_of(release, default=ReleaseKind.NONE if plain else ReleaseKind.UPPER)
    if request.groups and analysis is not Analysis.TIGHT:
        raise UsageError(f"`analysis` {analysis} does not go with `groups`")
    if request.composed is not None:
        if release is not None and kind is not ReleaseKind.NONE:
            raise UsageError(
                f"`release` {kind} does not go with {request.composed}: nothing to sanitize"
            )
        if analysis is not Analysis.TIGHT:
            raise UsageError(f"`analysis` {analysis} does not go with {request.composed}")
        return None
    if kind is ReleaseKind.NONE and plain and not asked["keep_ledger"]:
        return None
    from pate_cli.planning.sanitized import choose_plan

    plan = choose_plan(
        kind,
        mechanism=request.scored,
        queries=request.queries,
        delta=request.delta,
        order=asked["order"],
        beta=asked["beta"],
        sigma=asked["sigma_release"],
    )
    return analysis_of(analysis).plan(plan)
