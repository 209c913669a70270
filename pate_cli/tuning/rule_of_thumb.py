"""Release parameters by rule, without votes and without a search; and what they would cost."""

from __future__ import annotations

import math
import shlex
from typing import Any

from pate_cli.accounting.conversion import round_up
from pate_cli.core.checks import check_delta, check_scale
from pate_cli.core.dataclass import dataclass
from pate_cli.core.words import ReleaseKind
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.planning.printed import aggregate_command, number
from pate_cli.planning.sample import reference_sample
from pate_cli.planning.sanitized import choose_plan
from pate_cli.planning.setting import Setting
from pate_cli.tuning.price import Costed
from pate_cli.tuning.result import release_parameters
from pate_cli.tuning.sanitized import priced_release

_BETA_ORDER = 0.25


@dataclass(frozen=True)
class RuleOfThumb:
    """Release parameters by rule alone; public.

    Attributes:
        mechanism: the aggregator.
        target_epsilon: ε that is hoped for, nats; nothing here makes a run meet it.
        delta: δ.
        by_thumb: λ and β by the paper's rule, σ_SS to match, priced on made-up votes.
        public: all three by the rule of `pate aggregate`, priced alike.
    """

    mechanism: ConfidentGNMax
    target_epsilon: float
    delta: float
    by_thumb: Costed
    public: Costed

    @property
    def meets_target(self) -> bool:
        """Whether the parameters by thumb would meet the target on the made-up votes."""
        return self.by_thumb.epsilon <= self.target_epsilon

    @property
    def command(self) -> str:
        """The `pate aggregate` line with the parameters by thumb."""
        return aggregate_command(
            self.by_thumb.setting,
            self.by_thumb.plan,
            queries=self.by_thumb.queries,
            max_answers=None,
            delta=self.delta,
            words=self._words,
        )

    @property
    def plan_command(self) -> str:
        """The `pate plan` line that finds what meets the target on any votes of this shape."""
        mechanism, queries = self.mechanism, self.by_thumb.queries
        line = ["pate", "plan", *self._words, "--teachers", str(mechanism.teachers)]
        line += ["--classes", str(mechanism.classes), "--queries", str(queries)]
        line += ["--delta", number(self.delta)]
        return shlex.join([*line, "--target-epsilon", number(self.target_epsilon)])

    @property
    def _words(self) -> tuple[str, ...]:
        k = self.mechanism.teachers_per_record
        return () if k == 1 else ("--teachers-per-record", str(k))

    def to_dict(self) -> dict[str, Any]:
        """Both rules in plain numbers, for JSON; every ε rounded up."""
        return {
            "schema_version": 1,
            "releasable": True,
            "rule_of_thumb": _priced(self.by_thumb),
            "public_rule": _priced(self.public),
            "release": self.by_thumb.release.value,
            "delta": self.delta,
            "target_epsilon": self.target_epsilon,
            "meets_target": self.meets_target,
            "mechanism": self.mechanism.parameters(),
            "queries": self.by_thumb.queries,
            "command": self.command,
            "plan_command": self.plan_command,
        }


def _priced(outcome: Costed) -> dict[str, float]:
    plan = outcome.plan
    if plan is None:
        raise TypeError("a rule is about a release")
    return {
        **release_parameters(plan),
        "made_up_epsilon": outcome.epsilon,
        "data_independent_epsilon": round_up(outcome.data_independent),
    }


def rule_of_thumb(
    *,
    mechanism: ConfidentGNMax,
    queries: int,
    target_epsilon: float,
    delta: float,
) -> RuleOfThumb:
    """Parameters of an upper release for a target ε without votes and without a search.

    The ICLR 2018 paper suggests log(1/δ) ≈ (λ − 1)ε/2 for a target ε, and 0.4/λ for β. The latter
    rests on a theorem that is false there (accounting.gnss); with the exact divergence about 0.25/λ
    serves. What `pate aggregate` does when no parameters are given is another rule of this kind,
    and stands beside it. Both are priced on the made-up votes that the public rule looks at.

    Args:
        mechanism: the aggregator.
        queries: k1.
        target_epsilon: ε > 0 that is hoped for, nats.
        delta: δ in (0, 1).
    """
    wanted = check_scale("target_epsilon", target_epsilon)
    order = float(f"{1.0 + 2.0 * math.log(1.0 / check_delta(delta)) / wanted:.3g}")
    beta = float(f"{_BETA_ORDER / order:.3g}")
    by_thumb = choose_plan(
        ReleaseKind.UPPER,
        mechanism=mechanism,
        queries=queries,
        delta=delta,
        order=order,
        beta=beta,
    )
    public = choose_plan(ReleaseKind.UPPER, mechanism=mechanism, queries=queries, delta=delta)
    sample, _ = reference_sample(
        teachers=mechanism.teachers,
        classes=mechanism.classes,
        queries=queries,
        teachers_per_record=mechanism.teachers_per_record,
    )
    setting = Setting(mechanism.threshold, mechanism.sigma1, mechanism.sigma2)
    return RuleOfThumb(
        mechanism=mechanism,
        target_epsilon=wanted,
        delta=delta,
        by_thumb=priced_release(sample, setting, by_thumb, queries=queries),
        public=priced_release(sample, setting, public, queries=queries),
    )
