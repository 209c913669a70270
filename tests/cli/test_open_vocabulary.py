"""Votes for names that nobody listed: which were said is secret until one is released."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from face import meaning
from pate_cli.core.noise import RunKey
from pate_cli.run import fold, publication

TEACHERS, QUERIES = 400, 20
OPEN = ("--mechanism", "open-vocabulary")
RELEASED = ("heron", "egret", 'the "grey", one')


@pytest.fixture
def words():
    """[queries, teachers]: one name that nearly all say, and secrets that few do."""
    rng = np.random.default_rng(3)
    said = np.array([f"hush-{n}" for n in range(400)], dtype=object)
    votes = rng.choice(said, (QUERIES, TEACHERS))
    for query in range(QUERIES):
        sure = rng.permutation(TEACHERS)[:320]
        votes[query, sure] = RELEASED[query % 3]
    votes[7] = rng.choice(said, TEACHERS)
    votes[rng.random(votes.shape) < 0.02] = ""
    return votes


def write(words, path):
    lines = [
        json.dumps({"query_id": f"q{row}", "labels": [text or None for text in votes]}) + "\n"
        for row, votes in enumerate(words)
    ]
    path.write_text("".join(lines))
    return path


@pytest.fixture
def ballots(words, tmp_path):
    return write(words, tmp_path / "ballots.jsonl")


WANTED = [None if query == 7 else RELEASED[query % 3] for query in range(QUERIES)]


def everything(folder):
    """Whatever is in a folder, in bytes; of Parquet also what stands there packed."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found.append(path.read_bytes())
            if path.suffix == ".parquet":
                table = pq.read_table(path)
                dictionaries = [
                    chunk.dictionary.to_pylist()
                    for column in table.columns
                    if pa.types.is_dictionary(column.type)
                    for chunk in column.chunks
                ]
                told = (table.to_pylist(), dictionaries, table.schema.metadata)
                found.append(repr((told, pq.read_metadata(path))).encode())
    return b"\n".join(found)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "arrow"])
def test_names_come_out_as_labels_and_no_other_name_does(pate, ballots, folder, suffix):
    ours = ("--report", "report.json", "--ensemble", "birds")
    done = pate("aggregate", ballots, *OPEN, *ours, "-o", f"labels.{suffix}", code=0)
    rows = meaning.rows_of(folder / f"labels.{suffix}")
    assert [row["label"] or None for row in rows] == WANTED
    report = json.loads((folder / "report.json").read_text())
    assert "classes" not in report["mechanism"]
    assert "label_names" not in report
    assert (report["sound"], report["answers"]) == (True, QUERIES - 1)
    assert "classes" not in report["adjacency"]
    pate("verify", "report.json", f"labels.{suffix}", code=0)
    told = everything(folder.parent / "here") + (done.stdout + done.stderr).encode()
    for path in folder.parent.rglob("*.spent.json"):
        told += path.read_bytes()
    assert b"hush" not in told
    assert b"16777216" not in told
    assert list((folder.parent / "tmp").iterdir()) == []


def test_one_vote_for_a_new_name_changes_nothing_but_the_time(
    pate, words, tmp_path, folder, monkeypatch
):
    """Not the report, the labels, the record, what is said, nor a size."""
    monkeypatch.setattr(RunKey, "of", classmethod(lambda cls, _seed: cls(bytes(range(32)))))
    runs = []
    for vote in (words[4, 9], "never said before", "", "17"):
        words[4, 9] = vote
        place = folder / f"run-{len(runs)}"
        place.mkdir()
        monkeypatch.chdir(place)
        votes = write(words, place / "ballots.jsonl")
        told = []
        for suffix in ("csv", "parquet"):
            line = ("aggregate", votes, *OPEN, "-o", f"labels.{suffix}", "--no-record")
            done = pate(*line, "--report", f"{suffix}.json")
            priced = pate(*line, "--report", "priced.json", "--dry-run", "--force")
            told += [(each.exit_code, each.stdout, each.stderr) for each in (done, priced)]
        votes.unlink()
        files = {path.name: path.read_bytes() for path in place.iterdir()}
        runs.append(re.sub(r'"time": ?"[^"]*"|run-\d', "", repr((told, files))))
    assert runs[0] == runs[1] == runs[2] == runs[3]


def test_neither_workers_nor_a_broken_run_change_a_label(pate, ballots, folder, monkeypatch):
    line = ("aggregate", ballots, *OPEN, "--seed", 4, "--report", "r.json", "--force")
    pate(*line, "-o", "one.csv", code=0)
    wanted = Path("one.csv").read_bytes()
    monkeypatch.setattr(fold, "_ENTRIES", TEACHERS // 2)
    pate(*line, "-o", "two.csv", "--workers", 3, code=0)
    assert Path("two.csv").read_bytes() == wanted
    with monkeypatch.context() as broken:
        broken.setattr(publication, "_named", lambda *_: 1 / 0)
        assert pate(*line, "-o", "three.csv", "--checkpoint", "kept").exit_code != 0
    kept = list(Path("kept").iterdir())
    assert len(kept) > 4
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
    assert not any(b"hush" in path.read_bytes() for path in kept)
    with monkeypatch.context() as idle:
        idle.setattr("pate_cli.run.labelling.DrawLabels.__call__", lambda *_: 1 / 0)
        done = pate(*line, "-o", "three.csv", "--checkpoint", "kept", code=0)
    assert "pate: this command continues the interrupted run in kept\n" in done.stderr
    assert Path("three.csv").read_bytes() == wanted
