"""Pictures: what they show, that secret ones say so, and that the same picture is the same file."""

import functools
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import pate_cli as pate
import reports
from pate_cli.core.errors import UsageError
from pate_cli.disclosure.pictures import (
    check_plot,
    draw_cost,
    draw_plan,
    draw_sensitivity,
    draw_spent,
    encode_picture,
    new_axes,
)
from refusals import refusal

MISSING = "`plot` needs matplotlib, which is optional: pip install 'pate-cli[plot]'"
VOTES = np.random.default_rng(3).multinomial(40, [0.8, 0.1, 0.1], size=30)
SETTINGS = {"threshold": 26, "sigma1": 24, "sigma2": 8}
POINTS = [(n, e, (n * e / 20, n * e / 10)) for n in (20, 40) for e in (1.0, 2.0, 4.0)]
RUNS = [
    {"time": "2026-01-0" + str(day), "epsilon": 1.0, "total_epsilon": 1.0 * day} for day in (1, 2)
]


@functools.cache
def costs():
    return pate.cost(VOTES, layout="counts", **SETTINGS)


def plan(axes=None):
    known = SimpleNamespace(teachers=20, epsilon=2.0, delta=1e-5, shown=(0.6, 0.9))
    return draw_plan(SimpleNamespace(known=known, answers=4.0), POINTS, axes)


DRAWN = {
    "cost": lambda: draw_cost(costs()),
    "sensitivity": lambda: draw_sensitivity(
        pate.smooth_sensitivity(VOTES, layout="counts", order=4, beta=0.03, **SETTINGS)
    ),
    "plan": plan,
    "spent": lambda: draw_spent(RUNS, budget=3.0),
}


def test_without_matplotlib_and_in_other_formats_nothing_is_drawn(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for draw in (lambda: check_plot("x.png"), plan):
        assert refusal(UsageError, draw) == MISSING
    other = refusal(UsageError, check_plot, "picture.gif")
    assert other == "`plot` writes .pdf, .png or .svg, got 'picture.gif'"


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_of_votes_says_that_it_is_secret_and_all_name_their_axes(name):
    pytest.importorskip("matplotlib")
    drawn = DRAWN[name]()
    title = drawn.get_title(loc="left").splitlines()
    assert title[1:] == ["secret: not releasable"] * (name in ("cost", "sensitivity"))
    assert drawn.get_xlabel()
    assert all(axes.get_ylabel() for axes in drawn.figure.axes)
    encode_picture(drawn, "x.png")
    (legend,) = drawn.figure.legends
    box, canvas = legend.get_window_extent(), drawn.figure.bbox
    assert canvas.x0 <= box.x0
    assert box.x1 <= canvas.x1
    assert canvas.y0 <= box.y0


@pytest.mark.parametrize(
    ("suffix", "start"), [(".pdf", b"%PDF"), (".png", b"\x89PNG"), (".svg", b"<?xml")]
)
def test_the_same_picture_is_the_same_file_without_a_date(suffix, start, monkeypatch):
    pytest.importorskip("matplotlib")
    first = encode_picture(plan(), f"x{suffix}")
    assert first.startswith(start)
    assert b"Date" not in first
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert encode_picture(plan(), f"y{suffix}") == first


@pytest.mark.parametrize("given", [{}, {"target_epsilon": 2.0}, {"seed": 1}], ids=str)
def test_a_report_shows_what_it_states_beside_what_it_is_measured_against(given):
    pytest.importorskip("matplotlib")
    votes = np.tile([250, 3, 2], (40, 1))
    report = pate.aggregate(votes, "gnmax", layout="counts", sigma2=40.0, **given).report
    (mine,) = new_axes("mine")
    for axes in (report.plot(), report.plot(mine)):
        named = [label.get_text() for label in axes.get_yticklabels()]
        lengths = dict(zip(named, [bar.get_width() for bar in axes.patches], strict=True))
        assert lengths == {
            f"stated ({report.epsilon_kind})": report.epsilon,
            "worst case, untested": report.data_independent.epsilon,
            "textbook accountant": report.crosscheck.exact_epsilon,
        }
    assert axes is mine
    title = report.plot().get_title(loc="left")
    assert ("nothing is promised" in title) == ("seed" in given)
    groups, _ = reports.made("groups")
    named = {label.get_text() for label in groups.plot().get_yticklabels()}
    assert {f"group {each.group}" for each in groups.groups} < named


def test_what_the_pictures_show():
    pytest.importorskip("matplotlib")
    bins = costs().histogram()
    asked, answered = DRAWN["cost"]().containers
    assert [bar.get_height() for bar in asked] == [row["queries"] for row in bins]
    assert [bar.get_height() for bar in answered] == [row["expected_answers"] for row in bins]
    curve, discounted, top = DRAWN["sensitivity"]().lines
    assert top.get_ydata()[0] == discounted.get_ydata().max()
    assert len({line.get_linestyle() for line in (curve, discounted)}) == 2
    (mine,) = new_axes("mine")
    assert plan(mine) is mine
    *numbers, marked = mine.lines
    assert [line.get_label() for line in numbers] == ["20 teachers", "40 teachers"]
    assert marked.get_xydata().tolist() == [[2.0, 4.0]]
    together, budget = DRAWN["spent"]().lines
    assert together.get_ydata().tolist() == [1.0, 2.0]
    assert set(budget.get_ydata()) == {3.0}


def test_lines_of_other_teachers_can_be_told_apart():
    """They once had one colour and one style, so that the legend named four equal lines."""
    known = SimpleNamespace(teachers=40, epsilon=2.0, delta=1e-5, shown=(0.7, 0.8, 0.9))
    points = [(n, at, (1.0, 2.0, 3.0)) for n in (20, 28, 40, 56, 80) for at in (1.0, 2.0)]
    axes = draw_plan(SimpleNamespace(known=known, answers=4.0), points)
    lines = [line for line in axes.get_lines() if line.get_label().endswith("teachers")]
    looks = {(line.get_color(), line.get_linestyle()) for line in lines}
    assert len(looks) == len(lines) == 5
