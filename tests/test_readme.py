"""README.md says what the program does: generated parts are current, tables are complete."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import typer

from pate_cli.cli.app import app
from pate_cli.disclosure.schema import report_schema
from pate_cli.errors import PateError
from pate_cli.synthetic import SyntheticEnsemble
from pate_cli.words import LabelFormat, Layout

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"(?<![\w-])\d+(?:\.\d+)?(?:e-\d+)?")

_spec = importlib.util.spec_from_file_location("readme_blocks", ROOT / "tests/readme_blocks.py")
readme_blocks = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(readme_blocks)


def _block(name):
    return TEXT.split(f"<!-- {name} -->\n")[1].split(f"<!-- /{name} -->")[0]


def _table(heading):
    """First column of the table under a heading."""
    section = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0].split("---|\n", 1)[1]
    return re.findall(r"^\| `?([^|`]+?)`? \|", section, re.MULTILINE)


def test_the_reference_is_current():
    assert _block("reference") == readme_blocks.reference(), "run: make docs"


def test_every_option_of_every_command_is_in_the_reference():
    commands = typer.main.get_command(app).commands
    parts = dict(re.findall(r"<code>pate ([\w-]+) .*?</summary>(.*?)</details>", TEXT, re.DOTALL))
    assert set(parts) == set(commands)
    for name, command in commands.items():
        for parameter in command.params:
            for spelling in parameter.opts:
                if spelling.startswith("-"):
                    assert re.search(rf"(^|, ){spelling}\b", parts[name], re.MULTILINE), spelling


def test_every_command_is_introduced():
    commands = typer.main.get_command(app).commands
    assert set(_table("Commands")) == {f"pate {name}" for name in commands}


def _without_other_programs():
    return re.sub(r"^\$ head .*$", "", TEXT.split("## Reference")[0], flags=re.MULTILINE)


def test_every_option_named_in_the_text_exists():
    commands = typer.main.get_command(app).commands.values()
    known = {spelling for one in commands for p in one.params for spelling in p.opts}
    named = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", _without_other_programs()))
    assert named - known <= {"--help"}


def _run(text):
    """(words, numbers) of an example, without the labels, which are noise."""
    run = text.split("$ head")[0]
    return NUMBER.sub("#", run), [float(number) for number in NUMBER.findall(run)]


def test_the_example_is_what_the_program_prints():
    shown, fresh = _block("example"), readme_blocks.example()
    words, numbers = _run(shown)
    fresh_words, fresh_numbers = _run(fresh)
    assert words == fresh_words, "run: make docs"
    # Noise moves epsilon by about 5%, and the answers by about 2%.
    assert numbers == pytest.approx(fresh_numbers, rel=0.5)
    assert len(shown.split("$ head")[1].splitlines()) == len(fresh.split("$ head")[1].splitlines())


# Standard deviations of what two_rounds.py prints, from 40 runs: a student learns from noisy
# labels, so what round two reinforces moves by more than noise alone. What is fixed has none.
_ROUND_SPREADS = [0.0, 5.8, 0.0, 3.5, 3.6, 0.0, 6.3, 0.0, 8.0, 2.8, 2.5, 0.26, 0.0]


def test_the_two_rounds_are_what_their_script_prints():
    (words, numbers), (fresh_words, fresh_numbers) = map(
        _run, (_block("two-rounds"), readme_blocks.two_rounds())
    )
    assert words == fresh_words, "run: make docs"
    # Two runs differ by ten of these, seven of their difference's, less than once in 1e10.
    apart = np.abs(np.subtract(numbers, fresh_numbers))
    assert np.all(apart <= 10.0 * np.array(_ROUND_SPREADS)), (numbers, fresh_numbers)


def _exit_codes(kind=PateError):
    return {kind.exit_code}.union(*(_exit_codes(child) for child in kind.__subclasses__()))


def test_the_rounds_of_the_text_can_be_composed(tmp_path):
    lines = next(b for b in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) if "monday" in b)
    for seed, name in enumerate(("monday.npy", "tuesday.npy")):
        counts, _ = SyntheticEnsemble(teachers=40, classes=4, queries=60).draw(seed)
        np.save(tmp_path / name, counts)
    script = f"set -e\npate() {{ '{sys.executable}' -m pate_cli \"$@\"; }}\n{lines}"
    run = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert [one["queries"] for one in report["rounds"]] == [60, 60]
    assert list(jsonschema.Draft202012Validator(report_schema()).iter_errors(report)) == []


def test_exit_codes_are_all_there():
    assert {int(code) for code in _table("Exit codes")} == _exit_codes() | {0, 130, 141}
    told = typer.main.get_command(app).help
    assert {int(code) for code in re.findall(r"\b(\d+) [a-z]", told)} >= _exit_codes() | {0, 130}


def test_formats_and_layouts_are_all_there():
    section = TEXT.split("## Votes in\n")[1].split("\n## ")[0]
    assert re.findall(r"\| `([a-z][a-z-]+)` \|$", section, re.MULTILINE) == list(Layout)
    assert {LabelFormat.from_path(f"x{suffix}") for suffix in _table("Labels out")} == set(
        LabelFormat
    )


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    known = set(re.findall(r"^([\w -]+):(?!=)", makefile, re.MULTILINE))
    known = {word for line in known for word in line.split()}
    section = TEXT.split("## Make targets\n")[1].split("\n## ")[0]
    named = re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE)
    assert {word.strip("` ") for cell in named for word in cell.split(",")} <= known
    assert set(re.findall(r"^\$ make (\w+)", TEXT, re.MULTILINE)) == {"demo", "test"}
