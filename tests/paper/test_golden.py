"""Every golden figure, to 1e-8 relative."""

import numpy as np
import pytest

from pate_cli.paper import costs
from pate_cli.paper.sensitivity import gnmax_local_sensitivity, log_q0


def gnmax(case):
    counts, sigma = [case["counts"]], case["sigma"]
    yield costs.gnmax_log_q(counts, sigma=sigma)[0], case["logq"]
    yield costs.gnmax_rdp(counts, sigma, case["orders"]), np.array(case["rdp"])[:, None]


def threshold(case):
    score, where = [case["max_count"]], {name: case[name] for name in ("threshold", "sigma")}
    yield costs.answer_chance(score, **where)[0], np.exp(case["log_pr_answered"])
    yield costs.threshold_rdp(score, orders=case["orders"], **where)[:, 0], case["rdp"]


def laplace(case):
    counts, scale = [case["counts"]], case["scale"]
    yield costs.laplace_log_q(counts, scale=scale)[0], case["logq"]
    yield costs.laplace_rdp(counts, scale, case["orders"])[:, 0], case["rdp"]


def logq0(case):
    yield log_q0(sigma=case["sigma"], order=case["order"]), case["logq0"]


def local_sensitivity_gnmax(case):
    """Zeros must be exact zeros: the bound does not move at all there."""
    where = {name: case[name] for name in ("sigma", "order", "teachers")}
    counts = np.array([case["counts"]])
    yield gnmax_local_sensitivity(counts, weights=np.ones(1), **where), case["ls"]


def local_sensitivity_threshold(case):
    """The golden lists give the largest single step at distance exactly d; Theorem 24 asks for
    distance at most d, hence the running maximum.
    """
    where = {name: case[name] for name in ("threshold", "sigma", "order", "teachers")}
    found = costs.threshold_local_sensitivity([max(case["counts"])], **where)
    yield found, np.maximum.accumulate(case["ls"])


def gnss_theorem23(case):
    where = {name: case[name] for name in ("beta", "sigma", "order")}
    yield costs.published_gnss_rdp(**where), case["rdp"]


@pytest.mark.parametrize(
    "figures",
    [
        *(gnmax, threshold, laplace, logq0, gnss_theorem23),
        *(local_sensitivity_gnmax, local_sensitivity_threshold),
    ],
    ids=lambda figures: figures.__name__,
)
def test_every_golden_figure(golden, figures):
    for case in golden[figures.__name__]:
        for found, wanted in figures(case):
            assert np.shape(found) == np.shape(wanted)
            np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=0.0)
