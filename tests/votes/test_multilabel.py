"""Several labels a query: pairs of a query and a label, yes or no each, from every container."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opened import by_hand, counts_of, read, refused
from pate_cli.core.arrays import LabelSet
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.votes.facts import TeacherGroups
from pate_cli.votes.opening import open_votes

QUERIES, TEACHERS, LABELS = 24, 6, 3
TOLD = {"teachers": TEACHERS}
COUNTS, VOTES = {"layout": "multilabel-counts"}, {"layout": "multilabel"}


@pytest.fixture
def ballots():
    return np.random.default_rng(8).integers(0, 2, (QUERIES, TEACHERS, LABELS))


def pairs_of(ballots, weights=None):
    """(no, yes) of every query and label, one vote at a time; -1 is none."""
    by_pair = np.swapaxes(ballots, 1, 2).reshape(-1, ballots.shape[1])
    return by_hand(by_pair.astype(int), 2, weights)


@pytest.mark.parametrize("batch_rows", [None, 1, 4, 1000])
@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float32])
def test_every_layout_gives_the_same_pairs(ballots, kind, batch_rows, tmp_path):
    expected = pairs_of(ballots)
    yes, both = ballots.sum(axis=1), expected.reshape(QUERIES, LABELS, 2)
    named = pa.table({f"l{label}": yes[:, label] for label in range(LABELS)})
    np.save(tmp_path / "v.npy", ballots.astype(kind))
    pq.write_table(named, tmp_path / "v.parquet")
    turned = np.ascontiguousarray(ballots.transpose(1, 0, 2)).astype(kind)
    sources = [
        (tmp_path / "v.npy", VOTES),
        (ballots.astype(kind), VOTES),
        (turned, {"layout": "multilabel-by-teacher"}),
        (yes.astype(kind), {**COUNTS, **TOLD}),
        (both.astype(kind), COUNTS),
        (both.astype(kind), {**COUNTS, **TOLD}),
        (tmp_path / "v.parquet", {**COUNTS, **TOLD}),
        (pa.table({"c": yes.tolist()}), {**COUNTS, **TOLD}),
    ]
    for source, options in sources:
        file, ids, counts = read(source, batch_rows=batch_rows, **options)
        np.testing.assert_array_equal(counts, expected)
        assert ids == [query for query in range(QUERIES) for _ in range(LABELS)]
        assert (file.queries, file.classes, file.teachers) == (QUERIES * LABELS, 2, TEACHERS)
        assert file.facts.label_set is not None
        assert file.facts.label_set.count == file.rows_per_query == LABELS
        assert sum(file.chunks) in (0, file.queries)


def test_ranges_never_cut_a_query(ballots):
    expected = pairs_of(ballots)
    with open_votes(ballots, **VOTES) as file:
        copy = pickle.loads(pickle.dumps(file))  # noqa: S301 - our own
        ranges = file.ranges(limit=60, entries=40)
        assert all(start % LABELS == 0 == stop % LABELS for start, stop in ranges)
        parts = [b.counts for a, z in ranges for b in copy.batches(start=a, limit=z - a)]
        np.testing.assert_array_equal(np.concatenate(parts), expected[:60])
        odd = np.concatenate([b.counts for b in file.batches(start=4, limit=7)])
        np.testing.assert_array_equal(odd, expected[4:11])


def test_true_is_yes(ballots, tmp_path):
    truths = ballots == 1
    np.save(tmp_path / "v.npy", truths)
    for source in (tmp_path / "v.npy", truths, truths.tolist()):
        np.testing.assert_array_equal(counts_of(source, **VOTES), pairs_of(ballots))
        assert read(source, **VOTES, label_names="a,b,c")[0].classes == 2
    found = counts_of(np.swapaxes(truths, 0, 1), layout="multilabel-by-teacher")
    np.testing.assert_array_equal(found, pairs_of(ballots))
    assert "true and false" in refused(truths[:, 0], **COUNTS, **TOLD)


def test_names_of_labels(ballots):
    file, _, _ = read(ballots, **VOTES, label_names="a,b,c")
    assert file.facts.label_set == LabelSet(3, names=("a", "b", "c"))
    assert (file.classes, file.names) == (2, None)
    two = refused(ballots, **VOTES, label_names="a,b")
    assert "the 3 labels of the votes differ from the 2 `label_names`" in two
    table = pa.table({"query_id": ["q", "r"], "b": [1, 1], "a": [0, 2]})
    file, ids, counts = read(table, **COUNTS, teachers=2)
    assert file.facts.label_set.names == ("b", "a")
    assert ids == ["q", "q", "r", "r"]
    assert counts.tolist() == [[1, 1], [2, 0], [1, 1], [0, 2]]
    _, _, counts = read(table, **COUNTS, teachers=2, label_names=["a", "b"])
    assert counts.tolist() == [[2, 0], [1, 1], [0, 2], [1, 1]]
    other = refused(table, **COUNTS, teachers=2, label_names=["a", "c"])
    assert "`label_names`; give one name per label, in order" in other


def test_missing_votes(ballots):
    votes = ballots.astype(float)
    votes[2, 1, 0] = np.nan
    votes[3, :, 2] = -1
    expected = pairs_of(np.nan_to_num(votes, nan=-1))
    for array in (votes, votes.astype(np.float32)):
        np.testing.assert_array_equal(read(array, **VOTES, **TOLD)[2], expected)
    assert "row 2 has an entry that is empty, NaN" in refused(votes, **VOTES)
    both = pairs_of(ballots).reshape(QUERIES, LABELS, 2)
    both[1, 1] = [2, 0]
    np.testing.assert_array_equal(read(both, **COUNTS, **TOLD)[2], both.reshape(-1, 2))


def test_weights(ballots):
    groups = TeacherGroups(["a"] * 2 + ["b"] * 4, [2, 2, 1, 1, 3, 1])
    expected = pairs_of(ballots, groups.weights)
    file, _, counts = read(ballots, **VOTES, groups=groups)
    np.testing.assert_array_equal(counts, expected)
    assert file.teachers == 10
    sums = ballots.sum(axis=1)
    said = refused(sums, UsageError, **COUNTS, **TOLD, groups=groups)
    assert "the vote of each teacher" in said


ZEROS = np.zeros((QUERIES, TEACHERS, LABELS), dtype=np.int64)
YES = np.ones((QUERIES, LABELS), dtype=np.int64)
BOTH = np.full((QUERIES, LABELS, 2), 3)
COUNTED = COUNTS | TOLD
REFUSED = [
    (ZEROS, (4, 1, 2), 2, VOTES | TOLD, "row 4 has a label outside 0..1"),
    (ZEROS, (4, 1, 2), 0.7, VOTES | TOLD, "row 4 has a fractional number"),
    (ZEROS, (4, 1, 2), np.inf, VOTES | TOLD, "row 4 has an entry that is empty, NaN or infinite"),
    (ZEROS, (4, 1, 2), -2, VOTES | TOLD, "row 4 has a negative number"),
    (ZEROS[:4], (), 0, VOTES, "6 teachers and 4 queries"),
    (ZEROS, (), 0, VOTES | {"teachers": 24}, "rows and columns are exchanged"),
    (ZEROS, (), 0, VOTES | {"teachers": 7}, "the votes have 6 teachers, but `teachers` is 7"),
    (YES, (), 1, VOTES, "votes need three dimensions"),
    (ZEROS[:, :, :0], (), 0, VOTES, "no dimension of size 0"),
    (YES, (), 1, COUNTS, "do not show how many teachers said no"),
    (YES, (7, 1), 7, COUNTED, "row 7 has more than 6 votes, but `teachers` is 6"),
    (YES, (7, 1), -1, COUNTED, "row 7 has a negative number"),
    (YES, (7, 1), np.nan, COUNTED, "row 7 has an entry that is empty, NaN"),
    (BOTH[:, :, :1], (), 3, COUNTS, "the last dimension must have two entries"),
    (BOTH, (5, 2, 1), 4, COUNTS, "row 5 is the first row whose number of votes differs"),
    (BOTH, (5, 2, 1), 4, COUNTED, "row 5 has more than 6 votes, but `teachers` is 6"),
    (BOTH, (0, 0), 0, COUNTS, "row 0 has no votes at all"),
]


@pytest.mark.parametrize(("array", "place", "value", "options", "text"), REFUSED)
def test_what_is_refused(array, place, value, options, text):
    changed = array.astype(np.result_type(array, np.asarray(value)))
    changed[place] = value
    assert text in refused(changed, **options)


def test_classes_are_no_and_yes(ballots):
    assert "`classes` is 3" in refused(ballots, ParameterError, **VOTES, classes=3)
    assert read(ballots, **VOTES, classes=2)[0].classes == 2
