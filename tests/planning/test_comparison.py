"""Mechanisms at a matched number of answers: how far each has to ask, and what that costs."""

import numpy as np
import pytest
from scipy.special import ndtr

import pate_cli as pate
from pate_cli.accounting.conversion import conversion_cost
from pate_cli.core.words import MechanismName
from pate_cli.disclosure.cost import Cost
from pate_cli.mechanisms import MechanismChoice
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.sparse_vector import SparseVector
from pate_cli.mechanisms.stability import Stability
from pate_cli.planning.cost import TIGHT_ORDERS, compare_at
from runs import CountsRows, cut
from slices import some

COUNTS = np.random.default_rng(3).multinomial(30, [0.7, 0.2, 0.1], size=80).astype(np.int64)
DELTA = 1e-5
CONFIDENT = ConfidentGNMax(30, 3, threshold=20.0, sigma1=6.0, sigma2=4.0)


def costs(found, price):
    """Whether the worst case is a price, rounded up."""
    return price <= found["data_independent"] <= price + 1.01e-4


@pytest.mark.parametrize(
    ("answers", "size"), some([(0.3, 17), (5.0, 1), (20.5, 9), (39.9, 200)], 2)
)
def test_it_asks_until_it_is_expected_to_have_answered_so_often(answers, size):
    found = compare_at(cut(COUNTS, size), lambda _: CONFIDENT, answers=answers, delta=DELTA)
    chance = ndtr((COUNTS.max(axis=1) - 20.0) / 6.0)
    total = np.cumsum(chance)
    asked = int(np.argmax(total >= answers)) + 1
    assert (found["mechanism"], found["queries"], found["note"]) == ("confident", asked, "")
    assert found["expected_answers"] == pytest.approx(total[asked - 1], rel=1e-12)
    right = chance * (1.0 - CONFIDENT.loss_chance(COUNTS))
    assert found["agreement"] == pytest.approx(right[:asked].sum() / total[asked - 1], rel=1e-9)
    rdp = CONFIDENT.rdp(CONFIDENT.score(COUNTS[:asked]), TIGHT_ORDERS).sum(axis=1)
    epsilon = np.maximum(rdp + conversion_cost(TIGHT_ORDERS, delta=DELTA), 0.0)
    assert found["epsilon"] == pytest.approx(epsilon.min(), rel=1e-12)
    assert found["order"] == TIGHT_ORDERS[epsilon.argmin()]
    cap = min(asked, int(np.ceil(answers)))
    assert costs(found, Cost.of_rows(CONFIDENT, asked, cap, DELTA).of_curves.epsilon)


def test_an_argmax_answers_every_row():
    gnmax = GNMax(30, 3, sigma2=4.0)
    found = compare_at(cut(COUNTS, 17), lambda _: gnmax, answers=12.4, delta=DELTA)
    assert (found["queries"], found["expected_answers"]) == (13, 13.0)


def test_compared_mechanisms_cost_no_more_than_their_worst_case():
    found = pate.compare(np.array([[50, 50]] * 3), "gnmax", layout="counts", sigma2=1e4)
    assert all(row["epsilon"] <= row["data_independent"] for row in found.rows if row["epsilon"])


STABLE = {
    "stability": lambda _refusals: Stability(30, 3, query_epsilon=1.2, query_delta=1e-3),
    "sparse-vector": lambda refusals: SparseVector(
        30, 3, query_epsilon=2.0, query_delta=1e-3, refusals=refusals
    ),
}


@pytest.mark.parametrize("name", STABLE)
@pytest.mark.parametrize("answers", some([1.0, 10.0, 50.0], 2))
def test_a_stable_mechanism_asks_as_far_and_pays_what_it_composes_to(name, answers):
    build = STABLE[name]
    found = compare_at(cut(COUNTS, 9), build, answers=answers, delta=0.2)
    total = np.cumsum(build(1).answer_chance(COUNTS))
    ends = bool(total[-1] < answers)
    asked = 80 if ends else int(np.argmax(total >= answers)) + 1
    assert (found["mechanism"], found["queries"], found["agreement"]) == (name, asked, 1.0)
    assert (found["epsilon"], found["order"]) == (None, None)
    assert found["expected_answers"] == pytest.approx(total[asked - 1], rel=1e-12)
    refusals = max(1, int(np.ceil(asked - total[asked - 1])))
    assert costs(found, build(refusals).privacy(asked, 0.2).epsilon)
    notes = [f"{refusals} refusals afforded"] * (name == "sparse-vector")
    notes += ["the file has too few queries for this number of answers"] * ends
    assert found["note"] == "; ".join(notes)


def test_refusals_afforded_are_those_of_the_mechanism_that_is_priced():
    """The threshold depends on the refusals, so they are found together."""

    def build(refusals):
        given = {"refusals": refusals, "query_delta": 1e-3 / refusals}
        choice = MechanismChoice(MechanismName.SPARSE_VECTOR, given)
        return choice.build(teachers=30, classes=3, queries=80, delta=0.2)

    found = compare_at(CountsRows(COUNTS), build, answers=30.0, delta=0.2)
    refusals = int(found["note"].split()[0])
    assert refusals == np.ceil(found["queries"] - found["expected_answers"]) > 1
    assert costs(found, build(refusals).privacy(found["queries"], 0.2).epsilon)
