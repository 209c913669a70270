"""The help of commands: names and texts side by side, at most 100 letters wide."""

from __future__ import annotations

import inspect
import os
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pate_cli.cli import terminal
from pate_cli.verbs.keywords import HEADINGS, Keyword, with_options

EVERYTHING: Final = "--help-all"
_WIDEST: Final = 100
_NARROW: Final = 60
_COLUMN: Final = 28
_BOLD, _CYAN = 1, 36


def asks_for_help(words: Sequence[str]) -> bool:
    """Return whether any option among the words of a command asks for help."""
    options = words[: words.index("--")] if "--" in words else words
    return any(word in ("-h", "--help", EVERYTHING) for word in options)


def of_command(
    path: str,
    text: str,
    keywords: Mapping[str, Keyword],
    *,
    everything: bool = False,
    width: int | None = None,
) -> str:
    """Return the help of one command.

    Args:
        path: the command as the user types it, such as `pate spent`.
        text: its docstring.
        keywords: its parameters.
        everything: also show the rare options.
        width: the width in letters; if left out, the width of the terminal, but at most 100.
    """
    width = width or _width()
    arguments = [argument(each) for each in keywords.values() if each.argument]
    usage = " ".join([path, "[OPTIONS]", *arguments])
    lines = [*_wrapped(f"Usage: {usage}", width), "", *_paragraphs(text, width), ""]
    shown = [each for each in keywords.values() if everything or each.says.everyday]
    for heading in HEADINGS:
        listed = [each for each in shown if each.says.group == heading]
        entries = [entry(each, keywords, everything=everything) for each in listed]
        lines += _section(heading, entries, width)
    if hidden := len(keywords) - len(shown):
        lines += _wrapped(f"{path} {EVERYTHING} shows {hidden} more.", width)
    return "\n".join(lines).rstrip()


def of_group(text: str, commands: Mapping[str, str], closing: str) -> str:
    """Return the help of `pate` itself, with a line on each command."""
    width = _width()
    lines = ["Usage: pate COMMAND [OPTIONS]", "", *_paragraphs(text, width), ""]
    lines += _section("Commands", list(commands.items()), width)
    return "\n".join([*lines, *_paragraphs(closing, width)])


def argument(keyword: Keyword) -> str:
    """Return an argument for the usage line: FILE... if it may be repeated, [FILE] if optional."""
    name = f"{keyword.option}{'...' if keyword.several else ''}"
    return name if keyword.default is Keyword.required else f"[{name}]"


def entry(
    keyword: Keyword, keywords: Mapping[str, Keyword], *, everything: bool
) -> tuple[str, str]:
    """Return the name of a parameter in the help, and its text.

    With `everything`, the text of the parameter also has its choices and its range.
    """
    argument, value = keyword.argument, keyword.metavar
    spelled = keyword.option if argument else f"{keyword.spelled} {value}".rstrip()
    named = all(choice in keyword.says.help for choice in keyword.choices) or "|" in keyword.metavar
    choices = f" One of {', '.join(keyword.choices)}." if everything and not named else ""
    limits = f" [{keyword.range}]" if everything and keyword.range else ""
    default = f" [default: {keyword.stated}]" if keyword.stated else ""
    return spelled, with_options(f"{keyword.says.help}{choices}{limits}{default}", keywords)


def _section(title: str, listed: list[tuple[str, str]], width: int) -> list[str]:
    """Return a heading with its entries: names beside texts, or above texts if there is no room."""
    if not listed:
        return []
    lines = [_styled(line, _BOLD) for line in _wrapped(f"{title}:", width)]
    column = 6 if width < _NARROW else min(_COLUMN, 4 + max(len(name) for name, _ in listed))
    for name, text in listed:
        told = _wrapped(text, width - column)
        if len(name) + 4 <= column:
            lines.append(f"  {_styled(name, _CYAN)}{' ' * (column - len(name) - 2)}{told.pop(0)}")
        else:
            lines += [f"  {_styled(line, _CYAN)}" for line in _wrapped(name, width - 2)]
        lines += [" " * column + line for line in told]
    return [*lines, ""]


def _paragraphs(text: str, width: int) -> Iterator[str]:
    """Yield the wrapped lines of a docstring; lines of indented examples are not joined."""
    for number, paragraph in enumerate(inspect.cleandoc(text).split("\n\n")):
        if number:
            yield ""
        if paragraph.startswith("  "):
            for line in paragraph.split("\n"):
                yield from (f"  {each}" for each in _wrapped(line.strip(), width - 2))
        else:
            yield from _wrapped(" ".join(paragraph.split()), width)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def _width() -> int:
    return min(shutil.get_terminal_size().columns, _WIDEST)


def _styled(text: str, style: int) -> str:
    """Return a text in bold or in a colour on a terminal, unless the user wants plain text."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    # Without arguments a command shows its help on standard error.
    if plain or not (terminal.read_by_person() and terminal.told_to_person()):
        return text
    return f"\x1b[{style}m{text}\x1b[0m"
