"""What a command does not wait for: modules that it never uses, and that others would import."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

# Two fifths of the time that scipy.special takes to import go into these: a library behind it takes
# hold of every public name of numpy, of which it uses none of these. Nobody here does, either.
_PUT_OFF = ("ctypeslib", "f2py", "testing")


def put_off() -> None:
    """Have parts of numpy imported when something is looked for in them, and not before.

    For a process of our own; a library would leave alone what others import.
    """
    numpy = importlib.import_module("numpy")
    for part in _PUT_OFF:
        name = f"numpy.{part}"
        found = None if name in sys.modules else importlib.util.find_spec(name)
        if found is None or found.loader is None:
            continue
        found.loader = importlib.util.LazyLoader(found.loader)
        module = importlib.util.module_from_spec(found)
        sys.modules[name] = module
        found.loader.exec_module(module)
        setattr(numpy, part, module)


def quickly(parameters: Iterable[Any], kinds: Mapping[str, Any]) -> list[Any]:
    """Parameters that Typer reads, but for values that are what they should be.

    A default, and a word of which a text is wanted, by what parameters are annotated with: what
    reads all others is a library of its own, which takes long to import.
    """
    all_of_them = list(parameters)
    for parameter in all_of_them:
        if "process_value" in vars(parameter):
            continue
        hint = kinds.get(parameter.name)
        kind = getattr(hint, "__origin__", hint)
        texts = {*(get_args(kind) or (kind,)), type(None)} == {str, type(None)}
        parameter.process_value = functools.partial(
            _as_it_is, parameter, parameter.process_value, texts
        )
    return all_of_them


def _as_it_is(
    parameter: Any, process: Callable[[Any, Any], Any], texts: bool, ctx: Any, value: Any
) -> Any:
    several = parameter.multiple or parameter.nargs != 1
    default = value is parameter.default and not parameter.required
    if not (default or (texts and isinstance(value, str))):
        return process(ctx, value)
    value = () if several and value is None else value
    return value if parameter.callback is None else parameter.callback(ctx, parameter, value)
