"""The `pate aggregate` line that runs settings."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from pate_cli.core.words import CEILING, Bound, ReleaseKind
from pate_cli.disclosure.figures import shown
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.setting import Setting


def aggregate_command(
    setting: Setting,
    plan: ReleasePlan | None,
    *,
    queries: int,
    max_answers: int | None,
    delta: float,
    votes: str = "VOTES",
    words: Sequence[str] = (),
    target: TargetPlan | None = None,
    bound: Bound = Bound.AUTO,
    prior: str = "PRIOR",
    epsilon: float = 0.0,
) -> str:
    """The `pate aggregate` line that runs a setting.

    Args:
        setting: T, σ1, σ2; or σ2 alone.
        plan: how ε is sanitized; None for no release.
        queries, max_answers: k1 and, if there is a cap, k2.
        delta: δ.
        votes, words: as in `Tuned`.
        target: a target that is tested in place of a release.
        bound: how its test bounds what votes cost.
        prior: a file of guesses, for a setting in which they vote.
        epsilon: for all votes; without a release a large one has to be asked for by name.
    """
    line = ["pate", "aggregate", votes, *words]
    if setting.threshold is None or setting.sigma1 is None:
        line += ["--mechanism", setting.name]
    else:
        line += ["--threshold", number(setting.threshold), "--sigma1", number(setting.sigma1)]
    line += ["--sigma2", number(setting.sigma2)]
    if setting.prior_weight:
        line += ["--prior", prior, "--prior-weight", str(setting.prior_weight)]
    line += ["--max-queries", str(queries)]
    if max_answers is not None:
        line += ["--max-answers", str(max_answers)]
    if target is not None:
        line += ["--delta", number(delta), "--target-epsilon", number(target.epsilon)]
        line += ["--refusal-epsilon", number(target.refusal_epsilon)]
        if target.epsilon > CEILING:
            line += ["--max-epsilon", number(target.epsilon)]
        return shlex.join(line if bound is Bound.AUTO else [*line, "--bound", bound.value])
    kind = ReleaseKind.NONE if plan is None else plan.kind
    line += ["--delta", number(delta), "--release", kind.value]
    if plan is not None:
        line += ["--order", number(plan.order), "--beta", number(plan.beta)]
        line += ["--sigma-release", number(plan.sigma)]
    elif CEILING < epsilon < math.inf:
        line += ["--max-epsilon", shown(epsilon)]
    return shlex.join(line)


def number(value: float) -> str:
    """The number, read back as the very same one: 12 rather than 12.0."""
    return repr(value).removesuffix(".0")
