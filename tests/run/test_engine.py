"""Work in other processes: in order, tried again where a process dies, ended with the parent."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, process
from pathlib import Path

import pytest

from pate_cli.core.errors import EngineError, ParameterError, VoteError
from pate_cli.run import engine
from pate_cli.run.engine import HERE, Processes, beside, cores, in_pairs
from refusals import refusal
from tasks import Dying, refused, squared, thread_beside

SUPPORT = Path(__file__).resolve().parents[1] / "support"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def two():
    with Processes(2) as processes:
        yield processes


@pytest.mark.parametrize("items", [0, 1, 2, 3, 12])
def test_results_come_in_the_order_of_the_work(two, items):
    found = list(two.map(squared, range(items)))
    assert [square for square, _ in found] == [n * n for n in range(items)]
    processes = {process for _, process in found}
    # One item is not worth the way.
    assert (os.getpid() in processes) == (items == 1)
    assert len(processes) <= 2


def test_one_worker_is_this_process():
    with Processes(1) as one:
        assert {process for _, process in one.map(squared, range(6))} == {os.getpid()}
    assert {process for _, process in HERE.map(squared, range(6))} == {os.getpid()}


def test_a_large_task_stays_here(two, monkeypatch):
    monkeypatch.setattr(engine, "_LARGEST_TASK", 10)
    assert {process for _, process in two.map(squared, range(6))} == {os.getpid()}


def test_work_is_taken_from_the_list_as_it_is_done(two):
    """Whoever stops listening leaves the rest undone, and the workers to others."""
    results = two.map(squared, range(10**6))
    assert [next(results)[0] for _ in range(5)] == [0, 1, 4, 9, 16]
    results.close()
    assert [square for square, _ in two.map(squared, range(3))] == [0, 1, 4]


def test_two_tasks_at_once(two):
    one, other = two.map(squared, range(8)), two.map(abs, range(-8, 0))
    pairs = list(zip(one, other, strict=True))
    assert [(square, size) for (square, _), size in pairs] == [(n * n, 8 - n) for n in range(8)]


def test_what_a_task_raises_arrives_as_itself(two):
    results = two.map(refused, range(10))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(VoteError) as caught:
        next(results)
    assert str(caught.value) == "row 3 is no vote"
    assert caught.value.exit_code == 3
    assert list(two.map(refused, [5, 6])) == [5, 6]


@pytest.mark.parametrize("item", [0, 4, 7])
@pytest.mark.parametrize("times", [1, 2])
def test_a_task_is_tried_again_where_its_process_died(tmp_path, item, times):
    with Processes(2) as processes:
        found = list(processes.map(Dying(tmp_path, item, times), range(8)))
    assert found == [n * n for n in range(8)]
    assert len(list(tmp_path.iterdir())) == times


def test_a_process_that_was_being_started_when_another_died_is_not_waited_for(monkeypatch):
    """Python ends the processes that it knows of, then waits for all there are."""
    ended, late = threading.Event(), threading.Event()
    end = process._ExecutorManagerThread.shutdown_workers

    def end_them(manager):
        end(manager)
        ended.set()
        assert late.wait(60)

    monkeypatch.setattr(process._ExecutorManagerThread, "shutdown_workers", end_them)
    some = Processes(2)
    assert [square for square, _ in some.map(squared, range(4))] == [0, 1, 4, 9]
    known = some._executor._processes
    pid, started = known.popitem()  # it runs, and is not noted yet
    for one in known.values():
        one.kill()
    assert ended.wait(60)
    known[pid] = started
    stop = threading.Thread(target=some._stop, daemon=True)
    stop.start()
    late.set()
    stop.join(30)
    assert not stop.is_alive()


def test_a_task_handed_over_just_as_the_pool_breaks_is_not_waited_for(monkeypatch):
    """Python answers the tasks that it knows of, once; what comes in that instant is left."""
    submit, tasks = process.ProcessPoolExecutor.submit, []

    def hand_over(pool, *task):
        tasks.append(task)
        if len(tasks) != 2:
            return submit(pool, *task)
        pool._broken = "a process was killed"
        return Future()

    monkeypatch.setattr(process.ProcessPoolExecutor, "submit", hand_over)
    monkeypatch.setattr(engine, "_GLANCE", 0.05)
    with Processes(2) as some:
        assert [square for square, _ in some.map(squared, range(2))] == [0, 1]
    assert len(tasks) > 2


def test_a_task_that_kills_its_process_again_and_again_is_given_up(tmp_path):
    with Processes(2) as processes:
        results = processes.map(Dying(tmp_path, 3, 10), range(8))
        message = refusal(EngineError, list, results)
        assert len(list(tmp_path.iterdir())) == 3
        assert message == (
            "a worker process was killed, and again when its rows were tried again; is there "
            "enough memory? Give fewer `workers`"
        )
        # The engine itself can still be used.
        assert [square for square, _ in processes.map(squared, range(4))] == [0, 1, 4, 9]
    assert EngineError("").exit_code == 9


def unlocked(path):
    """Whether nobody holds the file: its process has ended, reaped or not."""
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def until(holds):
    """Wait for it; a minute would be too long."""
    deadline = time.monotonic() + 60.0
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("ended", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent_however_it_ends(tmp_path, ended):
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from pate_cli.run.engine import Processes\n"
        "from tasks import Holding\n"
        "with Processes(2) as processes:\n"
        "    list(processes.map(Holding(Path(sys.argv[1])), range(4)))\n"
    )
    paths = os.pathsep.join([str(SUPPORT), str(ROOT)])
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], env={**os.environ, "PYTHONPATH": paths}
    )
    try:
        until(lambda: sum(file.read_text() == "locked" for file in tmp_path.iterdir()) == 2)
        assert not any(unlocked(file) for file in tmp_path.iterdir())
    finally:
        parent.send_signal(ended)
    assert parent.wait() == -ended
    until(lambda: all(unlocked(file) for file in tmp_path.iterdir()))


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2"])
def test_at_least_one_worker(workers):
    assert "`workers`" in refusal(ParameterError, Processes, workers)


PLENTY = 1 << 24


@pytest.fixture
def idle(monkeypatch):
    """A core that nobody uses."""
    monkeypatch.setattr(engine, "cores", lambda: 2)


@pytest.mark.usefixtures("idle")
def test_a_task_is_worked_on_beside_the_block():
    begun, seen = threading.Event(), threading.Event()

    def task():
        begun.set()
        assert seen.wait(60)
        return threading.current_thread()

    with beside(task, entries=PLENTY) as found:
        assert begun.wait(60)
        seen.set()
    assert found() is not threading.current_thread()
    assert not found().is_alive()


@pytest.mark.usefixtures("idle")
def test_what_a_task_beside_the_block_raises_comes_with_its_result():
    with beside(lambda: refused(3), entries=PLENTY) as found:
        done = True
    assert done
    with pytest.raises(VoteError, match="row 3 is no vote"):
        found()


@pytest.mark.usefixtures("idle")
def test_a_block_that_fails_waits_for_the_task_beside_it():
    ended = []
    with pytest.raises(VoteError), beside(lambda: ended.append(time.sleep(0.2)), entries=PLENTY):
        refused(3)
    assert ended == [None]


@pytest.mark.parametrize("items", [[], [3], [3, 1, 2], list(range(6))])
@pytest.mark.parametrize("entries", [1000, PLENTY])
def test_every_other_item_is_worked_on_beside_the_rest(monkeypatch, items, entries):
    monkeypatch.setattr(engine, "cores", lambda: 2)
    seen = {}

    def task(item):
        seen[item] = threading.current_thread()
        return item**2

    assert in_pairs(task, items, entries=entries) == [item**2 for item in items]
    here = set(items if entries < PLENTY else items[::2])
    assert {item for item in items if seen[item] is threading.current_thread()} == here


def test_what_either_of_a_pair_raises_is_raised(monkeypatch):
    monkeypatch.setattr(engine, "cores", lambda: 2)
    for items in ([3, 1, 2], [1, 3, 2]):
        with pytest.raises(VoteError):
            in_pairs(refused, items, entries=PLENTY)


def test_no_thread_for_little_work_on_one_core_or_in_a_worker(monkeypatch, two):
    monkeypatch.setattr(engine, "cores", lambda: 2)
    with beside(threading.current_thread, entries=1000) as found:
        assert found() is threading.current_thread()
    assert all(two.map(thread_beside, [PLENTY] * 3))
    monkeypatch.setattr(engine, "cores", lambda: 1)
    with beside(threading.current_thread, entries=PLENTY) as found:
        assert found() is threading.current_thread()


def test_cores_are_those_that_may_be_used(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7}, raising=False)
    assert cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1
