from __future__ import annotations

import os
import tracemalloc
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pate_cli.core.errors import ParameterError, VoteError
from pate_cli.votes import Layout, open_votes
from pate_cli.votes.reading import ENTRIES_PER_BATCH, batch_size
from pate_cli.votes.sources.kept_open import KEPT_OPEN
from slices import some


@pytest.fixture
def sources(npy, parquet, histograms):
    labels = np.stack([np.repeat(np.arange(4), row) for row in histograms])
    queries, teachers = (axis.ravel() for axis in np.indices(labels.shape))
    return {
        "counts.npy": (npy(histograms, "c.npy"), Layout.COUNTS),
        "labels.npy": (npy(labels, "l.npy"), Layout.LABELS),
        "by-teacher.npy": (npy(labels.T, "t.npy"), Layout.LABELS_BY_TEACHER),
        "counts": (
            parquet({"v": histograms.tolist()}, "c.parquet", row_group_size=13),
            Layout.COUNTS,
        ),
        "labels": (parquet({"v": labels.tolist()}, "l.parquet"), Layout.LABELS),
        "long": (
            parquet(
                {"query_id": queries, "teacher_id": teachers, "label": labels.ravel()}, "g.parquet"
            ),
            Layout.LONG,
        ),
    }


KINDS = ["counts.npy", "labels.npy", "by-teacher.npy", "counts", "labels", "long"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", some([None, 0, 1, 7, 8, 39, 40, 41], 3))
def test_limit_and_batch_rows(kind, limit, sources, histograms):
    path, layout = sources[kind]
    with open_votes(path, layout=layout, classes=4, batch_rows=7) as votes:
        for _ in range(2):
            batches = list(votes.batches(limit=limit))
            assert all(1 <= len(batch.counts) <= 7 for batch in batches)
            counts = [row for batch in batches for row in batch.counts.tolist()]
            assert counts == histograms[:limit].tolist()
            ids = [int(i) for batch in batches for i in batch.ids]
            assert ids == list(range(len(counts)))


@pytest.mark.parametrize("kind", KINDS)
def test_two_readers_at_once(kind, sources):
    path, layout = sources[kind]
    with open_votes(path, layout=layout, classes=4, batch_rows=7) as votes:
        few = votes.batches(limit=3)
        for left, right in zip(votes.batches(), votes.batches(), strict=True):
            np.testing.assert_array_equal(left.counts, right.counts)
            assert len(left.counts) == (5 if left.first_row == 35 else 7)
            next(few, None)  # of another batch size


def test_rows_beyond_the_limit_are_not_judged(npy, parquet, histograms, refusal):
    bad = histograms.copy()
    bad[9] = 0
    for path in (npy(bad), parquet({"counts": bad.tolist()})):
        with open_votes(path, layout=Layout.COUNTS, batch_rows=6) as votes:
            assert sum(len(b.counts) for b in votes.batches(limit=9)) == 9
        assert "row 9 has no votes" in refusal(path, layout=Layout.COUNTS)


def test_default_batches_are_bounded():
    assert ENTRIES_PER_BATCH * 8 == 8 * 2**20
    assert batch_size(10) * 10 <= ENTRIES_PER_BATCH
    assert batch_size(10**9) == 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"classes": 1}, "`classes` must be between 2 and 16777216, got 1"),
        ({"classes": 2**25}, "`classes` must be between 2 and 16777216, got 33554432"),
        ({"teachers": 0}, "`teachers` must be at least 1, got 0"),
        (
            {"layout": "wide"},
            "`layout` must be one of counts, labels, labels-by-teacher, long, sparse, "
            "scores, scores-by-teacher, multilabel-counts, multilabel, multilabel-by-teacher, "
            "got 'wide'",
        ),
        ({"batch_rows": 0}, "batch_rows must be at least 1, got 0"),
    ],
)
def test_parameters_out_of_range(options, text, npy):
    with pytest.raises(ParameterError) as caught, open_votes(npy([[1, 2]]), **options):
        pass
    assert str(caught.value) == text
    assert caught.value.exit_code == 2


def test_a_negative_limit(npy):
    with (
        open_votes(npy([[1, 2]]), layout=Layout.COUNTS) as votes,
        pytest.raises(ParameterError, match="limit must be at least 0, got -1"),
    ):
        votes.batches(limit=-1)


def test_a_layout_may_be_a_plain_word(npy):
    with open_votes(npy([[1, 2]]), layout="counts") as votes:
        assert votes.layout is Layout.COUNTS
        assert not votes.inferred


def as_file_and_as_array(array, npy):
    return [(npy(array), "v.npy"), (np.asarray(array), "array")]


def test_an_array_is_read_as_its_file(npy, histograms, read, refusal):
    labels = np.stack([np.repeat(np.arange(4), row) for row in histograms])
    for array, options in [
        (histograms, {}),
        (histograms.astype(np.float32), {"classes": 4}),
        (np.asfortranarray(histograms), {"teachers": 25, "batch_rows": 7}),
        (labels, {"teachers": 25, "classes": 4}),
        (labels.T, {"teachers": 25, "classes": 4}),
    ]:
        (votes, ids, counts), (other, other_ids, other_counts) = (
            read(source, **options) for source, _ in as_file_and_as_array(array, npy)
        )
        assert replace(votes, name="array", reader=other.reader) == other
        assert ids == other_ids
        np.testing.assert_array_equal(counts, other_counts)
        np.testing.assert_array_equal(counts, histograms)
    for array, options in [
        (np.zeros(5, dtype=int), {}),
        (np.zeros((0, 3), dtype=int), {}),
        (np.array([["a", "b"]]), {}),
        (np.array([[1, "a"]], dtype=object), {}),
        ([[0.7, 0.3], [0.2, 0.8]], {"layout": "counts"}),
        ([[3, 1], [2, 1]], {"layout": "counts"}),
        ([[3, 1], [1, 1], [2, 2], [4, 0]], {}),
        ([[1, 2]], {"layout": "long"}),
        ([[0, 1], [1, 2], [3, 0]], {"layout": "labels", "classes": 3}),
    ]:
        told, also = (
            refusal(source, **options).removeprefix(name)
            for source, name in as_file_and_as_array(array, npy)
        )
        assert told == also


def test_a_masked_array_is_refused_rather_than_unmasked(refusal):
    masked = np.ma.masked_equal([[3, 1], [2, 2]], 1)
    assert refusal(masked, layout="counts").startswith("array: the array is masked")


def test_an_array_is_not_copied_as_a_whole():
    array = np.tile([240, 5, 5], (400_000, 1))
    array[::2] = [5, 240, 5]
    tracemalloc.start()
    with open_votes(array, layout="counts", batch_rows=1000) as votes:
        assert sum(len(batch.counts) for batch in votes.batches()) == 400_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < array.nbytes / 10


def chunked(table, rows):
    return pa.concat_tables(table.slice(start, rows) for start in range(0, len(table), rows))


def test_a_table_is_read_as_its_file(parquet, histograms, read, refusal):
    wide = {f"class_{c}": histograms[:, c] for c in range(4)}
    names = pa.array([f"q{row % 40}" for row in range(40)]).dictionary_encode()
    labels = np.stack([np.repeat(np.arange(4), row) for row in histograms])
    queries, teachers = (axis.ravel() for axis in np.indices(labels.shape))
    for columns, options in [
        (wide, {}),
        ({"query_id": names, **wide}, {"batch_rows": 7}),
        ({"v": histograms.tolist()}, {}),
        ({"query_id": names, "v": labels.tolist()}, {"classes": 4, "teachers": 25}),
        ({"query_id": queries, "teacher_id": teachers, "label": labels.ravel()}, {"classes": 4}),
    ]:
        path, table = parquet(columns), pa.table(columns)
        votes, ids, counts = read(path, **options)
        for source in (table, chunked(table, 3)):
            other, other_ids, other_counts = read(source, **options)
            assert replace(votes, name="table", reader=other.reader) == other
            assert ids == other_ids
            np.testing.assert_array_equal(counts, other_counts)
    for columns in (
        {"class_0": [2, 1, 2], "class_1": [1, 1, 1]},
        {"class_0": [2, None], "class_1": [1, 1]},
        {"query_id": [5, 5], "class_0": [2, 1], "class_1": [1, 2]},
        {"class_0": pa.array([], pa.int64()), "class_1": pa.array([], pa.int64())},
        {"class_0": [1], "total": [1]},
        {"v": [[0, 1], [1, 1]]},
    ):
        told = refusal(parquet(columns)).removeprefix("v.parquet")
        assert refusal(pa.table(columns)).removeprefix("table") == told


def test_a_table_is_not_copied_as_a_whole():
    table = pa.table({"class_0": np.full(400_000, 7), "class_1": np.full(400_000, 3)})
    for source in (table, chunked(table, 1300)):
        before = highest = pa.total_allocated_bytes()
        with open_votes(source, batch_rows=1000) as votes:
            for _ in votes.batches():
                highest = max(highest, pa.total_allocated_bytes())
        assert highest - before < table.nbytes / 10


def test_opened_votes_are_handed_on_and_stay_open(npy, parquet, histograms):
    wide = {f"class_{c}": histograms[:, c] for c in range(4)}
    for path in (npy(histograms), parquet(wide)):
        with open_votes(path) as votes:
            with open_votes(votes) as same:
                assert same is votes
            assert sum(len(batch.counts) for batch in votes.batches()) == 40
            for options in ({"layout": "counts"}, {"classes": 4}, {"teachers": 25}):
                with (
                    pytest.raises(ParameterError, match="is open already; give layout, classes"),
                    open_votes(votes, **options),
                ):
                    pass


def test_closed_votes_say_so(parquet):
    with open_votes(parquet({"class_0": [2, 1], "class_1": [1, 2]})) as votes:
        pass
    with pytest.raises(VoteError, match="is closed; read votes while they are open"):
        next(votes.batches())


@pytest.mark.parametrize("source", [None, 5, {1: [1, 2]}, {1, 2}, b"v.npy", object()], ids=type)
def test_what_is_no_source(source):
    with (
        pytest.raises(ParameterError, match="votes are a path, a URI, -, a numpy array, a list"),
        open_votes(source),
    ):
        pass


def test_a_parquet_file_is_opened_once(parquet, histograms, monkeypatch):
    opened, footers = [], []
    open_file, parquet_file, read_footer = pa.OSFile, pq.ParquetFile, pq.read_metadata

    def counted_open(path, *rest):
        opened.append(path)
        return open_file(path, *rest)

    def counted_file(source, *, metadata=None, **rest):
        footers.extend([] if metadata else [source])
        return parquet_file(source, metadata=metadata, **rest)

    def counted_footer(source):
        footers.append(source)
        return read_footer(source)

    monkeypatch.setattr(pa, "OSFile", counted_open)
    monkeypatch.setattr(pq, "ParquetFile", counted_file)
    monkeypatch.setattr(pq, "read_metadata", counted_footer)
    path = parquet({"query_id": np.arange(40), "counts": histograms.tolist()})
    with open_votes(path) as votes:
        assert votes.inferred
        for _ in range(2):
            list(votes.batches())
    assert (len(opened), len(footers)) == (1, 1)


def test_a_folder_of_many_parts_keeps_few_files_open(parquet, tmp_path, drain):
    for number in range(60):
        parquet({"class_0": [number], "class_1": [99 - number]}, f"parts/{number:02}.parquet")
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = max(int(name) for name in os.listdir("/dev/fd"))  # noqa: PTH208 - names, no files
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken + KEPT_OPEN + 12, hard))
    try:
        assert drain(tmp_path / "parts")[:, 0].tolist() == list(range(60))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
