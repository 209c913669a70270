"""Synthetic teacher ensembles: public stand-ins for votes, to tune and test on.

Nothing here comes from real teachers. A query has a true class, drawn with the given imbalance, and
a difficulty: the probability that a teacher is right is Beta-distributed with the given mean. Wrong
votes go to the other classes by a Dirichlet draw with small weights, so that a query is confused
with a few classes and not with all. Given the query, teachers err independently, so the histogram
is multinomial.

For many classes the Dirichlet weights are never drawn. Wrong votes can be drawn one after the other
from an urn. With weight α on each of w classes, the vote after i wrong votes repeats one of them,
each equally often, with probability i/(i + α w); else it goes to any of the w classes. This gives
the same distribution (Blackwell and MacQueen 1973), in memory that grows with the teachers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import DENSE_CLASSES, Floats, Histograms, Ints, SparseCounts
from pate_cli.core.checks import check_nonnegative, check_positive
from pate_cli.core.errors import ParameterError, UsageError

_REQUIRED = ("teachers", "classes", "queries")
_SHARES = ("agreement", "spread", "confusion", "imbalance", "prior")
_FIELDS = {**dict.fromkeys(_REQUIRED, int), **dict.fromkeys(_SHARES, float), "seed": int}
_PRIOR_STREAM = 1


@dataclass(frozen=True)
class SyntheticEnsemble:
    """Made-up votes of teachers who agree about as much as yours might.

    Use it to try settings before there are votes, or without spending ε on real votes. `draw`
    returns the histograms and the true classes, and `tune(synthetic=...)` takes the same numbers.

        >>> made_up = pate.SyntheticEnsemble(teachers=100, classes=4, queries=50)
        >>> histograms, truth = made_up.draw(seed=1)
        >>> histograms[0], int(truth[0])
        (array([  0,   0, 100,   0]), 2)
        >>> pate.aggregate(histograms, layout="counts", seed=2).labels
        <Labels: 26 of 50 queries labelled>

    Attributes:
        teachers: τ ≥ 1.
        classes: m ≥ 2.
        queries: number of histograms, ≥ 1.
        agreement: mean probability that a teacher votes for the true class, in (0, 1).
        spread: how much queries differ, in [0, 1): 0 makes all alike; close to 1 splits them into
            easy and hopeless ones.
        confusion: Dirichlet weight per wrong class, > 0; small values confuse with few classes.
        imbalance: Zipf exponent of the class frequencies, ≥ 0; 0 is balanced.
    """

    teachers: int
    classes: int
    queries: int
    agreement: float = 0.85
    spread: float = 0.3
    confusion: float = 0.3
    imbalance: float = 0.0

    def __post_init__(self) -> None:
        if self.teachers < 1 or self.classes < 2 or self.queries < 1:
            raise ParameterError(
                "a synthetic ensemble needs teachers >= 1, classes >= 2 and queries >= 1, got "
                f"{self.teachers}, {self.classes} and {self.queries}"
            )
        if not 0.0 < self.agreement < 1.0:
            raise ParameterError(f"agreement must be between 0 and 1, got {self.agreement}")
        if not 0.0 <= self.spread < 1.0:
            raise ParameterError(f"spread must be at least 0 and below 1, got {self.spread}")
        check_positive("`confusion`", self.confusion)
        check_nonnegative("`imbalance`", self.imbalance)

    def draw(self, seed: int) -> tuple[Histograms, Ints]:
        """Return (histograms [queries, classes], true classes [queries]) for a seed ≥ 0.

        The histograms of more than DENSE_CLASSES classes are sparse.
        """
        random = np.random.default_rng(seed)
        weights = np.arange(1, self.classes + 1, dtype=np.float64) ** -self.imbalance
        truth = random.choice(self.classes, size=self.queries, p=weights / weights.sum())
        right = np.full(self.queries, self.agreement)
        if self.spread > 1e-12:  # below, the Beta draw would overflow, and the difference is nil
            concentration = (1.0 - self.spread) / self.spread
            right = random.beta(
                self.agreement * concentration,
                (1.0 - self.agreement) * concentration,
                size=self.queries,
            )
        if self.classes > DENSE_CLASSES:
            return self._by_urn(random, truth, right), truth
        wrong = random.dirichlet(np.full(self.classes - 1, self.confusion), size=self.queries)
        # Very small weights can underflow to an all-zero draw; then all classes get equal weights.
        wrong = np.where(np.isfinite(wrong), wrong, 1.0 / (self.classes - 1))
        chances = np.empty((self.queries, self.classes))
        rows = np.arange(self.queries)
        others = np.ones_like(chances, dtype=bool)
        others[rows, truth] = False
        chances[rows, truth] = right
        chances[others] = ((1.0 - right)[:, None] * wrong).ravel()
        chances /= chances.sum(axis=1, keepdims=True)
        return random.multinomial(self.teachers, chances).astype(np.int64), truth

    def _by_urn(self, random: np.random.Generator, truth: Ints, right: Floats) -> SparseCounts:
        """Return histograms of very many classes, whose wrong votes are drawn from an urn."""
        others = self.classes - 1
        fresh = random.integers(others, size=(self.queries, self.teachers))
        errs = random.random((self.queries, self.teachers)) >= right[:, None]
        wrong = from_urn(random, fresh, errs, weight=self.confusion * others)
        # Classes are numbered without the true class.
        votes = np.where(errs, wrong + (wrong >= truth[:, None]), truth[:, None])
        return SparseCounts.of_votes(votes, self.classes)


def from_urn(
    random: np.random.Generator, fresh: Ints, errs: NDArray[np.bool_], *, weight: float
) -> Ints:
    """Return wrong votes from an urn, teacher by teacher: an earlier error again, or a fresh one.

    Args:
        random: the random generator.
        fresh: the error that each teacher makes if it repeats none, [queries, teachers].
        errs: which teachers vote wrong.
        weight: the weight of a fresh error, if an earlier error has weight 1.

    Returns:
        The wrong class of each teacher, [queries, teachers]; entries of teachers who do not err are
        meaningless.
    """
    queries, teachers = fresh.shape
    rows, made = np.arange(queries), np.zeros(queries, dtype=np.int64)
    errors, found = np.zeros_like(fresh), np.empty_like(fresh)
    for teacher in range(teachers):
        # A place among the earlier errors, or beyond them with the weight of all fresh errors.
        place = random.random(queries) * (made + weight)
        earlier = errors[rows, np.minimum(place, teachers - 1).astype(np.int64)]
        found[:, teacher] = np.where(place < made, earlier, fresh[:, teacher])
        errors[rows, made] = found[:, teacher]
        made += errs[:, teacher]
    return found


def from_recipe(text: str) -> tuple[Histograms, Ints | None, dict[str, float]]:
    """Return votes of a made-up ensemble by a text such as `teachers=50,classes=3,queries=100`.

    Args:
        text: `name=value` separated by commas: teachers, classes and queries, and optionally
            agreement, spread, confusion, imbalance, seed, and prior (how often a made-up prior
            is right).

    Returns:
        Histograms, the prior's class for each query or None, and every number of the recipe.

    Raises:
        UsageError: a field is unknown, repeated, missing or malformed.
        ParameterError: a number is out of range.
    """
    given = _numbers(text)
    seed, accuracy = int(given.pop("seed", 0)), given.pop("prior", None)
    if seed < 0:
        raise UsageError(f"`synthetic`: seed must be at least 0, got {seed}")
    if accuracy is not None and not 0.0 <= accuracy <= 1.0:
        raise ParameterError(f"`synthetic`: prior must be between 0 and 1, got {accuracy}")
    ensemble = SyntheticEnsemble(**given)
    counts, truth = ensemble.draw(seed)
    numbers = {**asdict(ensemble), "seed": seed}
    if accuracy is None:
        return counts, None, numbers
    # The votes are the same as without a prior.
    random = np.random.default_rng([seed, _PRIOR_STREAM])
    wrong = random.random(truth.size) >= accuracy
    shift = np.where(wrong, random.integers(1, ensemble.classes, truth.size), 0)
    return counts, (truth + shift) % ensemble.classes, {**numbers, "prior": accuracy}


def _numbers(text: str) -> dict[str, Any]:
    """Return the numbers of a recipe by name."""
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, given, value = (piece.strip() for piece in part.partition("="))
        if not given or name not in _FIELDS or name in found:
            raise UsageError(
                f"`synthetic` takes each of {', '.join(_FIELDS)} once, as name=value, got {part!r}"
            )
        try:
            found[name] = _FIELDS[name](value)
        except ValueError:
            raise UsageError(f"`synthetic`: {name} must be a number, got {value!r}") from None
    if missing := [name for name in _REQUIRED if name not in found]:
        raise UsageError(f"`synthetic` needs {', '.join(missing)}")
    return found
