"""Cells and notes as a typesetter sets them: numbers in math, flags in typewriter, all escaped.

For a plain `article` with `booktabs`: no other package, and no fonts of another encoding.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pate_cli.core.errors import printable

_ESCAPED: Final = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "`": r"\`{}",
    '"': "''",
    "±": r"$\pm$",
    "σ": r"$\sigma$",
    # Other letters in the oldest encoding of fonts.
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    # At the beginning of a line they would belong to the end of the one before.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    **{character: f"\\{character}" for character in "_%&#${}"},
}
# Accents and other letters that LaTeX knows without a package.
_LETTERS: Final = re.compile("[À-ÖØ-öø-ž]")
_SYMBOLS: Final = {
    "epsilon": r"\varepsilon",
    "delta": r"\delta",
    "beta": r"\beta",
    "sigma_SS": r"\sigma_{\mathrm{SS}}",
    "sigma1": r"\sigma_1",
    "sigma2": r"\sigma_2",
}
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
# A number by itself, of several rounds, or with its standard deviation.
_FIGURE: Final = re.compile(rf"{_NUMBER.pattern}(?: [±+] {_NUMBER.pattern})*")
_ALONE, _ENDED = r"(?<![\w./-])", r"(?!\w|[/-][^\W\d]|\.\w)"
_IN_WORDS: Final = re.compile(
    # A flag and, if it is one of a few words, its value; `_` of a file name is no math.
    r"(?P<flag>(?<![\w-])--[a-z][a-z-]*(?: (?:upper|none|auto|two-tail|conditional|DIR)\b)?)"
    r"|`(?P<code>[^`]+)`"
    rf"|{_ALONE}(?P<symbol>{'|'.join(_SYMBOLS)}){_ENDED}"
    # Years have four digits, too.
    rf"|{_ALONE}(?P<number>-?\d+(?:\.\d+)?e[+-]?\d+|-?\d{{5,}}(?:\.\d+)?"
    rf"|\d{{4}}(?:\.\d+)?(?= (?:of|queries|rows)\b)){_ENDED}"
    r"|(?P<times> \* )"
)


def tabular(
    header: Sequence[str],
    groups: Sequence[Sequence[Sequence[str]]],
    *,
    words: int,
    notes: Sequence[str],
) -> str:
    """A `tabular` of booktabs and, below it, the notes, one a paragraph.

    Args:
        header: names of the columns.
        groups: the lines of each row, as many cells as the header has.
        words: how many of the first columns hold words; the others hold numbers.
        notes: what a reader has to know.
    """
    numbers = len(header) - words
    text = [rf"\begin{{tabular}}{{{'l' * words}{'r' * numbers}}}", r"\toprule"]
    text += [_line([in_words(name) for name in header[:words]] + list(map(_head, header[words:])))]
    text += [r"\midrule"]
    for place, lines in enumerate(groups):
        if place and len(lines) + len(groups[place - 1]) > 2:
            text += [r"\addlinespace"]
        text += [
            _line([escaped(cell) for cell in line[:words]] + list(map(figure, line[words:])))
            for line in lines
        ]
    text += [r"\bottomrule", r"\end{tabular}"]
    if notes:
        text += [r"\par\medskip", r"{\footnotesize\raggedright\setlength{\parindent}{0pt}"]
        text += [rf"{in_words(note)}\par" for note in notes]
        text += ["}"]
    return "\n".join(text) + "\n"


def escaped(text: str) -> str:
    """Text that stands for itself: no command, no comment, no dash for two hyphens."""
    set_so = "".join(_escaped(character) for character in printable(text))
    return re.sub("-(?=-)", "-{}", set_so)


def figure(cell: str) -> str:
    """A cell of numbers: its figures in math, none an en dash, and words as they are."""
    if cell == "-":
        return "--"
    if not _FIGURE.fullmatch(cell):
        return escaped(cell)
    figures = _NUMBER.sub(lambda found: _number(found[0]), cell).replace("±", r"\pm")
    return f"${figures}$"


def in_words(text: str) -> str:
    """A sentence: flags in typewriter, names of parameters and large and small numbers in math."""
    pieces, end = [], 0
    for found in _IN_WORDS.finditer(text):
        pieces += [escaped(text[end : found.start()]), _piece(found)]
        end = found.end()
    return "".join([*pieces, escaped(text[end:])])


def _piece(found: re.Match[str]) -> str:
    if found["flag"] or found["code"]:
        return rf"\texttt{{{escaped(found['flag'] or found['code'])}}}"
    if found["symbol"]:
        return f"${_SYMBOLS[found['symbol']]}$"
    if found["number"]:
        return f"${_number(found['number'])}$"
    return r" $\cdot$ "


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _head(name: str) -> str:
    """The name of a column of numbers, which may be one itself."""
    return figure(name) if _FIGURE.fullmatch(name) else in_words(name)


def _number(text: str) -> str:
    """Within math: thousands apart, and a power of ten for an exponent."""
    mantissa, _, exponent = text.partition("e")
    whole, point, decimals = mantissa.partition(".")
    grouped = f"{int(whole):,}".replace(",", "{,}")
    grouped = f"-{grouped}" if whole == "-0" else grouped
    if not exponent:
        return f"{grouped}{point}{decimals}"
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{grouped}{point}{decimals} \cdot {power}"


def _escaped(character: str) -> str:
    if character in _ESCAPED:
        return _ESCAPED[character]
    if character.isascii() or _LETTERS.match(character):
        return character
    return f"(U+{ord(character):04X})"
