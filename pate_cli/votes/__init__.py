"""Teacher votes: files in, bounded batches of integer histograms out; nothing about privacy."""

from __future__ import annotations

from pate_cli.core.words import Layout
from pate_cli.votes.batches import VoteBatch
from pate_cli.votes.beside.query_list import Queries
from pate_cli.votes.groups import Group, Groups, TeacherGroups
from pate_cli.votes.opening import open_votes
from pate_cli.votes.vote_file import VoteFile

__all__ = [
    "Group",
    "Groups",
    "Layout",
    "Queries",
    "TeacherGroups",
    "VoteBatch",
    "VoteFile",
    "open_votes",
]
