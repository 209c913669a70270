"""Two tables side by side: which lines have become slower."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.results import Results

__all__ = ["Change", "compare"]


@dataclass(frozen=True)
class Change:
    """A line of both tables; `ratio` is new over old seconds."""

    name: str
    old: float
    new: float

    @property
    def ratio(self) -> float:
        """Above 1: slower."""
        return self.new / self.old

    def text(self, factor: float) -> str:
        """One line of output."""
        mark = "  SLOWER" if self.ratio > factor else ""
        return f"{self.name:<72}{self.old:>9.2f} s{self.new:>9.2f} s{self.ratio:>7.2f}×{mark}"


def compare(old: Results, new: Results) -> Iterator[Change]:
    """Yield the lines that both tables have, in the order of the new one."""
    before = {line.name: line.seconds for line in old.lines}
    for line in new.lines:
        if line.name in before:
            yield Change(line.name, before[line.name], line.seconds)
