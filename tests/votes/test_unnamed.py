"""Votes that are texts, and some no names, in every layout: matched, counted and refused."""

from __future__ import annotations

import json
import pickle
import unicodedata
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pate_cli.core.errors import VoteError
from pate_cli.votes import Layout, open_votes
from pate_cli.votes import unnamed as module
from pate_cli.votes.matching import ABSTENTION, Matching
from pate_cli.votes.unnamed import NameTally, Unnamed
from slices import some

NAMES = ("cat", "dog", "Ärger")
NFD = unicodedata.normalize("NFD", "Ärger")
BALLOTS = [
    ["cat", "Cat", "dog."],
    [" dog", "Katze", NFD],
    ["CAT", "", "fish"],
    ["dog", "dog", "Cat"],
]
PLAIN = [[1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 2, 0]]
LENIENT = [[2, 1, 0], [0, 1, 1], [1, 0, 0], [1, 2, 0]]
WITH_ALIASES = [[2, 1, 0], [1, 1, 1], [1, 0, 0], [1, 2, 0]]
QUERIES, TEACHERS = 4, 3
COLUMNS = {f"t{t}": [row[t] or None for row in BALLOTS] for t in range(TEACHERS)}
LONG = {
    "query_id": [q for q in range(QUERIES) for _ in range(TEACHERS)],
    "teacher_id": [t for _ in range(QUERIES) for t in range(TEACHERS)],
    "label": [vote or None for row in BALLOTS for vote in row],
}


def csv(columns):
    def field(text):
        return "" if text is None else f'"{text}"'

    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(field, row)) for row in rows)]
    return "".join(f"{line}\n" for line in lines)


def jsonl(columns):
    rows = zip(*columns.values(), strict=True)
    return "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)


def written(folder, kind):
    """The ballots in a file of this kind, or in memory, and how they are read."""
    wide, by_teacher, long = (
        {"layout": layout} for layout in ("labels", "labels-by-teacher", "long")
    )
    array = np.array(BALLOTS)
    lists = pa.table({"v": pa.array([[vote or None for vote in row] for row in BALLOTS])})
    in_memory = {
        "array": (array, wide),
        "array by teacher": (array.T, by_teacher),
        "big endian": (array.astype(array.dtype.newbyteorder(">")), wide),
        "rows": (BALLOTS, wide),
        "table": (pa.table(COLUMNS), wide),
        "dictionaries": (
            pa.table({k: pa.array(v).dictionary_encode() for k, v in COLUMNS.items()}),
            wide,
        ),
        "lists": (lists, wide),
        "long table": (pa.table(LONG), long),
    }
    if kind in in_memory:
        return in_memory[kind]
    path = folder / f"v.{kind.split()[0]}"
    columns, told = (LONG, long) if kind.endswith("long") else (COLUMNS, wide)
    if kind.startswith("npy"):
        told = by_teacher if kind.endswith("teacher") else wide
        np.save(path, array.T if kind.endswith("teacher") else array)
    elif kind.startswith("parquet"):
        pq.write_table(
            lists if kind.endswith("lists") else pa.table(columns), path, row_group_size=2
        )
    else:
        path.write_text((csv if kind.startswith("csv") else jsonl)(columns), encoding="utf-8")
    return path, told


KINDS = [
    *("array", "array by teacher", "big endian", "rows", "table", "dictionaries", "lists"),
    *("long table", "npy", "npy by teacher", "parquet", "parquet lists", "parquet long"),
    *("csv", "csv long", "jsonl", "jsonl long"),
]


@pytest.mark.parametrize("kind", some(KINDS, 3))
def test_every_layout_matches_alike(tmp_path, kind, drain):
    source, told = written(tmp_path, kind)
    told = {**told, "label_names": NAMES, "batch_rows": 3}
    katze = {"katze": "cat"}
    for words, counts in (
        ({}, PLAIN),
        ({"normalise": True}, LENIENT),
        ({"normalise": True, "aliases": katze}, WITH_ALIASES),
    ):
        np.testing.assert_array_equal(drain(source, **told, **words), counts)
    only_aliases = np.array(PLAIN)
    only_aliases[1, 0] = 1
    found = drain(source, **told, aliases={"Katze": "cat"})
    np.testing.assert_array_equal(found, only_aliases)


@pytest.mark.parametrize("kind", KINDS)
def test_every_layout_counts_alike(tmp_path, kind):
    source, told = written(tmp_path, kind)
    with open_votes(source, label_names=NAMES, batch_rows=3, **told) as votes:
        found = votes.unnamed()
        assert (found.cast, found.votes, found.mended) == (11, 8, 6)
        told_of = {each.text: (each.votes, each.cause) for each in found.texts}
        assert told_of == {
            "Cat": (2, "differs only in case"),
            "CAT": (1, "differs only in case"),
            "dog.": (1, "differs only in punctuation"),
            " dog": (1, "differs only in blanks"),
            NFD: (1, "differs only in Unicode form"),
            "Katze": (1, None),
            "fish": (1, None),
        }
        assert found.texts[0].text == "Cat"
        assert pickle.loads(pickle.dumps(votes)).unnamed() == found  # noqa: S301 - our own
        some = votes.unnamed(1)
        whole = votes.layout is Layout.LONG
        assert some == (found if whole else Unnamed(3, 2, 2, some.texts))
        votes.refuse_unnamed()
    with open_votes(source, label_names=NAMES, normalise=True, **told) as votes:
        found = votes.unnamed()
        assert (found.cast, found.votes, found.mended) == (11, 2, 0)
        assert [each.text for each in found.texts] == ["Katze", "fish"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_other_words_is_none_of_these_votes(tmp_path, kind):
    source, told = written(tmp_path, kind)
    with (
        open_votes(source, label_names=("bird", "horse"), **told) as votes,
        pytest.raises(VoteError) as refused,
    ):
        votes.refuse_unnamed()
    assert str(refused.value) == (
        f"{votes.name}: no vote is one of `label_names` bird, horse; give `normalise` if they "
        "differ in case, blanks, punctuation or Unicode form alone, `aliases` if other words stand "
        "for them"
    )
    with open_votes(source, label_names=("bird", "FISH"), normalise=True, **told) as votes:
        votes.refuse_unnamed()


@pytest.mark.parametrize("nothing", ["", " "])
def test_abstentions_are_no_votes(nothing):
    with open_votes([["", nothing]] * 3, layout="labels", label_names=NAMES) as votes:
        assert votes.unnamed() == Unnamed(0, 0, 0, ())
        assert (votes.unnamed().share, votes.unnamed().sentences()) == (0.0, [])
        votes.refuse_unnamed()


def test_votes_in_numbers_are_no_texts():
    for names in (None, NAMES):
        with open_votes([[0, 1], [2, 0]], layout="labels", label_names=names) as votes:
            assert votes.unnamed().cast == 0
            votes.refuse_unnamed()


def test_one_vote_with_a_name_is_enough_and_ends_the_search(monkeypatch):
    ballots = [["x", "x"], ["x", "cat"], ["x", "x"], ["x", "x"]]
    seen = []
    add = NameTally.add
    monkeypatch.setattr(NameTally, "add", lambda *words: (seen.append(1), add(*words)))
    with open_votes(ballots, layout="labels", label_names=NAMES, batch_rows=1) as votes:
        votes.refuse_unnamed()
        assert len(seen) == 2
        votes.unnamed()
        assert len(seen) == 6


def counted(texts, matching=None):
    tally = NameTally(matching or Matching(NAMES))
    distinct = Counter(texts)
    tally.add(list(distinct), np.array(list(distinct.values()), dtype=np.int64))
    return tally.found()


def test_what_the_holder_is_told():
    assert counted(["cat"] * 5).sentences() == []
    assert counted(["cat"] * 19 + ["Cat"]).sentences() == [
        "1 of 20 votes (5.0%) match no label name and count as missing:",
        "  1 x 'Cat', differs only in case",
        "`normalise` would match 1 of them",
    ]
    assert counted(["cat", "N/A", "N/A", "bird", "Dog"]).sentences() == [
        "WARNING: 4 of 5 votes (80.0%) match no label name and count as missing:",
        f"  2 x 'N/A', {ABSTENTION}",
        "  1 x 'Dog', differs only in case",
        "  1 x 'bird'",
        "`normalise` would match 1 of them",
        "`aliases` FILE says which texts stand for which name",
    ]
    # Exactly a tenth is not above it.
    assert not counted(["cat"] * 9 + ["bird"]).sentences()[0].startswith("WARNING")


def test_texts_are_short_and_on_one_line():
    found = counted(["\x1b[2J\nbell\a", "long " * 500, "\udcff", "cat"])
    assert all(each.text.isprintable() and len(each.text) < 200 for each in found.texts)
    assert len(found.texts) == 3
    assert json.loads(json.dumps(found.to_dict()))["votes"] == 3


def test_the_commonest_ten_are_told_of():
    found = counted([f"word {n:02}" for n in range(30) for _ in range(n + 1)])
    assert [each.votes for each in found.texts] == list(range(30, 20, -1))
    assert found.votes == sum(range(31))


def test_endless_kinds_of_texts_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(module, "_KEPT", 20)
    tally = NameTally(Matching(NAMES))
    for batch in range(50):
        texts = ["often", *(f"once {batch} {n}" for n in range(15))]
        tally.add(texts, np.array([9] + [1] * 15))
        assert len(tally.strays) <= 20
    found = tally.found()
    assert (found.votes, found.texts[0].text, found.texts[0].votes) == (50 * 24, "often", 450)


def test_normalising_is_no_advice_where_it_makes_names_alike():
    found = counted(["CAT", "cat"], Matching(("cat", "Cat")))
    assert (found.mended, found.texts[0].cause) == (0, "differs only in case")
    assert found.sentences()[-1].startswith("`aliases`")


def test_it_does_not_show_votes_by_itself():
    assert "bird" not in repr(counted(["bird"]))
