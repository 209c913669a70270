"""What must hold of a session's record, whatever happened to the session."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pate_cli as pate
from pate_cli.core.errors import PateError

Answer: TypeAlias = str | int | None


class BrokenError(Exception):
    """A promise that was not kept."""


@dataclass
class Left:
    """All answers that left a session, in any of its sittings."""

    named: dict[Any, Answer] = field(default_factory=dict)
    nameless: list[Answer] = field(default_factory=list)

    def add(self, name: Any, label: Answer) -> None:
        """One more; BrokenError where the id had another one."""
        if name is None:
            self.nameless.append(label)
        elif self.named.setdefault(name, label) != label:
            raise BrokenError(f"{name!r} was answered by {self.named[name]!r} and by {label!r}")

    def __len__(self) -> int:
        return len(self.named) + len(self.nameless)

    @property
    def labels(self) -> list[Answer]:
        return [label for label in (*self.named.values(), *self.nameless) if label is not None]


def events_in(content: bytes) -> list[dict[str, Any]]:
    """The whole lines of a record file, but for the first."""
    return [json.loads(line) for line in content.split(b"\n")[1:-1]]


def asks_in(content: bytes) -> list[dict[str, Any]]:
    """What was asked in the session of a record file, in order."""
    return [ask for event in events_in(content) for ask in event.get("asks", ())]


def check_record(path: Path, left: Left, *, names: Sequence[str] = ()) -> None:
    """BrokenError unless the record pays for all that left, and its rule allows what it tells.

    Args:
        path: the record, of one session.
        left: what left that.
        names: of the classes, where labels are names.
    """
    try:
        lines = asks_in(path.read_bytes())
        record = pate.SpendRecord.read(path)
    except PateError as error:
        raise BrokenError(f"the record cannot be read: {error}") from error
    runs = {run.id: run for run in record.runs if run.session is not None}
    if len(runs) != 1:
        raise BrokenError(f"{len(runs)} sessions were entered, and one was opened")
    (run,) = runs.values()
    told: dict[Any, Answer] = {}
    nameless: Counter[Answer] = Counter()
    asked = answers = 0
    for line in lines:
        if not run.settings.rule.left(asked, answers):
            raise BrokenError(f"more was asked after {asked} queries and {answers} answers")
        label = line["label"]
        if names and label is not None:
            label = names[label]
        asked, answers = asked + 1, answers + (label is not None)
        if "id" not in line:
            nameless[label] += 1
        elif line["id"] in told:
            raise BrokenError(f"{line['id']!r} was drawn twice")
        else:
            told[line["id"]] = label
    for name, label in left.named.items():
        if name not in told or told[name] != label:
            raise BrokenError(f"{name!r} left with {label!r} and is noted as {told.get(name)!r}")
    if Counter(left.nameless) - nameless:
        raise BrokenError("an answer without a name left and is not noted")
    if (run.settings.queries, run.answers or 0) != (asked, answers):
        raise BrokenError(f"{asked} lines, and the record tells of {run.settings.queries} queries")
    if len(left) > asked or len(left.labels) > answers:
        raise BrokenError(f"{len(left)} answers left, and {asked} are paid for")
