"""Files that differ by one teacher's votes are read alike: same rows, same order, same shape."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pate_cli.votes import Layout, open_votes
from slices import tries

CLASSES = 3
GONE = -1

votes_with_gaps = hnp.arrays(
    np.int64,
    st.tuples(st.integers(1, 6), st.integers(1, 5)),
    elements=st.integers(GONE, CLASSES - 1),
)


def histograms(labels):
    return np.stack([(labels == c).sum(axis=1) for c in range(CLASSES)], axis=1)


def nullable(values):
    return pa.array([None if v == GONE else v for v in values], pa.int64())


def tables(labels, ids):
    """Every Parquet table of these votes; None for a layout that nobody voted in."""
    counts = histograms(labels)
    teachers = range(labels.shape[1])
    numbers = pa.list_(pa.int64())
    short = [[v for v in row if v != GONE] for row in labels.tolist()]
    nulls = [[None if v == GONE else v for v in row] for row in labels.tolist()]
    rows = [(ids[q], t, labels[q, t]) for t, q in np.argwhere(labels.T != GONE)]
    yield {"query_id": ids, **{f"class_{c}": counts[:, c] for c in range(CLASSES)}}
    yield {"query_id": ids, "counts": counts.tolist()}
    yield {"query_id": ids, **{f"teacher_{t}": nullable(labels[:, t]) for t in teachers}}
    yield {"query_id": ids, "labels": pa.array(short, numbers)}
    yield {"query_id": ids, "labels": pa.array(nulls, numbers)}
    query, teacher, label = zip(*rows, strict=True) if rows else ((), (), ())
    yield {"query_id": query, "teacher_id": teacher, "label": label} if rows else None


@pytest.fixture(scope="session")
def seen(read):
    """What is seen of a table: its shape, the order of its queries, and its counts."""

    def look(table, teachers):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "v"
            pq.write_table(pa.table(table), path)
            votes, ids, counts = read(path, classes=CLASSES, teachers=teachers, batch_rows=2)
        return (votes.classes, votes.teachers, votes.layout, votes.rows_from_data), ids, counts

    return look


NAMES = ("World", "Sports", "Business")
KINDS = [pa.string(), pa.dictionary(pa.int8(), pa.string())]


def ballots(labels, ids, kind, nothing):
    """Every Parquet table of these votes in words; `nothing` is what an absent one says."""
    said = [[nothing if v == GONE else NAMES[v] for v in row] for row in labels.tolist()]
    queries, width = labels.shape
    columns = {f"teacher_{t}": pa.array([row[t] for row in said], kind) for t in range(width)}
    yield {"query_id": ids, **columns}
    yield {"query_id": ids, "labels": pa.array(said, pa.list_(pa.string()))}
    yield {
        "query_id": [query for query in ids for _ in range(width)],
        "teacher_id": list(range(width)) * queries,
        "label": pa.array([word for row in said for word in row], kind),
    }


@settings(max_examples=tries(40))
@given(
    labels=votes_with_gaps,
    data=st.data(),
    kind=st.sampled_from(KINDS),
    nothing=st.sampled_from([None, "", "world", "I cannot tell"]),
    told=st.booleans(),
)
def test_a_teacher_who_says_other_words_changes_nothing_but_votes(
    read, labels, data, kind, nothing, told
):
    """Votes that go missing or appear, without a word on how many teachers there are."""
    queries, width = labels.shape
    other = labels.copy()
    other[:, data.draw(st.integers(0, width - 1))] = data.draw(
        hnp.arrays(np.int64, queries, elements=st.integers(GONE, CLASSES - 1))
    )
    ids = list(range(5, 5 + queries))
    options = {"label_names": NAMES, "teachers": width if told else None, "batch_rows": 2}
    tables_of = [ballots(votes, ids, kind, nothing) for votes in (labels, other)]
    for pair in zip(*tables_of, strict=True):
        for table, votes in zip(pair, (labels, other), strict=True):
            file, order, counts = read(pa.table(table), **options)
            assert (file.queries, file.classes, file.teachers) == (queries, CLASSES, width)
            assert order == ids
            assert file.classes_from_data is False
            assert file.rows_from_data == (told and file.layout is Layout.LONG)
            np.testing.assert_array_equal(counts, histograms(votes))


def marked(labels, mark):
    """Labels whose gaps are -1, or NaN."""
    return labels if mark == GONE else np.where(labels == GONE, np.nan, labels)


@settings(max_examples=tries(40))
@given(labels=votes_with_gaps, mark=st.sampled_from([GONE, np.nan]), spare=st.integers(0, 2))
def test_minus_one_and_nan_are_no_vote(read, labels, mark, spare):
    queries, width = labels.shape
    ids = list(range(queries))
    values = marked(labels, mark)
    told = {"classes": CLASSES, "teachers": width + spare}
    columns = {f"teacher_{t}": pa.array(values[:, t]) for t in range(width)}
    sources = [(pa.table({"query_id": ids, **columns}), None)]
    sources.append((pa.table({"query_id": ids, "labels": values.tolist()}), None))
    if width + spare != queries or width == queries:
        sources.append((values, Layout.LABELS))
        sources.append((values.T, Layout.LABELS_BY_TEACHER))
    for source, layout in sources:
        file, _, counts = read(source, layout=layout, **told)
        np.testing.assert_array_equal(counts, histograms(labels))
        assert (file.queries, file.teachers) == (queries, width + spare)


@pytest.mark.parametrize("mark", [GONE, np.nan])
def test_without_the_number_of_teachers_they_are_refused(mark, npy, refusal):
    text = refusal(npy(np.array([[0, 1], [mark, 1], [0, 0]])), layout=Layout.LABELS, classes=2)
    assert text.startswith("v.npy: row 1 has ")
    assert re.search("stands for (a missing label|no vote), give `teachers` N", text)


@pytest.mark.parametrize("bad", [-2, -np.inf, 0.5])
def test_other_numbers_are_refused_all_the_same(bad, npy, refusal):
    labels = np.array([[0, 1], [-1, 1], [bad, 0]])
    assert refusal(npy(labels), layout=Layout.LABELS, classes=2, teachers=2).startswith(
        "v.npy: row 2 has "
    )


@settings(max_examples=tries(60))
@given(labels=votes_with_gaps, data=st.data(), spare=st.integers(0, 2), texts=st.booleans())
def test_a_teacher_less_changes_nothing_but_votes(seen, labels, data, spare, texts):
    queries, width = labels.shape
    teacher = data.draw(st.integers(0, width - 1))
    fewer = labels.copy()
    fewer[data.draw(hnp.arrays(np.bool_, queries)), teacher] = GONE
    numbers = data.draw(st.permutations(range(8, 8 + queries)))
    ids = [f"q{n}" for n in numbers] if texts else list(numbers)
    for table, neighbour in zip(tables(labels, ids), tables(fewer, ids), strict=False):
        if not table or not neighbour:
            continue  # long form without a row is no file of votes
        shape, order, counts = seen(table, width + spare)
        its_shape, its_order, its_counts = seen(neighbour, width + spare)
        assert shape == its_shape
        if shape[2] is Layout.LONG:
            voted = [i for i, row in zip(ids, labels, strict=True) if (row != GONE).any()]
            assert order == sorted(voted)
            assert its_order == [i for i in order if i in set(its_order)]
            continue
        assert order == its_order == ids
        np.testing.assert_array_equal(counts, histograms(labels))
        np.testing.assert_array_equal(its_counts, histograms(fewer))


def test_the_first_query_keeps_its_place_when_the_first_teacher_skips_it(parquet):
    query, teacher = (axis.ravel() for axis in np.indices((10, 3)))
    by_teacher = np.argsort(teacher, kind="stable")
    table = pa.table({"query_id": query, "teacher_id": teacher, "label": query % 2})
    for kept in (by_teacher, by_teacher[1:]):
        with open_votes(parquet(table.take(kept)), teachers=3) as votes:
            (batch,) = votes.batches(limit=4)
        assert batch.ids.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("told", [Layout.COUNTS, None])
def test_a_row_of_no_votes_in_npy_counts(told, npy, drain):
    counts = np.array([[5, 0, 0], [1, 0, 0], [0, 0, 5], [0, 5, 0]])
    fewer = counts.copy()
    fewer[1, 0] = 0
    for values in (counts, fewer):
        np.testing.assert_array_equal(drain(npy(values), layout=told, teachers=5), values)
    nothing = np.zeros((2, 3), dtype=int)
    np.testing.assert_array_equal(drain(npy(nothing), layout=Layout.COUNTS, teachers=5), nothing)


def test_a_part_that_lacks_a_vote_may_hold_floats(parquet, drain, tmp_path):
    """Some writers have no other way to leave a gap in a column of numbers."""
    parquet({"teacher_0": [0, 1], "teacher_1": [1, 1]}, "parts/a.parquet")
    parquet({"teacher_0": [0, 1], "teacher_1": [1.0, None]}, "parts/b.parquet")
    np.testing.assert_array_equal(
        drain(tmp_path / "parts", teachers=2), [[1, 1], [0, 2], [1, 1], [0, 1]]
    )


def test_lists_of_whoever_voted_are_read_when_nobody_did():
    """Without a vote a column of lists has no type; one vote must not decide."""
    for labels in ([[], []], [[], [2]]):
        table = pa.table({"labels": pa.array(labels)})
        with open_votes(table, classes=3, teachers=5) as votes:
            (batch,) = votes.batches()
        assert batch.counts.sum() == sum(map(len, labels))
