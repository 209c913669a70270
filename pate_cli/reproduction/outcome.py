"""What became of each row of a table, and of the table as a whole."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from pate_cli.errors import ParameterError, ValidityError, VoteError
from pate_cli.reproduction.vote_folder import VoteFolder

__all__ = ["Outcome", "Progress", "Row", "Status", "Table", "attempt"]

Progress = Callable[[str], None]


class Status(enum.StrEnum):
    """How a row ended."""

    RAN = "ran"
    ABSENT = "votes absent"
    UNSTATED = "scale not published"
    UNREADABLE = "votes unreadable"
    INVALID = "a condition fails"


@dataclass(frozen=True)
class Outcome:
    """One row.

    Attributes:
        name: dataset and aggregator, for notes.
        status: how it ended. An `INVALID` row may hold those figures that do not depend on the
            condition.
        lines: cells of its lines in the printed table.
        data: the same unrounded, fit for JSON.
        notes: what a reader has to know, one sentence each.
    """

    name: str
    status: Status
    lines: tuple[tuple[str, ...], ...]
    data: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A reproduced table.

    Attributes:
        name: `table1` or `table2`.
        title: printed above it.
        header: names of the columns; the first two are of words, the others of numbers.
        outcomes: its rows.
        notes: what holds for all rows.
    """

    name: str
    title: str
    header: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """3 if a file was unreadable; else 0 if a row ran; else 4 if a condition failed; else 3."""
        ended = {one.status for one in self.outcomes}
        if Status.UNREADABLE in ended:
            return VoteError.exit_code
        if Status.RAN in ended:
            return 0
        return ValidityError.exit_code if Status.INVALID in ended else VoteError.exit_code


class Row(Protocol):
    """What `attempt` needs to know of a row."""

    @property
    def dataset(self) -> str:
        """What the paper calls the data."""
        ...

    @property
    def files(self) -> tuple[str, ...]:
        """Every file the row needs."""
        ...


def attempt(
    row: Row,
    *,
    name: str,
    kind: str,
    rest: tuple[str, ...],
    folder: VoteFolder,
    compute: Callable[[], Outcome],
) -> Outcome:
    """The outcome of a row whose files may be absent or damaged; never a made-up figure.

    Args:
        row: the row.
        name: its name in notes.
        kind: what the second column says of it.
        rest: what the other columns show when it did not run.
        folder: where its files should be.
        compute: called when all files are there.
    """

    def without(status: Status, note: str) -> Outcome:
        line = (row.dataset, f"{kind}: {status}", *rest)
        return Outcome(name, status, (line,), {"reason": note}, (f"{name}: {note}",))

    absent = folder.absent(row.files)
    if absent:
        return without(Status.ABSENT, f"absent from {folder.path}: {', '.join(absent)}")
    try:
        return compute()
    except VoteError as error:
        return without(Status.UNREADABLE, str(error))
    except (ValidityError, ParameterError) as error:
        return without(Status.INVALID, str(error))
