"""Which columns are votes: every table that could be read in two ways is refused by name."""

import pyarrow as pa
import pytest

from opened import read, refused
from pate_cli.core.words import Layout
from pate_cli.votes.opening import open_votes

TWO = {"cat": [1, 2], "dog": [2, 1]}
LISTS = {"v": [[1, 2], [2, 1]]}
LONG = {"query_id": [5, 5], "teacher_id": [1, 2], "label": [0, 1]}


def refusal_of(layout=None, **columns):
    return refused(pa.table(columns), layout=layout)


ANSWERS = ["label", "Labels", "truth", "y_true", "true_label", "target", "y"]
SUMS_AND_IDS = ["total", "n_votes", "index", "id"]


@pytest.mark.parametrize("name", ANSWERS + SUMS_AND_IDS)
def test_a_column_beside_counts_that_is_none(name):
    """An answer, an id or a sum beside counts would be read as one more class."""
    message = refusal_of("counts", **TWO, **{name: [1, 0]})
    assert f"column {name!r} does not look like votes; drop it" in message
    assert "`id_column`" in message
    assert "`id_column`" not in refusal_of(query_id=["a", "b"], **TWO, **{name: [1, 0]})
    numbered = {"c0": [1, 2], "c1": [2, 1], "extra": [1, 1]}
    assert "column 'extra' does not look like votes" in refusal_of(**numbered)


def test_the_ids_by_another_name():
    long = {"teacher_id": [1, 1], "label": [0, 1]}
    for layout, votes in (("counts", TWO), ("counts", LISTS), ("long", long)):
        table = pa.table({"image": ["p", "q"], **votes})
        assert read(table, id_column="image", layout=layout)[1] == ["p", "q"]
    table = pa.table({"image": ["p", "q"], **TWO})
    assert "column 'img' is missing" in refused(table, id_column="img")
    both = table.append_column("query_id", pa.array([1, 2]))
    assert "column 'query_id' does not look like votes" in refused(both, id_column="image")
    floats = pa.table({"image": [0.5, 1.5], **TWO})
    assert "has an id that is neither" in refused(floats, id_column="image", layout="counts")


@pytest.mark.parametrize(
    ("columns", "bad", "place"),
    [
        (["c0", "c2", "c1"], "c2", 1),
        (["class_1", "class_2"], "class_1", 0),
        (["0", "1", "10", "2"], "10", 2),
        (["c0", "c0001", "c3"], "c3", 2),
    ],
)
def test_numbered_classes_stand_in_order(columns, bad, place):
    """Out of order, every label would silently be another class."""
    message = refusal_of(**{name: [1, 2] for name in columns})
    assert f"column {bad!r} has the votes for class {place}" in message


def test_counts_are_taken_by_the_names_of_their_columns():
    table = pa.table(TWO)
    with open_votes(table, layout="counts") as file:
        assert file.facts.label_names == ("cat", "dog")
    file, _, counts = read(table, label_names="dog,cat")
    assert (file.facts.label_names, counts.tolist()) == (("dog", "cat"), [[2, 1], [1, 2]])
    message = refused(table, layout="counts", label_names="dog,fish")
    assert "class 'cat' must be both a column" in message


@pytest.mark.parametrize(
    ("columns", "layout"),
    [
        ({"class_0": [2, 1], "class_1": [1, 2]}, Layout.COUNTS),
        ({"votes0": [2, 1], "votes1": [1, 2]}, Layout.COUNTS),
        ({"counts": [[2, 1], [1, 2]]}, Layout.COUNTS),
        ({"teacher_0": [0, 1], "teacher_1": [1, 1]}, Layout.LABELS),
        ({"query_id": [5, 6], "labels": [[0, 1], [1, 1]]}, Layout.LABELS),
        ({"query_id": [5, 6], "labels": [[0, 7], [1, 1]]}, Layout.LABELS),
        (LONG, Layout.LONG),
    ],
)
def test_column_names_that_speak(columns, layout):
    with open_votes(pa.table(columns)) as file:
        assert (file.inferred, file.layout) == (True, layout)
    for silent in ("labels", "votes"):
        assert "give `layout`: counts or labels" in refusal_of(**{silent: [[0, 1], [1, 1]]})


def test_lists():
    table = pa.table({"query_id": ["a", "b"], **LISTS, "file": ["x", "y"], "label": [1, 1]})
    assert read(table, layout="counts")[2].tolist() == LISTS["v"]
    assert "could both be votes" in refusal_of(**LISTS, w=LISTS["v"])
    assert "could both be votes" in refusal_of(**LISTS, c0=[1, 2])
    assert "'teacher_id'" in refusal_of(**LISTS, teacher_id=[1, 2])
    assert "row 1 has a null instead of a list" in refusal_of("counts", v=[[1, 2], None])


@pytest.mark.parametrize("names", [("teacher_7", "teacher_3"), ("a7", "a3")])
def test_columns_of_teachers_stand_in_any_order_and_may_be_empty(names):
    table = pa.table({name: [0, 1] for name in names})
    assert read(table, layout="labels")[2].tolist() == [[2, 0], [0, 2]]
    for said, more in ((["a", "b"], {"label_names": "a,b"}), ([0, 1], {"teachers": 2})):
        table = pa.table(dict(zip(names, (said, pa.nulls(2)), strict=True)))
        assert read(table, layout="labels", **more)[2].tolist() == [[1, 0], [0, 1]]


def test_long_form_needs_its_columns():
    assert "column 'teacher_id' is missing" in refusal_of("long", query_id=[1], label=[0])
    assert "`label_names`" in refusal_of(**{**LONG, "label": ["a", "b"]})
    assert "neither a whole number nor a text" in refusal_of(**{**LONG, "teacher_id": [0.5, 1.5]})
    assert "'teacher_id'" in refusal_of("counts", **LONG)


def test_a_column_that_holds_words_is_named_with_its_row(tmp_path):
    rows = [f"{row},{'oops' if row == 17 else 3},2" for row in range(30)]
    (tmp_path / "v.csv").write_text("\n".join(["query_id,class_0,class_1", *rows]))
    message = refused(tmp_path / "v.csv")
    assert "column 'class_0' is of type text from row 17 on" in message
    assert "oops" not in message
    words = pa.table({"teacher_0": ["a", "b"], "teacher_1": [0, 1]})
    mixed = "column 'teacher_1' is of type number, but votes must be all numbers, or all texts"
    assert mixed in refused(words, label_names="a,b")
    prompts = pa.table({"prompt": ["?", "!"], "ann": ["a", "b"]})
    assert "column 'prompt' does not look like votes" in refused(prompts, label_names="a,b")
    dates = pa.table({"when": pa.array([1, 2], pa.timestamp("s")), **TWO})
    assert "column 'when' is of type timestamp[s]" in refused(dates)


def test_nothing_to_read(tmp_path):
    assert "the table has no columns of votes" in refusal_of(query_id=[1])
    number, text = pa.array([], pa.int64()), pa.array([], pa.string())
    lists = pa.array([], pa.list_(pa.int64()))
    for columns in (
        {"a": number, "b": number},
        {"query_id": number, "a": number, "b": number},
        {"query_id": text, "a": number, "b": number},
        {"query_id": text, "labels": lists},
    ):
        for layout in ("counts", "labels"):
            assert "has no rows" in refusal_of(layout, **columns)
    both = pa.table({"label": lists, "count": lists})
    assert "has no rows" in refused(both, classes=3, teachers=2)
    (tmp_path / "v.csv").write_text("query_id,class_0,class_1\n")
    for layout in (None, "counts", "labels"):
        assert "has no rows" in refused(tmp_path / "v.csv", layout=layout)
    assert "'teacher_id' is missing" in refused(tmp_path / "v.csv", layout="long")
    twice = pa.Table.from_arrays([pa.array([1])] * 3, names=["a", "b", "a"])
    assert "columns 0 and 2 are both named 'a'" in refused(twice)
