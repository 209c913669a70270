"""Randomness: standard normal and Laplace draws from 64-bit words; no other module draws noise.

**From a word to a draw.** A word gives a sign bit and an integer k in [0, 2^63). The draw has this
sign, and its size is the quantile of the upper tail at u = (k + ½)·2^-64 in (0, ½): -Φ⁻¹(u) for the
normal, -log(2u) for Laplace. The lattice of draws is finest in the tails, where it matters: the
normal reaches 9.16 standard deviations, and Laplace 44.37 scales. Infinite draws cannot occur.
Doubles near ½ are 2^-54 apart, and u stays one such step below ½. So zeros do not occur either, and
the law is exactly symmetric.

**Distance from the ideal law.** Outcomes depend on noise only through comparisons. If all other
draws are fixed, a draw is compared with one threshold c: class i wins if its noisy count is above
the best of the others, and a query is answered if the noisy maximum is above T. So the draws of a
run can be replaced one by one, from ideal to actual. Let F be the ideal tail and G the actual one,
on either side. Then

    |G(c) - F(c)| <= eta F(c) + cell    for every c,

and N such steps give P_actual[S] <= e^(N eta) (P_ideal[S] + N cell) for every event S, and the same
with actual and ideal exchanged. If the ideal run has a guarantee (eps, delta), the actual run has
the guarantee

    eps + 2 N eta,    e^(N eta) (delta + N cell (1 + e^(eps + N eta))).

- *cell*: nothing is known about the ideal draw within a cell of the lattice. So F and G differ by
  the mass of a cell, which is at most `CELL` = 2^-64, even far out in the tail. (Everything beyond
  the last draw is one such cell at each end.)
- *coarse cells*: some draws take part in several comparisons, as the threshold of sparse vector
  does. Such a draw has to fall into an interval, and the mass of this interval vanishes as it
  narrows. Then round-off, A = 2^-53 (1 + tau/b), is not a fixed share of the mass. Call an interval
  narrow if it is below 2^-13 scales. In all other intervals the share is at most 2^13 A, which
  counts in eta. An interval is narrow only for few values of the other draws, with a probability of
  at most 2^-13 times their number r (rows). This leaves 2^-66 (1 + tau/b) r, which is below
  `COARSE_CELL` = 2^-53 if (1 + tau/b) r <= 2^13.
- *eta*: round-off of u, of the quantile (a few ulps) and of count + scale * draw moves c by at most
  2^-53 (a few |x| + tau/sigma) standard deviations. It moves log F by that times the hazard, which
  is at most |x| + 1 <= 10.2 for the normal and 1 for Laplace. So eta is about 2^-53 (500 + 10
  tau/sigma). For ten thousand queries over ten classes at tau/sigma = 6, 2 N eta is 1e-8. This is
  far below the fourth decimal, to which eps is rounded up, so it is not added.
- *the best of s* normal draws (`best_normal_from_words`) is one draw with the same cell. Its eta is
  below 2^-53 (20,000 + 700 tau/sigma). Another word decides which of the s draws it is
  (`place_from_words`). The probabilities of this choice are only wrong by a factor of 1 ± s 2^-64,
  so it adds to eta but to no cell. THEORY.md, section 24.2, derives both.
- *a published epsilon* has steps of 1e-4. Each step is an interval of its draw, and an event may
  contain or omit each of them. Their number depends on the width of the release, which is secret.
  So the draw takes two words (`fine_normal_from_words`) and has cells of 2^-128: 2^63 steps with
  two cells each make one `CELL`. `smallest_delta` has room for `RELEASES` of them. Round-off moves
  the ends of a step by at most 2^-49 M, where M is the size of the terms that are added, in nats.
  It changes the mass of a step by a share of at most 1e-8 M, because no release is narrower than
  `NARROWEST`. If the standard deviation is 0.001 nats or more, this share is at most 2e-10 M. The
  proof is in THEORY.md, section 24.4.

The additive part is *not* negligible compared with a small delta. `smallest_delta` is ten times
this part, at the eps of the labels for all votes plus one (which leaves room for a sanitized draw),
but at most at eps = 10. Runs with a smaller delta are refused. So up to eps = 10, the delta of a
report is too small by at most a tenth, and usually by far less. Beyond eps = 10 it is too small by
at most e^(eps - 10) tenths, but such an epsilon protects hardly anybody.

**Why the low bits of a double do not leak here.** Mironov (2012, "On significance of the least
significant bits for differential privacy") reads the count from the *released* value count + noise,
because neighbours can reach different doubles. Here noisy counts are never released. A query
releases an argmax, or the side of a threshold: one of m + 1 outcomes. If the other draws are fixed,
each outcome is a half-line of each draw, and its end moves continuously. So only the errors above
remain. Epsilon is the only real number that is drawn and published, and it is rounded *up* to 4
decimals before it leaves. This does not make the mechanism discrete: each published value is an
interval of the draw, and neighbours have the same values. So again only the mass at the two ends of
the interval matters. Nothing is claimed for a value that is read before it is rounded, and nothing
for timing.

**Where words come from.** All noise of a run follows from one `RunKey`. Word w of the stream for a
purpose is part of SHAKE-256(key, purpose, ⌊w/1024⌋), and row i of the labels takes the words from
i·(draws per row) on. So the noise of a row only depends on the key and on the place of the row.
Parallel, distributed and sequential runs with one key give the same labels, and a task that is
repeated publishes no second answer. A new key is 256 bits from the operating system's generator. It
is never written down, except into a checkpoint that only its owner can read, and it dies with the
run. The guarantees are then those of an ideal run, against everybody who cannot distinguish
SHAKE-256 with a secret prefix from random words. The operating system's own generator, a stream
cipher, would need a similar assumption. SHAKE-256 is in the standard library and gives 40 million
words per second on one core, which is a quarter of a microsecond for a row of ten classes. AES in
counter mode would be faster, but needs one more package. Philox and similar generators are not made
to withstand attacks. BLAKE2b gives 64 bytes per call, at a fifth of the speed.

The key of a seed is a Philox counter generator instead. Its noise is the same on every machine, and
everybody who knows or guesses the seed can predict it. So it is never private.
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
"""The largest error in the tail of a draw that is compared once, besides round-off."""
COARSE_CELL: Final = 2.0**-53
"""The same number for draws that take part in several comparisons."""
RELEASES: Final = 10_000
"""The number of published epsilons that δ has room for, each of at most one `CELL`."""
NARROWEST: Final = 2.0**-17
"""The smallest standard deviation of a release, nats; round-off is small compared with it."""

_MULTIPLE = 10.0
LARGEST_EPSILON: Final = 10.0
"""Beyond this number an ε protects hardly anybody."""

Shape: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...]
Words: TypeAlias = NDArray[np.uint64]
Draws: TypeAlias = NDArray[np.float64]

_KEY_BYTES: Final = 32
_BLOCK_BYTES: Final = 8  # for the number of a block
_MOST_BLOCKS: Final = 1 << (8 * _BLOCK_BYTES)
_BLOCK_WORDS: Final = 1024  # per call to SHAKE-256; a run that starts in mid-block wastes a few
_COIN_WORDS: Final = 4  # so many that no probability is rounded away


class Noise:
    """A source of standard normal and standard Laplace draws, which the caller scales.

    Draws are made one after the other in row-major order, from one word each. So the batch size
    never changes a result: shape (a, k) and then (b, k) is shape (a + b, k). A `RunKey` makes
    these sources.
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
        """Return one draw from N(0, 1), made from two words; it is for the published ε."""
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
            raise ParameterError(f"the logarithm of a chance must be at most 0, got {log_chance}")
        number = int.from_bytes(self._words(_COIN_WORDS).tobytes(), "little")
        numerator, denominator = math.exp(log_chance).as_integer_ratio()
        return number == 0 or number * denominator < numerator << (64 * _COIN_WORDS)


@dataclass(frozen=True)
class RunKey:
    """The key from which all noise of a run follows. SECRET, unless it is a seed.

    Attributes:
        secret: 32 bytes.
        seed: a whole number ≥ 0 that replaces the secret, except for names. Labels with a seed
            are *not* private.
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
            seed: None for a secret key from the operating system's generator, which labels need
                that are released. The process keeps nothing of this generator, so a forked process
                makes other keys. A whole number ≥ 0 makes reproducible noise for tests and papers.

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
        """Return whether the draws are unpredictable; a report made with False must say so."""
        return self.seed is None

    def rows(self, first: int, draws: int) -> Noise:
        """Return the noise of labels from this row on, for a mechanism with `draws` draws per row.

        ParameterError is raised beyond 2^74 words.
        """
        # Whole numbers of Python do not overflow, unlike those of numpy.
        return self._noise("labels", operator.index(first) * operator.index(draws))

    def aside(self, purpose: str) -> Noise:
        """Return noise for one draw per run; raise ParameterError for the purpose of labels."""
        if purpose in ("", "labels"):  # a seed's labels have no purpose
            raise ParameterError(f"the purpose of a draw must not be {purpose!r}")
        return self._noise(purpose, 0)

    def name(self, purpose: str) -> str:
        """Return a name that no other run has, 32 hexadecimal digits that hide the key."""
        return _shake(self.secret, f"pate name 1 {purpose}", 0, 16).hex()

    @property
    def run_id(self) -> str:
        """Return the name of the run in a report, 32 hexadecimal digits; a resumed run keeps it.

        With a seed it is the same for every run. It reveals nothing of a key.
        """
        return self.aside("run id").words(2).astype("<u8").tobytes().hex()

    def _noise(self, purpose: str, position: int) -> Noise:
        if self.seed is None:
            return Noise(_Keyed(self.secret, purpose, position))
        return Noise(_Seeded(self.seed, purpose, position))


class _Keyed:
    """Words of one purpose from a position on."""

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
    """Words of one purpose from a position on, which follow from a seed."""

    def __init__(self, seed: int, purpose: str, position: int) -> None:
        others = () if purpose == "labels" else tuple(purpose.encode())
        self._generator = np.random.Philox(np.random.SeedSequence(seed, spawn_key=others))
        # One step of the counter gives four words.
        self._generator.advance(position // 4)
        self._generator.random_raw(position % 4)

    def __call__(self, count: int) -> Words:
        return np.asarray(self._generator.random_raw(count), dtype=np.uint64)


def smallest_delta(draws: int, *, cell: float = CELL, epsilon: float = LARGEST_EPSILON) -> float:
    """Return the smallest δ at which a run may be charged, rounded up to two digits.

    It is ten times (draws·cell + RELEASES·CELL)(1 + e^ε). So the effect of floating-point numbers
    adds at most a tenth of δ (see the docstring of the module).

    Args:
        draws: numbers drawn for labels, ≥ 0.
        cell: the size of their cells, at least CELL.
        epsilon: the total cost of everything that is released, nats; more than 10 counts as 10.
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

    They are like `normal_from_words` of the first words, but the second words w follow the binary
    point of k. So u = (k + (w + ½)·2^-64)·2^-64 has cells of 2^-128.
    """
    first, second = words[..., 0], words[..., 1]
    behind = (second.astype(np.float64) + 0.5) * 2.0**-64
    return _signed(-ndtri(_tail(first, behind)), first)


def best_normal_from_words(words: Words, number: NDArray[np.int64]) -> Draws:
    """Return the largest of s standard normal draws, made from one word; −∞ for s = 0.

    Its distribution function is Φ^s, so it is Φ⁻¹(V^{1/s}) for a uniform V. V is u or 1 − u,
    depending on the word's lowest bit. The code takes the smaller of V^{1/s} and the upper tail
    1 − V^{1/s} = −expm1(log(V)/s), so that digits do not cancel. For s = 1 these are the draws of
    `normal_from_words`.
    """
    u = _tail(words)
    log_v = np.where((words & np.uint64(1)).astype(np.bool_), np.log(u), np.log1p(-u))
    log_each = log_v / np.maximum(number, 1)
    above = -np.expm1(log_each)
    best = np.where(above < 0.5, -ndtri(above), ndtri(np.exp(log_each)))
    return np.where(number > 0, best, -np.inf)


def place_from_words(words: Words, number: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ⌊w s/2^64⌋ for words w, 1 ≤ s < 2^32; each value has probability 1/s, up to 2^-64."""
    wide = number.astype(np.uint64)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    carried = ((words & low) * wide) >> half
    return (((words >> half) * wide + carried) >> half).astype(np.int64)


def laplace_from_words(words: Words) -> Draws:
    """Return standard Laplace draws, one per uniform 64-bit word: ±(-log 2u), |x| in (0, 44.37)."""
    return _signed(-np.log(2.0 * _tail(words)), words)


def _tail(words: Words, behind: Draws | float = 0.5) -> Draws:
    """Return upper-tail probabilities u = (k + `behind`)·2^-64 in (0, ½), k the upper 63 bits."""
    u = ((words >> np.uint64(1)).astype(np.float64) + behind) * 2.0**-64
    # The last 2^9 of the 2^63 values of k are rounded to ½, at which both quantiles are zero.
    return np.minimum(u, 0.5 - 2.0**-54)


def _signed(magnitude: Draws, words: Words) -> Draws:
    """Give each magnitude, ≥ 0, the sign of its word's lowest bit, in place."""
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
