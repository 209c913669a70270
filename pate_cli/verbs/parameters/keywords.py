"""Keywords: what a verb's signature says of a parameter, joined with what the table says.

A verb is an ordinary function: names, types and defaults stand in its signature. `kinds` says what
a type takes, `table` all else, once for all verbs. Options, both helps, completion, checks, "did
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
from typing import Any, Final

from pate_cli.core import words
from pate_cli.core.errors import ParameterError, UsageError, quoted
from pate_cli.verbs.parameters import table
from pate_cli.verbs.parameters.kinds import KINDS, METAVARS, Kind
from pate_cli.verbs.parameters.table import HelpEntry

_NUMBERS: Final = {Integral: int, Real: float}


@dataclass(frozen=True)
class Keyword:
    """A parameter as one verb has it.

    Attributes:
        name: the Python keyword.
        says: its help and group.
        names: the kinds in its annotation, as they are written there.
        default: its default; `Keyword.required` where it must be given.
    """

    name: str
    says: HelpEntry
    names: tuple[str, ...]
    default: Any

    required = inspect.Parameter.empty

    @property
    def option(self) -> str:
        """Return the long option, such as `--target-epsilon`, or an argument in capitals."""
        return _option(self.name, self.says)

    @property
    def spelled(self) -> str:
        """Return the option as help writes it, its short form first."""
        return ", ".join(filter(None, (table.SHORT.get(self.name), self.option)))

    @property
    def argument(self) -> bool:
        """Return whether the command line has it without an option in front."""
        return self.says.group == table.ARGUMENTS

    @property
    def hidden(self) -> bool:
        """Whether Python alone has it."""
        return self.says.group == table.PYTHON

    @property
    def flag(self) -> bool:
        """Whether the command line takes it without a value."""
        return set(self.names) <= {"bool", "None"}

    @property
    def several(self) -> bool:
        """Whether the command line takes more than one, and the value is a list."""
        return self.names[-1 - ("None" in self.names)].startswith("Sequence")

    @property
    def off(self) -> Keyword | None:
        """Return the flag that stands for False; None where there is none."""
        name = table.OFF.get(self.name)
        says = table.anywhere(name or "")
        if name is None or says is None or "bool" not in self.names:
            return None
        return Keyword(name, says, ("bool",), default=False)

    @functools.cached_property
    def word(self) -> Any:
        """Return the enumeration of the words that it takes, if it takes words."""
        found = (getattr(words, name, None) for name in self.names)
        return next((each for each in found if isinstance(each, enum.EnumMeta)), None)

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the words that it takes; none where it takes others."""
        return () if self.word is None else tuple(word.value for word in self.word)

    @property
    def kinds(self) -> list[Kind]:
        """Return the kinds that are checked as they are given."""
        return [KINDS[name] for name in self.names if name in KINDS]

    @property
    def metavar(self) -> str:
        """Return how help writes the value; empty for a flag."""
        if self.flag:
            return ""
        by_kind = [METAVARS[name] for name in self.names if name in METAVARS]
        own = table.METAVARS.get(self.name) or "".join(by_kind[:1]) or "|".join(self.choices)
        return own or self.kinds[0].metavar

    @property
    def range(self) -> str:
        """Return the range in words, such as `above 0 and below 1`; empty if there is none."""
        return "".join(kind.range for kind in self.kinds)

    def complete(self, incomplete: str) -> list[str]:
        """Return the words that begin so, for the shell."""
        return [choice for choice in self.choices if choice.startswith(incomplete)]

    def read(self, text: str) -> Any:
        """Turn a text of the command line into a value.

        Raises:
            ParameterError: the text is no number where one is due.
            UsageError: the text says False of what is a name.
        """
        if self.off is not None and text.lower() in ("false", "none"):
            raise UsageError(f"{self.option} takes a name, and {self.off.option} keeps none")
        if not self.strict or "str" in self.names:
            return text
        for kind in self.kinds:
            if kind.type in _NUMBERS:
                try:
                    return _NUMBERS[kind.type](text)
                except ValueError:
                    wanted = f"{self.option} takes {kind.words}"
                    raise ParameterError(f"{wanted}, got {quoted(text)}") from None
        return text

    @property
    def strict(self) -> bool:
        """Return True if its type is checked here: arrays and amounts check themselves."""
        own = () if self.word is None else (self.word.__name__,)
        return set(self.names) <= {*KINDS, *own}

    def check(self, value: Any) -> None:
        """Refuse a value of the wrong type or outside the range.

        Raises:
            ParameterError: the message names the parameter, what it takes, and the value.
        """
        if value is None and "None" in self.names:
            return
        if self.word is not None and (self.strict or isinstance(value, str)):
            self.word(value)
        elif self.strict:
            taking = [kind for kind in self.kinds if kind.takes(value)]
            if not any(kind.holds(value) for kind in taking):
                wanted = self.range if taking else " or ".join(kind.words for kind in self.kinds)
                raise ParameterError(f"`{self.name}` must be {wanted}, got {quoted(value)}")


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
            name,
            table.said_of(called or function.__name__, name),
            tuple(re.split(r" \| (?![^\[]*\])", each.annotation)),
            each.default,
        )
        for name, each in inspect.signature(function).parameters.items()
        if name not in without
    }


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
        for other in table.EXCLUDES.get(name, ()):
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
        says = keywords[name].says if name in keywords else table.anywhere(name)
        if says is None or says.group == table.PYTHON:
            return found[0]
        if off and name in table.OFF:
            return dashed(table.OFF[name])
        return _option(name, says) + (off or "")

    return re.sub(r"`(\w+)`( False)?", option, message)


def _option(name: str, says: HelpEntry) -> str:
    if says.group == table.ARGUMENTS:
        return table.METAVARS.get(name) or name.upper()
    return table.OPTIONS.get(name) or dashed(name)


def dashed(name: str) -> str:
    """Return the option of a name."""
    return "--" + name.replace("_", "-")


def nearest_to(name: str, keywords: Iterable[Keyword]) -> Keyword | None:
    """Return the parameter that a wrong name most likely means, by spelling or by what is tried."""
    known: dict[str, Keyword] = {}
    for each in keywords:
        option = each.option.lstrip("-").replace("-", "_")
        known |= dict.fromkeys((each.name, option, *table.TRIED.get(each.name, ())), each)
    found = difflib.get_close_matches(name, known, 1)
    return known[found[0]] if found else None
