"""Tables for people: whole at every width, plain where there are no other letters, and in pipes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess

import pytest
from rich.console import Console

from pate_cli.core.said import Grid, Pairs, on_terminal
from slices import some

NUMBER = re.compile(r"(?<![\w.])\d[\d.]*(?:e-?\d+)?%?")
# As wide as results get.
SAID = [
    Pairs(
        [
            ("epsilon", "12345.6789 at delta 1.25e-15, order 1234.56 of 1024.25 to 1234.56"),
            ("answers", "11234567.89 of 12000000 queries (98.765%), smallest epsilon 123.4567"),
        ]
    ),
    Grid(
        "Queries by the votes of the plurality",
        ("mechanism", "from", "to", "queries", "answers", "mean cost", "share"),
        [
            ("open-vocabulary", "123450", "234560", "10000001", "9000001.5", "1.23e-10", "98.7%"),
            ("open-vocabulary", "234560", "345670", "1999999", "1900001.5", "1.99e-11", "1.3%"),
        ],
    ),
]


def test_a_narrow_terminal_cuts_no_number():
    def at(width):
        console = Console(width=width, file=None, force_terminal=False)
        with console.capture() as capture:
            on_terminal(console, SAID)
        return capture.get()

    wide = set(NUMBER.findall(at(300)))
    assert len(wide) > 15
    for width in (60, 40):
        narrow = at(width)
        assert not wide - set(NUMBER.findall(narrow))
        assert max(map(len, narrow.splitlines())) <= width


def shown(terminal, words, width):
    text = terminal("stdout", *words, COLUMNS=str(width)).decode()
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).replace("\r", "")


@pytest.mark.parametrize(
    "environment", some([{"PYTHONIOENCODING": "ascii"}, {"TERM": "dumb"}], 2), ids=list
)
def test_ascii_terminals_get_ascii(command, votes, environment, folder):
    plain = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    result = subprocess.run(
        ["script", "-qec", shlex.join(command("cost", votes, "-q")), "/dev/null"],
        check=False,
        capture_output=True,
        env=plain | {"TERM": "xterm", "COLUMNS": "75"} | environment,
    )
    assert result.returncode == 0, result.stdout
    assert result.stdout.isascii()
    assert b"\\u" not in result.stdout
    assert b"-----" in result.stdout
    shown = re.sub(rb"\x1b\[[0-9;]*m", b"", result.stdout)
    assert max(len(line.rstrip(b"\r")) for line in shown.split(b"\n")) <= 75


def test_columns_that_do_not_fit_stand_below_beside_the_first():
    console = Console(width=19, file=None, force_terminal=False)
    rows = [("a", "1.25", "22.5", "333.75"), ("bb", "4", "5", "6")]
    with console.capture() as capture:
        on_terminal(console, [Grid("Title", ("name", "first", "second", "third"), rows)])
    assert capture.get().splitlines() == [
        *("", "Title"),
        *("name  first  second", "─" * 19, "a      1.25    22.5", "bb        4       5"),
        *("", "name   third", "─" * 12, "a     333.75", "bb         6"),
    ]
