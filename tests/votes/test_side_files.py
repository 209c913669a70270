"""A student's predictions: what is read, how rows are matched, and what is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pate_cli.errors import VoteError
from pate_cli.votes.side_files import StudentPredictions, load_predictions

SHARES = np.random.default_rng(1).dirichlet([1.0, 1.0, 1.0], size=20)
NO_SUM = (
    "student predictions, row {}: not probabilities that sum to 1 within 1e-6; "
    "give the output of a softmax or predict_proba"
)


@pytest.fixture
def table(tmp_path):
    """Write a Parquet file of these columns."""

    def write(**columns):
        path = tmp_path / "student.parquet"
        pq.write_table(pa.table(columns), path)
        return path

    return write


@pytest.fixture
def array(tmp_path):
    def write(values, **rest):
        np.save(tmp_path / "student.npy", values, **rest)
        return tmp_path / "student.npy"

    return write


def columns(values=SHARES):
    return {f"class_{j}": values[:, j] for j in range(values.shape[1])}


def refusal(build):
    with pytest.raises(VoteError) as caught:
        build()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_format_holds_the_same_predictions(table, array, dtype):
    values = SHARES.astype(dtype)
    fixed = pa.array(values.tolist(), type=pa.list_(pa.float64(), 3))
    for path in (array(values), table(p=values.tolist()), table(p=fixed), table(**columns(values))):
        found = load_predictions(path)
        assert found.ids is None
        assert found.classes == 3
        np.testing.assert_array_equal(found.probabilities, values)
        assert found.probabilities.dtype == np.float64


def test_certainties_may_be_whole_numbers(array):
    found = load_predictions(array(np.eye(4, dtype=np.int64)))
    np.testing.assert_array_equal(found.probabilities, np.eye(4))


@given(st.lists(st.integers(0, 19), max_size=8), st.integers(0, 19))
def test_rows_are_matched_by_id_or_by_order(wanted, first):
    names = np.array([f"q{place}" for place in range(20)])
    by_id = StudentPredictions(SHARES, names[::-1])
    np.testing.assert_array_equal(
        by_id.of(names[wanted], first), SHARES[::-1][wanted].reshape(-1, 3)
    )
    by_order = StudentPredictions(SHARES)
    fits = min(len(wanted), 20 - first)
    found = by_order.of(names[wanted][:fits], first)
    np.testing.assert_array_equal(found, SHARES[first : first + fits])


@pytest.mark.parametrize(
    "ids", [list(range(100, 120)), [f"q{place}" for place in range(20)]], ids=["whole", "text"]
)
def test_ids_of_a_parquet_file_are_used(table, ids):
    for file in (table(query_id=ids, **columns()), table(p=SHARES.tolist(), query_id=ids)):
        found = load_predictions(file)
        np.testing.assert_array_equal(found.of(np.array(ids[5:2:-1]), 0), SHARES[5:2:-1])


def test_a_query_without_predictions_is_named_by_its_row():
    by_id = StudentPredictions(SHARES, np.arange(20))
    assert refusal(lambda: by_id.of(np.array([3, 4, 20]), 40)) == (
        "student predictions: none for the query of row 42"
    )
    by_order = StudentPredictions(SHARES)
    assert refusal(lambda: by_order.of(np.arange(5), 18)) == (
        "student predictions end at row 19, the votes go on to row 22"
    )


@pytest.mark.parametrize(
    "row",
    [
        [0.5, 0.5, 1.1e-6],
        [0.5, 0.4, 0.099998],
        [1.0, 0.5, -0.5],
        [np.nan, 0.5, 0.5],
        [np.inf, -np.inf, 1.0],
        [np.inf, 0.0, 0.0],
        [0.0, 0.0, 0.0],
        [3.0, 2.0, 5.0],
    ],
    ids=str,
)
def test_rows_that_are_no_probabilities_are_named(array, row):
    values = SHARES.copy()
    values[17] = row
    assert refusal(lambda: load_predictions(array(values))) == NO_SUM.format(17)


def test_a_sum_within_the_tolerance_is_taken_as_it_is(array):
    values = SHARES.copy()
    values[3] = [0.5, 0.25, 0.25 + 9e-7]
    np.testing.assert_array_equal(load_predictions(array(values)).probabilities, values)


def test_missing_numbers_are_named_by_row(table):
    broken = SHARES.tolist()
    broken[9] = [0.5, None, 0.5]
    assert refusal(lambda: load_predictions(table(p=broken))) == NO_SUM.format(9)
    parts = columns()
    parts["class_1"] = [None if row == 11 else value for row, value in enumerate(SHARES[:, 1])]
    assert refusal(lambda: load_predictions(table(**parts))) == NO_SUM.format(11)


@pytest.mark.parametrize("row", [None, [0.5, 0.5], []], ids=str)
def test_ragged_lists_are_named_by_row(table, row):
    broken = SHARES.tolist()
    broken[6] = row
    path = table(p=broken)
    assert refusal(lambda: load_predictions(path)) == (
        f"{path}: row 6 is the first with another number of classes than row 0"
    )


def test_an_id_that_occurs_twice_is_named_by_its_rows(table):
    ids = [*range(19), 4]
    path = table(query_id=ids, **columns())
    assert refusal(lambda: load_predictions(path)) == (
        "student predictions: the query id of row 19 is that of row 4, too"
    )
    assert refusal(lambda: StudentPredictions(SHARES, np.arange(3))) == (
        "student predictions: 3 query ids for 20 rows"
    )


@pytest.mark.parametrize("shape", [(20,), (20, 1), (0, 3), (4, 3, 2)])
def test_other_shapes_are_refused(array, shape):
    assert refusal(lambda: load_predictions(array(np.full(shape, 0.5)))) == (
        f"student predictions must be [queries, classes] with at least 2 classes, got shape {shape}"
    )


def test_what_is_no_number_is_refused(table, array):
    assert refusal(lambda: load_predictions(array(np.full((2, 2), "a")))).startswith(
        "student predictions must be numbers, got <U"
    )
    assert refusal(lambda: load_predictions(array(np.full((2, 2), True)))) == (
        "student predictions must be numbers, got bool"
    )
    text = table(a=["x", "y"], b=[0.5, 0.5])
    assert refusal(lambda: load_predictions(text)).startswith("student predictions must be numbers")


@pytest.mark.parametrize("cut", [0, 3, 5, 40, -1, -9])
@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_truncated_files_are_refused(table, array, suffix, cut):
    path = table(**columns()) if suffix == "parquet" else array(SHARES)
    path.write_bytes(path.read_bytes()[:cut])
    assert refusal(lambda: load_predictions(path)) in (
        f"{path}: neither NPY nor Parquet",
        f"{path}: cannot be read as student predictions",
        f"{path}: a truncated or damaged Parquet file",
    )


def test_files_that_are_no_predictions_are_refused(table, array, tmp_path):
    only_ids = table(query_id=[1, 2])
    assert refusal(lambda: load_predictions(only_ids)) == (
        f"{only_ids}: cannot be read as student predictions"
    )
    pickled = array(np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert refusal(lambda: load_predictions(pickled)) == (
        f"{pickled}: cannot be read as student predictions"
    )
    assert refusal(lambda: load_predictions(tmp_path)) == f"cannot read {tmp_path}: Is a directory"
    missing = tmp_path / "nowhere.npy"
    assert refusal(lambda: load_predictions(missing)) == (
        f"cannot read {missing}: No such file or directory"
    )
