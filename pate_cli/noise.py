"""Randomness: standard normal and Laplace draws from 64-bit words; no other module draws.

**From a word to a draw.** A word gives a sign bit and an integer k in [0, 2^63); the draw is that
sign times the quantile of the upper tail at u = (k + ½)·2^-64 in (0, ½): -Φ⁻¹(u) for the normal,
-log(2u) for Laplace. The lattice is finest where it matters, in the tails: the normal reaches
9.16 standard deviations and Laplace 44.37 scales; infinities cannot occur. Doubles near u = ½ are
2^-54 apart and u stays one of them below ½, so zeros do not occur either and the law is exactly
symmetric.

**Distance from the ideal law.** The mass beyond the largest magnitude, both sides together, is
`TAIL_MASS` = 2^-64 per draw: that is the total-variation distance between a real-valued draw and
the same draw with its tails cut. Inside, a draw is a real-valued one moved to the middle of its
cell and rounded to a double (relative error of a few 2^-53), and that can change a published
outcome only by moving two noisy counts past each other, or one past the threshold. For counts up to
τ and noise of scale σ this has probability of the order of (1 + τ/σ)·2^-52 per class and query. All
of it is a total-variation distance, so it enters δ additively, times 1 + e^ε: some 1e-10 before
that factor for ten thousand queries over ten classes at τ/σ = 6, beside a customary δ of 1e-5.

**Why the low bits of a double do not leak here.** Mironov (2012, "On significance of the least
significant bits for differential privacy") reads the count off the *released* value count + noise,
because the reachable doubles differ between neighbours. Noisy counts are never released: what
leaves is an argmax, or the side of a threshold, one of m + 1 outcomes, each of which is a union
of whole cells of noise with boundaries that move continuously; only the probabilities above
remain. The one real number that is drawn and published, epsilon, is rounded *up* to a few decimals
before it leaves, so that its low bits are gone too, on the safe side.

**Where words come from.** `Noise.from_entropy()` asks the operating system's cryptographic
generator, holds no state between calls, and so is safe to fork. `Noise.from_seed()` is a Philox
counter generator: reproducible on any machine, predictable to whoever knows or guesses the seed,
hence never private.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable
from typing import Final, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pate_cli.errors import ParameterError

TAIL_MASS: Final = 2.0**-64
"""Mass of the ideal law beyond the largest possible draw, both sides together, per draw."""

Shape: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...]
Words: TypeAlias = NDArray[np.uint64]
Draws: TypeAlias = NDArray[np.float64]

_COIN_WORDS: Final = 4  # enough that no chance is rounded away
_CHUNK: Final = 1 << 16  # words at a time: the temporaries stay in cache whatever the shape asked


class Noise:
    """A source of standard normal and standard Laplace draws; scale them at the call.

    Draws are consumed one after the other in row-major order, one word each, so that the batch
    size never changes a seeded result: shape (a, k) and then (b, k) is shape (a + b, k).
    Build it with `from_entropy` or `from_seed`.
    """

    def __init__(self, words: Callable[[int], Words], *, private: bool) -> None:
        """`words(n)` returns the next n independent uniform 64-bit words."""
        self._words = words
        self._private = private

    @classmethod
    def from_entropy(cls) -> Noise:
        """Noise fit for releasing: every word comes from the operating system's generator."""
        return cls(_operating_system_words, private=True)

    @classmethod
    def from_seed(cls, seed: int) -> Noise:
        """Reproducible noise for tests and papers; what it labels is *not* private.

        `seed` is any whole number >= 0; ParameterError otherwise.
        """
        try:
            number = operator.index(seed)
        except TypeError:
            raise ParameterError(f"seed must be a whole number >= 0, not {seed!r}") from None
        if number < 0:
            raise ParameterError(f"seed must be a whole number >= 0, not {seed!r}")
        generator = np.random.Philox(number)

        def words(count: int) -> Words:
            return np.asarray(generator.random_raw(count), dtype=np.uint64)

        return cls(words, private=False)

    @property
    def private(self) -> bool:
        """Whether the draws are unpredictable; a report made with False must say so."""
        return self._private

    def normal(self, shape: Shape) -> Draws:
        """Draws from N(0, 1), float64 of the given shape (an int or a tuple of ints >= 0)."""
        return self._draw(shape, normal_from_words)

    def laplace(self, shape: Shape) -> Draws:
        """Draws with density exp(-|x|)/2, float64 of the given shape (an int or a tuple)."""
        return self._draw(shape, laplace_from_words)

    def comes_up(self, log_chance: float) -> bool:
        """Whether something of probability e^{log_chance} happens, exact to 2^-256.

        However small the chance, it is never rounded away.
        """
        number = int.from_bytes(self._words(_COIN_WORDS).tobytes(), "little")
        numerator, denominator = math.exp(min(log_chance, 0.0)).as_integer_ratio()
        return number * denominator < numerator << (64 * _COIN_WORDS)

    def _draw(self, shape: Shape, transform: Callable[[Words], Draws]) -> Draws:
        sizes = _sizes(shape)
        total = math.prod(sizes)
        draws = np.empty(total, dtype=np.float64)
        for start in range(0, total, _CHUNK):
            stop = min(start + _CHUNK, total)
            draws[start:stop] = transform(self._words(stop - start))
        return draws.reshape(sizes)


def normal_from_words(words: Words) -> Draws:
    """Standard normal draws, one per uniform 64-bit word: ±(-Φ⁻¹(u)), |x| in (0, 9.16)."""
    return _signed(-ndtri(_tail(words)), words)


def laplace_from_words(words: Words) -> Draws:
    """Standard Laplace draws, one per uniform 64-bit word: ±(-log 2u), |x| in (0, 44.37)."""
    return _signed(-np.log(2.0 * _tail(words)), words)


def _tail(words: Words) -> Draws:
    """Upper-tail probability u = (k + ½)·2^-64 in (0, ½), with k the upper 63 bits."""
    u = ((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64
    # The last 2^9 of the 2^63 values of k round to ½ itself, where both quantiles are zero.
    return np.minimum(u, 0.5 - 2.0**-54)


def _signed(magnitude: Draws, words: Words) -> Draws:
    """Give each magnitude the sign of its word's lowest bit, in place."""
    return np.negative(magnitude, out=magnitude, where=(words & np.uint64(1)).astype(np.bool_))


def _operating_system_words(count: int) -> Words:
    # Exactly what is needed and nothing kept: no stale state to leak, or to be shared by a fork.
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def _sizes(shape: Shape) -> tuple[int, ...]:
    sizes = shape if isinstance(shape, tuple) else (shape,)
    try:
        whole = tuple(operator.index(size) for size in sizes)
    except TypeError:
        raise ParameterError(f"shape must be whole numbers >= 0, not {shape!r}") from None
    if any(size < 0 for size in whole):
        raise ParameterError(f"shape must be whole numbers >= 0, not {shape!r}")
    return whole
