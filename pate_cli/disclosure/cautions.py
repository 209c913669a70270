"""Warnings about an ε that promises nothing, labels that are noise or guesses, a δ too large."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pate_cli.core.words import CEILING
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism

PAPER: Final = (
    "The published analysis charges the expected cost over the aggregator's coins, which is below "
    "a Renyi divergence; sanitized.epsilon is for comparison with the paper, not a bound."
)
"""Caveat of a data-dependent ε of the published analysis."""

_OVERRULED: Final = 0.9
# Good settings may leave three unanimous queries of four without an answer, but not nearly all.
_ANSWERED: Final = 0.1


def vacuous_warnings(epsilon: float, *, composed: bool = False) -> tuple[str, ...]:
    """Return a warning if ε (nats) promises practically nothing, with what to do about it.

    Args:
        epsilon: of everything that is released.
        composed: whether a query has an ε of its own, as with `stability` and `sparse-vector`.
    """
    if epsilon <= CEILING:
        return ()
    remedy = "Ask fewer queries, find settings with pate plan, or train more teachers."
    if composed:
        remedy = (
            "Ask fewer queries, allow fewer refusals, lower --query-epsilon, or use --mechanism "
            "confident, whose cost grows more slowly."
        )
    return (
        "This epsilon promises practically nothing: someone guessing whether one training record "
        f"was used, 50:50 beforehand, can be right more than 99.99% of the time. {remedy}",
    )


def cautions(*mechanisms: Mechanism, delta: float) -> tuple[str, ...]:
    """Return warnings about settings that make labels useless or δ no promise; all are public.

    A query on which all votes agree is the best there is. Labels count as noise if even its label
    is nearer to a guess among the classes than to certainty, and as guesses of the prior if
    teachers who all agree are unlikely to overrule it.

    Args:
        mechanisms: of all rounds; a warning that they share is given once.
        delta: δ of the labels.
    """
    return tuple(dict.fromkeys(text for each in mechanisms for text in _cautions(each, delta)))


def _cautions(mechanism: Mechanism, delta: float) -> Iterator[str]:
    # Where teachers count differently, `teachers` are votes.
    votes, classes, weight = mechanism.teachers, mechanism.classes, mechanism.prior_weight
    every = f"{mechanism.most_votes} votes" + (f" ({weight} of the prior)" if weight else "")
    answered, right = mechanism.unanimous()
    reached, certain = answered >= _ANSWERED, right >= (1.0 + 1.0 / classes) / 2.0
    if not reached:
        composed = isinstance(mechanism, ComposedMechanism)
        yield (
            f"The threshold is out of reach: if all {every} agree, a query is answered with "
            f"probability {answered:.2g} only. "
            f"{'Raise --query-epsilon' if composed else 'Lower --threshold'}, or train more "
            "teachers."
        )
    if not certain:
        yield (
            f"Labels are noise: if all {every} agree, an answer is right with probability "
            f"{right:.2g} only ({1.0 / classes:.2g} by guessing). Take less noise on fewer "
            "queries, as pate plan finds it, or train more teachers."
        )
    confirmed, overruled = mechanism.overruled() if weight else (1.0, 1.0)
    # The teachers' own noise is told above.
    if (
        weight > votes
        or (reached and confirmed < _ANSWERED)
        or (certain and overruled < _OVERRULED)
    ):
        yield (
            f"Guesses of the prior are hard to overrule: if all {votes} votes of the teachers are "
            f"against a guess of {weight} votes, a query is answered with probability "
            f"{confirmed:.2g}, and an answer is theirs with probability {overruled:.2g}. Lower "
            "--prior-weight, take less noise, or train more teachers."
        )
    if delta * votes > 1.0:
        yield (
            f"delta {delta:g} is above 1 / {votes} votes, so it allows a mechanism that gives some "
            "training record away. Take one far below 1 over the number of training records."
        )
