"""Files beside the votes: what is read, how rows are matched, and what is refused."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pate_cli.core.errors import ParameterError, VoteError
from pate_cli.mechanisms import InteractiveGNMax
from pate_cli.votes.beside.prior import prior_of
from pate_cli.votes.beside.query_list import load_queries
from pate_cli.votes.beside.student import (
    StudentPredictions,
    YesProbabilities,
    check_predictions,
    load_predictions,
)
from pate_cli.votes.beside.truth import UNKNOWN, PairTruth, Truth, load_truth, truth_of
from pate_cli.votes.matching import Matching
from refusals import refusal

SHARES = np.random.default_rng(1).dirichlet([1.0, 1.0, 1.0], size=20)
NO_SUM = (
    "student predictions, row {}: not probabilities that sum to 1 within 1e-6; "
    "give the output of a softmax or predict_proba"
)


@pytest.fixture
def table(parquet):
    """Write a Parquet file of these columns."""
    return lambda **columns: parquet(columns, "side.parquet")


@pytest.fixture
def array(npy):
    return lambda values: npy(values, "side.npy")


@pytest.fixture
def text(tmp_path):
    """Write a CSV file of these columns."""

    def write(**columns):
        path = tmp_path / "side.csv"
        rows = zip(*columns.values(), strict=True)
        lines = [",".join("" if v is None else str(v) for v in row) for row in rows]
        path.write_text("\n".join([",".join(columns), *lines]) + "\n")
        return path

    return write


def columns(values=SHARES):
    return {f"class_{j}": values[:, j] for j in range(values.shape[1])}


def refused(build):
    return refusal(VoteError, build)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_format_holds_the_same_predictions(table, array, text, dtype):
    values = SHARES.astype(dtype)
    fixed = pa.array(values.tolist(), type=pa.list_(pa.float64(), 3))
    for write, args in (
        (array, {"values": values}),
        (table, {"p": values.tolist()}),
        (table, {"p": fixed}),
        (table, columns(values)),
        (text, columns(values.astype(np.float64))),
    ):
        found = load_predictions(write(**args))
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
def test_ids_of_a_table_are_used(table, text, ids):
    for write, votes in (
        (table, columns()),
        (table, {"p": SHARES.tolist()}),
        (text, columns()),
    ):
        found = load_predictions(write(query_id=ids, **votes))
        np.testing.assert_array_equal(found.of(np.array(ids[5:2:-1]), 0), SHARES[5:2:-1])


def test_a_query_without_predictions_is_named_by_its_row():
    by_id = StudentPredictions(SHARES, np.arange(20))
    assert refused(lambda: by_id.of(np.array([3, 4, 20]), 40)) == (
        "student predictions: none for the query of row 42"
    )
    by_order = StudentPredictions(SHARES)
    assert refused(lambda: by_order.of(np.arange(5), 18)) == (
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
    assert refused(lambda: load_predictions(array(values))) == NO_SUM.format(17)


def test_a_sum_within_the_tolerance_is_taken_as_it_is(array):
    values = SHARES.copy()
    values[3] = [0.5, 0.25, 0.25 + 9e-7]
    np.testing.assert_array_equal(load_predictions(array(values)).probabilities, values)


def test_missing_numbers_are_named_by_row(table, text):
    broken = SHARES.tolist()
    broken[9] = [0.5, None, 0.5]
    assert refused(lambda: load_predictions(table(p=broken))) == NO_SUM.format(9)
    parts = columns()
    parts["class_1"] = [None if row == 11 else value for row, value in enumerate(SHARES[:, 1])]
    assert refused(lambda: load_predictions(table(**parts))) == NO_SUM.format(11)
    assert refused(lambda: load_predictions(text(**parts))) == NO_SUM.format(11)


@pytest.mark.parametrize("row", [None, [0.5, 0.5], []], ids=str)
def test_ragged_lists_are_named_by_row(table, row):
    broken = SHARES.tolist()
    broken[6] = row
    path = table(p=broken)
    assert refused(lambda: load_predictions(path)) == (
        f"{path}: row 6 is the first with another number of classes than row 0"
    )


def test_an_id_that_occurs_twice_is_named_by_its_rows(table):
    ids = [*range(19), 4]
    path = table(query_id=ids, **columns())
    assert refused(lambda: load_predictions(path)) == (
        "student predictions: the query id of row 19 is that of row 4, too"
    )
    assert refused(lambda: StudentPredictions(SHARES, np.arange(3))) == (
        "student predictions: 3 query ids for 20 rows"
    )


@pytest.mark.parametrize("shape", [(20,), (20, 1), (0, 3), (4, 3, 2)])
def test_other_shapes_are_refused(array, shape):
    assert refused(lambda: load_predictions(array(np.full(shape, 0.5)))) == (
        f"student predictions must be [queries, classes] with at least 2 classes, got shape {shape}"
    )


def test_what_is_no_number_is_refused(table, array, text):
    assert refused(lambda: load_predictions(array(np.full((2, 2), "a")))).startswith(
        "student predictions must be numbers, got <U"
    )
    assert refused(lambda: load_predictions(array(np.full((2, 2), True)))) == (
        "student predictions must be numbers, got bool"
    )
    words = {"a": ["x", "y"], "b": [0.5, 0.5]}
    for write in (table, text):
        path = write(**words)
        assert refused(lambda path=path: load_predictions(path)) == (
            "student predictions must be numbers, got object"
        )


@pytest.mark.parametrize("cut", [0, 3, 5, 40, -1, -9])
@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_truncated_files_are_refused(table, array, suffix, cut):
    path = table(**columns()) if suffix == "parquet" else array(SHARES)
    path.write_bytes(path.read_bytes()[:cut])
    assert refused(lambda: load_predictions(path)) in (
        f"{path}: the file is empty (0 bytes)",
        f"{path}: is none of NPY, NPZ, Parquet, Arrow, CSV and JSONL; convert it to one of them",
        f"{path}: cannot be read as student predictions",
        f"{path}: a truncated or damaged Parquet file",
    )


def test_files_that_are_no_predictions_are_refused(table, array, tmp_path):
    only_ids = table(query_id=[1, 2])
    assert refused(lambda: load_predictions(only_ids)) == (
        f"{only_ids}: cannot be read as student predictions"
    )
    pickled = array(np.array([{"a": 1}], dtype=object))
    assert refused(lambda: load_predictions(pickled)) == (
        f"{pickled}: cannot be read as student predictions"
    )
    (tmp_path / "empty").mkdir()
    assert refused(lambda: load_predictions(tmp_path / "empty")) == (
        f"{tmp_path / 'empty'}: the folder is empty"
    )
    missing = tmp_path / "nowhere.npy"
    assert refused(lambda: load_predictions(missing)) == f"{missing}: no such file or folder"
    assert refused(lambda: load_predictions("-")).startswith("student predictions: only votes are")


LABELS = [2, 0, None, 1]


def test_every_format_holds_the_same_truth(table, array, text):
    known = [2, 0, UNKNOWN, 1]
    small = pa.array(LABELS, pa.int8())
    for write, columns in (
        (array, {"values": np.array(known, dtype=np.int16)}),
        (table, {"label": LABELS}),
        (table, {"label": small, "more": ["a", "b", "c", "d"]}),
        (text, {"label": LABELS, "more": ["a", "b", "c", "d"]}),
    ):
        truth = load_truth(write(**columns))
        assert truth.of([5, 6, 7, 8], 0, classes=3).tolist() == known
        assert truth.of([5, 6], 2, classes=3).tolist() == known[2:]


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [
        ([7, 8, -9, 10], np.array([10, 7, 11])),
        (["a", "b", "c", "d"], ("d", "a", "e")),
        (["007", "08", "9", "010"], ("010", "007", "7")),
    ],
    ids=["whole", "text", "digits"],
)
def test_truth_is_matched_by_id(table, text, ids, wanted):
    for write in (table, text):
        truth = load_truth(write(label=LABELS, query_id=ids))
        assert truth.of(wanted, 30, classes=3).tolist() == [1, 2, UNKNOWN]


def test_names_of_digits_are_not_numbers(text):
    """In CSV 007 is a name; it is not the query that the votes number 7."""
    truth = load_truth(text(query_id=["007", "8"], label=[1, 1]))
    assert truth.of(np.array([7, 8]), 0, classes=2).tolist() == [UNKNOWN, 1]


def test_labels_out_of_range_are_named_by_row(array):
    for label in (3, -2, 2**63 - 1):
        truth = load_truth(array(np.array([0, label])))
        assert refused(lambda truth=truth: truth.of([0, 1], 0, classes=3)) == (
            "true labels: the label of row 1 is not among the 3 classes of the votes"
        )
    huge = load_truth(array(np.array([0, 2**64 - 1], dtype=np.uint64)))  # -1 in 64 signed bits
    assert "the label of row 1 is not among" in refused(lambda: huge.of([0, 1], 0, classes=3))


@pytest.mark.parametrize("ids", [[4, 5, 4], ["x", "y", "x"]], ids=["whole", "text"])
def test_a_query_has_one_true_label(table, text, ids):
    for write in (table, text):
        path = write(query_id=ids, label=[0, 1, 1])
        assert refused(lambda path=path: load_truth(path)) == f"{path}: a query id occurs twice"
    assert refused(lambda: Truth(np.array([0, 1, 1]), ids)) == (
        "true labels: the query id of row 2 is that of row 0, too"
    )


def test_text_that_is_no_truth(text, tmp_path):
    labels = f"{tmp_path / 'side.csv'}: true labels"
    assert refused(lambda: load_truth(text(a=[1]))) == f"{labels} need a column named label"
    for values in ([0.5, 1.0], []):
        assert refused(lambda values=values: load_truth(text(label=values))) == (
            f"{labels} must be whole numbers or texts, one a query"
        )


NAMES = ("World", "Sports", "Business")
WORDS = ["Sports", "World", None, "Sports", "Business"]


def test_true_labels_may_be_texts(table, text, array):
    queries = [5, 6, 7, 8, 9]
    coded = pa.array(WORDS).dictionary_encode()
    for path in (
        table(label=WORDS),
        table(label=pa.array(WORDS, pa.large_string())),
        table(label=coded, query_id=queries),
        text(label=WORDS),
        array(np.array(["" if word is None else word for word in WORDS])),
    ):
        truth = load_truth(path)
        found = truth.named(NAMES).of(queries, 0, classes=3)
        np.testing.assert_array_equal(found, [1, 0, UNKNOWN, 1, 2])
        assert refused(lambda truth=truth: truth.of(queries, 0, classes=3)) == (
            "true labels: they are texts; give `label_names`"
        )


def test_a_true_label_of_no_name_is_refused_by_row(table):
    truth = load_truth(table(label=WORDS)).named(("World", "Business", "sports"))
    np.testing.assert_array_equal(truth.of([1], 1, classes=3), [0])
    assert refused(lambda: truth.of([0, 1], 2, classes=3)) == (
        "true labels: the label of row 3 is not among the 3 classes of the votes"
    )


def test_true_labels_in_numbers_do_not_ask_for_names(array):
    truth = load_truth(array(np.array([0, 2])))
    np.testing.assert_array_equal(truth.named(NAMES).of([0, 1], 0, classes=3), [0, 2])


def test_predictions_are_taken_by_name_where_all_columns_are_called_so(table):
    turned = table(Sports=SHARES[:, 1], Business=SHARES[:, 2], World=SHARES[:, 0])
    found = load_predictions(turned)
    np.testing.assert_array_equal(found.named(NAMES).probabilities, SHARES)
    np.testing.assert_array_equal(found.named(None).probabilities, SHARES[:, [1, 2, 0]])
    other = load_predictions(table(Sports=SHARES[:, 1], b=SHARES[:, 2], World=SHARES[:, 0]))
    np.testing.assert_array_equal(other.named(NAMES).probabilities, SHARES[:, [1, 2, 0]])


LOOSE = Matching(NAMES, normalise=True, aliases={"Football": "Sports"})


def test_texts_match_as_those_of_the_votes(table):
    words = ["football", " world.", None, "SPORTS", "Business"]
    labels = [1, 0, UNKNOWN, 1, 2]
    path = table(label=words)
    np.testing.assert_array_equal(load_truth(path).named(LOOSE).labels, labels)
    guesses = prior_of(path, None)
    np.testing.assert_array_equal(guesses.named(LOOSE, 3).guesses, labels)
    with pytest.raises(VoteError, match="is none of `label_names`"):
        guesses.named(NAMES, 3)
    turned = table(FOOTBALL=SHARES[:, 1], business=SHARES[:, 2], World=SHARES[:, 0])
    np.testing.assert_array_equal(load_predictions(turned).named(LOOSE).probabilities, SHARES)
    shares = prior_of(turned, None)
    np.testing.assert_allclose(shares.named(LOOSE, 3).guesses, SHARES)
    np.testing.assert_allclose(shares.named(NAMES, 3).guesses, SHARES[:, [1, 2, 0]])


TRUE = [True, False, None, True]
LABELS_IN = {
    "truths": (pa.array(TRUE), [1, 0, UNKNOWN, 1]),
    "words for them": (pa.array(["True", "False", None, "TRUE"]), [1, 0, UNKNOWN, 1]),
    "floats with a gap": (pa.array([1.0, 0.0, None, 2.0]), [1, 0, UNKNOWN, 2]),
    "float16": (pa.array(np.array([1, 0, np.nan, 2], np.float16)), [1, 0, UNKNOWN, 2]),
    "decimals": (pa.array([Decimal(1), Decimal(0), None, Decimal(2)]), [1, 0, UNKNOWN, 2]),
    "decimals with places": (
        pa.array([Decimal("1.00"), Decimal("0.00"), None, Decimal("2.00")]),
        [1, 0, UNKNOWN, 2],
    ),
    "numbers in a dictionary": (pa.array([1, 0, None, 2]).dictionary_encode(), [1, 0, UNKNOWN, 2]),
}


@pytest.mark.parametrize("kind", LABELS_IN)
def test_labels_of_every_type(kind, table, tmp_path):
    column, labels = LABELS_IN[kind]
    written = pa.table({"label": column})
    with pa.ipc.new_file(str(tmp_path / "side.arrow"), written.schema) as writer:
        writer.write_table(written)
    for path in (table(label=column), tmp_path / "side.arrow"):
        np.testing.assert_array_equal(load_truth(path).named(None).labels, labels)
        np.testing.assert_array_equal(prior_of(path, None).named(None, 3).guesses, labels)


def test_truths_by_name(table):
    path = table(label=TRUE)
    for names, labels in ((("false", "true"), [1, 0, -1, 1]), (("true", "false"), [0, 1, -1, 0])):
        np.testing.assert_array_equal(load_truth(path).named(names).labels, labels)
        np.testing.assert_array_equal(prior_of(path, None).named(names, 2).guesses, labels)
    with pytest.raises(VoteError, match="'false' is none of `label_names`"):
        prior_of(path, None).named(("ham", "spam"), 2)


@pytest.mark.parametrize("write", ["write_ipc", "write_parquet", "write_json"])
@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(NAMES)])
def test_what_polars_writes_beside_the_votes(kind, write, tmp_path):
    ids = pl.Series(["a", "b", "c", "d"], dtype=pl.Categorical)
    frame = pl.DataFrame({"query_id": ids, "label": pl.Series([*NAMES, None], dtype=kind)})
    getattr(frame, write)(tmp_path / "side")
    truth = load_truth(tmp_path / "side").named(NAMES)
    np.testing.assert_array_equal(truth.of(["d", "c", "b"], 0, classes=3), [UNKNOWN, 2, 1])
    assert load_queries(tmp_path / "side").ids == ("a", "b", "c", "d")


@pytest.mark.parametrize("load", [load_truth, load_predictions])
def test_the_format_is_told_by_content(load, array, tmp_path):
    for name, content, message in [
        ("a.csv", b"", "{}: the file is empty (0 bytes)"),
        ("a.csv", b"a,b\n1\n", "{}: row 0 has 1 fields, the first line has 2; repair the row"),
        ("A.CSV", b"PAR1", "{}: a truncated or damaged Parquet file"),
    ]:
        path = tmp_path / name
        path.write_bytes(content)
        assert refused(lambda path=path: load(path)) == message.format(path)
    path = array(np.array([1, 0]) if load is load_truth else SHARES)
    load(path.rename(tmp_path / "b.csv"))


@pytest.mark.parametrize("packed", [False, True])
def test_every_format_of_votes_is_one_of_side_files(packed, tmp_path, monkeypatch):
    """Truth and predictions in JSON lines, of a folder, packed; ids under the votes' own name."""
    (tmp_path / "d").mkdir()
    for number in range(2):
        rows = [
            json.dumps({"image": f"i{row}", "p": SHARES[row].tolist(), "label": row % 3})
            for row in range(10 * number, 10 * number + 10)
        ]
        content = "\n".join(rows).encode()
        name = f"d/{number}.jsonl" + ".gz" * packed
        (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
    monkeypatch.chdir(tmp_path)
    for source in ("d", f"d/*.jsonl{'.gz' * packed}", f"file://{tmp_path}/d"):
        truth = load_truth(source, id_column="image")
        assert truth.of(["i19", "i4", "none"], 0, classes=3).tolist() == [1, 1, UNKNOWN]
        asked = load_queries(source, id_column="image")
        assert list(asked.ids) == [f"i{row}" for row in range(20)]
    only = tmp_path / "p.csv"
    only.write_text("image,a,b,c\n" + "".join(f"i{j},0.5,0.25,0.25\n" for j in range(3)))
    found = load_predictions(only, id_column="image")
    assert found.of(["i2"], 0).tolist() == [[0.5, 0.25, 0.25]]
    # Without that column, by query_id.
    assert load_truth(write_csv(only, "query_id,label", "7,1"), id_column="image").ids == ("7",)


def write_csv(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def test_an_id_that_is_missing_is_named_by_its_row(tmp_path):
    path = write_csv(tmp_path / "t.csv", "query_id,label", "a,1", ",0")
    assert refused(lambda: load_truth(path)) == f"{path}: row 1 has no query_id"


def test_a_list_of_queries_in_csv_names_numbers_and_texts(tmp_path):
    asked = load_queries(write_csv(tmp_path / "q.csv", "query_id", "7", "10"))
    assert asked.named_by(numbers=True).tolist() == [7, 10]
    assert list(asked.named_by(numbers=False)) == ["7", "10"]
    named = load_queries(write_csv(tmp_path / "q.csv", "query_id", "007", "10"))
    assert list(named.named_by(numbers=False)) == ["007", "10"]


@pytest.mark.parametrize("kind", ["npy", "parquet", "csv"])
def test_random_damage(kind, table, array, text):
    """Bytes changed at random give predictions, labels or a VoteError, never another exception."""
    rng = np.random.default_rng(7)
    for load in (load_predictions, load_truth):
        if kind == "npy":
            path = array(SHARES if load is load_predictions else np.arange(200))
        else:
            write = table if kind == "parquet" else text
            votes = columns() if load is load_predictions else {"label": range(20)}
            path = write(query_id=[f"q{row}" for row in range(20)], **votes)
        whole = np.frombuffer(path.read_bytes(), dtype=np.uint8)
        messages = []
        for _ in range(150):
            damaged = whole.copy()
            near = rng.integers(0, min(120 if kind == "npy" else 400, len(whole) - 8), size=2)
            places = len(whole) - 1 - near if kind == "parquet" else near
            damaged[places] = rng.integers(0, 256, size=2)
            path.write_bytes(damaged.tobytes())
            try:
                load(path)
            except VoteError as error:
                messages.append(str(error))
        assert len(messages) > 20
        assert not any("\n" in message for message in messages)


@pytest.mark.parametrize("other", [SHARES, SHARES.tolist(), "student.npy", 5], ids=type)
def test_what_are_no_predictions(other):
    text = (
        "`predictions` must be StudentPredictions(probabilities), or YesProbabilities(...) of "
        f"several labels, not {type(other).__name__}"
    )
    settings = {"threshold": 20.0, "sigma1": 5.0, "sigma2": 3.0}
    for build in (
        lambda: check_predictions(other, None),
        lambda: InteractiveGNMax(25, 3, **settings, predictions=other),
    ):
        assert refusal(ParameterError, build) == text


def test_predictions_may_be_lists():
    np.testing.assert_array_equal(StudentPredictions(SHARES.tolist()).of(range(20), 0), SHARES)
    assert YesProbabilities([[0, 1]]).probabilities.dtype == np.float64
    for kind in (StudentPredictions, YesProbabilities):
        assert refusal(ParameterError, lambda kind=kind: kind([[1.0], [0.5, 0.5]])) == (
            "student predictions must be an array, a row a query"
        )
        for other in (None, "x", {1: 2}, [[None]]):
            message = refused(lambda kind=kind, other=other: kind(other))
            assert message.startswith("student predictions must be numbers, got ")


@pytest.mark.parametrize("other", [[0, 1], np.array([0, 1]), 5, None], ids=type)
def test_what_is_no_truth(other):
    assert refusal(ParameterError, lambda: truth_of(other, None)) == (
        "the truth must be a file of true labels, Truth(labels) or PairTruth(labels), not "
        + type(other).__name__
    )


@pytest.mark.parametrize(
    ("kind", "words", "text"),
    [
        (Truth, {"labels": [0, 1]}, "true labels must be an array [queries] of whole numbers"),
        (Truth, {"labels": np.ones(2)}, "true labels must be an array [queries] of whole numbers"),
        (
            Truth,
            {"labels": np.ones((2, 3), dtype=int)},
            "true labels must be an array [queries], got shape (2, 3)",
        ),
        (
            PairTruth,
            {"labels": np.ones(2, dtype=int)},
            "true labels must be an array [queries, labels], got shape (2,)",
        ),
        (
            Truth,
            {"labels": np.ones(2, dtype=int), "ids": {7, 8}},
            "true labels: `ids` must be a list of numbers or texts, in order, not set",
        ),
        (
            Truth,
            {"labels": np.ones(2, dtype=int), "ids": [[7], [8]]},
            "true labels: the query id of row 0 is no number or text",
        ),
        (
            Truth,
            {"labels": np.ones(2, dtype=int), "words": 5},
            "true labels: `words` must be a list of texts, in order, not int",
        ),
    ],
    ids=str,
)
def test_truth_of_another_type(kind, words, text):
    assert refusal(ParameterError, lambda: kind(**words)) == text
