"""Randomness: standard normal and Laplace draws from 64-bit words; no other module draws noise.

**From a word to a draw.** A word gives a sign bit and an integer k in [0, 2^63). The sign bit is
the sign of the draw. The size of the draw is the quantile of the upper tail at u = (k + ½)·2^-64 in
(0, ½): -Φ⁻¹(u) for the normal, -log(2u) for Laplace. Even far out in the tails, on which privacy
depends, neighbouring values of u are 2^-64 apart. The largest possible normal draw is 9.16 standard
deviations, and the largest possible Laplace draw is 44.37 scales. Infinite draws cannot occur.
Floating-point numbers just below ½ are 2^-54 apart, and u is always at least 2^-54 below ½. So a
draw is never 0, and the distribution of draws is exactly symmetric.

**Distance from the ideal law.** Outcomes depend on noise only through comparisons. If all other
draws are fixed, a draw is compared with one threshold c. For example, class i wins if its noisy
count is above the largest noisy count of all other classes, and a query is answered if the noisy
maximum is above T. The proof replaces the ideal draws of a run by its actual draws, one after the
other. Let F be a tail probability of the ideal draw and G that of the actual draw, on either side.
Two small numbers, eta and cell, bound the difference of F and G; the list below explains them:

    |G(c) - F(c)| <= eta F(c) + cell    for every c.

If N ideal draws are replaced by actual draws, every event S satisfies P_actual[S] <= e^(N eta)
(P_ideal[S] + N cell), and also the inequality in which P_actual and P_ideal are exchanged. If the
ideal run is (eps, delta)-differentially private, the actual run is (eps', delta')-differentially
private with

    eps' = eps + 2 N eta,    delta' = e^(N eta) (delta + N cell (1 + e^(eps + N eta))).

- *cell*: each actual draw stands for an interval of ideal draws, which is called a cell. The tail
  probabilities F and G differ by at most the probability of a cell, which is at most `CELL` =
  2^-64, even far out in the tail. (At each end, all ideal draws beyond the largest actual draw are
  one cell.)

- *coarse cells* belong to draws that take part in several comparisons, such as the noise on the
  threshold of the sparse vector technique, because many rows are compared with this threshold. If
  all draws are fixed except one draw with coarse cells, each outcome of the run means that this
  draw lies in an interval, which is called the interval of the outcome. Round-off changes the
  probability of the interval of an outcome by at most A = 2^-53 (1 + tau/b), where tau is the
  number of teachers and b the scale of the noise.

  If an interval is at least 2^-13 scales long, round-off changes the probability of the interval by
  a factor of at most 1 + 2^13 A, and this factor is part of eta. If the interval of an outcome is
  shorter than 2^-13 b, round-off can change its probability by a larger factor. But the interval of
  the outcome is shorter than 2^-13 b with probability at most 2^-13 r, where r is the number of
  rows that are compared with the threshold. So each draw with coarse cells adds at most 2^-13 r A =
  2^-66 (1 + tau/b) r to N cell, and Q draws with coarse cells add at most 2^-66 (1 + tau/b) r Q to
  N cell. A run with r rows draws N >= r numbers, so a cell of 2^-66 (1 + tau/b) Q is enough.
  `COARSE_CELL` = 2^-53 is larger than 2^-66 (1 + tau/b) Q if (1 + tau/b) Q < 2^13;
  otherwise the `noise_cell` of the mechanism is larger than `COARSE_CELL`.

- *eta* is the effect of round-off. Three numbers are rounded: u, the quantile (by a few units in
  the last place) and count + scale * draw. Round-off has the same effect as moving the threshold c
  by at most 2^-53 (a few |x| + tau/sigma) standard deviations. Here x is the draw, tau the number
  of teachers and sigma the standard deviation of the noise. If the threshold c moves, log F changes
  by at most the distance times the hazard rate of the draw, which is the density divided by the
  tail probability. The hazard rate is at most |x| + 1 <= 10.2 for the normal and 1 for Laplace. So
  the round-off of u, the quantile and count + scale * draw gives an eta of about 2^-53 (500 + 10
  tau/sigma). For example, for ten thousand queries over ten classes and noise with tau/sigma = 6,
  eps increases by 2 N eta = 1e-8. A published eps is rounded up to four decimals. The code does not
  add 2 N eta to eps, because 1e-8 is negligible compared with rounding to four decimals.

- *the best of s* normal draws: among the s classes without votes on a query, only the class with
  the largest noise can win. `best_normal_from_words` makes the largest noise of the s classes as
  one draw, from one word, with a cell of 2^-64. The eta of the largest noise is below 2^-53 (20,000
  + 700 tau/sigma), where tau is the number of teachers and sigma the standard deviation of the
  noise. All s classes are equally likely to have the largest noise, so a second random word chooses
  the class that has it (`place_from_words`). Each class should be chosen with probability 1/s, and
  the actual probability is between (1 - s 2^-64)/s and (1 + s 2^-64)/s. So the choice of the class
  adds to eta, but not to cell. THEORY.md, section 24.2, proves the bound on the eta of the largest
  noise and the bounds on the probability with which a class is chosen.

- *a published epsilon* is a multiple of 1e-4. The draws that lead to the same published epsilon
  form an interval, and an event may be any set of such intervals. The number of intervals that
  draws can reach depends on the standard deviation of the noise on epsilon, and this standard
  deviation is secret. So `fine_normal_from_words` makes the noise on a published epsilon from two
  words, with cells of probability 2^-128. Cells change the probability of an interval by at most
  2^-128 at each of its two ends. The probabilities of 2^63 intervals change by at most one `CELL` =
  2^-64 in total. `smallest_delta` allows for `RELEASES` published epsilons.

  Before a published epsilon is rounded to a multiple of 1e-4, round-off changes it by at most 2^-49
  M nats. Epsilon is a sum, one term of which is the noise; M, in nats, is an upper bound on the sum
  of the absolute values of its terms. The noise on a published epsilon never has a standard
  deviation below `NARROWEST`. So round-off changes the probability of an interval by at most 2e-8 M
  times this probability. If the standard deviation of the noise on epsilon is 0.001 nats or more,
  round-off changes the probability of an interval by at most 3e-10 M times this probability. The
  proof is in THEORY.md, section 24.4.

Each draw stands for a cell of ideal draws. Because draws have cells, the true delta is larger than
the delta of ideal noise, and the difference is *not* negligible if delta is small. `smallest_delta`
returns ten times an upper bound on the difference of the two deltas. The upper bound on their
difference grows with eps. The code computes the bound at the worst-case eps of the labels plus one,
or at eps = 10 if the sum is above 10. The code adds one to the eps of the labels to leave room for
a sanitized epsilon, which is released in addition to the labels. pate refuses runs whose delta is
below `smallest_delta`. So if eps is at most 10, the delta of a report is at most a tenth too small,
and usually far less. If eps is above 10, the delta of a report may be too small by delta times
e^(eps - 10)/10, but an eps above 10 protects hardly anybody.

**Why the low bits of a double do not leak here.** Mironov (2012, "On significance of the least
significant bits for differential privacy") finds the count in the *released* value count + noise,
because neighbouring inputs can give different floating-point numbers. pate never releases noisy
counts. A query releases an argmax, or the fact that no noisy count is above a threshold: one of m +
1 outcomes. If all other draws are fixed, each outcome is the set of all values of one draw above
(or below) a threshold, and neighbouring inputs only move this threshold. So eta and cell account
for all errors that floating-point numbers cause. Epsilon is the only real number that is drawn and
published, and it is rounded *up* to 4 decimals before it is published. Each published epsilon
corresponds to an interval of draws, and neighbouring inputs have the same possible published
epsilons. So floating-point numbers matter only for draws near the two ends of the interval of a
published epsilon. The guarantees do not protect an epsilon that somebody reads before it is
rounded, and they do not cover what the running time reveals.

**Where words come from.** All noise of a run is computed from one `RunKey`. The labels have a
stream of words, and everything that is drawn once per run, such as the outcome of the release test,
has a stream of its own. The code calls the name of a stream its purpose. SHAKE-256(key, purpose,
⌊w/1024⌋) gives a block of 1024 words, and word w of the stream is in this block. The noise of row i
of the labels begins at word i·(draws per row). So the noise of a row only depends on the key and on
the place of the row. Parallel, distributed and sequential runs with the same key give the same
labels, and a task that is repeated publishes no second answer. A new key is 256 bits from the
operating system's generator. The key is never written to a file, except to a checkpoint that only
its owner can read. The key is lost when the run ends. The guarantees are those of a run with truly
random words, against everybody who cannot distinguish SHAKE-256 with a secret prefix from random
words. The operating system's own generator could make all noise instead of SHAKE-256. But the
system's generator is a stream cipher, so the guarantees would also need an assumption: nobody can
distinguish the words of this cipher from random words. SHAKE-256 is in the standard library and
gives 40 million words per second on one core, which is a quarter of a microsecond for a row of ten
classes. AES in counter mode would be faster than SHAKE-256, but needs one more package. Philox and
similar generators are not made to withstand attacks. BLAKE2b gives 64 bytes per call, and has a
fifth of the speed of SHAKE-256.

If a run has a seed, a Philox counter generator makes the words, and SHAKE-256 is not used. The
noise of a seed is the same on every machine, and everybody who knows or guesses the seed can
predict the noise. So labels with a seed are never private.
"""

from __future__ import annotations

import hashlib
import math
import operator
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pate_cli.core.errors import EngineError, ParameterError

CELL: Final = 2.0**-64
"""The largest error of a tail probability, besides round-off, for a draw that is compared once."""
COARSE_CELL: Final = 2.0**-53
"""The largest error of a tail probability for a draw that takes part in several comparisons."""
RELEASES: Final = 10_000
"""The number of published epsilons that δ has room for, each with an error of one `CELL`."""
NARROWEST: Final = 2.0**-17
"""The smallest standard deviation of noise on a published ε, nats; round-off is far smaller."""

_MULTIPLE = 10.0
LARGEST_EPSILON: Final = 10.0
"""An ε above this number protects hardly anybody."""

Shape: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...]
Words: TypeAlias = NDArray[np.uint64]
Draws: TypeAlias = NDArray[np.float64]

_KEY_BYTES: Final = 32
_BLOCK_BYTES: Final = 8  # for the number of a block
_MOST_BLOCKS: Final = 1 << (8 * _BLOCK_BYTES)
_BLOCK_WORDS: Final = 1024  # words per call to SHAKE-256
_COIN_WORDS: Final = 4  # enough words that no probability is rounded to 0


class Noise:
    """A source of standard normal and standard Laplace draws, which the caller scales.

    Draws are made one after the other in row-major order, each from one word. So the batch size
    never changes a result. A call with shape (a, k) and a second call with shape (b, k) give the
    same draws as one call with shape (a + b, k). A `RunKey` makes sources of noise.
    """

    def __init__(self, words: Callable[[int], Words]) -> None:
        """`words(n)` returns the next n independent uniform 64-bit words."""
        self._words = words

    def normal(self, shape: Shape) -> Draws:
        """Return draws from N(0, 1), float64; `shape` is a whole number or a tuple of them."""
        return normal_from_words(self.words(shape))

    def laplace(self, shape: Shape) -> Draws:
        """Return draws with density exp(-|x|)/2, float64; `shape` is as in `normal`."""
        return laplace_from_words(self.words(shape))

    def fine_normal(self) -> float:
        """Return one draw from N(0, 1), made from two words, for an ε that is published."""
        return float(fine_normal_from_words(self.words((1, 2)))[0])

    def words(self, shape: Shape) -> Words:
        """Return uniform 64-bit words, from which the caller makes draws."""
        sizes = shape if isinstance(shape, tuple) else (shape,)
        return self._words(math.prod(map(operator.index, sizes))).reshape(sizes)

    def comes_up(self, log_chance: float) -> bool:
        """Draw whether an event of probability e^{log_chance} happens, exact to 2^-256.

        Even a tiny probability is not rounded to 0: the event happens with a probability of at
        least 2^-256, even if e^{log_chance} is below all floating-point numbers.

        Raises:
            ParameterError: `log_chance` is above 0.
        """
        if not log_chance <= 0.0:
            raise ParameterError(
                "`log_chance` must be the logarithm of a probability, so at most 0, "
                f"got {log_chance}"
            )
        number = int.from_bytes(self._words(_COIN_WORDS).tobytes(), "little")
        # A probability near 1 is 1 less a small number, which is as exact as a small probability.
        near = log_chance > -0.5
        less = math.expm1(log_chance) if near else math.exp(log_chance)
        numerator, denominator = less.as_integer_ratio()
        numerator += denominator if near else 0
        return number == 0 or number * denominator < numerator << (64 * _COIN_WORDS)


@dataclass(frozen=True)
class RunKey:
    """The key from which all noise of a run is computed. The key is SECRET unless it has a seed.

    Attributes:
        secret: 32 bytes.
        seed: a whole number ≥ 0, from which all noise is computed instead of `secret`; None for
            secret noise. Labels with a seed are *not* private.
    """

    secret: bytes = field(repr=False)
    seed: int | None = None

    def __post_init__(self) -> None:
        if len(self.secret) != _KEY_BYTES:
            raise ParameterError(f"a run's key has {_KEY_BYTES} bytes, not {len(self.secret)}")
        if self.seed is not None and self.seed < 0:
            raise ParameterError(f"seed must be a whole number >= 0, not {self.seed!r}")

    @classmethod
    def of(cls, seed: int | None) -> RunKey:
        """Return the key of a run.

        Args:
            seed: None for a secret key from the operating system's generator. Labels that are
                released need a secret key. Each call asks the operating system for a new key, so a
                forked process that calls this gets a key of its own. A whole number ≥ 0 makes
                reproducible noise for tests and papers.

        Raises:
            EngineError: the system gives no random numbers.
            ParameterError: the seed is not a whole number ≥ 0.
        """
        try:
            number = None if seed is None else operator.index(seed)
        except TypeError:
            raise ParameterError(f"seed must be a whole number >= 0, not {seed!r}") from None
        return cls(random_bytes(_KEY_BYTES), number)

    @property
    def private(self) -> bool:
        """Return whether the draws are unpredictable; if not, the report must say so."""
        return self.seed is None

    def rows(self, first: int, draws: int) -> Noise:
        """Return the noise of all rows from `first` on, for a mechanism with `draws` draws per row.

        A key without a seed gives 2^74 random words; a draw beyond them raises ParameterError.
        """
        # Whole numbers of Python do not overflow, unlike those of numpy.
        return self._noise("labels", operator.index(first) * operator.index(draws))

    def aside(self, purpose: str) -> Noise:
        """Return the noise for something drawn once per run, such as the outcome of a release test.

        Raises:
            ParameterError: the purpose is empty or "labels"; `rows` gives the noise of labels.
        """
        if purpose in ("", "labels"):  # with a seed, the empty purpose has the noise of labels
            raise ParameterError(
                f"the purpose of a draw must not be {purpose!r}: give another name, "
                "or call `RunKey.rows` for the noise of labels"
            )
        return self._noise(purpose, 0)

    def name(self, purpose: str) -> str:
        """Return a name of this run for a purpose: 32 hexadecimal digits that hide the key.

        No other run has this name, not even a run with the same seed.
        """
        return _shake(self.secret, f"pate name 1 {purpose}", 0, 16).hex()

    @property
    def run_id(self) -> str:
        """Return the name of the run in a report, 32 hexadecimal digits; a resumed run keeps it.

        Runs with the same seed have the same name. The name reveals nothing about a secret key.
        """
        return self.aside("run id").words(2).astype("<u8").tobytes().hex()

    def _noise(self, purpose: str, position: int) -> Noise:
        if self.seed is None:
            return Noise(_Keyed(self.secret, purpose, position))
        return Noise(_Seeded(self.seed, purpose, position))


class _Keyed:
    """The words of a stream for one purpose, from a position on."""

    def __init__(self, secret: bytes, purpose: str, position: int) -> None:
        self._secret, self._purpose, self._position = secret, purpose, position

    def __call__(self, count: int) -> Words:
        first, skip = divmod(self._position, _BLOCK_WORDS)
        blocks = range(first, -(-(self._position + count) // _BLOCK_WORDS))
        if not 0 <= first <= blocks.stop <= _MOST_BLOCKS:
            raise ParameterError("a run's noise ends after 2^74 words")
        use = f"pate noise 1 {self._purpose}"
        raw = b"".join(_shake(self._secret, use, block, 8 * _BLOCK_WORDS) for block in blocks)
        self._position += count
        return np.frombuffer(raw, dtype="<u8")[skip : skip + count].astype(np.uint64, copy=False)


def _shake(secret: bytes, use: str, block: int, length: int) -> bytes:
    # Different uses or blocks give different messages, because key and block have fixed lengths.
    message = secret + block.to_bytes(_BLOCK_BYTES, "little") + use.encode()
    return hashlib.shake_256(message).digest(length)


class _Seeded:
    """The words of a stream for one purpose, from a position on, computed from a seed."""

    def __init__(self, seed: int, purpose: str, position: int) -> None:
        others = () if purpose == "labels" else tuple(purpose.encode())
        self._generator = np.random.Philox(np.random.SeedSequence(seed, spawn_key=others))
        # One step of the counter gives four words.
        self._generator.advance(position // 4)
        self._generator.random_raw(position % 4)

    def __call__(self, count: int) -> Words:
        return np.asarray(self._generator.random_raw(count), dtype=np.uint64)


def smallest_delta(draws: int, *, cell: float = CELL, epsilon: float = LARGEST_EPSILON) -> float:
    """Return the smallest δ that a run may state, rounded up to two digits.

    Floating-point noise adds at most (draws·cell + RELEASES·CELL)(1 + e^ε) to δ, and the smallest δ
    is ten times this bound. So if ε is at most 10, floating-point noise increases the δ that a run
    states by at most a tenth of this δ. The docstring of this module explains the bound.

    Args:
        draws: how many numbers are drawn for labels, ≥ 0.
        cell: the largest error of a tail probability of a draw for labels, at least CELL.
        epsilon: the ε of everything that is released, nats; an ε above 10 is replaced by 10.
    """
    most = math.exp(min(epsilon, LARGEST_EPSILON))
    least = _MULTIPLE * (draws * cell + RELEASES * CELL) * (1.0 + most)
    unit = 10.0 ** (math.floor(math.log10(least)) - 1)
    return float(f"{math.ceil(least / unit) * unit:.1e}")


def normal_from_words(words: Words) -> Draws:
    """Return standard normal draws, one per uniform 64-bit word: ±(-Φ⁻¹(u)), |x| in (0, 9.16)."""
    return _signed(-ndtri(_tail(words)), words)


def fine_normal_from_words(words: Words) -> Draws:
    """Return standard normal draws, one per pair of words, [draws, 2]: |x| in (0, 13.11).

    The first word of each pair gives the sign and the integer k, as a single word does in
    `normal_from_words`. The second word, w, adds 64 binary digits to k: k + (w + ½)·2^-64 takes the
    place of k + ½. So u = (k + (w + ½)·2^-64)·2^-64 has cells of 2^-128.
    """
    first, second = words[..., 0], words[..., 1]
    behind = (second.astype(np.float64) + 0.5) * 2.0**-64
    return _signed(-ndtri(_tail(first, behind)), first)


def best_normal_from_words(words: Words, number: NDArray[np.int64]) -> Draws:
    """Return the largest of s standard normal draws, made from one word; −∞ for s = 0.

    The largest draw has the distribution function Φ^s, so it is Φ⁻¹(V^{1/s}) for a uniform V. The
    upper 63 bits of the word give a number u in (0, ½). If the lowest bit of the word is 1, V is u;
    otherwise V is 1 − u. The quantile is computed from V^{1/s} or from the upper tail
    1 − V^{1/s} = −expm1(log(V)/s), whichever is smaller, so that no digits cancel. For s = 1 the
    draws are those of `normal_from_words`.
    """
    u = _tail(words)
    log_v = np.where((words & np.uint64(1)).astype(np.bool_), np.log(u), np.log1p(-u))
    log_each = log_v / np.maximum(number, 1)
    above = -np.expm1(log_each)
    best = np.where(above < 0.5, -ndtri(above), ndtri(np.exp(log_each)))
    return np.where(number > 0, best, -np.inf)


def place_from_words(words: Words, number: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a uniform choice among 0, …, s − 1 for each word w and s = `number`: ⌊w s/2^64⌋.

    The numbers s are at least 1 and below 2^32. Each choice has probability 1/s, up to an error of
    2^-64.
    """
    wide = number.astype(np.uint64)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    carried = ((words & low) * wide) >> half
    return (((words >> half) * wide + carried) >> half).astype(np.int64)


def laplace_from_words(words: Words) -> Draws:
    """Return standard Laplace draws, one per uniform 64-bit word: ±(-log 2u), |x| in (0, 44.37)."""
    return _signed(-np.log(2.0 * _tail(words)), words)


def _tail(words: Words, behind: Draws | float = 0.5) -> Draws:
    """Return u = (k + `behind`)·2^-64 in (0, ½) for each word, whose upper 63 bits are k."""
    u = ((words >> np.uint64(1)).astype(np.float64) + behind) * 2.0**-64
    # The largest 2^9 of the 2^63 values of k would be rounded to u = ½, where both quantiles are 0.
    return np.minimum(u, 0.5 - 2.0**-54)


def _signed(magnitude: Draws, words: Words) -> Draws:
    """Make each magnitude (≥ 0) negative, in place, if the lowest bit of its word is 1."""
    bits = magnitude.view(np.uint64)
    bits |= words << np.uint64(63)
    return magnitude


def random_bytes(size: int) -> bytes:
    """Return random bytes for secrets; raise EngineError if the system has none."""
    try:
        return os.urandom(size)
    except (OSError, NotImplementedError):
        raise EngineError(
            "the operating system gives no random numbers (for example, /dev/urandom is missing), "
            "so noise would not be private; run pate on another system"
        ) from None
