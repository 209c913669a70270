"""Structs of Thrift's compact protocol, in which Parquet files tell what is in them.

pyarrow reads them, too, but where they are damaged it ends the process instead of raising an error
[the compact protocol of Apache Thrift].
"""

from __future__ import annotations

from typing import Any

_DEEPEST = 16  # the structs of a footer are far less deep
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_NUMBERS = (4, 5, 6)


class Compact:
    """A reader of Thrift's compact protocol: structs as {number of field: value}."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def at(self) -> int:
        """Bytes that were read."""
        return self._at

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The fields up to the stop.

        Raises:
            IndexError, ValueError: it ends early, or is none.
        """
        fields: dict[int, Any] = {}
        number = 0
        while True:
            head = self._byte()
            kind = head & 15
            if kind == _STOP:
                return fields
            number = number + (head >> 4) if head >> 4 else self._signed()
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("too deep")
        if kind in _NUMBERS:
            return self._signed()
        if kind in (_TRUE, _FALSE, _BYTE):  # in lists truth takes a byte
            return self._byte()
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _BINARY:
            return self._bytes(self._unsigned())
        if kind in (_LIST, _SET):
            head = self._byte()
            count = self._unsigned() if head >> 4 == 15 else head >> 4
            return [self._value(head & 15, depth + 1) for _ in range(count)]
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise ValueError("not in a footer")

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        self._at += count
        if self._at > len(self._data):
            raise ValueError("ends early")
        return self._data[self._at - count : self._at]

    def _unsigned(self) -> int:
        number = 0
        for shift in range(0, 64, 7):
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError("too long")

    def _signed(self) -> int:
        number = self._unsigned()
        return (number >> 1) ^ -(number & 1)
