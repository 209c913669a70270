"""Options that decide how commands show results, and functions that open votes for commands."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pate_cli.cli import terminal
from pate_cli.core.progress import Counter, progress
from pate_cli.core.words import MechanismName
from pate_cli.files.protected import PICTURE
from pate_cli.verbs.keywords import with_options

if TYPE_CHECKING:
    from pate_cli.files.outputs import Outputs
    from pate_cli.files.results import Result
    from pate_cli.votes.vote_file import VoteFile

ALL: Final = ("as_json", "as_table", "quiet")
QUIET: Final = ("quiet",)


@dataclass(frozen=True)
class View:
    """Options about output that all commands share.

    Attributes:
        as_json: print JSON, even on a terminal.
        as_table: print text for people, as on a terminal, even if stdout is a pipe.
        quiet: print no progress, notes or summary.
    """

    as_json: bool = False
    as_table: bool = False
    quiet: bool = False

    def note(self, message: str) -> None:
        """Write a line on stderr, unless the user asked for quiet."""
        if not self.quiet:
            terminal.say(with_options(message, {}))

    def progress(self, what: str, total: int | None = None) -> AbstractContextManager[Counter]:
        """Return a progress bar for a terminal, unless the user asked for quiet."""
        return progress(what, total, quiet=self.quiet)

    def show(self, result: Result) -> None:
        """Write a result to stdout: text for a person, JSON for a pipe or on request."""
        if self.as_table or (terminal.read_by_person() and not self.as_json):
            terminal.print_words(result.said())
        else:
            terminal.write(result.to_json())


def promised(out: Outputs, plot: str | None, *, mode: int = 0o600) -> None:
    """Reserve the file of a picture, unless `plot` is None; pictures of votes have mode 0600."""
    if plot is not None:
        from pate_cli.disclosure.pictures import check_plot

        check_plot(plot)
        out.reserve(plot, mode=mode, replaces=PICTURE)


def drawn(out: Outputs, plot: str | None, picture: Callable[[], Any]) -> None:
    """Draw and write a picture, unless `plot` is None."""
    if plot is not None:
        from pate_cli.disclosure.pictures import encode_picture

        out.write(plot, encode_picture(picture(), plot))


@contextlib.contextmanager
def opened(asked: dict[str, Any], view: View) -> Iterator[VoteFile]:
    """Open the votes that `asked` names, and store the open vote file in `asked` instead.

    The options about reading the votes are removed from `asked`. If stderr is a terminal, the
    function also prints the votes that are texts and match no label name. If stderr is a file or a
    log, the function prints no unmatched votes, because others may read the file or log.
    """
    from pate_cli.mechanisms import mechanism_class
    from pate_cli.verbs.request import reading
    from pate_cli.votes.opening import open_votes

    kind = mechanism_class(MechanismName(asked.get("mechanism", MechanismName.CONFIDENT)))
    given = reading(asked)
    with contextlib.ExitStack() as stack:
        with view.progress("reading, bytes") as advance:
            file = stack.enter_context(
                open_votes(asked["votes"], **given, any_name=not kind.listed, progress=advance)
            )
        for name in given:
            del asked[name]
        asked["votes"] = file
        view.note(file.describe())
        if not view.quiet and terminal.told_to_person():
            for sentence in file.unmatched(asked.get("max_queries")).sentences():
                view.note(sentence)
        yield file
