"""How votes are to be read, as far as that was said: checked before anything is opened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np

from pate_cli.core.arrays import DENSE_CLASSES, Ints
from pate_cli.core.checks import MOST_CLASSES
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, UsageError, quoted
from pate_cli.core.label_set import LabelSet
from pate_cli.core.words import Layout
from pate_cli.votes.aliases import Aliases, aliases_of
from pate_cli.votes.batches import Reader
from pate_cli.votes.beside.query_list import Queries, QueryList, query_list
from pate_cli.votes.groups import Groups, TeacherGroups, teacher_groups
from pate_cli.votes.matching import Matching
from pate_cli.votes.names import LabelNames, names_of
from pate_cli.votes.unnamed import Said
from pate_cli.votes.vocabulary import Vocabulary
from pate_cli.votes.vote_file import VoteFile

ENTRIES_PER_BATCH = 1 << 20
"""At most this many int64 in one batch: 8 MB, so that many processes may read at once."""


def batch_size(width: int) -> int:
    """Return how many rows of `width` integers fit in one batch, at least 1."""
    return max(1, ENTRIES_PER_BATCH // max(1, width))


@dataclass(frozen=True)
class Reading:
    """How votes are to be read: what was said of them, None where nothing was.

    See `open_votes`; names: the label names. matching: what texts are votes for, if any may be; a
    Vocabulary where every text is a name.
    """

    layout: Layout | None = None
    classes: int | None = None
    teachers: int | None = None
    batch_rows: int | None = None
    queries: QueryList | None = None
    names: tuple[str, ...] | None = None
    matching: Matching | None = None
    groups: TeacherGroups | None = None
    id_column: str | None = None

    def __post_init__(self) -> None:
        for name in ("classes", "teachers", "batch_rows"):
            object.__setattr__(self, name, whole_or_none(name, getattr(self, name)))
        if self.names is not None and not self.multilabel:
            if self.classes not in (None, len(self.names)):
                raise ParameterError(
                    f"`classes` {self.classes} is not the number of `label_names`, "
                    f"{len(self.names)}"
                )
            object.__setattr__(self, "classes", len(self.names))
        if self.classes is not None and not 2 <= self.classes <= MOST_CLASSES:
            raise ParameterError(
                f"`classes` must be between 2 and {MOST_CLASSES}, got {self.classes}"
            )
        if self.teachers is not None and self.teachers < 1:
            raise ParameterError(f"`teachers` must be at least 1, got {self.teachers}")
        if self.batch_rows is not None and self.batch_rows < 1:
            raise ParameterError(f"batch_rows must be at least 1, got {self.batch_rows}")
        if self.groups is not None and self.teachers not in (None, len(self.groups)):
            raise ParameterError(
                f"`teachers` is {self.teachers}, but `groups` has {len(self.groups)} teachers"
            )

    @classmethod
    def from_keywords(
        cls,
        *,
        layout: Layout | str | None,
        classes: int | None,
        teachers: int | None,
        batch_rows: int | None,
        queries: Queries | None,
        label_names: LabelNames | None,
        normalise: bool,
        aliases: Aliases | None,
        any_name: bool,
        groups: Groups | None,
        id_column: str | None,
    ) -> Self:
        """What the arguments of `open_votes` say; files that they name are read.

        Raises:
            PateError: as `open_votes` does.
        """
        if id_column is not None and not isinstance(id_column, str):
            raise ParameterError(
                f"`id_column` must be the name of a column, got {quoted(id_column)}"
            )
        said = None if layout is None else Layout(layout)
        names = None if label_names is None else names_of(label_names)
        unlisted = any_name and names is None and classes is None
        return cls(
            layout=said,
            classes=classes,
            teachers=teachers,
            batch_rows=batch_rows,
            queries=None if queries is None else query_list(queries, id_column=id_column),
            names=names,
            matching=matching_of(
                names,
                normalise=normalise,
                aliases=aliases,
                several=said is not None and said.multilabel,
                unlisted=unlisted,
            ),
            groups=None if groups is None else teacher_groups(groups),
            id_column=id_column,
        )

    @property
    def ensemble(self) -> int | None:
        """How many teachers there are, as far as that was said."""
        return len(self.groups) if self.groups is not None else self.teachers

    @property
    def multilabel(self) -> bool:
        """Whether a query has several labels."""
        return self.layout is not None and self.layout.multilabel

    @property
    def any_name(self) -> bool:
        """Whether every text that a vote says is a name."""
        return isinstance(self.matching, Vocabulary)

    @property
    def normalise(self) -> bool:
        """Whether texts match that differ in form alone."""
        return self.matching is not None and self.matching.normalise

    def heard(self, said: Iterable[Said]) -> Reading:
        """Where every text is a name, with those that were said, none of numbers; else the same."""
        if not isinstance(self.matching, Vocabulary):
            return self
        return replace(self, matching=self.matching.heard(said), classes=MOST_CLASSES)

    @property
    def by_teacher(self) -> bool:
        """Whether it matters which vote is whose."""
        return self.groups is not None

    def absent_limit(self, width: int) -> int | None:
        """How many labels a row may have if some may be missing; None where none may.

        Names allow it, for a text that is no name is a missing vote.
        """
        named = self.names is not None or self.any_name
        return width if self.teachers is None and named else self.teachers

    def size(self, width: int) -> int:
        """Rows of a batch, each of `width` integers while it is read."""
        return batch_size(width) if self.batch_rows is None else self.batch_rows

    def file(
        self,
        name: str,
        layout: Layout,
        *,
        queries: int,
        classes: int,
        teachers: int,
        reader: Reader,
        names: tuple[str, ...] | None = None,
        label_set: LabelSet | None = None,
    ) -> VoteFile:
        """The opened file, with what was said about it and what it said itself."""
        from_labels = layout in (Layout.LABELS, Layout.LABELS_BY_TEACHER, Layout.LONG)
        return VoteFile(
            name,
            queries=queries,
            classes=classes,
            teachers=teachers if self.groups is None else self.groups.total,
            layout=layout,
            inferred=self.layout is None,
            classes_from_data=self.classes is None and from_labels,
            teachers_from_data=self.ensemble is None,
            rows_from_data=(
                self.teachers is not None and layout is Layout.LONG and self.queries is None
            ),
            rows_listed=self.queries is not None,
            reader=reader,
            label_names=names or self.names,
            matching=self.matching if from_labels or not self.any_name else None,
            groups=None if self.groups is None else self.groups.public,
            label_set=label_set,
            id_column=self.id_column,
        )

    def drawn(self, classes: int, teachers: int) -> int:
        """Numbers that labelling a row takes: a draw a class, or for every vote it might have."""
        if classes <= DENSE_CLASSES:
            return classes
        return teachers if self.groups is None else self.groups.total

    def weights(
        self, teachers: int, name: str, columns: tuple[str, ...] | None = None
    ) -> Ints | None:
        """How many votes each teacher of a file called `name` counts for; None for one each."""
        return None if self.groups is None else self.groups.in_columns(columns, teachers, name)

    def refuse_groups(self, name: str) -> None:
        """UsageError for groups of teachers beside histograms."""
        if self.groups is not None:
            raise UsageError(
                f"`groups` needs to know who voted, and the histograms of {name} do not tell; "
                "give the labels of the teachers"
            )

    def refuse_list(self, name: str) -> None:
        """UsageError for a list of queries beside votes whose rows are the queries."""
        if self.queries is not None:
            raise UsageError(
                f"`queries` goes with `layout` {Layout.LONG}; the rows of {name} are its queries"
            )

    def refuse_id_column(self, name: str) -> None:
        """UsageError for the name of a column beside an array, which has none."""
        if self.id_column is not None:
            raise UsageError(f"`id_column` names a column of a table; {name} is an array")


def matching_of(
    names: tuple[str, ...] | None,
    *,
    normalise: bool,
    aliases: Aliases | None,
    several: bool = False,
    unlisted: bool = False,
) -> Matching | None:
    """What texts are votes for; None where votes are none, as those on several labels are not.

    UsageError for what would match nothing then.
    """
    if names is not None and not several:
        return Matching(names, normalise, {} if aliases is None else aliases_of(aliases))
    if unlisted and not several and aliases is None:
        return Vocabulary(normalise=normalise)
    given = [name for name, said in (("normalise", normalise), ("aliases", aliases)) if said]
    if given and several:
        raise UsageError(f"`{given[0]}` is for votes that are texts, and those on labels are none")
    if given:
        raise UsageError(f"`{given[0]}` goes with `label_names`")
    return None


def whole_or_none(name: str, value: Any) -> int | None:
    """The number, if one was given; ParameterError for what is no whole number."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ParameterError(f"`{name}` must be a whole number, got {quoted(value)}")
    return int(value)
