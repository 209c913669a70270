"""Table 1: cost of the labels of a run, by the analysis of its day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pate_cli.core.arrays import Floats
from pate_cli.paper.conversion import TABLE_ORDERS, to_epsilon
from pate_cli.paper.expected import confident_steps
from pate_cli.paper.folder import Asked, VoteFolder
from pate_cli.paper.laplace import laplace_rdp
from pate_cli.paper.rows import TableRow
from pate_cli.paper.table import ResultTable, RowResult, Status, row_result
from pate_cli.paper.threshold import answer_chance
from pate_cli.planning.cost import MOMENT_ORDERS

_WORDS = 2
_HEADER = ("data", "aggregator", "asked", "answered", "delta", "order", "epsilon")
_PRINTED = ("answered (printed)", "epsilon (printed)")

_NOTES = (
    "LNMax: the 2017 paper's bound at the best of its eight moments (orders 2 to 9). It bounds one "
    "direction of the divergence only.",
    "GNMax: expected cost of the first rows at the best order, and expected answers; the paper "
    "prints one run. An expectation is not a guarantee.",
    "These figures depend on the votes and are no private release of them.",
)
_ACCURACY = "Student accuracies of the printed table need training and are not recomputed."


def table1(rows: Iterable[TableRow], folder: VoteFolder, notes: Iterable[str] = ()) -> ResultTable:
    """Compute Table 1.

    Args:
        rows: all with printed figures to show beside, or none of them with any.
        folder: where the votes are.
        notes: what else the reader has to know.
    """
    blank = len(_HEADER) - _WORDS
    results = {row: row_result(row, folder, _computed, blank=blank) for row in rows}
    printed = any(row.printed for row in results)
    header = _HEADER + (_PRINTED if printed else ())
    notes = (*notes, *_NOTES, *((_ACCURACY,) if printed else ()))
    return ResultTable("Table 1", header, results, notes)


def best_epsilon(cost: Floats, orders: Sequence[float], delta: float) -> tuple[float, float]:
    """The least ε that a cost [orders] in nats converts to, and the order it is at."""
    every = to_epsilon(cost, orders=orders, delta=delta)
    best = int(every.argmin())
    return float(every[best]), orders[best]


def expected_run(rounds: Sequence[Asked], orders: Sequence[float]) -> tuple[float, Floats]:
    """Expected answers, and expected cost [orders] in nats, of rounds composed at each order."""
    answers, cost = 0.0, np.zeros(len(orders))
    for asked in rounds:
        threshold, sigma = asked.noise["threshold"], asked.noise["sigma1"]
        answers += float(answer_chance(asked.scores, threshold=threshold, sigma=sigma).sum())
        steps = confident_steps(asked.counts, asked.scores, asked.noise, orders)
        cost += np.sum([step.sum(axis=1) for step in steps.values()], axis=0)
    return answers, cost


def _computed(row: TableRow, rounds: Sequence[Asked]) -> RowResult:
    """A row that ran: its line, and its figures beside the printed ones."""
    asked, notes = sum(len(each.counts) for each in rounds), []
    laplace = row.aggregator == "LNMax"
    if laplace:
        answered, orders = float(asked), MOMENT_ORDERS
        cost = laplace_rdp(rounds[0].counts, rounds[0].noise["laplace_scale"], orders).sum(axis=1)
    else:
        orders = TABLE_ORDERS
        answered, cost = expected_run(rounds, orders)
    epsilon, order = best_epsilon(cost, orders, row.delta)
    # The printed ε of LNMax is rounded to two decimals, give or take one.
    if laplace and row.epsilon and rounds[0].authentic and abs(epsilon - row.epsilon) >= 0.015:
        last, _ = best_epsilon(cost[-1:], orders[-1:], row.delta)
        notes.append(
            f"computed {epsilon:.2f} (moment {order - 1:g}) where the table prints "
            f"{row.epsilon:.2f}; the last moment alone would give {last:.2f}. "
            "Nothing was adjusted to agree."
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
