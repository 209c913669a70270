"""The `pate aggregate` line that runs settings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.tuning import Tuning


def in_votes(value: float) -> str:
    """An amount as the command line reads it back as votes: it takes amounts below 1 for shares."""
    return repr(value).removesuffix(".0") if value >= 1.0 else f"{value:g}votes"


def line_of(votes: str, words: Sequence[str], keywords: Mapping[str, Any]) -> str:
    """The `pate aggregate` line with these keywords of `aggregate`.

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
    """The `pate aggregate` line for settings, rows and a target.

    Args:
        settings: threshold, noise and weight of the prior.
        rows: how many queries are asked.
        target: ε, δ and the price of failing.
        votes: the file of votes.
        words: more options, such as `--teachers-per-record 2`.
        prior: the file of the prior's guesses.
    """
    line = ["pate", "aggregate", votes, *words]
    if settings.threshold is None:
        line += ["--mechanism", settings.mechanism_name.value]
    for name, value in settings.parameters.items():
        line += [f"--{name}", in_votes(value)]
    if settings.prior_weight:
        line += ["--prior", prior, "--prior-weight", str(settings.prior_weight)]
    line += ["--max-queries", str(rows), "--delta", repr(target.delta)]
    line += ["--target-epsilon", f"{target.epsilon:g}"]
    return shlex.join([*line, "--refusal-epsilon", f"{target.refusal_epsilon:g}"])
