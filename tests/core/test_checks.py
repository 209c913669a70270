"""Numbers out of range are refused with the number in the text, wherever they come in."""

import itertools

import numpy as np
import pytest

from pate_cli.accounting import conversion, sensitivity
from pate_cli.accounting.laplace import noisy_max, score_cost
from pate_cli.core import checks
from pate_cli.core.errors import ParameterError
from refusals import refusal

NOT_POSITIVE = [0.0, -0.0, -1.5, float("nan"), float("inf"), float("-inf")]
NO_ORDER = [1.0, 0.5, 0.0, -2.0, float("nan"), float("inf")]
NO_DELTA = [0.0, 1.0, -0.1, 1.5, float("nan"), float("inf")]
ONE, TEN = np.zeros(1), np.array([10.0])
SIGMA = {
    "smoothness": lambda b: sensitivity.smooth_sensitivity(np.ones(3), ceiling=1.0, beta=b),
    "laplace score": lambda s: noisy_max.laplace_scores(np.ones((1, 3)), scale=s),
    "laplace cost": lambda s: score_cost.laplace_max_rdp([0.0], scale=s, orders=[2.0]),
    "gnss": lambda s: sensitivity.gnss_rdp(beta=0.01, sigma=s, order=10.0),
    "beta": lambda b: sensitivity.gnss_rdp(beta=b, sigma=10.0, order=10.0),
    "largest order": sensitivity.largest_order,
    "mu": lambda m: conversion.gaussian_epsilon(mu=m, delta=1e-5),
    "mu of delta": lambda m: conversion.gaussian_delta(mu=m, epsilon=1.0),
}
ORDER = {
    "laplace cost": lambda o: score_cost.laplace_max_rdp([0.0], scale=1.0, orders=[o]),
    "gnss": lambda o: sensitivity.gnss_rdp(beta=0.01, sigma=9.0, order=o),
    "largest beta": sensitivity.largest_beta,
    "conversion": lambda o: conversion.conversion_cost(np.array([2.0, o]), delta=1e-5),
}
SHIFT = {
    "shift": lambda s: sensitivity.gnss_rdp(beta=0.01, sigma=10.0, order=10.0, shift=s),
}
SCALE = {"sigma": lambda s: checks.check_scale("sigma", s)}
WHOLE = {"k": lambda k: checks.check_whole("k", k)}
DELTA = {
    "conversion": lambda d: conversion.conversion_cost(TEN, delta=d),
    "gaussian": lambda d: conversion.gaussian_epsilon(mu=1.0, delta=d),
}


RANGES = [
    (SIGMA, NOT_POSITIVE, "must be positive and finite, got {}"),
    (ORDER, NO_ORDER, "a Renyi order must be finite and above 1, got {}"),
    (ORDER, [1e308], "a Renyi order must be at most"),
    (DELTA, NO_DELTA, "delta must be between 0 and 1, both excluded, got {}"),
    (SHIFT, [-1.0, *NO_ORDER[4:]], "shift must be at least 0 and finite, got {}"),
    (SCALE, [1e-16, 1e16], "must be between"),
    (WHOLE, [0, 1.5, True, "2"], "must be a whole number of at least 1"),
]


@pytest.mark.parametrize(("calls", "values", "text"), RANGES)
def test_numbers_out_of_range_are_refused_at_every_entry(calls, values, text):
    for call, value in itertools.product(calls.values(), values):
        assert text.format(value) in refusal(ParameterError, call, value)
    assert checks.check_nonnegative("shift", 0.0) == 0.0


@pytest.mark.parametrize("shape", [(0,), (2, 2)])
def test_orders_are_a_vector(shape):
    text = refusal(ParameterError, checks.check_orders, np.full(shape, 2.0))
    assert text == f"Renyi orders must be a non-empty vector, got shape {shape}"


@pytest.mark.parametrize("numbers", [(5, 3, 6), (5, 1, 1), (0, 3, 1), (5, 3, 0), (5, 3, 1.0)])
def test_ensembles_that_are_none(numbers):
    checks.check_ensemble(5, 3, 5)
    refusal(ParameterError, checks.check_ensemble, *numbers)
