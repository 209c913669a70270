"""Every golden figure, to 1e-8 relative."""

from __future__ import annotations

import numpy as np
import pytest

from pate_cli import published

CLOSE = {"rtol": 1e-8, "atol": 0.0}


def test_gnmax(golden):
    for case in golden["gnmax"]:
        counts, sigma = case["counts"], case["sigma"]
        np.testing.assert_allclose(
            published.gnmax_log_q(counts, sigma=sigma)[0], case["logq"], **CLOSE
        )
        found = published.gnmax_rdp(counts, sigma, case["orders"])
        assert found.shape == (len(case["orders"]), 1)
        np.testing.assert_allclose(found[:, 0], case["rdp"], **CLOSE)


def test_threshold(golden):
    for case in golden["threshold"]:
        where = {"threshold": case["threshold"], "sigma": case["sigma"]}
        found = published.log_probability_answered([case["max_count"]], **where)[0]
        np.testing.assert_allclose(found, case["log_pr_answered"], **CLOSE)
        rdp = published.threshold_rdp([case["max_count"]], orders=case["orders"], **where)
        np.testing.assert_allclose(rdp[:, 0], case["rdp"], **CLOSE)


def test_laplace(golden):
    for case in golden["laplace"]:
        counts, scale = case["counts"], case["scale"]
        np.testing.assert_allclose(
            published.laplace_log_q(counts, scale=scale)[0], case["logq"], **CLOSE
        )
        rdp = published.laplace_rdp(counts, scale, case["orders"])
        np.testing.assert_allclose(rdp[:, 0], case["rdp"], **CLOSE)


def test_q0(golden):
    for case in golden["logq0"]:
        found = published.log_q0(sigma=case["sigma"], order=case["order"])
        np.testing.assert_allclose(found, case["logq0"], **CLOSE)


def test_gnmax_local_sensitivity_at_every_distance(golden):
    # Zeros must be exact zeros: the bound does not move at all there.
    for case in golden["local_sensitivity_gnmax"]:
        found = published.gnmax_local_sensitivity(
            [case["counts"]], sigma=case["sigma"], order=case["order"], teachers=case["teachers"]
        )
        np.testing.assert_allclose(found, case["ls"], **CLOSE)


def test_threshold_local_sensitivity_is_the_running_maximum_of_the_golden_list(golden):
    # The golden lists give the largest single step at distance exactly d; Theorem 24 asks for
    # distance at most d, hence the running maximum.
    for case in golden["local_sensitivity_threshold"]:
        found = published.threshold_local_sensitivity(
            [max(case["counts"])],
            threshold=case["threshold"],
            sigma=case["sigma"],
            order=case["order"],
            teachers=case["teachers"],
        )
        np.testing.assert_allclose(found, np.maximum.accumulate(case["ls"]), **CLOSE)


def test_golden_threshold_lists_are_all_zero_because_theorem_6_never_applies(golden):
    # At T = 200, σ1 = 150, λ = 14 every reachable score has q > q0, so the cost is the constant
    # λ/(2σ1²). Lists that move are checked by brute force over scores.
    for case in golden["local_sensitivity_threshold"]:
        assert not any(case["ls"])
        cost = published.threshold_rdp(
            np.arange(case["teachers"] + 1.0),
            threshold=case["threshold"],
            sigma=case["sigma"],
            orders=case["order"],
        )
        np.testing.assert_allclose(cost, case["order"] / (2 * case["sigma"] ** 2), rtol=1e-12)


def test_gnss(golden):
    for case in golden["gnss_theorem23"]:
        found = published.gnss_rdp(beta=case["beta"], sigma=case["sigma"], order=case["order"])
        assert found == pytest.approx(case["rdp"], rel=1e-8)
