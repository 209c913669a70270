"""Damage by chance: bytes, and JSON that still parses."""

from __future__ import annotations

import copy
import hashlib
import json
from typing import Any

from numpy.random import Generator

_STRUCTURE = b"\",;{}[]()\n\r\t :-+.e0'\\\x00\xff"
_ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    2.0,
    0.5,
    1e308,
    -1e-320,
    10**19,
    10**400,
    float("nan"),
    float("inf"),
    "",
    "text",
    "a\nb\x1b[31m",
    "\ud800",
    "w" * 5000,
    [],
    [[]],
    [1, [2]],
    [None],
    {},
    {"a": 1},
    [[[[[[1]]]]]],
    ["x"] * 1000,
)


def struck(data: bytes, rng: Generator) -> bytes:
    """A few bytes changed, most of them at the head or the foot, where structure is."""
    damaged = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 1, 2, 3, 4]))):
        size = len(damaged)
        if not size:
            break
        near = int(min(rng.integers(0, size), rng.integers(0, 400)))
        place = (near, size - 1 - near, int(rng.integers(0, size)))[rng.integers(0, 3)]
        span = int(rng.integers(1, 12))
        match rng.integers(0, 9):
            case 0 | 1 | 2:
                damaged[place] = rng.integers(0, 256)
            case 3:
                damaged[place] ^= 1 << int(rng.integers(0, 8))
            case 4:
                del damaged[place : place + span]
            case 5:
                damaged[place] = _STRUCTURE[rng.integers(0, len(_STRUCTURE))]
            case 6:
                other = int(rng.integers(0, size))
                damaged[place:place] = damaged[other : other + 8 * span]
            case 7:
                damaged[place : place + span] = (b"\x00", b"\xff", b"\x7f")[rng.integers(3)] * span
            case _:
                if rng.integers(0, 3) == 0:
                    del damaged[place:]
    return bytes(damaged)


def odd_value(rng: Generator) -> Any:
    """Something that JSON can hold and hardly a field should."""
    return copy.deepcopy(_ODD[rng.integers(0, len(_ODD))])


def odd_json(data: bytes, rng: Generator, versions: int) -> bytes:
    """Fields of a JSON object changed, under the number of a version from 1 to `versions`."""
    content = json.loads(data)
    content["schema_version"] = int(rng.integers(1, versions + 1))
    if rng.integers(0, 4):
        content.pop("checksum", None)
    for _ in range(int(rng.integers(1, 4))):
        _change(content, rng)
    if rng.integers(0, 2):  # as if it had been written so
        content.pop("checksum", None)
        content["checksum"] = checksum(content)
    text = json.dumps(content)
    if rng.integers(0, 12) == 0:
        deep = int(rng.integers(10, 4000))
        text = text[:-1] + ', "deep": ' + "[" * deep + "]" * deep + "}"
    return text.encode()


def checksum(content: Any) -> str:
    """What ledgers and records carry of their other fields."""
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()


def _change(content: Any, rng: Generator) -> None:
    while True:
        keys = list(content) if isinstance(content, dict) else list(range(len(content)))
        if not keys:
            return
        key = keys[rng.integers(0, len(keys))]
        inside = content[key]
        if isinstance(inside, (dict, list)) and inside and rng.integers(0, 4):
            content = inside
            continue
        match rng.integers(0, 5):
            case 0:
                del content[key]
            case 1 if isinstance(content, dict):
                content[str(odd_value(rng))[:6000]] = inside
            case 1:
                content.append(inside)
            case _:
                content[key] = odd_value(rng)
        return
