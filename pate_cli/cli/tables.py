"""Rich tables for people at a terminal; the same results go out as JSON to a pipe.

rich itself is imported with the first table: most results go to a pipe or to a file.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from pate_cli.cli.grid import Grid
from pate_cli.cli.terminal import printer

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "print_accuracy",
    "print_compare",
    "print_cost",
    "print_rule",
    "print_smooth",
    "print_tuned",
]

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
    console.print(
        f"epsilon [bold]{result['epsilon']:.4f}[/] at order {result['order']:g}"
        + (" (at the edge of the orders tried)" if result["order_at_edge"] else "")
        + f"; worst case [bold]{bound['epsilon']:.4f}[/] ({bound['method']})"
    )
    if "target" in result:
        _print_target(console, result["target"])
    console.print(_by_order(result))
    console.print(_by_plurality(result))


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


def _by_order(result: dict[str, Any]) -> Grid:
    table = Grid("Cost by order (nats)", ["order", *result["steps"], "total"])
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


def _by_plurality(result: dict[str, Any]) -> Grid:
    table = Grid(
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


def print_accuracy(result: dict[str, Any]) -> None:
    """`pate cost --accuracy` for a person."""
    console = printer()
    console.print(_WARNING)
    table = Grid(
        f"Labels for all {result['queries']} queries, delta {result['delta']:g}",
        ["mechanism", "noise (sd, votes)", "parameter", "right", "epsilon"],
        named=True,
    )
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
            f"{best['sigma_release']:.4g}: {best['release']} release, epsilon "
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
    table = Grid("By distance", heads, bars="")
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
    table = Grid(
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


def print_tuned(result: dict[str, Any]) -> None:
    """`pate tune` for a person: the winner with its command line, and the Pareto front."""
    console = printer()
    if not result["complete"]:
        console.print("[bold red]INCOMPLETE[/]: the best so far")
    if not result["releasable"]:
        console.print("[bold red]NOT RELEASABLE[/]: these settings were chosen on the votes")
    if result["basis"]["votes"] != "file":
        console.print(f"answers and agreement are those of {result['basis']['votes']} votes")
    winner = result["winner"]
    if winner is not None:
        _print_winner(console, result, winner)
    if result["pareto"]:
        console.print(_front(result))
    if result["floor"] is not None:
        console.print(f"least epsilon that this grid reaches: {result['floor']:.4f}")


def _print_winner(console: Console, result: dict[str, Any], winner: dict[str, Any]) -> None:
    console.print(
        f"\nT [bold]{winner['threshold']:g}[/], sigma1 [bold]{winner['sigma1']:g}[/], "
        f"sigma2 [bold]{winner['sigma2']:g}[/], {winner['queries']} queries"
        + (f", at most {winner['max_answers']} answers" if winner["max_answers"] else "")
    )
    sure = "always" if winner["epsilon_holds_with_probability"] == 1.0 else "with probability 97.7%"
    console.print(
        f"published epsilon at most [bold]{winner['epsilon']:.4f}[/] {sure}, "
        f"delta {result['goal']['delta']:g}"
        + (
            f" (mean {winner['epsilon_mean']:.4f}, sd {winner['epsilon_sd']:.4f})"
            if "epsilon_mean" in winner
            else ""
        )
    )
    console.print(
        f"[bold]{winner['expected_answers']:.1f}[/] expected answers, "
        f"{winner['agreement']:.2%} of them the plurality"
        + (
            f", at least {winner['accuracy_at_least']:.2%} of them right"
            if winner["accuracy_at_least"] is not None
            else ""
        )
    )
    shares = winner["cost_shares"]
    console.print(
        f"{shares['selecting']:.0%} of the cost selects queries, "
        f"{shares['answering']:.0%} answers them"
    )
    labels = winner["labels_data_independent_epsilon"]
    if labels < winner["epsilon"]:
        console.print(f"--release none would publish less here, {labels:.4f}, a worst-case bound")
    console.print("\n" + result["command"], soft_wrap=True, highlight=False, markup=False)


def _front(result: dict[str, Any]) -> Grid:
    table = Grid(
        "Pareto front",
        ["epsilon", "answers", "agreement", "T", "sigma1", "sigma2", "queries", "cap"],
    )
    for point in result["pareto"]:
        table.add_row(
            f"{point['epsilon']:.4f}",
            f"{point['expected_answers']:.1f}",
            f"{point['agreement']:.2%}",
            f"{point['threshold']:g}",
            f"{point['sigma1']:g}",
            f"{point['sigma2']:g}",
            str(point["queries"]),
            "-" if point["max_answers"] is None else str(point["max_answers"]),
        )
    return table


def print_rule(result: dict[str, Any]) -> None:
    """`pate tune --rule-of-thumb` for a person: both rules side by side."""
    console = printer()
    table = Grid(
        f"Release parameters for epsilon {result['target_epsilon']:g}",
        ["rule", "order", "beta", "sigma-release"],
        named=True,
    )
    for name, label in (("rule_of_thumb", "of thumb"), ("public_rule", "public")):
        rule = result[name]
        table.add_row(
            label, f"{rule['order']:g}", f"{rule['beta']:g}", f"{rule['sigma_release']:g}"
        )
    console.print(table)
    console.print("The public rule is what pate aggregate takes without flags.")
    console.print("No rule makes a run meet the target; --data-independent does.")
    console.print("\n" + result["command"], soft_wrap=True, highlight=False, markup=False)
