"""The verbs that read public files: `spent` reads a record, `verify` and `explain` a report."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.errors import LedgerError, PateError, ReportError, UsageError
from pate_cli.core.said import Grid, Line, Said
from pate_cli.disclosure.cost import nats, pair, shown
from pate_cli.disclosure.entry import RecordPlace, told_record
from pate_cli.disclosure.explain import Explanation, explanation_of
from pate_cli.disclosure.guarantee import sentence
from pate_cli.disclosure.record import KIND, RecordFile, SpendRecord
from pate_cli.disclosure.report import Report, read_report, report_in
from pate_cli.disclosure.runs import Budget, Run, Spent, plain_sums
from pate_cli.disclosure.verification import OK, Check, Verification, checks_of, false_in
from pate_cli.files.addresses import has_no_name, named, public_name, reading
from pate_cli.files.document import encoded
from pate_cli.files.results import Result

_WORDS = ("run", "time", "votes", "mechanism", "published")
_NUMBERS = ("epsilon", "delta", "total", "left")


@dataclass(frozen=True, repr=False)
class RecordCost(Result):
    """All runs of a record and their total cost, as `spent` returns them; public.

    Attributes:
        record: the name of the file of the record; None if the caller gave a `SpendRecord`.
        runs: all runs, the first one first.
        total: the cost of all runs together; None if there are no runs yet.
        budget: the budget in the call; without it, the budget of the last run that had a budget,
            or None.
        running: (ε, δ) of no run, of the first run, of the first two runs and so on; each (ε, δ) is
            valid even if later runs were chosen after seeing earlier results.
        reports: for each given report, a check that the record has the runs of the report; None if
            no reports were given.
    """

    record: str | None
    runs: tuple[Run, ...]
    total: Spent | None
    budget: Budget | None
    running: Sequence[tuple[float, float]]
    reports: tuple[Check, ...] | None = None

    @property
    def left(self) -> tuple[float, float] | None:
        """Return the (ε, δ) that is left of the budget, both at least 0; None without a budget."""
        return None if self.budget is None else self.budget.left(self.running[-1])

    @property
    def however_chosen(self) -> tuple[float, float] | None:
        """Return the (ε, δ) of all runs, valid even if later runs depend on earlier results."""
        return self.running[-1] if self.runs else None

    @property
    def holds(self) -> bool:
        """Return whether the record has all runs that the reports list, with equal costs."""
        return all(check.outcome == OK for check in self.reports or ())

    @property
    def releasable(self) -> bool:
        """Return True, because settings, outcomes, worst-case costs and file names are public."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return the total cost, the budget, what is left of the budget, and every run."""
        checked = {} if self.reports is None else {"reports": [asdict(one) for one in self.reports]}
        return {
            "releasable": True,
            "record": self.record,
            **({"epsilon": 0.0, "delta": 0.0} if self.total is None else encoded(self.total)),
            "however_chosen": dict(zip(_NUMBERS, self.however_chosen or (), strict=False)),
            "budget": self.budget and self.budget.epsilon,
            "budget_delta": self.budget and self.budget.delta,
            "budget_order": self.budget and self.budget.order,
            "budget_left": self.left and self.left[0],
            "budget_delta_left": self.left and self.left[1],
            "runs": [{"kind": run.kind.value} | encoded(run) for run in self.runs],
            **checked,
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a table with one row per run, as a mapping of columns."""
        rows = self.rows()
        return {
            name: np.array([np.nan if row[name] is None else row[name] for row in rows])
            for name in (rows[0] if rows else {})
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping per run, with None for values that a run does not have."""
        return [
            _row(run, None if self.budget is None else self.budget.left(gone)[0])
            for run, gone in zip(self.runs, self.running[1:], strict=True)
        ]

    def said(self) -> Said:
        """Yield lines about the total, the budget, every run, and the given reports."""
        yield Line(self.headline(), "bold")
        budget, (epsilon, delta) = self.budget, self.running[-1]
        if len(self.runs) > 1:
            yield Line(
                "this total assumes that you chose all runs beforehand; if you chose later runs "
                f"after seeing earlier results: epsilon {nats(epsilon)} at delta {shown(delta)}"
            )
        if self.total is not None and self.total.disjoint:
            yield Line(
                "these ensembles are declared disjoint, so their costs are not added up: "
                f"{'; '.join(self.total.disjoint)}"
            )
        if self.total is not None and self.total.record_epsilon is not None:
            yield Line(sentence("one-record", epsilon=nats(self.total.record_epsilon)))
        if budget is not None:
            order = "" if budget.order is None else f", by RDP costs at order {budget.order:g}"
            epsilon, delta = budget.left(self.running[-1])
            apart = self.total is not None and self.total.disjoint
            whose = " for the person with the largest cost" if apart else ""
            yield Line(
                f"budget {budget.epsilon:g} at delta {budget.delta:g}{order}: {_down(epsilon)} at "
                f"delta {delta:.3g} left{whose}"
            )
            if any(np.greater(self.running[-1], (budget.epsilon, budget.delta))):
                yield Line(
                    (
                        "the runs cost more than this budget, because a budget only limits the "
                        "runs that were started with it"
                    ),
                    "bold red",
                )
        if self.runs:
            cells = [_cells(row) for row in self.rows()]
            title = "Runs, the oldest first"
            yield Grid(title, (*_WORDS, *_NUMBERS), cells, words=len(_WORDS))
        for check in self.reports or ():
            yield Line(f"{check.outcome}: {check.name}: {check.detail}", whole=True)

    def plot(self, axes: Any = None) -> Any:
        """Draw the total cost after each run on matplotlib Axes, and return the Axes. Public.

        Args:
            axes: where to draw; new Axes if left out. Needs the extra `plot`.
        """
        from pate_cli.disclosure.pictures import draw_spent

        limit = None if self.budget is None else self.budget.epsilon
        return draw_spent(self.rows(), budget=limit, axes=axes)

    def headline(self) -> str:
        """Return a phrase with the number of runs and their total cost."""
        if self.total is None:
            return "no run"
        runs = "1 run" if len(self.runs) == 1 else f"{len(self.runs)} runs"
        together = "for any one person" if self.total.disjoint else "together"
        return f"{runs}, {pair(self.total.epsilon, self.total.delta)} {together}"


def record_cost(asked: Mapping[str, Any]) -> RecordCost:
    """Return all runs of a record and their total cost.

    `asked` maps each parameter of `signatures.spent` to its value.
    """
    record, ensemble, reports = asked["record"], asked["ensemble"], asked["reports"]
    if (record is None) == (ensemble is None):
        raise UsageError("give either a record, or the `ensemble` of a record")
    name = None
    if not isinstance(record, SpendRecord):
        file = _record_at(record, ensemble)
        file.refuse_run()
        record, name = file.record, file.name
    runs, budgets = record.runs, (run.budget for run in record.runs[::-1])
    stated = Budget.of(asked["budget"], delta=asked["budget_delta"], order=asked["budget_order"])
    budget = stated or next(filter(None, budgets), None)
    return RecordCost(
        name,
        runs,
        Spent.of(runs) if runs else None,
        budget,
        budget.spent(runs) if budget is not None and budget.fixed_by(runs) else plain_sums(runs),
        None if reports is None else tuple(_checked(record, one) for one in reports),
    )


def _row(run: Run, left: float | None) -> dict[str, Any]:
    """Return a run as a mapping; `left` is the ε that was left of the budget after the run."""
    asked, external = run.settings, run.external
    mechanism = {} if asked is None else asked.mechanism
    name = "" if external is None else external.name or external.covers or ""
    return {
        "run": run.id,
        "time": run.time or "",
        "ensemble": run.ensemble or "",
        "votes": run.votes or name,
        "teachers": mechanism.get("teachers"),
        "classes": mechanism.get("classes"),
        "mechanism": mechanism.get("name", ""),
        "kind": run.kind.value,
        "outcome": run.outcome.value,
        "queries": None if asked is None else asked.queries,
        "answers": run.answers,
        "epsilon": run.counted,
        "delta": run.delta,
        "total_epsilon": run.total_epsilon,
        "total_delta": run.total_delta,
        "budget_left": left,
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a row of the table of runs."""
    published = row["outcome"]
    if row["answers"] is not None:
        published = f"{row['answers']} of {row['queries']} labels"
    charged = "" if row["kind"] == "worst-case" else f" ({row['kind']})"
    shape = f" {row['teachers']}x{row['classes']}" if row["teachers"] else ""
    total, left = row["total_epsilon"], row["budget_left"]
    return (
        row["run"][:8],
        row["time"].replace("T", " ").rstrip("Z"),
        f"{row['ensemble']} {row['votes']}{shape}".strip(),
        f"{row['mechanism']}{charged}".strip(),
        published,
        nats(row["epsilon"]),
        shown(row["delta"]),
        "" if total is None else nats(total),
        "" if left is None else _down(left),
    )


def _down(left: float) -> str:
    """Return the rest of a budget as text with four decimals, rounded down."""
    return f"{math.floor(left * 1e4 + 1e-6) / 1e4:.4f}"


def _record_at(record: str | PathLike[str] | None, ensemble: str | None = None) -> RecordFile:
    """Return an existing record.

    `record` is the file of the record, or the vote file beside which the record lies. If `record`
    is None, `ensemble` names the teachers.
    """
    path = told_record(record, ensemble) or Path()
    with named(path):
        there = path.is_file()
    if there:
        with reading(path, "the record of what was spent") as file:
            if f'"{KIND}"'.encode() in file.read(100):
                known = RecordFile(path)
                if not known.record.runs:  # The file may only lead to another record.
                    known.refuse_run()
                return known
    found = RecordPlace.of(record, record=None).file
    if found is not None and not found.empty:
        return found
    if there and path.suffix == ".json":  # The file may be a record whose first line is damaged.
        return RecordFile(path)
    fault = "pate knows no record of these votes" if path.exists() else "there is no such record"
    raise LedgerError(f"{public_name(path)}: {fault}")


def _checked(record: SpendRecord, given: Report | str | PathLike[str]) -> Check:
    """Check that the record has every run of a report, with the cost that the report states."""
    if isinstance(given, Report):
        report, name = given, given.run or "a report without a run"
    else:
        report, name = read_report(given), public_name(fspath(given))
    own = None if report.run is None else record.known(report.run)
    if own is None and not report.private:
        return Check(name, OK, "the run had a seed: it has no guarantee, and no record needs it")
    faults = [check.detail for check in false_in(checks_of(report, record=record))]
    found = f"a total of {len(report.runs)} runs, all in the record"
    return Check.of(name, faults, found if own is None else f"run {own.id}, {own.outcome}")


def verified(asked: Mapping[str, Any]) -> Verification:
    """Return all checks of a report.

    `asked` maps each parameter of `signatures.verify` to its value.
    """
    labels, prior, record = asked["labels"], asked["prior"], asked["record"]
    priors = [] if prior is None else prior if isinstance(prior, list | tuple) else [prior]
    for file in (labels, *priors):
        if isinstance(file, str | PathLike) and has_no_name(fspath(file)):
            raise UsageError(
                f"{public_name(file)}: is a pipe, but verify reads this input more than once; "
                "give a file"
            )
    try:
        found = report_in(asked["report"])
    except ReportError as error:
        with contextlib.suppress(PateError):
            if isinstance(labels, str | PathLike) and read_report(labels):
                error.add_note("to exchange the two, give the report first, and then the labels")
        raise
    known = _record_at(record).record if isinstance(record, str | PathLike) else record
    compared: dict[str, Any] = {"record": known, "labels": labels, "priors": priors}
    checks = checks_of(found, **compared, library=asked["with_dp_accounting"])
    return Verification(found.epsilon, found.delta, tuple(checks))


def explained(asked: Mapping[str, Any]) -> Explanation:
    """Return a report in plain words.

    `asked` maps each parameter of `signatures.explain` to its value.
    """
    found = report_in(asked["report"])
    words = {"title": asked["title"], "unit": asked["unit"]}
    return explanation_of(found, list(checks_of(found)), **words)
