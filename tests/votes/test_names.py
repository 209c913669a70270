"""Votes in words: names are places, and what is no name is a vote that is missing."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.votes import Layout, open_votes
from pate_cli.votes.names import names_of
from refusals import refusal

NAMES = ("World", "Sports", "Business")
BALLOTS = [
    ["World", "World", "Sports"],
    ["Business", "I cannot tell", "Business"],
    [None, "sports", "Sports"],
    ["?", None, ""],
]
COUNTS = np.array([[2, 1, 0], [0, 0, 2], [0, 1, 0], [0, 0, 0]])
STRAYS = 3


def by_teacher(kind):
    return {f"teacher_{t}": pa.array([row[t] for row in BALLOTS], kind) for t in range(3)}


def long(kind):
    rows = [(q, t, BALLOTS[q][t]) for t in range(3) for q in range(4)]
    query, teacher, label = zip(*rows, strict=True)
    return {"query_id": query, "teacher_id": teacher, "label": pa.array(label, kind)}


DICTIONARY = pa.dictionary(pa.int8(), pa.string())
KINDS = [pa.string(), pa.large_string(), DICTIONARY]
TABLES = {
    "columns": (by_teacher, Layout.LABELS),
    "lists": (lambda kind: {"v": pa.array(BALLOTS, pa.list_(kind))}, Layout.LABELS),
    "long": (long, Layout.LONG),
}


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("table", TABLES)
def test_texts_are_votes(table, kind, parquet, read):
    make, layout = TABLES[table]
    columns = make(pa.string()) if kind is DICTIONARY and table == "lists" else make(kind)
    for source in (parquet(columns), pa.table(columns)):
        votes, ids, counts = read(source, label_names=NAMES, batch_rows=2)
        np.testing.assert_array_equal(counts, COUNTS)
        assert ids == [0, 1, 2, 3]
        assert (votes.label_names, votes.classes, votes.teachers) == (NAMES, 3, 3)
        assert (votes.layout, votes.read_off) == (layout, ())
        with open_votes(source, label_names=NAMES) as again:
            assert again.unnamed().votes == STRAYS
            copy = pickle.loads(pickle.dumps(again))  # noqa: S301 - our own
            assert (copy.label_names, copy.unnamed().votes) == (NAMES, STRAYS)
            if layout is Layout.LABELS:
                assert (again.unnamed(1).votes, again.unnamed(2).votes) == (0, 1)


@pytest.mark.parametrize("layout", [Layout.LABELS, Layout.LABELS_BY_TEACHER])
@pytest.mark.parametrize("order", "<>")
def test_texts_in_an_array(layout, order, npy, read, monkeypatch):
    said = np.array([[word or "" for word in row] for row in BALLOTS]).astype(f"{order}U13")
    array = said if layout is Layout.LABELS else said.T
    for source in (npy(array), array):
        for told in ({"layout": layout}, {"teachers": 3}):
            votes, _, counts = read(source, label_names=NAMES, batch_rows=3, **told)
            np.testing.assert_array_equal(counts, COUNTS)
            assert (votes.layout, votes.teachers) == (layout, 3)
            assert (votes.unnamed().votes, votes.unnamed(2).votes) == (STRAYS, 1)
    monkeypatch.setattr("pate_cli.votes.sources.npy._TEXT_BYTES", 1)
    np.testing.assert_array_equal(read(array, layout=layout, label_names=NAMES)[2], COUNTS)


def test_arrays_of_texts_that_are_refused(npy, refusal):
    said = np.array([["World", "Sports"]] * 3)
    assert refusal(npy(said)) == (
        "v.npy: the array holds strings; if they are votes, give `label_names`"
    )
    for told in ({}, {"teachers": 4}):
        assert refusal(npy(said), label_names=NAMES, **told) == (
            "v.npy: the array holds strings, and who is a row cannot be told; say `layout` "
            "labels|labels-by-teacher"
        )
    assert refusal(npy(said), layout="counts", label_names=NAMES) == (
        "v.npy: the array holds strings; counts are integers"
    )
    assert "turned round" in refusal(npy(said.T), layout="labels", label_names=NAMES)
    assert refusal(npy(said.astype(object)), label_names=NAMES).startswith(
        "v.npy: the array has object dtype"
    )


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="pyarrow before 16 has no views")
def test_views_are_texts(read):
    _, _, counts = read(pa.table(by_teacher(pa.string_view())), label_names=NAMES)
    np.testing.assert_array_equal(counts, COUNTS)


def test_a_dictionary_that_holds_nulls_and_texts_twice(read):
    words = pa.array(["Sports", None, "?", "Sports"])
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, None]), words)
    table = pa.table({"teacher_0": column, "teacher_1": column})
    votes, _, counts = read(table, label_names=NAMES)
    np.testing.assert_array_equal(counts[:, 1], [2, 0, 0, 2, 0])
    assert counts.sum() == 4
    assert votes.unnamed().votes == 2


def test_categoricals_of_pandas(read, parquet):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(BALLOTS, columns=["teacher_0", "teacher_1", "teacher_2"])
    table = pa.Table.from_pandas(frame.astype("category"), preserve_index=False)
    _, _, counts = read(parquet(table), label_names=NAMES)
    np.testing.assert_array_equal(counts, COUNTS)


def test_bytes_that_are_no_text_are_no_name(read):
    broken = pa.array([b"World", b"\xff"], pa.binary()).view(pa.string())
    _, _, counts = read(pa.table({"teacher_0": broken}), label_names=NAMES)
    np.testing.assert_array_equal(counts, [[1, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("layout", [Layout.LABELS, Layout.LABELS_BY_TEACHER])
def test_numbers_with_names(layout, npy, read):
    labels = np.array([[0, 2], [2, -1], [-1, -1], [1, 1]], dtype=np.int8)
    array = labels if layout is Layout.LABELS else labels.T
    votes, _, counts = read(npy(array), layout=layout, label_names=NAMES)
    np.testing.assert_array_equal(counts, [[1, 0, 1], [0, 0, 1], [0, 0, 0], [0, 2, 0]])
    assert votes.label_names == NAMES
    assert votes.unnamed().votes == 0


def test_lists_are_as_long_as_the_first_unless_the_teachers_are_told(parquet, drain, refusal):
    path = parquet({"query_id": [1, 2], "v": [["World", "World"], ["Sports"]]})
    assert "row 1 is the first whose list is not as long as row 0's" in refusal(
        path, label_names=NAMES
    )
    counts = drain(path, label_names=NAMES, teachers=2)
    np.testing.assert_array_equal(counts, [[2, 0, 0], [0, 1, 0]])


def test_a_teacher_who_says_nothing_may_leave_a_column_without_type(parquet, drain, tmp_path):
    first = {"teacher_0": ["World", "Sports"], "teacher_1": pa.array([None, None])}
    parquet(first, "parts/a.parquet")
    parquet({"teacher_0": ["World"], "teacher_1": ["World"]}, "parts/b.parquet")
    np.testing.assert_array_equal(
        drain(tmp_path / "parts", label_names=NAMES), [[1, 0, 0], [0, 1, 0], [2, 0, 0]]
    )


def test_an_absent_row_of_long_form_needs_the_teachers(parquet, drain, refusal):
    table = pa.table(long(pa.string())).slice(1)
    assert "is the first vote of a query that not all 3 teachers voted on" in refusal(
        parquet(table), label_names=NAMES
    )
    counts = drain(parquet(table), label_names=NAMES, teachers=3)
    np.testing.assert_array_equal(counts, COUNTS - [[1, 0, 0], [0] * 3, [0] * 3, [0] * 3])


# Columns of counts.


def test_columns_of_counts_keep_their_names(parquet, read):
    path = parquet({"query_id": [5, 6], "ant": [3, 1], "bee": [0, 2]})
    votes, _, counts = read(path, layout="counts")
    assert votes.label_names == ("ant", "bee")
    named, _, turned = read(path, label_names=("bee", "ant"))
    assert (named.layout, named.label_names) == (Layout.COUNTS, ("bee", "ant"))
    np.testing.assert_array_equal(counts, turned[:, ::-1])
    np.testing.assert_array_equal(counts, [[3, 0], [1, 2]])


@pytest.mark.parametrize("columns", [("class_0", "class_1"), ("0", "1")])
def test_numbered_columns_take_names_by_position(columns, parquet, read, npy):
    path = parquet(dict(zip(columns, [[3, 1], [0, 2]], strict=True)))
    assert read(path, layout="counts")[0].label_names is None
    for source in (path, npy([[3, 0], [1, 2]])):
        votes, _, counts = read(source, layout="counts", label_names="bee,ant")
        assert votes.label_names == ("bee", "ant")
        np.testing.assert_array_equal(counts, [[3, 0], [1, 2]])


def test_names_may_look_like_numbers_or_answers(parquet, read):
    path = parquet({"F16": [1, 1], "target": [2, 2], "B52": [3, 3]})
    votes, _, counts = read(path, label_names=("B52", "target", "F16"))
    np.testing.assert_array_equal(counts, [[3, 2, 1]] * 2)
    assert votes.label_names == ("B52", "target", "F16")


def test_teachers_called_like_no_class(parquet, read):
    path = parquet({"anna": [0, 1, 1], "ben": [2, 1, 0]})
    votes, _, counts = read(path, layout="labels", label_names=NAMES)
    np.testing.assert_array_equal(counts, [[1, 0, 1], [0, 2, 0], [1, 1, 0]])
    assert votes.label_names == NAMES


REFUSED = {
    "other names": (
        {"ant": [1], "bee": [2]},
        {"layout": "counts", "label_names": ("ant", "cow")},
        "the columns and `label_names` do not name the same classes: 'bee' is on one side only",
    ),
    "too few names": (
        {"class_0": [1], "class_1": [2]},
        {"label_names": NAMES},
        "has counts of 2 classes, but `classes` 3",
    ),
    "words without names": (
        {"teacher_0": ["World"]},
        {},
        "column 'teacher_0' is text; if they are votes, give `label_names`",
    ),
    "lists of words without names": (
        {"v": [["World"]]},
        {},
        "column 'v' holds texts; if they are votes, give `label_names`",
    ),
    "words as counts": (
        {"ant": ["World"]},
        {"layout": "counts", "label_names": NAMES},
        "column 'ant' is text; counts are integers",
    ),
    "words as long labels": (
        {"query_id": [1], "teacher_id": [1], "label": ["World"]},
        {},
        "column 'label' is text; use integers, or give `label_names`",
    ),
    "a number beside words": (
        {"gpt": ["World"], "score": [1]},
        {"label_names": NAMES},
        "column 'score' is integer; the votes beside it are texts: drop it",
    ),
    "what was asked": (
        {"gpt": ["World"], "prompt": ["Which?"]},
        {"label_names": NAMES},
        "column 'prompt' does not look like votes; drop it, give `id_column` 'prompt' if it names "
        "the queries, or rename it if it is a teacher",
    ),
    "a number that is no class": (
        {"teacher_0": [0, 3]},
        {"label_names": NAMES},
        "row 1 has a label outside 0..2; labels count from 0: check `classes` and the file",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case, parquet, request):
    columns, told, text = REFUSED[case]
    message = request.getfixturevalue("refusal")
    assert message(parquet(columns), **told) == f"v.parquet: {text}"


# The names themselves.


def test_names_come_as_texts_or_from_a_file(tmp_path):
    path = tmp_path / "names"
    path.write_bytes("\ufeffrouge vif\r\nblé\r\n sauge\n".encode())
    wanted = ("rouge vif", "blé", " sauge")
    for given in (wanted, list(wanted), np.array(wanted), path, f"@{path}"):
        assert names_of(given) == wanted
        assert all(type(name) is str for name in names_of(given))
    assert names_of("a,b c,d") == ("a", "b c", "d")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("World", "at least 2 names are needed, got 1"),
        ([], "at least 2 names are needed, got 0"),
        ("a,,b", "name 1 is empty, or no text"),
        (["a", ""], "name 1 is empty, or no text"),
        (["a", 3], "name 1 is empty, or no text"),
        (["a", "\ud800"], "name 1 is empty, or no text"),
        (["a", "a\0"], "name 1 is empty, or no text"),
        ("a,b,a", "'a' is there twice"),
        ("a, b", "name 1 begins or ends with a blank; leave it out, or give a file of names"),
    ],
)
def test_names_that_are_none(given, text):
    assert refusal(ParameterError, names_of, given).startswith(f"`label_names`: {text}")


def test_files_of_names_that_cannot_be_read(tmp_path):
    assert "cannot read" in refusal(UsageError, names_of, f"@{tmp_path / 'gone'}")
    (tmp_path / "latin").write_bytes("blé\nseigle\n".encode("latin-1"))
    assert "must be UTF-8" in refusal(UsageError, names_of, tmp_path / "latin")


def test_names_settle_the_number_of_classes(npy):
    path = npy([[0, 1], [1, 1], [0, 0]])
    with pytest.raises(ParameterError, match="`classes` 4 is not the number of `label_names`, 3"):
        open_votes(path, classes=4, label_names=NAMES).__enter__()
    with open_votes(path, layout="labels", label_names=NAMES) as votes:
        assert (votes.classes, votes.classes_from_data) == (3, False)
        assert ", named World, Sports, Business" in votes.describe()
        with pytest.raises(ParameterError, match="is open already"):
            open_votes(votes, label_names=NAMES).__enter__()


@pytest.mark.parametrize("last", ["3", "2.5", "cat", ""])
def test_a_teacher_who_gives_numbers_for_words_does_not_decide(tmp_path, last):
    """In CSV the type of a column is only how its entries look; numbers are no names."""
    path = tmp_path / "votes.csv"
    path.write_text(f"query_id,a,b,c\n1,cat,1,dog\n2,dog,2,dog\n3,cat,{last},cat\n")
    with open_votes(path, label_names=["cat", "dog"]) as votes:
        (batch,) = votes.batches()
        assert votes.unnamed().votes == (3 if last in ("3", "2.5") else 2)
    wanted = [[1, 1], [0, 2], [3 if last == "cat" else 2, 0]]
    assert batch.counts.tolist() == wanted
