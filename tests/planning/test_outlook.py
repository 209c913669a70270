"""`pate_cli.planning.outlook`: what a target would meet, for any mechanism."""

from __future__ import annotations

import pytest

from pate_cli.core.words import Bound
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms import ConfidentGNMax, GNMax, LNMax
from pate_cli.planning.outlook import forecast, likely_rows, setting_of
from pate_cli.planning.setting import Setting

CONFIDENT = ConfidentGNMax(60, 4, threshold=48.0, sigma1=30.0, sigma2=12.0)


@pytest.mark.parametrize(
    "mechanism",
    [CONFIDENT, GNMax(60, 4, sigma2=12.0), LNMax(60, 4, laplace_scale=10.0)],
    ids=lambda mechanism: mechanism.name,
)
def test_rows_are_likely_to_pass_and_grow_with_the_target(mechanism):
    rows = []
    for epsilon in (0.8, 1.5, 3.0):
        plan = TargetPlan.of(epsilon, delta=1e-5)
        rows.append(likely_rows(mechanism, plan, bound=Bound.AUTO, available=10**5))
        fares = forecast(mechanism, plan, bound=Bound.AUTO, queries=rows[-1])
        assert fares.chance >= 0.93
        few = likely_rows(mechanism, plan, bound=Bound.AUTO, available=5)
        assert few <= 5
    assert rows == sorted(rows)
    assert rows[0] < rows[-1]


def test_worst_and_best_have_names():
    plan = TargetPlan.of(1.0, delta=1e-5)
    found = forecast(CONFIDENT, plan, bound=Bound.AUTO, queries=120)
    named = found.named()
    assert named["worst"]["chance"] == found.chances.min() < named["best"]["chance"]
    assert named["worst"]["agreement"] < named["best"]["agreement"]
    assert found.at(found.levels[0])["worst_pass_probability"] <= named["mean"]


def test_settings_of_mechanisms():
    assert setting_of(CONFIDENT) == Setting(48.0, 30.0, 12.0)
    assert setting_of(GNMax(60, 4, sigma2=12.0)) == Setting(None, None, 12.0)
