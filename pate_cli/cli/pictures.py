"""What --plot and --accuracy add to commands: from an opened file to a figure or a table."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pate_cli.cli.setup import MechanismOptions, bound_batches
from pate_cli.errors import UsageError
from pate_cli.words import Analysis, MechanismName

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from pate_cli.files.transaction import Outputs
    from pate_cli.pricing.accuracy import AccuracyPoint
    from pate_cli.votes import VoteFile
    from pate_cli.votes.side_files import Truth

__all__ = ["accuracy_result", "check_accuracy", "growth", "reserve_plot"]

_CURVES = (
    MechanismName.LNMAX,
    MechanismName.GNMAX,
    MechanismName.CONFIDENT,
    MechanismName.INTERACTIVE,
)


def reserve_plot(out: Outputs, plot: Path | None) -> None:
    """Promise the picture, which shows votes, in a file for its owner alone."""
    if plot is None:
        return
    from pate_cli.plots import check_plot

    check_plot(plot)
    out.reserve(plot, mode=0o600)


def growth(file: VoteFile, described: MechanismOptions, *, queries: int, delta: float) -> Any:
    """The figure of cumulative costs, for every aggregator with a Rényi cost.

    Each takes the command's own flags where it knows them, and its defaults otherwise.
    """
    from pate_cli.figures import growth_figure
    from pate_cli.pricing.growth import measure_growth

    curves = {}
    for name in _CURVES:
        options = described.restricted_to(name)
        if options is None:
            continue
        mechanism = options.build(teachers=file.teachers, classes=file.classes)
        curves[mechanism.name] = measure_growth(
            bound_batches(file, mechanism, queries), delta=delta
        )
    return growth_figure(curves, delta=delta)


def check_accuracy(
    described: MechanismOptions,
    *,
    accuracy: bool,
    truth: Path | None,
    analysis: Analysis,
    others: dict[str, bool],
) -> None:
    """Refuse what --accuracy would silently ignore, and --truth without it.

    Raises:
        UsageError: naming the flag.
    """
    if accuracy != (truth is not None):
        raise UsageError("--accuracy and --truth FILE go together")
    if not accuracy:
        return
    chosen = [value for value in asdict(described).values() if value is not None]
    if chosen != [MechanismName.CONFIDENT, described.teachers_per_record] or (
        analysis is not Analysis.TIGHT
    ):
        raise UsageError(
            "--accuracy prices gnmax and lnmax over its own range of noise, by the tight analysis; "
            "leave out the mechanism's flags and --analysis"
        )
    for flag, given in others.items():
        if given:
            raise UsageError(f"{flag} does not go with --accuracy")


def accuracy_result(
    file: VoteFile, truth: Path, *, queries: int, delta: float, teachers_per_record: int
) -> tuple[dict[str, Any], list[AccuracyPoint]]:
    """The table of `pate cost --accuracy`, and its points for a picture."""
    from pate_cli.pricing.accuracy import measure_accuracy
    from pate_cli.votes.side_files import load_truth

    known = load_truth(truth)
    points = measure_accuracy(
        lambda: _with_truth(file, known, queries),
        teachers=file.teachers,
        classes=file.classes,
        delta=delta,
        teachers_per_record=teachers_per_record,
    )
    return {
        "schema_version": 1,
        "releasable": False,
        "queries": queries,
        "delta": delta,
        "accuracy": [asdict(point) for point in points],
    }, points


def _with_truth(
    file: VoteFile, truth: Truth, queries: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    for batch in file.batches(limit=queries):
        yield batch.counts, truth.of(batch.ids, batch.first_row, classes=file.classes)
