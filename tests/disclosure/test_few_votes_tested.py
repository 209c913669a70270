"""Few votes and what depends on the votes: the profile of a release test, and ledgers.

Every vote file of three voters, and every neighbour, with the exact laws of their labels.
"""

import contextlib
import functools
import itertools

import numpy as np
import pytest

import pate_cli as pate
from pate_cli import ConfidentGNMax, GNMax
from pate_cli.accounting.cost_table import Tally
from pate_cli.accounting.few_votes import FewVotes
from pate_cli.core.errors import UsageError
from pate_cli.core.noise import Noise
from pate_cli.core.words import Bound
from pate_cli.disclosure import target
from pate_cli.disclosure.target import states_for
from refusals import refusal
from vote_files import Law, sums, vectors

ROWS, NEAR = 3, 8
CASES = [
    (GNMax(3, 3, sigma2=1.5), 2.0),
    (GNMax(3, 2, sigma2=0.8), 6.0),
    (ConfidentGNMax(3, 2, threshold=2.6, sigma1=0.3, sigma2=3.0), 2.0),
]


@functools.cache
def costs_of(mechanism, order, bound):
    """The cost of every histogram at each distance, [NEAR, histograms]."""
    states = states_for(bound, mechanism, highest_order=order)
    return states.costs(order, states.of(mechanism, Law(mechanism, order).histograms))[:NEAR]


def worst_ratios(mechanism, order, most, votes, bound, only=None):
    """(the largest divergence beside u_0, the largest u_d of a neighbour beside u_{d+1}).

    u sums the `most` costliest queries of a file.
    """
    law, mine = Law(mechanism, order), vectors(mechanism, ROWS, votes, only)
    each = costs_of(mechanism, order, bound)
    apart = np.log(law.silent + law.answered) / (order - 1.0)
    over, moved = 0.0, 0.0
    for rest in sums(mine, mechanism.teachers - 1):
        at = law.place[(rest + mine) @ law.base]  # [ways, rows]
        profile = -np.sort(-each[:, at], axis=2)[..., :most].sum(axis=2)
        true = apart[at[:, None], at[None]].sum(axis=2)
        over = max(over, float((true / profile[0][:, None]).max()))
        moved = max(moved, float((profile[:-1, None] / profile[1:, :, None]).max()))
    return over, moved


@pytest.mark.parametrize("bound", [Bound.TWO_TAIL, Bound.CONDITIONAL])
@pytest.mark.parametrize(("mechanism", "order"), CASES)
def test_profiles_of_few_votes_bound_every_neighbour(mechanism, order, bound):
    """(P1) and (P2) of THEORY.md, section 10, of the costliest queries that one voter touches."""
    for votes in (1, 2):
        only = range(votes)
        assert max(worst_ratios(mechanism, order, 2 * votes, votes, bound)) <= 1.0 + 1e-9
        assert max(worst_ratios(mechanism, order, votes, votes, bound, only)) <= 1.0 + 1e-9


def test_fewer_queries_would_be_too_few():
    """Voters who choose touch 2k queries and not k; those with an assignment k and not k − 1."""
    assert worst_ratios(*CASES[1], 1, 1, Bound.CONDITIONAL)[0] > 1.15
    assert worst_ratios(*CASES[2], 2, 2, Bound.CONDITIONAL)[0] > 1.1
    for case in CASES:
        assert worst_ratios(*case, 1, 2, Bound.CONDITIONAL, range(2))[0] > 1.9


def test_profiles_do_not_depend_on_parts(monkeypatch):
    mechanism, order = ConfidentGNMax(40, 3, threshold=25.0, sigma1=6.0, sigma2=4.0), 6.0
    random = np.random.default_rng(1)
    counts = random.multinomial(40, (0.6, 0.3, 0.1), size=200)
    states = states_for(Bound.TWO_TAIL, mechanism, highest_order=order)
    tally = states.tally(mechanism, counts)
    found = states.profile(tally, order, few=FewVotes(12))
    each = states.costs(order, states.of(mechanism, counts))
    wanted = -np.sort(-each, axis=1)[:, :24].sum(axis=1)
    np.testing.assert_allclose(found, wanted)
    monkeypatch.setattr(target, "_CHUNK", 7)
    np.testing.assert_allclose(states.profile(tally, order, few=FewVotes(12)), wanted)
    assert np.all(found < states.profile(tally, order))
    np.testing.assert_array_equal(
        states.profile(tally, order, few=FewVotes(200)).round(9),
        states.profile(tally, order).round(9),
    )


def test_sensitivities_of_few_votes_bound_every_neighbour():
    """The costliest sum moves by no more than the most sensitive queries at once."""
    mechanism, order, votes = GNMax(3, 3, sigma2=1.5), 2.0, 1
    table, few = mechanism.cost_table(order), FewVotes(1)
    ways = vectors(mechanism, ROWS, votes)
    for rest in sums(ways, 2):
        prices = [
            table.price(Tally.of(mechanism.cells_of(file, table.grid)), np.arange(4), few)
            for file in rest + ways
        ]
        for here, there in itertools.permutations(prices, 2):
            assert abs(here.rdp - there.rdp) <= min(here.curve[0], there.curve[0]) * (1 + 1e-9)
            assert np.all(here.curve[:-1] <= there.curve[1:] * (1 + 1e-9))
            assert here.ceiling == there.ceiling >= max(here.curve)


# --- whole runs -----------------------------------------------------------------------------------

TAUGHT = np.random.default_rng(3)
VOTED = np.argsort(TAUGHT.random((40, 400)), axis=0) < 10
VOTES = np.where(VOTED, TAUGHT.random((40, 400)) > 0.95, -1).astype(int)
SAID = {"layout": "labels", "classes": 2, "teachers": 400, "sigma2": 12.0, "votes_per_teacher": 10}


def test_a_target_below_the_worst_case_is_tested(monkeypatch):
    asked, chances = {**SAID, "target_epsilon": 1.0, "bound": "two-tail"}, []

    def comes_up(_noise, log_chance):
        chances.append(float(np.exp(log_chance)))
        return chances[-1] > 0.5

    monkeypatch.setattr(Noise, "comes_up", comes_up)
    assert pate.quote(VOTES, "gnmax", **SAID).epsilon > 1.2
    report = pate.aggregate(VOTES, "gnmax", **asked).report
    assert (report.epsilon, report.epsilon_kind, report.passed) == (1.0, "target", True)
    (done,) = report.rounds
    assert (done.tested.epsilon, done.queries, done.voting.votes) == (1.0, 40, 10)
    assert pate.quote(VOTES, "gnmax", **asked).chances is None
    # Where the teachers are torn the same target fails, and if all queries counted this one too.
    torn = np.where(VOTES >= 0, TAUGHT.integers(0, 2, VOTES.shape), -1)
    for votes, told in ((torn, asked), (VOTES, {**asked, "votes_per_teacher": 40})):
        with contextlib.suppress(pate.RefusedError):
            pate.aggregate(votes, "gnmax", **told)
    passed, failed, every = chances
    assert passed < 0.004
    assert failed > 0.95
    assert every > 1.02 * passed


def test_a_target_chooses_no_noise_for_few_votes():
    asked = {name: told for name, told in SAID.items() if name != "sigma2"}
    text = refusal(UsageError, pate.aggregate, VOTES, **asked, sigma2=5, target_epsilon=1.0)
    assert text.endswith("give `threshold` and `sigma1`")


def test_ledgers_of_few_votes_compose(tmp_path):
    asked = {**SAID, "order": 9.0, "keep_ledger": True, "release": "none"}
    first = pate.aggregate(VOTES, "gnmax", **asked).ledger
    second = pate.aggregate(VOTES, "gnmax", **asked).ledger
    every = {**asked, "votes_per_teacher": 40}
    whole = pate.aggregate(VOTES, "gnmax", **every).ledger
    assert first.rdp == second.rdp < whole.rdp
    assert np.all(first.sensitivity <= whole.sensitivity)
    both = first + second
    assert both.rdp == first.rdp + second.rdp
    report = pate.release(both, release="upper", record=tmp_path / "r.json").report
    assert report.sound
    assert report.data_independent.epsilon < 3.0
