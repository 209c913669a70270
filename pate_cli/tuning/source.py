"""Where tuning gets histograms from, and what may be said about what it finds on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from os import PathLike
from typing import Any, Final

import numpy as np

from pate_cli.core.arrays import stacked
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.files.addresses import public_name
from pate_cli.planning.sample import Guesses, VoteSample, made_up_sample
from pate_cli.votes.checks import ABSENT
from pate_cli.votes.join import prior as prior_of
from pate_cli.votes.join import truth as truth_of
from pate_cli.votes.opening import open_votes
from pate_cli.votes.vote_file import VoteFile

_SHAPE: Final = ("teachers", "classes", "queries")


@dataclass(frozen=True)
class TuneSource:
    """Votes, or a recipe for made-up ones.

    Attributes:
        votes: what `open_votes` takes; None for made-up histograms.
        synthetic: a recipe for made-up ones.
        reading: how to read the votes, by keyword of `open_votes`; without any their shape,
            `teachers`, `classes` and `queries`, k1.
        max_queries: rows of the votes that are looked at.
        truth: true labels of the votes, or a file of them.
        prior: public guesses for the votes, or a file of them.
        public: the votes are public, as their owner asserts.
        teachers_per_record: k.
    """

    votes: Any = None
    synthetic: str | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    max_queries: int | None = None
    truth: Any = None
    prior: Any = None
    public: bool = False
    teachers_per_record: int = 1

    @property
    def releasable(self) -> bool:
        """Whether what is found may be published."""
        return self.votes is None or self.public

    @property
    def _given(self) -> list[str]:
        """The keywords about the votes that are given."""
        said = self.reading.items()
        return [name for name, value in said if value is not None and value is not False]

    @property
    def shape(self) -> tuple[int, int, int]:
        """(teachers, classes, queries) as given; UsageError when one is missing or too small."""
        sizes: list[int] = []
        for name, least in (("teachers", 1), ("classes", 2), ("queries", 1)):
            size = self.reading.get(name)
            if not isinstance(size, int):
                raise UsageError("without VOTES give `teachers`, `classes` and `queries`")
            sizes.append(size)
            if size < least:
                raise ParameterError(f"`{name}` must be at least {least}, got {size}")
        teachers, classes, queries = sizes
        return teachers, classes, queries

    def check(self) -> None:
        """UsageError for what contradicts itself, or leaves open what to search on."""
        if self.votes is not None:
            if self.synthetic is not None:
                raise UsageError("`synthetic` looks at no votes; leave out VOTES")
            if isinstance(self.reading.get("queries"), int):
                raise UsageError("`queries` is for runs without VOTES; use `max_queries`")
            return
        for name, given in (
            ("max_queries", self.max_queries is not None),
            ("truth", self.truth is not None),
            ("prior", self.prior is not None),
            *((name, name not in _SHAPE) for name in self._given),
            ("public_votes", self.public),
        ):
            if given:
                raise UsageError(f"`{name}` needs VOTES")
        if self.synthetic is None:
            raise UsageError(
                "give VOTES or `synthetic`; before there are votes, pate plan says what to expect"
            )
        if set(self._given) & set(_SHAPE):
            raise UsageError(
                "`synthetic` names teachers, classes and queries itself; leave out "
                "`teachers`, `classes` and `queries`"
            )

    def sample(self) -> tuple[VoteSample, dict[str, Any]]:
        """The histograms, and in numbers what they are."""
        k = self.teachers_per_record
        if self.synthetic is not None:
            sample, recipe = made_up_sample(self.synthetic, teachers_per_record=k)
            return sample, {"votes": "synthetic", **recipe}
        with open_votes(self.votes, **self.reading) as file:
            file.refuse_unlisted("what is asked")
            file.refuse_unmatched()
            if file.groups:
                if k != 1:
                    raise UsageError("`teachers_per_record` does not go with `groups`")
                k = max(group.votes_per_record for group in file.groups)
            queries = file.rows_for("max_queries", self.max_queries)
            truth = None if self.truth is None else truth_of(self.truth, file, queries)
            counts, right, places = [], [], []
            for batch in file.batches(limit=queries):
                counts.append(batch.counts)
                places.append((batch.ids, batch.first_row))
                if truth is not None:
                    right.append(truth.at(batch.ids, batch.first_row, ABSENT))
            sample = VoteSample(
                stacked(counts),
                file.teachers,
                k,
                truth=np.concatenate(right) if right else None,
                guesses=self._guesses(file, places),
            )
            basis = {"teachers": file.teachers, "classes": file.classes, "queries": queries}
            if file.rows_per_query > 1:
                basis["rows_per_query"] = file.rows_per_query
            return sample, {"votes": "file", **basis}

    def _guesses(self, file: VoteFile, places: list[tuple[Any, int]]) -> Guesses | None:
        """The prior on the queries that were looked at, if there is one."""
        if self.prior is None:
            return None
        name = public_name(self.prior) if isinstance(self.prior, str | PathLike) else "PRIOR"
        return Guesses(prior_of(self.prior, file), places, name)

    @property
    def words(self) -> list[str]:
        """What a `pate aggregate` line must say about the votes as well."""
        words: list[str] = []
        if self.votes is not None:
            for name in self._given:
                value = self.reading[name]
                words.append(f"--{name.replace('_', '-')}")
                if value is not True:
                    plain = isinstance(value, str | PathLike | int)
                    words.append(public_name(str(value)) if plain else name.upper())
        if self.teachers_per_record != 1:
            words += ["--teachers-per-record", str(self.teachers_per_record)]
        return words

    @property
    def name(self) -> str:
        """What stands for the votes in such a line."""
        return public_name(self.votes) if isinstance(self.votes, str) else "VOTES"
