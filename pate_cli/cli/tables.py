"""Rich tables for people at a terminal; the same results go out as JSON to a pipe."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

__all__ = ["print_accuracy", "print_compare", "print_cost", "print_smooth"]

_WARNING = "[bold red]NOT RELEASABLE[/]: these numbers describe the votes"
_WIDTH = 20
_NEAR = 5


def print_cost(result: dict[str, Any]) -> None:
    """`pate cost` for a person."""
    console = Console()
    bound = result["data_independent"]
    console.print(_WARNING)
    console.print(
        f"\n[bold]{result['mechanism']['name']}[/], {result['analysis']} analysis, "
        f"{result['queries']} queries, {result['expected_answers']:.2f} expected answers, "
        f"delta {result['delta']:g}"
    )
    console.print(
        f"epsilon [bold]{result['epsilon']:.4f}[/] at order {result['order']:g}"
        + (" (at the edge of the orders tried)" if result["order_at_edge"] else "")
        + f"; whatever the votes [bold]{bound['epsilon']:.4f}[/] ({bound['method']})"
    )
    console.print(_by_order(result))
    console.print(_by_plurality(result))


def _by_order(result: dict[str, Any]) -> Table:
    table = Table(title="Cost by order (nats)", box=box.SIMPLE, title_justify="left")
    table.add_column("order", justify="right")
    for step in result["steps"]:
        table.add_column(step, justify="right")
    table.add_column("total", justify="right")
    best = result["orders"].index(result["order"])
    for row in range(max(0, best - _NEAR), min(len(result["orders"]), best + _NEAR + 1)):
        cells = [f"{values[row]:.6g}" for values in result["steps"].values()]
        table.add_row(
            f"{result['orders'][row]:g}",
            *cells,
            f"{result['rdp'][row]:.6g}",
            style="bold" if row == best else None,
        )
    return table


def _by_plurality(result: dict[str, Any]) -> Table:
    table = Table(
        title=f"Which queries cost, at order {result['order']:g}",
        box=box.SIMPLE,
        title_justify="left",
    )
    for name in ("plurality", "queries", "answered", "mean cost", "share"):
        table.add_column(name, justify="right")
    table.add_column("of the cost")
    rows = result["per_query"]["by_plurality"]
    most = max((row["share_of_cost"] for row in rows), default=1.0) or 1.0
    for row in rows:
        table.add_row(
            f"{row['from']}-{row['to']}",
            str(row["queries"]),
            f"{row['expected_answers'] / row['queries']:.0%}",
            f"{row['mean_cost']:.3g}",
            f"{row['share_of_cost']:.1%}",
            "█" * round(_WIDTH * row["share_of_cost"] / most),
        )
    return table


def print_accuracy(result: dict[str, Any]) -> None:
    """`pate cost --accuracy` for a person."""
    console = Console()
    console.print(_WARNING)
    table = Table(
        title=f"Labels for all {result['queries']} queries, delta {result['delta']:g}",
        box=box.SIMPLE,
        title_justify="left",
    )
    table.add_column("mechanism")
    for name in ("noise (sd, votes)", "parameter", "right", "epsilon"):
        table.add_column(name, justify="right")
    for row in result["accuracy"]:
        table.add_row(
            row["mechanism"],
            f"{row['deviation']:.3g}",
            f"{row['parameter']:.3g}",
            f"{row['accuracy']:.1%}",
            f"{row['epsilon']:.4f}",
        )
    console.print(table)


def print_smooth(result: dict[str, Any]) -> None:
    """`pate smooth-sensitivity` for a person."""
    console = Console()
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
            f"{best['sigma_release']:.4g}: {best['release']} release, epsilon "
            f"{best['mean']:.4f} ± {best['sd']:.4f}"
        )
    for verdict in result["conditions"]:
        held = "[green]hold[/]" if verdict["holds"] else f"[red]fail[/]: {verdict['reason']}"
        console.print(
            f"C5 and C6 at sigma {verdict['sigma']:g}, {verdict['classes']} classes, "
            f"order {verdict['order']:g} {held}"
        )
    table = Table(title="By distance", box=box.SIMPLE, title_justify="left")
    for name in ("distance", "local sensitivity", "discounted"):
        table.add_column(name, justify="right")
    table.add_column("")
    curve, discounted = result["local_sensitivity"], result["discounted"]
    top = max(discounted, default=1.0) or 1.0
    step = max(1, len(curve) // 20)
    shown = sorted({*range(0, len(curve), step), min(result["distance"], len(curve) - 1)})
    for distance in shown:
        table.add_row(
            str(distance),
            f"{curve[distance]:.6g}",
            f"{discounted[distance]:.6g}",
            "█" * round(_WIDTH * discounted[distance] / top),
            style="bold" if distance == result["distance"] else None,
        )
    console.print(table)


def print_compare(result: dict[str, Any]) -> None:
    """`pate cost --compare` for a person."""
    console = Console()
    console.print(_WARNING)
    table = Table(
        title=f"At {result['matched_answers']:.1f} expected answers, delta {result['delta']:g}",
        box=box.SIMPLE,
        title_justify="left",
    )
    table.add_column("mechanism")
    for name in ("queries", "answers", "agreement", "epsilon", "whatever the votes"):
        table.add_column(name, justify="right")
    table.add_column("note")
    for row in result["compare"]:
        table.add_row(
            row["mechanism"],
            str(row["queries"]),
            f"{row['expected_answers']:.1f}",
            f"{row['agreement']:.1%}",
            "-" if row["epsilon"] is None else f"{row['epsilon']:.4f}",
            f"{row['data_independent']:.4f}",
            row["note"],
        )
    console.print(table)
