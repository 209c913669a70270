"""Teacher votes: files in, bounded batches of integer histograms out; nothing about privacy."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pate_cli.core.words import Layout as Layout
    from pate_cli.votes.batches import VoteBatch as VoteBatch
    from pate_cli.votes.beside.query_list import Queries as Queries
    from pate_cli.votes.groups import Groups as Groups
    from pate_cli.votes.groups import TeacherGroups as TeacherGroups
    from pate_cli.votes.opening import open_votes as open_votes
    from pate_cli.votes.vote_file import VoteFile as VoteFile

# Whoever knows what a group of teachers is need not know how a file is read.
_HOMES = {
    "Groups": "votes.groups",
    "Layout": "core.words",
    "Queries": "votes.beside.query_list",
    "TeacherGroups": "votes.groups",
    "VoteBatch": "votes.batches",
    "VoteFile": "votes.vote_file",
    "open_votes": "votes.opening",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"pate_cli.{_HOMES[name]}"), name)
