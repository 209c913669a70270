"""A run of the stability family, whose (ε, δ) is data-independent and needs no sanitizing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pate_cli.accounting.conversion import round_up
from pate_cli.errors import VoteError
from pate_cli.labels import LabelTable, concatenate
from pate_cli.mechanisms.sparse_vector import SparseVector
from pate_cli.mechanisms.stability import Stability
from pate_cli.noise import Noise
from pate_cli.release.guarantee import adjacency, covers, statements, summary
from pate_cli.release.report import SCHEMA_VERSION, DataIndependent, PublicReport, Sanitized
from pate_cli.run import label_batches, with_metadata
from pate_cli.votes import VoteBatch
from pate_cli.words import ReleaseKind

__all__ = ["aggregate_stable", "price_stable"]


def aggregate_stable(
    batches: Iterable[VoteBatch],
    mechanism: Stability | SparseVector,
    *,
    queries: int,
    max_answers: int,
    delta: float,
    noise: Noise,
    progress: Callable[[int], None] | None = None,
    warnings: Sequence[str] = (),
) -> tuple[LabelTable, PublicReport]:
    """Labels and report of a stability or sparse-vector run.

    Args:
        batches: exactly the `queries` histograms to be asked, in order.
        mechanism: the aggregator with its per-query budget.
        queries: k1, fixed before any vote was seen.
        max_answers: the public cap on answers; it stops the run and does not lower ε.
        delta: δ of the whole guarantee.
        noise: the source of all noise.
        progress: called with the number of rows of each finished batch.
        warnings: what else a reader of the report should know.

    Raises:
        UnreachableError: δ below what the queries' own δ's amount to.
        VoteError: fewer or more rows than `queries`.
    """
    cost = mechanism.privacy(queries, delta)
    labeller = mechanism.start() if isinstance(mechanism, SparseVector) else mechanism
    tables = []
    for _, table in label_batches(batches, labeller, noise=noise, max_answers=max_answers):
        tables.append(table)
        if progress is not None:
            progress(len(table))
    labels = concatenate(tables)
    if len(labels) != queries:
        raise VoteError(f"expected {queries} queries, the votes hold {len(labels)}")
    epsilon = round_up(cost.epsilon)
    answers = int(np.sum(labels.sources == "teachers"))
    report = PublicReport(
        epsilon=epsilon,
        delta=delta,
        private=noise.private,
        sound=True,
        analysis="composition",
        mechanism=mechanism.parameters(),
        queries=queries,
        answers=answers,
        max_answers=max_answers,
        sanitized=Sanitized(release=ReleaseKind.NONE.value),
        data_independent=DataIndependent(
            epsilon=epsilon,
            order=None,
            method=cost.method,
            labels_epsilon=epsilon,
            labels_order=None,
            labels_method=cost.method,
        ),
        summary=summary(
            kind=ReleaseKind.NONE,
            private=noise.private,
            epsilon=epsilon,
            delta=delta,
            data_independent=True,
            sound=True,
            rounds=1,
        ),
        adjacency=adjacency(mechanism.reach),
        covers=covers(ReleaseKind.NONE),
        statements=statements(ReleaseKind.NONE, private=noise.private, sound=True, rounds=1),
        rounds=(
            {
                "mechanism": mechanism.parameters(),
                "queries": queries,
                "max_answers": max_answers,
                "answers": answers,
            },
        ),
        warnings=(*warnings, *_composition_warning(epsilon)),
    )
    return with_metadata(labels, report), report


def price_stable(
    mechanism: Stability | SparseVector, *, queries: int, max_answers: int, delta: float
) -> dict[str, Any]:
    """What a run would cost, before anything is spent; all of it public."""
    cost = mechanism.privacy(queries, delta)
    epsilon = round_up(cost.epsilon)
    return {
        "schema_version": SCHEMA_VERSION,
        "dry_run": True,
        "epsilon": epsilon,
        "delta": delta,
        "mechanism": mechanism.parameters(),
        "threshold": mechanism.threshold,
        "queries": queries,
        "max_answers": max_answers,
        "planned_release": {"release": ReleaseKind.NONE.value},
        "data_independent": {
            "epsilon": epsilon,
            "order": None,
            "method": cost.method,
            "labels_epsilon": epsilon,
            "labels_order": None,
            "labels_method": cost.method,
        },
    }


def _composition_warning(epsilon: float) -> tuple[str, ...]:
    """A word on an ε that promises nothing."""
    if epsilon <= 20.0:
        return ()
    return (
        "This epsilon promises practically nothing. Ask fewer queries, allow fewer refusals, lower "
        "--query-epsilon, or use --mechanism confident, whose cost grows more slowly.",
    )
