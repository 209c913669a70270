"""Where `pate tune` gets histograms from, and which flags go with which source."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pate_cli.cli.notes import note
from pate_cli.cli.setup import count_queries
from pate_cli.errors import ParameterError, UsageError
from pate_cli.words import Layout, ReleaseKind

if TYPE_CHECKING:
    from pate_cli.tuning import Electorate

__all__ = ["TuneSource"]


@dataclass
class TuneSource:
    """Where histograms come from, and what is known about them."""

    votes: str | None
    layout: Layout | None
    classes: int | None
    teachers: int | None
    queries: int | None
    max_queries: int | None
    truth: Path | None
    synthetic: str | None
    teachers_per_record: int
    public: bool

    @property
    def releasable(self) -> bool:
        """Whether what is found may be published."""
        return self.votes is None or self.public

    @property
    def shape(self) -> tuple[int, int, int]:
        """(teachers, classes, queries) as given; UsageError when one is missing or too small."""
        if self.teachers is None or self.classes is None or self.queries is None:
            raise UsageError("without VOTES give --teachers, --classes and --queries")
        for flag, value, least in (
            ("--teachers", self.teachers, 1),
            ("--classes", self.classes, 2),
            ("--queries", self.queries, 1),
        ):
            if value < least:
                raise ParameterError(f"{flag} must be at least {least}, got {value}")
        return self.teachers, self.classes, self.queries

    def check(self, kind: ReleaseKind, *, rule: bool) -> None:
        """Refuse combinations of flags that contradict each other."""
        if self.votes is not None:
            if rule or self.synthetic is not None:
                raise UsageError(
                    f"{'--rule-of-thumb' if rule else '--synthetic'} looks at no votes; "
                    "leave out VOTES"
                )
            if self.queries is not None:
                raise UsageError("--queries goes without VOTES; use --max-queries")
            return
        for flag, given in (
            ("--max-queries", self.max_queries is not None),
            ("--truth", self.truth is not None),
            ("--layout", self.layout is not None),
            ("--public-votes", self.public),
        ):
            if given:
                raise UsageError(f"{flag} needs VOTES")
        if self.synthetic is not None:
            if rule:
                raise UsageError("--rule-of-thumb and --synthetic exclude each other")
            if any(one is not None for one in (self.teachers, self.classes, self.queries)):
                raise UsageError(
                    "--synthetic names teachers, classes and queries itself; leave out "
                    "--teachers, --classes and --queries"
                )
        elif rule or kind is ReleaseKind.NONE:
            _ = self.shape
        else:
            raise UsageError(
                "give VOTES, or one of --synthetic, --data-independent, --rule-of-thumb"
            )

    @contextlib.contextmanager
    def electorate(self, *, quiet: bool) -> Iterator[Electorate]:
        """The histograms."""
        import numpy as np

        from pate_cli.tuning import Electorate
        from pate_cli.tuning.sources import made_up, reference
        from pate_cli.votes import open_votes
        from pate_cli.votes.side_files import load_truth

        self.basis: dict[str, Any]
        shared = self.teachers_per_record
        if self.synthetic is not None:
            electorate, recipe = made_up(self.synthetic, teachers_per_record=shared)
            self.basis = {"votes": "synthetic", **recipe}
            note("made-up votes: with other votes a sanitized epsilon differs", quiet=quiet)
            yield electorate
            return
        if self.votes is None:
            teachers, classes, queries = self.shape
            electorate, recipe = reference(
                teachers=teachers, classes=classes, queries=queries, teachers_per_record=shared
            )
            self.basis = {"votes": "reference", **recipe}
            note("no votes: answers and agreement are those of made-up ones", quiet=quiet)
            yield electorate
            return
        with open_votes(
            self.votes, layout=self.layout, classes=self.classes, teachers=self.teachers
        ) as file:
            note(file.describe(), quiet=quiet)
            queries, _ = count_queries(file, max_queries=self.max_queries, max_answers=None)
            known = None if self.truth is None else load_truth(self.truth)
            parts, right = [], []
            for batch in file.batches(limit=queries):
                parts.append(batch.counts)
                if known is not None:
                    right.append(known.of(batch.ids, batch.first_row, classes=file.classes))
            self.basis = {
                "votes": "file",
                "teachers": file.teachers,
                "classes": file.classes,
                "queries": queries,
            }
            yield Electorate(
                np.concatenate(parts).astype(np.int64),
                file.teachers,
                shared,
                truth=None if known is None else np.concatenate(right),
            )

    def words(self) -> list[str]:
        """What `pate aggregate` must be told about the file as well."""
        words: list[str] = []
        if self.votes is not None:
            for flag, value in (
                ("--layout", self.layout and self.layout.value),
                ("--classes", self.classes),
                ("--teachers", self.teachers),
            ):
                words += [] if value is None else [flag, str(value)]
        if self.teachers_per_record != 1:
            words += ["--teachers-per-record", str(self.teachers_per_record)]
        return words
