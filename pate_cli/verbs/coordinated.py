"""Tokens that teachers draw by shared public clocks, so that teachers who are alike vote alike.

A teacher that is a language model has probabilities p over tokens, and its vote is one draw. Drawn
by each teacher for itself, votes scatter even where all distributions are one. So all of them let
the same clocks run: token j rings after E_j / p_j, with E_j exponential of mean 1, and a teacher
votes for what rings first. That is token j with probability p_j, and two teachers take the same
one with probability (1 − TV)/(1 + TV) at least, TV being how far their distributions are apart in
total variation. Proofs are in THEORY.md, section 24.

**Clocks are public, and no noise of privacy.** A vote is a function of a teacher's own
distribution and of numbers that everybody may know, so one teacher still moves one vote of a row,
and labels are protected by the noise of the run alone. That has a key of its own, which is secret.

**A clock is a function of seed, position and token**, whoever computes it, and whatever other
tokens are asked about: a teacher that knows its likeliest tokens only, on a machine of its own,
votes in the same race. A random number w of 64 bits makes the clock −log(1 − u), u = (w + ½)·2^-64:
near 0, where races are decided, it is finest. The number of token j is the one at j mod 256 of
block ⌊j/256⌋; a token that is a text has a number of its own:

    SHAKE-256("pate coordinated 1" seed position "#" block as 8 bytes)    2048 bytes
    SHAKE-256("pate coordinated 1" seed position "$" token as UTF-8)         8 bytes

Numbers are little-endian. Seed and position are each "#", the length of what follows as 8 bytes,
and the number in as few bytes as it needs; of a text "$", that length, and the text as UTF-8.
Machines that round logarithms differently decide about one race in 10^14 differently.
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
"""A logit beyond it is none, and its digits would no longer hold what a clock adds."""
_AT_ONCE: Final = 1 << 21  # probabilities: temporaries of 16 MB, whatever the number of teachers
_RULES: Final = {
    False: f"probabilities: finite, at least 0, with a sum from {SMALLEST:g} to {LARGEST:g}",
    True: f"log-probabilities: not NaN, the largest from {-_LARGEST_LOG:g} to {_LARGEST_LOG:g}",
}


def coordinated_choice(
    probabilities: Any, *, seed: int | str, position: int | str, log: bool = False
) -> Any:
    """The token each teacher votes for: a draw from its distribution, by clocks that all share.

    Every vote has its teacher's probabilities, and teachers who are alike vote alike. Seed and
    position are public and may be known to everybody; see docs/sessions.md for what they must not
    depend on.

        >>> teachers = [[0.50, 0.30, 0.20], [0.45, 0.35, 0.20], [0.50, 0.25, 0.25]]
        >>> pate.coordinated_choice(teachers, seed=2026, position=0)
        array([1, 1, 1])
        >>> pate.coordinated_choice(teachers, seed=2026, position=1)
        array([0, 0, 0])
        >>> pate.coordinated_choice({" yes": 0.7, " no": 0.3}, seed=2026, position=1)
        ' yes'

    Args:
        probabilities: [tokens] of one teacher, or [teachers, tokens]; or a mapping {token:
            probability} of the tokens a teacher knows, whole numbers from 0 or texts, or a list of
            mappings. Rows are taken relative to their sum.
        seed: a whole number from 0 or a text, the same for all teachers.
        position: which ask of this seed it is, a whole number from 0 or a text.
        log: they are logarithms of probabilities, up to a constant in each row: logits.

    Returns:
        A number for [tokens], an int64 array [teachers] for [teachers, tokens], a token of the
        mapping for a mapping, and a list of tokens for a list.

    Raises:
        ParameterError: no such number; or what a row has are no probabilities.
    """
    ask = _spelled("seed", seed) + _spelled("position", position)
    if isinstance(probabilities, Mapping):
        return _of_mappings([probabilities], ask, log)[0]
    if isinstance(probabilities, Sequence) and isinstance(next(iter(probabilities), None), Mapping):
        return _of_mappings(probabilities, ask, log)
    return _of_rows(probabilities, ask, log)


def clocks_of(ask: bytes, tokens: Any) -> Floats:
    """Return the public clocks of one ask, independent exponentials of mean 1.

    Args:
        ask: seed and position, spelled; no other ask of this seed has the position.
        tokens: at least one: all of them whole numbers from 0, or all of them texts.
    """

    def shake(what: bytes, words: int) -> NDArray[np.uint64]:
        # No two of these can be spelled alike: what has no fixed length comes last or tells it.
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
    """Return the choices of an array, [tokens] or [teachers, tokens], part by part."""
    try:
        table = np.asarray(probabilities)
    except (TypeError, ValueError):  # rows of different lengths
        table = np.empty(0, dtype=object)
    if table.dtype.kind not in "iuf" or table.ndim not in (1, 2):
        raise ParameterError(
            "probabilities must be numbers [tokens] or [teachers, tokens], as many in every row, "
            "or mappings of tokens"
        )
    tokens = table.shape[-1]
    if not 1 <= tokens <= MOST_CLASSES:
        raise ParameterError(f"tokens must be 1 to {MOST_CLASSES}, got {tokens}")
    rows, clocks = np.atleast_2d(table), clocks_of(ask, range(tokens))
    chosen = np.empty(len(rows), dtype=np.int64)
    step = max(1, _AT_ONCE // tokens)
    for start in range(0, len(rows), step):
        part = rows[start : start + step].astype(np.float64)
        chosen[start : start + step] = _first(part, clocks, log, start)
    return chosen if table.ndim == 2 else int(chosen[0])


def _of_mappings(mappings: Sequence[Mapping[Any, Any]], ask: bytes, log: bool) -> list[Any]:
    """Return the choice of each mapping {token: probability}."""
    rows = [_known(mapping, row) for row, mapping in enumerate(mappings)]
    tokens = {token for row in rows for token in row}
    if len(set(map(type, tokens))) > 1:
        raise ParameterError("tokens must all be whole numbers or all be texts")
    # In order of tokens, so that of two that ring together the same one wins as in an array.
    ordered, unknown = sorted(tokens), -np.inf if log else 0.0
    weights = np.array([[row.get(token, unknown) for token in ordered] for row in rows])
    return [ordered[place] for place in _first(weights, clocks_of(ask, ordered), log, 0)]


def _known(mapping: Mapping[Any, Any], row: int) -> dict[Any, float]:
    """Return a mapping with plain tokens and numbers; ParameterError where it has others."""
    if not isinstance(mapping, Mapping) or not mapping:
        raise ParameterError(f"row {row} must be a mapping of one token or more")
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
    """Return the place of the token that rings first, per row; weights are overwritten.

    Args:
        weights: [rows, tokens], probabilities or their logarithms.
        clocks: [tokens].
        log: whether weights are logarithms.
        first_row: the number of the first of these rows, for messages.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        size = weights.max(axis=1) if log else weights.sum(axis=1)
    # A NaN makes the least or the largest NaN, which is in no range.
    least, most = (-_LARGEST_LOG, _LARGEST_LOG) if log else (SMALLEST, LARGEST)
    good = (size >= least) & (size <= most) & (log | (weights.min(axis=1) >= 0.0))
    if not good.all():
        raise ParameterError(f"row {first_row + int(np.argmin(good))} must have {_RULES[log]}")
    # Not after E/p, which may overflow: the largest p/E is the same token.
    race = np.subtract if log else np.divide
    return race(weights, np.log(clocks) if log else clocks, out=weights).argmax(axis=1)


def _exponentials(words: NDArray[np.uint64]) -> Floats:
    """−log(1 − u) for u = (w + ½)·2^-64, in (2^-66, 46)."""
    u = (words.astype(np.float64) + 0.5) * 2.0**-64
    # Of the larger half 1 − u is computed as such, so that it keeps its digits and is never 0.
    rest = (np.invert(words).astype(np.float64) + 0.5) * 2.0**-64
    return np.where(u < 0.5, -np.log1p(-np.minimum(u, 0.5)), -np.log(rest))


def _spelled(name: str, value: int | str) -> bytes:
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
    # Half of a character that takes two, as a token may be, is spelled, too.
    return text.encode("utf-8", "surrogatepass")
