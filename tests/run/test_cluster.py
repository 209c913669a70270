"""A Dask cluster gives what this machine gives, to the last bit, or one clear line and nothing."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import pate_cli as pate
from pate_cli.cli.app import app
from pate_cli.core.errors import VoteError
from pate_cli.planning.synthetic import SyntheticEnsemble
from pate_cli.run import engine, fold
from pate_cli.run.engine import engine_of
from slices import some
from tasks import squared

pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[2]
ROWS, TEACHERS, CLASSES, A_RANGE = 240, 60, 3, 20
ENSEMBLE = SyntheticEnsemble(teachers=TEACHERS, classes=CLASSES, queries=ROWS, agreement=0.75)
COUNTS = ENSEMBLE.draw(5)[0]
CONFIDENT = {"threshold": 40.0, "sigma1": 12.0, "sigma2": 6.0}
TARGET = {"target_epsilon": 10.5, "max_queries": ROWS, "bound": "two-tail"}
# What a worker runs first: each range then takes long enough to be caught at it.
SLOW = """
import time
from pate_cli.run import engine
if engine._on_worker.__name__ == "_on_worker":  # it is loaded more than once
    def slowly(*given, work=engine._on_worker):
        time.sleep(0.15)
        return work(*given)
    engine._on_worker = slowly
"""
STRANGE = """
from pate_cli.run import engine
engine.__version__ = "0.0.0"
"""
# What a process does all the time though nobody asks it to.
IDLE = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
}


class Cast:
    """A scheduler and its workers, as processes of their own; a worker runs some lines first."""

    def __init__(self, folder, *preloads):
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", str(port))
        self.workers = [self._join(preload) for preload in preloads]

    def _join(self, preload):
        path = self.folder / f"preload{len(list(self.folder.iterdir()))}.py"
        path.write_text(preload)
        return self._start(
            "worker", self.address, "--no-nanny", "--nthreads", "1", "--name",
            os.urandom(4).hex(), "--local-directory", str(self.folder), "--preload", str(path),
        )  # fmt: skip

    def _start(self, role, *more):
        paths = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support")])
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{role}", *more, "--no-dashboard"],
            env={**os.environ, "PYTHONPATH": paths, **IDLE},
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def ready(self):
        """Once all workers have joined."""
        import distributed

        with distributed.Client(self.address, timeout=60, set_as_default=False) as client:
            if self.workers:
                client.wait_for_workers(len(self.workers), timeout=60)
        return self

    def end(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
        for process in (*self.workers, self.scheduler):
            process.wait()


@pytest.fixture(scope="module")
def cast(tmp_path_factory):
    cast = Cast(tmp_path_factory.mktemp("dask"), "", "")
    try:
        yield cast.ready()
    finally:
        cast.end()


@pytest.fixture
def troupe(tmp_path):
    """Start a scheduler with workers that end with the test."""
    with contextlib.ExitStack() as held:

        def start(*preloads):
            (tmp_path / "dask").mkdir()
            cast = Cast(tmp_path / "dask", *preloads)
            held.callback(cast.end)
            return cast.ready()

        yield start


def save(folder, counts, parts="abc"):
    """A Parquet data set of three parts, with ids, or some parts of it."""
    folder.mkdir(exist_ok=True)
    columns = {f"class_{c}": counts[:, c] for c in range(CLASSES)}
    table = pa.table({"query_id": [f"q{row}" for row in range(ROWS)], **columns})
    for name, start, stop in (("a", 0, 100), ("b", 100, 106), ("c", 106, ROWS)):
        if name not in parts:
            continue
        draft = folder / f"{name}.draft"
        pq.write_table(table.slice(start, stop - start), draft, row_group_size=A_RANGE)
        draft.replace(folder / f"{name}.parquet")


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("votes") / "votes"
    save(folder, COUNTS)
    return folder


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch):
    """Ranges of a few rows, and a folder to run in."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(fold, "_ENTRIES", A_RANGE * CLASSES)


def flags(settings):
    return [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]


def aggregated(votes, *more):
    """A run by the command line, which is to leave nothing here where it fails."""
    line = ["aggregate", str(votes), "-o", "labels.csv", "--report", "report.json"]
    return CliRunner().invoke(app, [*line, *flags(CONFIDENT), *map(str, more)])


def left():
    return sorted(path.name for path in Path().rglob("*"))


def without_names(data):
    """What a run gives apart from its name, which is its own even under a seed."""
    # Checksums follow from names.
    return re.sub(rb'"([0-9a-f]{32}|[0-9a-f]{64})"', b'"name"', data)


RUNS = {
    "default": [],
    "upper": ["--release", "upper", "--ledger", "ledger.json"],
    "target": [*flags(TARGET), "--spend", "spent.json"],
    "capped": ["--max-answers", "25"],
}


@pytest.mark.parametrize("kind", some(list(RUNS), 2))
def test_a_cluster_gives_what_this_machine_gives(kind, cast, votes):
    found = []
    for name, where in (("local", "local"), ("cluster", cast.address)):
        Path(name).mkdir()
        with contextlib.chdir(name):
            # Workers have another working directory.
            near = os.path.relpath(votes)
            done = aggregated(near, *RUNS[kind], "--seed", 5, "--engine", where)
            assert done.exit_code == 0, done.output
            found.append({name: without_names(Path(name).read_bytes()) for name in left()})
    assert found[0] == found[1]
    assert len(found[0]) == {"upper": 3, "target": 3}.get(kind, 2)


def test_a_cluster_of_its_own(votes):
    asked = {"seed": 5, "keep_ledger": True, **CONFIDENT}
    wanted = pate.aggregate(votes, **asked)
    found = pate.aggregate(votes, engine="dask", workers=2, **asked)
    np.testing.assert_array_equal(found.labels.labels, wanted.labels.labels)
    np.testing.assert_array_equal(found.labels.ids, wanted.labels.ids)
    assert found.ledger.rdp.tobytes() == wanted.ledger.rdp.tobytes()
    assert found.ledger.sensitivity.tobytes() == wanted.ledger.sensitivity.tobytes()


def divided(number):
    return 1 // number


def test_results_come_in_order_and_errors_as_themselves(cast):
    with engine_of(cast.address, workers=1) as cluster:
        found = list(cluster(squared, range(9)))
        assert [square for square, _ in found] == [n * n for n in range(9)]
        assert os.getpid() not in {process for _, process in found}
        with pytest.raises(ZeroDivisionError):
            list(cluster(divided, [1, 0]))


@pytest.mark.parametrize("preloads", [None, [STRANGE]])
def test_a_cluster_that_cannot_work_is_found_before_anything_is_spent(
    preloads, troupe, votes, tmp_path, monkeypatch
):
    """Without a seed, so that the run would stand in the record beside the votes."""
    monkeypatch.setattr(engine, "_PATIENCE", 1)
    save(tmp_path / "own", COUNTS)
    where = "tcp://127.0.0.1:9" if preloads is None else troupe(*preloads).address
    done = aggregated(tmp_path / "own", "--engine", where, "--max-epsilon", 99)
    assert done.exit_code == 9, done.output
    wanted = f"no scheduler with a worker answered at {where} within 1 seconds; is it running?"
    if preloads:
        wanted = (
            f"a worker has pate 0.0.0, but you use {pate.__version__}; install the same version"
        )
    assert done.stderr.splitlines()[-1] == f"pate: {wanted}"
    assert left() == []
    assert not list(tmp_path.glob("own*.json"))


def when_killed(process, once):
    """A thread that kills a process once something holds."""

    def kill():
        deadline = time.monotonic() + 30.0
        while not once() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def test_a_worker_that_is_killed_changes_no_label(troupe, votes):
    cast = troupe(SLOW, SLOW)
    wanted = pate.aggregate(votes, seed=5, **CONFIDENT)
    seen = []
    killer = when_killed(cast.workers[0], once=lambda: len(seen) >= 3)
    asked = {
        "engine": cast.address,
        "progress": lambda rows, of=None: seen.append(rows),
        **CONFIDENT,
    }
    found = pate.aggregate(votes, seed=5, **asked)
    killer.join()
    assert sum(seen) == ROWS
    assert cast.workers[0].wait() == -signal.SIGKILL
    np.testing.assert_array_equal(found.labels.labels, wanted.labels.labels)


def test_a_scheduler_that_is_killed_ends_the_run_and_nothing_is_left(troupe, votes, monkeypatch):
    monkeypatch.setattr(engine, "_PATIENCE", 1)
    cast = troupe(SLOW)
    began = time.monotonic()
    killer = when_killed(cast.scheduler, once=lambda: time.monotonic() > began + 1.0)
    done = aggregated(votes, "--seed", 5, "--engine", cast.address)
    killer.join()
    assert done.exit_code == 9, done.output
    assert re.fullmatch(r"pate: .* queries x .*\npate: the cluster was lost [^\n]*\n", done.stderr)
    assert left() == []


@pytest.mark.parametrize("part", some(["a", "b", "c"], 3))
def test_votes_that_change_between_two_readings_are_refused(part, cast, tmp_path):
    folder, seen = tmp_path / "votes", []
    save(folder, COUNTS)

    def change(rows, of=None):
        del of
        seen.append(rows)
        if sum(seen) == ROWS:  # the test of the target has read them all
            save(folder, COUNTS[:, [1, 0, 2]], parts=part)

    with pytest.raises(VoteError, match="chang") as caught:
        pate.aggregate(folder, seed=5, engine=cast.address, progress=change, **TARGET, **CONFIDENT)
    assert f"{part}.parquet" in str(caught.value) or "rows" in str(caught.value)
