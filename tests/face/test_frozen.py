"""What people meet stays as it is: exit codes, labels, and the numbers of every output."""

import math
import re
from pathlib import Path

import pytest

from face import calls, lines, runner, wrong

_DIGITS = 1e-7
"""Relative: far below the fifth digit, and above what another processor rounds differently."""


def differences(kept, found, at=""):
    """Where two outputs differ, each as a sentence."""
    if isinstance(kept, dict) and isinstance(found, dict):
        for name in sorted({*kept, *found}):
            yield from differences(
                kept.get(name), found.get(name), f"{at} › {name}" if at else name
            )
    elif isinstance(kept, list) and isinstance(found, list) and len(kept) == len(found):
        for number, pair in enumerate(zip(kept, found, strict=True)):
            yield from differences(*pair, f"{at} › {number}")
    elif not _same(kept, found):
        yield f"{at}: was {kept!r}, is {found!r}"


def _same(kept, found):
    if isinstance(kept, float) and isinstance(found, (int, float)):
        return math.isclose(kept, found, rel_tol=_DIGITS)
    return type(kept) is type(found) and kept == found


def _listed(kept, found):
    return "\n".join(differences(kept, found))


@pytest.mark.parametrize("name", lines.LINES)
def test_a_command_line_gives_what_it_gave(name, shown, frozen, tmp_path):
    found = runner.case(tmp_path / "here", shown, lines.lines_of(name))
    assert _listed(frozen["lines"][name], found) == ""


@pytest.mark.parametrize("name", calls.CALLS)
def test_a_call_gives_what_it_gave(name, shown, frozen, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert _listed(frozen["calls"][name], calls.CALLS[name](shown, tmp_path)) == ""


@pytest.mark.parametrize("name", wrong.WRONG)
def test_wrong_input_is_refused_by_name(name, shown, frozen, tmp_path):
    """In one line that names the file, the row and a way out."""
    asked = wrong.WRONG[name]
    ran, left = runner.refused(tmp_path / "here", shown, asked)
    assert ran.exit_code == frozen["wrong"][name]
    assert ran.exit_code not in (0, 1)
    line = ran.stderr.splitlines()[-1]
    assert line.startswith("pate: ")
    missing = [word for word in asked.says.split(" … ") if word not in line]
    assert not missing, line
    assert ran.stdout == ""
    assert left == []


def test_all_is_frozen_and_no_more(frozen):
    assert list(frozen["lines"]) == list(lines.LINES)
    assert list(frozen["calls"]) == list(calls.CALLS)
    assert list(frozen["wrong"]) == list(wrong.WRONG)
    assert sum(len(lines.lines_of(name)) for name in lines.LINES) >= 120
    assert len(calls.CALLS) >= 40
    assert len(wrong.WRONG) >= 40


def test_the_suite_knows_the_face_alone():
    """But for the application nothing below `pate_cli` is imported, so that no room that is
    rebuilt breaks a test here."""
    here = Path(__file__).parent
    below = re.compile(
        r"^\s*(from|import) pate_cli(?!\.cli\.app)[.]|^\s*from pate_cli import", re.M
    )
    assert [path.name for path in here.glob("*.py") if below.search(path.read_text())] == []


@pytest.mark.parametrize("votes", ["SAME_BY_ID", "SAME_BY_PLACE", "SAME_IN_WORDS"])
def test_the_same_votes_have_the_same_labels_in_whatever_way_they_come(votes, frozen):
    of_lines = [frozen["lines"][f"in: {name}"][0]["labels.csv"] for name in getattr(lines, votes)]
    of_calls = [frozen["calls"][f"in: {name}"] for name in getattr(calls, votes)]
    found = {each["labels"]["sha256"] for each in (*of_lines, *of_calls)}
    assert len(found) == 1


def test_labels_are_the_same_in_every_format(frozen):
    tables = ("csv", "parquet", "jsonl", "arrow")
    found = [frozen["calls"][f"out: {kind}"]["labels"] for kind in tables]
    found += [
        frozen["lines"][f"out: {kind}{to}"][0][f"labels.{kind}"]["labels"]
        for kind in tables
        for to in ("", " on stdout")
    ]
    assert all(each == found[0] for each in found)
