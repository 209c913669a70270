"""`pate cost`: what the votes would cost, and which queries are expensive and why."""

from __future__ import annotations

import enum
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pate_cli.choices import Analysis, MechanismName
from pate_cli.cli import options as opt
from pate_cli.cli.notes import note
from pate_cli.cli.setup import MechanismOptions, bound_batches, count_queries
from pate_cli.reports.label_format import LabelFormat

if TYPE_CHECKING:
    from pate_cli.cost import CostSummary

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
    from pate_cli.accounting.published import MOMENT_ORDERS, TABLE_ORDERS
    from pate_cli.cost import TIGHT_ORDERS, measure_cost
    from pate_cli.data_independent import Spending, data_independent_cost
    from pate_cli.reports.outputs import Outputs
    from pate_cli.votes import open_votes

    if order is not None:
        wanted = np.array([order])
    elif orders is OrderChoice.MOMENTS:
        wanted = np.asarray(MOMENT_ORDERS, dtype=np.float64)
    else:
        wanted = TIGHT_ORDERS if analysis is Analysis.TIGHT else np.asarray(TABLE_ORDERS)
    with Outputs(force=force) as out:
        if per_query is not None:
            per_query_format = LabelFormat.from_path(per_query)
            out.reserve(per_query, mode=0o600)
        with open_votes(votes, layout=layout, classes=classes, teachers=teachers) as file:
            note(file.describe(), quiet=quiet)
            queries, cap = count_queries(file, max_queries=max_queries, max_answers=max_answers)
            aggregator = MechanismOptions(
                mechanism,
                threshold,
                sigma1,
                sigma2,
                laplace_scale,
                student,
                confidence,
                teachers_per_record,
            ).build(teachers=file.teachers, classes=file.classes)
            summary = measure_cost(
                lambda: bound_batches(file, aggregator, queries),
                orders=wanted,
                delta=delta,
                analysis=analysis,
            )
            bound = data_independent_cost(
                [Spending(aggregator, queries, cap)], delta=delta, plan=None
            )
            if per_query is not None:
                ids = [one for batch in file.batches(limit=queries) for one in batch.ids]
                out.write(per_query, _per_query(summary, ids, per_query_format))
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
    if as_json or not sys.stdout.isatty():
        sys.stdout.write(json.dumps(result, indent=2, allow_nan=False) + "\n")
    else:
        from pate_cli.cli.tables import print_cost

        print_cost(result)


def _per_query(summary: CostSummary, ids: list[Any], table_format: LabelFormat) -> bytes:
    import numpy as np

    from pate_cli.reports.tables import encode_columns

    columns = {
        "query_id": np.array(ids),
        "plurality": summary.plurality,
        "answer_probability": summary.answer,
        **{f"cost_{step}": values for step, values in summary.per_query.items()},
        "cost": summary.query_total,
    }
    return encode_columns(columns, table_format)
