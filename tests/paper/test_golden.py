"""Every golden figure, to 1e-8 relative."""

import numpy as np
import pytest

from pate_cli.paper.costs import (
    answer_chance,
    gnmax_log_q,
    gnmax_rdp,
    laplace_log_q,
    laplace_rdp,
    published_gnss_rdp,
    threshold_local_sensitivity,
    threshold_rdp,
)
from pate_cli.paper.sensitivity import gnmax_local_sensitivity, log_q0

CLOSE = {"rtol": 1e-8, "atol": 0.0}


def test_gnmax(golden):
    for case in golden["gnmax"]:
        counts, sigma = case["counts"], case["sigma"]
        np.testing.assert_allclose(gnmax_log_q([counts], sigma=sigma)[0], case["logq"], **CLOSE)
        found = gnmax_rdp([counts], sigma, case["orders"])
        assert found.shape == (len(case["orders"]), 1)
        np.testing.assert_allclose(found[:, 0], case["rdp"], **CLOSE)


def test_threshold(golden):
    for case in golden["threshold"]:
        where = {"threshold": case["threshold"], "sigma": case["sigma"]}
        found = answer_chance([case["max_count"]], **where)[0]
        np.testing.assert_allclose(found, np.exp(case["log_pr_answered"]), **CLOSE)
        rdp = threshold_rdp([case["max_count"]], orders=case["orders"], **where)
        np.testing.assert_allclose(rdp[:, 0], case["rdp"], **CLOSE)


def test_laplace(golden):
    for case in golden["laplace"]:
        counts, scale = case["counts"], case["scale"]
        np.testing.assert_allclose(laplace_log_q([counts], scale=scale)[0], case["logq"], **CLOSE)
        rdp = laplace_rdp([counts], scale, case["orders"])
        np.testing.assert_allclose(rdp[:, 0], case["rdp"], **CLOSE)


def test_q0(golden):
    for case in golden["logq0"]:
        found = log_q0(sigma=case["sigma"], order=case["order"])
        np.testing.assert_allclose(found, case["logq0"], **CLOSE)


def test_gnmax_local_sensitivity_at_every_distance(golden):
    # Zeros must be exact zeros: the bound does not move at all there.
    for case in golden["local_sensitivity_gnmax"]:
        found = gnmax_local_sensitivity(
            np.array([case["counts"]]),
            sigma=case["sigma"],
            order=case["order"],
            teachers=case["teachers"],
            weights=np.ones(1),
        )
        np.testing.assert_allclose(found, case["ls"], **CLOSE)


def test_threshold_local_sensitivity_is_the_running_maximum_of_the_golden_list(golden):
    # The golden lists give the largest single step at distance exactly d; Theorem 24 asks for
    # distance at most d, hence the running maximum.
    for case in golden["local_sensitivity_threshold"]:
        found = threshold_local_sensitivity(
            [max(case["counts"])],
            threshold=case["threshold"],
            sigma=case["sigma"],
            order=case["order"],
            teachers=case["teachers"],
        )
        np.testing.assert_allclose(found, np.maximum.accumulate(case["ls"]), **CLOSE)


def test_gnss(golden):
    for case in golden["gnss_theorem23"]:
        found = published_gnss_rdp(beta=case["beta"], sigma=case["sigma"], order=case["order"])
        assert found == pytest.approx(case["rdp"], rel=1e-8)
