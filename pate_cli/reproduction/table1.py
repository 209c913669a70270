"""Table 1: what a run costs, by the analysis of its day."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pate_cli.arrays import Floats
from pate_cli.published import (
    MOMENT_ORDERS,
    TABLE_ORDERS,
    confident_expected_cost,
    expected_answers,
    laplace_rdp,
    to_epsilon,
)
from pate_cli.reproduction.figures import ConfidentRow, LaplaceRow
from pate_cli.reproduction.outcome import Outcome, Progress, Status, Table, attempt
from pate_cli.reproduction.vote_folder import Asked, Histograms, VoteFolder

__all__ = ["expected_run", "table1"]


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
    compared: bool,
    progress: Progress,
    notes: Sequence[str] = (),
) -> Table:
    """Compute every row whose votes are in `folder`.

    Args:
        rows: what to compute.
        folder: where the votes are.
        compared: whether there are printed figures to show beside.
        progress: called with a few words before each row.
        notes: what else the reader has to know.
    """
    outcomes = []
    for row in rows:
        name = f"{row.dataset}, {row.aggregator}"
        if isinstance(row, LaplaceRow):
            name += "" if row.queries is None else f" {row.queries}"
        progress(f"Table 1: {name}")
        outcomes.append(_outcome(row, name, folder, compared=compared))
    return Table(
        name="table1",
        title="Table 1",
        header=_HEADER + (_PRINTED if compared else ()),
        outcomes=tuple(outcomes),
        notes=(*notes, *_NOTES, *((_ACCURACY,) if compared else ())),
    )


def _outcome(
    row: LaplaceRow | ConfidentRow, name: str, folder: VoteFolder, *, compared: bool
) -> Outcome:
    answered = row.answered if isinstance(row, ConfidentRow) else row.queries
    rest = ("-",) * (len(_HEADER) - 2) + _printed(answered, row.epsilon, compared=compared)
    if isinstance(row, ConfidentRow):
        return attempt(
            row,
            name=name,
            kind=row.aggregator,
            rest=rest,
            folder=folder,
            compute=lambda: _confident(row, name, folder, compared=compared),
        )
    scale = row.scale
    if scale is None:
        note = "the paper does not say which Laplace scale this row used"
        line = (row.dataset, f"{row.aggregator}: {Status.UNSTATED}", *rest)
        return Outcome(name, Status.UNSTATED, (line,), {"reason": note}, (f"{name}: {note}",))
    return attempt(
        row,
        name=name,
        kind=row.aggregator,
        rest=rest,
        folder=folder,
        compute=lambda: _laplace(row, scale, name, folder, compared=compared),
    )


def _laplace(
    row: LaplaceRow, scale: float, name: str, folder: VoteFolder, *, compared: bool
) -> Outcome:
    votes = folder.read(row.votes, row.queries)
    in_votes = scale * votes.teachers if row.per_teacher else scale
    cost = laplace_rdp(votes.counts, in_votes, MOMENT_ORDERS).sum(axis=1)
    every = to_epsilon(cost, orders=MOMENT_ORDERS, delta=row.delta)
    best = int(every.argmin())
    epsilon, order = float(every[best]), MOMENT_ORDERS[best]
    notes = [f"{name}: {remark}" for remark in votes.remarks]
    mine = votes.authentic is False or len(votes.counts) < (row.queries or 0)
    if row.epsilon is not None and not mine and not _prints_as(epsilon, row.epsilon):
        notes.append(
            f"{name}: computed {epsilon:.2f} (moment {order - 1:g}) where the table prints "
            f"{row.epsilon:.2f}; the last moment alone would give {every[-1]:.2f}. "
            "Nothing was adjusted to agree."
        )
    asked = len(votes.counts)
    line = [row.dataset, row.aggregator, str(asked), str(asked), f"{row.delta:g}"]
    line += [f"{order:g}", f"{epsilon:.3f}"]
    line += _printed(row.queries, row.epsilon, compared=compared)
    data = {
        "laplace_scale": in_votes,
        "asked": asked,
        "answered": asked,
        "delta": row.delta,
        "order": order,
        "epsilon": epsilon,
        "epsilon_of_last_moment": float(every[-1]),
        "printed": {"answered": row.queries, "epsilon": row.epsilon} if compared else None,
        "files": _files([votes]),
    }
    return Outcome(name, Status.RAN, (tuple(line),), data, tuple(notes))


def expected_run(rounds: Sequence[Asked], orders: Sequence[float]) -> tuple[float, Floats]:
    """Expected answers, and expected cost [orders] in nats, of rounds composed at each order."""
    answers, cost = 0.0, np.zeros(len(orders))
    for one in rounds:
        compared = one.votes.counts.max(axis=1) if one.scores is None else one.scores
        answers += expected_answers(compared, threshold=one.threshold, sigma=one.sigma1)
        cost += confident_expected_cost(
            one.votes.counts,
            threshold=one.threshold,
            sigma1=one.sigma1,
            sigma2=one.sigma2,
            orders=orders,
            scores=one.scores,
        ).sum(axis=1)
    return answers, cost


def _confident(row: ConfidentRow, name: str, folder: VoteFolder, *, compared: bool) -> Outcome:
    rounds = [folder.ask(one) for one in row.rounds]
    answers, cost = expected_run(rounds, TABLE_ORDERS)
    every = to_epsilon(cost, orders=TABLE_ORDERS, delta=row.delta)
    best = int(every.argmin())
    epsilon, order = float(every[best]), TABLE_ORDERS[best]
    asked = sum(len(one.votes.counts) for one in rounds)
    line = [row.dataset, row.aggregator, str(asked), f"{answers:.1f}", f"{row.delta:g}"]
    line += [f"{order:g}", f"{epsilon:.3f}"]
    line += _printed(row.answered, row.epsilon, compared=compared)
    data = {
        "rounds": [
            {"threshold": one.threshold, "sigma1": one.sigma1, "sigma2": one.sigma2}
            for one in rounds
        ],
        "asked": asked,
        "answered": answers,
        "delta": row.delta,
        "order": order,
        "epsilon": epsilon,
        "printed": {"answered": row.answered, "epsilon": row.epsilon} if compared else None,
        "files": _files([one.votes for one in rounds]),
    }
    notes = tuple(f"{name}: {remark}" for one in rounds for remark in one.votes.remarks)
    return Outcome(name, Status.RAN, (tuple(line),), data, notes)


def _files(votes: Sequence[Histograms]) -> list[dict[str, Any]]:
    return [{"name": one.name, "authentic": one.authentic} for one in votes]


def _prints_as(value: float, printed: float) -> bool:
    """Whether a value rounds to the two decimals that are printed, give or take one."""
    return abs(value - printed) < 0.015


def _printed(answered: int | None, epsilon: float | None, *, compared: bool) -> tuple[str, ...]:
    """The last two columns, where there is anything to compare."""
    if not compared:
        return ()
    return (
        "-" if answered is None else str(answered),
        "-" if epsilon is None else f"{epsilon:#.3g}",
    )
