"""Tables for people: whole at every width, plain where there are no other letters, and in pipes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess

import pytest
from rich.console import Console

from pate_cli.core.said import Grid, Pairs, on_terminal
from slices import some, whole

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


@pytest.fixture
def asked(votes, counts, folder):
    return lambda words: [words[0], votes, *words[1:], "--quiet"]


def shown(terminal, words, width):
    text = terminal("stdout", *words, COLUMNS=str(width)).decode()
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).replace("\r", "")


@pytest.mark.parametrize("words", [["cost"], ["smooth-sensitivity"]], ids=lambda words: words[0])
def test_a_table_goes_through_a_pipe_on_request(pate, terminal, asked, words):
    words = asked(words)
    piped = pate(*words, "--table")
    assert piped.exit_code == 0
    assert "\x1b" not in piped.stdout
    wide = shown(terminal, words, 300)
    assert piped.stdout.split() == wide.split()
    line = pate(*words, "--table", "--json").stderr
    assert line == "pate: --json and --table contradict each other; give one of them\n"


@whole
def test_a_reader_that_leaves_a_table_early_is_no_error(patched, votes):
    # One line at a time, so that there is something left to write when the reader is gone.
    lines = "import rich.console, time\nplain = rich.console.Console.print\n"
    lines += "rich.console.Console.print = lambda *a, **k: (plain(*a, **k), time.sleep(0.2))[0]\n"
    with patched(
        "import sys\nsys.argv[0] = 'pate'\n" + lines, "cost", votes, "-q", "--table"
    ) as process:
        assert process.stdout.readline().startswith(b"NOT RELEASABLE")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


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
