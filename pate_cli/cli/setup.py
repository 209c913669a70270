"""From options to the objects that library calls take."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pate_cli.choices import Analysis, MechanismName, ReleaseKind
from pate_cli.errors import ParameterError, UsageError

if TYPE_CHECKING:
    from pate_cli.mechanisms import Mechanism
    from pate_cli.votes import VoteFile

__all__ = ["build_mechanism", "count_queries", "refuse_overwriting", "release_kind", "stem_of"]

# Defaults in units of the number of teachers: the proportions of the ICLR 2018 paper's MNIST runs.
_THRESHOLD, _SIGMA1, _SIGMA2 = 0.8, 0.6, 0.16


def build_mechanism(
    name: MechanismName,
    *,
    teachers: int,
    classes: int,
    threshold: float | None,
    sigma1: float | None,
    sigma2: float | None,
) -> Mechanism:
    """The mechanism that the options describe, with defaults in proportion to the teachers.

    Raises:
        UsageError: an option that the chosen mechanism does not have.
        ParameterError: a number out of range.
    """
    from pate_cli.mechanisms import ConfidentGNMax, GNMax

    noise = _SIGMA2 * teachers if sigma2 is None else sigma2
    if name is MechanismName.GNMAX:
        for flag, value in (("--threshold", threshold), ("--sigma1", sigma1)):
            if value is not None:
                raise UsageError(
                    f"{flag} goes with --mechanism confident; gnmax answers everything"
                )
        return GNMax(teachers=teachers, classes=classes, sigma2=noise)
    return ConfidentGNMax(
        teachers=teachers,
        classes=classes,
        threshold=_THRESHOLD * teachers if threshold is None else threshold,
        sigma1=_SIGMA1 * teachers if sigma1 is None else sigma1,
        sigma2=noise,
    )


def release_kind(
    wanted: ReleaseKind | None, *, analysis: Analysis, as_published: bool
) -> ReleaseKind:
    """What --release says, or its default: a bound, except where the paper has estimates only."""
    if as_published and analysis is not Analysis.PAPER:
        raise UsageError("--as-published goes with --analysis paper")
    if wanted is not None:
        return wanted
    return ReleaseKind.UNBIASED if as_published else ReleaseKind.UPPER


def count_queries(
    votes: VoteFile, *, max_queries: int | None, max_answers: int | None
) -> tuple[int, int]:
    """(k1, k2): the rows that are asked and the public cap on answers, both within the file."""
    for flag, value in (("--max-queries", max_queries), ("--max-answers", max_answers)):
        if value is not None and value < 1:
            raise ParameterError(f"{flag} must be at least 1, got {value}")
    queries = votes.queries if max_queries is None else min(max_queries, votes.queries)
    return queries, queries if max_answers is None else min(max_answers, queries)


def stem_of(source: str) -> str:
    """A file stem for outputs named after the votes; `votes` when the source has no name."""
    last = re.split(r"[/\\]", source.rstrip("/\\"))[-1]
    stem = re.sub(r"\.(parquet|npy)$", "", last, flags=re.IGNORECASE)
    nameless = not stem.strip(".-") or re.search(r"[*?\[\]:]", stem)
    return "votes" if nameless else stem


def refuse_overwriting(votes: str, *outputs: str | os.PathLike[str] | None) -> None:
    """Refuse an output that is the vote file or a part of it: not even --force may replace votes.

    Raises:
        UsageError: naming the output.
    """
    for output in outputs:
        if output is None or not Path(output).is_file():
            continue
        with contextlib.suppress(OSError):  # a URI or a pipe is no file here, so not the same one
            if any(Path(votes).samefile(at) for at in (output, Path(output).resolve().parent)):
                raise UsageError(
                    f"{os.fspath(output)} is among the votes; give the output another name"
                )
