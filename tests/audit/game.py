"""A session as a game, solved: what an adversary gets who chooses each query by the answers before.

Two neighbours differ in what k teachers say, on every query anew. The adversary picks both
histograms of the next query, as long as the rule lets it ask. All chances are exact, and so are the
best moves, by induction from the end: of a Rényi moment over the two counts that the rule looks at,
of δ at ε over these counts and the ratio of the chances so far.

Nothing is shared with the accountant, whose bounds the values are compared with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from pate_cli.disclosure.settings import StopRule

_STEP: Final = 0.02
"""Of the log of a ratio of chances, from −_FAR to _FAR."""
_FAR: Final = 12.0

Numbers = NDArray[np.float64]
Plan = dict[tuple[int, int], NDArray[np.intp]]
"""By (asked, answers) the place of the best pair for every node of the log ratio Q/P."""


def two_class_law(
    histograms: NDArray[np.int64], mechanism: str, parameters: Mapping[str, Any]
) -> Numbers:
    """Chances of no answer, the first and the second class, [k, 3]; of gnmax and of confident."""
    gap = (histograms[:, 0] - histograms[:, 1]) / (math.sqrt(2.0) * parameters["sigma2"])
    passes = np.ones(len(histograms))
    if mechanism == "confident":
        passes = ndtr((histograms.max(axis=1) - parameters["threshold"]) / parameters["sigma1"])
    return np.stack([1.0 - passes, passes * ndtr(gap), passes * ndtr(-gap)], axis=1)


@dataclass(frozen=True, eq=False)
class Menu:
    """What a query may be, of two classes.

    Attributes:
        pairs: all ordered pairs of histograms that k teachers' votes part, cast or not,
            [pairs, 2, 2].
        laws: chances of their outcomes on either side, [pairs, 3].
    """

    pairs: NDArray[np.int64]
    laws: tuple[Numbers, Numbers]

    @classmethod
    def of(cls, mechanism: str, teachers: int, parameters: Mapping[str, Any]) -> Menu:
        """Of gnmax or confident."""
        every = range(teachers + 1)
        found = np.array([(a, b) for a in every for b in every if a + b <= teachers])
        change = found[:, None] - found[None]
        apart = np.maximum(np.maximum(change, 0).sum(axis=2), np.maximum(-change, 0).sum(axis=2))
        apart = np.argwhere((apart > 0) & (apart <= parameters.get("teachers_per_record", 1)))
        law = two_class_law(found, mechanism, parameters)
        return cls(found[apart], (law[apart[:, 0]], law[apart[:, 1]]))


@dataclass(frozen=True, eq=False)
class Game:
    """All that may be asked at once, and until when.

    Attributes:
        one, other: chances of every outcome on either side, no answer first, [pairs, 1 + m].
        rule: when asking stops.
    """

    one: Numbers
    other: Numbers
    rule: StopRule

    def log_moment(self, order: float) -> float:
        """The log of the most that E_Q[(P/Q)^λ] comes to, whatever is asked."""
        with np.errstate(divide="ignore"):
            log_p, log_q = np.log(self.one), np.log(self.other)
        with np.errstate(invalid="ignore"):
            logs = np.where(self.one > 0.0, order * log_p - (order - 1.0) * log_q, -np.inf)
        refuse, answer = _envelope(logs[:, 0], np.logaddexp.reduce(logs[:, 1:], axis=1))
        values = np.zeros(self.rule.most + 2)
        for asked in range(self.rule.most, -1, -1):
            paths = np.logaddexp(refuse + values[:-1], answer + values[1:]).max(axis=0)
            free = [self.rule.left(asked, answers) > 0 for answers in range(values.size - 1)]
            values = np.append(np.where(free, np.maximum(paths, 0.0), 0.0), 0.0)
        return float(values[0])

    def delta(self, epsilon: float) -> float:
        """The most that P − e^ε Q comes to on any event, whatever is asked; not below it.

        The value is convex in the ratio, so a chord between nodes is above it.
        """
        return self._solved(epsilon)[0]

    def plan(self, epsilon: float) -> Plan:
        """How to come to that δ."""
        return self._solved(epsilon)[1]

    def _solved(self, epsilon: float) -> tuple[float, Plan]:
        nodes = np.linspace(-_FAR, _FAR, 1 + round(2.0 * _FAR / _STEP))
        ratios = np.concatenate([[0.0], np.exp(nodes)])
        last = np.maximum(1.0 - math.exp(epsilon) * ratios, 0.0)
        different = _different(self.one, self.other)
        one, other = self.one[different], self.other[different]
        with np.errstate(divide="ignore", invalid="ignore"):
            turned = np.where(one > 0.0, other / one, 1.0)
        moved = turned[:, :, None] * ratios
        place = np.clip(np.searchsorted(ratios, moved, side="right") - 1, 0, ratios.size - 2)
        low, high = ratios[place], ratios[place + 1]
        upper = np.clip((moved - low) / (high - low), 0.0, 1.0)
        below, above = one[:, :, None] * (1.0 - upper), one[:, :, None] * upper
        moves: Plan = {}
        values = np.tile(last, (self.rule.most + 2, 1))
        for asked in range(self.rule.most, -1, -1):
            here = np.tile(last, (self.rule.most + 2, 1))
            for answers in range(asked + 1):
                if self.rule.left(asked, answers) <= 0:
                    continue
                found = np.zeros((len(one), ratios.size))
                for outcome in range(one.shape[1]):
                    then = values[answers + (outcome > 0)]
                    at = place[:, outcome]
                    found += below[:, outcome] * then[at] + above[:, outcome] * then[at + 1]
                moves[asked, answers] = different[found.argmax(axis=0)]
                here[answers] = np.maximum(found.max(axis=0), last)
            values = here
        # Q/P is 1 before anything was asked.
        return float(values[0][1 + nodes.size // 2]), moves


def best_move(plan: Plan, asked: int, answers: int, log_ratio: Numbers) -> NDArray[np.intp]:
    """Places of pairs, for every log of Q/P."""
    places = np.rint((np.clip(log_ratio, -_FAR, _FAR) + _FAR) / _STEP).astype(np.intp)
    # Behind the node of Q/P = 0.
    return plan[asked, answers][places + 1]


def _different(one: Numbers, other: Numbers) -> NDArray[np.intp]:
    """Places of pairs that differ in more than the names of the classes."""
    columns = np.lexsort((other[:, 1:], one[:, 1:]))
    named = [np.take_along_axis(side[:, 1:], columns, axis=1) for side in (one, other)]
    laws = np.round(np.concatenate(named, axis=1), 14)
    return np.unique(laws, axis=0, return_index=True)[1]


def _envelope(refuse: Numbers, answer: Numbers) -> tuple[Numbers, Numbers]:
    """Of lines e^refuse + e^answer·r those that are highest for some r ≥ 0, [lines, 1]."""
    lines = sorted({(b, a) for a, b in zip(np.exp(refuse), np.exp(answer), strict=True)})
    kept: list[tuple[float, float]] = []
    for slope, start in lines:
        # A line that starts lower and is flatter is never above; nor one below two others' meeting.
        while kept and kept[-1][1] <= start:
            kept.pop()
        while len(kept) > 1:
            (b0, a0), (b1, a1) = kept[-2:]
            if (a1 - start) * (b1 - b0) > (a0 - a1) * (slope - b1):
                break
            kept.pop()
        kept.append((slope, start))
    found = np.log(np.array(kept))
    return found[:, 1:], found[:, :1]
