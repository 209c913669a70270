"""The ledger: what runs have spent on the votes they saw. SECRET.

Its Rényi costs and sensitivities are functions of the votes, and publishing them would itself
cost privacy; `release` is the only way from a ledger to a number fit for publishing. Ledgers of
rounds, parts or workers add up: `+` is commutative and associative, with `Ledger.zero` as identity.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np

from pate_cli.arrays import Floats
from pate_cli.checks import check_delta, check_orders
from pate_cli.errors import LedgerError, ParameterError
from pate_cli.release.plan import Draw

__all__ = ["SCHEMA_VERSION", "Ledger", "Round"]

_T = TypeVar("_T")

SCHEMA_VERSION: Final = 1
_KIND: Final = "pate-ledger"


@dataclass(frozen=True)
class Round:
    """What is public about one run of a mechanism.

    Attributes:
        id: random name of the run, so that no run is charged twice or forgotten.
        mechanism: the mechanism's public parameters.
        queries: k1, how many rows were asked.
        max_answers: k2, the public cap on answers (k1 where there was none).
        answers: how many labels were released.
        draws: sanitized values that the run itself published; a later release pays for them.
    """

    id: str
    mechanism: Mapping[str, Any]
    queries: int
    max_answers: int
    answers: int
    draws: tuple[Draw, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.answers <= self.max_answers <= self.queries:
            raise LedgerError(
                f"round {self.id}: answers, max_answers and queries must satisfy "
                f"0 <= {self.answers} <= {self.max_answers} <= {self.queries}"
            )


@dataclass(frozen=True)
class Ledger:
    """Rényi costs and local sensitivities per order, and the public facts of every round.

    Attributes:
        analysis: `tight` or `paper`.
        delta: δ the rounds were run for.
        orders: Rényi orders, [orders].
        rdp: total cost at each order, [orders], nats.
        sensitivity: LS_d of that cost at each order and distance d < D0, [orders, D0], nats.
        ceiling: a bound on LS_d for every d that no vote can change, [orders], nats.
        rounds: one entry a run, sorted by id.
        private: False when some labels were drawn from a fixed seed.
    """

    analysis: str
    delta: float
    orders: Floats
    rdp: Floats
    sensitivity: Floats
    ceiling: Floats
    rounds: tuple[Round, ...]
    private: bool = True

    def __post_init__(self) -> None:
        if self.analysis not in ("tight", "paper"):
            raise LedgerError(
                f"unknown analysis {self.analysis!r}; this tool knows tight and paper"
            )
        try:
            check_delta(self.delta)
            check_orders(self.orders)
        except ParameterError as error:
            raise LedgerError(f"the ledger is damaged: {error}") from None
        shapes_agree = (
            self.orders.ndim == 1
            and self.rdp.shape == self.ceiling.shape == self.orders.shape
            and self.sensitivity.ndim == 2
            and self.sensitivity.shape[0] == self.orders.size
        )
        if not shapes_agree:
            raise LedgerError("the ledger is damaged: its curves do not match its orders")
        for values in (self.rdp, self.sensitivity, self.ceiling):
            if not np.all(np.isfinite(values) & (values >= 0.0)):
                raise LedgerError("the ledger is damaged: a cost is negative or not finite")
        names = [one.id for one in self.rounds]
        if len(set(names)) != len(names):
            raise LedgerError("the same round is in there twice; give every ledger once")

    @classmethod
    def zero(cls, *, analysis: str, delta: float, orders: Floats) -> Ledger:
        """Nothing spent: the identity of `+` among ledgers with these orders."""
        orders = check_orders(orders)
        nothing = np.zeros(orders.size)
        return cls(
            analysis=analysis,
            delta=delta,
            orders=orders,
            rdp=nothing,
            sensitivity=np.zeros((orders.size, 0)),
            ceiling=nothing,
            rounds=(),
        )

    @property
    def queries(self) -> int:
        """Rows asked in all rounds."""
        return sum(one.queries for one in self.rounds)

    @property
    def answers(self) -> int:
        """Labels released in all rounds."""
        return sum(one.answers for one in self.rounds)

    def __add__(self, other: Ledger) -> Ledger:
        """The ledger of both. Costs and sensitivities add at each order.

        With charges that depend on the votes and rounds chosen on earlier labels the sum is an
        ex-post bound at one order fixed beforehand (accounting/THEORY.md, section 4), not RDP.

        Raises:
            LedgerError: different analyses, deltas or orders, or a round in both.
        """
        for what, mine, theirs in (
            ("analysis", self.analysis, other.analysis),
            ("delta", self.delta, other.delta),
            ("orders", self.orders.tolist(), other.orders.tolist()),
        ):
            if mine != theirs:
                raise LedgerError(
                    f"ledgers can be added only with the same {what}, got {mine} and {theirs}"
                )
        distances = max(self.sensitivity.shape[1], other.sensitivity.shape[1])
        return Ledger(
            analysis=self.analysis,
            delta=self.delta,
            orders=self.orders,
            rdp=self.rdp + other.rdp,
            sensitivity=self._extended(distances) + other._extended(distances),
            ceiling=self.ceiling + other.ceiling,
            rounds=tuple(sorted(self.rounds + other.rounds, key=lambda one: one.id)),
            private=self.private and other.private,
        )

    def _extended(self, distances: int) -> Floats:
        """The sensitivity curves over more distances; past its own, a ledger knows its ceiling."""
        missing = distances - self.sensitivity.shape[1]
        tail = np.repeat(self.ceiling[:, None], missing, axis=1)
        return np.concatenate([self.sensitivity, tail], axis=1)

    @property
    def draws(self) -> tuple[Draw, ...]:
        """Every sanitized value that the rounds themselves published."""
        return tuple(draw for one in self.rounds for draw in one.draws)

    def with_draw(self, draw: Draw) -> Ledger:
        """This ledger of a single round, after the round published a sanitized value."""
        (only,) = self.rounds
        return replace(self, rounds=(replace(only, draws=(*only.draws, draw)),))

    def row(self, order: float) -> int:
        """Index of an order in the ledger.

        Raises:
            LedgerError: the order was not charged.
        """
        found = np.flatnonzero(np.isclose(self.orders, order, rtol=1e-12, atol=0.0))
        if found.size == 0:
            held = ", ".join(f"{value:g}" for value in self.orders)
            raise LedgerError(f"order {order:g} was not charged; this ledger holds {held}")
        return int(found[0])

    def to_json(self) -> str:
        """The ledger file, to be written with mode 0600."""
        return json.dumps(
            {
                "kind": _KIND,
                "schema_version": SCHEMA_VERSION,
                "releasable": False,
                "analysis": self.analysis,
                "delta": self.delta,
                "private": self.private,
                "rounds": [
                    {
                        "id": one.id,
                        "mechanism": dict(one.mechanism),
                        "queries": one.queries,
                        "max_answers": one.max_answers,
                        "answers": one.answers,
                        "draws": [asdict(draw) for draw in one.draws],
                    }
                    for one in self.rounds
                ],
                "orders": self.orders.tolist(),
                "rdp": self.rdp.tolist(),
                "ceiling": self.ceiling.tolist(),
                "sensitivity": self.sensitivity.tolist(),
            },
            indent=1,
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Ledger:
        """Read a ledger file.

        Raises:
            LedgerError: truncated, foreign, damaged, or written by a newer schema.
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            raise LedgerError("not a ledger, or a truncated one: it is not valid JSON") from None
        if not isinstance(data, dict) or data.get("kind") != _KIND:
            raise LedgerError("not a ledger: give a file that pate wrote with --ledger")
        version = data.get("schema_version")
        if version != SCHEMA_VERSION:
            raise LedgerError(
                f"the ledger has schema version {version}, this tool reads {SCHEMA_VERSION}; "
                "use the version of pate that wrote it, or a newer one"
            )
        try:
            return cls(
                analysis=data["analysis"],
                delta=float(_numbers(data["delta"])),
                orders=_numbers(data["orders"]),
                rdp=_numbers(data["rdp"]),
                sensitivity=_numbers(data["sensitivity"]),
                ceiling=_numbers(data["ceiling"]),
                rounds=tuple(_round_from(one) for one in data["rounds"]),
                private=_of_type(bool, data["private"]),
            )
        except (KeyError, TypeError, ValueError):
            raise LedgerError("the ledger is damaged: a field is missing or malformed") from None


def _round_from(data: Mapping[str, Any]) -> Round:
    """A round of a ledger file; KeyError, TypeError or ValueError when it is damaged."""
    draws = tuple(Draw(**draw) for draw in data["draws"])
    for draw in draws:
        draw.rdp(1.0 + 1e-9)  # parameters out of range are damage, too
    _of_type(str, data["id"])
    _of_type(dict, data["mechanism"])
    for count in ("queries", "max_answers", "answers"):
        _of_type(int, data[count])
    return Round(**{**data, "draws": draws})


def _numbers(value: Any) -> Floats:
    """JSON numbers as float64; TypeError or ValueError for text, booleans and ragged lists."""
    found = np.asarray(value)
    if found.dtype.kind not in "iuf":
        raise TypeError("not numbers")
    return found.astype(np.float64)


def _of_type(kind: type[_T], value: Any) -> _T:
    """The value, if JSON gave it this very type (a boolean is no whole number)."""
    if type(value) is not kind:
        raise TypeError(f"not {kind.__name__}")
    return value
