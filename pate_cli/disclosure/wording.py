"""Words of a report, from its own numbers: written with it, and read against it.

One home for both, so that whoever reads a stranger's report can say what its numbers are worth in
our words, whatever words it came with.
"""

from __future__ import annotations

from dataclasses import replace

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
from pate_cli.votes.facts import Group


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
        Round.of(
            done,
            id=f"rounds.{number}",
            answers=done.answers,
            groups=groups,
            read_off=read_off,
        )
        for number, done in enumerate(report.rounds)
    )


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
