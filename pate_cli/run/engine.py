"""Engines do the work on rows: in this process, in several processes, or on a Dask cluster.

An engine is a function of a task and its items, which yields the results in the order of the items.
If a process is lost, its work is done again. Repeating a task is sound, because it gives the same
result again. A task that draws labels has the key of the run, from which all noise follows (see
`pate_cli.core.noise`).
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pate_cli.core import __version__
from pate_cli.core.checks import check_whole
from pate_cli.core.errors import (
    EngineError,
    NotOpenedError,
    UsageError,
    VoteError,
    quoted,
    without_credentials,
)
from pate_cli.core.memory import bound_reading

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

Task: TypeAlias = Callable[[Any], Any]
Engine: TypeAlias = Callable[[Task, Sequence[Any]], Iterator[Any]]
"""A function that applies a task to items and yields results, or an error, in their order."""

_AHEAD: Final = 2
"""How many items per process are sent before the first result is taken."""
_PATIENCE: Final = 20
"""The number of seconds within which a scheduler must answer and have a worker."""
_RETRIES: Final = 3
"""How often a cluster repeats a task whose worker is lost."""
# Workers keep the memory that a batch frees, for the next batch. By default Dask returns memory to
# the system, and to get it again for each batch takes a third of the time of a run.
_MEMORY: Final = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 27,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 1 << 25,
}


def here(task: Task, items: Sequence[Any]) -> Iterator[Any]:
    """Apply the task to the items in this process, one item after the other."""
    return map(task, items)


@contextlib.contextmanager
def engine_of(where: str, *, workers: int) -> Iterator[Engine]:
    """Yield an engine that is ready to work; its processes end when the `with` block ends.

    Args:
        where: `local`; `dask`, which starts a Dask cluster on this machine; or the address
            tcp://HOST:PORT of a Dask scheduler that is running. Workers of a Dask scheduler need
            the version of pate that the caller has, and must find the votes under the names that
            the caller uses.
        workers: how many processes work on this machine, at least 1.

    Raises:
        UsageError: `where` is neither `local`, `dask` nor an address, or Dask is not installed.
        EngineError: the cluster does not answer, has no worker, or has another version of pate.
    """
    workers = check_whole("`workers`", workers)
    if where == "local":
        yield here if workers == 1 else Processes(workers)
    elif where == "dask" or where.startswith(("tcp://", "tls://")):
        with _client(where, workers) as client:
            yield functools.partial(_on_cluster, client)
    else:
        raise UsageError(
            "`engine` must be local, dask or the address of a scheduler (tcp://HOST:PORT), not "
            f"{quoted(without_credentials(where))}"
        )


def _in_order(submit: Callable[[Any], Any], items: Sequence[Any], *, ahead: int) -> Iterator[Any]:
    """Submit items and yield their results in order; at most `ahead` items wait, to save memory."""
    waiting = iter(items)
    sent = deque(map(submit, itertools.islice(waiting, ahead)))
    try:
        while sent:
            found = sent.popleft().result()
            sent.extend(map(submit, itertools.islice(waiting, 1)))
            yield found
    finally:
        for future in sent:
            future.cancel()


# --- processes of this machine -------------------------------------------------------------------


class Processes:
    """Several processes of this machine, which start with the work and end with it.

    If one of the processes is killed, or none can be started, this process does the rest of the
    work. Each process imports the main module of the user's program. So the main module must do
    nothing when it is imported; its work belongs under `if __name__ == "__main__":`.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def __call__(self, task: Task, items: Sequence[Any]) -> Iterator[Any]:
        """Yield the results in the order of the items."""
        if len(items) < 2:
            yield from map(task, items)
            return
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool

        workers, done = min(self._workers, len(items)), 0
        try:
            with ProcessPoolExecutor(workers, _context(), _begin, (pickle.dumps(task),)) as pool:
                for found in _in_order(
                    lambda item: pool.submit(_work, item), items, ahead=_AHEAD * workers
                ):
                    yield found
                    done += 1
        except (BrokenProcessPool, OSError, EOFError):
            yield from map(task, items[done:])


def _context() -> BaseContext:
    import multiprocessing

    # A plain fork is unsafe, because pyarrow and the progress bar may have threads.
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context(None)  # the system's own
    context = multiprocessing.get_context("forkserver")
    # Workers need about the modules that are loaded here, and scipy.special for noise. If each
    # worker imported them itself, it would take as long as drawing a million labels.
    loaded = [name for name in sys.modules if name.startswith("pate_cli.")]
    context.set_forkserver_preload([*loaded, "scipy.special"])
    return context


_TASK: list[Task] = []
"""The task of a worker process."""


def _begin(task: bytes) -> None:
    """Prepare a worker process, which must end when its parent ends, and when Ctrl-C is pressed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    bound_reading()
    _TASK[:] = [pickle.loads(task)]  # noqa: S301 - it comes from the parent


def _work(item: Any) -> Any:
    return _TASK[0](item)


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended for any reason."""
    import multiprocessing
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


# --- a cluster -----------------------------------------------------------------------------------


def _on_cluster(client: Any, task: Task, items: Sequence[Any]) -> Iterator[Any]:
    """Yield the results of a task on a Dask cluster, in the order of the items.

    Raises:
        EngineError: the cluster is lost, or a worker has another version of pate.
        VoteError: a worker cannot open the votes.
    """
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    try:
        shared = client.scatter(task, broadcast=True, hash=False)
        ahead = _AHEAD * sum(client.nthreads().values())
        told = {"pure": False, "retries": _RETRIES}
        submit = functools.partial(client.submit, _on_worker, __version__, shared, **told)
        yield from _in_order(submit, items, ahead=ahead)
    except NotOpenedError as error:
        raise VoteError(
            f"{error} on a worker; workers must find the votes under the name that you gave"
        ) from None
    except (CancelledError, OSError, KilledWorker) as error:
        raise EngineError(f"the cluster was lost ({type(error).__name__})") from error


def _on_worker(version: str, task: Task, item: Any) -> Any:
    _refuse_version(version)
    bound_reading()
    return task(item)


def _refuse_version(version: str) -> None:
    if version != __version__:
        raise EngineError(
            f"a worker has pate {__version__}, but you use {version}; install the same version"
        )


@contextlib.contextmanager
def _client(where: str, workers: int) -> Iterator[Any]:
    """Yield the client of a cluster that answers, and whose workers have this version of pate."""
    try:
        import dask
        import distributed
    except ImportError:
        raise UsageError(
            "`engine` needs Dask: install it with pip install 'pate-cli[dask]'"
        ) from None
    import logging

    # Errors of Dask appear as one line; its own log would fill the terminal.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    given: Any = distributed
    own = where == "dask"
    place = "of this machine's own" if own else f"at {without_credentials(where)}"
    with contextlib.ExitStack() as held:
        try:
            if own:
                with dask.config.set(_MEMORY):
                    where = held.enter_context(
                        given.LocalCluster(
                            n_workers=workers,
                            threads_per_worker=1,
                            dashboard_address="127.0.0.1:0",  # None would open port 8787 to all.
                            silence_logs=logging.CRITICAL,
                        )
                    )
            client = given.Client(where, timeout=_PATIENCE, set_as_default=False)
            held.enter_context(client)
            client.wait_for_workers(1, timeout=_PATIENCE)
            client.run(_refuse_version, __version__)
        except ModuleNotFoundError:
            raise EngineError(
                f"a worker has no pate; install version {__version__} there"
            ) from None
        except (OSError, ValueError, RuntimeError):  # Their texts may contain a password.
            raise EngineError(
                f"no scheduler with a worker answered {place} within {_PATIENCE} seconds; is it "
                "running?"
            ) from None
        yield client
