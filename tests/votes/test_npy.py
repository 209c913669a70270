from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pate_cli.core.errors import VoteError
from pate_cli.votes import Layout, open_votes

OPEN = Path("/proc/self/fd")


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.zeros(5, dtype=int), "the array has shape (5,); votes need two dimensions"),
        (np.zeros((2, 2, 2), dtype=int), "the array has shape (2, 2, 2); votes need two"),
        (np.array(3), "the array has shape (); votes need two dimensions"),
        (np.zeros((0, 10), dtype=int), "the array has no rows (shape (0, 10))"),
        (np.zeros((10, 0), dtype=int), "the array has no columns (shape (10, 0))"),
        (np.zeros((2, 2), dtype=bool), "the array holds true/false values"),
        (np.zeros((2, 2), dtype=complex), "the array holds complex numbers"),
        (np.array([["a", "b"]]), "the array holds strings"),
        (np.array([["2026-01-01"]], dtype="M8[D]"), "the array holds dates"),
        (np.zeros((2, 2), dtype=[("a", int)]), "the array holds records"),
    ],
)
def test_arrays_that_are_no_votes(array, text, npy, refusal):
    for layout in (None, Layout.COUNTS):
        assert refusal(npy(array), layout=layout).startswith(f"v.npy: {text}")


def test_an_object_array_is_never_unpickled(tmp_path, refusal):
    class Trap:
        def __reduce__(self):
            return (exec, ("raise RuntimeError('unpickled')",))

    path = tmp_path / "v.npy"
    np.save(path, np.array([[Trap()]], dtype=object), allow_pickle=True)
    assert refusal(path) == (
        "v.npy: the array has object dtype, which is stored as a pickle and never opened; "
        "save it as integers"
    )


@pytest.mark.parametrize("keep", [6, 8, 9, 40, 127])
def test_a_truncated_header(keep, npy, refusal):
    path = npy(np.ones((3, 4), dtype=np.int64))
    path.write_bytes(path.read_bytes()[:keep])
    assert refusal(path) == "v.npy: the NPY header is truncated or damaged"


@pytest.mark.skipif(not OPEN.is_dir(), reason="no list of open files")
def test_a_file_that_is_refused_is_closed(npy):
    path = npy(np.ones((3, 4), dtype=np.int64))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(VoteError) as caught, open_votes(path):
        pass
    held = {os.path.realpath(file) for file in OPEN.iterdir()}
    assert str(path) not in held, caught.value  # whose frames are kept


def test_truncated_or_doubled_data(npy, refusal):
    path = npy(np.ones((3, 4), dtype=np.int64))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert refusal(path) == "v.npy: the NPY file is truncated (223 of 224 bytes)"
    path.write_bytes(whole + whole)
    assert refusal(path).startswith("v.npy: the NPY file goes on after its array (448 bytes, 224")


def test_a_forged_shape_does_not_overflow(npy, refusal):
    path = npy(np.ones((3, 4), dtype=np.int64))
    header = path.read_bytes()
    for forged in (b"(-3,4), ", b"(3,-4), "):
        path.write_bytes(header.replace(b"(3, 4), ", forged))
        assert refusal(path) == "v.npy: the NPY header is truncated or damaged"


def test_format_version_two_is_read(tmp_path, drain):
    path = tmp_path / "v.npy"
    array = np.array([[3, 4], [5, 2]])
    with path.open("wb") as file:
        np.lib.format.write_array(file, array, version=(2, 0))
    np.testing.assert_array_equal(drain(path, layout=Layout.COUNTS), array)
    changed = bytearray(path.read_bytes())
    changed[6] = 3
    path.write_bytes(bytes(changed))


def test_long_form_is_not_for_npy(npy, refusal):
    assert refusal(npy([[1, 2]]), layout=Layout.LONG) == (
        "v.npy: layout long is for tables (Parquet, CSV, JSONL, Arrow)"
    )


def test_a_label_matrix_the_wrong_way_round(npy, refusal):
    tall = npy(np.tile([0, 1], (6, 2)))  # 6 x 4
    assert refusal(tall, layout=Layout.LABELS_BY_TEACHER, teachers=4) == (
        "v.npy: with `teachers` 4 an array of 6 x 4 is `layout` labels, not labels-by-teacher"
    )
    assert refusal(tall, layout=Layout.LABELS, teachers=6) == (
        "v.npy: with `teachers` 6 an array of 6 x 4 is `layout` labels-by-teacher, not labels"
    )
    assert refusal(tall, layout=Layout.LABELS, teachers=3) == (
        "v.npy: as labels it has 4 teachers, more than `teachers` 3"
    )


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(
    ("layout", "options", "shape"),
    [
        ("labels", {}, (30, 5)),
        ("labels-by-teacher", {}, (5, 30)),
        (None, {"teachers": 5}, (30, 5)),
        (None, {"teachers": 5}, (5, 30)),
        ("labels", {"label_names": ["false", "true"]}, (30, 5)),
        ("labels-by-teacher", {"label_names": ["false", "true"]}, (5, 30)),
        ("labels", {"classes": 4}, (30, 5)),
        ("labels", {"label_names": ["true", "unknown", "false"]}, (30, 5)),
    ],
)
def test_true_and_false_are_the_labels_that_they_are_in_a_table(
    layout, options, shape, held, npy, tmp_path
):
    votes = np.random.default_rng(4).random(shape) < 0.4
    by_query = votes if shape[0] == 30 else votes.T
    table = pa.table({f"teacher_{j}": column for j, column in enumerate(by_query.T)})
    source = votes if held else npy(votes)
    with (
        open_votes(source, layout=layout, **options) as array,
        open_votes(table, layout="labels", **options) as wanted,
    ):
        assert (array.classes, array.teachers) == (wanted.classes, wanted.teachers)
        for found, told in zip(array.batches(), wanted.batches(), strict=True):
            np.testing.assert_array_equal(found.counts, told.counts)


def test_names_that_nobody_listed_may_be_true_and_false(npy):
    votes = np.array([[True, False, True], [False, False, False]] * 4)
    read = []
    for source in (npy(votes), np.where(votes, "true", "false")):
        with open_votes(source, layout="labels", any_name=True) as file:
            (batch,) = file.batches()
            names = [file.vocabulary.title(place) for place in batch.counts.labels[0].tolist()]
            read.append((names, batch.counts.labels.tolist(), batch.counts.counts.tolist()))
    assert sorted(read[0][0]) == ["false", "true"]
    assert read[0] == read[1]


def test_true_is_whatever_is_not_nothing(npy):
    """Another byte than 0 and 1 in a file of truths is no class of its own."""
    path = npy(np.array([[True, False]] * 4))
    path.write_bytes(path.read_bytes().replace(b"\1\0" * 4, b"\7\0" * 4))
    with open_votes(path, layout="labels") as file:
        np.testing.assert_array_equal(next(file.batches()).counts, [[1, 1]] * 4)


def test_truths_that_are_no_labels(npy, refusal):
    votes = np.zeros((6, 4), dtype=bool)
    said = "v.npy: the array holds true/false values"
    assert refusal(npy(votes)) == (
        f"{said}, and who is a row cannot be told; say `layout` labels|labels-by-teacher"
    )
    assert refusal(npy(votes), layout="counts") == (
        f"{said}; counts are integers; if they are labels, say `layout` labels|labels-by-teacher"
    )
    assert refusal(npy(np.zeros((6, 4, 3), dtype=bool)), layout="scores") == (
        f"{said}; under layout scores votes are numbers; convert it first, as by astype('uint8')"
    )


def test_whole_floats_are_counts(npy, drain, histograms):
    np.testing.assert_array_equal(drain(npy(histograms.astype(np.float64))), histograms)


def test_reading_npy_imports_no_pyarrow(npy, histograms):
    program = (
        "import sys; from pate_cli.votes import open_votes\n"
        "with open_votes(sys.argv[1]) as votes: list(votes.batches())\n"
        "sys.exit('pyarrow' in sys.modules or 'scipy' in sys.modules)"
    )
    path = npy(histograms)
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False).returncode == 0


def test_the_file_is_mapped_not_loaded(tmp_path):
    """A sparse file of 3.2 GB opens at once, and its first rows are read without the rest."""
    path = tmp_path / "v.npy"
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=np.int64, shape=(40_000_000, 10))
    mapped[:3] = np.arange(1, 11)
    del mapped
    with open_votes(path, layout=Layout.COUNTS) as votes:
        assert votes.queries == 40_000_000
        assert sum(len(batch.counts) for batch in votes.batches(limit=3)) == 3
