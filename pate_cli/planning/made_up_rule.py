"""Settings and rows for a target, by public numbers alone: good over a range of ensembles.

How well the teachers agree is not known before the first vote, and no public rule may look. So the
rule takes what does best over the whole range of `ensembles`. For each of them it asks how many
answers a setting is expected to give, by the chance that they pass, as a share of the most that any
of the settings that were looked at would give it. It maximises the mean of those shares, under
three conditions: one run in twenty is refused at most, 88% of all answers equal the plurality, and
65% of every single ensemble.

It looks at a dozen settings and climbs from the best of them by single steps. The dozen was picked
greedily from 160 on a hundred shapes: 20 to 1,500 teachers, 2 to 40 classes, 40 to 5,000 queries, ε
from .5 to 5. The best of the 160 comes to .91 on average, and .64 at worst, of what is best for
each ensemble alone; the dozen to .86, before the climb. How it fares on ensembles that it was not
picked on, and on real votes, is in docs/evidence.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Final

import numpy as np

from pate_cli.core.arrays import Floats, Ints, each_once
from pate_cli.core.dataclass import dataclass
from pate_cli.core.words import Bound
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.chances import MadeUpCosts, passing
from pate_cli.planning.ensembles import Ensembles
from pate_cli.planning.made_up_forecast import Forecast
from pate_cli.planning.pairs import PairTable
from pate_cli.planning.sample import VoteSample
from pate_cli.planning.setting import Setting, three_digits

# (T, σ1, σ2) as shares of the teachers, in the order in which they were picked.
_CANDIDATES: Final = (
    (0.4, 0.25, 0.15),
    (0.8, 0.4, 0.2),
    (1.2, 0.6, 0.27),
    (0.4, 0.15, 0.15),
    (0.6, 0.4, 0.2),
    (0.4, 0.9, 0.27),
    (1.0, 0.6, 0.2),
    (0.4, 0.4, 0.2),
    (1.2, 0.6, 0.36),
    (0.8, 0.6, 0.27),
    (0.6, 0.6, 0.2),
    (1.0, 0.9, 0.15),
)
# σ2 alone, without a test.
_UNTESTED: Final = (0.05, 0.08, 0.11, 0.15, 0.2, 0.27, 0.36)
_STEPS: Final = {"threshold": 1.15, "sigma1": 1.3, "sigma2": 1.15}
_MOST_STEPS = 3
_REFUSED, _AGREE, _EACH_AGREES = 0.05, 0.88, 0.65
# How much of a share of the answers a share above or below those limits costs.
_PENALTY = 5.0
_LEAST_CHANCE = 0.5
_CLOSE, _SPAN = 10, 1.6
MOST_ROWS: Final = 1_000_000


@dataclass(frozen=True)
class Chosen:
    """What the rule settles on. Public.

    Attributes:
        setting: T, σ1 and σ2.
        queries: the rows to ask.
        forecast: what made-up teachers would give.
    """

    setting: Setting
    queries: int
    forecast: Forecast


@dataclass(frozen=True, eq=False)
class Looked:
    """A run over several numbers of rows, for every made-up ensemble.

    Attributes:
        rows: how many are asked, [rows].
        chances: that the labels pass, [ensembles, rows].
        answered: expected share of the rows that are answered, [ensembles].
        agreeing: and with the plurality, [ensembles].
    """

    rows: Ints
    chances: Floats
    answered: Floats
    agreeing: Floats

    @property
    def expected(self) -> Floats:
        """Expected answers, [ensembles, rows]."""
        return np.outer(self.answered, self.rows) * self.chances

    @property
    def agreement(self) -> Floats:
        """Share of the answers that equal the plurality, [ensembles]."""
        return self.agreeing / np.maximum(self.answered, 1e-300)

    def most(self) -> Floats:
        """The most answers of each ensemble by itself, if enough of them agree, [ensembles]."""
        return np.where(self.agreement >= _AGREE, self.expected.max(axis=1), 0.0)

    def merits(self, best_each: Floats) -> Floats:
        """How well each number of rows serves, [rows]."""
        # A tiny chance at very many rows is no answer.
        expected = np.where(self.chances >= _LEAST_CHANCE, self.expected, 0.0)
        shares = np.minimum(expected / np.maximum(best_each, 1e-9)[:, None], 1.0)
        agree = self.agreeing.sum() / max(self.answered.sum(), 1e-300)
        missed = np.maximum(1.0 - self.chances.mean(axis=0) - _REFUSED, 0.0)
        missed = missed + max(_AGREE - agree, 0.0)
        missed = missed + max(_EACH_AGREES - float(self.agreement.min()), 0.0)
        return np.asarray(shares.mean(axis=0) - _PENALTY * missed)

    def best_place(self) -> int:
        """Which number of rows serves best, with nothing else to choose."""
        return int(np.argmax(self.merits(self.expected.max(axis=1))))

    def forecast(self, ensembles: Ensembles, place: int) -> Forecast:
        """That of one number of rows."""
        return Forecast(
            ensembles.levels,
            ensembles.kinds,
            self.answered * int(self.rows[place]),
            self.agreement,
            self.chances[:, place],
        )


@dataclass(frozen=True, eq=False)
class _Lookout:
    """Looks at settings for one target, and keeps what they share."""

    ensembles: Ensembles
    plan: TargetPlan
    bound: Bound
    tables: dict[float, PairTable] = field(default_factory=dict)

    def look(
        self, settings: Sequence[Setting], rows: Ints, ceiling: Floats | None = None
    ) -> dict[Setting, Looked]:
        """What settings give at several numbers of rows; a ceiling, if one is known, is theirs."""
        if not settings:
            return {}
        costs = MadeUpCosts.by_pairs(
            self.ensembles, settings, self.plan, bound=self.bound, known=self.tables
        )
        if ceiling is not None:
            costs = [replace(each, ceiling=ceiling) for each in costs]
        chances = passing(costs, self.plan, rows)
        return {
            setting: looked(self.ensembles, setting, each, rows)
            for setting, each in zip(settings, chances, strict=True)
        }


def ceiling_of(mechanism: ScoredMechanism, plan: TargetPlan) -> Floats:
    """What a row costs whatever its votes at the orders that decide, [orders], nats.

    At one of them, and in proportion at the others: near enough for a choice, and quick.
    """
    orders = plan.decisive_orders
    middle = orders[orders.size // 2 : orders.size // 2 + 1]
    return np.asarray(mechanism.worst_rdp(queries=1, answers=1, orders=middle) / middle * orders)


def looked(ensembles: Ensembles, setting: Setting, chances: Floats, rows: Ints) -> Looked:
    """What a setting with such chances gives."""
    sample = ensembles.sample
    answered, agreeing = (
        ensembles.by_ensemble(values).mean(axis=1)
        for values in (sample.answer_chance(setting), sample.agreeing_chance(setting))
    )
    return Looked(rows, chances, answered, agreeing)


def choose(
    ensembles: Ensembles,
    plan: TargetPlan,
    *,
    bound: Bound,
    available: int = MOST_ROWS,
    asked: int | None = None,
    given: Mapping[str, float] | None = None,
    tested: bool = True,
    start: Setting | None = None,
) -> Chosen:
    """The settings, and the rows to ask.

    Args:
        ensembles: the made-up queries, of the run's shape.
        plan: the target.
        bound: how the run will bound what votes cost: conditional or two-tail.
        available: how many rows there are.
        asked: so many of them, if that is settled.
        given: threshold, sigma1 or sigma2 (votes), as far as they are settled.
        tested: whether queries are tested first; else all are answered.
        start: settings to look at as well, where good ones are known; it climbs nowhere then.
    """
    given = dict(given or {})
    lookout = _Lookout(ensembles, plan, bound)
    rows = spread(1, available, _coarse(available)) if asked is None else np.array([asked])
    shares = _CANDIDATES if tested else [(None, None, sigma2) for sigma2 in _UNTESTED]
    settings = dict.fromkeys(_settled(each, ensembles.sample, given) for each in shares)
    if start is not None:
        settings |= dict.fromkeys([start, *_near(start, given)])
    seen = lookout.look(list(settings), rows)
    best_each = np.max([found.most() for found in seen.values()], axis=0)
    if not best_each.any():
        best_each = np.max([found.expected.max(axis=1) for found in seen.values()], axis=0)
    here = _best(seen, best_each)
    for _ in range(_MOST_STEPS if start is None else 0):
        close = rows if asked is not None else _around(_rows_of(seen[here], best_each), available)
        near = [setting for setting in _near(here, given) if setting not in seen]
        tried = lookout.look([here, *near], close)
        seen.update(tried)
        before, here = here, _best(tried, best_each)
        if here == before:
            break
    if start is not None:
        return _chosen(ensembles, here, seen[here], best_each)
    ceiling = ceiling_of(ensembles.sample.mechanism(here), plan)
    if asked is None:
        rows = _around(_rows_of(seen[here], best_each), available)
    return _chosen(ensembles, here, lookout.look([here], rows, ceiling)[here], best_each)


def _chosen(ensembles: Ensembles, setting: Setting, found: Looked, best_each: Floats) -> Chosen:
    """A setting with the rows at which it serves best."""
    place = int(np.argmax(found.merits(best_each)))
    return Chosen(setting, int(found.rows[place]), found.forecast(ensembles, place))


def _best(found: Mapping[Setting, Looked], best_each: Floats) -> Setting:
    """The setting that serves best."""
    return max(found, key=lambda setting: float(found[setting].merits(best_each).max()))


def _rows_of(found: Looked, best_each: Floats) -> int:
    """The number of rows at which it does."""
    return int(found.rows[np.argmax(found.merits(best_each))])


def _settled(
    shares: tuple[float | None, float | None, float],
    sample: VoteSample,
    given: Mapping[str, float],
) -> Setting:
    """A candidate in votes; what is given stands in for its own."""
    names = ("threshold", "sigma1", "sigma2")
    values = (
        None if share is None else given.get(name, three_digits(share * sample.most_votes))
        for name, share in zip(names, shares, strict=True)
    )
    threshold, sigma1, sigma2 = values
    if sigma2 is None:
        raise TypeError("every setting has a sigma2")
    return Setting(threshold, sigma1, sigma2, sample.prior_weight)


def _near(setting: Setting, given: Mapping[str, float]) -> list[Setting]:
    """One step away in any of the numbers that are not given."""
    return [
        setting.with_value(name, three_digits(moved))
        for name, value in setting.parameters.items()
        if name not in given
        for moved in (value * _STEPS[name], value / _STEPS[name])
    ]


def _coarse(available: int) -> int:
    """How many numbers of rows are looked at first: each is `_SPAN` times the one before."""
    return 2 + math.ceil(math.log(available) / math.log(_SPAN))


def _around(rows: int, available: int) -> Ints:
    return spread(max(int(rows / _SPAN), 1), min(math.ceil(rows * _SPAN), available), _CLOSE)


def spread(low: int, high: int, number: int) -> Ints:
    """So many whole numbers at most from one to another, on a geometric scale."""
    return each_once(np.geomspace(low, high, number).round().astype(np.int64))
