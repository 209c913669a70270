"""A folder of vote files: which are there, whether they are the authors', and what is in them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, TypeVar

import numpy as np

from pate_cli.core.arrays import Counts, Floats
from pate_cli.core.errors import VoteError
from pate_cli.core.words import Layout
from pate_cli.reproduction.flags import in_flags
from pate_cli.reproduction.rows import RoundOfRow
from pate_cli.votes.opening import open_votes
from pate_cli.votes.vote_file import VoteFile

_Taken = TypeVar("_Taken")

_SUFFIXES = (".parquet", ".npy")
_NO_VOTES = re.compile(r"truth|label|student|records|queries", re.IGNORECASE)
# A softmax stored in single precision misses 1 by a little more than 1e-6 now and then.
_SUM_TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class FileVotes:
    """The first rows of a vote file.

    Attributes:
        name: the file's name.
        counts: votes [queries, classes].
        teachers: τ, the total of every row.
        rows_asked: how many rows were asked for; None for all.
        authentic: whether the file is the authors', None where that cannot be told.
    """

    name: str
    counts: Counts
    teachers: int
    rows_asked: int | None
    authentic: bool | None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader has to know about the file."""
        found = []
        if self.authentic is False:
            found.append(f"{self.name} is not the authors' file (its sha256 differs)")
        if self.rows_asked is not None and len(self.counts) < self.rows_asked:
            found.append(
                f"{self.name} holds {len(self.counts)} rows, the table asks {self.rows_asked}"
            )
        return tuple(found)


class RoundParameters(TypedDict):
    """T, σ1 and σ2 of one round, in votes."""

    threshold: float
    sigma1: float
    sigma2: float


@dataclass(frozen=True, eq=False)
class Asked:
    """One round with its votes at hand.

    Attributes:
        votes: the histograms.
        parameters: T, σ1, σ2 in votes.
        scores: what the check compares to T, [queries]; None for the highest count.
    """

    votes: FileVotes
    parameters: RoundParameters
    scores: Floats | None


@dataclass(frozen=True)
class VoteFolder:
    """Vote files by name.

    Attributes:
        path: the folder.
        sha256: hex digests of the authors' files, where known.
        infer: tell the layout from the numbers where possible; the authors' files are counts.
        most_rows: how many rows are read of a file all of whose rows are asked for; None for all.
    """

    path: Path
    sha256: Mapping[str, str]
    infer: bool = False
    most_rows: int | None = None

    def absent(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the names that are not files here, each once."""
        return tuple(dict.fromkeys(name for name in names if not (self.path / name).is_file()))

    def votes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the vote files here, in order, and notes on what does not open as votes.

        Files with "truth", "label", "student", "records" or "queries" in their names are passed
        over without a note.

        Raises:
            VoteError: no folder, or no vote file in it.
        """
        if not self.path.is_dir():
            raise VoteError(f"{self.path}: no such folder; give --votes DIR")
        candidates = sorted(
            file.name
            for file in self.path.iterdir()
            if file.suffix in _SUFFIXES and not _NO_VOTES.search(file.name) and file.is_file()
        )
        names, notes = [], []
        for name in candidates:
            try:
                self._of_votes(name, lambda _file: None)
            except VoteError as error:
                notes.append(f"{name}: passed over, it does not open as votes: {in_flags(error)}")
            else:
                names.append(name)
        if not names:
            rest = f"; {notes[0]}" if notes else ""
            raise VoteError(
                f"{self.path}: holds no vote file (.parquet or .npy); give --votes DIR{rest}"
            )
        return tuple(names), tuple(notes)

    def read(self, name: str, queries: int | None) -> FileVotes:
        """The first `queries` rows (all when None), fewer if the file has fewer.

        Raises:
            VoteError: the file cannot be read as votes.
        """
        limit = self.most_rows if queries is None else queries
        counts, teachers = self._of_votes(
            name,
            lambda file: (
                np.concatenate([batch.counts for batch in file.batches(limit=limit)]),
                file.teachers,
            ),
        )
        known = self.sha256.get(name)
        authentic = None if known is None else sha256_of(self.path / name) == known
        return FileVotes(name, counts, teachers, queries, authentic)

    def _of_votes(self, name: str, taken: Callable[[VoteFile], _Taken]) -> _Taken:
        """What is taken of a file; as counts where it is not to be had otherwise."""
        source = self.path / name
        if not self.infer:
            with open_votes(source, layout=Layout.COUNTS) as file:
                return taken(file)
        try:
            with open_votes(source) as file:
                return taken(file)
        except VoteError as unclear:
            try:
                with open_votes(source, layout=Layout.COUNTS) as file:
                    return taken(file)
            except VoteError:
                raise unclear from None

    def ask(self, round_: RoundOfRow) -> Asked:
        """A round's votes and, for Interactive-GNMax, max_j(n_j − τ p_j) of Algorithm 2.

        Raises:
            VoteError: votes or predictions cannot be read, or do not fit one another.
        """
        votes = self.read(round_.votes, round_.queries)
        scores = None
        if round_.student is not None:
            predicted = _predictions(self.path / round_.student, votes.counts.shape)
            scores = (votes.counts - votes.teachers * predicted).max(axis=1)
        unit = votes.teachers if round_.per_teacher else 1
        parameters = RoundParameters(
            threshold=round_.threshold * unit,
            sigma1=round_.sigma1 * unit,
            sigma2=round_.sigma2 * unit,
        )
        return Asked(votes, parameters, scores)


def _predictions(source: Path, shape: tuple[int, ...]) -> Floats:
    """A student's class probabilities for the queries of a round, [queries, classes]."""
    not_predictions = f"{source}: is not an NPY array of student predictions"
    try:
        with source.open("rb") as file:
            found = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise VoteError(not_predictions) from error
    if found.dtype.kind not in "iuf":
        raise VoteError(not_predictions)
    if found.ndim != 2 or found.shape[1] != shape[1] or len(found) < shape[0]:
        raise VoteError(
            f"{source}: student predictions of shape {found.shape} do not fit votes {shape}"
        )
    predicted = np.asarray(found[: shape[0]], dtype=np.float64)
    good = (predicted >= 0.0).all(axis=1) & (np.abs(predicted.sum(axis=1) - 1.0) <= _SUM_TOLERANCE)
    if not good.all():
        raise VoteError(f"{source}: row {int(np.argmin(good))} is no probability distribution")
    return predicted


def sha256_of(file: Path) -> str:
    """Hex digest of a file's content.

    Raises:
        VoteError: the file cannot be read.
    """
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise VoteError(f"{file}: cannot be read: {error.strerror or error}") from error
