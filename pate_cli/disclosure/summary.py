"""The short summary of a run or a release, or of what a run would cost, for a person."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pate_cli.core.said import Pairs
from pate_cli.disclosure.figures import nats, shown, verdict
from pate_cli.disclosure.quote import Quote
from pate_cli.disclosure.report import PublicPrior, Report

_ALL, _NOTHING = "it holds whatever the votes were", "nothing is promised"
_READINGS: Final = {
    "worst-case": f"; {_ALL}",
    "target": f", as you asked; {_ALL}",
    "refusal": f", what the failed test costs; {_ALL}",
    "upper": ", a sanitized bound for these votes",
    "total": f", all runs together; {_ALL}",
}

_Rows = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Handling:
    """Names of a run's files as a person gave them, by what to do with them.

    Attributes:
        publish, secret: files to publish, and to keep secret.
        check: files that `pate verify` takes.
        records: files that tell of all runs.
    """

    publish: Sequence[str]
    secret: Sequence[str]
    check: Sequence[str] = ()
    records: Sequence[str] = ()


def of_report(report: Report, files: Handling, *, rows: int | None = None) -> Pairs:
    """Return what was released, what it is worth, and what to do with the files.

    Args:
        report: what was released.
        files: where it lies.
        rows: how many rows the votes have, if that is known.
    """
    claimed = report.private and report.sound
    return Pairs([*_released(report, rows), *_handled(files, claimed=claimed)])


def not_asked(report: Report, rows: int) -> str | None:
    """Say how many of the rows of the votes were not asked; None where all were."""
    left = rows - report.queries
    if left <= 0:
        return None
    return f"the first {report.queries} {report.rows}; the {left} after them were not asked"


def of_quote(quote: Quote) -> Pairs:
    """Return what a run would cost; nothing was drawn."""
    return Pairs([*_quoted(quote)])


def _released(report: Report, rows: int | None) -> _Rows:
    left = None if rows is None else not_asked(report, rows)
    if left is not None:
        yield "asked", left
    yield "answered", f"{report.answers} of {report.queries} {report.rows}"
    epsilon = shown(report.epsilon) if report.epsilon_kind == "target" else nats(report.epsilon)
    yield "epsilon", f"{epsilon} at delta {shown(report.delta)}{_reading(report)}"
    if report.epsilon_kind == "upper" and report.claims("all-votes"):
        yield "worst case", f"{nats(report.data_independent.epsilon)}; {_ALL}{_premise(report)}"
    if len({own.epsilon for own in report.groups}) > 1:
        most, least = (choose(report.groups, key=lambda own: own.epsilon) for choose in (max, min))
        spread = (
            f"from {nats(least.epsilon)} for {least.group} to {nats(most.epsilon)} for {most.group}"
        )
        yield "by group", spread
    yield from _guessed(report.prior)
    if not report.private:
        yield "privacy", "none: drawn from a fixed seed, for tests and papers only"
    elif not report.sound:
        yield "privacy", report.summary
    elif report.spent is not None and report.spent.count > 1:
        spent = report.spent
        if report.epsilon_kind != "total":
            total = f"{nats(spent.epsilon)} at delta {shown(spent.delta)}"
            yield "in all", f"{total} for the {spent.count} runs in the record; {_ALL}"
        yield "privacy", verdict(spent.epsilon, spent.delta)
    else:
        yield "privacy", verdict(report.epsilon, report.delta, report.epsilon_kind)


def _reading(report: Report) -> str:
    """Return what stands behind ε: for which votes it holds, where it holds for any."""
    if not (report.private and report.sound):
        return f"; {_NOTHING}"
    return _READINGS[report.epsilon_kind].replace(_ALL, f"{_ALL}{_premise(report)}")


def _premise(report: Report) -> str:
    """Return what the worst case of several rounds rests on; "" for one round."""
    several = len(report.rounds) > 1 or report.external
    return ", if all rounds were fixed beforehand" if several else ""


def _handled(files: Handling, *, claimed: bool) -> _Rows:
    yield "publish" if claimed else "written", ", ".join(files.publish)
    yield "keep secret", ", ".join(files.secret)
    if files.records:
        yield "record", ", ".join(files.records)
    elif claimed:
        yield "record", "none: this run and earlier ones are charged nowhere"
    if files.check:
        yield "check it", shlex.join(["pate", "verify", *files.check])


def _quoted(quote: Quote) -> _Rows:
    yield "dry run", "the votes are in order; nothing was drawn, spent or labelled"
    yield "would ask", f"{quote.queries} rows, for at most {quote.max_answers} answers"
    expected = quote.target.expected if quote.target is not None else None
    if expected is not None:
        answers, right = expected["answers"], expected["agreement"]
        yield (
            "expect",
            f"about {answers:.0f} answers, if teachers are right {right:.0%} of the time",
        )
    reading = "whatever the votes" if quote.sound else _NOTHING
    yield "epsilon", f"at most {nats(quote.epsilon)} at delta {shown(quote.delta)}; {reading}"
    yield from _guessed(quote.prior)
    if quote.target is not None and quote.target.needed:
        refusal = shown(quote.target.refusal_epsilon)
        yield "target", f"tested: {_passing(quote.target.chances)}; a failed test costs {refusal}"
    if quote.sound:
        yield "privacy", verdict(quote.epsilon, quote.delta)
    else:
        yield "privacy", "none: what the warning names was read from the votes"


def _passing(chances: Mapping[str, Any] | None) -> str:
    """Return how often made-up teachers pass the release test, worst and best by name."""
    if chances is None:
        return "nothing"
    worst, best = (
        f"{end['chance']:.3f} ({end['agreement']:.0%} of them right on average, queries "
        f"{end['queries']})"
        for end in (chances["worst"], chances["best"])
    )
    return f"made-up teachers would pass with probability {worst} to {best}"


def _guessed(prior: PublicPrior | None) -> _Rows:
    """Yield what ε presupposes of a prior, if there is one."""
    if prior is not None:
        weight = "votes" if prior.weight is None else f"{prior.weight} votes"
        told = "void if the votes or any private data shaped them"
        yield "prior", f"{weight} for each of {prior.guesses} guesses; {told}"
