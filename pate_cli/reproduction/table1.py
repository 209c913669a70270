"""Table 1: what a run costs, by the analysis of its day."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pate_cli.core.arrays import Floats
from pate_cli.core.progress import Advance, unseen
from pate_cli.planning.cost import MOMENT_ORDERS
from pate_cli.published import (
    TABLE_ORDERS,
    confident_expected_cost,
    expected_answers,
    laplace_rdp,
    to_epsilon,
)
from pate_cli.reproduction.rows import ConfidentRow, LaplaceRow
from pate_cli.reproduction.table import ResultTable, RowResult, Status, Steps, attempt
from pate_cli.reproduction.vote_folder import Asked, FileVotes, VoteFolder

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


def table1(
    rows: Sequence[LaplaceRow | ConfidentRow],
    folder: VoteFolder,
    *,
    progress: Advance = unseen,
    notes: Sequence[str] = (),
) -> ResultTable:
    """Compute every row whose votes are in `folder`.

    Args:
        rows: what to compute; with printed figures to show beside, or none of them with any.
        folder: where the votes are.
        progress: told of the rows that are done, and of the one at hand.
        notes: what else the reader has to know.
    """
    compared = any(row.epsilon is not None for row in rows)
    results, steps = [], Steps(progress, rows=len(rows))
    for row in rows:
        with steps.row(f"Table 1: {row.name}"):
            results.append(_result(row, folder))
    return ResultTable(
        name="table1",
        title="Table 1",
        header=_HEADER + (_PRINTED if compared else ()),
        results=tuple(results),
        notes=(*notes, *_NOTES, *((_ACCURACY,) if compared else ())),
    )


def _result(row: LaplaceRow | ConfidentRow, folder: VoteFolder) -> RowResult:
    rest = ("-",) * (len(_HEADER) - 2) + _printed(row)
    if isinstance(row, ConfidentRow):
        compute = partial(_confident, row, folder)
    elif row.scale is None:
        reason = "the paper does not say which Laplace scale this row used"
        line = (row.dataset, f"{row.aggregator}: {Status.UNSTATED}", *rest)
        note = f"{row.name}: {reason}"
        return RowResult(row.name, Status.UNSTATED, (line,), {"reason": reason}, (note,))
    else:
        compute = partial(_laplace, row, row.scale, folder)
    return attempt(
        row, name=row.name, kind=row.aggregator, rest=rest, folder=folder, compute=compute
    )


def best_epsilon(cost: Floats, orders: Sequence[float], delta: float) -> tuple[float, float]:
    """The least ε that a cost [orders] in nats converts to, and the order it is at."""
    every = to_epsilon(cost, orders=orders, delta=delta)
    best = int(every.argmin())
    return float(every[best]), orders[best]


def expected_run(rounds: Sequence[Asked], orders: Sequence[float]) -> tuple[float, Floats]:
    """Expected answers, and expected cost [orders] in nats, of rounds composed at each order."""
    answers, cost = 0.0, np.zeros(len(orders))
    for asked in rounds:
        counts = asked.votes.counts
        compared = counts.max(axis=1) if asked.scores is None else asked.scores
        answers += expected_answers(
            compared, threshold=asked.parameters["threshold"], sigma=asked.parameters["sigma1"]
        )
        cost += confident_expected_cost(
            counts,
            **asked.parameters,
            orders=orders,
            scores=asked.scores,
        ).sum(axis=1)
    return answers, cost


def _laplace(row: LaplaceRow, scale: float, folder: VoteFolder) -> RowResult:
    votes = folder.read(row.votes, row.queries)
    in_votes = scale * votes.teachers if row.per_teacher else scale
    cost = laplace_rdp(votes.counts, in_votes, MOMENT_ORDERS).sum(axis=1)
    epsilon, order = best_epsilon(cost, MOMENT_ORDERS, row.delta)
    last, _ = best_epsilon(cost[-1:], MOMENT_ORDERS[-1:], row.delta)
    notes = []
    # Rounded to the two decimals that are printed, give or take one.
    if row.epsilon is not None and not votes.remarks and abs(epsilon - row.epsilon) >= 0.015:
        notes.append(
            f"computed {epsilon:.2f} (moment {order - 1:g}) where the table prints "
            f"{row.epsilon:.2f}; the last moment alone would give {last:.2f}. "
            "Nothing was adjusted to agree."
        )
    figures = {
        "laplace_scale": in_votes,
        "asked": len(votes.counts),
        "answered": len(votes.counts),
        "delta": row.delta,
        "order": order,
        "epsilon": epsilon,
        "epsilon_of_last_moment": last,
    }
    return _ran(row, [votes], figures, notes=notes)


def _confident(row: ConfidentRow, folder: VoteFolder) -> RowResult:
    rounds = [folder.ask(round_) for round_ in row.rounds]
    answers, cost = expected_run(rounds, TABLE_ORDERS)
    epsilon, order = best_epsilon(cost, TABLE_ORDERS, row.delta)
    figures = {
        "rounds": [asked.parameters for asked in rounds],
        "asked": sum(len(asked.votes.counts) for asked in rounds),
        "answered": answers,
        "delta": row.delta,
        "order": order,
        "epsilon": epsilon,
    }
    return _ran(row, [asked.votes for asked in rounds], figures)


def _ran(
    row: LaplaceRow | ConfidentRow,
    votes: Sequence[FileVotes],
    figures: dict[str, Any],
    *,
    notes: Sequence[str] = (),
) -> RowResult:
    """A row that ran: its line, and its figures beside the printed ones."""
    answered = figures["answered"]
    printed = {"answered": row.answered, "epsilon": row.epsilon}
    line = (
        row.dataset,
        row.aggregator,
        str(figures["asked"]),
        str(answered) if isinstance(answered, int) else f"{answered:.1f}",
        f"{row.delta:g}",
        f"{figures['order']:g}",
        f"{figures['epsilon']:.3f}",
        *_printed(row),
    )
    data = {
        **figures,
        "printed": None if row.epsilon is None else printed,
        "files": [{"name": each.name, "authentic": each.authentic} for each in votes],
    }
    remarks = [remark for each in votes for remark in each.remarks]
    named = tuple(f"{row.name}: {note}" for note in (*remarks, *notes))
    return RowResult(row.name, Status.RAN, (line,), data, named)


def _printed(row: LaplaceRow | ConfidentRow) -> tuple[str, ...]:
    """The last two columns, where there is anything to compare."""
    return () if row.epsilon is None else (str(row.answered), f"{row.epsilon:#.3g}")
