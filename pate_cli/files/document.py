"""Documents: write frozen dataclasses as JSON, and read them again by their annotations.

A dataclass is the schema of its document. `decoded` accepts exactly what the annotations allow: no
boolean for a number, no number for a text, no missing or unknown field. The constructor of each
dataclass checks whether the values of its fields are in range. Messages describe a fault in the
same words for every kind of document; a `Refusal` gives the class of the error. `now` returns the
time that documents contain.

A `Form` is a kind of secret file. If pate used a damaged ledger without noticing, a report could
state an ε that is too small. For example, a ledger that lost its list of earlier draws would hide
what these draws cost. To detect damage, each secret file has a field with a SHA-256 hash of all
other fields. The hash in a secret file uses no secret key, so it detects accidents, but not a
forger.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import inspect
import json
import math
import os
import time
import types
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from pate_cli.core.arrays import Floats
from pate_cli.core.errors import LedgerError, PateError, UsageError, quoted, shortened
from pate_cli.files.addresses import LARGEST

_T = TypeVar("_T")

_SPARING: Final = "sparing"
SPARING: Final = {_SPARING: True}
"""Metadata of a field that documents omit if the field has its default value."""

_NAME: Final = "name"
_CHECKSUM: Final = "checksum"
_WORDS: Final[dict[Any, tuple[str, str]]] = {
    str: ("a text", "string"),
    int: ("a whole number", "integer"),
    bool: ("true or false", "boolean"),
    float: ("a finite number", "number"),
    tuple: ("a list", "array"),
    np.ndarray: ("a list of finite numbers, or of such lists", "array"),
    types.NoneType: ("null", "null"),
}
"""The names of values in messages and in JSON Schema, by class; any other value is an object."""


def called(name: str) -> dict[str, Any]:
    """Return the metadata that gives a field of a dataclass the name `name` in documents."""
    return {_NAME: name}


@dataclass(frozen=True)
class Refusal:
    """The class of errors about a faulty document, and how their messages begin and end."""

    error: type[PateError]
    before: str
    after: str = ""

    def of(self, fault: object) -> PateError:
        """Return the error that reports a fault."""
        return self.error(f"{self.before}{fault}{self.after}")


@dataclass(frozen=True)
class Form:
    """A kind of secret file, such as the ledger, which only its owner may read.

    Attributes:
        kind: the text in the field `kind` of every such file, for example "pate-ledger".
        noun: what messages call such a file, for example "ledger".
        version: the number in the field `schema_version` of every such file.
    """

    kind: str
    noun: str
    version: int

    def text(self, value: Any) -> str:
        """Return a dataclass as the text of a file of this kind; floats lose no digits."""
        head = {"kind": self.kind, "schema_version": self.version, "releasable": False}
        content = head | encoded(value)
        sealed = content | {_CHECKSUM: _checksum(content)}
        return json.dumps(sealed, indent=1, allow_nan=False) + "\n"

    def read(self, kind: type[_T], text: str | bytes) -> _T:
        """Return the dataclass that the text of a file of this kind describes.

        Raises:
            LedgerError: the file is damaged, or was changed, or is a file of another kind, or has
                another `schema_version` than this version of pate reads.
        """
        noun, ours = self.noun, f"give a file that pate wrote with `{self.noun}`"
        foreign = Refusal(LedgerError, f"not a {noun}, or a damaged {noun}: ", f"; {ours}")
        content = parsed(text, foreign)
        if not isinstance(content, dict) or content.get("kind") != self.kind:
            raise LedgerError(f"not a {noun}: {ours}")
        refuse_version(content.get("schema_version"), self.version, f"the {noun}", LedgerError)
        damaged = Refusal(LedgerError, f"the {noun} is damaged: ", "; restore it from a copy")
        if content.pop(_CHECKSUM, None) != _checksum(content):
            raise damaged.of("somebody or something changed it after pate wrote it")
        if content.pop("releasable", None) is not False:
            raise damaged.of("the field `releasable` must be false")
        del content["kind"], content["schema_version"]
        return decoded(kind, content, damaged)


def _checksum(content: Mapping[str, Any]) -> str:
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()


def refuse_version(stated: object, known: int, name: str, error: type[PateError]) -> None:
    """Raise an error of class `error` if a file states another schema version than `known`."""
    if type(stated) is not int or stated != known:  # True and 1.0 are equal to 1.
        raise error(
            f"{name} has schema version {shortened(str(stated))}, this tool reads {known}; use the "
            "version of pate that wrote it"
        )


def encoded(value: Any) -> Any:
    """Return a dataclass and all values in it as values for JSON; fields keep their order."""
    if is_dataclass(value):
        return {
            each.metadata.get(_NAME, each.name): encoded(getattr(value, each.name))
            for each in fields(value)
            if _SPARING not in each.metadata or getattr(value, each.name) != each.default
        }
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [encoded(item) for item in value]
    if isinstance(value, Mapping):
        return {name: encoded(item) for name, item in value.items()}
    return value.value if isinstance(value, enum.Enum) else value


def parsed(text: str | bytes, refusal: Refusal, *, most: int = LARGEST) -> Any:
    """Return the content of a JSON text; refuse infinite numbers and repeated fields.

    Args:
        text: the text.
        refusal: the class and the wording of the error that is raised if the text is refused.
        most: the largest size that the text may have, in bytes.
    """

    def whole(digits: str) -> int:
        if abs(int(digits)) >= 2**63:
            raise refusal.of("the text has a whole number above 2^63 - 1, or below -(2^63 - 1)")
        return int(digits)

    def finite(digits: str) -> float:
        # Python would accept NaN and 1e999, which pate never writes.
        if not math.isfinite(float(digits)):
            raise refusal.of("the text has a number that is NaN or infinite")
        return float(digits)

    def said_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # If a field stands twice, some readers use the first value and other readers the second.
        if len(dict(pairs)) < len(pairs):
            raise refusal.of("a JSON object has two fields of the same name")
        return dict(pairs)

    if len(text) > most:
        raise refusal.of(f"the text is larger than the limit of {most >> 20} MB")
    hooks: dict[str, Any] = {"parse_int": whole, "parse_float": finite, "parse_constant": finite}
    try:
        data = json.loads(text, object_pairs_hook=said_once, **hooks)
        json.dumps(data, ensure_ascii=False).encode()  # This fails on half of a surrogate pair.
    except (ValueError, RecursionError):
        raise refusal.of("the text is not valid JSON") from None
    return data


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the values that an annotation allows.

    The description of a dataclass is its docstring, which explains its fields.
    """
    base, inner = _base(kind), get_args(kind)
    if base is types.UnionType:
        return {"anyOf": [schema_of(each) for each in inner]}
    if base is tuple:
        return {"type": "array", "items": schema_of(inner[0])}
    if is_dataclass(base):
        known, hints = _names(kind), _hints(kind)
        return {
            "description": inspect.getdoc(kind),
            "type": "object",
            "properties": {name: schema_of(hints[each.name]) for name, each in known.items()},
            "required": [name for name, each in known.items() if _SPARING not in each.metadata],
            "additionalProperties": False,
        }
    if issubclass(base, enum.Enum):
        return {"enum": [word.value for word in base]}
    return {} if kind is Any else {"type": _WORDS.get(base, ("", "object"))[1]}


def _base(kind: Any) -> Any:
    """Return the class of an annotation without its parameters: `tuple` for `tuple[int, ...]`."""
    base = get_origin(kind) or kind
    # Newer versions of numpy define their array type as an alias.
    return get_origin(getattr(base, "__value__", None)) or base


@functools.cache
def _names(kind: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by their names in documents."""
    return {each.metadata.get(_NAME, each.name): each for each in fields(kind)}


_hints = functools.cache(get_type_hints)


def decoded(kind: type[_T], data: Any, refusal: Refusal) -> _T:
    """Return the dataclass that a JSON value describes.

    Raises:
        PateError: the JSON value does not describe a dataclass of class `kind`. The error has the
            class `refusal.error`, and its message names the field. If the constructor of a
            dataclass raises an error of the class `refusal.error`, its message stays unchanged.
    """
    found: _T = _decoded(kind, data, refusal)
    return found


def _decoded(kind: Any, data: Any, refusal: Refusal, at: str = "") -> Any:
    """Return the Python value of a JSON value, which must have the type `kind`."""
    base, inner = _base(kind), get_args(kind)
    if base is types.UnionType:
        (one,) = (each for each in inner if each is not types.NoneType)
        return None if data is None else _decoded(one, data, refusal, at)
    if kind is Any or (base in (str, int, bool) and type(data) is base):
        return data
    numbers = _reals(data) if base in (float, np.ndarray) else None
    if numbers is not None and isinstance(data, list) == (base is np.ndarray):
        return numbers if numbers.ndim else float(numbers)
    if base is tuple and isinstance(data, list):
        items = enumerate(data)
        return tuple(_decoded(inner[0], item, refusal, f"{at}.{place}") for place, item in items)
    wanted = _WORDS.get(base, ("an object", ""))[0]
    if issubclass(base, enum.Enum):
        known = {word.value: word for word in base}
        if isinstance(data, str) and data in known:
            return known[data]
        wanted = f"one of {', '.join(known)}"
    elif isinstance(data, dict) and base not in _WORDS:
        return _built(base, data, refusal, at) if is_dataclass(base) else data
    raise refusal.of(f"{at or 'it'} must be {wanted}")


def _reals(data: Any) -> Floats | None:
    """Return numbers, or lists of equal length, as float64; None for any other value."""
    cells = np.array(data, dtype=object)  # Lists of different lengths stay lists in this array.
    if cells.ndim > 2 or not {*map(type, cells.flat)} <= {int, float}:
        return None
    try:
        found = cells.astype(np.float64)
    except OverflowError:
        return None
    return found if np.isfinite(found).all() else None


def _built(kind: Any, data: dict[str, Any], refusal: Refusal, at: str) -> Any:
    """Return a dataclass with the fields of a JSON object; refuse missing and unknown fields."""
    known, hints, values = _names(kind), _hints(kind), {}
    for name in data:
        if name not in known:
            raise refusal.of(f"{at or 'it'} has an unknown field {quoted(name)}")
    for name, each in known.items():
        if name in data:
            place = f"{at}.{name}" if at else name
            values[each.name] = _decoded(hints[each.name], data[name], refusal, place)
        elif _SPARING not in each.metadata:
            raise refusal.of(f"{at or 'it'} has no field {quoted(name)}")
    try:
        return kind(**values)
    except refusal.error:
        raise
    except PateError as error:
        raise refusal.of(f"{at}: {error}" if at else error) from None


def now() -> str:
    """Return the current time as `2018-02-24T00:00:00Z`, or SOURCE_DATE_EPOCH if it is set.

    Raises:
        UsageError: SOURCE_DATE_EPOCH is not a number of seconds since 1970.
    """
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        seconds = int(fixed) if fixed else time.time()
        if seconds >= 0:
            return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        pass
    raise UsageError(f"SOURCE_DATE_EPOCH must be whole seconds since 1970, got {quoted(fixed)}")
