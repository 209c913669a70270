"""Public costs that others state for their mechanisms on the training records of the teachers.

A statement is a Rényi curve (`orders` and `rdp`), or an `epsilon` and a `delta`; its `adjacency`
says which sets of records it compares. With a statement, the cost of any other training on the
records, for example by DP-SGD, is added to the cost of the votes.

Every stated cost is converted to a cost for one replaced record, because a replaced record changes
one teacher's votes. If a statement is about adding, removing or blanking one record, a replaced
record is charged as two changes. With two changes, an (ε, δ) becomes (2ε, (1 + e^ε)δ), and a curve
becomes the bound that `RdpCurve.of_two` returns.

The RDP cost of an (ε, δ) for one replaced record is the RDP cost of randomised response with the
same ε, which is at most ε at every order. The δ of a stated (ε, δ) is added to the δ of the
release (THEORY.md, section 17).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import Any, Final, Self, TypeAlias

import numpy as np

from pate_cli.accounting.conversion import RdpCurve
from pate_cli.accounting.laplace.score_cost import randomised_response_rdp
from pate_cli.core.arrays import Floats
from pate_cli.core.checks import LARGEST
from pate_cli.core.errors import LedgerError, ParameterError, printable, quoted, shortened
from pate_cli.core.words import Adjacency
from pate_cli.files.addresses import reading, stem_of
from pate_cli.files.document import SPARING, Refusal, decoded, encoded, parsed

_FILE: Final = {"kind": "pate-rdp-curve", "schema_version": 1}
_LARGEST_FILE: Final = 1 << 20
_MOST_ORDERS: Final = 10_000
_LONGEST_TEXT: Final = 500
_PLAIN: Final[dict[str, Callable[[Any], Any]]] = {
    "adjacency": Adjacency,
    "name": lambda text: shortened(printable(text), _LONGEST_TEXT),
    "covers": lambda text: shortened(printable(text), _LONGEST_TEXT),
    "orders": lambda numbers: tuple(map(float, numbers)),
    "rdp": lambda numbers: tuple(map(float, numbers)),
    "least_delta": float,
    "epsilon": float,
    "delta": float,
}
_REFUSED: Final = Refusal(
    LedgerError,
    "not an external cost: ",
    '; give {"orders": [...], "rdp": [...], ...}, and leave out orders without a known cost',
)


@dataclass(frozen=True)
class Stated:
    """The cost of another mechanism on the teachers' training records, as its owner states it.

    Give a `Stated` to `release` as `external`, and `release` adds the stated cost to the cost of
    the labels. If the Rényi curve of the mechanism is known, as for DP-SGD, state the curve: with
    an (ε, δ) made from the curve, the total is usually larger.

        >>> given = {"order": 8, "release": "none", "seed": 1}
        >>> labelled = pate.aggregate("sample_votes/demo.parquet", max_queries=100, **given)
        >>> pate.release(labelled.ledger).report.epsilon
        0.7967
        >>> model = pate.Stated("replace-one", orders=(2, 8, 32), rdp=(0.1, 0.4, 1.6))
        >>> pate.release(labelled.ledger, external=[model]).report.epsilon
        1.7665
        >>> model = pate.Stated("replace-one", epsilon=1.0, delta=1e-6)
        >>> pate.release(labelled.ledger, external=[model]).report.epsilon
        1.7801

    Attributes:
        adjacency: which sets of records the numbers compare: `replace-one`, `add-or-remove-one`
            or `replace-special`.
        name: the name of the mechanism, usually the name of the file of the statement. Statements
            with different names are about different mechanisms, whose costs add up. The same
            statement under the same name counts once in a record, however often it is given.
        covers: what the cost covers, in its owner's words, which the report quotes.
        least_delta: the smallest δ for which the curve may be used, in [0, 1).
        orders: for a curve, Rényi orders > 1, ascending, [orders].
        rdp: for a curve, the cost at each order, [orders], nats.
        epsilon, delta: if the cost is an (ε, δ), ε ≥ 0 in nats and 0 ≤ δ < 1.

    Raises:
        LedgerError: the cost is neither only `orders` and `rdp`, nor only `epsilon` and `delta`.
        ParameterError: a number is out of range, or the δ for one replaced record is 1 or more.
    """

    adjacency: Adjacency
    name: str | None = field(default=None, metadata=SPARING)
    covers: str | None = field(default=None, metadata=SPARING)
    least_delta: float = field(default=0.0, metadata=SPARING)
    orders: tuple[float, ...] | None = field(default=None, metadata=SPARING)
    rdp: tuple[float, ...] | None = field(default=None, metadata=SPARING)
    epsilon: float | None = field(default=None, metadata=SPARING)
    delta: float | None = field(default=None, metadata=SPARING)

    def __post_init__(self) -> None:
        for name, plain in _PLAIN.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, plain(getattr(self, name)))
        forms = [(self.orders, self.rdp), (self.epsilon, self.delta)]
        if sorted(sum(part is not None for part in form) for form in forms) != [0, 2]:
            raise _REFUSED.of(
                'the cost must have either "orders" and "rdp", or "epsilon" and "delta"'
            )
        if self.orders is not None and not 0 < len(self.orders) <= _MOST_ORDERS:
            raise ParameterError(f"orders must have at least 1 and at most {_MOST_ORDERS} numbers")
        for name, value, most in (("epsilon", self.epsilon, LARGEST), ("delta", self.delta, 1.0)):
            if value is not None and not 0.0 <= value < most:
                raise ParameterError(f"{name} must be at least 0 and below {most:g}, got {value:g}")
        if not (0.0 <= self.least_delta < 1.0 and self.pair[1] < 1.0):
            raise ParameterError(
                f"least_delta is {self.least_delta:g}, and the delta for one replaced record is "
                f"{self.pair[1]:g}; each must be at least 0 and below 1; give another cost "
                "that is valid for the mechanism"
            )
        _ = self.curve

    @property
    def twice(self) -> bool:
        """Return whether replacing a record costs as much as two changes of the stated kind.

        The result is True for every adjacency except `replace-one`. A record that is added, removed
        or blanked is one change; replacing a record is two such changes.
        """
        return self.adjacency is not Adjacency.REPLACE_ONE

    @cached_property
    def curve(self) -> RdpCurve | None:
        """Return the RDP curve for the stated adjacency; None if the statement is an (ε, δ)."""
        if self.orders is None or self.rdp is None:
            return None
        return RdpCurve(np.array(self.orders), np.array(self.rdp))

    @property
    def pair(self) -> tuple[float, float]:
        """Return the (ε, δ) for one replaced record; (∞, 0) if the statement is a curve."""
        epsilon, delta = self.epsilon, self.delta
        if epsilon is None or delta is None:
            return math.inf, 0.0
        if not self.twice:
            return epsilon, delta
        again = math.exp(min(epsilon + math.log(delta), 0.0)) if delta > 0.0 else 0.0
        return 2.0 * epsilon, delta + again

    @property
    def highest(self) -> float:
        """Return the largest order with a known cost; infinite if the statement is an (ε, δ).

        If replacing a record counts as two changes, the result is about half of the largest of
        `orders`.
        """
        if self.curve is None:
            return math.inf
        return self.curve.highest_of_two if self.twice else self.curve.highest

    def rdp_at(self, orders: Floats) -> Floats:
        """Return the RDP cost for one replaced record, [orders], nats.

        The δ of a stated (ε, δ) is not in the result.

        Between two stated orders, the curve is read from the lower convex hull of the points
        (α − 1, (α − 1)·rdp at α) of all stated orders α and the point (0, 0). At orders above
        `highest` the cost is infinite.
        """
        if self.curve is not None:
            return self.curve.of_two(orders) if self.twice else self.curve.at(orders)
        epsilon, _ = self.pair
        if epsilon == 0.0:
            return np.zeros(len(orders))
        return randomised_response_rdp(epsilon=epsilon, orders=orders)

    @property
    def digest(self) -> str:
        """Return 32 hexadecimal digits, a hash of the statement.

        The hash includes the name, because two mechanisms may have the same cost.
        """
        plain = json.dumps(encoded(self), sort_keys=True)
        return hashlib.sha256(plain.encode()).hexdigest()[:32]

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the file of this statement, ready for JSON."""
        return {**_FILE, **encoded(self)}

    def to_json(self) -> str:
        """Return the JSON text of a file that `Stated.read` reads; public."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Self:
        """Return the statement in a JSON file.

        Raises:
            LedgerError: there is no file with this name, or it does not state a valid cost.
        """
        with reading(path, "an external cost") as file:
            data = parsed(file.read(_LARGEST_FILE + 1), _REFUSED, most=_LARGEST_FILE)
            if not isinstance(data, dict):
                raise _REFUSED.of("it must be a JSON object")
            for name, ours in _FILE.items():
                if data.get(name, ours) != ours:
                    raise _REFUSED.of(
                        f"the field {name} is {quoted(data[name])}, but this version of pate reads "
                        f"only {ours}"
                    )
            word = str(data.get("adjacency")).lower().replace("_", "-")
            said = {"name": stem_of(str(path)), **data, "adjacency": word}
            said = {name: said[name] for name in said if name in cls.__dataclass_fields__}
            return decoded(cls, said, _REFUSED)


Other: TypeAlias = Stated | str | PathLike[str]
"""The cost of another mechanism, or a file that states it."""


def stated_rdp(parts: Iterable[Stated], orders: Floats) -> Floats:
    """Return the sum of the RDP costs that others state, [orders], nats.

    The δ of a stated (ε, δ) is not in the result.

    Costs of mechanisms with independent noise add up at every order. Beyond the largest order of a
    curve the sum is infinite.
    """
    return sum((part.rdp_at(orders) for part in parts), np.zeros(len(orders)))


def refuse_short(given: Iterable[Stated], order: float) -> None:
    """Raise LedgerError if a stated curve has no cost at `order`, the order of the release."""
    for part in given:
        if not math.isfinite(part.rdp_at(np.array([order]))[0]):
            raise LedgerError(
                f"{part.name or 'an external curve'} has no cost at order {order:g}, which the "
                f"release uses; its largest order for a replaced record is "
                f"{part.highest:g}; state its cost at higher orders, or give a lower `order`"
            )
