"""A public guess for every query, which teachers correct instead of labelling from nothing.

A prior of weight B is B more teachers, who vote as the guess does: all for its class, or shared out
over classes by its probabilities. Nobody's record moves those votes, so neighbours are what they
were, and histograms are those of τ + B teachers: whatever holds for all of these holds here
(accounting/THEORY.md, section 19). Where there is no guess, they do not vote.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import Counts, Histograms, Ints, SparseCounts
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, VoteError, quoted
from pate_cli.core.label_set import LabelSet
from pate_cli.votes.batches import Reader, VoteBatch
from pate_cli.votes.beside.side_files import (
    SideRows,
    as_whole,
    check_label_set,
    columns_of_labels,
    labels_in,
    of_pairs,
    read_side,
    side_by_side,
    understood,
)
from pate_cli.votes.checks import ABSENT
from pate_cli.votes.columns import LABEL
from pate_cli.votes.matching import Matching, Names, order_of, places_of_words
from pate_cli.votes.ranges import Stretch
from pate_cli.votes.sources.mapped import in_memory
from pate_cli.votes.unnamed import NameTally

NO_GUESS = -1
"""The guess of a query about which the prior says nothing."""

_NOUN = "the prior"
_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Prior:
    """Guesses, matched to votes by id or by order. Public, or made of what was released before.

    For where a model of public origin has a label for every query already: the teachers then pay
    for the labels that they correct.

        >>> guesses = pate.Prior([0, 1, -1])
        >>> votes = [[50, 0], [30, 20], [10, 40]]
        >>> done = pate.aggregate(votes, "gnmax", layout="counts", prior=guesses, prior_weight=10,
        ...                       seed=1)
        >>> list(done.labels)
        [0, 1, 1]

    Attributes:
        guesses: [queries] classes from 0, NO_GUESS where there is none; or places in `words`; or
            probabilities [queries, classes], rows of which sum to 1 within 1e-6. Of several labels
            a query, each by itself: [queries, labels], 1 for yes, 0 for no, NO_GUESS.
        ids: the queries' ids, or None when rows match votes by their order.
        words: distinct texts, of which guesses are places, or which columns of probabilities are
            called; None for numbers.
        sha256: of the file it was read from, or, of several and of an array, of the numbers
            themselves; 64 hexadecimal digits.
    """

    guesses: NDArray[Any]
    ids: Sequence[Any] | NDArray[Any] | None = None
    words: tuple[str, ...] | None = None
    sha256: str = ""
    _rows: SideRows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            values = np.asarray(self.guesses)
        except (TypeError, ValueError):
            raise ParameterError(f"{_NOUN} must be an array, a row a query") from None
        if values.dtype.kind not in "iuf" or values.ndim not in (1, 2) or 0 in values.shape:
            raise ParameterError(
                f"{_NOUN} must be whole numbers [queries], or probabilities [queries, classes], "
                f"got {values.dtype} of shape {values.shape}"
            )
        values = in_memory(values, _NOUN)
        if values.dtype.kind == "f":
            values = _probabilities(values)
        else:
            values = as_whole(values)
            _refuse(values < NO_GUESS, f"a guess below {NO_GUESS}, which stands for none")
        object.__setattr__(self, "guesses", values)
        object.__setattr__(self, "_rows", SideRows("guesses of the prior", len(values), self.ids))
        if not self.sha256:
            content = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
            object.__setattr__(self, "sha256", hashlib.sha256(content.tobytes()).hexdigest())

    @property
    def shares(self) -> bool:
        """Whether it gives probabilities."""
        return self.guesses.dtype.kind == "f"

    def named(self, names: Names | None, classes: int) -> Prior:
        """With texts turned into the classes they match, and probabilities in their order.

        Without names true and false are classes 1 and 0.

        Raises:
            VoteError: there are texts and no names, or a text that is no name; other classes.
        """
        found = self if self.words is None else self._renamed(self.words, names)
        if found.shares and found.guesses.shape[1] != classes:
            raise VoteError(
                f"{_NOUN} has probabilities of {found.guesses.shape[1]} classes, the votes have "
                f"{classes}"
            )
        if not found.shares:
            _refuse(found.guesses >= classes, f"a guess that is not among the {classes} classes")
        return found

    def _renamed(self, words: tuple[str, ...], names: Names | None) -> Prior:
        if self.shares:
            order = order_of(words, names)
            guesses = self.guesses if order is None else self.guesses[:, order]
            return replace(self, guesses=guesses, words=None)
        found = places_of_words(words, names)
        if found is None:
            raise VoteError(f"{_NOUN}: its guesses are texts; give `label_names`")
        if ABSENT in found:
            raise VoteError(
                f"{_NOUN}: {quoted(words[found.index(ABSENT)])} is none of `label_names`; an empty "
                "text stands for no guess"
            )
        places = np.array([*found, NO_GUESS])
        return replace(self, guesses=places[self.guesses], words=None)

    def votes(self, ids: Any, first_row: int, *, weight: int, classes: int) -> Counts | Ints:
        """How it votes on the queries with these ids, or from `first_row` on.

        [queries, classes] shared out by probabilities, `weight` in all; or [queries], the class
        that gets all of them, NO_GUESS for none.
        """
        if not self.shares and self.guesses.ndim == 2:
            return of_pairs(self._rows, self.guesses, ids, first_row, NO_GUESS).astype(np.int64)
        rows = self._rows.of(ids, first_row)
        if not self.shares:
            return np.where(rows < 0, NO_GUESS, self.guesses[rows]).astype(np.int64)
        votes = shared_out(self.guesses[rows].astype(np.float64), weight)
        return np.where(rows[:, None] < 0, 0, votes)

    def guessed(self, ids: Any, first_row: int) -> int:
        """How many of these queries it has a guess for."""
        if not self.shares and self.guesses.ndim == 2:
            found = of_pairs(self._rows, self.guesses, ids, first_row, NO_GUESS)
            return int(np.count_nonzero(found >= 0))
        rows = self._rows.of(ids, first_row)
        none = np.zeros(len(rows), dtype=bool) if self.shares else self.guesses[rows] < 0
        return int(np.count_nonzero((rows >= 0) & ~none))


def shared_out(probabilities: NDArray[np.float64], weight: int) -> Counts:
    """`weight` votes by largest remainder, ties to the first class, [queries, classes]."""
    exact = probabilities * weight
    whole = np.floor(exact).astype(np.int64)
    left = weight - whole.sum(axis=1)
    # Rows sum to 1 within a tolerance: one vote too many may have been given, never two.
    order = np.argsort(whole - exact, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(order.shape[1])[None, :], axis=1)
    whole += rank < left[:, None]
    over = np.maximum(whole.sum(axis=1) - weight, 0)
    whole[np.arange(len(whole)), np.argmax(whole, axis=1)] -= over
    return whole


def _probabilities(values: NDArray[Any]) -> NDArray[np.float64]:
    found = values.astype(np.float64)
    if found.ndim != 2:
        raise ParameterError(f"{_NOUN} of probabilities must be [queries, classes]")
    bad = ~((found >= 0.0) & (found <= 1.0 + _SUM_TOLERANCE))
    off = np.abs(np.where(bad, 0.0, found).sum(axis=1) - 1.0) > _SUM_TOLERANCE
    _refuse(bad | off[:, np.newaxis], "no probabilities that sum to 1 within 1e-6")
    return found / found.sum(axis=1, keepdims=True)


def _refuse(bad: NDArray[np.bool_], what: str) -> None:
    rows = np.argwhere(bad)
    if rows.size:
        raise VoteError(f"{_NOUN}: row {rows[0, 0]} has {what}")


@dataclass(frozen=True, eq=False)
class PriorReader:
    """Histograms with the votes of a prior among them.

    Attributes:
        source: the teachers' alone.
        prior: what is added; its guesses are classes.
        weight: B, whole votes.
        classes: m.
    """

    source: Reader
    prior: Prior
    weight: int
    classes: int

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """See Reader."""
        return self.source.stretches

    @property
    def portable(self) -> bool:
        """See Reader; the prior is public and travels along."""
        return self.source.portable

    @property
    def width(self) -> int:
        """See Reader."""
        return self.source.width

    def tally(self, matching: Matching, stop: int, *, until_named: bool = False) -> NameTally:
        """See Reader."""
        return self.source.tally(matching, stop, until_named=until_named)

    def batches(self, start: int, stop: int) -> Iterator[VoteBatch]:
        """See Reader."""
        if not self.weight:
            yield from self.source.batches(start, stop)
            return
        for batch in self.source.batches(start, stop):
            votes = self.prior.votes(
                batch.ids, batch.first_row, weight=self.weight, classes=self.classes
            )
            counts = with_votes(batch.counts, votes, self.weight)
            yield replace(batch, counts=counts, alone=batch.counts, guesses=_most_likely(votes))


def _most_likely(votes: Counts | Ints) -> Ints:
    """The class that gets most of its votes per query, NO_GUESS where it has none."""
    if votes.ndim == 1:
        return votes
    return np.where(votes.any(axis=1), votes.argmax(axis=1), NO_GUESS).astype(np.int64)


def with_votes(counts: Histograms, votes: Counts | Ints, weight: int) -> Histograms:
    """Histograms with the votes of a prior: shared out, or `weight` for one class a row."""
    if votes.ndim == 2:
        if isinstance(counts, SparseCounts):
            rows, labels = np.nonzero(votes)
            return _with_entries(counts, rows, labels, votes[rows, labels])
        return np.ascontiguousarray(counts + votes)
    rows = np.flatnonzero(votes >= 0) if weight else np.zeros(0, dtype=np.int64)
    if isinstance(counts, SparseCounts):
        return _with_entries(counts, rows, votes[rows], np.full(rows.size, weight))
    found = counts.copy()
    found[rows, votes[rows]] += weight
    return found


def _with_entries(counts: SparseCounts, rows: Ints, labels: Ints, votes: Counts) -> SparseCounts:
    """The same of histograms by the classes that have votes."""
    own_rows, place = np.nonzero(counts.labels < counts.classes)
    every_row = np.concatenate([own_rows, rows])
    every_label = np.concatenate([counts.labels[own_rows, place], labels])
    every_vote = np.concatenate([counts.counts[own_rows, place], votes])
    key = every_row * np.int64(counts.classes) + every_label
    found, inverse = np.unique(key, return_inverse=True)
    summed = np.bincount(inverse, weights=every_vote, minlength=found.size).astype(np.int64)
    return SparseCounts.of_entries(
        *np.divmod(found, np.int64(counts.classes)), summed, counts.shape
    )


def prior_of(
    prior: Prior | str | PathLike[str] | Any,
    label_set: LabelSet | None,
    *,
    id_column: str | None = None,
) -> Prior:
    """The prior that is given, or in a file of this name, for votes on these labels.

    Raises:
        VoteError: a file that cannot be read as such, or guesses of something else.
        ParameterError: nothing of the kind.
    """
    if isinstance(prior, str | PathLike):
        found = _load(prior, label_set, id_column)
    elif isinstance(prior, Prior):
        found = prior
    else:
        found = Prior(prior)
    pairs = label_set is not None
    if pairs and (found.shares or found.guesses.ndim != 2):
        raise VoteError(f"{_NOUN} must be [queries, labels], 1, 0, or -1 for no guess")
    if not pairs and not found.shares and found.guesses.ndim == 2:
        raise VoteError(f"{_NOUN} must have one guess a query, or probabilities as real numbers")
    if pairs and label_set is not None:
        check_label_set(_NOUN, found.guesses.shape[1], None, label_set)
    return found


def _load(path: str | PathLike[str], label_set: LabelSet | None, id_column: str | None) -> Prior:
    side = read_side(path, _NOUN, id_column, what=_NOUN)
    values, words = side.values, None
    if not isinstance(values, np.ndarray):
        with understood(f"{side.name}: cannot be read as {_NOUN}"):
            if label_set is None and LABEL in values.column_names:
                values = labels_in(values.column(LABEL), NO_GUESS)
            else:
                names = columns_of_labels(values)
                if label_set is None:
                    words = names
                else:
                    check_label_set(f"{side.name}: {_NOUN}", len(names or ()), names, label_set)
                values = side_by_side(values, side.name)
                if label_set is not None:
                    values = np.where(np.isnan(values), NO_GUESS, values)
    if values.dtype.kind == "U":
        found, places = np.unique(values, return_inverse=True)
        words = tuple(word for word in found.tolist() if word)
        # An empty text comes first, and is no guess.
        values = places - (1 if "" in found else 0)
    if label_set is not None and values.ndim == 2 and values.shape[1] == label_set.count:
        values = _of_sets(values, side.name)
    try:
        return Prior(values, side.ids, words, side.sha256)
    except ParameterError as error:
        raise VoteError(f"{side.name}: {error}") from None


def _of_sets(values: NDArray[Any], source: str) -> Ints:
    """Guesses at every label of a query."""
    numbers = values.dtype.kind in "iufb"
    bad = ~np.isin(values, (NO_GUESS, 0, 1)) if numbers else np.ones(values.shape, dtype=bool)
    if bad.any():
        row = int(np.argwhere(bad)[0, 0])
        raise VoteError(f"{source}: row {row} has a guess that is neither 1, 0 nor {NO_GUESS}")
    return values.astype(np.int64)
