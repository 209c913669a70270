"""Names that nobody listed: every way of writing them, read as a ballot is, and nothing said."""

from __future__ import annotations

import csv
import json
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import pate_cli as pate
from pate_cli.core.arrays import SparseCounts
from pate_cli.core.checks import MOST_CLASSES
from pate_cli.core.errors import UsageError, VoteError
from pate_cli.votes import TeacherGroups, open_votes
from pate_cli.votes.ballot import BallotReader
from pate_cli.votes.vocabulary import Vocabulary

TEACHERS, QUERIES = 9, 12
SAID = ["heron", "Heron ", "egret", "egret.", "007", "1", "1.0", "-1", 'a "b", c', "é", "é"]
SAID += ["nan", "n/a", "", "  "]

TEACHER_COLUMNS = [f"teacher_{t}" for t in range(TEACHERS)]


@pytest.fixture
def words():
    """[queries, teachers] of texts; each teacher says a word now and then."""
    said = np.random.default_rng(8).choice(np.array(SAID, dtype=object), (QUERIES, TEACHERS))
    said[0] = "heron"
    return said


def texts(words):
    return words.astype(str)


def long_rows(words):
    ids = [f"q{row:02}" for row in range(QUERIES) for _ in range(TEACHERS)]
    return {
        "query_id": ids,
        "teacher_id": TEACHER_COLUMNS * QUERIES,
        "label": words.ravel().tolist(),
    }


def wide(words):
    columns = {name: words[:, t].tolist() for t, name in enumerate(TEACHER_COLUMNS)}
    return {"query_id": list(range(QUERIES)), **columns}


def with_gaps(column):
    return [text or None for text in column]


def write_csv(path, columns):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def as_npy(words, path):
    np.save(path / "v.npy", texts(words))
    return path / "v.npy", {"layout": "labels"}


def as_npy_by_teacher(words, path):
    np.save(path / "v.npy", texts(words.T))
    return path / "v.npy", {"layout": "labels-by-teacher"}


def as_array(words, path):
    return texts(words), {"layout": "labels"}


def as_rows(words, path):
    return words.tolist(), {"layout": "labels"}


def as_lists(words, path):
    rows = [{"labels": with_gaps(row)} for row in words]
    write_lines(path / "v.jsonl", rows)
    return path / "v.jsonl", {}


def as_parquet_lists(words, path):
    table = pa.table({"labels": [with_gaps(row) for row in words]})
    pq.write_table(table, path / "v.parquet", row_group_size=5)
    return path / "v.parquet", {}


def as_parquet(words, path):
    columns = {name: pa.array(column) for name, column in wide(words).items()}
    columns |= {name: columns[name].dictionary_encode() for name in TEACHER_COLUMNS[::2]}
    pq.write_table(pa.table(columns), path / "v.parquet")
    return path / "v.parquet", {}


def as_arrow(words, path):
    feather.write_feather(pa.table(wide(words)), path / "v.arrow")
    return path / "v.arrow", {}


def as_csv(words, path):
    write_csv(path / "v.csv", wide(words))
    return path / "v.csv", {}


def as_long_csv(words, path):
    write_csv(path / "v.csv", long_rows(words))
    return path / "v.csv", {}


def as_long_lines(words, path):
    columns = long_rows(words)
    rows = zip(*columns.values(), strict=True)
    write_lines(path / "v.jsonl", [dict(zip(columns, row, strict=True)) for row in rows])
    return path / "v.jsonl", {}


def as_long_table(words, path):
    columns = long_rows(words)
    order = np.random.default_rng(1).permutation(QUERIES * TEACHERS)
    return pa.table({**columns, "label": with_gaps(columns["label"])}).take(order), {}


WAYS = [
    as_npy,
    as_npy_by_teacher,
    as_array,
    as_rows,
    as_lists,
    as_parquet_lists,
    as_parquet,
    as_arrow,
    as_csv,
    as_long_csv,
    as_long_lines,
    as_long_table,
]


def histograms(file):
    """How many votes every name has, query by query."""
    found = []
    for batch in file.batches():
        assert isinstance(batch.counts, SparseCounts)
        for labels, counts in zip(*batch.counts.entries, strict=True):
            pairs = zip(labels.tolist(), counts.tolist(), strict=True)
            found.append({file.vocabulary.title(at): n for at, n in pairs if n})
    return found


def as_ballots(words, **options):
    reader = BallotReader(TEACHERS, None, **options)
    ballots = [reader.ballot(row) for row in words.tolist()]
    return [dict(zip(ballot.names, ballot.counts.tolist(), strict=True)) for ballot in ballots]


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_whatever_the_file_votes_are_counted_as_on_a_ballot(words, tmp_path, way, normalise):
    source, how = way(words, tmp_path)
    with open_votes(source, any_name=True, normalise=normalise, **how) as file:
        assert histograms(file) == as_ballots(words, normalise=normalise)
        assert (file.queries, file.teachers, file.classes) == (QUERIES, TEACHERS, MOST_CLASSES)
        assert file.read_off == ()
        assert file.class_names is None


@pytest.mark.parametrize("way", WAYS)
def test_nothing_that_is_said_of_a_file_depends_on_what_was_said_in_it(words, tmp_path, way):
    """Not even where all that was said are numbers, or nothing at all."""
    told = []
    for change in ({}, {(3, 4): "osprey"}, {(3, 4): ""}):
        for at, text in change.items():
            words[at] = text
        source, how = way(words, tmp_path)
        with open_votes(source, any_name=True, **how) as file:
            line = repr((file, file.facts, file.matching)) + file.describe()
            told.append((line, file.portable, file.ranges(limit=QUERIES, entries=8)))
            assert not file.portable
            file.refuse_unnamed()
            assert file.unnamed().cast == 0
    assert told[0] == told[1] == told[2]
    assert "names that nobody listed" in told[0][0]
    assert not any(text.strip() in told[0][0] for text in ("heron", "egret", "osprey"))


@pytest.mark.parametrize("columns", [wide, long_rows])
def test_numbers_in_text_are_texts_whether_or_not_there_is_another(tmp_path, columns):
    """So one vote in words renames no other."""
    numbers = np.random.default_rng(2).choice(["7", "12", "-1"], (QUERIES, TEACHERS)).astype(object)
    told = []
    for vote in ("7", "heron", "2.5", "007", "99999999999999999999"):
        numbers[3, 4] = vote
        write_csv(tmp_path / "v.csv", columns(numbers))
        with open_votes(tmp_path / "v.csv", any_name=True) as file:
            told.append((file.describe(), file.matching.names))
            found = histograms(file)
        assert found[:3] + found[4:] == as_ballots(np.delete(numbers, 3, axis=0))
        if columns is long_rows:
            assert found[3] == as_ballots(numbers)[3]
    assert len({line for line, _ in told}) == 1
    assert all({"7", "12", "-1"} <= set(names) for _, names in told)


def test_numbers_of_a_csv_that_are_not_said_to_be_labels_are_refused(tmp_path):
    """As labels alone they would be texts, and their sums tell that they are no counts."""
    rows = "".join(f"{q},2,{q % 3},{(q + 1) % 3}\n" for q in range(30))
    (tmp_path / "v.csv").write_text("query_id,ann,bob,eve\n" + rows)
    how = {"any_name": True, "teachers": 3}
    with (
        pytest.raises(VoteError, match="if its votes are labels, say `layout` labels"),
        open_votes(tmp_path / "v.csv", **how),
    ):
        pass
    with open_votes(tmp_path / "v.csv", layout="labels", **how) as file:
        assert histograms(file)[1] == {"2": 2, "1": 1}


@pytest.mark.parametrize("by_row", [True, False])
def test_numbers_are_names_of_themselves(by_row):
    numbers = np.array([[3, 3, 700_000], [3, -1, 0], [0, 0, 1], [5, 5, 5]])
    how = {"layout": "labels"} if by_row else {"layout": "labels-by-teacher"}
    with open_votes(numbers if by_row else numbers.T, any_name=True, **how) as file:
        assert file.read_off == ()
        found = histograms(file)
    assert found[0] == {"3": 2, "700000": 1}
    assert found[1] == {"3": 1, "0": 1}


def test_known_columns_are_what_they_were():
    counts = [[5, 1, 0], [4, 1, 1]]
    with open_votes(counts, layout="counts", any_name=True) as file:
        assert (file.classes, file.vocabulary) == (3, None)
    texts_known = np.array([["a", "b"], ["b", "b"], ["?", "a"]])
    with open_votes(texts_known, layout="labels", label_names="a,b", any_name=True) as file:
        assert (file.classes, file.vocabulary) == (2, None)


def test_an_empty_long_file_is_the_neighbour_of_one_with_a_vote():
    none = pa.table(
        {
            "query_id": pa.array([], pa.int64()),
            "teacher_id": pa.array([], pa.int64()),
            "label": pa.array([], pa.string()),
        }
    )
    with open_votes(none, any_name=True, teachers=5, queries=[1, 2]) as file:
        assert histograms(file) == [{}, {}]


def test_weights_of_groups_count_names(words):
    groups = TeacherGroups(["one"] * 5 + ["two"] * 4, [1] * 5 + [3] * 4)
    with open_votes(texts(words), layout="labels", any_name=True, groups=groups) as file:
        reader = BallotReader(17, None, groups=groups)
        for row, found in zip(words.tolist(), histograms(file), strict=True):
            ballot = reader.ballot(row)
            assert found == dict(zip(ballot.names, ballot.counts.tolist(), strict=True))


def test_a_text_that_no_file_could_hold_is_a_missing_vote():
    vocabulary = Vocabulary().heard([(["a\0", "\ud800", "", " ", "b", None], np.ones(6))])
    assert vocabulary.names == ("b",)
    assert [vocabulary.place(text) for text in ("b", "c", "", None, "\ud800")] == [
        0,
        -1,
        -1,
        -1,
        -1,
    ]
    assert pickle.loads(pickle.dumps(vocabulary)) == vocabulary  # noqa: S301
    assert "b" not in repr(vocabulary).removeprefix("Vocabulary")


def test_order_of_names_depends_on_no_vote(words):
    with open_votes(texts(words), layout="labels", any_name=True) as file:
        assert list(file.vocabulary.names) == sorted(file.vocabulary.names)


@pytest.mark.parametrize(
    ("source", "words", "message"),
    [
        ([[5, 1], [4, 2]], {"layout": "counts", "normalise": True}, "these are none"),
        ([["a"], ["b"]], {"layout": "labels", "aliases": {"a": "b"}}, "goes with `label_names`"),
        ([["a", "b"], ["b", "b"]], {"layout": "counts"}, "counts are integers"),
        ([["a", "b"], ["b", "b"]], {"layout": "labels", "classes": 4}, "give `label_names`"),
        ([[1 << 24, 0], [0, 0]], {"layout": "labels"}, "label outside"),
    ],
)
def test_what_makes_no_sense_is_refused(source, words, message):
    with (
        pytest.raises(pate.PateError, match=message),
        open_votes(source, any_name=True, **words) as file,
    ):
        list(file.batches())


def test_a_prior_needs_the_names():
    votes = np.array([["a", "b"], ["b", "b"]])
    with (
        open_votes(votes, layout="labels", any_name=True) as file,
        pytest.raises(UsageError, match="give `label_names`"),
    ):
        file.with_prior(None, 3)
