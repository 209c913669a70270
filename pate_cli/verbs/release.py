"""The verb that publishes one (ε, δ) for several runs: ledgers, reports, records, other parts."""

from __future__ import annotations

import functools
import json
import operator
import os
from collections.abc import Sequence
from dataclasses import field, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, Unpack

from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.gnss import shift_quantile
from pate_cli.core.clock import now
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import LedgerError, ParameterError, SpentError, UsageError
from pate_cli.core.noise import RunKey
from pate_cli.core.words import DELTA, Analysis, ReleaseKind
from pate_cli.disclosure import door
from pate_cli.disclosure.cautions import cautions
from pate_cli.disclosure.external import External, ExternalCurve, ExternalPair, read_part
from pate_cli.disclosure.ledger import Ledger
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.reader import read_report
from pate_cli.disclosure.record import (
    Outcome,
    RowsAsked,
    Run,
    RunKind,
    SpendRecord,
    record_beside,
)
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.rule import choose_plan_for
from pate_cli.disclosure.terms import AccountTerms
from pate_cli.disclosure.total import Spent
from pate_cli.disclosure.wording import prior_of_round, rule_of_round, worded
from pate_cli.disclosure.worst_case import data_independent_cost, least_delta, spendings
from pate_cli.files.addresses import is_address, public_name, refuse_address
from pate_cli.files.beside import has_no_name
from pate_cli.files.inputs import note
from pate_cli.files.journal import parts_of
from pate_cli.files.sealed_json import content_of, named
from pate_cli.mechanisms import mechanism_from_parameters
from pate_cli.verbs.analyses import analysis_of
from pate_cli.verbs.book import Book, Places
from pate_cli.verbs.keywords import (
    ReleasedWords,
    ReleaseWords,
    only,
    takes_keywords,
)
from pate_cli.verbs.request import kind_of

Given: TypeAlias = Ledger | Report | SpendRecord | str | PathLike[str]
"""What was spent: a ledger, a public report or a record, or the file of one."""
Other: TypeAlias = ExternalCurve | ExternalPair | str | PathLike[str]


@dataclass(frozen=True)
class Released:
    """What `release` gives.

    Attributes:
        report: public.
        ledger: all rounds together, None where none was given. SECRET.
        record: the account after it; public.
    """

    report: Report
    ledger: Ledger | None
    record: SpendRecord


@takes_keywords
def release(
    given: Given | Sequence[Given],
    *,
    external: Sequence[Other] = (),
    again: bool = False,
    **asked: Unpack[ReleaseWords],
) -> Released:
    """Publish one (ε, δ) for several runs on votes of the same teachers, and for other mechanisms.

    Of ledgers, each labelled with `keep_ledger`, it is what all rounds cost whatever the votes, and
    if it is asked for a sanitized value of these votes beside it. Where reports or records are
    among what is given, it is the total of all runs that they tell of.

        >>> votes = "sample_votes/demo.parquet"
        >>> first = pate.aggregate(votes, max_queries=100, seed=2, order=8, release="none")
        >>> second = pate.aggregate(votes, "gnmax", max_queries=20, seed=3, order=8, release="none")
        >>> pate.release([first.ledger, second.ledger]).report
        <Report: epsilon 0.9459 at delta 1e-05, 75 of 120 queries answered>

    Args:
        given: ledgers, reports and records, or their files.
        external: what else was trained on the same records, or files that state its cost (see
            `disclosure.external`); it is added to the total.
        again: draw again what was drawn from the same rounds before; all draws are charged.

    The record of what is released lies beside each ledger if no other is named, and knows of all
    that is given. With `record` False earlier draws are not charged, and the report claims nothing.

    Raises:
        ParameterError: a δ too small beside what floating-point noise adds over all rounds.
        SpentError: the rounds were released before.
        UnreachableError: all of it together costs more than the `budget`.
        LedgerError: a ledger, a record or an external file is damaged, or does not fit the others.
    """
    began = now()
    several: Sequence[Any] = given if isinstance(given, list | tuple) else [given]
    read = _Read.of(several)
    places = _places(read, asked)
    parts = [read_part(one) if isinstance(one, str | PathLike) else one for one in external]
    if read.ledgers and not read.account:
        return _of_ledgers(read, places, parts, again=again, asked=asked, began=began)
    if only(ReleasedWords, asked)["release"] not in (None, ReleaseKind.NONE) or again:
        raise UsageError(
            "a sanitized epsilon is of ledgers alone; release them first, and then the record "
            "that tells of it"
        )
    return _of_account(read, places, parts, asked=asked, began=began)


@dataclass(frozen=True)
class _Read:
    """What was given, by kind.

    Attributes:
        ledgers: with the files they were read from, if they were.
        records: files of records.
        known: runs that reports and records tell of.
        account: whether there was a report or a record.
    """

    ledgers: list[tuple[Ledger, Path | None]] = field(default_factory=list)
    records: list[Path] = field(default_factory=list)
    known: SpendRecord = field(default_factory=SpendRecord)
    account: bool = False

    @classmethod
    def of(cls, given: Sequence[Given]) -> _Read:
        """Objects, and files by what they hold."""
        ledgers: list[tuple[Ledger, Path | None]] = []
        records: list[Path] = []
        known, account = SpendRecord(), False
        for one in given:
            place = Path(one) if isinstance(one, str | PathLike) else None
            found = _content(one) if isinstance(one, str | PathLike) else one
            if isinstance(found, Ledger):
                ledgers.append((found, place))
                continue
            account = True
            if isinstance(found, SpendRecord):
                known = known | found
                records += [] if place is None else [place]
            else:
                known = known | SpendRecord(_runs_of(found))
        return cls(ledgers, records, known, account)

    @property
    def total(self) -> Ledger | None:
        """All ledgers, added."""
        found = [ledger for ledger, _ in self.ledgers]
        return functools.reduce(operator.add, found) if found else None


def _content(path: str | PathLike[str]) -> Ledger | Report | SpendRecord:
    """A file by the kind that it says it is of; a ledger where it says nothing."""
    name = os.fspath(path)
    if name == "-" or (is_address(name) and public_name(name).endswith(".json")):
        return read_report(path).report
    refuse_address(path)
    if has_no_name(name):
        raise UsageError(
            f"{public_name(path)}: is a pipe, and what is to be released is read more than once; "
            "give a file"
        )
    with named(path):
        content = content_of(path)
    try:
        data = json.loads(parts_of(content)[0])
    except (ValueError, RecursionError):
        data = None
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind == "pate-spend-record":
        return SpendRecord.read(path)
    note("one of the files to be released", (path, None))
    if isinstance(data, dict) and "guarantee" in data:
        return read_report(path).report
    return Ledger.read(path)


def _runs_of(report: Report) -> tuple[Run, ...]:
    """What a report tells of runs: all of its account, or what it is itself.

    Raises:
        UsageError: nothing is claimed for it, or not what it cost by itself.
    """
    report = worded(report)  # a file may claim anything
    spent = report.spent
    if spent is not None and spent.runs:
        return spent.runs
    if not report.claims("all-votes"):
        raise UsageError(f"nothing is claimed for a run to be released: {report.summary}")
    if len(report.rounds) != 1 or report.external or report.earlier_draws:
        raise UsageError("a report of several runs tells of them one by one; give it with a record")
    (done,), drawn = report.rounds, report.sanitized
    known: dict[str, Any] = {name: done[name] for name in ("mechanism", "queries", "max_answers")}
    common: dict[str, Any] = {
        "id": report.run or f"report {report.time}",
        "time": report.time,
        "delta": report.delta,
        "asked": replace(
            RowsAsked(**known),
            label_set=report.label_set,
            prior=prior_of_round(done),
            rule=rule_of_round(done),
        ),
        "answers": report.answers,
    }
    tested = report.tested
    if tested is not None:
        return (
            Run(
                kind=RunKind.TARGET,
                outcome=Outcome.LABELLED if tested.passed else Outcome.REFUSED,
                epsilon=tested.target,
                refusal_epsilon=tested.refusal_epsilon,
                **common,
            ),
        )
    if drawn.epsilon is not None and drawn.beta is not None and drawn.sigma_release is not None:
        shift = drawn.sigma_release * shift_quantile(drawn.delta_failure or 0.0)
        common |= {"beta": drawn.beta, "sigma_release": drawn.sigma_release, "shift": shift}
    kind = RunKind.COMPOSITION if report.analysis == "composition" else RunKind.WORST_CASE
    return (
        Run(
            kind=RunKind.SESSION if "rule" in done else kind,
            outcome=Outcome.LABELLED,
            epsilon=report.data_independent.epsilon,
            **common,
        ),
    )


def _places(read: _Read, asked: ReleaseWords) -> Places:
    """Where the account is kept: what was named, given, or lies beside the ledgers."""
    record, ensemble = asked["record"], asked["ensemble"]
    if isinstance(record, Places):
        return record
    if record is False:
        return Places()
    told = Places.of(None, record=record, ensemble=ensemble).paths
    paths = [*told, *read.records]
    if asked["seed"] is not None:  # for tests: entered only where a record is named
        return Places(tuple(dict.fromkeys(paths)))
    for ledger, at in read.ledgers:
        # Each has one, whatever the others have: a draw that is noted elsewhere alone could be had
        # again from this ledger by itself.
        beside = [] if at is None else [record_beside(at)]
        there = [path for path in (*map(Path, ledger.records), *beside) if path.is_file()]
        paths += there or beside
    return Places(tuple({os.path.realpath(path): path for path in paths[::-1]}.values())[::-1])


def _of_ledgers(
    read: _Read,
    places: Places,
    parts: Sequence[ExternalCurve | ExternalPair],
    *,
    again: bool,
    asked: ReleaseWords,
    began: str,
) -> Released:
    """What all rounds cost whatever the votes, and a draw if one is asked for."""
    total = read.total
    if total is None:
        raise LedgerError("there is no ledger")
    analysis = Analysis(total.analysis)
    if parts and analysis is not Analysis.TIGHT:
        raise UsageError(f"`external` goes with the tight analysis, the ledgers hold {analysis}")
    plan, others = _planned(total, parts, asked)
    spent = spendings(total.rounds)
    least = least_delta(spent, delta=total.delta, external=others)
    if total.delta < least:
        raise ParameterError(
            f"these rounds together need a `delta` of at least {least:.2g}, they were charged for "
            f"{total.delta:g}: floating-point noise is not negligible beside it"
        )
    key = RunKey.fresh() if asked["seed"] is None else RunKey.from_seed(asked["seed"])
    run = _draw_run(plan, total, key, began) if plan.publishes_draw else None

    def refuse(record: SpendRecord) -> None:
        earlier = [past for past in record.touching(total) if run is None or past.id != run.id]
        if earlier and not again and run is not None:
            raise SpentError(
                f"these rounds were released before, {len(earlier)} time(s); another draw costs "
                "privacy: publish the first report, or give `again` to be charged for all draws"
            )

    told = SpendRecord(_stated(parts, delta=total.delta, began=began))
    book = Book(
        places,
        run,
        budget=asked["budget"],
        beside=SpendRecord().with_rounds(total) | told,
        refuse=refuse,
    )
    book.enter()
    with book.standing(until_read=False):
        account = book.account()
        touching = [past for past in account.touching(total) if run is None or past.id != run.id]
        report = door.release(
            total,
            plan,
            key.aside("release"),
            prior=[past.draw for past in touching if past.draw is not None],
            recorded=asked["record"] is not False,
            warnings=cautions(*(each.mechanism for each in spent), delta=total.delta),
            external=others,
        )
        ended = book.settle(Outcome.RELEASED)
    report = worded(replace(report, run=key.run_id, time=began, spent=ended))
    return Released(report, total, book.account())


def _planned(
    total: Ledger, parts: Sequence[ExternalCurve | ExternalPair], asked: ReleaseWords
) -> tuple[ReleasePlan, External]:
    """What is to be drawn, and what is charged beside it at its order; all of it public."""
    drawn, order, analysis = only(ReleasedWords, asked), asked["order"], Analysis(total.analysis)
    plain = analysis is Analysis.TIGHT and (drawn["beta"], drawn["sigma_release"]) == (None, None)
    kind = kind_of(
        drawn["release"],
        default=ReleaseKind.NONE if plain else ReleaseKind.UPPER,
    )
    if order is None:
        if total.orders.size > 1:
            held = ", ".join(f"{value:g}" for value in total.orders)
            raise UsageError(f"the ledgers hold orders {held}; choose one with `order`")
        order = float(total.orders[0])
    total.row(order)
    plan = choose_plan_for(
        kind,
        [(each.mechanism, each.queries) for each in spendings(total.rounds)],
        delta=total.delta,
        order=float(order),
        beta=drawn["beta"],
        sigma=drawn["sigma_release"],
    )
    plan = analysis_of(analysis).plan(plan)
    return plan, External.of(parts, order=order)


def _draw_run(plan: ReleasePlan, total: Ledger, key: RunKey, began: str) -> Run:
    """A draw as a record has it."""
    alone = data_independent_cost([], delta=plan.delta, plan=plan)
    facts: dict[str, Any] = plan.draw.facts()
    return Run(
        id=key.run_id if key.private else key.name("run"),
        kind=RunKind.RELEASE,
        outcome=Outcome.PENDING,
        time=began,
        epsilon=round_up(alone.epsilon),
        delta=plan.delta,
        drawn_from=tuple(done.id for done in total.rounds),
        claimed=key.private and total.private,
        **facts,
    )


def _stated(
    parts: Sequence[ExternalCurve | ExternalPair], *, delta: float, began: str
) -> tuple[Run, ...]:
    """External parts as a record has them; one that was entered before is the same."""
    runs = {}
    for part in parts:
        cost = part.stated_cost
        epsilon = part.epsilon
        if isinstance(part, ExternalCurve):
            one = External((part,))
            epsilon = data_independent_cost([], delta=delta, plan=None, external=one).epsilon
        runs[cost.digest] = Run(
            id=cost.digest,
            kind=RunKind.EXTERNAL,
            outcome=Outcome.STATED,
            time=began,
            epsilon=epsilon,
            delta=part.delta if isinstance(part, ExternalPair) else delta,
            external=cost,
        )
    return tuple(runs.values())


def _of_account(
    read: _Read,
    places: Places,
    parts: Sequence[ExternalCurve | ExternalPair],
    *,
    asked: ReleaseWords,
    began: str,
) -> Released:
    """The total of all runs."""
    total = read.total
    known = read.known if total is None else read.known | SpendRecord().with_rounds(total)
    curved = [run.delta for run in known.runs if run.delta is not None and run.delta > 0.0]
    told = SpendRecord(_stated(parts, delta=max(curved, default=DELTA), began=began))
    book = Book(places, None, budget=asked["budget"], beside=known | told)
    book.enter()
    account = book.account()
    for run in account.runs:
        if not run.claimed:
            raise UsageError(f"nothing is claimed for run {run.id}, so nothing of a total with it")
    # A record tells of draws from a ledger; a ledger does not.
    terms = AccountTerms(account.runs, recorded=total is None or asked["record"] is not False)
    rounds = [done for done in (run.round for run in account.runs) if done is not None]
    if not rounds:
        raise LedgerError("there is no run on votes; give a report, a ledger or a record of some")
    mechanisms = [mechanism_from_parameters(done.mechanism) for done in rounds]
    report = door.report(
        rounds,
        terms,
        terms.headline,
        private=True,
        warnings=cautions(*mechanisms, delta=terms.delta),
    )
    key = RunKey.fresh()
    spent = Spent.of(account.runs)
    report = worded(replace(report, run=key.run_id, time=began, spent=spent))
    return Released(report, total, account)
