"""The short summary of a run or a release, or of what a run would cost, for a person."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from pate_cli.core.said import Pairs
from pate_cli.disclosure.facts import Quote
from pate_cli.disclosure.figures import nats, shown, verdict
from pate_cli.disclosure.guarantee import WHATEVER, everything, premise_of, promise
from pate_cli.disclosure.report import PublicPrior, Report

_Rows: TypeAlias = Iterable[tuple[str, str]]


def of_report(
    report: Report,
    *,
    publish: Sequence[str],
    secret: Sequence[str],
    check: Sequence[str] = (),
    records: Sequence[str] = (),
    rows: int | None = None,
) -> Pairs:
    """Return what was released, what it is worth, and what to do with the files.

    Args:
        report: what was released.
        publish: files to publish, as a person named them.
        secret: files to keep secret.
        check: files that `pate verify` takes.
        records: files that tell of all runs.
        rows: how many rows the votes have, if that is known.
    """
    found = [*_released(report, rows)]
    found.append(("publish" if report.claimed else "written", ", ".join(publish)))
    found.append(("keep secret", ", ".join(secret)))
    if records:
        found.append(("record", ", ".join(records)))
    elif report.claimed:
        found.append(("record", "none: this run and earlier ones are charged nowhere"))
    if check:
        found.append(("check it", shlex.join(["pate", "verify", *check])))
    return Pairs(found)


def not_asked(report: Report, rows: int) -> str | None:
    """Say how many of the rows of the votes were not asked; None where all were."""
    left = rows - report.queries
    if left <= 0:
        return None
    return f"the first {report.queries} {report.rows}; the {left} after them were not asked"


def _released(report: Report, rows: int | None) -> _Rows:
    left = None if rows is None else not_asked(report, rows)
    if left is not None:
        yield "asked", left
    yield "answered", f"{report.answers} of {report.queries} {report.rows}"
    yield "epsilon", promise(report).removeprefix("epsilon ")
    if report.epsilon_kind == "upper" and report.claimed:
        worst = nats(report.data_independent.epsilon)
        yield "worst case", f"{worst}; {WHATEVER}{premise_of(report)}"
    if len({own.epsilon for own in report.groups}) > 1:
        least, *_, most = sorted(report.groups, key=lambda own: own.epsilon)
        ends = (f"{nats(own.epsilon)} for {own.group}" for own in (least, most))
        yield "by group", f"from {' to '.join(ends)}"
    yield from _guessed(report.prior)
    if not report.claimed:
        yield "privacy", report.summary
        return
    epsilon, delta, kind = everything(report)
    if report.spent is not None and kind != report.epsilon_kind:
        runs = f"the {report.spent.count} runs in the record"
        yield "in all", f"{nats(epsilon)} at delta {shown(delta)} for {runs}; {WHATEVER}"
    yield "privacy", verdict(epsilon, delta, kind)


def of_quote(quote: Quote) -> Pairs:
    """Return what a run would cost; nothing was drawn."""
    return Pairs([*_quoted(quote)])


def _quoted(quote: Quote) -> _Rows:
    yield "dry run", "the votes are in order; nothing was drawn, spent or labelled"
    yield "would ask", f"{quote.queries} rows, for at most {quote.max_answers} answers"
    expected = quote.target.expected if quote.target is not None else None
    if expected is not None:
        answers, right = expected["answers"], expected["agreement"]
        told = f"about {answers:.0f} answers, if teachers are right {right:.0%} of the time"
        yield "expect", told
    reading = "whatever the votes" if quote.sound else "nothing is promised"
    yield "epsilon", f"at most {nats(quote.epsilon)} at delta {shown(quote.delta)}; {reading}"
    yield from _guessed(quote.prior)
    if quote.target is not None and quote.target.needed:
        refusal = shown(quote.target.refusal_epsilon)
        told = f"a failed test gives no labels and costs {refusal}"
        if quote.target.chances is not None:
            passes = math.floor(100.0 * quote.target.chances["worst"]["chance"])
            told = f"in the worst case tried {passes} in 100 runs pass; {told}"
        yield "target", told
    if quote.sound:
        yield "privacy", verdict(quote.epsilon, quote.delta)
    else:
        yield "privacy", "none: what the warning names was read from the votes"


def _guessed(prior: PublicPrior | None) -> _Rows:
    """Yield what ε presupposes of a prior, if there is one."""
    if prior is not None:
        weight = "votes" if prior.weight is None else f"{prior.weight} votes"
        told = "void if the votes or any private data shaped them"
        yield "prior", f"{weight} for each of {prior.guesses} guesses; {told}"
