"""Which commands there are; each is imported when it is called, and no other."""

from __future__ import annotations

import importlib
from collections.abc import Callable

COMMANDS = {
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
"""What each is for, in the order of the help."""


def function_of(name: str) -> Callable[..., None]:
    """What a command calls, which is in a module named after it."""
    name = name.replace("-", "_")
    function: Callable[..., None] = getattr(importlib.import_module(f"pate_cli.cli.{name}"), name)
    return function
