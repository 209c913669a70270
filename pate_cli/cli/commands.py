"""The commands, in the order of the help; each is imported when it is called, and no other."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

COMMANDS: Final = {
    "aggregate": "Votes in; labels and report out.",
    "session": "Ask as you go: votes and labels as JSON lines.",
    "plan": "Before the first vote: how many answers, with how many teachers.",
    "tune": "Which settings reach a target or a number of answers.",
    "release": "One report for several runs: ledgers, reports, records.",
    "spent": "All runs of a record, and what they cost together.",
    "explain": "A report in plain words.",
    "verify": "Every number of a report again, and its labels.",
    "cost": "What the votes cost. Not for publishing.",
    "smooth-sensitivity": "How much one teacher could change that cost.",
    "demo": "Labels from real votes that come with it.",
}
"""What each is for."""


def load(name: str) -> Callable[..., Any]:
    """Import a command, which is in a module named after it."""
    name = name.replace("-", "_")
    found: Callable[..., Any] = getattr(importlib.import_module(f"pate_cli.cli.{name}"), name)
    return found
