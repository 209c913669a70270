"""Mechanisms side by side on the same votes, at a matched number of expected answers. SECRET."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.conversion import conversion_cost, round_up
from pate_cli.core.arrays import Floats, Histograms
from pate_cli.core.said import Said
from pate_cli.disclosure.cost import Cost, Rows
from pate_cli.files.results import Result
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism, ScoredMechanism
from pate_cli.planning import words
from pate_cli.planning.cost import TIGHT_ORDERS
from pate_cli.run.fold import AskedRows, OnCounts

# The refusals to be afforded depend on the threshold, and the threshold, barely, on them.
_ROUNDS = 6
_COUNTED = "the prior votes, too, and agreement counts its votes"
_ENDS = "the file ends before so many answers"


@dataclass(frozen=True)
class Comparison:
    """One mechanism at the matched number of answers.

    Attributes:
        mechanism: its name.
        queries: rows that had to be asked, from the first on.
        expected_answers: of these rows; below the matched number where the file ends first.
        agreement: expected share of the answers that equal the plurality.
        epsilon: ε for these votes (tight analysis, best order), None where there is none.
        order: the order of that ε.
        data_independent: ε whatever the votes, with the matched number, rounded up, as public cap
            on answers; below that of a run over the same queries without a cap.
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


@dataclass(frozen=True, repr=False)
class Compared(Result):
    """Mechanisms at a matched number of expected answers. SECRET."""

    rows: tuple[Comparison, ...]
    matched_answers: float
    delta: float

    def to_dict(self) -> dict[str, Any]:
        """Return one entry a mechanism; JSON-ready."""
        return {
            "schema_version": 1,
            "releasable": False,
            "matched_answers": self.matched_answers,
            "max_answers": int(np.ceil(self.matched_answers)),
            "delta": self.delta,
            "compare": [asdict(row) for row in self.rows],
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return one row a mechanism; NaN where there is no ε for these votes."""
        rows = [asdict(row) for row in self.rows]
        return {
            name: np.array([np.nan if row[name] is None else row[name] for row in rows])
            for name in rows[0]
        }

    def said(self) -> Said:
        """Return its lines and tables."""
        return words.of_comparison(self.to_dict())

    def headline(self) -> str:
        """Return how many mechanisms there are, and what was matched."""
        return f"{len(self.rows)} mechanisms at {self.matched_answers:.1f} expected answers"


def compare_scored(
    votes: AskedRows, mechanism: ScoredMechanism, *, answers: float, delta: float
) -> Comparison:
    """Ask a mechanism with an RDP curve row by row until it is expected to have answered.

    Args:
        votes: over the queries.
        mechanism: the aggregator.
        answers: the number of answers to be matched.
        delta: δ in (0, 1).
    """
    asked, (expected, agreeing, *rdp) = _asked(votes, mechanism, _answers_and_costs, answers)
    by_orders = np.maximum(rdp + conversion_cost(TIGHT_ORDERS, delta=delta), 0.0)
    best = int(np.argmin(by_orders))
    worst = Cost(delta, (Rows(mechanism, asked, min(asked, int(np.ceil(answers)))),)).of_curves
    return Comparison(
        mechanism=mechanism.name,
        queries=asked,
        expected_answers=expected,
        agreement=agreeing / max(expected, 1e-12),
        epsilon=worst.least(float(by_orders[best])),
        order=float(TIGHT_ORDERS[best]),
        data_independent=round_up(worst.epsilon),
        note=_note(_COUNTED if mechanism.prior_weight else "", ends=expected < answers - 1e-6),
    )


def compare_composed(
    votes: AskedRows,
    build: Callable[[int], ComposedMechanism],
    *,
    answers: float,
    delta: float,
) -> Comparison:
    """Ask a mechanism whose ε is a composition whatever the votes; see `compare_scored`.

    Args:
        votes: over the queries.
        build: makes the mechanism for a number of refusals to be afforded, if it counts them.
        answers: the number of answers to be matched.
        delta: δ in (0, 1).
    """
    mechanism = build(1)
    for _ in range(_ROUNDS):
        asked, (expected,) = _asked(votes, mechanism, _answers, answers)
        refusals = max(1, int(np.ceil(asked - expected)))
        if mechanism.refusals in (None, refusals):
            break
        mechanism = build(refusals)
    afforded = "" if mechanism.refusals is None else f"{mechanism.refusals} refusals afforded"
    return Comparison(
        mechanism=mechanism.name,
        queries=asked,
        expected_answers=expected,
        agreement=1.0,
        epsilon=None,
        order=None,
        data_independent=round_up(mechanism.privacy(max(asked, 1), delta).epsilon),
        note=_note(afforded, ends=expected < answers - 1e-6),
    )


def _note(note: str, *, ends: bool) -> str:
    """A note, with one more where the file ends too soon."""
    return "; ".join(filter(None, [note, _ENDS if ends else ""]))


def _answers_and_costs(mechanism: ScoredMechanism, counts: Histograms) -> Floats:
    """Chance of an answer, of one that is the plurality, and costs by order, [.., queries]."""
    answer = mechanism.answer_chance(counts)
    agreeing = answer * (1.0 - mechanism.loss_chance(counts))
    return np.vstack([answer, agreeing, mechanism.rdp(mechanism.score(counts), TIGHT_ORDERS)])


def _answers(mechanism: Mechanism, counts: Histograms) -> Floats:
    """Chance of an answer alone, [1, queries]."""
    return mechanism.answer_chance(counts)[None]


def _asked(
    votes: AskedRows, mechanism: Mechanism, look: Callable[..., Floats], wanted: float
) -> tuple[int, list[float]]:
    """Rows asked until so many answers are expected, and the sums over them of what is seen."""
    asked, sums = 0, np.zeros(1)
    for seen in votes.over(mechanism, OnCounts(look)):
        missing = wanted - sums[0] - 1e-9
        taken = seen[:, : int(np.searchsorted(np.cumsum(seen[0]), missing)) + 1]
        asked, sums = asked + taken.shape[1], sums + taken.sum(axis=1)
        if sums[0] >= wanted - 1e-9:
            break
    return asked, sums.tolist()
