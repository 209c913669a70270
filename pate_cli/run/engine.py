"""Engines, which do the work on rows: this process, several processes, or a Dask cluster.

An engine is a function of a task and its items, which yields the results in the order of the items.
Work that is lost with its process is done again. That is sound because a task draws nothing by
chance: all noise follows from the key that travels with it (see `pate_cli.core.noise`).
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
from pate_cli.core.stamps import __version__

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

Task: TypeAlias = Callable[[Any], Any]
Engine: TypeAlias = Callable[[Task, Sequence[Any]], Iterator[Any]]
"""Applies a task to items and yields the results in their order; an error comes in its turn."""

_AHEAD: Final = 2
"""Items per process that are sent before results are taken."""
_PATIENCE: Final = 20
"""Seconds within which a scheduler must answer and have a worker."""
_RETRIES: Final = 3
"""Times that a cluster does a task again whose worker was lost."""
# Workers keep the memory that one batch frees for the next. Dask has it given back at once, and
# fetching it again takes a third of the time.
_MEMORY: Final = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 27,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 1 << 25,
}


def here(task: Task, items: Sequence[Any]) -> Iterator[Any]:
    """Do the work in this process, one item after the other."""
    return map(task, items)


@contextlib.contextmanager
def engine_of(where: str, *, workers: int) -> Iterator[Engine]:
    """Yield an engine, ready to work, and end it with the block.

    Args:
        where: `local`; `dask`, for a cluster of its own on this machine; or the address of a
            scheduler that is running, tcp://HOST:PORT. Workers there need the same version of pate,
            and must see the votes under the same names.
        workers: how many processes work here, at least 1.

    Raises:
        UsageError: another word, or Dask is not installed.
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
    """Yield the results of futures in order, with so many under way: results do not pile up."""
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

    Where one of them is killed, or none can be started, what is left is done in this process. The
    main module of whoever uses it must be importable without doing anything.
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

    # No plain forks: this process may have threads, of pyarrow's and for progress.
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else None)
    if context.get_start_method() == "forkserver":
        # A worker needs about what is loaded here, and what noise is made with; each would import
        # that anew, which takes as long as drawing a million labels.
        loaded = [name for name in sys.modules if name.startswith("pate_cli.")]
        context.set_forkserver_preload([*loaded, "scipy.special"])
    return context


_TASK: list[Task] = []
"""The task of a worker process."""


def _begin(task: bytes) -> None:
    """Begin a worker process, which ends with its parent, and where a terminal interrupts both."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    bound_reading()
    _TASK[:] = [pickle.loads(task)]  # noqa: S301 - it comes from the parent


def _work(item: Any) -> Any:
    return _TASK[0](item)


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, however that ended."""
    import multiprocessing
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


# --- a cluster -----------------------------------------------------------------------------------


def _on_cluster(client: Any, task: Task, items: Sequence[Any]) -> Iterator[Any]:
    """Work as an engine on a Dask cluster that answers.

    Raises:
        EngineError: the cluster is lost, or a worker has another version of pate.
        VoteError: a worker cannot open the votes.
    """
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    try:
        shared = client.scatter(task, broadcast=True, hash=False)
        yield from _in_order(
            lambda item: client.submit(
                _on_worker, __version__, shared, item, pure=False, retries=_RETRIES
            ),
            items,
            ahead=_AHEAD * sum(client.nthreads().values()),
        )
    except NotOpenedError as error:
        raise VoteError(f"{error} on a worker, which must see the votes by the same name") from None
    except (CancelledError, OSError, KilledWorker) as error:
        raise EngineError(f"the cluster was lost ({type(error).__name__})") from error


def _on_worker(version: str, task: Task, item: Any) -> Any:
    _refuse_version(version)
    bound_reading()
    return task(item)


def _refuse_version(version: str) -> None:
    if version != __version__:
        raise EngineError(f"a worker has pate {__version__}, this is {version}; install the same")


@contextlib.contextmanager
def _client(where: str, workers: int) -> Iterator[Any]:
    """Yield the client of a cluster that answers, and whose workers can do the work."""
    try:
        import dask
        import distributed
    except ImportError:
        raise UsageError(
            "`engine` needs Dask: install it with pip install 'pate-cli[dask]'"
        ) from None
    import logging

    # What Dask has to say comes as one error; its own log would fill the terminal.
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
                            dashboard_address="127.0.0.1:0",  # None is port 8787, for all to see
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
        except (OSError, ValueError, RuntimeError):  # whose text may quote a password
            raise EngineError(
                f"no scheduler with a worker answers {place} within {_PATIENCE} seconds; is it "
                "running?"
            ) from None
        yield client
