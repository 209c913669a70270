from __future__ import annotations

import io
import os
import stat
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs

from pate_cli.core.errors import VoteError
from pate_cli.votes import open_votes
from pate_cli.votes.sources import files, kept_open

TWO = {"class_0": [2, 1], "class_1": [1, 2]}


@pytest.fixture
def spool_folder(tmp_path, monkeypatch):
    folder = tmp_path / "spool"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_what_is_not_there_or_not_votes(tmp_path, refusal):
    assert refusal(tmp_path / "none.npy") == "none.npy: no such file or folder"
    assert refusal(tmp_path / "none*.npy") == "none*.npy: no file matches"
    path = tmp_path / "f"
    for content, text in [
        (b"", "the file is empty (0 bytes)"),
        (
            b"\x00\x01",
            "is none of NPY, NPZ, Parquet, Arrow, CSV and JSONL; convert it to one of them",
        ),
        (b"PK\x03\x04....", "the NPZ file is truncated or damaged"),
    ]:
        path.write_bytes(content)
        assert refusal(path) == f"f: {text}"


def test_the_format_is_told_by_content(npy, parquet, drain, histograms, tmp_path):
    npy(histograms).rename(tmp_path / "a.parquet")
    np.testing.assert_array_equal(drain(tmp_path / "a.parquet"), histograms)
    parquet(TWO).rename(tmp_path / "b.npy")
    np.testing.assert_array_equal(drain(tmp_path / "b.npy"), [[2, 1], [1, 2]])


def test_a_file_that_cannot_be_opened(npy, refusal, monkeypatch):
    def closed(*_, **__):
        raise PermissionError(13, "Permission denied")

    path = npy([[1, 2]])
    monkeypatch.setattr(Path, "open", closed)
    assert refusal(path) == "v.npy: cannot be read: Permission denied"


def test_a_folder_is_read_by_name(parquet, drain, tmp_path):
    for number in (2, 0, 1):
        parquet({"class_0": [number], "class_1": [9 - number]}, f"parts/part-{number}.parquet")
    for ignored in ("_SUCCESS", ".part-0.crc", "_metadata", "notes.md"):
        (tmp_path / "parts" / ignored).write_bytes(b"")
    assert drain(tmp_path / "parts")[:, 0].tolist() == [0, 1, 2]
    assert drain(tmp_path / "parts" / "*.parquet")[:, 0].tolist() == [0, 1, 2]
    assert drain(f"{tmp_path}/par*/part-[02]*")[:, 0].tolist() == [0, 2]


def test_a_name_with_brackets_is_a_name(parquet, drain):
    assert drain(parquet(TWO, "v[1].parquet")).shape == (2, 2)


def test_folders_without_parts(tmp_path, npy, parquet, refusal):
    folder = tmp_path / "d"
    folder.mkdir()
    assert refusal(folder) == "d: the folder is empty"
    (folder / "a.txt").write_text("1,2")
    assert refusal(folder) == "d: no Parquet, CSV, JSONL or Arrow parts here"
    parquet(TWO, "d/a.parquet")
    (folder / "b.parquet").write_bytes(b"")
    assert refusal(folder) == "d/b.parquet: the file is empty (0 bytes)"
    (folder / "b.parquet").unlink()
    npy([[1, 2]], "d/b")
    (folder / "b.npy").rename(folder / "b")
    assert refusal(folder) == "d/b: an NPY file cannot be one of several parts"
    (folder / "b").unlink()
    (folder / "old").mkdir()
    assert refusal(folder) == ("d: holds the sub-folder 'old'; give a glob of the parts instead")


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_standard_input_is_spooled_privately_and_removed(
    kind, npy, parquet, histograms, spool_folder, monkeypatch
):
    path = npy(histograms) if kind == "npy" else parquet(TWO)
    old = os.umask(0)
    try:
        with open_votes("-", stdin=io.BytesIO(path.read_bytes())) as votes:
            assert votes.name == "standard input"
            ((copy,),) = (folder.iterdir() for folder in spool_folder.iterdir())
            assert stat.S_IMODE(copy.stat().st_mode) == 0o600
            assert copy.read_bytes() == path.read_bytes()
            assert sum(len(b.counts) for b in votes.batches()) == votes.queries
            assert sum(len(b.counts) for b in votes.batches()) == votes.queries
    finally:
        os.umask(old)
    assert not list(spool_folder.iterdir())

    class Stdin:
        closed = False
        buffer = io.BytesIO(path.read_bytes())

    monkeypatch.setattr(sys, "stdin", Stdin)
    with open_votes(Path("-")) as votes:
        assert votes.queries > 1


def test_the_spool_is_removed_when_the_votes_are_bad(spool_folder, refusal):
    assert refusal("-", stdin=io.BytesIO(b"")) == "standard input: the file is empty (0 bytes)"
    assert refusal("-", stdin=io.BytesIO(b"PAR1")).startswith("standard input: the Parquet file is")
    assert not list(spool_folder.iterdir())


def test_a_full_disk(refusal, spool_folder):
    class Broken(io.BytesIO):
        def read(self, *_):
            raise OSError(28, "No space left on device")

    assert refusal("-", stdin=Broken()) == (
        "standard input: cannot be copied to a temporary file: No space left on device"
    )
    assert not list(spool_folder.iterdir())


def test_a_terminal_is_not_waited_for(refusal):
    class Terminal(io.BytesIO):
        def isatty(self):
            return True

    assert refusal("-", stdin=Terminal()).startswith("standard input: is a terminal; pipe")


@pytest.mark.parametrize("through", ["fifo", "descriptor"])
@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_pipes_with_a_path(through, kind, npy, parquet, drain, histograms, tmp_path, spool_folder):
    path = npy(histograms) if kind == "npy" else parquet(TWO)
    if through == "fifo":
        source, end = tmp_path / "fifo", None
        os.mkfifo(source)
    else:
        end, write_end = os.pipe()
        source = Path(f"/dev/fd/{end}")

    def feed():
        with open(source if end is None else write_end, "wb") as pipe:  # noqa: PTH123 - may be a descriptor
            pipe.write(path.read_bytes())

    feeder = threading.Thread(target=feed)
    feeder.start()
    counts = drain(source)
    feeder.join()
    if end is not None:
        os.close(end)
    np.testing.assert_array_equal(counts, histograms if kind == "npy" else [[2, 1], [1, 2]])
    assert not list(spool_folder.iterdir())


def test_file_uris(npy, parquet, drain, histograms, refusal, tmp_path, spool_folder):
    np.testing.assert_array_equal(drain(npy(histograms).as_uri()), histograms)
    assert drain(parquet(TWO).as_uri()).shape == (2, 2)
    parquet(TWO, "parts/b.parquet")
    parquet(TWO, "parts/a.parquet")
    base = tmp_path.as_uri()
    assert drain(f"{base}/parts").shape == (4, 2)
    assert drain(f"{base}/parts/*.parquet").shape == (4, 2)
    assert refusal(f"{base}/parts/*.npy") == "file://parts/*.npy: no file matches"
    assert refusal(f"{base}/none") == "file://none: no such file or folder"
    assert not list(spool_folder.iterdir())


def test_an_array_in_an_object_store(npy, histograms, tmp_path, spool_folder, monkeypatch):
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(files, "filesystem_of", lambda uri: (store, uri.split("bucket/")[1]))
    npy(histograms)
    with open_votes("gs://bucket/v.npy") as votes:
        assert len(list(spool_folder.iterdir())) == 1
        np.testing.assert_array_equal(next(votes.batches()).counts, histograms)
    assert not list(spool_folder.iterdir())


def test_an_object_store(parquet, tmp_path, drain, refusal, monkeypatch):
    """A pyarrow filesystem that is not the local one, under a name with a password."""
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(files, "filesystem_of", lambda uri: (store, uri.split("bucket/")[1]))
    parquet(TWO, "parts/b.parquet")
    path = parquet(TWO, "parts/a.parquet")
    uri = "s3://key:secret@bucket/parts"
    with open_votes(uri) as votes:
        assert votes.describe().startswith("s3://bucket/parts: 4 queries x 2 classes")
        assert sum(len(b.counts) for b in votes.batches()) == 4
    assert drain(f"{uri}/a.parquet").shape == (2, 2)
    path.write_bytes(path.read_bytes()[:50])
    assert refusal(uri) == ("s3://bucket/parts/a.parquet: the Parquet file is truncated or damaged")


def test_a_store_that_does_not_answer(refusal, monkeypatch):
    def fail(uri):
        raise OSError("AWS Error ACCESS_DENIED\nmore")

    assert refusal("foo://user:secret@host/x") == (
        "foo://host/x: no filesystem is known for this address"
    )
    monkeypatch.setattr(files, "filesystem_of", fail)
    assert refusal("s3://b/x") == "s3://b/x: cannot be reached: AWS Error ACCESS_DENIED"


@pytest.mark.parametrize("error", [pa.ArrowInvalid("mine"), OSError("mine")])
def test_errors_of_the_reader_are_not_touched(error, parquet):
    """What the caller raises while reading is the caller's."""

    def read():
        with open_votes(parquet(TWO)) as votes:
            for _ in votes.batches():
                raise error

    with pytest.raises(type(error), match="mine"):
        read()


def test_votes_are_never_asked_of_a_missing_part(parquet, tmp_path, monkeypatch):
    monkeypatch.setattr(kept_open, "KEPT_OPEN", 1)
    for name in "abc":
        parquet(TWO, f"parts/{name}.parquet")
    with open_votes(tmp_path / "parts") as votes:
        for name in "abc":
            (tmp_path / "parts" / f"{name}.parquet").unlink()
        # The first part and the last stay open, and so are still there.
        assert [len(batch.counts) for batch in votes.batches(limit=2)] == [2]
        assert [len(batch.counts) for batch in votes.batches(start=4)] == [2]
        with pytest.raises(VoteError, match=r"b\.parquet: no such file"):
            list(votes.batches())


def test_an_empty_name_is_refused_rather_than_read_as_this_folder(refusal):
    assert refusal("").startswith("the name of the votes is empty")


def test_the_query_of_an_address_is_kept_for_the_store(parquet, tmp_path, drain, monkeypatch):
    asked = []

    def filesystem_of(uri):
        asked.append(uri)
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), "parts"

    monkeypatch.setattr(files, "filesystem_of", filesystem_of)
    parquet(TWO, "parts/a.parquet")
    assert drain("s3://bucket/parts/*.parquet?region=eu").shape == (2, 2)
    assert asked == ["s3://bucket/parts?region=eu"]


@pytest.mark.parametrize(
    "left",
    [
        "_temporary/0/task/part-2.parquet",
        "day=1/_temporary/x",
        ".spark-staging-7f/x",
        ".hive-staging_hive_2026/x",
        "__magic_job-1/x",
        "_started_412",
        "part-2.parquet._COPYING_",
        ".part-2.parquet.inprogress.7f3a",
        ".part-2.csv.gz.aB3xYz",
        "part-2.parquet.tmp",
    ],
)
def test_a_folder_that_is_not_finished(left, parquet, refusal, tmp_path):
    """What is there already would be read as if it were all."""
    (tmp_path / "parts").mkdir()
    for number in range(2):
        parquet(TWO, f"parts/day=1/part-{number}.parquet")
    base = tmp_path / "parts"
    if not left.startswith("day=1"):
        base = base / "day=1"
        (tmp_path / "parts" / "_SUCCESS").write_bytes(b"")
    path = tmp_path / "parts" / left if left.startswith("day=1") else base / left
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    name = left.split("/")[1 if left.startswith("day=1") else 0]
    folder = tmp_path / "parts"
    globs = ["*/part-?.parquet", "day=1/*.parquet", "**/*.parquet"]
    for source in (folder, folder.as_uri(), *(folder / glob for glob in globs)):
        said = refusal(source)
        assert said.endswith(
            f": is not finished: it holds {name!r}; wait for whoever writes it, or remove that if "
            "nobody does"
        )


def test_a_glob_looks_no_further_than_its_files_lie(parquet, drain, refusal, tmp_path):
    (tmp_path / "all" / "parts").mkdir(parents=True)
    parquet(TWO, "all/parts/day=1/part-0.parquet")
    (tmp_path / "all" / "other.csv.tmp").write_bytes(b"")
    (tmp_path / "all" / "other" / "_temporary").mkdir(parents=True)
    for glob in ("**/*.parquet", "*/day=1/*.parquet", "parts/day=*/*"):
        assert drain(tmp_path / "all" / glob).shape == (2, 2)
    (tmp_path / "all" / "parts" / "_temporary").mkdir()
    said = refusal(tmp_path / "all" / "parts" / "day=*" / "*")
    assert said.startswith("all/parts: is not finished: it holds '_temporary'; ")
    said = refusal((tmp_path / "all" / "parts").as_uri() + "/day=*/*")
    assert said.endswith(
        "/all/parts: is not finished: it holds '_temporary'; wait for whoever "
        "writes it, or remove that if nobody does"
    )
    assert drain(tmp_path / "all" / "parts" / "day=1" / "*").shape == (2, 2)


def test_what_finished_writers_leave(parquet, drain, tmp_path):
    parquet(TWO, "parts/part-00000-7f.c000.snappy.parquet")
    left = ["_SUCCESS", "_started_412", "_committed_412", "_metadata", "_common_metadata"]
    left += ["._SUCCESS.crc", ".part-00000-7f.c000.snappy.parquet.crc", ".DS_Store"]
    for name in left:
        (tmp_path / "parts" / name).write_bytes(b"")
    for source in ("parts", "parts/*.parquet"):
        assert drain(tmp_path / source).shape == (2, 2)


@pytest.mark.parametrize("log", ["_delta_log", ".hoodie"])
def test_a_table_with_a_log(log, parquet, refusal, tmp_path):
    """Its folder holds files of earlier versions, too."""
    parquet(TWO, "parts/part-0.parquet")
    (tmp_path / "parts" / log).mkdir()
    for source in ("parts", "parts/*.parquet"):
        said = refusal(tmp_path / source)
        assert f": holds {log!r}, which says which of its files count; write the table as " in said


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("class_0", {}),
        ("class_2", {}),
        ("teacher_7", {}),
        ("counts", {}),
        ("count", {}),
        ("label", {}),
        ("query_id", {}),
        ("name", {"id_column": "name"}),
        ("dog", {"label_names": ("cat", "dog"), "layout": "counts"}),
    ],
)
def test_a_partition_that_is_a_column_of_the_votes(key, options, parquet, refusal, tmp_path):
    """It would be left out, and labels be those of the other columns."""
    (tmp_path / "parts").mkdir()
    parquet(TWO, f"parts/{key}=3/part-0.parquet")
    for source in (tmp_path / "parts", tmp_path / "parts" / "*" / "*.parquet"):
        assert refusal(source, **options).endswith(
            f": {key!r} is in the names of folders; write it into the files"
        )
