"""`pate cost`: what the votes would cost, and which queries are expensive and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pate_cli.cli.options import (
    AccountOptions,
    EngineOptions,
    MechanismOptions,
    OutputOptions,
    PriorOptions,
    RenyiOptions,
    TargetOptions,
    ViewOptions,
    VoteOptions,
    Votes,
    Without,
    spread,
)
from pate_cli.cli.tables import print_accuracy, print_compare, print_cost
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import UsageError
from pate_cli.core.formulas import refuse_escapes
from pate_cli.core.words import Analysis, LabelFormat, OrderChoice


@dataclass(frozen=True)
class QuestionOptions:
    """Options on the question about cost: orders, queries, other mechanisms, or accuracy."""

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
            "--per-query",
            help="Also write one row per query (.parquet, .csv, .jsonl, .arrow; mode 0600).",
        ),
    ] = None
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas",
            help="In CSV of --per-query, put ' before ids that a spreadsheet would take for "
            "formulas: those that begin with =, +, -, @, a tab or a carriage return.",
        ),
    ] = False
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="All mechanisms side by side, at as many expected answers as this one, which are "
            "also the cap on answers of their worst cases.",
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
        str | None,
        typer.Option(
            "--truth",
            metavar="FILE",
            help="True labels of the queries: an array, or a table with `label`.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.order is not None and self.orders is not OrderChoice.DEFAULT:
            raise UsageError(f"give --order or --orders {self.orders}, not both")
        if self.compare and self.per_query is not None:
            raise UsageError("--per-query does not go with --compare, which describes no queries")
        if self.escape_formulas and self.per_query is None:
            raise UsageError("--escape-formulas goes with --per-query FILE")
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

    @property
    def tried(self) -> list[float] | OrderChoice:
        """The Rényi orders to try."""
        return self.orders if self.order is None else [self.order]


@spread
def cost(
    votes: Votes,
    described: RenyiOptions,
    prior: PriorOptions,
    reading: VoteOptions,
    account: AccountOptions,
    target: TargetOptions,
    question: QuestionOptions,
    view: ViewOptions,
    engine: Annotated[EngineOptions, Without("checkpoint")],
    output: OutputOptions,
) -> None:
    """Price votes: by step, by order and by query. NOT releasable: it describes the votes.

    tight sums the Renyi cost of every query; paper repeats the published expected cost.
    """
    import pate_cli as pate
    from pate_cli.files.results import columns_in
    from pate_cli.pricing import plots

    question.check(described, reading, account, view)
    if target != TargetOptions() and (question.compare or question.accuracy):
        raise UsageError("--target-epsilon does not go with --compare or --accuracy")
    choice = described.choice()
    delta = account.delta
    with output.outputs() as out:
        view.reserve(out)
        if question.per_query is not None:
            kind = LabelFormat.from_path(question.per_query)  # refused before any work is done
            if question.escape_formulas:
                refuse_escapes(kind)
            like = columns_in(kind, "query_id", "plurality")
            out.reserve(question.per_query, mode=0o600, replaces=like)
        with reading.open(votes, output, any_name=not choice.listed) as file:
            output.note_votes(file, reading.rows(file))
            if question.truth is not None:
                if prior != PriorOptions():
                    raise UsageError("--prior does not go with --accuracy: it prices votes alone")
                accuracy = pate.accuracy(
                    file,
                    question.truth,
                    delta=delta,
                    max_queries=reading.max_queries,
                    teachers_per_record=described.teachers_per_record,
                    **engine.keywords,
                )
                view.draw(
                    out,
                    lambda: plots.accuracy_figure(
                        accuracy.points, queries=accuracy.queries, delta=delta
                    ),
                )
                view.show(accuracy.to_dict(), print_accuracy)
                return
            asked: dict[str, Any] = {"orders": question.tried, **account.keywords, **reading.caps}
            asked |= prior.keywords
            asked |= engine.keywords
            if question.compare:
                view.show(pate.compare(file, choice, **asked).to_dict(), print_compare)
                return
            told = target.patience(file, choice, reading.rows(file))
            if told is not None:
                output.note(f"{told} at a time")
            found = pate.cost(
                file,
                choice,
                per_query=question.per_query is not None,
                **asked,
                **target.keywords,
            )
            if question.per_query is not None:
                path, escaped = question.per_query, question.escape_formulas
                with out.open(path) as draft:
                    found.write(draft, path, escape_formulas=escaped)
            view.draw(
                out,
                lambda: plots.cost_figure(
                    found.series,
                    mechanism=choice.name,
                    order=found.summary.order,
                    teachers=file.teachers,
                    prior_weight=found.most_votes - file.teachers,
                ),
            )
    view.show(found.to_dict(), print_cost)
