"""This run and all runs on the same votes, as the page of a report shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pate_cli.core.errors import shortened
from pate_cli.disclosure.figures import shown, tabled
from pate_cli.disclosure.guarantee import TOTAL
from pate_cli.disclosure.markup import Markup, element
from pate_cli.disclosure.page_picture import guesses, running_total, time_of
from pate_cli.disclosure.record import Run
from pate_cli.disclosure.told import CHOSEN, Told
from pate_cli.disclosure.total import Spent
from pate_cli.disclosure.verdict import percent_right

_MOST_RUNS: Final = 6
_NO_DELTA: Final = 5e-324
_WHATEVER: Final = "however they were chosen"


def runs(told: Told) -> Markup:
    """This run, the total of all runs, pictures of both, and the last runs by name."""
    report, spent = told.report, told.account
    sums = [("This run", report.epsilon, report.delta, told.whose)]
    facts, pictures, listed = [], [], []
    if report.spent is None:
        facts = [("Earlier runs", "not tracked")]
    elif spent is None:
        facts = [("All runs", "nothing is claimed of all together")]
    else:
        sums = [*([] if report.epsilon_kind == TOTAL else sums), *_sums(spent)]
        budget, here = _budget(spent), _place(spent, report.run)
        facts = [] if budget is None else [("Budget of the record", shown(budget))]
        drawn = running_total(spent, here=here, budget=budget)
        pictures = [] if drawn is None else [("Total ε over time", drawn)]
        listed = [_table_of_runs(spent.runs, here)]
    bars = [(name, _percent(epsilon, delta)) for name, epsilon, delta, _ in sums]
    if report.epsilon_kind == "upper":  # a sanitized bound speaks of no other runs
        bars[0] = (f"{bars[0][0]}, of those with so small an ε", bars[0][1])
    caption = "How often a guess at even odds, whether a given record was used, is right at most"
    pictures = [(caption, guesses(bars)), *pictures]
    return element(
        "section",
        element("h2", "All runs" if report.epsilon_kind == TOTAL else "This run, and all runs"),
        _table_of_sums(sums, facts),
        element(
            "div",
            *(element("figure", element("figcaption", words), picture)
              for words, picture in pictures),
            class_="pictures",
        ),
        *listed,
    )  # fmt: skip


def _percent(epsilon: float, delta: float) -> float:
    """How often a guess is right at most; a total's δ may be none, or worth nothing."""
    return 100.0 if delta >= 1.0 else percent_right(epsilon, max(delta, _NO_DELTA))


def _sums(spent: Spent) -> Iterator[tuple[str, float, float, str]]:
    """The totals, each with what it presupposes."""
    whole = (spent.epsilon, spent.delta)
    if whole == (spent.sum_epsilon, spent.sum_delta):
        yield "All runs", *whole, _WHATEVER
        return
    yield "All runs", *whole, CHOSEN
    if spent.sum_epsilon is not None and spent.sum_delta is not None:
        yield "Plain sum", spent.sum_epsilon, spent.sum_delta, _WHATEVER


def _budget(spent: Spent) -> float | None:
    """Return ε of the budget of the last run, None where it had none."""
    budget = spent.runs[-1].budget
    return None if budget is None else budget.epsilon


def _place(spent: Spent, run: str | None) -> int | None:
    """Where the run of this name stands among all."""
    return next((place for place, each in enumerate(spent.runs) if each.id == run), None)


def _table_of_sums(
    sums: Sequence[tuple[str, float, float, str]], facts: Sequence[tuple[str, str]]
) -> Markup:
    rows = [
        (name, _cell(tabled(epsilon)), _cell(tabled(delta)), element("td", when))
        for name, epsilon, delta, when in sums
    ]
    wide = [(name, element("td", text, colspan=3)) for name, text in facts]
    heads = ("", "ε", "δ", "Holds")
    return element(
        "table",
        element("thead", element("tr", *(element("th", head, scope="col") for head in heads))),
        element(
            "tbody",
            *(
                element("tr", element("th", name, scope="row"), *cells)
                for name, *cells in (*rows, *wide)
            ),
        ),
        class_="sums",
    )


def _cell(number: str) -> Markup:
    return element("td", number, class_="number")


def _table_of_runs(every: Sequence[Run], here: int | None) -> Markup:
    """The last runs and this one."""
    count = len(every)
    wanted = sorted({*range(max(0, count - _MOST_RUNS), count), *([] if here is None else [here])})
    rows, before = [], -1
    for place in wanted:
        if place > before + 1:
            left = place - before - 1
            rows.append(
                element(
                    "tr", element("td", f"… {left} more, in the report", colspan=5), class_="gap"
                )
            )
        rows.append(_row_of_run(every[place], ours=place == here))
        before = place
    which = ", the last ones" if count > len(wanted) else ""
    heads = ("Begun (UTC)", "Run", "ε", "δ", "Total ε")
    return element(
        "table",
        element("caption", f"Runs in the record{which}"),
        element("thead", element("tr", *(element("th", head, scope="col") for head in heads))),
        element("tbody", *rows),
        class_="runs",
    )


def _row_of_run(run: Run, *, ours: bool) -> Markup:
    time = time_of(run)
    return element(
        "tr",
        element("td", time.strftime("%Y-%m-%d %H:%M") if time else "–"),
        element("th", _named(run) + (": this run" if ours else ""), scope="row"),
        *(_cell(tabled(cost)) for cost in (run.counted, run.delta, run.total_epsilon)),
        class_="ours" if ours else None,
    )


def _named(run: Run) -> str:
    """What a run was, in a few words."""
    words = [run.kind.value, run.outcome.value]
    if run.asked is not None:
        words.append(str(run.asked.mechanism.get("name", "")))
        if run.answers is not None:
            words.append(f"{run.answers} of {run.asked.queries}")
    if run.external is not None:
        words += [shortened(name) for name in (run.external.name, run.external.covers) if name]
    return ", ".join(word for word in words if word)
