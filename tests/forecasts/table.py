"""Forecasts against the truth: how often runs of made-up votes pass their release test.

The truth of a setting is the mean of p over files that are drawn from a law of votes, where p of a
file is the number that a run of it computes: the accountant's costs of its rows, added up, and the
probability of the coin. Averaging p tells the frequency of passing better than drawing the coin.
Votes are drawn teacher by teacher (`SyntheticEnsemble`), which shares no code with the model that
forecasts are made for.

Where one histogram takes long, files are drawn from a pool of a few hundred, for which the forecast
is made, too.

`make forecasts` prints a line for each setting and writes all of them as JSON lines.
"""

import json
import sys
import time
from dataclasses import asdict, dataclass

import numpy as np

from pate_cli.core.words import Bound
from pate_cli.disclosure.target import TargetPlan, coin_orders, settled_bound, states_for
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.planning.forecast import forecast, worst_case_epsilon
from pate_cli.planning.query_costs import exact_costs
from pate_cli.planning.search import Tuning, most_rows
from pate_cli.planning.synthetic import SyntheticEnsemble
from pate_cli.planning.vote_model import KINDS, VoteModel, made_up
from pate_cli.votes.checks import with_votes

ALIKE, MIXED, RARE = KINDS
PRIOR_ACCURACY, FILES, SEED = 0.85, 300, 987
"""Files that a truth is the mean of, and the seed they are drawn from."""


@dataclass(frozen=True)
class Setting:
    """One line of the table.

    Attributes:
        teachers, classes, epsilon, delta: of the run.
        noise: T, σ1 and σ2 as shares of the votes; σ2 alone for GNMax.
        level, kind: what the votes are like.
        aim: about the pass probability for which the number of rows is chosen.
        rows: how many rows are asked; None to choose it.
        bound: of the release test.
        prior: votes of a prior, as a share of the teachers.
        per_record: k.
        sizes: votes of each teacher, as a pattern that is repeated.
        pool: histograms that files are drawn from; None to draw each row afresh.
        cap: max_answers, as a share of the rows.
        mechanism: the word for it where it is not told by `noise`.
    """

    teachers: int
    classes: int
    epsilon: float
    noise: tuple[float, ...]
    level: float = 0.75
    kind: str = ALIKE
    delta: float = 1e-5
    aim: float = 0.7
    rows: int | None = None
    bound: str = "auto"
    prior: float = 0.0
    per_record: int = 1
    sizes: tuple[int, ...] = (1,)
    pool: int | None = None
    cap: float | None = None
    mechanism: str = ""

    @property
    def teacher_weights(self) -> tuple[int, ...]:
        """Votes of each teacher."""
        return (self.sizes * self.teachers)[: self.teachers]

    @property
    def votes(self) -> int:
        """Votes of all teachers on a query."""
        return sum(self.teacher_weights)

    @property
    def prior_weight(self) -> int:
        """Votes of the prior."""
        return round(self.prior * self.votes)

    @property
    def target(self) -> TargetPlan:
        """What a run promises."""
        return TargetPlan.of(self.epsilon, delta=self.delta, bound=Bound(self.bound))

    @property
    def shared(self) -> dict:
        """How many votes one record changes, and whether one teacher casts them."""
        together = self.per_record == 1 and max(self.sizes) > 1
        return {
            "teachers_per_record": max(self.per_record, *self.sizes),
            "votes_together": together,
        }

    def build(self):
        """The mechanism."""
        values = [float(f"{share * (self.votes + self.prior_weight):.3g}") for share in self.noise]
        shape = {"teachers": self.votes, "classes": self.classes, **self.shared}
        if self.mechanism == "lnmax":
            return LNMax(**shape, laplace_scale=values[0])
        if self.mechanism == "interactive":
            names = ("threshold", "sigma1", "sigma2")
            return InteractiveGNMax(**shape, **dict(zip(names, values, strict=True)))
        noise = (None, None, *values) if len(values) == 1 else values
        return Tuning(*noise, self.prior_weight).mechanism(**shape)

    def draw(self, rows: int, seed: int):
        """Histograms of independent rows, votes of the prior included."""
        random, total = np.random.default_rng([seed, 1]), 0
        for size in sorted(set(self.sizes)):
            number = self.teacher_weights.count(size)
            easy, truth = self._votes(number, self.level, rows, seed)
            if self.kind == RARE:
                hard, _ = self._votes(number, max(self.level - 0.35, 0.05), rows, seed)
                rare = np.random.default_rng([seed, 2]).random(rows) < 0.1
                easy = np.where(rare[:, None], hard, easy)
            total = total + size * easy
        if not self.prior_weight:
            return total
        shift = random.integers(1, self.classes, rows)
        wrong = random.random(rows) >= PRIOR_ACCURACY
        guesses = (truth + np.where(wrong, shift, 0)) % self.classes
        return with_votes(total, guesses, self.prior_weight)

    def _votes(self, teachers: int, level: float, rows: int, seed: int):
        """Histograms and truth; of the same queries for the same seed."""
        spread = 0.5 if self.kind == MIXED else 0.2
        return SyntheticEnsemble(teachers, self.classes, rows, level, spread).draw(seed)

    def model(self, rows: int = 3000) -> VoteModel:
        """What the forecast is made for: the law itself, or the pool."""
        if self.pool is not None:
            pool, alike = self.draw(self.pool, SEED - 1), np.full((1, self.pool), 1.0 / self.pool)
            shared = {**self.shared, "prior_weight": self.prior_weight}
            return VoteModel(pool, self.votes, alike, **shared)
        return made_up(
            teachers=self.votes,
            classes=self.classes,
            levels=(self.level,),
            kinds=(self.kind,),
            rows=rows,
            teacher_weights=() if self.sizes == (1,) else self.teacher_weights,
            prior_accuracy=PRIOR_ACCURACY if self.prior else None,
            **self.shared,
        ).with_prior_weight(self.prior_weight)

    def cap_on(self, rows: int) -> int:
        """After how many answers a run of so many rows stops."""
        return rows if self.cap is None else max(round(self.cap * rows), 1)


def asked_rows(setting: Setting) -> int:
    """How many rows the run asks, more than could be asked without a test."""
    if setting.rows is not None:
        return setting.rows
    mechanism, target = setting.build(), setting.target

    def untested(rows: int) -> bool:
        return worst_case_epsilon(mechanism, rows=rows, delta=target.delta) <= target.epsilon

    least = most_rows(untested, available=12_000) + 1
    costs = exact_costs(setting.model(), mechanism, target, rows=least)
    rows = np.unique(np.geomspace(least, 2 * least + 12_000, 150).round().astype(np.int64))
    chances = costs.pass_probability(target, rows)[0]
    return int(rows[np.argmin(np.abs(chances - setting.aim))])


def truth(setting: Setting, rows: int, *, files: int = FILES) -> tuple[float, float]:
    """Mean pass probability of drawn files, and its standard error.

    The probability of each file is what a run of it computes.
    """
    mechanism, target = setting.build(), setting.target
    bound = settled_bound(target.bound, mechanism, rows=rows, orders=target.orders)
    states = states_for(bound, mechanism, highest_order=float(target.orders[-1]))
    orders = coin_orders(bound, mechanism, target.orders)
    if setting.pool is None:
        counts, drawn = setting.draw(files * rows, SEED), np.arange(files * rows)
    else:
        counts = setting.draw(setting.pool, SEED - 1)
        drawn = np.random.default_rng(SEED).integers(setting.pool, size=files * rows)
    if setting.mechanism == "interactive":
        mechanism = mechanism.for_reference(counts, SEED)
    found, place = np.unique(states.of(mechanism, counts), axis=0, return_inverse=True)
    place = place.reshape(-1)[drawn].reshape(files, rows)
    number = np.stack([np.bincount(each, minlength=len(found)) for each in place])
    profile = np.stack([number @ states.costs(order, found).T for order in orders.tolist()], axis=1)
    ceiling = mechanism.worst_rdp(queries=rows, answers=setting.cap_on(rows), orders=orders)
    chances = target.chances(np.minimum(profile, ceiling[None, :, None]), orders)
    return float(chances.mean()), float(chances.std() / np.sqrt(files))


def compare(setting: Setting, *, files: int = FILES) -> dict[str, float]:
    """Forecast and truth of one line, and what each took, in seconds of the processor."""
    rows = asked_rows(setting)
    began = time.process_time()
    votes, shape = setting.model(max(3000, 6 * rows)), {"max_answers": setting.cap_on(rows)}
    found = forecast(votes, setting.build(), setting.target, rows=rows, **shape)
    between = time.process_time()
    mean, error = truth(setting, rows, files=files) if found.tested else (1.0, 0.0)
    return {
        "rows": rows,
        "tested": found.tested,
        "forecast": round(float(found.pass_probability[0]), 4),
        "truth": round(mean, 4),
        "error_of_truth": round(error, 4),
        "off": round(float(found.pass_probability[0]) - mean, 4),
        "seconds": round(between - began, 2),
        "seconds_of_truth": round(time.process_time() - between, 1),
    }


SUITE = (
    # Two and more classes, both bounds, a small δ, a prior, groups, k and a cap.
    Setting(8, 4, 4.0, (0.25,), 0.8, pool=60),
    Setting(12, 2, 3.0, (0.9, 0.6, 0.3), 0.9, MIXED, bound="two-tail"),
    Setting(20, 5, 3.0, (0.3,), 0.9, MIXED),
    Setting(30, 2, 1.5, (1.0, 0.6, 0.3), 0.7, RARE),
    Setting(60, 10, 2.0, (0.8, 0.5, 0.2), 0.6, bound="two-tail"),
    Setting(100, 2, 1.5, (1.2, 1.3, 0.36), 0.725, MIXED, aim=0.5),
    Setting(250, 2, 1.0, (1.2, 0.6, 0.41), 0.8, delta=1e-9, aim=0.3),
    Setting(400, 5, 0.5, (0.7, 0.5, 0.25), 0.95, MIXED, bound="two-tail", aim=0.5),
    Setting(100, 2, 1.0, (0.25,), 0.65, ALIKE, prior=0.5, aim=0.6, delta=1e-9),
    Setting(250, 2, 3.0, (0.9, 0.6, 0.25), 0.84, MIXED, per_record=2, bound="two-tail"),
    Setting(200, 2, 3.0, (0.3,), 0.8, ALIKE, sizes=(1, 2), bound="two-tail", aim=0.9),
    Setting(100, 2, 1.5, (0.8, 0.5, 0.36), 0.725, MIXED, aim=0.4, cap=0.3),
)
"""What the tests compare, unless every case is wanted."""
SETTINGS = (
    *SUITE,
    # Few teachers, where a vote moves much.
    Setting(8, 3, 2.0, (1.38, 0.6, 0.31), 0.725, aim=0.5, pool=40),
    Setting(20, 5, 2.0, (0.8, 0.6, 0.27), 0.725, rows=7, pool=150),
    Setting(20, 5, 2.0, (1.2, 0.6, 0.27), 0.84, delta=1e-9, rows=4, pool=150),
    Setting(20, 5, 2.0, (1.2, 0.78, 0.27), 0.84, MIXED, delta=1e-12, pool=150),
    Setting(20, 40, 3.0, (0.69, 0.4, 0.2), 0.84, MIXED, aim=0.9, pool=150),
    Setting(30, 3, 2.0, (0.5, 0.6, 0.3), 0.9, aim=0.9, delta=1e-9, pool=150),
    Setting(40, 10, 3.0, (0.25,), 0.7, RARE, aim=0.9, bound="two-tail"),
    # Some dozens.
    Setting(60, 3, 1.0, (1.2, 0.6, 0.31), 0.84, RARE, delta=1e-9, aim=0.9, pool=180),
    Setting(60, 3, 2.0, (1.2, 0.6, 0.31), 0.84, delta=1e-12, aim=0.3, pool=180),
    Setting(60, 3, 2.0, (0.27,), 0.725, MIXED, aim=0.4),
    Setting(60, 10, 2.0, (1.38, 0.6, 0.27), 0.725, MIXED, aim=0.9, pool=150),
    Setting(60, 40, 2.0, (0.9, 0.5, 0.25), 0.84, MIXED, bound="two-tail", aim=0.9),
    Setting(100, 10, 1.5, (0.17,), 0.84, MIXED, bound="two-tail", aim=0.9),
    Setting(100, 40, 2.0, (1.15, 0.6, 0.2), 0.84, MIXED, aim=0.7, pool=90),
    # Hundreds.
    Setting(250, 2, 2.0, (0.5, 0.4, 0.2), 0.95, RARE, aim=0.9),
    Setting(250, 10, 2.0, (1.15, 0.6, 0.23), 0.84, delta=1e-12, bound="two-tail", aim=0.9),
    Setting(250, 40, 1.0, (0.6, 0.4, 0.2), 0.61, RARE, bound="two-tail", aim=0.8),
    Setting(500, 2, 0.5, (0.36,), 0.875, MIXED, delta=1e-12, aim=0.8),
    Setting(1000, 2, 1.0, (0.35, 0.24, 0.2), 0.8, MIXED, aim=0.4),
    Setting(1000, 10, 1.0, (0.45, 0.4, 0.2), 0.725, MIXED, bound="two-tail", rows=5000),
    Setting(1000, 40, 1.0, (0.8, 0.5, 0.2), 0.5, RARE, bound="two-tail", delta=1e-12),
    # A public prior.
    Setting(60, 3, 1.5, (0.61, 0.78, 0.27), 0.725, MIXED, delta=1e-9, prior=0.2, pool=180),
    Setting(20, 5, 2.0, (1.04, 0.6, 0.27), 0.725, prior=0.3, pool=150),
    # Records of several teachers, and groups of teachers with several votes.
    Setting(250, 10, 3.0, (0.9, 0.6, 0.25), 0.725, ALIKE, per_record=2, bound="two-tail"),
    Setting(100, 4, 3.0, (0.9, 0.6, 0.25), 0.725, ALIKE, sizes=(1, 2), bound="two-tail"),
    # Mechanisms of other kinds.
    Setting(100, 10, 2.0, (0.06,), 0.84, MIXED, mechanism="lnmax", bound="two-tail", aim=0.6),
    Setting(100, 5, 2.0, (0.5, 0.4, 0.2), 0.84, MIXED, mechanism="interactive", bound="two-tail"),
)


def main(places: list[int]) -> int:
    """Print the table, or some lines of it; the number of lines that are off by more than .02."""
    off = 0
    for place in places or range(len(SETTINGS)):
        found = compare(SETTINGS[place])
        bad = abs(found["off"]) > 0.02 + 2.0 * found["error_of_truth"]
        off += bad
        usual = asdict(Setting(0, 0, 0.0, ()))
        told = {name: x for name, x in asdict(SETTINGS[place]).items() if x != usual[name]}
        line = {"place": place, **told, **found, "bad": bool(bad)}
        print(json.dumps(line), flush=True)  # noqa: T201 - a tool
    return off


if __name__ == "__main__":
    sys.exit(1 if main([int(each) for each in sys.argv[1:]]) else 0)
