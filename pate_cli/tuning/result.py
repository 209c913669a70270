"""What tuning found, as a command line and as JSON."""
from __future__ import annotations
from dataclasses import dataclass
from pate_cli.tuning.price import Outcome
@dataclass(frozen=True)
class Tuned:
    winner: Outcome | None
    pareto: tuple[Outcome, ...]
    floor: float | None
    points: int
    complete: bool
