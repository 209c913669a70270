"""What a report says of itself, from its own facts: written with it, and read against it.

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
from pate_cli.core.words import Analysis, Bound, PublicFact, ReleaseKind
from pate_cli.disclosure.crosscheck import reworded
from pate_cli.disclosure.guarantee import (
    DRAWS,
    TOTAL,
    UNTRACKED,
    VOID,
    adjacency,
    covers,
    gap_of,
    met,
    public_prior,
    statements,
    summary,
    tested_covers,
    tested_statements,
    tested_summary,
    total_headline,
    total_statements,
    total_summary,
)
from pate_cli.disclosure.ledger import Round
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.stop_rule import StopRule
from pate_cli.votes.facts import Group, PriorFacts

_CONDITIONAL_HOLDS: Final = 5  # since this version of the report
_ACCOUNTS: Final = 7
_DAMAGED: Final = Refusal(LedgerError, "the rule of a session is damaged: ")


def worded(report: Report) -> Report:
    """The report with the words that its facts are worth, and with what it may claim.

    The facts are taken as they stand. `warnings` are not looked at.

    Raises:
        PateError: rounds that no run has.
    """
    crosscheck = report.crosscheck
    if crosscheck is not None:
        crosscheck = reworded(crosscheck, report.data_independent)
    rounds = rounds_of(report)
    told = replace(report, crosscheck=crosscheck, prior=public_prior(rounds))
    told = _tested(told) if told.tested is not None else _released(told)
    if told.read_as >= _ACCOUNTS:
        told = _accounted(told)
    if told.prior is not None and any(reading.holds for reading in told.statements):
        told = replace(told, summary=told.summary + VOID)
    return told


def claimed_gap(report: Report) -> str | None:
    """Why nothing can be claimed of it at all; None where nothing stands in the way."""
    tested = report.tested
    return gap_of(
        [fact for fact in PublicFact if fact in report.unsettled],
        recorded=DRAWS not in report.unsettled,
        too_low=tested is not None
        and tested.bound == Bound.CONDITIONAL
        and report.read_as < _CONDITIONAL_HOLDS,
    )


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


def _released(report: Report) -> Report:
    rounds, gap = rounds_of(report), claimed_gap(report)
    kind, drawn = ReleaseKind(report.sanitized.release), report.sanitized.epsilon is not None
    # The published analysis bounds nothing that depends on the votes.
    analysed = report.analysis != Analysis.PAPER or not drawn
    public = report.epsilon == report.data_independent.epsilon
    external, by_group = len(report.external), bool(report.groups)
    total = report.epsilon_kind == TOTAL
    said = summary(
        kind=kind,
        private=report.private,
        epsilon=report.epsilon,
        delta=report.delta,
        data_independent=public,
        sound=analysed,
        rounds=len(rounds),
        external=external,
        gap=gap,
        by_group=by_group,
    )
    if total and report.private and gap is None:
        said = total_headline(report.epsilon, report.delta)
    sound = analysed and gap is None
    if report.met_target is not None and report.private and sound:
        said += met(report.met_target)
    return replace(
        report,
        sound=sound,
        summary=said,
        adjacency=adjacency(rounds, external=bool(external)),
        covers=covers(kind, earlier=len(report.earlier_draws), external=external),
        statements=statements(
            kind,
            private=report.private,
            sound=analysed,
            rounds=len(rounds),
            external=external,
            gap=gap,
            by_group=by_group,
            data_independent=public,
        ),
    )


def _accounted(report: Report) -> Report:
    """The report, with what it says of all runs that its record tells of."""
    spent = report.spent
    if spent is None:
        return replace(report, covers=report.covers + UNTRACKED)
    claimed = any(each.holds for each in report.statements if each.id == "all-votes")
    holds = claimed and all(run.claimed for run in spent.runs)
    several = spent.count > 1 and report.epsilon_kind != TOTAL
    if spent.count == 1 and report.epsilon_kind != TOTAL:
        return report
    return replace(
        report,
        summary=report.summary + (total_summary(spent) if holds and several else ""),
        statements=(*report.statements, *total_statements(spent, holds=holds)),
    )


def _tested(report: Report) -> Report:
    tested, gap = report.tested, claimed_gap(report)
    if tested is None:
        raise ValueError("a target that was tested is wanted")
    return replace(
        report,
        sound=gap is None,
        summary=tested_summary(
            passed=tested.passed,
            private=report.private,
            target=tested.target,
            refusal_epsilon=tested.refusal_epsilon,
            delta=report.delta,
            gap=gap,
        ),
        adjacency=adjacency(rounds_of(report)),
        covers=tested_covers(passed=tested.passed),
        statements=tested_statements(holds=report.private and gap is None),
    )
