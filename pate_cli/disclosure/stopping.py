"""How many queries a session may ask: a rule fixed before its first; public, good for all votes.

What a rule promises is proved for queries that are chosen by earlier answers
(accounting.stopping); `Cost.of` says what it costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from pate_cli.accounting.conversion import order_cost
from pate_cli.accounting.stopping import MOST_ASKED, beyond_of, log_growth
from pate_cli.core.checks import check_positive, check_whole
from pate_cli.core.errors import UnreachableError, UsageError
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.figures import nats
from pate_cli.disclosure.settings import StopRule
from pate_cli.mechanisms.base import Mechanism, ScoredMechanism

# Less beyond is not worth keeping ε at that of the queries that are asked in any case.
_WORTH: Final = 0.6
_ROUND_OFF: Final = 1e-9
# Where the number of queries is looked for, how its ε grows, and when to halve instead.
_FIRST: Final = 64
_POWER: Final = 1.7
_PATIENCE: Final = 12


def rule_fault(rule: StopRule, mechanism: Mechanism) -> str | None:
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
    epsilon = found + order_cost(order, delta=rule.delta)
    if epsilon > rule.epsilon + _ROUND_OFF:
        return f"with what lies beyond, {rule.asks} queries cost epsilon {nats(epsilon)}"
    return None


def stop_rule(
    mechanism: Mechanism,
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
        raise UsageError("say `target_epsilon` or `max_queries`: nothing else would end a session")
    cost = _cost(mechanism, delta)
    number = MOST_ASKED if asks is None else check_whole("`max_queries`", asks)
    if epsilon is not None:
        target = check_positive("`target_epsilon`", epsilon)
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
    """Return more where few queries are answered: at the ε of the rule, or the target for far more.

    Where nothing is worth it, the rule stays as it is.
    """
    found = Cost.of_rows(mechanism, rule.asks, rule.asks, rule.delta).own
    moments = None if found.order is None else mechanism.query_moments(found.order)
    if found.order is None or moments is None:
        return rule
    conversion = order_cost(found.order, delta=rule.delta)
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


def _cost(mechanism: Mechanism, delta: float) -> Callable[[int], float]:
    """Return the ε of so many queries in any case, as it is said; infinite for too small a δ."""

    def cost(queries: int) -> float:
        try:
            epsilon = Cost.of_rows(mechanism, queries, queries, delta).own.epsilon
        except UnreachableError:
            return math.inf
        return math.inf if _too_coarse(mechanism, queries, delta, epsilon) else epsilon

    return cost


def _too_coarse(mechanism: Mechanism, queries: int, delta: float, epsilon: float) -> bool:
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
