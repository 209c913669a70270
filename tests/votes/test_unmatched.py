"""Votes that match no name: counted by cause for the holder, and refused where most do."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pate_cli.core.errors import VoteError
from pate_cli.votes.names import ABSTENTION, ClassNames, Unmatched
from pate_cli.votes.opening import open_votes
from refusals import refusal

NAMES = ("cat", "dog", "bird")
BALLOTS = [
    ["cat", "Cat", "dog."],
    [" dog", "Katze", "N/A"],
    ["CAT", "", "fish"],
    ["dog", "dog", None],
]


def sources():
    """The same ballots in every layout that has words."""
    columns = {f"teacher_{t}": pa.array(each) for t, each in enumerate(zip(*BALLOTS, strict=True))}
    query, teacher = (places.ravel() for places in np.indices((4, 3)))
    said = [text for row in BALLOTS for text in row]
    long = {"query_id": query, "teacher_id": teacher, "label": said}
    return {
        "columns": pa.table(columns),
        "dictionaries": pa.table(
            {name: each.dictionary_encode() for name, each in columns.items()}
        ),
        "lists": pa.table({"labels": BALLOTS}),
        "long": pa.table(long),
        "array": np.array([[text or "" for text in row] for row in BALLOTS]),
    }


def counted(texts, names=None):
    """A count of texts, each a vote."""
    found = Unmatched(names or ClassNames(NAMES))
    found.add(Counter(texts).items())
    return found


@pytest.mark.parametrize("kind", sources())
def test_a_file_of_other_words_is_refused_by_counts_alone(kind):
    """A run stops before it spends on votes that are nearly all lost, and quotes none of them."""
    told = {"layout": "long" if kind == "long" else "labels", "label_names": NAMES}
    with open_votes(sources()[kind], **told) as votes:
        text = refusal(VoteError, votes.refuse_unmatched)
        assert f"{votes.name}: 6 of 10 votes match no label name: 3 would match with " in text
        assert "1 are read as abstentions, 2 are other texts" in text
        for word in ("`normalise`", "`aliases`", "`label_names`", "`accept_unmatched`"):
            assert word in text
        assert not any(word in text for word in ("Katze", "fish", "CAT", "N/A"))
        if kind != "long":
            assert (votes.unmatched(1).cast, votes.unmatched(1).votes) == (3, 2)
    for more in ({"accept_unmatched": True}, {"normalise": True}, {"aliases": {"CAT": "cat"}}):
        with open_votes(sources()[kind], **told, **more) as votes:
            votes.refuse_unmatched()


def test_half_of_the_votes_are_not_most():
    for other in (2, 3):
        rows = [["cat"] * 2 + ["cow"] * other + [""] * (5 - other)]
        with open_votes(rows, layout="labels", label_names=NAMES, teachers=7) as votes:
            assert votes.unmatched().share == other / (2 + other)
            if other == 2:
                votes.refuse_unmatched()
            else:
                refusal(VoteError, votes.refuse_unmatched)


@pytest.mark.parametrize("nothing", ["", " "])
def test_empty_texts_are_no_votes(nothing):
    with open_votes([["", nothing]] * 3, layout="labels", label_names=NAMES) as votes:
        assert (votes.unmatched().cast, votes.unmatched().votes) == (0, 0)
        votes.refuse_unmatched()
    with open_votes([[0, 1], [2, 0]], layout="labels", label_names=NAMES) as votes:
        assert votes.unmatched() == Unmatched()
    assert (Unmatched().share, Unmatched().sentences()) == (0.0, [])


@given(
    st.lists(st.lists(st.sampled_from(["cat", "Cat", "cow", "", "none"]), max_size=9), max_size=5)
)
def test_columns_are_added_up(columns):
    every = counted([text for column in columns for text in column])
    plain, encoded = Unmatched(ClassNames(NAMES)), Unmatched(ClassNames(NAMES))
    for column in columns:
        array = pa.array(column, pa.string())
        plain.add_column(array)
        encoded.add_column(array.dictionary_encode())
    assert plain == encoded == every
    assert plain.texts == encoded.texts == every.texts
    assert every.votes == sum(
        column.count(text) for column in columns for text in ("Cat", "cow", "none")
    )


def test_what_the_holder_is_told():
    assert counted(["cat"] * 5).sentences() == []
    first, *more = counted(["cat"] * 9 + ["Cat"]).sentences()
    assert first.startswith("1 of 10 votes (10.0%) match no label name")
    assert more == [
        "  1 x 'Cat', `normalise` would match it with 'cat'",
        "`normalise` would match 1 of the unmatched votes",
    ]
    found = counted(["cat", "N/A", "N/A", "cow"]).sentences()
    assert found[0].startswith("WARNING: 3 of 4 votes (75.0%)")
    assert found[1:3] == [f"  2 x 'N/A', {ABSTENTION}", "  1 x 'cow'"]
    assert found[3].startswith("to match other texts, give `aliases` FILE")


def test_json_keeps_its_keys():
    found = counted(["cat", "Cat", "cow"])
    assert "cow" not in repr(found)  # which may be in a log
    assert json.loads(json.dumps(found.to_dict())) == {
        "cast": 3,
        "votes": 2,
        "share": 2 / 3,
        "normalise_would_match": 1,
        "commonest": [
            {"text": "Cat", "votes": 1, "cause": "`normalise` would match it with 'cat'"},
            {"text": "cow", "votes": 1, "cause": None},
        ],
    }


def test_the_commonest_ten_are_told_of_in_bounded_memory():
    found = Unmatched(ClassNames(("one", "two"), normalise=True))
    for batch in range(12):
        found.add([("often", 9), *((f"{batch} {n}", 1) for n in range(3000))])
    assert found.votes == found.cast == 12 * 3009
    assert (len(found.texts), *found.texts[0][:2]) == (10, "often", 108)
    # What a model wrote does not command a terminal, nor fill it.
    found = counted(["\x1b[2J\nbell\a", "long " * 500, "cat"])
    assert all(text.isprintable() and len(text) < 200 for text, *_ in found.texts)
