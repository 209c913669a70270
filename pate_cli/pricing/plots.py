"""Pictures, for those who installed the extra `plot`: what votes cost, and what tune found.

They are the ICLR 2018 paper's figures for the votes at hand. Every picture drawn from private votes
is SECRET and says so in its title. Colours are Okabe and Ito's, which colour-blind readers can
tell apart; line styles, markers and shades differ as well, so that a print in grey will do. The
same picture is the same file: fonts are matplotlib's own, and no date goes into it.
"""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pate_cli.core.arrays import Floats
from pate_cli.core.errors import UsageError
from pate_cli.files.addresses import public_name

if TYPE_CHECKING:
    from pate_cli.pricing.accuracy import AccuracyPoint
    from pate_cli.pricing.growth import CostCurve

_SECRET: Final = "secret: not releasable"  # noqa: S105 - a title, no password
STYLE: Final = {
    "font.family": "DejaVu Sans",
    "font.size": 13,
    "axes.titlesize": 13,
    "axes.titlepad": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.formatter.useoffset": False,
    "grid.color": "#E5E5E5",
    "grid.linewidth": 0.8,
    "legend.fontsize": 12,
    "legend.frameon": False,
    "lines.linewidth": 2.2,
    "lines.markersize": 7,
    "pdf.fonttype": 42,
    "svg.hashsalt": "pate",
}

BLUE, _GREEN, _PURPLE, VERMILION, _SKY = "#0072B2", "#009E73", "#CC79A7", "#D55E00", "#56B4E9"
_GREY, _BLACK = "#CCCCCC", "#000000"
_MECHANISMS: Final = {
    "lnmax": ("LNMax", VERMILION, "--", "s"),
    "gnmax": ("GNMax", BLUE, "-", "o"),
    "confident": ("Confident-GNMax", _GREEN, "-.", "^"),
    "interactive": ("Interactive-GNMax", _PURPLE, ":", "D"),
}
_MARKS = 8
# What is asked, answered, and paid for one, and its mark, by series of queries.
_SERIES: Final = {
    "": (_GREY, BLUE, VERMILION, "o"),
    "no guess": (_GREY, "#888888", _BLACK, "s"),
    "agrees": ("#BFDDEE", BLUE, _SKY, "o"),
    "disagrees": ("#F6D5B8", VERMILION, _PURPLE, "D"),
}


def _style(mechanism: str) -> tuple[str, str, str, str]:
    """Title, colour, line and marker of a mechanism; a plain one where none is set aside."""
    return _MECHANISMS.get(mechanism, (mechanism, _BLACK, "-", "x"))


# What would tell when, and by what, a picture was drawn.
_STAMPS: Final[Mapping[str, Mapping[str, None]]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}
_FORMATS = tuple(f".{name}" for name in _STAMPS)
_SIZE = (8.0, 5.0)
_DPI = 110


def _matplotlib() -> Any:
    """The matplotlib module; it is an extra, so that the tool itself stays small.

    Raises:
        UsageError: it is not installed.
    """
    try:
        importlib.import_module("matplotlib.figure")
        return importlib.import_module("matplotlib")
    except ImportError:
        raise UsageError(
            "`plot` needs matplotlib, which is optional: pip install 'pate-cli[plot]'"
        ) from None


def check_plot(path: str | os.PathLike[str]) -> str:
    """`pdf`, `png` or `svg` by the suffix; asked before any work, lest it be in vain.

    Raises:
        UsageError: another suffix, or matplotlib is not installed.
    """
    suffix = PurePath(path).suffix.lower()
    if suffix not in _FORMATS:
        raise UsageError(
            f"`plot` writes {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}, got '{public_name(path)}'"
        )
    _matplotlib()
    return suffix[1:]


def new_axes(title: str, *, secret: bool = True, panels: int = 1) -> tuple[Any, Any]:
    """(figure, axes) with a title that says if it is secret, without the global state of pyplot.

    With more than one panel the others of the figure's axes stand below and share the abscissa.
    """
    matplotlib = _matplotlib()
    with matplotlib.rc_context(STYLE):
        size = _SIZE[0], _SIZE[1] * (2 + panels) / 3.0
        figure = matplotlib.figure.Figure(figsize=size, layout="constrained")
        axes = figure.subplots(panels, sharex=True, squeeze=False)[0, 0]
        axes.set_title(f"{title}\n{_SECRET}" if secret else title, loc="left")
    return figure, axes


def new_pair() -> tuple[Any, Sequence[Any]]:
    """(figure, two axes) side by side, each with a scale of its own."""
    matplotlib = _matplotlib()
    with matplotlib.rc_context(STYLE):
        figure = matplotlib.figure.Figure(figsize=(1.5 * _SIZE[0], _SIZE[1]), layout="constrained")
        return figure, figure.subplots(1, 2)


def drawing() -> Any:
    """The context in which everything is drawn: fonts, sizes and grids."""
    return _matplotlib().rc_context(STYLE)


def legend_below(
    figure: Any, handles: Sequence[Any], *, columns: int = 3, title: str | None = None
) -> None:
    """A legend under the axes, where it hides nothing."""
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, title=title)


def logarithmic(axis: Any) -> None:
    """A logarithmic axis with ticks at 1, 2 and 5, written as people write numbers."""
    ticker = importlib.import_module("matplotlib.ticker")
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axis.set_minor_locator(ticker.NullLocator())


def encode_figure(figure: Any, path: str | os.PathLike[str]) -> bytes:
    """A figure in the format that the suffix of `path` names, without a date.

    Raises:
        UsageError: as `check_plot`.
    """
    picture = check_plot(path)
    sink = io.BytesIO()
    with _matplotlib().rc_context(STYLE):
        figure.savefig(sink, format=picture, dpi=_DPI, metadata=_STAMPS[picture])
    return sink.getvalue()


def cost_figure(
    series: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    mechanism: str,
    order: float,
    teachers: int,
    prior_weight: int = 0,
) -> Any:
    """Queries by plurality count: how many, how many answered, and what one costs (Figure 5).

    Args:
        series: rows of `CostSummary.histogram`, side by side by what they are called; a single one
            needs no name.
        mechanism: its name.
        order: Rényi order of the costs.
        teachers: τ; the axis ends at τ + B.
        prior_weight: B.
    """
    figure, axes = new_axes(f"{_style(mechanism)[0]}: which queries cost what")
    most = teachers + prior_weight
    with _matplotlib().rc_context(STYLE):
        right = axes.twinx()
        right.spines["right"].set_visible(True)
        right.grid(visible=False)
        start, priced = most, False
        for number, (name, bins) in enumerate(series.items()):
            pale, strong, dots, mark = _SERIES[name]
            first = np.array([row["from"] for row in bins], dtype=np.float64)
            width = (np.array([row["to"] for row in bins]) - first) / len(series)
            left = first + number * width
            asked = [row["queries"] for row in bins]
            answered = [row["expected_answers"] for row in bins]
            cost = np.array([row["mean_cost"] for row in bins])
            asking, answering, price = (
                (f"{name}: asked", f"{name}: answered", f"{name}: cost of one")
                if name
                else ("queries asked", "answered (expected)", "cost of one query (right axis)")
            )
            common = {"align": "edge", "edgecolor": "white"}
            axes.bar(left, asked, width, color=pale, label=asking, **common)
            axes.bar(left, answered, width, color=strong, label=answering, **common)
            shown = cost > 0.0
            right.plot(
                (left + width / 2.0)[shown],
                cost[shown],
                mark,
                color=dots,
                markeredgecolor="white",
                markersize=10,
                label=price,
            )
            start, priced = min(start, first.min(initial=most)), priced or bool(shown.any())
        axes.set_xlim(start, most)
        whose = f"of {teachers} teachers"
        axes.set_xlabel(
            f"votes for the plurality, {whose}"
            + (f" and {prior_weight} of the prior" if prior_weight else "")
        )
        axes.set_ylabel("queries")
        if priced:
            logarithmic(right.yaxis)
            right.margins(y=0.1)
        right.set_ylabel(f"mean Rényi cost at order {order:g} (nats)")
        parts = [part.get_legend_handles_labels()[0] for part in (axes, right)]
        handles = [handle for part in parts for handle in part]
        if "" in series:
            legend_below(figure, handles)
        else:
            # A column each: what is asked and answered, and the cost below.
            bars, costs = handles[: -len(series)], handles[-len(series) :]
            columns = zip(bars[::2], bars[1::2], costs, strict=True)
            handles = [handle for column in columns for handle in column]
            title = "Queries by what the prior says; answers are expected, costs on the right axis"
            legend_below(figure, handles, columns=len(series), title=title)
    return figure


def sensitivity_figure(
    curve: Floats,
    discounted: Floats,
    within: Floats,
    *,
    mechanism: str,
    order: float,
    beta: float,
) -> Any:
    """Local sensitivity by distance, and the discounted curve whose maximum is SS_β.

    Where it is known the cost at most within each distance stands below, on an axis of its own.

    Args:
        curve: LS_d, [distances], nats.
        discounted: e^{−βd} LS_d, [distances], nats.
        within: u_d, [distances] or empty, nats.
        mechanism: its name.
        order: Rényi order.
        beta: β per vote.
    """
    figure, axes = new_axes(
        f"{_style(mechanism)[0]}: smooth sensitivity at order {order:g}",
        panels=2 if within.size else 1,
    )
    with _matplotlib().rc_context(STYLE):
        distances = np.arange(curve.size)
        top = int(np.argmax(discounted))
        axes.plot(distances, curve, "--", color=BLUE, label="local sensitivity")
        axes.plot(
            distances,
            discounted,
            "-",
            color=VERMILION,
            label=f"discounted by exp(−β·distance), β = {beta:g}",
        )
        axes.plot(
            [top],
            [discounted[top]],
            "o",
            color=_BLACK,
            markersize=9,
            label=f"its maximum: {discounted[top]:.3g} nats at distance {top}",
        )
        lowest = figure.axes[-1]
        if within.size:
            lowest.plot(distances, within, "-.", color=_GREEN, label="cost at most (below)")
            lowest.set_ylim(bottom=0)
            lowest.set_ylabel("cost at most (nats)")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        lowest.set_xlabel("distance (teachers changed)")
        axes.set_ylabel("sensitivity (nats)")
        shown = [each.get_legend_handles_labels()[0] for each in figure.axes]
        legend_below(figure, [handle for handles in shown for handle in handles], columns=1)
    return figure


def growth_figure(curves: Mapping[str, CostCurve], *, delta: float) -> Any:
    """Cumulative cost against answers, one curve an aggregator (Figure 1, middle).

    Args:
        curves: by the name of the aggregator.
        delta: δ.
    """
    figure, axes = new_axes("What the answers cost as they add up")
    with _matplotlib().rc_context(STYLE):
        for name, curve in curves.items():
            title, colour, line, marker = _style(name)
            axes.plot(
                curve.answers,
                curve.epsilon,
                line,
                color=colour,
                marker=marker,
                markevery=max(1, curve.answers.size // _MARKS),
                label=title,
            )
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("answers (expected)")
        axes.set_ylabel(f"ε for these votes, δ = {delta:g}")
        legend_below(figure, axes.get_legend_handles_labels()[0], columns=len(curves))
    return figure


def spent_figure(rows: Sequence[Mapping[str, Any]], *, budget: float | None) -> Any:
    """What all runs of a record cost together, run by run; public.

    Args:
        rows: `kind`, `outcome`, `time`, `epsilon` and `total_epsilon` of every run, in order.
        budget: a line at it, where there is one.
    """
    figure, axes = new_axes("What all runs cost together", secret=False)
    with _matplotlib().rc_context(STYLE):
        at = np.arange(1, len(rows) + 1)
        totals = np.array([row["total_epsilon"] or np.nan for row in rows], dtype=np.float64)
        own = np.array([row["epsilon"] or np.nan for row in rows], dtype=np.float64)
        axes.bar(at, own, 0.5, color="#BFDDEE", edgecolor=BLUE, label="by itself")
        known = np.isfinite(totals)
        axes.step(at[known], totals[known], where="mid", color=VERMILION, label="together")
        axes.plot(at[known], totals[known], "o", color=VERMILION)
        if budget is not None:
            axes.axhline(budget, color=_BLACK, linestyle="--", linewidth=1.4, label="budget")
        axes.set_ylim(bottom=0)
        every = max(1, -(-len(rows) // 12))
        axes.set_xticks(at[::every])
        named = [str(row["time"])[:10] or str(number) for number, row in enumerate(rows, 1)]
        axes.set_xticklabels(named[::every], rotation=45, ha="right", fontsize=10)
        axes.set_xlabel("run")
        axes.set_ylabel("ε for all votes")
        axes.grid(visible=False, axis="x")
        legend_below(figure, axes.get_legend_handles_labels()[0])
    return figure


def accuracy_figure(points: Sequence[AccuracyPoint], *, queries: int, delta: float) -> Any:
    """Label accuracy against privacy over a range of noise (Figure 4, left).

    Args:
        points: of all aggregators.
        queries: how many are answered.
        delta: δ.
    """
    figure, axes = new_axes(f"Labelling all {queries} queries: accuracy and cost")
    with _matplotlib().rc_context(STYLE):
        for number, name in enumerate(dict.fromkeys(point.mechanism for point in points)):
            title, colour, line, marker = _style(name)
            mine = [point for point in points if point.mechanism == name]
            epsilon = [point.epsilon for point in mine]
            right = [100.0 * point.accuracy for point in mine]
            axes.plot(epsilon, right, line, color=colour, marker=marker, label=title)
            # Labels of one curve go up and left, of the next down and right: they may coincide.
            side = -1 if number % 2 == 0 else 1
            for point, x, y in zip(mine, epsilon, right, strict=True):
                axes.annotate(
                    f"{point.deviation:.3g}",
                    (x, y),
                    xytext=(6 * side, -6 * side),
                    textcoords="offset points",
                    ha="left" if side > 0 else "right",
                    va="top" if side > 0 else "bottom",
                    color=colour,
                    fontsize=11,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8},
                )
        logarithmic(axes.xaxis)
        axes.margins(0.1)
        axes.set_xlabel(f"ε for these votes, δ = {delta:g} (left is more private)")
        axes.set_ylabel("labels that are right (%)")
        legend_below(
            figure,
            axes.get_legend_handles_labels()[0],
            title="numbers: standard deviation of the noise, in votes",
        )
    return figure


def pareto_figure(
    points: Sequence[Mapping[str, Any]], winner: Mapping[str, Any] | None, *, secret: bool
) -> Any:
    """Expected answers against ε, coloured by agreement with the plurality.

    Args:
        points: each with `expected_answers`, `epsilon` and `agreement`.
        winner: one more of them, marked; or None.
        secret: whether they were found on private votes.
    """
    figure, axes = new_axes("What tune found: answers, epsilon and agreement", secret=secret)
    with _matplotlib().rc_context(STYLE):
        marks = axes.scatter(
            [point["expected_answers"] for point in points],
            [point["epsilon"] for point in points],
            c=[100.0 * point["agreement"] for point in points],
            cmap="viridis",
            s=90,
            edgecolors=_BLACK,
            linewidths=0.8,
            label="no other setting beats it",
        )
        if points:
            bar = figure.colorbar(marks, ax=axes, label="answers equal to the plurality (%)")
            bar.outline.set_visible(False)
            logarithmic(axes.xaxis)
            logarithmic(axes.yaxis)
        if winner is not None:
            axes.scatter(
                [winner["expected_answers"]],
                [winner["epsilon"]],
                marker="*",
                s=420,
                facecolors="none",
                edgecolors=VERMILION,
                linewidths=2.0,
                label="winner",
            )
        axes.set_xlabel("answers (expected)")
        axes.set_ylabel("ε that is published")
        legend_below(figure, axes.get_legend_handles_labels()[0])
    return figure
