"""A ledger has the exact costs of runs; `sanitized_epsilon` makes a public ε from a ledger.

A ledger is SECRET. The RDP costs and sensitivities in a ledger depend on the votes, so publishing
them would cost privacy. `sanitized_epsilon` is the only way from a ledger to a number that may be
published. The operator `+` adds ledgers, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Final

import numpy as np

from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.sensitivity import smooth_sensitivity
from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_orders
from pate_cli.core.errors import LedgerError, brief
from pate_cli.core.noise import Noise
from pate_cli.disclosure.external import Stated, stated_rdp
from pate_cli.disclosure.settings import ReleasePlan, Settings, draws_of
from pate_cli.files.addresses import LARGEST, reading
from pate_cli.files.document import SPARING, Form, encoded
from pate_cli.files.results import Result
from pate_cli.mechanisms.base import Mechanism

_LEDGER: Final = Form("pate-ledger", "ledger", version=1)


@dataclass(frozen=True, kw_only=True)
class Round(Settings):
    """Settings of one run, and the number of its answers.

    All fields except `id` and `ensemble` are public.

    Attributes:
        answers: how many labels were released.
        id: a random name, so that no run is charged twice or forgotten; empty in reports.
        ensemble: the name of the teachers' ensemble; None if they have no name, and in reports.
    """

    answers: int
    id: str = field(default="", metadata=SPARING)
    ensemble: str | None = field(default=None, metadata=SPARING)

    def _faults(self, mechanism: Mechanism) -> Iterator[str]:
        yield from super()._faults(mechanism)
        if not 0 <= self.answers <= self.max_answers:
            yield f"the run has {self.answers} answers, but at most {self.max_answers} are allowed"
        if self.rule is not None and not self.rule.allows(self.queries, self.answers):
            yield f"{self.answers} answers to {self.queries} queries are more than the rule allows"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ledger(Result):
    """The exact costs of one or several runs on given votes, stored to be composed later. SECRET.

    Keep a ledger if you will run again on the same teachers, or if you will publish a sanitized ε
    later. `aggregate` returns a ledger with `keep_ledger=True` or `release="none"`, and `release`
    turns one or several ledgers into one report. A ledger contains RDP costs and local
    sensitivities per order, and the public facts of every round, which is one run. Ledgers can be
    added only if all runs had the same `order`.

        >>> given = {"order": 8, "release": "none"}
        >>> first = pate.aggregate("sample_votes/demo.parquet", max_queries=100, seed=1, **given)
        >>> second = pate.aggregate("sample_votes/demo.parquet", max_queries=100, seed=2, **given)
        >>> first.ledger + second.ledger
        <Ledger: 2 round(s), tight analysis at order 8; SECRET>
        >>> first.ledger.save("first.json")
        >>> pate.Ledger.read("first.json")
        <Ledger: 1 round(s), tight analysis at order 8; SECRET>

    Attributes:
        rounds: one entry per run, sorted by id; all rounds have the same analysis, the same δ and
            the same definition of neighbouring vote files.
        orders: Rényi orders, [orders].
        rdp: total RDP cost at each order, [orders], nats.
        ceiling: an upper bound on the local sensitivity at all distances, which does not depend on
            the votes, [orders], nats.
        sensitivity: LS_d, the local sensitivity of the total cost at each order and each distance
            d < D0 from the votes, [orders, D0], nats.
        records: paths of the record files in which the runs of the ledger are entered.
    """

    rounds: tuple[Round, ...]
    orders: Floats
    rdp: Floats
    ceiling: Floats
    sensitivity: Floats
    records: tuple[str, ...] = field(default=(), metadata=SPARING)

    def __post_init__(self) -> None:
        check_orders(self.orders)
        curves, shape = (self.rdp, self.ceiling, self.sensitivity), self.orders.shape
        fault = ""
        if not self.rdp.shape == self.ceiling.shape == self.sensitivity.shape[:-1] == shape:
            fault = "it does not have one cost and one list of sensitivities for each order"
        elif not all(np.all(np.isfinite(curve) & (curve >= 0.0)) for curve in curves):
            fault = "a cost or a sensitivity is negative or not finite"
        elif not self.rounds:
            fault = "it holds no round"
        if fault:
            raise LedgerError(f"the ledger is damaged: {fault}; restore it from a copy")
        if len({done.id for done in self.rounds}) < len(self.rounds):
            raise LedgerError("two ledgers have the same round; give every ledger once")
        check_alike(self.rounds)

    @property
    def analysis(self) -> str:
        """Return the analysis that computed the costs: `tight` or `paper`."""
        return self.rounds[0].analysis

    @property
    def delta(self) -> float:
        """Return δ of the rounds, in (0, 1)."""
        return self.rounds[0].delta

    def __add__(self, other: Ledger) -> Ledger:
        """Return a ledger for the rounds of two ledgers; costs and sensitivities add at each order.

        The sum of the costs in two ledgers is not an RDP cost, because the costs depend on the
        votes, and later rounds may be chosen after seeing earlier labels. The sum only gives
        an ex-post guarantee, at one order that was fixed before the first label (THEORY.md, section
        6).

        Raises:
            LedgerError: the ledgers differ in analysis, δ, orders, teachers per record or groups,
                or the ledgers have a common round.
        """
        if not np.array_equal(self.orders, other.orders):
            mine, theirs = self.orders.tolist(), other.orders.tolist()
            raise LedgerError(
                f"ledgers can be added only with the same orders, got {mine} and {theirs}; "
                "use the same `order` in all runs"
            )
        distances = max(self.sensitivity.shape[1], other.sensitivity.shape[1])
        return Ledger(
            orders=self.orders,
            rdp=self.rdp + other.rdp,
            sensitivity=self._extended(distances) + other._extended(distances),
            ceiling=self.ceiling + other.ceiling,
            rounds=tuple(sorted(self.rounds + other.rounds, key=lambda done: done.id)),
            records=tuple(dict.fromkeys((*self.records, *other.records))),
        )

    def _extended(self, distances: int) -> Floats:
        """Return `sensitivity` with `distances` columns; each column that is added is `ceiling`."""
        missing = distances - self.sensitivity.shape[1]
        return np.hstack([self.sensitivity, np.repeat(self.ceiling[:, None], missing, axis=1)])

    @property
    def draws(self) -> tuple[ReleasePlan, ...]:
        """Return the plans of the sanitized ε's that runs drew themselves, without `release`."""
        return draws_of(self.rounds)

    def row(self, order: float) -> int:
        """Return the index of an order among the orders of the ledger.

        Raises:
            LedgerError: the ledger has no costs at this order.
        """
        found = np.flatnonzero(np.isclose(self.orders, order, rtol=1e-12, atol=0.0))
        if found.size == 0:
            held = ", ".join(f"{value:g}" for value in self.orders)
            raise LedgerError(
                f"the ledger has no costs at order {order:g}; give an `order` at which it has "
                f"costs: {held}"
            )
        return int(found[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the ledger file, ready for JSON."""
        return {"releasable": self.releasable, **encoded(self)}

    def to_json(self) -> str:
        """Return the text of the ledger file, to be written with mode 0600."""
        return _LEDGER.text(self)

    def columns(self) -> dict[str, Floats]:
        """Return a table with one row per order: RDP cost, and bound on its sensitivity, nats."""
        return {"order": self.orders, "rdp": self.rdp, "ceiling": self.ceiling}

    def headline(self) -> str:
        """Return a phrase with the number of rounds, the analysis and the orders."""
        held = ", ".join(f"{order:g}" for order in self.orders)
        return f"{len(self.rounds)} round(s), {self.analysis} analysis at order {held}"

    @classmethod
    @brief
    def read(cls, path: str | PathLike[str]) -> Ledger:
        """Return the ledger in a file; if the file has no ledger, LedgerError names the file."""
        with reading(path, "one of the ledgers") as file:
            return cls.from_json(file.read(LARGEST + 1))

    @classmethod
    def from_json(cls, text: str | bytes) -> Ledger:
        """Return the ledger in the text of a file.

        Raises:
            LedgerError: the text is damaged, is not a ledger, or has another schema version.
        """
        return _LEDGER.read(cls, text)


def check_alike(rounds: Sequence[Round]) -> None:
    """Raise LedgerError if rounds differ in analysis, δ, or definition of neighbouring votes."""
    for what in ("analysis", "delta"):
        held = sorted({getattr(done, what) for done in rounds})
        if len(held) > 1:
            raise LedgerError(
                f"ledgers can be added only with the same {what}, got {held[0]} and {held[1]}; "
                f"use the same `{what}` in all runs"
            )
    check_neighbours(rounds)


def check_neighbours(runs: Iterable[Settings]) -> None:
    """Raise LedgerError if runs define neighbouring vote files differently: no total is valid."""
    # The cost for a record that trained k teachers says nothing about another number of teachers.
    if len({run.protected for run in runs}) > 1:
        raise LedgerError(
            "runs with different `teachers_per_record` or `groups` cannot share a total. Give the "
            "same values in all runs on the same teachers; runs on other teachers need another "
            "record"
        )


def sanitized_epsilon(
    ledger: Ledger,
    plan: ReleasePlan,
    noise: Noise,
    *,
    earlier: Sequence[ReleasePlan] = (),
    external: Sequence[Stated] = (),
) -> float:
    """Draw the sanitizing noise once; return the ε that may be published, rounded up, nats.

    The drawn value at the plan's order is f + SS_β·(κ + σN), converted to an ε. Here f is the RDP
    cost of the votes, SS_β its smooth sensitivity, κ the plan's shift, and N a standard normal
    number (accounting.sensitivity). Every call is a draw that must be charged, even if its value is
    not published, because a value that was chosen from two draws reveals more than the value of one
    draw.

    Args:
        ledger: the costs and sensitivities from which the ε is drawn.
        plan: the parameters of the draw, which were fixed before any vote was read.
        noise: the source of the draw.
        earlier: the plans of earlier draws from rounds of `ledger`; the costs of all earlier draws
            are added to the ε.
        external: costs of other mechanisms on the training records. The costs in `external` are
            public, and are added after the draw, because the noise of the draw only has to hide the
            votes.

    Raises:
        LedgerError: the ledger has no cost at the plan's order.
    """
    row, order = ledger.row(plan.order), np.array([plan.order])
    smooth = smooth_sensitivity(
        ledger.sensitivity[row], ceiling=float(ledger.ceiling[row]), beta=plan.beta
    )
    value = plan.value(float(ledger.rdp[row]), smooth, noise.fine_normal())
    value += sum(draw.rdp(plan.order) for draw in earlier) + float(stated_rdp(external, order)[0])
    return round_up(max(value, 0.0))
