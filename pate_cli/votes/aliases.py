"""Aliases: other texts that stand for the name of a class, by keyword or in a file of them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final, TypeAlias

from pate_cli.core.errors import ParameterError, VoteError, quoted
from pate_cli.files.addresses import is_address, public_name
from pate_cli.files.inputs import note
from pate_cli.votes.beside.side_files import read_side

Aliases: TypeAlias = Mapping[str, str] | str | PathLike[str]
"""Texts and the names they stand for, or a file: a JSON object, or a table of `alias` and `name`"""

_NOUN: Final = "the aliases"
_COLUMNS: Final = ("alias", "name")
_LONGEST: Final = 1 << 26
_MORE: Final = "Extra data"  # as json calls what follows an object, which then is a row of several


def aliases_of(given: Aliases) -> dict[str, str]:
    """Return what each alias stands for; whether that is a name, and only one, `Matching` sees to.

    Raises:
        VoteError: a file that cannot be read, or holds something else.
        ParameterError: neither a mapping nor a path, or an alias that is there for two names.
    """
    if isinstance(given, Mapping):
        return dict(given)
    if not isinstance(given, str | PathLike):
        raise ParameterError(
            f"`aliases` must map texts to names, or be a file, got {quoted(given)}"
        )
    path = fspath(given)
    if not isinstance(path, str):
        raise ParameterError(f"`aliases` must be a path of text, got {quoted(path)}")
    found = _object(path)
    return _mapping(_rows(path) if found is None else found)


def _object(path: str) -> list[tuple[str, Any]] | None:
    """The pairs of a JSON object; None for another file, which a reader of tables may know."""
    if is_address(path):
        return None
    name = public_name(path)
    text, more, again = "", "", True
    with contextlib.suppress(OSError, ValueError):  # whoever reads tables says what is wrong
        note(_NOUN, (path, None))
        again = not _ends(Path(path))
        with Path(path).open(encoding="utf-8-sig") as file:
            text, more = file.read(_LONGEST), file.read(1)
    if not text.lstrip().startswith("{"):
        if again:
            return None
        raise VoteError(f"{name}: is a pipe without a JSON object; give a file of {_NOUN}")
    if more:
        raise VoteError(f"{name}: has over {_LONGEST >> 20} million letters, more than {_NOUN}")
    try:
        pairs: list[tuple[str, Any]] = json.loads(text, object_pairs_hook=lambda pairs: pairs)
    except json.JSONDecodeError as error:
        if error.msg == _MORE and again:
            return None
        raise VoteError(f"{name}: line {error.lineno} is not as in a JSON object") from None
    except (ValueError, RecursionError):
        raise VoteError(f"{name}: cannot be read as {_NOUN}") from None
    return pairs


def _ends(path: Path) -> bool:
    """Whether what is read is gone then, as in a pipe."""
    return path.exists() and not (path.is_file() or path.is_dir())


def _rows(path: str) -> Iterator[tuple[str, str]]:
    side = read_side(path, _NOUN, what=_NOUN, ids=_COLUMNS)
    columns = getattr(side.values, "column_names", None)
    if columns is None or sorted(columns) != sorted(_COLUMNS):
        raise VoteError(
            f"{side.name}: {_NOUN} are a table with the columns alias and name, or a JSON object"
        )
    for row, pair in enumerate(zip(*map(_texts, map(side.values.column, _COLUMNS)), strict=True)):
        if None in pair:
            raise VoteError(f"{side.name}: row {row} has no alias, or no name; both are texts")
        yield pair


def _texts(column: Any) -> list[str | None]:
    """The entries of a column; what CSV takes for a whole number is a text all the same."""
    return [str(text) if isinstance(text, str | int) else None for text in column.to_pylist()]


def _mapping(pairs: Iterable[tuple[str, Any]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for alias, name in pairs:
        known = found.setdefault(alias, name)
        if known != name:
            both = f"{quoted(known)}, and for {quoted(name)}, too"
            raise ParameterError(f"`aliases`: {quoted(alias)} stands for {both}")
    return found
