"""Engines, which do the work on rows: this process, several processes, or a Dask cluster.

An engine is a function of a task and its items, which yields the results in the order of the items.
Work that is lost with its process is done again. That is sound because a task draws nothing by
chance: all noise follows from the key that travels with it (see `pate_cli.core.noise`).
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from pate_cli.core.checks import check_whole
from pate_cli.core.credentials import without_credentials
from pate_cli.core.errors import EngineError, NotOpenedError, UsageError, VoteError, quoted
from pate_cli.core.memory import bound_reading
from pate_cli.core.version import __version__

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")

_AHEAD: Final = 2
"""Items per thread of a cluster that are sent before results are taken."""
_MOST_ON_WINDOWS: Final = 61
"""Processes that Python can wait for there; labels do not depend on how many there are."""
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


class Engine(Protocol):
    """Applies a task to items and yields the results in the order of the items."""

    def __call__(self, task: Callable[[_Item], _Found], items: Sequence[_Item]) -> Iterator[_Found]:
        """Yield the results; an exception of the task is raised in its turn."""
        ...


def here(task: Callable[[_Item], _Found], items: Sequence[_Item]) -> Iterator[_Found]:
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
            yield _Cluster(client)
    else:
        raise UsageError(
            "`engine` must be local, dask or the address of a scheduler (tcp://HOST:PORT), not "
            f"{quoted(without_credentials(where))}"
        )


def cores() -> int:
    """Return how many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class Processes:
    """Several processes of this machine, which start with the work and end with it.

    Each has a pipe of its own, so that one which is killed takes nothing with it but its item. That
    goes to another process, and to this one when no other is left. The main module of whoever uses
    it must be importable without doing anything.
    """

    def __init__(self, workers: int) -> None:
        self._workers = min(workers, _MOST_ON_WINDOWS) if sys.platform == "win32" else workers

    def __call__(self, task: Callable[[_Item], _Found], items: Sequence[_Item]) -> Iterator[_Found]:
        """Yield the results in the order of the items."""
        if len(items) < 2:
            yield from map(task, items)
            return
        with contextlib.ExitStack() as held:
            idle = self._started(held, task, most=len(items))
            busy: dict[Connection, tuple[int, Any]] = {}
            waiting, found = deque(enumerate(items)), dict[int, tuple[bool, Any]]()
            for place, item in enumerate(items):
                while place not in found and (idle or busy):
                    # Each has one item at a time, so that neither side waits for the other to read.
                    while idle and waiting:
                        pipe, at = idle.pop(), waiting.popleft()
                        busy[pipe] = at
                        with contextlib.suppress(OSError):  # it was killed, as is seen below
                            pipe.send(at[1])
                    for pipe in _ready(busy):
                        at = busy.pop(pipe)
                        try:
                            found[at[0]] = pipe.recv()
                            idle.append(pipe)
                        except (EOFError, OSError):  # it was killed
                            waiting.appendleft(at)
                yield _result(found.pop(place)) if place in found else task(item)

    def _started(self, held: contextlib.ExitStack, task: Any, *, most: int) -> list[Connection]:
        """Start workers, as many as can be, and return the pipes to them."""
        context, payload = _context(), pickle.dumps(task)
        pipes: list[Connection] = []
        with contextlib.suppress(OSError, EOFError):  # no more processes may be started
            while len(pipes) < min(self._workers, most):
                pipes.append(held.enter_context(_worker(context, payload)))
        return pipes


def _ready(busy: dict[Connection, tuple[int, Any]]) -> list[Connection]:
    """Wait for workers that are done or dead, and return the pipes to them."""
    from multiprocessing.connection import wait

    return cast("list[Connection]", wait(list(busy)))


def _result(found: tuple[bool, Any]) -> Any:
    """Return what a worker found, or raise what its task raised."""
    done, result = found
    if not done:
        raise result
    return result


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


@contextlib.contextmanager
def _worker(context: BaseContext, payload: bytes) -> Iterator[Connection]:
    """Start a process that works on a task until the block ends; yield the pipe to it."""
    ours, theirs = context.Pipe()
    process = context.Process(  # type: ignore[attr-defined]  # every context has processes
        target=_work, args=(theirs, payload), daemon=True
    )
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        process.kill()  # it holds nothing that anybody needs
        process.join()


def _work(pipe: Connection, payload: bytes) -> None:
    """Work on the items that come through a pipe; what a task raises is a result, too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    bound_reading()
    task = pickle.loads(payload)  # noqa: S301 - it comes from the parent
    while True:
        try:
            item = pipe.recv()
        except EOFError:  # the parent has ended
            return
        try:
            found = (True, task(item))
        except Exception as error:  # it is raised in the parent
            found = (False, error)
        pipe.send(found)


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, however that ended."""
    import multiprocessing
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


class _Cluster:
    """Workers of a Dask cluster that answers."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __call__(self, task: Callable[[_Item], _Found], items: Sequence[_Item]) -> Iterator[_Found]:
        """Yield the results in the order of the items.

        Raises:
            EngineError: the cluster is lost, or a worker has another version of pate.
            VoteError: a worker cannot open the votes.
        """
        client = self._client
        try:
            shared = client.scatter(task, broadcast=True, hash=False)
            ahead = _AHEAD * sum(client.nthreads().values())
            waiting, under_way = iter(items), deque[Any]()
            for item in waiting:
                under_way.append(self._sent(shared, item))
                if len(under_way) >= ahead:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        except NotOpenedError as error:
            raise VoteError(
                f"{error} on a worker, which must see the votes by the same name"
            ) from None
        except _losses() as error:
            raise EngineError(f"the cluster was lost ({type(error).__name__})") from error

    def _sent(self, shared: Any, item: Any) -> Any:
        return self._client.submit(
            _on_worker, __version__, shared, item, pure=False, retries=_RETRIES
        )


def _losses() -> tuple[type[BaseException], ...]:
    """Return what Dask raises where a cluster, or a worker again and again, is lost."""
    from concurrent.futures import CancelledError

    import distributed

    client, comm = distributed.client, distributed.comm.core
    lost = (CancelledError, client.FutureCancelledError, ConnectionError, TimeoutError)
    return (*lost, distributed.KilledWorker, comm.CommClosedError)


def _on_worker(version: str, task: Callable[[Any], Any], item: Any) -> Any:
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
        import distributed as untyped
    except ImportError:
        raise UsageError(
            "`engine` needs Dask: install it with pip install 'pate-cli[dask]'"
        ) from None
    import logging

    distributed: Any = untyped
    # What Dask has to say comes as one error; its own log would fill the terminal.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    own = where == "dask"
    with contextlib.ExitStack() as held:
        try:
            if own:
                with dask.config.set(_MEMORY):
                    cluster = distributed.LocalCluster(
                        n_workers=workers,
                        threads_per_worker=1,
                        dashboard_address="127.0.0.1:0",  # None is port 8787, for everyone to see
                        silence_logs=logging.CRITICAL,
                    )
                    where = held.enter_context(cluster)
            client = distributed.Client(where, timeout=_PATIENCE, set_as_default=False)
            held.enter_context(client)
            client.wait_for_workers(1, timeout=_PATIENCE)
        except (OSError, ValueError, RuntimeError):  # whose text may quote a password
            place = "of this machine's own" if own else f"at {without_credentials(where)}"
            raise EngineError(
                f"no scheduler with a worker answers {place} within {_PATIENCE} seconds; is it "
                "running?"
            ) from None
        try:
            client.run(_refuse_version, __version__)
        except ModuleNotFoundError:
            raise EngineError(
                f"a worker has no pate; install version {__version__} there"
            ) from None
        yield client
