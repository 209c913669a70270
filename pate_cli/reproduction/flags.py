"""Messages of the library in the words of the command line."""

from __future__ import annotations

from pate_cli.verbs.parameters.keywords import with_options


def in_flags(error: Exception) -> str:
    """Return what an error says, with options for parameters, which stand in backticks."""
    return with_options(str(error), {})
