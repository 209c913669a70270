"""`pate tune` for people at a terminal."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

__all__ = ["print_rule", "print_tuned"]


def print_tuned(result: dict[str, Any]) -> None:
    """The winner with its command line, and the Pareto front."""
    console = Console()
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
        console.print(
            f"--release none would publish less here, {labels:.4f}, and that whatever the votes"
        )
    console.print("\n" + result["command"], soft_wrap=True, highlight=False, markup=False)


def _front(result: dict[str, Any]) -> Table:
    table = Table(title="Pareto front", box=box.SIMPLE, title_justify="left")
    for name in ("epsilon", "answers", "agreement", "T", "sigma1", "sigma2", "queries", "cap"):
        table.add_column(name, justify="right")
    for one in result["pareto"]:
        table.add_row(
            f"{one['epsilon']:.4f}",
            f"{one['expected_answers']:.1f}",
            f"{one['agreement']:.2%}",
            f"{one['threshold']:g}",
            f"{one['sigma1']:g}",
            f"{one['sigma2']:g}",
            str(one["queries"]),
            "-" if one["max_answers"] is None else str(one["max_answers"]),
        )
    return table


def print_rule(result: dict[str, Any]) -> None:
    """Both rules side by side."""
    console = Console()
    table = Table(title="Release parameters by rule", box=box.SIMPLE, title_justify="left")
    table.add_column("rule")
    for name in ("order", "beta", "sigma-release"):
        table.add_column(name, justify="right")
    for name, label in (
        ("rule_of_thumb", f"of thumb, for epsilon {result['target_epsilon']:g}"),
        ("public_rule", "public, what pate aggregate does without flags"),
    ):
        one = result[name]
        table.add_row(label, f"{one['order']:g}", f"{one['beta']:g}", f"{one['sigma_release']:g}")
    console.print(table)
    console.print("No rule makes a run meet the target; --data-independent does.")
    console.print("\n" + result["command"], soft_wrap=True, highlight=False, markup=False)
