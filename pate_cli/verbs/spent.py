"""The verb that shows an account: all runs of a record, what they cost, and their reports."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.errors import LedgerError, UsageError
from pate_cli.core.said import Grid, Line, Said
from pate_cli.disclosure.budget import Budget
from pate_cli.disclosure.figures import nats, pair, shown
from pate_cli.disclosure.reader import read_report
from pate_cli.disclosure.record import KIND, RecordFile, SpendRecord
from pate_cli.disclosure.record_place import RecordPlace, told_record
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.runs import Run
from pate_cli.disclosure.total import Spent, however_chosen, left_of
from pate_cli.disclosure.verification import FAILED, OK, PROMISE, Check, checks_of
from pate_cli.files.addresses import public_name
from pate_cli.files.document import encoded
from pate_cli.files.reading import named, reading
from pate_cli.files.results import Result


@dataclass(frozen=True, repr=False)
class RecordCost(Result):
    """All runs of a record and what they cost together, as `spent` returns them; public.

    Attributes:
        record: its file, as it was named; None of a record at hand.
        runs: in order.
        total: of all of them; None where there are none yet.
        budget: the one asked about, or that of the last run that had one; None without any.
        reports: a check a report that was given; None where none was.
    """

    record: str | None
    runs: tuple[Run, ...]
    total: Spent | None
    budget: Budget | None
    reports: tuple[Check, ...] | None = None

    @cached_property
    def running(self) -> list[tuple[float, float]]:
        """(ε, δ) of all runs up to each one, however they were chosen."""
        return list(however_chosen(self.runs, self.budget))

    @property
    def left(self) -> tuple[float, float] | None:
        """(ε, δ) that are left of the budget, each at least 0; None without a budget."""
        return None if self.budget is None else left_of(self.budget, self.runs)

    @property
    def however_chosen(self) -> tuple[float, float] | None:
        """(ε, δ) of all runs even if later ones were chosen after seeing earlier results."""
        return self.running[-1] if self.runs else None

    @property
    def holds(self) -> bool:
        """Whether the record tells of every report that was given, as that has it."""
        return all(check.outcome == OK for check in self.reports or ())

    @property
    def releasable(self) -> bool:
        """True: it holds settings, outcomes and costs for all votes, and names of files."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return the total, the budget with what is left of it, and every run."""
        total = {"epsilon": 0.0, "delta": 0.0} if self.total is None else encoded(self.total)
        chosen = self.however_chosen
        budget, (left, delta_left) = self.budget, self.left or (None, None)
        checked = {} if self.reports is None else {"reports": [asdict(one) for one in self.reports]}
        return {
            "releasable": True,
            "record": self.record,
            **total,
            "however_chosen": {} if chosen is None else {"epsilon": chosen[0], "delta": chosen[1]},
            "budget": None if budget is None else budget.epsilon,
            "budget_delta": None if budget is None else budget.delta,
            "budget_order": None if budget is None else budget.order,
            "budget_left": left,
            "budget_delta_left": delta_left,
            "runs": [{"kind": run.kind.value} | encoded(run) for run in self.runs],
            **checked,
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a row a run, in words and numbers."""
        rows = list(self.rows())
        return {
            name: np.array([np.nan if row[name] is None else row[name] for row in rows])
            for name in (rows[0] if rows else {})
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row a run, with None where there is nothing to tell."""
        for run, gone in zip(self.runs, self.running, strict=True):
            asked, external = run.settings, run.external
            mechanism = {} if asked is None else asked.mechanism
            name = "" if external is None else external.name or external.covers or ""
            yield {
                "run": run.id,
                "time": run.time or "",
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
                "budget_left": None if self.budget is None else self.budget.left(gone)[0],
            }

    def said(self) -> Said:
        """Yield the total, what is left of a budget, every run, and the reports given."""
        yield Line(self.headline(), "bold")
        found, budget = self.however_chosen, self.budget
        if found is not None and len(self.runs) > 1:
            yield Line(
                "that supposes that all runs were chosen beforehand; if you chose later runs after "
                f"seeing earlier results: epsilon {nats(found[0])} at delta {shown(found[1])}"
            )
        if budget is not None and self.left is not None:
            order = "" if budget.order is None else f", by RDP costs at order {budget.order:g}"
            yield Line(
                f"budget {budget.epsilon:g} at delta {budget.delta:g}{order}: "
                f"{_down(self.left[0])} at delta {self.left[1]:.3g} left"
            )
        if self.runs:
            heads = ("run", "time", "votes", "mechanism", "published")
            numbers = ("epsilon", "delta", "total", "left")
            rows = [_cells(row) for row in self.rows()]
            yield Grid("Runs, the first one first", (*heads, *numbers), rows, words=len(heads))
        for check in self.reports or ():
            yield Line(f"{check.outcome}: {check.name}: {check.detail}", whole=True)

    def plot(self, axes: Any = None) -> Any:
        """Draw what all runs cost together on matplotlib Axes, and return them. Public.

        Args:
            axes: where to draw; new ones if left out. Needs the extra `plot`.
        """
        from pate_cli.disclosure.pictures import draw_spent

        limit = None if self.budget is None else self.budget.epsilon
        return draw_spent(list(self.rows()), budget=limit, axes=axes)

    def headline(self) -> str:
        """Return how many runs there are, and what they cost."""
        if self.total is None:
            return "no run"
        runs = "1 run" if len(self.runs) == 1 else f"{len(self.runs)} runs"
        return f"{runs}, {pair(self.total.epsilon, self.total.delta)} together"


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Return a run as the cells of a table."""
    published = row["outcome"]
    if published == "labelled" and row["answers"] is not None:
        published = f"{row['answers']} of {row['queries']} labels"
    charged = "" if row["kind"] == "worst-case" else f" ({row['kind']})"
    shape = f" {row['teachers']}x{row['classes']}" if row["teachers"] else ""
    return (
        row["run"][:8],
        row["time"].replace("T", " ").rstrip("Z"),
        f"{row['votes']}{shape}",
        f"{row['mechanism']}{charged}".strip(),
        published,
        "" if row["epsilon"] is None else nats(row["epsilon"]),
        "" if row["delta"] is None else shown(row["delta"]),
        "" if row["total_epsilon"] is None else nats(row["total_epsilon"]),
        "" if row["budget_left"] is None else _down(row["budget_left"]),
    )


def _down(left: float) -> str:
    """Return what is left of a budget, and never more than that."""
    return f"{math.floor(left * 1e4 + 1e-6) / 1e4:.4f}"


def record_cost(
    record: SpendRecord | str | PathLike[str] | None,
    *,
    ensemble: str | None,
    budget: float | None,
    budget_delta: float | None,
    budget_order: float | None,
    reports: Sequence[Report | str | PathLike[str]] | None,
) -> RecordCost:
    """Return all runs of a record with their total; see `signatures.spent`."""
    if (record is None) == (ensemble is None):
        raise UsageError("give a record, or the `ensemble` whose it is")
    asked, name = Budget.of(budget, delta=budget_delta, order=budget_order), None
    if isinstance(record, SpendRecord):
        found = record
    else:
        file = _record_at(record, ensemble)
        file.refuse_run()
        name, found = file.name, file.record
    budgets = [run.budget for run in found.runs if run.budget is not None]
    return RecordCost(
        name,
        found.runs,
        Spent.of(found.runs) if found.runs else None,
        asked or next(iter(budgets[::-1]), None),
        None if reports is None else tuple(_checked(found, one) for one in reports),
    )


def _record_at(record: str | PathLike[str] | None, ensemble: str | None) -> RecordFile:
    """Return the record, which is there: a file of its own, or the one that votes have."""
    path = told_record(record, ensemble) or Path()
    shown = public_name(fspath(path))
    with named(path):
        there = path.is_file()
    if there:
        with reading(path, "the record of what was spent") as file:
            there = f'"{KIND}"'.encode() in file.read(100)
    found = RecordPlace() if there or record is None else RecordPlace.of(record, record=None)
    if found.file is not None and not found.file.empty:
        return found.file
    if not there and (path.is_dir() or (path.exists() and path.suffix != ".json")):
        raise LedgerError(f"{shown}: no record of these votes is known")
    if not path.exists():
        raise LedgerError(f"{shown}: there is no such record")
    return RecordFile(path)


def _checked(record: SpendRecord, given: Report | str | PathLike[str]) -> Check:
    """Return whether the record tells of a report, as that has it."""
    if isinstance(given, Report):
        report, name = given, given.run or "a report without a run"
    else:
        report, name = read_report(given), public_name(fspath(given))
    own = None if report.run is None else record.known(report.run)
    if own is not None:
        failed = (check for check in checks_of(report, record) if check.outcome == FAILED)
        faults = [check.detail for check in failed if check.name != PROMISE]
        if faults:
            return Check(name, FAILED, faults[0])
        return Check(name, OK, f"run {own.id}, {own.outcome}")
    known = {run.id for run in record.runs}
    told = () if report.spent is None else report.spent.runs
    if report.labels is None and told and all(run.id in known for run in told):
        return Check(name, OK, f"a total of {len(told)} runs, all in the record")
    if not report.private:
        return Check(name, OK, "drawn from a seed, which promises nothing and costs nothing")
    return Check(name, FAILED, "the record does not tell of it: it is charged nowhere here")
