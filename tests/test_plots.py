"""Pictures: what they say, what they show, and that they are kept from others."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from pate_cli.errors import UsageError
from pate_cli.plots import (
    accuracy_figure,
    check_plot,
    cost_figure,
    encode_figure,
    growth_figure,
    pareto_figure,
    sensitivity_figure,
)
from pate_cli.pricing.accuracy import AccuracyPoint
from pate_cli.pricing.growth import CostCurve

MISSING = "`plot` needs matplotlib, which is optional: pip install 'pate-cli[plot]'"
BINS = [
    {"from": 0, "to": 20, "queries": 3, "expected_answers": 0.5, "mean_cost": 0.0},
    {"from": 20, "to": 40, "queries": 7, "expected_answers": 6.0, "mean_cost": 0.01},
]
FRONT = [
    {"expected_answers": 10.0, "epsilon": 1.0, "agreement": 0.9},
    {"expected_answers": 40.0, "epsilon": 2.5, "agreement": 0.95},
]


def point(mechanism, deviation, accuracy, epsilon):
    return AccuracyPoint(mechanism, deviation, deviation, accuracy, epsilon, 5.0)


FIGURES = {
    "cost": lambda: cost_figure(BINS, mechanism="confident", order=8.0, teachers=40),
    "free": lambda: cost_figure(BINS[:1], mechanism="gnmax", order=8.0, teachers=40),
    "sensitivity": lambda: sensitivity_figure(
        np.array([1.0, 3.0, 3.0]),
        np.array([1.0, 1.5, 0.7]),
        np.array([2.0, 3.0, 5.0]),
        mechanism="lnmax",
        order=3,
        beta=0.7,
    ),
    "growth": lambda: growth_figure(
        {
            "lnmax": CostCurve(np.array([1.0, 2.0]), np.array([0.5, 0.9])),
            "confident": CostCurve(np.array([0.5, 0.8]), np.array([0.2, 0.3])),
        },
        delta=1e-5,
    ),
    "accuracy": lambda: accuracy_figure(
        [point("lnmax", 2.0, 0.9, 3.0), point("gnmax", 2.0, 0.8, 2.0)], queries=9, delta=1e-5
    ),
    "pareto": lambda: pareto_figure(FRONT, FRONT[1], secret=True),
    "nothing": lambda: pareto_figure([], None, secret=True),
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
        check_plot("picture.pdf")
    assert str(caught.value) == "`plot` writes .png or .svg, got 'picture.pdf'"


@pytest.mark.parametrize("name", FIGURES)
def test_every_picture_says_that_it_is_secret_and_names_its_axes(name):
    pytest.importorskip("matplotlib")
    figure = FIGURES[name]()
    assert figure.axes[0].get_title(loc="left").splitlines()[1] == "secret: not releasable"
    for axes in figure.axes:
        assert axes.get_ylabel()
    assert any(axes.get_xlabel() for axes in figure.axes)
    assert len(figure.legends) == 1
    for suffix, start in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        assert encode_figure(figure, f"x{suffix}").startswith(start)
    # The same picture is the same file, without a date in it.
    assert encode_figure(FIGURES[name](), "a.png") == encode_figure(FIGURES[name](), "b.png")


def test_nothing_leaves_the_canvas():
    pytest.importorskip("matplotlib")
    for make in FIGURES.values():
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
    first, second = FIGURES["growth"]().axes[0].lines
    assert first.get_xydata().tolist() == [[1.0, 0.5], [2.0, 0.9]]
    assert first.get_color() != second.get_color()
    assert first.get_linestyle() != second.get_linestyle()
    assert first.get_marker() != second.get_marker()
    lines = FIGURES["accuracy"]().axes[0].lines
    assert [line.get_xydata().tolist() for line in lines] == [[[3.0, 90.0]], [[2.0, 80.0]]]
    front, winner = FIGURES["pareto"]().axes[0].collections
    assert front.get_offsets().tolist() == [[10.0, 1.0], [40.0, 2.5]]
    assert winner.get_offsets().tolist() == [[40.0, 2.5]]


def test_what_was_found_on_public_votes_is_no_secret():
    pytest.importorskip("matplotlib")
    figure = pareto_figure(FRONT, None, secret=False)
    title = figure.axes[0].get_title(loc="left")
    assert title == FIGURES["pareto"]().axes[0].get_title(loc="left").splitlines()[0]
