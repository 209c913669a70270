"""stdout is data, stderr is for people: pipes, progress, colours, help and completion."""

import os
import re
import subprocess

import pytest

from pate_cli.cli.app import COMMANDS, build
from pate_cli.verbs.keywords import with_options
from pate_cli.votes import formats
from slices import some


def test_what_is_refused_before_votes_are_taken_from_a_pipe(
    pate, refused, folder, leftovers, monkeypatch
):
    monkeypatch.setattr(formats, "locate", lambda *_: pytest.fail("the votes were read"))
    unnamed = (
        "votes from a pipe have no name, so give a name for the labels: -o FILE, or -o - with "
        "--report FILE"
    )
    refused(pate("aggregate", "-"), 2, unnamed)
    os.mkfifo("pipe")
    refused(pate("aggregate", "pipe"), 2, unnamed)
    assert leftovers() == ["pipe"]
    (folder / "l.csv").touch()
    line = refused(pate("aggregate", "-", "-o", "l.csv"), 6)
    assert line == "pate: l.csv exists already; use --force to replace it"


def test_a_reader_that_leaves_early_is_no_error(command, many):
    words = ["aggregate", many, "-o", "-", "--format", "jsonl", "--report", os.devnull, "-q"]
    words += ["--max-epsilon", 1000]
    with subprocess.Popen(
        command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.read(10) == b'{"query_id'
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_quiet_says_nothing_when_all_is_well_and_errors_all_the_same(pate, refused, votes):
    assert pate("aggregate", votes, "-q").stderr == ""
    line = refused(pate("aggregate", votes, "-q"), 6)
    assert line.startswith("pate: votes.report.json exists already")


@pytest.mark.parametrize("environment", some([{"NO_COLOR": "1"}, {"TERM": "dumb"}], 2))
@pytest.mark.parametrize("columns", some([40, 60, 80], 2))
def test_help_is_as_wide_as_the_terminal(pate, columns, environment):
    for words in ((), *((name,) for name in COMMANDS)):
        for flag in ("-h", "--help-all") if words else ("-h",):
            result = pate(*words, flag, env={"COLUMNS": str(columns), **environment}, code=0)
            assert max(map(len, result.stdout.splitlines())) <= columns
            squeezed = re.sub(r"\s+", "", result.stdout)
            assert squeezed == re.sub(r"\s+", "", pate(*words, flag).stdout)


def test_help_shows_the_everyday_and_says_how_much_more_there_is(pate):
    short, whole = (pate("aggregate", word).stdout for word in ("--help", "--help-all"))
    assert pate("aggregate", "-h").stdout == short
    assert pate("aggregate", "missing.npy", "--delta", "x", "--help").stdout == short
    panels = re.findall(r"^(\S.*):$", short, re.MULTILINE)
    assert panels == [
        *("Arguments", "Privacy", "Mechanism", "Votes", "Record of all runs", "Output")
    ]
    assert "--max-queries" in short
    assert "--query-delta" not in short
    assert "--query-delta" in whole
    options = re.compile(r"^  -", re.MULTILINE)
    more = len(options.findall(whole)) - len(options.findall(short))
    squeezed = " ".join(short.split())
    assert f"pate aggregate --help-all shows {more} more." in squeezed
    assert "--help-all shows" not in whole
    assert "\x1b" not in whole
    assert len(short.splitlines()) <= 70
    assert panels[0] == "Arguments"
    assert "For --mechanism lnmax:" in whole


WRONG = {
    "x.npy --delta abc": "--delta takes a number, got 'abc'",
    "x.npy --max-queries 1.5": "--max-queries takes a whole number, got '1.5'",
    "x.npy --max-queries 0": "--max-queries must be at least 1, got 0",
    "x.npy --target-epsilon -1": "--target-epsilon must be above 0, got -1.0",
    "x.npy --bound no": "--bound must be one of auto, two-tail, conditional, got 'no'",
    "x.npy --dry-rn": "no option --dry-rn; did you mean --dry-run?",
    "x.npy --targt-epsilon 2": "no option --targt-epsilon; did you mean --target-epsilon?",
    "x.npy --epsilon 2": "no option --epsilon; did you mean --target-epsilon?",
    "x.npy --sigma-gnmax 2": "no option --sigma-gnmax; did you mean --sigma2?",
    "x.npy --spend False": ("--spend takes the name of a file; if you want none, give --no-record"),
    "x.npy --spend s --no-record": (
        "--no-record and --spend contradict each other; give one of them"
    ),
    "x.npy --ensemble s --no-record": (
        "--no-record and --ensemble contradict each other; give one of them"
    ),
    "v.npy --pool c.csv": (
        "--pool is gone: add the votes of similar queries in one row before you aggregate"
    ),
    "--delta 1e-5": "missing VOTES;",
    "x.npy y.npy": "unexpected extra argument (y.npy);",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_use_is_one_line_in_the_words_of_this_house(pate, refused, words):
    line = WRONG[words]
    more = " pate aggregate --help tells more" if line[-1] in ";?" else ""
    refused(pate("aggregate", *words.split()), 2, f"{line}{more}")


def test_a_wrong_command_is_one_line_too(pate, refused):
    line = "no such command 'agregate'; did you mean 'aggregate'? pate --help tells more"
    refused(pate("agregate", "x.npy"), 2, line)
    refused(pate("--frob"), 2, "no such option: --frob; pate --help tells more")


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (".", ". is not empty; name a new folder for the demo"),
        ("mine.txt", "mine.txt: File exists; nothing was released"),
    ],
)
def test_a_demo_is_written_into_a_folder_of_its_own(pate, refused, folder, place, line):
    (folder / "mine.txt").write_text("mine")
    assert refused(pate("demo", place), 6).endswith(line)
    assert (folder / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_tells_every_option(pate, name):
    keywords = build(name).keywords
    result = pate(name, "--help-all")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout
    squeezed = re.sub(r"\s+", "", result.stdout)
    for keyword in keywords.values():
        for text in (keyword.spelled, keyword.says.help):
            assert re.sub(r"\s+", "", with_options(text, keywords)) in squeezed, keyword.name
