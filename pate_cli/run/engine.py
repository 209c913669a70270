"""Where work is done: here, in processes of this machine, or on a Dask cluster.

Whatever the engine, results come in the order of the work, and a task is tried again where its
process died. That is sound because a task draws nothing by chance: all noise follows from the run's
key (see pate_cli.core.noise), which is sent to the workers with the task. What starts processes is
imported with the first of them: most runs need none.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import os
import pickle
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

from pate_cli.core.checks import check_whole
from pate_cli.core.credentials import without_credentials
from pate_cli.core.entropy import random_name
from pate_cli.core.errors import (
    EngineError,
    NotOpenedError,
    PateError,
    UsageError,
    VoteError,
    quoted,
)
from pate_cli.core.memory import bound_reading
from pate_cli.core.version import __version__

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")

# Results that wait for their turn, and tasks under way, per process.
_AHEAD: Final = 2
_TRIES: Final = 3
# A larger task is not worth sending to a process with every item.
_LARGEST_TASK: Final = 1 << 23
# Python waits for no more processes there; labels do not depend on how many there are.
_MOST_ON_WINDOWS: Final = 61
# Work of fewer entries of votes is done before a thread has begun, or processes have.
_WORTH_A_THREAD: Final = 1 << 17
_WORTH_PROCESSES: Final = 1 << 24
# A cluster of our own keeps what one batch frees for the next. Dask has it given back at once, and
# a third of the time goes into fetching it again.
_MEMORY: Final = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 27,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 1 << 25,
}
# Seconds within which a scheduler answers and has a worker.
_PATIENCE: Final = 20
# Seconds after which one looks whether it is still there.
_GLANCE: Final = 2.0


class Engine(Protocol):
    """Applies a task to items, in any process, and gives the results in order.

    Attributes:
        worth: work of so many entries of votes is worth sharing.
    """

    @property
    def worth(self) -> int:
        """See above."""
        ...

    def map(self, task: Callable[[_Item], _Found], items: Sequence[_Item]) -> Iterator[_Found]:
        """Results in the order of items; what a task raises is raised here."""
        ...


class Here:
    """One after the other, in this process."""

    worth = 0

    def map(self, task: Callable[[_Item], _Found], items: Sequence[_Item]) -> Iterator[_Found]:
        """Results in the order of items."""
        return map(task, items)


HERE: Final = Here()


class _Elsewhere(ABC):
    """In other processes, behind an executor that starts with the first task."""

    def __init__(self) -> None:
        self._executor: Executor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def map(self, task: Callable[[_Item], _Found], items: Sequence[_Item]) -> Iterator[_Found]:
        """Results in the order of items.

        Raises:
            EngineError: workers cannot be reached, or die again and again.
        """
        name, payload = random_name(16), pickle.dumps(task)
        if not self._takes(payload, items):
            yield from map(task, items)
            return
        waiting = collections.deque(items)
        sent: collections.deque[tuple[_Item, Future[Any]]] = collections.deque()
        # Losses in a row, and items under way at the last one: any of them may have caused it.
        broken = suspects = 0
        while waiting or sent:
            try:
                if self._executor is None:
                    self._executor = self._started()
                content = self._delivered(name, payload)
                while waiting and len(sent) < _AHEAD * self._size():
                    future = self._executor.submit(_work, __version__, name, content, waiting[0])
                    sent.append((waiting.popleft(), future))
                found = self._awaited(sent[0][1])
            except PateError:
                raise
            except Exception as error:
                reason = self._lost(error)
                if reason is None:
                    raise
                broken += 1
                with contextlib.suppress(Exception):
                    self._stop()
                if broken == _TRIES:
                    raise EngineError(reason) from error
                # What had not come yet is done again; it comes out the same.
                suspects = len(sent)
                waiting.extendleft(item for item, _ in reversed(sent))
                sent.clear()
                continue
            sent.popleft()
            suspects -= 1
            if suspects <= 0:
                broken = 0
            yield found

    @abstractmethod
    def _started(self) -> Executor: ...

    @abstractmethod
    def _size(self) -> int:
        """How many tasks are worked on at a time."""

    @abstractmethod
    def _lost(self, error: Exception) -> str | None:
        """Why tasks have to be sent again, if not for what they raised themselves."""

    def _takes(self, payload: bytes, items: Sequence[Any]) -> bool:
        del payload, items
        return True

    def _awaited(self, future: Future[Any]) -> Any:
        return future.result()

    def _delivered(self, name: str, payload: bytes) -> Any:
        """The task, or what stands for it there."""
        del name
        return payload

    def _stop(self) -> None:
        if self._executor is not None:
            executor, self._executor = self._executor, None
            executor.shutdown(cancel_futures=True)


class Processes(_Elsewhere):
    """In so many processes on this machine; a context manager.

    Whoever starts them has a main module that can be imported without doing anything.
    """

    def __init__(self, workers: int) -> None:
        """ParameterError for fewer than one."""
        super().__init__()
        workers = check_whole("`workers`", workers)
        self._workers = min(workers, _MOST_ON_WINDOWS) if sys.platform == "win32" else workers

    @property
    def worth(self) -> int:
        """Starting processes takes as long as most of that; one has nobody to share with."""
        return _WORTH_PROCESSES if self._workers > 1 else sys.maxsize

    def _takes(self, payload: bytes, items: Sequence[Any]) -> bool:
        return self._workers > 1 and len(items) > 1 and len(payload) <= _LARGEST_TASK

    def _started(self) -> Executor:
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        # No plain forks: this process may have threads, of pyarrow's and for progress.
        methods = multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("forkserver" if "forkserver" in methods else None)
        if context.get_start_method() == "forkserver":
            context.set_forkserver_preload(_at_hand())
        return ProcessPoolExecutor(self._workers, context, initializer=_begin)

    def _size(self) -> int:
        return self._workers

    def _awaited(self, future: Future[Any]) -> Any:
        """The result; of a task handed over just as the pool broke there may never be one."""
        from concurrent.futures import wait
        from concurrent.futures.process import BrokenProcessPool

        while not wait([future], timeout=_GLANCE).done:
            if getattr(self._executor, "_broken", False):
                raise BrokenProcessPool("a task was lost with its process")
        return future.result()

    def _stop(self) -> None:
        executor = self._executor
        if executor is None:
            return
        from concurrent.futures import ProcessPoolExecutor

        # Where one was killed, Python ends the others; but one that it was just starting then, it
        # would wait for without end.
        if isinstance(executor, ProcessPoolExecutor) and executor._broken:
            for process in list((executor._processes or {}).values()):
                process.kill()
        super()._stop()

    def _lost(self, error: Exception) -> str | None:
        from concurrent.futures.process import BrokenProcessPool

        if not isinstance(error, BrokenProcessPool):
            return None
        return (
            "a worker process was killed, and again when its rows were tried again; is there "
            "enough memory? Give fewer `workers`"
        )


class Cluster(_Elsewhere):
    """On a Dask cluster, one of its own on this machine or one whose scheduler is running.

    Workers need this version of pate, and must see the votes under the same names.
    """

    worth = 0

    def __init__(self, address: str | None, *, workers: int = 1) -> None:
        """`address` of a scheduler; without one, `workers` processes are started here.

        Raises:
            UsageError: Dask is not installed.
        """
        super().__init__()
        self._address, self._workers = address, check_whole("`workers`", workers)
        self._held = contextlib.ExitStack()
        self._client: Any = None
        self._parcel: tuple[str, Any] | None = None
        self._threads = 1
        try:
            import dask
            import distributed
        except ImportError:
            raise UsageError(
                "`engine` needs Dask: install it with pip install 'pate-cli[dask]'"
            ) from None
        self._dask, self._config = distributed, dask.config

    def _started(self) -> Executor:
        import logging

        dask = self._dask
        # What it has to say comes as one error; its own log would fill the terminal.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        try:
            address = self._address
            if address is None:
                with self._config.set(_MEMORY):
                    own = dask.LocalCluster(
                        n_workers=self._workers,
                        threads_per_worker=1,
                        dashboard_address="127.0.0.1:0",  # None is port 8787, for everyone to see
                        silence_logs=50,
                    )
                    address = self._held.enter_context(own)
            client = dask.Client(address, timeout=_PATIENCE, set_as_default=False)
            self._client = self._held.enter_context(client)
            client.wait_for_workers(1, timeout=_PATIENCE)
        except (OSError, ValueError, RuntimeError):
            where = (
                "of this machine's own"
                if self._address is None
                else f"at {without_credentials(self._address)}"
            )
            raise EngineError(
                f"no scheduler with a worker answers {where} within {_PATIENCE} seconds; is it "
                "running?"
            ) from None  # its text may quote the address
        self._threads = max(1, sum(client.nthreads().values()))
        executor: Executor = client.get_executor(pure=False, retries=_TRIES)
        return executor

    def _delivered(self, name: str, payload: bytes) -> Any:
        if self._parcel is None or self._parcel[0] != name:
            self._parcel = name, self._client.scatter(payload, broadcast=True, hash=False)
        return self._parcel[1]

    def _size(self) -> int:
        return self._threads

    def _awaited(self, future: Future[Any]) -> Any:
        """The result; a future of a scheduler that is gone may never hear of it."""
        from concurrent.futures import wait

        alone = 0.0
        while not wait([future], timeout=_GLANCE).done:
            if self._client.status != "running":
                raise ConnectionError("the scheduler is gone")
            alone = 0.0 if self._client.nthreads() else alone + _GLANCE
            if alone > _PATIENCE:
                raise ConnectionError("all workers are gone")
        return future.result()

    def _lost(self, error: Exception) -> str | None:
        from concurrent.futures import CancelledError

        lost = (
            CancelledError,
            ConnectionError,
            TimeoutError,
            self._dask.KilledWorker,
            self._dask.client.FutureCancelledError,
            self._dask.comm.core.CommClosedError,
        )
        if not isinstance(error, lost):
            return None
        return f"the cluster was lost ({type(error).__name__}); nothing was released"

    def _stop(self) -> None:
        self._executor = self._parcel = None
        self._held.close()


def cores() -> int:
    """Those that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@contextlib.contextmanager
def beside(task: Callable[[], _Found], *, entries: int) -> Iterator[Callable[[], _Found]]:
    """Work on a task while the block runs, where a core would be idle; the result is asked for.

    Not in a worker, which has others beside it, nor for little work. What the task raises, asking
    for its result raises.

    Args:
        task: draws nothing, and changes nothing that the block looks at.
        entries: of votes that it works on.
    """
    if _alone(entries):
        yield task
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as other:
        yield other.submit(task).result


def in_pairs(
    task: Callable[[_Item], _Found], items: Sequence[_Item], *, entries: int
) -> list[_Found]:
    """A task's results in the order of items, every other one worked on beside the rest.

    Args:
        task: as for `beside`.
        items: few.
        entries: all items together, as of votes.
    """
    with beside(lambda: [task(item) for item in items[1::2]], entries=entries) as others:
        mine = [task(item) for item in items[::2]]
        every = itertools.zip_longest(mine, others())
    return [found for pair in every for found in pair][: len(items)]


def _alone(entries: int) -> bool:
    """Whether a thread is not worth its start, or would have no core: workers have others beside.

    Args:
        entries: of votes that there are to work on.
    """
    return entries < _WORTH_A_THREAD or hasattr(_LOCAL, "name") or cores() < 2


def engine_for(where: str, *, workers: int) -> Processes | Cluster:
    """The engine of a name: `local`, `dask`, or the address of a scheduler.

    Raises:
        UsageError: another name, or Dask is not installed.
    """
    if where == "local":
        return Processes(workers)
    if where == "dask":
        return Cluster(None, workers=workers)
    if where.startswith(("tcp://", "tls://")):
        return Cluster(where)
    raise UsageError(
        f"`engine` must be local, dask or the address of a scheduler (tcp://HOST:PORT), not "
        f"{quoted(without_credentials(where))}"
    )


_LOCAL = threading.local()
"""In a worker: the task that a thread works on, and its name."""


def _begin() -> None:
    """Leave an interruption to the parent, and end with it, however it ends."""
    import multiprocessing

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    from multiprocessing.connection import wait

    wait([sentinel])
    os._exit(1)


def _work(version: str, name: str, payload: bytes, item: Any) -> Any:
    if version != __version__:
        raise EngineError(f"a worker has pate {__version__}, this is {version}; install the same")
    if getattr(_LOCAL, "name", None) != name:
        _LOCAL.task = pickle.loads(payload)  # noqa: S301 - it comes from the one who started us
        _LOCAL.name = name
    bound_reading()
    try:
        return _LOCAL.task(item)
    except NotOpenedError as error:
        raise VoteError(f"{error} on a worker, which must see the votes by the same name") from None


def _at_hand() -> list[str]:
    """What of the package is loaded here: a new process will need about the same."""
    return [name for name in sys.modules if name.startswith("pate_cli.")]
