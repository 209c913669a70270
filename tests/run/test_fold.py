"""Readings of a file: the same whatever the ranges and wherever they are read; no change unseen."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beside import a_student
from changes import unseen
from pate_cli.core.arrays import NO_LABEL
from pate_cli.core.errors import VoteError
from pate_cli.core.noise import Noise, RunKey
from pate_cli.core.words import Bound, ReleaseKind
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.base import ComposedMechanism
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.mechanisms.sparse_vector import SparseVector
from pate_cli.mechanisms.stability import Stability
from pate_cli.planning.synthetic import SyntheticEnsemble
from pate_cli.run import fold
from pate_cli.run.engine import Processes, here
from pate_cli.run.fold import AskedRows
from pate_cli.run.labelling import release_test
from pate_cli.votes.opening import open_votes
from refusals import refusal
from runs import aggregated, told
from slices import some
from tasks import where

ROWS, TEACHERS, CLASSES = 240, 60, 3
SHAPE = (TEACHERS, CLASSES)
ENSEMBLE = SyntheticEnsemble(teachers=TEACHERS, classes=CLASSES, queries=ROWS, agreement=0.75)
COUNTS = ENSEMBLE.draw(5)[0]
IDS = [f"q{row}" for row in range(ROWS)]
SHARES = np.random.default_rng(6).dirichlet([0.6] * CLASSES, size=ROWS)
KEYS = {"key": RunKey(bytes(range(32))), "seed": RunKey.of(8)}
PLAN = ReleasePlan(ReleaseKind.UPPER, delta=1e-5, order=5.0, beta=0.04, sigma=9.0)
CONFIDENT = ConfidentGNMax(*SHAPE, threshold=40.0, sigma1=12.0, sigma2=6.0)
PREDICTED = a_student(SHARES, np.array(IDS))
MECHANISMS = [
    CONFIDENT,
    InteractiveGNMax(*SHAPE, threshold=20.0, sigma1=12.0, sigma2=6.0, predictions=PREDICTED),
    GNMax(*SHAPE, sigma2=6.0),
    LNMax(*SHAPE, laplace_scale=5.0),
    Stability(*SHAPE, query_epsilon=1.0, query_delta=1e-4),
    SparseVector(*SHAPE, query_epsilon=2.0, query_delta=1e-3, refusals=40),
]
ENGINES = [here, Processes(2), Processes(3)]


def saved(path, counts, ids=IDS, *, group=37):
    """A file of votes, with ids but for NPY."""
    if path.suffix == ".npy":
        # In place: whoever has mapped the file sees the new votes.
        with path.open("r+b" if path.exists() else "w+b") as file:
            np.save(file, counts)
        return path
    columns = {f"class_{c}": counts[:, c] for c in range(CLASSES)}
    draft = path.with_suffix(".draft")
    pq.write_table(pa.table({"query_id": ids, **columns}), draft, row_group_size=group)
    return draft.replace(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same votes as one file, and as parts whose row groups are uneven."""
    home = tmp_path_factory.mktemp("votes")
    saved(home / "whole.parquet", COUNTS)
    saved(home / "counts.npy", COUNTS)
    (home / "parts").mkdir()
    for name, start, stop in (("a", 0, 100), ("b", 100, 103), ("c", 103, ROWS)):
        saved(home / "parts" / f"{name}.parquet", COUNTS[start:stop], IDS[start:stop], group=50)
    return home


@pytest.fixture
def small(monkeypatch):
    """Ranges of so many rows, each worth sharing out."""

    def set_to(rows):
        monkeypatch.setattr(fold, "_ENTRIES", rows * CLASSES)
        monkeypatch.setattr(fold, "_WORTH", 1)

    return set_to


def looked(rows):
    return list(rows.over(CONFIDENT, batch_of))


def batch_of(_mechanism, batch):
    return batch


def ran(rows, mechanism, key, *, cap):
    plan = None if isinstance(mechanism, ComposedMechanism) else PLAN
    return aggregated(rows, mechanism, plan, max_answers=cap, key=key, delta=0.05)


def bits_of(done):
    """All that a run gives but the names that it takes from its seed."""
    labels, ledger = done.labels, done.ledger
    found = [labels.ids.tolist(), labels.labels.tolist(), labels.sources.tolist()]
    found += [dict(labels.metadata), done.report.to_json()]
    if ledger is not None:
        parts = (ledger.rdp, ledger.sensitivity, ledger.ceiling)
        found += [part.tobytes() for part in parts]
    return found


@pytest.mark.parametrize(
    ("key", "name", "cap"), [("key", "parts", 11), ("seed", "whole.parquet", ROWS)]
)
@pytest.mark.parametrize("mechanism", some(MECHANISMS, 2), ids=lambda one: one.name)
def test_workers_and_ranges_change_no_bit_of_a_run(mechanism, key, name, cap, folder, small):
    with open_votes(folder / name) as file:
        whole = ran(AskedRows(file, ROWS), mechanism, KEYS[key], cap=cap)
        assert np.count_nonzero(whole.labels.labels != NO_LABEL) > 10
        for rows, engine in zip((60, 17, 40), ENGINES, strict=True):
            small(rows)
            found = ran(AskedRows(file, ROWS, engine), mechanism, KEYS[key], cap=cap)
            assert bits_of(found) == bits_of(whole)


@pytest.mark.parametrize("bound", [Bound.TWO_TAIL, Bound.CONDITIONAL])
def test_workers_change_no_bit_of_the_chance_that_a_test_fails(bound, folder, small, monkeypatch):
    chances, few = [], 40
    monkeypatch.setattr(Noise, "comes_up", lambda _self, chance: chances.append(chance))
    # The states of an argmax alone take less long.
    mechanism = CONFIDENT if bound is Bound.TWO_TAIL else MECHANISMS[2]
    target = TargetPlan.of(4.0, delta=1e-5, refusal_epsilon=0.1, bound=bound)
    target = target.settled(mechanism, queries=few, worst_case=99.0)
    settings = told(mechanism, queries=few, target=target)
    small(17)
    with open_votes(folder / "whole.parquet") as file:
        for engine in ENGINES[:2]:
            release_test(AskedRows(file, few, engine), mechanism, settings, KEYS["key"])
    assert len(set(chances)) == 1
    assert -1000.0 < chances[0] < 0.0


def test_the_work_is_done_elsewhere_only_where_that_is_worth_it(folder, small):
    me, two = {os.getpid()}, Processes(2)

    def processes(source, **how):
        with open_votes(source) as file:
            return set(AskedRows(file, ROWS, two).over(CONFIDENT, where, **how))

    assert processes(folder / "whole.parquet") == me  # a small file
    small(17)
    assert not processes(folder / "whole.parquet") & me
    assert not processes(folder / "counts.npy") & me
    assert processes(folder / "whole.parquet", in_order=True) == me
    assert processes(COUNTS) == me  # votes in memory would have to travel


@pytest.mark.parametrize("rows", [1, 13, 1000])
@pytest.mark.parametrize("queries", some([1, 36, 101, ROWS], 3))
def test_every_row_that_is_asked_is_seen_once_and_in_order(rows, queries, folder, small):
    small(rows)
    for name in ("whole.parquet", "parts", "counts.npy"):
        with open_votes(folder / name) as file:
            seen = []
            asked = AskedRows(file, queries, progress=seen.append)
            asked.read(CONFIDENT)
            done = list(asked.over(CONFIDENT, batch_of))
            counts = np.concatenate([batch.counts for batch in done])
            np.testing.assert_array_equal(counts, COUNTS[:queries])
            ends = np.cumsum([0, *(len(batch.counts) for batch in done)])
            assert [batch.first_row for batch in done] == ends[:-1].tolist()
            assert sum(seen) == 2 * queries


@pytest.mark.parametrize("row", [0, 150, ROWS - 1])
def test_votes_that_change_after_they_were_read_are_refused(row, tmp_path, small):
    small(50)
    path, changed = saved(tmp_path / "v.npy", COUNTS), COUNTS.copy()
    changed[row] = np.roll(changed[row], 1)
    assert np.any(changed != COUNTS)
    with open_votes(path) as file:
        rows = AskedRows(file, ROWS)
        rows.read(CONFIDENT)
        looked(rows)
        with unseen(path):
            saved(path, changed)
        start = row // 50 * 50
        stop = min(start + 50, ROWS)
        assert refusal(VoteError, looked, rows) == (
            f"{path}: rows {start} to {stop - 1} changed while they were read; run again with "
            "a file that does not change"
        )
        # Whoever never read the votes as they were has nothing to say against them.
        assert len(looked(AskedRows(file, ROWS))) > 3


def test_a_digest_is_that_of_the_votes_and_ids_that_are_asked(tmp_path):
    def digest(counts=COUNTS, ids=IDS, queries=ROWS, group=37):
        saved(tmp_path / "v.parquet", counts, ids, group=group)
        with open_votes(tmp_path / "v.parquet") as file:
            rows = AskedRows(file, queries)
            rows.read(CONFIDENT)
            return rows.digest

    found = [digest(), digest(COUNTS[::-1]), digest(ids=IDS[::-1]), digest(queries=ROWS - 1)]
    assert len(set(found)) == 4
    assert digest() == found[0]


@pytest.mark.parametrize("what", ["votes", "ids"])
def test_workers_refuse_a_file_that_another_took_the_place_of(what, tmp_path, small):
    small(37)
    path = saved(tmp_path / "v.parquet", COUNTS)
    with open_votes(path) as file:
        rows = AskedRows(file, ROWS, Processes(2))
        rows.read(CONFIDENT)
        if what == "votes":
            saved(path, np.roll(COUNTS, 1, axis=1))
        else:
            saved(path, COUNTS, [f"r{row}" for row in range(ROWS)])
        # Seen by its votes, or by the size of the file before that.
        message = refusal(VoteError, lambda: list(rows.over(CONFIDENT, where)))
        assert message.startswith(f"{path}: ")
        assert "changed while" in message
