"""Where votes come from: paths, folders, globs, pipes, addresses and copies of what is packed."""

import gzip
import io
import os
import pickle
import re
import stat
import tempfile
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs

from opened import listed as read
from opened import refused
from pate_cli.core.errors import NotOpenedError, UsageError, VoteError
from pate_cli.files.protected import places_of, watched
from pate_cli.votes import source as sources
from pate_cli.votes.opening import open_votes
from refusals import refusal
from stored import npy, parquet, table_in

ASKED = {"layout": "counts", "teachers": 9}


def row(number, suffix=".csv", extra=""):
    """A file with one row of votes, whose number is its query id."""
    if suffix == ".parquet":
        return parquet({"query_id": [number], "class_0": [1], "class_1": [2]})
    return (
        f"query_id,class_0,class_1{extra and f',{extra}'}\n{number},1,2{extra and ',3'}\n".encode()
    )


@pytest.fixture
def fill(tmp_path):
    def write(files, folder="votes"):
        for name, content in files.items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return tmp_path / folder

    return write


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_numbers_in_names_of_parts_count_as_numbers(suffix, fill):
    """Dask and Spark write part.0 to part.11, and row 2 is that of part.2."""
    folder = fill({f"part.{number}{suffix}": row(number, suffix) for number in range(12)})
    for source in (folder, f"{folder}/part.*", folder.as_uri(), f"{folder.as_uri()}/*{suffix}"):
        votes, ids, _ = read(source, **ASKED)
        assert ids == list(range(12))
        assert f"part.0{suffix}, part.1{suffix}, part.2{suffix}, ..., part.11" in votes.describe()
    assert read(f"{folder}/part.?{suffix}", **ASKED)[1] == list(range(10))
    assert read(fill({"part.1": row(1)}, "one"), **ASKED)[0].order == ""


def test_folders_of_partitions(fill):
    files = {f"year={y}/month={m}/a.csv": row(100 * y + m) for y in (2, 10) for m in (3, 11)}
    other = {"_SUCCESS": b"", "year=2/.a.crc": b"x", "_x/a.csv": b"x"}
    folder = fill(files | other)
    for source in (folder, f"{folder}/**/*.csv", f"{folder}/*/*/*", f"{folder.as_uri()}/**/*.csv"):
        assert read(source, **ASKED)[1] == [203, 211, 1003, 1011]
    for pattern in ("year=2/*/a.csv", "year=2*", "year=[2]/*"):
        assert read(f"{folder}/{pattern}", **ASKED)[1] == [203, 211]
    (folder / "_x" / "a.csv").write_bytes(row(5))
    assert read(f"{folder}/_x/*", **ASKED)[1] == [5]


def test_a_name_with_brackets_is_a_name(fill):
    folder = fill({"v[1].csv": row(7), "v1.csv": row(8), "[d]/a.csv": row(9)})
    assert read(folder / "v[1].csv", **ASKED)[1] == [7]
    assert read(folder / "[d]", **ASKED)[1] == [9]


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"b.jsonl": b'{"a":1}'}, "b.jsonl: is JSON lines among parts of CSV"),
        ({"b.csv": b""}, "b.csv: is empty"),
        ({"b.npy": b"\x93NUMPY"}, "b.npy: is NPY among parts of CSV"),
        ({"b.csv": row(2, extra="class_2")}, "b.csv: column 'class_2' is in some parts only"),
        ({"b.csv": b"\x80\x04"}, "b.csv: is a Python pickle"),
        ({"b.csv": b"query_id,class_0,class_1\n1,2\n"}, "b.csv: row 0 has 2 fields"),
        ({"b.csv.tmp": b"x"}, "b.csv.tmp: column"),
        ({"README.md": b"# Votes\nof teachers\n"}, "column 'class_0' is in some parts only"),
        ({"b.arrows": b"\xff\xff\xff\xff"}, "b.arrows: is Arrow among parts of CSV"),
    ],
)
def test_folders_that_are_refused(extra, said, fill):
    """No file is passed over in silence, whatever it is called: it could be votes."""
    folder = fill({"a.csv": row(1)} | extra)
    assert said in refused(folder, **ASKED)
    assert said in refused(folder.as_uri(), **ASKED)


@pytest.mark.parametrize("kinds", [("int64", "string"), ("string", "int64")])
def test_parts_of_other_types_are_refused_by_name(kinds, tmp_path):
    for place, kind in enumerate(kinds):
        ids = pa.array([place]).cast(kind)
        content = parquet({"query_id": ids, "class_0": [1], "class_1": [2]})
        (tmp_path / f"{place}.parquet").write_bytes(content)
    assert "1.parquet: column 'query_id' changes its type" in refused(f"{tmp_path}/*.parquet")


def test_parts_of_other_widths_are_read_together(tmp_path):
    for place, kind in enumerate(["int8", "int64", "float64", "uint16"]):
        table = {name: pa.array([value]).cast(kind) for name, value in (("a", 9), ("b", 2))}
        (tmp_path / f"{place}.parquet").write_bytes(parquet({"query_id": [place], **table}))
    assert read(tmp_path, layout="counts")[1:] == ([0, 1, 2, 3], [[9, 2]] * 4)
    for place, key in enumerate(("7", "08")):
        (tmp_path / f"{place}.csv").write_bytes(row(key))
    assert read(f"{tmp_path}/*.csv", **ASKED)[1] == ["7", "08"]


def test_a_pipe_in_a_folder_is_refused_and_not_waited_for(fill):
    """Reading it would hang, or take what somebody else waits for."""
    folder = fill({"a.csv": row(1)})
    os.mkfifo(folder / "b.csv")
    for given in (folder, f"{folder}/*.csv"):
        assert "b.csv: is neither a file nor a folder" in refused(given, **ASKED)


@pytest.mark.parametrize("given", ["none.csv", "none", "*.none", "a?"])
def test_what_is_not_there(given, tmp_path):
    assert given in refused(f"{tmp_path}/{given}")
    assert given.rstrip("?") in refused(f"{tmp_path.as_uri()}/{given}")
    assert "no file of votes" in refused(tmp_path)
    assert "name of the votes is empty" in refused("")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy"])
def test_a_worker_that_does_not_see_the_file_is_told_apart(suffix, tmp_path):
    path = tmp_path / f"v{suffix}"
    said = f"^{re.escape(str(path))}: no such file or folder$"
    with pytest.raises(NotOpenedError, match=said), open_votes(path):
        pass
    if suffix == ".csv":
        return  # of which there is a copy
    np.save(path, [[1, 2]]) if suffix == ".npy" else path.write_bytes(row(1, suffix))
    with open_votes(path, layout="counts") as votes:
        path.unlink()
        with pytest.raises(NotOpenedError, match=said):
            list(pickle.loads(pickle.dumps(votes)).batches())  # noqa: S301 - made here


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path):
    (tmp_path / "v.csv").write_bytes(row(1))
    (tmp_path / "v.csv").chmod(0)
    assert "v.csv: no permission to read this file" in refused(tmp_path / "v.csv")


def test_copies_are_private_and_removed(tmp_path, monkeypatch):
    """Votes are secret wherever they lie, also when reading fails."""
    spools, path = tmp_path / "spools", tmp_path / "v.csv.gz"
    spools.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spools))
    path.write_bytes(gzip.compress(row(1)))
    with open_votes(path, **ASKED) as votes:
        made = [copy for copy in spools.rglob("*") if copy.is_file()]
        assert len(made) == 2
        assert {stat.S_IMODE(copy.stat().st_mode) for copy in made} == {0o600}
        path.unlink()  # which may change, now that there is a copy
        assert [batch.ids.tolist() for batch in votes.batches()] == [[1]]
    assert not list(spools.iterdir())
    refused("-", stdin=io.BytesIO(b"no,votes\n"))
    assert not list(spools.iterdir())


def test_a_disk_that_is_full(monkeypatch):
    if not Path("/dev/full").exists():
        pytest.skip("no such device")
    monkeypatch.setattr(sources.Copying, "path", lambda _self: "/dev/full")
    said = refused("-", stdin=io.BytesIO(b"a,b\n1,2\n" * 9000))
    assert said.startswith("standard input: cannot be read: no room on the disk")


def test_a_terminal_is_not_waited_for():
    class Terminal(io.BytesIO):
        def isatty(self):
            return True

    closed = io.BytesIO()
    closed.close()
    for stdin in (Terminal(), closed):
        assert "pipe a file of votes into it" in refused("-", stdin=stdin)


@pytest.fixture
def memory():
    store = fsspec.filesystem("memory")
    for number in (10, 2):
        store.pipe(f"/pate/part.{number}.csv", row(number))
        store.pipe(f"/pate-parquet/part.{number}.parquet", row(number, ".parquet"))
    yield store
    for folder in ("/pate", "/pate-parquet"):
        store.rm(folder, recursive=True)


def test_a_store_of_fsspec(memory):
    for base in ("memory://pate", "memory://pate-parquet"):
        assert read(base, **ASKED)[1] == [2, 10]
        assert read(f"{base}/part.*", **ASKED)[1] == [2, 10]
    assert read("memory://pate/part.2.csv", **ASKED)[1] == [2]
    assert "memory://pate/none" in refused("memory://pate/none")
    assert "no file system is known for this address" in refused("foo://host/x")
    with open_votes("memory://pate-parquet/part.2.parquet", **ASKED) as votes:
        memory.pipe("/pate-parquet/part.2.parquet", row(3, ".parquet"))
        with pytest.raises(VoteError, match="changed while it was read"):
            list(votes.batches())


def test_passwords_in_addresses_are_never_shown(fill, tmp_path, monkeypatch):
    folder = fill({"a.csv": row(1)}, "d")
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    asked = []

    def filesystem_of(uri):
        asked.append(uri)
        return store, uri.partition("?")[0].split("bucket/")[1]

    monkeypatch.setattr(sources, "filesystem_of", filesystem_of)
    uri = "s3://key:secret@bucket/d"
    with open_votes(f"{uri}/*.csv?secret_key=secret", **ASKED) as votes:
        assert votes.name == "s3://bucket/d/a.csv"
    assert asked == [f"{uri}?secret_key=secret"]
    (folder / "a.csv").write_bytes(b"")
    said = [refused(each) for each in (uri, f"{uri}/a.csv", f"{uri}/b.csv", f"{uri}/*.x")]
    assert said[0] == "s3://bucket/d/a.csv: is empty"

    def fail(uri):
        raise OSError(f"AWS Error ACCESS_DENIED at {uri}\nmore")

    monkeypatch.setattr(sources, "filesystem_of", fail)
    said.append(refused(uri))
    assert "ACCESS_DENIED" in said[-1]
    assert not any("secret" in each for each in said)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "npy"])
@pytest.mark.parametrize("change", ["truncated", "rewritten", "grown"])
def test_a_file_that_changes_while_it_is_read_is_refused(kind, change, tmp_path):
    """Labels would be those of a file that never was; and nothing ends the process."""
    path, counts = tmp_path / f"v.{kind}", np.arange(5000) % 5
    table = pa.table({"class_0": counts, "class_1": 5 - counts})
    columns = np.column_stack([counts, 5 - counts])
    path.write_bytes(npy(columns) if kind == "npy" else table_in(table, kind, rows=100))
    with open_votes(path, layout="counts", batch_rows=100) as votes:
        batches = votes.batches()
        next(batches)
        content = path.read_bytes()
        os.utime(path, ns=(1, 1))
        if change != "rewritten":
            path.write_bytes(content + b"x" if change == "grown" else content[: len(content) // 2])
        with pytest.raises(VoteError, match=r"changed|cut short"):
            list(batches)
        with pytest.raises(VoteError, match="changed"):
            list(votes.batches(limit=1))


def test_a_part_that_changes_behind_the_rows_that_are_asked(tmp_path):
    ones = np.ones(500, int)
    for place in range(2):
        content = parquet({"class_0": ones, "class_1": ones}, row_group_size=50)
        (tmp_path / f"{place}.parquet").write_bytes(content)
    with open_votes(tmp_path, layout="counts", batch_rows=50) as votes:
        batches = votes.batches(limit=100)
        next(batches)
        os.utime(tmp_path / "0.parquet", ns=(1, 1))
        with pytest.raises(VoteError, match=r"0\.parquet: the file changed"):
            list(batches)
        (tmp_path / "1.parquet").unlink()
        with pytest.raises(VoteError, match=r"1\.parquet: no such file or folder"):
            list(votes.batches(start=500))


def test_every_file_that_is_opened_is_known_as_an_input(fill, tmp_path):
    """No output replaces a file of votes, whatever name it was opened by."""
    folder = fill({"a.csv": row(1), "b.csv": row(2)})
    first, link = folder / "a.csv", tmp_path / "link"
    link.symlink_to(first)
    said = "l.csv is among the votes; give the output another name"
    for source, file in {link: first, folder: folder / "b.csv", f"{folder}/*.csv": first}.items():
        with watched() as inputs, open_votes(source, **ASKED) as votes:
            assert refusal(UsageError, inputs.claim, "l.csv", places_of(file)) == said
        with watched() as inputs:
            inputs.add(votes.inputs.read)
            assert refusal(UsageError, inputs.claim, "l.csv", places_of(file)) == said
    with first.open("rb") as stdin, open_votes("-", stdin=stdin, **ASKED) as votes:
        assert refusal(UsageError, votes.inputs.claim, "l.csv", places_of(first)) == said


def test_errors_of_whoever_reads_are_not_touched(tmp_path):
    (tmp_path / "v.csv").write_bytes(row(1))
    with open_votes(tmp_path / "v.csv", **ASKED) as votes:
        for error in (pa.ArrowInvalid("mine"), OSError("mine")):
            batches = votes.batches()
            next(batches)
            with pytest.raises(type(error), match="mine"):
                batches.throw(error)
