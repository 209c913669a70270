"""Labels of queries that have several: every form read back, the same bytes however cut."""

from __future__ import annotations

import csv
import io
import itertools
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.label_set import LabelSet
from pate_cli.core.words import LabelsAs
from pate_cli.labels import labels as labels_module
from pate_cli.labels.forms import form_of
from pate_cli.labels.labels import LabelFormat, Labels, LabelWriter, concatenate, write_labels
from refusals import refusal
from slices import tries

NAMED = LabelSet(3, names=("mild", 'a "b", c', "süß"))
PLAIN = LabelSet(3)
LISTS, PAIRS = LabelsAs.LISTS, LabelsAs.PAIRS
SOURCES = ("teachers", "student", "none")


def table_of(decided, label_set, ids=None):
    """A table of what is said [queries, labels], by the teachers."""
    decided = np.array(decided, dtype=np.int64).reshape(-1, label_set.count)
    ids = np.arange(len(decided)) if ids is None else np.array(ids)
    rows = decided.reshape(-1)
    sources = np.where(rows < 0, 2, 0).astype(np.uint8)
    ids = np.repeat(ids, label_set.count)
    return Labels(ids, rows, sources, {"sigma": "4"}, label_set=label_set)


def encoded(table, label_format, labels_as=None):
    file = io.BytesIO()
    write_labels(table, file, label_format, labels_as)
    return file.getvalue()


SAID = [[1, -1, 0], [0, 0, 0], [1, 1, 1], [-1, -1, -1], [-1, 1, 1]]


@pytest.mark.parametrize("ids", [None, ["q,1", 'q"2', "3", "ü", ""]])
@pytest.mark.parametrize("label_set", [NAMED, PLAIN])
def test_every_form_says_the_same(label_set, ids):
    table = table_of(SAID, label_set, ids)
    titles, queries = label_set.titles, [0, 1, 2, 3, 4] if ids is None else ids
    lists = [
        {
            "query_id": query,
            "labels": [title for title, said in zip(titles, row, strict=True) if said == 1],
            "unanswered": [title for title, said in zip(titles, row, strict=True) if said < 0],
        }
        for query, row in zip(queries, SAID, strict=True)
    ]
    pairs = [
        {
            "query_id": query,
            "label": title,
            "yes": None if said < 0 else bool(said),
            "source": "none" if said < 0 else "teachers",
        }
        for query, row in zip(queries, SAID, strict=True)
        for title, said in zip(titles, row, strict=True)
    ]
    for shown, rows in ((None, lists), (LISTS, lists), (PAIRS, pairs)):
        content = io.BytesIO(encoded(table, LabelFormat.PARQUET, shown))
        read = pq.read_table(content)
        assert read.to_pylist() == rows
        assert json.loads(read.schema.metadata[b"pate"]) == {"sigma": "4"}
        text = encoded(table, LabelFormat.JSONL, shown).decode("ascii")
        assert [json.loads(line) for line in text.splitlines()] == rows
    assert table.to_arrow().to_pylist() == lists
    for shown in (None, PAIRS):
        text = encoded(table, LabelFormat.CSV, shown).decode()
        read = list(csv.DictReader(io.StringIO(text, newline="")))
        words = {None: "", True: "true", False: "false"}
        assert read == [
            {**row, "query_id": str(row["query_id"]), "label": str(row["label"])}
            | {"yes": words[row["yes"]]}
            for row in pairs
        ]
    for shown in (None, LISTS, PAIRS):
        array = np.load(io.BytesIO(encoded(table, LabelFormat.NPY, shown)))
        assert array.dtype == np.int8
        assert array.tolist() == SAID == table.by_query.tolist()
    columns = table.columns()
    assert columns["label"].tolist() == titles * 5
    assert columns["yes"].tolist() == [row["yes"] for row in pairs]


def test_who_said_it():
    rows = np.array([1, 0, -1])
    table = Labels(
        np.zeros(3, int), rows, np.array(["student", "teachers", "none"]), {}, label_set=PLAIN
    )
    assert encoded(table, LabelFormat.CSV).decode().splitlines()[1:] == [
        "0,0,true,student",
        "0,1,false,teachers",
        "0,2,,none",
    ]
    assert table.headline() == "2 of 3 pairs of query and label labelled"
    assert table.answers == 1


@settings(max_examples=tries(25))
@given(st.data())
def test_the_same_bytes_however_the_rows_are_cut(data):
    label_set = data.draw(st.sampled_from([NAMED, PLAIN]))
    said = data.draw(st.lists(st.lists(st.integers(-1, 1), min_size=3, max_size=3), max_size=12))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(said)), max_size=4)))
    table = table_of(said, label_set)
    ends = itertools.pairwise([0, *cuts, len(said)])
    pieces = [table_of(said[a:b], label_set, np.arange(a, b)) for a, b in ends]
    whole = data.draw(st.sampled_from([1, 4, 1 << 20]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labels_module, "_ROW_GROUP", whole)
        patch.setattr(labels_module, "_TEXT_ROWS", whole)
        for label_format in LabelFormat:
            for shown in (None, PAIRS):
                expected, file = encoded(table, label_format, shown), io.BytesIO()
                with LabelWriter(
                    file,
                    label_format,
                    table.metadata,
                    rows=len(table),
                    label_set=label_set,
                    labels_as=shown,
                ) as writer:
                    for piece in pieces:
                        writer.write(piece)
                assert file.getvalue() == expected
                queries = len(said)
                pairs = shown is PAIRS or label_format is LabelFormat.CSV
                rows = queries * 3 if pairs and label_format is not LabelFormat.NPY else queries
                assert writer.rows == rows
        if said:
            again = concatenate([piece for piece in pieces if len(piece)])
            assert again.by_query.tolist() == table.by_query.tolist()


def test_what_is_refused():
    one = Labels(np.zeros(1, int), np.zeros(1, int), np.zeros(1, np.uint8))
    zeros, codes = np.zeros(4, int), np.zeros(4, np.uint8)
    several = table_of(SAID, PLAIN)
    lists = "CSV has no lists of labels; give `labels_as` pairs, or write Parquet or JSONL"
    single = "`labels_as` goes with several labels a query; these have one"
    assert refusal(UsageError, encoded, several, LabelFormat.CSV, LISTS) == lists
    for shown in LabelsAs:
        assert refusal(UsageError, encoded, one, LabelFormat.JSONL, shown) == single
    assert refusal(ParameterError, Labels, zeros, zeros, codes, {}, None, PLAIN) == (
        "4 rows are no whole queries of 3 labels each"
    )
    assert refusal(
        ParameterError, Labels, np.arange(3), zeros[:3], codes[:3], {}, label_set=PLAIN
    ) == ("row 1: the query id is not that of its query")
    assert refusal(
        ParameterError, Labels, zeros[:3], zeros[:3] + 2, codes[:3], {}, label_set=PLAIN
    ) == ("row 0: is neither 0 nor 1")
    assert refusal(ParameterError, concatenate, [several, table_of(SAID, NAMED)]) == (
        "label tables of different mechanism parameters cannot be one table"
    )
    assert refusal(ParameterError, lambda: one.by_query) == (
        "a query has one label here, which is in `labels`"
    )
    writer = LabelWriter(io.BytesIO(), LabelFormat.JSONL, {}, label_set=NAMED)
    assert refusal(ParameterError, writer.write, several) == (
        "the labels of a query are not those that the file was begun with"
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"count": 0}, "there must be at least 1 label, got 0"),
        ({"count": 2, "names": ("a",)}, "1 names for 2 labels: each label needs one of its own"),
        (
            {"count": 2, "names": ("a", "a")},
            "2 names for 2 labels: each label needs one of its own",
        ),
    ],
)
def test_sets_that_are_none(words, text):
    assert refusal(ParameterError, LabelSet, **words) == text


@pytest.mark.parametrize("label_set", [NAMED, PLAIN])
def test_facts_there_and_back(label_set):
    facts = json.loads(json.dumps(label_set.facts()))
    assert LabelSet.from_facts(facts) == label_set
    for name in facts:
        with pytest.raises((KeyError, TypeError, ParameterError)):
            LabelSet.from_facts({**facts, name: [1.5]})


def test_names_of_pairs_that_are_formulas():
    several = LabelSet(2, names=("=1+1", "cat"))
    form = form_of(LabelFormat.CSV, None, several, SOURCES, escaped=True)
    decided = np.array([[1, 0]], dtype=np.int8)
    codes = np.zeros((1, 2), dtype=np.uint8)
    found = form.text(np.array(["@x"]), decided, codes, LabelFormat.CSV)
    assert found == "'@x,'=1+1,true,teachers\n'@x,cat,false,teachers\n"
