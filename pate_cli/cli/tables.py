"""Rich tables for people at a terminal; the same results go out as JSON to a pipe.

rich itself is imported with the first table: most results go to a pipe or to a file.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from pate_cli.accounting.conversion import round_up
from pate_cli.cli.grid import TableGrid
from pate_cli.cli.terminal import printer
from pate_cli.core.errors import printable

if TYPE_CHECKING:
    from rich.console import Console

    from pate_cli.verbs.spent import RecordCost

_WARNING = "[bold red]NOT RELEASABLE[/]: these numbers describe the votes"
_NEAR: Final = 5


def print_cost(result: dict[str, Any]) -> None:
    """`pate cost` for a person."""
    console = printer()
    bound = result["data_independent"]
    console.print(_WARNING)
    console.print(
        f"\n[bold]{result['mechanism']['name']}[/], {result['analysis']} analysis, "
        f"{result['queries']} queries, {result['expected_answers']:.2f} expected answers, "
        f"delta {result['delta']:g}"
    )
    where = f"at order {result['order']:g}"
    if result["order_at_edge"]:
        where += " (at the edge of the orders tried)"
    if round_up(result["epsilon"]) == bound["epsilon"]:
        where = "as for all votes"
    console.print(
        f"epsilon [bold]{result['epsilon']:.4f}[/] {where}; "
        f"worst case [bold]{bound['epsilon']:.4f}[/] ({bound['method']})"
    )
    if "target" in result:
        _print_target(console, result["target"])
    for said in _of_prior(result["per_query"].get("by_prior", {})):
        console.print(said)
    console.print(_by_order(result))
    console.print(_by_plurality(result))
    if "unmatched_votes" in result:
        _print_unmatched(console, result["unmatched_votes"])


def _queries(number: int) -> str:
    return "1 query" if number == 1 else f"{number} queries"


def _of_prior(found: dict[str, Any]) -> list[str]:
    """Answers and cost of queries by what a prior says of them."""
    said = {
        "agrees": "the prior agrees with the teachers on",
        "disagrees": "it disagrees on",
        "silent": "it has no guess for",
    }
    return [
        f"{words} {_queries(row['queries'])}: {row['expected_answers']:.1f} expected answers, "
        f"{row['share_of_cost']:.0%} of the cost"
        for name, words in said.items()
        if (row := found.get(name)) is not None and row["queries"]
    ]


def _print_target(console: Console, target: dict[str, Any]) -> None:
    """How a target would fare."""
    least = ", ".join(
        f"[bold]{epsilon:.4f}[/] ({float(chance):.1%})"
        for chance, epsilon in target["smallest_epsilon"].items()
    )
    chance = math.floor(1e4 * target["pass_probability"]) / 1e4
    rows = str(target["passing_queries"])
    if target["passing_queries"] == target["looked_at"]:
        rows = f"all {rows}"
    console.print(
        f"target {target['epsilon']:g}: {target['queries']} queries pass with probability "
        f"[bold]{chance:.4f}[/]; a refusal costs {target['refusal_epsilon']:g}"
    )
    console.print(f"smallest target that passes, by chance: {least}")
    console.print(
        f"at {target['epsilon']:g} {rows} of the first {target['looked_at']} queries would pass "
        "(97.7%)"
    )


def _print_unmatched(console: Console, found: dict[str, Any]) -> None:
    """Which votes in words count as missing, and why."""
    console.print(
        f"\n{found['votes']} of {found['cast']} votes ({found['share']:.1%}) match no label name "
        f"and count as missing; --normalise would match {found['normalise_would_match']} of them"
    )
    if not found["votes"]:
        return
    table = TableGrid("Votes that match no label name", ["text", "votes", "likeliest cause"])
    for each in found["commonest"]:
        table.add_row(repr(each["text"]), str(each["votes"]), each["cause"] or "")
    console.print(table)


def _by_order(result: dict[str, Any]) -> TableGrid:
    table = TableGrid("Cost by order (nats)", ["order", *result["steps"], "total"])
    best = result["orders"].index(result["order"])
    for row in range(max(0, best - _NEAR), min(len(result["orders"]), best + _NEAR + 1)):
        cells = [f"{values[row]:.6g}" for values in result["steps"].values()]
        table.add_row(
            f"{result['orders'][row]:g}",
            *cells,
            f"{result['rdp'][row]:.6g}",
            style="bold" if row == best else "",
        )
    return table


def _by_plurality(result: dict[str, Any]) -> TableGrid:
    table = TableGrid(
        f"Which queries cost, at order {result['order']:g}",
        ["plurality", "queries", "answered", "mean cost", "share"],
        bars="of the cost",
    )
    rows = result["per_query"]["by_plurality"]
    most = max((row["share_of_cost"] for row in rows), default=1.0) or 1.0
    for row in rows:
        table.add_row(
            f"{row['from']}-{row['to']}",
            str(row["queries"]),
            f"{row['expected_answers'] / row['queries']:.0%}",
            f"{row['mean_cost']:.3g}",
            f"{row['share_of_cost']:.1%}",
            share=row["share_of_cost"] / most,
        )
    return table


def print_smooth(result: dict[str, Any]) -> None:
    """`pate smooth-sensitivity` for a person."""
    console = printer()
    console.print(_WARNING)
    best = result["best"]
    console.print(
        f"\n[bold]{result['mechanism']['name']}[/], {result['analysis']} analysis, "
        f"{result['queries']} queries, order {result['order']:g}"
    )
    console.print(
        f"smooth sensitivity [bold]{result['smooth_sensitivity']:.6g}[/] at beta "
        f"{result['beta']:g}, reached at distance {result['distance']}"
    )
    if best is not None:
        console.print(
            f"this order is served best by beta {best['beta']:.4g} and sigma-release "
            f"{best['sigma_release']:.4g}: upper release, epsilon "
            f"{best['mean']:.4f} (sd {best['sd']:.4f})"
        )
    for verdict in result["conditions"]:
        held = "[green]hold[/]" if verdict["holds"] else f"[red]fail[/]: {verdict['reason']}"
        console.print(
            f"C5 and C6 at sigma {verdict['sigma']:g}, {verdict['classes']} classes, "
            f"order {verdict['order']:g} {held}"
        )
    within = result["cost_by_distance"]
    heads = ["distance", "local sensitivity", "discounted", *(["cost at most"] if within else [])]
    table = TableGrid("By distance", heads, bars="")
    curve, discounted = result["local_sensitivity"], result["discounted"]
    top = max(discounted, default=1.0) or 1.0
    step = max(1, len(curve) // 20)
    shown = sorted({*range(0, len(curve), step), min(result["distance"], len(curve) - 1)})
    for distance in shown:
        table.add_row(
            str(distance),
            f"{curve[distance]:.6g}",
            f"{discounted[distance]:.6g}",
            *([f"{within[distance]:.6g}"] if within else []),
            share=discounted[distance] / top,
            style="bold" if distance == result["distance"] else "",
        )
    console.print(table)


def print_compare(result: dict[str, Any]) -> None:
    """`pate cost --compare` for a person."""
    console = printer()
    console.print(_WARNING)
    table = TableGrid(
        f"At {result['matched_answers']:.1f} expected answers, delta {result['delta']:g}",
        ["mechanism", "queries", "answers", "agreement", "epsilon", "worst case"],
        named=True,
    )
    for row in result["compare"]:
        table.add_row(
            row["mechanism"],
            str(row["queries"]),
            f"{row['expected_answers']:.1f}",
            f"{row['agreement']:.1%}",
            "-" if row["epsilon"] is None else f"{row['epsilon']:.4f}",
            f"{row['data_independent']:.4f}",
        )
    console.print(table)
    for row in result["compare"]:
        if row["note"]:
            console.print(f"{row['mechanism']}: {row['note']}")
    cap = result["max_answers"]
    console.print(
        "epsilon: for these votes. worst case: for all votes, with a cap of as many answers as are "
        f"compared, --max-answers {cap}; pate cost, which has no cap unless you give one, allows "
        "for more answers and so may state more"
    )


def _floored(share: float) -> str:
    """A share in percent, rounded down, so that what is almost sure does not read as sure."""
    return f"{math.floor(1e3 * share) / 10:g}%"


def print_plan(result: dict[str, Any]) -> None:
    """`pate plan` for a person."""
    console = printer()
    asked, settings = result["asked"], result["settings"]
    votes = "" if result["votes"] == result["teachers"] else f" of {result['votes']} votes"
    if result["frankly"]:
        console.print(f"[bold red]{result['frankly']}[/]", highlight=False)
    whole = settings["queries"] if asked["labels"] == 1 else settings["rows"]
    rows = f"{whole} queries"
    if asked["labels"] > 1:
        rows = f"{settings['queries']} queries of {asked['labels']} labels, {whole} rows"
    console.print(
        f"[bold]{result['teachers']}[/] teachers{votes}, epsilon "
        f"[bold]{result['target_epsilon']:g}[/] at delta {result['delta']:g}: about "
        f"[bold]{math.floor(result['answers'])}[/] answers of {rows}",
        highlight=False,
    )
    table = TableGrid(
        "By how often a teacher is right, on average over made-up ensembles",
        ["right", "answers", "equal the plurality", "pass", "the worst pass"],
    )
    for row in result["by_agreement"]:
        table.add_row(
            f"{row['agreement']:.3g}",
            f"{row['answers']:.1f}",
            f"{row['equal_to_plurality']:.1%}",
            _floored(row["pass_probability"]),
            _floored(row["least_pass_probability"]),
        )
    console.print(table)
    worst = result["pass_probability"]["worst"]
    console.print(
        f"Worst case tried: {worst['agreement']:.0%} are right and queries are {worst['queries']}; "
        f"runs pass with probability {_floored(worst['chance'])}, the others give no labels and "
        f"spend epsilon {settings['refusal_epsilon']:g}. Published untested, these rows would cost "
        f"epsilon {result['untested_epsilon']:.4f}",
        highlight=False,
    )
    console.print(f"The least target that is of use is about {result['least_epsilon']:g}")
    for line in (result["other"], result["command"]):
        if line is not None:
            console.print("\n" + line, soft_wrap=True, highlight=False, markup=False)


def print_bill(bill: RecordCost) -> None:
    """`pate spent` for a person."""
    from rich.text import Text

    from pate_cli.disclosure.figures import nats, shown

    console = printer()
    console.print(Text(bill.headline(), "bold"), highlight=False)
    found = bill.however_chosen
    if found is not None and len(bill.runs) > 1:
        console.print(
            "that supposes that all runs were chosen beforehand; if you chose later runs after "
            f"seeing earlier results: epsilon {nats(found[0])} at delta {shown(found[1])}",
            highlight=False,
            soft_wrap=True,
        )
    if bill.budget is not None and bill.left is not None:
        order = (
            "" if bill.budget.order is None else f", by Renyi costs at order {bill.budget.order:g}"
        )
        console.print(
            f"budget {bill.budget.epsilon:g} at delta {bill.budget.delta:g}{order}: "
            f"{nats_down(bill.left[0])} at delta {bill.left[1]:.3g} left",
            highlight=False,
        )
    heads = ["run", "time", "votes", "mechanism", "published", "epsilon", "delta", "total", "left"]
    grid = TableGrid("Runs, the first one first", heads, named=True)
    for row in bill.rows():
        published = row["outcome"]
        if row["outcome"] == "labelled" and row["answers"] is not None:
            published = f"{row['answers']} of {row['queries']} labels"
        charged = "" if row["kind"] == "worst-case" else f" ({row['kind']})"
        shape = f" {row['teachers']}x{row['classes']}" if row["teachers"] else ""
        grid.add_row(
            row["run"][:8],
            row["time"].replace("T", " ").rstrip("Z"),
            printable(f"{row['votes']}{shape}"),
            f"{row['mechanism']}{charged}".strip(),
            published,
            "" if row["epsilon"] is None else nats(row["epsilon"]),
            "" if row["delta"] is None else shown(row["delta"]),
            "" if row["total_epsilon"] is None else nats(row["total_epsilon"]),
            "" if row["budget_left"] is None else nats_down(row["budget_left"]),
        )
    if bill.runs:
        console.print(grid)
    for check in bill.reports or ():
        console.print(Text(f"{check.outcome}: {check.name}: {check.detail}"), soft_wrap=True)


def nats_down(left: float) -> str:
    """What is left of a budget, never more than that."""
    return f"{math.floor(left * 1e4 + 1e-6) / 1e4:.4f}"
