"""Checks of arguments: each public function refuses wrong arguments before it reads any vote."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from pate_cli.core.errors import PateError, UsageError
from pate_cli.core.progress import progress
from pate_cli.verbs.keywords import GONE, Keyword, check_all, keywords_of, nearest_to

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

_WIDTH: Final = 96


def brief(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Shorten the traceback of a PateError, unless PATE_DEBUG is set.

    The shortened traceback only shows the caller's line and one line of pate.
    """

    @functools.wraps(function)
    def called(*args: _Given.args, **given: _Given.kwargs) -> _Result:
        __tracebackhide__ = True
        try:
            return function(*args, **given)
        except PateError as error:
            if os.environ.get("PATE_DEBUG"):
                raise
            raise error.with_traceback(None) from None

    return called


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
    if keyword.default not in (None, False, (), Keyword.required):
        text += f" Default: {keyword.default}."
    return textwrap.fill(
        text, _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8, break_long_words=False
    )
