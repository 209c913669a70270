"""Keywords: what a verb's signature says of a parameter, joined with what is said of its name.

A verb is an ordinary function: names, types and defaults stand in its signature, where readers look
for them. Here stand, once for all verbs, what a type takes and what only some names have beside it;
help.ini has help and group of each name. Options, both helps, completion, checks, "did you mean",
docstrings and the reference page are made from `keywords_of(verb)`.
"""

from __future__ import annotations

import difflib
import enum
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from os import PathLike
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
_NUMBERS: Final = {Integral: int, Real: float}

ARGUMENTS: Final = "Arguments"
PYTHON: Final = "Python alone"

OPTIONS: Final = {
    "as_json": "--json",
    "as_table": "--table",
    "label_format": "--format",
    "out": "--output",
    "predictions": "--student",
    "record": "--spend",
    "reports": "--verify",
}
"""Options that are not the name with dashes."""
SHORT: Final = {"mechanism": "-m", "out": "-o", "quiet": "-q"}
"""Options of one letter."""
OFF: Final = {"record": "no_record", "with_dp_accounting": "without_dp_accounting"}
"""Options that stand for False, by what they switch off."""
METAVARS: Final = {
    "agreement": "LOW:HIGH",
    "checkpoint": "FOLDER",
    "engine": "NAME|ADDRESS",
    "ensemble": "NAME",
    "external": "FILE",
    "given": "FILE",
    "id_column": "NAME",
    "reports": "REPORT",
    "synthetic": "NAME=N,...",
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
"""How help writes the value of a parameter, or of a type that is checked by what reads it."""
EXCLUDES: Final = {
    "as_json": ("as_table",),
    "compare": ("per_query", "plot", "target_epsilon"),
    "export_rdp": ("as_json", "as_table"),
    "html": ("as_json", "as_table"),
    "labels": ("classes",),
    "order": ("orders",),
    "record": ("ensemble",),
}
"""Parameters that cannot be given together."""
TRIED: Final = {
    "classes": ("num_classes", "n_classes"),
    "label_names": ("names", "class_names"),
    "max_queries": ("limit", "rows", "num_queries"),
    "mechanism": ("aggregator", "method"),
    "normalise": ("normalize",),
    "out": ("labels", "into"),
    "record": ("record_file",),
    "sigma1": ("sigma_threshold",),
    "sigma2": ("sigma_gnmax", "sigma", "noise"),
    "target_epsilon": ("epsilon", "eps", "target"),
    "teachers": ("num_teachers", "n_teachers"),
    "workers": ("jobs", "n_jobs", "processes"),
}
"""Other names that people try."""


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


def _read() -> dict[tuple[str, str], HelpEntry]:
    """Return the entries of help.ini by verb and name; those of all verbs have no verb."""
    found: dict[tuple[str, str], HelpEntry] = {}
    for title, texts in texts_of(__file__, "help.ini").items():
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
        if self.argument:
            return METAVARS.get(self.name) or self.name.upper()
        return OPTIONS.get(self.name) or dashed(self.name)

    @property
    def spelled(self) -> str:
        """Return the option as help writes it, its short form first."""
        return ", ".join(filter(None, (SHORT.get(self.name), self.option)))

    @property
    def argument(self) -> bool:
        """Return whether the command line has it without an option in front."""
        return self.says.group == ARGUMENTS

    @property
    def hidden(self) -> bool:
        """Whether Python alone has it."""
        return self.says.group == PYTHON

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
        says = anywhere(OFF.get(self.name, ""))
        if says is None or "bool" not in self.names:
            return None
        return Keyword(OFF[self.name], says, ("bool",), default=False)

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
        own = (METAVARS[name] for name in (self.name, *self.names) if name in METAVARS)
        return next(own, "|".join(self.choices)) or self.kinds[0].metavar

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
            fix = f"to keep none, say {self.off.option}"
            raise UsageError(f"{self.option} takes the name of a file; {fix}")
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
            ENTRIES.get((called or function.__name__, name)) or ENTRIES["", name],
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
        for other in EXCLUDES.get(name, ()):
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
        if says is None or says.group == PYTHON:
            return found[0]
        if off and name in OFF:
            return dashed(OFF[name])
        return Keyword(name, says, (), None).option + (off or "")

    return re.sub(r"`(\w+)`( False)?", option, message)


def dashed(name: str) -> str:
    """Return the option of a name."""
    return "--" + name.replace("_", "-")


def nearest_to(name: str, keywords: Iterable[Keyword]) -> Keyword | None:
    """Return the parameter that a wrong name most likely means, by spelling or by what is tried."""
    known: dict[str, Keyword] = {}
    for each in keywords:
        option = each.option.lstrip("-").replace("-", "_")
        known |= dict.fromkeys((each.name, option, *TRIED.get(each.name, ())), each)
    found = difflib.get_close_matches(name, known, 1)
    return known[found[0]] if found else None
