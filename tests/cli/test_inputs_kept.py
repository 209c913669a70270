"""No output replaces what the command reads: under whatever name, and whatever is forced."""

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
        what = "not recognised as an earlier output of this kind|a record|a ledger"
        there = f"{output} is ({what}), so not even"
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


ASKS = ["--teachers", 3, "--classes", 2, "--max-queries", 2, "--no-record", *NOISE[:-1]]
RUN = ["aggregate", "v.npy", "--format", "npy", *OTHER, *NOISE]
# What stands on standard input and output, the line, and what is said of it.
BEHIND = {
    "votes that come in": (
        *("v.npy", os.devnull, ["aggregate", "-", "-o", "v.npy", *OTHER, *NOISE]),
        b"v.npy is votes that have a record",
    ),
    "votes, by number": (*(os.devnull, "v.npy", [*RUN, "-o", "/dev/fd/1"], b"is among the votes"),),
    # What is added behind its last line would damage it.
    "record": (
        *(os.devnull, "v.npy.spent.json", ["spent", "v.npy"]),
        b"standard output is the record of what was spent",
    ),
    # An answer to its own answer would never end.
    "queries": (
        *("asks.jsonl", "asks.jsonl", ["session", *ASKS], b"standard output is the queries"),
    ),
}


@pytest.mark.parametrize("what", BEHIND)
def test_what_is_behind_a_descriptor(what, command, pate, npy):
    Path("asks.jsonl").write_text('{"counts": [3, 0]}\n{"counts"}\n')
    pate("aggregate", "v.npy", "-o", "l.npy", *OTHER, *NOISE[:-3], "--max-epsilon", 99, code=0)
    before = contents()
    read, written, words, said = BEHIND[what]
    with Path(read).open("rb") as stdin, Path(written).open("ab") as to:
        options = {"stdin": stdin, "stdout": to, "stderr": subprocess.PIPE, "timeout": 60}
        done = subprocess.run(command(*words), **options)
    assert done.returncode == 2
    assert said in done.stderr
    assert contents() == before


@pytest.mark.parametrize("votes", ["d", "d/*.parquet", "{}/d/", "file://{}/d", "file://{}/d/*"])
@pytest.mark.parametrize("output", ["d/a.parquet", "link.parquet"])
def test_a_part_of_the_votes(votes, output, kept, parts, folder):
    (folder / "link.parquet").symlink_to("d/b.parquet")
    kept("aggregate", votes.format(folder), "-o", output, *OTHER, *NOISE, output=output)


def test_no_other_output_replaces_what_pate_has_not_written(pate, kept, npy, folder, counts):
    """Whatever is forced: votes, ledgers and records that the command itself does not read."""
    pytest.importorskip("matplotlib")
    pate("aggregate", "v.npy", "-o", "l.csv", *OTHER, "--ledger", "a.json", *NOISE[:-1], code=0)
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
