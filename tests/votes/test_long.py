from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pate_cli.core.errors import ParameterError, UsageError, VoteError
from pate_cli.votes import Layout, open_votes
from pate_cli.votes.layouts import long


def votes(rows):
    query, teacher, label = zip(*rows, strict=True)
    return {
        "query_id": pa.array(query),
        "teacher_id": pa.array(teacher),
        "label": pa.array(label, pa.int64()),
    }


def test_queries_come_in_order_of_their_ids(parquet, monkeypatch):
    rows = [("b", 1, 0), ("a", 2, 1), ("c", 1, 2), ("a", 1, 1), ("b", 2, 2), ("c", 2, 2)]
    for size in (1, 2, 5, 100):
        monkeypatch.setattr(long, "VOTES_AT_ONCE", size)
        with open_votes(parquet(votes(rows)), batch_rows=2) as file:
            assert (file.queries, file.classes, file.teachers) == (3, 3, 2)
            assert file.layout is Layout.LONG
            first, second = file.batches()
            assert (first.ids, second.ids) == (("a", "b"), ("c",))
            assert (first.first_row, second.first_row) == (0, 2)
            np.testing.assert_array_equal(first.counts, [[0, 2, 0], [1, 0, 1]])
            assert [len(b.counts) for b in file.batches(limit=1)] == [1]


def test_numbers_are_ordered_as_numbers_and_texts_by_code_points(parquet):
    for ids, ordered in (
        ([10, -3, 9, 2**40], [-3, 9, 10, 2**40]),
        (["é", "9", "z", "10", "Z", ""], ["", "10", "9", "Z", "z", "é"]),
    ):
        for kind in (pa.array(ids), pa.array(ids).dictionary_encode()):
            rows = {"query_id": kind, "teacher_id": [1] * len(ids), "label": range(len(ids))}
            with open_votes(parquet(pa.table(rows))) as file:
                (batch,) = file.batches()
            assert list(batch.ids) == ordered
            assert [ids[label] for label in batch.counts.argmax(axis=1)] == ordered


def test_what_is_said_of_the_rows(parquet):
    path = parquet(votes([(5, 1, 0), (5, 2, 1)]))
    with open_votes(path, classes=2) as file:
        assert (file.rows_from_data, file.teachers_from_data) == (False, True)
        assert file.describe() == (
            f"{path}: 1 queries x 2 classes, 2 teachers, layout long (inferred), in order of "
            "query_id"
        )
    with open_votes(path, classes=2, teachers=2) as file:
        assert (file.rows_from_data, file.teachers_from_data) == (True, False)
        assert file.describe().endswith(
            "in order of query_id; queries without any vote are not known"
        )


def test_the_first_row_of_an_incomplete_query_is_named(parquet, refusal):
    rows = [(9, 1, 0), (3, 1, 0), (5, 1, 1), (5, 2, 0)]
    assert refusal(parquet(votes(rows))).startswith("v.parquet: row 0 is the first vote of a query")


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_teacher_votes_once_per_query(size, parquet, refusal, monkeypatch):
    monkeypatch.setattr(long, "VOTES_AT_ONCE", size)
    rows = [(5, 1, 0), (6, 1, 1), (6, 2, 1), (5, 1, 1), (5, 2, 0), (6, 2, 0)]
    assert refusal(parquet(votes(rows))) == (
        "v.parquet: row 3 is a second vote of the same teacher on the same query; keep one"
    )


def test_absent_votes(parquet, refusal, drain):
    path = parquet(votes([(5, 1, 0), (6, 1, 1), (5, 2, 0), (6, 2, 1), (5, 3, 1)]))
    assert refusal(path) == (
        "v.parquet: row 1 is the first vote of a query that not all 3 teachers voted on; "
        "if teachers may be missing, give `teachers` N"
    )
    np.testing.assert_array_equal(drain(path, teachers=3), [[2, 1], [0, 2]])
    with open_votes(path, teachers=8, classes=4) as file:
        assert (file.teachers, file.classes) == (8, 4)
    assert refusal(path, teachers=2) == "v.parquet: has 3 teacher ids, more than `teachers` 2"


@pytest.mark.parametrize("size", [1, 100])
def test_bad_rows(size, parquet, refusal, monkeypatch):
    monkeypatch.setattr(long, "VOTES_AT_ONCE", size)

    def told(row, **options):
        return refusal(parquet(votes([(5, 1, 0), (5, 2, 1), row])), layout=Layout.LONG, **options)

    assert told((None, 3, 0)) == "v.parquet: row 2 has no query_id"
    assert told((5, None, 0)) == "v.parquet: row 2 has no teacher_id"
    assert told((5, 3, None)) == "v.parquet: row 2 has no label"
    assert told((5, 3, -1)).startswith("v.parquet: row 2 has a negative number")
    assert told((5, 3, 4), classes=4).startswith("v.parquet: row 2 has a label outside 0..3")
    assert told((5, 3, 70_000)).startswith("v.parquet: row 2 has a label outside 0..65535")


def test_only_one_label(parquet, refusal):
    assert refusal(parquet(votes([(5, 1, 0), (5, 2, 0)]))) == (
        "v.parquet: only label 0 occurs; give `classes`"
    )


def test_many_votes_in_any_order_against_a_direct_count(parquet, drain, monkeypatch):
    monkeypatch.setattr(long, "VOTES_AT_ONCE", 1000)
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 6, size=(83, 61))
    order = rng.permutation(labels.size)
    query, teacher = order // 61, order % 61
    path = parquet({"query_id": query, "teacher_id": teacher, "label": labels.ravel()[order]})
    expected = np.stack([(labels == c).sum(axis=1) for c in range(6)], axis=1)
    np.testing.assert_array_equal(drain(path), expected)


@pytest.mark.parametrize("size", [1, 2, 100])
def test_a_list_of_queries(size, parquet, refusal, read, monkeypatch):
    """Its ids in its order; nobody voted on the third, and that is no reason to leave it out."""
    monkeypatch.setattr(long, "VOTES_AT_ONCE", size)
    rows = [(5, 1, 0), (9, 1, 1), (5, 2, 1), (9, 2, 1)]
    path = parquet(votes(rows))
    for ids in ([9, 5, 7], np.array([9, 5, 7], dtype=np.uint8)):
        file, found, counts = read(path, teachers=2, classes=2, queries=ids, batch_rows=2)
        assert found == [9, 5, 7]
        assert (file.queries, file.rows_from_data, file.read_off) == (3, False, ())
        assert file.describe().endswith("in order of the list of queries")
        np.testing.assert_array_equal(counts, [[0, 2], [1, 1], [0, 0]])
    _, found, _ = read(path, queries=[9, 5])
    assert found == [9, 5]
    assert refusal(path, queries=[7, 9, 5]) == (
        "v.parquet: nobody voted on the query of row 0 of the list of queries; "
        "if teachers may be missing, give `teachers` N"
    )
    assert refusal(path, teachers=2, queries=[7, 5]) == (
        "v.parquet: row 1 is a vote on a query that is not in the list of queries"
    )


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["5"], "the votes name queries by numbers, the list of queries by texts"),
        ([5, 6, 5], "the list of queries: the query id of row 2 is that of row 0, too"),
        ([5, "6"], "the list of queries must hold whole numbers, or texts, one a row"),
        ([], "the list of queries must hold whole numbers, or texts, one a row"),
        ([5.0], "the list of queries must hold whole numbers, or texts, one a row"),
        ([True], "the list of queries must hold whole numbers, or texts, one a row"),
        ([5, 2**63], "the list of queries: row 1 is above 2^63 - 1"),
    ],
)
def test_what_is_no_list_of_queries(ids, message, parquet, refusal):
    path = parquet(votes([(5, 1, 0), (5, 2, 1)]))
    assert refusal(path, teachers=2, classes=2, queries=ids) == message


def test_texts_are_not_named_by_numbers(parquet, refusal):
    path = parquet(votes([("5", 1, 0), ("5", 2, 1)]))
    assert refusal(path, teachers=2, classes=2, queries=[5]) == (
        "the votes name queries by texts, the list of queries by numbers"
    )


def test_a_list_of_queries_is_given_where_votes_are_opened(parquet, npy):
    with (
        open_votes(parquet(votes([(5, 1, 0), (5, 2, 1)])), queries=[5]) as file,
        pytest.raises(ParameterError, match="is open already"),
        open_votes(file, queries=[5]),
    ):
        pass
    with (
        pytest.raises(UsageError, match="`queries` goes with `layout` long"),
        open_votes(npy([[3, 4], [5, 2]]), queries=[0, 1]),
    ):
        pass


@pytest.mark.parametrize("ids", [[3, 5], ["a", "b"]])
def test_nobody_voted(parquet, ids):
    """The neighbour of a file in which one teacher voted alone, hence as good as that."""
    column = pa.array(ids[:0], pa.array(ids).type)
    nothing = {"query_id": column, "teacher_id": pa.array([], pa.int64())}
    path = parquet(nothing | {"label": pa.array([], pa.int64())})
    public = {"classes": 3, "teachers": 4, "queries": ids}
    for source in (path, pq.read_table(path)):
        with open_votes(source, **public) as votes:
            (batch,) = votes.batches()
        assert list(batch.ids) == ids
        assert not batch.counts.any()
        assert batch.counts.shape == (2, 3)
        for fact in public:
            told = {name: given for name, given in public.items() if name != fact}
            with pytest.raises(VoteError, match="has no rows"), open_votes(source, **told):
                pass
