"""Ledgers add up and survive their file exactly; what is drawn from them keeps guarantee (b)."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import binom, norm

from divergences import hockey_stick
from pate_cli import ConfidentGNMax, GNMax, Stated
from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.sensitivity import gnss_rdp, smooth_sensitivity
from pate_cli.accounting.stopping import Beyond
from pate_cli.core.errors import LedgerError, ParameterError
from pate_cli.core.noise import RunKey
from pate_cli.core.words import Adjacency, ReleaseKind
from pate_cli.disclosure.cost import Cost, Figure
from pate_cli.disclosure.guarantee import report_of, stated
from pate_cli.disclosure.ledger import Ledger, sanitized_epsilon
from pate_cli.disclosure.report import ReportFacts
from pate_cli.disclosure.settings import ReleasePlan, StopRule, failure_delta
from pate_cli.mechanisms import CLASSES
from pate_cli.votes.facts import PriorFacts
from refusals import refusal
from runs import Given, charged, round_of
from sealing import sealed
from slices import tries

ORDERS = np.array([2.0, 7.5])
MECHANISM = GNMax(20, 3, sigma2=4.0)
DRAWN = ReleasePlan(ReleaseKind.UPPER, 1e-5, 7.5, 0.02, 9.1)
DAMAGED = "the ledger is damaged: "


def malformed(fault):
    return f"{DAMAGED}{fault}; restore it from a copy"


def make(name, *, seed=0, distances=4, orders=ORDERS, **told):
    random = np.random.default_rng(seed)
    curve = np.cumsum(random.exponential(size=(len(orders), distances)), axis=1)
    done = round_of(MECHANISM, queries=10, max_answers=8, answers=5, name=name, **told)
    return Ledger(
        orders=np.asarray(orders),
        rdp=random.exponential(size=len(orders)),
        sensitivity=curve,
        ceiling=(curve[:, -1] if distances else np.zeros(len(orders))) + 1.0,
        rounds=(done,),
    )


def assert_same(a, b, *, rtol=0.0):
    assert a.rounds == b.rounds
    for field in ("orders", "rdp", "sensitivity", "ceiling"):
        np.testing.assert_allclose(getattr(a, field), getattr(b, field), rtol=rtol, atol=0)
        assert getattr(a, field).shape == getattr(b, field).shape


@st.composite
def three_ledgers(draw):
    return [
        make(
            name,
            seed=draw(st.integers(0, 2**31)),
            distances=draw(st.integers(1, 6)),
            private=draw(st.booleans()),
        )
        for name in "abc"
    ]


@given(three_ledgers())
@settings(max_examples=tries(100))
def test_ledgers_add_up_in_any_order(ledgers):
    a, b, c = ledgers
    assert_same(a + b, b + a)
    assert_same((a + b) + c, a + (b + c), rtol=1e-14)
    assert_same(c + a + b, a + b + c, rtol=1e-14)
    total = a + b + c
    assert [done.id for done in total.rounds] == ["a", "b", "c"]
    for field in ("rdp", "ceiling"):
        sums = sum(getattr(each, field) for each in ledgers)
        np.testing.assert_allclose(getattr(total, field), sums, rtol=1e-14)


def test_rounds_of_different_records_do_not_add():
    """A sum would claim the largest k for costs that were charged at the smallest."""
    one = make("a")

    def of_five(name, **more):
        mechanism = GNMax(20, 3, sigma2=4.0, teachers_per_record=5, **more)
        done = round_of(mechanism, queries=10, max_answers=8, answers=5, name=name)
        return replace(make(name), rounds=(done,))

    five = of_five("b")
    words = "runs with different `teachers_per_record` or `groups` cannot share a total"
    assert words in refusal(LedgerError, one.__add__, five)
    assert len((five + of_five("d")).rounds) == 2
    # Five votes of one teacher are all for one class, those of five teachers perhaps are not.
    assert words in refusal(LedgerError, five.__add__, of_five("c", votes_together=True))


def test_a_session_has_no_more_queries_and_answers_than_its_rule_allows():
    """The epsilon that the rule states covers no more; beyond its queries few may be answered."""
    mechanism = ConfidentGNMax(20, 3, threshold=12.0, sigma1=9.0, sigma2=6.0)
    rule = StopRule(9.0, 1e-5, 10)
    further = replace(rule, beyond=Beyond(6.5, 0.01, 0.1, 0.5))
    for each, queries, answers in ((rule, 10, 10), (further, 10, 10), (further, 30, 1)):
        done = round_of(mechanism, queries=queries, answers=answers, rule=each)
        assert done.answers == answers
    for each, queries, answers in ((rule, 11, 0), (further, 30, 10), (further, 90, 0)):
        with pytest.raises(ParameterError, match="more than the rule allows"):
            round_of(mechanism, queries=queries, answers=answers, rule=each)


def draw_rdp(plan, shift):
    """ε_κ(λ) of theory.md, 2.5."""
    order, beta, sigma = plan.order, plan.beta, plan.sigma
    w = 1.0 - (order - 1.0) * math.expm1(2.0 * beta)
    mean = order * (1.0 + shift * math.expm1(beta)) ** 2 / (2.0 * sigma**2 * w)
    return mean - beta - math.log(w) / (2.0 * (order - 1.0))


@pytest.mark.parametrize("deviate", [0.0, -2.5, 1.0])
def test_a_published_epsilon_by_its_formula(deviate):
    """A tenth of δ is for a value that is too low, and the rest for the conversion.

    The noise is the one of fine cells: the coarse draws of labels would round by more than allowed.
    """
    noise = SimpleNamespace(fine_normal=lambda: deviate)
    ledger, order, delta = make("a", seed=3), DRAWN.order, 1e-5
    earlier = replace(DRAWN, beta=0.01, sigma=20.0)
    kappa = norm.isf(delta / 10.0)
    local = np.append(ledger.sensitivity[1], ledger.ceiling[1])
    smooth = max(value * math.exp(-0.02 * d) for d, value in enumerate(local.tolist()))
    yes, no = 1.0 / (1.0 + math.exp(-0.3)), 1.0 / (1.0 + math.exp(0.3))
    others = math.log(yes**order * no ** (1.0 - order) + no**order * yes ** (1.0 - order))
    exact = ledger.rdp[1] + smooth * 9.1 * (kappa + deviate)
    exact += draw_rdp(DRAWN, 9.1 * kappa) + draw_rdp(earlier, 20.0 * kappa)
    exact += others / (order - 1.0) + math.log(1.0 - 1.0 / order)
    exact -= (math.log(0.9 * delta) + math.log(order)) / (order - 1.0)
    others_state = [Stated(Adjacency.REPLACE_ONE, epsilon=0.3, delta=0.0)]
    told = {"earlier": [earlier], "external": others_state}
    found = sanitized_epsilon(ledger, DRAWN, noise, **told)
    assert max(exact - 1e-9, 0.0) <= found <= max(exact, 0.0) + 1.01e-4
    assert found == round(found, 4)


def test_a_shorter_curve_goes_on_at_its_ceiling():
    short, long = make("a", distances=2), make("b", seed=1, distances=5)
    total = short + long
    np.testing.assert_allclose(
        total.sensitivity[:, :2], short.sensitivity + long.sensitivity[:, :2]
    )
    np.testing.assert_allclose(
        total.sensitivity[:, 2:], short.ceiling[:, None] + long.sensitivity[:, 2:]
    )


@given(st.integers(0, 2**31), st.integers(0, 5), st.booleans())
@settings(max_examples=tries(50))
def test_a_ledger_comes_back_from_its_file_bit_by_bit(seed, distances, private):
    plan = DRAWN if seed % 2 else None
    ledger = make("a", seed=seed, distances=distances, private=private, sanitizer=plan)
    text = ledger.to_json()
    assert json.loads(text)["releasable"] is False
    assert_same(Ledger.from_json(text), ledger)
    assert Ledger.from_json(text.encode()).to_json() == text


NOT_AS_WRITTEN = (
    "the ledger is damaged: somebody or something changed it after pate wrote it; restore it from "
    "a copy"
)
VERSION = (
    "the ledger has schema version {}, this tool reads 1; use the version of pate that wrote it"
)
WRITTEN = json.loads(make("a").to_json())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "not a ledger: give a file that pate wrote with `ledger`"),
        ({"kind": "report"}, "not a ledger: give a file that pate wrote with `ledger`"),
        *(
            (WRITTEN | {"schema_version": version}, VERSION.format(version))
            for version in (2, "1", None, True)
        ),
        (WRITTEN | {"rounds": [WRITTEN["rounds"][0] | {"answers": 0}]}, NOT_AS_WRITTEN),
    ],
)
def test_what_is_no_ledger_or_not_as_written_is_refused(data, message):
    assert refusal(LedgerError, Ledger.from_json, json.dumps(data)) == message


def with_round(**fields):
    return {"rounds": [WRITTEN["rounds"][0] | fields]}


KNOWN = f"this tool knows {', '.join(CLASSES)}"
COST = malformed("a cost or a sensitivity is negative or not finite")
CURVES = malformed("it does not have one cost and one list of sensitivities for each order")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rdp": [0.1, -1e-9]}, COST),
        ({"rdp": [0.1]}, CURVES),
        ({"sensitivity": [[0.1]]}, CURVES),
        ({"orders": [2.0, 1.0]}, malformed("a Renyi order must be finite and above 1, got 1.0")),
        ({"releasable": True}, malformed("the field `releasable` must be false")),
        ({"rounds": []}, malformed("it holds no round")),
        (
            with_round(analysis="loose"),
            malformed("rounds.0: the analysis 'loose' cannot be used with gnmax"),
        ),
        (
            with_round(read_off=["rows"]),
            malformed("rounds.0.read_off.0 must be one of classes, queries"),
        ),
        (with_round(mechanism={}), f"unknown mechanism None; {KNOWN}"),
        (
            with_round(answers=9),
            malformed("rounds.0: the run has 9 answers, but at most 8 are allowed"),
        ),
        (with_round(queries=7), malformed("rounds.0: max_answers and queries must be 0 <= 8 <= 7")),
    ],
    ids=str,
)
def test_damaged_fields_are_refused(change, message):
    assert refusal(LedgerError, Ledger.from_json, sealed(WRITTEN | change)) == message


def test_a_device_that_never_ends_is_no_ledger():
    assert "larger than the limit of" in refusal(LedgerError, Ledger.read, "/dev/zero")


SAME = "ledgers can be added only with the same {}, got {} and {}; use the same `{}` in all runs"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (make("b", delta=1e-6), SAME.format("delta", 1e-06, 1e-05, "delta")),
        (
            make("b", orders=[2.0, 8.0]),
            SAME.format("orders", [2.0, 7.5], [2.0, 8.0], "order"),
        ),
        (make("b", analysis="paper"), SAME.format("analysis", "paper", "tight", "analysis")),
        (make("a", seed=3), "two ledgers have the same round; give every ledger once"),
    ],
    ids=["delta", "orders", "analysis", "twice"],
)
def test_ledgers_that_do_not_fit_are_not_added(other, message):
    with pytest.raises(LedgerError) as caught:
        _ = make("a") + other
    assert str(caught.value) == message


def test_an_order_that_was_not_charged():
    assert make("a").row(7.5) == 1
    assert make("a").row(np.nextafter(7.5, 8.0)) == 1
    with pytest.raises(LedgerError) as caught:
        make("a").row(3.0)
    assert str(caught.value) == (
        "the ledger has no costs at order 3; give an `order` at which it has costs: 2, 7.5"
    )


def test_a_ledger_tells_of_the_draws_that_its_rounds_published():
    ledger = make("a", sanitizer=DRAWN) + make("b")
    assert ledger.draws == (DRAWN,)
    assert Ledger.from_json(ledger.to_json()).draws == (DRAWN,)


SHA256 = "0" * 64
GUESS = "a guess of the prior has {} votes, but the mechanism has {}"


@pytest.mark.parametrize(
    ("weight", "prior", "message"),
    [
        (12, None, GUESS.format(0, 12)),
        (0, PriorFacts(12, 3, SHA256), GUESS.format(12, 0)),
        (7, PriorFacts(12, 3, SHA256), GUESS.format(12, 7)),
        (0, PriorFacts(0, 3, SHA256), GUESS.format(0, 0)),
        (12, PriorFacts(12, 41, SHA256), "the prior has 41 guesses for 40 queries"),
        (12, PriorFacts(12, -1, SHA256), "the prior has -1 guesses for 40 queries"),
        (12, PriorFacts(12, 3, "0" * 63), "is not a SHA-256"),
        (12, PriorFacts(12, 3, SHA256[1:] + "A"), "is not a SHA-256"),
    ],
)
def test_a_round_is_charged_with_the_prior_that_it_tells_of(weight, prior, message):
    mechanism = GNMax(50, 4, sigma2=10.0, prior_weight=weight)
    with pytest.raises(ParameterError, match=message):
        round_of(mechanism, queries=40, answers=30, prior=prior)


# --- the law of a draw, what the report says of it, and guarantee (b) ----------------------------

UPPER, NONE = ReleaseKind.UPPER, ReleaseKind.NONE
TESTED = ConfidentGNMax(50, 3, threshold=40.0, sigma1=30.0, sigma2=8.0)


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
    ledger = charged(TESTED, counts, [9.0], distances=50, max_answers=60, answers=41)
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
            p, q = (laws[at] * below[:, at, None] for at in (here, there))
            worst = max(worst, float(hockey_stick(p, q, levels[:, None]).max()))
    return worst


@pytest.mark.parametrize(("mechanism", "order", "beta", "sigma", "delta"), TINY, ids=str)
def test_guarantee_b_holds_for_every_event_and_every_number(
    quick, mechanism, order, beta, sigma, delta
):
    plan = ReleasePlan(kind=UPPER, delta=delta, order=order, beta=beta, sigma=sigma)
    # Above 0: the event that the released value is too low has its price.
    assert 0.0 < largest_excess(mechanism, plan) <= delta


def make_ledger(*, delta, rdp=0.713, level=0.004):
    curve = level * (1.0 + 0.05 * np.arange(30))
    done = round_of(TESTED, queries=100, max_answers=60, answers=41, delta=delta)
    return Ledger(
        orders=np.array([4.0, 9.0]),
        rdp=np.array([0.3, rdp]),
        sensitivity=np.stack([curve / 2.0, curve]),
        ceiling=np.array([level * 3.0, level * 4.0]),
        rounds=(done,),
    )


def test_the_headline_is_the_smaller_and_the_bound_for_all_votes_pays_for_the_draw():
    ledger, plan = make_ledger(delta=1e-5), plan_of(UPPER, delta=1e-5)
    for normal in (0.0, 60.0):
        report = released(ledger, plan, Given(normal, private=True))
        bound = report.data_independent
        assert report.epsilon == min(report.sanitized, bound.epsilon)
        assert bound.epsilon > bound.labels_epsilon > 0.0
        for value in (report.epsilon, bound.epsilon, bound.labels_epsilon):
            assert value == round(value, 4)
    assert report.epsilon == bound.epsilon
    assert report.summary == (
        f"epsilon {bound.epsilon:.4f} at delta 1e-05; it holds whatever the votes were."
    )
    # At the order it was found at, the draw's own price is in the difference.
    draw = gnss_rdp(beta=plan.beta, sigma=plan.sigma, order=bound.order, shift=plan.shift)
    votes = TESTED.worst_rdp(queries=100, answers=60, orders=np.array([bound.order]))[0]
    conversion = conversion_cost(np.array([bound.order]), delta=1e-5)[0]
    assert bound.epsilon == pytest.approx(votes + draw + conversion, abs=1.1e-4)


def test_failure_belongs_to_upper_releases_alone():
    upper, none = (plan_of(kind, delta=1e-5) for kind in (UPPER, NONE))
    assert upper.delta_shift == failure_delta(1e-5) == pytest.approx(1e-6)
    assert none.delta_shift == 0.0
    assert upper.shift > 0.0 == none.shift
    assert (upper.publishes_draw, none.publishes_draw) == (True, False)
    assert upper.draws == (upper,)
    assert upper.rdp(9.0) == upper.release_rdp


@pytest.mark.parametrize(
    "mechanism", [MECHANISM, ConfidentGNMax(20, 3, threshold=14.0, sigma1=9.0, sigma2=4.0)], ids=str
)
def test_charging_is_additive_over_queries(mechanism):
    counts = np.random.default_rng(4).multinomial(20, [0.7, 0.2, 0.1], size=60)

    def ledger(part, name):
        return charged(mechanism, part, [7.5, 2.0], distances=9, answers=3, name=name)

    whole = ledger(counts, "whole")
    parts = ledger(counts[:23], "a") + ledger(counts[23:], "b")
    assert whole.orders.tolist() == [2.0, 7.5]
    assert sum(done.queries for done in parts.rounds) == 60
    for field in ("rdp", "ceiling", "sensitivity"):
        np.testing.assert_allclose(getattr(parts, field), getattr(whole, field), rtol=1e-12)
    cost = mechanism.rdp(mechanism.score(counts), whole.orders).sum(axis=1)
    np.testing.assert_allclose(whole.rdp, cost, rtol=3e-6)
    worst = [mechanism.cost_table(order).blocks.max() * 60 for order in (2.0, 7.5)]
    np.testing.assert_allclose(whole.ceiling, worst, rtol=1e-12)
    assert np.all(np.diff(whole.sensitivity, axis=1) >= -1e-15)
