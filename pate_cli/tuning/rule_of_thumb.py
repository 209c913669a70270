"""Release parameters by rule alone: no votes, no search.

The ICLR 2018 paper suggests log(1/δ) ≈ (λ − 1)ε/2 for a target ε, and 0.4/λ for β. The latter
rests on a theorem that is false there (accounting.gnss); with the exact divergence about 0.25/λ
serves. What `pate aggregate` does when no parameters are given is another rule of this kind, and
is printed beside it.
"""

from __future__ import annotations

import math

from pate_cli.checks import check_delta, check_positive
from pate_cli.mechanisms import ConfidentGNMax
from pate_cli.release.plan import ReleasePlan
from pate_cli.release.rule import choose_plan
from pate_cli.words import ReleaseKind

__all__ = ["rule_of_thumb"]

_BETA_ORDER = 0.25


def rule_of_thumb(
    kind: ReleaseKind,
    *,
    mechanism: ConfidentGNMax,
    queries: int,
    target_epsilon: float,
    delta: float,
) -> tuple[ReleasePlan, ReleasePlan]:
    """(λ and β by the paper's rule with σ_SS to match, all three by the public rule).

    Args:
        kind: `upper` or `unbiased`.
        mechanism: the aggregator.
        queries: k1.
        target_epsilon: ε > 0 that is hoped for, nats; nothing here makes a run meet it.
        delta: δ in (0, 1).
    """
    wanted = check_positive("target_epsilon", target_epsilon)
    order = float(f"{1.0 + 2.0 * math.log(1.0 / check_delta(delta)) / wanted:.3g}")
    beta = float(f"{_BETA_ORDER / order:.3g}")
    by_thumb = choose_plan(
        kind, mechanism=mechanism, queries=queries, delta=delta, order=order, beta=beta
    )
    return by_thumb, choose_plan(kind, mechanism=mechanism, queries=queries, delta=delta)
