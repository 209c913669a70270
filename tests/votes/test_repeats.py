"""Query ids occur once: told in bounded memory, at any distance, and without a trace on disk."""

from __future__ import annotations

import os
import stat
import tempfile
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.core.errors import VoteError
from pate_cli.votes import open_votes, repeats
from pate_cli.votes.repeats import first_repeat
from pate_cli.votes.sources import table_matrix
from slices import some, tries


@pytest.fixture
def small(monkeypatch):
    """So little is kept that any file of more than a few rows goes to the disk."""
    monkeypatch.setattr(repeats, "KEPT_BYTES", 100)
    monkeypatch.setattr(table_matrix, "_IDS_AT_ONCE", 8)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The temporary files that were made, with their modes; the folder they would be seen in."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    files = []
    whole = tempfile.TemporaryFile

    def noted(**options):
        file = whole(**options)
        files.append((file, stat.S_IMODE(os.fstat(file.fileno()).st_mode)))
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", noted)
    return folder, files


def by_hand(ids):
    seen = set()
    for row, query in enumerate(ids):
        if query in seen:
            return row
        seen.add(query)
    return None


def pieces(ids, size, kind):
    return lambda: (pa.array(ids[row : row + size], kind) for row in range(0, len(ids), size))


numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 60)
texts = st.text(max_size=3) | st.sampled_from(["a", "b", "", "é", "a\0"])


@settings(max_examples=tries(200))
@given(
    ids=st.lists(numbers, min_size=1, max_size=60) | st.lists(texts, min_size=1, max_size=60),
    unique=st.booleans(),
    size=st.integers(1, 9),
    kept=st.sampled_from([1, 40, 200, 10_000]),
    shuffled=st.booleans(),
)
def test_the_first_repeat_is_found(ids, unique, size, kept, shuffled):
    if unique:
        ids = list(dict.fromkeys(ids))
    if not shuffled:
        ids = sorted(ids)
    kind = pa.int64() if isinstance(ids[0], int) else pa.large_string()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats, "KEPT_BYTES", kept)
        assert first_repeat(pieces(ids, size, kind), "v") == by_hand(ids)


def votes(ids):
    return {"query_id": ids, "class_0": [1] * len(ids), "class_1": [2] * len(ids)}


@pytest.mark.parametrize("text", some([False, True], 2))
@pytest.mark.usefixtures("small")
def test_repeats_far_apart_and_over_parts(text, parquet, refusal, made, tmp_path):
    ids = np.random.default_rng(1).permutation(3000).tolist()
    ids[2900] = ids[3]
    ids[2950] = ids[700]
    named = [f"q{i}" for i in ids] if text else ids
    for part in range(3):
        parquet(votes(named[1000 * part : 1000 * part + 1000]), f"parts/{part}.parquet")
    told = "parts: row 2900 repeats the query_id of an earlier row"
    assert refusal(tmp_path / "parts") == told
    ids[2900], ids[2950] = 5000, 5001
    named = [f"q{i}" for i in ids] if text else ids
    parquet(votes(named[2000:]), "parts/2.parquet")
    with open_votes(tmp_path / "parts") as file:
        read = [query for batch in file.batches() for query in batch.ids]
    assert read == named
    folder, files = made
    assert len(files) == 2
    assert all(file.closed and mode == 0o600 for file, mode in files)
    assert not list(folder.iterdir())


@pytest.mark.usefixtures("small")
def test_the_rules_of_ids_hold_on_the_way_to_the_disk(parquet, refusal, made):
    ids = np.random.default_rng(1).permutation(300).astype(object)
    ids[250] = None
    assert refusal(parquet(votes(pa.array(ids)))) == "v.parquet: row 250 has no query_id"
    ids[250] = 2**63
    large = pa.array(ids, pa.uint64())
    assert refusal(parquet(votes(large))) == "v.parquet: row 250 has an id above 2^63 - 1"
    raw = [b"%d" % i for i in ids]
    raw[250] = b"\xff"
    bad = pa.array(raw, pa.binary()).view(pa.string())
    assert refusal(parquet(votes(bad))) == "v.parquet: row 250 has an id that is not UTF-8 text"
    folder, files = made
    assert len(files) == 3
    assert all(file.closed for file, _ in files)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.usefixtures("small")
def test_ids_that_ascend_need_no_disk(text, parquet, read, made):
    ids = [f"q{i:05}" for i in range(2000)] if text else [i * i - 50 for i in range(2000)]
    assert read(parquet(votes(ids)))[1] == ids
    assert made[1] == []


@pytest.mark.usefixtures("small")
def test_one_id_everywhere_is_told_at_once(parquet, refusal):
    assert refusal(parquet(votes([7] * 5000))).startswith("v.parquet: row 1 repeats the query_id")


@pytest.mark.parametrize("when", ["made", "written"])
@pytest.mark.usefixtures("small")
def test_a_full_disk(when, parquet, refusal, made, monkeypatch):
    whole = tempfile.TemporaryFile

    class Full:
        def __init__(self, **options):
            if when == "made":
                raise OSError(28, "No space left on device")
            self.file = whole(**options)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, _):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", Full)
    ids = np.random.default_rng(1).permutation(300)
    assert refusal(parquet(votes(ids))) == (
        "v.parquet: whether a query_id repeats cannot be checked in a temporary file: No space "
        "left on device; make room, or set TMPDIR to a folder that has some"
    )
    assert all(file.closed for file, _ in made[1])


def test_memory_does_not_grow_with_the_rows(monkeypatch):
    monkeypatch.setattr(repeats, "KEPT_BYTES", 1 << 17)
    peaks = []
    for rows in (200_000, 800_000):
        ids = np.random.default_rng(0).permutation(rows)
        tracemalloc.start()
        assert first_repeat(pieces(ids, 4096, pa.int64()), "v") is None
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(peaks) < 20 << 17
    assert peaks[1] < 1.5 * peaks[0]


def test_ids_are_not_held(tmp_path):
    sizes, highest = [], []
    for rows in (50_000, 200_000):
        ids = pa.array([f"a rather long name of query {row}" for row in range(rows)])
        table = pa.table({"query_id": ids, "class_0": [3] * rows, "class_1": [4] * rows})
        pa.parquet.write_table(table, tmp_path / "v", row_group_size=5000)
        sizes.append(ids.nbytes)
        del ids, table
        before = pa.total_allocated_bytes()
        with open_votes(tmp_path / "v", layout="counts", batch_rows=1000) as file:
            highest.append(max(pa.total_allocated_bytes() - before for _ in file.batches()))
    # What reading takes however long the file is differs between versions of pyarrow.
    assert highest[1] - highest[0] < (sizes[1] - sizes[0]) / 20


def test_a_repeat_is_no_error_of_the_names(parquet):
    """Row numbers, never ids, are in the message."""
    with pytest.raises(VoteError) as caught, open_votes(parquet(votes(["secret", "x", "secret"]))):
        pass
    assert "secret" not in str(caught.value)
