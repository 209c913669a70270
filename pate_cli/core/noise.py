"""Randomness: standard normal and Laplace draws from 64-bit words; no other module draws noise.

**From a word to a draw.** A word gives a sign bit and an integer k in [0, 2^63); the draw is that
sign times the quantile of the upper tail at u = (k + ½)·2^-64 in (0, ½): -Φ⁻¹(u) for the normal,
-log(2u) for Laplace. The lattice is finest where it matters, in the tails: the normal reaches
9.16 standard deviations and Laplace 44.37 scales; infinities cannot occur. Doubles near u = ½ are
2^-54 apart and u stays one of them below ½, so zeros do not occur either and the law is exactly
symmetric.

**Distance from the ideal law.** Outcomes depend on noise through comparisons only. With all other
draws fixed, class i wins where its noisy count is above the best of the others, a query is answered
where the noisy maximum is above T: one threshold c for each draw. So replace the draws of a run one
by one, from ideal to actual. With F the ideal tail and G the actual one (either side),

    |G(c) - F(c)| <= eta F(c) + cell    for every c,

and N such steps give P_actual[S] <= e^(N eta) (P_ideal[S] + N cell) for every event S, and the same
with the two exchanged. A guarantee (eps, delta) of the ideal run is one of the actual run at

    eps + 2 N eta,    e^(N eta) (delta + N cell (1 + e^(eps + N eta))).

- *cell*: within a cell of the lattice nothing is known of the ideal draw, so F and G differ by its
  mass, `CELL` = 2^-64 at most, far out in the tail as well (what is beyond the last draw is one
  such cell at each end).
- *coarse cells*: a draw that takes part in several comparisons, as the threshold of sparse vector
  does, has to fall into an interval, whose mass vanishes as it narrows. Round-off,
  A = 2^-53 (1 + tau/b), is then no fraction of it. Call an interval narrow if it is below 2^-13
  scales. Elsewhere A is 2^13 A of it, which goes to eta; and it is narrow for few of the other
  draws only, with a probability of at most 2^-13 times their number r (rows). That leaves
  2^-66 (1 + tau/b) r, which is below `COARSE_CELL` = 2^-53 while (1 + tau/b) r <= 2^13.
- *eta*: round-off of u, of the quantile (a few ulps) and of count + scale * draw moves c by at most
  2^-53 (a few |x| + tau/sigma) standard deviations, and log F by that times the hazard, which is at
  most |x| + 1 <= 10.2 for the normal and 1 for Laplace: some 2^-53 (500 + 10 tau/sigma). For ten
  thousand queries over ten classes at tau/sigma = 6, 2 N eta is 1e-8, far below the fourth decimal
  to which eps is rounded up; it is not added.
- *the best of s* normal draws (`best_normal_from_words`) is drawn as one, with the same cell; its
  eta is below 2^-53 (20,000 + 700 tau/sigma). Which of s it is (`place_from_words`) is wrong by a
  factor of 1 ± s 2^-64 only, so it adds to eta and to no cell. Both are derived in THEORY.md, 12.2.
- *a published epsilon* has steps of 1e-4, each an interval of its draw, and an event may take or
  leave each of them. How many there are depends on how wide the release is, which is secret. So its
  draw is made of two words (`fine_normal_from_words`): cells of 2^-128, of which 2^63 steps take
  two each and make one `CELL`. `smallest_delta` has room for `RELEASES` of them. Round-off moves
  the ends of a step by at most 2^-49 M, M being the size of the terms that are added, in nats, and
  changes its mass by a share of 1e-8 M at most, as no release is narrower than `NARROWEST`, and of
  2e-10 M where a standard deviation is 0.001 nats or more. The proof is in THEORY.md, 12.4.

The additive part is *not* negligible beside any delta: `smallest_delta` is ten times that part, at
the eps of the labels for all votes plus one, which is room for a sanitized draw, and 10 at most;
runs at a smaller delta are refused. So the delta of a report is short by a tenth at most up to
eps = 10, and mostly by far less, and by e^(eps - 10) tenths beyond, where an epsilon promises next
to nothing.

**Why the low bits of a double do not leak here.** Mironov (2012, "On significance of the least
significant bits for differential privacy") reads the count off the *released* value count + noise,
because the reachable doubles differ between neighbours. Noisy counts are never released: what
leaves is an argmax, or the side of a threshold, one of m + 1 outcomes, each of which is a half-line
of each draw, given the others, with an end that moves continuously; only the errors above remain.
The one real number that is drawn and published, epsilon, is rounded *up* to 4 decimals before it
leaves. That is no discrete mechanism: it makes each published value an interval of the draw, and
the same values for all neighbours, so that what is left is again the mass at its two ends. Nothing
is claimed for a value that is read before it is rounded, nor about timing.

**Where words come from.** All noise of a run follows from one `RunKey`: word w of the stream for
some purpose is part of SHAKE-256(key, purpose, ⌊w/1024⌋), and row i of the labels takes the words
from i·(draws per row) on. So a row's label depends on the key and its place alone: parallel,
distributed and sequential runs under one key give the same labels, and a task that is tried again
publishes no second answer. A fresh key is 256 bits from the operating system's generator; it is
never written down, except into a checkpoint that only its owner can read, and dies with the run.
Guarantees are then those of an ideal run against whoever cannot tell SHAKE-256 under a secret
prefix from random, as they would be with the operating system's own generator, a stream cipher.
SHAKE-256 is in the standard library and gives 40 million words a second on one core, a quarter of a
microsecond for a row of ten classes. AES in counter mode would be faster, for one more package;
Philox and its like are not meant to withstand anyone; BLAKE2b gives 64 bytes a call, a fifth of the
speed.

The key of a seed is a Philox counter generator instead: reproducible on any machine, predictable
to whoever knows or guesses the seed, hence never private.
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
"""Most that the tail of an actual draw is off, besides round-off, where a draw is compared once."""
COARSE_CELL: Final = 2.0**-53
"""The same for draws that take part in several comparisons."""
RELEASES: Final = 10_000
"""How many published epsilons there is room for, each of a `CELL` at most."""
NARROWEST: Final = 2.0**-17
"""The least standard deviation of a release, nats: round-off is small beside it."""

_MULTIPLE = 10.0
LARGEST_EPSILON: Final = 10.0
"""Beyond it an ε promises next to nothing."""

Shape: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...]
Words: TypeAlias = NDArray[np.uint64]
Draws: TypeAlias = NDArray[np.float64]

_KEY_BYTES: Final = 32
_BLOCK_BYTES: Final = 8  # its number is spelled in
_MOST_BLOCKS: Final = 1 << (8 * _BLOCK_BYTES)
_BLOCK_WORDS: Final = 1024  # of one call to SHAKE-256, which a run that starts mid-block wastes
_COIN_WORDS: Final = 4  # enough that no chance is rounded away


class Noise:
    """A source of standard normal and standard Laplace draws; scale them at the call.

    Draws are consumed one after the other in row-major order, one word each, so that the batch
    size never changes a result: shape (a, k) and then (b, k) is shape (a + b, k).
    A `RunKey` gives them.
    """

    def __init__(self, words: Callable[[int], Words]) -> None:
        """`words(n)` returns the next n independent uniform 64-bit words."""
        self._words = words

    def normal(self, shape: Shape) -> Draws:
        """Return draws from N(0, 1), float64 of a shape: a whole number or a tuple of them."""
        return normal_from_words(self.words(shape))

    def laplace(self, shape: Shape) -> Draws:
        """Return draws with density exp(-|x|)/2, float64; the shape is as that of `normal`."""
        return laplace_from_words(self.words(shape))

    def fine_normal(self) -> float:
        """Return one draw from N(0, 1) of two words, for a number published in many steps."""
        return float(fine_normal_from_words(self.words((1, 2)))[0])

    def words(self, shape: Shape) -> Words:
        """Return uniform 64-bit words, of which the caller makes draws."""
        sizes = shape if isinstance(shape, tuple) else (shape,)
        return self._words(math.prod(map(operator.index, sizes))).reshape(sizes)

    def comes_up(self, log_chance: float) -> bool:
        """Draw whether something of probability e^{log_chance} happens, exact to 2^-256.

        However small the chance, it is never rounded away: it is 2^-256 at least, even where the
        probability is below all floating-point numbers.

        Raises:
            ParameterError: the logarithm of no probability.
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
        seed: a whole number ≥ 0 that stands in for the secret, but for names; what it labels is
            *not* private.
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
            seed: None for a key fit for releasing, from the operating system's generator. Nothing
                of it is kept in the process, so a fork shares no key that is made after it. A
                whole number ≥ 0 makes reproducible noise for tests and papers.

        Raises:
            EngineError: the system gives no random numbers.
            ParameterError: another seed.
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
        """Return the noise of labels from this row on, where a mechanism takes so many draws a row.

        ParameterError past 2^74 words.
        """
        # Whole numbers of Python, which do not wrap around as those of numpy do.
        return self._noise("labels", operator.index(first) * operator.index(draws))

    def aside(self, purpose: str) -> Noise:
        """Return noise for something drawn once a run; ParameterError for that of labels."""
        if purpose in ("", "labels"):  # a seed's labels have no purpose
            raise ParameterError(f"{purpose!r} is no purpose of its own")
        return self._noise(purpose, 0)

    def name(self, purpose: str) -> str:
        """Return a name that no other run has, 32 hexadecimal digits; it tells nothing of a key."""
        return _shake(self.secret, f"pate name 1 {purpose}", 0, 16).hex()

    @property
    def run_id(self) -> str:
        """Return the name of the run in a report, 32 hexadecimal digits; a resumed run keeps it.

        Of a seed it is the same for every run. It tells nothing of a key.
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
    # No two uses and blocks can be spelled alike: the key and the block have fixed lengths.
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
    """Return the least δ at which a run may be charged, rounded up to two digits.

    Ten times (draws·cell + RELEASES·CELL)(1 + e^ε): what the noise of floating-point numbers adds
    to δ is a tenth of δ at most (see the module's text).

    Args:
        draws: numbers drawn for labels, ≥ 0.
        cell: how coarse they are, CELL or more.
        epsilon: what everything released costs together, nats; 10 counts for more.
    """
    most = math.exp(min(epsilon, LARGEST_EPSILON))
    least = _MULTIPLE * (draws * cell + RELEASES * CELL) * (1.0 + most)
    unit = 10.0 ** (math.floor(math.log10(least)) - 1)
    return float(f"{math.ceil(least / unit) * unit:.1e}")


def normal_from_words(words: Words) -> Draws:
    """Return standard normal draws, one a uniform 64-bit word: ±(-Φ⁻¹(u)), |x| in (0, 9.16)."""
    return _signed(-ndtri(_tail(words)), words)


def fine_normal_from_words(words: Words) -> Draws:
    """Return standard normal draws, one a pair of words, [draws, 2]: |x| in (0, 13.11).

    As `normal_from_words` of the first words, but with the second ones behind the binary point of
    k, so that u = (k + (w + ½)·2^-64)·2^-64 has cells of 2^-128.
    """
    first, second = words[..., 0], words[..., 1]
    behind = (second.astype(np.float64) + 0.5) * 2.0**-64
    return _signed(-ndtri(_tail(first, behind)), first)


def best_normal_from_words(words: Words, number: NDArray[np.int64]) -> Draws:
    """Return the largest of s standard normal draws, one a word; −∞ for s = 0.

    Its distribution function is Φ^s, so a V that is uniform gives Φ⁻¹(V^{1/s}). V is u or 1 − u, by
    the word's lowest bit. The upper tail 1 − V^{1/s} = −expm1(log(V)/s) is computed as such, so
    that its digits do not cancel, and so is V^{1/s} where it is the smaller. For s = 1 these are
    the draws of `normal_from_words`.
    """
    u = _tail(words)
    log_v = np.where((words & np.uint64(1)).astype(np.bool_), np.log(u), np.log1p(-u))
    log_each = log_v / np.maximum(number, 1)
    above = -np.expm1(log_each)
    best = np.where(above < 0.5, -ndtri(above), ndtri(np.exp(log_each)))
    return np.where(number > 0, best, -np.inf)


def place_from_words(words: Words, number: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ⌊w s/2^64⌋ < s of words w, 1 ≤ s < 2^32; each value has chance 1/s, but for 2^-64."""
    wide = number.astype(np.uint64)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    carried = ((words & low) * wide) >> half
    return (((words >> half) * wide + carried) >> half).astype(np.int64)


def laplace_from_words(words: Words) -> Draws:
    """Return standard Laplace draws, one a uniform 64-bit word: ±(-log 2u), |x| in (0, 44.37)."""
    return _signed(-np.log(2.0 * _tail(words)), words)


def _tail(words: Words, behind: Draws | float = 0.5) -> Draws:
    """Return upper-tail probabilities u = (k + `behind`)·2^-64 in (0, ½), k the upper 63 bits."""
    u = ((words >> np.uint64(1)).astype(np.float64) + behind) * 2.0**-64
    # The last 2^9 of the 2^63 values of k round to ½ itself, where both quantiles are zero.
    return np.minimum(u, 0.5 - 2.0**-54)


def _signed(magnitude: Draws, words: Words) -> Draws:
    """Give each magnitude, ≥ 0, the sign of its word's lowest bit, in place."""
    bits = magnitude.view(np.uint64)
    bits |= words << np.uint64(63)
    return magnitude


def random_bytes(size: int) -> bytes:
    """Return random bytes that are fit for secrets; EngineError where the system has none."""
    try:
        return os.urandom(size)
    except (OSError, NotImplementedError):
        raise EngineError(
            "the operating system gives no random numbers (/dev/urandom or its like), without "
            "which no noise is private; run where it does"
        ) from None
