"""`pate cost`: what the votes would cost, and which queries are expensive and why."""

from __future__ import annotations

import enum
import functools
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pate_cli.cli import options as opt
from pate_cli.cli.notes import note, outputs, prints_json
from pate_cli.cli.pictures import accuracy_result, check_accuracy, reserve_plot
from pate_cli.cli.setup import (
    MechanismOptions,
    bound_batches,
    count_queries,
    refuse_overwriting,
)
from pate_cli.errors import UsageError
from pate_cli.label_format import LabelFormat
from pate_cli.words import Analysis, MechanismName

if TYPE_CHECKING:
    from pate_cli.mechanisms.sparse_vector import SparseVector
    from pate_cli.mechanisms.stability import Stability
    from pate_cli.pricing.cost import CostSummary
    from pate_cli.votes import VoteFile

__all__ = ["cost"]


class OrderChoice(enum.StrEnum):
    """Which Rényi orders to try."""

    DEFAULT = "default"
    MOMENTS = "moments"


def cost(
    votes: opt.Votes,
    mechanism: opt.Mechanism = MechanismName.CONFIDENT,
    threshold: opt.Threshold = None,
    sigma1: opt.Sigma1 = None,
    sigma2: opt.Sigma2 = None,
    laplace_scale: opt.LaplaceScale = None,
    student: opt.Student = None,
    confidence: opt.Confidence = None,
    teachers_per_record: opt.TeachersPerRecord = 1,
    max_queries: opt.MaxQueries = None,
    max_answers: opt.MaxAnswers = None,
    delta: opt.Delta = 1e-5,
    analysis: opt.AnalysisOption = Analysis.TIGHT,
    order: Annotated[
        float | None, typer.Option("--order", help="One Renyi order only. Default: many.")
    ] = None,
    orders: Annotated[
        OrderChoice,
        typer.Option("--orders", help="moments: orders 2 to 9, the 2017 paper's lambda <= 8."),
    ] = OrderChoice.DEFAULT,
    per_query: Annotated[
        Path | None,
        typer.Option(
            "--per-query", help="Also write one row per query (.parquet, .csv, .jsonl; mode 0600)."
        ),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="All mechanisms side by side, at as many expected answers as this one.",
        ),
    ] = False,
    accuracy: Annotated[
        bool,
        typer.Option(
            "--accuracy",
            help="How often labels are right and what they cost, over a range of noise.",
        ),
    ] = False,
    truth: Annotated[
        Path | None,
        typer.Option("--truth", help="True labels of the queries: NPY, or Parquet with `label`."),
    ] = None,
    plot: opt.Plot = None,
    as_json: opt.Json = False,
    layout: opt.LayoutOption = None,
    classes: opt.Classes = None,
    teachers: opt.Teachers = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
) -> None:
    """Price votes: by step, by order and by query. NOT releasable: it describes the votes.

    tight sums the Renyi cost of every query; paper repeats the published expected cost.
    """
    import numpy as np

    from pate_cli.accounting.conversion import round_up
    from pate_cli.pricing.cost import TIGHT_ORDERS, measure_cost
    from pate_cli.published import MOMENT_ORDERS, TABLE_ORDERS
    from pate_cli.release.worst_case import Spending, data_independent_cost
    from pate_cli.votes import open_votes

    if order is not None and orders is not OrderChoice.DEFAULT:
        raise UsageError(f"give --order or --orders {orders}, not both")
    if order is not None:
        wanted = np.array([order])
    elif orders is OrderChoice.MOMENTS:
        wanted = np.asarray(MOMENT_ORDERS, dtype=np.float64)
    else:
        wanted = TIGHT_ORDERS if analysis is Analysis.TIGHT else np.asarray(TABLE_ORDERS)
    if compare and per_query is not None:
        raise UsageError("--per-query does not go with --compare, which describes no queries")
    if compare and plot is not None:
        raise UsageError("--plot does not go with --compare, which has no picture")
    refuse_overwriting(votes, per_query, plot)
    described = MechanismOptions(
        mechanism,
        threshold,
        sigma1,
        sigma2,
        laplace_scale,
        student,
        confidence,
        teachers_per_record,
    )
    check_accuracy(
        described,
        accuracy=accuracy,
        truth=truth,
        analysis=analysis,
        others={
            "--compare": compare,
            "--per-query": per_query is not None,
            "--order": order is not None,
            "--orders": orders is not OrderChoice.DEFAULT,
            "--max-answers": max_answers is not None,
        },
    )
    with outputs(force=force) as out:
        reserve_plot(out, plot)
        if per_query is not None:
            per_query_format = LabelFormat.from_path(per_query)
            out.reserve(per_query, mode=0o600)
        with open_votes(votes, layout=layout, classes=classes, teachers=teachers) as file:
            note(file.describe(), quiet=quiet)
            queries, cap = count_queries(file, max_queries=max_queries, max_answers=max_answers)
            if truth is not None:
                table, points = accuracy_result(
                    file,
                    truth,
                    queries=queries,
                    delta=delta,
                    teachers_per_record=teachers_per_record,
                )
                if plot is not None:
                    from pate_cli.figures import accuracy_figure
                    from pate_cli.plots import encode_figure

                    figure = accuracy_figure(points, queries=queries, delta=delta)
                    out.write(plot, encode_figure(figure, plot))
                _show(table, as_json=as_json)
                return
            aggregator = described.build(teachers=file.teachers, classes=file.classes)
            summary = measure_cost(
                lambda: bound_batches(file, aggregator, queries),
                orders=wanted,
                delta=delta,
                analysis=analysis,
            )
            if compare:
                wanted_answers = min(float(cap), summary.expected_answers)
                _show(
                    _compared(
                        file, described, queries=queries, answers=wanted_answers, delta=delta
                    ),
                    as_json=as_json,
                )
                return
            bound = data_independent_cost(
                [Spending(aggregator, queries, cap)], delta=delta, plan=None
            )
            if per_query is not None:
                ids = [one for batch in file.batches(limit=queries) for one in batch.ids]
                out.write(per_query, _per_query(summary, ids, per_query_format))
            if plot is not None:
                from pate_cli.figures import cost_figure
                from pate_cli.plots import encode_figure

                figure = cost_figure(
                    summary.histogram(file.teachers),
                    mechanism=aggregator.name,
                    order=summary.order,
                    teachers=file.teachers,
                )
                out.write(plot, encode_figure(figure, plot))
    result: dict[str, Any] = {
        "schema_version": 1,
        "releasable": False,
        "analysis": analysis.value,
        "mechanism": aggregator.parameters(),
        "queries": summary.queries,
        "max_answers": cap,
        "expected_answers": summary.expected_answers,
        "epsilon": summary.epsilon,
        "order": summary.order,
        "order_at_edge": summary.at_edge,
        "delta": delta,
        "orders": summary.orders.tolist(),
        "rdp": summary.rdp.tolist(),
        "steps": {step: values.tolist() for step, values in summary.steps.items()},
        "data_independent": {
            "epsilon": round_up(bound.epsilon),
            "order": bound.order,
            "method": bound.method,
        },
        "per_query": {
            "order": summary.order,
            "quantiles": summary.quantiles(),
            "by_plurality": summary.histogram(file.teachers),
        },
    }
    _show(result, as_json=as_json)


def _show(result: dict[str, Any], *, as_json: bool) -> None:
    """JSON for a pipe, a table for a person."""
    if prints_json(result, as_json=as_json):
        return
    from pate_cli.cli.tables import print_accuracy, print_compare, print_cost

    for key, print_table in {"compare": print_compare, "accuracy": print_accuracy}.items():
        if key in result:
            print_table(result)
            return
    print_cost(result)


def _compared(
    file: VoteFile, described: MechanismOptions, *, queries: int, answers: float, delta: float
) -> dict[str, Any]:
    """Every mechanism that applies, each with its own flags or defaults."""
    from pate_cli.pricing.compare import compare_mechanism, compare_stable

    rows = []
    for name in MechanismName:
        options = described.restricted_to(name)
        if options is None:
            continue
        if options.stable:
            rows.append(
                compare_stable(
                    lambda: (batch.counts for batch in file.batches(limit=queries)),
                    functools.partial(_stable, options, file, queries=queries, delta=delta),
                    answers=answers,
                    delta=delta,
                )
            )
            continue
        one = options.build(teachers=file.teachers, classes=file.classes)
        rows.append(
            compare_mechanism(
                functools.partial(bound_batches, file, one, queries),
                one,
                answers=answers,
                delta=delta,
            )
        )
    return {
        "schema_version": 1,
        "releasable": False,
        "matched_answers": answers,
        "delta": delta,
        "compare": [asdict(row) for row in rows],
    }


def _stable(
    options: MechanismOptions, file: VoteFile, refusals: int, *, queries: int, delta: float
) -> Stability | SparseVector:
    """The stability mechanism, or sparse vector with so many refusals."""
    if options.name is MechanismName.SPARSE_VECTOR:
        options = replace(options, refusals=refusals)
    return options.build_stable(
        teachers=file.teachers, classes=file.classes, queries=queries, delta=delta
    )


def _per_query(summary: CostSummary, ids: list[Any], table_format: LabelFormat) -> bytes:
    import numpy as np

    from pate_cli.results import encode_columns

    columns = {
        "query_id": np.array(ids),
        "plurality": summary.plurality,
        "answer_probability": summary.answer,
        **{f"cost_{step}": values for step, values in summary.per_query.items()},
        "cost": summary.query_total,
    }
    return encode_columns(columns, table_format)
