"""Votes in memory are what they are in the file that their library writes."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from opened import listed as read
from opened import refused
from pate_cli.core.errors import ParameterError, VoteError
from pate_cli.votes.opening import open_votes

NAMES = ["cat", "dog", "eel"]
LABELS = np.random.default_rng(3).integers(0, 3, (20, 6))
COUNTS = np.array([np.bincount(row, minlength=3) for row in LABELS])
FRAME = pd.DataFrame(COUNTS, columns=[f"class_{label}" for label in range(3)])
ASKED = {"layout": "counts"}


@pytest.fixture
def both(tmp_path):
    """Read a frame in memory and from the Parquet file that pandas writes of it."""

    def ids_and_counts(frame, **options):
        frame.to_parquet(tmp_path / "v.parquet")
        found = [read(source, **options)[1:] for source in (frame, tmp_path / "v.parquet")]
        assert found[0] == found[1]
        return found[0]

    return ids_and_counts


@pytest.mark.parametrize(
    "kept",
    [
        *(slice(*ends) for ends in ((None,), (5, None), (3, 18, 5), (None, None, -1))),
        COUNTS[:, 0] > 1,
        [7, 3, 11],
        [0],
    ],
)
def test_an_index_of_pandas_is_the_query_ids(kept, both):
    """Also of a slice or a filter, which pandas keeps as a range that no column holds."""
    frame = FRAME[kept] if isinstance(kept, slice | np.ndarray) else FRAME.loc[kept]
    ids, counts = both(frame, **ASKED, teachers=6)
    assert ids == frame.index.tolist()
    assert counts == frame.to_numpy().tolist()


def test_an_index_with_a_name(both):
    words = [f"q{row}" for row in range(20)]
    for name, options in (("query_id", {}), ("image", {"id_column": "image"})):
        for index in (words, list(range(5, 25)), list(range(20))):
            frame = FRAME.set_index(pd.Index(index, name=name))
            assert both(frame, **ASKED, **options) == (index, COUNTS.tolist())
    assert both(FRAME.rename_axis("image"), **ASKED, id_column="image")[0] == list(range(20))
    for frame in (FRAME.set_index(pd.Index(words, name="image")), FRAME.rename_axis("image")):
        with pytest.raises(VoteError, match="index is named 'image'; give `id_column` 'image'"):
            both(frame, **ASKED)
    beside = FRAME.assign(query_id=words)[COUNTS[:, 1] > 1]
    assert both(beside, **ASKED)[0] == beside["query_id"].tolist()


def test_an_index_in_parts(tmp_path):
    for first, second, ids in (
        (FRAME[:8], FRAME[8:], range(20)),
        (FRAME[5:8], FRAME[8:], [5, 6, 7, *range(8, 20)]),
        (FRAME[:3], FRAME[:2], range(5)),
    ):
        first.to_parquet(tmp_path / "0.parquet")
        second.to_parquet(tmp_path / "1.parquet")
        assert read(tmp_path, **ASKED)[1] == list(ids)
    # The notes of pandas tell of 15 rows.
    table = pa.concat_tables([pa.Table.from_pandas(FRAME[5:])] * 2)
    assert read(table, **ASKED)[1] == list(range(30))


@pytest.mark.parametrize("said", [b"{", b"[]", b'{"index_columns":5}', b'{"index_columns":[{}]}'])
def test_notes_of_pandas_that_are_none(said, tmp_path):
    table = pa.table(FRAME.to_dict("list")).replace_schema_metadata({b"pandas": said})
    pq.write_table(table, tmp_path / "v")
    assert "v: cannot be read: the content is damaged" in refused(tmp_path / "v", **ASKED)
    named = table.replace_schema_metadata().add_column(0, "__index_level_0__", [list(range(5, 25))])
    assert "'__index_level_0__'" in refused(named, **ASKED)
    assert read(named, id_column="__index_level_0__", **ASKED)[1] == list(range(5, 25))


def test_frames_and_tables_of_all_kinds(tmp_path):
    ids = [f"q{row}" for row in range(20)]
    frame = FRAME.assign(query_id=ids)
    table = pa.table(frame)
    chunks = pa.Table.from_batches(table.to_batches(max_chunksize=3))
    polars = pl.DataFrame(frame.to_dict("list"))
    polars.write_parquet(tmp_path / "v.parquet")
    polars.write_ipc(tmp_path / "v.arrow")
    memory = [frame, frame.astype("Int64", errors="ignore"), table, chunks, polars]
    memory += [table.to_reader(), table.combine_chunks().to_batches()[0]]
    for source in (*memory, tmp_path / "v.parquet", tmp_path / "v.arrow"):
        assert read(source, **ASKED)[1:] == (ids, COUNTS.tolist())


def test_missing_entries_of_all_kinds():
    labels = [[0, 1], [2, None], [1, 1]]
    frame = pd.DataFrame(labels, columns=["teacher_0", "teacher_1"]).astype("Int64")
    numbers = [labels, np.array(labels, dtype=object), frame, frame.to_numpy()]
    numbers += [[[0, 1], [2, float("nan")], [1, 1]], np.array([[0, 1], [2, -1], [1, 1]])]
    wanted = [[1, 1, 0], [0, 0, 1], [0, 2, 0]]
    for votes in numbers:
        assert read(votes, layout="labels", classes=3, teachers=2)[2] == wanted
    for none in (None, float("nan"), pd.NA, ""):
        words = [[none if each is None else NAMES[each] for each in row] for row in labels]
        for votes in (words, np.array(words, dtype=object)):
            assert read(votes, layout="labels", label_names=NAMES, teachers=2)[2] == wanted


@pytest.mark.parametrize(
    ("votes", "said"),
    [
        ([np.zeros((9, 3)), np.zeros((9, 3)), np.zeros((9, 2))], "row 2 (or teacher 2)"),
        ([np.zeros((9, 2)), np.zeros((9, 3)), np.zeros((9, 3))], "row 0 (or teacher 0)"),
        ([[1, 2], [3]], "row 1 (or teacher 1) has shape (1,), most have (2,)"),
        ([[[1], [2, 3]], [[1], [2, 3]]], "its rows are no numbers and no texts"),
        ([[1, "secret"]], "has texts beside numbers"),
        ([{"secret": 1}], "Python objects"),
        ([[True, 2, 0]], "has true or false beside numbers"),
        ([[2**70, 1]], "a number of more than 64 bits"),
        ([np.ma.masked_equal([3, 1], 1)], "is a masked array; fill it"),
        (np.ma.masked_equal([[3, 1]], 1), "is a masked array; fill it"),
        (pd.DataFrame({"a": [1, 2], "t1": [1, "secret"]}), "column 't1' holds words and numbers"),
        (pd.DataFrame({"a": [None, "secret", "b", 4]}), "the table: column 'a' holds words"),
        (pd.DataFrame({"a": [None, "secret", "b", 4]}), "row 3 is unlike those before it"),
        (pd.DataFrame({"a": [object()]}), "the table: cannot be read; give each column"),
        (pl.LazyFrame({"a": [1]}), "a data frame, not LazyFrame"),
        (object(), "not object"),
        (None, "not NoneType"),
        (7, "not int"),
    ],
)
def test_what_is_no_table_and_no_array(votes, said):
    message = refused(votes, ParameterError, layout="labels", classes=4)
    assert said in message
    assert "secret" not in message


def test_types_that_are_no_votes():
    assert "datetime64" in refused(np.array([["2020-01-01"]], dtype="M8[D]"), layout="labels")
    assert "complex" in refused(np.array([[1j]]), layout="labels")
    assert "shape ()" in refused(np.array(3), layout="counts")
    assert "shape (0,)" in refused([], layout="counts")
    twice = pd.DataFrame([[0, 1, 1]], columns=["a", "b", "a"])
    assert "columns 0 and 2 are both named 'a'" in refused(twice, layout="labels")
    stream = pa.table([pa.array([0, 1])] * 2, names=["a", "a"]).to_reader()
    assert "columns 0 and 1 are both named 'a'" in refused(stream, layout="labels")


def test_an_array_may_change_after_it_was_read():
    votes = np.tile([3, 1], (40, 1))
    with open_votes(votes, layout="counts", batch_rows=20) as file:
        batches = file.batches()
        first = next(batches)
        votes[:] = 9
        assert first.counts.tolist() == [[3, 1]] * 20


def test_what_only_looks_like_an_array_is_the_array_that_it_gives():
    """Tensors and the like have __array__, and fail in their own words."""

    class Tensor:
        def __init__(self, values):
            self.values = values

        def __array__(self, dtype=None, copy=None):
            if self.values is None:
                raise KeyError("secret vote")
            return self.values

    assert read(Tensor(COUNTS), **ASKED)[2] == COUNTS.tolist()
    assert "secret" not in refused(Tensor(None), ParameterError, **ASKED)
