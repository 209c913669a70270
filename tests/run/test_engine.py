"""Processes give results in order, survive the death of any of them, and end with their parent."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from pate_cli.core.errors import ParameterError, UsageError, VoteError
from pate_cli.run.engine import Processes, engine_of, here
from refusals import refusal
from tasks import Dying, refused, squared

SUPPORT = Path(__file__).resolve().parents[1] / "support"
ROOT = Path(__file__).resolve().parents[2]


def local(workers):
    """The engine of a word, out of its block: one on this machine holds nothing."""
    with engine_of("local", workers=workers) as found:
        return found


@pytest.mark.parametrize("items", [0, 1, 2, 3, 12])
def test_results_come_in_the_order_of_the_items(items):
    found = list(local(2)(squared, range(items)))
    assert [square for square, _ in found] == [n * n for n in range(items)]
    processes = {process for _, process in found}
    assert (os.getpid() in processes) == (items == 1)  # which is not worth the way
    assert len(processes) <= 2


def test_one_worker_is_this_process():
    assert local(1) is here
    assert {process for _, process in here(squared, range(3))} == {os.getpid()}


def test_whoever_stops_listening_ends_the_work():
    """Items are handed out as results are taken; nothing is computed far ahead."""
    results = Processes(2)(squared, range(10**6))
    assert [next(results)[0] for _ in range(5)] == [0, 1, 4, 9, 16]
    results.close()


def test_what_a_task_raises_comes_as_itself_and_in_its_turn():
    results = Processes(2)(refused, range(10))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(VoteError, match=r"^row 3 is no vote$") as caught:
        next(results)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("item", [0, 4, 7])
def test_work_is_done_here_where_a_process_died(tmp_path, item):
    assert list(Processes(2)(Dying(tmp_path, item), range(8))) == [n * n for n in range(8)]
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("error", [BlockingIOError(11, "try again"), EOFError()])
def test_where_processes_cannot_be_started_the_work_is_done_here(error, monkeypatch):
    def scarce(*_):
        raise error

    monkeypatch.setattr(ForkServerProcess, "start", scarce)
    found = list(Processes(3)(squared, range(4)))
    assert [square for square, _ in found] == [0, 1, 4, 9]
    assert {process for _, process in found} == {os.getpid()}


def test_no_process_is_left_when_the_work_is_done():
    found = {process for _, process in Processes(2)(squared, range(6))}
    for process in found:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def unlocked(path):
    """Whether nobody holds the file: its process has ended, reaped or not."""
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def until(holds):
    deadline = time.monotonic() + 60.0
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("ended", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent_however_it_ends(tmp_path, ended):
    """Even in the middle of a task; else they would read votes for nobody.

    A terminal interrupts all of them at once, and nobody waits for a task to end.
    """
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from pate_cli.run.engine import Processes\n"
        "from tasks import Holding\n"
        "list(Processes(4)(Holding(Path(sys.argv[1])), range(8)))\n"
    )
    paths = os.pathsep.join([str(SUPPORT), str(ROOT)])
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": paths},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until(lambda: sum(file.read_text() == "locked" for file in tmp_path.iterdir()) == 4)
        assert not any(unlocked(file) for file in tmp_path.iterdir())
    finally:
        if ended == signal.SIGINT:
            os.killpg(parent.pid, ended)
        else:
            parent.send_signal(ended)
    assert parent.wait() == -ended
    until(lambda: all(unlocked(file) for file in tmp_path.iterdir()))


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2"])
def test_there_is_at_least_one_worker(workers):
    assert "`workers`" in refusal(ParameterError, local, workers)


def test_another_word_is_no_engine():
    def entered():
        with engine_of("udp://me:secret@here", workers=1):
            pass

    message = refusal(UsageError, entered)
    assert message.startswith("`engine` must be local, dask or the address of a scheduler")
    assert "secret" not in message
