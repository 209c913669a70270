"""Files that change while a run reads them: exit 3, one line, and nothing is left behind."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from changes import CHANGES
from pate_cli.cli.app import app
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.run import fold
from pate_cli.votes.source import Copying
from stored import npy, table_in

NOISE = ["--threshold", 20, "--sigma1", 8, "--sigma2", 4, "--seed", 3]
OUTPUTS = ["-o", "labels.csv", "--report", "report.json", "--ledger", "ledger.json"]


def content(counts, kind):
    """Votes as a file of this format has them."""
    if kind == "npy":
        return npy(counts)
    table = pa.table({f"class_{j}": counts[:, j] for j in range(counts.shape[1])})
    return table_in(table, kind, rows=10)


@pytest.fixture
def told(pate, refused):
    """Run `pate` on votes that change: exit 3, one line that says so, and no file that is new."""

    def run(path, *words):
        before = set(Path().rglob("*")) | set(Path("../tmp").rglob("*"))
        line = refused(pate(*words), 3)
        assert line == f"pate: {path}: the file changed while it was read; run again"
        assert set(Path().rglob("*")) | set(Path("../tmp").rglob("*")) == before

    return run


@pytest.fixture
def changing(monkeypatch):
    """Have a file changed when something is called for the second time, or so many times."""

    def plan(path, change, of, name, *, time=2, patch=monkeypatch):
        calls = []
        before = getattr(of, name)

        def called(*given, **named):
            calls.append(None)
            if len(calls) == time:
                CHANGES[change](path)
            return before(*given, **named)

        patch.setattr(of, name, called)

    return plan


# Where a file is changed: before a batch, while it is copied.
WAYS = {"npy": (ConfidentGNMax, "label", 2), "csv": (Copying, "path", 1)}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", WAYS)
def test_votes_that_change(kind, change, tmp_path, counts, told, changing, monkeypatch):
    monkeypatch.setattr(fold, "_ENTRIES", 10 * counts.shape[1])
    of, called, time = WAYS[kind]
    path = tmp_path / f"v.{kind}"
    path.write_bytes(content(counts, kind))
    changing(path, change, of, called, time=time)
    told(path, "aggregate", path, *OUTPUTS, *NOISE)


def test_a_part_of_a_folder_and_guesses_that_change(tmp_path, votes, counts, told, changing):
    path = tmp_path / "p.csv"
    path.write_text("label\n" + "".join(f"{label}\n" for label in counts.argmax(axis=1)))
    with pytest.MonkeyPatch.context() as patch:
        changing(path, "grown", Copying, "path", time=1, patch=patch)
        told(path, "aggregate", votes, *OUTPUTS, "--prior", path, *NOISE, "--prior-weight", 4)
    (tmp_path / "d").mkdir()
    for number, rows in enumerate(np.array_split(counts, 3)):
        (tmp_path / "d" / f"{number}.parquet").write_bytes(content(rows, "parquet"))
    path = tmp_path / "d" / "2.parquet"
    changing(path, "replaced", fold, "_work_on", time=1)
    told(path, "aggregate", tmp_path / "d", *OUTPUTS, *NOISE)


@pytest.mark.parametrize("command", ["cost", "smooth-sensitivity"])
def test_every_command_that_reads_votes(command, tmp_path, counts, told, changing, monkeypatch):
    monkeypatch.setattr(fold, "_ENTRIES", 10 * counts.shape[1])
    path = tmp_path / "v.npy"
    path.write_bytes(content(counts, "npy"))
    changing(path, "shrunk", fold, "_work_on")
    told(path, command, path, *NOISE[:-2])


def test_standard_input_that_is_a_file(tmp_path, counts, changing, monkeypatch, capsys):
    """A shell's `<` gives the file itself, which others can write to."""
    path = tmp_path / "v.csv"
    path.write_bytes(content(counts, "csv"))
    changing(path, "grown", Copying, "path", time=1)
    with path.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        with pytest.raises(SystemExit, match=r"^3$"):
            app([str(word) for word in ("aggregate", "-", *OUTPUTS, *NOISE)])
    line = "pate: standard input: the file changed while it was read; run again"
    assert capsys.readouterr().err.splitlines()[-1] == line
    assert not list(Path().iterdir())
