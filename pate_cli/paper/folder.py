"""A folder of vote files: which are there, whether they are the authors', and what is in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pate_cli.core.arrays import Counts, Floats, dense
from pate_cli.core.errors import VoteError
from pate_cli.core.words import Layout
from pate_cli.paper.archive import digest_of
from pate_cli.paper.rows import RoundOfRow
from pate_cli.votes.opening import open_votes

_NO_VOTES = re.compile(r"truth|label|student|records|queries|prior", re.IGNORECASE)
# A softmax stored in single precision misses 1 by a little more than 1e-6 now and then.
_SUM_TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class Asked:
    """One round with its votes at hand. SECRET.

    Attributes:
        file: name of the vote file.
        counts: votes on the first rows, [queries, classes].
        teachers: τ.
        noise: `threshold`, `sigma1` and `sigma2`, or `laplace_scale`, in votes.
        scores: what the check compares to T, [queries].
        student: whether there was one, whose probabilities were subtracted from the votes.
        authentic: whether the file is the authors', None where that cannot be told.
        remarks: what a reader has to know about the file.
    """

    file: str
    counts: Counts
    teachers: int
    noise: Mapping[str, float]
    scores: Floats
    student: bool = False
    authentic: bool | None = None
    remarks: tuple[str, ...] = ()

    @property
    def described(self) -> dict[str, Any]:
        """The round without its votes, JSON-ready."""
        queries, classes = self.counts.shape
        return {
            "file": self.file,
            "authentic": self.authentic,
            "queries": queries,
            "classes": classes,
            "teachers": self.teachers,
            "student": self.student,
            **self.noise,
        }


@dataclass(frozen=True)
class VoteFolder:
    """Vote files by name.

    Attributes:
        path: the folder.
        sha256: hex digests of the authors' files, where known.
    """

    path: Path
    sha256: Mapping[str, str]

    def names(self) -> tuple[str, ...]:
        """Names of the vote files (.parquet, .npy) here, in order.

        Files with "truth", "label", "student", "records", "queries" or "prior" in their names are
        passed over.

        Raises:
            VoteError: no folder, or no vote file in it.
        """
        if not self.path.is_dir():
            raise VoteError(f"{self.path}: no such folder; give --votes DIR")
        files = [file.name for file in self.path.iterdir() if file.suffix in (".parquet", ".npy")]
        names = tuple(sorted(name for name in files if not _NO_VOTES.search(name)))
        if not names:
            raise VoteError(f"{self.path}: holds no vote file (.parquet or .npy); give --votes DIR")
        return names

    def absent(self, names: Iterable[str]) -> tuple[str, ...]:
        """Names that are not files here."""
        return tuple(name for name in names if not (self.path / name).is_file())

    def ask(self, round_: RoundOfRow) -> Asked:
        """Read a round's votes and, for Interactive-GNMax, max_j(n_j − τ p_j) of Algorithm 2.

        Raises:
            VoteError: votes or predictions cannot be read, or do not fit one another.
        """
        source = self.path / round_.votes
        # Nothing tells an array of counts from one of labels; all arrays here are counts.
        layout = Layout.COUNTS if source.suffix == ".npy" else None
        with open_votes(source, layout=layout) as file:
            batches = [dense(batch.counts) for batch in file.batches(limit=round_.queries)]
            counts, teachers = np.concatenate(batches), file.teachers
        scores = counts.max(axis=1).astype(np.float64)
        if round_.student is not None:
            shares = _predictions(self.path / round_.student, counts.shape)
            scores = (counts - teachers * shares).max(axis=1)
        known = self.sha256.get(round_.votes)
        authentic = None if known is None else digest_of(source.read_bytes()) == known
        remarks = []
        if authentic is False:
            remarks.append(f"{source.name} is not the authors' file (its sha256 differs)")
        if not round_.sample and len(counts) < (round_.queries or 0):
            remarks.append(
                f"{source.name} holds {len(counts)} rows, the table asks {round_.queries}"
            )
        unit = teachers if round_.sample else 1
        return Asked(
            file=source.name,
            counts=counts,
            teachers=teachers,
            noise={name: unit * value for name, value in round_.noise.items()},
            scores=scores,
            student=round_.student is not None,
            authentic=authentic,
            remarks=tuple(remarks),
        )


def _predictions(source: Path, shape: tuple[int, ...]) -> Floats:
    """A student's class probabilities for the queries of a round, [queries, classes]."""
    try:
        with source.open("rb") as file:
            found = np.lib.format.read_array(file, allow_pickle=False)
        predicted = np.asarray(found[: shape[0]], dtype=np.float64)
    except (OSError, ValueError, EOFError, IndexError) as error:
        raise VoteError(f"{source}: is not an NPY array of student predictions") from error
    if predicted.shape != shape:
        raise VoteError(
            f"{source}: student predictions of shape {found.shape} do not fit votes {shape}"
        )
    good = (predicted >= 0.0).all(axis=1) & (np.abs(predicted.sum(axis=1) - 1.0) <= _SUM_TOLERANCE)
    if not good.all():
        raise VoteError(f"{source}: row {int(np.argmin(good))} is no probability distribution")
    return predicted
