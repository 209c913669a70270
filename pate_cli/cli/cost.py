"""`pate cost`: what the votes would cost, and which queries are expensive and why."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pate_cli.cli.options import (
    AccountOptions,
    MechanismOptions,
    OutputOptions,
    RenyiOptions,
    ViewOptions,
    VoteOptions,
    Votes,
    bound_batches,
    refuse_overwriting,
    spread,
)
from pate_cli.cli.tables import print_accuracy, print_compare, print_cost
from pate_cli.errors import UsageError
from pate_cli.words import Analysis, LabelFormat, MechanismName, OrderChoice

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from pate_cli.arrays import Floats
    from pate_cli.files.transaction import Outputs
    from pate_cli.mechanisms import Mechanism
    from pate_cli.mechanisms.sparse_vector import SparseVector
    from pate_cli.mechanisms.stability import Stability
    from pate_cli.pricing.accuracy import AccuracyPoint
    from pate_cli.pricing.compare import Comparison
    from pate_cli.pricing.cost import CostSummary
    from pate_cli.release.worst_case import DataIndependentCost
    from pate_cli.votes import VoteFile
    from pate_cli.votes.truth import Truth

__all__ = ["cost"]


@dataclass(frozen=True)
class QuestionOptions:
    """What is asked about the cost: its orders and queries, other mechanisms, or accuracy."""

    order: Annotated[
        float | None, typer.Option("--order", help="One Renyi order only. Default: many.")
    ] = None
    orders: Annotated[
        OrderChoice,
        typer.Option("--orders", help="moments: orders 2 to 9, the 2017 paper's lambda <= 8."),
    ] = OrderChoice.DEFAULT
    per_query: Annotated[
        Path | None,
        typer.Option(
            "--per-query", help="Also write one row per query (.parquet, .csv, .jsonl; mode 0600)."
        ),
    ] = None
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="All mechanisms side by side, at as many expected answers as this one.",
        ),
    ] = False
    accuracy: Annotated[
        bool,
        typer.Option(
            "--accuracy",
            help="How often labels are right and what they cost, over a range of noise.",
        ),
    ] = False
    truth: Annotated[
        Path | None,
        typer.Option("--truth", help="True labels of the queries: NPY, or Parquet with `label`."),
    ] = None

    def __post_init__(self) -> None:
        if self.order is not None and self.orders is not OrderChoice.DEFAULT:
            raise UsageError(f"give --order or --orders {self.orders}, not both")
        if self.compare and self.per_query is not None:
            raise UsageError("--per-query does not go with --compare, which describes no queries")
        if self.accuracy != (self.truth is not None):
            raise UsageError("--accuracy and --truth FILE go together")
        if not self.accuracy:
            return
        for flag, given in (
            ("--compare", self.compare),
            ("--per-query", self.per_query is not None),
            ("--order", self.order is not None),
            ("--orders", self.orders is not OrderChoice.DEFAULT),
        ):
            if given:
                raise UsageError(f"{flag} does not go with --accuracy")

    def check(
        self,
        described: MechanismOptions,
        reading: VoteOptions,
        account: AccountOptions,
        view: ViewOptions,
    ) -> None:
        """Refuse options of other groups that the answer would silently ignore."""
        if self.compare and view.plot is not None:
            raise UsageError("--plot does not go with --compare, which has no picture")
        if not self.accuracy:
            return
        if described.given or account.analysis is not Analysis.TIGHT:
            raise UsageError(
                "--accuracy prices gnmax and lnmax over its own range of noise, by the tight "
                "analysis; leave out the mechanism's flags and --analysis"
            )
        if reading.max_answers is not None:
            raise UsageError("--max-answers does not go with --accuracy")

    def wanted(self, analysis: Analysis) -> Floats:
        """The Rényi orders to try, [orders]."""
        import numpy as np

        from pate_cli.pricing.cost import TIGHT_ORDERS
        from pate_cli.published import MOMENT_ORDERS, TABLE_ORDERS

        if self.order is not None:
            return np.array([self.order])
        if self.orders is OrderChoice.MOMENTS:
            return np.asarray(MOMENT_ORDERS, dtype=np.float64)
        return TIGHT_ORDERS if analysis is Analysis.TIGHT else np.asarray(TABLE_ORDERS)


@spread
def cost(
    votes: Votes,
    described: RenyiOptions,
    reading: VoteOptions,
    account: AccountOptions,
    question: QuestionOptions,
    view: ViewOptions,
    output: OutputOptions,
) -> None:
    """Price votes: by step, by order and by query. NOT releasable: it describes the votes.

    tight sums the Renyi cost of every query; paper repeats the published expected cost.
    """
    question.check(described, reading, account, view)
    refuse_overwriting(votes, question.per_query, view.plot)
    with output.outputs() as out:
        view.reserve(out)
        if question.per_query is not None:
            LabelFormat.from_path(question.per_query)  # refused before any work is done
            out.reserve(question.per_query, mode=0o600)
        with reading.open(votes) as file:
            output.note(file.describe())
            queries, cap = reading.count(file)
            priced = _Priced(file, described, account, queries, cap)
            print_table: Callable[[dict[str, Any]], None]
            if question.truth is not None:
                result, print_table = priced.accuracy(question.truth, view, out), print_accuracy
            elif question.compare:
                result, print_table = priced.compare(question), print_compare
            else:
                result, print_table = priced.cost(question, view, out), print_cost
    view.show(result, print_table)


@dataclass(frozen=True)
class _Priced:
    """The rows to be priced, with the mechanism described for them."""

    file: VoteFile
    described: MechanismOptions
    account: AccountOptions
    queries: int
    cap: int

    def cost(self, question: QuestionOptions, view: ViewOptions, out: Outputs) -> dict[str, Any]:
        """The result of a plain `pate cost`; writes the rows per query and the picture, too."""
        from pate_cli.plots import cost_figure
        from pate_cli.release.worst_case import Spending, data_independent_cost

        mechanism, summary = self._measured(question)
        bound = data_independent_cost(
            [Spending(mechanism, self.queries, self.cap)], delta=self.account.delta, plan=None
        )
        histogram = summary.histogram(self.file.teachers)
        if question.per_query is not None:
            ids = [each for batch in self.file.batches(limit=self.queries) for each in batch.ids]
            out.write(question.per_query, _per_query(summary, ids, question.per_query))
        view.draw(
            out,
            lambda: cost_figure(
                histogram,
                mechanism=mechanism.name,
                order=summary.order,
                teachers=self.file.teachers,
            ),
        )
        return _cost_result(
            summary, mechanism, bound, account=self.account, cap=self.cap, histogram=histogram
        )

    def compare(self, question: QuestionOptions) -> dict[str, Any]:
        """Every mechanism that applies, each with its own flags or defaults."""
        from pate_cli.pricing.compare import compare_mechanism, compare_stable

        delta = self.account.delta
        answers = min(float(self.cap), self._measured(question)[1].expected_answers)
        rows = []
        for name in MechanismName:
            options = self.described.restricted_to(name)
            if options is None:
                continue
            if options.stable:
                rows.append(
                    compare_stable(
                        lambda: (batch.counts for batch in self.file.batches(limit=self.queries)),
                        functools.partial(self._stable, options),
                        answers=answers,
                        delta=delta,
                    )
                )
                continue
            mechanism = options.build(teachers=self.file.teachers, classes=self.file.classes)
            rows.append(
                compare_mechanism(
                    functools.partial(bound_batches, self.file, mechanism, self.queries),
                    mechanism,
                    answers=answers,
                    delta=delta,
                )
            )
        return _compare_result(rows, answers=answers, delta=delta)

    def accuracy(self, path: Path, view: ViewOptions, out: Outputs) -> dict[str, Any]:
        """How often labels are right, over a range of noise; writes the picture, too."""
        from pate_cli.plots import accuracy_figure
        from pate_cli.pricing.accuracy import measure_accuracy
        from pate_cli.votes.truth import load_truth

        known, delta = load_truth(path), self.account.delta
        points = measure_accuracy(
            lambda: self._with_truth(known),
            teachers=self.file.teachers,
            classes=self.file.classes,
            delta=delta,
            teachers_per_record=self.described.teachers_per_record,
        )
        view.draw(out, lambda: accuracy_figure(points, queries=self.queries, delta=delta))
        return _accuracy_result(points, queries=self.queries, delta=delta)

    def _measured(self, question: QuestionOptions) -> tuple[Mechanism, CostSummary]:
        from pate_cli.pricing.cost import measure_cost

        mechanism = self.described.build(teachers=self.file.teachers, classes=self.file.classes)
        summary = measure_cost(
            lambda: bound_batches(self.file, mechanism, self.queries),
            orders=question.wanted(self.account.analysis),
            delta=self.account.delta,
            analysis=self.account.analysis,
        )
        return mechanism, summary

    def _stable(self, options: MechanismOptions, refusals: int) -> Stability | SparseVector:
        """The stability mechanism, or sparse vector with so many refusals."""
        if options.mechanism is MechanismName.SPARSE_VECTOR:
            options = replace(options, refusals=refusals)
        return options.build_stable(
            teachers=self.file.teachers,
            classes=self.file.classes,
            queries=self.queries,
            delta=self.account.delta,
        )

    def _with_truth(self, truth: Truth) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        for batch in self.file.batches(limit=self.queries):
            yield batch.counts, truth.of(batch.ids, batch.first_row, classes=self.file.classes)


def _cost_result(
    summary: CostSummary,
    mechanism: Mechanism,
    bound: DataIndependentCost,
    *,
    account: AccountOptions,
    cap: int,
    histogram: list[dict[str, Any]],
) -> dict[str, Any]:
    from pate_cli.accounting.conversion import round_up

    return {
        "schema_version": 1,
        "releasable": False,
        "analysis": account.analysis.value,
        "mechanism": mechanism.parameters(),
        "queries": summary.queries,
        "max_answers": cap,
        "expected_answers": summary.expected_answers,
        "epsilon": summary.epsilon,
        "order": summary.order,
        "order_at_edge": summary.at_edge,
        "delta": account.delta,
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
            "by_plurality": histogram,
        },
    }


def _compare_result(rows: list[Comparison], *, answers: float, delta: float) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "releasable": False,
        "matched_answers": answers,
        "delta": delta,
        "compare": [asdict(row) for row in rows],
    }


def _accuracy_result(points: list[AccuracyPoint], *, queries: int, delta: float) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "releasable": False,
        "queries": queries,
        "delta": delta,
        "accuracy": [asdict(point) for point in points],
    }


def _per_query(summary: CostSummary, ids: list[Any], path: Path) -> bytes:
    """One row a query, in the format that the path names."""
    import numpy as np

    from pate_cli.results import encode_columns

    columns = {
        "query_id": np.array(ids),
        "plurality": summary.plurality,
        "answer_probability": summary.answer,
        **{f"cost_{step}": values for step, values in summary.per_query.items()},
        "cost": summary.query_total,
    }
    return encode_columns(columns, LabelFormat.from_path(path))
