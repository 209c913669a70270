"""Which columns are votes: every schema that could be read two ways is refused by name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pate_cli.errors import VoteError
from pate_cli.votes.columns import find_columns
from pate_cli.words import Layout
from refusals import refusal

INT, TEXT, LIST = pa.int64(), pa.string(), pa.list_(pa.int32())


def plan(layout=None, **columns):
    return find_columns(pa.schema(list(columns.items())), "f", layout)


def refused(layout=None, **columns):
    return refusal(VoteError, plan, layout, **columns)


@pytest.mark.parametrize(
    "name",
    ["label", "Label", "labels", "truth", "y_true", "true_label", "target", "prediction", "y"],
)
def test_truth_beside_counts(name):
    text = f"f: column {name!r} beside the votes could be an answer or a class; drop it"
    assert refused(cat=INT, dog=INT, **{name: INT}).startswith(text)
    assert refused(Layout.COUNTS, c0=INT, c1=INT, **{name: INT}).startswith(text)


@pytest.mark.parametrize(
    "name", ["total", "index", "__index_level_0__", "id", "image_id", "n_votes"]
)
def test_other_numbers_beside_counts(name):
    assert refused(cat=INT, dog=INT, **{name: INT}).startswith(
        f"f: column {name!r} does not look like a class; drop it (or name it 'query_id')"
    )


def test_an_unnumbered_column_among_numbered_ones():
    assert refused(c0=INT, c1=INT, extra=INT).startswith("f: column 'extra' beside the votes")


@pytest.mark.parametrize(
    ("columns", "bad", "position"),
    [
        (["c0", "c2", "c1"], "c2", 1),
        (["class_1", "class_2"], "class_1", 0),
        (["0", "1", "10", "2"], "10", 2),
        (["c0", "c0001", "c3"], "c3", 2),
    ],
)
def test_numbered_classes_stand_in_order(columns, bad, position):
    assert refused(**dict.fromkeys(columns, INT)) == (
        f"f: column {bad!r} stands at position {position}; numbered classes must be 0, 1, 2, ... "
        "in this order"
    )


def test_file_order_is_class_order_for_names():
    assert plan(zebra=INT, ant=INT).votes == ("zebra", "ant")


def test_the_order_of_teachers_does_not_matter():
    made = plan(teacher_7=INT, teacher_3=INT)
    assert made.votes == ("teacher_7", "teacher_3")
    assert made.layout is Layout.LABELS
    assert plan(Layout.LABELS, a7=INT, a3=INT).votes == ("a7", "a3")


def test_lists():
    assert plan(query_id=TEXT, v=LIST, file=TEXT, label=INT).votes == ("v",)
    assert refused(v=LIST, w=LIST) == (
        "f: the list columns 'v' and 'w' could both be the votes; keep one"
    )
    assert refused(v=LIST, c0=INT, c1=INT).startswith("f: columns 'v' and 'c0' could both be votes")
    assert refused(teacher_id=INT, v=LIST).startswith(
        "f: column 'teacher_id' beside a list means one row per teacher"
    )


def test_long_form():
    long = {"query_id": TEXT, "teacher_id": INT, "label": INT}
    assert plan(**long, when=pa.timestamp("s")).layout is Layout.LONG
    assert plan(Layout.LONG, **long).needed == ["query_id", "teacher_id", "label"]
    assert refused(Layout.LONG, query_id=INT, label=INT) == (
        "f: layout long needs the columns query_id, teacher_id and label; 'teacher_id' is missing"
    )
    assert (
        refused(**{**long, "label": TEXT})
        == "f: column 'label' is text; use integers, or give `label_names`"
    )
    assert refused(**{**long, "teacher_id": pa.float64()}) == (
        "f: column 'teacher_id' is float; use integers or strings"
    )
    assert refused(Layout.COUNTS, **long).startswith("f: column 'teacher_id'")


def test_nothing_to_read():
    assert refused(query_id=INT) == "f: there are no columns of votes"
    assert refused(Layout.LABELS_BY_TEACHER, v=LIST).startswith(
        "f: layout labels-by-teacher is for NPY files"
    )


def test_a_name_used_twice():
    schema = pa.schema([("a", INT), ("b", INT), ("a", INT)])
    with pytest.raises(VoteError, match="f: two columns are named 'a'"):
        find_columns(schema, "f", None)
