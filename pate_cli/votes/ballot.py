"""The votes on one query that is asked by itself: counts of classes, or what each teacher said."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import DENSE_CLASSES, Histograms, Ints, SparseCounts
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, VoteError
from pate_cli.votes.checks import ABSENT
from pate_cli.votes.groups import TeacherGroups
from pate_cli.votes.matching import Matching, abstains, normalised

Votes: TypeAlias = Mapping[Any, int] | Sequence[Any] | NDArray[Any]
"""Counts of all classes, counts by class, or a text or number a teacher."""

_TEXT_ID: Final = (str, np.str_)
_WHOLE: Final = (int, np.integer)


@dataclass(frozen=True)
class Ballot:
    """A histogram by its votes. SECRET.

    Attributes:
        classes: those with votes, ascending, [entries].
        counts: of each, ≥ 1, [entries].
        names: what they are called, where nobody knew the classes before; else empty.
        said: texts that should be names of classes, and how many votes are each.
    """

    classes: Ints
    counts: Ints
    names: tuple[str, ...] = ()
    said: Mapping[str, int] = field(default_factory=dict)

    def with_guess(self, place: int, weight: int) -> Ballot:
        """The same with so many votes of a prior for a class."""
        at = int(np.searchsorted(self.classes, place))
        classes, counts = self.classes, self.counts.copy()
        if at == classes.size or classes[at] != place:
            classes, counts = np.insert(classes, at, place), np.insert(counts, at, 0)
        counts[at] += weight
        return replace(self, classes=classes, counts=counts)


@dataclass(frozen=True)
class BallotReader:
    """How votes are read; all of it public and fixed before the first query.

    Attributes:
        teachers: τ, the most votes that a query has.
        classes: m; None where the classes are not known before.
        matching: which texts are votes for which class; None where classes are numbers.
        normalise: of classes that are not known before: whether texts are compared as `Matching`
            does.
        groups: of the teachers, who then vote in their order; None where they count alike.
    """

    teachers: int
    classes: int | None
    matching: Matching | None = None
    normalise: bool = False
    groups: TeacherGroups | None = None

    def ballot(self, votes: Votes, *, by_teacher: bool = False) -> Ballot:
        """What votes say.

        Args:
            votes: counts of all classes in order; counts by class, in a mapping from its name or
                number; or what each teacher said, a text, or None.
            by_teacher: what each teacher said, also where it is a number.

        Raises:
            VoteError: nothing of the kind, or more votes than there are teachers.
        """
        if isinstance(votes, Mapping):
            return self._by_class(votes)
        if isinstance(votes, str | bytes) or not isinstance(votes, Sequence | np.ndarray):
            raise VoteError(_KINDS)
        listed = votes.tolist() if isinstance(votes, np.ndarray) else list(votes)
        if any(isinstance(vote, list) for vote in listed):
            raise VoteError(f"{_KINDS}, and these are lists of lists")
        said = any(vote is None or isinstance(vote, str) for vote in listed)
        said = said or (self.matching is not None and not listed)
        if by_teacher or said or self.groups is not None or self.classes is None:
            return self._by_teacher(listed)
        return self._counted(listed)

    def place(self, name: Any) -> int:
        """The class that somebody names, as a guess is; ParameterError for none."""
        place = self._class_of(name)
        if place is None or place == ABSENT:
            raise ParameterError("a guess of the prior is none of the classes")
        return place

    def histograms(self, ballots: Sequence[Ballot]) -> Histograms:
        """All of them, in order, as mechanisms take them."""
        if self.classes is not None and self.classes <= DENSE_CLASSES:
            found = np.zeros((len(ballots), self.classes), dtype=np.int64)
            for row, ballot in enumerate(ballots):
                found[row, ballot.classes] = ballot.counts
            return found
        rows = np.repeat(np.arange(len(ballots)), [ballot.classes.size for ballot in ballots])
        classes = np.concatenate([ballot.classes for ballot in ballots])
        counts = np.concatenate([ballot.counts for ballot in ballots])
        known = MOST_NAMED if self.classes is None else self.classes
        return SparseCounts.of_entries(rows, classes, counts, (len(ballots), known))

    def _counted(self, votes: Sequence[Any]) -> Ballot:
        if len(votes) != self.classes:
            raise VoteError(f"{len(votes)} counts for {self.classes} classes")
        return self._found((place, _count(vote)) for place, vote in enumerate(votes))

    def _by_class(self, votes: Mapping[Any, int]) -> Ballot:
        if self.groups is not None:
            raise VoteError("with `groups`, votes are what each teacher said, in their order")
        return self._found((name, _count(number)) for name, number in votes.items())

    def _by_teacher(self, votes: Sequence[Any]) -> Ballot:
        if self.groups is not None and len(votes) != len(self.groups):
            raise VoteError(f"{len(votes)} votes of {len(self.groups)} teachers: give null for one")
        weights = itertools.repeat(1) if self.groups is None else self.groups.weights
        return self._found(zip(votes, weights, strict=False))

    def _class_of(self, name: Any) -> Any:
        """The class of a name or number: ABSENT for a text that is none, None for what cannot be.

        Where classes are not known before, what a text is compared by.
        """
        if isinstance(name, _TEXT_ID):
            if self.classes is None:
                text = normalised(name) if self.normalise else str(name)
                return ABSENT if abstains(text) else text
            if self.matching is not None:
                return self.matching.place(str(name))
            if not (name.isascii() and name.isdigit()):
                return None
            name = int(name)  # a key of JSON is a text
        if isinstance(name, bool | np.bool_) or not isinstance(name, _WHOLE):
            return None
        if self.classes is None:
            return str(int(name))
        return int(name) if 0 <= name < self.classes else None

    def _found(self, votes: Iterable[tuple[Any, int]]) -> Ballot:
        """The histogram of votes, each for a name, a number or nothing, and how often."""
        found: Counter[Any] = Counter()
        said: Counter[str] = Counter()
        for name, count in votes:
            if name is None or not count or (isinstance(name, str) and abstains(name)):
                continue
            place = self._class_of(name)
            if place is None:
                raise VoteError("a vote is for a class, in its name or number, or null")
            if self.matching is not None and isinstance(name, str):
                said[str(name)] += count
            if place != ABSENT:
                found[place] += count
        if sum(found.values()) > self.teachers or sum(said.values()) > self.teachers:
            raise VoteError(f"more votes than the {self.teachers} there can be")
        places = sorted(found)
        counts = np.array([found[place] for place in places], dtype=np.int64)
        if self.classes is None:
            return Ballot(np.arange(len(places)), counts, names=tuple(places))
        return Ballot(np.array(places, dtype=np.int64), counts, said=said)


MOST_NAMED: Final = 1 << 24
"""Stands for the number of classes where nobody knows it."""

_KINDS: Final = (
    "votes on a query are counts of all classes, counts by class, or what each teacher said"
)


def _count(value: Any) -> int:
    whole = isinstance(value, _WHOLE) and not isinstance(value, bool | np.bool_)
    if not whole and isinstance(value, float | np.floating):
        whole = float(value).is_integer()
    if not whole or not 0 <= value < 1 << 31:
        raise VoteError("a count of votes is a whole number, at least 0")
    return int(value)
