"""Lines and tables that show results of planning to people, from the facts of a result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pate_cli.accounting.conversion import round_up
from pate_cli.core.said import Grid, Line, Said
from pate_cli.core.words import ReleaseKind

_WARNING: Final = Line(
    "these numbers depend on the votes, so they are secret", first=("NOT RELEASABLE: ", "bold red")
)
_PRIOR: Final = {
    "agrees": "the prior agrees with the teachers on",
    "disagrees": "the prior disagrees with the teachers on",
    "silent": "the prior has no guess for",
}
_SETTINGS: Final = ("threshold", "sigma1", "sigma2")
_NEAR: Final = 5
_MOST_ROWS: Final = 20


def _grid(title: str, rows: Iterable[Mapping[str, Any]], words: int, **columns: str) -> Grid:
    """Return a table with one line for each of `rows`, and the columns `columns`.

    Each column has a format string, which is filled with the values of the row. Underscores in the
    names of columns become blanks.
    """
    names = [name.replace("_", " ") for name in columns]
    told = [[each.format_map(row) for each in columns.values()] for row in rows]
    return Grid(title, names, told, words=words)


def of_cost(result: dict[str, Any]) -> Said:
    """Yield lines and tables of the cost of labels, by Rényi order and by kind of query."""
    bound = result["data_independent"]
    where = f"at order {result['order']:g}"
    if result["order_at_edge"]:
        where += ", the smallest or the largest order that was tried"
    if round_up(result["epsilon"]) == bound["epsilon"]:
        where = "for these votes and for all votes"
    yield from _head(
        result, f"{result['expected_answers']:.2f} expected answers, delta {result['delta']:g}"
    )
    yield Line(
        f"epsilon {result['epsilon']:.4f} {where}; worst case for all votes: epsilon "
        f"{bound['epsilon']:.4f} (method {bound['method']})",
        "bold",
    )
    if result.get("costliest_queries", result["queries"]) < result["queries"]:
        yield Line(
            f"only the {result['costliest_queries']} costliest queries count, because one teacher "
            "votes on no more queries"
        )
    if "target" in result:
        yield from _on_target(result["target"])
    for name, words in _PRIOR.items():
        row = result["per_query"].get("by_prior", {}).get(name)
        if row is not None and row["queries"]:
            queries = "1 query" if row["queries"] == 1 else f"{row['queries']} queries"
            yield Line(
                f"{words} {queries}: {row['expected_answers']:.1f} expected answers, "
                f"{row['share_of_cost']:.0%} of the cost"
            )
    yield _by_order(result)
    bins = result["per_query"]["by_plurality"]
    yield _grid(
        f"Cost of queries by the number of votes for the plurality, at order {result['order']:g}",
        [{**row, "answered": row["expected_answers"] / row["queries"]} for row in bins],
        words=0,
        plurality="{from}-{to}",
        queries="{queries}",
        answered="{answered:.0%}",
        mean_cost="{mean_cost:.3g}",
        share_of_the_cost="{share_of_cost:.1%}",
    )
    if "unmatched_votes" in result:
        yield from _unmatched(result["unmatched_votes"])


def _head(result: dict[str, Any], more: str) -> Iterator[Line]:
    """Yield a warning that the result is secret, and a line on mechanism, analysis and queries."""
    yield _WARNING
    yield Line(
        f", {result['analysis']} analysis, {result['queries']} queries, {more}",
        first=(result["mechanism"]["name"], "bold"),
    )


def _on_target(target: dict[str, Any]) -> Iterator[Line]:
    """Yield lines about the release test of a target.

    The lines say with what probability the test passes, which smallest targets would pass with
    given probabilities, and how many queries would pass.
    """
    least = ", ".join(
        f"{epsilon:.4f} ({float(chance):.1%})"
        for chance, epsilon in target["smallest_epsilon"].items()
    )
    rows = str(target["passing_queries"])
    if target["passing_queries"] == target["looked_at"]:
        rows = f"all {rows}"
    yield Line(
        f"target epsilon {target['epsilon']:g}: {target['queries']} queries pass the release test "
        f"with probability {math.floor(1e4 * target['pass_probability']) / 1e4:.4f}; a failed test "
        f"costs epsilon {target['refusal_epsilon']:g}"
    )
    yield Line(f"smallest target epsilon that passes (with this probability): {least}")
    yield Line(
        f"at target epsilon {target['epsilon']:g}, {rows} of the first {target['looked_at']} "
        "queries would pass the release test with probability 97.7%"
    )


def _by_order(result: dict[str, Any]) -> Grid:
    best = result["orders"].index(result["order"])
    near = range(max(0, best - _NEAR), min(len(result["orders"]), best + _NEAR + 1))
    parts = [result["orders"], *result["steps"].values(), result["rdp"]]
    return Grid(
        "RDP cost by order (nats)",
        ["order", *result["steps"], "total"],
        [[f"{values[row]:.6g}" for values in parts] for row in near],
        words=0,
        bold=best - near[0],
    )


def _unmatched(found: dict[str, Any]) -> Said:
    """Yield which votes match no class name, and why."""
    yield Line(
        f"{found['votes']} of {found['cast']} votes ({found['share']:.1%}) match no label name and "
        f"count as missing; --normalise would match {found['normalise_would_match']} of the "
        "unmatched votes"
    )
    if found["votes"]:
        yield _grid(
            "Votes that match no label name",
            [{**each, "cause": each["cause"] or ""} for each in found["commonest"]],
            words=1,
            text="{text!r}",
            votes="{votes}",
            likeliest_cause="{cause}",
        )


def of_sensitivity(result: dict[str, Any]) -> Said:
    """Yield lines and a table of the sensitivity of the RDP cost, by distance from the votes."""
    best = result["best"]
    yield from _head(result, f"order {result['order']:g}")
    yield Line(
        f"smooth sensitivity {result['smooth_sensitivity']:.6g} at beta {result['beta']:g}, "
        f"reached at distance {result['distance']}",
        "bold",
    )
    if best is not None:
        yield Line(
            f"best settings at this order: beta {best['beta']:.4g} and sigma-release "
            f"{best['sigma_release']:.4g}; an upper release then draws a sanitized epsilon with "
            f"mean {best['mean']:.4f} and standard deviation {best['sd']:.4f}"
        )
    for verdict in result["conditions"]:
        held = "hold" if verdict["holds"] else f"fail: {verdict['reason']}"
        yield Line(
            f"the published conditions C5 and C6, at sigma {verdict['sigma']:g}, "
            f"{verdict['classes']} classes and order {verdict['order']:g}, {held}",
            "green" if verdict["holds"] else "red",
        )
    curve, discounted = result["local_sensitivity"], result["discounted"]
    within, step = result["cost_by_distance"], max(1, len(curve) // _MOST_ROWS)
    reached = min(result["distance"], len(curve) - 1)
    shown = sorted({*range(0, len(curve), step), reached})
    columns = [curve, discounted, *([within] if within else [])]
    yield Grid(
        "Sensitivity by distance from these votes",
        ["distance", "local sensitivity", "discounted", *(["cost at most"] if within else [])],
        [
            [str(at), *(f"{column[at]:.6g}" if at < len(column) else "-" for column in columns)]
            for at in shown
        ],
        words=0,
        bold=shown.index(reached),
    )


def of_comparison(result: dict[str, Any]) -> Said:
    """Yield a table of all mechanisms at the same number of expected answers."""
    yield _WARNING
    yield _grid(
        f"At {result['matched_answers']:.1f} expected answers, delta {result['delta']:g}",
        [
            {**row, "told": "-" if row["epsilon"] is None else f"{row['epsilon']:.4f}"}
            for row in result["compare"]
        ],
        words=1,
        mechanism="{mechanism}",
        queries="{queries}",
        answers="{expected_answers:.1f}",
        agreement="{agreement:.1%}",
        epsilon="{told}",
        worst_case="{data_independent:.4f}",
    )
    for row in result["compare"]:
        if row["note"]:
            yield Line(f"{row['mechanism']}: {row['note']}")
    yield Line(
        "The column epsilon is for these votes. The column worst case is for all votes, if a run "
        f"stops after {result['max_answers']} answers (--max-answers {result['max_answers']}). "
        "Without --max-answers, pate cost allows for more answers, so its worst case may be larger"
    )


def _floored(share: float) -> str:
    """Return a share in percent, rounded down, so that only a sure event has 100%."""
    return f"{math.floor(1e3 * share) / 10:g}%"


def of_plan(result: dict[str, Any]) -> Said:
    """Yield the forecast of a plan, the worst case that was tried, and the command to run it."""
    asked, settings = result["asked"], result["settings"]
    votes = "" if result["votes"] == result["teachers"] else f" of {result['votes']} votes"
    whole = settings["queries"] if asked["labels"] == 1 else settings["rows"]
    rows = f"{whole} queries"
    if asked["labels"] > 1:
        rows = f"{settings['queries']} queries of {asked['labels']} labels, {whole} rows"
    worst = result["pass_probability"]["worst"]
    if result["frankly"]:
        yield Line(result["frankly"], "bold red")
    yield Line(
        f"{result['teachers']} teachers{votes}, epsilon {result['target_epsilon']:g} at delta "
        f"{result['delta']:g}: about {math.floor(result['answers'])} answers of {rows}",
        "bold",
    )
    if "record_epsilon" in result:
        yield Line(
            "Because the teachers are trained with differential privacy, one training record has "
            f"epsilon {result['record_epsilon']:.4f}"
        )
    yield _grid(
        "Forecast by how often a teacher is right, on average over made-up ensembles of teachers",
        [
            {
                **row,
                "pass": _floored(row["pass_probability"]),
                "worst": _floored(row["least_pass_probability"]),
            }
            for row in result["by_agreement"]
        ],
        words=0,
        right="{agreement:.3g}",
        answers="{answers:.1f}",
        equal_the_plurality="{equal_to_plurality:.1%}",
        **{"pass": "{pass}", "the_worst_pass": "{worst}"},
    )
    yield Line(
        f"Worst case tried: {worst['agreement']:.0%} of teachers are right (queries: "
        f"{worst['queries']}); runs pass the release test with probability "
        f"{_floored(worst['chance'])}. A run that fails the test gives no labels and spends "
        f"epsilon {settings['refusal_epsilon']:g}. Without the test, these queries would cost "
        f"epsilon {result['untested_epsilon']:.4f}"
    )
    yield Line(f"The smallest useful target is about epsilon {result['least_epsilon']:g}")
    for line in (result["other"], result["command"]):
        if line is not None:
            yield Line("")
            yield Line(line, whole=True)


def of_search(result: dict[str, Any]) -> Said:
    """Yield the best settings of a search, the command to run them, and other settings found."""
    row = result["winner"]
    yield Line(
        f"{row['expected_answers']:.1f} expected answers of {row['queries']} queries, "
        f"{row['agreement']:.2%} of them equal to the plurality"
    )
    told = f"epsilon {row['epsilon']:.4f} for all votes"
    if row["release"] == ReleaseKind.TARGET:
        told = (
            f"epsilon {row['epsilon']:g} as a tested target: the labels pass the release test with "
            f"probability {_floored(row['pass_probability'])}, and the expected answers allow for "
            f"it; a failed test costs epsilon {row['refusal_epsilon']}"
        )
    elif row["release"] == ReleaseKind.UPPER:
        told = (
            f"published epsilon at most {row['epsilon']:.4f} with probability 97.7%; for all "
            f"votes, epsilon {row['data_independent_epsilon']:.4f}"
        )
    yield Line(f"{told}; delta {result['goal']['delta']:g}")
    named = [f"{name} {row[name]:g}" for name in _SETTINGS if row[name] is not None]
    if row["prior_weight"]:
        named.append(f"prior weight {row['prior_weight']}")
    if row["max_answers"] is not None:
        named.append(f"at most {row['max_answers']} answers")
    yield Line(f"{row['mechanism']}: {', '.join(named)}")
    if result["others"]:
        yield _grid(
            "Other settings that were found",
            result["others"],
            words=2,
            mechanism="{mechanism}",
            release="{release}",
            epsilon="{epsilon:.4f}",
            answers="{expected_answers:.1f}",
            agreement="{agreement:.2%}",
            queries="{queries}",
        )
    yield Line("")
    yield Line(result["command"], whole=True)
