"""Warnings that protect: an ε of no promise, labels that are noise or guesses, a δ too large."""

from __future__ import annotations

from typing import Final

from pate_cli.disclosure.verdict import VACUOUS
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism

_OVERRULED: Final = 0.9
# Good settings may leave three unanimous queries of four without an answer, but not nearly all.
_ANSWERED: Final = 0.1
_REMEDY: Final = "Ask fewer queries, find settings with pate plan, or train more teachers."


def vacuous_warnings(epsilon: float, *, composed: bool = False) -> tuple[str, ...]:
    """A warning where ε promises practically nothing, with what to do about it."""
    if epsilon <= VACUOUS:
        return ()
    remedy = _REMEDY
    if composed:
        remedy = (
            "Ask fewer queries, allow fewer refusals, lower --query-epsilon, or use --mechanism "
            "confident, whose cost grows more slowly."
        )
    return (
        "This epsilon promises practically nothing: whoever guesses at even odds whether a record "
        f"was used may be right more than 99.99% of the time. {remedy}",
    )


def cautions(*mechanisms: Mechanism, delta: float) -> tuple[str, ...]:
    """Warnings about parameters that make labels noise or guesses, or δ no promise; all public.

    Rounds that share a warning give it once.

    A query on which all votes agree is the best there is (`Mechanism.unanimous`). Labels count as
    noise where even its label is nearer to a guess among the classes than to certainty; and as
    those of a prior where not even teachers who all agree are likely to overrule it.
    """
    every = (text for mechanism in mechanisms for text in _cautions(mechanism, delta))
    return tuple(dict.fromkeys(every))


def _cautions(mechanism: Mechanism, delta: float) -> list[str]:
    found = []
    # Where teachers count differently, `teachers` are votes.
    votes, classes, weight = mechanism.teachers, mechanism.classes, mechanism.prior_weight
    every = f"{mechanism.most_votes} votes" + (f", {weight} of them the prior's," if weight else "")
    answered, right = mechanism.unanimous()
    reached, certain = answered >= _ANSWERED, right >= (1.0 + 1.0 / classes) / 2.0
    if not reached:
        composed = isinstance(mechanism, ComposedMechanism)
        remedy = "raise --query-epsilon" if composed else "lower --threshold"
        found.append(
            "The threshold is out of reach: even a query on which all "
            f"{every} agree is answered with probability {answered:.2g} only. "
            f"If that is not meant, {remedy}, or train more teachers."
        )
    if not certain:
        found.append(
            f"Labels are noise: even where all {every} agree, an answer is right with "
            f"probability {right:.2g} only ({1.0 / classes:.2g} by guessing). Take less noise on "
            f"fewer queries, as pate plan finds it, or train more teachers."
        )
    if weight:
        found += _guesses(mechanism, reached=reached, certain=certain)
    if delta * votes > 1.0:
        found.append(
            f"delta {delta:g} is above 1 / {votes} votes: it allows a mechanism that gives some "
            "record away outright. Take one far below 1 over the number of records."
        )
    return found


def _guesses(mechanism: Mechanism, *, reached: bool, certain: bool) -> list[str]:
    """Return warnings that the prior outvotes the teachers, unless their own noise does it."""
    votes, weight = mechanism.teachers, mechanism.prior_weight
    answered, right = mechanism.overruled()
    found = []
    if reached and answered < _ANSWERED:
        found.append(
            f"Only guesses are confirmed: a query on which all {votes} votes of the teachers are "
            f"against its guess is answered with probability {answered:.2g} only. "
            "Lower --threshold, or train more teachers."
        )
    if weight > votes:
        found.append(
            f"No guess can be overruled: the prior has {weight} votes, the teachers {votes} "
            "together, so labels are its guesses. Lower --prior-weight far below them."
        )
    elif certain and right < _OVERRULED:
        found.append(
            f"Guesses are hard to overrule: where all {votes} votes of the teachers are against a "
            f"guess of {weight} votes, an answer is theirs with probability {right:.2g} only. "
            "Lower --prior-weight, take less noise, or train more teachers."
        )
    return found
