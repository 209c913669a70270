"""Keywords: what a verb's signature says of a parameter, joined with what is said of its name.

A verb is an ordinary function: names, types and defaults stand in its signature, where readers look
for them. Here stand, once for all verbs, what a type takes and what only some names have beside it;
help.ini has help and group of each name. Options, both helps, completion, checks, "did you mean",
docstrings and the reference page are made from `keywords_of(verb)`.
"""

from __future__ import annotations

import difflib
import enum
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from numbers import Integral
from os import PathLike
from sys import float_info
from typing import Any, Final, TypeAlias

from pate_cli.core import words
from pate_cli.core.errors import ParameterError, UsageError, quoted
from pate_cli.core.said import texts_of

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
        """Return whether a value is of the type; True and False are no numbers.

        Nor is a whole number a real one that is beyond all of those.
        """
        if isinstance(value, bool):
            return self.type is bool
        beyond = self.type is _REAL and isinstance(value, int) and abs(value) > float_info.max
        return isinstance(value, self.type) and not beyond


_REAL: Final = (int, float)


KINDS: Final = {
    "bool": Kind(bool, "True or False", ""),
    "int": Kind(Integral, "a whole number", "N"),
    "Count": Kind(Integral, "a whole number", "N", "at least 1", lambda count: count >= 1),
    "float": Kind(_REAL, "a number", "X"),
    "Epsilon": Kind(_REAL, "a number", "E", "above 0", lambda epsilon: epsilon > 0),
    "Delta": Kind(_REAL, "a number", "X", "above 0 and below 1", lambda delta: 0 < delta < 1),
    "Order": Kind(_REAL, "a number", "X", "above 1", lambda order: 1 < order < inf),
    "Share": Kind(
        _REAL, "a number", "X", "at least 0 and at most 1", lambda share: 0 <= share <= 1
    ),
    "str": Kind(str, "text", "TEXT"),
    "FileName": Kind(str, "text", "FILE"),
    "File": Kind((str, PathLike), "a path", "FILE"),
    "None": Kind(type(None), "None", ""),
}
"""Kinds that are checked as they are given."""
_NUMBERS: Final = {Integral: int, _REAL: float}

ARGUMENTS: Final = "Arguments"
PYTHON: Final = "Python alone"
_TABLE: Final = "= "
"""How the titles of tables of help.ini begin, which are no headings of the help."""


@dataclass(frozen=True)
class HelpEntry:
    """Entry of help.ini: the help and the group of a parameter.

    Attributes:
        help: one or two sentences, which name neither the type nor the range.
        group: the heading under which help lists it.
        everyday: whether `--help` shows it; `--help-all` shows all.
    """

    help: str
    group: str
    everyday: bool


_TEXTS: Final = texts_of(__file__, "help.ini")
_TABLES: Final = {
    title.removeprefix(_TABLE): rows for title, rows in _TEXTS.items() if title.startswith(_TABLE)
}
OFF: Final = _TABLES["off"]
"""Options that stand for False, by what they switch off."""
GONE: Final = _TABLES["gone"]
"""What completes "... is gone: ", by the name of the parameter or of its option."""


def _read() -> dict[tuple[str, str], HelpEntry]:
    """Return the entries of help.ini by verb and name; those of all verbs have no verb."""
    found: dict[tuple[str, str], HelpEntry] = {}
    for title, texts in _TEXTS.items():
        if not title.startswith(_TABLE):
            told, _, group = title.rpartition(": ")
            verbs = told.replace("--help-all", "").split() or [""]
            for name, text in texts.items():
                entry = HelpEntry(text.format_map(vars(words)), group, "--help-all" not in told)
                found |= {(verb, name): entry for verb in verbs}
    return found


ENTRIES: Final = _read()
HEADINGS: Final = tuple(dict.fromkeys(entry.group for entry in ENTRIES.values()))
"""Groups of parameters, in the order of the help."""


def of_votes(name: str) -> bool:
    """Return whether a parameter says how votes are read: help.ini has it under [Votes]."""
    entry = ENTRIES.get(("", name))
    return entry is not None and entry.group == "Votes"


def anywhere(name: str) -> HelpEntry | None:
    """Return what is said of a name, for whatever verb; None if nothing is."""
    found = (entry for (_, each), entry in ENTRIES.items() if each == name)
    return ENTRIES.get(("", name)) or next(found, None)


class Keyword:
    """A parameter as one verb has it, for both faces.

    Attributes:
        name: the Python keyword.
        says: its help and group.
        default: its default; `Keyword.required` where it must be given.
        argument: whether the command line has it without an option in front.
        hidden: whether Python alone has it.
        option: the long option, such as `--target-epsilon`, or an argument in capitals.
        spelled: the option as help writes it, its short form first.
        flag: whether the command line takes it without a value.
        several: whether the command line takes more than one, and the value is a list.
        off: the flag that stands for False; None where there is none.
        word: the enumeration of the words that it takes, if it takes words.
        choices: these words.
        kinds: of its values, where they are checked as they are given.
        strict: whether all types that it takes are checked so; arrays and amounts check themselves.
        range: the range in words, such as `above 0 and below 1`; empty if there is none.
        metavar: how help writes the value; empty for a flag.
    """

    required = inspect.Parameter.empty

    def __init__(
        self, name: str, says: HelpEntry, types: Sequence[str] = ("bool",), default: Any = False
    ) -> None:
        """Join what is said of a name with the types in a signature, as they are written there."""
        self.name, self.says, self.default = name, says, default
        self.argument, self.hidden = says.group == ARGUMENTS, says.group == PYTHON
        metavars = _TABLES["metavar"]
        self.option = _TABLES["option"].get(name) or dashed(name)
        if self.argument:
            self.option = metavars.get(name) or name.upper()
        self.spelled = ", ".join(filter(None, (_TABLES["letter"].get(name), self.option)))
        self.flag = set(types) <= {"bool", "None"}
        self.several = types[-1 - ("None" in types)].startswith("Sequence")
        off = anywhere(OFF.get(name, "")) if "bool" in types else None
        self.off = None if off is None else Keyword(OFF[name], off)
        found = (getattr(words, each, None) for each in types)
        self.word: Any = next((each for each in found if isinstance(each, enum.EnumMeta)), None)
        self.choices = tuple(map(str, self.word or ()))
        self.kinds = [KINDS[each] for each in types if each in KINDS]
        self._takes_none, self._takes_text = "None" in types, "str" in types
        own_word = () if self.word is None else (self.word.__name__,)
        self.strict = set(types) <= {*KINDS, *own_word}
        self.range = "".join(kind.range for kind in self.kinds)
        written = [metavars.get(name), *(_TABLES["metavar of type"].get(t.lower()) for t in types)]
        written += ["|".join(self.choices), *(kind.metavar for kind in self.kinds)]
        self.metavar = "" if self.flag else next(filter(None, written), "")

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
            fix = f"to keep none, say {self.off.option}"
            raise UsageError(f"{self.option} takes the name of a file; {fix}")
        if not self.strict or self._takes_text:
            return text
        for kind in self.kinds:
            if kind.type in _NUMBERS:
                try:
                    return _NUMBERS[kind.type](text)
                except ValueError:
                    wanted = f"{self.option} takes {kind.words}"
                    raise ParameterError(f"{wanted}, got {quoted(text)}") from None
        return text

    def check(self, value: Any) -> None:
        """Refuse a value of the wrong type or outside the range.

        Raises:
            ParameterError: the message names the parameter, what it takes, and the value.
        """
        if value is None and self._takes_none:
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
            ENTRIES.get((called or function.__name__, name)) or ENTRIES["", name],
            tuple(re.split(r" \| (?![^\[]*\])", each.annotation)),
            each.default,
        )
        for name, each in inspect.signature(function).parameters.items()
        if name not in without
    }


def check_all(keywords: Mapping[str, Keyword], given: Mapping[str, Any]) -> None:
    """Check every value, that no two exclude each other, and that none lacks what it goes with.

    Raises:
        UsageError: two of them exclude each other, or one is given without what it goes with.
        ParameterError: a value of the wrong type or out of range.
    """
    for name, value in given.items():
        keywords[name].check(value)
    said = {name: value for name, value in given.items() if value is not keywords[name].default}
    for name in said:
        for other in _TABLES["excludes"].get(name, "").split():
            if other in said:
                both = " and ".join(
                    f"`{each}` False" if said[each] is False else f"`{each}`"
                    for each in (name, other)
                )
                raise UsageError(f"{both} contradict each other; give one of them")
        partners = [n for n in _TABLES["goes with"].get(name, "").split() if n in keywords]
        if partners and said.keys().isdisjoint(partners):
            raise UsageError(f"`{name}` goes with `{partners[0]}`")


def with_options(message: str, keywords: Mapping[str, Keyword]) -> str:
    """Return a message with options where it names keywords in backticks.

    Args:
        message: for a person at a shell.
        keywords: those of the command, whose options come first.
    """

    def option(found: re.Match[str]) -> str:
        name, off = found.groups()
        says = keywords[name].says if name in keywords else anywhere(name)
        if says is None or says.group == PYTHON:
            return found[0]
        if off and name in OFF:
            return dashed(OFF[name])
        return Keyword(name, says).option + (off or "")

    return re.sub(r"`(\w+)`( False)?", option, message)


def dashed(name: str) -> str:
    """Return the option of a name."""
    return "--" + name.replace("_", "-")


def nearest_to(name: str, keywords: Iterable[Keyword]) -> Keyword | None:
    """Return the parameter that a wrong name most likely means, by spelling or by what is tried."""
    known: dict[str, Keyword] = {}
    for each in keywords:
        option = each.option.lstrip("-").replace("-", "_")
        tried = _TABLES["tried"].get(each.name, "").split()
        known |= dict.fromkeys((each.name, option, *tried), each)
    found = difflib.get_close_matches(name, known, 1)
    return known[found[0]] if found else None
