"""Noise: its words are those of SHAKE-256 and Philox, and draws are compared with mpmath."""

import functools
import hashlib
import itertools
import multiprocessing
import os
import re
import struct
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import pate_cli as pate
from pate_cli.accounting.conversion import round_up
from pate_cli.cli.app import app
from pate_cli.core.errors import EngineError, ParameterError, UsageError
from pate_cli.core.noise import (
    CELL,
    COARSE_CELL,
    NARROWEST,
    RELEASES,
    Noise,
    RunKey,
    best_normal_from_words,
    fine_normal_from_words,
    laplace_from_words,
    normal_from_words,
    place_from_words,
    smallest_delta,
)
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.settings import ReleasePlan
from refusals import refusal

WORDS = st.integers(min_value=0, max_value=2**64 - 1)


def words_of(*values: int):
    return np.array(values, dtype=np.uint64)


def exact_tail(word: int) -> mpmath.mpf:
    return (mpmath.mpf(word >> 1) + 0.5) / mpmath.mpf(2) ** 64


QUANTILES = {
    normal_from_words: lambda tail: mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * tail),
    laplace_from_words: lambda tail: -mpmath.log(2 * tail),
}


@pytest.mark.parametrize("draw", QUANTILES)
@given(word=WORDS)
def test_a_draw_is_the_quantile_of_the_upper_tail(draw, word):
    with mpmath.workdps(50):
        exact = QUANTILES[draw](exact_tail(word))
        exact = -exact if word & 1 else exact
        assert draw(words_of(word))[0] == pytest.approx(float(exact), rel=1e-14, abs=5e-16)


@given(words=st.tuples(WORDS, WORDS), small=st.integers(0, 63))
def test_a_fine_draw_is_off_by_a_few_units_in_the_last_place(words, small):
    """By 2^-53 (8|x| + 2) at most, as THEORY.md 24.4 takes it."""
    first, second = words[0] >> small, words[1]
    found = fine_normal_from_words(words_of(first, second).reshape(1, 2))[0]
    assert (found < 0) == bool(first & 1)
    with mpmath.workdps(60):
        u = (mpmath.mpf(first >> 1) + (mpmath.mpf(second) + 0.5) / 2**64) / 2**64
        size = abs(mpmath.mpf(float(found)))
        off = abs(mpmath.erfc(size / mpmath.sqrt(2)) / 2 - u) / mpmath.npdf(size)
        assert off <= 2.0**-53 * (8 * size + 2)


@given(word=WORDS, number=st.integers(1, 2**24))
def test_the_best_of_several_normal_draws_is_their_quantile(word, number):
    found = best_normal_from_words(words_of(word), np.array([number]))[0]
    with mpmath.workdps(60):
        v = exact_tail(word) if word & 1 else 1 - exact_tail(word)
        # How far off the tails of the draw are, in units of the smaller one.
        below = mpmath.erfc(-mpmath.mpf(float(found)) / mpmath.sqrt(2)) / 2
        assert abs(below**number - v) <= 2.0**-53 * 4_000 * min(v, 1 - v)


@given(word=WORDS)
def test_the_best_of_one_is_a_draw_and_of_none_is_below_everything(word):
    one, none = best_normal_from_words(words_of(word, word), np.array([1, 0]))
    assert one == pytest.approx(normal_from_words(words_of(word))[0], rel=1e-13, abs=1e-15)
    assert none == -np.inf


@given(word=WORDS, number=st.integers(1, 2**32 - 1))
def test_a_place_is_the_upper_half_of_a_product(word, number):
    found = place_from_words(words_of(word), np.array([number]))
    assert found[0] == word * number >> 64


@pytest.mark.parametrize("draw", [normal_from_words, laplace_from_words])
@pytest.mark.parametrize("word", [0, 2, 2**53, 2**63, 2**64 - 2**12, 2**64 - 2**10, 2**64 - 2])
def test_the_law_is_exactly_symmetric_without_zeros_or_infinities(draw, word):
    plus, minus = draw(words_of(word, word + 1))
    assert plus == -minus
    assert 0 < plus < np.inf


SECRET = bytes(range(32))


@functools.lru_cache(maxsize=64)
def shake_block(secret, purpose, block):
    """1024 words as the module's text has them: SHAKE-256(key, purpose, block)."""
    message = secret + struct.pack("<Q", block) + b"pate noise 1 " + purpose.encode("utf-8")
    return struct.unpack("<1024Q", hashlib.shake_256(message).digest(8192))


def shake_words(secret, purpose, start, count):
    return np.array(
        [shake_block(secret, purpose, w // 1024)[w % 1024] for w in range(start, start + count)],
        dtype=np.uint64,
    )


def test_a_key_asks_the_system_once_for_256_bits(monkeypatch):
    real, sizes = os.urandom, []
    monkeypatch.setattr(os, "urandom", lambda size: sizes.append(size) or real(size))
    RunKey.of(None).rows(0, 3).normal((100_000, 3))
    assert sizes == [32]


@pytest.mark.parametrize("seed", [-1, 1.0, "7"])
def test_bad_seeds_are_usage_errors(seed):
    text = refusal(UsageError, RunKey.of, seed)
    assert text == f"seed must be a whole number >= 0, not {seed!r}"


KEYS = st.binary(min_size=32, max_size=32)
# Far from, at and beside the borders of blocks, and far beyond any file.
PLACES = st.one_of(
    st.integers(0, 50),
    st.builds(lambda block, off: 1024 * block + off, st.integers(1, 2**40), st.integers(-2, 2)),
    st.integers(0, 2**45),
)


@given(
    key=KEYS,
    row=PLACES,
    draws=st.integers(1, 30),
    counts=st.lists(st.integers(0, 1500), max_size=5),
)
def test_words_depend_on_key_and_place_alone(key, row, draws, counts):
    noise = RunKey(key).rows(row, draws)
    wanted = shake_words(key, "labels", row * draws, sum(counts))
    found = [noise.normal(count) for count in counts]
    np.testing.assert_array_equal(np.concatenate([[], *found]), normal_from_words(wanted))


@given(
    key=st.one_of(KEYS.map(RunKey), st.integers(0, 2**70).map(RunKey.of)),
    draws=st.integers(1, 12),
    row=st.integers(0, 1200),
    rows=st.integers(1, 400),
)
def test_noise_from_a_row_on_is_the_end_of_the_noise_of_all(key, draws, row, rows):
    whole = key.rows(0, draws).laplace((row + rows, draws))
    np.testing.assert_array_equal(key.rows(row, draws).laplace((rows, draws)), whole[row:])


@pytest.mark.parametrize("purpose", ["coin", "release", "reference", "labels ", "étiquettes"])
def test_what_is_drawn_once_has_a_stream_of_its_own(purpose):
    found = RunKey(SECRET).aside(purpose).normal(2500)
    np.testing.assert_array_equal(found, normal_from_words(shake_words(SECRET, purpose, 0, 2500)))


def test_a_key_shows_no_secret():
    key = RunKey.of(None)
    for shown in (repr(key), str(key), f"{key}", repr([key]), repr(key.rows(0, 1))):
        assert key.secret.hex() not in shown
        assert repr(key.secret) not in shown
        assert "secret" not in shown
    with pytest.raises(AttributeError):
        key.secret = bytes(32)


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_a_key_has_256_bits(size):
    assert refusal(ParameterError, RunKey, bytes(size)) == f"a run's key has 32 bytes, not {size}"


def test_a_seeded_stream_never_changes_and_is_not_private():
    assert RunKey.of(2018).rows(0, 1).normal(1)[0] == pytest.approx(-1.3307001922989241, rel=1e-14)
    assert RunKey.of(5).name("round") != RunKey.of(5).name("round")
    assert [RunKey.of(seed).private for seed in (None, 0)] == [True, False]


@pytest.mark.parametrize("failure", [FileNotFoundError("/dev/urandom"), NotImplementedError()])
def test_without_randomness_a_run_ends_before_anything_is_drawn(failure, monkeypatch, tmp_path):
    votes, out = tmp_path / "votes.npy", tmp_path / "labels.csv"
    np.save(votes, np.array([[9, 1], [4, 6]]))
    drawn = []

    def failing(size):
        raise failure

    monkeypatch.setattr(os, "urandom", failing)
    monkeypatch.setattr(RunKey, "_noise", lambda *_: drawn.append(True))
    text = (
        "the operating system gives no random numbers (for example, /dev/urandom is missing), "
        "so noise would not be private; run pate on another system"
    )
    for seed in (None, 1):
        assert refusal(EngineError, RunKey.of, seed) == text
    words = ["aggregate", str(votes), "--layout", "counts", "--delta", "1e-5", "-o", str(out)]
    told = CliRunner().invoke(app, words, prog_name="pate")
    assert told.exit_code == EngineError.exit_code == 9
    assert [line for line in told.stderr.splitlines() if "random num" in line] == [f"pate: {text}"]
    assert "Traceback" not in told.stderr
    assert told.stdout == ""
    assert drawn == []
    assert [path.name for path in tmp_path.iterdir()] == ["votes.npy"]


ROWS = np.full((300, 4), 10)
"""Ties: two runs with noise of their own agree on all of them with probability 4^-300."""


def labelled(**given):
    told = {"laplace_scale": 5.0, "delta": 1e-5, "layout": "counts", "release": "none"}
    return pate.aggregate(ROWS, "lnmax", max_epsilon=50.0, **told, **given).labels.labels.tobytes()


def drawn_here():
    """What no two runs have in common, not even in two processes."""
    key = RunKey.of(None)
    return key.secret, key.name("round"), labelled()


def _child(pipe):
    pipe.send(drawn_here())
    pipe.close()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_forks_of_a_process_that_has_run_share_nothing():
    found = [drawn_here()]
    fork = multiprocessing.get_context("fork")
    for _ in range(2):
        here, there = fork.Pipe(duplex=False)
        child = fork.Process(target=_child, args=(there,))
        child.start()
        assert here.poll(60)
        found.append(here.recv())
        child.join(60)
        assert child.exitcode == 0
    found.append(drawn_here())
    for each in zip(*found, strict=True):
        assert len(set(each)) == 4


def test_runs_in_threads_have_keys_of_their_own_and_their_own_labels():
    seeds = [3, None, 4, None, 3, None, 4, None]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda seed: labelled(seed=seed), seeds))
    alone = {seed: labelled(seed=seed) for seed in (3, 4)}
    assert found[::2] == [alone[seed] for seed in seeds[::2]]
    assert len(set(found)) == 2 + 4


PURPOSES = ("labels", "release", "coin", "reference", "name of round", "round")


@given(key=KEYS, places=st.lists(PLACES, min_size=2, max_size=6, unique=True))
def test_purposes_never_share_a_word(key, places):
    """Every 64-bit word of 6 uses at 6 places of 3 words each; equal by chance with 2^-50."""
    run = RunKey(key)
    seen = defaultdict(set)
    for use, place in itertools.product(PURPOSES, places):
        noise = run.rows(place, 1) if use == "labels" else run._noise(use, place)
        for offset, word in enumerate(noise.words(3).tolist()):
            seen[word].add((use, place + offset))
    for purpose in ("round", "labels", "release"):
        for word in struct.unpack("<2Q", bytes.fromhex(run.name(purpose))):
            seen[word].add(("a name", purpose))
    assert all(len(uses) == 1 for uses in seen.values())


@pytest.mark.parametrize("purpose", ["", "labels"])
def test_nothing_else_is_drawn_from_the_stream_of_the_labels(purpose):
    for key in (RunKey(SECRET), RunKey.of(1)):
        with pytest.raises(ParameterError, match="the purpose of a draw must not be"):
            key.aside(purpose)


@pytest.mark.parametrize("row", [2**62 + 5, np.int64(2**62 + 5)], ids=["plain", "numpy"])
def test_places_past_2_to_the_63_words_do_not_wrap_around(row):
    place = (2**62 + 5) * 12
    assert place > 2**63
    found = RunKey(SECRET).rows(row, np.int64(12)).words(4)
    np.testing.assert_array_equal(found, shake_words(SECRET, "labels", place, 4))
    stream = np.random.Philox(9).advance(place // 4)
    np.testing.assert_array_equal(RunKey.of(9).rows(row, 12).words(4), stream.random_raw(4))


def test_places_end_at_2_to_the_74_words():
    last = RunKey(SECRET).rows(2**73 - 1, 2)
    np.testing.assert_array_equal(last.words(2), shake_words(SECRET, "labels", 2**74 - 2, 2))
    for noise in (last, RunKey(SECRET).rows(2**80, 1), RunKey(SECRET).rows(-1, 1)):
        with pytest.raises(ParameterError, match=re.escape("noise ends after 2^74 words")):
            noise.words(1)


def first_word_at(reached, *, bits=128):
    """The least number of so many bits from which on `reached` holds; it is monotone here."""
    low, high = 0, 1 << bits
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle + 1, high)
    return low


def fine_draw(place):
    """The draw at a place in the order of the draws, 0 to 2^128 - 1."""
    half = 1 << 127
    sign, k = (0, 2 * half - 1 - place) if place >= half else (1, place)
    first, second = (k >> 64) << 1 | sign, k & (2**64 - 1)
    return float(fine_normal_from_words(words_of(first, second).reshape(1, 2))[0])


RELEASED = [
    # f, S, kappa/sigma, sigma, beyond which the tail is looked at
    (0.7, 0.004, 4.75, 9.0, -9.0),
    (0.7, 0.004, 4.75, 9.0, 11.0),
    (0.7, 0.004, 4.75, 9.0, 0.0),
    (3.1, 1e-12, 4.75, 20.0, 0.0),
    (2.2, 0.5, 0.0, 40.0, 3.0),
    (2.2, 0.5, 0.0, 40.0, 6.5),
]


@pytest.mark.parametrize(("f", "smooth", "ratio", "sigma", "at"), RELEASED)
def test_the_law_of_a_published_epsilon_is_the_ideal_one(f, smooth, ratio, sigma, at):
    """Mass of steps, counted on the lattice of 2^128 draws, against that of the normal law.

    As THEORY.md 24.4 has it: within a share eta of it and 2^-127. The mass that round-off could
    move beyond a place where the computed map is not monotone is far below that.
    """
    plan = ReleasePlan(ReleaseKind.NONE, 1e-5, 3.0, 0.01, sigma)
    shift, overhead = ratio * sigma, plan.overhead
    scale = max(smooth, NARROWEST / sigma)

    def published(place):
        # This plan has no shift of its own: any is added before the draw is.
        return round_up(max(plan.value(f + scale * shift, smooth, fine_draw(place)), 0.0))

    sd = scale * sigma
    middle = f + scale * shift + overhead + at * sd
    size = f + overhead + scale * (shift + 14 * sigma)
    eta = 3.6e-15 * size * (2e4 + 15 / sd)
    assert eta < 2.5e-5
    first = max(int(middle * 1e4), 1)
    with mpmath.workdps(60):
        ends = []
        for k in range(first, first + 3):
            edge = k / 1e4
            actual = mpmath.mpf(first_word_at(lambda place, e=edge: published(place) > e))
            exact = f + mpmath.mpf(scale) * mpmath.mpf(shift) + mpmath.mpf(overhead)
            point = (mpmath.mpf(edge) - exact) / (mpmath.mpf(scale) * mpmath.mpf(sigma))
            ideal = mpmath.erfc(-point / mpmath.sqrt(2)) / 2
            ends.append((actual / mpmath.mpf(2) ** 128, ideal))
        for (low, below), (high, above) in itertools.pairwise(ends):
            actual, ideal = high - low, above - below
            assert abs(actual - ideal) <= eta * ideal + mpmath.mpf(2) ** -127


def test_no_release_is_narrower_than_round_off_allows():
    plan = ReleasePlan(ReleaseKind.UPPER, 1e-5, 3.0, 0.01, 8.0)
    for smooth in (0.0, 1e-300, 1e-9):
        spread = plan.value(1.0, smooth, 1.0) - plan.value(1.0, smooth, 0.0)
        assert spread == pytest.approx(NARROWEST, rel=1e-8)
    assert plan.value(1.0, 0.01, 1.0) - plan.value(1.0, 0.01, 0.0) == pytest.approx(0.08)


@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_the_tails_are_the_ideal_ones_up_to_a_factor_and_a_cell(law):
    """|G(c) - F(c)| <= eta F(c) + CELL at draws of all sizes, in 50 digits.

    G at a draw counts words: those of the same sign with at most its k, and half of all for c = 0.
    """
    draw = normal_from_words if law == "normal" else laplace_from_words
    eta = 2.0**-53 * 500.0
    ks = [0, 1, 2, 3, 10, 2**10, 2**20, 2**40, 2**52, 2**53, 2**60, 2**62, 2**63 - 2**9 - 1]
    with mpmath.workdps(50):
        for k in ks:
            c = mpmath.mpf(float(draw(words_of(k << 1))[0]))
            ideal = mpmath.erfc(c / mpmath.sqrt(2)) / 2 if law == "normal" else mpmath.exp(-c) / 2
            for count in (k, k + 1):  # strictly beyond c, and beyond or at c
                actual = mpmath.mpf(count) / 2**64
                assert abs(actual - ideal) <= eta * ideal + CELL
            # The cell is needed: at the last draw the law stops, on both sides with mass 2^-64.
            if k == 0:
                assert ideal > 0.4 * CELL
                assert float(2 * ideal) == pytest.approx(2.0**-64, rel=1e-9)


def test_the_smallest_delta_is_ten_times_what_the_cells_add():
    for draws, cell in ((0, CELL), (11_000, CELL), (1_812_000, CELL), (11_000, COARSE_CELL)):
        with mpmath.workdps(30):
            added = (draws * mpmath.mpf(cell) + RELEASES * mpmath.mpf(2) ** -64) * (
                1 + mpmath.exp(10)
            )
            least = smallest_delta(draws, cell=cell)
            assert 10 * added <= least <= 11.1 * added
        assert least == float(f"{least:.1e}")


def coin_of(*words):
    return Noise(lambda count: np.array(words[:count], dtype=np.uint64))


def test_a_coin_compares_all_its_bits():
    half = (0, 0, 0, 2**63)  # exactly 2^255 of 2^256
    assert not coin_of(*half).comes_up(np.log(0.5))
    assert coin_of(2**64 - 1, 2**64 - 1, 2**64 - 1, 2**63 - 1).comes_up(np.log(0.5))
    most = coin_of(*[2**64 - 1] * 4)
    assert most.comes_up(0.0)
    assert not most.comes_up(np.log1p(-1e-15))
    # The most that a test may pass for votes of infinite cost is delta: not one part in 2^53 more.
    for passing in (1.02e-14, 3e-13):
        least = int(passing * 2.0**200) << 56  # 2^256 passing, so far
        for number, fails in ((2**256 - least, False), (2**256 - least - (least >> 30), True)):
            words = [(number >> (64 * place)) % 2**64 for place in range(4)]
            assert coin_of(*words).comes_up(np.log1p(-passing)) == fails


@pytest.mark.parametrize("chance", [-178.0, -700.0, -745.0, -746.0, -1e4, -1e308, -np.inf])
def test_however_unlikely_a_coin_can_come_up(chance):
    """A release test that could not fail would tell of votes whose neighbours may fail it."""
    assert coin_of(0, 0, 0, 0).comes_up(chance)
    assert not coin_of(1, 0, 0, 0).comes_up(chance)


@pytest.mark.parametrize("chance", [np.nan, 1e-300, 1.0, np.inf])
def test_no_coin_is_drawn_for_what_is_no_chance(chance):
    with pytest.raises(ParameterError):
        coin_of(0, 0, 0, 0).comes_up(chance)
