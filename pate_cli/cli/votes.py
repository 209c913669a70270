"""Votes of a command line: opened, with a bar while they are copied and a note of what was read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pate_cli.cli import terminal
from pate_cli.cli.view import View
from pate_cli.core.words import MechanismName

if TYPE_CHECKING:
    from pate_cli.votes.vote_file import VoteFile


@contextlib.contextmanager
def opened(asked: dict[str, Any], view: View) -> Iterator[VoteFile]:
    """Open the votes, and leave them in `asked` in place of their name and of how they are read.

    To a person at a terminal alone it says which votes count as missing: that is a secret of the
    votes, and what goes elsewhere may be kept or shown to others.
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
