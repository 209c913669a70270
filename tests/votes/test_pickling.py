"""Opened votes in another process: the same votes, read by name, and nothing inferred again."""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import shutil
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from changes import unseen
from pate_cli.votes import open_votes
from pate_cli.votes.layouts.infer import SAMPLE_ENTRIES
from pate_cli.votes.sources import files, kept_open
from reread import refused, reread
from slices import some

STARTS = [0, 1, 13, 39, 40, 99]


@pytest.fixture(scope="module")
def elsewhere():
    """A process that shares nothing with this one and stands in another folder."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(os.chdir, "/").result()
        yield lambda *words: pool.submit(*words).result()


@pytest.fixture
def labels(histograms):
    return np.stack([np.repeat(np.arange(4), row) for row in histograms])


def gaps(labels):
    return [
        [None if (r + t) % 7 == 0 else v for t, v in enumerate(row)]
        for r, row in enumerate(labels.tolist())
    ]


@pytest.fixture
def source(histograms, labels, npy, parquet, tmp_path, monkeypatch):
    queries, teachers = (axis.ravel() for axis in np.indices(labels.shape))
    wide = {f"class_{c}": histograms[:, c] for c in range(4)}
    names = [f"q{7 * row % 40}" for row in range(40)]
    long = {"query_id": queries, "teacher_id": teachers, "label": labels.ravel()}
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    def folder():
        for part in range(4):
            rows = slice(10 * part, 10 * part + 10)
            columns = {"query_id": names[rows], **{c: v[rows] for c, v in wide.items()}}
            parquet(columns, f"parts/{part}.parquet", row_group_size=4)
        return tmp_path / "parts"

    def bucket():
        folder()
        monkeypatch.setattr(files, "filesystem_of", lambda uri: (store, uri.split("bucket/")[1]))
        return "s3://bucket/parts"

    def pipe(path):
        return {"source": "-", "stdin": io.BytesIO(path.read_bytes())}

    def relative():
        monkeypatch.chdir(tmp_path)
        return npy(histograms).name

    told = {"classes": 4, "teachers": 25}
    kinds = {
        "npy": lambda: npy(histograms),
        "relative npy": relative,
        "fortran": lambda: npy(np.asfortranarray(histograms.astype(">f4"))),
        "labels npy": lambda: {"source": npy(labels), **told},
        "by teacher": lambda: {"source": npy(labels.T), **told},
        "classes seen": lambda: {"source": npy(labels), "layout": "labels"},
        "piped npy": lambda: pipe(npy(histograms)),
        "wide": lambda: parquet(wide, row_group_size=13),
        "list with ids": lambda: parquet({"query_id": names, "v": histograms.tolist()}),
        "gaps": lambda: {"source": parquet({"labels": gaps(labels)}, row_group_size=9), **told},
        "folder": folder,
        "glob": lambda: f"{folder()}/[0-3]*",
        "uri": lambda: folder().as_uri(),
        "bucket": bucket,
        "piped parquet": lambda: pipe(parquet(wide)),
        "array": lambda: histograms,
        "table": lambda: pa.table({"query_id": names, **wide}),
        "long": lambda: {"source": parquet(long), "classes": 4},
    }

    def options(kind):
        made = kinds[kind]()
        return made if isinstance(made, dict) else {"source": made}

    return options


FILES = ["npy", "relative npy", "fortran", "labels npy", "by teacher", "classes seen", "wide"]
FILES += ["list with ids", "gaps", "folder", "glob", "uri", "bucket", "piped npy", "piped parquet"]
HELD = ["array", "table", "long"]


@pytest.mark.parametrize("kind", some(FILES + HELD, 3))
@pytest.mark.parametrize("kept", [16, 1])
def test_a_copy_reads_the_same(kind, kept, source, elsewhere, monkeypatch):
    monkeypatch.setattr(kept_open, "KEPT_OPEN", kept)
    with open_votes(**source(kind), batch_rows=6) as votes:
        assert votes.portable == (kind in FILES)
        here = reread(votes, STARTS)
        again = pickle.loads(pickle.dumps(votes))  # noqa: S301 - our own
        assert again == votes
        assert reread(again, STARTS) == here
        assert elsewhere(reread, votes, STARTS) == here
        everything = here[2][0]
        assert [len(ids) for ids, _ in here[2]] == [40, 39, 27, 1, 0, 0]
        for start, found in zip(STARTS, here[2], strict=True):
            assert found == tuple(column[start:] for column in everything)


@pytest.mark.parametrize("kind", ["npy", "wide", "text ids"])
def test_a_copy_carries_no_votes(kind, npy, parquet):
    """As long for many rows as for few."""
    lengths = []
    for rows in (100, 10_000):
        counts = np.random.default_rng(0).multinomial(25, np.ones(4) / 4, size=rows)
        columns = {f"class_{c}": counts[:, c] for c in range(4)}
        if kind == "text ids":
            columns["query_id"] = [f"q{-row}" for row in range(rows)]
        with open_votes(npy(counts) if kind == "npy" else parquet(columns)) as votes:
            assert sum(len(batch.counts) for batch in votes.batches()) == rows
            lengths.append(len(pickle.dumps(votes)))
    assert lengths[1] - lengths[0] <= 16


def test_nothing_is_inferred_again(npy, elsewhere):
    """The file alone, cut to where it would be guessed, would not be taken for counts."""
    rows = SAMPLE_ENTRIES // 2 + 10
    counts = np.tile([[3, 7]], (rows, 1))
    counts[:10] = [[row, 10 - row] for row in range(10)]
    path = npy(counts)
    with open_votes(path) as votes:
        with unseen(path):
            np.save(path, counts[::-1])  # another file of this shape: no sample of it would do
        assert votes.inferred
        assert elsewhere(reread, votes, [rows - 1])[2] == [([rows - 1], [[0, 10]])]


@pytest.mark.parametrize("kind", ["npy", "wide", "folder"])
def test_a_file_that_is_gone_or_changed(kind, source, elsewhere, tmp_path, monkeypatch):
    options = source(kind)
    path = options["source"]
    with open_votes(**options) as votes:
        last = path / "3.parquet" if kind == "folder" else path
        other = path / "0.parquet" if kind == "folder" else path
        content, times = last.read_bytes(), last.stat()
        if kind == "npy":
            np.save(path, np.ones((39, 4), dtype=np.int64))
        else:
            columns = {f"class_{c}": [5] * 5 for c in range(4)}
            ids = {"query_id": list("abcde")} if kind == "folder" else {}
            pq.write_table(pa.table({**ids, **columns}), last)
        message = elsewhere(refused, votes)
        assert message == f"VoteError: {last}: has changed while it was read; start again"
        last.write_bytes(content)
        os.utime(last, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert elsewhere(refused, votes) == "nothing"
        shutil.move(other, tmp_path / "gone")
        assert elsewhere(refused, votes).startswith(f"NotOpenedError: {other}: ")
        shutil.move(tmp_path / "gone", other)


def test_a_bad_row_is_named_alike(parquet, histograms, elsewhere):
    bad = histograms.copy()
    bad[31, 0] += 1
    path = parquet({"counts": bad.tolist()}, row_group_size=5)
    with open_votes(path, layout="counts") as votes:
        assert elsewhere(refused, votes).startswith(f"VoteError: {path}: row 31 is the first whose")
        assert refused(votes) == elsewhere(refused, votes)
        assert sum(len(batch.counts) for batch in votes.batches(start=32)) == 8


def test_a_copy_opens_a_file_once(parquet, histograms, monkeypatch):
    path = parquet({"counts": histograms.tolist()}, row_group_size=3)
    with open_votes(path) as votes:
        copy = pickle.loads(pickle.dumps(votes))  # noqa: S301 - our own
    opened = []
    open_file = pa.OSFile
    monkeypatch.setattr(pa, "OSFile", lambda name: opened.append(name) or open_file(name))
    ranges = copy.ranges(limit=40, entries=12)
    assert opened == []
    assert len(ranges) == 14
    for start, stop in ranges:
        assert sum(len(b.counts) for b in copy.batches(start=start, limit=stop - start)) == 3 or (
            stop == 40
        )
    assert opened == [str(path)]
