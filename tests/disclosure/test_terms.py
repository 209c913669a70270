"""Terms of every kind: what they cost whatever the votes, and what a report opens with."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pate_cli.disclosure.terms import ComposedTerms, ScoredTerms, TargetTerms, terms_of

from pate_cli.accounting.conversion import round_up
from pate_cli.core.errors import ParameterError
from pate_cli.core.words import Adjacency, Bound, ReleaseKind
from pate_cli.disclosure.external import External, ExternalPair
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.target import TargetPlan
from pate_cli.disclosure.worst_case import Spending, data_independent_cost
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.stability import Stability
from pate_cli.votes.groups import TeacherGroups

DELTA = 1e-4
GNMAX = GNMax(60, 3, sigma2=20.0, teachers_per_record=2)
STABILITY = Stability(60, 3, teachers_per_record=2, query_epsilon=0.5, query_delta=1e-6)
SPENT = [Spending(GNMAX, 40, 30)]
LABELS = ScoredTerms(SPENT, DELTA)
PLAN = ReleasePlan(ReleaseKind.UPPER, delta=DELTA, order=6.0, beta=0.05, sigma=8.0)
DRAWN = ScoredTerms(SPENT, DELTA, PLAN)
COMPOSED = terms_of(STABILITY, queries=40, max_answers=40, delta=DELTA)
TARGET = TargetPlan(1.0, DELTA, 0.25)
TESTED = TargetTerms(LABELS, TARGET, Bound.TWO_TAIL, (2.0, 4.0))
GROUPS = TeacherGroups(
    ("one",) * 20 + ("two",) * 40, teachers_per_record=(1,) * 20 + (2,) * 40
).public
EVERY = pytest.mark.parametrize("terms", [LABELS, DRAWN, COMPOSED, TESTED], ids=repr)


def test_labels_cost_their_worst_case_and_a_draw_is_paid_for():
    assert terms_of(GNMAX, queries=40, max_answers=30, delta=DELTA) == LABELS
    worst = data_independent_cost(SPENT, delta=DELTA, plan=None)
    for terms in (LABELS, DRAWN, TESTED):
        public = terms.public
        assert public.labels_epsilon == round_up(worst.epsilon)
        assert (public.labels_order, public.labels_method) == (worst.order, worst.method)
    assert LABELS.public.epsilon == LABELS.public.labels_epsilon < DRAWN.public.epsilon


def test_a_composition_costs_itself():
    cost = STABILITY.privacy(40, DELTA)
    assert ComposedTerms(cost) == COMPOSED
    assert COMPOSED.public.epsilon == COMPOSED.public.labels_epsilon == round_up(cost.epsilon)
    assert (COMPOSED.analysis, COMPOSED.public.method) == ("composition", cost.method)
    assert COMPOSED.labels_delta == COMPOSED.delta == cost.delta


@pytest.mark.parametrize("terms", [LABELS, DRAWN, COMPOSED], ids=repr)
def test_where_nothing_is_drawn_the_worst_case_comes_first(terms):
    headline = terms.headline
    assert (headline.epsilon, headline.kind) == (terms.public.epsilon, "worst-case")
    assert (headline.sanitized.epsilon, headline.tested, headline.met_target) == (None, None, None)


def test_a_drawn_epsilon_comes_first_where_it_is_the_smaller():
    worst = DRAWN.public.epsilon
    for drawn, first, kind in ((0.5, 0.5, "upper"), (worst + 1.0, worst, "worst-case")):
        headline = DRAWN.drawn(drawn)
        assert (headline.epsilon, headline.kind) == (first, kind)
        assert headline.sanitized.epsilon == drawn
        assert (headline.sanitized.order, headline.sanitized.sigma_release) == (6.0, 8.0)
    assert DRAWN.drawn(None) == DRAWN.headline


def test_a_target_or_its_refusal_comes_first_whatever_the_labels_cost():
    assert TESTED.headline == TESTED.decided(passed=True)
    for passed, epsilon, kind in ((True, 1.0, "target"), (False, 0.25, "refusal")):
        headline = TESTED.decided(passed=passed)
        assert (headline.epsilon, headline.kind) == (epsilon, kind)
        tested = headline.tested
        assert (tested.passed, tested.target, tested.orders) == (passed, 1.0, (2.0, 4.0))
        assert (tested.refusal_epsilon, tested.bound) == (0.25, "two-tail")


@EVERY
def test_no_group_is_above_the_headline(terms):
    own = {group.group: group for group in terms.by_group(GROUPS, terms.headline.epsilon)}
    assert own["two"].epsilon == terms.headline.epsilon
    assert {group.delta for group in own.values()} == {terms.delta}
    if terms in (LABELS, DRAWN):
        alone = replace(terms, spent=[Spending(GNMAX.moving(1), 40, 30)])
        assert own["one"].epsilon == alone.public.epsilon < own["two"].epsilon
    else:
        # The steps of a composition, and a coin, see all votes at once.
        assert own["one"].epsilon == terms.headline.epsilon


def test_one_delta_is_meant_throughout():
    with pytest.raises(ParameterError, match=r"a plan at delta 0\.0001 for 0\.001"):
        replace(DRAWN, own_delta=1e-3)
    with pytest.raises(ParameterError, match=r"a target at delta 0\.001 for another"):
        replace(TESTED, target=TargetPlan(1.0, 1e-3, 0.25))


def test_external_parts_add_to_epsilon_and_to_delta_but_not_to_the_labels():
    part = ExternalPair(adjacency=Adjacency.REPLACE_ONE, covers=None, stated=(0.5, 1e-5))
    both = replace(LABELS, external=External((part,)))
    assert (both.labels_delta, both.delta) == (DELTA, pytest.approx(1.1e-4))
    assert both.public.labels_epsilon == LABELS.public.epsilon
    assert both.public.epsilon == pytest.approx(LABELS.public.epsilon + 0.5, abs=2e-4)
    (own, _) = both.by_group(GROUPS, both.headline.epsilon)
    assert own.delta == both.delta
