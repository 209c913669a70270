"""Votes in memory under other libraries' types, for which small classes stand here."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from pate_cli.core.errors import ParameterError
from pate_cli.votes import open_votes


class Frame:
    """A data frame, as far as Arrow's PyCapsule interface tells."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("the stream keeps the names of the columns")


class Like:
    """What numpy takes for an array."""

    def __init__(self, array):
        self._array = array

    def __array__(self, dtype=None, copy=None):
        warnings.warn("of its own", FutureWarning, stacklevel=2)
        return self._array


class Old(Like):
    """A data frame of before there were streams."""

    columns = ("query_id", "class_0", "class_1")


class Broken:
    """What fails with something of its own, which quotes a vote."""

    def __array__(self, dtype=None, copy=None):
        raise KeyError("vote 17")

    __arrow_c_stream__ = __array__


class BrokenArray:
    __array__ = Broken.__array__


@pytest.fixture
def refused(read):
    def message(source, **options):
        with pytest.raises(ParameterError) as caught:
            read(source, **options)
        text = str(caught.value)
        assert "\n" not in text
        return text

    return message


def from_pandas(columns, index):
    """The table of a data frame with an index that has values."""
    table = pa.table(columns)
    return table.replace_schema_metadata({b"pandas": json.dumps({"index_columns": index})})


def test_a_data_frame_is_read_as_the_table_it_gives(histograms, read):
    wide = {f"class_{c}": histograms[:, c] for c in range(4)}
    names = pa.array([f"q{row}" for row in range(40)])
    labels = np.stack([np.repeat(np.arange(4), row) for row in histograms])
    queries, teachers = (axis.ravel() for axis in np.indices(labels.shape))
    for columns, options in [
        (wide, {}),
        ({"query_id": names, **wide}, {"batch_rows": 7}),
        ({"name": names.dictionary_encode(), **wide}, {"id_column": "name"}),
        ({"v": histograms.tolist()}, {}),
        ({"query_id": queries, "teacher_id": teachers, "label": labels.ravel()}, {"classes": 4}),
    ]:
        table = pa.table(columns)
        votes, ids, counts = read(table, **options)
        reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=7))
        for source in (Frame(table), reader, *table.combine_chunks().to_batches()):
            other, other_ids, other_counts = read(source, **options)
            assert other.name == "table"
            assert replace(votes, reader=other.reader) == other
            assert ids == other_ids
            np.testing.assert_array_equal(counts, other_counts)


def test_an_index_is_no_column_of_votes(histograms, read):
    """Not even one whose name could be a class's."""
    animals = {name: histograms[:, c] for c, name in enumerate(["cat", "dog", "fox", "owl"])}
    numbers = np.arange(40)
    for columns in (
        Frame(pa.table({**animals, "__index_level_0__": numbers})),
        Frame(from_pandas({**animals, "hen": numbers}, ["hen"])),
        Frame(from_pandas(animals, [{"kind": "range", "name": None, "start": 0}])),
        Frame(from_pandas({**animals, "hen": numbers, "__index_level_1__": numbers}, ["hen", 7])),
        Frame(pa.table(animals).replace_schema_metadata({b"pandas": b"{"})),
        Frame(pa.table(animals).replace_schema_metadata({b"pandas": b"[]"})),
    ):
        votes, _, counts = read(columns, layout="counts")
        assert votes.label_names == tuple(animals)
        np.testing.assert_array_equal(counts, histograms)


@pytest.mark.parametrize(("name", "told"), [("query_id", {}), ("hen", {"id_column": "hen"})])
def test_an_index_that_names_the_queries_does(name, told, histograms, read):
    wide = {f"class_{c}": histograms[:, c] for c in range(4)}
    names = [f"q{row}" for row in range(40)]
    _, ids, counts = read(Frame(from_pandas({**wide, name: names}, [name])), **told)
    assert ids == names
    np.testing.assert_array_equal(counts, histograms)


@pytest.mark.filterwarnings("ignore:of its own")
def test_lists_and_what_is_like_an_array_are_read_as_the_array(histograms, read):
    labels = np.stack([np.repeat(np.arange(4), row) for row in histograms])
    words = np.array(["cat", "dog", "fox", "owl"])[labels]
    scores = np.random.default_rng(2).random((40, 5, 3))
    for array, options in [
        (histograms, {}),
        (histograms.astype(float), {"classes": 4}),
        (labels.T, {"teachers": 25, "classes": 4}),
        (words, {"layout": "labels", "label_names": "cat,dog,fox,owl"}),
        (scores, {"layout": "scores"}),
    ]:
        votes, ids, counts = read(array, **options)
        rows = array.tolist()
        for source in (rows, tuple(map(tuple, rows)), list(array), Like(array)):
            other, other_ids, other_counts = read(source, **options)
            assert other.name == "array"
            assert replace(votes, reader=other.reader) == other
            assert ids == other_ids
            np.testing.assert_array_equal(counts, other_counts)


def test_an_array_of_numpy_is_none_of_another(read):
    """Whatever else it has."""

    class Odd(np.ndarray):
        __arrow_c_stream__ = Broken.__array__

    votes, _, _ = read(np.tile([3, 1], (9, 1)).view(Odd), layout="counts")
    assert votes.name == "array"


NOT_ONE_LENGTH = (
    "array: its rows are not all of one length, or hold no numbers; give a pyarrow.Table with a "
    "column of lists, or -1 where a vote is missing"
)
MIXED = (
    "array: it holds other things than numbers; give numbers alone, or texts alone with "
    "`label_names`, and -1 or an empty text where a vote is missing"
)
NO_ROWS = (
    "array: a list of votes holds a list for every row; of several files give their folder or a "
    "glob"
)


@pytest.mark.filterwarnings("ignore:of its own")
@pytest.mark.parametrize(
    ("source", "text"),
    [
        ([[1, 2], [3]], NOT_ONE_LENGTH),
        ([[1, 2], 3], NOT_ONE_LENGTH),
        ([[[1]], [[2, 3]]], NOT_ONE_LENGTH),
        ([[np.ma.masked, 1]], NOT_ONE_LENGTH),
        ([[1, None]], MIXED),
        ([[1, "a"]], MIXED),
        ([["a", None]], MIXED),
        ([[2**70, 1]], MIXED),
        ([{"class_0": 1}], MIXED),
        (Like(np.array([[1, None]])), MIXED),
        (["a.npy", "b.npy"], NO_ROWS),
        ([3, 1], NO_ROWS),
        (range(3), NO_ROWS),
        ([np.ma.masked_equal([3, 1], 1)], "array: a row is masked, which would be lost; fill it"),
        (
            Old(np.array([[7, 3, 1]])),
            "table: this Old has columns, whose names an array would lose; give a pyarrow.Table of "
            "it (pyarrow.Table.from_pandas), or a newer version",
        ),
        (
            Broken(),
            "table: this Broken does not turn into an Arrow table; give columns of numbers, each "
            "of one type",
        ),
        (
            pa.chunked_array([[1, 2]]),
            "table: this ChunkedArray does not turn into an Arrow table; give columns of numbers, "
            "each of one type",
        ),
        (
            BrokenArray(),
            "array: this BrokenArray does not turn into a numpy array; turn it into one first",
        ),
        (
            Like("no array"),
            "array: this Like does not turn into a numpy array; turn it into one first",
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
def test_what_is_no_array_and_no_table(source, text, refused):
    assert refused(source, layout="counts") == text


@pytest.mark.filterwarnings("ignore:of its own")
def test_what_turned_into_one_is_judged_as_any_other(refusal):
    assert refusal([], layout="counts").startswith("array: the array has shape (0,); votes need")
    assert refusal(Like(np.array(3))).startswith("array: the array has shape (); votes need")
    assert refusal([["cat", "dog"]]) == (
        "array: the array holds strings; if they are votes, give `label_names`"
    )
    assert refusal([[b"cat"]]).startswith("array: the array holds byte strings")
    assert refusal(Frame(pa.table({"class_0": [2], "total": [2]}))).startswith("table: column")


def test_a_broken_copy_is_told_apart_from_pyarrow_missing(histograms, read, monkeypatch):
    """An array does without pyarrow, whoever else has imported it."""
    monkeypatch.delitem(sys.modules, "pyarrow")
    votes, _, _ = read(histograms.tolist())
    assert votes.queries == 40


def test_nothing_of_an_array_needs_pyarrow(tmp_path):
    script = (
        "import sys, numpy as np; from pate_cli.votes import open_votes\n"
        "np.save(sys.argv[1], np.tile([3, 1], (9, 1)))\n"
        "for source in (sys.argv[1], [[3, 1]], np.array([[3, 1]])):\n"
        "    with open_votes(source, layout='counts') as votes: list(votes.batches())\n"
        "print('pyarrow' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "v.npy")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == "False"


WORDS = [
    ({"classes": "x"}, "`classes` must be a whole number, got 'x'"),
    ({"classes": 2.5}, "`classes` must be a whole number, got 2.5"),
    ({"classes": True}, "`classes` must be a whole number, got True"),
    ({"classes": np.array([2, 3])}, "`classes` must be a whole number, got array([2, 3])"),
    ({"teachers": "a"}, "`teachers` must be a whole number, got 'a'"),
    ({"batch_rows": "x"}, "`batch_rows` must be a whole number, got 'x'"),
    ({"max_queries": "x"}, "`max_queries` must be a whole number, got 'x'"),
    ({"max_queries": 1.5}, "`max_queries` must be a whole number, got 1.5"),
    ({"layout": 3}, "`layout` must be one of counts, "),
    ({"layout": []}, "`layout` must be one of counts, "),
    ({"label_names": 5}, "`label_names` must be a list of texts, or a file of them, in order, not"),
    ({"label_names": b"a,b"}, "`label_names` must be a list of texts"),
    ({"label_names": {"a", "b"}}, "`label_names` must be a list of texts"),
    ({"label_names": {"a": 0, "b": 1}}, "`label_names` must be a list of texts"),
    ({"label_names": np.array(5)}, "`label_names` must be a list of texts"),
    ({"label_names": [["a"], ["b"]]}, "`label_names`: name 0 is empty, or no text"),
    ({"groups": 3}, "`groups` must be TeacherGroups, or a file of them, not int"),
    ({"groups": ["a", "b"]}, "`groups` must be TeacherGroups, or a file of them, not list"),
    ({"queries": object()}, "`queries` must be a list of ids, or a file of them, in order, not"),
    ({"queries": {1, 2}}, "`queries` must be a list of ids"),
    ({"queries": b"q.csv"}, "`queries` must be a list of ids"),
    ({"id_column": 3}, "`id_column` must be the name of a column, got 3"),
    ({"id_column": [], "queries": [1]}, "`id_column` must be the name of a column, got []"),
    ({"progress": 3}, "`progress` must be a function, got 3"),
    ({"stdin": 3}, "`stdin` must be an open binary file, as sys.stdin.buffer is, got 3"),
    ({"stdin": io.StringIO()}, "`stdin` must be an open binary file, as sys.stdin.buffer is, got "),
]


@pytest.mark.parametrize(("options", "text"), WORDS, ids=lambda given: next(iter(given)))
def test_words_of_another_type_are_refused(options, text, refused, npy):
    for source in (npy([[3, 1]]), [[3, 1]], pa.table({"class_0": [3], "class_1": [1]})):
        assert refused(source, **options).startswith(text)


def test_numbers_of_numpy_are_numbers(read):
    options = {"classes": np.int64(2), "teachers": np.uint8(4), "batch_rows": np.int32(1)}
    votes, _, _ = read([[3, 1]] * 9, layout="counts", **options)
    assert (type(votes.teachers), votes.teachers) == (int, 4)


def test_a_name_that_is_no_text():
    class Bytes:
        def __fspath__(self):
            return b"v.npy"

    with (
        pytest.raises(ParameterError, match=r"name of the votes must be text, got b'v.npy'"),
        open_votes(Bytes()),
    ):
        pass


def test_data_frames_of_pandas(histograms, read):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(histograms, columns=["cat", "dog", "fox", "owl"])
    names = [f"q{row}" for row in range(40)]
    for votes, ids in [
        (frame, None),
        (frame.set_axis(names), None),
        (frame.set_axis(pandas.Index(range(40), name="hen")), None),
        (frame.set_index([pandas.Index(names), pandas.Index(names, name="query")]), None),
        (frame.astype("Int64"), None),
        (frame.assign(query_id=names), names),
        (frame.set_axis(pandas.Index(names, name="query_id")), names),
    ]:
        file, found, counts = read(votes, layout="counts")
        assert file.label_names == ("cat", "dog", "fox", "owl")
        np.testing.assert_array_equal(counts, histograms)
        assert found == (ids or list(range(40)))


def test_data_frames_of_polars(histograms, read, refused, tmp_path):
    """Whose texts are views; in files, too."""
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(histograms, schema=["cat", "dog", "fox", "owl"])
    ids = [f"q{row}" for row in range(40)]
    _, found, counts = read(frame, layout="counts")
    assert found == list(range(40))
    np.testing.assert_array_equal(counts, histograms)
    named = frame.with_columns(query_id=polars.Series(ids))
    named.write_parquet(tmp_path / "v.parquet")
    named.write_ipc(tmp_path / "v.arrow")
    named.write_ipc_stream(tmp_path / "stream.arrow")
    for source in (named, *(tmp_path / file for file in ("v.parquet", "v.arrow", "stream.arrow"))):
        _, found, counts = read(source, layout="counts")
        assert found == ids
        np.testing.assert_array_equal(counts, histograms)
    assert refused(frame["cat"]).startswith("table: this Series does not turn into an Arrow table")


@pytest.mark.parametrize("dictionary", [False, True])
def test_texts_that_are_views(dictionary, read, tmp_path):
    """As polars has them, by which few functions of pyarrow go."""

    def texts(values):
        views = pa.array(values, pa.string_view())
        if not dictionary:
            return views
        places = {value: place for place, value in enumerate(dict.fromkeys(values))}
        return pa.DictionaryArray.from_arrays(
            pa.array([places[value] for value in values], pa.uint32()),
            pa.array(list(places), pa.string_view()),
        )

    long = {
        "query_id": texts(["a", "a", "b", "b"]),
        "teacher_id": texts(["x", "y", "x", "y"]),
        "label": texts(["cat", "dog", "dog", "dog"]),
    }
    wide = {"query_id": texts(["a", "b"])} | {
        f"teacher_{teacher}": texts(list(words))
        for teacher, words in enumerate([("cat", "dog"), ("dog", "dog")])
    }
    for columns in (long, wide):
        table = pa.table(columns)
        with pa.ipc.new_file(tmp_path / "v.arrow", table.schema) as file:
            file.write_table(table)
        for source in (table, Frame(table), tmp_path / "v.arrow"):
            _, ids, counts = read(source, label_names="cat,dog")
            assert ids == ["a", "b"]
            assert counts.tolist() == [[1, 1], [0, 2]]
