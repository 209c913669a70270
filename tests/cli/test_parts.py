"""A folder of parts holds what one file would, whatever the cap, or nothing at all."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import numpy as np
import pyarrow.csv as pc
import pyarrow.json as pj
import pyarrow.parquet as pq
import pytest

from pate_cli.files.local_folder import LocalFolder
from pate_cli.files.part_names import MARKER
from pate_cli.run import passes

A_RANGE, CLASSES, QUERIES = 10, 4, 60
READERS = {
    "parquet": lambda path: pq.read_table(path).to_pylist(),
    "csv": lambda path: pc.read_csv(path).to_pylist(),
    "jsonl": lambda path: pj.read_json(path).to_pylist(),
    "npy": lambda path: np.load(path).tolist(),
}
CONFIDENT = ["--threshold", 10, "--sigma1", 4, "--sigma2", 2, "--max-epsilon", 1000]
GNMAX = ["--mechanism", "gnmax", "--sigma2", 3]
SPARSE = ["--mechanism", "sparse-vector", "--query-epsilon", 2, "--query-delta", 1e-3]
SPARSE += ["--refusals", 10, "--delta", 0.2]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(passes, "_ENTRIES", A_RANGE * CLASSES)


@pytest.fixture
def student(tmp_path):
    path = tmp_path / "student.npy"
    np.save(path, np.random.default_rng(6).dirichlet([0.6] * CLASSES, size=QUERIES))
    return path


def both(pate, votes, kind, *flags):
    """The rows of one file and those of all parts, in order."""
    for out, report in ((f"one.{kind}", "one.json"), ("many/", "many.json")):
        line = ["aggregate", votes, "-o", out, "--report", report, "--seed", 3, "--format", kind]
        done = pate(*line, *flags)
        assert done.exit_code == 0, done.stderr
    paths = sorted(path for path in Path("many").iterdir() if path.name != MARKER)
    assert [path.name for path in paths] == [f"part-{n:05d}.{kind}" for n in range(len(paths))]
    parts = [READERS[kind](path) for path in paths]
    marker = json.loads(Path("many", MARKER).read_text())
    assert [part["rows"] for part in marker["parts"]] == [len(part) for part in parts]
    assert [part["bytes"] for part in marker["parts"]] == [path.stat().st_size for path in paths]
    assert marker["rows"] == QUERIES
    one, many = (json.loads(Path(name).read_text()) for name in ("one.json", "many.json"))
    assert one["rounds"][0]["answers"] == many["rounds"][0]["answers"]
    assert one["epsilon"] == many["epsilon"]
    return READERS[kind](Path(f"one.{kind}")), [row for part in parts for row in part]


@pytest.mark.parametrize("kind", list(READERS))
@pytest.mark.parametrize("cap", [15, QUERIES])
def test_every_format(kind, cap, pate, votes):
    whole, parts = both(pate, votes, kind, *CONFIDENT, "--max-answers", cap)
    assert parts == whole


@pytest.mark.parametrize("cap", [1, 9, 10, 11, 30, 37, 59, 60])
def test_a_cap_wherever_it_falls(cap, pate, votes):
    """Every row gets an answer, so that the cap falls into the first part, the last, or between."""
    whole, parts = both(pate, votes, "npy", *GNMAX, "--max-answers", cap)
    assert parts == whole
    assert sum(label >= 0 for label in parts) == cap
    assert all(label < 0 for label in parts[cap:])


@pytest.mark.parametrize("cap", [3, QUERIES])
def test_a_student_answers_only_before_the_stop(cap, pate, votes, student):
    flags = ["--mechanism", "interactive", "--student", student, *CONFIDENT, "--max-answers", cap]
    whole, parts = both(pate, votes, "csv", *flags)
    assert parts == whole


@pytest.mark.parametrize("cap", [7, 20, QUERIES])
def test_rows_that_hang_on_those_before_them(cap, pate, votes):
    whole, parts = both(pate, votes, "npy", *SPARSE, "--max-answers", cap)
    assert parts == whole


def test_a_folder_that_is_not_empty_is_replaced_on_demand_only(pate, votes, leftovers):
    line = ["aggregate", votes, "-o", "many/", "--seed", 3, *CONFIDENT]
    assert pate(*line, "--report", "r.json").exit_code == 0
    before = {path.name: path.read_bytes() for path in Path("many").iterdir()}
    assert pate(*line, "--report", "s.json").exit_code == 6
    assert leftovers() == ["many", "r.json"]
    assert {path.name: path.read_bytes() for path in Path("many").iterdir()} == before
    assert pate(*line, "--report", "s.json", "--max-answers", 5, "--force").exit_code == 0
    assert {path.name: path.read_bytes() for path in Path("many").iterdir()} != before
    (Path("many") / "notes.txt").write_text("mine")
    assert pate(*line, "--report", "t.json", "--force").exit_code == 6
    assert leftovers() == ["many", "r.json", "s.json"]


def test_the_folder_of_the_votes_is_refused(pate, tmp_path, counts):
    home = tmp_path / "set"
    home.mkdir()
    np.save(home / "votes.npy", counts)
    done = pate("aggregate", home / "votes.npy", "-o", f"{home}/", "--force", *CONFIDENT)
    assert done.exit_code == 6
    assert "'votes.npy', which is no part and would be lost" in done.stderr
    assert [path.name for path in home.iterdir()] == ["votes.npy"]


def test_a_report_that_cannot_be_written_leaves_nothing(pate, votes, leftovers):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    done = pate("aggregate", votes, "-o", "many/", "--report", "/dev/full", *CONFIDENT)
    assert done.exit_code == 6
    assert leftovers() == []


def test_a_part_that_cannot_be_written_leaves_nothing(pate, votes, leftovers, monkeypatch):
    staging = LocalFolder.staging

    @contextlib.contextmanager
    def full(self, run, name):
        with staging(self, run, name) as draft:
            yield draft
            if name.startswith("part-00003"):
                raise OSError(28, os.strerror(28))

    monkeypatch.setattr(LocalFolder, "staging", full)
    done = pate("aggregate", votes, "-o", "many/", "--report", "r.json", *CONFIDENT)
    assert done.exit_code == 6, done.stderr
    assert leftovers() == []
