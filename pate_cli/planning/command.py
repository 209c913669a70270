"""The `pate aggregate` line that runs settings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.tuning import Tuning


def in_votes(value: float) -> str:
    """Return an amount as the command line reads it back: amounts below 1 are shares there."""
    return repr(value).removesuffix(".0") if value >= 1.0 else f"{value:g}votes"


def line_of(votes: str, words: Sequence[str], keywords: Mapping[str, Any]) -> str:
    """Return the `pate aggregate` line with these keywords of `aggregate`.

    Args:
        votes: the file of votes.
        words: options that come first, such as `--prior PRIOR`.
        keywords: numbers and words by name; numbers are read back as the very same ones.
    """
    line = ["pate", "aggregate", votes, *words]
    for name, value in keywords.items():
        text = repr(value).removesuffix(".0") if isinstance(value, int | float) else str(value)
        line += [f"--{name.replace('_', '-')}", text]
    return shlex.join(line)


def aggregate_command(
    settings: Tuning,
    rows: int,
    target: TargetPlan,
    *,
    votes: str = "VOTES",
    words: Sequence[str] = (),
    prior: str = "PRIOR",
) -> str:
    """Return the `pate aggregate` line for settings, rows and a target.

    Args:
        settings: threshold, noise and weight of the prior.
        rows: how many queries are asked.
        target: ε, δ and the price of failing.
        votes: the file of votes.
        words: more options, such as `--teachers-per-record 2`.
        prior: the file of the prior's guesses.
    """
    keywords: dict[str, Any] = {}
    if settings.threshold is None:
        keywords["mechanism"] = settings.mechanism_name.value
    keywords |= {name: in_votes(value) for name, value in settings.parameters.items()}
    if settings.prior_weight:
        keywords |= {"prior": prior, "prior_weight": settings.prior_weight}
    keywords |= {"max_queries": rows, "delta": target.delta}
    keywords["target_epsilon"] = f"{target.epsilon:g}"
    keywords["refusal_epsilon"] = f"{target.refusal_epsilon:g}"
    return line_of(votes, words, keywords)
