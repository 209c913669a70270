"""Sessions: an adversary who asks as the answers fall, until the rule ends it.

Queries are chosen by the best plan of the game that a session is (`game.py`), for two ensembles
which differ in the votes of one record. Many sessions go on side by side: the rule says which of
them may ask once more, and the queries of all are labelled as the rows of one run. So do, fewer of
them, real ones, whose ids are asked again. What the rule allows is computed, too.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pate_cli as pate
from audit.bounds import Scores, by_outcome
from audit.cases import Case, DrawnCase, aggregated
from audit.game import Game, Menu, Plan, best_move


@dataclass(frozen=True, eq=False)
class _Asked(Case):
    """A session of two classes.

    Attributes:
        name: of the case.
        mechanism: a word.
        parameters: of it.
        teachers: τ.
        until: what ends it: a target, or the most queries.
        delta: of the claim.
    """

    name: str
    mechanism: str
    parameters: Mapping[str, Any]
    teachers: int
    until: Mapping[str, Any]
    delta: float = 0.01

    def claim(self) -> float:
        """The ε of its rule."""
        return self._rule.epsilon

    def _opened(self) -> pate.Session:
        shape = {"teachers": self.teachers, "classes": 2, "mechanism": self.mechanism}
        asked = {**shape, **self.until, **self.parameters}
        return pate.Session(**asked, delta=self.delta, record=False)

    @functools.cached_property
    def _rule(self) -> Any:
        return self._opened().rule

    @functools.cached_property
    def _menu(self) -> Menu:
        """Everything that a record's teachers can do."""
        return Menu.of(self.mechanism, self.teachers, self.parameters)

    @functools.cached_property
    def _game(self) -> Game:
        return Game(*self._menu.laws, self._rule)


@dataclass(frozen=True, eq=False)
class GameCase(_Asked, DrawnCase):
    """Many sessions side by side, asked by the best plan.

    Attributes:
        aim: the ε that the plan is best at.
    """

    aim: float = 1.5
    draws: int = 1 << 16

    @functools.cached_property
    def _plan(self) -> Plan:
        return self._game.plan(self.aim)

    def scores(self, draws: int) -> list[tuple[Scores, Scores]]:
        """By the log of how much likelier all answers are on one side, which is known."""
        return [(self._ratios(draws, 0), self._ratios(draws, 1))]

    @functools.cached_property
    def _steps(self) -> NDArray[np.float64]:
        """What an outcome adds to the log of how much likelier all are, [pairs, 3]."""
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.log(self._menu.laws[0]) - np.log(self._menu.laws[1])
        return np.where(np.isnan(steps), 0.0, steps)  # gnmax always answers

    def _ratios(self, draws: int, side: int) -> Scores:
        asked, answers = 0, np.zeros(draws, dtype=np.int64)
        ratios, going = np.zeros(draws), np.ones(draws, dtype=np.bool_)
        while going.any():
            moves = np.zeros(draws, dtype=np.intp)
            for count in np.unique(answers[going]).tolist():
                here = going & (answers == count)
                if self._rule.left(asked, count) > 0:
                    moves[here] = best_move(self._plan, asked, count, -ratios[here])
                else:
                    going &= ~here
            outcomes = self._answers(self._menu.pairs[moves[going], side])
            ratios[going] += self._steps[moves[going], outcomes]
            answers[going] += outcomes > 0
            asked += 1
        return ratios

    def _answers(self, histograms: NDArray[np.int64]) -> NDArray[np.int64]:
        if not len(histograms):
            return np.zeros(0, dtype=np.int64)
        asked = {"layout": "counts", "teachers": self.teachers, **self.parameters}
        done = aggregated(histograms, self.mechanism, **asked)
        return done.labels.labels.astype(np.int64) + 1


@dataclass(frozen=True, eq=False)
class PlayedCase(GameCase):
    """The same in real sessions, one after the other, each until its budget is spent."""

    draws: int = 1 << 12

    def _ratios(self, draws: int, side: int) -> Scores:
        return np.array([self._played(side) for _ in range(draws)])

    def _played(self, side: int) -> float:
        ratio, votes = np.zeros(1), self._menu.pairs[:, side].tolist()
        with self._opened() as session, contextlib.suppress(pate.BudgetSpent):
            while True:
                if not session.remaining:  # there is no move, and there must be no answer
                    session.ask(votes[0])
                    return math.inf
                (move,) = best_move(self._plan, session.asked, session.answers, -ratio)
                label = session.ask(votes[move])
                ratio += self._steps[move, 0 if label is None else label + 1]
        return float(ratio[0])


@dataclass(frozen=True, eq=False)
class RealCase(_Asked, DrawnCase):
    """Real sessions, each opened for one draw.

    Attributes:
        one, other: histograms of the queries, in order.
        again: how often the first id is asked again at the end, for nothing.
    """

    one: list[list[int]] = field(default_factory=list)
    other: list[list[int]] = field(default_factory=list)
    again: int = 0
    draws: int = 1 << 13

    def scores(self, draws: int) -> list[tuple[Scores, Scores]]:
        """By the answers, and by how many of those to one id are the first class."""
        sides = [[self._answers(votes) for _ in range(draws)] for votes in (self.one, self.other)]
        own, again = zip(*(map(np.array, zip(*side, strict=True)) for side in sides), strict=True)
        return [by_outcome(*own), by_outcome(*again)]

    def _answers(self, votes: list[list[int]]) -> tuple[int, int]:
        with self._opened() as session:
            labels = [session.ask(counts, id=place) for place, counts in enumerate(votes)]
            repeated = [session.ask(votes[0], id=0) for _ in range(self.again)]
        if session.remaining:
            raise ArithmeticError("more may be asked than the case knows of")
        number = sum((0 if label is None else label + 1) * 3**at for at, label in enumerate(labels))
        return number, repeated.count(0)


@dataclass(frozen=True, eq=False)
class ExactGameCase(_Asked):
    """The Rényi moment of the whole game, at the order of the rule, against the target."""

    draws: int = 0

    def measured(self, draws: int) -> tuple[float, int]:
        """Calculated."""
        order = self._rule.beyond.order
        cost = self._game.log_moment(order) / (order - 1.0)
        # Proposition 12 of Canonne, Kamath and Steinke (2020).
        found = cost + math.log1p(-1.0 / order) - math.log(self.delta * order) / (order - 1.0)
        return found, 0


_TARGET = {"target_epsilon": 3.0}
_NOISE = {"sigma2": 4.6}
SESSIONS = (
    # Three times as many as in any case may be asked where few are answered.
    GameCase("session: asked as the answers fall", "confident",
             {"threshold": 6.0, "sigma1": 4.0, "sigma2": 3.0}, 8, _TARGET),
    GameCase("session: few are answered", "confident",
             {"threshold": 3.5, "sigma1": 8.0, "sigma2": 4.0}, 6, _TARGET, aim=3.0),
    GameCase("session: two teachers a record", "confident",
             {"threshold": 6.0, "sigma1": 6.0, "sigma2": 4.0, "teachers_per_record": 2}, 6,
             _TARGET),
    GameCase("session: gnmax, asked as the answers fall", "gnmax", _NOISE, 4, {"max_queries": 24}),
    PlayedCase("session: played until it is spent", "gnmax", _NOISE, 4, {"max_queries": 12}),
    # One vote moves the other way in the second query, as in a file.
    RealCase("session: two queries, one after the other", "gnmax", _NOISE, 21, {"max_queries": 2},
             one=[[11, 10], [11, 10]], other=[[12, 9], [10, 11]]),
    RealCase("session: an id again and again", "gnmax", _NOISE, 21, {"max_queries": 1},
             one=[[11, 10]], other=[[10, 11]], again=100, draws=1 << 10),
    # Answers and refusals cost about the same votes: what a union costs shows.
    ExactGameCase("session: the whole game", "confident",
                  {"threshold": 4.0, "sigma1": 5.0, "sigma2": 13.0}, 8, _TARGET, delta=0.1),
)  # fmt: skip
