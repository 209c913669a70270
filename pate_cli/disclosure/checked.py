"""Kinds of check: each field of a report declares how whoever holds the report can check it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints


class Checked(enum.Enum):
    """How a field of a report can be checked by whoever holds the report.

    `verify` computes again what is COMPUTED. For each of the others that a report has it says what
    the field was compared with, or why it was not.

    Attributes:
        COMPUTED: it follows from other fields (`disclosure.facts.report_of`).
        PARTS: its own fields declare how each is checked.
        LABELS: the file of labels tells, by its hash, its rows and the settings it carries.
        RECORD: only the record tells, which the holder of the votes keeps.
        RELEASE_TEST: it came out of a random draw whose chance follows from the votes.
        SANITIZING: it was drawn around a number that describes the votes.
        EXTERNAL: others state it.
        FREE: nothing follows from it.
    """

    COMPUTED = enum.auto()
    PARTS = enum.auto()
    LABELS = enum.auto()
    RECORD = enum.auto()
    RELEASE_TEST = enum.auto()
    SANITIZING = enum.auto()
    EXTERNAL = enum.auto()
    FREE = enum.auto()


_CHECKED: Final = "checked"
COMPUTED: Final = {_CHECKED: Checked.COMPUTED}
"""Metadata of a dataclass field that is checked in this way; so are the ones below."""
PARTS: Final = {_CHECKED: Checked.PARTS}
LABELS: Final = {_CHECKED: Checked.LABELS}
RECORD: Final = {_CHECKED: Checked.RECORD}
RELEASE_TEST: Final = {_CHECKED: Checked.RELEASE_TEST}
SANITIZING: Final = {_CHECKED: Checked.SANITIZING}
EXTERNAL: Final = {_CHECKED: Checked.EXTERNAL}
FREE: Final = {_CHECKED: Checked.FREE}


def how_checked(kind: Any, path: Sequence[str]) -> Checked:
    """Return how the field at a path of names is checked; its own declaration counts, or else that
    of what it is part of.

    Raises:
        KeyError: the dataclass has no such field, or the field declares nothing.
    """
    how = Checked.PARTS
    for name in path:
        while not is_dataclass(kind) and get_args(kind):
            kind = next(each for each in get_args(kind) if each is not type(None))
            if get_origin(kind) not in (tuple, UnionType, None):
                break
        if not is_dataclass(kind):
            break
        field = next((each for each in fields(kind) if each.name == name), None)
        if field is None and how is Checked.PARTS:
            raise KeyError(f"there is no field {name!r} in {kind}")
        if field is None:
            break  # documents call it otherwise; it is checked as what it is part of
        how = field.metadata.get(_CHECKED, how)
        kind = get_type_hints(kind)[name]
    if how is Checked.PARTS:
        raise KeyError(f"{'.'.join(path)} does not declare how it is checked")
    return how
