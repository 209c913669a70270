"""Public guesses beside the votes: what is read, how rows are matched, and what votes they cast."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pate_cli as pate
from pate_cli.core.arrays import DENSE_CLASSES, SparseCounts
from pate_cli.core.errors import ParameterError, UsageError, VoteError
from pate_cli.core.label_set import LabelSet
from pate_cli.votes import open_votes
from pate_cli.votes.beside.prior import NO_GUESS, Prior, prior_of, shared_out, with_votes
from pate_cli.votes.facts import PriorFacts
from refusals import refusal
from reread import reread
from slices import some

GUESSES = [2, 0, NO_GUESS, 3]
NAMES = ("cat", "dog", "cow", "emu")
SHARES = np.random.default_rng(4).dirichlet(np.ones(4), size=40)


@pytest.fixture
def files(npy, parquet, tmp_path):
    """The same columns in every format of tables."""

    def write(**columns):
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        text = tmp_path / "prior.csv"
        lines = [",".join("" if v is None else str(v) for v in row.values()) for row in rows]
        text.write_text("\n".join([",".join(columns), *lines]) + "\n")
        lined = tmp_path / "prior.jsonl"
        lined.write_text("".join(json.dumps(row) + "\n" for row in rows))
        arrow = tmp_path / "prior.arrow"
        table = pa.table(columns)
        with pa.ipc.new_file(arrow, table.schema) as out:
            out.write_table(table)
        return [parquet(columns, "prior.parquet"), text, lined, arrow]

    return write


def cast(prior, ids=range(4), first=0, *, weight=7, classes=4):
    return prior.votes(ids, first, weight=weight, classes=classes).tolist()


# ---------------------------------------------------------------- what is read


def test_guesses_come_in_every_format_by_order(files, npy):
    paths = [*files(label=[2, 0, None, 3]), *files(label=GUESSES)]
    for path in [*paths, npy(np.array(GUESSES, dtype=np.int8), "prior.npy")]:
        prior = prior_of(path, None)
        assert cast(prior) == GUESSES
        assert cast(prior, range(2), 2) == GUESSES[2:]
        assert prior.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        assert prior.guessed(range(4), 0) == 3


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [([7, 8, -9, 10], np.array([10, 7, 11, -9])), (["a", "b", "c", "d"], ("d", "a", "e", "c"))],
    ids=["whole", "text"],
)
def test_guesses_are_matched_by_id_and_who_is_missing_has_none(files, ids, wanted):
    for path in files(label=GUESSES, query_id=ids):
        prior = prior_of(path, None)
        assert cast(prior, wanted, 30) == [3, 2, NO_GUESS, NO_GUESS]
        assert prior.guessed(wanted, 30) == 2
    for path in files(label=GUESSES, own=ids):
        assert cast(prior_of(path, None, id_column="own"), wanted) == [3, 2, NO_GUESS, NO_GUESS]


def test_texts_are_names_of_classes_and_an_empty_one_is_no_guess(files):
    for path in [
        *files(label=["cow", "cat", None, "emu"]),
        *files(label=["cow", "cat", "", "emu"]),
    ]:
        prior = prior_of(path, None)
        assert prior.words == ("cat", "cow", "emu")
        named = prior.named(NAMES, 4)
        assert cast(named) == GUESSES
        assert named.sha256 == prior.sha256
        assert refusal(VoteError, prior.named, None, 4) == (
            "the prior: its guesses are texts; give `label_names`"
        )
        assert refusal(VoteError, prior.named, ("cat", "dog", "emu", "yak"), 4) == (
            "the prior: 'cow' is none of `label_names`; an empty text stands for no guess"
        )


def test_probabilities_have_columns_by_name_in_any_order(files, npy):
    order = [3, 1, 0, 2]
    named = {NAMES[place]: SHARES[:, place] for place in order}
    wanted = shared_out(SHARES, 7).tolist()
    for path in files(**named):
        prior = prior_of(path, None)
        assert cast(prior.named(NAMES, 4), range(40)) == wanted
        # Columns that are called otherwise are in the order of classes.
        assert cast(prior.named(None, 4), range(40)) == shared_out(SHARES[:, order], 7).tolist()
        assert cast(prior.named(("a", "b", "c", "d"), 4), range(40)) != wanted
    array = npy(SHARES.astype(np.float32), "prior.npy")
    assert cast(prior_of(array, None).named(NAMES, 4), range(40)) == wanted


def test_probabilities_by_id(files):
    columns = {f"class_{c}": SHARES[:4, c] for c in range(4)}
    for path in files(query_id=["a", "b", "c", "d"], **columns):
        prior = prior_of(path, None).named(None, 4)
        found = cast(prior, ("d", "x", "a"))
        assert found == [
            *shared_out(SHARES[3:4], 7).tolist(),
            [0] * 4,
            *shared_out(SHARES[:1], 7).tolist(),
        ]
        assert prior.guessed(("d", "x", "a"), 0) == 2


PAIRS = [[1, 0, NO_GUESS], [0, 0, 1], [NO_GUESS, NO_GUESS, NO_GUESS], [1, 1, 1]]


def test_several_labels_each_by_itself(files, npy):
    label_set = LabelSet(3, names=("a", "b", "c"))
    columns = {name: [row[at] for row in PAIRS] for at, name in enumerate("abc")}
    gaps = {name: [None if v < 0 else v for v in column] for name, column in columns.items()}
    paths = [*files(**columns), *files(**gaps), npy(np.array(PAIRS), "prior.npy")]
    for path in paths:
        prior = prior_of(path, label_set)
        assert cast(prior, range(5), 3, classes=2) == [0, 0, 1, NO_GUESS, NO_GUESS]
        assert prior.guessed(range(12), 0) == 8
    for path in files(query_id=["w", "x", "y", "z"], **columns):
        prior = prior_of(path, label_set)
        assert cast(prior, ("z", "z", "q", "x"), 3, classes=2) == [1, 1, NO_GUESS, 0]
    held = prior_of(np.array(PAIRS), label_set)
    assert cast(held, range(12), classes=2) == np.ravel(PAIRS).tolist()


@pytest.mark.parametrize("bad", [2, 0.7, -2])
def test_a_guess_at_a_label_is_yes_or_no_and_never_rounded(files, npy, bad):
    label_set = LabelSet(2, names=("a", "b"))
    array = npy(np.array([[1, 0], [0, bad]]), "prior.npy")
    for path in [*files(a=[1, 0], b=[0, bad]), array]:
        text = refusal(VoteError, prior_of, path, label_set)
        assert text == f"{path}: row 1 has a guess that is neither 1, 0 nor -1"


def test_labels_are_those_of_the_votes(files, npy):
    label_set = LabelSet(2, names=("a", "b"))
    for path in files(b=[1, 0], a=[0, 1]):
        assert "name other labels" in refusal(VoteError, prior_of, path, label_set)
    for path in files(a=[1, 0], b=[0, 1], c=[0, 0]):
        assert "have 3 labels, the votes 2" in refusal(VoteError, prior_of, path, label_set)
    with pytest.raises(VoteError):
        prior_of(npy(np.array([[1, 0, 1]]), "prior.npy"), LabelSet(2))
    with pytest.raises(VoteError):
        prior_of(np.array([0, 1]), LabelSet(2))
    with pytest.raises(VoteError):
        prior_of(np.array([[0, 1]]), None)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "guesses",
    [
        np.zeros((2, 2, 2)),
        np.array(["a"]),
        np.array(3),
        np.array([], dtype=int),
        np.array([True]),
        np.array([0.0, 1.0]),
        [[1], [1, 2]],
        object(),
    ],
)
def test_other_shapes_are_refused(guesses):
    with pytest.raises(ParameterError, match="the prior"):
        Prior(guesses)


@pytest.mark.parametrize(
    "row",
    [[0.5, 0.4], [0.5, 0.6], [-0.1, 1.1], [np.nan, 1.0], [np.inf, 0.0], [2.0, -1.0], [0.0, 0.0]],
)
def test_no_probabilities_are_refused_by_row(row):
    with pytest.raises(VoteError, match="row 1 has no probabilities that sum to 1 within 1e-6"):
        Prior(np.array([[0.25, 0.75], row]))


def test_guesses_out_of_range_are_refused_by_row():
    for bad in (-2, -(2**63)):
        with pytest.raises(VoteError, match="row 1 has a guess below -1"):
            Prior([0, bad])
    huge = Prior(np.array([0, 2**64 - 1], dtype=np.uint64))  # -1 in 64 signed bits
    for prior in (Prior([0, 4]), huge):
        with pytest.raises(VoteError, match="row 1 has a guess that is not among the 4 classes"):
            prior.named(None, 4)
    with pytest.raises(VoteError, match="probabilities of 4 classes, the votes have 5"):
        Prior(SHARES).named(None, 5)


def test_ids_are_one_a_row_and_distinct():
    with pytest.raises(VoteError, match="3 query ids for 2 rows"):
        Prior([0, 1], [1, 2, 3])
    with pytest.raises(VoteError, match="the query id of row 1 is that of row 0, too"):
        Prior([0, 1], ["a", "a"])


def test_a_prior_that_ends_before_the_votes_is_refused_at_once(npy):
    votes = np.array([[3, 1], [2, 2], [1, 3]])
    with pytest.raises(VoteError, match="end at row 1, the votes go on to row 2"):
        pate.aggregate(votes, "gnmax", layout="counts", prior=[0, 1], prior_weight=1, seed=1)
    few = pate.aggregate(
        votes, "gnmax", layout="counts", prior=[0, 1], prior_weight=1, seed=1, max_queries=2
    )
    assert len(few.labels) == 2


def test_files_that_are_no_prior(files, tmp_path, npy):
    for path in files(label=[0.5, 1.25]):
        with pytest.raises(VoteError):
            prior_of(path, None)
    for path in (npy(np.array([b"x"]), "b.npy"), npy(np.zeros((0, 2)), "e.npy")):
        with pytest.raises(VoteError, match="the prior must be"):
            prior_of(path, None)
    broken = tmp_path / "prior.parquet"
    broken.write_bytes(b"PAR1 no more")
    with pytest.raises(VoteError):
        prior_of(broken, None)
    with pytest.raises(VoteError, match="give a file"):
        prior_of("-", None)


def test_the_hash_is_of_what_is_held():
    one, other = Prior([0, 1, -1]), Prior([0, 1, 1])
    assert one.sha256 == Prior(np.array([0, 1, -1], dtype=np.int8)).sha256 != other.sha256
    assert len(one.sha256) == 64
    assert Prior(SHARES).sha256 == Prior(SHARES.copy()).sha256


def test_several_files_are_one_prior(parquet, tmp_path):
    for part in range(2):
        parquet({"label": GUESSES[2 * part : 2 * part + 2]}, f"parts/{part}.parquet")
    folder = tmp_path / "parts"
    for path in (folder, f"{folder}/*.parquet", folder.as_uri()):
        prior = prior_of(path, None)
        assert cast(prior) == GUESSES
        assert prior.sha256 == Prior(np.array(GUESSES)).sha256


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_read_once_and_what_it_held_is_hashed(tmp_path):
    content = b"label\n1\n0\n2\n"
    whole = tmp_path / "whole.csv"
    whole.write_bytes(content)
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit((tmp_path / "pipe").write_bytes, content)
        found = prior_of(tmp_path / "pipe", None)
    assert found.sha256 == prior_of(np.array([1, 0, 2]), None).sha256
    assert prior_of(whole, None).sha256 == hashlib.sha256(content).hexdigest()


def test_a_prior_keeps_what_it_was_given():
    given_away = np.array([0, 1])
    prior = Prior(given_away)
    given_away[:] = 1
    assert cast(prior, range(2)) == [0, 1]


# ---------------------------------------------------------------- the votes it casts


@st.composite
def shares(draw):
    classes = draw(st.integers(2, 9))
    weights = draw(st.lists(st.floats(0.0, 1.0), min_size=classes, max_size=classes))
    weights = np.array(weights) + 1e-300
    off = 1.0 + draw(st.floats(-0.9e-6, 0.9e-6))
    return weights / weights.sum() * off


@given(shares(), st.integers(0, 2**31 - 1))
def test_votes_shared_out_are_whole_as_many_as_there_are_and_near_the_exact(row, weight):
    probabilities = Prior(row[None]).guesses
    (found,) = shared_out(probabilities, weight)
    exact = probabilities[0] * weight
    assert found.sum() == weight
    assert np.all(found >= 0)
    assert np.all(np.abs(found - exact) < 1.0 + 1e-6)
    assert np.all(found[exact == 0.0] == 0) or weight == 0


@given(st.integers(1, 50), st.integers(2, 60))
def test_equal_shares_go_to_the_first(weight, classes):
    (found,) = shared_out(np.full((1, classes), 1.0 / classes), weight)
    each, more = divmod(weight, classes)
    assert found.tolist() == [each + 1] * more + [each] * (classes - more)


def test_all_of_a_sure_guess():
    assert shared_out(np.eye(3), 60).tolist() == (60 * np.eye(3)).tolist()
    assert shared_out(np.array([[0.5, 0.25, 0.25]]), 60).tolist() == [[30, 15, 15]]
    assert shared_out(np.array([[0.5, 0.3, 0.2]]), 4).tolist() == [[2, 1, 1]]


@pytest.mark.parametrize("weight", [0, 1, 7, 2**31 - 1])
def test_votes_are_on_top_and_the_histograms_stay_as_they_were(histograms, weight):
    before = histograms.copy()
    guesses = np.arange(40) % 5 - 1
    for votes in (guesses, shared_out(SHARES, weight)):
        found = with_votes(histograms, votes, weight)
        sparse = with_votes(SparseCounts.of(histograms), votes, weight)
        np.testing.assert_array_equal(sparse.dense(), found)
        np.testing.assert_array_equal(histograms, before)
        assert found.dtype == sparse.counts.dtype == np.int64
        added = found - histograms
        assert set(added.sum(axis=1)[1::5]) == {weight}
        if votes.ndim == 1:
            assert not added[0::5].any()
            assert set(added[1::5, 0]) == {weight}


def test_many_classes_have_them_by_their_votes():
    classes, teachers = DENSE_CLASSES + 5, 6
    ballots = np.random.default_rng(3).integers(classes, size=(9, teachers))
    guesses = np.r_[ballots[:4, 0], NO_GUESS, classes - 1, 0, ballots[7:, 1]]
    with open_votes(ballots, layout="labels", classes=classes, teachers=teachers) as plain:
        (batch,) = plain.with_prior(Prior(guesses), 4).batches()
        (alone,) = plain.batches()
    assert isinstance(batch.counts, SparseCounts)
    wanted = alone.counts.dense()
    rows = np.flatnonzero(guesses >= 0)
    wanted[rows, guesses[rows]] += 4
    np.testing.assert_array_equal(batch.counts.dense(), wanted)


def test_dense_or_sparse_gives_the_same_labels(histograms):
    guesses = np.arange(40) % 4
    wide = np.pad(histograms, ((0, 0), (0, DENSE_CLASSES - 3)))
    asked = {
        "layout": "counts",
        "prior": guesses,
        "prior_weight": 9,
        "sigma2": "0.01 votes",
        "seed": 2,
    }
    dense, sparse = (pate.aggregate(votes, "gnmax", **asked).labels for votes in (histograms, wide))
    assert list(dense) == list(sparse)


# ---------------------------------------------------------------- opened votes


@pytest.fixture
def opened(parquet, histograms):
    """Votes in a file with ids, cut into batches of so many rows."""

    def open_(batch_rows=None, **more):
        names = [f"q{7 * row % 40}" for row in range(40)]
        wide = {f"class_{c}": histograms[:, c] for c in range(4)}
        path = parquet({"query_id": names, **wide}, row_group_size=13)
        return open_votes(path, batch_rows=batch_rows, **more)

    return open_


PRIORS = {
    "by order": Prior(np.arange(40) % 5 - 1),
    "by id": Prior(np.arange(30) % 4, [f"q{row}" for row in range(30)]),
    "shares": Prior(SHARES),
    "shares by id": Prior(SHARES[:30], [f"q{row}" for row in range(30)]),
}


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_batches_cut_anywhere_hold_the_same(opened, prior):
    with opened() as votes:
        whole = np.concatenate([b.counts for b in votes.with_prior(prior, 6).batches()])
        plain = np.concatenate([b.counts for b in votes.batches()])
    assert (whole != plain).any()
    assert set((whole - plain).sum(axis=1)) <= {0, 6}
    for size in (1, 7, 39):
        with opened(size) as votes:
            file = votes.with_prior(prior, 6)
            found = list(file.batches())
            np.testing.assert_array_equal(np.concatenate([b.counts for b in found]), whole)
            assert all(b.counts.flags.c_contiguous and b.counts.dtype == np.int64 for b in found)
            for start, limit in ((0, 5), (13, 1), (17, 20), (39, 1)):
                part = list(file.batches(start=start, limit=limit))
                counts = np.concatenate([b.counts for b in part])
                np.testing.assert_array_equal(counts, whole[start : start + limit])


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_a_copy_in_another_process_has_the_prior_too(opened, prior):
    with opened(6) as votes:
        file = votes.with_prior(prior, 6)
        assert file.portable
        here = reread(file, [0, 13, 39])
        again = pickle.loads(pickle.dumps(file))  # noqa: S301 - our own
        assert again == file
        assert reread(again, [0, 13, 39]) == here
        if prior is PRIORS["by id"]:
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                assert pool.submit(reread, file, [0, 13, 39]).result() == here


def test_what_is_public_about_it_and_the_votes_without(opened):
    prior = PRIORS["by id"]
    with opened() as votes:
        file = votes.with_prior(prior, 6)
        assert votes.prior is None
        assert votes.facts.prior is None
        assert file.guessed(40).prior == PriorFacts(6, 30, prior.sha256)
        assert file.guessed(10).facts.prior.guesses < 30
        assert (file.teachers, file.classes, file.queries) == (25, 4, 40)
        assert file.without_prior == votes
        assert votes.without_prior is votes
        assert votes.guessed(40) is votes
        assert reread(file.without_prior, [0]) == reread(votes, [0])


def test_votes_take_one_prior(opened):
    """Those of a first would not be in the weight of a second."""
    with opened() as votes:
        file = votes.with_prior(PRIORS["by id"], 6)
        with pytest.raises(VoteError, match="have a prior already"):
            file.with_prior(PRIORS["by order"], 1)
        with pytest.raises(VoteError, match="have a prior already"):
            pate.quote(file, "gnmax", prior=[0] * 40, prior_weight=6)
        asked = {"seed": 3, "sigma2": 3.0}
        done = pate.aggregate(file, "gnmax", **asked)
        by_words = pate.aggregate(votes, "gnmax", prior=PRIORS["by id"], prior_weight=6, **asked)
        assert list(done.labels) == list(by_words.labels)
        # What knows of no prior does not take its votes for teachers'.
        with pytest.raises(UsageError, match="without_prior"):
            pate.accuracy(file, np.zeros(40, dtype=np.int64))


# ---------------------------------------------------------------- runs


TESTED = {"threshold": 15.0, "sigma1": 4.0, "sigma2": 3.0}
ASKED = {
    "gnmax": {"sigma2": 3.0},
    "confident": TESTED,
    "interactive": {**TESTED, "threshold": 4.0, "predictions": None},
}


def words(name):
    if name != "interactive":
        return ASKED[name]
    return {**ASKED[name], "predictions": pate.StudentPredictions(SHARES)}


@pytest.mark.parametrize("name", some(ASKED, 2))
def test_a_weight_of_nothing_changes_nothing(histograms, name):
    """Labels to the bit, and every public and every secret cost."""
    asked = {"layout": "counts", **words(name)}
    one = pate.aggregate(histograms, name, seed=5, **asked)
    cost = pate.cost(histograms, name, **asked).to_dict()
    for prior in (np.arange(40) % 4, SHARES, Prior([1], [3])):
        more = {"prior": prior, "prior_weight": 0}
        other = pate.aggregate(histograms, name, seed=5, **asked, **more)
        assert list(one.labels) == list(other.labels)
        np.testing.assert_array_equal(one.labels.sources, other.labels.sources)
        assert one.report.epsilon == other.report.epsilon
        assert pate.cost(histograms, name, **asked, **more).to_dict() == cost


def test_a_guess_is_worth_its_votes_in_the_labels_and_in_what_is_charged(histograms):
    """The same as a file in which as many more teachers voted so."""
    guesses = np.arange(40) % 4
    more = histograms + 8 * np.eye(4, dtype=np.int64)[guesses]
    asked = {"layout": "counts", **TESTED}
    one = pate.aggregate(histograms, "confident", seed=5, prior=guesses, prior_weight=8, **asked)
    other = pate.aggregate(more, "confident", seed=5, **asked)
    assert list(one.labels) == list(other.labels)
    assert one.report.epsilon == other.report.epsilon
    found, wanted = (
        pate.cost(votes, "confident", **asked, **prior)
        for votes, prior in (
            (histograms, {"prior": guesses, "prior_weight": 8}),
            (more, {}),
        )
    )
    assert found.epsilon == pytest.approx(wanted.epsilon, rel=1e-12)


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_change_nothing(opened, workers):
    with opened(5) as votes:
        done = pate.aggregate(
            votes,
            "gnmax",
            sigma2=3.0,
            seed=1,
            prior=PRIORS["by id"],
            prior_weight=9,
            workers=workers,
        )
        file = votes.with_prior(PRIORS["by id"], 9)
        whole = np.concatenate([b.counts for b in file.batches()])
    alone = pate.aggregate(whole, "gnmax", sigma2=3.0, seed=1, layout="counts", teachers=34)
    assert list(done.labels) == list(alone.labels)


def test_runs_of_several_labels():
    """A guess that outvotes all teachers is what comes out; where there is none, they decide."""
    ballots = np.zeros((12, 9, 3), dtype=np.int64)
    guesses = np.tile([[1, 0, 1], [0, 1, NO_GUESS]], (6, 1))
    asked = {"layout": "multilabel", "teachers": 9, "sigma2": "0.01 votes"}
    done = pate.aggregate(
        ballots, "gnmax", seed=1, prior=guesses, prior_weight=20, max_queries=10, **asked
    )
    assert done.labels.labels.ravel().tolist() == [1, 0, 1, 0, 1, 0] * 5


def test_weights_are_whole_votes_or_a_share_rounded(histograms):
    def weight(value):
        done = pate.quote(histograms, "gnmax", layout="counts", prior=[0] * 40, **value)
        return done.mechanism["prior_weight"]

    assert weight({}) == 5
    assert weight({"prior_weight": "50%"}) == 12
    assert weight({"prior_weight": 12}) == 12
    for bad in (1.5, -1, 2.0**31, np.nan, np.inf):
        with pytest.raises(pate.PateError):
            weight({"prior_weight": bad})
    with pytest.raises(UsageError, match="goes with `prior`"):
        pate.quote(histograms, "gnmax", layout="counts", prior_weight=3)


def test_guesses_at_other_queries_are_refused():
    """They would else change nothing, and nobody would hear of it."""
    guesses = pate.Prior([0, 1], ids=["a", "b"])
    with pytest.raises(VoteError, match="no guess for any of the 2 rows that are asked"):
        pate.aggregate([[5, 1], [2, 4]], "gnmax", layout="counts", prior=guesses, seed=1)
