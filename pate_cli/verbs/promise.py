"""Settings of a run, and so its promise: from keywords and public rules, before any vote."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal
from typing import Any, Final

from pate_cli.core.errors import ParameterError, UnreachableError, UsageError
from pate_cli.core.noise import RunKey
from pate_cli.core.words import Analysis, Bound, ReleaseKind
from pate_cli.disclosure.budget import Budget
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.record_place import RecordPlace
from pate_cli.disclosure.runs import Run
from pate_cli.disclosure.settings import Settings
from pate_cli.disclosure.target import TargetPlan
from pate_cli.disclosure.total import left_of
from pate_cli.mechanisms import RULED, MechanismChoice
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.run.accounts import LedgerAccount
from pate_cli.verbs.analyses import analysis_of
from pate_cli.verbs.request import Request, Votes, mechanism_of, requested

_DRAW: Final = ("order", "beta", "sigma_release")
_SAYS_MORE: Final = ("max_queries", "max_answers", "release", *_DRAW, "keep_ledger", "checkpoint")
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


def run_of(settings: Settings, key: RunKey, began: str, *, session: str | None = None) -> Run:
    """Return a run or a session as a record has it, before it has an outcome."""
    # The seed alone gives a report its name; in a record a run of one is its own.
    name = key.run_id if key.private else key.name("run")
    return Run.of(id=name, time=began, settings=settings, round=key.name("round"), session=session)


@contextlib.contextmanager
def priced(
    asked: Mapping[str, Any], budget: Budget | None, record: RecordPlace, ledger: Any = None
) -> Iterator[tuple[Request, Settings, LedgerAccount | None]]:
    """Open the votes and settle what a run on them is told, before any vote is seen.

    Args:
        asked: every parameter of `aggregate`, by name.
        budget: what all runs of the record may cost.
        record: of these teachers.
        ledger: the file of a ledger, where one is written.

    Yields:
        The request, its settings, and what keeps of the votes what a ledger needs; None where
        nothing is kept.

    Raises:
        PateError: the votes cannot be read, or keywords contradict each other or the votes.
        UnreachableError: a target out of reach.
    """
    asked = {**asked, "keep_ledger": asked["keep_ledger"] or ledger is not None}
    target = _target(asked, budget, record)
    with requested(asked) as request:
        if target is not None and request.composed is None:
            request = request.by_rule(target, rows_given=asked["max_queries"] is not None)
        settings, account = _settings(request, asked, target), None
        if settings.sanitizer is not None:
            analysis = analysis_of(settings.analysis)
            account = analysis.account(request.scored, settings.sanitizer)
        yield request, settings, account


def _target(
    asked: Mapping[str, Any], budget: Budget | None, record: RecordPlace
) -> TargetPlan | None:
    """Return the target: as stated, or all that is left of a budget where that alone is stated.

    None without a target, and where nothing is left: the budget then refuses the run.

    Raises:
        ParameterError, UsageError: a target out of range, or what makes no sense without one or
            beside one.
    """
    epsilon, analysis = asked["target_epsilon"], Analysis(asked["analysis"])
    if epsilon is None and budget is not None and record.file is not None:
        choice = mechanism_of(asked)
        plain = isinstance(choice, MechanismChoice) and choice.name in RULED and not choice.given
        told = any(asked.get(name) for name in _SAYS_MORE)
        if plain and not told and analysis is Analysis.TIGHT:
            left = Decimal(repr(left_of(budget, record.record.runs)[0]))
            epsilon = float(left.quantize(Decimal("1e-4"), ROUND_FLOOR)) or None
    if epsilon is None:
        if asked["refusal_epsilon"] is not None:
            raise UsageError("`refusal_epsilon` goes with `target_epsilon`")
        return None
    for name in ("release", *_DRAW):
        if asked[name] not in (None, ReleaseKind.TARGET):
            raise UsageError(
                f"`{name}` does not go with `target_epsilon`: nothing is sanitized; the target "
                "itself is published"
            )
    if analysis is not Analysis.TIGHT:
        raise UsageError(f"`analysis` {analysis} does not go with `target_epsilon`")
    if asked["keep_ledger"]:
        raise UsageError(
            "a ledger does not go with `target_epsilon`: the law of tested labels includes their "
            "test, so they add to other rounds as (epsilon, delta) and not by a ledger"
        )
    delta, refusal, bound = asked["delta"], asked["refusal_epsilon"], Bound(asked["bound"])
    return TargetPlan.of(epsilon, delta=delta, refusal_epsilon=refusal, bound=bound)


def _settings(request: Request, asked: Mapping[str, Any], target: TargetPlan | None) -> Settings:
    """Return what a run is told; a target is tested unless the worst case lies below it.

    Raises:
        ParameterError: a δ beside which floating-point noise is not negligible.
        UsageError: keywords that contradict each other.
        UnreachableError: a target out of reach.
    """
    mechanism, queries, most = request.mechanism, request.queries, request.max_answers
    _check_delta(request)
    plan = None if target is not None else _sanitizer(request, asked)
    analysis = "tight" if plan is None else plan.analysis.value
    settings = Settings(
        mechanism=mechanism.parameters(),
        queries=queries,
        max_answers=most,
        private=asked["seed"] is None,
        delta=request.delta,
        analysis=analysis if request.composed is None else "composition",
        sanitizer=plan,
        **request.file.facts.of_round,
    )
    if target is None:
        return settings
    worst = Cost.of(settings).own.epsilon
    if isinstance(mechanism, ScoredMechanism):
        found = target.settled(mechanism, queries=queries, worst_case=worst)
        return replace(settings, target=found)
    if worst > target.epsilon:
        raise UnreachableError(
            f"{mechanism.name} has no Renyi cost to test, and costs {worst:g} for all votes, above "
            f"the target {target.epsilon:g}"
        )
    return settings


def kind_of(release: ReleaseKind | str | None, *, default: ReleaseKind) -> ReleaseKind:
    """Return what is published beside the labels: a sanitized bound or nothing.

    UsageError for a target, which is tested and not drawn.
    """
    kind = default if release is None else ReleaseKind(release)
    if kind is ReleaseKind.TARGET:
        raise UsageError("`release` target goes with `aggregate` and its `target_epsilon`")
    return kind


def _check_delta(request: Request) -> None:
    """ParameterError for a δ beside which floating-point noise is not negligible."""
    mechanism, delta, queries = request.mechanism, request.delta, request.queries
    least = mechanism.smallest_delta(queries)
    if 0.0 < delta < least and request.composed is None:
        least = Cost.of_rows(mechanism, queries, request.max_answers, delta).least_delta
    if 0.0 < delta < least:
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
    if request.composed is not None:
        for what, wanted in (
            (f"`analysis` {analysis}", not tight),
            (f"`release` {kind}", kind is not ReleaseKind.NONE),
            ("a ledger", ledger),
        ):
            if wanted:
                raise UsageError(
                    f"{what} does not go with {request.composed}, which has no Renyi cost to keep "
                    "or to sanitize"
                )
        return None
    if kind is ReleaseKind.NONE and plain and not ledger:
        return None
    from pate_cli.planning.sanitized import choose_plan

    plan = choose_plan(
        kind,
        [(request.scored, request.queries)],
        delta=request.delta,
        order=asked["order"],
        beta=asked["beta"],
        sigma=asked["sigma_release"],
    )
    return analysis_of(analysis).plan(plan)
