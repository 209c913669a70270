"""Mechanisms side by side on the same votes, at a matched number of expected answers. SECRET."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from pate_cli.accounting.conversion import conversion_cost, round_up
from pate_cli.accounting.stability import distance_to_instability
from pate_cli.arrays import Counts, Floats
from pate_cli.mechanisms.base import Mechanism
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.mechanisms.sparse_vector import SparseVector
from pate_cli.mechanisms.stability import Stability
from pate_cli.pricing.cost import TIGHT_ORDERS, query_costs
from pate_cli.release.worst_case import Spending, data_independent_cost
from pate_cli.words import Analysis

__all__ = ["Comparison", "compare_mechanism", "compare_stable"]


# Refusals to be afforded depend on the threshold, and the threshold, barely, on them.
_ROUNDS = 6
_ENDS = "the file ends before so many answers"


@dataclass(frozen=True)
class Comparison:
    """One mechanism at the matched number of answers.

    Attributes:
        mechanism: its name.
        queries: rows that had to be asked, from the first on.
        expected_answers: Σ Pr[answer] over them; below the target when the file ends first.
        agreement: expected share of the answers that equal the plurality.
        epsilon: the data-dependent ε (tight analysis, best order), None where there is none.
        order: its order.
        data_independent: ε whatever the votes, with the target as public cap.
        note: what a reader should know.
    """

    mechanism: str
    queries: int
    expected_answers: float
    agreement: float
    epsilon: float | None
    order: float | None
    data_independent: float
    note: str = ""


def compare_mechanism(
    batches: Callable[[], Iterable[tuple[Mechanism, Counts]]],
    mechanism: Mechanism,
    *,
    answers: float,
    delta: float,
) -> Comparison:
    """A mechanism with a Rényi cost: asked row by row until it is expected to have answered.

    Args:
        batches: histograms in order, each with the mechanism bound to its rows.
        mechanism: the aggregator.
        answers: the number of answers to be matched.
        delta: δ in (0, 1).
    """
    rdp = np.zeros(TIGHT_ORDERS.size)
    asked, expected, agreeing = 0, 0.0, 0.0
    for bound, counts in batches():
        costs = query_costs(bound, counts, orders=TIGHT_ORDERS, analysis=Analysis.TIGHT)
        take = _rows_until(costs.answer, answers - expected)
        rdp += costs.total[:, :take].sum(axis=1)
        asked += take
        expected += float(costs.answer[:take].sum())
        winning = 1.0 - _losing(bound, counts[:take])
        agreeing += float(costs.answer[:take] @ winning)
        if expected >= answers - 1e-9:
            break
    epsilon = np.maximum(rdp + conversion_cost(TIGHT_ORDERS, delta=delta), 0.0)
    best = int(np.argmin(epsilon))
    cap = min(asked, int(np.ceil(answers)))
    bound_cost = data_independent_cost([Spending(mechanism, asked, cap)], delta=delta, plan=None)
    return Comparison(
        mechanism=mechanism.name,
        queries=asked,
        expected_answers=expected,
        agreement=agreeing / max(expected, 1e-12),
        epsilon=float(epsilon[best]),
        order=float(TIGHT_ORDERS[best]),
        data_independent=round_up(bound_cost.epsilon),
        note="" if expected >= answers - 1e-6 else _ENDS,
    )


def compare_stable(
    batches: Callable[[], Iterable[Counts]],
    build: Callable[[int], Stability | SparseVector],
    *,
    answers: float,
    delta: float,
) -> Comparison:
    """A mechanism of the stability family, whose ε is data-independent.

    Args:
        batches: histograms in order.
        build: the mechanism for a number of refusals to be afforded (ignored by stability).
        answers: the number of answers to be matched.
        delta: δ in (0, 1).
    """
    mechanism, asked, expected = build(1), 0, 0.0
    for _ in range(_ROUNDS):
        asked, expected = _asked(mechanism, batches(), answers)
        refusals = max(1, int(np.ceil(asked - expected)))
        if isinstance(mechanism, Stability) or refusals == mechanism.refusals:
            break
        mechanism = build(refusals)
    cost = mechanism.privacy(max(asked, 1), delta)
    notes = []
    if isinstance(mechanism, SparseVector):
        notes.append(f"{mechanism.refusals} refusals afforded")
    if expected < answers - 1e-6:
        notes.append(_ENDS)
    return Comparison(
        mechanism=mechanism.name,
        queries=asked,
        expected_answers=expected,
        agreement=1.0,
        epsilon=None,
        order=None,
        data_independent=round_up(cost.epsilon),
        note="; ".join(notes),
    )


def _asked(
    mechanism: Stability | SparseVector, batches: Iterable[Counts], answers: float
) -> tuple[int, float]:
    """Rows asked until so many answers are expected, and how many are."""
    asked, expected = 0, 0.0
    for counts in batches:
        chance = _stable_answer(mechanism, counts)
        take = _rows_until(chance, answers - expected)
        asked, expected = asked + take, expected + float(chance[:take].sum())
        if expected >= answers - 1e-9:
            break
    return asked, expected


def _rows_until(chance: Floats, wanted: float) -> int:
    """How many rows are needed until Σ chance reaches what is wanted; all if it never does."""
    total = np.cumsum(chance)
    return min(int(np.searchsorted(total, wanted - 1e-9)) + 1, chance.size)


def _losing(mechanism: Mechanism, counts: Counts) -> Floats:
    """q: how likely the argmax is not the plurality."""
    score = mechanism.score(counts)[:, -1] if len(counts) else np.zeros(0)
    if isinstance(mechanism, LNMax):
        tail = 0.5 * np.exp(-np.abs(score))
        return np.where(score <= 0.0, tail, 1.0 - tail)
    return np.asarray(ndtr(score), dtype=np.float64)


def _stable_answer(mechanism: Stability | SparseVector, counts: Counts) -> Floats:
    """Pr[answer] of every row on its own (sparse vector: under a fresh noisy threshold)."""
    distance = distance_to_instability(counts, reach=mechanism.reach).astype(np.float64)
    excess = distance - mechanism.threshold
    if isinstance(mechanism, Stability):
        return _laplace_above(excess * mechanism.query_epsilon)
    # ν − ρ with ν ~ Lap(2b), ρ ~ Lap(b) exceeds x > 0 with chance ⅔ e^{−x/2b} − ⅙ e^{−x/b}.
    x = np.abs(excess) / mechanism.scale
    tail = (2.0 / 3.0) * np.exp(-x / 2.0) - (1.0 / 6.0) * np.exp(-x)
    return np.where(excess < 0.0, tail, 1.0 - tail)


def _laplace_above(x: Floats) -> Floats:
    """Pr[Lap(1) > −x]."""
    tail = 0.5 * np.exp(-np.abs(x))
    return np.where(x < 0.0, tail, 1.0 - tail)
