"""The public rule for λ, β and σ_SS: what would be best for a made-up ensemble of the same shape.

The release parameters must not depend on the votes at hand, and no fixed numbers suit every
ensemble, number of queries and noise level. So they are chosen by minimising what would be
published for a *reference ensemble*: histograms drawn from a fixed recipe with a fixed seed, with
the file's numbers of teachers and classes and the run's own mechanism, scaled to its number of
queries. Everything that enters is public and fixed before the first vote is read, so the result
may be printed; anyone can recompute it.

The recipe (mean agreement 0.75, spread 0.4) was picked on 48 synthetic ensembles: 50 to 3,000
teachers, 2 to 50 classes, 100 to 9,000 queries, mean agreement 0.6 to 0.97, spread 0.1 to 0.6,
and thresholds and noise levels around the defaults. Against the parameters that are best for each
of them, which nobody can know without looking at the votes, the rule's published ε (mean plus two
standard deviations, where it is below 10) was 4% larger on average and 24% at worst.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pate_cli.accounting.cost_table import Tally
from pate_cli.accounting.gnss import largest_order
from pate_cli.accounting.score_grid import QUICK
from pate_cli.accounting.sensitivity import sparse_distances
from pate_cli.core.arrays import Floats, Histograms, winners
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.best import BestRelease, best_release, candidate_betas
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.mechanisms.synthetic import SyntheticEnsemble
from pate_cli.votes.checks import with_votes

_HISTOGRAMS = 300
_AGREEMENT, _SPREAD = 0.75, 0.4
_PRIOR_AGREES = 0.85
REFERENCE_SEED = 20180224
# λ is searched on a geometric scale of λ − 1.
_RATIO = 1.3
_LEAST_ORDER, _MOST_ORDER = 1.1, 400.0
_DISTANCES = 48


def reference_ensemble(*, teachers: int, classes: int, queries: int) -> SyntheticEnsemble:
    """The public recipe that stands in for votes nobody may look at."""
    return SyntheticEnsemble(
        teachers=teachers,
        classes=classes,
        queries=queries,
        agreement=_AGREEMENT,
        spread=_SPREAD,
    )


@dataclass(frozen=True)
class _ReferenceRounds:
    """The reference ensemble under every round's mechanism, scaled to its number of queries."""

    rounds: tuple[tuple[ScoredMechanism, Floats, int], ...]
    delta: float

    @property
    def teachers(self) -> int:
        return max(mechanism.teachers for mechanism, _, _ in self.rounds)

    def best_at(
        self, order: float, *, beta: float | None, sigma: float | None
    ) -> BestRelease | None:
        """The best β and σ at an order."""
        betas = candidate_betas(order, beta)
        if betas.size == 0:
            return None
        # A choice needs no smooth curve, so a few distances on a geometric scale will do.
        distances = sparse_distances(float(betas.min()), teachers=self.teachers, most=_DISTANCES)
        prices = []
        for mechanism, score, queries in self.rounds:
            table = mechanism.cost_table(order, QUICK)
            tally = Tally.of(mechanism.cells(score, table.grid))
            prices.append(table.price(tally, distances).scaled(queries / tally.queries))
        total = functools.reduce(operator.add, prices)
        return best_release(total, order=order, delta=self.delta, beta=beta, sigma=sigma)


def choose_plan(
    kind: ReleaseKind,
    *,
    mechanism: ScoredMechanism,
    queries: int,
    delta: float,
    order: float | None = None,
    beta: float | None = None,
    sigma: float | None = None,
) -> ReleasePlan:
    """`choose_plan_for` a single round of k1 queries."""
    return choose_plan_for(
        kind, [(mechanism, queries)], delta=delta, order=order, beta=beta, sigma=sigma
    )


def choose_plan_for(
    kind: ReleaseKind,
    rounds: Sequence[tuple[ScoredMechanism, int]],
    *,
    delta: float,
    order: float | None = None,
    beta: float | None = None,
    sigma: float | None = None,
) -> ReleasePlan:
    """Release parameters by the public rule; those that are given stay as they are.

    Args:
        kind: what is to be published.
        rounds: each round's aggregator with its public parameters, and its k1, the rows fixed in
            advance.
        delta: δ in (0, 1).
        order, beta, sigma: fix λ, β or σ_SS instead of choosing it.

    Raises:
        ParameterError: a given number out of range, or an inadmissible pair of λ and β.
    """
    if kind is ReleaseKind.NONE:
        # Nothing is drawn now, but a ledger kept for later needs an order and distances.
        later = choose_plan_for(
            ReleaseKind.UPPER, rounds, delta=delta, order=order, beta=beta, sigma=sigma
        )
        return replace(later, kind=kind)
    if order is not None and beta is not None and sigma is not None:
        return ReleasePlan(kind=kind, delta=delta, order=order, beta=beta, sigma=sigma)
    check_given(delta=delta, order=order, beta=beta, sigma=sigma)
    reference = _ReferenceRounds(
        tuple((mechanism, _reference_score(mechanism), k1) for mechanism, k1 in rounds),
        delta,
    )
    if order is None:
        # ε² is about 2 log(1/δ)·μ² for μ-GDP, and the best order about √(2 log(1/δ))/μ.
        mu_squared = sum(
            mechanism.gaussian_mu(queries=k1, answers=k1) ** 2 for mechanism, k1 in rounds
        )
        highest = _MOST_ORDER
        if beta is not None:
            highest = min(highest, 1.0 + 0.999 * (largest_order(beta) - 1.0))
        found = _descend(
            lambda at: reference.best_at(at, beta=beta, sigma=sigma),
            start=1.0 + math.sqrt(2.0 * math.log(1.0 / delta) / mu_squared),
            highest=highest,
        )
        # A round order, near enough to the optimum; β and σ are chosen again for it.
        order = _round_order(found)
        if not 1.0 < order <= highest:
            order = found
    best = reference.best_at(order, beta=beta, sigma=sigma)
    if best is None:
        raise ParameterError(f"no release at order {order:g} has a finite cost; lower `beta`")
    return ReleasePlan(
        kind=kind,
        delta=delta,
        order=order,
        beta=_significant(best.beta) if beta is None else beta,
        sigma=_significant(best.sigma) if sigma is None else sigma,
    )


def reference_histograms(mechanism: ScoredMechanism) -> tuple[Histograms, ScoredMechanism]:
    """Histograms of the reference ensemble, and the mechanism bound to them.

    A prior agrees with its plurality on 17 queries of 20, and elsewhere with nobody in particular.
    """
    ensemble = reference_ensemble(
        teachers=mechanism.teachers, classes=mechanism.classes, queries=_HISTOGRAMS
    )
    counts, _ = ensemble.draw(REFERENCE_SEED)
    if mechanism.prior_weight:
        random = np.random.default_rng(REFERENCE_SEED)
        right = random.random(len(counts)) < _PRIOR_AGREES
        guesses = random.integers(mechanism.classes, size=len(counts))
        guesses = np.where(right, winners(counts), guesses)
        counts = with_votes(counts, guesses, mechanism.prior_weight)
    return counts, mechanism.for_reference(counts, REFERENCE_SEED)


def _reference_score(mechanism: ScoredMechanism) -> Floats:
    counts, bound = reference_histograms(mechanism)
    return bound.score(counts)


def check_given(
    *, delta: float, order: float | None, beta: float | None, sigma: float | None
) -> None:
    """Refuse what is out of range before any work: missing values by harmless stand-ins."""
    at = 1.0001 if order is None else order
    smooth = 1e-9 / max(at, 1.0) if beta is None else beta  # no order is 0: refused below
    ReleasePlan(
        kind=ReleaseKind.UPPER,
        delta=delta,
        order=at,
        beta=smooth,
        sigma=1.0 if sigma is None else sigma,
    )


def _descend(
    evaluate: Callable[[float], BestRelease | None], *, start: float, highest: float
) -> float:
    """Walk on a geometric scale of λ − 1 while the published ε falls; the order it ends at."""

    def at(step: int) -> float:
        return min(max(1.0 + (start - 1.0) * _RATIO**step, _LEAST_ORDER), highest)

    def value(step: int) -> float:
        found = evaluate(at(step))
        return math.inf if found is None else found.value

    here, best = 0, value(0)
    above = value(1)
    step, best = (1, above) if above < best else (-1, best)
    here = max(step, 0)
    while at(here + step) != at(here):
        following = value(here + step)
        if following >= best:
            break
        here, best = here + step, following
    return at(here)


def _round_order(order: float) -> float:
    """To steps of about 2%, with at least a quarter above 4."""
    if order < 4.0:
        return round(order, 2)
    return round(order * 4.0) / 4.0 if order < 40.0 else float(round(order))


def _significant(value: float) -> float:
    """Three significant digits: enough, and pleasant in a report."""
    return float(f"{value:.3g}")
