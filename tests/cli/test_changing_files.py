"""Files that change while a run reads them: exit 3, one line, and nothing is left behind."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from changes import CHANGES
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.run import engine, fold
from pate_cli.votes.source import Copying

NOISE = ["--threshold", 20, "--sigma1", 8, "--sigma2", 4, "--seed", 3]
OUTPUTS = ["-o", "labels.csv", "--report", "report.json", "--ledger", "ledger.json"]


def _table(counts):
    return pa.table({f"class_{j}": counts[:, j] for j in range(counts.shape[1])})


def _csv(path, counts):
    lines = [",".join(f"class_{j}" for j in range(counts.shape[1]))]
    lines += [",".join(map(str, row)) for row in counts.tolist()]
    path.write_text("\n".join(lines) + "\n")


def _jsonl(path, counts):
    path.write_text("".join(json.dumps({"counts": row}) + "\n" for row in counts.tolist()))


def _gz(path, counts):
    _csv(path, counts)
    path.write_bytes(gzip.compress(path.read_bytes()))


def _npy(path, counts):
    with path.open("wb") as file:
        np.save(file, counts)


READ_IN_PLACE = {
    "v.npy": _npy,
    "v.parquet": lambda path, counts: pq.write_table(_table(counts), path, row_group_size=10),
    "v.arrow": lambda path, counts: feather.write_feather(_table(counts), path, chunksize=10),
}
COPIED = {
    "v.csv": _csv,
    "v.jsonl": _jsonl,
    "v.csv.gz": _gz,
    "v.npz": lambda path, counts: np.savez(path, counts),
}


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
def changing(monkeypatch, tmp_path):
    """Have a file changed when something is called for the second time, or so many times."""

    def plan(path, change, of, name, *, time=2):
        calls = []
        before = getattr(of, name)

        def called(*given, **named):
            calls.append(None)
            if len(calls) == time:
                CHANGES[change](path)
            return before(*given, **named)

        monkeypatch.setattr(of, name, called)

    return plan


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", READ_IN_PLACE)
def test_votes_that_change_between_two_batches(
    name, change, tmp_path, counts, told, changing, monkeypatch
):
    monkeypatch.setattr(fold, "_ENTRIES", 10 * counts.shape[1])
    path = tmp_path / name
    READ_IN_PLACE[name](path, counts)
    changing(path, change, ConfidentGNMax, "label")
    told(path, "aggregate", path, *OUTPUTS, *NOISE)


@pytest.mark.parametrize("change", CHANGES)
def test_a_part_of_a_folder_that_changes(change, tmp_path, counts, told, changing, monkeypatch):
    monkeypatch.setattr(fold, "_ENTRIES", 10 * counts.shape[1])
    (tmp_path / "d").mkdir()
    for number, rows in enumerate(np.array_split(counts, 3)):
        pq.write_table(_table(rows), tmp_path / "d" / f"{number}.parquet")
    path = tmp_path / "d" / "2.parquet"
    changing(path, change, ConfidentGNMax, "label")
    told(path, "aggregate", tmp_path / "d", *OUTPUTS, *NOISE)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", COPIED)
def test_votes_that_change_while_they_are_copied(name, change, tmp_path, counts, told, changing):
    path = tmp_path / name
    COPIED[name](path, counts)
    changing(path, change, Copying, "path", time=1)
    told(path, "aggregate", path, *OUTPUTS, *NOISE)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", READ_IN_PLACE)
def test_workers_see_that_a_file_changed(
    name, change, tmp_path, counts, told, changing, monkeypatch
):
    """Each opens it by itself, after another has been put there, say."""
    monkeypatch.setattr(fold, "_WORTH", 0)
    monkeypatch.setattr(fold, "_ENTRIES", 10 * counts.shape[1])
    path = tmp_path / name
    READ_IN_PLACE[name](path, counts)
    changing(path, change, engine, "_context", time=1)
    told(path, "aggregate", path, *OUTPUTS, *NOISE, "--workers", 2)


@pytest.mark.parametrize("name", READ_IN_PLACE)
def test_a_worker_that_cannot_open_a_file_says_so(
    name, tmp_path, counts, pate, refused, changing, monkeypatch
):
    monkeypatch.setattr(fold, "_WORTH", 0)
    monkeypatch.setattr(fold, "_ENTRIES", 10 * counts.shape[1])
    monkeypatch.setitem(CHANGES, "removed", Path.unlink)
    path = tmp_path / name
    READ_IN_PLACE[name](path, counts)
    changing(path, "removed", engine, "_context", time=1)
    line = refused(pate("aggregate", path, *OUTPUTS, *NOISE, "--workers", 2), 3)
    assert line == f"pate: {path}: no such file or folder"


@pytest.mark.parametrize("command", ["cost", "smooth-sensitivity"])
def test_every_command_that_reads_votes(command, tmp_path, counts, told, changing, monkeypatch):
    monkeypatch.setattr(fold, "_ENTRIES", 10 * counts.shape[1])
    path = tmp_path / "v.npy"
    _npy(path, counts)
    changing(path, "shrunk", fold._Range, "__call__", time=2)
    told(path, command, path, *NOISE[:-2])


@pytest.mark.parametrize("change", CHANGES)
def test_files_beside_the_votes(change, tmp_path, votes, counts, told, changing):
    path = tmp_path / "p.csv"
    path.write_text("label\n" + "".join(f"{label}\n" for label in counts.argmax(axis=1)))
    changing(path, change, Copying, "path", time=1)
    told(path, "aggregate", votes, *OUTPUTS, "--prior", path, *NOISE, "--prior-weight", 4)


def test_standard_input_that_is_a_file(tmp_path, counts, shell, patched):
    """A shell's `<` gives the file itself, which others can write to."""
    path = tmp_path / "v.csv"
    _csv(path, counts)
    lines = (
        "from pate_cli.votes.source import Copying\n"
        "new = Copying.path\n"
        "def changing(self):\n"
        f"    open({str(path)!r}, 'ab').write(b'1')\n"
        "    return new(self)\n"
        "Copying.path = changing\n"
    )
    with path.open("rb") as file:
        run = patched(lines, "aggregate", "-", *OUTPUTS, *NOISE, stdin=file)
        _, said = run.communicate(timeout=60)
    assert run.returncode == 3
    line = "pate: standard input: the file changed while it was read; run again"
    assert said.decode().splitlines()[-1] == line
    assert not list(Path().iterdir())
