"""Pictures of a page: what all runs cost together over time, and how often a guess is right.

SVG that takes its colours from the style sheet of the page, in units of a pixel at full width.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from pate_cli.core.clock import read_time
from pate_cli.disclosure.figures import shown
from pate_cli.disclosure.markup import Markup, element
from pate_cli.disclosure.record import Run
from pate_cli.disclosure.total import Spent
from pate_cli.disclosure.verdict import PRACTICALLY_ALWAYS

_WIDTH: Final = 480
_HEIGHT: Final = 236
_LEFT: Final = 34
_RIGHT: Final = 480
_TOP: Final = 22
_BOTTOM: Final = 206
# Between the frame and the first and the last run.
_ROOM: Final = 26
# Beyond so many runs their marks would be a smear.
_MOST_MARKS: Final = 40
_LETTER: Final = 8.6
# ε below which all is nothing, and a scale would be none.
_LEAST: Final = 1e-9


def running_total(spent: Spent, *, here: int | None, budget: float | None) -> Markup | None:
    """The running total of ε over time as a step line, `here` marked; None where it is not known.

    Where runs are entered together the last of them says what they took the total to.
    """
    noted = [run.total_epsilon for run in spent.runs[:-1]]
    if not math.isfinite(spent.epsilon) or (noted and all(level is None for level in noted)):
        return None
    levels = [*noted, spent.epsilon]
    most = max(*(level for level in levels if level is not None), budget or 0.0)
    most = most if most > _LEAST else 1.0
    places, ends = _along(spent.runs)
    points = {
        number: (_LEFT + _ROOM + place * (_RIGHT - _LEFT - 2 * _ROOM), _height(level, most))
        for number, (place, level) in enumerate(zip(places, levels, strict=True))
        if level is not None
    }
    pieces = [*_ticks(most), *_line(points.values())]
    limit = None
    if budget is not None:
        limit = _height(budget, most)
        pieces += [
            element("path", d=f"M{_LEFT} {limit:.1f}H{_RIGHT}", class_="limit"),
            _words(f"budget {shown(budget)}", _LEFT + 4, limit - 6, "limit"),
        ]
    if len(points) <= _MOST_MARKS:
        pieces += [
            element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=3, class_="run")
            for number, (x, y) in points.items()
            if number != here
        ]
    level = None if here is None else levels[here]
    if here is not None and level is not None:
        pieces += _marked(*points[here], f"this run: {shown(level)}", limit)
    first, last = (_LEFT + _ROOM, _RIGHT - _ROOM) if ends[1] else ((_LEFT + _RIGHT) / 2, 0.0)
    pieces.append(_words(ends[0], first, _BOTTOM + 20, "", "start" if ends[1] else "middle"))
    if ends[1]:
        pieces.append(_words(ends[1], last, _BOTTOM + 20, "", "end"))
    words = _described(spent, here, level, budget)
    return _picture("Running total of epsilon", words, pieces, _HEIGHT)


def guesses(rows: Sequence[tuple[str, float]]) -> Markup:
    """How often a guess is right at most, in percent, by name, between a coin and certainty."""
    left, right, top = 6.0, _WIDTH - 6.0, 16.0
    pieces = []
    for name, percent in rows:
        end = left + (right - left) * (min(percent, 100.0) - 50.0) / 50.0
        pieces += [
            _words(f"{name}: {said(percent)}", 0.0, top, "strong"),
            element("path", d=f"M{left} {top + 14:.1f}H{right}", class_="rail"),
            element("path", d=f"M{left} {top + 14:.1f}H{end:.1f}", class_="bar"),
            element("circle", cx=f"{end:.1f}", cy=f"{top + 14:.1f}", r=6, class_="here"),
        ]
        top += 44.0
    pieces += [
        _words("50%, a coin", 0.0, top - 2, ""),
        _words("100%, certainty", _WIDTH, top - 2, "", "end"),
    ]
    told = "; ".join(f"{name}: {said(percent)}" for name, percent in rows)
    words = f"{told}. A coin is right 50% of the time."
    return _picture("How often a guess at even odds is right at most", words, pieces, top + 4.0)


def time_of(run: Run) -> datetime | None:
    """When it began; None where that is not known."""
    try:
        return None if run.time is None else read_time(run.time)
    except ValueError:
        return None


def said(percent: float) -> str:
    """A share of right guesses in percent, rounded up; in words where that is no bound."""
    return PRACTICALLY_ALWAYS if percent >= 100.0 else f"{percent:.1f}%"


def _picture(title: str, words: str, pieces: Sequence[str], height: float) -> Markup:
    name = title.lower().replace(" ", "-")
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", words, id=f"{name}-words"),
        *pieces,
        viewBox=f"0 0 {_WIDTH} {height:g}",
        role="img",
        aria_labelledby=f"{name}-title {name}-words",
    )


def _described(spent: Spent, here: int | None, level: float | None, budget: float | None) -> str:
    runs = f"{len(spent.runs)} runs" if len(spent.runs) > 1 else "1 run"
    told = [f"After {runs} the total is epsilon {shown(spent.epsilon)}"]
    if here is not None and level is not None:
        told.append(f"this run is number {here + 1}, after which it was {shown(level)}")
    if budget is not None:
        told.append(f"the budget is {shown(budget)}")
    return "; ".join(told) + "."


def _height(level: float, most: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * level / most


def _along(runs: Sequence[Run]) -> tuple[list[float], tuple[str, str]]:
    """Where runs stand between 0 and 1, and what is written below both ends.

    By time, where a run without one stands with that before it. By number where no time is known,
    all are the same, or one goes back: a clock may be set.
    """
    times = _filled([time_of(run) for run in runs])
    if times and times == sorted(times) and times[0] < times[-1]:
        span = (times[-1] - times[0]).total_seconds()
        form = "%Y-%m-%d" if times[0].date() < times[-1].date() else "%H:%M:%S"
        places = [(time - times[0]).total_seconds() / span for time in times]
        return places, (times[0].strftime(form), times[-1].strftime(form))
    count = len(runs)
    if count == 1:
        return [0.5], (times[0].strftime("%Y-%m-%d") if times else "run 1", "")
    return [place / (count - 1) for place in range(count)], ("run 1", f"run {count}")


def _filled(times: Sequence[datetime | None]) -> list[datetime]:
    last = next((time for time in times if time is not None), None)
    found = []
    for time in times:
        last = time or last
        if last is not None:
            found.append(last)
    return found


def _ticks(most: float) -> list[Markup]:
    """Three to five lines at round numbers, each with its number."""
    step = 10.0 ** math.floor(math.log10(most / 2.0))
    step *= next(times for times in (1, 2, 5, 10) if most / (step * times) <= 5.0)
    found = []
    for number in range(int(most / step * (1.0 + 1e-12)) + 1):
        level = _height(number * step, most)
        found.append(element("path", d=f"M{_LEFT} {level:.1f}H{_RIGHT}", class_="grid"))
        found.append(_words(f"{number * step:g}", _LEFT - 6, level + 4.5, "", "end"))
    return found


def _line(points: Iterable[tuple[float, float]]) -> list[Markup]:
    """The step line from nothing, and the area below it."""
    steps = "".join(f"H{x:.1f}V{y:.1f}" for x, y in points)
    line = f"M{_LEFT} {_BOTTOM}{steps}H{_RIGHT}"
    return [
        element("path", d=f"{line}V{_BOTTOM}Z", class_="area"),
        element("path", d=line, class_="steps"),
    ]


def _marked(x: float, y: float, text: str, limit: float | None) -> list[Markup]:
    """A run with its name beside it: to the left above the line, or wherever there is room."""
    width = _LETTER * len(text)
    anchor, at = ("end", x - 9) if x - 9 - width > _LEFT else ("start", x + 9)
    below = y - 14 < _TOP - 8 or (limit is not None and abs(limit - 6 - (y - 9)) < 16)
    if anchor == "start" or below:
        anchor, at = ("start", x + 9) if x + 9 + width < _RIGHT else ("end", x - 9)
        below = True
    return [
        element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=6, class_="here"),
        _words(text, at, y + 18 if below else y - 9, "strong", anchor),
    ]


def _words(text: str, x: float, y: float, kind: str, anchor: str | None = None) -> Markup:
    return element(
        "text", text, x=f"{x:.1f}", y=f"{y:.1f}", class_=kind or None, text_anchor=anchor
    )
