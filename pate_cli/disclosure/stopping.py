"""The rule of how many queries a session may ask; it is fixed before the first query, and public.

The cost of the rule is the worst-case cost of all answers that the rule allows; `Cost.of` computes
it. The cost of the rule is valid even if queries are chosen after seeing earlier answers;
accounting.stopping has the proof.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from functools import partial
from typing import Final

from pate_cli.accounting.conversion import order_cost
from pate_cli.accounting.few_votes import Few, touched
from pate_cli.accounting.stopping import MOST_ASKED, beyond_of, log_growth
from pate_cli.core.checks import check_positive, check_whole
from pate_cli.core.errors import ParameterError, UnreachableError, UsageError
from pate_cli.disclosure.cost import Cost, nats
from pate_cli.disclosure.settings import StopRule
from pate_cli.mechanisms.base import Mechanism, ScoredMechanism

# A rule that allows more than N queries at their ε is good enough if its budget is this share of
# the largest possible one.
_WORTH: Final = 0.6
_ROUND_OFF: Final = 1e-9
_FIRST: Final = 64
"""The number of queries at which the search begins."""


def rule_fault(rule: StopRule, mechanism: Mechanism, few: Few = None) -> str | None:
    """Return why a session can cost more than the rule states; None if no session can cost more."""
    cost, beyond = _cost(mechanism, rule.delta, rule.asks, few), rule.beyond
    if cost > rule.epsilon + _ROUND_OFF:
        return f"{rule.asks} queries cost epsilon {nats(cost)}"
    if beyond is None:
        return None
    if _too_coarse(mechanism, rule.most, rule.delta, rule.epsilon):
        return f"delta is too small for {rule.most} queries"
    scored = mechanism if isinstance(mechanism, ScoredMechanism) else None
    moments = None if scored is None else scored.query_moments(beyond.order)
    if moments is None:
        return f"{mechanism.name} allows no more than {rule.asks} queries"
    least = moments.test_cost(beyond.answer_cost)
    if beyond.test_cost < least * (1.0 - _ROUND_OFF):
        return f"a query costs {least:.6g} at order {beyond.order:g}"
    found = log_growth(moments, asks=rule.asks, beyond=beyond) / (beyond.order - 1.0)
    epsilon = found + order_cost(beyond.order, delta=rule.delta)
    if epsilon > rule.epsilon + _ROUND_OFF:
        return f"with those beyond {rule.asks}, its queries cost epsilon {nats(epsilon)}"
    return None


def stop_rule(
    mechanism: Mechanism,
    *,
    epsilon: float | None,
    delta: float,
    asks: int | None = None,
    few: Few = None,
) -> StopRule:
    """Return the rule of a session: as many queries as a target allows, or the given number.

    Args:
        mechanism: the mechanism of the session.
        epsilon: the target, nats; None if only `asks` is given.
        delta: δ in (0, 1).
        asks: the number of queries; None if only the target is given.
        few: the limit on the votes of one teacher; None if there is no limit.

    Raises:
        ParameterError: `asks` is above MOST_ASKED.
        UsageError: neither `epsilon` nor `asks` is given.
        UnreachableError: the target does not allow a single query.
    """
    if epsilon is None and asks is None:
        raise UsageError("give `target_epsilon` or `max_queries`, so that the session has an end")
    number = MOST_ASKED if asks is None else check_whole("`max_queries`", asks)
    if number > MOST_ASKED:
        raise ParameterError(f"`max_queries` must be at most {MOST_ASKED} in a session")
    if epsilon is not None:
        target = check_positive("`target_epsilon`", epsilon)
        number = _most_within(partial(_cost, mechanism, delta, few=few), target, number)
        if number == 0:
            one = nats(_cost(mechanism, delta, 1, few))
            raise UnreachableError(
                f"one query alone costs epsilon {one} at delta {delta:g}, above the target "
                f"{target:g}; use more noise, or more teachers"
            )
    alone = _cost(mechanism, delta, number, few)
    if math.isinf(alone):
        raise UnreachableError(
            f"at delta {delta:g}, {number} queries have no finite epsilon; ask fewer queries, or "
            "use a larger `delta`"
        )
    rule = StopRule(alone, delta, number)
    if asks is not None or few is not None or not isinstance(mechanism, ScoredMechanism):
        return rule
    return _with_more(mechanism, rule, target=epsilon or alone)


def _with_more(mechanism: ScoredMechanism, rule: StopRule, *, target: float) -> StopRule:
    """Return a rule that allows more than `rule.asks` queries if few queries are answered.

    The new rule usually has the ε of `rule`. The new rule has the ε `target` if the budget
    (`Beyond.budget`) at the ε of `rule` is too small (`_WORTH`), and the budget at the ε `target`
    is larger. If no more queries can be allowed, return `rule` itself.
    """
    order = Cost.of_rows(mechanism, rule.asks, rule.asks, rule.delta).own.order
    moments = None if order is None else mechanism.query_moments(order)
    if order is None or moments is None:
        return rule
    best, conversion = rule, order_cost(order, delta=rule.delta)
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


def _cost(mechanism: Mechanism, delta: float, queries: int, few: Few = None) -> float:
    """Return the ε of this many queries if all are answered; infinite if δ is too small."""
    try:
        epsilon = Cost.of_rows(mechanism, queries, queries, delta, few).own.epsilon
    except UnreachableError:
        return math.inf
    coarse = _too_coarse(mechanism, touched(few, queries, queries)[0], delta, epsilon)
    return math.inf if coarse else epsilon


def _too_coarse(mechanism: Mechanism, queries: int, delta: float, epsilon: float) -> bool:
    """Return whether rounding errors in the noise of this many queries are too large for δ."""
    return delta < mechanism.smallest_delta(queries, epsilon=epsilon + 1.0)


def _most_within(cost: Callable[[int], float], target: float, most: int) -> int:
    """Return the largest number of queries, at most `most`, whose cost is within the target."""
    low, high = 0, _FIRST
    while high <= most and cost(high) <= target:
        low, high = high, 2 * high
    further = range(low + 1, min(high, most + 1))
    return low + bisect.bisect(further, False, key=lambda number: cost(number) > target)
