"""From options to the objects that library calls take."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pate_cli.errors import ParameterError, UsageError
from pate_cli.words import Analysis, MechanismName, ReleaseKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from pate_cli.mechanisms import Mechanism
    from pate_cli.mechanisms.sparse_vector import SparseVector
    from pate_cli.mechanisms.stability import Stability
    from pate_cli.votes import VoteFile

__all__ = [
    "MechanismOptions",
    "bound_batches",
    "count_queries",
    "refuse_overwriting",
    "release_kind",
    "stem_of",
]

# Defaults in units of the number of teachers: the proportions of the ICLR 2018 paper's MNIST runs.
_THRESHOLD, _SIGMA1, _SIGMA2, _LAPLACE_SCALE = 0.8, 0.6, 0.16, 0.08
_CONFIDENCE = 0.9
_REFUSALS = 10
# The stability family asks for half the distance of a unanimous vote: less noise per query than
# a third of it, and still within reach of confident queries.
_STABLE_SHARE = 0.5

_FLAGS = {
    MechanismName.CONFIDENT: ("--threshold", "--sigma1", "--sigma2"),
    MechanismName.INTERACTIVE: (
        "--student",
        "--confidence",
        "--threshold",
        "--sigma1",
        "--sigma2",
    ),
    MechanismName.GNMAX: ("--sigma2",),
    MechanismName.LNMAX: ("--laplace-scale",),
    MechanismName.STABILITY: ("--query-epsilon", "--query-delta"),
    MechanismName.SPARSE_VECTOR: ("--query-epsilon", "--query-delta", "--refusals"),
}


def _field(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


@dataclass(frozen=True)
class MechanismOptions:
    """The options that describe a mechanism; None is a default in proportion to the teachers."""

    name: MechanismName
    threshold: float | None
    sigma1: float | None
    sigma2: float | None
    laplace_scale: float | None
    student: Path | None
    confidence: float | None
    teachers_per_record: int
    query_epsilon: float | None = None
    query_delta: float | None = None
    refusals: int | None = None

    def __post_init__(self) -> None:
        flags = {
            "--threshold": self.threshold,
            "--sigma1": self.sigma1,
            "--sigma2": self.sigma2,
            "--laplace-scale": self.laplace_scale,
            "--student": self.student,
            "--confidence": self.confidence,
            "--query-epsilon": self.query_epsilon,
            "--query-delta": self.query_delta,
            "--refusals": self.refusals,
        }
        for flag, value in flags.items():
            if value is not None and flag not in _FLAGS[self.name]:
                raise UsageError(
                    f"{flag} does not go with --mechanism {self.name}, "
                    f"which takes {', '.join(_FLAGS[self.name])}"
                )
        if self.name is MechanismName.INTERACTIVE and self.student is None:
            raise UsageError("--mechanism interactive needs --student FILE, the predictions")

    @property
    def stable(self) -> bool:
        """Whether this is one of the stability family, which is accounted for differently."""
        return self.name in (MechanismName.STABILITY, MechanismName.SPARSE_VECTOR)

    def restricted_to(self, name: MechanismName) -> MechanismOptions | None:
        """The same options for another mechanism, as far as it has them; None if it lacks input."""
        if name is MechanismName.INTERACTIVE and self.student is None:
            return None
        values: dict[str, Any] = {
            _field(flag): getattr(self, _field(flag)) if flag in _FLAGS[name] else None
            for flags in _FLAGS.values()
            for flag in flags
        }
        return replace(self, name=name, **values)

    def build_stable(
        self, *, teachers: int, classes: int, queries: int, delta: float
    ) -> Stability | SparseVector:
        """The stability or sparse-vector mechanism, with defaults in proportion to the run.

        Half of δ goes to the queries' (or epochs') own δ's, the rest to composition.
        """
        from pate_cli.mechanisms.sparse_vector import SparseVector
        from pate_cli.mechanisms.stability import Stability

        reach = self.teachers_per_record
        if self.name is MechanismName.STABILITY:
            query_delta = delta / queries if self.query_delta is None else self.query_delta
            query_epsilon = self.query_epsilon
            if query_epsilon is None:
                query_epsilon = Stability.default_query_epsilon(
                    teachers, query_delta=query_delta, reach=reach, share=_STABLE_SHARE
                )
            return Stability(teachers, classes, query_epsilon, query_delta, reach)
        refusals = _REFUSALS if self.refusals is None else self.refusals
        query_delta = (
            delta / (2 * max(refusals, 1)) if self.query_delta is None else self.query_delta
        )
        query_epsilon = self.query_epsilon
        if query_epsilon is None:
            query_epsilon = SparseVector.default_query_epsilon(
                teachers, query_delta=query_delta, reach=reach, share=_STABLE_SHARE
            )
        return SparseVector(teachers, classes, query_epsilon, query_delta, refusals, reach)

    def build(self, *, teachers: int, classes: int) -> Mechanism:
        """The mechanism; ParameterError for a number out of range."""
        from pate_cli.mechanisms import ConfidentGNMax, GNMax, InteractiveGNMax, LNMax
        from pate_cli.votes.side_files import load_predictions

        def scaled(value: float | None, share: float) -> float:
            return share * teachers if value is None else value

        if self.stable:
            raise UsageError(
                f"{self.name} has no Renyi cost; pate aggregate --dry-run prints its epsilon"
            )
        common: dict[str, Any] = {
            "teachers": teachers,
            "classes": classes,
            "teachers_per_record": self.teachers_per_record,
        }
        if self.name is MechanismName.LNMAX:
            return LNMax(laplace_scale=scaled(self.laplace_scale, _LAPLACE_SCALE), **common)
        common["sigma2"] = scaled(self.sigma2, _SIGMA2)
        if self.name is MechanismName.GNMAX:
            return GNMax(**common)
        common["threshold"] = scaled(self.threshold, _THRESHOLD)
        common["sigma1"] = scaled(self.sigma1, _SIGMA1)
        if self.student is None:
            return ConfidentGNMax(**common)
        return InteractiveGNMax(
            predictions=load_predictions(self.student),
            confidence=_CONFIDENCE if self.confidence is None else self.confidence,
            **common,
        )


def assumptions(file: VoteFile) -> list[str]:
    """What a guarantee takes as public although it was read off the votes."""
    found = []
    if file.classes_from_data:
        found.append(
            f"The number of classes, {file.classes}, was read off the votes; every statement "
            "takes it as public knowledge. Give --classes to settle it."
        )
    if file.rows_from_data:
        found.append(
            "Votes may be missing in a long-form file, so which queries it holds depends on the "
            "votes; every statement takes the list of queries as public knowledge."
        )
    return found


def bound_batches(
    file: VoteFile, mechanism: Mechanism, queries: int
) -> Iterator[tuple[Mechanism, NDArray[np.int64]]]:
    """The first rows of a file in batches, each with the mechanism bound to its rows."""
    for batch in file.batches(limit=queries):
        yield mechanism.for_rows(batch.ids, batch.first_row), batch.counts


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


def refuse_overwriting(
    source: str | os.PathLike[str],
    *outputs: str | os.PathLike[str] | None,
    what: str = "among the votes",
) -> None:
    """Refuse an output that is an input or a part of it: not even --force may replace votes.

    Args:
        source: the input, a file or a folder of parts.
        outputs: paths that are to be written.
        what: the input in words, "... is {what}".

    Raises:
        UsageError: naming the output.
    """
    for output in outputs:
        if output is None or not Path(output).is_file():
            continue
        with contextlib.suppress(OSError):  # a URI or a pipe is no file here, so not the same one
            if any(Path(source).samefile(at) for at in (output, Path(output).resolve().parent)):
                raise UsageError(f"{os.fspath(output)} is {what}; give the output another name")
