"""A found setting as a command line and as JSON."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np

from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.threshold import threshold_rdp
from pate_cli.tuning.electorate import Electorate
from pate_cli.tuning.outcome import Outcome

__all__ = ["aggregate_command", "described", "shares"]

_ONE_SIDED = 0.977


def aggregate_command(
    outcome: Outcome, *, votes: str, delta: float, extra: list[str] | None = None
) -> str:
    """The `pate aggregate` line that runs a setting.

    Args:
        outcome: what was found.
        votes: the file, or a placeholder.
        delta: δ.
        extra: words that describe the file, such as a layout.
    """
    one = outcome.setting
    words = ["pate", "aggregate", votes, *(extra or [])]
    words += ["--threshold", repr(one.threshold), "--sigma1", repr(one.sigma1)]
    words += ["--sigma2", repr(one.sigma2), "--max-queries", str(outcome.queries)]
    if outcome.max_answers is not None:
        words += ["--max-answers", str(outcome.max_answers)]
    words += ["--delta", repr(delta), "--release", outcome.release.value]
    if outcome.plan is not None:
        plan = outcome.plan
        words += ["--order", repr(plan.order), "--beta", repr(plan.beta)]
        words += ["--sigma-release", repr(plan.sigma)]
    return shlex.join(words)


def described(outcome: Outcome) -> dict[str, Any]:
    """An outcome in plain numbers; ε's rounded up to the fourth decimal."""
    plan, expected = outcome.plan, outcome.expected
    result: dict[str, Any] = {
        "threshold": outcome.setting.threshold,
        "sigma1": outcome.setting.sigma1,
        "sigma2": outcome.setting.sigma2,
        "queries": outcome.queries,
        "max_answers": outcome.max_answers,
        "epsilon": outcome.epsilon,
        "epsilon_holds_with_probability": 1.0 if outcome.always else _ONE_SIDED,
        "expected_answers": expected.answers,
        "expected_agreeing": expected.agreeing,
        "agreement": expected.agreement,
        "accuracy_at_least": expected.accuracy,
        "release": outcome.release.value,
    }
    if plan is not None:
        result |= {
            "order": plan.order,
            "beta": plan.beta,
            "sigma_release": plan.sigma,
            "epsilon_mean": outcome.mean,
            "epsilon_sd": outcome.sd,
        }
    if outcome.exact:
        result["data_independent_epsilon"] = round_up(outcome.data_independent)
        result["labels_data_independent_epsilon"] = round_up(outcome.labels)
    return result


def shares(outcome: Outcome, electorate: Electorate) -> dict[str, float]:
    """How the cost of the labels splits into selecting queries and answering them.

    Data-dependent costs at the order of the release; without a release, the shares of μ² in the
    Gaussian-DP bound that holds whatever the votes.
    """
    mechanism = electorate.mechanism(outcome.setting)
    if outcome.plan is None:
        cap = outcome.queries if outcome.max_answers is None else outcome.max_answers
        select, answer = (
            mechanism.gaussian_mu(queries=outcome.queries, answers=0) ** 2,
            mechanism.gaussian_mu(queries=0, answers=cap) ** 2,
        )
        total = select + answer
    else:
        orders = np.array([outcome.plan.order])
        rows = slice(0, outcome.queries)
        votes = electorate.plurality[rows].astype(np.float64)
        score = np.column_stack([votes, electorate.scores(outcome.setting)[rows]])
        total = float(mechanism.rdp(score, orders).sum())
        select = float(
            threshold_rdp(
                votes,
                threshold=mechanism.threshold,
                sigma=mechanism.sigma1,
                orders=orders,
                reach=float(electorate.teachers_per_record),
            ).sum()
        )
        answer = max(total - select, 0.0)
    return {"selecting": select / max(total, 1e-300), "answering": answer / max(total, 1e-300)}
