"""What a file of labels says of its charge: what was stated before they were drawn, in texts.

Only Parquet has room for it. It ties a report to labels where its numbers alone cannot: of a target
that was tested nobody can say from outside which one it was.
"""

from __future__ import annotations

from typing import Final

from pate_cli.disclosure.report import Report

CHARGE: Final = ("delta", "target_epsilon", "refusal_epsilon", "bound")
"""The names, of which `delta` alone is said of labels without a target."""


def charge_texts(
    *,
    delta: float,
    target: float | None = None,
    refusal: float | None = None,
    bound: str | None = None,
) -> dict[str, str]:
    """δ, the target, and what a refusal costs under which bound, of a target that is tested."""
    numbers = zip(CHARGE, (delta, target, refusal), strict=False)
    found = {name: repr(float(number)) for name, number in numbers if number is not None}
    return found if bound is None else {**found, "bound": bound}


def charge_of(report: Report, *, delta: float) -> dict[str, str]:
    """What labels of this report say.

    Args:
        report: of one round.
        delta: its δ without what external parts add.
    """
    tested = report.tested
    if tested is None:
        return charge_texts(delta=delta, target=report.met_target)
    return charge_texts(
        delta=delta, target=tested.target, refusal=tested.refusal_epsilon, bound=tested.bound
    )
