"""How far the work is: a bar on stderr for a person at a terminal, elsewhere a line a minute."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress

_MINUTE: Final = 60.0
_ROOMY: Final = 60
"""Columns of a terminal from which on there is a bar beside the numbers."""


class Advance(Protocol):
    """Tells a bar of steps just done, of how many, once that is known, and what is at hand now."""

    def __call__(self, done: int, of: int | None = None, /, *, what: str | None = None) -> None:
        """So many more steps are done."""


def unseen(_done: int, _of: int | None = None, /, *, what: str | None = None) -> None:
    """Where nobody looks."""
    del what


@dataclass
class Counter:
    """An Advance that counts.

    Attributes:
        what: what is done.
        total: how many steps that takes; None where it is not known.
        done: how many of them are.
    """

    what: str
    total: int | None
    done: int = 0

    def __call__(self, done: int, of: int | None = None, /, *, what: str | None = None) -> None:
        """See Advance."""
        self.done += done
        self.total = self.total if of is None else of
        self.what = self.what if what is None else what

    def __str__(self) -> str:
        """As a line tells it."""
        counted = f"{self.done}" if self.total is None else f"{self.done} of {self.total}"
        return f"{self.what}, {counted}" if self.done or self.total else self.what


class _Bar(Counter):
    """One that a person sees."""

    def __init__(self, what: str, total: int | None, bar: Progress) -> None:
        super().__init__(what, total)
        self._bar = bar
        self._task = bar.add_task(_escaped(what), total=total)

    def __call__(self, done: int, of: int | None = None, /, *, what: str | None = None) -> None:
        super().__call__(done, of, what=what)
        self._bar.start()
        self._bar.update(
            self._task, completed=self.done, total=self.total, description=_escaped(self.what)
        )


_AT_HAND: Final[list[Counter]] = []
"""What this process is at, the innermost last."""


@contextlib.contextmanager
def progress(
    what: str, total: int | None, *, quiet: bool = False, clock: bool = False
) -> Iterator[Counter]:
    """A progress bar, with an estimate of the time left; off a terminal what `by_the_minute` says.

    Where nobody knows how much there is to do, it may be nothing: then it begins with the first.

    Args:
        what: what is done.
        total: how many steps that takes; None where it is not known yet.
        quiet: show nothing.
        clock: show the time that has passed, a sign of life, in place of the estimate: for steps
            of which some take far longer than others.
    """
    bar = _bar(clock=clock) if not quiet and _seen_by_person() else None
    counter = Counter(what, total) if bar is None else _Bar(what, total, bar)
    _AT_HAND.append(counter)
    try:
        if bar is not None and total is not None:
            bar.start()
        yield counter
    finally:
        _AT_HAND.remove(counter)
        if bar is not None:
            bar.stop()


@contextlib.contextmanager
def by_the_minute(program: str, *, quiet: bool = False) -> Iterator[None]:
    """Say once a minute on stderr what is at hand; nothing at a terminal, which has bars.

    program: what the line begins with.
    """
    if quiet or _seen_by_person():
        yield
        return
    ended = threading.Event()

    def tell() -> None:
        minutes = 0
        while not _passed(ended):
            minutes += 1
            at_hand = f"{_AT_HAND[-1]}" if _AT_HAND else "at work"
            with contextlib.suppress(OSError, ValueError, AttributeError):
                sys.stderr.write(f"{program}: {at_hand}; {minutes} min so far\n")
                sys.stderr.flush()

    teller = threading.Thread(target=tell, name="by the minute", daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()


def _passed(ended: threading.Event) -> bool:
    """Whether it ended within a minute, which is waited for."""
    return ended.wait(_MINUTE)


def _seen_by_person() -> bool:
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def _escaped(words: str) -> str:
    from rich.markup import escape

    return escape(words)


def _bar(*, clock: bool) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Counted(ProgressColumn):
        def render(self, task: Any) -> Text:
            """How many steps are done, of how many if that is known."""
            done = f"{int(task.completed)}"
            counted = done if task.total is None else f"{done}/{int(task.total)}"
            return Text(counted, style="progress.download")

    console = Console(stderr=True)
    # Numbers come before the picture, where there is no room for both.
    picture = (BarColumn(),) if console.width >= _ROOMY else ()
    time = TimeElapsedColumn() if clock else TimeRemainingColumn()
    columns = (TextColumn("{task.description}"), *picture, Counted(), time)
    return Progress(*columns, console=console, transient=True)
