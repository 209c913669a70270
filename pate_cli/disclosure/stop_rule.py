"""Until when a session may ask: a rule of two public counts, fixed before its first query."""

from __future__ import annotations

from dataclasses import field

from pate_cli.accounting.stopping import Beyond
from pate_cli.core.checks import check_delta, check_positive, check_whole
from pate_cli.core.codec import SPARING
from pate_cli.core.dataclass import dataclass


@dataclass(frozen=True)
class StopRule:
    """How many queries a session may ask, and what it costs however they are chosen; public.

    Attributes:
        epsilon, delta: of all that the session says, whatever the votes, nats.
        asks: N ≥ 1, how many queries may be asked in any case.
        beyond: up to where more may be, if few are answered; None where no more may.
    """

    epsilon: float
    delta: float
    asks: int
    beyond: Beyond | None = field(default=None, metadata=SPARING)

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_delta(self.delta)
        check_whole("asks", self.asks)

    def left(self, asked: int, answers: int) -> int:
        """How many more may be asked whatever comes out, ≥ 0."""
        beyond = 0 if self.beyond is None else self.beyond.further(asked, answers)
        return max(self.asks - asked, beyond, 0)

    def allows(self, asked: int, answers: int) -> bool:
        """Whether a session may have come so far."""
        if asked <= self.asks:
            return True
        return self.beyond is not None and self.beyond.allows(asked, answers)

    @property
    def most(self) -> int:
        """How many may be asked if none is answered."""
        return max(self.asks, 0 if self.beyond is None else self.beyond.most)
