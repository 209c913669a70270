"""Passes over a file: the same whatever the ranges and wherever they are read; no change unseen."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beside import a_student
from changes import unseen
from pate_cli.accounting.cost_table import Tally
from pate_cli.core.arrays import NO_LABEL
from pate_cli.core.errors import VoteError
from pate_cli.core.noise import Noise, RunKey
from pate_cli.core.words import Bound, ReleaseKind
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.base import ComposedMechanism
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.mechanisms.sparse_vector import SparseVector
from pate_cli.mechanisms.stability import Stability
from pate_cli.mechanisms.synthetic import SyntheticEnsemble
from pate_cli.pricing.cost import TightCost, measure_cost, rows_at
from pate_cli.published.account import PublishedCost
from pate_cli.run import passes
from pate_cli.run.accounts import PublicAccount, TargetAccount, TightAccount
from pate_cli.run.engine import HERE, Processes
from pate_cli.run.passes import CountsPasses, FilePasses, OnCounts, TallyCells
from pate_cli.votes.opening import open_votes
from pate_cli.votes.vote_file import VoteBatch
from refusals import refusal
from runs import aggregated, same_tally
from slices import some
from tasks import where

ROWS, TEACHERS, CLASSES = 240, 60, 3
COUNTS = SyntheticEnsemble(teachers=TEACHERS, classes=CLASSES, queries=ROWS, agreement=0.75).draw(
    5
)[0]
SHARES = np.random.default_rng(6).dirichlet([0.6] * CLASSES, size=ROWS)
KEYS = {"key": RunKey(bytes(range(32))), "seed": RunKey.from_seed(8)}
PLAN = ReleasePlan(ReleaseKind.UPPER, delta=1e-5, order=5.0, beta=0.04, sigma=9.0)
ORDERS = np.array([1.5, 4.0, 9.0])
SHAPE = (TEACHERS, CLASSES)
CONFIDENT = ConfidentGNMax(*SHAPE, threshold=40.0, sigma1=12.0, sigma2=6.0)
MECHANISMS = [
    CONFIDENT,
    InteractiveGNMax(
        *SHAPE,
        threshold=20.0,
        sigma1=12.0,
        sigma2=6.0,
        predictions=a_student(SHARES, np.array([f"q{row}" for row in range(ROWS)])),
    ),
    GNMax(*SHAPE, sigma2=6.0),
    LNMax(*SHAPE, laplace_scale=5.0),
    Stability(*SHAPE, query_epsilon=1.0, query_delta=1e-4),
    SparseVector(*SHAPE, query_epsilon=2.0, query_delta=1e-3, refusals=40),
]
SCORED = [one for one in MECHANISMS if not isinstance(one, ComposedMechanism)]


def by_name(mechanisms):
    return pytest.mark.parametrize("mechanism", mechanisms, ids=lambda one: one.name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same votes, with ids, as one file and as parts whose row groups are uneven."""
    home = tmp_path_factory.mktemp("votes")
    table = pa.table(
        {
            "query_id": [f"q{row}" for row in range(ROWS)],
            **{f"class_{c}": COUNTS[:, c] for c in range(CLASSES)},
        }
    )
    pq.write_table(table, home / "whole.parquet", row_group_size=37)
    (home / "parts").mkdir()
    for name, start, stop in (("a", 0, 100), ("b", 100, 103), ("c", 103, ROWS)):
        part = table.slice(start, stop - start)
        pq.write_table(part, home / "parts" / f"{name}.parquet", row_group_size=50)
    np.save(home / "counts.npy", COUNTS)
    return home


@pytest.fixture
def small(monkeypatch):
    """Ranges of so many rows, each worth sharing out."""

    def set_to(rows):
        monkeypatch.setattr(passes, "_ENTRIES", rows * CLASSES)
        monkeypatch.setattr(Processes, "worth", 1)

    return set_to


@pytest.fixture(scope="module")
def engines():
    with Processes(1) as one, Processes(2) as two, Processes(3) as three:
        yield [one, two, three]


def account_of(mechanism):
    if isinstance(mechanism, ComposedMechanism):
        return PublicAccount(mechanism, queries=ROWS, max_answers=ROWS, delta=0.05)
    return TightAccount(mechanism, PLAN)


def ran(over, mechanism, key, *, cap=ROWS):
    return aggregated(
        over, mechanism, account_of(mechanism), queries=ROWS, max_answers=cap, key=key
    )


def same_run(one, other):
    """To the last bit; of a seed, up to the names of the runs."""
    np.testing.assert_array_equal(one.labels.ids, other.labels.ids)
    np.testing.assert_array_equal(one.labels.labels, other.labels.labels)
    np.testing.assert_array_equal(one.labels.sources, other.labels.sources)
    assert one.labels.metadata == other.labels.metadata
    assert one.report.to_json() == other.report.to_json()
    assert (one.ledger is None) == (other.ledger is None)
    if one.ledger is not None:
        assert one.ledger.rdp.tobytes() == other.ledger.rdp.tobytes()
        assert one.ledger.sensitivity.tobytes() == other.ledger.sensitivity.tobytes()
        assert one.ledger.ceiling.tobytes() == other.ledger.ceiling.tobytes()
        rounds = [
            [replace(each, id="") for each in ledger.rounds]
            if not one.report.private
            else list(ledger.rounds)
            for ledger in (one.ledger, other.ledger)
        ]
        assert rounds[0] == rounds[1]


# ---------------------------------------------------------------- where the work is done


@pytest.mark.parametrize(
    ("key", "name", "cap"), [("key", "parts", 11), ("seed", "whole.parquet", ROWS)]
)
@by_name(some(MECHANISMS, 2))
def test_workers_and_ranges_change_no_bit_of_a_run(
    mechanism, key, name, cap, folder, small, engines
):
    with open_votes(folder / name) as file:
        whole = ran(FilePasses(file, ROWS), mechanism, KEYS[key], cap=cap)
        assert np.count_nonzero(whole.labels.labels != NO_LABEL) > 10
        for rows, engine in zip((60, 17, 17, 40), (HERE, *engines), strict=True):
            small(rows)
            same_run(ran(FilePasses(file, ROWS, engine), mechanism, KEYS[key], cap=cap), whole)


@pytest.mark.parametrize("analysis", [TightCost(), PublishedCost()], ids=lambda one: one.name)
def test_workers_change_no_bit_of_a_price(analysis, folder, small, engines):
    small(23)
    found = []
    for engine in (HERE, *engines):
        with open_votes(folder / "whole.parquet") as file:
            over = FilePasses(file, ROWS, engine)
            cost = measure_cost(over, CONFIDENT, orders=ORDERS, delta=1e-5, analysis=analysis)
            rows = rows_at(analysis, over, CONFIDENT, order=4.0)
            found.append(
                [cost.rdp, cost.answers, cost.kinds.cost, cost.kinds.queries, rows.total, rows.ids]
            )
    assert cost.queries == ROWS
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("bound", [Bound.TWO_TAIL, Bound.CONDITIONAL])
def test_workers_change_no_bit_of_the_chance_of_a_refusal(
    bound, folder, small, engines, monkeypatch
):
    chances = []
    monkeypatch.setattr(Noise, "comes_up", lambda _self, chance: chances.append(chance))
    plan = TargetPlan.of(4.0, delta=1e-5, refusal_epsilon=0.1)
    few = 40
    # The states of an argmax alone take less long.
    alone = GNMax(TEACHERS, CLASSES, sigma2=CONFIDENT.sigma2)
    mechanism = CONFIDENT if bound is Bound.TWO_TAIL else alone
    account = TargetAccount(mechanism, plan, bound=bound, queries=few, max_answers=few)
    small(17)
    with open_votes(folder / "whole.parquet") as file:
        for engine in (HERE, engines[-1]):
            account.test(FilePasses(file, few, engine), KEYS["key"])
    assert len(set(chances)) == 1
    assert -1000.0 < chances[0] < 0.0


def test_the_work_is_done_elsewhere_only_where_that_is_worth_it(folder, small, engines):
    here, two = {os.getpid()}, engines[1]

    def processes(source, **how):
        with open_votes(source) as file:
            return set(FilePasses(file, ROWS, two).over(CONFIDENT, where, **how))

    assert processes(folder / "whole.parquet") == here  # a small file
    small(17)
    assert not processes(folder / "whole.parquet") & here
    assert not processes(folder / "counts.npy") & here
    assert processes(folder / "whole.parquet", in_order=True) == here
    assert processes(COUNTS) == here  # votes in memory would have to travel
    with open_votes(folder / "whole.parquet") as file:
        over = FilePasses(file, ROWS)
        assert set(over.over(CONFIDENT, where)) == here
        shared = FilePasses(file, ROWS, two).share(abs, [-3, -1, 2], entries=0)
        assert list(shared) == list(over.share(abs, [-3, -1, 2], entries=0)) == [3, 1, 2]


# ---------------------------------------------------------------- ranges


@by_name(some(SCORED, 2))
def test_ranges_and_batches_change_no_tally(mechanism, folder, small):
    grid = mechanism.cost_table(5.0).grid
    look = OnCounts(TallyCells(grid))
    ids = np.array([f"q{row}" for row in range(ROWS)])
    bound = mechanism.for_rows(ids, 0)
    wanted = bound.tally(COUNTS, grid)
    ways = ((1, None), (50, 50), (7, 3), (1000, None), (1000, 11))
    for rows, batch_rows in some(ways, 2):
        small(rows)
        for name in ("whole.parquet", "parts"):
            with open_votes(folder / name, batch_rows=batch_rows) as file:
                tallies = FilePasses(file, ROWS).over(mechanism, look)
                same_tally(sum(tallies, Tally.empty()), wanted)


@pytest.mark.parametrize("rows", [1, 13, 1000])
@pytest.mark.parametrize("queries", some([1, 36, 101, ROWS], 3))
def test_every_row_that_is_asked_is_seen_once_and_in_order(rows, queries, folder, small):
    small(rows)

    def look(_mechanism, batch):
        return batch

    for name in ("whole.parquet", "parts", "counts.npy"):
        with open_votes(folder / name) as file:
            seen, over = [], FilePasses(file, queries)
            for _ in range(2):
                done = list(over.over(CONFIDENT, look, progress=seen.append))
                counts = np.concatenate([batch.counts for batch in done])
                np.testing.assert_array_equal(counts, COUNTS[:queries])
                ends = np.cumsum([0, *(len(batch.counts) for batch in done)])
                assert [batch.first_row for batch in done] == ends[:-1].tolist()
            assert sum(seen) == 2 * queries
            if name == "counts.npy":
                assert max(seen) == min(rows, queries)


def test_histograms_in_memory_are_one_batch():
    def look(mechanism, batch):
        return mechanism, batch

    seen = []
    ((bound, batch),) = CountsPasses(COUNTS).over(CONFIDENT, look, progress=seen.append)
    assert bound is CONFIDENT
    assert isinstance(batch, VoteBatch)
    assert batch.counts is COUNTS
    np.testing.assert_array_equal(batch.ids, np.arange(ROWS))
    assert seen == [ROWS]


# ---------------------------------------------------------------- votes that change


def saved(path, counts, ids, *, group=37):
    if path.suffix == ".npy":
        # In place: whoever has mapped the file sees the new votes.
        with path.open("r+b" if path.exists() else "w+b") as file:
            np.save(file, counts)
        return
    columns = {f"class_{c}": counts[:, c] for c in range(CLASSES)}
    draft = path.with_suffix(".draft")
    pq.write_table(pa.table({"query_id": ids, **columns}), draft, row_group_size=group)
    draft.replace(path)


def read_whole(over):
    return list(over.over(CONFIDENT, lambda _mechanism, batch: len(batch.counts)))


@pytest.mark.parametrize("row", [0, 150, ROWS - 1])
def test_votes_that_change_between_passes_are_refused(row, tmp_path, small):
    path = tmp_path / "v.npy"
    small(50)
    changed = COUNTS.copy()
    changed[row] = np.roll(changed[row], 1)
    assert np.any(changed != COUNTS)
    saved(path, COUNTS, None)
    with open_votes(path) as file:
        over = FilePasses(file, ROWS)
        read_whole(over)
        read_whole(over)
        with unseen(path):
            saved(path, changed, None)
        start = row // 50 * 50
        stop = min(start + 50, ROWS)
        assert refusal(VoteError, read_whole, over) == (
            f"{path}: rows {start} to {stop - 1} changed while read"
        )
        # Whoever never saw the votes as they were has nothing to say against them.
        assert sum(read_whole(FilePasses(file, ROWS))) == ROWS


def test_votes_that_change_after_their_fingerprint_are_refused(tmp_path, small):
    path = tmp_path / "v.npy"
    small(50)
    saved(path, COUNTS, None)
    with open_votes(path) as file:
        over = FilePasses(file, ROWS)
        before = over.fingerprint(CONFIDENT)
        assert before == FilePasses(file, ROWS).fingerprint(CONFIDENT)
        assert before != FilePasses(file, ROWS - 1).fingerprint(CONFIDENT)
        with unseen(path):
            saved(path, COUNTS[::-1], None)
        assert "changed while read" in refusal(VoteError, read_whole, over)
        assert FilePasses(file, ROWS).fingerprint(CONFIDENT) != before


@pytest.mark.parametrize("what", ["votes", "ids"])
def test_workers_refuse_a_file_that_another_took_the_place_of(what, tmp_path, small, engines):
    path = tmp_path / "v.parquet"
    ids = [f"q{row}" for row in range(ROWS)]
    small(37)
    saved(path, COUNTS, ids)
    with open_votes(path) as file:
        over = FilePasses(file, ROWS, engines[1])
        before = list(over.over(CONFIDENT, where))
        assert len(before) > 3
        if what == "votes":
            saved(path, np.roll(COUNTS, 1, axis=1), ids)
        else:
            saved(path, COUNTS, [f"r{row}" for row in range(ROWS)])
        message = refusal(VoteError, lambda: list(over.over(CONFIDENT, where)))
        # Seen by its votes, or by the size of the file before that.
        assert message.startswith(f"{path}: ")
        assert "changed while" in message
