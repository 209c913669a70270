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
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import pate_cli as pate
from audit.bounds import INTERVALS, Scores, by_bins, by_outcome, by_row, joint, lower_bound

ANY_DELTA = 0.5  # where a run's own δ has no say in what it gives
ANY_EPSILON = 1e15  # many draws are asked as the rows of one run

Votes: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Finding:
    """One line of the table.

    Attributes:
        epsilon, delta: what the tool claims.
        proven: what the draws prove at that δ, with confidence; an exact figure where `draws` is 0.
        draws: on each of the two neighbours.
        intervals: so many may miss.
        seconds: it took.
    """

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
    def measured(self, draws: int) -> tuple[float, int]:
        """The ε that so many draws prove, or an exact figure, and how many intervals may miss."""

    def find(self, share: float = 1.0) -> Finding:
        """What it comes to; a share of the draws does for a quick look."""
        start = time.perf_counter()
        claim = self.claim()
        draws = max(2, round(self.draws * share)) if self.draws else 0
        proven, intervals = self.measured(draws)
        seconds = time.perf_counter() - start
        return Finding(claim, self.delta, proven, draws, intervals, seconds)


class DrawnCase(Case):
    """One whose ε is bounded by draws."""

    @abstractmethod
    def scores(self, draws: int) -> list[tuple[Scores, Scores]]:
        """Draws on both neighbours, scored in one or more ways."""

    def measured(self, draws: int) -> tuple[float, int]:
        """Draw and compare."""
        ways = self.scores(draws)
        proven = max(lower_bound(scores, delta=self.delta) for scores in ways)
        return proven, INTERVALS * len(ways)


_MOST_JOINT = 1 << 16


@dataclass(frozen=True)
class LabelCase(DrawnCase):
    """Labels of a mechanism, each row on its own.

    Attributes:
        name: of the case.
        mechanism: a word.
        parameters: all of the mechanism's own, so that none follows from the number of rows.
        one, other: the k queries: histograms, or what every teacher said; texts are columns.
        delta: of the claim.
        draws: of the k queries, on each side; a power of two (see `pate_cli.core.noise`: streams of
            noise have periods of powers of two, if any).
        reading: what `open_votes` is told.
        rows: what goes with each query: `predictions` of a student, guesses of a `prior`.
        runs: how many files the draws are spread over, where a file of all of them could not be
            charged.
        voters: where votes say who cast them, the places of the teachers that the record has.
        pairs: rows of votes that a query is.
    """

    name: str
    mechanism: str
    parameters: Mapping[str, Any]
    one: list[list[Any]]
    other: list[list[Any]]
    delta: float
    draws: int = 1 << 16
    reading: Mapping[str, Any] = field(default_factory=lambda: {"layout": "counts"})
    rows: Mapping[str, Any] = field(default_factory=dict)
    runs: int = 1
    voters: tuple[int, ...] = ()
    pairs: int = 1

    def claim(self) -> float:
        """What `quote` says of the k queries, the same for both."""
        epsilons = set()
        for votes in (self.one, self.other):
            with self._opened(np.array(votes)) as file:
                price = pate.quote(file, self.mechanism, delta=self.delta, **self._asked(1))
            epsilons.add(price.epsilon if price.sound else np.nan)
        if len(epsilons) > 1:
            raise ValueError(f"{self.name}: no claim, or one that depends on the votes")
        return epsilons.pop()

    def scores(self, draws: int) -> list[tuple[Scores, Scores]]:
        """By row, as if rows were independent; and whole transcripts where there are few."""
        sides = [self._labels(np.array(votes), draws) for votes in (self.one, self.other)]
        ways = [by_row(*sides)]
        rows, outcomes = sides[0].shape[1], 1 + max(int(side.max()) for side in sides)
        if rows > 1 and outcomes**rows <= _MOST_JOINT:
            ways.append(by_outcome(*(joint(side, outcomes) for side in sides)))
        return ways

    def _labels(self, votes: NDArray[Any], draws: int) -> NDArray[np.int64]:
        """[draws, rows of votes]: 0 for no label, else the label plus one."""
        each = -(-draws // self.runs)
        parts = []
        for _ in range(self.runs):
            with self._opened(np.repeat(votes, each, axis=0)) as file:
                done = aggregated(file, self.mechanism, **self._asked(each))
            found = done.labels.labels.reshape(len(votes), each, self.pairs)
            parts.append(found.swapaxes(0, 1).reshape(each, -1) + 1)
        return np.concatenate(parts).astype(np.int64)

    def _asked(self, times: int) -> dict[str, Any]:
        rows = {name: np.repeat(np.array(of), times, axis=0) for name, of in self.rows.items()}
        return {**self.parameters, **rows}

    def _opened(self, votes: NDArray[Any]) -> contextlib.AbstractContextManager[Any]:
        if votes.dtype.kind != "U":
            return pate.open_votes(votes, **self.reading)
        names = [f"teacher_{place}" for place in range(votes.shape[1])]
        return pate.open_votes(pa.table(dict(zip(names, votes.T, strict=True))), **self.reading)


def aggregated(votes: Any, mechanism: str, **asked: Any) -> Any:
    """A run of which only the labels are looked at."""
    return pate.aggregate(votes, mechanism, delta=ANY_DELTA, max_epsilon=ANY_EPSILON, **asked)


@dataclass(frozen=True)
class RunCase(LabelCase):
    """The same for a mechanism whose rows depend on each other: run after run."""

    def _labels(self, votes: Votes, draws: int) -> NDArray[np.int64]:
        def labels() -> Any:
            with self._opened(votes) as file:
                done = pate.aggregate(file, self.mechanism, delta=self.delta, **self.parameters)
            return done.labels.labels

        return np.stack([labels() for _ in range(draws)]).astype(np.int64) + 1


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
        asked = {**self.parameters, **self.reading, "refusals": len(rows)}
        done = aggregated(rows, self.mechanism, **asked)
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
    release: Mapping[str, Any]
    delta: float = 0.01
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
        asked = {**self.release, **self.parameters, "release": "none", "keep_ledger": True}
        asked |= {"delta": self.delta, "layout": "counts", "max_epsilon": ANY_EPSILON}
        return pate.aggregate(np.array(votes), self.mechanism, **asked).ledger


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
        asked = {"delta": self.delta, "layout": "counts", **self.release, **self.parameters}
        done = pate.aggregate(np.array(votes), self.mechanism, **asked)
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
    sigma2: float
    delta: float = 0.01
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
        asked = {"layout": "counts", "delta": self.delta, "max_queries": self.rows}
        asked |= {"target_epsilon": self.target, "bound": "conditional", "min_pass": 0.0}
        try:
            done = pate.aggregate(votes, self._mechanism, **asked)
        except pate.RefusedError:
            return 0
        return 1 + int(np.count_nonzero(done.labels.labels == 0))


_K = 24
"""Queries of a run: enough that a sum over them is about normal."""
_S = 4.6
"""σ at which so many near-ties make μ = √(2k)/σ = 1.5 of μ-GDP: halved, it shows."""


def _of(name: str, one: list[Any], other: list[Any], times: int = _K, **rest: Any) -> LabelCase:
    """The same query so many times; what no case knows of is the mechanism's, the name's first."""
    own = ("delta", "draws", "reading", "rows", "runs", "voters", "pairs")
    settings = {"delta": 0.01} | {word: rest.pop(word) for word in own if word in rest}
    mechanism = rest.pop("mechanism", name.partition(":")[0])
    return LabelCase(name, mechanism, rest, [one] * times, [other] * times, **settings)


def _each(name: str, one: list[Any], other: list[Any], **rest: Any) -> LabelCase:
    """Queries that differ."""
    case = _of(name, [], [], **rest)
    return replace(case, one=one, other=other)


_APPEARS = {"layout": "counts", "teachers": 21}
_AT = {"threshold": 15.5, "sigma1": 3.3, "sigma2": 40.0}
"""The top count at the threshold, and an answer that hardly tells."""
_NEAR = {"threshold": 5.0, "sigma1": 3.3, "sigma2": 40.0, "confidence": 1.0}
_UNSURE = {"predictions": [[0.5, 0.5]] * _K}
_STABLE = {"query_epsilon": 1.0, "query_delta": 0.001, "delta": 0.0006, "times": 1}
_FILES = {"draws": 1 << 17, "runs": 1 << 9}


def _guess(place: int) -> dict[str, list[int]]:
    return {"prior": [place] * _K}


LABELS = (
    # One vote turns a tie: the gap goes from 1 to −1, where the noise tells most.
    _of("gnmax: a tie turned", [11, 10], [10, 11], sigma2=_S),
    _of("gnmax: three tied, one vote moves", [10, 10, 9], [9, 10, 10], sigma2=_S),
    _of("gnmax: two in front of four", [11, 10, 5, 5], [10, 11, 5, 5], sigma2=_S),
    _of("gnmax: far from a tie, one answer", [15, 5], [14, 6], 1, sigma2=2.0, delta=1e-4,
        draws=1 << 20),
    _of("gnmax: three teachers a record", [12, 9], [9, 12], sigma2=3 * _S, teachers_per_record=3),
    _of("gnmax: a vote appears", [10, 10], [10, 11], sigma2=_S, reading=_APPEARS),
    # One vote moves the other way in the second query, which lies 2¹⁹ rows, a batch, further on:
    # answers to both would be the same on one side had they the same noise.
    _each("gnmax: two rows in different batches", [[11, 10], [11, 10]], [[12, 9], [10, 11]],
          sigma2=_S, draws=1 << 19),
    # A guess that makes a tie of what is none, and one that parts a tie.
    _of("gnmax: a tie turned that a guess makes", [13, 8], [12, 9], sigma2=_S, rows=_guess(1),
        prior_weight=4),
    _of("gnmax: a tie turned that a guess parts", [11, 10], [10, 11], sigma2=_S, rows=_guess(0),
        prior_weight=4),
    # A test that nearly always passes, and a tie behind it.
    _of("confident: a tie that passes", [11, 10], [10, 11], threshold=0.0, sigma1=30.0, sigma2=_S),
    _of("confident: at the threshold", [16, 5], [15, 6], **_AT),
    _of("confident: at the threshold, near a tie", [12, 9], [11, 10], threshold=11.5, sigma1=4.0,
        sigma2=6.0),
    _of("confident: a vote appears at the threshold", [15, 5], [16, 5], **_AT, reading=_APPEARS),
    _of("confident: three teachers a record", [18, 3], [15, 6], threshold=16.5, sigma1=9.9,
        sigma2=120.0, teachers_per_record=3),
    # A threshold that more votes than there are teachers reach, and one that still more would.
    _of("confident: at the threshold by a guess", [16, 5], [15, 6], **_AT | {"threshold": 35.5},
        rows=_guess(0), prior_weight=20),
    _of("confident: a guess short of the threshold", [16, 5], [15, 6], **_AT | {"threshold": 55.5},
        rows=_guess(0), prior_weight=20),
    # max n − τp is 5.5 on one side of the threshold and 4.5 on the other; no whole numbers.
    _of("interactive: student near the threshold", [16, 5], [15, 6], **_NEAR, rows=_UNSURE),
    _of("interactive: student unsure of a tie", [11, 10], [10, 11], threshold=-1.0, sigma1=10.0,
        sigma2=5.0, confidence=1.0, rows=_UNSURE),
    _of("interactive: a vote appears near the threshold", [15, 5], [16, 5], **_NEAR, rows=_UNSURE,
        reading=_APPEARS),
    # A name that one teacher brought in rises above the threshold by its noise alone: that is in δ.
    _of("open-vocabulary: a tie turned at the threshold", [27, 26], [26, 27], sigma2=_S,
        threshold=27.0),
    _of("open-vocabulary: a name appears", [27, 0], [27, 1], sigma2=_S, threshold=27.0,
        reading={"layout": "counts", "teachers": 28}),
    # Pure ε: the rare label of a clear majority is e^{2/b} times as frequent a vote later.
    _of("lnmax: a rare label, one answer", [13, 7], [12, 8], 1, laplace_scale=1.6, delta=1e-6,
        draws=1 << 20),
    _of("lnmax: a tie turned", [11, 10], [10, 11], laplace_scale=4.5),
    _of("lnmax: three teachers a record", [12, 9], [9, 12], laplace_scale=13.5,
        teachers_per_record=3),
    _of("lnmax: a vote appears", [10, 10], [10, 11], laplace_scale=4.5, reading=_APPEARS),
    # T is 6.9 at ε = 1, between the distances 7 and 8 … A tie that turns costs δ alone.
    _of("stability: around the threshold", [28, 13], [29, 12], **_STABLE, **_FILES),
    _of("stability: two teachers a record", [45, 16], [47, 14], **_STABLE, **_FILES,
        teachers_per_record=2),
    _of("stability: a tie turned", [10, 10], [9, 11],
        **_STABLE | {"query_delta": 0.1, "delta": 0.0505}, draws=1 << 13, runs=1 << 10),
    _each("stability: several, two of them turned", [[15, 5], [13, 7], [18, 2], [10, 10]],
          [[16, 4], [14, 6], [17, 3], [9, 11]], query_epsilon=1.0, query_delta=0.01, delta=0.0505,
          draws=1 << 14, runs=1 << 10),
)  # fmt: skip


def _distances(distances: list[int], teachers: int) -> list[list[int]]:
    """Histograms of two classes so far from instability."""
    return [[(teachers + 2 * d + 2) // 2, (teachers - 2 * d - 2) // 2] for d in distances]


_GROUPS = pate.TeacherGroups(
    groups=(*["a"] * 18, *["b"] * 3),
    weights=(*[1] * 18, 3, 3, 1),
    teachers_per_record=(*[1] * 18, 2, 2, 2),
)
_EVEN = [*[0] * 9, *[1] * 9]
_BOTH = [*[[0, 0]] * 10, *[[1, 1]] * 9]
VOTES = (
    # Two teachers of weight 3, of three in their group, come from one record: 6 votes move.
    _of("groups: six votes of one record", [*_EVEN, 0, 0, 0], [*_EVEN, 1, 1, 0], mechanism="gnmax",
        sigma2=6 * _S, reading={"layout": "labels", "classes": 2, "groups": _GROUPS},
        voters=(18, 19)),
    # One teacher turns both labels, in opposite directions: gaps 1 and 1, or 3 and -1. Answers
    # would be the same on one side had the labels of a query the same noise.
    _of("binary: two labels a query", [*_BOTH, [1, 0], [0, 1]], [*_BOTH, [0, 1], [0, 1]], 1,
        mechanism="gnmax", sigma2=_S, draws=1 << 18, voters=(19,), pairs=2,
        reading={"layout": "multilabel", "teachers": 21}),
    # A first vote for one of 12,000 classes, of which those without votes are drawn together.
    _of("many classes: a first vote", [5, 5, 5], [5, 5, 9], 1, mechanism="gnmax", sigma2=1.5,
        draws=1 << 18, voters=(2,),
        reading={"layout": "labels", "classes": 12_000, "teachers": 3}),
    # What is no name is a vote that went missing.
    _of("names: a vote goes missing", ["cat", "cat", "dog"], ["cat", "?", "dog"],
        mechanism="gnmax", sigma2=_S, draws=1 << 14, voters=(1,),
        reading={"layout": "labels", "label_names": ("cat", "dog"), "teachers": 3}),
)  # fmt: skip

RUNS = (
    # T is 36.3. The rows answered come closer to refusal while the one refused moves away from it.
    EpochCase(
        "sparse-vector: one epoch", "sparse-vector",
        {"query_epsilon": 3.0, "query_delta": 1e-12, "refusals": 1},
        _distances([37] * 8 + [36], 120), _distances([36] * 8 + [37], 120), 1e-5, draws=1 << 17,
    ),
    RunCase(
        "sparse-vector: rows turned, two epochs", "sparse-vector",
        {"query_epsilon": 1.0, "query_delta": 0.05, "refusals": 2},
        [[18, 2], [10, 10], [19, 1], [10, 10], [20, 0]],
        [[17, 3], [9, 11], [18, 2], [9, 11], [19, 1]], 0.1, draws=1 << 12,
    ),
)  # fmt: skip

_DRAWN = {"release": "upper", "order": 4.0, "beta": 0.05}
RELEASES = (
    # The cost rises by most of its smooth sensitivity, in all rows at once.
    ReleaseCase(
        "release: where the cost is steepest", [[13, 7]] * 200, [[12, 8]] * 200,
        _DRAWN | {"order": 3.0, "sigma_release": 1.0},
    ),
    # Local sensitivity grows several-fold from one to the other; the smooth one must not.
    ReleaseCase(
        "release: far from a tie", [[16, 4]] * 1000, [[15, 5]] * 1000,
        _DRAWN | {"sigma_release": 2.0},
    ),
    # Of gnmax, 45 nats of 79 less: as much as anywhere at this order. Few draws, each of which
    # prices the worst votes anew, so that the noise is small.
    ReleaseCase(
        "release: gnmax where the cost is steepest", [[16, 5]] * 200, [[17, 4]] * 200,
        _DRAWN | {"sigma_release": 0.5}, mechanism="gnmax", parameters={"sigma2": 2.0}, draws=600,
    ),
    WholeCase(
        "release: labels and number together", [[11, 10]] * _K, [[10, 11]] * _K,
        _DRAWN | {"order": 3.0, "sigma_release": 1.0}, parameters={"laplace_scale": 3.2},
        draws=1000,
    ),
    # Passes with .65 on one side, .42 on the other.
    TargetCase(
        "target: where the chance to pass changes most", [20, 0], [19, 1], rows=6, target=1.0,
        sigma2=2.0,
    ),
)  # fmt: skip
