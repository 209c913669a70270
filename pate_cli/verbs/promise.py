"""Settings of a run, chosen from keywords before any vote is seen.

The settings determine the guarantee of the run. This module also refuses a run or a session that
could cost too much, or that would hardly give labels. Settings and refusals depend on public
numbers only. A refused run or session draws no noise and costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any, Final

from pate_cli.core.errors import CeilingError, ParameterError, UnreachableError, UsageError
from pate_cli.core.noise import RunKey
from pate_cli.core.words import CEILING, Analysis, Bound, ReleaseKind
from pate_cli.disclosure.cost import Cost, shown
from pate_cli.disclosure.entry import RecordPlace
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
_SAYS_MORE: Final = (
    *("max_queries", "max_answers", "votes_per_teacher", "release", *_DRAW),
    *("keep_ledger", "checkpoint"),
)
"""If none of these keywords is given, the target of a run may be all that is left of a budget."""
_ROUGH_BY: Final = 0.06
"""How much too large the pass probability of a rough forecast may be."""
_HOPELESS: Final = 0.1
"""A rough forecast with this share of the wanted pass probability is certain to be too small."""


def budget_of(asked: Mapping[str, Any]) -> Budget | None:
    """Return the budget in the keywords; None if there is none."""
    return Budget.of(asked["budget"], delta=asked["budget_delta"], order=asked["budget_order"])


def record_of(asked: Mapping[str, Any]) -> RecordPlace:
    """Return the record that the keywords name, or the record beside the vote file."""
    return RecordPlace.of(
        asked.get("votes"),
        record=asked.get("record"),
        ensemble=asked.get("ensemble"),
        disjoint_from=asked.get("disjoint_from", ()),
        seeded=asked.get("seed") is not None,
        accept_lost=asked.get("accept_lost_record", False),
    )


def run_of(settings: Settings, key: RunKey, began: str, *, session: str | None = None) -> Run:
    """Return the entry of a run or session for a record, before the run has an outcome."""
    # Runs with equal seeds have equal names in reports, but in a record every run needs its own.
    name = key.run_id if key.private else key.name("run")
    return Run.of(id=name, time=began, settings=settings, round=key.name("round"), session=session)


def promised(
    request: Request, asked: Mapping[str, Any], record: RecordPlace
) -> tuple[Request, Settings]:
    """Complete the request of a run, and return it with the settings, before any vote is seen.

    A run with a target gets a release test, unless its worst-case ε is at most the target.

    Args:
        request: the votes and the mechanism.
        asked: every parameter of `aggregate`, by name.
        record: where the public file is that lists all runs on these teachers.

    Returns:
        The request, with the number of rows and the noise that follow from the target, and the
        settings.

    Raises:
        ParameterError: δ is smaller than the rounding errors of the drawn noise allow.
        UsageError: keywords contradict each other or the votes.
        UnreachableError: with the target, answers would be too noisy, or most runs would fail their
            release test; or the worst case of the mechanism is above the target, and the mechanism
            cannot have a release test.
    """
    target = _target({**asked, "votes_per_teacher": request.file.facts.voting}, record)
    if target is not None and request.composed is None:
        request = request.by_rule(target, rows_given=asked["max_queries"] is not None)
    mechanism, queries = request.mechanism, request.queries
    _check_delta(request)
    plan = None if target is not None else _sanitizer(request, asked)
    settings = request.settings(
        Analysis.TIGHT if plan is None else plan.analysis,
        private=asked["seed"] is None,
        sanitizer=plan,
        training=Training.of(asked["teacher_epsilon"], asked["teacher_delta"]),
    )
    if target is None:
        return request, settings
    worst = Cost.of(settings).own.epsilon
    if isinstance(mechanism, ScoredMechanism):
        found = target.settled(mechanism, queries=queries, worst_case=worst)
        return request, replace(settings, target=found)
    if worst > target.epsilon:
        raise UnreachableError(
            f"{mechanism.name} costs epsilon {worst:g} in the worst case, above the target "
            f"{target.epsilon:g}, and it cannot have a release test, because it has no RDP "
            "cost. Ask fewer queries, or give another `mechanism`"
        )
    return request, settings


def account_of(request: Request, settings: Settings) -> LedgerAccount | None:
    """Return the account that collects the RDP costs of a run for a ledger or a sanitized ε.

    The result is None if the run has no plan for a ledger or a sanitized ε.
    """
    plan = settings.sanitizer
    if plan is None:
        return None
    paper = published(settings.analysis)
    if paper is not None:
        return paper.account(request.scored, plan)
    return LedgerAccount(request.scored, plan, settings.few)


def _target(asked: Mapping[str, Any], record: RecordPlace) -> TargetPlan | None:
    """Return the target of a run: the target that the user gave, or the rest of a budget.

    The rest of a budget becomes the target only if the user gave no target, no parameter of the
    mechanism and no keyword in `_SAYS_MORE`, and `analysis` is tight. Without a target the result
    is None. If nothing is left of the budget, there is no target, and the budget later refuses the
    run.
    """
    epsilon, budget, choice = asked["target_epsilon"], budget_of(asked), mechanism_of(asked)
    if epsilon is None and budget is not None and record.file is not None:
        plain = isinstance(choice, MechanismChoice) and choice.name in RULED and not choice.given
        tight = Analysis(asked["analysis"]) is Analysis.TIGHT
        if plain and tight and not any(asked.get(name) for name in _SAYS_MORE):
            ensemble, apart = record.ensemble, record.disjoint_from
            spent = budget.spent(record.record.runs, ensemble=ensemble, disjoint_from=apart)[-1]
            left = Decimal(repr(budget.left(spent)[0]))
            epsilon = float(left.quantize(Decimal("1e-4"), ROUND_FLOOR)) or None
    return stated_target({**asked, "target_epsilon": epsilon})


def stated_target(asked: Mapping[str, Any]) -> TargetPlan | None:
    """Return the target in the keywords of a verb; None if there is none.

    Raises:
        ParameterError: a number is out of range.
        UsageError: a keyword is only allowed with a target, or only without one.
    """
    epsilon, refusal = asked["target_epsilon"], asked["refusal_epsilon"]
    if epsilon is None:
        if refusal is not None:
            raise UsageError("`refusal_epsilon` needs a `target_epsilon`")
        return None
    for name in ("release", *_DRAW):
        if asked.get(name) not in (None, ReleaseKind.TARGET):
            raise UsageError(
                f"`{name}` cannot be used with `target_epsilon`: the target itself is published, "
                "and no sanitized value is drawn"
            )
    analysis, bound = Analysis(asked["analysis"]), Bound(asked["bound"])
    if analysis is not Analysis.TIGHT:
        raise UsageError(
            f"`analysis` {analysis} cannot be used with `target_epsilon`; give `analysis` tight"
        )
    if asked.get("keep_ledger"):
        raise UsageError(
            "a ledger cannot be used with `target_epsilon`: labels with a release test have an "
            "(epsilon, delta), but no RDP costs for a ledger"
        )
    return TargetPlan.of(epsilon, delta=asked["delta"], refusal_epsilon=refusal, bound=bound)


def kind_of(release: ReleaseKind | str | None, *, plain: bool) -> ReleaseKind:
    """Return whether a sanitized ε is published beside the labels.

    Args:
        release: the keyword `release` of the user; None if the user left it out.
        plain: False if another keyword than `release` asks for a sanitized ε, for example
            `sigma_release`; True if none does.

    Raises:
        UsageError: `release` is `target`, for which no sanitized ε is drawn.
    """
    if release is None:
        return ReleaseKind.NONE if plain else ReleaseKind.UPPER
    kind = ReleaseKind(release)
    if kind is ReleaseKind.TARGET:
        raise UsageError(
            "`release` target is only for `aggregate` with a `target_epsilon`; give `release` none "
            "or upper"
        )
    return kind


def plan_of(
    kind: ReleaseKind, rounds: Sequence[tuple[ScoredMechanism, int]], asked: Mapping[str, Any]
) -> ReleasePlan:
    """Choose the public parameters for the ledger of some rounds and for the draw of its ε.

    Args:
        kind: whether a sanitized ε is published.
        rounds: the mechanism and the number of rows of each round.
        asked: a mapping with `delta`, `analysis`, `order`, `beta` and perhaps
            `sigma_release`.
    """
    from pate_cli.planning.sanitized import choose_plan

    plan = choose_plan(
        kind,
        rounds,
        delta=asked["delta"],
        order=asked["order"],
        beta=asked["beta"],
        sigma=asked.get("sigma_release"),
    )
    paper = published(asked["analysis"])
    return plan if paper is None else paper.plan(plan)


def _check_delta(request: Request) -> None:
    """Raise ParameterError if δ is smaller than the rounding errors of the drawn noise allow."""
    mechanism, delta, queries = request.mechanism, request.delta, request.queries
    least = mechanism.smallest_delta(queries)
    if delta < least and request.composed is None:
        least = Cost.of_rows(mechanism, queries, request.max_answers, delta).least_delta
    if delta < least:
        raise ParameterError(
            f"`delta` must be at least {least:g} for {queries} queries over "
            f"{request.file.classes} classes, got {delta:g}: below {least:g}, the error of "
            "floating-point noise is too large"
        )


def _sanitizer(request: Request, asked: Mapping[str, Any]) -> ReleasePlan | None:
    """Choose the public parameters for the ledger of a run and for the draw of its sanitized ε.

    Return None if no keyword asks for a ledger or for a sanitized ε.
    """
    analysis, ledger = Analysis(asked["analysis"]), asked["keep_ledger"]
    tight = analysis is Analysis.TIGHT
    plain = tight and all(asked[name] is None for name in _DRAW)
    kind = kind_of(asked["release"], plain=plain)
    if not tight and request.file.facts.groups:
        raise UsageError(
            f"`analysis` {analysis} cannot be used with `groups`; give `analysis` tight"
        )
    if kind is ReleaseKind.NONE and plain and not ledger:
        return None
    if request.composed is None:
        return plan_of(kind, [(request.scored, request.queries)], asked)
    if tight and kind is ReleaseKind.NONE and not ledger:
        return None
    raise UsageError(
        f"{request.composed} has no RDP cost, so `analysis` paper, `release` upper and a ledger "
        "cannot be used with it"
    )


def refuse_dear(settings: Settings, most: float | None) -> None:
    """Refuse a run or session that could cost more than `max_epsilon`, by default `CEILING`.

    `CEILING` does not limit a run with a seed, a run that publishes a sanitized ε, or a run whose ε
    for one training record, computed by `Training.amplified`, is at most `CEILING`.

    Args:
        settings: the settings of the run or session.
        most: `max_epsilon`, in nats; None if it is left out.

    Raises:
        UnreachableError: the run could cost more than `max_epsilon`.
        CeilingError: `max_epsilon` is left out, and the run could cost more than `CEILING`.
    """
    epsilon, plan = Cost.of(settings).own.epsilon, settings.sanitizer
    named = shown(epsilon)
    costs = f"this could cost epsilon {named} at delta {settings.delta:g}"
    cheaper = (
        "nothing was drawn or spent. Lower `max_queries`, take more noise, or state a smaller "
        "`target_epsilon`"
    )
    if most is not None and epsilon > most:
        raise UnreachableError(f"{costs}, above `max_epsilon` {most:g}; {cheaper}")
    training = settings.training
    exempt = not settings.private or (plan is not None and plan.publishes_draw)
    if training is not None and training.amplified(epsilon, settings.delta) <= CEILING:
        exempt = True  # The teacher's training protects one training record.
    if most is None and not exempt and epsilon > CEILING:
        raise CeilingError(
            f"{costs}, and an epsilon above {CEILING:g} protects hardly anybody; {cheaper}. "
            f"To start anyway, give `max_epsilon` {named}",
            epsilon=float(named),
        )


def foreseen(request: Request, settings: Settings, *, rough: bool = False) -> Forecast | None:
    """Return the pass probability and the expected answers of a run, without any real vote.

    The forecast is for made-up teachers, and it is public. The result is None if the run has no
    release test, or if the run limits the number of queries that each teacher votes on. With
    `rough` the forecast is quicker, and its pass probability may be 0.06 too large or 0.2 too
    small.
    """
    if settings.tested is None or settings.voting is not None:
        return None
    from pate_cli.planning.forecast import public_forecast

    shape = {"rows": settings.queries, "max_answers": settings.max_answers}
    return public_forecast(request.scored, settings.tested, **shape, rough=rough)


def refuse_hopeless(request: Request, settings: Settings, least: float) -> None:
    """Refuse a run that would hardly pass its release test even if the teachers agree well.

    Args:
        request: the votes and the mechanism.
        settings: the settings of the run.
        least: a run starts if its pass probability, at the most favourable level of agreement, is
            at least `least`. If `least` is 0, every run starts.

    Raises:
        UnreachableError: labels pass the release test with a smaller probability than `least`;
            the message names settings with which they would pass.
    """
    target = settings.tested
    if target is None or least == 0.0:
        return
    from pate_cli.planning.forecast import what_would_pass

    best = 0.0
    for rough in (True, False):
        found = foreseen(request, settings, rough=rough)
        if found is None or found.best_chance >= least + (_ROUGH_BY if rough else 0.0):
            return
        best = found.best_chance
        if best < _HOPELESS * least:  # A longer computation would not let the run start.
            break
    fewer, larger = what_would_pass(request.scored, target, rows=settings.queries, least=least)
    advice = f"Take more noise, or a `target_epsilon` of about {larger:.2g}"
    if fewer:
        advice = f"Give `max_queries` {fewer} or less"
    raise UnreachableError(
        f"this run would pass its release test with a probability of about {best:.2g} at best, "
        f"below `min_pass` {least:g}; nothing was drawn or spent. {advice}; with `min_pass` 0 "
        "the run starts anyway"
    )
