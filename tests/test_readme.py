"""README.md and the pages of pate_cli/docs: generated parts are current, tables and links whole."""

import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

import pate_cli
import readme_blocks
from face import runner
from pate_cli.cli.app import COMMANDS, app, build
from pate_cli.core.errors import PateError
from pate_cli.core.words import LabelFormat, Layout
from pate_cli.disclosure.report import report_schema
from pate_cli.planning.synthetic import SyntheticEnsemble
from slices import EVERY, some, whole

ROOT = Path(__file__).resolve().parents[1]
NUMBER = re.compile(r"(?<![\w-])\d+(?:\.\d+)?(?:e-\d+)?")

TEXT = {page.name: page.read_text(encoding="utf-8") for page in readme_blocks.PAGES}


def _block(page, name):
    return TEXT[page].split(f"<!-- {name} -->\n")[1].split(f"<!-- /{name} -->")[0]


def _table(page, heading):
    """First column of the table under a heading."""
    section = TEXT[page].split(f"## {heading}\n")[1].split("\n## ")[0].split("---|\n", 1)[1]
    section = section.split("\n\n")[0]
    return re.findall(r"^\| `?([^|`]+?)`? \|", section, re.MULTILINE)


def test_the_reference_is_current_and_introduces_every_command():
    assert set(_table("reference.md", "Commands")) == {f"pate {name}" for name in COMMANDS}
    assert _block("reference.md", "reference") == readme_blocks.reference(), "run: make docs"


def test_every_option_named_in_the_text_exists():
    known = {
        spelling
        for name in COMMANDS
        for p in build(name).params
        for spelling in (*p.opts, *p.secondary_opts)
    }
    for page, text in TEXT.items():
        told = re.sub(r"<!-- reference -->.*<!-- /reference -->", "", text, flags=re.DOTALL)
        told = re.sub(
            r"^(\$ )?head .*$|env -i|set -eu|(uvx|pipx run) --\w+", "", told, flags=re.MULTILINE
        )
        named = set(re.findall(r"(?<![\w)-])--?[a-z][\w-]*", told))
        assert named - known <= {"--help", "--help-all", "--install-completion"}, page


def _anchors(text):
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", readme_blocks.PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    for link in (link for link in links if not link.startswith("https://")):
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.is_file(), link
        if anchor:
            assert anchor in _anchors(target.read_text(encoding="utf-8")), link


def test_the_table_of_results_names_sections_modules_and_tests_that_exist():
    theory = (ROOT / "pate_cli/accounting/THEORY.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .* \| ([\d., –]+) \| (.*) \| (.*) \|$", theory, re.MULTILINE)
    assert len(rows) > 25
    sections = set(re.findall(r"^###? ([\d.]*\d)", theory, re.MULTILINE))
    for numbers, modules, tests in rows:
        assert sections.issuperset(re.findall(r"[\d.]+\d|\d", numbers)), numbers
        for folder, cell in (("pate_cli", modules), ("tests", tests)):
            assert all((ROOT / folder / name).is_file() for name in re.findall("`(.*?)`", cell)), (
                cell
            )


def test_the_readme_is_short_cites_this_version_and_leads_to_every_page():
    assert f"version {pate_cli.__version__}," in TEXT["README.md"]
    assert len(TEXT["README.md"].splitlines()) <= 150
    for page in readme_blocks.PAGES[1:]:
        assert f"](pate_cli/docs/{page.name})" in TEXT["README.md"]


def _run(text):
    """(words, numbers) of an example, without the labels, which are noise."""
    run = text.split("$ head")[0]
    return NUMBER.sub("#", run), [float(number) for number in NUMBER.findall(run)]


@pytest.mark.parametrize(
    ("page", "name"), some([("README.md", "summary"), ("report.md", "example")], 2)
)
def test_the_examples_are_what_the_program_prints(page, name):
    _alike(_block(page, name), getattr(readme_blocks, name)())


def _alike(shown, fresh):
    words, numbers = _run(shown)
    fresh_words, fresh_numbers = _run(fresh)
    assert words == fresh_words, "run: make docs"
    # Noise moves epsilon by about 5%, and the answers by about 2%.
    assert numbers == pytest.approx(fresh_numbers, rel=0.5)
    assert shown.count("\n") == fresh.count("\n")


def test_the_tutorial_runs_as_it_stands(tmp_path):
    printed = readme_blocks.follow_tutorial(tmp_path)
    _alike(_block("tutorial.md", "tutorial"), f"```text\n{printed}```\n")
    (lines,) = re.findall(r"```sh\n(.*?)```", TEXT["tutorial.md"], re.DOTALL)
    dry, rest = lines.split("price.json\n")
    _ran(rest, tmp_path)
    assert (tmp_path / "again.csv").read_text().startswith("query_id,label,source\n")
    report = json.loads((tmp_path / "again.json").read_text())
    assert all("target" in run["settings"] for run in report["spent"]["runs"])
    assert (report["spent"]["epsilon"], report["spent"]["delta"]) == (3.0, 3e-5)
    if EVERY:  # it looks for settings as the run after it does, which takes as long
        price = json.loads(_ran(f"{dry}price.json", tmp_path)[0])
        assert price["target"]["test_orders"]
        assert price["target"]["epsilon"] == report["epsilon"]


def test_the_lines_of_python_run_as_they_stand_and_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATE_HOME", str(tmp_path))
    (lines,) = re.findall(r"```python\n(.*?)```", TEXT["README.md"], re.DOTALL)
    exec(lines, {})  # noqa: S102 - our own words
    assert "<Report: epsilon 1.0000 at delta 1e-05, " in capsys.readouterr().out
    report = json.loads((tmp_path / "labels.report.json").read_text())
    # Nine teachers in ten agree on every query: nearly all get a label.
    assert report["answers"] > 300
    with pytest.raises(pate_cli.PateError, match="exists already"):
        exec(lines, {})  # noqa: S102 - our own words
    spent = pate_cli.spent(tmp_path / "toy.spent.json")
    assert len(spent.runs) == 1


# The target of two hundred classes, tested: half a minute's work.
DEAR = () if EVERY else ("file",)


@pytest.mark.parametrize("page", ["sessions.md"])
def test_what_the_pages_do_leaves_what_they_say(page):
    fresh = readme_blocks.worked(page, DEAR)
    if "exit code 8" in fresh.get("file", ""):  # once in two thousand runs
        fresh = readme_blocks.worked(page, DEAR)
    assert fresh
    for name, shown in fresh.items():
        _alike(_block(page, name), shown)


def _ran(lines, folder):
    """Run the lines of a page, of which `head` only shows; what `pate` wrote on stdout."""
    found = []
    for line in lines.replace("\\\n", "").splitlines():
        line, _, to = line.partition(">")
        program, *words = shlex.split(line)
        assert program in ("pate", "head"), line
        if program == "pate":
            done = runner.run(folder, *words)
            assert done.exit_code == 0, done.stderr
            found.append(done.stdout)
            if to:
                (folder / to.strip()).write_text(done.stdout)
    return found


def test_the_expected_epsilons_are_current():
    assert _block("settings.md", "expected") == readme_blocks.expected(), "run: make docs"


def test_the_two_rounds_are_told_in_the_words_of_their_script(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(readme_blocks.SAMPLES))
    script = importlib.import_module("two_rounds")
    told = {
        "answers": [1, 2],
        "reinforced": 3,
        "labels right": [0.125, 0.25],
        "student right": [0.5, 0.75],
        "epsilon": 1.5,
        "delta": 1e-5,
    }
    monkeypatch.setattr(script, "both_rounds", lambda *_, **__: told)
    monkeypatch.setattr(sys, "argv", ["two_rounds.py"])
    script.main()
    shown = f"$ python sample_votes/two_rounds.py\n{capsys.readouterr().out}"
    assert _run(f"```console\n{shown}```\n")[0] == _run(_block("runs.md", "two-rounds"))[0]


def _exit_codes(kind=PateError):
    return {kind.exit_code}.union(*(_exit_codes(child) for child in kind.__subclasses__()))


def test_the_rounds_of_the_text_can_be_composed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATE_HOME", str(tmp_path))
    _, months, account, _, lines = re.findall(r"```sh\n(.*?)```", TEXT["runs.md"], re.DOTALL)[:5]
    for seed, name in enumerate(("monday.npy", "tuesday.npy")):
        counts, _ = SyntheticEnsemble(teachers=40, classes=2, queries=60).draw(seed)
        np.save(tmp_path / name, counts)
    _ran(lines, tmp_path)
    report = json.loads((tmp_path / "report.json").read_text())
    assert [one["queries"] for one in report["rounds"]] == [60, 60]
    columns = {f"class_{j}": counts[:, j] for j in range(2)}
    pq.write_table(pa.table(columns), tmp_path / "votes.parquet")
    # Forty made-up teachers need more of an epsilon.
    _ran(account.replace("--budget 2", "--budget 200").replace(" 0.5 ", " 9 "), tmp_path)
    assert len(pate_cli.SpendRecord.read(tmp_path / "votes.parquet.spent.json").runs) == 2
    for left_out, name in enumerate(("october", "november"), 1):
        pq.write_table(pa.table(columns).slice(left_out), tmp_path / f"{name}.parquet")
    months = months.replace("epsilon 1 ", "epsilon 9 ").replace("budget 1 ", "budget 9 ")
    _ran(months, tmp_path)
    assert pate_cli.spent(tmp_path / "2026-10.spent.json").total.epsilon == 9.0
    assert list(jsonschema.Draft202012Validator(report_schema()).iter_errors(report)) == []


@pytest.fixture
def job(tmp_path):
    """A folder with votes and a `pate` that stands on a path, and what runs a line there so."""
    counts, _ = SyntheticEnsemble(teachers=40, classes=2, queries=60).draw(3)
    columns = {f"class_{j}": counts[:, j] for j in range(2)}
    pq.write_table(pa.table(columns), tmp_path / "votes.parquet")
    command = tmp_path / "bin" / "pate"
    command.parent.mkdir()
    program = shlex.join([sys.executable, "-m", "pate_cli"])
    command.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {program} "$@"\n')
    command.chmod(0o755)

    def run(*words):
        path = f"PATH={command.parent}:/usr/bin:/bin"
        return subprocess.run(
            ["env", "-i", path, *words], cwd=tmp_path, capture_output=True, text=True
        )

    return run


def _script(page, name):
    """A file of a page, for the few teachers that these votes are of."""
    (text,) = re.findall(rf"```\w+\n# {name}\n(.*?)```", TEXT[page], re.DOTALL)
    return text.replace("epsilon 1 ", "epsilon 9 ")


@whole
def test_a_job_runs_in_an_empty_environment(job, tmp_path):
    """It keeps its record where it says, and costs nothing where it ends early."""
    (tmp_path / "monthly.sh").write_text(_script("runs.md", "monthly.sh"))
    record = tmp_path / "records" / "clinics.spent.json"
    for code, runs in ((0, 1), (6, 1)):
        done = job("sh", str(tmp_path / "monthly.sh"))
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert len(pate_cli.SpendRecord.read(record).runs) == runs
    for name in ("labels.csv", "labels.report.json"):
        (tmp_path / name).unlink()
    assert job("sh", "monthly.sh").returncode == 5
    assert len(pate_cli.SpendRecord.read(record).runs) == 1
    assert not (tmp_path / "labels.csv").exists()


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_make_labels_once_and_again_only_where_somebody_decides_so(job, tmp_path):
    (tmp_path / "Makefile").write_text(_script("runs.md", "Makefile"))
    votes = tmp_path / "votes.parquet"
    record = tmp_path / "votes.parquet.spent.json"
    home = f"PATE_HOME={tmp_path / 'home'}"

    def make(code, runs):
        done = job(home, "make")
        assert done.returncode == code, done.stderr
        assert len(pate_cli.SpendRecord.read(record).runs) == runs
        return done.stdout

    make(0, 1)
    assert json.loads((tmp_path / "checks.json").read_text())["holds"]
    assert "up to date" in make(0, 1)
    later = (tmp_path / "checks.json").stat().st_mtime + 10
    os.utime(votes, (later, later))
    make(2, 1)
    for name in ("labels.csv", "labels.report.json"):
        (tmp_path / name).unlink()
    make(0, 2)


def test_exit_codes_are_all_there():
    for name in pate_cli.__all__:  # errors are known once the module of each is imported
        getattr(pate_cli, name)
    told = {int(code) for code in _table("formats.md", "Exit codes")}
    assert told == _exit_codes() | {0, 130, 141}
    root = typer.main.get_command(app)
    told = root.get_help(typer.Context(root, info_name="pate"))
    assert {int(code) for code in re.findall(r"\b(\d+)\s[a-z]", told)} >= _exit_codes() | {0, 130}


def test_formats_and_layouts_are_all_there():
    section = TEXT["formats.md"].split("## Votes in\n")[1].split("\n## ")[0]
    assert re.findall(r"\| `([a-z][a-z-]+)` \|$", section, re.MULTILINE) == list(Layout)
    suffixes = _table("formats.md", "Labels out")
    assert {LabelFormat.from_path(f"x{suffix}") for suffix in suffixes} == set(LabelFormat)


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    known = set(re.findall(r"^([\w -]+):(?!=)", makefile, re.MULTILINE))
    known = {word for line in known for word in line.split()}
    section = TEXT["developing.md"].split("## Make targets\n")[1].split("\n## ")[0]
    named = re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE)
    assert {word.strip("` ") for cell in named for word in cell.split(",")} <= known
    assert set(re.findall(r"^\$ make (\w+)", TEXT["README.md"], re.MULTILINE)) == {"demo", "test"}


def test_sections_of_the_theory_that_the_code_names_exist():
    """Sections were once numbered anew, and four references led nowhere."""
    theory = (ROOT / "pate_cli/accounting/THEORY.md").read_text(encoding="utf-8")
    there = set(re.findall(r"^###? (\d+(?:\.\d+)?)", theory, re.MULTILINE))
    named = re.compile(r"THEORY\.md,\s+(?:sections?\s+)?([\d., and]*\d)")
    found = {
        (path.name, number)
        for path in (ROOT / "pate_cli").rglob("*.py")
        for numbers in named.findall(path.read_text(encoding="utf-8"))
        for number in re.findall(r"\d+(?:\.\d+)?", numbers)
    }
    assert len(found) > 30
    assert not [each for each in found if each[1] not in there]
