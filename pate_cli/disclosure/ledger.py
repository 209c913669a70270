"""The ledger: what runs have spent on the votes they saw; and the only door out of it.

The ledger is SECRET. Its Rényi costs and sensitivities are functions of the votes, and publishing
them would itself cost privacy. `sanitized_epsilon` is the only way from a ledger to a number fit
for publishing. Ledgers of rounds add up: `+` is commutative and associative.
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
from pate_cli.core.errors import LedgerError
from pate_cli.core.noise import Noise
from pate_cli.disclosure.external import Stated, stated_rdp
from pate_cli.disclosure.settings import ReleasePlan, Settings
from pate_cli.files.addresses import LARGEST, reading
from pate_cli.files.document import SPARING, Form, encoded
from pate_cli.files.results import Result
from pate_cli.mechanisms.base import Mechanism

_LEDGER: Final = Form("pate-ledger", "ledger", version=1)


@dataclass(frozen=True, kw_only=True)
class Round(Settings):
    """Settings of one run, and what came of it; public but for its name, which a ledger keeps.

    Attributes:
        answers: how many labels were released.
        id: random name of the run, so that no run is charged twice or forgotten; in reports empty.
    """

    answers: int
    id: str = field(default="", metadata=SPARING)

    def _faults(self, mechanism: Mechanism) -> Iterator[str]:
        yield from super()._faults(mechanism)
        if not 0 <= self.answers <= self.max_answers:
            yield f"{self.answers} answers of {self.max_answers} at most"
        if self.rule is not None and not self.rule.allows(self.queries, self.answers):
            yield f"{self.answers} answers to {self.queries} queries are more than its rule allows"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ledger(Result):
    """Costs of one or several rounds of labels on these votes, kept to be composed. SECRET.

    Keep it where there is to be another round on the same teachers, or where ε is published later:
    `aggregate(..., keep_ledger=True)`, or `release="none"`, returns it, and `release` turns one or
    several into one report. It holds Rényi costs and local sensitivities per order, and the public
    facts of every round. Rounds to be added up need the same `order`.

        >>> given = {"order": 8, "release": "none"}
        >>> first = pate.aggregate("sample_votes/demo.parquet", max_queries=100, seed=1, **given)
        >>> second = pate.aggregate("sample_votes/demo.parquet", max_queries=100, seed=2, **given)
        >>> first.ledger + second.ledger
        <Ledger: 2 round(s), tight analysis at order 8; SECRET>
        >>> first.ledger.save("first.json")
        >>> pate.Ledger.read("first.json")
        <Ledger: 1 round(s), tight analysis at order 8; SECRET>

    Attributes:
        rounds: one entry a run, sorted by id; all of one analysis, one δ and alike neighbours.
        orders: Rényi orders, [orders].
        rdp: total cost at each order, [orders], nats.
        ceiling: a bound on LS_d for every d that no vote can change, [orders], nats.
        sensitivity: LS_d of that cost at each order and distance d < D0, [orders, D0], nats.
        records: files of the records that the rounds are in.
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
        if not self.rdp.shape == self.ceiling.shape == self.sensitivity.shape[:-1] == shape:
            raise LedgerError("the ledger is damaged: its curves do not match its orders")
        if not all(np.all(np.isfinite(curve) & (curve >= 0.0)) for curve in curves):
            raise LedgerError("the ledger is damaged: a cost is negative or not finite")
        if not self.rounds:
            raise LedgerError("the ledger is damaged: it holds no round; restore it from a copy")
        if len({done.id for done in self.rounds}) < len(self.rounds):
            raise LedgerError("a round is given twice; give every ledger once")
        check_alike(self.rounds)

    @property
    def analysis(self) -> str:
        """How the rounds are charged: `tight` or `paper`."""
        return self.rounds[0].analysis

    @property
    def delta(self) -> float:
        """δ that the rounds were run for, in (0, 1)."""
        return self.rounds[0].delta

    def __add__(self, other: Ledger) -> Ledger:
        """Return the ledger of both: costs and sensitivities add at each order.

        With charges that depend on the votes and rounds chosen on earlier labels the sum is an
        ex-post bound at one order fixed beforehand (accounting/THEORY.md, section 4), not RDP.

        Raises:
            LedgerError: different analyses, deltas, orders, teachers per record or groups, or a
                round in both.
        """
        if not np.array_equal(self.orders, other.orders):
            mine, theirs = self.orders.tolist(), other.orders.tolist()
            raise LedgerError(
                f"ledgers can be added only with the same orders, got {mine} and {theirs}; "
                "keep them in runs with the same `order`"
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
        """Return sensitivities at more distances; past its own, a ledger knows its ceiling."""
        missing = distances - self.sensitivity.shape[1]
        return np.hstack([self.sensitivity, np.repeat(self.ceiling[:, None], missing, axis=1)])

    @property
    def draws(self) -> tuple[ReleasePlan, ...]:
        """Every sanitized value that the rounds themselves published."""
        plans = (done.sanitizer for done in self.rounds)
        return tuple(draw for plan in plans if plan is not None for draw in plan.draws)

    def row(self, order: float) -> int:
        """Return the index of an order in the ledger.

        Raises:
            LedgerError: the order was not charged.
        """
        found = np.flatnonzero(np.isclose(self.orders, order, rtol=1e-12, atol=0.0))
        if found.size == 0:
            held = ", ".join(f"{value:g}" for value in self.orders)
            raise LedgerError(f"order {order:g} was not charged; this ledger holds {held}")
        return int(found[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the ledger file."""
        return {"releasable": self.releasable, **encoded(self)}

    def to_json(self) -> str:
        """Return the text of the ledger file, to be written with mode 0600."""
        return _LEDGER.text(self)

    def columns(self) -> dict[str, Floats]:
        """Return a row an order: its RDP cost, and the bound on its sensitivity, nats."""
        return {"order": self.orders, "rdp": self.rdp, "ceiling": self.ceiling}

    def headline(self) -> str:
        """Return how many rounds there are, and at which orders they are charged."""
        held = ", ".join(f"{order:g}" for order in self.orders)
        return f"{len(self.rounds)} round(s), {self.analysis} analysis at order {held}"

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Ledger:
        """Return the ledger in a file; LedgerError, naming the file, where there is none."""
        with reading(path, "one of the ledgers") as file:
            return cls.from_json(file.read(LARGEST + 1))

    @classmethod
    def from_json(cls, text: str | bytes) -> Ledger:
        """Return the ledger that the text of a file states.

        Raises:
            LedgerError: truncated, foreign, damaged, or of another version of the schema.
        """
        return _LEDGER.read(cls, text)


def check_alike(rounds: Sequence[Round]) -> None:
    """LedgerError where rounds differ in their analysis or δ, or in what one record may train."""
    for what in ("analysis", "delta"):
        held = sorted({getattr(done, what) for done in rounds})
        if len(held) > 1:
            raise LedgerError(
                f"ledgers can be added only with the same {what}, got {held[0]} and {held[1]}"
            )
    check_neighbours(rounds)


def check_neighbours(runs: Iterable[Settings]) -> None:
    """LedgerError where some runs protect others than the rest do: they have no total."""
    # What one record costs at k teachers says nothing of what it costs at another k.
    if len({run.protected for run in runs}) > 1:
        raise LedgerError(
            "runs charged for other `teachers_per_record` or `groups` have no common neighbours. "
            "Charge all runs on the same teachers alike; others have a record of their own"
        )


def sanitized_epsilon(
    ledger: Ledger,
    plan: ReleasePlan,
    noise: Noise,
    *,
    earlier: Sequence[ReleasePlan] = (),
    external: Sequence[Stated] = (),
) -> float:
    """Spend the sanitizing noise once; return the ε that may be published, rounded up, nats.

    It is f + SS_β·(κ + σN) at the plan's order (accounting.sensitivity), converted to ε. Call it
    once for every draw that is charged: whoever draws twice and keeps one publishes more than was
    paid for.

    Args:
        ledger: what was spent, over all rounds.
        plan: fixed before any vote was seen, and never from the ledger's own numbers.
        noise: the source of the one draw.
        earlier: draws that were made from these rounds before; their cost is added.
        external: other mechanisms on the same records. Their cost is public: it is added after the
            draw, whose noise hides the votes' alone.

    Raises:
        LedgerError: the plan's order was not charged.
    """
    row, order = ledger.row(plan.order), np.array([plan.order])
    smooth = smooth_sensitivity(
        ledger.sensitivity[row], ceiling=float(ledger.ceiling[row]), beta=plan.beta
    )
    value = plan.value(float(ledger.rdp[row]), smooth, noise.fine_normal())
    value += sum(draw.rdp(plan.order) for draw in earlier) + float(stated_rdp(external, order)[0])
    return round_up(max(value, 0.0))
