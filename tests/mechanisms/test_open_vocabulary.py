"""Names that nobody listed: what many queries cost and leak, against exact laws of all rows."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from laws import named_argmax_law
from many_rows import hockey_stick_of_rows
from pate_cli.accounting.gaussian.worst_vote import worst_argmax_rdp
from pate_cli.core.errors import UnreachableError
from pate_cli.mechanisms.open_vocabulary import OpenVocabulary
from refusals import refusal


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_votes_of_one_record_leak_however_they_are_shared_out(k):
    """Some name of the record comes out, whether its votes are for one name or for several."""
    mechanism = OpenVocabulary(400, sigma2=20.0, threshold=70.0, teachers_per_record=k)
    shared = {(k,), (1,) * k, (k - k // 2, k // 2), (1,) * (k - 1)}
    for votes in shared:
        below = ndtr((70.0 - np.array([n for n in votes if n])) / 20.0)
        assert 1.0 - np.prod(below) <= mechanism.leak * (1.0 + 1e-9)


@pytest.mark.parametrize("k", [1, 2])
def test_a_name_that_one_record_brings_in_leaks_on_every_query(k):
    mechanism = OpenVocabulary(20, 3, sigma2=2.0, threshold=9.0, teachers_per_record=k)
    comes_out = ndtr((k - mechanism.threshold) / mechanism.sigma2)
    assert mechanism.leak >= comes_out
    for queries in (1, 5, 40):
        at_least = -np.expm1(queries * np.log1p(-comes_out))
        refusal(UnreachableError, mechanism.privacy, queries, 0.99 * at_least)


@pytest.mark.parametrize(("k", "together"), [(1, False), (2, True), (2, False)])
def test_leaks_and_answers_share_delta(k, together):
    """Names take most of δ, and what they leave is for the conversion."""
    told = {"teachers_per_record": k, "votes_together": together}
    high = k + 20.0 * -ndtri(9e-7 / (1 if together else k))
    mechanism = OpenVocabulary(400, sigma2=20.0, threshold=high, **told)
    orders = 1.0 + np.geomspace(2.0, 60.0, 20)
    rdp = 4.0 * orders / 20.0**2  # of the whole noisy histogram, two votes of which move
    if k == 1 or together:
        rdp = worst_argmax_rdp(sigma=20.0 / k, classes=3, orders=orders)
        assert mechanism._answer_cost(orders[9]) == pytest.approx(rdp[9], rel=1e-6)
    left = 1e-5 - 10.0 * mechanism.leak
    assert 0.0 < left < 4e-6
    conversion = np.log1p(-1.0 / orders) - np.log(left * orders) / (orders - 1.0)
    wanted = float(np.min(10.0 * rdp + conversion))
    assert mechanism.privacy(10, 1e-5).epsilon == pytest.approx(wanted, rel=1e-2)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(("queries", "delta"), [(10, 0.01), (200, 1e-5)])
def test_epsilon_of_many_rows_covers_the_exact_law_of_a_tie_that_a_record_turns(k, queries, delta):
    mechanism = OpenVocabulary(40, 2, sigma2=2.0, threshold=18.0, teachers_per_record=k)
    law = {"sigma": 2.0, "threshold": 18.0}
    here, there = named_argmax_law(np.array([[20 + k, 20], [20, 20 + k]]), **law)
    epsilon = mechanism.privacy(queries, delta).epsilon
    for one, other in ((here, there), (there, here)):
        assert hockey_stick_of_rows(np.log(one), np.log(other), queries, epsilon) <= delta
    # And not by far: half of it would not do.
    assert hockey_stick_of_rows(np.log(here), np.log(there), queries, epsilon / 2.0) > delta
