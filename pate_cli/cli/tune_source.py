"""Where `pate tune` gets histograms from, and which flags go with which source."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pate_cli.cli.options import VoteOptions, in_panel
from pate_cli.errors import ParameterError, UsageError
from pate_cli.words import ReleaseKind

if TYPE_CHECKING:
    from pate_cli.tuning import VoteSample
    from pate_cli.votes import VoteFile

__all__ = ["SafeOptions", "TuneSource"]

_safe = in_panel("Without private votes")


@dataclass(frozen=True)
class SafeOptions:
    """Ways to tune without private votes, and what is known about votes beside their file."""

    data_independent: Annotated[
        bool,
        _safe(
            "--data-independent",
            help="epsilon for all votes, met always by a cap on answers; needs no VOTES.",
        ),
    ] = False
    synthetic: Annotated[
        str | None,
        _safe(
            "--synthetic",
            help="Made-up votes: teachers=250,classes=10,queries=1000,agreement=0.85,spread=0.3,"
            "confusion=0.3,imbalance=0,seed=0.",
        ),
    ] = None
    rule_of_thumb: Annotated[
        bool,
        _safe(
            "--rule-of-thumb", help="Release parameters by rule for a target, without any search."
        ),
    ] = False
    queries: Annotated[
        int | None, _safe("--queries", help="Without VOTES: how many queries there are.")
    ] = None
    public_votes: Annotated[
        bool,
        _safe(
            "--public-votes",
            help="Assert that VOTES are public, so that the result may be published.",
        ),
    ] = False
    truth: Annotated[
        Path | None,
        in_panel("Votes")(
            "--truth", help="True labels (NPY, Parquet, CSV): also estimate accuracy, from below."
        ),
    ] = None

    def kind(self, release: ReleaseKind | None) -> ReleaseKind:
        """What is published: a bound unless --release says otherwise, nothing for all votes."""
        if not self.data_independent:
            return release or ReleaseKind.UPPER
        if release not in (None, ReleaseKind.NONE):
            raise UsageError(
                "--data-independent publishes no data-dependent epsilon; leave out "
                f"--release {release}"
            )
        return ReleaseKind.NONE


@dataclass(frozen=True)
class TuneSource:
    """Where histograms come from, and what is known about them."""

    votes: str | None
    reading: VoteOptions
    safe: SafeOptions
    teachers_per_record: int

    @property
    def releasable(self) -> bool:
        """Whether what is found may be published."""
        return self.votes is None or self.safe.public_votes

    @property
    def shape(self) -> tuple[int, int, int]:
        """(teachers, classes, queries) as given; UsageError when one is missing or too small."""
        teachers, classes, queries = self.reading.teachers, self.reading.classes, self.safe.queries
        if teachers is None or classes is None or queries is None:
            raise UsageError("without VOTES give --teachers, --classes and --queries")
        for flag, value, least in (
            ("--teachers", teachers, 1),
            ("--classes", classes, 2),
            ("--queries", queries, 1),
        ):
            if value < least:
                raise ParameterError(f"{flag} must be at least {least}, got {value}")
        return teachers, classes, queries

    def check(self, kind: ReleaseKind) -> None:
        """Refuse combinations of flags that contradict each other."""
        reading, safe = self.reading, self.safe
        rule, synthetic = safe.rule_of_thumb, safe.synthetic is not None
        if self.votes is not None:
            if rule or synthetic:
                raise UsageError(
                    f"{'--rule-of-thumb' if rule else '--synthetic'} looks at no votes; "
                    "leave out VOTES"
                )
            if safe.queries is not None:
                raise UsageError("--queries is for runs without VOTES; use --max-queries")
            return
        for flag, given in (
            ("--max-queries", reading.max_queries is not None),
            ("--truth", safe.truth is not None),
            ("--layout", reading.layout is not None),
            ("--public-votes", safe.public_votes),
        ):
            if given:
                raise UsageError(f"{flag} needs VOTES")
        if synthetic:
            if rule:
                raise UsageError("--rule-of-thumb and --synthetic exclude each other")
            if any(size is not None for size in (reading.teachers, reading.classes, safe.queries)):
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
    def sample(self, note: Callable[[str], None]) -> Iterator[tuple[VoteSample, dict[str, Any]]]:
        """The histograms, and in words and numbers what they are."""
        from pate_cli.tuning.sample import made_up_sample, reference_sample

        shared = self.teachers_per_record
        if self.safe.synthetic is not None:
            sample, recipe = made_up_sample(self.safe.synthetic, teachers_per_record=shared)
            note("made-up votes: with other votes a sanitized epsilon differs")
            yield sample, {"votes": "synthetic", **recipe}
        elif self.votes is None:
            teachers, classes, queries = self.shape
            sample, recipe = reference_sample(
                teachers=teachers, classes=classes, queries=queries, teachers_per_record=shared
            )
            note("no votes: answers and agreement are those of made-up ones")
            yield sample, {"votes": "reference", **recipe}
        else:
            with self.reading.open(self.votes) as file:
                note(file.describe())
                queries = self.reading.rows(file)
                basis = {"teachers": file.teachers, "classes": file.classes, "queries": queries}
                yield self._read(file, queries), {"votes": "file", **basis}

    def _read(self, file: VoteFile, queries: int) -> VoteSample:
        import numpy as np

        from pate_cli.tuning import VoteSample
        from pate_cli.votes.side_files import load_truth

        known = None if self.safe.truth is None else load_truth(self.safe.truth)
        parts, right = [], []
        for batch in file.batches(limit=queries):
            parts.append(batch.counts)
            if known is not None:
                right.append(known.of(batch.ids, batch.first_row, classes=file.classes))
        return VoteSample(
            np.concatenate(parts).astype(np.int64),
            file.teachers,
            self.teachers_per_record,
            truth=None if known is None else np.concatenate(right),
        )

    def words(self) -> list[str]:
        """What `pate aggregate` must be told about the file as well."""
        words: list[str] = []
        if self.votes is not None:
            for flag, value in (
                ("--layout", self.reading.layout and self.reading.layout.value),
                ("--classes", self.reading.classes),
                ("--teachers", self.reading.teachers),
            ):
                words += [] if value is None else [flag, str(value)]
        if self.teachers_per_record != 1:
            words += ["--teachers-per-record", str(self.teachers_per_record)]
        return words
