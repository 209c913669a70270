"""Words of a report, from its own numbers: written with it, and read against it.

One home for both, so that whoever reads a stranger's report can say what its numbers are worth in
our words, whatever words it came with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from pate_cli.core.codec import Refusal, decoded
from pate_cli.core.errors import LedgerError, ParameterError
from pate_cli.core.label_set import LabelSet
from pate_cli.core.words import PublicFact, ReleaseKind
from pate_cli.disclosure.crosscheck import reworded
from pate_cli.disclosure.guarantee import (
    TOTAL,
    UNTRACKED,
    VOID,
    Claims,
    adjacency,
    covers,
    public_prior,
    statements,
    summary,
    tested_covers,
    tested_statements,
    tested_summary,
    total_statements,
    total_summary,
)
from pate_cli.disclosure.ledger import Round
from pate_cli.disclosure.report import Report, Tested
from pate_cli.disclosure.stop_rule import StopRule
from pate_cli.votes.facts import Group, PriorFacts

_DAMAGED: Final = Refusal(LedgerError, "the rule of a session is damaged: ")


def worded(report: Report) -> Report:
    """The report with the words that its facts are worth, and with what it may claims.

    The facts are taken as they stand. `warnings` are not looked at.

    Raises:
        PateError: rounds that no run has.
    """
    crosscheck, tested = report.crosscheck, report.tested
    if crosscheck is not None:
        crosscheck = reworded(crosscheck, report.data_independent)
    rounds = rounds_of(report)
    claims = Claims(replace(report, crosscheck=crosscheck, prior=public_prior(rounds)), rounds)
    told = _accounted(_released(claims) if tested is None else _tested(claims, tested))
    if told.prior is not None and any(reading.holds for reading in told.statements):
        told = replace(told, summary=told.summary + VOID)
    return told


def claimed_gap(report: Report) -> str | None:
    """Return why nothing can be claimed of a report; None where nothing stands in the way."""
    return Claims(report, ()).gap


def rounds_of(report: Report) -> tuple[Round, ...]:
    """The rounds as a ledger has them; their names are known to nobody else.

    Raises:
        LedgerError: numbers that contradict each other.
        VoteError: the same of its groups.
    """
    groups = tuple(
        Group(**{name: getattr(group, name) for name in Group.__dataclass_fields__})
        for group in report.groups
    )
    read_off = tuple(fact for fact in PublicFact if fact in report.unsettled)
    return tuple(
        Round(
            id=f"rounds.{number}",
            mechanism=facts["mechanism"],
            queries=facts["queries"],
            max_answers=facts["max_answers"],
            answers=facts["answers"],
            groups=groups,
            read_off=read_off,
            label_set=_label_set(facts),
            prior=prior_of_round(facts),
            rule=rule_of_round(facts),
        )
        for number, facts in enumerate(report.rounds)
    )


def prior_of_round(facts: Mapping[str, Any]) -> PriorFacts | None:
    """The prior of a round of a report."""
    return PriorFacts(**facts["prior"]) if "prior" in facts else None


def rule_of_round(facts: Mapping[str, Any]) -> StopRule | None:
    """The rule of a session."""
    return decoded(StopRule, facts["rule"], _DAMAGED) if "rule" in facts else None


def _label_set(facts: Mapping[str, Any]) -> LabelSet | None:
    try:
        return LabelSet.from_facts(facts) if "labels_per_query" in facts else None
    except ParameterError as error:
        raise LedgerError(str(error)) from None


def _released(claims: Claims) -> Report:
    report = claims.report
    return replace(
        report,
        sound=claims.analysed and claims.gap is None,
        summary=summary(claims),
        adjacency=adjacency(claims.rounds, external=bool(report.external)),
        covers=covers(
            ReleaseKind(report.sanitized.release),
            earlier=len(report.earlier_draws),
            external=len(report.external),
        ),
        statements=statements(claims),
    )


def _tested(claims: Claims, tested: Tested) -> Report:
    return replace(
        claims.report,
        sound=claims.gap is None,
        summary=tested_summary(claims, tested),
        adjacency=adjacency(claims.rounds),
        covers=tested_covers(passed=tested.passed),
        statements=tested_statements(holds=claims.open),
    )


def _accounted(report: Report) -> Report:
    """Return the report with what it says of all runs that its record tells of."""
    spent, total = report.spent, report.epsilon_kind == TOTAL
    if spent is None:
        return replace(report, covers=report.covers + UNTRACKED)
    if spent.count == 1 and not total:
        return report
    holds = report.claims("all-votes") and all(run.claimed for run in spent.runs)
    return replace(
        report,
        summary=report.summary + (total_summary(spent) if holds and not total else ""),
        statements=(*report.statements, *total_statements(spent, holds=holds)),
    )
