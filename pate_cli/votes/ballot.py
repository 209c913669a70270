"""The votes on one query that is asked by itself: counts of classes, or what each teacher said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import DENSE_CLASSES, Histograms, Ints, SparseCounts
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
        unnamed: how many votes were for no class.
    """

    classes: Ints
    counts: Ints
    names: tuple[str, ...] = ()
    unnamed: int = 0

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
        counts = np.array([_count(vote) for vote in votes], dtype=np.int64)
        return self._checked(np.nonzero(counts)[0], counts[counts > 0])

    def _by_class(self, votes: Mapping[Any, int]) -> Ballot:
        if self.groups is not None:
            raise VoteError("with `groups`, votes are what each teacher said, in their order")
        found: Counter[Any] = Counter()
        unnamed = 0
        for name, number in votes.items():
            count = _count(number)
            place = self._class_of(name)
            if place is None:
                raise VoteError("a class that counts are given of is none of the classes")
            if place == ABSENT:
                unnamed += count
            elif count:
                found[place] += count
        return self._found(found, unnamed)

    def _by_teacher(self, votes: Sequence[Any]) -> Ballot:
        if self.groups is not None and len(votes) != len(self.groups):
            raise VoteError(f"{len(votes)} votes of {len(self.groups)} teachers: give null for one")
        found: Counter[Any] = Counter()
        unnamed = 0
        for at, vote in enumerate(votes):
            if vote is None or (isinstance(vote, str) and abstains(vote)):
                continue
            place = self._class_of(vote)
            if place is None:
                raise VoteError("a vote is a class, a text or null")
            weight = 1 if self.groups is None else self.groups.weights[at]
            if place == ABSENT:
                unnamed += weight
            else:
                found[place] += weight
        return self._found(found, unnamed)

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

    def _found(self, found: Counter[Any], unnamed: int) -> Ballot:
        if self.classes is not None:
            places = np.array(sorted(found), dtype=np.int64)
            counts = np.array([found[place] for place in places.tolist()], dtype=np.int64)
            return self._checked(places, counts, unnamed=unnamed)
        names = tuple(sorted(found))
        counts = np.array([found[name] for name in names], dtype=np.int64)
        return self._checked(np.arange(len(names)), counts, names=names)

    def _checked(
        self, classes: Ints, counts: Ints, *, names: tuple[str, ...] = (), unnamed: int = 0
    ) -> Ballot:
        if int(counts.sum()) + unnamed > self.teachers:
            raise VoteError(f"more votes than the {self.teachers} there can be")
        return Ballot(classes, counts, names, unnamed)


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
