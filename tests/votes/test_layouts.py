"""Counts and labels: the same votes in every layout, container and type are the same histograms."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opened import by_hand, by_name, counts_of, in_csv, read, refused
from pate_cli.core.arrays import DENSE_CLASSES, SparseCounts
from pate_cli.core.errors import ParameterError, UsageError, VoteError
from pate_cli.core.words import Layout
from pate_cli.votes.facts import TeacherGroups
from pate_cli.votes.opening import open_votes
from slices import tries

CLASSES = 5
NAMES = ["cat", "dog", "bird", "fish", "ant"]
DTYPES = ["<i1", "<u1", "<i2", ">i2", "<u4", ">i4", "<i8", ">u8", "<f8", ">f4", "<f2"]
GOOD = [[7.0, 3.0]] * 20
LABELS = hnp.arrays(
    np.int64, st.tuples(st.integers(1, 7), st.integers(1, 6)), elements=st.integers(0, CLASSES - 1)
)


@settings(max_examples=tries(60))
@given(
    labels=LABELS,
    dtype=st.sampled_from(DTYPES),
    order=st.sampled_from("CF"),
    rows=st.integers(1, 9),
    packed=st.sampled_from([np.save, np.savez, np.savez_compressed]),
)
def test_arrays_of_every_type_agree(tmp_path_factory, labels, dtype, order, rows, packed):
    expected, path = by_hand(labels, CLASSES), tmp_path_factory.mktemp("votes") / "v"
    told = {"classes": CLASSES, "teachers": labels.shape[1], "batch_rows": rows}
    shapes = {"counts": expected, "labels": labels, "labels-by-teacher": labels.T}
    for layout, array in shapes.items():
        array = np.asarray(array.astype(dtype), order=order)
        with path.open("wb") as file:
            packed(file, array)
        for source in (path, array):
            _, ids, counts = read(source, layout=layout, **told)
            np.testing.assert_array_equal(counts, expected)
            assert ids == list(range(len(labels)))


def tables(labels, ids, number, kind):
    """Every way to write labels into a table, as (layout, table)."""
    queries, teachers = labels.shape
    for layout, matrix in (("counts", by_hand(labels, CLASSES)), ("labels", labels)):
        columns = enumerate(matrix.T.tolist())
        yield layout, pa.table({f"x{at}": pa.array(column, number) for at, column in columns})
        lists = {"list": pa.list_(number), "large": pa.large_list(number)}
        lists |= {"view": pa.list_view(number), "fixed": pa.list_(number, matrix.shape[1])}
        yield layout, pa.table({"v": pa.array(matrix.tolist(), lists[kind])})
    order = np.random.default_rng(queries).permutation(labels.size)
    teacher = pa.array([f"t{place % teachers}" for place in order]).dictionary_encode()
    votes = {"teacher_id": teacher, "label": pa.array(labels.ravel()[order].tolist(), number)}
    yield "long", pa.table({**votes, "query_id": ids.take(pa.array(order // teachers))})


@settings(max_examples=tries(40))
@given(
    labels=LABELS,
    number=st.sampled_from(
        [pa.int8(), pa.uint16(), pa.uint64(), pa.float64(), pa.decimal128(9, 0)]
    ),
    kind=st.sampled_from(["list", "large", "fixed", "view"]),
    texts=st.booleans(),
    rows=st.integers(1, 9),
    cut=st.integers(0, 7),
)
def test_tables_of_every_type_agree(labels, number, kind, texts, rows, cut):
    plain = [100 + row if not texts else f"q{row:03}" for row in range(len(labels))]
    for layout, table in tables(labels, pa.array(plain), number, kind):
        if layout != "long":
            table = table.append_column("query_id", pa.array(plain))
        pieces = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
        _, ids, counts = read(pieces, layout=layout, classes=CLASSES, batch_rows=rows)
        np.testing.assert_array_equal(counts, by_hand(labels, CLASSES), err_msg=layout)
        assert ids == plain


def words_in(labels, missing=""):
    """Words in every container that has them, and the layout that must be told."""
    words = np.array([*NAMES, missing], dtype=object)[labels]
    listed = [[word or None for word in row] for row in words]
    columns = {f"teacher_{t}": list(column) for t, column in enumerate(zip(*listed, strict=True))}
    plain = {name: pa.array(column) for name, column in columns.items()}
    rows, teachers = (places.ravel() for places in np.indices(labels.shape))
    long = {"query_id": rows, "teacher_id": teachers, "label": [w for row in listed for w in row]}
    return {
        "array": (words.astype(str), "labels"),
        "by teacher": (words.astype(str).T, "labels-by-teacher"),
        "objects": (words, "labels"),
        "bytes": (words.astype("S"), "labels"),
        "bytes in objects": (words.astype("S").astype(object), "labels"),
        "rows": (words.tolist(), "labels"),
        "tuples": ([tuple(row) for row in words.tolist()], "labels"),
        "arrays": (list(words.astype(str)), "labels"),
        "frame": (pd.DataFrame(columns), None),
        "columns": (pa.table(plain), None),
        "dictionaries": (pa.table({n: c.dictionary_encode() for n, c in plain.items()}), None),
        "views": (pa.table({n: c.cast(pa.string_view()) for n, c in plain.items()}), None),
        "lists": (pa.table({"labels": listed}), None),
        "long": (pa.table(long), None),
    }


@pytest.mark.parametrize("way", words_in(np.zeros((1, 1), dtype=int)))
def test_words_in_every_container_agree(way):
    labels = np.random.default_rng(4).integers(-1, CLASSES, (30, 7))
    padded = ",".join(f" {name}\t" for name in NAMES)
    for missing, names in (("", NAMES), ("", padded), ("?", NAMES)):
        source, layout = words_in(labels, missing)[way]
        file, _, counts = read(source, label_names=names, layout=layout)
        np.testing.assert_array_equal(counts, by_hand(labels, CLASSES))
        assert (file.classes, file.teachers) == (CLASSES, 7)
        assert file.facts.label_names == tuple(NAMES)
        assert "named cat, dog, bird and 2 more" in file.describe()
        found, strays = file.unmatched(), (labels < 0).sum() * bool(missing)
        assert (found.cast, found.votes) == ((labels >= 0).sum() + strays, strays)


@pytest.mark.parametrize("way", words_in(np.zeros((1, 1), dtype=int)))
def test_words_that_nobody_listed_are_names(way):
    labels = np.random.default_rng(4).integers(-1, 3, (12, 5))
    source, layout = words_in(labels)[way]
    file, found = by_name(source, layout=layout)
    assert file.names.names == tuple(sorted(NAMES[:3]))
    assert (file.facts.label_names, file.facts.read_off, file.unlisted) == (None, (), True)
    hand = by_hand(labels, CLASSES).tolist()
    assert found == [{NAMES[c]: n for c, n in enumerate(row) if n} for row in hand]


@pytest.mark.parametrize("size", ["<", ">"])
def test_letters_of_every_kind_in_arrays(size, tmp_path):
    words = np.array([["né", "日本", "x"], ["x", "né ", "\U0001f600"]])
    path = tmp_path / "v.npy"
    np.save(path, words.astype(words.dtype.newbyteorder(size)))
    told = {"layout": "labels", "label_names": ["né", "日本", "\U0001f600"], "teachers": 3}
    for source in (path, words, words.astype(object)):
        np.testing.assert_array_equal(counts_of(source, **told), [[1, 1, 0], [1, 0, 1]])
    raw = bytearray(path.read_bytes())
    raw[-12:-8] = b"\xff" * 4
    path.write_bytes(raw)
    assert "cannot be read" in refused(path, **told)


def test_decimals_are_numbers():
    kind = pa.decimal128(9, 1)
    ids, votes = pa.array([7, 5], kind), [pa.array(each, kind) for each in ([2, 1], [1, 2])]
    assert read(pa.table({"query_id": ids, "class_0": votes[0], "class_1": votes[1]}))[1] == [7, 5]
    lists = pa.table({"label": pa.array([[1]], pa.list_(kind)), "count": [[3]]})
    assert counts_of(lists, classes=2).tolist() == [[0, 3]]
    half = pa.table({"class_0": pa.array([0.5, 1.5], pa.float64()).cast(kind), "class_1": votes[0]})
    assert "row 0 has a fractional number" in refused(half)


def test_numbers_that_nobody_listed_are_names_of_themselves():
    votes = np.array([[3, 3, 700_000], [3, -1, 0], [0, 0, 1], [5, 5, 5]])
    with open_votes(votes, layout="labels", any_name=True) as file:
        (batch,) = file.batches()
        assert file.names.names == ()
    assert batch.counts[:2].labels.tolist() == [[3, 700_000], [0, 3]]
    with open_votes([[5, 1, 0], [4, 1, 1]], layout="counts", any_name=True) as file:
        assert (file.classes, file.names) == (3, None)
    assert "outside" in refused([[1 << 24, 0], [0, 0]], layout="labels", any_name=True)


@pytest.mark.parametrize("vote", ["7", "heron", "TRUE", "2.5", "007", "99999999999999999999"])
@pytest.mark.parametrize("others", [["7", "12", "-1"], ["TRUE", "True", "false"]])
@pytest.mark.parametrize("long", [False, True])
def test_one_vote_in_a_text_file_renames_no_other(tmp_path, vote, others, long):
    """In CSV, votes that nobody listed are texts, whether or not all of them look like numbers."""
    said = np.random.default_rng(2).choice(others, (12, 4)).astype(object)
    said[3, 2] = vote
    _, found = by_name(in_csv(tmp_path / "v.csv", said, long=long))
    for row in {*range(12)} - {3}:
        assert found[row] == Counter(said[row])


def test_true_and_false_are_classes_or_words():
    votes = np.array([[True, False], [True, True], [False, False]])
    columns = pa.table({"teacher_0": votes[:, 0], "teacher_1": votes[:, 1]})
    lists = pa.table({"labels": votes.tolist()})
    for source, layout in ((votes, "labels"), (columns, None), (lists, None)):
        file, _, counts = read(source, layout=layout)
        assert counts.tolist() == [[1, 1], [0, 2], [2, 0]]
        assert file.facts.read_off == ()
        for names in (["true", "false"], ["True", "False"], "TRUE,FALSE"):
            file, _, counts = read(source, label_names=names, layout=layout)
            assert counts.tolist() == [[1, 1], [2, 0], [0, 2]]
            assert file.unmatched().votes == 0
    assert "numbers" in refused(votes, layout="counts")


def test_classes_come_from_the_largest_label_when_not_told():
    votes = np.array([[0, 2, 1], [3, 3, 0], [0, 0, 0]])
    with open_votes(votes, layout=Layout.LABELS) as file:
        assert (file.classes, file.teachers, file.facts.read_off) == (4, 3, ("classes",))
        assert (file.layout, file.inferred) == (Layout.LABELS, False)
    with open_votes(votes, layout="labels", classes=9, teachers=4) as file:
        assert (file.classes, file.facts.read_off) == (9, ())
        assert file.teachers == 4
    assert "row 1 has a label outside 0..65535" in refused([[0], [70_000]], layout="labels")
    assert "only label 0 occurs; give `classes`" in refused([[0], [0]], layout="labels")


def test_gaps_need_the_number_of_teachers():
    """Votes may be missing only where it is public how many there might be."""
    counts, lists = [[2, 1], [1, 1], [0, 3]], pa.table({"v": [[0, 0, 1], [0, 1], [None, 1, 1]]})
    differs = "row 1 is the first row whose number of votes differs"
    assert differs in refused(counts, layout="counts")
    more = "row 0 has more than 2 votes, but `teachers` is 2"
    assert more in refused(counts, layout="counts", teachers=2)
    np.testing.assert_array_equal(counts_of(counts, layout="counts", teachers=4), counts)
    told = {"layout": "labels", "classes": 2}
    assert "row 1 is the first row whose list does not have 3 entries" in refused(lists, **told)
    assert "the votes have 3 teachers, but `teachers` is 2" in refused(lists, teachers=2, **told)
    expected = [[2, 1], [1, 1], [0, 2]]
    np.testing.assert_array_equal(counts_of(lists, teachers=4, **told), expected)
    first = pa.table({"labels": [[], [5, None], [1, 1, 1], [0]]})
    assert counts_of(first, teachers=3)[0].sum() == 0
    for absent in (-1.0, np.nan):
        votes = np.array([[0, 1, absent], [absent, absent, absent], [1, 1, 1]])
        assert "give `teachers` N" in refused(votes, layout="labels")
        found = counts_of(votes, layout="labels", teachers=3, classes=2)
        np.testing.assert_array_equal(found, [[1, 1], [0, 0], [0, 3]])


def test_beside_groups_a_place_in_a_list_tells_whose_vote_it_is():
    groups = TeacherGroups(["a", "b", "b"], [3, 1, 1])
    whole = pa.table({"labels": [[0, 1, 1], [None, 1, 0]], "query_id": [1, 2]})
    found = counts_of(whole, teachers=3, classes=2, groups=groups)
    np.testing.assert_array_equal(found, [[3, 2], [1, 1]])
    short = pa.table({"labels": [[0, 1, 1], [1, 0]], "query_id": [1, 2]})
    assert "row 1" in refused(short, teachers=3, classes=2, groups=groups)


@pytest.mark.parametrize("batch_rows", [None, 1, 6])
@pytest.mark.parametrize(
    ("values", "cause"),
    [
        ([np.nan, 3], "NaN or infinite"),
        ([np.inf, 3], "NaN or infinite"),
        ([7.5, 2.5], "fractional"),
        ([0.7, 0.3], "fractional"),
        ([-1, 11], "classes are -1 and 1"),
        ([2.0**31, 0], "above 2147483647"),
        ([1e300, 0], "above 2147483647"),
        ([0, 0], "no votes at all"),
        ([7, 2], "the first row whose number of votes"),
    ],
)
def test_bad_counts_are_refused_by_row(values, cause, batch_rows):
    """In arrays and tables, whatever the batch; what to do is held by the tests of the face."""
    votes = np.array(GOOD)
    votes[17] = values
    for source in (votes, pa.table({"class_0": votes[:, 0], "class_1": votes[:, 1]})):
        message = refused(source, layout="counts", batch_rows=batch_rows)
        assert "row 17 " in message
        assert cause in message


@pytest.mark.parametrize("layout", ["counts", "labels"])
def test_huge_unsigned_numbers_do_not_turn_into_missing_votes(layout):
    votes = np.array([[1, 2], [2**64 - 1, 4]], dtype=">u8")
    columns = {"a": pa.array([1, 2**64 - 1], pa.uint64()), "b": pa.array([2, 1], pa.int8())}
    for source in (votes, pa.table(columns)):
        assert "row 1 has a number above" in refused(source, layout=layout, teachers=3)


def test_no_message_quotes_a_vote():
    votes = np.full((20, 3), 7919)
    votes[3, 0] = 7907
    for how in ({"layout": "counts", "teachers": 20_000}, {"layout": "labels", "classes": 10}):
        message = refused(votes, **how)
        assert "row 0" in message
        assert not any(secret in message for secret in ("7919", "7907", "23757"))


def test_classes_must_fit():
    assert "has 3 classes, but `classes` is 4" in refused([[1, 2, 3]], layout="counts", classes=4)
    assert "only one class" in refused([[1], [1]], layout="counts")
    labels = [[0, 1], [1, 2], [3, 0]]
    assert "row 2 has a label outside 0..2" in refused(labels, layout="labels", classes=3)
    turned = {"layout": "labels-by-teacher", "classes": 3, "teachers": 3}
    assert "column 0 has a label outside 0..2" in refused(labels, **turned)
    many = refused(labels, ParameterError, layout="labels", teachers=10**6 + 1)
    assert "must be between 1 and 1000000" in many


def test_the_row_is_counted_over_all_parts(tmp_path):
    pq.write_table(pa.table({"class_0": [7] * 10, "class_1": [3] * 10}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"class_0": [7] * 7 + [8], "class_1": [3] * 8}), tmp_path / "b.parquet")
    assert "row 17 is the first row whose number of votes" in refused(tmp_path)
    (tmp_path / "csv").mkdir()
    for name, last in (("0.csv", "1,5"), ("1.csv", "1,12%")):
        (tmp_path / "csv" / name).write_text(f"class_0,class_1\n3,3\n4,2\n{last}\n")
    assert "column 'class_1' is of type text from row 5 on" in refused(tmp_path / "csv")


def test_query_ids_occur_once():
    for ids in ([3, 1, 2, 3], ["c", "a", "b", "c"], [1, 2, 2, 3]):
        table = pa.table({"query_id": ids, "class_0": [1] * 4, "class_1": [2] * 4})
        assert "repeats the query id of row" in refused(table)
    falling = pa.table({"query_id": [3, 2, 1], "class_0": [1] * 3, "class_1": [2] * 3})
    assert read(falling)[1] == [3, 2, 1]
    gone = pa.table({"query_id": [3, None], "class_0": [1] * 2, "class_1": [2] * 2})
    assert "row 1 has no 'query_id'" in refused(gone)


@pytest.mark.parametrize("layout", ["counts", "labels"])
def test_many_classes_are_sparse(layout):
    classes = DENSE_CLASSES + 5
    labels = np.random.default_rng(1).integers(0, classes, (9, 40))
    counts = by_hand(labels, classes)
    source = counts if layout == "counts" else labels
    with open_votes(source, layout=layout, classes=classes, teachers=40, batch_rows=4) as file:
        found = list(file.batches())
    assert all(isinstance(batch.counts, SparseCounts) for batch in found)
    np.testing.assert_array_equal(np.concatenate([b.counts.dense() for b in found]), counts)


def test_what_carries_votes_is_not_portable(tmp_path):
    votes = np.array([["a", "b"], ["b", "b"]])
    np.save(tmp_path / "v.npy", votes)
    for source in (tmp_path / "v.npy", votes, pa.table({"v": votes.tolist()})):
        for names in ({"label_names": "a,b"}, {"any_name": True}):
            with open_votes(source, layout="labels", **names) as file:
                assert file.portable is (isinstance(source, Path) and "any_name" not in names)


def test_thousands_of_columns_are_read_in_larger_pieces_and_given_in_small_ones():
    counts = np.random.default_rng(1).multinomial(30, np.ones(40) / 40, size=70)
    table = pa.table({f"class_{c}": counts[:, c] for c in range(40)})
    with open_votes(table, batch_rows=3) as file:
        sizes = [len(batch.counts) for batch in file.batches(start=1, limit=10)]
    assert sizes == [3, 3, 3, 1]
    np.testing.assert_array_equal(counts_of(table, batch_rows=3), counts)


def test_options_that_make_no_sense():
    table = pa.table({"class_0": [1, 2], "class_1": [2, 1]})
    assert "is an array" in refused([[1, 2]], UsageError, layout="counts", id_column="q")
    assert "needs layout long" in refused(table, UsageError, queries=[1, 2])
    for layout in ("long", "sparse"):
        assert "is an array" in refused([[1, 2]], layout=layout)
    for layout in ("labels-by-teacher", "scores", "multilabel"):
        assert "is a table" in refused(table, layout=layout)
    assert "two dimensions" in refused(np.ones((2, 2, 2), dtype=int), layout="counts")
    assert "needs layout long" in refused([[1, 2]], UsageError, queries=[1, 2])
    for shape in ((), (3,), (2, 2, 2), (0, 2), (2, 0), (2, 2, 2, 2)):
        for layout in (None, "counts", "labels-by-teacher"):
            assert "has shape" in refused(np.ones(shape, dtype=int), layout=layout)
    with pytest.raises(VoteError, match="label_names"), open_votes([["a"]], layout="labels"):
        pass
