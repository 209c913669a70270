"""Kinds of values: the types in the signatures of verbs, and what each of them takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from os import PathLike
from typing import Any, Final, TypeAlias

Count: TypeAlias = int
Epsilon: TypeAlias = float
Delta: TypeAlias = float
Order: TypeAlias = float
Share: TypeAlias = float
FileName: TypeAlias = str
File: TypeAlias = str | PathLike[str]
Votes: TypeAlias = Any
"""A path or address, an array, a table or data frame, or what `open_votes` yields."""
Guesses: TypeAlias = Any
"""A class or probabilities for each query: an array, a table, or a file of them."""


@dataclass(frozen=True)
class Kind:
    """Values that a type in a signature stands for.

    Attributes:
        type: of its values.
        words: what messages call such a value.
        metavar: how help writes one.
        range: which values there are, in words; empty if all of the type are.
        holds: whether a value of the type is in the range.
    """

    type: Any
    words: str
    metavar: str
    range: str = ""
    holds: Callable[[Any], bool] = lambda _value: True

    def takes(self, value: object) -> bool:
        """Return whether a value is of the type; True and False are no numbers."""
        return isinstance(value, self.type) and (self.type is bool or not isinstance(value, bool))


KINDS: Final = {
    "bool": Kind(bool, "True or False", ""),
    "int": Kind(Integral, "a whole number", "N"),
    "Count": Kind(Integral, "a whole number", "N", "at least 1", lambda count: count >= 1),
    "float": Kind(Real, "a number", "X"),
    "Epsilon": Kind(Real, "a number", "E", "above 0", lambda epsilon: epsilon > 0),
    "Delta": Kind(Real, "a number", "X", "above 0 and below 1", lambda delta: 0 < delta < 1),
    "Order": Kind(Real, "a number", "X", "above 1", lambda order: 1 < order < inf),
    "Share": Kind(Real, "a number", "X", "at least 0 and at most 1", lambda share: 0 <= share <= 1),
    "str": Kind(str, "text", "TEXT"),
    "FileName": Kind(str, "text", "FILE"),
    "File": Kind((str, PathLike), "a path", "FILE"),
    "None": Kind(type(None), "None", ""),
}
"""Kinds that are checked as they are given."""

METAVARS: Final = {
    "Amount": "N|N%",
    "Aliases": "FILE",
    "Groups": "FILE",
    "Guesses": "FILE",
    "LabelNames": "A,B|@FILE",
    "Layout": "LAYOUT",
    "MechanismName": "NAME",
    "Queries": "FILE",
    "Votes": "FILE",
}
"""How help writes values of other kinds, which are checked by what reads them."""
