"""The published charges: sums over queries of what the paper says of each, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from pate_cli import published
from pate_cli.errors import ParameterError, UsageError, ValidityError
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.published.account import (
    PublishedAccount,
    require_disjoint_teachers,
    require_published_sensitivity,
)
from pate_cli.votes.side_files import StudentPredictions

COUNTS = np.random.default_rng(3).multinomial(20, [0.6, 0.3, 0.1], size=40)
SHARES = np.random.default_rng(4).dirichlet([1.0, 1.0, 1.0], size=40)
ORDERS = np.array([2.0, 4.0])
PARAMETERS = {"threshold": 12.0, "sigma1": 6.0, "sigma2": 5.0}


def account(mechanism, sizes):
    found, first = PublishedAccount(mechanism, ORDERS), 0
    for size in sizes:
        rows = np.arange(first, first + size)
        found.add(mechanism.for_rows(rows, first), COUNTS[first : first + size])
        first += size
    return found


MECHANISMS = [
    GNMax(20, 3, sigma2=5.0),
    ConfidentGNMax(20, 3, **PARAMETERS),
    InteractiveGNMax(20, 3, **PARAMETERS, predictions=StudentPredictions(SHARES)),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: one.name)
def test_batches_add_up_to_the_published_sums(mechanism):
    whole, parts = account(mechanism, [40]), account(mechanism, [1, 22, 17])
    assert (whole.queries, parts.queries) == (40, 40)
    np.testing.assert_allclose(parts.rdp, whole.rdp, rtol=1e-12)
    np.testing.assert_allclose(parts.sensitivity, whole.sensitivity, rtol=1e-12)
    assert whole.sensitivity.shape == (2, 20)
    if mechanism.name == "gnmax":
        cost = published.gnmax_rdp(COUNTS, 5.0, ORDERS)
        curves = [
            published.gnmax_local_sensitivity(COUNTS, sigma=5.0, order=order, teachers=20)
            for order in ORDERS
        ]
    else:
        scores = mechanism.test_score(COUNTS)
        if mechanism.name == "confident":
            np.testing.assert_array_equal(scores, COUNTS.max(axis=1))
        cost = published.confident_expected_cost(COUNTS, **PARAMETERS, orders=ORDERS, scores=scores)
        curves = [
            published.expected_local_sensitivity(
                COUNTS, **PARAMETERS, order=order, teachers=20, scores=scores
            )
            for order in ORDERS
        ]
    np.testing.assert_allclose(whole.rdp, cost.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(whole.sensitivity, curves, rtol=1e-12)


def test_a_student_changes_the_published_cost():
    asked, corrected = (account(one, [40]).rdp for one in MECHANISMS[1:])
    assert np.all(corrected < asked)


def test_what_the_paper_does_not_cover_is_refused_at_once():
    lnmax = LNMax(20, 3, laplace_scale=2.0)
    with pytest.raises(UsageError) as caught:
        PublishedAccount(lnmax, ORDERS)
    assert str(caught.value) == (
        "the published analysis has no smooth sensitivity for lnmax; use --analysis tight"
    )
    with pytest.raises(UsageError, match="knows disjoint teachers only"):
        PublishedAccount(GNMax(20, 3, sigma2=3.0, teachers_per_record=2), ORDERS)
    require_disjoint_teachers(lnmax)
    with pytest.raises(ParameterError):
        PublishedAccount(MECHANISMS[0], np.array([1.0]))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: one.name)
def test_conditions_are_checked_at_every_order(mechanism):
    require_published_sensitivity(mechanism, ORDERS)
    with pytest.raises(ValidityError) as caught:
        require_published_sensitivity(mechanism, np.array([2.0, 40.0]))
    assert str(caught.value).startswith(
        "smooth sensitivity is not valid at order 40 with sigma 5 and 3 classes: "
    )
    assert "\n" not in str(caught.value)
