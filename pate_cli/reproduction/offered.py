"""What `pate` offers for the rounds of Table 2: tested target, worst case, upper release."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.cost_table import Tally
from pate_cli.accounting.sensitivity import distances_for
from pate_cli.core.arrays import Floats
from pate_cli.core.words import Bound, ReleaseKind
from pate_cli.disclosure.cost import Cost, Figure, Rows
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.profile import VoteProfile, settled_bound, states_for
from pate_cli.disclosure.target import LIKELY, TargetPlan
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.planning.sanitized import choose_plan_for
from pate_cli.planning.target_on_votes import least_target
from pate_cli.reproduction.table import Step
from pate_cli.reproduction.vote_folder import Asked

# Orders of targets down to this share of the worst case are on one lattice.
_LEAST_SHARE = 0.1
MOST_OFFERED = 3
"""As many steps there are to it at most: a target by each bound, and the upper release."""


@dataclass(frozen=True)
class UpperRelease:
    """The noisy upper bound, by the public rule.

    Attributes:
        plan: λ, β, σ_SS, chosen without looking at the votes.
        before: ε of the labels at λ, before the draw is paid for.
        smooth: SS_β, nats.
        mean, sd: of the ε that is released, over the draw.
    """

    plan: ReleasePlan
    before: float
    smooth: float
    mean: float
    sd: float


@dataclass(frozen=True)
class Offered:
    """Three ways to an ε for the same labels.

    Attributes:
        targets: by bound, the smallest target that is `LIKELY` to pass, η = ε; nats. The
            conditional one is left out where a run would not take it by itself, and both where
            there are several rounds.
        worst: ε of the labels for all votes.
        upper: what is released instead.
    """

    targets: Mapping[Bound, float]
    worst: Figure
    upper: UpperRelease


def offered(
    rounds: Sequence[Asked],
    *,
    delta: float,
    quick: bool = False,
    step: Step = lambda _words: None,
) -> Offered:
    """Price rounds of Confident- or Interactive-GNMax, whose every row is asked, without a cap.

    The order of the release is fixed before the first vote, as adaptive rounds need, and the
    rounds are released as one sum. A target is tested before the first label, so one for all of
    several rounds cannot know what is asked after it.

    Args:
        rounds: the votes and parameters of each.
        delta: δ of every ε, in (0, 1).
        quick: leave out the conditional bound, which takes longer than all the rest.
        step: told of each step as it begins, at most `MOST_OFFERED`.
    """
    scored = [_scored(asked) for asked in rounds]
    sizes = [(mechanism, len(score)) for mechanism, score in scored]
    rows = tuple(Rows(mechanism, queries, queries) for mechanism, queries in sizes)
    worst = Cost(delta, rows).of_curves
    bounds = [] if len(rounds) > 1 or rounds[0].scores is not None else [Bound.TWO_TAIL]
    if bounds and not quick and _by_itself(scored[0][0], sizes[0][1], worst, delta=delta):
        bounds.append(Bound.CONDITIONAL)
    targets = _targets(rounds[0], scored[0][0], bounds, delta=delta, worst=worst, step=step)
    step("upper release")
    upper = _upper(choose_plan_for(ReleaseKind.UPPER, sizes, delta=delta), scored)
    return Offered(targets=targets, worst=worst, upper=upper)


def _scored(asked: Asked) -> tuple[ConfidentGNMax, Floats]:
    """A mechanism and the scores [queries, 2] of the rows it was asked."""
    counts = asked.votes.counts
    kind = ConfidentGNMax if asked.scores is None else InteractiveGNMax
    mechanism = kind(teachers=asked.votes.teachers, classes=counts.shape[1], **asked.parameters)
    if asked.scores is None:
        return mechanism, mechanism.score(counts)
    losing = mechanism.argmax.score(counts)[:, 0]
    return mechanism, np.column_stack([asked.scores, losing])


def _by_itself(mechanism: ConfidentGNMax, queries: int, worst: Figure, *, delta: float) -> bool:
    """Whether a run whose bound is left open has the conditional one."""
    orders = TargetPlan.of(worst.epsilon, delta=delta, refusal_epsilon=worst.epsilon).orders
    settled = settled_bound(Bound.AUTO, mechanism, rows=queries, orders=orders)
    return settled is Bound.CONDITIONAL


def _targets(
    asked: Asked,
    mechanism: ConfidentGNMax,
    bounds: Sequence[Bound],
    *,
    delta: float,
    worst: Figure,
    step: Step,
) -> dict[Bound, float]:
    """By bound; a search starts where the one before it ended."""
    counts, always = asked.votes.counts, round_up(worst.epsilon)
    found: dict[Bound, float] = {}
    near = always
    for bound in bounds:
        step(f"tested, {bound}")
        plan = TargetPlan.of(near, delta=delta, refusal_epsilon=near)
        highest = float(plan.at(_LEAST_SHARE * always).orders[-1])
        states = states_for(bound, mechanism, highest_order=highest)
        profile = VoteProfile(states, in_order=True)  # which keeps costs for the next guess
        profile.add(mechanism, counts)
        found[bound] = near = least_target(
            profile, mechanism, plan, LIKELY, rows=len(counts), always=always
        )
    return found


def _upper(plan: ReleasePlan, rounds: Sequence[tuple[ConfidentGNMax, Floats]]) -> UpperRelease:
    # A neighbour is a record that one teacher of every round may have seen.
    teachers = max(mechanism.teachers for mechanism, _ in rounds)
    distances = np.arange(distances_for(plan.beta, teachers=teachers))
    prices = []
    for mechanism, score in rounds:
        table = mechanism.cost_table(plan.order)
        prices.append(table.price(Tally.of(mechanism.cells(score, table.grid)), distances))
    total = functools.reduce(operator.add, prices)
    mean, sd = plan.moments(total)
    return UpperRelease(
        plan=plan,
        before=max(total.rdp + plan.overhead - plan.release_rdp, 0.0),
        smooth=total.smooth(plan.beta),
        mean=mean,
        sd=sd,
    )
