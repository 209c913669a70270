"""Where work is done: here, or in processes of their own; results come in the order of the work.

A task is tried again where its process died. That is sound because a task draws nothing by chance:
all noise follows from the run's key (see pate_cli.noise).
"""

from __future__ import annotations

import collections
import itertools
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar

from pate_cli.checks import check_whole
from pate_cli.errors import EngineError

__all__ = ["HERE", "Engine", "Here", "Processes"]

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")

# Results that wait for their turn, and tasks under way, per process.
_AHEAD: Final = 2
_TRIES: Final = 3
# A larger task is not worth sending with every item.
_LARGEST_TASK: Final = 1 << 23
_PRELOADED: Final = ["pate_cli.passes", "pate_cli.mechanisms.confident", "pate_cli.votes.parquet"]


class Engine(Protocol):
    """Applies a task to items, in any process, and gives the results in order."""

    def map(self, task: Callable[[_Item], _Found], items: Sequence[_Item]) -> Iterator[_Found]:
        """Results in the order of items; what a task raises is raised here."""
        ...


class Here:
    """One after the other, in this process."""

    def map(self, task: Callable[[_Item], _Found], items: Sequence[_Item]) -> Iterator[_Found]:
        """Results in the order of items."""
        return map(task, items)


HERE: Final = Here()


class Processes:
    """In so many processes on this machine, started with the first task; a context manager."""

    def __init__(self, workers: int) -> None:
        """ParameterError for fewer than one."""
        self._workers = check_whole("`workers`", workers)
        self._pool: Executor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()

    def map(self, task: Callable[[_Item], _Found], items: Sequence[_Item]) -> Iterator[_Found]:
        """Results in the order of items; here where there is nothing to share out.

        Raises:
            EngineError: a process died, and died again when its task was tried again.
        """
        if self._workers == 1 or len(items) < 2:
            yield from map(task, items)
            return
        payload = pickle.dumps(task)
        if len(payload) > _LARGEST_TASK:
            yield from map(task, items)
            return
        name = next(_NAMES)
        # Items whose results have not come yet; those of a pool that broke are sent again.
        waiting = collections.deque(items)
        sent: collections.deque[tuple[_Item, Future[Any]]] = collections.deque()
        tries = 0
        while waiting or sent:
            try:
                pool = self._started()
                while waiting and len(sent) < _AHEAD * self._workers:
                    sent.append((waiting[0], pool.submit(_work, name, payload, waiting[0])))
                    waiting.popleft()
                found = sent[0][1].result()
            except BrokenProcessPool as error:
                self._stop()
                waiting.extendleft(item for item, _ in reversed(sent))
                sent.clear()
                tries += 1
                if tries == _TRIES:
                    raise EngineError(
                        "a worker process was killed, and again when its rows were tried again; is "
                        "there enough memory? Give fewer `workers`"
                    ) from error
                continue
            sent.popleft()
            yield found

    def _started(self) -> Executor:
        if self._pool is None:
            # Not plain forks: this process may have threads, of pyarrow's and for progress.
            methods = multiprocessing.get_all_start_methods()
            context = multiprocessing.get_context("forkserver" if "forkserver" in methods else None)
            if context.get_start_method() == "forkserver":
                context.set_forkserver_preload(_PRELOADED)
            self._pool = ProcessPoolExecutor(self._workers, context, initializer=_begin)
        return self._pool

    def _stop(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


_NAMES = itertools.count()
_TASKS: dict[int, Any] = {}
"""In a worker: the task it works on."""


def _begin() -> None:
    """Leave an interruption to the parent, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)


def _work(name: int, payload: bytes, item: Any) -> Any:
    if name not in _TASKS:
        _TASKS.clear()
        _TASKS[name] = pickle.loads(payload)  # noqa: S301 - it comes from the parent
    return _TASKS[name](item)
