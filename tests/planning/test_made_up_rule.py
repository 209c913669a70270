"""`pate_cli.planning.rule`: settings by public numbers, good over a range of ensembles."""

from __future__ import annotations

import numpy as np
import pytest

from pate_cli.core.words import Bound
from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.ensembles import Agreement, Ensembles
from pate_cli.planning.made_up_rule import Looked, choose, spread
from pate_cli.planning.outlook import settings_for
from pate_cli.planning.setting import Setting

PLAN = TargetPlan.of(2.0, delta=1e-5)


@pytest.fixture(scope="module")
def fifty():
    return Ensembles.made_up(teachers=50, classes=3, agreement=Agreement.unknown(3))


def chosen(ensembles, **given):
    return choose(ensembles, PLAN, bound=Bound.CONDITIONAL, **{"available": 40, **given})


def test_fifty_teachers_answer_most_of_forty_queries(fifty):
    """Where fixed shares of the teachers gave nine answers."""
    found = chosen(fifty)
    assert found.forecast.mean >= 26.0
    assert found.queries <= 40
    # What it goes by: one run in twenty is refused at most, and most labels are the plurality.
    assert found.forecast.chance >= 0.95
    expected = found.forecast.expected
    assert float(expected @ found.forecast.agreement / expected.sum()) >= 0.87


def test_more_teachers_or_a_larger_target_answer_more(fifty):
    more = Ensembles.made_up(teachers=100, classes=3, agreement=Agreement.unknown(3))
    small, large = chosen(fifty, available=1000), chosen(more, available=1000)
    assert large.forecast.mean > 2.0 * small.forecast.mean
    larger = choose(fifty, TargetPlan.of(4.0, delta=1e-5), bound=Bound.CONDITIONAL, available=1000)
    assert larger.forecast.mean > 2.0 * small.forecast.mean


def test_what_is_given_stays(fifty):
    found = chosen(fifty, given={"sigma2": 9.0})
    assert found.setting.sigma2 == 9.0
    every = {"threshold": 30.0, "sigma1": 20.0, "sigma2": 9.0}
    assert chosen(fifty, given=every).setting == Setting(**every)
    assert chosen(fifty, asked=17).queries == 17


def test_without_a_test_every_query_is_answered(fifty):
    found = chosen(fifty, tested=False)
    assert found.setting.threshold is None
    np.testing.assert_allclose(found.forecast.answers, found.queries)


def test_near_a_good_start_it_is_as_good(fifty):
    whole = chosen(fifty)
    quick = chosen(fifty, start=whole.setting)
    assert quick.forecast.mean > 0.9 * whole.forecast.mean


def test_the_prior_votes_in_what_is_chosen():
    with_prior = Ensembles.made_up(
        teachers=50, classes=3, agreement=Agreement.unknown(3), prior_weight=10
    )
    assert chosen(with_prior).setting.prior_weight == 10


def test_a_dear_bound_gives_way_to_the_other(fifty):
    """Under the two-tail bound of a run fewer rows pass."""
    sharp = settings_for(fifty, PLAN, available=400)
    quick = settings_for(fifty, PLAN, bound=Bound.TWO_TAIL, available=400)
    assert quick.forecast.mean < sharp.forecast.mean
    assert quick.forecast.chance >= 0.9


def test_merits_by_hand():
    found = Looked(
        rows=np.array([10, 20]),
        chances=np.array([[1.0, 0.5], [1.0, 1.0]]),
        answered=np.array([0.5, 1.0]),
        agreeing=np.array([0.45, 0.95]),
    )
    np.testing.assert_allclose(found.expected, [[5.0, 5.0], [10.0, 20.0]])
    np.testing.assert_allclose(found.most(), [5.0, 20.0])
    # Of the second one run in four is refused: .2 above the limit, five for each.
    np.testing.assert_allclose(found.merits(np.array([5.0, 20.0])), [0.75, 1.0 - 5.0 * 0.2])
    assert found.best_place() == 0


def test_numbers_from_one_to_another():
    np.testing.assert_array_equal(spread(1, 1, 10), [1])
    assert spread(3, 900, 12)[[0, -1]].tolist() == [3, 900]
