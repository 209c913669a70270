"""An opened file of votes: its shape, how it was read, and its batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

from pate_cli.core.checks import at_least_one
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, UsageError, VoteError
from pate_cli.core.label_set import LabelSet
from pate_cli.core.words import Layout, PublicFact
from pate_cli.files.inputs import Inputs
from pate_cli.votes.batches import Reader, VoteBatch
from pate_cli.votes.beside.prior import Prior, PriorReader
from pate_cli.votes.facts import Facts, Group, PriorFacts
from pate_cli.votes.matching import Matching
from pate_cli.votes.names import shown
from pate_cli.votes.ranges import cut, spans
from pate_cli.votes.unnamed import NOT_IN_WORDS, Unnamed
from pate_cli.votes.vocabulary import Vocabulary


@dataclass(frozen=True)
class VoteFile:
    """An opened file: its shape, how it was read, and its batches.

    `teachers` is the most votes a row can have. Without `groups` that is `teachers`, else what the
    file says: the total of the first row, the number of labels in it, or the number of distinct
    teacher ids; `teachers_from_data` is true then. With groups it is the weight of all teachers,
    and histograms hold weights.
    `classes_from_data` is true when the number of classes is one more than the largest label
    seen; it then depends on the votes, so `classes` is the better source wherever the number of
    classes is known. `rows_from_data` is true where votes may be missing in long form and no list
    of queries was given: a query is there only if somebody voted on it, so one teacher can make a
    query appear, and `queries` and the place of later queries depend on the votes.
    `label_names` are what the classes are called, class 0 first, where that was said or the columns
    of the counts say so; public, and never taken from the votes. `matching` is what texts are votes
    for, where they may be texts. With a `vocabulary` every vote is a name, `classes` is as many as
    there can be, and nothing that is said of the file depends on what was said in it.

    Queries come in the file's order, in long form in the order of the list of queries, or without
    one in order of their ids: numbers ascending, strings by code points ("10" before "9"). The
    order never depends on who voted.

    `read` is every file that was opened for it, none of which an output should replace.

    `label_set` tells of several labels a query. Then `queries` counts pairs of a query and a label,
    and `rows_per_query` of them are one query of the file.

    It can be pickled: a copy in another process reads the same votes, with the same checks, and
    infers nothing again.
    """

    name: str
    queries: int
    classes: int
    teachers: int
    layout: Layout
    inferred: bool
    classes_from_data: bool
    teachers_from_data: bool
    rows_from_data: bool
    rows_listed: bool
    reader: Reader = field(repr=False, compare=False)
    label_names: tuple[str, ...] | None = None
    matching: Matching | None = field(default=None, repr=False)
    groups: tuple[Group, ...] | None = None
    label_set: LabelSet | None = None
    id_column: str | None = None
    read: Inputs = field(default_factory=Inputs, repr=False, compare=False)
    prior: PriorFacts | None = None

    def describe(self) -> str:
        """Return one line about the file, without any vote."""
        how = "inferred" if self.inferred else "as told"
        who = f"{self.teachers} teachers"
        if self.groups is not None:
            count = sum(group.teachers for group in self.groups)
            who = f"{count} teachers in {len(self.groups)} groups with {self.teachers} votes"
        unlisted = self.vocabulary is not None
        width = "names that nobody listed" if unlisted else f"{self.classes} classes"
        shape = f"{self.queries} queries x {width}"
        if self.label_set is not None:
            shape = f"{self.queries // self.rows_per_query} queries x {self.label_set.count} labels"
            shape += f" = {self.queries} pairs, yes or no each"
        line = f"{self.name}: {shape}, {who}, layout {self.layout} ({how})"
        if self.label_names is not None:
            line += f", named {shown(self.label_names)}"
        if self.layout is Layout.LONG:
            order = "the list of queries" if self.rows_listed else self.id_column or "query_id"
            line += f", in order of {order}"
        if self.rows_from_data:
            line += "; queries without any vote are not known"
        if self.classes_from_data:
            line += "; the number of classes was taken from the data, `classes` is safer"
        return line

    def unnamed(self, limit: int | None = None) -> Unnamed:
        """Which votes are texts and no label names, and so count as missing, and why. SECRET.

        Of the first `limit` rows, or all; in long form of all rows of the file.
        Reads them once more, where votes are words.
        """
        if self.matching is None or self.vocabulary is not None:
            return NOT_IN_WORDS
        stop = self.queries if limit is None else min(limit, self.queries)
        return self.reader.tally(self.matching, stop).found()

    def refuse_unnamed(self) -> None:
        """VoteError where votes are texts and not one of them is a label name.

        It says nothing of them, and looks no further than the first that is one.
        """
        if self.matching is None or self.vocabulary is not None:
            return
        tally = self.reader.tally(self.matching, self.queries, until_named=True)
        if tally.cast and not tally.named:
            raise VoteError(
                f"{self.name}: no vote is one of `label_names` {shown(self.matching.names)}; "
                f"{self.matching.remedy}"
            )

    @property
    def vocabulary(self) -> Vocabulary | None:
        """What the classes are called, where nobody listed them; SECRET. None where they are."""
        return self.matching if isinstance(self.matching, Vocabulary) else None

    def refuse_unlisted(self, what: str) -> None:
        """UsageError for what needs to know the classes, where nobody listed them."""
        if self.vocabulary is not None:
            raise UsageError(
                f"{what} needs to know the names that votes may be: give `label_names`"
            )

    @property
    def votes_together(self) -> bool:
        """Whether one record has trained one teacher at most, whatever its vote counts for."""
        return all(group.teachers_per_record == 1 for group in self.groups or ())

    @property
    def read_off(self) -> tuple[PublicFact, ...]:
        """What a guarantee takes as public and this file says only through its votes."""
        found = {
            PublicFact.CLASSES: self.classes_from_data,
            PublicFact.QUERIES: self.rows_from_data,
        }
        return tuple(fact for fact, from_votes in found.items() if from_votes)

    @property
    def facts(self) -> Facts:
        """What is public about it beside its shape."""
        return Facts(
            self.read_off,
            self.groups or (),
            self.class_names,
            self.label_set,
            self.prior,
        )

    def with_prior(self, prior: Prior, weight: int) -> VoteFile:
        """The same with the votes of a public prior in every histogram.

        Args:
            prior: of these queries.
            weight: B, whole votes, at least 0.

        Raises:
            VoteError: the prior is of something else, or there is one already, whose votes the
                weight would leave out.
            UsageError: nobody listed the classes.
        """
        self.refuse_unlisted("`prior`")
        if self.prior is not None:
            raise VoteError("these votes have a prior already; give one")
        found = prior.named(self.naming, self.classes)
        reader = PriorReader(self.reader, found, weight, self.classes)
        return replace(self, reader=reader, prior=PriorFacts(weight, 0, found.sha256))

    def guessed(self, queries: int) -> VoteFile:
        """The same, knowing of how many of the first rows the prior, if any, has a guess.

        VoteError where it names queries, and none of these.
        """
        if not isinstance(self.reader, PriorReader) or self.prior is None:
            return self
        prior = self.reader.prior
        if prior.ids is None:
            guesses = prior.guessed(range(queries), 0)
        else:
            plain = self.without_prior.batches(limit=queries)
            guesses = sum(prior.guessed(batch.ids, batch.first_row) for batch in plain)
            if not guesses:
                raise VoteError(
                    f"the prior has no guess for any of the {queries} rows that are asked; are its "
                    "query ids those of the votes?"
                )
        return replace(self, prior=replace(self.prior, guesses=guesses))

    @property
    def without_prior(self) -> VoteFile:
        """The teachers' votes alone."""
        if not isinstance(self.reader, PriorReader):
            return self
        return replace(self, reader=self.reader.source, prior=None)

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """What the classes are called; None where a query has several labels, which are named."""
        return self.label_names if self.label_set is None else None

    @property
    def naming(self) -> Matching | None:
        """Which texts beside the votes are which class: as within them; None without names."""
        if self.class_names is None:
            return None
        known = self.matching
        return known if known and known.names == self.class_names else Matching(self.class_names)

    @property
    def rows_per_query(self) -> int:
        """How many rows are one query: 1, or where a query has several labels one a label."""
        return 1 if self.label_set is None else self.label_set.count

    def limited(self, max_queries: int | None) -> int:
        """How many rows a public limit on queries leaves, all without one.

        ParameterError below 1.
        """
        if max_queries is None:
            return self.queries
        at_least_one(max_queries=max_queries)
        return min(max_queries * self.rows_per_query, self.queries)

    def capped(self, max_answers: int | None) -> int:
        """How many rows a public cap leaves to be answered, all without one; errors as above.

        Where a query has several labels, the cap is as many answers as so many queries have.
        """
        if max_answers is None:
            return self.queries
        at_least_one(max_answers=max_answers)
        return min(max_answers * self.rows_per_query, self.queries)

    @property
    def portable(self) -> bool:
        """Whether pickling this carries no votes, but names of files that the copy reads.

        True for files and URIs, and for the temporary copy of a pipe while that is open; false for
        arrays and tables in memory, for long form, which is counted on opening, and where the names
        that were said travel along.
        """
        return self.reader.portable and self.vocabulary is None

    @property
    def parts(self) -> list[tuple[str, int, int]]:
        """The files behind it in order, as (name, start, stop): rows start..stop-1 are its own.

        One for a source in memory, and for long form, whose queries are not the rows of its files.
        """
        return spans(self.reader.stretches)

    def batches(self, *, start: int = 0, limit: int | None = None) -> Iterator[VoteBatch]:
        """Yield `limit` queries (default: all) from row `start` on in order, validating each.

        May be called again, and several iterators may be open at once. Fewer come where the file
        ends. Row groups of Parquet that end before `start` are not decoded.

        Raises:
            VoteError: at the first row that is no vote.
            ParameterError: for a negative start or limit.
        """
        _not_negative(start=start, limit=limit)
        stop = self.queries if limit is None else min(start + limit, self.queries)
        return self.reader.batches(start, max(start, stop))

    def ranges(self, *, limit: int, entries: int) -> list[tuple[int, int]]:
        """Return ranges (start, stop) that cover rows 0..limit-1 in order, for `batches`.

        Each has about `entries` entries, of histograms or labels, whichever are more. None spans
        two parts, or ends within a query. Row groups of Parquet stay whole, but one of more than
        `entries` is cut into at most 8: whoever reads a piece decodes its row group from the
        beginning. The ranges depend on the shape of the file and its footers only.

        Raises:
            ParameterError: for a negative limit, or entries below 1.
        """
        _not_negative(limit=limit)
        if entries < 1:
            raise ParameterError(f"entries must be at least 1, got {entries}")
        rows = max(1, entries // max(1, self.reader.width))
        return cut(
            self.reader.stretches,
            rows=rows,
            limit=min(limit, self.queries),
            together=self.rows_per_query,
        )


def _not_negative(**numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None and number < 0:
            raise ParameterError(f"{name} must be at least 0, got {number}")
