"""What `pate tune` found, as JSON."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from pate_cli.cli.tune_source import TuneSource
from pate_cli.errors import UsageError
from pate_cli.words import ReleaseKind

if TYPE_CHECKING:
    from pate_cli.tuning import Electorate, Goal, Grid, Tuned

__all__ = ["rule_result", "tuned_result"]


def tuned_result(
    tuned: Tuned, source: TuneSource, electorate: Electorate, grid: Grid, goal: Goal
) -> dict[str, Any]:
    """The winner with its command line, the Pareto front, and what they rest on."""
    from pate_cli.tuning.command import aggregate_command, described, shares

    winner, command = None, None
    if tuned.winner is not None:
        winner = described(tuned.winner) | {"cost_shares": shares(tuned.winner, electorate)}
        command = aggregate_command(
            tuned.winner, votes=source.votes or "VOTES", delta=goal.delta, extra=source.words()
        )
    return {
        "schema_version": 1,
        "releasable": source.releasable,
        "complete": tuned.complete,
        "analysis": "tight",
        "goal": {
            "target_epsilon": goal.target_epsilon,
            "answers": goal.answers,
            "objective": goal.objective.value,
            "min_agreement": goal.min_agreement,
            "release": goal.release.value,
            "delta": goal.delta,
        },
        "basis": source.basis,
        "grid": {
            "points": grid.size,
            "thresholds": list(grid.thresholds),
            "sigmas1": list(grid.sigmas1),
            "sigmas2": list(grid.sigmas2),
        },
        "floor": tuned.floor,
        "winner": winner,
        "command": command,
        "pareto": [described(one) for one in tuned.pareto],
    }


def rule_result(
    source: TuneSource,
    axes: dict[str, tuple[float, ...] | None],
    kind: ReleaseKind,
    *,
    target_epsilon: float | None,
    delta: float,
) -> dict[str, Any]:
    """Release parameters by both rules.

    Raises:
        UsageError: no target, or several values for one parameter.
    """
    from pate_cli.mechanisms import ConfidentGNMax
    from pate_cli.tuning import Setting
    from pate_cli.tuning.rule_of_thumb import rule_of_thumb

    if target_epsilon is None:
        raise UsageError("--rule-of-thumb needs --target-epsilon")
    teachers, classes, queries = source.shape
    single = {name: values[0] for name, values in axes.items() if values and len(values) == 1}
    if len(single) < sum(values is not None for values in axes.values()):
        raise UsageError("--rule-of-thumb takes one --threshold, --sigma1 and --sigma2 at most")
    # In proportion to the teachers, as pate aggregate does.
    setting = Setting(
        threshold=single.get("thresholds", 0.8 * teachers),
        sigma1=single.get("sigmas1", 0.6 * teachers),
        sigma2=single.get("sigmas2", 0.16 * teachers),
    )
    mechanism: ConfidentGNMax = setting.mechanism(
        teachers=teachers, classes=classes, teachers_per_record=source.teachers_per_record
    )
    by_thumb, public = rule_of_thumb(
        kind, mechanism=mechanism, queries=queries, target_epsilon=target_epsilon, delta=delta
    )
    words = ["pate", "aggregate", "VOTES", *source.words(), "--threshold", repr(setting.threshold)]
    words += ["--sigma1", repr(setting.sigma1), "--sigma2", repr(setting.sigma2)]
    words += ["--max-queries", str(queries), "--delta", repr(delta), "--release", kind.value]
    words += ["--order", repr(by_thumb.order), "--beta", repr(by_thumb.beta)]
    words += ["--sigma-release", repr(by_thumb.sigma)]
    return {
        "schema_version": 1,
        "releasable": True,
        "rule_of_thumb": {
            "order": by_thumb.order,
            "beta": by_thumb.beta,
            "sigma_release": by_thumb.sigma,
        },
        "public_rule": {
            "order": public.order,
            "beta": public.beta,
            "sigma_release": public.sigma,
        },
        "release": kind.value,
        "delta": delta,
        "target_epsilon": target_epsilon,
        "mechanism": mechanism.parameters(),
        "queries": queries,
        "command": shlex.join(words),
    }
