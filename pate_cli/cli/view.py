"""How a command line wants its result shown: JSON, a table, or only an exit code."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pate_cli.cli import terminal
from pate_cli.core.progress import Counter, progress
from pate_cli.verbs.keywords import with_options

if TYPE_CHECKING:
    from pate_cli.files.results import Result

ALL: Final = ("as_json", "as_table", "quiet")
QUIET: Final = ("quiet",)


@dataclass(frozen=True)
class View:
    """Options about output that commands share, and what follows from them.

    Attributes:
        as_json: JSON, also on a terminal.
        as_table: the table of a terminal, also through a pipe.
        quiet: no progress, notes or summary.
    """

    as_json: bool = False
    as_table: bool = False
    quiet: bool = False

    @property
    def for_person(self) -> bool:
        """Whether a person reads standard output, and gets no JSON there."""
        return self.as_table or (terminal.read_by_person() and not self.as_json)

    def note(self, message: str) -> None:
        """Write a line on stderr, unless the user asked for quiet."""
        if not self.quiet:
            terminal.say(with_options(message, {}))

    def progress(self, what: str, total: int | None = None) -> AbstractContextManager[Counter]:
        """Return a progress bar for a terminal, unless the user asked for quiet."""
        return progress(what, total, quiet=self.quiet)

    def show(self, result: Result) -> None:
        """Write a result to stdout: its words for a person, JSON for a pipe or on request."""
        if self.for_person:
            terminal.print_words(result.said())
        else:
            terminal.write(result.to_json())
