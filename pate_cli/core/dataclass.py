"""Dataclasses that are finished when they are needed.

The standard library writes and compiles six methods of each: a fifth of the time of a short run,
half of whose classes have no part in it. Here that is done before the first instance, or when
somebody asks for the fields or the signature; and three of them are functions with the names of the
fields, not compiled.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
import reprlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: Any = None, /, **options: Any) -> Any:
        """`dataclasses.dataclass`, but for when."""
        if cls is None:
            return functools.partial(dataclass, **options)
        made = functools.partial(_made, **options)
        if cls.__new__ is not object.__new__ and not hasattr(cls.__new__, "finishes"):
            return made(cls)
        _defer(cls, made)
        return cls


_ASKED_FOR: Final = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
_ONE_BY_ONE: Final = threading.RLock()


def _made(cls: Any, *, frozen: bool = False, eq: bool = True, **options: Any) -> Any:
    """What `dataclasses.dataclass` makes of a class, but for what is compiled."""
    own, shows = vars(cls).copy(), options.pop("repr", True)
    made: Any = dataclasses.dataclass(frozen=frozen, eq=False, repr=False, **options)(cls)
    fields = dataclasses.fields(made)
    if shows and "__repr__" not in own:
        made.__repr__ = _shown([field.name for field in fields if field.repr])
    if eq and "__eq__" not in own:
        made.__eq__ = _equal(_values([field.name for field in fields if field.compare]))
    # Python itself writes a `__hash__` of None beside an `__eq__` of the class's own.
    if eq and ("__hash__" not in own or (own["__hash__"] is None and "__eq__" in own)):
        hashed = [
            each.name for each in fields if (each.compare if each.hash is None else each.hash)
        ]
        made.__hash__ = _hashed(_values(hashed)) if frozen else None
    made.__dataclass_params__.eq, made.__dataclass_params__.repr = eq, shows
    return made


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)


def _shown(names: list[str]) -> Callable[[Any], str]:
    @reprlib.recursive_repr()
    def shown(self: Any) -> str:
        values = (f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({', '.join(values)})"

    return shown


def _equal(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], Any]:
    def equal(self: Any, other: object) -> Any:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    return equal


def _hashed(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    return lambda self: hash(values(self))


def _defer(cls: Any, made: Any) -> None:
    todo = [made]
    done = False

    def finish() -> None:
        nonlocal done
        # Who comes meanwhile waits; but not what makes it, which looks at it as well.
        with _ONE_BY_ONE:
            if todo:
                for name in _ASKED_FOR:
                    delattr(cls, name)
                todo.pop()(cls)
                done = True

    # The way of every instance, of one from another process, too. It stays: once a class had such a
    # method, Python refuses to make instances without.
    def new(kind: type, /, *_: object, **__: object) -> Any:
        if not done:
            finish()
        return object.__new__(kind)

    new.finishes = True  # type: ignore[attr-defined]  # a mark
    cls.__new__ = new
    cls.__signature__ = _Signature()
    for name in _ASKED_FOR:
        setattr(cls, name, _Late(name, finish))


class _Late:
    """An attribute that is there when the class is finished."""

    def __init__(self, name: str, finish: Any) -> None:
        self._name, self._finish = name, finish

    def __get__(self, instance: object, owner: type) -> Any:
        self._finish()
        return getattr(owner, self._name)


class _Signature:
    """How instances are made, which `__new__` does not tell."""

    def __get__(self, instance: object, owner: Any) -> inspect.Signature:
        dataclasses.fields(owner)
        _self, *others = inspect.signature(owner.__init__).parameters.values()
        return inspect.Signature(others, return_annotation=None)
