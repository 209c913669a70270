"""The door from secret to public: the law of the draw, what the report says, and guarantee (b)."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from pate_cli.accounting.sensitivity import smooth_sensitivity
from pate_cli.core.errors import ParameterError
from pate_cli.core.noise import RunKey
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.cost import Cost, Figure
from pate_cli.disclosure.facts import report_of, stated
from pate_cli.disclosure.ledger import Ledger, sanitized_epsilon
from pate_cli.disclosure.report import ReportFacts
from pate_cli.disclosure.settings import ReleasePlan, failure_delta
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from refusals import refusal
from runs import Given, charged, round_of

UPPER, NONE = ReleaseKind.UPPER, ReleaseKind.NONE
MECHANISM = ConfidentGNMax(50, 3, threshold=40.0, sigma1=30.0, sigma2=8.0)


def make_ledger(*, delta, rdp=0.713, level=0.004):
    curve = level * (1.0 + 0.05 * np.arange(30))
    done = round_of(MECHANISM, queries=100, max_answers=60, answers=41, delta=delta)
    return Ledger(
        orders=np.array([4.0, 9.0]),
        rdp=np.array([0.3, rdp]),
        sensitivity=np.stack([curve / 2.0, curve]),
        ceiling=np.array([level * 3.0, level * 4.0]),
        rounds=(done,),
    )


def plan_of(kind, *, delta, **change):
    return ReleasePlan(
        **({"kind": kind, "delta": delta, "order": 9.0, "beta": 0.02, "sigma": 12.0} | change)
    )


def law_of(ledger, plan):
    """The mean of what a release draws, without the shift; its standard deviation; the shift."""
    row = ledger.row(plan.order)
    smooth = smooth_sensitivity(
        ledger.sensitivity[row], ceiling=ledger.ceiling[row], beta=plan.beta
    )
    return ledger.rdp[row] + plan.overhead, smooth * plan.sigma, smooth * plan.shift


def released(ledger, plan, noise):
    drawn = sanitized_epsilon(ledger, plan, noise, earlier=ledger.draws)
    rounds = tuple(map(stated, ledger.rounds))
    facts = ReportFacts(rounds=rounds, sanitizer=plan, sanitized=drawn, seeded=not noise.private)
    if not plan.publishes_draw:
        facts = replace(facts, sanitizer=None, sanitized=None)
    return report_of(facts)


@pytest.fixture
def quick(monkeypatch):
    """The data-independent bound, dear and the same every time, replaced by a constant."""
    constant = property(lambda cost: Figure(50.0, cost.delta, "renyi", 9.0))
    monkeypatch.setattr(Cost, "of_curves", constant)


def test_many_upper_draws_are_too_low_as_rarely_as_promised(quick):
    delta, draws = 0.2, 6_000
    # Rounding up by up to 1e-4 must not decide: the standard deviation is a thousand times that.
    ledger, plan = make_ledger(delta=delta, rdp=3.0, level=0.01), plan_of(UPPER, delta=delta)
    epsilon, sd, shift = law_of(ledger, plan)
    assert sd > 0.1
    noise = RunKey.of(77).rows(0, 1)
    found = np.array([sanitized_epsilon(ledger, plan, noise) for _ in range(draws)])
    low = int(np.sum(found < epsilon))
    failure = delta / 10.0
    assert binom.sf(low - 1, draws, failure) > 1e-7  # at most δ' …
    assert binom.cdf(low, draws, failure * 0.99) > 1e-7  # … and not much less than it
    assert low > 80
    assert found.mean() == pytest.approx(epsilon + shift + 5e-5, abs=5.3 * sd / math.sqrt(draws))
    assert found.std() == pytest.approx(sd, rel=5.3 / math.sqrt(2 * draws))
    inside, chance = int(np.sum(np.abs(found - epsilon - shift) < sd)), ndtr(1.0) - ndtr(-1.0)
    assert binom.cdf(inside, draws, chance - 1e-3) > 1e-8
    assert binom.sf(inside, draws, chance + 1e-3) > 1e-8


def numbers_and_texts(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from numbers_and_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from numbers_and_texts(inner)
    else:
        yield value


@pytest.mark.parametrize("kind", [UPPER, NONE])
def test_no_secret_of_the_ledger_is_in_the_report(kind):
    counts = np.random.default_rng(8).multinomial(50, [0.7, 0.2, 0.1], size=100)
    ledger = charged(MECHANISM, counts, [9.0], distances=50, max_answers=60, answers=41)
    plan = plan_of(kind, delta=1e-5)
    epsilon, sd, shift = law_of(ledger, plan)
    secrets = {*ledger.rdp.tolist(), *ledger.sensitivity.ravel().tolist()}
    secrets |= {sd / plan.sigma, sd, epsilon, epsilon + shift}
    text = released(ledger, plan, Given(0.37, private=True)).to_json()
    assert ledger.rounds[0].id not in text
    assert "sensitivity" not in text
    assert "rdp" not in json.loads(text)
    found = [one for one in numbers_and_texts(json.loads(text)) if isinstance(one, float)]
    for one in found:
        for secret in secrets:
            assert not math.isclose(one, secret, rel_tol=1e-9)
    for secret in secrets:
        assert f"{secret:.9g}" not in text


def test_absurd_smoothness_still_has_a_price_for_all_votes():
    plan = ReleasePlan(kind=UPPER, delta=1e-5, order=1.01, beta=2.0, sigma=5.0)
    cost = Cost(1e-5, draws=plan.draws).of_curves
    assert math.isfinite(cost.epsilon)
    assert 1.0 < cost.order < 1.0 + 1.0 / math.expm1(4.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": 0.0}, "delta must be between 0 and 1, both excluded, got 0.0"),
        ({"order": 1.0}, "a Renyi order must be finite and above 1, got 1.0"),
        ({"beta": math.nan}, "`beta` must be positive and finite, got nan"),
        ({"sigma": 0.0}, "`sigma_release` must be positive and finite, got 0.0"),
        (
            {"order": 9.5, "beta": 0.06},
            "`beta` 0.06 at order 9.5 has infinite privacy cost; `beta` must be below 0.0556128 at "
            "this order, or `order` below 8.84333 at this beta",
        ),
    ],
)
def test_what_is_out_of_range_is_refused(change, message):
    assert refusal(ParameterError, plan_of, UPPER, **({"delta": 1e-5} | change)) == message


@pytest.mark.parametrize("exponent", [1, 5, 9, 39])
def test_the_chance_of_failure_is_printed_as_people_write_it(exponent):
    delta = float(f"1e-{exponent}")
    assert repr(failure_delta(delta)) == repr(float(f"1e-{exponent + 1}"))


# One query, every histogram: guarantee (b) in full, with nothing sampled.
TINY = [
    (ConfidentGNMax(6, 2, threshold=4.2, sigma1=1.5, sigma2=4.0), 3.0, 0.05, 3.0, 0.05),
    (ConfidentGNMax(6, 2, threshold=4.0, sigma1=3.0, sigma2=1.0), 2.0, 0.1, 2.0, 0.2),
    (ConfidentGNMax(10, 2, threshold=7.0, sigma1=6.0, sigma2=2.0), 5.0, 0.03, 4.0, 1e-2),
    (ConfidentGNMax(10, 2, threshold=7.0, sigma1=6.0, sigma2=2.0), 1.5, 0.3, 1.0, 1e-3),
    (GNMax(10, 2, sigma2=3.0), 4.0, 0.05, 3.0, 0.02),
]


def largest_excess(mechanism, plan):
    """max of P_D[S, ε̂ ≤ e] − e^e P_D'[S, ε̂ ≤ e] over S, e, neighbours and both ways."""
    tau = mechanism.teachers
    laws, means, sds = [], [], []
    for first in range(tau + 1):
        counts = np.array([[first, tau - first]])
        ledger = charged(
            mechanism, counts, [plan.order], distances=tau, delta=plan.delta, answers=1
        )
        wins = ndtr((2 * first - tau) / (math.sqrt(2.0) * mechanism.sigma2))
        answers = 1.0
        if mechanism.name == "confident":
            answers = ndtr((max(first, tau - first) - mechanism.threshold) / mechanism.sigma1)
        laws.append([1.0 - answers, answers * wins, answers * (1.0 - wins)])
        mean, sd, shift = law_of(ledger, plan)
        means.append(mean + shift)
        sds.append(sd)
        report = released(ledger, plan, Given(2.0, private=True))
        assert report.sanitized == pytest.approx(means[-1] + 2.0 * sds[-1], abs=1.01e-4)
    laws, means, sds = np.array(laws), np.array(means), np.array(sds)
    levels = np.round(np.linspace(0.0, (means + 5.0 * sds).max(), 4000), 4)
    below = ndtr((levels[:, None] - means) / sds)  # Pr[ε̂ ≤ e], exact for e ≥ 0 on four decimals
    worst = 0.0
    for one in range(tau):
        for here, there in ((one, one + 1), (one + 1, one)):
            gain = (
                laws[here][None, :] * below[:, here, None]
                - np.exp(levels)[:, None] * laws[there][None, :] * below[:, there, None]
            )
            worst = max(worst, float(np.maximum(gain, 0.0).sum(axis=1).max()))
    return worst


@pytest.mark.parametrize(("mechanism", "order", "beta", "sigma", "delta"), TINY, ids=str)
def test_guarantee_b_holds_for_every_event_and_every_number(
    quick, mechanism, order, beta, sigma, delta
):
    plan = ReleasePlan(kind=UPPER, delta=delta, order=order, beta=beta, sigma=sigma)
    # Above 0: the event that the released value is too low has its price.
    assert 0.0 < largest_excess(mechanism, plan) <= delta
