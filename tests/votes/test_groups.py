"""Groups of teachers: whose votes count how much, in every container and layout."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from opened import by_hand, counts_of
from pate_cli.core.errors import ParameterError, VoteError
from pate_cli.votes.facts import Group, TeacherGroups
from pate_cli.votes.join import teacher_groups
from pate_cli.votes.opening import open_votes
from refusals import refusal
from stored import table_in

GROUPS = ["clinic", "lab", "clinic", "lab", "lab"]
WEIGHTS = [1, 3, 2, 1, 1]
PER_RECORD = [1, 2, 1, 2, 2]
IDS = ["anna", "ben", "cleo", "dora", "emil"]
COLUMNS = {"group": GROUPS, "weight": WEIGHTS, "teachers_per_record": PER_RECORD, "teacher_id": IDS}
EVERY = TeacherGroups(GROUPS, WEIGHTS, PER_RECORD, IDS)
TEACHERS = ["teacher_0", "teacher_1", "teacher_2", "teacher_3", "teacher_4"]
WEIGHT = "has no valid weight; give a whole number of at least 1"
VOTES = np.array([[0, 1, 2, 1, 0], [2, 2, 0, 1, 1], [0, 0, 0, 0, 1]])


def drained(source, **more):
    return counts_of(source, **more).tolist()


def test_what_is_public_about_groups():
    """The report has an ε for each group from these numbers, worked out by hand."""
    assert EVERY.public == (Group("clinic", 2, 2, 3, 1, 2), Group("lab", 3, 3, 5, 2, 4))
    assert (len(EVERY), EVERY.total) == (5, 8)
    plain = TeacherGroups(np.array(["a", "b", "a"]))
    assert plain.public == (Group("a", 2, 1, 2, 1, 1), Group("b", 1, 1, 1, 1, 1))
    assert TeacherGroups([7, 7]).groups == ("7", "7")
    assert pickle.loads(pickle.dumps(EVERY)) == EVERY  # noqa: S301 - our own


@pytest.mark.parametrize("numbers", [
    (5, 3, 6, 2, 3),  # two records change 4 votes at least: the largest weight and one more
    (5, 3, 9, 2, 7),  # and 6 at most
    (5, 3, 12, 2, 4),  # the other three have 2 votes each at most
    (5, 3, 6, 2, 4),  # and one at least
    (5, 3, 9, 6, 4),  # a record reaches teachers of its group only
])  # fmt: skip
def test_numbers_of_a_group_that_no_weights_have_are_refused(numbers):
    assert Group("g", 5, 3, 9, 2, 4)
    assert "contradict each other" in refusal(VoteError, Group, "g", *numbers)


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet", "table", "frame"])
def test_groups_are_the_same_in_every_container(kind, tmp_path):
    table, path = pa.table(COLUMNS), tmp_path / f"g.{kind}"
    source = {"table": table, "frame": table.to_pandas()}.get(kind, path)
    if source is path:
        path.write_bytes(table_in(table, kind))
    assert teacher_groups(source) == EVERY
    assert teacher_groups(None) is None
    assert teacher_groups(EVERY) is EVERY


def test_only_the_column_of_groups_is_needed(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("group\na\nb\na\n")
    assert teacher_groups(path) == TeacherGroups(["a", "b", "a"])
    path.write_text("group,weight,teacher\n1,1,8\n2,5,7\n")
    assert teacher_groups(path) == TeacherGroups([1, 2], [1, 5], ids=[8, 7])
    # CSV does not tell numbers from texts.
    frame = pd.DataFrame({"7": [0, 1], "8": [1, 1]})
    assert drained(frame, layout="labels", classes=2, groups=path) == [[5, 1], [0, 6]]
    refusal(ParameterError, teacher_groups, 3)
    refusal(VoteError, teacher_groups, np.array([1, 2]))
    for given in ([],), (["a", "b"], [1]), (["a", 1],):
        refusal(VoteError, TeacherGroups, *given)


@pytest.mark.parametrize("kind", [pa.decimal128(19, 0), pa.decimal128(29, 2), pa.float64()])
def test_whole_numbers_are_whole_in_every_type(kind):
    columns = {name: pa.array([2, 2]).cast(kind) for name in ("weight", "teachers_per_record")}
    table = pa.table({"group": ["a", "a"]} | columns)
    assert teacher_groups(table) == TeacherGroups(["a", "a"], [2, 2], [2, 2])
    half = table.set_column(1, "weight", pa.array([2, 2.5]).cast(pa.decimal128(29, 2)))
    assert f"row 1 {WEIGHT}" in refusal(VoteError, teacher_groups, half)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("group,weight\na,1\nb,1.5\n", f"row 1 {WEIGHT}"),
        ("group,weight\na,1\nb,0\n", f"row 1 {WEIGHT}"),
        ("group,weight\na,1\nb,-3\n", f"row 1 {WEIGHT}"),
        ("group,weight\na,1\nb,\n", f"row 1 {WEIGHT}"),
        ("group,teachers_per_record\na,0\n", "row 0 has no valid teachers_per_record"),
        ("group,teachers_per_record\na,1\na,2\n", "row 1 has teachers_per_record 2"),
        ("group,teachers_per_record\na,2\nb,1\n", "row 0 has teachers_per_record 2"),
        ("group,teacher\na,x\nb,x\n", "row 1 has the teacher id of an earlier row"),
        ("group,teacher\na,x\n ,y\n", "row 1 has no valid group"),
        ("group,weight\na,2147483647\nb,1\n", "the sum of the weights is above"),
        ("name,weight\na,1\n", "the table needs group, may also have teacher_id, teacher, weight"),
        ("group,wieght\na,1\n", "has the columns group, wieght;"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_its_row(content, text, tmp_path):
    path = tmp_path / "g.csv"
    path.write_text(content)
    found = refusal(VoteError, teacher_groups, path)
    assert found.startswith("groups of teachers in ")
    assert "g.csv: " in found
    assert text in found


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("named", ["place", "number", "column"])
def test_weights_follow_their_teachers(named, turned):
    ids = {"place": None, "number": [0, 1, 2, 3, 4], "column": TEACHERS}[named]
    order = [3, 1, 4, 0, 2] if turned and ids is not None else [0, 1, 2, 3, 4]
    listed = [GROUPS, WEIGHTS, PER_RECORD, *([] if ids is None else [ids])]
    groups = TeacherGroups(*([each[at] for at in order] for each in listed))
    wanted = by_hand(VOTES, 3, WEIGHTS).tolist()
    told = {"classes": 3, "groups": groups, "layout": "labels"}
    frame = pd.DataFrame(VOTES, columns=TEACHERS)
    assert drained(frame, **told) == wanted
    assert drained(frame[TEACHERS[::-1]], **told) == (
        by_hand(VOTES[:, ::-1], 3, WEIGHTS).tolist() if named == "place" else wanted
    )
    if named != "column":
        assert drained(VOTES, **told) == wanted
        assert drained(VOTES.T, **told | {"layout": "labels-by-teacher"}) == wanted


def test_a_file_says_what_is_public_of_its_groups():
    groups = TeacherGroups(GROUPS, WEIGHTS, PER_RECORD)
    with open_votes(VOTES, layout="labels", classes=3, groups=groups) as votes:
        assert (votes.teachers, votes.facts.groups) == (8, EVERY.public)
        assert votes.facts.of_round["groups"] == EVERY.public
        assert not votes.votes_together


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"groups": ["a", "b"]}, "has 5 teachers, but `groups` lists 2"),
        ({"ids": IDS}, "row 0 has the teacher id 'anna', but"),
        ({"ids": [0, 1, 2, 3, 9]}, "row 4 has the teacher id 9, but"),
        ({"ids": ["0", *TEACHERS[:1], "1", "2", "3"]}, "row 1 has the teacher id 'teacher_0', but"),
    ],
)
def test_groups_of_other_teachers_are_refused(given, text):
    groups = TeacherGroups(**{"groups": GROUPS, **given})
    frame = pd.DataFrame(VOTES, columns=TEACHERS)
    assert text in refusal(VoteError, drained, frame, layout="labels", classes=3, groups=groups)
