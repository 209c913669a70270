"""Dataclasses that are finished when they are needed.

The standard library writes and compiles six methods of each: a fifth of the time of a short run,
half of whose classes have no part in it. All that is different here is when that is done: before
the first instance, or when somebody asks for the fields or the signature.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: Any = None, /, **options: Any) -> Any:
        """`dataclasses.dataclass`, but for when."""
        if cls is None:
            return functools.partial(dataclass, **options)
        made = dataclasses.dataclass(**options)
        if cls.__new__ is not object.__new__ and not hasattr(cls.__new__, "finishes"):
            return made(cls)
        _defer(cls, made)
        return cls


_ASKED_FOR: Final = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
_ONE_BY_ONE: Final = threading.RLock()


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
