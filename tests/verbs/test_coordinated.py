"""Shared clocks: the law of one vote and of two, the race whatever its form, and what is refused.

Draws follow from seeds, so nothing here fails by chance; were other clocks taken, all checks of
laws together would raise a false alarm with 1e-6 at most.
"""

import hashlib
import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from pate_cli.core.errors import ParameterError
from pate_cli.verbs import coordinated
from pate_cli.verbs.coordinated import clocks_of, coordinated_choice
from refusals import refusal
from slices import some

FALSE_ALARM = 1e-8  # of either side of one check; there are fewer than fifty
POSITIONS = 4_000
COMMON = np.array([0.4, 0.25, 0.2, 0.1, 0.05])


def agreement(p, q):
    """The chance of the same token, exactly: the sum of 1 / Σ_i max(p_i/p_j, q_i/q_j)."""
    both = [j for j in range(len(p)) if p[j] > 0.0 and q[j] > 0.0]
    return sum(1.0 / np.maximum(p / p[j], q / q[j]).sum() for j in both)


def apart(p, q):
    return 0.5 * np.abs(p - q).sum()


def in_law(seen, draws, chance):
    return binom.cdf(seen, draws, chance) > FALSE_ALARM < binom.sf(seen - 1, draws, chance)


def rows(seed, teachers, tokens, *, spread=1.0):
    weights = np.exp(spread * np.random.default_rng(seed).standard_normal((teachers, tokens)))
    return weights / weights.sum(axis=1, keepdims=True)


def votes(probabilities, positions=POSITIONS, **asked):
    return np.stack(
        [
            coordinated_choice(probabilities, position=position, **{"seed": 7, **asked})
            for position in range(positions)
        ]
    )


@pytest.fixture(scope="module")
def race():
    """Three teachers over many asks: two near each other, one that knows other tokens."""
    table = np.array([COMMON, [0.3, 0.3, 0.25, 0.1, 0.05], [0.0, 0.1, 0.1, 0.2, 0.6]])
    return table, votes(table)


def test_every_vote_has_its_teachers_probabilities(race):
    table, drawn = race
    for row, own in zip(table, drawn.T, strict=True):
        seen = np.bincount(own, minlength=len(row))
        assert not seen[row == 0.0].any()
        assert all(in_law(n, len(own), p) for n, p in zip(seen, row, strict=True))
        expected = row[row > 0.0] * len(own)
        chi_square = ((seen[row > 0.0] - expected) ** 2 / expected).sum()
        # The least expected number is 200, where the limit is close enough for a factor of two.
        assert chi_square < chi2.isf(FALSE_ALARM / 2.0, len(expected) - 1)


def test_two_teachers_agree_as_often_as_they_should(race):
    table, drawn = race
    for i, j in itertools.combinations(range(3), 2):
        seen = int((drawn[:, i] == drawn[:, j]).sum())
        assert in_law(seen, len(drawn), agreement(table[i], table[j]))
    # By far more often than by themselves.
    assert agreement(table[0], table[1]) > 0.8 > 0.3 > table[0] @ table[1]


weights = st.lists(st.integers(0, 20), min_size=4, max_size=4).filter(any)


@given(weights, weights)
def test_the_bound_is_one_of_the_exact_chance(p, q):
    p, q = np.array(p) / sum(p), np.array(q) / sum(q)
    distance = apart(p, q)
    assert agreement(p, q) >= (1.0 - distance) / (1.0 + distance) - 1e-12
    assert agreement(p, q) <= 1.0 - distance + 1e-12  # which no way to draw exceeds


def test_asks_are_independent():
    """The token of one position says nothing about that of the next, of this seed or another."""
    first, other = votes(COMMON), votes(COMMON, seed=8)
    again = COMMON @ COMMON
    assert in_law(int((first[::2] == first[1::2]).sum()), POSITIONS // 2, again)
    assert in_law(int((first == other).sum()), POSITIONS, again)


@given(st.integers(0, 2**64 - 1))
@example(0)
@example(2**63 - 1)
@example(2**63)
@example(2**64 - 1)
def test_a_clock_is_the_quantile_of_its_word(word):
    """To the last digits at both ends: none rings at once, and none never."""
    with mpmath.workdps(50):
        exact = -mpmath.log1p(-(mpmath.mpf(word) + 0.5) / mpmath.mpf(2) ** 64)
        found = coordinated._exponentials(np.array([word], dtype=np.uint64))[0]
        assert found == pytest.approx(float(exact), rel=1e-15)


@pytest.mark.parametrize("tokens", [1, 7, 256, 257, 3_000])
def test_known_tokens_alone_are_the_same_race(tokens):
    table = rows(tokens, 6, tokens, spread=2.0)
    table[:, 1::3] = 0.0
    for position in range(5):
        asked = {"seed": 11, "position": position}
        dense = coordinated_choice(table, **asked)
        sparse = [{j: row[j] for j in np.flatnonzero(row)} for row in table]
        assert coordinated_choice(sparse, **asked) == dense.tolist()
        alone = [coordinated_choice(row, **asked) for row in table]
        assert alone == dense.tolist()
        assert [coordinated_choice(one, **asked) for one in sparse] == alone
        assert all(table[range(6), dense] > 0.0)


@pytest.mark.parametrize("at_once", some([1, 17, 40, 1 << 21], 2))
def test_a_vote_is_of_its_own_row_alone(monkeypatch, at_once):
    """One teacher's distribution replaced moves one vote, however rows are worked through."""
    table = rows(2, 12, 8)
    before = votes(table, 30)
    monkeypatch.setattr(coordinated, "_AT_ONCE", at_once)
    np.testing.assert_array_equal(votes(table, 30), before)
    moved = 0
    for teacher in range(12):
        other = table.copy()
        other[teacher] = 0.0
        other[teacher, teacher % 8] = 1.0
        after = votes(other, 30)
        rest = np.arange(12) != teacher
        np.testing.assert_array_equal(after[:, rest], before[:, rest])
        moved += int((after != before).sum())
    assert moved > 100


def test_a_scale_says_nothing():
    table = rows(4, 5, 300)
    plain = votes(table, 20)
    np.testing.assert_array_equal(votes(table * 2.0**20, 20), plain)
    np.testing.assert_array_equal(votes(np.log(table) + 3.0, 20, log=True), plain)
    assert [
        coordinated_choice(dict(enumerate(np.log(table[0]))), seed=7, position=place, log=True)
        for place in range(20)
    ] == plain[:, 0].tolist()
    narrow = table.astype(np.float32)
    np.testing.assert_array_equal(votes(narrow, 20), votes(narrow.astype(np.float64), 20))


@pytest.mark.parametrize("log", [False, True])
def test_what_cannot_be_said_is_never_chosen(log):
    law = np.array([0.0, 5e-324, 0.0, 1e-15, 0.0])
    with np.errstate(divide="ignore"):
        law = np.log(law) if log else law
    drawn = {coordinated_choice(law, seed=0, position=place, log=log) for place in range(50)}
    assert drawn == {3}


def by_hand(ask, what, length):
    return hashlib.shake_256(b"pate coordinated 1" + ask + what).digest(length)


def test_the_words_are_those_of_the_page():
    """Whoever writes it again, in whatever language, is in the same race."""
    ask = (
        b"#" + (2).to_bytes(8, "little") + (2026).to_bytes(2, "little")
        + b"$" + (3).to_bytes(8, "little") + "é1".encode()
    )  # fmt: skip
    assert coordinated._spelled("seed", 2026) + coordinated._spelled("position", "é1") == ask
    block = by_hand(ask, b"#" + (1).to_bytes(8, "little"), 2048)
    word = int.from_bytes(block[8 * 44 : 8 * 45], "little")
    found = clocks_of(ask, range(301))[300]
    assert found == pytest.approx(-np.log1p(-(word + 0.5) / 2**64), rel=1e-14)
    assert clocks_of(ask, [300])[0] == found
    word = int.from_bytes(by_hand(ask, b"$ yes", 8), "little")
    assert clocks_of(ask, [" yes"])[0] == pytest.approx(-np.log1p(-(word + 0.5) / 2**64), rel=1e-14)


@pytest.mark.parametrize("bad", [[0.5, -0.1], [np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0], [1e300, 1]])
def test_a_row_without_probabilities_is_named(bad):
    table = np.array([[0.5, 0.5], [1.0, 0.0], bad])
    for given_ in (table, table.tolist(), [dict(enumerate(row)) for row in table.tolist()]):
        told = refusal(ParameterError, coordinated_choice, given_, seed=1, position=1)
        assert told == (
            "row 2 must have probabilities: finite, at least 0, with a sum from 1e-15 to 1e+15"
        )
