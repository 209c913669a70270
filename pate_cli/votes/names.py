"""Names of the classes: public, so that what a text means as a vote does not depend on the votes.

A text that is no name is a missing vote, not an error: one teacher may cast it or not, and a
refusal would tell. Only where no text is one, they are not the names of these votes.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias

from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.files.addresses import public_name
from pate_cli.files.inputs import note
from pate_cli.votes.beside.side_files import in_order
from pate_cli.votes.matching import checked_names

LabelNames: TypeAlias = Sequence[str] | str | PathLike[str]
"""Names in order of the classes, a text of them with commas between, or a file: @NAME, or a path"""

_LONGEST = 1 << 28


def names_of(given: LabelNames) -> tuple[str, ...]:
    """Return the names, class 0 first.

    A file has one name a line, in UTF-8; blanks belong to a name. Between commas they would be
    there by mistake, and are refused.

    Raises:
        UsageError: a file that cannot be read.
        ParameterError: fewer than 2 names, one that is empty or there twice, or what is no text.
    """
    if isinstance(given, PathLike):
        return checked_names(_lines(Path(fspath(given))))
    if isinstance(given, str):
        if given.startswith("@"):
            return checked_names(_lines(Path(given[1:])))
        names = given.split(",")
        for place, name in enumerate(names):
            if name != name.strip():
                raise ParameterError(
                    f"`label_names`: name {place} begins or ends with a blank; leave it out, or "
                    "give a file of names (@FILE) if it belongs there"
                )
        return checked_names(names)
    return checked_names(
        in_order(given, "`label_names` must be a list of texts, or a file of them")
    )


def shown(names: Sequence[str], most: int = 3) -> str:
    """Return the first few names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _lines(path: Path) -> list[str]:
    note("the names of the labels", (path, None))
    name = public_name(path)
    try:
        # With universal newlines; a mark of byte order is no part of the first name.
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_LONGEST)
            more = file.read(1)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None
    except ValueError:  # what is not UTF-8, and a name of a file with a null in it
        raise UsageError(f"{name}: names of labels must be UTF-8 text, one a line") from None
    if more:
        raise UsageError(f"{name}: has over {_LONGEST >> 20} million letters, more than any names")
    return text.removesuffix("\n").split("\n")
