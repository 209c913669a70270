"""How far the work is: a bar on stderr for a person at a terminal, elsewhere a line a minute."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress

_MINUTE: Final = 60.0
_ROOMY: Final = 60
"""Columns of a terminal from which on there is a bar beside the numbers."""


@dataclass
class Counter:
    """A count of steps that are done.

    Call it with how many more are done, then with how many there are once that is known, and with
    `what` is at hand now.

    Attributes:
        what: what is done.
        total: how many steps that takes; None where it is not known.
        bar: the bar that a person sees; None where nobody looks.
        done: how many of them are.
    """

    what: str
    total: int | None
    bar: Progress | None = None
    done: int = 0

    def __call__(self, done: int, of: int | None = None, /, *, what: str | None = None) -> None:
        """Count so many more steps."""
        self.done += done
        self.total = self.total if of is None else of
        self.what = self.what if what is None else what
        if self.bar is not None:
            from rich.markup import escape

            self.bar.start()
            said = f"{self.done}" if self.total is None else f"{self.done}/{self.total}"
            about = f"{escape(self.what)} [progress.download]{said}"
            at, total = self.bar.task_ids[0], self.total
            self.bar.update(at, completed=self.done, total=total, description=about)

    def __str__(self) -> str:
        """Return what a line of text says of it."""
        counted = f"{self.done}" if self.total is None else f"{self.done} of {self.total}"
        return f"{self.what}, {counted}" if self.done or self.total else self.what


_AT_HAND: Final[list[Counter]] = []
"""What this process is at, the innermost last."""


@contextlib.contextmanager
def progress(
    what: str, total: int | None, *, quiet: bool = False, clock: bool = False
) -> Iterator[Counter]:
    """Show a bar with an estimate of the time left; off a terminal `by_the_minute` tells of it.

    Where nobody knows how much there is to do, it may be nothing: then it begins with the first.

    Args:
        what: what is done.
        total: how many steps that takes; None where it is not known yet.
        quiet: show nothing.
        clock: show the time that has passed, a sign of life, in place of the estimate: for steps
            of which some take far longer than others.
    """
    counter = Counter(what, total, _bar(clock=clock) if not quiet and _seen_by_person() else None)
    _AT_HAND.append(counter)
    try:
        if total is not None:
            counter(0)
        yield counter
    finally:
        _AT_HAND.remove(counter)
        if counter.bar is not None:
            counter.bar.stop()


@contextlib.contextmanager
def by_the_minute(program: str, *, quiet: bool = False) -> Iterator[None]:
    """Print progress to stderr once a minute; print nothing at a terminal, which has bars.

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
    """Return whether the work ended within a minute, which is waited for."""
    return ended.wait(_MINUTE)


def _seen_by_person() -> bool:
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def _bar(*, clock: bool) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Left

    console = Console(stderr=True)
    picture = (BarColumn(),) if console.width >= _ROOMY else ()  # numbers come first
    columns = (TextColumn("{task.description}"), *picture)
    bar = Progress(
        *columns, TimeElapsedColumn() if clock else Left(), console=console, transient=True
    )
    bar.add_task("", total=None)
    return bar
