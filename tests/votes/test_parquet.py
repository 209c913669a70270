from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pate_cli.votes import Layout, open_votes

TWO = {"class_0": [2, 1], "class_1": [1, 2]}


@pytest.mark.parametrize("keep", [4, 8, 60, -1, -8])
def test_truncated(keep, parquet, refusal):
    path = parquet(TWO)
    path.write_bytes(path.read_bytes()[:keep])
    assert refusal(path) == "v.parquet: the Parquet file is truncated or damaged"


def test_damaged_pages(parquet, refusal):
    rng = np.random.default_rng(0)
    counts = rng.multinomial(1000, np.ones(2) / 2, size=20_000)
    path = parquet({"class_0": counts[:, 0], "class_1": counts[:, 1]}, use_dictionary=False)
    raw = bytearray(path.read_bytes())
    raw[4:2000] = bytes(1996)
    path.write_bytes(bytes(raw))
    assert refusal(path) == "v.parquet: the Parquet file is truncated or damaged"


def test_no_rows(parquet, refusal):
    empty = pa.array([], pa.int64())
    assert refusal(parquet({"class_0": empty, "class_1": empty})) == "v.parquet: has no rows"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array(["1", "2"]), "text"),
        (pa.array([True, False]), "bool"),
        (pa.array([1, 2], pa.date32()), "date32[day]"),
        (pa.array([1, 2], pa.timestamp("s")), "timestamp[ms]"),
        (pa.array([{"a": 1}, {"a": 2}]), "struct<a: int64>"),
    ],
)
def test_columns_of_the_wrong_type(values, kind, parquet, refusal):
    assert refusal(parquet({"cat": [2, 1], "dog": values})) == (
        f"v.parquet: column 'dog' is {kind}; votes are integers: drop it, give `id_column` 'dog' "
        "if it names the queries, and keep one integer column per class"
    )


def test_lists_of_the_wrong_type(parquet, refusal):
    path = parquet({"v": [["a", "b"], ["c", "d"]]})
    assert refusal(path) == (
        "v.parquet: column 'v' holds texts; if they are votes, give `label_names`"
    )


@pytest.mark.parametrize("layout", [None, Layout.COUNTS])
def test_bad_rows_in_class_columns(layout, parquet, refusal):
    def told(first):
        column = {"class_0": first, "class_1": pa.array([1] * len(first), pa.int64())}
        return refusal(parquet(column), layout=layout)

    null = "has a null; fill it in, or give `teachers` N if the file holds labels and teachers"
    assert told([2, 2, None]).startswith(f"v.parquet: row 2 {null}")
    assert told([2, -2, 2]).startswith("v.parquet: row 1 has a negative number")
    assert told([2, 2.5, 2]).startswith("v.parquet: row 1 has a fractional number")
    assert told([2.0, float("nan"), 2]).startswith("v.parquet: row 1 has NaN or infinity")
    assert told([0.2, 0.3]).startswith("v.parquet: row 0 has a fractional number")


def test_bad_rows_in_lists(parquet, refusal):
    def told(rows, layout=Layout.COUNTS, **options):
        return refusal(
            parquet({"v": pa.array(rows, pa.list_(pa.int64()))}), layout=layout, **options
        )

    ragged = "is the first whose list is not as long as row 0's"
    assert told([[1, 2], [2, 1], [1, 1, 1]]).startswith(f"v.parquet: row 2 {ragged}")
    assert told([[1, 2], [3]], teachers=3).startswith(f"v.parquet: row 1 {ragged}")
    assert told([[1, 2], None]) == "v.parquet: row 1 has a null instead of a list"
    assert told([None, [1, 2]]) == "v.parquet: row 0 has a null instead of a list"
    assert told([[], [1, 2]]) == "v.parquet: row 0 has no entries"
    assert told([[1, 2], [1, None]], teachers=9).startswith("v.parquet: row 1 has a null; fill")
    labels = Layout.LABELS
    assert told([[1, 0], [1, None]], labels).startswith("v.parquet: row 1 has a null; fill it in")
    assert told([[1, 0], []], labels).startswith(f"v.parquet: row 1 {ragged}")
    assert told([[], [1, 2]], labels) == "v.parquet: row 0 has no entries"
    assert told([[], [1, 2]], teachers=9) == "v.parquet: row 0 has no entries"
    assert told([[1, 0], [1, 1, 1]], labels, teachers=2) == (
        "v.parquet: row 1 has more entries than `teachers` 2"
    )


@pytest.mark.parametrize("texts", [False, True])
def test_query_ids_are_unique_and_present(texts, parquet, refusal):
    def told(ids):
        values = [None if i is None else f"q{i}" for i in ids] if texts else ids
        return refusal(parquet({"query_id": values, "class_0": [1] * 4, "class_1": [2] * 4}))

    assert told([7, 8, 7, 8]) == "v.parquet: row 2 repeats the query_id of an earlier row"
    assert told([7, 8, None, 9]) == "v.parquet: row 2 has no query_id"


def test_query_ids_of_other_types(parquet, refusal, drain):
    votes = {"class_0": [1, 1], "class_1": [2, 2]}
    assert refusal(parquet({"query_id": [1.0, 2.0], **votes})) == (
        "v.parquet: column 'query_id' is float; use integers or strings"
    )
    huge = pa.array([1, 2**63], pa.uint64())
    assert (
        refusal(parquet({"query_id": huge, **votes})) == "v.parquet: row 1 has an id above 2^63 - 1"
    )
    with open_votes(parquet({"query_id": pa.array(["x", "y"]).dictionary_encode(), **votes})) as v:
        assert next(v.batches()).ids == ("x", "y")


def test_query_ids_that_are_not_text(parquet, refusal):
    ids = pa.array([b"a", b"\xff"], pa.binary()).view(pa.string())
    path = parquet({"query_id": ids, **TWO})
    assert refusal(path) == "v.parquet: row 1 has an id that is not UTF-8 text"


def test_parts_must_agree(parquet, refusal, tmp_path):
    parts = tmp_path / "parts"
    first = {"class_0": [2, 1], "class_1": [1, 2]}
    for second, text in [
        (
            {**first, "class_2": [0, 0]},
            "has 3 vote columns, the first part has 2; parts must agree",
        ),
        (
            {"counts": [[2, 1], [1, 2]]},
            "has 1 vote columns, the first part has 2; parts must agree",
        ),
        (
            {"votes_0": [2, 1], "votes_1": [1, 2]},
            "its columns differ in name, order or type from the first part's",
        ),
        (
            {"query_id": [1, 2], **first},
            "its columns differ in name, order or type from the first part's",
        ),
    ]:
        parquet(first, "parts/a.parquet")
        parquet(second, "parts/b.parquet")
        assert refusal(parts) == f"parts/b.parquet: {text}"


def test_types_of_ids_must_agree_between_parts(parquet, refusal, tmp_path):
    parquet({"query_id": [1, 2], **TWO}, "parts/a.parquet")
    parquet({"query_id": ["3", "4"], **TWO}, "parts/b.parquet")
    assert refusal(tmp_path / "parts") == (
        "parts/b.parquet: its columns differ in name, order or type from the first part's"
    )


def test_list_lengths_must_agree_between_parts(parquet, refusal, tmp_path):
    parquet({"counts": [[2, 1], [1, 2]]}, "parts/a.parquet")
    parquet({"counts": [[2, 1, 0], [1, 2, 0]]}, "parts/b.parquet")
    assert refusal(tmp_path / "parts").startswith("parts: row 2 is the first whose list is not as")


def test_widths_of_numbers_may_differ_between_parts(parquet, drain, tmp_path):
    for name, kind in (("a", pa.int8()), ("b", pa.uint32()), ("c", pa.float64())):
        table = {c: pa.array(v, kind) for c, v in TWO.items()}
        parquet(table, f"parts/{name}.parquet")
    np.testing.assert_array_equal(drain(tmp_path / "parts"), [[2, 1], [1, 2]] * 3)


def test_only_the_vote_columns_are_read(parquet, monkeypatch):
    from pate_cli.votes.sources.table import VoteTable

    asked = []
    whole = VoteTable.batches

    def batches(self, size, columns, *rows):
        asked.append(list(columns))
        return whole(self, size, columns, *rows)

    monkeypatch.setattr(VoteTable, "batches", batches)
    path = parquet({"counts": [[2, 1], [1, 2]], "note": ["a", "b"], "true_label": [0, 1]})
    with open_votes(path) as votes:
        list(votes.batches())
    assert {name for names in asked for name in names} == {"counts"}


def test_memory_is_bounded_by_the_batch(tmp_path):
    """40 parts of 20,000 rows: Arrow never holds much more than one part's batch."""
    counts = np.random.default_rng(1).multinomial(250, np.ones(10) / 10, size=20_000)
    table = pa.table({f"class_{c}": counts[:, c] for c in range(10)})
    for part in range(40):
        pq.write_table(table, tmp_path / f"{part:02}.parquet")
    del table
    before = pa.total_allocated_bytes()
    highest = 0
    with open_votes(tmp_path, batch_rows=4000) as votes:
        assert votes.queries == 800_000
        for batch in votes.batches():
            assert len(batch.counts) <= 4000
            highest = max(highest, pa.total_allocated_bytes() - before)
    assert highest < 8 * counts.nbytes
    assert highest < 40 * counts.nbytes / 5
