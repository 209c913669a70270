"""A pool: clusters of queries, in each of which a teacher votes as it does most often there."""

from __future__ import annotations

import hashlib
import pickle
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pate_cli as pate
from pate_cli.core.arrays import DENSE_CLASSES, SparseCounts
from pate_cli.core.errors import ParameterError, UsageError, VoteError
from pate_cli.votes import checks, open_votes, pooled
from pate_cli.votes.beside.pool import Pool, pool_of
from pate_cli.votes.checks import ABSENT
from pate_cli.votes.facts import PoolFacts
from pate_cli.votes.pooled import pluralities
from refusals import refusal

QUERIES, TEACHERS, CLASSES = 24, 7, 3
RANDOM = np.random.default_rng(8)
SAID = RANDOM.integers(-1, CLASSES, size=(QUERIES, TEACHERS))
CLUSTERS = RANDOM.permutation(np.repeat([5, 2, 9, 0, 7], [1, 9, 3, 5, 6]))


def by_hand(said, clusters, classes=CLASSES, weights=None):
    """Histograms of the clusters in order of their first query, and these clusters."""
    names = list(dict.fromkeys(clusters))
    found = []
    for name in names:
        histogram = [0] * classes
        for teacher in range(len(said[0])):
            mine = [
                row[teacher] for row, where in zip(said, clusters, strict=True) if where == name
            ]
            times = Counter(label for label in mine if label >= 0)
            if times:
                most = max(times.values())
                label = min(label for label, often in times.items() if often == most)
                histogram[label] += 1 if weights is None else weights[teacher]
        found.append(histogram)
    return names, found


NAMES, POOLED = by_hand(SAID.tolist(), CLUSTERS.tolist())


def long_of(said, order=None):
    """One row a vote, none where there is none."""
    rows = [
        (query, teacher, label)
        for query, row in enumerate(said.tolist())
        for teacher, label in enumerate(row)
        if label != ABSENT
    ]
    rows = rows if order is None else [rows[place] for place in order.permutation(len(rows))]
    query, teacher, label = zip(*rows, strict=True)
    return pa.table({"query_id": query, "teacher_id": teacher, "label": label})


def scores_of(said):
    """Scores that are highest at what a teacher says, NaN throughout where that is nothing."""
    scores = np.random.default_rng(3).random((*said.shape, CLASSES))
    query, teacher = np.nonzero(said >= 0)
    scores[query, teacher, said[query, teacher]] += 1.0
    scores[said < 0] = np.nan
    return scores


def table_of(said):
    columns = {f"t{teacher}": said[:, teacher].tolist() for teacher in range(said.shape[1])}
    columns = {name: [None if v < 0 else v for v in column] for name, column in columns.items()}
    return pa.table({"query_id": list(range(len(said))), **columns})


LISTS = pa.table({"labels": [[None if v < 0 else v for v in row] for row in SAID.tolist()]})
WORDS = pa.table({"labels": [["" if v < 0 else "abc"[v] for v in row] for row in SAID.tolist()]})
SOURCES = {
    "labels": (SAID, {"layout": "labels"}),
    "labels by teacher": (SAID.T.copy(), {"layout": "labels-by-teacher"}),
    "columns": (table_of(SAID), {"layout": "labels"}),
    "lists": (LISTS, {"layout": "labels"}),
    "words": (WORDS, {"layout": "labels", "label_names": ["a", "b", "c"], "classes": None}),
    "long": (long_of(SAID), {}),
    "long in any order": (long_of(SAID, RANDOM), {}),
    "scores": (scores_of(SAID), {"layout": "scores"}),
    "scores by teacher": (
        scores_of(SAID).transpose(1, 0, 2).copy(),
        {"layout": "scores-by-teacher"},
    ),
}
READ = {"classes": CLASSES, "teachers": TEACHERS}
ROWS = Pool(CLUSTERS, ids=range(QUERIES))


def opened(source, **words):
    """The clusters, their histograms, and the file."""
    with open_votes(source, **{**READ, **words}) as votes:
        batches = list(votes.batches())
    ids = [query for batch in batches for query in batch.ids]
    return ids, [row for batch in batches for row in batch.counts.tolist()], votes


@pytest.mark.parametrize("name", SOURCES)
def test_every_layout_that_says_who_voted_gives_the_same_histograms(name):
    source, words = SOURCES[name]
    for batch_rows in (None, 2):
        ids, counts, votes = opened(source, **words, pool=ROWS, batch_rows=batch_rows)
        assert (ids, counts) == (NAMES, POOLED)
        assert (votes.queries, votes.teachers) == (len(NAMES), TEACHERS)
        assert votes.pool == PoolFacts(len(NAMES), QUERIES, ROWS.sha256)
        assert list(votes.members.ids) == list(range(QUERIES))
        assert [NAMES[place] for place in votes.members.places] == CLUSTERS.tolist()
        assert not votes.portable
        assert not votes.rows_from_data


@pytest.mark.parametrize("name", [name for name in SOURCES if "long" not in name])
def test_clusters_match_rows_by_order(name):
    source, words = SOURCES[name]
    assert opened(source, **words, pool=CLUSTERS)[:2] == (NAMES, POOLED)


def test_the_order_is_that_of_the_pool_whatever_the_order_of_the_votes():
    """So nothing of the votes decides which clusters a limited run asks."""
    order = np.random.default_rng(1).permutation(QUERIES)
    pool = Pool(CLUSTERS[order], ids=order)
    names, _ = by_hand(SAID[order].tolist(), CLUSTERS[order].tolist())
    by_name = dict(zip(NAMES, POOLED, strict=True))
    for name in ("columns", "long", "long in any order"):
        source, words = SOURCES[name]
        ids, counts, votes = opened(source, **words, pool=pool)
        assert (ids, counts) == (names, [by_name[each] for each in names])
        assert list(votes.members.ids) == (order if "long" in name else np.arange(QUERIES)).tolist()


def test_in_long_form_a_list_of_queries_gives_the_order_of_a_pool_without_ids():
    source, words = SOURCES["long"]
    given = {**words, "queries": range(QUERIES), "pool": CLUSTERS}
    assert opened(source, **given)[:2] == (NAMES, POOLED)
    said = refusal(VoteError, opened, source, **words, pool=CLUSTERS)
    assert said.startswith("the pool must name its queries where votes are in long form")


def test_a_query_nobody_voted_on_is_in_its_cluster():
    said = SAID.copy()
    said[CLUSTERS == 9] = ABSENT
    names, counts = by_hand(said.tolist(), CLUSTERS.tolist())
    assert [0, 0, 0] in counts
    assert opened(long_of(said), pool=ROWS)[:2] == (names, counts)
    none = long_of(SAID).slice(0, 0)
    assert opened(none, pool=ROWS)[:2] == (names, [[0, 0, 0]] * len(names))


@pytest.mark.parametrize("name", ["labels", "long", "scores"])
def test_a_teacher_of_a_group_has_its_weight_in_every_cluster(name):
    weights = [1, 4, 1, 2, 1, 1, 3]
    groups = pate.TeacherGroups(
        tuple(f"g{w}" for w in weights), tuple(weights), (1,) * TEACHERS, tuple(range(TEACHERS))
    )
    if name != "long":
        groups = pate.TeacherGroups(groups.groups, groups.weights, groups.teachers_per_record)
    source, words = SOURCES[name]
    _, counts, votes = opened(source, **words, groups=groups, pool=ROWS)
    assert counts == by_hand(SAID.tolist(), CLUSTERS.tolist(), weights=weights)[1]
    assert votes.teachers == sum(weights)


def test_many_classes_make_sparse_histograms():
    classes = DENSE_CLASSES + 5
    said = np.where(SAID == 2, classes - 1, SAID)
    with open_votes(said, layout="labels", classes=classes, teachers=TEACHERS, pool=ROWS) as votes:
        (batch,) = votes.batches()
    assert isinstance(batch.counts, SparseCounts)
    wanted = by_hand(said.tolist(), CLUSTERS.tolist(), classes)[1]
    assert [[row[label] for label in (0, 1, classes - 1)] for row in wanted] == [
        [int(counts[labels == label].sum()) for label in (0, 1, classes - 1)]
        for labels, counts in zip(batch.counts.labels, batch.counts.counts, strict=True)
    ]


@pytest.mark.parametrize("at_once", [1, 5, 40, 1 << 20])
def test_how_many_votes_are_counted_at_once_changes_nothing(at_once, monkeypatch):
    monkeypatch.setattr(pooled, "_VOTES_AT_ONCE", at_once)
    for counted in (1 << 24, 0):
        monkeypatch.setattr(pooled, "_COUNTED_AT_ONCE", counted)
        assert opened(SAID, layout="labels", pool=CLUSTERS)[:2] == (NAMES, POOLED)


votes_of = st.lists(st.lists(st.integers(-1, 3), min_size=3, max_size=3), min_size=1, max_size=9)


@given(votes_of, st.data())
def test_a_teacher_moves_one_vote_a_cluster_at_most(rows, data):
    """Whatever becomes of all its votes: the histograms are those of neighbours."""
    counted = data.draw(st.sampled_from([0, 1 << 24]))
    said = np.array(rows, dtype=np.int8)
    places = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    )
    _, places = np.unique(places, return_inverse=True)
    clusters = int(places.max()) + 1
    other = said.copy()
    mine = st.lists(st.integers(-1, 3), min_size=len(rows), max_size=len(rows))
    other[:, data.draw(st.integers(0, 2))] = data.draw(mine)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooled, "_COUNTED_AT_ONCE", counted)
        votes = [pluralities(each, places, clusters=clusters, classes=4) for each in (said, other)]
    here, there = (checks.tally(each.astype(np.int64), 4) for each in votes)
    moved = there - here
    assert np.abs(moved).max() <= 1
    assert (np.abs(moved).sum(axis=1) <= 2).all()
    assert (np.abs(moved.sum(axis=1)) <= 1).all()
    order = list(dict.fromkeys(places.tolist()))
    _, counts = by_hand(rows, places.tolist(), 4)
    assert here[order].tolist() == counts


# ---------------------------------------------------------------- what is refused


COUNTS = np.array([[5, 2], [4, 3], [7, 0]])


def test_counts_do_not_tell_who_voted():
    entries = pa.table({"label": [[0, 1]] * 3, "count": [[5, 2], [4, 3], [6, 1]]})
    for source, words in ((COUNTS, {"layout": "counts"}), (entries, {})):
        said = refusal(
            UsageError, opened, source, **words, classes=2, teachers=None, pool=[0, 0, 1]
        )
        assert said.startswith("`pool` needs to know who voted, and the histograms of ")
        assert said.endswith("give the labels of the teachers")


def test_several_labels_a_query_are_not_pooled():
    said = np.zeros((4, 3, 2))
    for layout in ("multilabel", "multilabel-counts"):
        found = refusal(
            UsageError, opened, said, layout=layout, teachers=3, classes=None, pool=[0] * 4
        )
        assert found.startswith("`pool` is for one label a query")


def test_a_short_list_does_not_tell_whose_votes_it_holds():
    short = pa.table({"labels": [[0, 1, 1], [0, 1], [1, 1, 0]]})
    assert opened(short, layout="labels", teachers=3, classes=2)[1][1] == [1, 1]
    said = refusal(VoteError, opened, short, layout="labels", teachers=3, classes=2, pool=[0, 0, 1])
    assert (
        "row 1 is the first whose list is not as long as row 0's; with `groups` or `pool`" in said
    )


def test_queries_of_one_side_only_are_named_by_row():
    words = {"layout": "labels"}
    some = Pool([0] * (QUERIES - 1), ids=[query for query in range(QUERIES) if query != 4])
    assert (
        refusal(VoteError, opened, table_of(SAID), **words, pool=some)
        == "the pool has no cluster for the query of row 4 of the votes"
    )
    more = Pool([0] * (QUERIES + 1), ids=[99, *range(QUERIES)])
    assert (
        refusal(VoteError, opened, table_of(SAID), **words, pool=more)
        == "the pool: row 0 is on a query that the votes do not have"
    )
    assert "clusters of the pool end at row 22, the votes go on" in refusal(
        VoteError, opened, SAID, **words, pool=[0] * (QUERIES - 1)
    )
    assert refusal(VoteError, opened, SAID, **words, pool=[0] * (QUERIES + 1)) == (
        f"the pool: row {QUERIES} is on a query that the votes do not have"
    )
    # In long form a query without a vote is one that nobody voted on; one more is a stranger.
    assert "is a vote on a query that is not in the pool" in refusal(
        VoteError, opened, long_of(SAID), pool=some
    )
    twice = refusal(VoteError, Pool, [0, 1], ids=["a", "a"])
    assert twice == "clusters of the pool: the query id of row 1 is that of row 0, too"


def test_more_votes_than_there_is_memory_for(monkeypatch):
    monkeypatch.setattr(checks, "MOST_BYTES", QUERIES * TEACHERS - 1)
    for name in ("labels", "long", "scores"):
        source, words = SOURCES[name]
        said = refusal(VoteError, opened, source, **words, pool=ROWS)
        assert f"who said what, {QUERIES} queries by {TEACHERS} teachers, would take more" in said


def test_votes_that_are_open_have_their_pool():
    with open_votes(SAID, layout="labels", **READ) as votes:
        said = refusal(ParameterError, pate.quote, votes, pool=CLUSTERS)
        assert said.endswith("voting and pool where it is opened")


# ---------------------------------------------------------------- what is read


def test_a_pool_comes_in_every_format(npy, parquet, tmp_path):
    clusters, ids = ["near", "far", "near"], [7, 8, 9]
    text = tmp_path / "pool.csv"
    text.write_text(
        "cluster,query_id,note\n"
        + "".join(f"{cluster},{query},x\n" for cluster, query in zip(clusters, ids, strict=True))
    )
    lines = tmp_path / "pool.jsonl"
    lines.write_text(
        "".join(
            f'{{"query_id": {query}, "cluster": "{cluster}"}}\n'
            for cluster, query in zip(clusters, ids, strict=True)
        )
    )
    named = parquet({"query_id": ids, "cluster": clusters}, "pool.parquet")
    other = parquet({"name": ids, "cluster": clusters}, "named.parquet")
    for path, words in ((text, {}), (lines, {}), (named, {}), (other, {"id_column": "name"})):
        pool = pool_of(path, **words)
        assert (pool.names, pool.places.tolist()) == (("near", "far"), [0, 1, 0])
        assert pool.rows_of([9, 7], 0).tolist() == [2, 0]
        assert pool.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    for values in ([4, 2, 4], ["4", "2", "4"]):
        for given_as in (values, np.array(values), npy(values)):
            pool = pool_of(given_as)
            assert pool.places.tolist() == [0, 1, 0]
            assert list(pool.names) == values[:2]


def test_the_digest_of_an_array_is_of_what_belongs_together():
    one = Pool([4, 2, 4])
    assert one.sha256 == Pool(["x", "y", "x"]).sha256
    others = [Pool([4, 4, 2]), Pool([4, 2, 4], ids=[1, 2, 3]), Pool([4, 2, 4], ids=[1, 2, 4])]
    assert len({one.sha256, *(pool.sha256 for pool in others)}) == 4


def test_what_is_no_pool(parquet, npy, tmp_path):
    for values in ([[0, 1]], [0.5, 1.0], [], [True, False], [None, 1], 3):
        assert refusal(ParameterError, pool_of, values).startswith("the pool must be whole numbers")
    assert "row 1 has a cluster below 0, which stands for none" in refusal(
        ParameterError, pool_of, [0, -1]
    )
    assert "row 0 has no cluster" in refusal(ParameterError, pool_of, ["", "a"])
    assert "row 0 has a cluster above" in refusal(
        ParameterError, pool_of, np.array([2**63], dtype=np.uint64)
    )
    assert "row 1 has a cluster that is no text" in refusal(
        ParameterError, pool_of, ["a", "\ud800"]
    )
    for columns, words in (
        ({"query_id": [1], "group": [0]}, "the pool needs a column named cluster"),
        ({"query_id": [1, 2], "cluster": [0, None]}, "the pool: row 1 has no cluster"),
        ({"query_id": [1, None], "cluster": [0, 1]}, "row 1 has no query_id"),
        ({"query_id": [1], "cluster": [0.5]}, "the pool must be whole numbers or texts"),
    ):
        assert words in refusal(VoteError, pool_of, parquet(columns, "pool.parquet"))
    bad = npy([0, -1])
    assert refusal(VoteError, pool_of, bad).startswith(f"{bad}: the pool: row 1 has")


def test_a_pooled_file_pickles():
    source, words = SOURCES["labels"]
    with open_votes(source, **words, **READ, pool=ROWS) as votes:
        again = pickle.loads(pickle.dumps(votes))  # noqa: S301 - of our own making
        assert [row for batch in again.batches() for row in batch.counts.tolist()] == POOLED
        assert again.describe() == votes.describe()
    assert votes.describe().startswith("array: 24 queries in 5 clusters x 3 classes, 7 teachers")


def test_a_pipe_is_read_whole_whatever_is_asked(tmp_path):
    """A limit counts clusters, whose queries may be anywhere."""
    path = tmp_path / "votes.csv"
    pq.write_table(table_of(SAID), tmp_path / "v.parquet")
    header = ["query_id", *(f"t{teacher}" for teacher in range(TEACHERS))]
    rows = [",".join("" if v < 0 else str(v) for v in row) for row in SAID.tolist()]
    lines = [",".join(header), *(f"{query},{row}" for query, row in enumerate(rows))]
    path.write_text("\n".join(lines) + "\n")
    assert opened(path, layout="labels", pool=ROWS, max_queries=1)[:2] == (NAMES, POOLED)


# ---------------------------------------------------------------- what is asked of it


def test_what_is_of_queries_does_not_go_with_clusters():
    words = {"layout": "labels", **READ, "pool": CLUSTERS, "seed": 1}
    guesses = [0] * QUERIES
    said = refusal(UsageError, pate.aggregate, SAID, "gnmax", **words, prior=guesses)
    assert said.startswith("`prior` does not go with `pool`")
    student = pate.StudentPredictions(np.full((QUERIES, CLASSES), 1 / CLASSES))
    said = refusal(UsageError, pate.aggregate, SAID, "interactive", **words, predictions=student)
    assert said.startswith("`predictions` does not go with `pool`")
    del words["seed"]
    truth = pate.Truth(np.zeros(QUERIES, dtype=np.int64))
    said = refusal(UsageError, pate.accuracy, SAID, truth, **words)
    assert said.startswith("`truth` does not go with `pool`")
    for beside in ({"prior": guesses}, {"truth": truth}):
        said = refusal(UsageError, pate.tune, SAID, **words, target_epsilon=5.0, **beside)
        assert "does not go with `pool`" in said


def test_verbs_price_clusters():
    words = {"layout": "labels", **READ, "pool": CLUSTERS}
    quote = pate.quote(SAID, "gnmax", **words, sigma2=2)
    plain = pate.quote(np.array(POOLED), "gnmax", layout="counts", teachers=TEACHERS, sigma2=2)
    assert quote.epsilon == plain.epsilon
    assert (quote.queries, quote.pool.queries, quote.pool.clusters) == (5, QUERIES, 5)
    cost = pate.cost(SAID, "gnmax", **words, sigma2=2)
    assert cost.rows is not None
    tuned = pate.tune(SAID, **words, answers=1, release="none")
    assert tuned.to_dict()["basis"]["queries"] == 5
