"""The vote files of the authors of the PATE papers: their download, verification and reading.

All files are verified before the first one is written. The paths in the archive do not decide where
files are written. From the archive, the code reads only regular files that have the name of a file
of the authors, in any folder. `fetch_votes` refuses an archive that is larger than `most` bytes, or
whose expected files are larger than `most` bytes in total. A file whose digest is right is written
to its expected name.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import re
import tarfile
import urllib.request
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from pate_cli.core.arrays import Counts, Floats, dense
from pate_cli.core.errors import OutputError, VoteError
from pate_cli.core.words import Layout
from pate_cli.files.outputs import Outputs
from pate_cli.paper.rows import RoundOfRow
from pate_cli.votes.opening import open_votes

_SILENCE = 30.0  # a download fails after so many seconds without a byte


def fetch_votes(url: str, into: Path, expected: Mapping[str, str], most: int = 128 << 20) -> None:
    """Download a tar archive, gzipped or not, and write its expected files into a folder.

    Files that exist already are not written again. If all files exist, nothing is downloaded.

    Args:
        url: the http, https or file address of the archive.
        into: the folder; it is made if it does not exist.
        expected: the hex sha256 of each file, by name.
        most: the largest number of bytes to download, and the largest number to unpack.

    Raises:
        VoteError: the archive cannot be downloaded, is damaged or too large, lacks an expected
            file, or has a file with a wrong sha256.
        OutputError: the folder cannot be written, or has a file with an expected name and a wrong
            sha256.
    """
    wanted = [name for name in expected if not (into / name).exists()]
    for name in set(expected) - set(wanted):
        if digest_of((into / name).read_bytes()) != expected[name]:
            raise OutputError(
                f"{into / name} is not the authors' file; move it to another folder, and download "
                "again"
            )
    if not wanted:
        return
    files = _unpacked(_downloaded(url, most), wanted, most)
    for name, content in files.items():
        if digest_of(content) != expected[name]:
            raise VoteError(
                f"{name} in the archive has another sha256 than the authors' file, so no file was "
                "written; check `url`"
            )
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{into}: cannot be written: {error.strerror}") from error
    with Outputs() as out:
        for name, content in files.items():
            out.reserve(into / name)
            out.write(into / name, content)


def digest_of(content: bytes) -> str:
    """Return the hex sha256 of the content of a file."""
    return hashlib.sha256(content).hexdigest()


def _downloaded(url: str, most: int) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=_SILENCE) as response:  # noqa: S310  verified after
            data: bytes = response.read(most + 1)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise VoteError(f"{url}: cannot be fetched: {error}") from error
    if len(data) > most:
        raise VoteError(f"{url}: larger than {most >> 20} MiB; refused")
    return data


def _unpacked(archive: bytes, names: Collection[str], most: int) -> dict[str, bytes]:
    """Return the contents of the named files in an archive.

    Raises:
        VoteError: a file is missing, the archive is damaged, or the files have more than `most`
            bytes together.
    """
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:*") as tar:
            for member in tar:
                name = PurePosixPath(member.name).name
                content = tar.extractfile(member) if member.isreg() else None
                if content is None or name not in names or name in found:
                    continue
                most -= member.size
                if most < 0:
                    raise VoteError(
                        "the archive unpacks to more bytes than are accepted, so no file was "
                        "written; check `url`"
                    )
                found[name] = content.read()
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise VoteError(
            f"the archive is damaged, cut short or not a tar file: {error}; check `url`, and "
            "download again"
        ) from error
    missing = [name for name in names if name not in found]
    if missing:
        raise VoteError(
            f"the archive lacks {', '.join(missing)}, so no file was written; check `url`"
        )
    return found


_NO_VOTES = re.compile(r"truth|label|student|records|queries|prior", re.IGNORECASE)
# A softmax in single precision sometimes differs from 1 by a little more than 1e-6.
_SUM_TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class Asked:
    """One run of an aggregator with its votes. SECRET.

    Attributes:
        file: the name of the vote file.
        counts: the votes on the rows that are asked, [queries, classes].
        teachers: τ, the number of teachers.
        noise: `threshold`, `sigma1` and `sigma2`, or `laplace_scale`, in votes.
        scores: the scores that the threshold check compares with T, [queries].
        student: whether the probabilities of a student were subtracted from the votes.
        authentic: whether the vote file is the file of the authors; None if the digest of the
            authors' file is not known.
        remarks: what a reader should know about the vote file, for example if it has too few rows.
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
        """Return the parameters of the run without its votes, ready for JSON."""
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
    """A folder of vote files.

    Attributes:
        path: the path of the folder.
        sha256: the hex digest of each vote file of the authors, by file name; a file whose digest
            is not known is left out.
    """

    path: Path
    sha256: Mapping[str, str]

    def names(self) -> tuple[str, ...]:
        """Return the names of the vote files (.parquet, .npy) in the folder, in order.

        Files whose names have "truth", "label", "student", "records", "queries" or "prior" in them
        are no vote files.

        Raises:
            VoteError: there is no such folder, or no vote file in it.
        """
        if not self.path.is_dir():
            raise VoteError(f"{self.path}: no such folder; give --votes DIR")
        files = [file.name for file in self.path.iterdir() if file.suffix in (".parquet", ".npy")]
        names = tuple(sorted(name for name in files if not _NO_VOTES.search(name)))
        if not names:
            raise VoteError(f"{self.path}: holds no vote file (.parquet or .npy); give --votes DIR")
        return names

    def absent(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names in `names` that no file in the folder has."""
        return tuple(name for name in names if not (self.path / name).is_file())

    def ask(self, round_: RoundOfRow) -> Asked:
        """Read the votes of a run, and compute the scores that its threshold check compares.

        For Interactive-GNMax the scores are max_j(n_j − τ p_j), as in Algorithm 2.

        Raises:
            VoteError: votes or predictions cannot be read, or have different shapes.
        """
        source = self.path / round_.votes
        # All arrays of the authors and of the samples are counts per class.
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
    """Return the class probabilities of a student for the queries of a run, [queries, classes]."""
    try:
        with source.open("rb") as file:
            found = np.lib.format.read_array(file, allow_pickle=False)
        predicted = np.asarray(found[: shape[0]], dtype=np.float64)
    except (OSError, ValueError, EOFError, IndexError) as error:
        raise VoteError(
            f"{source}: is not an NPY array of student predictions; save class probabilities there "
            "with numpy.save"
        ) from error
    if predicted.shape != shape:
        raise VoteError(
            f"{source}: the student predictions have shape {found.shape}, but the votes have shape "
            f"{shape}; give a row for each query and a column for each class"
        )
    good = (predicted >= 0.0).all(axis=1) & (np.abs(predicted.sum(axis=1) - 1.0) <= _SUM_TOLERANCE)
    if not good.all():
        raise VoteError(f"{source}: row {int(np.argmin(good))} is not a probability distribution")
    return predicted
