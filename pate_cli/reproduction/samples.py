"""Rows for votes the paper does not know: its MNIST proportions on every file of a folder."""

from __future__ import annotations

import re
from pathlib import Path

from pate_cli.errors import VoteError
from pate_cli.reproduction.figures import ConfidentRow, LaplaceRow, ReleaseRow, RoundFigures

__all__ = ["MOST_ROWS", "NOTE", "sample_rows"]

# In units of the number of teachers: T = 200, σ1 = 150, σ2 = 40 and b = 20 of 250.
_THRESHOLD, _SIGMA1, _SIGMA2, _LAPLACE_SCALE = 0.8, 0.6, 0.16, 0.08
_DELTA = 1e-5
# As many as the paper's longest run.
MOST_ROWS = 12_000

_SUFFIXES = (".parquet", ".npy")
_NO_VOTES = re.compile(r"truth|label|student", re.IGNORECASE)

NOTE = (
    "Sample votes, not the authors': no published figures to compare. T = 0.8, sigma1 = 0.6, "
    "sigma2 = 0.16 and the Laplace scale 0.08 times the number of teachers, delta 1e-05, at most "
    f"{MOST_ROWS} rows; for the published columns order, beta and sigma_SS are chosen on the "
    "votes, as in the paper."
)


def sample_rows(
    folder: Path,
) -> tuple[tuple[LaplaceRow | ConfidentRow, ...], tuple[ReleaseRow, ...]]:
    """Rows of Table 1 and of Table 2 for every vote file in a folder, in order of name.

    Files with "truth", "label" or "student" in their names are passed over.

    Raises:
        VoteError: no folder, or no vote file in it.
    """
    if not folder.is_dir():
        raise VoteError(f"{folder}: no such folder; give --votes DIR")
    names = sorted(
        file.name
        for file in folder.iterdir()
        if file.suffix in _SUFFIXES and not _NO_VOTES.search(file.name) and file.is_file()
    )
    if not names:
        raise VoteError(f"{folder}: holds no vote file (.parquet or .npy); give --votes DIR")
    first: list[LaplaceRow | ConfidentRow] = []
    second = []
    for name in names:
        one = RoundFigures(
            votes=name,
            threshold=_THRESHOLD,
            sigma1=_SIGMA1,
            sigma2=_SIGMA2,
            queries=None,
            per_teacher=True,
        )
        first.append(
            LaplaceRow(
                dataset=name,
                votes=name,
                queries=None,
                scale=_LAPLACE_SCALE,
                delta=_DELTA,
                per_teacher=True,
            )
        )
        first.append(ConfidentRow(name, "Confident-GNMax", (one,), _DELTA))
        second.append(ReleaseRow(name, (one,), _DELTA))
    return tuple(first), tuple(second)
