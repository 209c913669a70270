"""Labels in memory: what they refuse, how they are read, and that nobody changes them."""

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

import pate_cli as pate
from pate_cli.core.arrays import LabelSet
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.labels.labels import joined
from refusals import refusal

TWO = LabelSet(2, ("mild", "severe"))


def few(**changed):
    """Three labels: of the teachers, of nobody, and of the student."""
    given = {
        "ids": np.array([10, 11, -5]),
        "labels": np.array([3, -1, 0]),
        "sources": np.array(["teachers", "none", "student"]),
    }
    return pate.Labels(**{**given, **changed})


def several(said, **changed):
    """Two labels a query, by the teachers."""
    said = np.array(said).reshape(-1)
    sources = np.where(said < 0, "none", "teachers")
    ids = np.repeat(np.arange(said.size // 2), 2)
    return pate.Labels(
        **{"ids": ids, "labels": said, "sources": sources, "label_set": TWO, **changed}
    )


NO_COLUMNS = "ids, labels and sources must be columns of one length:"
NOT_IDS = "query ids must be whole numbers or text, not"
OUTSIDE = "a label must be in [0, 2147483647], or -1 for none"
OTHER = "the source must be one of teachers, student, none, not asked"
NOBODY = "the source must be none or not asked exactly where there is no label"
TWICE = (
    "the column of ids is called 'source', like another column of the labels; "
    "rename the column of ids"
)
CODES = {name: np.zeros((1, 1), np.uint8) for name in ("ids", "labels", "sources")}
REFUSED = [
    ({"labels": np.array([1])}, f"{NO_COLUMNS} (3,), (1,) and (3,)"),
    (CODES, f"{NO_COLUMNS} (1, 1), (1, 1) and (1, 1)"),
    ({"ids": np.array([1.5, 2, 3])}, f"{NOT_IDS} float64"),
    ({"ids": np.array([True] * 3)}, f"{NOT_IDS} bool"),
    ({"ids": np.array(["a", 1, "b"], dtype=object)}, f"{NOT_IDS} object"),
    ({"ids": np.array([1, 2**63, 2], np.uint64)}, "row 1: a query id must fit 64 signed bits"),
    ({"ids": np.array(["a", "\ud800", "b"])}, "row 1: a query id must be valid Unicode text"),
    ({"labels": np.zeros(3)}, "labels must be whole numbers, not float64"),
    ({"labels": np.array([3, -2, 0])}, f"row 1: {OUTSIDE}"),
    ({"labels": np.array([2**31, -1, 0])}, f"row 0: {OUTSIDE}"),
    ({"label_names": ("a", "b", "c")}, "row 0: a label must be in [0, 2], or -1 for none"),
    ({"sources": np.array(["teachers", "none", "me"])}, f"row 2: {OTHER}"),
    ({"sources": np.array([0, 2, 4], np.uint8)}, f"row 2: {OTHER}"),
    ({"sources": np.array(["none", "none", "student"])}, f"row 0: {NOBODY}"),
    ({"sources": np.array(["teachers", "student", "student"])}, f"row 1: {NOBODY}"),
    ({"metadata": {"sigma": 40.0}}, "metadata must map text to text"),
    ({"id_column": "source"}, TWICE),
    ({"id_column": None}, "`id_column` must be the name of a column, in valid Unicode"),
]


@pytest.mark.parametrize(("changed", "text"), REFUSED)
def test_columns_that_do_not_fit_are_refused_by_row(changed, text):
    assert refusal(ParameterError, few, **changed) == text


def test_several_labels_a_query_are_those_of_whole_queries():
    halves = refusal(ParameterError, several, [1, 0], label_set=LabelSet(3))
    assert halves == "labels must have 3 rows for every query, one per label; got 2 rows"
    apart = refusal(ParameterError, several, [1, 0], ids=np.array([0, 1]))
    assert apart == "row 1: all labels of a query must have the same query id"
    other = refusal(ParameterError, several, [1, 2])
    assert other == "row 1: a label must be in [0, 1], or -1 for none"
    single = refusal(ParameterError, lambda: few().by_query)
    assert single.startswith("by_query needs several labels per query, but every query has one")


def test_labels_are_frozen_and_the_callers_arrays_are_not():
    parameters, numbers = {"sigma": "40"}, np.array([3, -1, 0])
    labels = few(metadata=parameters, labels=numbers)
    parameters["sigma"] = "41"
    numbers[0] = 2
    assert labels.metadata == {"sigma": "40"}
    with pytest.raises(TypeError):
        labels.metadata["sigma"] = "42"
    for column in (labels.ids, labels.labels, labels.source_codes):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
    for name in ("ids", "labels", "sources", "metadata"):
        with pytest.raises(FrozenInstanceError):
            setattr(labels, name, getattr(labels, name))


def test_sources_are_texts_whatever_they_were_given_as():
    labels = few()
    texts = ["teachers", "none", "student"]
    for given in (texts, labels.source_codes, np.array(texts, dtype=object)):
        assert few(sources=given).sources.tolist() == texts
    assert replace(labels, metadata={"a": "1"}).sources.tolist() == texts
    assert (labels.source_codes.tolist(), labels.answers) == ([0, 2, 1], 1)


def test_labels_are_a_sequence_of_classes_or_names():
    labels = few(label_names=("ant", "bee", "cow", "doe"))
    assert list(few()) == [3, None, 0]
    assert list(labels) == ["doe", None, "ant"]
    assert (labels[0], labels[-1], len(labels)) == ("doe", "ant", 3)
    assert isinstance(labels[1:], pate.Labels)
    assert (list(labels[1:]), labels[1:].ids.tolist()) == ([None, "ant"], [11, -5])
    with pytest.raises(IndexError):
        labels[3]


def test_a_table_of_labels_shows_no_label_as_missing():
    labels = few(metadata={"sigma": "4"}, label_names=("ant", "bee", "cow", "doe"))
    columns = {name: column.tolist() for name, column in labels.columns().items()}
    assert list(columns) == ["query_id", "label", "source"]
    assert columns["label"] == ["doe", None, "ant"]
    assert few().columns()["label"].tolist() == [3, None, 0]
    assert json.loads(labels.to_json()) == {
        "queries": 3, "teachers": 1, "student": 1, "none": 1, "not asked": 0,
        "sigma": "4", "label_names": ["ant", "bee", "cow", "doe"],
    }  # fmt: skip
    assert repr(labels) == "<Labels: 2 of 3 queries labelled>"
    (table,) = labels.said()
    assert table.heads == ["query_id", "label", "source"]
    assert table.rows[:2] == [["10", "doe", "teachers"], ["11", "", "none"]]
    assert labels.to_pandas()["label"].isna().tolist() == [False, True, False]


def test_several_labels_a_query_are_told_by_query_and_by_label():
    labels = several([[1, -1], [0, 1]])
    assert labels.by_query.tolist() == [[1, -1], [0, 1]]
    assert {name: column.tolist() for name, column in labels.columns().items()} == {
        "query_id": [0, 0, 1, 1],
        "label": ["mild", "severe", "mild", "severe"],
        "yes": [True, None, False, True],
        "source": ["teachers", "none", "teachers", "teachers"],
    }
    assert repr(labels) == "<Labels: 3 of 4 pairs of query and label labelled>"
    assert labels.to_arrow().to_pylist() == [
        {"query_id": 0, "labels": ["mild"], "unanswered": ["severe"]},
        {"query_id": 1, "labels": ["severe"], "unanswered": []},
    ]
    (table,) = labels.said()
    assert [row[0] for row in table.rows] == ["0", "0", "…"]


def test_rows_that_were_not_asked_are_no_unanswered_ones():
    whole = joined([few(), few(ids=[7, 8], labels=[-1, -1], sources=["not asked"] * 2)])
    assert whole.labels.tolist() == [3, -1, 0, -1, -1]
    assert whole.sources.tolist()[3:] == ["not asked", "not asked"]
    assert (len(whole), whole.asked, whole.answers) == (5, 3, few().answers)
    assert repr(whole) == "<Labels: 2 of 3 queries labelled, 2 not asked>"
    counted = whole.to_dict()
    assert (counted["queries"], counted["none"], counted["not asked"]) == (3, 1, 2)
    texts = joined([few(ids=np.array([text] * 3)) for text in ("a", "bcd")])
    assert texts.ids.tolist() == ["a"] * 3 + ["bcd"] * 3


def test_labels_are_saved_by_the_name_of_the_file(tmp_path):
    """Facts about labels without the labels would be taken for them, so .json is refused."""
    few().save(tmp_path / "l.csv")
    assert (tmp_path / "l.csv").read_text().splitlines()[1] == "10,3,teachers"
    with pytest.raises(UsageError, match=r"cannot tell the label format of .*json"):
        few().save(tmp_path / "l.json")
    assert [path.name for path in tmp_path.iterdir()] == ["l.csv"]
