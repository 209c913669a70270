"""The `pate aggregate` line that runs settings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.tuning import Tuning


def keywords_of(settings: Tuning, rows: int, target: TargetPlan) -> dict[str, Any]:
    """Return the keywords of `aggregate` that run settings over so many queries at a target.

    Amounts below one vote are texts, because `aggregate` takes such numbers for shares.
    """
    found: dict[str, Any] = {"mechanism": settings.mechanism_name}
    for name, value in settings.parameters.items():
        found[name] = value if value >= 1.0 else f"{value:g}votes"
    if settings.prior_weight:
        found["prior_weight"] = settings.prior_weight
    return found | {
        "max_queries": rows,
        "delta": target.delta,
        "target_epsilon": target.epsilon,
        "refusal_epsilon": target.refusal_epsilon,
    }


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
