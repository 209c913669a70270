"""Several labels a query: pairs, sets of labels, ranges that keep queries whole, refusals."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from advice import FRACTION, MISSING, NO_VOTES
from graphs import votes_apart
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.label_set import LabelSet
from pate_cli.votes import open_votes
from pate_cli.votes.groups import TeacherGroups
from pate_cli.votes.ranges import Stretch, cut
from refusals import refusal as refused
from slices import some, tries

QUERIES, TEACHERS, LABELS = 24, 6, 3


@pytest.fixture
def ballots():
    return np.random.default_rng(8).integers(0, 2, (QUERIES, TEACHERS, LABELS))


def pairs_of(ballots):
    """(no, yes) of every query and label, one vote at a time; -1 is none."""
    queries, _, labels = ballots.shape
    found = np.zeros((queries * labels, 2), dtype=np.int64)
    for query, teachers in enumerate(ballots):
        for teacher in teachers:
            for label, vote in enumerate(teacher):
                if vote >= 0:
                    found[query * labels + label, int(vote)] += 1
    return found


@pytest.mark.parametrize("batch_rows", [None, 1, 4, 6, 1000])
@pytest.mark.parametrize("kind", some([np.int64, np.uint8, np.bool_, np.float32], 3))
def test_every_layout_gives_the_same_pairs(ballots, kind, batch_rows, npy, parquet, read):
    expected = pairs_of(ballots)
    yes, both = ballots.sum(axis=1), expected.reshape(QUERIES, LABELS, 2)
    turned = np.ascontiguousarray(ballots.transpose(1, 0, 2))
    named = {f"l{label}": yes[:, label] for label in range(LABELS)}
    sources = [
        (npy(ballots.astype(kind), "a.npy"), {"layout": "multilabel"}),
        (ballots.astype(kind), {"layout": "multilabel"}),
        (npy(turned.astype(kind), "b.npy"), {"layout": "multilabel-by-teacher"}),
    ]
    if kind is not np.bool_:
        counts = {"layout": "multilabel-counts"}
        sources += [
            (npy(yes.astype(kind), "c.npy"), {**counts, "teachers": TEACHERS}),
            (npy(both.astype(kind), "d.npy"), counts),
            (npy(both.astype(kind), "d.npy"), {**counts, "teachers": TEACHERS}),
            (parquet(named), {**counts, "teachers": TEACHERS}),
            (parquet({"c": yes.tolist()}, "l.parquet"), {**counts, "teachers": TEACHERS}),
            (pa.table(named), {**counts, "teachers": TEACHERS}),
        ]
    for source, options in sources:
        file, ids, counts = read(source, batch_rows=batch_rows, **options)
        np.testing.assert_array_equal(counts, expected)
        assert ids == [query for query in range(QUERIES) for _ in range(LABELS)]
        assert (file.queries, file.classes, file.teachers) == (QUERIES * LABELS, 2, TEACHERS)
        assert file.label_set is not None
        assert file.label_set.count == file.rows_per_query == LABELS
        assert not file.classes_from_data


def test_what_is_said_of_the_file(ballots, npy, parquet):
    with open_votes(npy(ballots), layout="multilabel") as file:
        assert file.describe().endswith(
            "24 queries x 3 labels = 72 pairs, yes or no each, 6 teachers, layout multilabel "
            "(as told)"
        )
    table = parquet({"query_id": ["q", "r"], "mild": [1, 0], "severe": [0, 3]})
    with open_votes(table, layout="multilabel-counts", teachers=4) as file:
        assert file.label_names == ("mild", "severe")
        assert file.label_set == LabelSet(2, names=("mild", "severe"))
        (batch,) = file.batches()
        assert batch.ids == ("q", "q", "r", "r")
        assert batch.counts.tolist() == [[3, 1], [4, 0], [4, 0], [1, 3]]


def test_names_of_labels(ballots, npy, parquet, refusal):
    names = {"layout": "multilabel", "label_names": "a,b,c"}
    with open_votes(npy(ballots), **names) as file:
        assert file.label_set == LabelSet(3, names=("a", "b", "c"))
        assert file.classes == 2
    assert refusal(npy(ballots), layout="multilabel", label_names="a,b") == (
        "v.npy: has 3 labels, but 2 `label_names`"
    )
    table = parquet({"b": [1, 1], "a": [0, 2]})
    with open_votes(table, layout="multilabel-counts", teachers=2, label_names=["a", "b"]) as file:
        (batch,) = file.batches()
        assert batch.counts.tolist() == [[2, 0], [1, 1], [0, 2], [1, 1]]  # columns by their names
    assert refusal(table, layout="multilabel-counts", teachers=2, label_names=["a", "c"]) == (
        "v.parquet: the columns and `label_names` do not name the same labels in the same order"
    )


def test_missing_votes(ballots, read, refusal):
    votes = ballots.astype(float)
    votes[2, 1, 0] = np.nan
    votes[3, :, 2] = -1
    expected = pairs_of(np.nan_to_num(votes, nan=-1))
    for array in (votes, votes.astype(np.float32)):
        _, _, counts = read(array, layout="multilabel", teachers=TEACHERS)
        np.testing.assert_array_equal(counts, expected)
    assert expected[3 * LABELS + 2].tolist() == [0, 0]
    odd = "a vote that is neither 0 nor 1; turn scores into yes or no first"
    assert refusal(votes, layout="multilabel") == (
        f"array: row 2, label 0 has {odd}, and give `teachers` N if -1 or NaN is none"
    )
    both = pairs_of(ballots).reshape(QUERIES, LABELS, 2)
    both[1, 1] = [2, 0]
    _, _, counts = read(both, layout="multilabel-counts", teachers=TEACHERS)
    np.testing.assert_array_equal(counts, both.reshape(-1, 2))


def with_entry(array, place, value):
    found = np.array(array, dtype=float if isinstance(value, float) else None)
    found[place] = value
    return found


ZEROS = np.zeros((QUERIES, TEACHERS, LABELS), dtype=np.int64)
YES = np.ones((QUERIES, LABELS), dtype=np.int64)
BOTH = np.full((QUERIES, LABELS, 2), 3)
ODD = "a vote that is neither 0 nor 1; turn scores into yes or no first"
ENTRY = "an entry that is no count of votes"
TOLD = {"teachers": TEACHERS}
COUNTS = {"layout": "multilabel-counts"}
REFUSED = [
    (with_entry(ZEROS, (4, 1, 2), 2), TOLD, f"row 4, label 2 has {ODD}"),
    (with_entry(ZEROS, (4, 1, 2), 0.7), TOLD, f"row 4, label 2 has {ODD}"),
    (with_entry(ZEROS, (4, 1, 2), np.inf), TOLD, f"row 4, label 2 has {ODD}"),
    (with_entry(ZEROS, (4, 1, 2), -2), TOLD, f"row 4, label 2 has {ODD}"),
    (
        ZEROS[:4],
        {},
        "as multilabel an array of shape (4, 6, 3) has 6 teachers and only 4 queries, "
        "as multilabel-by-teacher 4 teachers and 6 queries; give `teachers` N to settle it",
    ),
    (
        ZEROS,
        {"teachers": 24},
        "with `teachers` 24 an array of shape (24, 6, 3) is `layout` "
        "multilabel-by-teacher, not multilabel",
    ),
    (
        ZEROS,
        {"teachers": 7},
        "as multilabel it has 6 teachers, but `teachers` 7; one who is missing is NaN throughout",
    ),
    (YES, {}, "the array has shape (24, 3); layout multilabel needs [queries, teachers, labels]"),
    (ZEROS[:, :, :0], {}, "the array has an empty side (shape (24, 6, 0))"),
    (ZEROS.astype(complex), {}, "the array holds complex numbers; votes are stored as integers"),
    (YES, COUNTS, "counts of yes do not tell how many teachers said no; give `teachers` N"),
    (
        with_entry(YES, (7, 1), 7),
        COUNTS | TOLD,
        "row 7, label 1 has more votes for yes than `teachers` 6",
    ),
    (with_entry(YES, (7, 1), -1), COUNTS | TOLD, "row 7, label 1 has no count of yes"),
    (with_entry(YES, (7, 1), np.nan), COUNTS | TOLD, "row 7, label 1 has no count of yes"),
    (
        with_entry(YES, (7, 1), 1.5),
        COUNTS | TOLD,
        f"row 7 {FRACTION}",
    ),
    (
        YES.astype(bool),
        COUNTS | TOLD,
        "the array holds true/false values; under layout multilabel-counts votes are numbers; "
        "convert it first, as by astype('uint8')",
    ),
    (
        BOTH[:, :, :1],
        COUNTS,
        "the array has shape (24, 3, 1); its last side must be 2, the counts of no and of yes",
    ),
    (
        with_entry(BOTH, (5, 2, 1), 4),
        COUNTS,
        f"row 5, label 2 has another total than the first pair. {MISSING}",
    ),
    (
        with_entry(BOTH, (5, 2, 1), 4),
        COUNTS | TOLD,
        "row 5, label 2 has more votes than `teachers` 6",
    ),
    (with_entry(BOTH, (5, 2, 1), -1), COUNTS | TOLD, f"row 5, label 2 has {ENTRY}"),
    (with_entry(BOTH, (5, 2, 1), np.nan), COUNTS | TOLD, f"row 5, label 2 has {ENTRY}"),
    (with_entry(BOTH, (5, 2, 1), 0.5), COUNTS, f"row 5, label 2 has {ENTRY}"),
    (with_entry(BOTH, (0, 0, 1), 2**40), COUNTS, f"row 0, label 0 has {ENTRY}"),
    (
        0 * BOTH,
        COUNTS,
        f"row 0, label 0 {NO_VOTES}",
    ),
]


@pytest.mark.parametrize(("array", "options", "text"), REFUSED)
def test_what_is_refused(array, options, text, npy, refusal):
    options = {"layout": "multilabel", **options}
    assert refusal(npy(array), **options) == f"v.npy: {text}"
    assert refusal(array, **options) == f"array: {text}"


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"a": [1, None]}, "row 1, label 0 has no count of yes"),
        ({"a": [1, 9]}, "row 1, label 0 has more votes for yes than `teachers` 6"),
        ({"a": [0.5, 1.0]}, f"row 0 {FRACTION}"),
        ({"c": [[1, 2], [1]]}, "row 1, label 1 has no count of yes"),
        ({"c": [[1, 2], [1, 2, 3]]}, "row 1 has more labels than the 2 of row 0"),
        ({"c": [[1, 2], None]}, "row 1 has a null instead of a list"),
        (
            {"a": ["x", "y"]},
            "column 'a' is text; if they are votes, give `label_names`; "
            "if it names the queries, `id_column` 'a'",
        ),
        (
            {"a": [1, 2], "true_label": [0, 1]},
            "column 'true_label' beside the votes could be an "
            "answer or a class; drop it, "
            "give `id_column` 'true_label' if it names the queries, or rename it if it is a class",
        ),
    ],
)
def test_what_is_refused_in_tables(columns, text, parquet, refusal):
    path = parquet(columns)
    assert refusal(path, layout="multilabel-counts", teachers=6) == f"v.parquet: {text}"


def test_columns_may_be_called_as_labels_are(parquet):
    table = parquet({"covid19": [1, 0], "flu": [2, 2], "label_10": [0, 1], "label_9": [1, 1]})
    with open_votes(table, layout="multilabel-counts", teachers=2) as file:
        assert file.label_names == ("covid19", "flu", "label_10", "label_9")


def test_classes_that_do_not_fit():
    def opened():
        with open_votes(ZEROS, layout="multilabel", classes=3):
            pass

    assert refused(ParameterError, opened) == (
        "`classes` 3 does not fit 3 labels, each of which has 2; leave it out"
    )


WEIGHTS = np.array([1, 3, 2, 1, 5])


@settings(max_examples=tries(30))
@given(
    said=hnp.arrays(np.int64, (6, 5, 3), elements=st.integers(-1, 1)),
    layout=st.sampled_from(["multilabel", "multilabel-by-teacher", "scores", "scores-by-teacher"]),
)
def test_weights_of_teachers_are_what_as_many_teachers_would_say(said, layout):
    """A teacher of weight w votes as w teachers do, in every layout that tells who voted."""
    axis = 0 if layout.endswith("by-teacher") else 1
    votes = np.moveaxis(said, 1, axis)
    groups = TeacherGroups(groups=("a", "b", "a", "b", "a"), weights=tuple(WEIGHTS.tolist()))
    with (
        open_votes(votes, layout=layout, teachers=5, groups=groups) as weighted,
        open_votes(np.repeat(votes, WEIGHTS, axis=axis), layout=layout, teachers=12) as many,
    ):
        assert weighted.teachers == many.teachers == 12
        pairs = zip(weighted.batches(), many.batches(), strict=True)
        assert all(np.array_equal(one.counts, other.counts) for one, other in pairs)


@pytest.mark.parametrize("votes", [np.ones((4, 3)), np.ones((4, 3, 2))])
def test_counts_do_not_tell_who_voted(votes):
    groups = TeacherGroups(groups=("a", "b"))

    def opened():
        with open_votes(votes, layout="multilabel-counts", groups=groups):
            pass

    assert refused(UsageError, opened).startswith("`groups` needs to know who voted")


def test_limits_and_caps_count_queries(ballots):
    with open_votes(ballots, layout="multilabel") as file:
        assert file.limited(None) == 72
        assert file.limited(5) == 15
        assert file.limited(100) == 72
        assert file.capped(5) == 15
        assert file.capped(100) == 72
        assert refused(ParameterError, file.limited, 0) == "`max_queries` must be at least 1, got 0"
        assert refused(ParameterError, file.capped, 0) == "`max_answers` must be at least 1, got 0"


def test_any_rows_can_be_read_and_a_copy_reads_the_same(ballots, npy):
    with open_votes(npy(ballots), layout="multilabel", batch_rows=7) as file:
        assert file.portable
        copy = pickle.loads(pickle.dumps(file))  # noqa: S301 - our own
        whole = np.concatenate([batch.counts for batch in file.batches()])
        for start, limit in ((0, 1), (1, 2), (5, 4), (2, 20), (file.queries - 1, 5)):
            batches = list(copy.batches(start=start, limit=limit))
            stop = min(start + limit, file.queries)
            np.testing.assert_array_equal(
                np.concatenate([batch.counts for batch in batches]), whole[start:stop]
            )
            ids = [query for batch in batches for query in batch.ids]
            assert ids == [row // file.rows_per_query for row in range(start, stop)]
            assert batches[0].first_row == start


def test_ranges_keep_queries_whole_and_parts_of_a_folder(ballots, parquet, tmp_path):
    yes = ballots.sum(axis=1)
    for part, rows in enumerate((slice(0, 5), slice(5, 24))):
        columns = {f"l{label}": yes[rows, label] for label in range(LABELS)}
        parquet(columns, f"folder/p{part}.parquet", row_group_size=4)
    with open_votes(tmp_path / "folder", layout="multilabel-counts", teachers=TEACHERS) as file:
        assert [part[1:] for part in file.parts] == [(0, 15), (15, 72)]
        for entries in (1, 7, 16, 40, 1000):
            ranges = file.ranges(limit=60, entries=entries)
            assert all(start % LABELS == stop % LABELS == 0 for start, stop in ranges)
            assert [start for start, _ in ranges] == [0, *(stop for _, stop in ranges[:-1])]
            assert ranges[-1][1] == 60
            found = [
                batch.counts
                for start, stop in ranges
                for batch in file.batches(start=start, limit=stop - start)
            ]
            np.testing.assert_array_equal(np.concatenate(found), pairs_of(ballots)[:60])


@settings(max_examples=tries(60))
@given(
    st.lists(st.lists(st.integers(1, 12), min_size=1, max_size=5), min_size=1, max_size=3),
    st.integers(1, 7),
    st.integers(1, 60),
)
def test_no_cut_is_within_a_query(parts, together, rows):
    stretches = [
        Stretch(f"{part}", sum(groups) * together, tuple(size * together for size in groups))
        for part, groups in enumerate(parts)
    ]
    total = sum(stretch.rows for stretch in stretches)
    ranges = cut(stretches, rows=rows, limit=total, together=together)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == total
    assert all(a[1] == b[0] for a, b in itertools.pairwise(ranges))
    assert all(start < stop and start % together == 0 for start, stop in ranges)


@settings(max_examples=tries(60))
@given(st.data())
def test_one_teacher_moves_one_vote_in_each_row(data):
    """Whatever one teacher does on every query and label: rows of the files are neighbours."""
    votes = st.sampled_from([-1, 0, 1])
    queries, teachers, labels = (data.draw(st.integers(1, 3)) for _ in range(3))
    size = queries * teachers * labels
    one = np.array(data.draw(st.lists(votes, min_size=size, max_size=size)))
    one = one.reshape(queries, teachers, labels)
    other = np.array(one)
    drawn = data.draw(st.lists(votes, min_size=queries * labels, max_size=queries * labels))
    other[:, data.draw(st.integers(0, teachers - 1))] = np.array(drawn).reshape(queries, labels)

    def rows(array):
        options = {"layout": "multilabel", "teachers": teachers}
        if array.shape[0] == teachers:
            array = np.ascontiguousarray(array.transpose(1, 0, 2))
            options["layout"] = "multilabel-by-teacher"
        with open_votes(array, **options) as file:
            return np.concatenate([batch.counts for batch in file.batches()])

    here, there = rows(one), rows(other)
    assert here.shape == there.shape
    assert all(votes_apart(a[None], b[None])[0, 0] <= 1 for a, b in zip(here, there, strict=True))


def test_votes_of_teachers_that_count_differently(ballots, read, tmp_path):
    weights = np.array([1, 1, 2, 3, 1, 5])
    path = tmp_path / "groups.csv"
    rows = "".join(f"g{weight},{weight}\n" for weight in weights)
    path.write_text(f"group,weight\n{rows}")
    # A vote of weight w is w votes of one teacher each.
    repeated = np.repeat(ballots, weights, axis=1)
    file, _, counts = read(ballots, groups=path, layout="multilabel")
    _, _, expected = read(repeated, teachers=13, layout="multilabel")
    np.testing.assert_array_equal(counts, expected)
    assert file.teachers == 13
    scores = np.random.default_rng(4).random((QUERIES, TEACHERS, 5))
    _, _, counts = read(scores, layout="scores", groups=path)
    _, _, expected = read(np.repeat(scores, weights, axis=1), layout="scores", teachers=13)
    np.testing.assert_array_equal(counts, expected)
