"""What tuning found, as a command line and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.conversion import round_up
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import UsageError
from pate_cli.core.words import CEILING, ReleaseKind
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.files.results import Result
from pate_cli.planning.printed import aggregate_command
from pate_cli.planning.sample import VoteSample
from pate_cli.tuning.goal import Goal
from pate_cli.tuning.price import Costed
from pate_cli.tuning.settings import Grid

# Chance that a normal deviate is at most two standard deviations above its mean, rounded down.
_ONE_SIDED = 0.977
_SHOWN = ("epsilon", "expected_answers", "agreement")


@dataclass(frozen=True)
class PriorTried:
    """A prior whose weight was searched, too.

    Attributes:
        name: what stands for it on a command line.
        guesses: for how many of the queries that were looked at it has one.
        weights: the B that were tried, in votes.
        without: the best without it; where nothing meets the goal so, what comes closest, at a
            coarse price unless a number of answers was wanted. None where nobody looked for it.
    """

    name: str
    guesses: int
    weights: tuple[int, ...]
    without: Costed | None = None


@dataclass(frozen=True, repr=False)
class Tuned(Result):
    """What a search found. SECRET if the votes are.

    Attributes:
        goal, grid: what was searched for, and where.
        winner: the best finalist; None without a goal, unless the grid has a single point.
        shares: how the winner's cost splits into selecting queries and answering them.
        pareto: settings that no other one beats in answers, agreement and ε at once, the winner
            among them, ascending in ε; all but it on the coarse lattice where a release is drawn.
        floor: the least ε that was found for as many answers as are wanted, or for one.
        complete: False after an interruption: the best so far.
        basis: in numbers, what was looked at; with several labels a query, its queries and those of
            settings are pairs, `rows_per_query` of which are one query of the command line.
        public: whether the votes are public, or there were none.
        votes, words: the file, or a placeholder, and options that describe it, for a command line.
        others: the best by other ways to an ε, where several were tried.
        prior: which weights of a prior were tried, and what it buys; None without one.
        teachers_per_record: k, as it was said.
    """

    goal: Goal
    grid: Grid
    winner: Costed | None
    shares: dict[str, float] | None
    pareto: tuple[Costed, ...]
    floor: float | None
    complete: bool
    basis: Mapping[str, Any] = field(default_factory=dict)
    public: bool = False
    votes: str = "VOTES"
    words: tuple[str, ...] = ()
    others: tuple[Costed, ...] = ()
    prior: PriorTried | None = None
    teachers_per_record: int = 1

    @property
    def releasable(self) -> bool:
        """Only without private votes."""
        return self.public

    @property
    def command(self) -> str | None:
        """The `pate aggregate` line that runs the winner; None without one."""
        winner = self.winner
        if winner is None:
            return None
        return aggregate_command(
            winner.setting,
            winner.plan,
            queries=self._whole(winner.queries),
            max_answers=None if winner.max_answers is None else self._whole(winner.max_answers),
            delta=self.goal.delta,
            votes=self.votes,
            words=self.words,
            target=winner.target,
            bound=self.goal.bound,
            prior="PRIOR" if self.prior is None else self.prior.name,
            epsilon=winner.data_independent,
        )

    def _whole(self, rows: int) -> int:
        """Rows as whole queries, at least one."""
        each: int = self.basis.get("rows_per_query", 1)
        return max(rows // each, 1)

    @property
    def settings(self) -> dict[str, Any]:
        """The winner as keywords of `aggregate`; UsageError without one."""
        winner = self.winner
        if winner is None:
            raise UsageError("without a goal there is no winner, whose settings could be passed on")
        found: dict[str, Any] = {
            "mechanism": winner.setting.name,
            **winner.setting.parameters,
            "max_queries": self._whole(winner.queries),
            "delta": self.goal.delta,
        }
        if self.teachers_per_record != 1:
            found["teachers_per_record"] = self.teachers_per_record
        if winner.max_answers is not None:
            found["max_answers"] = self._whole(winner.max_answers)
        if winner.setting.prior_weight:
            found["prior_weight"] = winner.setting.prior_weight
        if winner.target is not None:
            if winner.target.epsilon > CEILING:
                found["max_epsilon"] = winner.target.epsilon
            return found | {
                "target_epsilon": winner.target.epsilon,
                "refusal_epsilon": winner.target.refusal_epsilon,
                "bound": self.goal.bound,
            }
        if winner.plan is None:
            if CEILING < winner.data_independent < math.inf:
                found["max_epsilon"] = round_up(winner.data_independent)
            return found | {"release": ReleaseKind.NONE}
        return found | {"release": winner.plan.kind, **release_parameters(winner.plan)}

    def columns(self) -> dict[str, NDArray[Any]]:
        """The Pareto front, [points]."""
        rows = [self._described(outcome) for outcome in self.pareto]
        weight = () if self.prior is None else ("prior_weight",)
        names = ("threshold", "sigma1", "sigma2", *weight, "queries", *_SHOWN)
        return {
            name: np.array([np.nan if row[name] is None else row[name] for row in rows])
            for name in names
        }

    def headline(self) -> str:
        """The winner in a few words."""
        if self.winner is None:
            return f"{len(self.pareto)} settings that none beats"
        return (
            f"{self.winner.expected.answers:.1f} expected answers at epsilon "
            f"{self.winner.epsilon:.4f}"
        )

    def preview(self) -> list[tuple[object, ...]]:
        """How to run the winner."""
        return [] if self.command is None else [(self.command,)]

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain numbers, for JSON."""
        goal, grid, winner = self.goal, self.grid, self.winner
        return {
            "schema_version": 1,
            "releasable": self.releasable,
            "complete": self.complete,
            "analysis": "tight",
            "goal": {
                "target_epsilon": goal.target_epsilon,
                "answers": goal.answers,
                "objective": goal.objective.value,
                "min_agreement": goal.min_agreement,
                "release": goal.release.value,
                "bound": goal.bound.value,
                "delta": goal.delta,
            },
            "basis": dict(self.basis),
            "grid": {
                "points": grid.size,
                "thresholds": list(grid.thresholds),
                "sigmas1": list(grid.sigmas1),
                "sigmas2": list(grid.sigmas2),
                "untested": grid.untested,
            },
            "floor": self.floor,
            "winner": None
            if winner is None
            else self._described(winner) | {"cost_shares": self.shares},
            "command": self.command,
            "other_ways": [self._described(outcome) for outcome in self.others],
            "pareto": [self._described(outcome) for outcome in self.pareto],
        } | ({} if self.prior is None else {"prior": self._of_prior(self.prior)})

    def _described(self, outcome: Costed) -> dict[str, Any]:
        """An outcome in plain numbers, with the weight of the prior if there is one."""
        found = _described(outcome)
        if self.prior is not None:
            found["prior_weight"] = outcome.setting.prior_weight
        return found

    def _of_prior(self, tried: PriorTried) -> dict[str, Any]:
        without = tried.without
        return {
            "weights": list(tried.weights),
            "guesses": tried.guesses,
            "without": None
            if without is None
            else self._described(without)
            | {"exact": without.exact, "meets_goal": without.exact and without.meets(self.goal)},
        }


def _described(outcome: Costed) -> dict[str, Any]:
    """An outcome in plain numbers; ε's rounded up to the fourth decimal."""
    plan, expected = outcome.plan, outcome.expected
    result: dict[str, Any] = {
        "mechanism": outcome.setting.name.value,
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
    if outcome.target is not None:
        result["pass_probability"] = outcome.chance
        result["pass_probability_estimated"] = outcome.about
        result["refusal_epsilon"] = outcome.target.refusal_epsilon
        result["bound"] = outcome.bound.value
    if plan is not None:
        result |= release_parameters(plan) | {
            "epsilon_mean": outcome.mean,
            "epsilon_sd": outcome.sd,
        }
    if outcome.exact:
        result["data_independent_epsilon"] = round_up(outcome.data_independent)
        result["labels_data_independent_epsilon"] = round_up(outcome.labels)
    return result


def release_parameters(plan: ReleasePlan) -> dict[str, float]:
    """λ, β and σ_SS by the names of their flags."""
    return {"order": plan.order, "beta": plan.beta, "sigma_release": plan.sigma}


def cost_shares(outcome: Costed, sample: VoteSample) -> dict[str, float]:
    """How the cost of the labels splits into selecting queries and answering them.

    Data-dependent costs at the order of the release, or the middle one of a test; with neither, the
    shares of μ² in the Gaussian-DP bound that holds for all votes.
    """
    mechanism = sample.mechanism(outcome.setting)
    order = None if outcome.plan is None else outcome.plan.order
    if outcome.target is not None:
        order = float(np.median(outcome.target.orders))
    if order is None:
        cap = outcome.queries if outcome.max_answers is None else outcome.max_answers
        selecting = mechanism.gaussian_mu(queries=outcome.queries, answers=0) ** 2
        answering = mechanism.gaussian_mu(queries=0, answers=cap) ** 2
    else:
        score = sample.score(outcome.setting)[: outcome.queries]
        steps = mechanism.steps(score, np.array([order]))
        answering = float(steps.pop("argmax").sum())
        selecting = sum(float(costs.sum()) for costs in steps.values())
    total = max(selecting + answering, 1e-300)
    return {"selecting": selecting / total, "answering": answering / total}
