"""Answers of a session so far: by the ids of their queries, and as labels."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import NO_LABEL, SOURCES
from pate_cli.core.errors import ParameterError, quoted
from pate_cli.disclosure.settings import Settings
from pate_cli.labels.labels import Labels
from pate_cli.run.labelling import Drawn
from pate_cli.votes.facts import Facts

Id: TypeAlias = str | int | None
"""By which a query is known; None for none."""
Answer: TypeAlias = str | int | None
"""A class; a name where nobody listed the names; None where the teachers do not agree."""

_TEACHERS, _NOBODY = map(SOURCES.index, ("teachers", "none"))
_ID: Final = re.compile(r"[^\0\ud800-\udfff]{1,1000}", re.DOTALL)
_NUMBER: Final = re.compile("0|-?[1-9][0-9]{0,18}")


class Answers:
    """Queries of a session with their answers, in order, as its record has them.

    Attributes:
        lines: `label` of each query, with `id` and `prior` if it has them.
        answers: how many queries got a label.
        known: the answer of each id.
    """

    def __init__(self) -> None:
        """Begin with no answer."""
        self.lines: list[Mapping[str, Any]] = []
        self.answers = 0
        self.known: dict[str | int, Answer] = {}

    def learn(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Take further queries."""
        for line in lines:
            self.lines.append(line)
            self.answers += line.get("label") is not None
            if "id" in line:
                self.known[line["id"]] = line.get("label")

    def fresh(self, ids: Iterable[Id]) -> list[int]:
        """Return the places of queries that were not asked before, each id once.

        Raises:
            ParameterError: an id that labels cannot hold, or cannot tell from another one.
        """
        found, seen = [], set[str | int]()
        for place, name in enumerate(ids):
            if name is not None:
                _check_id(name)
                other = _twin(name)
                if other in self.known or other in seen:
                    raise ParameterError(
                        f"id {quoted(name)} looks in saved labels as {quoted(other)} does, which "
                        "was asked before; give it another one"
                    )
                if name in self.known or name in seen:
                    continue
                seen.add(name)
            found.append(place)
        return found


def labels_of(
    lines: Sequence[Mapping[str, Any]], settings: Settings, names: Sequence[str] | None
) -> Labels:
    """Return all answers as labels, by the ids of their queries, or by numbers that are free.

    Args:
        lines: queries with their answers, as a record has them.
        settings: of the session; they go with the labels.
        names: what the classes are called, before those that came out and nobody listed; None
            where classes are numbers.
    """
    answers = [line.get("label") for line in lines]
    said = tuple(dict.fromkeys(label for label in answers if isinstance(label, str)))
    places = {None: NO_LABEL} | {name: place for place, name in enumerate(said)}
    given = np.array([places.get(label, label) for label in answers], dtype=np.int32)
    sources = np.where(given == NO_LABEL, np.uint8(_NOBODY), np.uint8(_TEACHERS))
    known = Facts(label_names=None if names is None else (*names, *said))
    ids = [line.get("id") for line in lines]
    taken = {str(name) for name in ids}
    free = (number for number in itertools.count() if str(number) not in taken)
    ids = [next(free) if name is None else name for name in ids]
    if any(isinstance(name, str) for name in ids):
        named: NDArray[Any] = np.array([str(name) for name in ids])
    else:
        named = np.array(ids, dtype=np.int64)
    return Drawn(named, given, sources).table(settings.texts(), known)


def _check_id(name: str | int) -> None:
    """Refuse what no file of labels holds: halves of characters, nulls, more than 64 bits."""
    number = type(name) is int and -(2**63) <= name < 2**63
    if not (number or (isinstance(name, str) and _ID.fullmatch(name))):
        raise ParameterError(
            f"an id is a text of up to 1000 letters or a whole number, got {quoted(name)}"
        )


def _twin(name: str | int) -> Id:
    """Return the number that a text is, or the text of a number; None where there is none."""
    if isinstance(name, int):
        return str(name)
    return int(name) if _NUMBER.fullmatch(name) else None
