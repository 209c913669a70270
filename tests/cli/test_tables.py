"""Tables for people: whole at every width, plain where there are no other letters, and in pipes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess

import pytest
from rich.console import Console

from pate_cli.core.said import Grid, on_terminal
from pate_cli.planning import words
from slices import some, whole

NUMBER = re.compile(r"(?<![\w.])\d[\d.]*(?:e-?\d+)?%?")
# As wide as results get.
MECHANISM = {"name": "open-vocabulary"}
FIRST = {"mechanism": MECHANISM, "analysis": "tight", "queries": 12_000_000, "delta": 1.25e-15}
COST = FIRST | {
    "epsilon": 12345.6789,
    "order": 1234.56,
    "orders": [1024.25, 1234.56],
    "order_at_edge": True,
    "expected_answers": 11_234_567.89,
    "data_independent": {"epsilon": 98765.4321, "method": "renyi"},
    "steps": {"threshold": [1234.56, 12.3456], "argmax": [1.23457e-11, 0.000123456]},
    "rdp": [1234.57, 2345.67],
    "target": {
        "epsilon": 1.23456,
        "refusal_epsilon": 0.61728,
        "queries": 11_999_999,
        "pass_probability": 0.98765,
        "passing_queries": 9_876_543,
        "looked_at": 11_999_998,
        "smallest_epsilon": {"0.5": 123.4567, "0.977": 234.5678},
    },
    "per_query": {
        "by_plurality": [
            {
                "from": 123_450,
                "to": 234_560,
                "queries": 10_000_001,
                "expected_answers": 9_000_001.5,
                "mean_cost": 1.23e-10,
                "share_of_cost": 0.987,
            },
            {
                "from": 234_560,
                "to": 345_670,
                "queries": 1_999_999,
                "expected_answers": 1_900_001.5,
                "mean_cost": 1.99e-11,
                "share_of_cost": 0.013,
            },
        ]
    },
}
SMOOTH = FIRST | {
    "order": 1234.56,
    "smooth_sensitivity": 0.000123456,
    "beta": 0.0123457,
    "distance": 1,
    "best": {
        "beta": 0.01234,
        "sigma_release": 1234.5,
        "release": "upper",
        "mean": 1234.5678,
        "sd": 2345.6789,
    },
    "conditions": [
        {"sigma": 123.456, "classes": 150, "order": 12.75, "holds": False, "reason": "C5 at 17"}
    ],
    "local_sensitivity": [1.23456e-11, 0.000234567],
    "discounted": [3.45678e-12, 0.000456789],
    "cost_by_distance": [1234.56, 2345.67],
}
COMPARE = {
    "delta": 1.25e-15,
    "matched_answers": 11_234_567.8,
    "max_answers": 11_234_568,
    "compare": [
        {
            "mechanism": "open-vocabulary",
            "queries": 11_234_568,
            "agreement": 0.9876,
            "expected_answers": 11_234_567.8,
            "epsilon": epsilon,
            "data_independent": 98765.4,
            "note": note,
        }
        for epsilon, note in ((12345.6789, ""), (None, "1234567 refusals afforded; ends sooner"))
    ],
}


@pytest.mark.parametrize(
    ("said", "result"),
    [
        (words.of_cost, COST),
        (words.of_sensitivity, SMOOTH),
        (words.of_comparison, COMPARE),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_a_narrow_terminal_cuts_no_number(said, result):
    def at(width):
        console = Console(width=width, file=None, force_terminal=False)
        with console.capture() as capture:
            on_terminal(console, said(result))
        return capture.get()

    wide = set(NUMBER.findall(at(300)))
    assert len(wide) > 5
    for width in (60, 40):
        narrow = at(width)
        assert not wide - set(NUMBER.findall(narrow))
        # What is to be pasted into a shell stays on one line.
        lines = [line for line in narrow.splitlines() if not line.startswith("pate ")]
        assert max(map(len, lines)) <= width


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
