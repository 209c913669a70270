"""Long form: a row a vote, in any order, is counted as if there were a row a query."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opened import by_hand, counts_of, read, refused
from pate_cli.core.arrays import DENSE_CLASSES, SparseCounts
from pate_cli.votes import checks, long
from pate_cli.votes.facts import TeacherGroups
from pate_cli.votes.opening import open_votes


def votes(rows):
    query, teacher, label = zip(*rows, strict=True)
    kind = pa.int64() if not any(isinstance(each, str) for each in label) else pa.string()
    return pa.table({"query_id": query, "teacher_id": teacher, "label": pa.array(label, kind)})


@pytest.fixture(params=[1, 2, 100])
def at_once(request, monkeypatch):
    monkeypatch.setattr(long, "VOTES_AT_ONCE", request.param)


@pytest.mark.usefixtures("at_once")
def test_queries_come_in_order_of_their_ids():
    rows = [("b", 1, 0), ("a", 2, 1), ("c", 1, 2), ("a", 1, 1), ("b", 2, 2), ("c", 2, 2)]
    file, ids, counts = read(votes(rows), batch_rows=2)
    assert ids == ["a", "b", "c"]
    np.testing.assert_array_equal(counts, [[0, 2, 0], [1, 0, 1], [0, 0, 2]])
    assert (file.queries, file.teachers, file.chunks, file.order) == (3, 2, (), "query_id")
    assert (file.portable, "queries" in file.facts.read_off) == (False, False)
    _, ids, counts = read(votes(rows), start=1, limit=1)
    assert (ids, counts.tolist()) == (["b"], [[1, 0, 1]])


@pytest.mark.parametrize("ids", [[10, -3, 9, 2**40], ["é", "9", "z", "10", "Z", ""]])
def test_numbers_are_ordered_as_numbers_and_texts_by_code_points(ids):
    ordered = sorted(ids)
    for column in (pa.array(ids), pa.array(ids).dictionary_encode()):
        columns = {"query_id": column, "teacher_id": [1] * len(ids), "label": range(len(ids))}
        _, found, counts = read(pa.table(columns))
        assert found == ordered
        assert [ids[label] for label in counts.argmax(axis=1)] == ordered


@pytest.mark.usefixtures("at_once")
def test_what_is_damaged_is_refused_by_row():
    def told(row, **options):
        table = votes([(5, 1, 0), (6, 1, 1), (5, 2, 1), (6, 2, 0), row])
        return refused(table, layout="long", **options)

    assert "row 4 has no 'query_id'" in told((None, 3, 0))
    assert "row 4 has no 'teacher_id'" in told((5, None, 0))
    assert "row 4 has an entry that is empty" in told((5, 3, None))
    assert "row 4 has a negative number" in told((5, 3, -1))
    assert "row 4 has a label outside 0..3" in told((5, 3, 4), classes=4)
    assert "row 4 has a label outside 0..65535" in told((5, 3, 70_000))
    assert "row 4 is a second vote of one teacher" in told((5, 1, 1))
    assert "row 0 is the first vote on a query that not all 3" in told((6, 3, 1))
    assert "has 3 teacher ids, but `teachers` is 2" in told((5, 3, 1), teachers=2)
    assert "only label 0" in refused(votes([(5, 1, 0), (5, 2, 0)]))


@pytest.mark.parametrize("classes", [6, DENSE_CLASSES + 7])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.usefixtures("at_once")
def test_votes_in_any_order_against_a_direct_count(classes, weighted):
    rng = np.random.default_rng(3)
    labels = rng.integers(-1, 6, size=(9, 7))
    order = rng.permutation(labels.size)
    query, teacher = order // 7, order % 7
    label = labels.ravel()[order]
    weights = rng.integers(1, 5, 7) if weighted else np.ones(7, dtype=int)
    groups = TeacherGroups(["a"] * 7, weights.tolist(), ids=[*range(7)]) if weighted else None
    expected = by_hand(labels, classes, weights)
    table = pa.table({"query_id": query, "teacher_id": teacher, "label": label})
    how = {"classes": classes, "teachers": 7, "groups": groups}
    present = table.filter(pa.array(label >= 0))
    for votes, more in ((table, {"batch_rows": 4}), (present, {"queries": [*range(9)]})):
        file, _, counts = read(votes, **how, **more)
        np.testing.assert_array_equal(counts, expected)
        assert file.teachers == weights.sum()
    with open_votes(table, **how) as file:
        (batch,) = file.batches()
    assert isinstance(batch.counts, SparseCounts) == (classes > DENSE_CLASSES)


def test_groups_name_every_teacher():
    table = votes([(5, "x", 0), (5, "y", 1)])
    groups = TeacherGroups(["a", "b"], [1, 4], ids=["y", "x"])
    np.testing.assert_array_equal(counts_of(table, groups=groups), [[4, 1]])
    others = TeacherGroups(["a", "b"], [1, 4], ids=["y", "z"])
    assert "row 0 is a vote of a teacher in none of `groups`" in refused(table, groups=others)
    nameless = TeacherGroups(["a", "b"], [1, 4])
    assert "teacher_id" in refused(table, groups=nameless)


@pytest.mark.usefixtures("at_once")
def test_a_list_of_queries_is_what_is_asked():
    table = votes([(5, 1, 0), (9, 1, 1), (5, 2, 1), (9, 2, 1)])
    for ids in ([9, 5, 7], np.array([9, 5, 7], dtype=np.uint8)):
        file, found, counts = read(table, teachers=2, classes=2, queries=ids, batch_rows=2)
        assert found == [9, 5, 7]
        assert (file.facts.read_off, file.order) == ((), "the list of queries")
        np.testing.assert_array_equal(counts, [[0, 2], [1, 1], [0, 0]])
    large = [2**60 + 1, 2**60 + 2]
    table_of_large = votes([(q, t, 1) for q in large for t in (1, 2)])
    for ids in (large, tuple(large), pd.Series(large), pd.Series(large, dtype=object)):
        assert read(table_of_large, queries=ids, teachers=2, classes=2)[1] == large
    assert read(table, queries=[9, 5])[1] == [9, 5]
    assert "query 0 of the list of queries" in refused(table, queries=[7, 9, 5])
    told = {"teachers": 2, "classes": 2}
    other = refused(table, queries=[7, 5], **told)
    assert "row 1 is a vote on a query that is not in `queries`" in other
    assert "are numbers, but `queries` has texts" in refused(table, queries=["five"], **told)


@pytest.mark.parametrize("told", [{}, {"teachers": 2}])
def test_where_votes_may_be_missing_the_queries_are_read_off_them(told):
    """Without a list, a query that nobody voted on is not there: the number is no public fact."""
    file, _, _ = read(votes([(5, 1, 0), (5, 2, 1)]), classes=2, **told)
    assert ("queries" in file.facts.read_off) == bool(told)


@pytest.mark.parametrize("ids", [[3, 5], ["a", "b"]])
def test_nobody_voted(ids, tmp_path):
    """A file without votes is the neighbour of one with a vote, and as good where all is public."""
    none = pa.array([], pa.array(ids).type)
    table = pa.table({"query_id": none, "teacher_id": none, "label": pa.array([], pa.int64())})
    pq.write_table(table, tmp_path / "v.parquet")
    public = {"classes": 3, "teachers": 4, "queries": ids}
    for source in (tmp_path / "v.parquet", table):
        _, found, counts = read(source, **public)
        assert found == ids
        assert counts.shape == (2, 3)
        assert not counts.any()
        for fact in public:
            told = {name: given for name, given in public.items() if name != fact}
            assert "has no rows" in refused(source, **told)
    texts = table.set_column(2, "label", pa.array([], pa.string()))
    with open_votes(texts, any_name=True, teachers=4, queries=ids) as file:
        (batch,) = file.batches()
    assert batch.counts.voted.tolist() == [0, 0]


def test_what_does_not_fit_in_memory_is_refused_before_it_is_counted(monkeypatch):
    """Histograms and who voted on what are held at once, so their size has a limit."""
    monkeypatch.setattr(long, "MOST_BYTES", 100)
    rows = [(query, teacher, query % 2) for query in range(9) for teacher in range(2)]
    assert "9 queries, 2 teachers and 2 classes need more than 0.5 GB" in refused(votes(rows))
    assert "store one row per query" in refused(votes(rows), classes=DENSE_CLASSES + 1)


def test_more_teachers_than_there_may_be(monkeypatch):
    monkeypatch.setattr(checks, "MOST_TEACHERS", 3)
    many = "has more than 3 teachers, which is the limit"
    assert many in refused(votes([(0, teacher, 1) for teacher in range(4)]), classes=2)
    assert many in refused([[1, 3]], layout="counts")
