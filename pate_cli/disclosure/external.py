"""What other mechanisms on the same records cost, by files that say so; all of it public.

A file is JSON with an `adjacency` and one of two forms: `orders` and `rdp`, a Rényi curve, or
`epsilon` and `delta`. Whatever trained on the records, DP-SGD say, enters one total with the votes.

Costs are turned into those for one record replaced, which is what moves one teacher's votes. A cost
for one record added or removed, or replaced by a special one, is charged twice over, since a
replacement is two such steps: an (ε, δ) becomes (2ε, (1 + e^ε)δ), a curve what
`accounting.rdp_curve` proves of two steps.

An (ε, δ) enters as the Rényi divergence of randomised response at ε, which is at most ε at every
order, and its δ is added to the total's (accounting/THEORY.md, section 17).
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import field
from decimal import Decimal
from os import PathLike
from typing import Any, Final

import numpy as np

from pate_cli.accounting.conversion import significant_up
from pate_cli.accounting.laplace.randomised_response import randomised_response_rdp
from pate_cli.accounting.rdp_curve import RdpCurve
from pate_cli.core.arrays import Floats
from pate_cli.core.checks import LARGEST
from pate_cli.core.codec import SPARING, Refusal, decoded, encoded, parsed, picked
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import LedgerError, ParameterError, printable, quoted, shortened
from pate_cli.core.words import Adjacency
from pate_cli.files.beside import stem_of
from pate_cli.files.reading import reading

CURVE_KIND: Final = "pate-rdp-curve"
CURVE_VERSION: Final = 1
"""What `disclosure.exchange` writes, and what of it is read here."""

_LARGEST_FILE: Final = 1 << 20
_MOST_ORDERS: Final = 10_000
_LONGEST_TEXT: Final = 200
_REFUSED: Final = Refusal(
    LedgerError,
    "no external cost: ",
    '; give {"orders": [...], "rdp": [...], ...}, without orders at which nothing is known',
)


@dataclass(frozen=True, kw_only=True)
class _OtherMechanism(ABC):
    """One mechanism on the same records.

    Attributes:
        adjacency: which sets of records its numbers compare.
        covers: what it is, in its owner's words; they go into the report.
        least_delta: no δ below it is to be made of its curve.
        name: what it is called beside others, as a rule that of its file.
    """

    adjacency: Adjacency
    covers: str | None = None
    least_delta: float = 0.0
    name: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))

    @property
    def steps(self) -> int:
        """How many of its steps replace a record."""
        return 1 if self.adjacency is Adjacency.REPLACE_ONE else 2

    @property
    @abstractmethod
    def highest(self) -> float:
        """The order beyond which nothing is known."""

    @abstractmethod
    def rdp(self, orders: Floats) -> Floats:
        """The cost for one record replaced, but for `delta`, [orders], nats; inf beyond."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """Such a cost at all orders at once, nats; inf where there is none."""

    @property
    @abstractmethod
    def delta(self) -> float:
        """What it adds to δ."""

    @property
    @abstractmethod
    def stated_cost(self) -> StatedCost:
        """All that is known of it, as its file would say it."""

    def facts(self, order: float | None, total_order: float | None) -> dict[str, Any]:
        """What a report says of it: at the order of a draw, at that of the total, and whole."""
        pure = self.epsilon
        return {
            "name": self.name,
            "covers": self.covers,
            "adjacency": self.adjacency.value,
            "order": order,
            "rdp": self._rdp_at(order),
            "total_rdp": self._rdp_at(total_order),
            "epsilon": None if math.isinf(pure) else significant_up(pure),
            "delta": significant_up(self.delta),
            "stated": encoded(self.stated_cost),
        }

    def _rdp_at(self, order: float | None) -> float | None:
        return None if order is None else significant_up(float(self.rdp(np.array([order]))[0]))


@dataclass(frozen=True, kw_only=True)
class ExternalCurve(_OtherMechanism):
    """What another mechanism on the same records costs, where its Rényi curve is known.

    For `release`, which adds it to one total; give the curve of DP-SGD, say, rather than an (ε, δ)
    made of it, which as a rule adds up to more.

        >>> from pate_cli.accounting.rdp_curve import RdpCurve
        >>> from pate_cli.core.words import Adjacency
        >>> model = pate.ExternalCurve(
        ...     curve=RdpCurve([2, 8, 32], [0.1, 0.4, 1.6]), adjacency=Adjacency.REPLACE_ONE
        ... )
        >>> given = {"order": 8, "release": "none", "seed": 1}
        >>> labelled = pate.aggregate("sample_votes/demo.parquet", max_queries=100, **given)
        >>> pate.release(labelled.ledger).report.epsilon
        0.7967
        >>> pate.release(labelled.ledger, external=[model]).report.epsilon
        1.7665

    Attributes:
        curve: by order, for its own adjacency.
    """

    curve: RdpCurve

    @property
    def highest(self) -> float:
        """The last order given; about half of it where a replacement is two steps."""
        return self.curve.highest if self.steps == 1 else self.curve.highest_of_two

    def rdp(self, orders: Floats) -> Floats:
        """Between orders by the lower hull of the curve."""
        return self.curve.at(orders) if self.steps == 1 else self.curve.of_two(orders)

    @property
    def epsilon(self) -> float:
        """A curve has none."""
        return math.inf

    @property
    def delta(self) -> float:
        """A curve holds without a δ."""
        return 0.0

    @property
    def stated_cost(self) -> StatedCost:
        """Its orders, and the cost at each."""
        return StatedCost(
            self.adjacency,
            name=self.name,
            covers=self.covers,
            least_delta=self.least_delta,
            orders=tuple(self.curve.orders.tolist()),
            rdp=tuple(self.curve.rdp.tolist()),
        )


@dataclass(frozen=True, kw_only=True)
class ExternalPair(_OtherMechanism):
    """What another mechanism on the same records costs, where no more than (ε, δ) is known.

    For `release`, which adds it to one total: both numbers are added.

        >>> from pate_cli.core.words import Adjacency
        >>> model = pate.ExternalPair(stated=(1.0, 1e-6), adjacency=Adjacency.REPLACE_ONE)
        >>> given = {"order": 8, "release": "none", "seed": 1}
        >>> labelled = pate.aggregate("sample_votes/demo.parquet", max_queries=100, **given)
        >>> pate.release(labelled.ledger, external=[model]).report.epsilon
        1.7801

    Attributes:
        stated: (ε, δ) for its own adjacency, ε ≥ 0 in nats, 0 ≤ δ < 1.

    Raises:
        ParameterError: a number out of range, or a δ of 1 or more for a replacement.
    """

    stated: tuple[float, float]

    def __post_init__(self) -> None:
        super().__post_init__()
        epsilon, delta = self.stated
        if not 0.0 <= epsilon <= LARGEST:
            raise ParameterError(f"epsilon must be between 0 and {LARGEST:g}, got {epsilon:g}")
        if not 0.0 <= delta < 1.0:
            raise ParameterError(f"delta must be at least 0 and below 1, got {delta:g}")
        if self.delta >= 1.0:
            raise ParameterError(
                f"epsilon {epsilon:g} at delta {delta:g} for {self.adjacency} says nothing of a "
                "record replaced; state what holds for replace-one"
            )

    @property
    def highest(self) -> float:
        """It holds at every order."""
        return math.inf

    def rdp(self, orders: Floats) -> Floats:
        """That of randomised response."""
        return (
            randomised_response_rdp(epsilon=self.epsilon, orders=orders)
            if self.epsilon > 0.0
            else np.zeros(len(orders))
        )

    @property
    def epsilon(self) -> float:
        """ε or 2ε."""
        return self.steps * self.stated[0]

    @property
    def delta(self) -> float:
        """δ or (1 + e^ε)δ; 1 where that is more."""
        epsilon, delta = self.stated
        if self.steps == 1 or delta == 0.0:
            return delta
        return min(delta + math.exp(min(epsilon + math.log(delta), 0.0)), 1.0)

    @property
    def stated_cost(self) -> StatedCost:
        """Its (ε, δ)."""
        epsilon, delta = self.stated
        return StatedCost(
            self.adjacency,
            name=self.name,
            covers=self.covers,
            least_delta=self.least_delta,
            epsilon=epsilon,
            delta=delta,
        )


@dataclass(frozen=True)
class External:
    """All of them together: costs of mechanisms with independent noise add up at every order."""

    parts: tuple[ExternalCurve | ExternalPair, ...] = ()

    @classmethod
    def of(
        cls, given: Iterable[ExternalCurve | ExternalPair | str | PathLike[str]], *, order: float
    ) -> External:
        """Parts, or files of them, which are to be charged at one order at least.

        Raises:
            LedgerError: a file that is none, or a curve that ends before the order.
        """
        parts = []
        for one in given:
            part = read_part(one) if isinstance(one, str | PathLike) else one
            if not np.isfinite(part.rdp(np.array([order]))[0]):
                name = f"{one}: " if isinstance(one, str | PathLike) else ""
                twice = "" if part.steps == 1 else f", as {part.adjacency} is charged twice over"
                raise LedgerError(
                    f"{name}the curve says nothing at order {order:g}{twice}; give higher orders, "
                    "or ledgers of a lower one"
                )
            parts.append(part)
        return cls(tuple(parts))

    @property
    def highest(self) -> float:
        """The order beyond which nothing is known of some part; inf without parts."""
        return min((part.highest for part in self.parts), default=math.inf)

    def rdp(self, orders: Floats) -> Floats:
        """Cost at orders, [orders], nats; inf beyond."""
        return sum((part.rdp(orders) for part in self.parts), np.zeros(len(orders)))

    @property
    def epsilon(self) -> float:
        """Cost at all orders at once, nats; inf with a curve among the parts."""
        return math.fsum(part.epsilon for part in self.parts)

    @property
    def least_delta(self) -> float:
        """What the parts ask of the δ that curves are turned into."""
        return math.fsum(part.least_delta for part in self.parts)

    def total(self, delta: float) -> float:
        """δ of all: its own six digits, not below the sum.

        Raises:
            ParameterError: 1 or more.
        """
        added = [part.delta for part in self.parts if part.delta > 0.0]
        if not added:
            return delta
        # In the digits they were stated with, so that 1e-5 and 1e-6 make 1.1e-5.
        total = significant_up(sum((Decimal(repr(each)) for each in added), Decimal(repr(delta))))
        if total >= 1.0:
            raise ParameterError(f"with the external parts delta is {total:g}, which says nothing")
        return total

    def facts(self, order: float | None, total_order: float | None) -> tuple[dict[str, Any], ...]:
        """What a report says of the parts."""
        return tuple(part.facts(order, total_order) for part in self.parts)


def read_part(path: str | PathLike[str]) -> ExternalCurve | ExternalPair:
    """The cost that a file states.

    Raises:
        LedgerError: no such file, or one that states no cost that could be charged.
    """
    with reading(path, "an external cost") as file:
        try:
            data = parsed(file.read(_LARGEST_FILE + 1), _REFUSED, most=_LARGEST_FILE)
            return _part_from(data, stem_of(str(path)))
        except ParameterError as error:
            raise LedgerError(str(error)) from None


@dataclass(frozen=True)
class StatedCost:
    """What a file states, in one of two forms, and records and reports keep of it."""

    adjacency: Adjacency
    name: str | None = field(default=None, metadata=SPARING)
    covers: str | None = field(default=None, metadata=SPARING)
    least_delta: float = field(default=0.0, metadata=SPARING)
    orders: tuple[float, ...] | None = field(default=None, metadata=SPARING)
    rdp: tuple[float, ...] | None = field(default=None, metadata=SPARING)
    epsilon: float | None = field(default=None, metadata=SPARING)
    delta: float | None = field(default=None, metadata=SPARING)

    def __post_init__(self) -> None:
        if not 0.0 <= self.least_delta < 1.0:
            raise ParameterError("least_delta must be at least 0 and below 1")
        if self.orders is not None and not 0 < len(self.orders) <= _MOST_ORDERS:
            raise ParameterError(f"orders must be a list of 1 to {_MOST_ORDERS} numbers")

    @property
    def part(self) -> ExternalCurve | ExternalPair:
        """The mechanism whose cost it is.

        Raises:
            LedgerError: neither form, or both.
            ParameterError: numbers out of range.
        """
        common: dict[str, Any] = {
            "adjacency": self.adjacency,
            "covers": _short(self.covers),
            "name": _short(self.name),
            "least_delta": self.least_delta,
        }
        orders, rdp, epsilon, delta = self.orders, self.rdp, self.epsilon, self.delta
        if orders is not None and rdp is not None and epsilon is None and delta is None:
            return ExternalCurve(curve=RdpCurve(np.array(orders), np.array(rdp)), **common)
        if epsilon is not None and delta is not None and orders is None and rdp is None:
            return ExternalPair(stated=(epsilon, delta), **common)
        raise _REFUSED.of('it must state either "orders" and "rdp", or "epsilon" and "delta"')

    @property
    def digest(self) -> str:
        """32 hexadecimal digits that follow from what is stated, whatever it is called."""
        plain = {name: value for name, value in encoded(self).items() if name != "name"}
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:32]


def _short(text: str | None) -> str | None:
    return None if text is None else shortened(printable(text), _LONGEST_TEXT)


def _part_from(data: Any, name: str) -> ExternalCurve | ExternalPair:
    if not isinstance(data, dict):
        raise _REFUSED.of("it must be a JSON object")
    if "guarantee" in data:
        raise LedgerError("is a report of votes; give the curve that was exported from it")
    if data.get("kind", CURVE_KIND) != CURVE_KIND:
        raise LedgerError(f"is a {quoted(data['kind'])}, which states no external cost")
    version = data.get("schema_version", CURVE_VERSION)
    if type(version) is not int or version != CURVE_VERSION:
        raise LedgerError(
            f"has schema version {shortened(str(version))}, this tool reads {CURVE_VERSION}"
        )
    said = picked(StatedCost, data) | {"adjacency": _adjacency_in(data)}
    return decoded(StatedCost, {"name": name, **said}, _REFUSED).part


def _adjacency_in(data: Mapping[str, Any]) -> str:
    """The word for it in our spelling."""
    stated = data.get("adjacency")
    word = stated.lower().replace("_", "-") if isinstance(stated, str) else ""
    if word not in list(Adjacency):
        raise LedgerError(
            f'"adjacency" must say what its cost compares: {" or ".join(Adjacency)}, got '
            f"{quoted(stated)}"
        )
    return word
