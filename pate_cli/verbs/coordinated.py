"""Teachers draw tokens with shared public random numbers, so similar teachers cast equal votes.

A teacher that is a language model has probabilities p over tokens, and its vote is one draw from p.
If each teacher draws independently, the votes scatter even when all distributions are equal.
Therefore all teachers use shared clocks: token j has a clock E_j, which is exponential with mean 1.
For a teacher the clock of token j rings after E_j / p_j, and the teacher votes for the token whose
clock rings first. The teacher votes for token j with probability p_j. Two teachers cast equal votes
with probability at least (1 − TV)/(1 + TV), where TV is the total variation distance between their
distributions. Section 22 of THEORY.md has the proofs about shared clocks.

**Clocks are public; they are not the noise that protects privacy.** A vote is a function of the
teacher's own distribution and of numbers that everybody may know. Clocks do not change the
sensitivity: one teacher changes only one vote of a row. Only the noise of the run protects the
labels. The noise of the run has its own key, which is secret.

**A clock is a function of seed, position and token only.** A clock does not depend on who computes
it, or on the other tokens in the call. So two teachers on different machines use the same clocks,
even if a teacher knows only its likeliest tokens. The clock is −log(1 − u) with u = (w + ½)·2^-64,
where w is a random number of 64 bits. The formula for a clock represents small values most finely.
Small values matter most, because the clock that rings first tends to have a small value.

The hash function SHAKE-256 makes the random numbers w. A token is a whole number or a text. For
tokens that are whole numbers, one hash makes a block of 256 numbers w. Token j uses the number at
place j mod 256 (counted from 0) of block ⌊j/256⌋. For each token that is a text, one hash makes one
number w. The hash of a block and the hash of a text are:

    SHAKE-256("pate coordinated 1" seed position "#" block as 8 bytes)    returns 2048 bytes
    SHAKE-256("pate coordinated 1" seed position "$" token as UTF-8)      returns 8 bytes

Numbers are little-endian. A seed or position that is a whole number is encoded as "#", its length
in bytes, and then the number itself in as few bytes as possible (none for 0). A seed or position
that is a text is encoded as "$", its length in UTF-8 bytes, and then these bytes. Each length is
stored in 8 bytes. Two machines that round logarithms differently choose different tokens in one of
10^14 draws.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import Floats
from pate_cli.core.checks import LARGEST, MOST_CLASSES, SMALLEST
from pate_cli.core.errors import ParameterError, quoted

_PURPOSE: Final = b"pate coordinated 1"
_NUMBER, _TEXT = b"#", b"$"
_WORD_BYTES: Final = 8
_BLOCK_WORDS: Final = 256
_LARGEST_LOG: Final = 1e6
"""Larger logits are refused, because a sum with a clock would lose the digits of the clock."""
_AT_ONCE: Final = 1 << 21  # The temporary arrays for this many probabilities have 16 MB each.
_RULES: Final = {
    False: f"probabilities: finite, at least 0, with a sum from {SMALLEST:g} to {LARGEST:g}",
    True: f"log-probabilities: not NaN, the largest from {-_LARGEST_LOG:g} to {_LARGEST_LOG:g}",
}


def coordinated_choice(
    probabilities: Any, *, seed: int | str, position: int | str, log: bool = False
) -> Any:
    """Return the token that each teacher votes for, drawn by clocks that all teachers share.

    Each vote is a draw from its teacher's distribution, and similar teachers usually cast equal
    votes. Everybody may know seed and position. The page docs/sessions.md says what seed and
    position must not depend on.

        >>> teachers = [[0.50, 0.30, 0.20], [0.45, 0.35, 0.20], [0.50, 0.25, 0.25]]
        >>> pate.coordinated_choice(teachers, seed=2026, position=0)
        array([1, 1, 1])
        >>> pate.coordinated_choice(teachers, seed=2026, position=1)
        array([0, 0, 0])
        >>> pate.coordinated_choice({" yes": 0.7, " no": 0.3}, seed=2026, position=1)
        ' yes'

    Args:
        probabilities: for one teacher, an array with one probability for each token; for several
            teachers, an array [teachers, tokens] of probabilities. Instead of an array, give a
            mapping {token: probability} for one teacher who knows only some tokens, or a list of
            mappings for several teachers. Tokens in mappings are whole numbers >= 0, or texts. The
            probabilities of a teacher need not add up to 1.
        seed: a whole number >= 0 or a text, the same for all teachers.
        position: a whole number >= 0 or a text. Give each query its own position, and give all
            teachers the same position for the same query.
        log: True if the values are logits: logarithms of probabilities, up to a constant per row.

    Returns:
        For an array with one dimension, the index of the token that the teacher votes for. For an
        array with two dimensions, an int64 array with the index of the token of each teacher. For
        a mapping, a token. For a list of mappings, a list of tokens.

    Raises:
        ParameterError: seed or position is out of range, or a row has no valid probabilities.
    """
    ask = _spelled("seed", seed) + _spelled("position", position)
    if isinstance(probabilities, Mapping):
        return _of_mappings([probabilities], ask, log)[0]
    if isinstance(probabilities, Sequence) and isinstance(next(iter(probabilities), None), Mapping):
        return _of_mappings(probabilities, ask, log)
    return _of_rows(probabilities, ask, log)


def clocks_of(ask: bytes, tokens: Any) -> Floats:
    """Return the public clocks of the given tokens: independent exponentials with mean 1.

    Args:
        ask: seed and position as bytes. Each query needs its own position, and all teachers use
            the same seed and position for the same query.
        tokens: at least one token; either all are whole numbers >= 0, or all are texts.
    """

    def shake(what: bytes, words: int) -> NDArray[np.uint64]:
        # A part of variable length states its length or is last, so no two inputs give one text.
        found = hashlib.shake_256(_PURPOSE + ask + what).digest(_WORD_BYTES * words)
        return np.frombuffer(found, dtype="<u8")

    if isinstance(tokens[0], str):
        return _exponentials(np.concatenate([shake(_TEXT + _utf8(text), 1) for text in tokens]))
    places = np.array(tokens, dtype=np.int64)
    numbers, block_of = np.unique(places // _BLOCK_WORDS, return_inverse=True)
    spelled = (_NUMBER + number.to_bytes(_WORD_BYTES, "little") for number in numbers.tolist())
    blocks = np.stack([shake(place, _BLOCK_WORDS) for place in spelled])
    return _exponentials(blocks[block_of, places % _BLOCK_WORDS])


def _of_rows(probabilities: Any, ask: bytes, log: bool) -> int | NDArray[np.int64]:
    """Return the index of the token that each teacher chooses from an array of probabilities."""
    try:
        table = np.asarray(probabilities)
    except (TypeError, ValueError):  # The rows have different lengths.
        table = np.empty(0, dtype=object)
    if table.dtype.kind not in "iuf" or table.ndim not in (1, 2):
        raise ParameterError(
            "probabilities must be an array of numbers with one dimension (tokens) or two "
            "(teachers, tokens), a mapping from tokens to numbers, or a list of such mappings"
        )
    tokens = table.shape[-1]
    if not 1 <= tokens <= MOST_CLASSES:
        raise ParameterError(f"the number of tokens must be from 1 to {MOST_CLASSES}, got {tokens}")
    rows, clocks = np.atleast_2d(table), clocks_of(ask, range(tokens))
    chosen = np.empty(len(rows), dtype=np.int64)
    step = max(1, _AT_ONCE // tokens)
    for start in range(0, len(rows), step):
        part = rows[start : start + step].astype(np.float64)
        chosen[start : start + step] = _first(part, clocks, log, start)
    return chosen if table.ndim == 2 else int(chosen[0])


def _of_mappings(mappings: Sequence[Mapping[Any, Any]], ask: bytes, log: bool) -> list[Any]:
    """Return the token that each teacher chooses from its mapping {token: probability}."""
    rows = [_known(mapping, row) for row, mapping in enumerate(mappings)]
    tokens = {token for row in rows for token in row}
    if len(set(map(type, tokens))) > 1:
        raise ParameterError("tokens must all be whole numbers or all be texts")
    # Tokens are sorted so that ties are decided as in an array.
    ordered, unknown = sorted(tokens), -np.inf if log else 0.0
    weights = np.array([[row.get(token, unknown) for token in ordered] for row in rows])
    return [ordered[place] for place in _first(weights, clocks_of(ask, ordered), log, 0)]


def _known(mapping: Mapping[Any, Any], row: int) -> dict[Any, float]:
    """Return a mapping whose tokens and numbers have Python's own types.

    Raises:
        ParameterError: `mapping` is empty, or does not map tokens to numbers.
    """
    if not isinstance(mapping, Mapping) or not mapping:
        raise ParameterError(f"row {row} must be a mapping with at least one token")
    places = range(MOST_CLASSES)
    try:
        return {
            str(token) if isinstance(token, str) else places.index(operator.index(token)): float(p)
            for token, p in mapping.items()
        }
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"row {row} must map texts, or whole numbers from 0 to {MOST_CLASSES - 1}, to numbers"
        ) from None


def _first(weights: Floats, clocks: Floats, log: bool, first_row: int) -> NDArray[np.intp]:
    """Return the index of the token whose clock rings first in each row; overwrites `weights`.

    Args:
        weights: [rows, tokens], probabilities or their logarithms.
        clocks: [tokens].
        log: True if the weights are logarithms.
        first_row: the number of the first row in `weights`, for messages.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        size = weights.max(axis=1) if log else weights.sum(axis=1)
    # A NaN makes the smallest or the largest value NaN, which fails the test of the range.
    least, most = (-_LARGEST_LOG, _LARGEST_LOG) if log else (SMALLEST, LARGEST)
    good = (size >= least) & (size <= most) & (log | (weights.min(axis=1) >= 0.0))
    if not good.all():
        raise ParameterError(f"row {first_row + int(np.argmin(good))} must have {_RULES[log]}")
    # The token with the smallest E/p has the largest p/E. Only E/p may overflow.
    race = np.subtract if log else np.divide
    return race(weights, np.log(clocks) if log else clocks, out=weights).argmax(axis=1)


def _exponentials(words: NDArray[np.uint64]) -> Floats:
    """Return −log(1 − u), with u = (w + ½)·2^-64, for each w in `words`; all lie in (2^-66, 46)."""
    u = (words.astype(np.float64) + 0.5) * 2.0**-64
    # For u above ½, the inverted bits give 1 − u, so that it keeps its digits and is not 0.
    rest = (np.invert(words).astype(np.float64) + 0.5) * 2.0**-64
    return np.where(u < 0.5, -np.log1p(-np.minimum(u, 0.5)), -np.log(rest))


def _spelled(name: str, value: int | str) -> bytes:
    """Return a seed or position as bytes, in the form that the head of this module describes."""
    if isinstance(value, str):
        kind, raw = _TEXT, _utf8(value)
    else:
        try:
            number = operator.index(value)
        except TypeError:
            number = -1
        if number < 0:
            raise ParameterError(
                f"{name} must be a whole number >= 0 or a text, not {quoted(value)}"
            )
        kind, raw = _NUMBER, number.to_bytes(-(-number.bit_length() // 8), "little")
    return kind + len(raw).to_bytes(_WORD_BYTES, "little") + raw


def _utf8(text: str) -> bytes:
    # A token may be one half of a surrogate pair, which strict UTF-8 would refuse.
    return text.encode("utf-8", "surrogatepass")
