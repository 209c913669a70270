"""Tables 1 and 2 computed again, as text, CSV or JSON.

Table 1 has the cost of the labels of each run. LNMax is analysed as in the 2017 paper, and all
other aggregators as in the 2018 paper. Table 2 has up to four lines for each row: the sanitized ε
that the paper prints, if there is one; the sanitized ε by the analysis of the paper; the sanitized
ε with the correct cost of the release; and the worst-case ε of the labels.
"""

from __future__ import annotations

import csv
import enum
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from pate_cli.accounting.conversion import round_up
from pate_cli.core.arrays import Floats
from pate_cli.core.errors import ParameterError, PateError, ValidityError, VoteError
from pate_cli.disclosure.cost import Cost, Rows
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.paper.costs import (
    TABLE_ORDERS,
    answer_chance,
    confident_steps,
    laplace_rdp,
    to_epsilon,
)
from pate_cli.paper.release import (
    PublishedRelease,
    ReleaseNoise,
    chosen_as_in_paper,
    sanitized,
    unrounded,
)
from pate_cli.paper.rows import TableRow
from pate_cli.paper.sensitivity import expected_local_sensitivity
from pate_cli.paper.votes import Asked, VoteFolder
from pate_cli.planning.cost import MOMENT_ORDERS

_WORDS = 2  # so many columns have words and are left-aligned; all others have numbers


class Status(enum.StrEnum):
    """Whether a row was computed, or why not."""

    RAN = "ran"
    ABSENT = "votes absent"
    UNSTATED = "scale not published"
    UNREADABLE = "votes unreadable"
    INVALID = "a condition fails"


@dataclass(frozen=True)
class RowResult:
    """The result of one row of a table that is computed again.

    Attributes:
        status: whether the row was computed, or why not. If the status is `INVALID`, because a
            condition of the paper is not met, the row may still have figures that do not depend on
            this condition.
        lines: the cells of the lines of this row in the table, without the name of the data.
        data: the unrounded figures, ready for JSON, or the reason why there are none.
        notes: remarks for the reader.
    """

    status: Status
    lines: tuple[tuple[str, ...], ...]
    data: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


Compute: TypeAlias = Callable[[TableRow, Sequence[Asked]], RowResult]
"""A function that computes the result of a row from its votes."""


def row_result(row: TableRow, folder: VoteFolder, compute: Compute, *, blank: int) -> RowResult:
    """Return the result of a row, or the reason why the row has no figures.

    Args:
        row: a row of a table of the paper, or of the table of the sample votes.
        folder: the folder that has the files of votes and of student predictions.
        compute: computes the result if all files can be read.
        blank: if the row cannot be computed, how many of its columns are left empty.
    """
    absent = folder.absent(row.files)
    if not all(each.noise for each in row.rounds):
        status, reason = Status.UNSTATED, "the paper does not say which Laplace scale this row used"
    elif absent:
        status, reason = Status.ABSENT, f"absent from {folder.path}: {', '.join(absent)}"
    else:
        try:
            rounds = [folder.ask(each) for each in row.rounds]
            found = compute(row, rounds)
            remarks = tuple(remark for each in rounds for remark in each.remarks)
            data = {**found.data, "rounds": [each.described for each in rounds]}
            return replace(found, data=data, notes=remarks + found.notes)
        except PateError as error:
            status = Status.UNREADABLE if isinstance(error, VoteError) else Status.INVALID
            reason = in_flags(error)
    line = (f"{row.aggregator}: {status}", *("-",) * blank, *row.printed)
    return RowResult(status, (line,), {"reason": reason}, (reason,))


def in_flags(error: PateError) -> str:
    """Return the message of an error, in which parameters are written as command-line options."""
    return re.sub(r"`(\w+)`", lambda found: f"--{found[1].replace('_', '-')}", str(error))


@dataclass(frozen=True)
class ResultTable:
    """Table 1 or Table 2 of the 2018 paper, computed by pate.

    Attributes:
        title: the line above the table.
        header: the names of the columns. The first two columns contain words, and all other columns
            contain numbers.
        results: the result of each row.
        notes: remarks about all rows.
    """

    title: str
    header: tuple[str, ...]
    results: Mapping[TableRow, RowResult]
    notes: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """Return the exit code of the program: 0 if at least one row was computed.

        If no row was computed, the exit code is 4 or 3: 4 for a table that has at least one row
        with the status `INVALID`, and 3 for a table that has none.
        """
        ended = {result.status for result in self.results.values()}
        if Status.RAN in ended:
            return 0
        return ValidityError.exit_code if Status.INVALID in ended else VoteError.exit_code

    @property
    def all_notes(self) -> list[str]:
        """Return the remarks about single rows, then the remarks about the table."""
        of_rows = [
            f"{row.name}: {note}" for row, result in self.results.items() for note in result.notes
        ]
        return [*of_rows, *self.notes]

    def text(self) -> str:
        """Return the table for people: title, aligned lines and remarks."""
        cells = self._cells
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        cells.insert(1, tuple("-" * width for width in widths))
        lines = [
            "  ".join(
                cell.ljust(width) if column < _WORDS else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in cells
        ]
        notes = [f"- {note}" for note in self.all_notes]
        return "\n".join([self.title, "", *lines, "", *notes]) + "\n"

    def json(self) -> str:
        """Return the table as JSON with unrounded figures; a row without figures has a reason."""
        rows = [
            {"row": row.name, "status": result.status.value, **result.data}
            for row, result in self.results.items()
        ]
        content = {"table": self.title, "rows": rows, "notes": self.all_notes}
        return json.dumps(content, indent=2, allow_nan=False) + "\n"

    def csv(self) -> str:
        """Return the table as CSV with rounded figures, without the remarks."""
        sink = io.StringIO()
        csv.writer(sink, lineterminator="\n").writerows(self._cells)
        return sink.getvalue()

    @property
    def _cells(self) -> list[tuple[str, ...]]:
        """Return the header and all lines, with equal numbers of cells."""
        cells = [self.header]
        for row, result in self.results.items():
            names = (row.dataset, *("",) * (len(result.lines) - 1))
            cells += [(name, *line) for name, line in zip(names, result.lines, strict=True)]
        return [line + ("",) * (len(self.header) - len(line)) for line in cells]


_TABLE1 = ("data", "aggregator", "asked", "answered", "delta", "order", "epsilon")
_PRINTED = ("answered (printed)", "epsilon (printed)")

_NOTES1 = (
    "LNMax: the 2017 paper's bound at the best of its eight moments (orders 2 to 9). It bounds one "
    "direction of the divergence only.",
    "GNMax: expected cost of the first rows at the best order, and expected answers; the paper "
    "prints one run. An expectation is not a guarantee.",
    "These figures depend on the votes and are no private release of them.",
)
_ACCURACY = "Student accuracies of the printed table need training and are not recomputed."


def table1(rows: Iterable[TableRow], folder: VoteFolder, notes: Iterable[str] = ()) -> ResultTable:
    """Return Table 1, computed again.

    Args:
        rows: the rows of the paper, or rows for sample votes.
        folder: the folder of the votes.
        notes: further remarks for the reader.
    """
    blank = len(_TABLE1) - _WORDS
    results = {row: row_result(row, folder, _row1, blank=blank) for row in rows}
    printed = any(row.printed for row in results)
    header = _TABLE1 + (_PRINTED if printed else ())
    notes = (*notes, *_NOTES1, *((_ACCURACY,) if printed else ()))
    return ResultTable("Table 1", header, results, notes)


def best_epsilon(cost: Floats, orders: Sequence[float], delta: float) -> tuple[float, float]:
    """Return the smallest ε of an RDP cost over several orders, and the order that gives it."""
    every = to_epsilon(cost, orders=orders, delta=delta)
    best = int(every.argmin())
    return float(every[best]), orders[best]


def expected_run(rounds: Sequence[Asked], orders: Sequence[float]) -> tuple[float, Floats]:
    """Return the expected answers and the expected RDP cost, [orders], nats, of several runs."""
    answers, cost = 0.0, np.zeros(len(orders))
    for asked in rounds:
        threshold, sigma = asked.noise["threshold"], asked.noise["sigma1"]
        answers += float(answer_chance(asked.scores, threshold=threshold, sigma=sigma).sum())
        steps = confident_steps(asked.counts, asked.scores, asked.noise, orders)
        cost += np.sum([step.sum(axis=1) for step in steps.values()], axis=0)
    return answers, cost


def _row1(row: TableRow, rounds: Sequence[Asked]) -> RowResult:
    """Compute the figures of a row of Table 1, and add the figures that the paper prints."""
    asked, notes = sum(len(each.counts) for each in rounds), []
    laplace = row.aggregator == "LNMax"
    if laplace:
        answered, orders = float(asked), MOMENT_ORDERS
        cost = laplace_rdp(rounds[0].counts, rounds[0].noise["laplace_scale"], orders).sum(axis=1)
    else:
        orders = TABLE_ORDERS
        answered, cost = expected_run(rounds, orders)
    epsilon, order = best_epsilon(cost, orders, row.delta)
    # The printed ε of LNMax is rounded to two decimals, up or down.
    if laplace and row.epsilon and rounds[0].authentic and abs(epsilon - row.epsilon) >= 0.015:
        last, _ = best_epsilon(cost[-1:], orders[-1:], row.delta)
        notes.append(
            f"computed {epsilon:.2f} (moment {order - 1:g}), but the table prints "
            f"{row.epsilon:.2f}; the last moment alone would give {last:.2f}. No number was "
            "adjusted to match the table."
        )
    cells = (
        row.aggregator,
        str(asked),
        str(asked) if laplace else f"{answered:.1f}",
        f"{row.delta:g}",
        f"{order:g}",
        f"{epsilon:.3f}",
        *row.printed,
    )
    data = {
        "asked": asked,
        "answered": answered,
        "delta": row.delta,
        "order": order,
        "epsilon": epsilon,
        "printed": row.epsilon and {"answered": row.answered, "epsilon": row.epsilon},
    }
    return RowResult(Status.RAN, (cells,), data, tuple(notes))


_TABLE2 = ("data", "figure", "epsilon", "labels", "order", "beta", "sigma_SS", "smooth")

_NOTES2 = (
    (
        "Labels: the cost of the labels alone, without the cost of the release. Smooth: the smooth "
        "sensitivity in nats. Epsilon: the cost of everything published, with its standard "
        "deviation over the random draw if there is one."
    ),
    (
        "As published: the expected epsilon, plus the noisy release charged by Theorem 23, which "
        "is false for order * beta above about 1/4. Every row that the paper prints is above 1/4. "
        "The printed beta and sigma_SS are rounded; the table uses the numbers behind them: beta "
        "is a multiple of 0.01 / order, and sigma_SS is the best for this beta."
    ),
    (
        "Charged correctly: the release with the printed parameters, charged its exact divergence. "
        "Both lines start from the expected cost of the labels, which is still no guarantee."
    ),
    (
        "Worst case: the epsilon of the labels for any votes, which `pate aggregate` states "
        "without a noisy release. `pate cost` shows the smallest target that these votes would "
        "pass."
    ),
    "These figures depend on the votes and are no private release of them.",
)


@dataclass(frozen=True)
class _Figures:
    """The figures of a row of Table 2.

    `as_published` and `charged_correctly` are None if a condition of the paper is not met.
    """

    delta: float
    order: float
    expected_answers: float
    expected_epsilon: float
    worst_case: float
    as_published: PublishedRelease | None = None
    charged_correctly: PublishedRelease | None = None
    failed_condition: str | None = None


def table2(rows: Iterable[TableRow], folder: VoteFolder, notes: Iterable[str] = ()) -> ResultTable:
    """Return Table 2, computed again.

    Args:
        rows: the rows of the paper, or rows for sample votes.
        folder: the folder of the votes.
        notes: further remarks for the reader.
    """
    results = {row: row_result(row, folder, _row2, blank=0) for row in rows}
    return ResultTable("Table 2", _TABLE2, results, (*notes, *_NOTES2))


def _row2(row: TableRow, rounds: Sequence[Asked]) -> RowResult:
    """Return the result of a row of Table 2, with a line for each kind of ε."""
    found = _figures(row, rounds)
    asked = sum(len(each.counts) for each in rounds)
    told = f"{found.expected_answers:.2f} of {asked} queries are expected to be answered"
    worst = f"{round_up(found.worst_case, digits=3):.3f}"
    lines = [
        _published_line("as published", found, found.as_published),
        _published_line("charged correctly", found, found.charged_correctly),
        ("worst case", worst, worst, *("-",) * 4),
    ]
    printed = row.release
    if printed is not None:
        labels = (f"{printed.expected_epsilon:#.3g}", f"{printed.order:g}")
        each = (printed.betas, printed.sigmas, printed.smooth)
        lines.insert(0, ("printed", *row.printed, *labels, *(_list(one, "g") for one in each)))
    return RowResult(
        Status.INVALID if found.failed_condition else Status.RAN,
        tuple(lines),
        {**asdict(found), "printed": printed and asdict(printed)},
        tuple(note for note in (told, found.failed_condition, row.note) if note),
    )


def _figures(row: TableRow, rounds: Sequence[Asked]) -> _Figures:
    printed = row.release
    orders = TABLE_ORDERS if printed is None else (printed.order,)
    answers, cost = expected_run(rounds, orders)
    epsilon, order = best_epsilon(cost, orders, row.delta)
    known = partial(_Figures, row.delta, order, answers, epsilon, _worst_case(rounds, row.delta))
    try:
        curves = [
            expected_local_sensitivity(
                asked.counts, asked.scores, asked.noise, order=order, teachers=asked.teachers
            )
            for asked in rounds
        ]
        if printed is None:
            exact = rounded = chosen_as_in_paper(epsilon, curves[0], order=order)
        else:
            rounded = ReleaseNoise(order, printed.betas, printed.sigmas)
            exact = unrounded(rounded, curves)
        return known(
            as_published=sanitized(epsilon, curves, exact, exact=False),
            charged_correctly=sanitized(epsilon, curves, rounded, exact=True),
        )
    except (ValidityError, ParameterError) as error:
        return known(failed_condition=in_flags(error))


def _worst_case(rounds: Sequence[Asked], delta: float) -> float:
    """Return the worst-case ε of the labels of several runs, nats."""
    rows = []
    for asked in rounds:
        kind: Any = InteractiveGNMax if asked.student else ConfidentGNMax
        mechanism = kind(asked.teachers, asked.counts.shape[1], **asked.noise)
        rows.append(Rows(mechanism, len(asked.counts), len(asked.counts)))
    return Cost(delta, tuple(rows)).of_curves.epsilon


def _published_line(
    name: str, found: _Figures, release: PublishedRelease | None
) -> tuple[str, ...]:
    """Return the line of a sanitized release in Table 2.

    If `release` is None, the line only has the expected ε of the labels.
    """
    labels = (f"{found.expected_epsilon:.3f}", f"{found.order:g}")
    if release is None:
        return (name, "condition fails", *labels, *("-",) * 3)
    return (
        name,
        "infinite" if release.epsilon is None else f"{release.epsilon:.3f} ± {release.sd:.3f}",
        *labels,
        _list(release.noise.betas, ".5g"),
        _list(release.noise.sigmas, ".4g"),
        _list(release.smooth, ".4g"),
    )


def _list(values: Iterable[float], style: str) -> str:
    return " + ".join(format(value, style) for value in values)
