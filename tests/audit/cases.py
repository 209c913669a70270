"""What is audited: each mechanism on its worst neighbours, the release, the target test.

Sessions have a module of their own.

Everything is drawn and claimed by the public library alone: `aggregate`, `release`, `quote` and
reports. Noise comes from fresh keys.

A run of k queries is repeated within one file: rows are labelled independently under one key, so a
file holds all draws of the first query, then all of the second, and draw number r is made of rows
r, n + r, 2n + r, … That order is on purpose. Were noise used again in some later batch, two rows of
one draw would share it. What shares a run otherwise (sparse vector, whose rows depend on each
other; the release; the target) is drawn run by run.
"""

from __future__ import annotations

import contextlib
import functools
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import pate_cli as pate
from audit.bounds import INTERVALS, Scores, by_bins, by_outcome, by_row, joint, lower_bound

__all__ = [
    "ANY_DELTA",
    "ANY_EPSILON",
    "LABELS",
    "RELEASES",
    "RUNS",
    "VOTES",
    "Case",
    "DrawnCase",
    "Finding",
    "charged_epsilon",
]

ANY_DELTA = 0.5  # where a run's own δ has no say in what it gives
ANY_EPSILON = 1e15  # many draws are asked as the rows of one run

Votes: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Finding:
    """One line of the table.

    Attributes:
        name: of the case.
        epsilon, delta: what the tool claims.
        proven: what the draws prove at that δ, with confidence; an exact figure where `draws` is 0.
        draws: on each of the two neighbours.
        intervals: so many may miss.
        seconds: it took.
    """

    name: str
    epsilon: float
    delta: float
    proven: float
    draws: int
    intervals: int
    seconds: float

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted."""
        return self.proven > self.epsilon


class Case(ABC):
    """Two neighbours, what they give, and what is claimed of it."""

    name: str
    delta: float
    draws: int

    @abstractmethod
    def claim(self) -> float:
        """The ε that the tool states for this δ."""

    @abstractmethod
    def find(self, share: float = 1.0) -> Finding:
        """What it comes to; a share of the draws does for a quick look."""


class DrawnCase(Case):
    """One whose ε is bounded by draws."""

    @abstractmethod
    def scores(self, draws: int) -> list[tuple[Scores, Scores]]:
        """Draws on both neighbours, scored in one or more ways."""

    def find(self, share: float = 1.0) -> Finding:
        """Draw and compare."""
        start = time.perf_counter()
        claim = self.claim()
        draws = max(2, round(self.draws * share))
        ways = self.scores(draws)
        proven = max(lower_bound(scores, delta=self.delta) for scores in ways)
        seconds = time.perf_counter() - start
        return Finding(self.name, claim, self.delta, proven, draws, INTERVALS * len(ways), seconds)


_MOST_JOINT = 1 << 16


@dataclass(frozen=True)
class LabelCase(DrawnCase):
    """Labels of a mechanism, each row on its own.

    Attributes:
        name: of the case.
        mechanism: a word.
        parameters: all of the mechanism's own, so that none follows from the number of rows.
        one, other: histograms of the k queries, [k, m].
        delta: of the claim.
        draws: of the k queries, on each side; a power of two (see `pate_cli.core.noise`: streams of
            noise have periods of powers of two, if any).
        reading: how the votes are to be read, beside their layout.
        predictions: of the student, [k, m].
        prior: the guesses of a public prior, [k].
        runs: how many files the draws are spread over, where a file of all of them could not be
            charged.
    """

    name: str
    mechanism: str
    parameters: Mapping[str, Any]
    one: list[list[int]]
    other: list[list[int]]
    delta: float
    draws: int = 1 << 16
    reading: Mapping[str, Any] = field(default_factory=dict)
    predictions: list[list[float]] | None = None
    prior: list[int] | None = None
    runs: int = 1

    def claim(self) -> float:
        """What `quote` says of the k queries, the same for both."""
        one, other = (
            pate.quote(np.array(votes), self.mechanism, delta=self.delta, **self._asked(1))
            for votes in (self.one, self.other)
        )
        if one.epsilon != other.epsilon or not (one.sound and other.sound):
            raise ValueError(f"{self.name}: no claim, or one that depends on the votes")
        return one.epsilon

    def scores(self, draws: int) -> list[tuple[Scores, Scores]]:
        """By row, as if rows were independent; and whole transcripts where there are few."""
        sides = tuple(self._labels(np.array(votes), draws) for votes in (self.one, self.other))
        ways = [by_row(*sides)]
        outcomes = len(self.one[0]) + 1
        if len(self.one) > 1 and outcomes ** len(self.one) <= _MOST_JOINT:
            ways.append(by_outcome(*(joint(side, outcomes) for side in sides)))
        return ways

    def _labels(self, votes: Votes, draws: int) -> NDArray[np.int64]:
        """[draws, k]: 0 for no label, else the label plus one."""
        each = -(-draws // self.runs)
        rows = np.repeat(votes, each, axis=0)
        parts = []
        for _ in range(self.runs):
            done = pate.aggregate(
                rows,
                self.mechanism,
                delta=ANY_DELTA,
                max_epsilon=ANY_EPSILON,
                **self._asked(each),
            )
            parts.append(done.labels.labels.reshape(len(votes), each).T + 1)
        return np.concatenate(parts).astype(np.int64)

    def _asked(self, times: int) -> dict[str, Any]:
        given = {"layout": "counts", **self.parameters, **self.reading}
        if self.predictions is not None:
            values = np.repeat(np.array(self.predictions), times, axis=0)
            given["predictions"] = values
        if self.prior is not None:
            given["prior"] = np.repeat(np.array(self.prior), times)
        return given


@dataclass(frozen=True)
class VoteCase(LabelCase):
    """The same where it matters how votes are read: `one` and `other` say who voted what.

    `reading` is all that `open_votes` is told. Votes are [k, teachers], or [k, teachers, labels]
    for several labels a query; of texts they are columns of a table. The two differ in what one
    record's teachers say.

    Attributes:
        voters: whose votes the record has a part in, by place.
        pairs: rows of votes that a query is.
    """

    voters: tuple[int, ...] = ()
    pairs: int = 1

    def claim(self) -> float:
        """What `quote` says of the k queries."""
        epsilons = set()
        for votes in (self.one, self.other):
            with self._opened(np.array(votes)) as file:
                price = pate.quote(file, self.mechanism, delta=self.delta, **self.parameters)
            epsilons.add(price.epsilon if price.sound else np.nan)
        if len(epsilons) > 1:
            raise ValueError(f"{self.name}: no claim, or one that depends on the votes")
        return epsilons.pop()

    def scores(self, draws: int) -> list[tuple[Scores, Scores]]:
        """By row, and whole transcripts where a run has two rows only."""
        sides = tuple(self._labels(np.array(votes), draws) for votes in (self.one, self.other))
        ways = [by_row(*sides)]
        if sides[0].shape[1] == 2:
            ways.append(by_outcome(*(joint(side, 3) for side in sides)))
        return ways

    def _labels(self, votes: NDArray[Any], draws: int) -> NDArray[np.int64]:
        with self._opened(np.repeat(votes, draws, axis=0)) as file:
            done = pate.aggregate(
                file,
                self.mechanism,
                delta=ANY_DELTA,
                max_epsilon=ANY_EPSILON,
                **self.parameters,
            )
        found = done.labels.labels.reshape(len(votes), draws, self.pairs)
        return found.swapaxes(0, 1).reshape(draws, -1).astype(np.int64) + 1

    def _opened(self, votes: NDArray[Any]) -> contextlib.AbstractContextManager[Any]:
        if votes.dtype.kind != "U":
            return pate.open_votes(votes, **self.reading)
        names = [f"teacher_{place}" for place in range(votes.shape[1])]
        return pate.open_votes(pa.table(dict(zip(names, votes.T, strict=True))), **self.reading)


@dataclass(frozen=True)
class RunCase(LabelCase):
    """The same for a mechanism whose rows depend on each other: run after run."""

    def _labels(self, votes: Votes, draws: int) -> NDArray[np.int64]:
        asked = self._asked(1)
        parts = [
            pate.aggregate(votes, self.mechanism, delta=self.delta, **asked).labels.labels
            for _ in range(draws)
        ]
        return np.stack(parts).astype(np.int64) + 1


@dataclass(frozen=True)
class EpochCase(LabelCase):
    """One epoch of the sparse vector, many of them in one file: how many rows are answered.

    A row at distance 0 ends what is left of each: it is refused but with `query_delta`, which is so
    small that no run has one answered. After the first refusal a new epoch begins, whose rows do
    not count.
    """

    def scores(self, draws: int) -> list[tuple[Scores, Scores]]:
        """By the number of rows answered."""
        return [by_outcome(*(self._answered(np.array(v), draws) for v in (self.one, self.other)))]

    def _answered(self, votes: Votes, draws: int) -> NDArray[np.int64]:
        teachers = int(votes[0].sum())
        rows = np.tile(np.vstack([votes, [[teachers // 2, teachers - teachers // 2]]]), (draws, 1))
        asked = {**self._asked(1), "refusals": len(rows)}
        done = pate.aggregate(
            rows, self.mechanism, delta=ANY_DELTA, max_epsilon=ANY_EPSILON, **asked
        )
        refused = done.labels.labels.reshape(draws, len(votes) + 1) < 0
        if not refused[:, -1].all():
            raise ArithmeticError("a row that ends an epoch was answered")
        return np.argmax(refused, axis=1)


def charged_epsilon(report: pate.Report, *, delta: float) -> float:
    """ε at δ of the one draw in a report, from the Rényi cost that it charges at its order.

    Converted by Proposition 12 of Canonne, Kamath and Steinke (2020).
    """
    drawn = report.plan
    cost = drawn.release_rdp
    return float(
        cost + np.log1p(-1.0 / drawn.order) - np.log(delta * drawn.order) / (drawn.order - 1.0)
    )


@dataclass(frozen=True)
class ReleaseCase(DrawnCase):
    """The sanitized number alone, drawn again and again from the ledgers of two neighbours."""

    name: str
    one: list[list[int]]
    other: list[list[int]]
    delta: float
    release: Mapping[str, Any]
    mechanism: str = "lnmax"
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"laplace_scale": 1.0})
    draws: int = 4000

    def claim(self) -> float:
        """By the report of one draw."""
        report = pate.release(self._ledger(self.one), **self.release).report
        return charged_epsilon(report, delta=self.delta)

    def scores(self, draws: int) -> list[tuple[Scores, Scores]]:
        """By bins."""
        sides = []
        for votes in (self.one, self.other):
            ledger = self._ledger(votes)
            found = [pate.release(ledger, **self.release).report.sanitized for _ in range(draws)]
            sides.append(np.array(found))
        return [by_bins(*sides)]

    def _ledger(self, votes: list[list[int]]) -> pate.Ledger:
        settings = {name: value for name, value in self.release.items() if name != "release"}
        return pate.aggregate(
            np.array(votes),
            self.mechanism,
            delta=self.delta,
            layout="counts",
            max_epsilon=ANY_EPSILON,
            release="none",
            keep_ledger=True,
            **settings,
            **self.parameters,
        ).ledger


@dataclass(frozen=True)
class WholeCase(ReleaseCase):
    """Labels and the sanitized number of whole runs, against ε for all votes of both together."""

    def claim(self) -> float:
        """By the report."""
        return self._run(self.one)[2]

    def scores(self, draws: int) -> list[tuple[Scores, Scores]]:
        """Labels by row, the number by bins, and the sum of both."""
        labels, numbers = [], []
        for votes in (self.one, self.other):
            runs = [self._run(votes) for _ in range(draws)]
            labels.append(np.stack([run[0] for run in runs]))
            numbers.append(np.array([run[1] for run in runs]))
        by_labels, by_number = by_row(*labels), by_bins(*numbers)
        both = tuple(a + b for a, b in zip(by_labels, by_number, strict=True))
        return [by_labels, by_number, both]

    def _run(self, votes: list[list[int]]) -> tuple[NDArray[np.int64], float, float]:
        done = pate.aggregate(
            np.array(votes),
            self.mechanism,
            delta=self.delta,
            layout="counts",
            **self.release,
            **self.parameters,
        )
        report = done.report
        return done.labels.labels + 1, report.sanitized, report.data_independent.epsilon


@dataclass(frozen=True)
class TargetCase(DrawnCase):
    """A target stated in advance: refused, or labels of k equal rows, of which only counts tell."""

    name: str
    one: list[int]
    other: list[int]
    rows: int
    target: float
    delta: float
    sigma2: float
    draws: int = 3000

    def claim(self) -> float:
        """The target."""
        return self.target

    def scores(self, draws: int) -> list[tuple[Scores, Scores]]:
        """By outcome: a refusal, or how many rows have the first class."""
        sides = [np.array([self._outcome(votes) for _ in range(draws)]) for votes in self._pair]
        return [by_outcome(*sides)]

    @functools.cached_property
    def _mechanism(self) -> pate.GNMax:
        """Built once: it remembers what any votes cost."""
        return pate.GNMax(sum(self.one), len(self.one), sigma2=self.sigma2)

    @property
    def _pair(self) -> list[Votes]:
        return [np.tile(np.array(votes), (self.rows, 1)) for votes in (self.one, self.other)]

    def _outcome(self, votes: Votes) -> int:
        try:
            done = pate.aggregate(
                votes,
                self._mechanism,
                layout="counts",
                delta=self.delta,
                target_epsilon=self.target,
                max_queries=self.rows,
                bound="conditional",
                min_pass=0.0,
            )
        except pate.RefusedError:
            return 0
        return 1 + int(np.count_nonzero(done.labels.labels == 0))


def _rows(votes: list[int], times: int) -> list[list[int]]:
    return [votes] * times


def _labels(name: str, mechanism: str, one: Any, other: Any, **rest: Any) -> LabelCase:
    """A case of labels; further words are the mechanism's parameters, but for those of a case."""
    own = ("delta", "draws", "reading", "predictions", "prior", "runs")
    settings = {word: rest.pop(word) for word in own if word in rest}
    return LabelCase(name, mechanism, rest, one, other, settings.pop("delta", 0.01), **settings)


_K = 24
"""Queries of a run: enough that a sum over them is about normal."""
_S = 4.6
"""σ at which so many near-ties make μ = √(2k)/σ = 1.5 of μ-GDP: halved, it shows."""

LABELS = (
    # One vote turns a tie: the gap goes from 1 to −1, where the noise tells most.
    _labels("gnmax: a tie turned", "gnmax", _rows([11, 10], _K), _rows([10, 11], _K), sigma2=_S),
    _labels(
        "gnmax: three tied, one vote moves",
        "gnmax",
        _rows([10, 10, 9], _K),
        _rows([9, 10, 10], _K),
        sigma2=_S,
    ),
    # Four classes, of which the two in front change places.
    _labels(
        "gnmax: two in front of four",
        "gnmax",
        _rows([11, 10, 5, 5], _K),
        _rows([10, 11, 5, 5], _K),
        sigma2=_S,
    ),
    _labels(
        "gnmax: far from a tie, one answer",
        "gnmax",
        [[15, 5]],
        [[14, 6]],
        sigma2=2.0,
        delta=1e-4,
        draws=1 << 20,
    ),
    _labels(
        "gnmax: three teachers a record",
        "gnmax",
        _rows([12, 9], _K),
        _rows([9, 12], _K),
        sigma2=3 * _S,
        teachers_per_record=3,
    ),
    _labels(
        "gnmax: a vote appears",
        "gnmax",
        _rows([10, 10], _K),
        _rows([10, 11], _K),
        sigma2=_S,
        reading={"teachers": 21},
    ),
    # One vote moves the other way in the second query, which lies 2¹⁹ rows, a batch, further on:
    # answers to both would be the same on one side had they the same noise.
    _labels(
        "gnmax: two rows in different batches",
        "gnmax",
        [[11, 10], [11, 10]],
        [[12, 9], [10, 11]],
        sigma2=_S,
        draws=1 << 19,
    ),
    # A guess that makes a tie of what is none, and one that parts a tie.
    _labels(
        "gnmax: a tie turned that a guess makes",
        "gnmax",
        _rows([13, 8], _K),
        _rows([12, 9], _K),
        sigma2=_S,
        prior=[1] * _K,
        prior_weight=4,
    ),
    _labels(
        "gnmax: a tie turned that a guess parts",
        "gnmax",
        _rows([11, 10], _K),
        _rows([10, 11], _K),
        sigma2=_S,
        prior=[0] * _K,
        prior_weight=4,
    ),
    # A test that nearly always passes, and a tie behind it.
    _labels(
        "confident: a tie that passes",
        "confident",
        _rows([11, 10], _K),
        _rows([10, 11], _K),
        threshold=0.0,
        sigma1=30.0,
        sigma2=_S,
    ),
    # The top count at the threshold; the answer itself is hardly noisy, or hardly tells.
    _labels(
        "confident: at the threshold",
        "confident",
        _rows([16, 5], _K),
        _rows([15, 6], _K),
        threshold=15.5,
        sigma1=3.3,
        sigma2=40.0,
    ),
    _labels(
        "confident: at the threshold, near a tie",
        "confident",
        _rows([12, 9], _K),
        _rows([11, 10], _K),
        threshold=11.5,
        sigma1=4.0,
        sigma2=6.0,
    ),
    _labels(
        "confident: a vote appears at the threshold",
        "confident",
        _rows([15, 5], _K),
        _rows([16, 5], _K),
        threshold=15.5,
        sigma1=3.3,
        sigma2=40.0,
        reading={"teachers": 21},
    ),
    _labels(
        "confident: three teachers a record",
        "confident",
        _rows([18, 3], _K),
        _rows([15, 6], _K),
        threshold=16.5,
        sigma1=9.9,
        sigma2=120.0,
        teachers_per_record=3,
    ),
    # A threshold that more votes than there are teachers reach, and one that still more would.
    _labels(
        "confident: at the threshold by a guess",
        "confident",
        _rows([16, 5], _K),
        _rows([15, 6], _K),
        threshold=35.5,
        sigma1=3.3,
        sigma2=40.0,
        prior=[0] * _K,
        prior_weight=20,
    ),
    _labels(
        "confident: a guess short of the threshold",
        "confident",
        _rows([16, 5], _K),
        _rows([15, 6], _K),
        threshold=55.5,
        sigma1=3.3,
        sigma2=40.0,
        prior=[0] * _K,
        prior_weight=20,
    ),
    # max n − τp is 5.5 on one side of the threshold and 4.5 on the other; no whole numbers.
    _labels(
        "interactive: student near the threshold",
        "interactive",
        _rows([16, 5], _K),
        _rows([15, 6], _K),
        threshold=5.0,
        sigma1=3.3,
        sigma2=40.0,
        confidence=1.0,
        predictions=_rows([0.5, 0.5], _K),
    ),
    _labels(
        "interactive: student unsure of a tie",
        "interactive",
        _rows([11, 10], _K),
        _rows([10, 11], _K),
        threshold=-1.0,
        sigma1=10.0,
        sigma2=5.0,
        confidence=1.0,
        predictions=_rows([0.5, 0.5], _K),
    ),
    _labels(
        "interactive: a vote appears near the threshold",
        "interactive",
        _rows([15, 5], _K),
        _rows([16, 5], _K),
        threshold=5.0,
        sigma1=3.3,
        sigma2=40.0,
        confidence=1.0,
        predictions=_rows([0.5, 0.5], _K),
        reading={"teachers": 21},
    ),
    # A name that one teacher brought in rises above the threshold by its noise alone: that is in δ.
    _labels(
        "open-vocabulary: a tie turned at the threshold",
        "open-vocabulary",
        _rows([27, 26], _K),
        _rows([26, 27], _K),
        sigma2=_S,
        threshold=27.0,
    ),
    _labels(
        "open-vocabulary: a name appears",
        "open-vocabulary",
        _rows([27, 0], _K),
        _rows([27, 1], _K),
        sigma2=_S,
        threshold=27.0,
        reading={"teachers": 28},
    ),
    # Pure ε: the rare label of a clear majority is e^{2/b} times as frequent a vote later.
    _labels(
        "lnmax: a rare label, one answer",
        "lnmax",
        [[13, 7]],
        [[12, 8]],
        laplace_scale=1.6,
        delta=1e-6,
        draws=1 << 20,
    ),
    _labels(
        "lnmax: a tie turned",
        "lnmax",
        _rows([11, 10], _K),
        _rows([10, 11], _K),
        laplace_scale=4.5,
    ),
    _labels(
        "lnmax: three teachers a record",
        "lnmax",
        _rows([12, 9], _K),
        _rows([9, 12], _K),
        laplace_scale=13.5,
        teachers_per_record=3,
    ),
    _labels(
        "lnmax: a vote appears",
        "lnmax",
        _rows([10, 10], _K),
        _rows([10, 11], _K),
        laplace_scale=4.5,
        reading={"teachers": 21},
    ),
    # T is 6.9 at ε = 1, between the distances 7 and 8 … A tie that turns costs δ alone.
    _labels(
        "stability: around the threshold",
        "stability",
        [[28, 13]],
        [[29, 12]],
        query_epsilon=1.0,
        query_delta=0.001,
        delta=0.0006,
        draws=1 << 17,
        runs=1 << 9,
    ),
    _labels(
        "stability: two teachers a record",
        "stability",
        [[45, 16]],
        [[47, 14]],
        query_epsilon=1.0,
        query_delta=0.001,
        teachers_per_record=2,
        delta=0.0006,
        draws=1 << 17,
        runs=1 << 9,
    ),
    _labels(
        "stability: a tie turned",
        "stability",
        [[10, 10]],
        [[9, 11]],
        query_epsilon=1.0,
        query_delta=0.1,
        delta=0.0505,
        draws=1 << 13,
        runs=1 << 10,
    ),
    _labels(
        "stability: several, two of them turned",
        "stability",
        [[15, 5], [13, 7], [18, 2], [10, 10]],
        [[16, 4], [14, 6], [17, 3], [9, 11]],
        query_epsilon=1.0,
        query_delta=0.01,
        delta=0.0505,
        draws=1 << 14,
        runs=1 << 10,
    ),
)


def _distances(distances: list[int], teachers: int) -> list[list[int]]:
    """Histograms of two classes so far from instability."""
    return [[(teachers + 2 * d + 2) // 2, (teachers - 2 * d - 2) // 2] for d in distances]


def _ballots(*turned: Any) -> list[list[Any]]:
    """Nine of each class, and what others say."""
    return [[*([0] * 9), *([1] * 9), *turned]]


VOTES = (
    # Two teachers of weight 3, of three in their group, come from one record: 6 votes move.
    VoteCase(
        "groups: six votes of one record",
        "gnmax",
        {"sigma2": 6 * _S},
        _ballots(0, 0, 0) * _K,
        _ballots(1, 1, 0) * _K,
        0.01,
        reading={
            "layout": "labels",
            "classes": 2,
            "groups": pate.TeacherGroups(
                groups=(*["a"] * 18, *["b"] * 3),
                weights=(*[1] * 18, 3, 3, 1),
                teachers_per_record=(*[1] * 18, 2, 2, 2),
            ),
        },
        voters=(18, 19),
    ),
    # One teacher turns both labels, in opposite directions: gaps 1 and 1, or 3 and -1. Answers
    # would be the same on one side had the labels of a query the same noise.
    VoteCase(
        "binary: two labels a query",
        "gnmax",
        {"sigma2": _S},
        [[*[[0, 0]] * 10, *[[1, 1]] * 9, [1, 0], [0, 1]]],
        [[*[[0, 0]] * 10, *[[1, 1]] * 9, [0, 1], [0, 1]]],
        0.01,
        draws=1 << 18,
        reading={"layout": "multilabel", "teachers": 21},
        voters=(19,),
        pairs=2,
    ),
    # A first vote for one of 12,000 classes, of which those without votes are drawn together.
    VoteCase(
        "many classes: a first vote",
        "gnmax",
        {"sigma2": 1.5},
        [[5, 5, 5]],
        [[5, 5, 9]],
        0.01,
        draws=1 << 18,
        reading={"layout": "labels", "classes": 12_000, "teachers": 3},
        voters=(2,),
    ),
    # What is no name is a vote that went missing.
    VoteCase(
        "names: a vote goes missing",
        "gnmax",
        {"sigma2": _S},
        [["cat", "cat", "dog"]] * _K,
        [["cat", "?", "dog"]] * _K,
        0.01,
        draws=1 << 14,
        reading={"layout": "labels", "label_names": ("cat", "dog"), "teachers": 3},
        voters=(1,),
    ),
)

RUNS = (
    # T is 36.3. The rows answered come closer to refusal while the one refused moves away from it.
    EpochCase(
        "sparse-vector: one epoch",
        "sparse-vector",
        {"query_epsilon": 3.0, "query_delta": 1e-12, "refusals": 1},
        _distances([37] * 8 + [36], 120),
        _distances([36] * 8 + [37], 120),
        1e-5,
        draws=1 << 17,
    ),
    RunCase(
        "sparse-vector: rows turned, two epochs",
        "sparse-vector",
        {"query_epsilon": 1.0, "query_delta": 0.05, "refusals": 2},
        [[18, 2], [10, 10], [19, 1], [10, 10], [20, 0]],
        [[17, 3], [9, 11], [18, 2], [9, 11], [19, 1]],
        0.1,
        draws=1 << 12,
    ),
)

RELEASES = (
    # The cost rises by most of its smooth sensitivity, in all rows at once.
    ReleaseCase(
        "release: where the cost is steepest",
        _rows([13, 7], 200),
        _rows([12, 8], 200),
        0.01,
        {"release": "upper", "order": 3.0, "beta": 0.05, "sigma_release": 1.0},
        parameters={"laplace_scale": 1.0},
    ),
    # Local sensitivity grows several-fold from one to the other; the smooth one must not.
    ReleaseCase(
        "release: far from a tie",
        _rows([16, 4], 1000),
        _rows([15, 5], 1000),
        0.01,
        {"release": "upper", "order": 4.0, "beta": 0.05, "sigma_release": 2.0},
    ),
    # Of gnmax, 45 nats of 79 less: as much as anywhere at this order. Few draws, each of which
    # prices the worst votes anew, so that the noise is small.
    ReleaseCase(
        "release: gnmax where the cost is steepest",
        _rows([16, 5], 200),
        _rows([17, 4], 200),
        0.01,
        {"release": "upper", "order": 4.0, "beta": 0.05, "sigma_release": 0.5},
        mechanism="gnmax",
        parameters={"sigma2": 2.0},
        draws=600,
    ),
    WholeCase(
        "release: labels and number together",
        _rows([11, 10], _K),
        _rows([10, 11], _K),
        0.01,
        {"release": "upper", "order": 3.0, "beta": 0.05, "sigma_release": 1.0},
        parameters={"laplace_scale": 3.2},
        draws=1000,
    ),
    # Passes with .65 on one side, .42 on the other.
    TargetCase(
        "target: where the chance to pass changes most",
        [20, 0],
        [19, 1],
        rows=6,
        target=1.0,
        delta=0.01,
        sigma2=2.0,
    ),
)
