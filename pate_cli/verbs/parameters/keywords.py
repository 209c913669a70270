"""Keywords: what the table says of a parameter, joined with what a verb's signature says.

A verb is an ordinary function: names, types and defaults stand in its signature. Help, range and
group of a name stand in `table`, once for all verbs. Options, both helps, completion, checks, "did
you mean", docstrings and the reference page are made from `keywords_of(verb)`.
"""

from __future__ import annotations

import difflib
import enum
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from os import PathLike
from typing import Any, Final

from pate_cli.core import words
from pate_cli.core.errors import ParameterError, UsageError, quoted
from pate_cli.verbs.parameters.parameter import Parameter
from pate_cli.verbs.parameters.table import anywhere, said_of

_PLAIN: Final[dict[str, tuple[type, str]]] = {
    "bool": (bool, "True or False"),
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "str": (str, "text"),
    "PathLike[str]": (PathLike, "a path"),
    "None": (type(None), "None"),
}
_NUMBERS: Final = {"int": (int, "a whole number", "N"), "float": (float, "a number", "X")}


@dataclass(frozen=True)
class Keyword:
    """A parameter as one verb has it.

    Attributes:
        name: the Python keyword.
        says: its help, range and group.
        kinds: the types that its annotation names, as they are written there.
        default: its default; `Keyword.required` where it must be given.
    """

    name: str
    says: Parameter
    kinds: tuple[str, ...]
    default: Any

    required = inspect.Parameter.empty

    @property
    def option(self) -> str:
        """Return the long option, such as `--target-epsilon`, or an argument in capitals."""
        return _option(self.name, self.says)

    @property
    def flag(self) -> bool:
        """Whether the command line takes it without a value."""
        return set(self.kinds) <= {"bool", "None"}

    @functools.cached_property
    def word(self) -> Any:
        """Return the enumeration of the words that it takes, if it takes words."""
        found = (getattr(words, kind, None) for kind in self.kinds)
        return next((kind for kind in found if isinstance(kind, enum.EnumMeta)), None)

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the words that it takes; none where it takes others."""
        return () if self.word is None else tuple(word.value for word in self.word)

    @property
    def metavar(self) -> str:
        """Return how help writes the value; empty for a flag."""
        if self.flag:
            return ""
        number = next((_NUMBERS[kind][2] for kind in self.kinds if kind in _NUMBERS), "TEXT")
        return self.says.metavar or "|".join(self.choices) or number

    @property
    def range(self) -> str:
        """Return the range in words, such as `above 0 and below 1`; empty if there is none."""
        says = self.says
        bounds = {
            "above": says.above,
            "at least": says.least,
            "below": says.below,
            "at most": says.most,
        }
        return " and ".join(f"{word} {end:g}" for word, end in bounds.items() if end is not None)

    def complete(self, incomplete: str) -> list[str]:
        """Return the words that begin so, for the shell."""
        return [choice for choice in self.choices if choice.startswith(incomplete)]

    def read(self, text: str) -> Any:
        """Turn a text of the command line into a value.

        Raises:
            ParameterError: the text is no number where one is due.
            UsageError: the text says False of what is a name.
        """
        if self.says.off is not None and text.lower() in ("false", "none"):
            raise UsageError(f"{self.option} takes a name, and {self.says.off} keeps none")
        if not self.strict or "str" in self.kinds:
            return text
        for kind, (number, wanted, _) in _NUMBERS.items():
            if kind in self.kinds:
                try:
                    return number(text)
                except ValueError:
                    raise ParameterError(
                        f"{self.option} takes {wanted}, got {quoted(text)}"
                    ) from None
        return text

    @property
    def strict(self) -> bool:
        """Return True if its type is checked here: arrays and amounts check themselves."""
        words = () if self.word is None else (self.word.__name__,)
        return all(kind in _PLAIN or kind in words for kind in self.kinds)

    def check(self, value: Any) -> None:
        """Refuse a value of the wrong type or outside the range.

        Raises:
            ParameterError: the message names the parameter, what it takes, and the value.
        """
        if value is None and "None" in self.kinds:
            return
        if self.word is not None and (self.strict or isinstance(value, str)):
            self.word(value)
            return
        if not self.strict:
            return
        number = isinstance(value, bool) and "bool" not in self.kinds
        if number or not any(isinstance(value, _PLAIN[kind][0]) for kind in self.kinds):
            wanted = " or ".join(_PLAIN[kind][1] for kind in self.kinds)
        elif self.range and not self._within(value):
            wanted = self.range
        else:
            return
        raise ParameterError(f"`{self.name}` must be {wanted}, got {quoted(value)}")

    def _within(self, value: float) -> bool:
        says = self.says
        return (
            (says.above is None or value > says.above)
            and (says.least is None or value >= says.least)
            and (says.below is None or value < says.below)
            and (says.most is None or value <= says.most)
        )


def keywords_of(
    function: Callable[..., Any], *, called: str = "", without: Sequence[str] = ()
) -> dict[str, Keyword]:
    """Return the keywords of a function's parameters, by name and in order.

    Args:
        function: has the signature.
        called: whose entries of the table come first; those of the function if left out.
        without: names that are passed over.

    Raises:
        LookupError: the table says nothing of a parameter.
    """
    return {
        name: Keyword(
            name, said_of(called or function.__name__, name), _kinds(each.annotation), each.default
        )
        for name, each in inspect.signature(function).parameters.items()
        if name not in without
    }


def _kinds(annotation: str) -> tuple[str, ...]:
    """Return the members of a union, as a signature has them."""
    return tuple(re.split(r" \| (?![^\[]*\])", annotation))


def check_all(keywords: Mapping[str, Keyword], given: Mapping[str, Any]) -> None:
    """Check every value, and that no two of them exclude each other.

    Raises:
        UsageError: two of them exclude each other.
        ParameterError: a value of the wrong type or out of range.
    """
    for name, value in given.items():
        keywords[name].check(value)
    said = {name: value for name, value in given.items() if value is not keywords[name].default}
    for name in said:
        for other in keywords[name].says.excludes:
            if other in said:
                both = " and ".join(
                    f"`{each}` False" if said[each] is False else f"`{each}`"
                    for each in (name, other)
                )
                raise UsageError(f"{both} contradict each other; give one of them")


def with_options(message: str, keywords: Mapping[str, Keyword]) -> str:
    """Return a message with options where it names keywords in backticks.

    Args:
        message: for a person at a shell.
        keywords: those of the command, whose options come first.
    """

    def option(found: re.Match[str]) -> str:
        name, off = found.groups()
        says = keywords[name].says if name in keywords else anywhere(name)
        if says is None or says.hidden:
            return found[0]
        if off and says.off is not None:
            return says.off
        return _option(name, says) + (off or "")

    return re.sub(r"`(\w+)`( False)?", option, message)


def _option(name: str, says: Parameter) -> str:
    if says.argument:
        return (says.metavar or name.upper()).strip("[].")
    return says.option or "--" + name.replace("_", "-")


def nearest_to(name: str, keywords: Iterable[Keyword]) -> Keyword | None:
    """Return the parameter that a wrong name most likely means, by spelling or by what is tried."""
    known: dict[str, Keyword] = {}
    for each in keywords:
        option = each.option.lstrip("-").replace("-", "_")
        known |= dict.fromkeys((each.name, option, *each.says.tried), each)
    found = difflib.get_close_matches(name, known, 1)
    return known[found[0]] if found else None
