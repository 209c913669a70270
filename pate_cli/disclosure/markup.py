"""HTML and SVG from plain texts: a text is escaped unless it was made here, so none is markup."""

from __future__ import annotations

import html

from pate_cli.core.errors import printable


class Markup(str):
    """A piece of HTML or SVG that is whole; any other text is only a text."""

    __slots__ = ()


def element(name: str, *inside: str, **attributes: str | float | None) -> Markup:
    """An element with what is in it and its attributes, but for those that are None.

    `class_` is the attribute class, and `aria_label` is aria-label.
    """
    named = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{named}>{joined(*inside)}</{name}>")


def joined(*pieces: str) -> Markup:
    """Pieces one after the other; those that are only texts are escaped."""
    return Markup(
        "".join(piece if isinstance(piece, Markup) else _escaped(piece) for piece in pieces)
    )


def _escaped(text: str) -> str:
    # First what no letter is: it could break a line, turn the direction of letters, or be no UTF-8.
    return html.escape(printable(text), quote=True)
