"""What a target would meet among made-up teachers, for any mechanism with a Rényi cost. Public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pate_cli.core.arrays import Ints
from pate_cli.core.words import Bound
from pate_cli.disclosure.profile import settled_bound
from pate_cli.disclosure.target import TargetPlan, most_rows
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.planning.chances import MadeUpCosts
from pate_cli.planning.ensembles import Agreement, Ensembles
from pate_cli.planning.made_up_rule import (
    MOST_ROWS,
    Chosen,
    Looked,
    ceiling_of,
    choose,
    looked,
    spread,
)
from pate_cli.planning.setting import Setting

_ROWS = 40
# Of more teachers the lattice takes minutes, and pairs are near it.
_MOST_VOTES = 3000


def ensembles_for(mechanism: ScoredMechanism) -> Ensembles:
    """Made-up queries of a mechanism's shape."""
    return Ensembles.made_up(
        teachers=mechanism.teachers,
        classes=mechanism.classes,
        agreement=Agreement.unknown(mechanism.classes),
        teachers_per_record=mechanism.teachers_per_record,
        prior_weight=mechanism.prior_weight,
    )


def settings_for(
    ensembles: Ensembles,
    plan: TargetPlan,
    *,
    bound: Bound = Bound.AUTO,
    available: int = MOST_ROWS,
    asked: int | None = None,
    given: Mapping[str, float] | None = None,
    tested: bool = True,
    start: Setting | None = None,
) -> Chosen:
    """`rule.choose` under the bound that a run will use.

    Args:
        ensembles, plan, available, asked, given, tested: as there.
        start: as there, for a quick look: the price of pairs will do whatever the bound.
        bound: as a run is asked for; `auto` is settled by what comes out.
    """
    sample = ensembles.sample

    def chosen(by: Bound, among: int = available) -> Chosen:
        return choose(
            ensembles,
            plan,
            bound=by,
            available=among,
            asked=asked,
            given=given,
            tested=tested,
            start=start,
        )

    def sharp(setting: Setting, rows: int) -> bool:
        mechanism = sample.mechanism(setting)
        settled = settled_bound(bound, mechanism, rows=rows, orders=plan.orders)
        return settled is Bound.CONDITIONAL

    fewer = None
    if sharp(Setting(None, None, float(sample.most_votes)), 1):
        found = chosen(Bound.CONDITIONAL)
        if start is not None or sharp(found.setting, found.queries):
            return found
        # The sharper bound takes long for so many rows: it may give more answers of fewer.
        few = most_rows(lambda rows: sharp(found.setting, rows), available=found.queries)
        if asked is None and few:
            fewer = chosen(Bound.CONDITIONAL, few)
    found = chosen(Bound.TWO_TAIL)
    if start is not None:
        return found
    # Pairs are a rough guess here: the rows by the bound itself.
    rows = spread(1, available, _ROWS) if asked is None else np.array([asked])
    mechanism = sample.mechanism(found.setting)
    exact = _look(ensembles, mechanism, plan, Bound.TWO_TAIL, rows)
    place = exact.best_place()
    found = replace(
        found, queries=int(exact.rows[place]), forecast=exact.forecast(ensembles, place)
    )
    if fewer is None or fewer.forecast.mean <= found.forecast.mean:
        return found
    return fewer if sharp(fewer.setting, fewer.queries) else found


def _look(
    ensembles: Ensembles, mechanism: ScoredMechanism, plan: TargetPlan, bound: Bound, rows: Ints
) -> Looked:
    setting = setting_of(mechanism)
    bound = settled_bound(bound, mechanism, rows=int(rows.max()), orders=plan.orders)
    many = mechanism.most_votes > _MOST_VOTES
    if setting is not None and (many or bound is Bound.CONDITIONAL):
        (costs,) = MadeUpCosts.by_pairs(ensembles, [setting], plan, bound=bound)
        costs = replace(costs, ceiling=ceiling_of(mechanism, plan))
    else:
        costs = MadeUpCosts.by_lattice(ensembles, mechanism, plan)
    chances = costs.chances(plan, rows)
    if setting is not None:
        return looked(ensembles, setting, chances, rows)
    # How many rows others answer is not known here: all alike, and all equal to the plurality.
    ones = np.ones(ensembles.number)
    return Looked(rows, chances, ones, ones)


def setting_of(mechanism: ScoredMechanism) -> Setting | None:
    """T, σ1 and σ2 of a mechanism that has no more to it; None of others."""
    if type(mechanism) is ConfidentGNMax:
        return Setting(
            mechanism.threshold, mechanism.sigma1, mechanism.sigma2, mechanism.prior_weight
        )
    if type(mechanism) is GNMax:
        return Setting(None, None, mechanism.sigma2, mechanism.prior_weight)
    return None
