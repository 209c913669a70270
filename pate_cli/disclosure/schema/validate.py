"""Does a value fit a JSON Schema? As much of draft 2020-12 as the report's own needs.

A keyword that is not known here is an error of the schema, and never passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from pate_cli.core.errors import quoted

_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: _number(value),
    "integer": lambda value: _number(value) and value == int(value),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_NOTES: Final = {"$schema", "$id", "$defs", "title", "description", "then", "else"}


def faults(value: Any, schema: dict[str, Any]) -> Iterator[str]:
    """What is wrong with a value that JSON gave, each with its place; nothing if it fits.

    Numbers are taken to be finite.
    """
    yield from _Validation(schema).faults(value, schema, "")


class _Validation:
    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root

    def fits(self, value: Any, schema: Any) -> bool:
        return next(self.faults(value, schema, ""), None) is None

    def faults(self, value: Any, schema: Any, at: str) -> Iterator[str]:
        for keyword, wanted in schema.items():
            if keyword in _NOTES:
                continue
            if keyword == "$ref":
                yield from self.faults(value, self._at(wanted), at)
            elif keyword in ("properties", "additionalProperties", "items"):
                yield from self._inside(keyword, value, schema, at)
            elif keyword == "if":
                branch = schema.get("then" if self.fits(value, wanted) else "else", {})
                yield from self.faults(value, branch, at)
            elif not self._holds(keyword, value, wanted):
                yield _worded(keyword, wanted, at)

    def _at(self, reference: str) -> Any:
        found = self._root
        for name in reference.removeprefix("#/").split("/"):
            found = found[name]
        return found

    def _inside(self, keyword: str, value: Any, schema: Any, at: str) -> Iterator[str]:
        known = schema.get("properties", {})
        if keyword == "items" and isinstance(value, list):
            for place, item in enumerate(value):
                yield from self.faults(item, schema["items"], _joined(at, str(place)))
        elif keyword == "properties" and isinstance(value, dict):
            for name in known.keys() & value.keys():
                yield from self.faults(value[name], known[name], _joined(at, name))
        elif keyword == "additionalProperties" and isinstance(value, dict):
            for name in value.keys() - known.keys():
                if schema[keyword] is False:
                    yield f"{at or 'the report'} has a field {quoted(name)} that is not known"
                else:
                    yield from self.faults(value[name], schema[keyword], _joined(at, name))

    def _holds(self, keyword: str, value: Any, wanted: Any) -> bool:
        match keyword:
            case "type":
                kinds = wanted if isinstance(wanted, list) else [wanted]
                return any(_TYPES[kind](value) for kind in kinds)
            case "const":
                return _same(value, wanted)
            case "enum":
                return any(_same(value, one) for one in wanted)
            case "required":
                return not isinstance(value, dict) or set(wanted) <= value.keys()
            case "minimum":
                return not _number(value) or value >= wanted
            case "exclusiveMinimum":
                return not _number(value) or value > wanted
            case "exclusiveMaximum":
                return not _number(value) or value < wanted
            case "minLength":
                return not isinstance(value, str) or len(value) >= wanted
            case "pattern":
                return not isinstance(value, str) or re.search(wanted, value) is not None
            case "minItems":
                return not isinstance(value, list) or len(value) >= wanted
            case "uniqueItems":
                return not isinstance(value, list) or all(
                    item not in value[:place] for place, item in enumerate(value)
                )
            case "oneOf":
                return sum(self.fits(value, one) for one in wanted) == 1
        raise NotImplementedError(keyword)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _joined(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _worded(keyword: str, wanted: Any, at: str) -> str:
    where = at or "the report"
    if keyword == "required":
        return f"{where} lacks one of {', '.join(wanted)}"
    if keyword == "oneOf":
        return f"{where} has none of the forms that it may have"
    return f"{where} is not as it must be: {keyword} {wanted}"
