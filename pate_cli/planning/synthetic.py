"""Made-up votes of teachers who do not exist: public votes for trying settings, and for tests.

Nothing in this module comes from real teachers. Each query has a true class and a difficulty. True
classes are drawn with the given imbalance. The difficulty of a query is expressed by the
probability that a teacher is right on this query. The probability that a teacher is right has a
Beta distribution over the queries, with the mean `agreement`. Wrong votes are spread over the other
classes by a Dirichlet draw with small weights, so that teachers confuse a query with a few classes
only. For a given query, teachers err independently of each other, so its histogram is multinomial.

For many classes, wrong votes are drawn one after the other from an urn, because the Dirichlet
weights would need much memory. Let w be the number of wrong classes, and let each of them have the
Dirichlet weight α. After i wrong votes, the next wrong vote repeats one of these i votes with
probability i/(i + α w), and otherwise is for a random class of the w classes. Histograms from
the urn have the same distribution as histograms with Dirichlet weights (Blackwell and MacQueen
1973). The memory for draws from the urn does not grow with the number of classes.
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

    Use these votes to try settings before there are real votes, or without spending ε on real
    votes. `draw` returns histograms and true classes. `tune(synthetic=...)` takes the attributes of
    this class as a text.

        >>> made_up = pate.SyntheticEnsemble(teachers=100, classes=4, queries=50)
        >>> histograms, truth = made_up.draw(seed=1)
        >>> histograms[0], int(truth[0])
        (array([  0,   0, 100,   0]), 2)
        >>> pate.aggregate(histograms, layout="counts", seed=2).labels
        <Labels: 26 of 50 queries labelled>

    Attributes:
        teachers: τ ≥ 1, the number of teachers.
        classes: m ≥ 2, the number of classes.
        queries: the number of histograms, ≥ 1.
        agreement: the mean probability that a teacher votes for the true class, in (0, 1).
        spread: how much the difficulty of queries differs, in [0, 1). With spread 0 all queries are
            equally difficult; with spread almost 1, teachers are nearly always right on some
            queries, and nearly always wrong on all others.
        confusion: the Dirichlet weight of each wrong class, > 0; if it is small, the wrong votes on
            a query are for few classes.
        imbalance: the Zipf exponent of the class frequencies, ≥ 0; with 0 all classes are equally
            frequent.
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

        With more than DENSE_CLASSES classes, the histograms are sparse.
        """
        random = np.random.default_rng(seed)
        weights = np.arange(1, self.classes + 1, dtype=np.float64) ** -self.imbalance
        truth = random.choice(self.classes, size=self.queries, p=weights / weights.sum())
        right = np.full(self.queries, self.agreement)
        if self.spread > 1e-12:  # a smaller spread has no effect, and the Beta draw would overflow
            concentration = (1.0 - self.spread) / self.spread
            right = random.beta(
                self.agreement * concentration,
                (1.0 - self.agreement) * concentration,
                size=self.queries,
            )
        if self.classes > DENSE_CLASSES:
            return self._by_urn(random, truth, right), truth
        wrong = random.dirichlet(np.full(self.classes - 1, self.confusion), size=self.queries)
        # With very small weights a draw can be NaN; then all wrong classes are equally likely.
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
        """Return sparse histograms of very many classes; `from_urn` draws the wrong votes."""
        others = self.classes - 1
        fresh = random.integers(others, size=(self.queries, self.teachers))
        errs = random.random((self.queries, self.teachers)) >= right[:, None]
        wrong = from_urn(random, fresh, errs, weight=self.confusion * others)
        # The urn numbers wrong classes only, so numbers from the true class on are 1 too small.
        votes = np.where(errs, wrong + (wrong >= truth[:, None]), truth[:, None])
        return SparseCounts.of_votes(votes, self.classes)


def from_urn(
    random: np.random.Generator, fresh: Ints, errs: NDArray[np.bool_], *, weight: float
) -> Ints:
    """Return wrong votes: each teacher repeats an earlier wrong vote, or makes a fresh error.

    Args:
        random: the random generator.
        fresh: the wrong class of each teacher who repeats no earlier vote, [queries, teachers].
        errs: which teachers vote wrong, [queries, teachers].
        weight: the weight of a fresh error, where each earlier wrong vote has weight 1.

    Returns:
        The wrong class of each teacher, [queries, teachers]. If a teacher votes right on a query,
        the entry for this teacher and query is arbitrary, and callers must ignore it.
    """
    queries, teachers = fresh.shape
    rows, made = np.arange(queries), np.zeros(queries, dtype=np.int64)
    errors, found = np.zeros_like(fresh), np.empty_like(fresh)
    for teacher in range(teachers):
        # A number below `made` chooses an earlier wrong vote, and a larger one a fresh error.
        place = random.random(queries) * (made + weight)
        earlier = errors[rows, np.minimum(place, teachers - 1).astype(np.int64)]
        found[:, teacher] = np.where(place < made, earlier, fresh[:, teacher])
        errors[rows, made] = found[:, teacher]
        made += errs[:, teacher]
    return found


def from_recipe(text: str) -> tuple[Histograms, Ints | None, dict[str, float]]:
    """Return made-up votes for a text such as `teachers=50,classes=3,queries=100`.

    Args:
        text: `name=value` pairs with commas between them. The names `teachers`, `classes` and
            `queries` are required. The names `agreement`, `spread`, `confusion`, `imbalance`,
            `seed` and `prior` are optional; `prior` is how often a made-up prior is right.

    Returns:
        Histograms, the class that the prior guesses for each query (None without a prior), and
        every number of the recipe by name.

    Raises:
        UsageError: a name is unknown, repeated or missing, or a value is no number.
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
    # The prior has its own random numbers, so that it does not change the votes.
    random = np.random.default_rng([seed, _PRIOR_STREAM])
    wrong = random.random(truth.size) >= accuracy
    shift = np.where(wrong, random.integers(1, ensemble.classes, truth.size), 0)
    return counts, (truth + shift) % ensemble.classes, {**numbers, "prior": accuracy}


def _numbers(text: str) -> dict[str, Any]:
    """Return the numbers in the text of a recipe, by name."""
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, given, value = (piece.strip() for piece in part.partition("="))
        if not given or name not in _FIELDS or name in found:
            raise UsageError(
                f"`synthetic`: write name=value, with each name at most once, not {part!r}; "
                f"the names are {', '.join(_FIELDS)}"
            )
        try:
            found[name] = _FIELDS[name](value)
        except ValueError:
            raise UsageError(f"`synthetic`: {name} must be a number, got {value!r}") from None
    if missing := [name for name in _REQUIRED if name not in found]:
        raise UsageError(f"`synthetic` needs {', '.join(missing)}")
    return found
