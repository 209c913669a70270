"""What a command does not wait for: modules that it never uses, and that others would import."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, Final, get_args

_PLAIN_NUMBERS: Final = {
    int: re.compile("-?[0-9]{1,15}"),
    float: re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?(e-?[0-9]{1,2})?"),
}
# Most of the time that special functions take to import goes into these: what scipy has around
# them, and a library behind that, which takes hold of every public name of numpy. Few runs look.
_PUT_OFF: Final = {
    "numpy": ("char", "ctypeslib", "f2py", "ma", "random", "rec", "strings", "testing"),
    "scipy": ("special",),
}
_TRUE_ONE_COMES: Final = threading.RLock()


class _PutOff(ModuleType):
    """A part of a package in the place of the true one, which comes when it is looked into.

    What lies in it can be imported alone.
    """

    def __init__(self, name: str, path: list[str]) -> None:
        super().__init__(name)
        self.__path__ = path

    def __getattr__(self, name: str) -> Any:
        package, _, part = self.__name__.rpartition(".")
        with _TRUE_ONE_COMES:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
            module = importlib.import_module(self.__name__)
            setattr(sys.modules[package], part, module)
        return getattr(module, name)


def put_off() -> None:
    """Have parts of packages imported when something is looked for in them, and not before.

    For a process of our own; a library would leave alone what others import.
    """
    importlib.import_module("numpy")  # all commands need it, and it knows its parts
    for package, every in _PUT_OFF.items():
        parts = [part for part in every if f"{package}.{part}" not in sys.modules]
        spec = importlib.util.find_spec(package) if parts else None
        homes = [Path(home) for home in (spec and spec.submodule_search_locations) or ()]
        for part in parts:
            name = f"{package}.{part}"
            folders = [str(home / part) for home in homes if (home / part).is_dir()]
            if folders or any((home / f"{part}.py").is_file() for home in homes):
                sys.modules[name] = module = _PutOff(name, folders)
                if package in sys.modules:
                    setattr(sys.modules[package], part, module)


def quickly(parameters: Iterable[Any], kinds: Mapping[str, Any]) -> list[Any]:
    """Parameters that Typer reads, but for values that are what they should be.

    Defaults, and plain words of what parameters are annotated with: what reads all others, and
    refuses them, is a library of its own, which takes long to import.
    """
    all_of_them = list(parameters)
    for parameter in all_of_them:
        if "process_value" in vars(parameter):
            continue
        hint = kinds.get(parameter.name)
        hint = getattr(hint, "__origin__", hint)
        wanted = {*(get_args(hint) or (hint,))} - {type(None)}
        kind = wanted.pop() if len(wanted) == 1 else None
        parameter.process_value = functools.partial(
            _as_it_is, parameter, parameter.process_value, kind
        )
    return all_of_them


def _as_it_is(
    parameter: Any, process: Callable[[Any, Any], Any], kind: Any, ctx: Any, value: Any
) -> Any:
    several = parameter.multiple or parameter.nargs != 1
    if value is not parameter.default or parameter.required:
        if several or not _is_plain(value, kind):
            return process(ctx, value)
        value = kind(value)
    value = () if several and value is None else value
    return value if parameter.callback is None else parameter.callback(ctx, parameter, value)


def _is_plain(value: Any, kind: Any) -> bool:
    """Whether there is one way to read a word as this, which is `kind(word)`."""
    if not isinstance(value, str) or not isinstance(kind, type):
        return isinstance(value, bool) and kind is bool
    if kind in _PLAIN_NUMBERS:
        return _PLAIN_NUMBERS[kind].fullmatch(value) is not None
    if issubclass(kind, Enum):
        return value in [each.value for each in kind]
    return kind in (str, Path)
