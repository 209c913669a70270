"""Pictures of costs, reports, records and plans; they need the extra `plot`.

Each function `draw_…` takes a result and optionally matplotlib Axes, and returns the Axes. A
picture of private votes is SECRET and says so in its title. The colours are those of Okabe and Ito,
which colour-blind readers can distinguish. Line styles, markers and shades also differ, so that a
grey print is readable. If a picture is drawn twice, the two files are equal, because fonts are
matplotlib's own and files contain no date.
"""

from __future__ import annotations

import functools
import importlib
import io
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Final, ParamSpec

import numpy as np

from pate_cli.core.errors import UsageError
from pate_cli.disclosure.cost import nats
from pate_cli.files.addresses import public_name

_PALE, _BLUE, _GREEN, _VERMILION, _BLACK = "#BFDDEE", "#0072B2", "#009E73", "#D55E00", "#000000"
# By these settings matplotlib leaves the date and the program out of a file.
_STAMPS: Final[Mapping[str, Mapping[str, None]]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}
_DATES = 12

_Given = ParamSpec("_Given")


def _matplotlib() -> Any:
    """Return the matplotlib module, which is optional so that pate itself stays small.

    Raises:
        UsageError: matplotlib is not installed.
    """
    try:
        importlib.import_module("matplotlib.figure")
        return importlib.import_module("matplotlib")
    except ImportError:
        raise UsageError(
            "`plot` needs matplotlib, which is optional: pip install 'pate-cli[plot]'"
        ) from None


def _style() -> Any:
    """Return a context in which matplotlib has the style of all pictures, pictures.mplstyle."""
    style, library = Path(__file__).with_suffix(".mplstyle"), _matplotlib()
    return library.rc_context(library.rc_params_from_file(style, use_default_template=False))


def check_plot(path: str | os.PathLike[str]) -> str:
    """Return the format that a suffix names: `pdf`, `png` or `svg`.

    Call `check_plot` before any work, so that a wrong suffix wastes no time.

    Raises:
        UsageError: the suffix is not .pdf, .png or .svg, or matplotlib is not installed.
    """
    suffix = PurePath(path).suffix.lower()[1:]
    if suffix not in _STAMPS:
        raise UsageError(f"`plot` writes .pdf, .png or .svg, got '{public_name(path)}'")
    _matplotlib()
    return suffix


def encode_picture(axes: Any, path: str | os.PathLike[str]) -> bytes:
    """Return the figure of Axes in the format that the suffix of `path` names, without a date.

    Raises:
        UsageError: the suffix is not .pdf, .png or .svg, or matplotlib is not installed.
    """
    picture = check_plot(path)
    sink = io.BytesIO()
    with _style():
        axes.figure.savefig(sink, format=picture, dpi=110, metadata=_STAMPS[picture])
    return sink.getvalue()


def styled(draw: Callable[_Given, Any]) -> Callable[_Given, Any]:
    """Decorate a function that draws, so that it uses the style of all pictures."""

    @functools.wraps(draw)
    def drawing(*args: _Given.args, **kwargs: _Given.kwargs) -> Any:
        with _style():
            return draw(*args, **kwargs)

    return drawing


def new_axes(title: str, *, secret: bool = False, below: int = 1) -> list[Any]:
    """Return new matplotlib Axes, one below the other, with a common abscissa.

    Args:
        title: the title of the first Axes.
        secret: whether the picture shows private votes; if it does, the title says so.
        below: the number of Axes.
    """
    figure = _matplotlib().figure.Figure(figsize=(8.0, 5.0), layout="constrained")
    axes = figure.subplots(below, 1, sharex=below > 1, squeeze=False).ravel().tolist()
    axes[0].set_title(f"{title}\nsecret: not releasable" if secret else title, loc="left")
    return list(axes)


def _beside(axes: Any, label: str) -> Any:
    """Return new Axes that lie over the given Axes and have their own scale on the right side."""
    right = axes.twinx()
    right.grid(visible=False)
    right.set_ylabel(label)
    return right


def with_legend(*several: Any, columns: int = 3) -> Any:
    """Return the first of some Axes, with a legend of all of them below the picture."""
    handles = [each for axes in several for each in axes.get_legend_handles_labels()[0]]
    several[0].figure.legend(handles=handles, loc="outside lower center", ncols=columns)
    return several[0]


def _logarithmic(axis: Any) -> None:
    """Give an axis a logarithmic scale with ticks at 1, 2 and 5, as plain numbers."""
    ticker = importlib.import_module("matplotlib.ticker")
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axis.set_minor_locator(ticker.NullLocator())


@styled
def draw_cost(found: Any, axes: Any = None) -> Any:
    """Draw queries, answers and costs by plurality, the votes for a query's top class. SECRET.

    The picture is Figure 5 of the ICLR 2018 paper, for the votes of `found`, which is a VoteCost.
    """
    axes = axes or new_axes(f"{found.mechanism['name']}: which queries cost what", secret=True)[0]
    right = _beside(axes, f"mean Rényi cost at order {found.order:g} (nats)")
    bins = found.histogram()
    start, end, asked, answered, cost = (
        np.array([row[name] for row in bins], dtype=np.float64)
        for name in ("from", "to", "queries", "expected_answers", "mean_cost")
    )
    look = {"align": "edge", "edgecolor": "white"}
    axes.bar(start, asked, end - start, color=_PALE, label="queries asked", **look)
    axes.bar(start, answered, end - start, color=_BLUE, label="answered (expected)", **look)
    dear = cost > 0.0
    label = "cost of one query (right axis)"
    right.plot(((start + end) / 2.0)[dear], cost[dear], "o", color=_VERMILION, label=label)
    if dear.any():
        _logarithmic(right.yaxis)
    axes.set(xlabel="votes for the plurality", ylabel="queries")
    return with_legend(axes, right)


@styled
def draw_sensitivity(found: Any, axes: Any = None) -> Any:
    """Draw the local sensitivity of the RDP cost by distance, plain and discounted. SECRET.

    The maximum of the discounted curve is the smooth sensitivity SS_β. For small distances d, the
    picture also shows the largest RDP cost of all vote files within distance d of the votes, unless
    the analysis does not bound this cost. `found` is a Sensitivity.
    """
    name, order = found.mechanism["name"], found.plan.order
    axes = axes or new_axes(f"{name}: smooth sensitivity at order {order:g}", secret=True)[0]
    curve, discounted = found.price.curve, found.discounted
    top = int(np.argmax(discounted))
    falling = f"discounted by exp(−β·distance), β = {found.plan.beta:g}"
    reached = f"its maximum: {discounted[top]:.3g} nats at distance {top}"
    axes.plot(np.arange(curve.size), curve, "--", color=_BLUE, label="local sensitivity")
    axes.plot(np.arange(curve.size), discounted, "-", color=_VERMILION, label=falling)
    axes.plot([top], [discounted[top]], "o", color=_BLACK, label=reached)
    axes.set(xlabel="distance (teachers changed)", ylabel="sensitivity (nats)")
    if not found.within.size:
        return with_legend(axes, columns=1)
    right = _beside(axes, "cost at most (nats)")
    label = "cost at most (right axis)"
    right.plot(np.arange(found.within.size), found.within, "-.", color=_GREEN, label=label)
    return with_legend(axes, right, columns=1)


@styled
def draw_report(found: Any, axes: Any = None) -> Any:
    """Draw a bar for each ε of a Report: stated, for groups, worst-case and textbook ε. Public."""
    title = f"{found.answers} of {found.queries} {found.rows} answered"
    if not found.claimed:
        title += "; nothing is promised"
    axes = axes or new_axes(title)[0]
    bars = {f"stated ({found.epsilon_kind})": found.epsilon}
    bars |= {f"group {group.group}": group.epsilon for group in found.groups}
    bars["worst case, untested"] = found.data_independent.epsilon
    if found.crosscheck is not None and found.crosscheck.exact_epsilon is not None:
        bars["textbook accountant"] = found.crosscheck.exact_epsilon
    colours = [_BLUE if name.startswith(("stated", "group")) else _PALE for name in bars]
    drawn = axes.barh(list(bars), list(bars.values()), 0.6, color=colours, edgecolor=_BLUE)
    axes.bar_label(drawn, [nats(epsilon) for epsilon in bars.values()], padding=4)
    axes.margins(x=0.15)  # The numbers stand beyond the bars.
    axes.invert_yaxis()
    axes.set(xlabel=f"ε at δ = {found.delta:g} (nats)")
    return axes


@styled
def draw_spent(rows: Sequence[Mapping[str, Any]], *, budget: float | None, axes: Any = None) -> Any:
    """Draw the cost of each run of a record, and the total cost up to each run. Public.

    Args:
        rows: `time`, `epsilon` and `total_epsilon` of every run, in order.
        budget: the ε of the budget, at which a line is drawn; None for no line.
        axes: where to draw; new Axes if left out.
    """
    axes = axes or new_axes("What all runs cost together")[0]
    at = np.arange(1, len(rows) + 1)
    own, totals = (
        np.array([row[name] or np.nan for row in rows], dtype=np.float64)
        for name in ("epsilon", "total_epsilon")
    )
    axes.bar(at, own, 0.5, color=_PALE, edgecolor=_BLUE, label="by itself")
    axes.step(at, totals, "o-", where="mid", color=_VERMILION, label="together")
    if budget is not None:
        axes.axhline(budget, color=_BLACK, linestyle="--", label="budget")
    every = max(1, -(-len(rows) // _DATES))
    named = [str(row["time"])[:10] or str(number) for number, row in enumerate(rows, 1)]
    axes.set_xticks(at[::every], named[::every], rotation=45, ha="right", fontsize=10)
    axes.set(xlabel="run", ylabel="ε for all votes")
    return with_legend(axes)


@styled
def draw_plan(
    found: Any, points: Sequence[tuple[int, float, Sequence[float]]], axes: Any = None
) -> Any:
    """Draw answers against ε, for the teachers of a plan and for other numbers of teachers. Public.

    Args:
        found: the Plan, whose ε and answers are marked. A band shows the Plan's levels of
            agreement, and lines show the middle level.
        points: for each point, the number of teachers, ε, and the expected answers at each level of
            agreement.
        axes: where to draw; new Axes if left out.
    """
    known, levels = found.known, found.known.shown
    title = f"{known.teachers} teachers, who are right {levels[0]:.0%} to {levels[-1]:.0%}"
    axes = axes or new_axes(title)[0]
    styles = itertools.cycle(["--", "-.", ":", "-"])  # Other teachers share one colour.
    for number in sorted({number for number, _, _ in points}):
        here = [(at, answers) for each, at, answers in points if each == number]
        at, answers = np.array([at for at, _ in here]), np.array([each for _, each in here])
        own = number == known.teachers
        colour, style = (_BLUE, "-") if own else (_GREEN, next(styles))
        middle = answers[:, len(levels) // 2]
        axes.plot(at, middle, color=colour, linestyle=style, label=f"{number} teachers")
        if own:
            ends = answers.min(axis=1), answers.max(axis=1)
            axes.fill_between(at, *ends, color=colour, alpha=0.2, linewidth=0)
    axes.plot([known.epsilon], [found.answers], "o", color=_VERMILION, label="the plan")
    _logarithmic(axes.xaxis)
    axes.set(xlabel=f"ε at δ = {known.delta:g} (nats)", ylabel="answers (expected)")
    return with_legend(axes)
