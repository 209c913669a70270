"""No output replaces what the command reads: under whatever name, and whatever is forced."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pate_cli.files.outputs import Outputs

NOISE = ["--threshold", 20, "--sigma1", 8, "--sigma2", 4, "--seed", 3, "--force"]
OTHER = ["--report", "r.json"]


@pytest.fixture
def kept(pate, refused):
    """Run `pate`, which must refuse in one line that names `output`, and change no file.

    Where `--force` would replace the file, what lies there is looked at before anything is read.
    """

    def run(*words, output, what="among the votes", **rest):
        before = contents()
        line = refused(pate(*words, **rest), 2)
        read = f"{output} is {what}; give the output another name"
        there = f"{output} is (not an earlier output of this kind|a record|a ledger), so not even"
        assert read in line or re.search(there, line)
        assert contents() == before

    return run


def contents():
    here = Path()
    return {str(path): path.read_bytes() for path in here.rglob("*") if path.is_file()}


@pytest.fixture
def npy(folder, counts):
    np.save(folder / "v.npy", counts)
    return folder / "v.npy"


@pytest.fixture
def parts(folder, counts):
    (folder / "d").mkdir()
    for name, rows in zip("ab", np.array_split(counts, 2), strict=True):
        table = pa.table({f"class_{j}": rows[:, j] for j in range(rows.shape[1])})
        pq.write_table(table, folder / "d" / f"{name}.parquet")
    return folder / "d"


@pytest.mark.parametrize("option", ["-o", "--report", "--ledger"])
@pytest.mark.parametrize("name", ["plain", "absolute", "roundabout", "link", "hard", "uri"])
def test_votes_by_any_name(name, option, kept, npy, folder):
    (folder / "link").symlink_to("v.npy")
    (folder / "hard").hardlink_to(npy)
    other = {"plain": "v.npy", "absolute": npy, "roundabout": "../here/v.npy"}
    named = other.get(name, npy.as_uri() if name == "uri" else name)
    labels = ["--format", "npy", *(["-o", "l.npy"] if option != "-o" else [])]
    report = OTHER if option != "--report" else []
    if option == "--ledger" and name == "uri":
        pytest.skip("a ledger has no address")
    kept("aggregate", "v.npy", option, named, *labels, *report, *NOISE, output=named)
    kept("aggregate", named, option, "v.npy", *labels, *report, *NOISE, output="v.npy")


def test_votes_from_standard_input(shell, npy):
    before = npy.read_bytes()
    with npy.open("rb") as stdin:
        done = shell("aggregate", "-", "-o", "v.npy", *OTHER, *NOISE, stdin=stdin)
    assert done.returncode == 2
    assert b"v.npy is not an earlier output of this kind" in done.stderr
    assert npy.read_bytes() == before


@pytest.mark.parametrize("words", [["-o", "/dev/fd/1", *OTHER], ["-o", "l.npy"]])
def test_votes_behind_a_descriptor(shell, npy, words):
    before = npy.read_bytes()
    with npy.open("ab") as stdout:
        done = shell("aggregate", "v.npy", "--format", "npy", *words, *NOISE, stdout=stdout)
    assert done.returncode == 2
    assert b"is among the votes" in done.stderr
    assert npy.read_bytes() == before


def test_a_record_behind_a_descriptor(shell, pate, npy):
    """Found by the votes that it belongs to: what is added behind its last line damages it."""
    made = pate("aggregate", "v.npy", "-o", "l.npy", *OTHER, "--spend", "v.npy.spent.json", *NOISE)
    assert made.exit_code == 0, made.stderr
    before = Path("v.npy.spent.json").read_bytes()
    with Path("v.npy.spent.json").open("ab") as stdout:
        done = shell("spent", "v.npy", stdout=stdout)
    assert done.returncode == 2
    assert b"standard output is the record of what was spent" in done.stderr
    assert Path("v.npy.spent.json").read_bytes() == before


def test_queries_of_a_session_behind_a_descriptor(shell, folder):
    """An answer to its own answer would never end."""
    asks = folder / "asks.jsonl"
    asks.write_text(before := '{"counts": [3, 0]}\n{"counts"}\n')
    asked = ["--teachers", 3, "--classes", 2, "--max-queries", 2, "--no-record"]
    with asks.open("rb") as stdin, asks.open("ab") as stdout:
        done = shell("session", *asked, *NOISE[:-1], stdin=stdin, stdout=stdout)
    assert done.returncode == 2
    assert b"standard output is the queries" in done.stderr
    assert asks.read_text() == before


@pytest.mark.parametrize("votes", ["d", "d/*.parquet", "{}/d/", "file://{}/d", "file://{}/d/*"])
@pytest.mark.parametrize("output", ["d/a.parquet", "link.parquet"])
def test_a_part_of_the_votes(votes, output, kept, parts, folder):
    (folder / "link.parquet").symlink_to("d/b.parquet")
    kept("aggregate", votes.format(folder), "-o", output, *OTHER, *NOISE, output=output)


def test_a_part_that_is_a_link_to_the_output(kept, parts, folder):
    (parts / "b.parquet").rename(folder / "out.parquet")
    (parts / "b.parquet").symlink_to("../out.parquet")
    kept("aggregate", "d", "-o", "out.parquet", *OTHER, *NOISE, output="out.parquet")


def test_pictures_and_tables_of_rows(kept, npy, folder):
    for name, source in (("p.png", "v.npy"), ("q.csv", "v.npy")):
        (folder / name).hardlink_to(folder / source)
    small = ["--sigma2", 4, "--mechanism", "gnmax", "--force"]
    for verb in ("smooth-sensitivity", "cost"):
        kept(verb, "v.npy", *small, "--plot", "p.png", output="p.png")
    kept("cost", "v.npy", *small, "--per-query", "q.csv", output="q.csv")


def test_files_beside_the_votes(kept, npy, folder, counts):
    (folder / "names").write_text("".join(f"c{j}\n" for j in range(counts.shape[1])))
    words = ["--label-names", "@names", "-o", "l.npy", "--report", "names"]
    kept("aggregate", "v.npy", *words, *NOISE, output="names", what="the names of the labels")
    for name, text in (("a.json", "{}"), ("a.csv", "alias,name\n")):
        (folder / name).write_text(text)
        words = ["--label-names", "@names", "--aliases", name, "-o", "l.npy", "--report", name]
        kept("aggregate", "v.npy", *words, *NOISE, output=name, what="the aliases")


def test_the_record_and_the_labels(kept, npy):
    Path("record.json").write_text("")
    Path("hard.json").hardlink_to("record.json")
    target = ["--target-epsilon", 7, "--spend", "record.json"]
    words = [*target, "-o", "l.npy", "--report", "hard.json", *NOISE]
    kept("aggregate", "v.npy", *words, output="hard.json", what="the record of what was spent")


def test_ledgers(pate, kept, npy):
    made = pate("aggregate", "v.npy", "-o", "l.npy", *OTHER, "--ledger", "a.json", *NOISE)
    assert made.exit_code == 0, made.stderr
    Path("hard.json").hardlink_to("a.json")
    words = ["--report", "hard.json", "--force"]
    kept("release", "a.json", *words, output="hard.json", what="one of the files to be released")
    words = ["-o", "l.npy", *OTHER, "--ledger", "a.json"]
    kept("aggregate", "v.npy", *words, *NOISE, output="a.json")


def test_no_other_output_replaces_what_pate_has_not_written(pate, kept, npy, folder, counts):
    """Whatever is forced: votes, ledgers and records that the command itself does not read."""
    pytest.importorskip("matplotlib")
    made = pate("aggregate", "v.npy", "-o", "l.csv", *OTHER, "--ledger", "a.json", *NOISE[:-1])
    assert made.exit_code == 0, made.stderr
    for suffix in ("html", "pdf", "json", "csv"):
        (folder / f"w.{suffix}").write_bytes(npy.read_bytes())
        (folder / f"a.{suffix}").write_bytes((folder / "a.json").read_bytes())
    small = ["--sigma2", 4, "--mechanism", "gnmax"]
    for name in ("w", "a"):
        page, picture, table = (f"{name}.{suffix}" for suffix in ("html", "pdf", "csv"))
        kept("explain", "r.json", "--html", page, "--force", output=page)
        kept("spent", "v.npy.spent.json", "--plot", picture, "--force", output=picture)
        kept("cost", "v.npy", *small, "--plot", picture, "--force", output=picture)
        kept("cost", "v.npy", *small, "--per-query", table, "--force", output=table)
        curve = ["--export-rdp", f"{name}.json", "--force"]
        kept("explain", "r.json", *curve, output=f"{name}.json")
        kept("release", "r.json", "--report", f"{name}.json", "--force", output=f"{name}.json")


def test_what_becomes_an_input_during_the_run_is_not_replaced_at_its_end(pate, npy, monkeypatch):
    write = Outputs.write

    def late(self, path, data):
        write(self, path, data)
        if str(path) == "r.json":
            os.link("v.npy", "l.npy")

    monkeypatch.setattr(Outputs, "write", late)
    before = npy.read_bytes()
    done = pate("aggregate", "v.npy", "-o", "l.npy", *OTHER, *NOISE)
    assert done.exit_code == 2
    assert "l.npy is not an earlier output of this kind, so not even --force" in done.stderr
    assert done.stderr.endswith("what went to r.json stays\n")
    assert Path("l.npy").read_bytes() == npy.read_bytes() == before


def test_other_outputs_are_replaced_all_the_same(pate, npy):
    for _ in range(2):
        done = pate("aggregate", "v.npy", "-o", "l.npy", *OTHER, *NOISE)
        assert done.exit_code == 0, done.stderr
    assert json.loads(Path("r.json").read_text())["queries"] == len(np.load("l.npy"))


def test_labels_in_the_folder_of_the_checkpoint_stay(pate, npy):
    Path("kept").mkdir(0o700)
    words = ["-o", "kept/l.npy", "--checkpoint", "kept"]
    done = pate("aggregate", "v.npy", *words, *OTHER, *NOISE)
    assert done.exit_code == 0, done.stderr
    assert [path.name for path in Path("kept").iterdir()] == ["l.npy"]
