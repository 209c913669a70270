"""Groups of teachers: what is read, how weights reach their teachers, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pate_cli.core.errors import ParameterError, UsageError, VoteError
from pate_cli.votes import TeacherGroups, open_votes
from pate_cli.votes.facts import Group
from pate_cli.votes.groups import load_groups
from refusals import refusal as refused_with

ABSENT = -1


@pytest.fixture
def text(tmp_path):
    """Write a CSV file."""

    def write(content, name="g.csv"):
        path = tmp_path / name
        path.write_text(content)
        return path

    return write


def weighed(labels, weights, classes):
    """The histograms, vote by vote."""
    counts = np.zeros((len(labels), classes), dtype=np.int64)
    for row, teacher in np.argwhere(labels != ABSENT):
        counts[row, labels[row, teacher]] += weights[teacher]
    return counts


def with_nulls(labels):
    return [[None if label == ABSENT else int(label) for label in row] for row in labels]


def long_form(labels, names, order=None):
    cast = np.argwhere(labels != ABSENT)
    cast = cast if order is None else cast[order.permutation(len(cast))]
    return pa.table(
        {
            "query_id": cast[:, 0],
            "teacher_id": [names[teacher] for teacher in cast[:, 1]],
            "label": labels[tuple(cast.T)],
        }
    )


# ---------------------------------------------------------------- the groups themselves


def test_what_is_public_about_groups():
    groups = TeacherGroups(
        ("b", "a", "b", "b", "a"), weights=(1, 7, 4, 2, 3), teachers_per_record=(2, 1, 2, 2, 1)
    )
    assert groups.public == (Group("b", 3, 4, 7, 2, 6), Group("a", 2, 7, 10, 1, 7))
    assert (len(groups), groups.total) == (5, 17)
    plain = TeacherGroups(np.array([4, 4, 9]))
    assert plain.public == (Group("4", 2, 1, 2, 1, 1), Group("9", 1, 1, 1, 1, 1))


def test_a_file_holds_the_same_groups_in_every_format(text, parquet):
    columns = {
        "teacher": ["x", "y", "z"],
        "weight": [2, 1, 5],
        "group": ["open", "shut", "open"],
        "teachers_per_record": [2, 1, 2],
    }
    wanted = TeacherGroups(("open", "shut", "open"), (2, 1, 5), (2, 1, 2), ("x", "y", "z"))
    assert load_groups(parquet(columns, "g.parquet")) == wanted
    columns["group"] = pa.array(columns["group"]).dictionary_encode()
    columns["weight"] = pa.array(columns["weight"], type=pa.uint8())
    assert load_groups(parquet(columns, "h.parquet")) == wanted
    found = load_groups(
        text("teacher,weight,group,teachers_per_record\nx,2,open,2\ny,1,shut,1\nz,5,open,2\n")
    )
    assert (found.public, found.ids, found.digits) == (wanted.public, wanted.ids, True)
    assert load_groups(text("group\n3\n3\n")).public == (Group("3", 2, 1, 2, 1, 1),)


FILES = {
    "group,weight\na,0\n": "row 0 has a weight that is no whole number of at least 1",
    "group,weight\na,1\nb,-2\n": "row 1 has a weight that is no whole number of at least 1",
    "group,weight\na,1.5\n": (
        "row 0 has a weight that is no whole number of at least 1; multiply all weights by one "
        "number"
    ),
    "group,weight\na,1\nb,\n": "row 1 has a weight that is no whole number of at least 1",
    "group,weight\na,true\n": "row 0 has a weight that is no whole number of at least 1",
    "group,weight\na,many\n": "row 0 has a weight that is no whole number of at least 1",
    "group,weight\na,2147483648\n": "row 0 has a weight that is no whole number of at least 1",
    "group,weight\na,2147483647\nb,1\n": "the weights add up to more than 2147483647",
    "group,teachers_per_record\na,0\n": (
        "row 0 has a teachers_per_record that is no whole number of at least 1"
    ),
    "group,teachers_per_record\na,2\nb,1\na,1\n": (
        "row 2 has another teachers_per_record than row 0 of the same group"
    ),
    "group,teachers_per_record\na,1\nb,2\n": (
        "row 1 says teachers_per_record 2, but its group has 1 teacher"
    ),
    "group,teachers_per_record\na,3\na,3\n": (
        "row 0 says teachers_per_record 3, but its group has 2 teachers"
    ),
    "group,teacher_id\na,1\na,1\n": "row 1 names the teacher of row 0 again",
    "group,teacher_id\na,1\na,\n": (
        "row 1 has no teacher_id that is a text or a whole number like the others"
    ),
    "group,weight\n1,1\n,1\n": (
        "row 1 has no group that is a text or a whole number like the others"
    ),
    "group,weight\na,1\n,1\n": (
        "row 1 has no group that is a text or a whole number like the others"
    ),
    "group\n": "there are no rows",
}


@pytest.mark.parametrize("content", FILES)
def test_rows_of_a_file_that_are_refused(text, content):
    path = text(content)
    found = refused_with(VoteError, load_groups, path)
    assert found == f"{path}: groups of teachers: {FILES[content]}"


COLUMNS = {
    "weight\n1\n": "groups of teachers need a column named group",
    # A slip in the name of a column would leave every weight at 1.
    "group,weights\na,3\n": (
        "column 'weights' is none of group, weight, teachers_per_record, teacher_id, teacher; "
        "rename or drop it"
    ),
    "query_id,group\n1,a\n": (
        "column 'query_id' is none of group, weight, teachers_per_record, teacher_id, teacher; "
        "rename or drop it"
    ),
    "group,teacher,teacher_id\na,1,2\n": "columns 'teacher' and 'teacher_id' both name teachers",
    "group,weight,weight\na,1,2\n": (
        "the first line names columns 1 and 2 alike; it must name the columns, each by another name"
    ),
    "group,weight\na\n": "row 0 has 1 fields, the first line has 2; repair the row",
    "": "the file is empty (0 bytes)",
}


@pytest.mark.parametrize("content", COLUMNS)
def test_files_that_are_refused_as_a_whole(text, content):
    path = text(content)
    assert refused_with(VoteError, load_groups, path) == f"{path}: {COLUMNS[content]}"


def test_an_array_and_no_file_at_all_are_refused(npy, text, tmp_path):
    path = npy([1, 2, 3])
    assert refused_with(VoteError, load_groups, path) == (
        f"{path}: groups of teachers need a table with a column named group"
    )
    gone = tmp_path / "gone.csv"
    assert refused_with(VoteError, load_groups, gone) == f"{gone}: no such file or folder"
    odd = text("[group]\na = 1\n", "g.toml")
    assert str(odd) in refused_with(VoteError, load_groups, odd)


def test_columns_of_different_lengths_are_refused():
    assert refused_with(VoteError, TeacherGroups, ("a", "b"), (1,)) == (
        "groups of teachers: 1 weight for 2 teachers"
    )
    assert refused_with(VoteError, TeacherGroups, ("a", "b"), ids=(1, 2, 3)) == (
        "groups of teachers: 3 ids for 2 teachers"
    )
    assert refused_with(VoteError, TeacherGroups, ("a", 1)) == (
        "groups of teachers: row 1 has no group that is a text or a whole number like the others"
    )
    assert refused_with(VoteError, TeacherGroups, ("a",), ids=(2**63,)) == (
        "groups of teachers: row 0 has a teacher_id above 2^63 - 1"
    )


# ---------------------------------------------------------------- votes in every layout


@given(data=st.data())
def test_every_layout_weighs_the_votes_of_each_teacher(drain, data):
    """In whatever order the groups name the teachers, and whoever is missing."""
    teachers, rows, classes = (data.draw(st.integers(a, b)) for a, b in ((2, 6), (1, 5), (2, 4)))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    weights = random.integers(1, 2**28, size=teachers)
    labels = random.integers(0, classes, size=(rows, teachers))
    order = random.permutation(teachers)
    missing = data.draw(st.booleans())
    told = {"classes": classes}

    def groups(names):
        ids = [names[place] for place in order]
        group = [f"g{place % 2}" for place in order]
        return TeacherGroups(tuple(group), tuple(weights[order].tolist()), ids=tuple(ids))

    numbers = list(range(teachers))
    if not missing:
        wanted = weighed(labels, weights, classes)
        by_place = {**told, "groups": groups(numbers)}
        np.testing.assert_array_equal(drain(labels, layout="labels", **by_place), wanted)
        turned = drain(labels.T.copy(), layout="labels-by-teacher", **by_place)
        np.testing.assert_array_equal(turned, wanted)
    else:
        labels[random.random(labels.shape) < 0.4] = ABSENT
        labels[:, 0] = 0  # in long form a query is there only if somebody voted on it
        told["teachers"] = teachers
        wanted = weighed(labels, weights, classes)
    lists = pa.table({"labels": pa.array(with_nulls(labels), type=pa.list_(pa.int64()))})
    found = drain(lists, layout="labels", **told, groups=groups(numbers))
    np.testing.assert_array_equal(found, wanted)
    names = [f"teacher_{7 * place + 3}" for place in numbers]
    columns = [pa.array(column, type=pa.int8()) for column in zip(*with_nulls(labels), strict=True)]
    wide = pa.table(columns, names=names)
    for its in (names, [7 * place + 3 for place in numbers]):
        found = drain(wide, layout="labels", **told, groups=groups(its))
        np.testing.assert_array_equal(found, wanted)
    for its in ([f"t{place}" for place in numbers], [10 - place for place in numbers]):
        found = drain(long_form(labels, its, random), **told, groups=groups(its))
        np.testing.assert_array_equal(found, wanted)


LABELS = np.array([[0, 1, 2, 1], [2, 2, 0, 1], [1, 0, 0, 0]])
GROUPS = TeacherGroups(("a", "b", "b", "a"), weights=(5, 1, 2, 1))


def test_a_file_says_what_it_holds_and_travels(npy, drain):
    with open_votes(npy(LABELS), layout="labels", classes=3, groups=GROUPS) as votes:
        assert (votes.teachers, votes.teachers_from_data) == (9, False)
        assert votes.groups == GROUPS.public
        assert votes.votes_together
        assert votes.portable
        assert votes.describe().endswith(
            "3 queries x 3 classes, 4 teachers in 2 groups with 9 votes, layout labels (as told)"
        )
        again = pickle.loads(pickle.dumps(votes))  # noqa: S301 - our own
        np.testing.assert_array_equal(drain(again), weighed(LABELS, GROUPS.weights, 3))
        assert again == votes


def test_groups_from_a_file_in_the_order_of_the_teachers(npy, text, drain):
    path = text("weight,group\n5,a\n1,b\n2,b\n1,a\n")
    found = drain(npy(LABELS), layout="labels", classes=3, groups=path)
    np.testing.assert_array_equal(found, weighed(LABELS, (5, 1, 2, 1), 3))


def test_a_csv_does_not_tell_numbers_from_text(text, drain):
    path = text("teacher_id,group,weight\n3,a,5\n1,b,1\n2,b,2\n0,a,1\n")
    wanted = weighed(LABELS, (1, 1, 2, 5), 3)
    for names in (["0", "1", "2", "3"], [0, 1, 2, 3]):
        found = drain(long_form(LABELS, names), classes=3, groups=path)
        np.testing.assert_array_equal(found, wanted)


def named(*ids):
    return TeacherGroups(("a",) * len(ids), ids=ids)


WIDE = pa.table({f"teacher_{place}": LABELS[:, place] for place in range(4)})
LONG = long_form(LABELS, ["w", "x", "y", "z"])
SOURCES = {
    "array": LABELS,
    "wide": WIDE,
    "long": LONG,
    "list": pa.table({"labels": LABELS.tolist()}),
}
# What does not fit together: the votes, the groups, other words, and how it is refused.
MISFITS = [
    ("array", named(0, 1), {}, "array: has 4 teachers, but `groups` has 2"),
    (
        "array",
        named(0, 1, 2, 4),
        {},
        "groups of teachers: the teacher of row 3 is not one of 0..3 of array; name each teacher "
        "as the votes do",
    ),
    (
        "list",
        named("0", "1", "2", "3"),
        {},
        "groups of teachers: the teacher of row 0 is not one of 0..3 of table; name each teacher "
        "as the votes do",
    ),
    (
        "wide",
        named("teacher_0", "teacher_1", "teacher_2", "teacher_4"),
        {},
        "groups of teachers: the teacher of row 3 is not a column of table; name each teacher as "
        "the votes do",
    ),
    ("wide", named(*range(5)), {}, "table: has 4 teachers, but `groups` has 5"),
    (
        "long",
        GROUPS,
        {},
        "groups of teachers: votes in long form name their teachers, so `groups` needs a column "
        "teacher_id",
    ),
    (
        "long",
        named("w", "x", "y", "v"),
        {},
        "table: row 3 is a vote of a teacher that is in none of `groups`",
    ),
    (
        "long",
        named("v", "w", "x", "y", "z"),
        {},
        "table: row 0 is the first vote of a query that not all 5 teachers voted on; if teachers "
        "may be missing, give `teachers` N",
    ),
    (
        "long",
        named(1, 2, 3, 4),
        {},
        "groups of teachers: the votes name teachers by texts, `groups` by numbers",
    ),
]


@pytest.mark.parametrize(("source", "groups", "words", "message"), MISFITS)
def test_groups_of_other_teachers_are_refused(refusal, source, groups, words, message):
    words = {"classes": 3, **words}
    if source != "long":
        words["layout"] = "labels"
    assert refusal(SOURCES[source], groups=groups, **words) == message


def test_two_names_of_one_teacher_are_refused(refusal, text):
    wide = pa.table({"1": LABELS[:, 0], "x2": LABELS[:, 1]})
    path = text("teacher,group\n1,a\n01,a\n")
    # In CSV 01 is a name, and not that of teacher 1.
    assert "the teacher of row 1 is not a column" in refusal(
        wide, layout="labels", classes=3, groups=path
    )
    both = TeacherGroups(("a", "a"), ids=("x2", "2"), digits=True)
    assert refusal(wide, layout="labels", classes=3, groups=both) == (
        "groups of teachers: two rows name the same teacher of table"
    )


def test_a_list_that_is_too_short_does_not_tell_whose_votes_it_holds(refusal, drain):
    rows = [[0, 1, 2, 1], [2, 2, 0], [1, 0, 0, None]]
    lists = pa.table({"labels": pa.array(rows, type=pa.list_(pa.int64()))})
    words = {"layout": "labels", "classes": 3, "teachers": 4}
    assert refusal(lists, groups=GROUPS, **words) == (
        "table: row 1 is the first whose list is not as long as row 0's; with `groups` keep "
        "an entry for each teacher, null where a vote is missing"
    )
    assert drain(lists, **words).sum() == 10


def test_histograms_do_not_tell_who_voted():
    counts = np.array([[3, 1], [0, 4]])
    for source in (counts, pa.table({"class_0": [3, 0], "class_1": [1, 4]})):
        with pytest.raises(UsageError, match="needs to know who voted"):
            open_votes(source, layout="counts", groups=GROUPS).__enter__()


def test_words_that_contradict_the_groups():
    with pytest.raises(ParameterError, match="`teachers` is 5, but `groups` has 4 teachers"):
        open_votes(LABELS, layout="labels", teachers=5, groups=GROUPS).__enter__()
    with open_votes(LABELS, layout="labels", classes=3, teachers=4) as votes:
        text = refused_with(ParameterError, open_votes(votes, groups=GROUPS).__enter__)
    assert text.startswith("array is open already")


def test_an_array_the_wrong_way_round(refusal):
    assert refusal(LABELS.T.copy(), layout="labels", classes=3, groups=GROUPS) == (
        "array: with `groups` of 4 an array of 4 x 3 is `layout` labels-by-teacher, not labels"
    )
