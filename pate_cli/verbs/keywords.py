"""Parameters of verbs: a `Keyword` describes each of them, and decorators check the arguments.

A verb is an ordinary function, and its signature has names, types and defaults of parameters. This
module says once for all verbs which values a type allows. For each parameter, help.ini has a help
text, under the heading that the parameter has in `--help-all`. Further tables in help.ini are for
special cases, for example for an option that differs from the name of its parameter. From
`keywords_of(verb)` come the options, `--help`, `--help-all`, completion, checks, "did you mean",
docstrings and the reference page.
"""

from __future__ import annotations

import contextlib
import difflib
import enum
import functools
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from numbers import Integral
from os import PathLike
from sys import float_info
from typing import Any, Concatenate, Final, ParamSpec, TypeAlias, TypeVar

from pate_cli.core import words
from pate_cli.core.errors import ParameterError, UsageError, brief, quoted
from pate_cli.core.progress import progress
from pate_cli.core.said import texts_of

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

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
"""A class or probabilities for each query, as an array, a table, or a file."""


@dataclass(frozen=True)
class Kind:
    """The values that a type in a signature allows.

    Attributes:
        type: the Python type of the values.
        words: words for one value of the type in messages, such as `a number`.
        metavar: the placeholder for a value in help, such as FILE.
        range: the allowed range in words; empty if every value of the type is allowed.
        holds: a function that returns whether a value of the type is in the allowed range.
    """

    type: Any
    words: str
    metavar: str
    range: str = ""
    holds: Callable[[Any], bool] = lambda _value: True

    def takes(self, value: object) -> bool:
        """Return whether a value has the type.

        True and False are not numbers. A type for real numbers does not allow a whole number that
        is too large for a float.
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
"""The kinds of values that `check` checks without converting them, by the name of their type."""
_WIDTH: Final = 96
_NUMBERS: Final = {Integral: int, _REAL: float}

ARGUMENTS: Final = "Arguments"
PYTHON: Final = "Python alone"
_TABLE: Final = "= "
"""The title of a table in help.ini begins with this text; other titles are headings of the help."""


@dataclass(frozen=True)
class HelpEntry:
    """An entry of help.ini: the help text of a parameter, and its heading in the help.

    Attributes:
        help: one or two sentences, which name neither the type nor the range.
        group: the heading under which help lists the parameter.
        everyday: whether `--help` shows the parameter; `--help-all` shows all parameters.
    """

    help: str
    group: str
    everyday: bool


_TEXTS: Final = texts_of(__file__, "help.ini")
_TABLES: Final = {
    title.removeprefix(_TABLE): rows for title, rows in _TEXTS.items() if title.startswith(_TABLE)
}
OFF: Final = _TABLES["off"]
"""Names of options that set a parameter to False, by the name of this parameter."""
GONE: Final = _TABLES["gone"]
"""What to use instead of a removed parameter or option, by the removed name."""


def _read() -> dict[tuple[str, str], HelpEntry]:
    """Return the entries of help.ini by verb and name; entries for all verbs have an empty verb."""
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
    """Return whether help.ini lists a parameter under a heading about the reading of votes.

    The heading is [Votes], or begins with "For votes" if only some formats have the parameter.
    """
    entry = ENTRIES.get(("", name))
    return entry is not None and entry.group.startswith(("Votes", "For votes"))


def anywhere(name: str) -> HelpEntry | None:
    """Return the entry for a parameter in help.ini; None if no verb has such an entry.

    An entry for all verbs is preferred to an entry for one verb.
    """
    found = (entry for (_, each), entry in ENTRIES.items() if each == name)
    return ENTRIES.get(("", name)) or next(found, None)


class Keyword:
    """A parameter of one verb, for Python and for the command line.

    Attributes:
        name: the name of the parameter in Python.
        says: the entry for the parameter in help.ini, with its help text.
        default: the default value; `Keyword.required` if the caller must give a value.
        stated: the default value as help states it; empty if it is no value, such as None.
        argument: whether the command line takes the value without an option in front.
        hidden: whether only Python has the parameter, and the command line does not.
        option: the long option, such as `--target-epsilon`, or the argument in capitals.
        spelled: the option as help writes it, with the short form first.
        flag: whether the option stands on the command line without a value.
        several: whether the command line takes several values, as a list.
        off: the flag that sets the parameter to False; None if there is no such flag.
        word: the enumeration of the allowed words; None if the values are not words.
        choices: the allowed words; empty if the values are not words.
        kinds: the entries of `KINDS` for the types of the parameter; not every type has an entry.
        strict: True if `check` can check every value of the parameter; False if code outside this
            module must check some values, for example an array of votes.
        range: the range in words, such as `above 0 and below 1`; empty if there is no range.
        metavar: the placeholder for the value in help; empty for a flag.
    """

    required = inspect.Parameter.empty

    def __init__(
        self, name: str, says: HelpEntry, types: Sequence[str] = ("bool",), default: Any = False
    ) -> None:
        """Make a parameter from its entry in help.ini and its types, as the signature has them."""
        self.name, self.says, self.default = name, says, default
        self.stated = "" if default in (None, False, (), Keyword.required) else str(default)
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
        """Return the words that begin with this text, for completion in the shell."""
        return [choice for choice in self.choices if choice.startswith(incomplete)]

    def read(self, text: str) -> Any:
        """Turn a text of the command line into a value.

        Raises:
            ParameterError: the parameter needs a number, and the text is no number.
            UsageError: the parameter takes the name of a file, and the text is False or None; the
                message names the flag to use instead.
        """
        if self.off is not None and text.lower() in ("false", "none"):
            fix = f"if you want none, give {self.off.option}"
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
        """Refuse a value that has the wrong type or is out of range.

        Raises:
            ParameterError: the message names the parameter, its range or type, and the value.
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
    """Return one `Keyword` for each parameter of a function, by name and in order.

    Args:
        function: the function whose signature has the parameters.
        called: the name of a verb, whose own entries in help.ini are preferred to entries for all
            verbs; by default the name of `function`.
        without: names of parameters that are left out.

    Raises:
        LookupError: help.ini has no entry for a parameter.
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
    """Check the values of parameters, and whether parameters exclude or need each other.

    Raises:
        UsageError: two parameters exclude each other, or one needs another that is missing.
        ParameterError: a value has the wrong type or is out of range.
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
            raise UsageError(f"`{name}` needs `{partners[0]}`")


def with_options(message: str, keywords: Mapping[str, Keyword]) -> str:
    """Return a message for the shell, in which options replace the keywords in backticks.

    Args:
        message: a message with Python keywords in backticks.
        keywords: the keywords of the command. For a parameter that the command does not have, the
            message gets the option of another verb.
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
    """Return the command-line option for a parameter."""
    return "--" + name.replace("_", "-")


def nearest_to(name: str, keywords: Iterable[Keyword]) -> Keyword | None:
    """Return the parameter whose name is most similar to a wrong name; None if none is similar."""
    known: dict[str, Keyword] = {}
    for each in keywords:
        option = each.option.lstrip("-").replace("-", "_")
        tried = _TABLES["tried"].get(each.name, "").split()
        known |= dict.fromkeys((each.name, option, *tried), each)
    found = difflib.get_close_matches(name, known, 1)
    return known[found[0]] if found else None


# --- verbs, which refuse wrong arguments before they read any vote -------------------------------


def verb(work: str) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """Make a verb, which is a public function such as `aggregate`, from a function without a body.

    The verb checks its arguments, and then calls another function for the work. `inspect`, type
    checkers and editors see the signature of the function without a body. The docstring of the verb
    gets a paragraph about each parameter.

    Args:
        work: module and name of the function for the work, such as `reports.record_cost`;
            the function gets one mapping with all parameters by name.

    Raises:
        UsageError: the call has a keyword that the verb does not have; the message names the
            nearest keyword.
        ParameterError: a value has the wrong type or is out of range.
    """
    return lambda function: like(function, work)(function)


def like(
    model: Callable[_Given, Any], work: str
) -> Callable[[Callable[..., _Result]], Callable[_Given, _Result]]:
    """Make a public function that takes the parameters of `model`; `work` is as in `verb`."""
    module, _, name = work.partition(".")

    def made(function: Callable[..., _Result]) -> Callable[_Given, _Result]:
        @functools.wraps(function)
        def called(**asked: Any) -> Any:
            return getattr(importlib.import_module(f"{__package__}.{module}"), name)(asked)

        return _behind_door(called, model, function.__name__)

    return made


def opened_by(
    model: Callable[_Given, Any],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, _Given], None]]:
    """Decorate the `__init__` of a class: it takes the parameters of `model`, and checks them."""
    return lambda init: _behind_door(init, model, init.__qualname__.partition(".")[0])


def _behind_door(
    function: Callable[..., Any], model: Callable[..., Any], called: str
) -> Callable[..., Any]:
    """Return a function that checks its arguments by a signature, and then calls `function`.

    Args:
        function: the function that does the work.
        model: the function whose signature and parameters the arguments must fit.
        called: the name of the public function, or of the class if `function` is an `__init__`;
            messages show this name.
    """
    keywords, signature = keywords_of(model), inspect.signature(model)
    function.__doc__, methods = _told(function, keywords), function.__name__ == "__init__"

    @brief
    @functools.wraps(function)
    def door(*args: Any, **given: Any) -> Any:
        for name in given:
            if name not in keywords:
                raise UsageError(unknown(called, name, keywords))
        found = signature.bind(*args[methods:], **given)
        for name, value in found.arguments.items():
            if getattr(value, "ndim", None) == 0:  # Records and reports cannot store numpy numbers.
                found.arguments[name] = value.item()
        check_all(keywords, found.arguments)
        found.apply_defaults()
        asked = found.arguments
        with contextlib.ExitStack() as shown:
            if asked.get("progress") is True:
                asked["progress"] = shown.enter_context(progress(called))
            return function(*args[:methods], **asked)

    own = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)] if methods else []
    shown = signature.replace(parameters=[*own, *signature.parameters.values()])
    door.__dict__["__signature__"] = shown
    return door


def unknown(called: str, name: str, keywords: Mapping[str, Keyword]) -> str:
    """Return the message about a keyword that a verb does not have."""
    if name in GONE:
        return f"`{name}` is gone: {GONE[name]}"
    if name == "dry_run":
        return f"{called} has no `dry_run`; call `quote` with the same keywords, it spends nothing"
    near = nearest_to(name, keywords.values())
    meant = "" if near is None else f"; did you mean `{near.name}`?"
    return f"{called} takes no `{name}`{meant}"


def _told(function: Callable[..., Any], keywords: Mapping[str, Keyword]) -> str:
    """Return the docstring of a verb, with a paragraph for each parameter before `Raises`."""
    said, raises, errors = inspect.cleandoc(function.__doc__ or "").partition("\n\nRaises:")
    told = "\n".join(map(_paragraph, keywords.values()))
    return f"{said}\n\nArgs:\n{told}{raises}{errors}"


def _paragraph(keyword: Keyword) -> str:
    """Return the paragraph of a docstring about one parameter: its help, range and default."""
    text = f"{keyword.name}: {keyword.says.help}"
    if keyword.off is not None:
        text += f" False: {keyword.off.says.help}"
    if keyword.range:
        text += f" Must be {keyword.range}."
    if keyword.stated:
        text += f" Default: {keyword.stated}."
    return textwrap.fill(
        text, _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8, break_long_words=False
    )
