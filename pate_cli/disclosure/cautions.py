"""Warnings that protect: an ε that promises nothing, labels that are noise, a δ too large."""

from __future__ import annotations

from typing import Final

from pate_cli.disclosure.verdict import VACUOUS
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism

_REMEDY: Final = "Ask fewer queries, find settings with pate tune, or train more teachers."


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
    """Warnings about parameters that make every label noise, or δ no promise; all of it public.

    Rounds that share a warning give it once.

    A query on which all teachers agree is the best there is (`Mechanism.unanimous`). Labels count
    as noise where even its label is nearer to a guess among the classes than to certainty.
    """
    every = (text for mechanism in mechanisms for text in _cautions(mechanism, delta))
    return tuple(dict.fromkeys(every))


def _cautions(mechanism: Mechanism, delta: float) -> list[str]:
    found = []
    # Where teachers count differently, `teachers` are votes.
    votes, classes = mechanism.teachers, mechanism.classes
    answered, right = mechanism.unanimous()
    if answered < 0.5:
        composed = isinstance(mechanism, ComposedMechanism)
        remedy = "raise --query-epsilon" if composed else "lower --threshold"
        found.append(
            "The threshold is out of reach: even a query on which all "
            f"{votes} votes agree is answered with probability {answered:.2g} only. "
            f"If that is not meant, {remedy}, or train more teachers."
        )
    if right < (1.0 + 1.0 / classes) / 2.0:
        found.append(
            f"Labels are noise: even where all {votes} votes agree, an answer is right with "
            f"probability {right:.2g} only ({1.0 / classes:.2g} by guessing). Take less noise on "
            f"fewer queries, as pate tune finds it, or train more teachers."
        )
    if delta * votes > 1.0:
        found.append(
            f"delta {delta:g} is above 1 / {votes} votes: it allows a mechanism that gives some "
            "record away outright. Take one far below 1 over the number of records."
        )
    return found
