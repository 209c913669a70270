"""What a search says of a setting, how it asks for a price, and how rows fill a budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from pate_cli.accounting.conversion import round_up
from pate_cli.core.dataclass import dataclass
from pate_cli.core.words import Bound, ReleaseKind
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.sample import Yield
from pate_cli.planning.sanitized import SPREADS
from pate_cli.planning.setting import Setting
from pate_cli.tuning.goal import Goal

_GROWTH_STEPS = 6


@dataclass(frozen=True)
class Costed:
    """One way to run `pate aggregate`, priced.

    Attributes:
        setting: T, σ1, σ2.
        queries: k1, the rows that are asked.
        max_answers: k2, the cap on answers; None for none.
        plan: how ε is released; None for `none`.
        mean, sd: of the sanitized ε over the release's noise, nats; None without a release.
        data_independent: ε for all votes of everything that is released, nats; infinite where it
            was not computed.
        labels: ε for all votes of the labels alone, nats, likewise.
        expected: what labels it is expected to give.
        exact: whether the numbers are those a run would use (False: a coarser lattice's).
        target: a target that is tested; None without one.
        chance: that the labels pass; `expected` counts what they would give by it.
        bound: how the test bounds what votes cost.
        about: whether the chance is an estimate, for the bound itself takes long.
    """

    setting: Setting
    queries: int
    max_answers: int | None
    plan: ReleasePlan | None
    mean: float | None
    sd: float | None
    data_independent: float
    labels: float
    expected: Yield
    exact: bool = True
    target: TargetPlan | None = None
    chance: float = 1.0
    bound: Bound = Bound.TWO_TAIL
    about: bool = False

    @property
    def slow(self) -> bool:
        """Whether an exact price takes so long that only the best settings get one."""
        return self.bound is not Bound.TWO_TAIL

    @property
    def release(self) -> ReleaseKind:
        """What is published."""
        if self.target is not None:
            return ReleaseKind.TARGET
        return ReleaseKind.NONE if self.plan is None else self.plan.kind

    @property
    def sanitized(self) -> float | None:
        """Mean plus two standard deviations of the sanitized ε, rounded up as a report does."""
        if self.mean is None or self.sd is None:
            return None
        return _round_up(max(self.mean + SPREADS * self.sd, 0.0))

    @property
    def epsilon(self) -> float:
        """What would be published: the smaller of the sanitized and the data-independent ε."""
        if self.target is not None:
            return self.target.epsilon
        public = _round_up(self.data_independent)
        return public if self.sanitized is None else min(self.sanitized, public)

    @property
    def always(self) -> bool:
        """Whether ε holds for every draw, not just for 97.7% of them."""
        return self.target is not None or self.epsilon == _round_up(self.data_independent)

    def meets(self, goal: Goal) -> bool:
        """Whether every constraint of a goal is met."""
        return goal.missed_by(self.epsilon, self.expected) == 0.0

    def rank(self, goal: Goal) -> tuple[float, ...]:
        """How well it serves a goal; larger is better."""
        return goal.rank(self.epsilon, self.expected)


class Pricing(Protocol):
    """How settings are priced for one kind of ε.

    Attributes:
        beam: how many of the best settings are looked around before a search ends.
        whole: grids of up to so many settings are priced whole.
        front_ranges: in how many ranges of ε the best are kept for the Pareto front.
        between: whether values between those of a grid are worth a look.
    """

    beam: int
    whole: int
    front_ranges: int
    between: bool

    def starts(self, goal: Goal) -> Sequence[Setting]:
        """Settings near the best for a goal, where a quick rule knows some; else none."""
        ...

    def agrees(self, setting: Setting, goal: Goal, queries: int) -> bool:
        """Whether enough of its answers would equal the plurality, without a price."""
        ...

    def estimate(self, setting: Setting, goal: Goal, near: Costed | None) -> Costed | None:
        """A quick price for a choice; None where there is none.

        Args:
            setting: what to price.
            goal: decides how many rows are asked.
            near: the outcome of another setting to start from, or None.
        """
        ...

    def polished(self, rough: Costed, goal: Goal, *, strides: tuple[int, ...] = (1,)) -> Costed:
        """A better estimate of the same setting, for a start in these strides."""
        ...

    def exact(
        self, rough: Costed, goal: Goal, tick: Callable[[], None] = lambda: None
    ) -> Costed | None:
        """What a run would say of such an outcome; None where it misses the goal.

        Args:
            rough: an estimate.
            goal: decides how many rows are asked.
            tick: called whenever an order of a dear outcome is priced.
        """
        ...

    def labels_bound(self, outcome: Costed) -> Costed:
        """The outcome with the ε for all votes of its labels alone."""
        ...


@dataclass(frozen=True)
class Filled:
    """ε of so many rows: a constant, what grows with the rows, and the rest with their power 2/3.

    The last is what a draw costs whose noise is chosen for the rows.
    """

    queries: int
    epsilon: float
    constant: float
    linear: float

    def growth(self, target: float) -> float:
        """How many times the rows would cost about so much."""
        room, rest = target - self.constant, self.epsilon - self.constant - self.linear
        if room <= 0.0 or not math.isfinite(self.epsilon):
            return 0.5
        growth = 1.0
        for _ in range(_GROWTH_STEPS):
            growth *= (room / (self.linear * growth + rest * growth ** (2.0 / 3.0))) ** 1.2
        return growth


def fill_budget(
    price: Callable[[int], Filled],
    target: float,
    *,
    most: int,
    start: int,
    rounds: int,
    slack: float,
) -> Filled:
    """Nearly the most rows whose ε, which grows with them, stays at or below a target.

    It stops after so many prices, or at one within a relative slack below the target.

    Where all that were tried cost more, the last of those.
    """
    low, high = 0, most + 1
    fits: Filled | None = None
    rows = min(max(start, 1), most)
    for _ in range(rounds):
        found = price(rows)
        if found.epsilon <= target:
            low, fits = rows, found
        else:
            high = rows
        if high - low <= 1 or (fits is found and found.epsilon >= (1.0 - slack) * target):
            break
        guess = rows * found.growth(target * (1.0 - 0.3 * slack))
        rows = min(max(int(guess), low + 1), high - 1)
    return fits or found


def _round_up(epsilon: float) -> float:
    return round_up(epsilon) if math.isfinite(epsilon) else math.inf
