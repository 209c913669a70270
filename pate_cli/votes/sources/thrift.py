"""Thrift's compact protocol, in which a Parquet file says what it holds: only the fields wanted.

A footer has some thirty fields a column and row group, and few of them matter: all others are
stepped over, in plain functions without objects, for a wide table has a million.

[apache/thrift, doc/specs/thrift-compact-protocol.md]
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Wanted: TypeAlias = "dict[int, Wanted | None]"
"""The numbers of fields that are wanted, of structs each with its own; None for any other value.

In a list of structs it is what is wanted of each.
"""

_DEEPEST: Final = 16  # the structs of a footer are far less deep
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_FIRST_NUMBER, _LAST_NUMBER = 4, 6


def struct(data: bytes, wanted: Wanted, at: int = 0, depth: int = 0) -> tuple[dict[int, Any], int]:
    """The wanted fields of a struct as {number: value}, and where it ends.

    Raises:
        IndexError, ValueError: it ends early, or is none.
    """
    if depth > _DEEPEST:
        raise ValueError("too deep")
    fields: dict[int, Any] = {}
    number = 0
    while True:
        head = data[at]
        at += 1
        kind = head & 15
        if kind == _STOP:
            return fields, at
        if head >> 4:
            number += head >> 4
        else:
            number, at = _signed(data, at)
        if kind in (_TRUE, _FALSE):
            if number in wanted:
                fields[number] = kind == _TRUE
        elif number in wanted:
            fields[number], at = _value(data, at, kind, wanted[number], depth)
        else:
            at = _skipped(data, at, kind, depth)


def _value(data: bytes, at: int, kind: int, wanted: Wanted | None, depth: int) -> tuple[Any, int]:
    if _FIRST_NUMBER <= kind <= _LAST_NUMBER:
        return _signed(data, at)
    if kind == _BINARY:
        count, at = _unsigned(data, at)
        if at + count > len(data):
            raise ValueError("ends early")
        return data[at : at + count], at + count
    if kind == _STRUCT:
        return struct(data, wanted or {}, at, depth + 1)
    if kind in (_LIST, _SET):
        count, inner, at = _counted(data, at)
        found = []
        for _ in range(count):
            if inner in (_TRUE, _FALSE):  # in lists truth takes a byte
                inner = _BYTE
            item, at = _value(data, at, inner, wanted, depth + 1)
            found.append(item)
        return found, at
    return None, _skipped(data, at, kind, depth)


def _skipped(data: bytes, at: int, kind: int, depth: int) -> int:
    """Where a value of a kind ends."""
    if _FIRST_NUMBER <= kind <= _LAST_NUMBER:
        while data[at] & 128:
            at += 1
        return at + 1
    if kind == _BINARY:
        count, at = _unsigned(data, at)
        return at + count
    if kind == _STRUCT:
        return struct(data, {}, at, depth + 1)[1]
    if kind in (_LIST, _SET):
        if depth > _DEEPEST:
            raise ValueError("too deep")
        count, inner, at = _counted(data, at)
        if inner in (_TRUE, _FALSE, _BYTE):
            return at + count
        for _ in range(count):
            at = _skipped(data, at, inner, depth + 1)
        return at
    if kind == _BYTE:
        return at + 1
    if kind == _DOUBLE:
        return at + 8
    raise ValueError("not in a footer")


def _counted(data: bytes, at: int) -> tuple[int, int, int]:
    """How many there are in a list, of which kind, and where they begin."""
    head = data[at]
    at += 1
    if head >> 4 != 15:
        return head >> 4, head & 15, at
    count, at = _unsigned(data, at)
    return count, head & 15, at


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 128:
        return byte, at + 1
    number, shift = byte & 127, 7
    while shift < 64:
        at += 1
        byte = data[at]
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at + 1
        shift += 7
    raise ValueError("too long")


def _signed(data: bytes, at: int) -> tuple[int, int]:
    number, at = _unsigned(data, at)
    return (number >> 1) ^ -(number & 1), at
