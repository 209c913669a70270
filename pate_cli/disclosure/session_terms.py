"""How many queries a session may ask, fixed before its first; public, and good for all votes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Final

import numpy as np

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.stopping import MOST_ASKED, beyond_of, log_growth
from pate_cli.core.checks import check_positive, check_whole
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import UnreachableError, UsageError
from pate_cli.disclosure.figures import nats
from pate_cli.disclosure.report import DataIndependent
from pate_cli.disclosure.settings import StopRule
from pate_cli.disclosure.terms import Headline, Terms, terms_of
from pate_cli.mechanisms.base import ComposedMechanism, ScoredMechanism

# Less beyond is not worth keeping ε at that of the queries that are asked in any case.
_WORTH: Final = 0.6
_ROUND_OFF: Final = 1e-9
# Where the number of queries is looked for, how its ε grows, and when to halve instead.
_FIRST: Final = 64
_POWER: Final = 1.7
_PATIENCE: Final = 12


def rule_fault(rule: StopRule, mechanism: ScoredMechanism | ComposedMechanism) -> str | None:
    """Return why a rule costs more than it says with a mechanism; None where it does not."""
    cost = _cost(mechanism, rule.delta)(rule.asks)
    if cost > rule.epsilon + _ROUND_OFF:
        return f"{rule.asks} queries cost epsilon {nats(cost)}"
    if rule.beyond is None:
        return None
    if _too_coarse(mechanism, rule.most, rule.delta, rule.epsilon):
        return f"delta is too small for {rule.most} queries"
    order = rule.beyond.order
    moments = mechanism.query_moments(order) if isinstance(mechanism, ScoredMechanism) else None
    if moments is None:
        return f"{mechanism.name} allows nothing beyond {rule.asks} queries"
    least = moments.test_cost(rule.beyond.answer_cost)
    if rule.beyond.test_cost < least * (1.0 - _ROUND_OFF):
        return f"a query costs {least:.6g} at order {order:g}"
    found = log_growth(moments, asks=rule.asks, beyond=rule.beyond) / (order - 1.0)
    epsilon = found + float(conversion_cost(np.array([order]), delta=rule.delta)[0])
    if epsilon > rule.epsilon + _ROUND_OFF:
        return f"with what lies beyond, {rule.asks} queries cost epsilon {nats(epsilon)}"
    return None


@dataclass(frozen=True)
class SessionTerms(Terms):
    """Terms of a session: its cost however its queries are chosen.

    Attributes:
        mechanism: what is asked.
        rule: when asking stops.
    """

    mechanism: ScoredMechanism | ComposedMechanism
    rule: StopRule

    @cached_property
    def _in_any_case(self) -> Terms:
        asks = self.rule.asks
        return terms_of(self.mechanism, queries=asks, max_answers=asks, delta=self.rule.delta)

    @property
    def analysis(self) -> str:
        """Analysis of as many queries in a file."""
        return self._in_any_case.analysis

    @property
    def public(self) -> DataIndependent:
        """Worst case of the queries that are asked in any case, or of the rule if it costs more."""
        found, epsilon = self._in_any_case.public, self.rule.epsilon
        if epsilon <= found.epsilon or self.rule.beyond is None:
            return found
        order = self.rule.beyond.order
        return DataIndependent(epsilon, order, "renyi", epsilon, order, "renyi")

    @property
    def headline(self) -> Headline:
        """Headline: the worst case of the session."""
        return Headline(self.public.epsilon, "worst-case")

    @property
    def labels_delta(self) -> float:
        """The rule's."""
        return self.rule.delta

    def moving(self, votes: int) -> float:
        """Return ε of records that move so many votes; infinite if the rule goes beyond."""
        return math.inf if self.rule.beyond is not None else self._in_any_case.moving(votes)


def stop_rule(
    mechanism: ScoredMechanism | ComposedMechanism,
    *,
    epsilon: float | None,
    delta: float,
    asks: int | None = None,
) -> StopRule:
    """Return the rule of a session: as many queries as a target pays for, or as were said.

    Args:
        mechanism: what is asked.
        epsilon: the target, nats; None where `asks` alone is said.
        delta: δ in (0, 1).
        asks: the most queries that are asked in any case; None where the target alone is said.

    Raises:
        UsageError: neither is said.
        UnreachableError: not one query is paid for.
    """
    if epsilon is None and asks is None:
        raise UsageError("say `epsilon` or `max_queries`: nothing else would end a session")
    cost = _cost(mechanism, delta)
    number = MOST_ASKED if asks is None else check_whole("`max_queries`", asks)
    if epsilon is not None:
        target = check_positive("epsilon", epsilon)
        number = _most_within(cost, target, number)
        if number == 0:
            raise UnreachableError(
                f"one query alone costs epsilon {nats(cost(1))} at delta {delta:g}, above the "
                f"target {target:g}; take more noise, or more teachers"
            )
    alone = cost(number)
    if math.isinf(alone):
        raise UnreachableError(f"{number} queries cost more than any epsilon at delta {delta:g}")
    if asks is not None or not isinstance(mechanism, ScoredMechanism):
        return StopRule(alone, delta, number)
    return _with_more(mechanism, StopRule(alone, delta, number), target=epsilon or alone)


def _with_more(mechanism: ScoredMechanism, rule: StopRule, *, target: float) -> StopRule:
    """More where few queries are answered, at the ε of the rule, or at the target for far more."""
    found = terms_of(mechanism, queries=rule.asks, max_answers=rule.asks, delta=rule.delta).public
    if found.method != "renyi" or found.order is None:
        return rule
    moments = mechanism.query_moments(found.order)
    if moments is None:
        return rule
    order = np.array([found.order])
    conversion = float(conversion_cost(order, delta=rule.delta)[0])
    best = rule
    for epsilon in (rule.epsilon, max(target, rule.epsilon)):
        most = epsilon - conversion
        beyond = beyond_of(moments, asks=rule.asks, most=most)
        if beyond is None or _too_coarse(mechanism, beyond.most, rule.delta, epsilon):
            continue
        if best.beyond is None or beyond.budget > best.beyond.budget:
            best = StopRule(epsilon, rule.delta, rule.asks, beyond)
        if beyond.budget >= _WORTH * most:
            break
    return best


def _cost(mechanism: ScoredMechanism | ComposedMechanism, delta: float) -> Callable[[int], float]:
    """ε of so many queries in any case, as it is said; infinite where δ does not suffice."""

    def cost(queries: int) -> float:
        try:
            terms = terms_of(mechanism, queries=queries, max_answers=queries, delta=delta)
        except UnreachableError:
            return math.inf
        epsilon = terms.public.epsilon
        return math.inf if _too_coarse(mechanism, queries, delta, epsilon) else epsilon

    return cost


def _too_coarse(
    mechanism: ScoredMechanism | ComposedMechanism, queries: int, delta: float, epsilon: float
) -> bool:
    """Whether the noise of so many queries adds more to δ than is allowed for."""
    return delta < mechanism.smallest_delta(queries, epsilon=epsilon + 1.0)


def _most_within(cost: Callable[[int], float], target: float, most: int) -> int:
    """The most queries, up to `most`, that cost no more than the target.

    ε grows a little slower than some power of their number: the next to be tried is where the last
    ones point, for a number costs time.
    """
    low, high, power = 0, most + 1, _POWER
    tried: list[tuple[int, float]] = []
    guess = min(_FIRST, most)
    while high - low > 1:
        found = cost(guess)
        low, high = (guess, high) if found <= target else (low, guess)
        if 0.0 < found < math.inf:
            tried.append((guess, found))
        if len(tried) > 1 and tried[-1][1] != tried[-2][1]:
            (n, a), (m, b) = tried[-2:]
            power = min(max(math.log(m / n) / math.log(b / a), 0.5), 3.0)
        near, epsilon = tried[-1] if tried else (low, math.inf)
        guess = int(near * (target / epsilon) ** power) if 0.0 < found < math.inf else low // 2
        # What is found to be too near to an end is tried next to it, and then the middle.
        guess = min(max(guess, low + 1), high - 1)
        if len(tried) > _PATIENCE:
            guess = (low + min(high, 2 * low + 2)) // 2
    return low
