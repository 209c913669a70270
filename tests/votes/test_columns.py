"""Which columns are votes: every schema that could be read two ways is refused by name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pate_cli.core.errors import VoteError
from pate_cli.core.words import Layout
from pate_cli.votes.columns import find_columns
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
    message = refused(cat=INT, dog=INT, **{name: INT})
    assert message.startswith(f"f: column {name!r} does not look like a class; drop it")
    assert message.endswith(
        f", give `id_column` {name!r} if it names the queries, or rename it if it is a class"
    )
    assert "id_column" not in refused(query_id=TEXT, cat=INT, **{name: INT})
    assert ("index=False" in message) == ("index" in name)


def test_the_ids_by_another_name():
    schema = pa.schema([("image", TEXT), ("cat", INT), ("dog", INT)])
    found = find_columns(schema, "f", None, id_column="image")
    assert found.needed == ["image", "cat", "dog"]
    assert found.has_ids
    long = pa.schema([("teacher_id", INT), ("image", TEXT), ("label", INT)])
    assert find_columns(long, "f", None, id_column="image").needed == [
        "image",
        "teacher_id",
        "label",
    ]
    lists = pa.schema([("image", TEXT), ("counts", LIST)])
    assert find_columns(lists, "f", None, id_column="image").votes == ("counts",)
    with pytest.raises(VoteError, match="f: there is no column 'img', which `id_column` names"):
        find_columns(schema, "f", None, id_column="img")
    both = schema.append(pa.field("query_id", INT))
    with pytest.raises(VoteError, match="f: column 'query_id' does not look like a class; drop"):
        find_columns(both, "f", None, id_column="image")
    with pytest.raises(VoteError, match="f: column 'image' is float; use integers or strings"):
        find_columns(
            pa.schema([("image", pa.float64()), ("cat", INT)]), "f", None, id_column="image"
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
