"""How a command ends: the one place where errors become a line on stderr and an exit code."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

import typer

from pate_cli.cli.terminal import interruptible, notes_of, say, what_was_released
from pate_cli.core.errors import OutputError, PateError, UsageError
from pate_cli.core.gone import GONE
from pate_cli.files.addresses import public_name
from pate_cli.verbs.keywords import Keyword, nearest_to, with_options

Keywords = Mapping[str, Keyword]

_BROKEN_PIPE: Final = 141
# Typer's words for what is wrong with a command line.
_HOUSE_STYLE: Final = (
    (r"^Option '([^']*)' requires an argument", r"\1 needs a value"),
    (r"\. Did you mean (.*)\?$", r"; did you mean \1?"),
)


@contextlib.contextmanager
def ending(path: str, keywords: Keywords) -> Iterator[None]:
    """End the program with a line and its documented exit code where anything goes wrong.

    Args:
        path: how the command is called, such as `pate spent`.
        keywords: its parameters, whose options messages name.
    """
    with interruptible(typer.Exit):
        try:
            yield
        except BrokenPipeError:
            # The reader left; closing quietly is what a filter is expected to do.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(_BROKEN_PIPE) from None
        except Exception as error:
            found = _what_happened(error, path, keywords)
            if found is None:
                raise
            code, line = found
            say(with_options(line, keywords) + notes_of(error))
            raise typer.Exit(code) from None


def tells_more(text: str, path: str) -> str:
    """Return what is wrong with a command line, and where help is."""
    stop = "" if text.endswith("?") else ";"
    return f"{text}{stop} {path} --help tells more"


def _what_happened(error: Exception, path: str, keywords: Keywords) -> tuple[int, str] | None:
    """Return the exit code of an error and a line about it; None for what Typer itself ends."""
    if isinstance(error, PateError):
        return error.exit_code, str(error)
    if type(error).__module__.partition(".")[0] == "typer":
        refused = hasattr(error, "format_message") and type(error).__name__ != "NoArgsIsHelpError"
        return (UsageError.exit_code, _misuse(error, path, keywords)) if refused else None
    if isinstance(error, MemoryError):
        what = f"out of memory; {what_was_released()}. Fewer `workers` take less of it"
        return PateError.exit_code, what
    if isinstance(error, OSError):  # no defect: what files, folders and devices do to a program
        what = error.strerror or type(error).__name__
        if error.filename is not None:
            what = f"{public_name(os.fsdecode(error.filename))}: {what}"
        elif error.errno == errno.ENOENT:
            what = "the folder this runs in is gone; change to one that is there"
        return OutputError.exit_code, f"{what}; {what_was_released()}"
    if os.environ.get("PATE_DEBUG"):
        return None
    return PateError.exit_code, (
        f"internal failure ({type(error).__name__}); {what_was_released()}. "
        "Set PATE_DEBUG=1 for a traceback; look for votes in it before sharing it"
    )


def _misuse(error: Any, path: str, keywords: Keywords) -> str:
    """Return in our words why Typer refused a command line."""
    text = str(error.format_message()).strip().rstrip(".")
    if type(error).__name__ == "NoSuchOption" and keywords:
        option = str(error.option_name)
        name = option.lstrip("-").replace("-", "_")
        if name in GONE:
            return f"{option} is gone: {GONE[name]}"
        near = nearest_to(name, [each for each in keywords.values() if not each.argument])
        text = f"no option {option}" + ("" if near is None else f"; did you mean {near.option}?")
    for pattern, words in _HOUSE_STYLE:
        text = re.sub(pattern, words, text, flags=re.DOTALL)
    return tells_more(text[:1].lower() + text[1:], path)
