"""Pictures: what they say, what they show, and that they are kept from others."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from pate_cli.core.errors import UsageError
from pate_cli.planning.pictures import (
    check_plot,
    cost_figure,
    encode_figure,
    plan_figure,
    sensitivity_figure,
)
from slices import some

MISSING = "`plot` needs matplotlib, which is optional: pip install 'pate-cli[plot]'"
BINS = [
    {"from": 0, "to": 20, "queries": 3, "expected_answers": 0.5, "mean_cost": 0.0},
    {"from": 20, "to": 40, "queries": 7, "expected_answers": 6.0, "mean_cost": 0.01},
]
FIGURES = {
    "cost": lambda: cost_figure({"": BINS}, mechanism="confident", order=8.0, teachers=40),
    "free": lambda: cost_figure({"": BINS[:1]}, mechanism="gnmax", order=8.0, teachers=40),
    "prior": lambda: cost_figure(
        {"agrees": BINS, "disagrees": BINS[1:], "no guess": BINS[:1]},
        mechanism="confident",
        order=8.0,
        teachers=34,
        prior_weight=6,
    ),
    "sensitivity": lambda: sensitivity_figure(
        np.array([1.0, 3.0, 3.0]),
        np.array([1.0, 1.5, 0.7]),
        np.array([2.0, 3.0, 5.0]),
        mechanism="lnmax",
        order=3,
        beta=0.7,
    ),
    "plan": lambda: plan_figure(
        [(n, e, (n * e / 20, n * e / 10)) for n in (20, 40) for e in (1.0, 2.0, 4.0)],
        levels=(0.6, 0.9),
        teachers=20,
        epsilon=2.0,
        answers=4.0,
        wanted=4.0,
        delta=1e-5,
    ),
}


@pytest.fixture
def without(monkeypatch):
    """An environment without matplotlib."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)


def test_without_matplotlib(without):
    for refused in (lambda: check_plot("x.png"), FIGURES["cost"]):
        with pytest.raises(UsageError) as caught:
            refused()
        assert str(caught.value) == MISSING


def test_other_formats_are_refused_first(without):
    with pytest.raises(UsageError) as caught:
        check_plot("picture.gif")
    assert str(caught.value) == "`plot` writes .pdf, .png or .svg, got 'picture.gif'"


@pytest.mark.parametrize("name", some([name for name in FIGURES if name != "plan"], 2))
def test_every_picture_says_that_it_is_secret_and_names_its_axes(name):
    pytest.importorskip("matplotlib")
    figure = FIGURES[name]()
    assert figure.axes[0].get_title(loc="left").splitlines()[1] == "secret: not releasable"
    for axes in figure.axes:
        assert axes.get_ylabel()
    assert any(axes.get_xlabel() for axes in figure.axes)
    assert len(figure.legends) == 1
    assert encode_figure(figure, "x.png").startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("suffix", "start"), [(".pdf", b"%PDF"), (".png", b"\x89PNG"), (".svg", b"<?xml")]
)
def test_the_same_picture_is_the_same_file_without_a_date(suffix, start, monkeypatch):
    pytest.importorskip("matplotlib")
    first = encode_figure(FIGURES["cost"](), f"x{suffix}")
    assert first.startswith(start)
    assert b"Date" not in first
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert encode_figure(FIGURES["cost"](), f"y{suffix}") == first


def shade(colour):
    """How light a colour is in grey, from 0 to 1."""
    parts = [int(colour[at : at + 2], 16) / 255.0 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    light = float(np.dot(linear, [0.2126, 0.7152, 0.0722]))
    return 1.055 * light ** (1.0 / 2.4) - 0.055


def test_bars_differ_in_grey_and_lines_in_more_than_colour():
    pytest.importorskip("matplotlib")
    from matplotlib.colors import to_hex

    asked, answered = FIGURES["cost"]().axes[0].containers
    shades = [shade(to_hex(group[0].get_facecolor())) for group in (asked, answered)]
    assert shades[0] - shades[1] > 0.25
    upper, lower = FIGURES["sensitivity"]().axes
    styles = [line.get_linestyle() for line in (*upper.lines[:2], *lower.lines)]
    assert len(set(styles)) == 3


def test_every_picture_is_in_one_style():
    pytest.importorskip("matplotlib")
    figures = [make() for make in FIGURES.values()]
    assert {figure.get_size_inches()[0] for figure in figures} == {8.0, 12.0}
    fonts = {axes.xaxis.label.get_fontname() for figure in figures for axes in figure.axes}
    assert fonts == {"DejaVu Sans"}
    sizes = {axes.yaxis.label.get_size() for figure in figures for axes in figure.axes}
    assert sizes == {13.0}


def test_nothing_leaves_the_canvas():
    pytest.importorskip("matplotlib")
    for make in some(FIGURES.values(), 2):
        figure = make()
        encode_figure(figure, "x.png")
        canvas = figure.bbox
        box = figure.legends[0].get_window_extent()
        assert canvas.x0 <= box.x0
        assert box.x1 <= canvas.x1
        assert canvas.y0 <= box.y0


def test_what_the_pictures_show():
    pytest.importorskip("matplotlib")
    bars = FIGURES["cost"]().axes[0].containers
    assert [[bar.get_height() for bar in group] for group in bars] == [[3, 7], [0.5, 6.0]]
    (dots,) = FIGURES["cost"]().axes[1].lines
    assert dots.get_xydata().tolist() == [[30.0, 0.01]]  # a cost of 0 has no place on a log axis
    _, _, top = FIGURES["sensitivity"]().axes[0].lines
    assert top.get_xydata().tolist() == [[1.0, 1.5]]
    left, right = FIGURES["plan"]().axes
    assert left.lines[-1].get_xydata().tolist() == [[2.0, 4.0]]
    assert right.lines[0].get_xdata().tolist() == [20, 40]


def test_a_plan_is_no_secret():
    pytest.importorskip("matplotlib")
    title = FIGURES["plan"]().axes[0].get_title(loc="left")
    assert title == "20 teachers"
