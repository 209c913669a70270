"""A Dask cluster gives what this machine gives, to the last bit, or one clear line and nothing."""

from __future__ import annotations

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
from pate_cli.core.errors import EngineError, VoteError
from pate_cli.mechanisms.synthetic import SyntheticEnsemble
from pate_cli.run import engine, passes
from pate_cli.run.engine import Cluster
from refusals import refusal
from slices import some
from tasks import squared

pytest.importorskip("distributed")

ROOT = Path(__file__).resolve().parents[2]
ROWS, TEACHERS, CLASSES, A_RANGE = 240, 60, 3, 20
COUNTS = SyntheticEnsemble(teachers=TEACHERS, classes=CLASSES, queries=ROWS, agreement=0.75).draw(
    5
)[0]
CONFIDENT = {"threshold": 40.0, "sigma1": 12.0, "sigma2": 6.0}
# What a worker runs first: each range then takes long enough to be caught at it.
SLOW = """
import time
from pate_cli.run import engine
if engine._work.__name__ == "_work":  # it is loaded more than once
    def slowly(*given, work=engine._work):
        time.sleep(0.15)
        return work(*given)
    engine._work = slowly
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
    """A scheduler and its workers, as processes of their own."""

    def __init__(self, folder, *preloads):
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", str(port))
        self.workers = [self.join(preload) for preload in preloads]

    def join(self, preload=""):
        """Another worker, of one thread, that runs these lines first."""
        extra = []
        if preload:
            path = self.folder / f"preload{len(list(self.folder.iterdir()))}.py"
            path.write_text(preload)
            extra = ["--preload", str(path)]
        return self._start(
            "worker", self.address, "--no-nanny", "--nthreads", "1", "--name",
            os.urandom(4).hex(), "--local-directory", str(self.folder), *extra,
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

    def ready(self, workers):
        """Once so many workers have joined."""
        import distributed

        with distributed.Client(self.address, timeout=60, set_as_default=False) as client:
            if workers:
                client.wait_for_workers(workers, timeout=60)
        return self

    def end(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
        for process in (*self.workers, self.scheduler):
            process.wait()


@pytest.fixture(scope="module")
def cast(tmp_path_factory):
    """A scheduler with two workers."""
    cast = Cast(tmp_path_factory.mktemp("dask"), "", "")
    try:
        yield cast.ready(2)
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
            return cast

        yield start


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    """A Parquet data set of three parts, with ids."""
    folder = tmp_path_factory.mktemp("votes") / "votes"
    save(folder, COUNTS)
    return folder


def save(folder, counts):
    folder.mkdir(exist_ok=True)
    columns = {f"class_{c}": counts[:, c] for c in range(CLASSES)}
    table = pa.table({"query_id": [f"q{row}" for row in range(ROWS)], **columns})
    for name, start, stop in (("a", 0, 100), ("b", 100, 106), ("c", 106, ROWS)):
        pq.write_table(
            table.slice(start, stop - start), folder / f"{name}.parquet", row_group_size=A_RANGE
        )


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch):
    """Ranges of a few rows, and a folder to run in."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(passes, "_ENTRIES", A_RANGE * CLASSES)


def line(votes, *more):
    always = ["aggregate", str(votes), "-o", "labels.csv", "--report", "report.json", "--seed", "5"]
    flags = [f"--{name}={value:g}" for name, value in CONFIDENT.items()]
    return [*always, *flags, *map(str, more)]


def left():
    return sorted(path.name for path in Path().iterdir())


def without_names(text):
    """What a run gives apart from its name, which is its own even under a seed."""
    # Checksums follow from names.
    return re.sub(rb'"([0-9a-f]{32}|[0-9a-f]{64})"', b'"name"', text)


QUICK = ["--bound", "two-tail"]
RUNS = {
    "default": [],
    "upper": ["--release", "upper", "--ledger", "ledger.json"],
    "target": [
        "--target-epsilon",
        "10.5",
        "--spend",
        "spent.json",
        "--max-queries",
        str(ROWS),
        *QUICK,
    ],
    "capped": ["--max-answers", "25"],
}


# ---------------------------------------------------------------- the same bits


@pytest.mark.parametrize("kind", some(["default", "upper", "target", "capped"], 2))
def test_a_cluster_gives_what_this_machine_gives(kind, cast, votes):
    found = []
    for name, where in (("local", "local"), ("cluster", cast.address)):
        Path(name).mkdir()
        with contextlib.chdir(name):
            # Workers have another working directory.
            near = os.path.relpath(votes)
            done = CliRunner().invoke(app, line(near, *RUNS[kind], "--engine", where))
            assert done.exit_code == 0, done.output
            found.append(
                {
                    str(path): without_names(path.read_bytes())
                    for path in sorted(Path().rglob("*"))
                    if path.is_file()
                }
            )
    assert found[0] == found[1]
    assert len(found[0]) == {"upper": 3, "target": 3}.get(kind, 2)


def test_a_cluster_of_its_own(votes):
    wanted = pate.aggregate(votes, seed=5, keep_ledger=True, **CONFIDENT)
    found = pate.aggregate(votes, seed=5, keep_ledger=True, engine="dask", workers=2, **CONFIDENT)
    np.testing.assert_array_equal(found.labels.labels, wanted.labels.labels)
    np.testing.assert_array_equal(found.labels.ids, wanted.labels.ids)
    assert found.ledger.rdp.tobytes() == wanted.ledger.rdp.tobytes()
    assert found.ledger.sensitivity.tobytes() == wanted.ledger.sensitivity.tobytes()


@pytest.mark.parametrize("verb", some([["cost"], ["smooth-sensitivity", "--order", "5"]], 2))
def test_a_cluster_measures_what_this_machine_measures(verb, cast, votes):
    flags = [f"--{name}={value:g}" for name, value in CONFIDENT.items()]
    said = [
        CliRunner().invoke(
            app, [verb[0], str(votes), *verb[1:], *flags, "--json", "--engine", where]
        )
        for where in ("local", cast.address)
    ]
    assert [one.exit_code for one in said] == [0, 0], said[0].output
    assert said[0].stdout == said[1].stdout


def test_results_come_in_order_and_errors_as_themselves(cast):
    with Cluster(cast.address) as cluster:
        found = list(cluster.map(squared, range(9)))
        assert [square for square, _ in found] == [n * n for n in range(9)]
        assert os.getpid() not in {process for _, process in found}
        with pytest.raises(ZeroDivisionError):
            list(cluster.map(divided, [1, 0]))


def divided(number):
    return 1 // number


# ---------------------------------------------------------------- what dies


def once(holds):
    deadline = time.monotonic() + 30.0
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def killed_in_mid_run(run, process, seen):
    """The result of `run`, during which a process is killed once some ranges are done."""

    def kill():
        once(lambda: len(seen) >= 2)
        process.send_signal(signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        return run()
    finally:
        seen += [0, 0]
        killer.join()


def test_a_worker_that_is_killed_changes_no_label(troupe, votes):
    cast = troupe(SLOW, SLOW).ready(2)
    wanted = pate.aggregate(votes, seed=5, **CONFIDENT)
    seen = []

    def run():
        return pate.aggregate(votes, seed=5, engine=cast.address, progress=seen.append, **CONFIDENT)

    found = killed_in_mid_run(run, cast.workers[0], seen)
    assert sum(seen) == ROWS
    assert cast.workers[0].wait() == -signal.SIGKILL
    np.testing.assert_array_equal(found.labels.labels, wanted.labels.labels)


def test_a_scheduler_that_is_killed_ends_the_run_and_nothing_is_left(troupe, votes, monkeypatch):
    monkeypatch.setattr(engine, "_PATIENCE", 1)
    cast = troupe(SLOW).ready(1)

    def kill():
        time.sleep(1.0)
        cast.scheduler.send_signal(signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    done = CliRunner().invoke(app, line(votes, "--engine", cast.address))
    killer.join()
    assert done.exit_code == 9, done.output
    assert re.fullmatch(r"pate: .* queries x .*\npate: [^\n]*\n", done.stderr), done.stderr
    assert left() == []


def test_no_scheduler(votes, monkeypatch):
    monkeypatch.setattr(engine, "_PATIENCE", 1)
    done = CliRunner().invoke(app, line(votes, "--engine", "tcp://127.0.0.1:9"))
    assert done.exit_code == 9
    assert done.stderr.splitlines()[1:] == [
        "pate: no scheduler with a worker answers at tcp://127.0.0.1:9 within 1 seconds; is it "
        "running?"
    ]
    assert left() == []


def test_no_workers(troupe, votes, monkeypatch):
    monkeypatch.setattr(engine, "_PATIENCE", 1)
    cast = troupe().ready(0)
    message = refusal(EngineError, pate.aggregate, votes, seed=5, engine=cast.address, **CONFIDENT)
    assert message.startswith(f"no scheduler with a worker answers at {cast.address}")


def test_a_worker_of_another_version(troupe, votes):
    cast = troupe(STRANGE).ready(1)
    done = CliRunner().invoke(app, line(votes, "--engine", cast.address))
    assert done.exit_code == 9, done.output
    assert done.stderr.splitlines()[-1] == (
        f"pate: a worker has pate 0.0.0, this is {pate.__version__}; install the same"
    )
    assert left() == []


# ---------------------------------------------------------------- votes that change


@pytest.mark.parametrize("part", some(["a", "b", "c"], 2))
def test_votes_that_change_between_two_passes_are_refused(part, cast, tmp_path):
    folder = tmp_path / "votes"
    save(folder, COUNTS)
    seen = []

    def change(rows, of=None):
        del of
        seen.append(rows)
        if sum(seen) == ROWS:  # the test of the target has read them all
            path = folder / f"{part}.parquet"
            table = pq.read_table(path)
            columns = {name: table[name] for name in table.column_names}
            columns["class_0"], columns["class_1"] = columns["class_1"], columns["class_0"]
            draft = path.with_suffix(".draft")
            pq.write_table(pa.table(columns), draft, row_group_size=A_RANGE)
            draft.replace(path)

    with pytest.raises(VoteError, match="chang") as caught:
        pate.aggregate(
            folder,
            seed=5,
            engine=cast.address,
            target_epsilon=10.5,
            bound="two-tail",
            max_queries=ROWS,
            progress=change,
            **CONFIDENT,
        )
    assert f"{part}.parquet" in str(caught.value) or "rows" in str(caught.value)
