"""The most that all runs on the votes of some teachers may cost, however they are chosen.

A budget is a pair (ε, δ). Whoever chooses the next run has seen what earlier ones released, so the
rule that admits a run must be proved for settings chosen that way (accounting/THEORY.md, section
20.2). There are two such rules:

- plain sums: the ε's of all runs add up to at most ε, their δ's to at most δ;
- a Rényi filter: the costs of all runs at one order, which is fixed with the budget, add up to at
  most what that order turns into (ε, δ/2); the other half of δ is for runs that have an (ε, δ) and
  no curve.

The total that supposes runs chosen beforehand (`disclosure.total`) is smaller than either, and
admits nothing: a game with randomised response takes it to 1.4 times its δ.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Self

from pate_cli.core.checks import check_order, check_positive
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.words import BUDGET_DELTA
from pate_cli.files.document import SPARING


@dataclass(frozen=True)
class Budget:
    """The most that all runs of a record may cost together.

    Attributes:
        epsilon: nats, above 0.
        delta: of all runs together, in (0, 1).
        order: Rényi order λ > 1 of the filter that admits runs; None admits by plain sums.
    """

    epsilon: float
    delta: float = BUDGET_DELTA
    order: float | None = field(default=None, metadata=SPARING)

    def __post_init__(self) -> None:
        check_positive("`budget`", self.epsilon)
        if not 0.0 < self.delta < 1.0:
            raise ParameterError(f"`budget_delta` must be between 0 and 1, got {self.delta:g}")
        if self.order is not None:
            check_order(self.order)

    @classmethod
    def of(
        cls, epsilon: float | None, *, delta: float | None = None, order: float | None = None
    ) -> Self | None:
        """Return the budget that the three keywords state; None where they state none.

        Raises:
            UsageError: a δ or an order of a budget that has no ε.
            ParameterError: a number out of range.
        """
        if epsilon is None:
            for name, value in (("budget_delta", delta), ("budget_order", order)):
                if value is not None:
                    raise UsageError(f"`{name}` goes with `budget`, the epsilon of both")
            return None
        return cls(float(epsilon), BUDGET_DELTA if delta is None else float(delta), order)

    @property
    def rule(self) -> tuple[float, float] | None:
        """(order, δ) of a filter, which are fixed before its first run; None for plain sums."""
        return None if self.order is None else (self.order, self.delta)

    def left(self, spent: tuple[float, float]) -> tuple[float, float]:
        """Return the (ε, δ) that are left where so much is spent, each at least 0, rounded down."""
        rounding = Context(prec=12, rounding=ROUND_FLOOR)
        epsilon, delta = (
            float(rounding.create_decimal(Decimal(repr(most)) - Decimal(repr(gone))))
            for most, gone in zip((self.epsilon, self.delta), spent, strict=True)
        )
        return max(epsilon, 0.0), max(delta, 0.0)
