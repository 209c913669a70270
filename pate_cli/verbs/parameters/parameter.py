"""Everything that the table says of one parameter."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    """Entry of the table of parameters.

    Attributes:
        help: one or two sentences, which name neither the type nor the range. Other parameters
            stand in backticks, which the command line turns into its options.
        metavar: how help writes the value; `[X]` for an argument that may be left out.
        above, least, below, most: bounds of a number; `above` and `below` are excluded.
        option: the option, where it is not the name with dashes.
        short: a one-letter option.
        python: what docstrings say besides, and the help of the command line does not.
        off: the option that stands for False.
        without: help of that option.
        tried: other names that people try, for "did you mean".
        excludes: parameters that it cannot be given together with.
        argument: it stands on the command line without an option in front.
        several: the command line takes more than one, and the value is a list.
        hidden: Python alone has it.
        group: the heading under which help lists it.
        everyday: whether `--help` shows it; `--help-all` shows all.
    """

    help: str
    metavar: str | None = None
    above: float | None = None
    least: float | None = None
    below: float | None = None
    most: float | None = None
    option: str | None = None
    short: str | None = None
    python: str = ""
    off: str | None = None
    without: str = ""
    tried: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    argument: bool = False
    several: bool = False
    hidden: bool = False
    group: str = ""
    everyday: bool = True
