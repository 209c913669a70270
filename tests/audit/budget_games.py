"""Random budgets played against: the best play of each game, computed, beside the budget.

Somebody sees what every run gives, and then chooses the next: whether to begin one while others are
open, in which ensemble, to go on with a session, to try again after a refused test, to draw a
release. Each game has a budget (sums or a filter), a few kinds of run and a person whose data
reached some of the ensembles. All laws are exact, and the best play is found by induction from the
end; at the budget's ε its hockey-stick divergence must not exceed the budget's δ.

    PYTHONPATH=.:tests:tests/support python -m audit.budget_games --games 100000
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
import random
import sys
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.special import ndtr

from pate_cli.accounting.sensitivity import largest_beta
from pate_cli.core.errors import UnreachableError
from pate_cli.core.words import Adjacency, ReleaseKind
from pate_cli.disclosure.external import Stated
from pate_cli.disclosure.runs import Budget, Outcome, Run
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.gnmax import GNMax
from some_runs import told

REFUSED = "refused"
TEACHERS = 20

Stages: TypeAlias = list[tuple[tuple[float, float], Any]]
"""What may be seen next: its chance in both worlds, and what may follow it.

What follows is None, further stages of the same run, or `REFUSED`: the run's test failed.
"""


def coin(epsilon: float) -> Stages:
    """Randomised response at ε."""
    right = 1.0 / (1.0 + math.exp(-epsilon))
    return [((right, 1.0 - right), None), ((1.0 - right, right), None)]


@dataclass(frozen=True)
class Response:
    """Randomised response at ε that gives the record away with chance δ; its cost is stated.

    Attributes:
        epsilon, delta: its cost.
        answers: it is a session of so many answers at ε/answers each, between which other runs may
            begin and end.
    """

    epsilon: float
    delta: float = 0.0
    answers: int = 1

    @property
    def stages(self) -> Stages:
        """What it gives, answer by answer."""
        stages: Stages | None = None
        for _ in range(self.answers):
            stages = [(pair, stages) for pair, _ in coin(self.epsilon / self.answers)]
        rest = 1.0 - self.delta
        found: Stages = [((rest * p, rest * q), then) for (p, q), then in stages or []]
        if self.delta:
            found += [((self.delta, 0.0), None), ((0.0, self.delta), None)]
        return found

    def run(self, name: str) -> Run:
        cost = Stated(Adjacency.REPLACE_ONE, epsilon=self.epsilon, delta=self.delta)
        return Run.of(id=name, outcome=Outcome.STATED, time=None, external=cost)


@dataclass(frozen=True)
class Labels:
    """Labels of two classes by GNMax, charged by their worst case: all rows lean to one vote.

    Attributes:
        sigma: noise on each count, in votes.
        rows: how many labels, one at a time.
        delta: at which their cost is converted.
    """

    sigma: float
    rows: int
    delta: float

    @property
    def stages(self) -> Stages:
        """The labels of votes that are tied but for the one that differs, one way or the other."""
        win = float(ndtr(1.0 / (math.sqrt(2.0) * self.sigma)))
        stages: Stages | None = None
        for _ in range(self.rows):
            stages = [((win, 1.0 - win), stages), ((1.0 - win, win), stages)]
        return stages or []

    def run(self, name: str) -> Run:
        settings = told(GNMax(TEACHERS, 2, sigma2=self.sigma), self.rows, delta=self.delta)
        return Run.of(id=name, outcome=Outcome.PENDING, time=None, settings=settings)


@dataclass(frozen=True)
class Test:
    """A run with a release test, the least favourable one: its outcome is seen before its labels.

    A refusal is e^η times likelier in one world; labels are what is left, up to e^ε and δ.
    """

    __test__ = False

    epsilon: float
    delta: float
    refusal: float

    @property
    def stages(self) -> Stages:
        """The outcome of the test, and then labels."""
        one, other = 0.4, 0.4 * math.exp(-self.refusal)
        passed = 1.0 - one, 1.0 - other
        likely = min(1.0, (self.delta + math.exp(self.epsilon) * passed[1] * 0.02) / passed[0])
        labels: Stages = [((likely, 0.02), None), ((1.0 - likely, 0.98), None)]
        return [((one, other), REFUSED), (passed, labels)]

    def run(self, name: str) -> Run:
        target = TargetPlan(self.epsilon, self.delta, self.refusal, test_orders=(8.0,))
        settings = told(GNMax(TEACHERS, 3, sigma2=4.0), 10, delta=self.delta, target=target)
        return Run.of(id=name, outcome=Outcome.PENDING, time=None, settings=settings)


@dataclass(frozen=True)
class Release:
    """A sanitized value, read to within a few cells: cost and sensitivity both move as they may.

    Attributes:
        order, beta, sigma, delta: of the draw.
    """

    order: float
    beta: float
    sigma: float
    delta: float

    @property
    def plan(self) -> ReleasePlan:
        """How the value is drawn."""
        return ReleasePlan(ReleaseKind.UPPER, self.delta, self.order, self.beta, self.sigma)

    @property
    def stages(self) -> Stages:
        """The cell of the value, for sensitivities 1 and e^β and costs 0 and −1."""
        cuts = np.array([-np.inf, -2.0, -0.5, 0.5, 2.0, np.inf])
        shift, more = self.plan.shift, math.exp(self.beta)
        at = shift + self.sigma * cuts
        moved = (at + 1.0 - shift * more) / (self.sigma * more)
        pairs = zip(np.diff(ndtr(cuts)).tolist(), np.diff(ndtr(moved)).tolist(), strict=True)
        return [(pair, None) for pair in pairs]

    def run(self, name: str) -> Run:
        return Run.of(id=name, outcome=Outcome.RELEASED, time=None, draw=self.plan)


Way: TypeAlias = Response | Labels | Test | Release


@dataclass(frozen=True)
class InEnsemble:
    """A run of an ensemble; the worlds differ only where the person's data reached it.

    Attributes:
        way: what it runs.
        ensemble: its name.
        inside: which ensembles the person's data reached.
        apart: from which earlier ones it is declared disjoint.
    """

    way: Way
    ensemble: str
    inside: str
    apart: tuple[str, ...]

    @property
    def stages(self) -> Stages:
        """What it gives."""
        return self.way.stages if self.ensemble in self.inside else same(self.way.stages)

    def run(self, name: str) -> Run:
        return replace(self.way.run(name), ensemble=self.ensemble, disjoint_from=self.apart)


def same(stages: Stages) -> Stages:
    """What is seen, and how likely, where both worlds are the first one."""
    return [
        ((one, one), then if then in (None, REFUSED) else same(then))
        for (one, _), then in stages
        if one
    ]


Item: TypeAlias = Way | InEnsemble


def value(menu: list[Item], admits: Any, epsilon: float, *, most: int) -> float:
    """The largest P[S] − e^ε P'[S] of any play; at most two runs are open at once.

    Args:
        menu: what may be run, any number of times.
        admits: whether a run may be entered, given those that were, with outcomes.
        epsilon: of the hockey-stick divergence.
        most: runs in a play.
    """
    beginnings = [item.stages for item in menu]
    runs = [[item.run(f"{at}: item {n}") for n, item in enumerate(menu)] for at in range(most)]
    known: dict[Any, float] = {}

    def play(p: float, q: float, entered: tuple[Run, ...], waiting: tuple[Any, ...]) -> float:
        if p == 0.0 or q == 0.0:
            return p
        # What a play gets for each unit of p follows from the likelihood ratio alone.
        so_far = tuple((run.id, run.outcome) for run in entered)
        key = so_far, tuple((name, id(then)) for name, then in waiting), float(f"{q / p:.13g}")
        if key not in known:
            known[key] = best(1.0, q / p, entered, waiting)
        return p * known[key]

    def best(p: float, q: float, entered: tuple[Run, ...], waiting: tuple[Any, ...]) -> float:
        found = max(p - math.exp(epsilon) * q, 0.0)
        for place, (name, stages) in enumerate(waiting):
            rest = waiting[:place] + waiting[place + 1 :]
            total = 0.0
            for (one, other), then in stages:
                told, more = entered, rest
                if then == REFUSED:
                    told = tuple(
                        replace(run, outcome=Outcome.REFUSED) if run.id == name else run
                        for run in entered
                    )
                elif then:
                    more = (*rest, (name, then))
                total += play(p * one, q * other, told, more)
            found = max(found, total)
        if len(entered) < most and len(waiting) < 2:
            for run, stages in zip(runs[len(entered)], beginnings, strict=True):
                if admits(entered, run):
                    found = max(found, play(p, q, (*entered, run), (*waiting, (run.id, stages))))
        return found

    return play(1.0, 1.0, (), ())


def by(budget: Budget) -> Any:
    """The rule of a budget, as runs of one menu meet it."""
    known: dict[Any, bool] = {}

    def admits(entered: tuple[Run, ...], run: Run) -> bool:
        key = tuple((each.id, each.outcome, each.epsilon) for each in (*entered, run))
        if key not in known:
            try:
                budget.refuse([replace(each, budget=budget) for each in entered], [run])
                known[key] = True
            except UnreachableError:
                known[key] = False
        return known[key]

    return admits


@dataclass(frozen=True)
class Game:
    """A budget, what may be run, and how many runs a play has at most."""

    budget: Budget
    menu: list[Item]
    most: int = 3

    @classmethod
    def drawn(cls, seed: int) -> Game:
        """A game at random: its runs are such that one to five of them fit into the budget."""
        draw = random.Random(seed)  # noqa: S311 (a game keeps no secret)
        order = draw.choice([None, None, round(draw.uniform(1.5, 12.0), 2)])
        budget = Budget(round(draw.uniform(0.2, 3.0), 3), 10.0 ** draw.uniform(-5.0, -0.7), order)
        ways = [_way(draw, budget) for _ in range(draw.choice([1, 2, 2, 3]))]
        if draw.random() < 0.6:
            return cls(budget, list(ways))
        apart = {
            month: tuple(other for other in "abc"[:place] if draw.random() < 0.6)
            for place, month in enumerate("abc")
        }
        inside = "".join(draw.sample("abc", draw.choice([1, 2, 3])))
        while any(set(apart[month]) & set(inside) for month in inside):  # nobody is in both
            inside = inside[1:]
        menu = [InEnsemble(way, month, inside, apart[month]) for way in ways[:2] for month in "abc"]
        return cls(budget, draw.sample(menu, min(len(menu), 3)))

    def excess(self, rule: Any = by) -> float:
        """The most that a play gets, less the budget's δ, as a share of it."""
        found = value(self.menu, rule(self.budget), self.budget.epsilon, most=self.most)
        return found / self.budget.delta - 1.0


def _way(draw: random.Random, budget: Budget) -> Way:
    """A run at random, for a share of the budget."""
    epsilon = round(budget.epsilon * draw.choice([0.2, 0.33, 0.5, 0.9, draw.random()]) + 1e-3, 4)
    delta = budget.delta * draw.choice([0.0, 0.1, 0.3, 0.5, draw.random()])
    kind = draw.choice(["response", "session", "labels", "test", "release"])
    if kind == "release":
        order = round(draw.uniform(1.5, 12.0), 2)
        beta = draw.uniform(0.05, 0.9) * largest_beta(max(order, budget.order or 0.0))
        return Release(order, beta, draw.uniform(2.0, 30.0), delta or 1e-7)
    if kind == "labels":
        return Labels(round(draw.uniform(1.0, 8.0), 2), draw.choice([1, 1, 2]), delta or 1e-7)
    if kind == "test":
        return Test(epsilon, delta or 1e-7, round(epsilon * draw.uniform(0.2, 1.0), 5))
    return Response(epsilon, delta, answers=1 if kind == "response" else 2)


def broken(seeds: range, rule: Any = by) -> list[int]:
    """The seeds of the games in which a play gets more than the budget's δ."""
    return [seed for seed in seeds if Game.drawn(seed).excess(rule) > 1e-9]


def main() -> None:
    """Play the games, some at once, and print how many were broken; exit 1 if any was."""
    parser = argparse.ArgumentParser(prog="audit.budget_games", description=__doc__)
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first game")
    asked = parser.parse_args()
    ends = range(asked.first, asked.first + asked.games, 50)
    parts = [range(at, min(at + 50, asked.first + asked.games)) for at in ends]
    with multiprocessing.Pool() as pool:
        found = list(itertools.chain.from_iterable(pool.imap_unordered(broken, parts)))
    sys.stdout.write(f"{asked.games} games, {len(found)} above their budget {sorted(found)}\n")
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
