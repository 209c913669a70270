"""`pate cost`: what the votes would cost, and which queries are expensive and why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pate_cli.cli.options import (
    AccountOptions,
    EngineOptions,
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
from pate_cli.cli.tables import print_compare, print_cost
from pate_cli.core.errors import UsageError
from pate_cli.core.formulas import refuse_escapes
from pate_cli.core.words import LabelFormat, OrderChoice
from pate_cli.files.results import columns_in

if TYPE_CHECKING:
    from pate_cli.files.outputs import Outputs
    from pate_cli.planning.cost import VoteCost


@dataclass(frozen=True)
class QuestionOptions:
    """Options on the question about cost: orders, queries, or other mechanisms."""

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

    def __post_init__(self) -> None:
        if self.order is not None and self.orders is not OrderChoice.DEFAULT:
            raise UsageError(f"give --order or --orders {self.orders}, not both")
        if self.compare and self.per_query is not None:
            raise UsageError("--per-query does not go with --compare, which describes no queries")
        if self.escape_formulas and self.per_query is None:
            raise UsageError("--escape-formulas goes with --per-query FILE")

    @property
    def tried(self) -> list[float] | OrderChoice:
        """The Rényi orders to try."""
        return self.orders if self.order is None else [self.order]

    def refuse_beside(self, target: TargetOptions, view: ViewOptions) -> None:
        """Refuse options of other groups that the answer would silently ignore."""
        if self.compare and view.plot is not None:
            raise UsageError("--plot does not go with --compare, which has no picture")
        if self.compare and target != TargetOptions():
            raise UsageError("--target-epsilon does not go with --compare")

    def reserve(self, out: Outputs) -> None:
        """Promise the table by query, where one is wanted, before any work is done."""
        if self.per_query is None:
            return
        kind = LabelFormat.from_path(self.per_query)
        if self.escape_formulas:
            refuse_escapes(kind)
        like = columns_in(kind, "query_id", "plurality")
        out.reserve(self.per_query, mode=0o600, replaces=like)

    def write(self, out: Outputs, found: VoteCost) -> None:
        """Write the table by query, where one is wanted."""
        if self.per_query is not None:
            with out.open(self.per_query) as draft:
                found.write(draft, self.per_query, escape_formulas=self.escape_formulas)


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
    from pate_cli.planning.pictures import draw_cost

    question.refuse_beside(target, view)
    choice = described.choice()
    asked: dict[str, Any] = {"orders": question.tried, **account.keywords, **reading.caps}
    asked |= prior.keywords | engine.keywords
    with output.outputs() as out:
        view.reserve(out)
        question.reserve(out)
        with reading.open(votes, output, any_name=not choice.listed) as file:
            output.note_votes(file, reading.rows(file))
            if question.compare:
                view.show(pate.compare(file, choice, **asked).to_dict(), print_compare)
                return
            told = target.patience(file, choice, reading.rows(file))
            if told is not None:
                output.note(f"{told} at a time")
            found = pate.cost(file, choice, **asked, **target.keywords)
            question.write(out, found)
            view.draw(out, lambda: draw_cost(found))
    view.show(found.to_dict(), print_cost)
