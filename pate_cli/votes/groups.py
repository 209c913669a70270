"""Groups of teachers: whose votes count how much, and how many of them one record may have trained.

A public file beside the votes, or an object; it says for every teacher its group, its weight, and
for every group how many of its teachers one record may have trained. A row's histogram then holds
weights instead of votes. What that means for the guarantee: accounting/THEORY.md, section 15.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import Ints
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, VoteError, quoted
from pate_cli.votes.beside.side_files import in_order, read_side, understood
from pate_cli.votes.checks import LARGEST
from pate_cli.votes.columns import TEACHER
from pate_cli.votes.facts import Group

_GROUP, _WEIGHT, _PER_RECORD = "group", "weight", "teachers_per_record"
_TEACHER_COLUMNS = (TEACHER, "teacher")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
_ENDS_IN_NUMBER = re.compile(r".*?(0|[1-9][0-9]{0,17})")


@dataclass(frozen=True)
class TeacherGroups:
    """Group, weight and records of every teacher: public, and fixed before any vote is seen.

    For teachers that do not count alike: votes that weigh more, or teachers that share records. The
    report then has an ε for the records of each group. Hand it over as `groups`, with votes in a
    layout that tells who voted.

        >>> groups = pate.TeacherGroups(groups=["clinic", "clinic", "lab"], weights=[1, 1, 2])
        >>> votes = [[0, 0, 1], [1, 1, 1]]
        >>> with pate.open_votes(votes, layout="labels", classes=2, groups=groups) as opened:
        ...     next(opened.batches()).counts
        array([[2, 2],
               [0, 4]])

    Attributes:
        groups: the group of each teacher, texts or whole numbers, [teachers].
        weights: whole numbers ≥ 1, how many votes each one's vote counts for; left out, 1.
        teachers_per_record: whole numbers ≥ 1, the same within a group; left out, 1. One record
            may have trained so many teachers of its group, and none of another.
        ids: who each teacher is, numbers or texts; left out, the order of the votes' teachers.
        digits: numbers may stand as text or text as numbers, for CSV does not tell which is meant.

    Raises:
        VoteError: any of that is otherwise, naming the first row (teacher) that is.
    """

    groups: tuple[str, ...]
    weights: tuple[int, ...] = ()
    teachers_per_record: tuple[int, ...] = ()
    ids: tuple[int, ...] | tuple[str, ...] | None = None
    digits: bool = False

    def __post_init__(self) -> None:
        names = _names(self.groups)
        count = len(names)
        for name in ("weights", "teachers_per_record"):
            values = _plain(getattr(self, name)) or [1] * count
            object.__setattr__(self, name, _whole(values, name.removesuffix("s"), count))
        object.__setattr__(self, "groups", names)
        if self.ids is not None:
            object.__setattr__(self, "ids", _ids(self.ids, count))
        if sum(self.weights) > LARGEST:
            raise VoteError(f"{_HERE}: the weights add up to more than {LARGEST}")
        sizes = Counter(names)
        rows: dict[str, int] = {}
        for row, (group, k) in enumerate(zip(names, self.teachers_per_record, strict=True)):
            first = rows.setdefault(group, row)
            if k != self.teachers_per_record[first]:
                raise VoteError(
                    f"{_HERE}: row {row} has another {_PER_RECORD} than row {first} of the same "
                    "group"
                )
            size = sizes[group]
            if k > size:
                raise VoteError(
                    f"{_HERE}: row {row} says {_PER_RECORD} {k}, but its group has {size} "
                    f"teacher{'s' if size > 1 else ''}"
                )

    def __len__(self) -> int:
        """Number of teachers."""
        return len(self.groups)

    @property
    def total(self) -> int:
        """W: the most votes that a row can have."""
        return sum(self.weights)

    @property
    def public(self) -> tuple[Group, ...]:
        """The groups, in order of their first teachers."""
        members: dict[str, list[int]] = {}
        for row, group in enumerate(self.groups):
            members.setdefault(group, []).append(row)
        found = []
        for group, rows in members.items():
            weights = sorted((self.weights[row] for row in rows), reverse=True)
            k = self.teachers_per_record[rows[0]]
            found.append(Group(group, len(rows), weights[0], sum(weights), k, sum(weights[:k])))
        return tuple(found)

    def in_columns(self, names: Sequence[str] | None, width: int, where: str) -> Ints:
        """The weights in the order of the votes' teachers, [teachers].

        Args:
            names: of the teachers' columns; None where they are told by place, from 0 on.
            width: how many there are.
            where: what messages call the votes.

        Raises:
            VoteError: another number of teachers, or one that is unknown.
        """
        if len(self) != width:
            raise VoteError(f"{where}: has {width} teachers, but `groups` has {len(self)}")
        weights = np.array(self.weights, dtype=np.int64)
        if self.ids is None:
            return weights
        known = self._places(names, width)
        for row, teacher in enumerate(self.ids):
            if teacher not in known:
                what = "a column" if names is not None else f"one of 0..{width - 1}"
                raise VoteError(
                    f"{_HERE}: the teacher of row {row} is not {what} of {where}; name each "
                    "teacher as the votes do"
                )
        # As many as there are columns, each once: none is left out.
        places = np.array([known[teacher] for teacher in self.ids])
        if len(set(places.tolist())) < width:
            raise VoteError(f"{_HERE}: two rows name the same teacher of {where}")
        placed = np.empty_like(weights)
        placed[places] = weights
        return placed

    def _places(self, names: Sequence[str] | None, width: int) -> dict[int | str, int]:
        """Where each teacher stands, by all that it may be called."""
        if names is None:
            known: dict[int | str, int] = {place: place for place in range(width)}
        else:
            known = {name: place for place, name in enumerate(names)}
            ends = [_ENDS_IN_NUMBER.fullmatch(name) for name in names]
            numbers = [int(end[1]) for end in ends if end is not None]
            if len(set(numbers)) == width:  # teacher_3 is number 3, whichever column that is
                known |= {number: place for place, number in enumerate(numbers)}
        if self.digits:
            known |= {str(name): place for name, place in list(known.items())}
        return known

    def named_by(self, *, numbers: bool) -> NDArray[np.int64] | tuple[str, ...]:
        """The ids as votes in long form name teachers, by numbers or by texts.

        Raises:
            VoteError: there are none, or they are named otherwise.
        """
        if self.ids is None:
            raise VoteError(
                f"{_HERE}: votes in long form name their teachers, so `groups` needs a column "
                f"{TEACHER}"
            )
        texts = [teacher for teacher in self.ids if isinstance(teacher, str)]
        if bool(texts) != numbers:
            return np.array(self.ids, dtype=np.int64) if numbers else tuple(texts)
        if self.digits and not numbers:
            return tuple(map(str, self.ids))
        if self.digits and all(map(_NUMBER.fullmatch, texts)):
            return np.array([int(text) for text in texts], dtype=np.int64)
        here, there = ("numbers", "texts") if numbers else ("texts", "numbers")
        raise VoteError(f"{_HERE}: the votes name teachers by {here}, `groups` by {there}")


Groups: TypeAlias = TeacherGroups | str | PathLike[str]
"""The groups of the teachers, or a file of them."""

_HERE = "groups of teachers"


def teacher_groups(given: Groups) -> TeacherGroups:
    """The groups that are given, or that are in a file of this name.

    Raises:
        VoteError: a file that cannot be read as such.
    """
    if isinstance(given, TeacherGroups):
        return given
    if not isinstance(given, str | PathLike):
        raise ParameterError(
            f"`groups` must be TeacherGroups, or a file of them, not {type(given).__name__}"
        )
    return load_groups(given)


def load_groups(path: str | PathLike[str]) -> TeacherGroups:
    """Read a table with a row for each teacher.

    Columns: `group`; and where they are needed `weight`, `teachers_per_record`, `teacher_id` (or
    `teacher`). Another column is refused: a weight under a wrong name would count as 1.

    Raises:
        VoteError: a file that cannot be read as such.
    """
    side = read_side(
        path, _HERE, what="the groups of the teachers", ids=(_GROUP, *_TEACHER_COLUMNS)
    )
    source, table, ids = side.name, side.values, side.ids
    known = (_GROUP, _WEIGHT, _PER_RECORD, *_TEACHER_COLUMNS)
    if isinstance(table, np.ndarray):
        raise VoteError(f"{source}: {_HERE} need a table with a column named {_GROUP}")
    names: list[str] = list(table.column_names)
    for name in ["query_id"] if ids is not None else names:
        if name not in known:
            raise VoteError(
                f"{source}: column {quoted(name)} is none of {', '.join(known)}; rename or drop it"
            )
        if names.count(name) > 1:
            raise VoteError(f"{source}: two columns are named {quoted(name)}")
    if _GROUP not in names:
        raise VoteError(f"{source}: {_HERE} need a column named {_GROUP}")
    teachers = [name for name in names if name in _TEACHER_COLUMNS]
    if len(teachers) > 1:
        raise VoteError(
            f"{source}: columns {quoted(teachers[0])} and {quoted(teachers[1])} both name teachers"
        )
    with understood(f"{source}: cannot be read as {_HERE}"):
        columns = {name: tuple(table.column(name).to_pylist()) for name in names}
    try:
        return TeacherGroups(
            groups=columns[_GROUP],
            weights=columns.get(_WEIGHT, ()),
            teachers_per_record=columns.get(_PER_RECORD, ()),
            ids=columns[teachers[0]] if teachers else None,
            digits=side.digits,
        )
    except VoteError as error:
        raise VoteError(f"{source}: {error}") from None


def _plain(values: Sequence[Any] | NDArray[Any]) -> list[Any]:
    """Python's own numbers and texts."""
    listed = in_order(values, "what TeacherGroups say is a list, with an entry for each teacher")
    return [value.item() if isinstance(value, np.generic) else value for value in listed]


def _names(groups: Sequence[Any] | NDArray[Any]) -> tuple[str, ...]:
    """The names as texts; VoteError where there are none, or some are neither text nor number."""
    names = _plain(groups)
    if not names:
        raise VoteError(f"{_HERE}: there are no rows")
    for row, name in enumerate(names):
        if type(name) not in (int, str) or type(name) is not type(names[0]):
            raise VoteError(
                f"{_HERE}: row {row} has no {_GROUP} that is a text or a whole number like the "
                "others"
            )
        if not str(name).strip() or not str(name).isprintable():
            raise VoteError(f"{_HERE}: row {row} has an empty or unprintable {_GROUP}")
    return tuple(map(str, names))


def _whole(values: list[Any], name: str, count: int) -> tuple[int, ...]:
    """`values` if they are whole numbers ≥ 1, one a teacher."""
    if len(values) != count:
        raise VoteError(f"{_HERE}: {len(values)} {name} for {count} teachers")
    for row, value in enumerate(values):
        if type(value) is not int or not 1 <= value <= LARGEST:
            raise VoteError(
                f"{_HERE}: row {row} has a {name} that is no whole number of at least 1"
                + ("; multiply all weights by one number" if isinstance(value, float) else "")
            )
    return tuple(values)


def _ids(values: Sequence[Any] | NDArray[Any], count: int) -> tuple[Any, ...]:
    """`values` if they are numbers or texts, one a teacher, each once."""
    ids = _plain(values)
    if len(ids) != count:
        raise VoteError(f"{_HERE}: {len(ids)} ids for {count} teachers")
    first: dict[Any, int] = {}
    for row, teacher in enumerate(ids):
        if type(teacher) not in (int, str) or type(teacher) is not type(ids[0]):
            raise VoteError(
                f"{_HERE}: row {row} has no {TEACHER} that is a text or a whole number like the "
                "others"
            )
        if type(teacher) is int and not -(2**63) <= teacher < 2**63:
            raise VoteError(f"{_HERE}: row {row} has a {TEACHER} above 2^63 - 1")
        if first.setdefault(teacher, row) != row:
            raise VoteError(f"{_HERE}: row {row} names the teacher of row {first[teacher]} again")
    return tuple(ids)
