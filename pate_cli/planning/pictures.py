"""Pictures, for those who installed the extra `plot`: what votes cost, and what may be expected.

Some are the ICLR 2018 paper's figures for the votes at hand. Every picture drawn from private votes
is SECRET and says so in its title. Colours are Okabe and Ito's, which colour-blind readers can
tell apart; line styles, markers and shades differ as well, so that a print in grey will do. The
same picture is the same file: fonts are matplotlib's own, and no date goes into it.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

import numpy as np

from pate_cli.core.arrays import Floats
from pate_cli.core.errors import UsageError
from pate_cli.files.addresses import public_name

_SECRET: Final = "secret: not releasable"  # noqa: S105 - a title, no password
_STYLE: Final = {
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
_BLUE, _GREEN, _PURPLE, _VERMILION, _SKY = "#0072B2", "#009E73", "#CC79A7", "#D55E00", "#56B4E9"
_GREY, _BLACK = "#CCCCCC", "#000000"
_TITLES: Final = {
    "lnmax": "LNMax",
    "gnmax": "GNMax",
    "confident": "Confident-GNMax",
    "interactive": "Interactive-GNMax",
}
# What is asked, answered, and paid for one, and its mark, by series of queries.
_SERIES: Final = {
    "": (_GREY, _BLUE, _VERMILION, "o"),
    "no guess": (_GREY, "#888888", _BLACK, "s"),
    "agrees": ("#BFDDEE", _BLUE, _SKY, "o"),
    "disagrees": ("#F6D5B8", _VERMILION, _PURPLE, "D"),
}
# What would tell when, and by what, a picture was drawn.
_STAMPS: Final[Mapping[str, Mapping[str, None]]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}
_FORMATS = tuple(f".{name}" for name in _STAMPS)
_SIZE, _DPI = (8.0, 5.0), 110
_DATES = 12


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


def encode_figure(figure: Any, path: str | os.PathLike[str]) -> bytes:
    """A figure in the format that the suffix of `path` names, without a date.

    Raises:
        UsageError: another suffix, or matplotlib is not installed.
    """
    picture = check_plot(path)
    sink = io.BytesIO()
    with _matplotlib().rc_context(_STYLE):
        figure.savefig(sink, format=picture, dpi=_DPI, metadata=_STAMPS[picture])
    return sink.getvalue()


@contextlib.contextmanager
def new_figure(
    title: str | None = None, *, secret: bool = True, below: int = 1, beside: int = 1
) -> Iterator[tuple[Any, list[Any]]]:
    """(figure, axes) in the style of all pictures, without the global state of pyplot.

    Args:
        title: of the first axes, which says as well whether the picture is secret.
        secret: whether private votes are shown.
        below: panels below each other, which share the abscissa.
        beside: panels side by side, each with scales of its own.
    """
    matplotlib = _matplotlib()
    with matplotlib.rc_context(_STYLE):
        size = _SIZE[0] * (1 + beside) / 2.0, _SIZE[1] * (2 + below) / 3.0
        figure = matplotlib.figure.Figure(figsize=size, layout="constrained")
        axes = figure.subplots(below, beside, sharex=below > 1, squeeze=False).ravel().tolist()
        if title is not None:
            axes[0].set_title(f"{title}\n{_SECRET}" if secret else title, loc="left")
        yield figure, axes


def legend_below(
    figure: Any, handles: Sequence[Any] | None = None, *, columns: int = 3, title: str | None = None
) -> None:
    """A legend below the axes, where it hides nothing; of all that is drawn if nothing is given."""
    if handles is None:
        handles = [each for axes in figure.axes for each in axes.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, title=title)


def _logarithmic(axis: Any) -> None:
    """Give an axis a logarithmic scale with ticks at 1, 2 and 5, written as people write them."""
    ticker = importlib.import_module("matplotlib.ticker")
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axis.set_minor_locator(ticker.NullLocator())


def cost_figure(
    series: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    mechanism: str,
    order: float,
    teachers: int,
    prior_weight: int = 0,
) -> Any:
    """Queries by plurality: how many, how many answered, and what one costs (Figure 5). SECRET.

    Args:
        series: rows of `VoteCost.histogram`, side by side by what they are called; a single one
            needs no name.
        mechanism: its name.
        order: Rényi order of the costs.
        teachers: τ; the axis ends at τ + B.
        prior_weight: B.
    """
    title = f"{_TITLES.get(mechanism, mechanism)}: which queries cost what"
    with new_figure(title) as (figure, (axes,)):
        right = axes.twinx()
        right.spines["right"].set_visible(True)
        right.grid(visible=False)
        for number, (name, bins) in enumerate(series.items()):
            _draw_series(axes, right, name, bins, number / len(series), 1.0 / len(series))
        most = teachers + prior_weight
        starts = [row["from"] for bins in series.values() for row in bins]
        axes.set_xlim(min(starts, default=most), most)
        prior = f" and {prior_weight} of the prior" if prior_weight else ""
        axes.set_xlabel(f"votes for the plurality, of {teachers} teachers{prior}")
        axes.set_ylabel("queries")
        if any(line.get_xdata().size for line in right.lines):
            _logarithmic(right.yaxis)
            right.margins(y=0.1)
        right.set_ylabel(f"mean Rényi cost at order {order:g} (nats)")
        if "" in series:
            legend_below(figure)
        else:
            # A column each: what is asked and answered, and the cost below.
            bars, costs = (part.get_legend_handles_labels()[0] for part in (axes, right))
            columns = zip(bars[::2], bars[1::2], costs, strict=True)
            title = "Queries by what the prior says; answers are expected, costs on the right axis"
            handles = [handle for column in columns for handle in column]
            legend_below(figure, handles, columns=len(series), title=title)
    return figure


def _draw_series(
    axes: Any, right: Any, name: str, bins: Sequence[Mapping[str, Any]], start: float, share: float
) -> None:
    """Draw one series of queries: bars on the left axes, costs on the right ones."""
    pale, strong, dots, mark = _SERIES[name]
    first = np.array([row["from"] for row in bins], dtype=np.float64)
    whole = np.array([row["to"] for row in bins]) - first
    left, width = first + start * whole, share * whole
    cost = np.array([row["mean_cost"] for row in bins])
    labels = ("queries asked", "answered (expected)", "cost of one query (right axis)")
    if name:
        labels = (f"{name}: asked", f"{name}: answered", f"{name}: cost of one")
    columns = zip(("queries", "expected_answers"), (pale, strong), labels[:2], strict=True)
    for column, colour, label in columns:
        heights = [row[column] for row in bins]
        axes.bar(left, heights, width, color=colour, label=label, align="edge", edgecolor="white")
    shown = cost > 0.0
    at = (left + width / 2.0)[shown]
    look = {"color": dots, "markeredgecolor": "white", "markersize": 10, "label": labels[2]}
    right.plot(at, cost[shown], mark, **look)


def sensitivity_figure(
    curve: Floats,
    discounted: Floats,
    within: Floats,
    *,
    mechanism: str,
    order: float,
    beta: float,
) -> Any:
    """Local sensitivity by distance, and the discounted curve whose maximum is SS_β. SECRET.

    Where it is known the cost at most within each distance stands below, on an axis of its own.

    Args:
        curve: LS_d, [distances], nats.
        discounted: e^{−βd} LS_d, [distances], nats.
        within: u_d, [distances] or empty, nats.
        mechanism: its name.
        order: Rényi order.
        beta: β per vote.
    """
    title = f"{_TITLES.get(mechanism, mechanism)}: smooth sensitivity at order {order:g}"
    with new_figure(title, below=2 if within.size else 1) as (figure, (axes, *others)):
        distances, top = np.arange(curve.size), int(np.argmax(discounted))
        falling = f"discounted by exp(−β·distance), β = {beta:g}"
        reached = f"its maximum: {discounted[top]:.3g} nats at distance {top}"
        axes.plot(distances, curve, "--", color=_BLUE, label="local sensitivity")
        axes.plot(distances, discounted, "-", color=_VERMILION, label=falling)
        axes.plot([top], [discounted[top]], "o", color=_BLACK, markersize=9, label=reached)
        for lower in others:
            lower.plot(distances, within, "-.", color=_GREEN, label="cost at most (below)")
            lower.set_ylim(bottom=0)
            lower.set_ylabel("cost at most (nats)")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("sensitivity (nats)")
        [axes, *others][-1].set_xlabel("distance (teachers changed)")
        legend_below(figure, columns=1)
    return figure


def spent_figure(rows: Sequence[Mapping[str, Any]], *, budget: float | None) -> Any:
    """What all runs of a record cost together, run by run; public.

    Args:
        rows: `time`, `epsilon` and `total_epsilon` of every run, in order.
        budget: a line at it, where there is one.
    """
    with new_figure("What all runs cost together", secret=False) as (figure, (axes,)):
        at = np.arange(1, len(rows) + 1)
        totals = np.array([row["total_epsilon"] or np.nan for row in rows], dtype=np.float64)
        own = np.array([row["epsilon"] or np.nan for row in rows], dtype=np.float64)
        axes.bar(at, own, 0.5, color="#BFDDEE", edgecolor=_BLUE, label="by itself")
        known = np.isfinite(totals)
        axes.step(at[known], totals[known], where="mid", color=_VERMILION, label="together")
        axes.plot(at[known], totals[known], "o", color=_VERMILION)
        if budget is not None:
            axes.axhline(budget, color=_BLACK, linestyle="--", linewidth=1.4, label="budget")
        axes.set_ylim(bottom=0)
        every = max(1, -(-len(rows) // _DATES))
        axes.set_xticks(at[::every])
        named = [str(row["time"])[:10] or str(number) for number, row in enumerate(rows, 1)]
        axes.set_xticklabels(named[::every], rotation=45, ha="right", fontsize=10)
        axes.set_xlabel("run")
        axes.set_ylabel("ε for all votes")
        axes.grid(visible=False, axis="x")
        legend_below(figure)
    return figure


def plan_figure(
    points: Sequence[tuple[int, float, Sequence[float]]],
    *,
    levels: Sequence[float],
    teachers: int,
    epsilon: float,
    answers: float,
    wanted: float,
    delta: float,
) -> Any:
    """Answers against ε, and ε against teachers where several numbers were looked at; public.

    Args:
        points: teachers, ε, and expected answers at each level of agreement.
        levels: the levels, ascending; a band covers them, and a line shows the middle one.
        teachers, epsilon, answers: of the plan, which is marked.
        wanted: answers for which ε is drawn against teachers.
        delta: δ.
    """
    several = sorted({each for each, _, _ in points})
    nats = f"ε at δ = {delta:g} (nats)"
    with new_figure(secret=False, beside=2) as (figure, (left, right)):
        here = [(at, found) for number, at, found in points if number == teachers]
        _band(left, [at for at, _ in here], [found for _, found in here], levels)
        left.plot([epsilon], [answers], "o", color=_VERMILION, label="the plan")
        _logarithmic(left.xaxis)
        left.set_ylim(bottom=0.0)
        left.set(xlabel=nats, ylabel="answers (expected)")
        left.set_title(f"{teachers} teachers", loc="left")
        legend_below(figure, left.get_legend_handles_labels()[0])
        if len(several) == 1:
            right.remove()
            return figure
        needed = [_epsilons(points, number, wanted) for number in several]
        _band(right, several, needed, levels)
        right.plot([teachers], [epsilon], "o", color=_VERMILION)
        for axis in (right.xaxis, right.yaxis):
            _logarithmic(axis)
        right.set(xlabel="teachers", ylabel=nats)
        right.set_title(f"{wanted:.0f} answers", loc="left")
    return figure


def _band(
    axes: Any, at: Sequence[float], values: Sequence[Sequence[float]], levels: Sequence[float]
) -> None:
    """Draw a line for the middle level of agreement, and a band over all levels."""
    by_level, middle = np.array(values, dtype=np.float64), len(levels) // 2
    if len(levels) > 1:
        ends = by_level.min(axis=1), by_level.max(axis=1)
        label = f"a teacher is right {levels[0]:.0%} to {levels[-1]:.0%} of the time"
        axes.fill_between(at, *ends, color=_BLUE, alpha=0.2, linewidth=0, label=label)
    axes.plot(at, by_level[:, middle], "-", color=_BLUE, label=f"{levels[middle]:.0%}")


def _epsilons(
    points: Sequence[tuple[int, float, Sequence[float]]], teachers: int, wanted: float
) -> list[float]:
    """The ε at which so many teachers give the answers, at every level; NaN beyond the points."""
    here = sorted((at, found) for number, at, found in points if number == teachers)
    epsilon, answers = np.log([at for at, _ in here]), np.array([found for _, found in here])
    logs = np.log(np.maximum(np.maximum.accumulate(answers, axis=0), 1e-3)).T
    return [
        float(np.exp(np.interp(np.log(wanted), each, epsilon, left=np.nan, right=np.nan)))
        for each in logs
    ]
