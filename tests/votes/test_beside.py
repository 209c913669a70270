"""What stands beside votes: priors, predictions, lists of queries and aliases.

The same things in every container are the same things: ids, names of classes and words count.
"""

import gzip
import hashlib
import json
import os
import pickle
import threading
import time
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opened import by_hand
from pate_cli.core.arrays import SparseCounts, dense
from pate_cli.core.errors import ParameterError, UsageError, VoteError
from pate_cli.files.protected import current, places_of, watched
from pate_cli.votes.facts import PriorFacts
from pate_cli.votes.join import (
    aliases_of,
    content_of,
    predictions,
    prior,
    query_ids,
    shared_out,
    student,
    with_prior,
)
from pate_cli.votes.opening import open_votes
from refusals import refusal
from stored import table_in

NAMES = ("ant", "bee", "cow")
IDS = ["q2", "q0", "q3", "q1"]
COUNTS = np.array([[9, 1, 0], [2, 5, 3], [4, 4, 2], [0, 3, 7]])
GUESSES = np.array([0, 2, -1, 1])
SHARES = np.array([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0], [0.1, 0.2, 0.7], [0.75, 0.25, 0.0]])


@pytest.fixture
def votes():
    """Counts by name, with ids."""
    table = pa.table({"query_id": IDS} | dict(zip(NAMES, COUNTS.T, strict=True)))
    with open_votes(table, label_names=NAMES) as opened:
        yield opened


@pytest.fixture
def plain():
    """The same counts in an array: neither names nor ids."""
    with open_votes(COUNTS, layout="counts") as opened:
        yield opened


def parts(table, folder):
    """Two files of a folder, each with some of the rows."""
    (folder / "parts").mkdir()
    for part in range(2):
        pq.write_table(table.slice(2 * part, 2), folder / "parts" / f"part.{part}.parquet")
    return folder / "parts"


def written(table, folder, kind, pack=bytes):
    path = folder / f"x.{kind}"
    path.write_bytes(pack(table_in(table, kind)))
    return path


CONTAINERS = {
    "table": lambda table, folder: table,
    "pandas": lambda table, folder: table.to_pandas(),
    "polars": lambda table, folder: pl.from_arrow(table),
    "packed": partial(written, kind="csv", pack=gzip.compress),
    **{kind: partial(written, kind=kind) for kind in ("csv", "jsonl", "parquet", "arrow")},
    "folder": parts,
}


def rows(found, votes, none=-1):
    """What is said of every row of the votes."""
    return np.concatenate([found.at(b.ids, b.first_row, none) for b in votes.batches()])


@pytest.mark.parametrize(("order", "turned"), [(range(4), [2, 0, 1]), ([3, 1, 0, 2], [0, 1, 2])])
@pytest.mark.parametrize("kind", CONTAINERS)
def test_probabilities_go_by_their_ids_and_columns(kind, order, turned, votes, tmp_path):
    columns = {NAMES[j]: SHARES[order, j] for j in turned}
    table = pa.table({"query_id": [IDS[at] for at in order]} | columns)
    source = CONTAINERS[kind](table, tmp_path)
    assert np.array_equal(rows(prior(source, votes), votes, 0.0), SHARES)
    assert np.array_equal(predictions(student(source, votes), tuple(IDS), 0), SHARES)


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("kind", CONTAINERS)
def test_guesses_go_by_their_ids_in_every_container(kind, words, votes, tmp_path):
    wanted = [2, -1, 0, 1]
    said = [NAMES[wanted[at]] if words else wanted[at] for at in (3, 2, 0)]
    table = pa.table({"query_id": [IDS[at] for at in (3, 2, 0)], "label": said, "x": said})
    if kind == "folder":
        table = pa.concat_tables([table, table.slice(0, 1).set_column(0, "query_id", [["z"]])])
    found = prior(CONTAINERS[kind](table, tmp_path), votes)
    assert rows(found, votes).tolist() == wanted


def test_an_index_of_a_frame_is_the_query_ids(votes):
    frame = pd.DataFrame({"label": GUESSES}, index=pd.Index(IDS, name="query_id"))
    assert rows(prior(frame.iloc[::-1], votes), votes).tolist() == GUESSES.tolist()
    assert rows(prior(frame["label"].iloc[[1, 0]], votes), votes).tolist() == [0, 2, -1, -1]
    with open_votes(pd.DataFrame(COUNTS, index=[7, 5, 9, 3]), layout="counts") as numbered:
        shares = pd.DataFrame(SHARES, index=[7, 5, 9, 3]).iloc[::-1]
        assert np.array_equal(rows(student(shares, numbered), numbered), SHARES)
        series = pd.Series([1, 0], index=[3, 7])
        assert rows(prior(series, numbered), numbered).tolist() == [0, -1, -1, 1]


def test_the_column_that_names_the_votes_names_what_is_beside_them(tmp_path):
    table = pa.table({"case": IDS} | {f"class_{j}": COUNTS[:, j] for j in range(3)})
    with open_votes(table, id_column="case") as opened:
        for name in ("case", "query_id"):
            found = prior(pa.table({name: IDS[::-1], "label": [1, 2, 0, 2]}), opened)
            assert rows(found, opened).tolist() == [2, 0, 2, 1]


@pytest.mark.parametrize("there", [[7, 5], ["7", "5"]])
@pytest.mark.parametrize("beside", [[5, 7], ["5", "7"]])
def test_a_number_is_the_same_id_as_its_digits(there, beside):
    """CSV does not tell them apart, so that no container does; 007 is another."""
    table = pa.table({"query_id": there, "class_0": [3, 1], "class_1": [0, 2]})
    with open_votes(table) as opened:
        found = prior(pa.table({"query_id": beside, "label": [0, 1]}), opened)
        assert rows(found, opened).tolist() == [1, 0]
        other = prior(pa.table({"query_id": ["007", "05"], "label": [0, 1]}), opened)
        assert rows(other, opened).tolist() == [-1, -1]


NUMBERED = ["class_2 class_0 class_1", "p2 p0 p1", "2 0 1", "model2_2 model2_0 model2_1"]
OTHERS = ["p2 p3 p1", "a2 b0 c1", "c02 c00 c01", "x z y", "c3 c0 c1"]


@pytest.mark.parametrize("titles", [*NUMBERED, *OTHERS])
def test_columns_go_by_the_numbers_of_classes_and_others_by_their_place(titles, plain):
    shares = SHARES.T[[2, 0, 1]] if titles in NUMBERED else SHARES.T
    table = pa.table(dict(zip(titles.split(), shares, strict=True)))
    assert np.array_equal(rows(prior(table, plain), plain), SHARES)
    assert np.array_equal(student(table, plain).values, SHARES)


def test_lists_and_arrays_go_by_place(plain, tmp_path):
    np.save(tmp_path / "s.npy", SHARES)
    lists = pa.table({"p": SHARES.tolist()})
    fixed = pa.table({"p": pa.FixedSizeListArray.from_arrays(SHARES.ravel(), 3)})
    for source in (SHARES, SHARES.tolist(), tmp_path / "s.npy", lists, fixed):
        assert np.array_equal(predictions(student(source, plain), range(2), 1), SHARES[1:3])
    for guesses in (GUESSES, GUESSES.tolist(), GUESSES.astype(float), [0, 2, None, 1]):
        assert rows(prior(guesses, plain), plain).tolist() == GUESSES.tolist()


def test_words_in_arrays_and_truth_values(votes):
    words = np.array(["ant", "cow", "", "bee"])
    for source in (words, words.astype(object), words.tolist()):
        assert rows(prior(source, votes), votes).tolist() == GUESSES.tolist()
    yes_no = pa.table({"query_id": [0, 1], "label": [True, False]})
    with open_votes([[1, 2], [2, 1]], layout="counts") as two:
        assert rows(prior(yes_no, two), two).tolist() == [1, 0]
    columns = {"query_id": [0, 1], "true": [1, 2], "false": [2, 1]}
    with open_votes(pa.table(columns), label_names=("true", "false")) as two:
        assert rows(prior(yes_no, two), two).tolist() == [0, 1]


def test_words_match_as_those_of_the_votes_do(plain):
    assert "give `label_names`" in refusal(UsageError, prior, ["ant", "bee", "cow", ""], plain)
    told = {"layout": "labels", "label_names": NAMES, "normalise": True, "aliases": {"kuh": "cow"}}
    with open_votes([["ant", "bee"]] * 3, **told) as opened:
        assert rows(prior(["Ant.", "KUH", " bee"], opened), opened).tolist() == [0, 2, 1]


NO_CLASS = "has a number that is not one of the 3 classes"
NO_SHARES = "must have probabilities of at least 0 whose sum is 1"
NO_LIST = "row 1 has a list that is empty, or not as long"
TWICE = {"query_id": ["a", "b", "a"], "label": [0, 1, 2]}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["ant", "dog", "", "bee"], "row 1 has a class that is none of `label_names`"),
        ([0, 1, 3, 0], f"row 2 {NO_CLASS}; the classes are 0 to 2"),
        ([0, 1, 2, -2], f"row 3 {NO_CLASS}"),
        ([0, 1, 0.5, 0], f"row 2 {NO_CLASS}"),
        ([0, 1, 2.0**70, 0], f"row 2 {NO_CLASS}"),
        ([0, float("inf"), 2, 0], f"row 1 {NO_CLASS}"),
        (SHARES * 2, f"row 0 {NO_SHARES}"),
        (SHARES - [[0], [0.1], [0], [0]], f"row 1 {NO_SHARES}"),
        (np.where(SHARES == 0.7, np.nan, SHARES), f"row 2 {NO_SHARES}"),
        (SHARES[:, :2], "must have 3 probabilities per query, one for each class, but has"),
        (SHARES[:, :, None], "has shape (4, 3, 1)"),
        (SHARES[:0], "has shape (0, 3)"),
        (pa.table({"query_id": IDS}), "has no rows, or no column besides the query ids"),
        (pa.table({"p": [[0.5, 0.5], [1.0]]}), NO_LIST),
        (pa.table({"p": [[0.5, 0.5], None]}), NO_LIST),
        (pa.table({"ant": ["x"], "bee": ["y"]}), "all columns must have numbers"),
        (pa.table({"ant": [0.5], "bee": [0.5], "dog": [0.0]}), "names of the classes, ant, bee,"),
        (pa.table({"a": [0.5], "b": [0.5], "c": [0.0]}), "names of the classes, ant, bee, cow"),
        (pa.table(TWICE), "rows 0 and 2 have the same query id"),
        (pa.table({"query_id": ["a", None], "label": [0, 1]}), "row 1 has no 'query_id'"),
        (pa.table({"label": pa.array([], pa.int64())}), "has no rows"),
    ],
)
def test_what_is_no_prior_is_named_with_its_row(given, text, votes):
    assert text in refusal(VoteError, prior, given, votes)


def test_predictions_are_there_for_every_query(votes, plain):
    columns = dict(zip(NAMES, SHARES[:3].T, strict=True))
    found = student(pa.table({"query_id": IDS[:3]} | columns), votes)
    text = refusal(VoteError, predictions, found, tuple(IDS), 0)
    assert "without predictions" in text
    assert "row 3" in text
    short = student(SHARES[:3], plain)
    text = refusal(VoteError, predictions, short, range(4), 0)
    assert "ends at row 2, but the votes go on to row 3" in text
    assert "probabilities" in refusal(VoteError, student, GUESSES, plain)
    near = SHARES + np.array([5e-7, 0, 0])
    for whole in (np.eye(3, dtype=int)[[0, 1, 2, 0]], near):
        assert np.array_equal(predictions(student(whole, plain), range(4), 0), whole)


def test_the_message_names_the_file(plain, votes, tmp_path):
    path = tmp_path / "guesses.npy"
    np.save(path, np.array([0, 5, 0, 0]))
    text = refusal(VoteError, prior, path, plain)
    assert text.startswith("the prior in ")
    assert "guesses.npy: row 1 has" in text
    assert "no such file" in refusal(VoteError, prior, tmp_path / "gone.csv", plain)
    assert "standard input" in refusal(VoteError, prior, "-", plain)
    path.write_bytes(path.read_bytes()[:-5])
    assert "guesses.npy" in refusal(VoteError, prior, path, plain)
    np.save(path, np.array(["ant", "cow", "", "bee"]))
    path.write_bytes(path.read_bytes()[:-12] + b"\xff\xff\xff\x7f" * 3)  # no Unicode
    for read in (prior, student, lambda given, _: query_ids(given, None)):
        assert "guesses.npy: cannot be read" in refusal(VoteError, read, path, votes)


def test_many_columns_beside_votes_take_seconds(tmp_path):
    """The time grows with the number of columns, not with its square."""
    wide = np.zeros((3, 20_000), dtype=int)
    wide[:, 5] = 1
    table = pa.table(dict(zip((f"class_{j}" for j in range(20_000)), wide[:, ::-1].T, strict=True)))
    with open_votes(wide, layout="counts") as opened:
        begun = time.process_time()
        found = prior(table, opened)
        assert time.process_time() - begun < 3
        assert np.array_equal(found.values, wide[:, ::-1])


def test_no_output_may_replace_what_is_read(plain, tmp_path):
    np.save(tmp_path / "p.npy", GUESSES)
    (tmp_path / "a.json").write_text('{"a": "ant"}')
    (tmp_path / "q.csv").write_text("query_id\n1\n")
    (tmp_path / "t.csv").write_text("alias,name\na,ant\n")
    with watched():
        prior(tmp_path / "p.npy", plain)
        query_ids(tmp_path / "q.csv", None)
        aliases_of(tmp_path / "a.json")
        aliases_of(tmp_path / "t.csv")
        for path in tmp_path.iterdir():
            with pytest.raises(UsageError, match="give the output another name"):
                current().claim("labels.csv", places_of(path))


@given(st.lists(st.integers(0, 9), min_size=2, max_size=6).filter(any), st.integers(0, 10**6))
def test_votes_shared_out_are_whole_and_near_the_exact(parts_of, weight):
    shares = np.array([parts_of, [0] * len(parts_of)]) / sum(parts_of)
    found = shared_out(shares, weight)
    assert found.sum(axis=1).tolist() == [weight, 0]
    assert (np.abs(found - shares * weight) < 1 + 1e-6).all()
    assert shared_out(np.full((1, 4), 0.25), 6).tolist() == [[2, 2, 1, 1]]  # ties, in order
    assert shared_out(np.array([[0.0, 1.0]]), 7).tolist() == [[0, 7]]


@pytest.mark.parametrize("batch_rows", [1, 3, None])
def test_votes_of_a_prior_are_on_top(batch_rows):
    with open_votes(COUNTS, layout="counts", batch_rows=batch_rows) as opened:
        found = with_prior(opened, GUESSES, 6)
        batches = list(found.batches())
        counts = np.concatenate([batch.counts for batch in batches])
        assert np.array_equal(counts, COUNTS + 6 * by_hand(GUESSES[:, None], 3))
        assert np.array_equal(np.concatenate([batch.alone for batch in batches]), COUNTS)
        assert np.concatenate([batch.guesses for batch in batches]).tolist() == GUESSES.tolist()
        shares = list(with_prior(opened, SHARES, 8).batches())
        added = np.concatenate([batch.counts for batch in shares]) - COUNTS
        assert added.tolist() == [[4, 2, 2], [0, 0, 8], [1, 2, 5], [6, 2, 0]]
        assert np.concatenate([batch.guesses for batch in shares]).tolist() == [0, 2, 2, 0]
        copy = pickle.loads(pickle.dumps(found))  # noqa: S301 - our own
        assert np.array_equal(next(copy.batches()).counts, batches[0].counts)
        assert found.without_prior is opened


def test_many_classes_have_them_by_their_votes():
    wide = pa.table({"label": [[3, 29_999], [7]], "count": [[2, 1], [3]]})
    with open_votes(wide, layout="sparse", classes=30_000, teachers=3) as opened:
        (batch,) = with_prior(opened, [29_999, 8], 5).batches()
        assert isinstance(batch.counts, SparseCounts)
        found = dense(batch.counts)
        assert found[0, [3, 29_999]].tolist() == [2, 6]
        assert found[1, [7, 8]].tolist() == [3, 5]
        assert found.sum() == 16
        shares = np.zeros((2, 30_000))
        shares[:, 3], shares[:, 4] = 0.5, 0.5
        (batch,) = with_prior(opened, shares, 4).batches()
        assert dense(batch.counts)[:, [3, 4]].tolist() == [[4, 2], [2, 2]]


def test_what_is_public_of_a_prior(votes):
    table = pa.table({"query_id": ["q0", "q1", "else"], "label": [0, 1, 2]})
    found = with_prior(votes, table, 5)
    assert found.guessed(4).facts.prior == PriorFacts(5, 2, content_of(table))
    assert found.guessed(2).facts.prior.guesses == 1
    assert "no guess for any of the first 1 rows" in refusal(VoteError, found.guessed, 1)
    by_place = with_prior(votes, GUESSES, 5)
    assert [by_place.guessed(rows).facts.prior.guesses for rows in (4, 2)] == [3, 2]
    assert "ends at row" in refusal(VoteError, with_prior(votes, GUESSES[:2], 5).guessed, 3)
    none = with_prior(votes, GUESSES, 0)
    (batch,) = none.batches()
    assert np.array_equal(batch.counts, COUNTS)
    assert (batch.alone, none.facts.prior.weight) == (None, 0)


def test_votes_take_one_prior_and_know_their_names(votes):
    assert "one" in refusal(VoteError, with_prior, with_prior(votes, GUESSES, 5), GUESSES, 5)
    with open_votes([["a", "b"]] * 2, layout="labels", any_name=True) as unlisted:
        assert "`prior`" in refusal(UsageError, with_prior, unlisted, [0], 5)


def test_the_hash_is_that_of_the_file_or_of_what_is_held(votes, tmp_path):
    path = tmp_path / "p.csv"
    path.write_text('label\nant\ncow\n""\nbee\n')
    file = hashlib.sha256(path.read_bytes()).hexdigest()
    assert with_prior(votes, path, 3).facts.prior.sha256 == content_of(path) == file
    numbers = hashlib.sha256(GUESSES.astype("<i8").tobytes()).hexdigest()
    for held in (GUESSES, GUESSES.tolist(), GUESSES.astype(np.int8), pa.table({"label": GUESSES})):
        assert with_prior(votes, held, 3).facts.prior.sha256 == content_of(held) == numbers
    with_ids = pa.table({"query_id": IDS, "label": GUESSES})
    assert with_prior(votes, with_ids, 3).facts.prior.sha256 == content_of(with_ids) != numbers
    words = np.array(["ant", "cow", "", "bee"])
    assert with_prior(votes, words, 3).facts.prior.sha256 == content_of(words) != numbers
    several = parts(with_ids, tmp_path)
    assert with_prior(votes, several, 3).facts.prior.sha256 == content_of(with_ids)


YES = np.array([[1, 0], [0, -1], [-1, 1]])


@pytest.fixture
def pairs():
    table = pa.table({"query_id": ["a", "b", "c"], "red": [3, 4, 1], "blue": [0, 2, 5]})
    with open_votes(table, layout="multilabel-counts", teachers=5) as opened:
        yield opened


def test_every_label_has_a_guess_of_its_own(pairs):
    table = pa.table({"query_id": ["c", "a", "b"], "blue": [1, 0, None], "red": [None, 1, 0]})
    for source in (YES, YES.tolist(), pa.table({"v": YES.tolist()}), table, table.to_pandas()):
        assert rows(prior(source, pairs), pairs).tolist() == YES.ravel().tolist()
    (batch,) = with_prior(pairs, YES, 7).batches()
    alone = np.concatenate([each.counts for each in pairs.batches()])
    assert np.array_equal(batch.counts, alone + 7 * by_hand(YES.reshape(-1, 1), 2))
    assert with_prior(pairs, YES, 7).guessed(4).facts.prior.guesses == 3


def test_predictions_of_labels_are_probabilities_of_yes(pairs):
    yes = np.array([[0.9, 0.2], [0.5, 1.0], [0.0, 0.25]])
    for source in (
        yes,
        pa.table({"query_id": ["a", "b", "c"], "blue": yes[:, 1], "red": yes[:, 0]}),
    ):
        found = predictions(student(source, pairs), ("a", "b", "b", "c"), 1)
        assert np.array_equal(found[:, 1], [0.2, 0.5, 1.0, 0.0])
        assert np.array_equal(found.sum(axis=1), np.ones(4))
    assert "from 0 to 1" in refusal(VoteError, student, yes * 2, pairs)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (YES[:, :1], "must have one row per query and 2 columns"),
        (YES[:, 0], "must have one row per query and 2 columns"),
        ([[1, 0], [0, 0.5]], "row 1 has a number that is not one of the 2 classes"),
        ([[1, 0], [0, 2]], "row 1 has a number that is not one of the 2 classes"),
        (pa.table({"red": [1, 0], "green": [0, 1]}), "must have the names of the classes, red,"),
    ],
)
def test_guesses_at_labels_are_yes_or_no(given, text, pairs):
    assert text in refusal(VoteError, prior, given, pairs)


NO_ID = "row 0 or a later row has an id that is neither a whole number nor a text"


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("ids", [["q3", "q0", "q1", "q2"], [9, 4, 7, 5]])
def test_lists_of_queries_in_every_container(kind, ids, tmp_path):
    table = pa.table({"prompt": ["x", "y", "z", "?"], "query_id": ids})
    found = query_ids(CONTAINERS[kind](table, tmp_path), None)
    assert list(found) == ids
    assert isinstance(found, tuple if isinstance(ids[0], str) else np.ndarray)
    for listed in (ids, tuple(ids), np.array(ids), pd.Series(ids), pd.Index(ids)):
        assert list(query_ids(listed, None)) == ids
    renamed = table.rename_columns(["prompt", "case"])
    assert list(query_ids(renamed, "case")) == ids
    np.save(tmp_path / "q.npy", np.array(ids))
    assert list(query_ids(str(tmp_path / "q.npy"), None)) == ids


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([1, 2, 1], "rows 0 and 2 have the same query id"),
        ([1.5], NO_ID),
        ([True, False], NO_ID),
        ([[1, 2]], NO_ID),
        ([], "has shape (0,); give an array of one or two dimensions"),
        (pa.table({"x": [1]}), "is empty, or has no column `query_id`"),
        ([1, 2**63], NO_ID),
        (np.array([1, 2**63], dtype=np.uint64), "has an id that is above 2^63 - 1"),
        *((given, "must be a list of ids") for given in (3, b"ab", {"a", "b"}, {"a": 1})),
    ],
)
def test_lists_of_queries_that_are_none(given, text):
    error = ParameterError if text.startswith("must be") else VoteError
    assert text in refusal(error, query_ids, given, None)


ALIASES = {"Katze": "cat", "1": "cat", "Hund, groß": "dog"}


def test_aliases_come_through_a_pipe_that_is_read_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("alias,name\nK,cat\n",))
    writer.start()
    assert aliases_of(tmp_path / "pipe") == {"K": "cat"}
    writer.join()


@pytest.mark.parametrize("kind", [each for each in CONTAINERS if each != "folder"])
def test_aliases_in_every_container(kind, tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(ALIASES, indent=2, ensure_ascii=False).encode())
    assert aliases_of(path) == aliases_of(str(path)) == aliases_of(ALIASES) == ALIASES
    table = pa.table({"name": list(ALIASES.values()), "alias": list(ALIASES)})
    assert aliases_of(CONTAINERS[kind](table, tmp_path)) == ALIASES
    if kind != "jsonl":
        assert aliases_of(CONTAINERS[kind](table.slice(0, 0), tmp_path)) == {}


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.json", '{"a": "cat", "a": "dog"}', "stands for 'cat' and for 'dog'"),
        ("a.csv", "alias,name\na,cat\na,dog\n", "stands for 'cat' and for 'dog'"),
        ("a.csv", "alias,name\na,cat\nb,\n", "'b' stands for '', but '' is none"),
        ("a.csv", "alias,name\na,bird\n", "'a' stands for 'bird', but 'bird' is none"),
        ("a.json", '{"a": ["cat"]}', "'a' stands for ['cat'], but ['cat'] is none of"),
        ("a.json", "{moo: cow}", "a.json: row 0 cannot be read; write one JSON object"),
        ("a.json", '{"a": ' + "[" * 99999, "a.json: "),
        ("a.csv", "from,to\na,cat\n", "has the columns from, to; the table needs alias, name"),
        ("a.csv", "alias,name,b\na,cat,1\n", "has the columns alias, name, b; the table needs"),
        ("gone.csv", None, "no such file"),
    ],
)
def test_files_of_aliases_that_are_refused(name, content, text, tmp_path):
    if content is not None:
        (tmp_path / name).write_text(content)
    told = {"label_names": ("cat", "dog"), "aliases": tmp_path / name}
    error = ParameterError if " stands for " in f" {text}" else VoteError
    assert text in refusal(error, open_votes([["cat"]], **told).__enter__)
