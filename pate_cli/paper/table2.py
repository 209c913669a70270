"""Table 2: the sanitized ε as printed, as published, charged correctly, and the worst case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from pate_cli.accounting.conversion import round_up
from pate_cli.core.errors import ParameterError, ValidityError
from pate_cli.disclosure.cost import Cost, Rows
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.paper.conversion import TABLE_ORDERS
from pate_cli.paper.expected import expected_local_sensitivity
from pate_cli.paper.folder import Asked, VoteFolder
from pate_cli.paper.release import (
    PublishedRelease,
    ReleaseNoise,
    chosen_as_in_paper,
    sanitized,
    unrounded,
)
from pate_cli.paper.rows import TableRow
from pate_cli.paper.table import ResultTable, RowResult, Status, in_flags, row_result
from pate_cli.paper.table1 import best_epsilon, expected_run

_HEADER = ("data", "figure", "epsilon", "labels", "order", "beta", "sigma_SS", "smooth")

_NOTES = (
    "Labels: what the labels alone cost, before the release is paid for. Smooth: smooth "
    "sensitivity in nats. Epsilon is that of everything published, with its standard deviation "
    "over the draw where there is one.",
    "As published: expected epsilon, and the noisy release charged by Theorem 23, which is false "
    "for order * beta above about 1/4; every row the paper prints is above. Beta and sigma_SS are "
    "those behind the printed ones, which are rounded: beta is a multiple of 0.01 / order, and "
    "sigma_SS the best for it.",
    "Charged correctly: the release with the printed parameters, charged its exact divergence. The "
    "expectation over the first step that both lines start from is still no guarantee.",
    "Worst case: the epsilon of the labels for all votes, which `pate aggregate` states without a "
    "release. `pate cost` tells the smallest target that these votes would pass.",
    "These figures depend on the votes and are no private release of them.",
)


@dataclass(frozen=True)
class _Figures:
    """Figures of one row; the published ones are missing where a condition fails."""

    delta: float
    order: float
    expected_answers: float
    expected_epsilon: float
    worst_case: float
    as_published: PublishedRelease | None = None
    charged_correctly: PublishedRelease | None = None
    failed_condition: str | None = None


def table2(rows: Iterable[TableRow], folder: VoteFolder, notes: Iterable[str] = ()) -> ResultTable:
    """Compute Table 2.

    Args:
        rows: what to compute.
        folder: where the votes are.
        notes: what else the reader has to know.
    """
    results = {row: row_result(row, folder, _computed, blank=0) for row in rows}
    return ResultTable("Table 2", _HEADER, results, (*notes, *_NOTES))


def _computed(row: TableRow, rounds: Sequence[Asked]) -> RowResult:
    """A line for every figure, the printed one first."""
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
    """ε of the labels whatever the votes, nats."""
    rows = []
    for asked in rounds:
        kind: Any = InteractiveGNMax if asked.student else ConfidentGNMax
        mechanism = kind(asked.teachers, asked.counts.shape[1], **asked.noise)
        rows.append(Rows(mechanism, len(asked.counts), len(asked.counts)))
    return Cost(delta, tuple(rows)).of_curves.epsilon


def _published_line(
    name: str, found: _Figures, release: PublishedRelease | None
) -> tuple[str, ...]:
    """The paper's release; where a condition failed, the expectation alone."""
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
