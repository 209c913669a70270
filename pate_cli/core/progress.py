"""How far the work is: a bar at a terminal and in a notebook, elsewhere nothing."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_ROOMY: Final = 60
"""Columns of a terminal from which on there is a bar beside the numbers."""


@dataclass
class Counter:
    """A count of steps that are done.

    Call it with how many more are done, then with how many there are once that is known.

    Attributes:
        what: what is done.
        total: how many steps that takes; None where it is not known.
        bar: shows a person how far it is; None where nobody looks.
        done: how many of them are.
    """

    what: str
    total: int | None
    bar: TerminalBar | NotebookBar | None = None
    done: int = 0

    def __call__(self, done: int, of: int | None = None, /) -> None:
        """Count so many more steps."""
        self.done += done
        self.total = self.total if of is None else of
        if self.bar is not None:
            self.bar.show(self)


@contextlib.contextmanager
def progress(what: str, total: int | None = None, *, quiet: bool = False) -> Iterator[Counter]:
    """Show a bar with an estimate of the time left to whoever looks; it is wiped in the end.

    Where nobody knows how much there is to do, it may be nothing: then it begins with the first.

    Args:
        what: what is done.
        total: how many steps that takes; None where it is not known yet.
        quiet: show nothing.
    """
    bar: TerminalBar | NotebookBar | None = None
    if not quiet and (_seen_by_person() or _in_notebook()):
        bar = NotebookBar() if _in_notebook() else TerminalBar()
    counter = Counter(what, total, bar)
    try:
        if total is not None:
            counter(0)
        yield counter
    finally:
        if counter.bar is not None:
            counter.bar.stop()


def _seen_by_person() -> bool:
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def _in_notebook() -> bool:
    """Return whether the cell of a notebook runs this: then there is a kernel to show it."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


class TerminalBar:
    """A bar on stderr, with the time that is left."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        picture = (BarColumn(),) if console.width >= _ROOMY else ()  # numbers come first
        columns = (TextColumn("{task.description}"), *picture, TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, transient=True)
        self._bar.add_task("", total=None)

    def show(self, counter: Counter) -> None:
        """Draw how far it is."""
        from rich.markup import escape

        self._bar.start()
        done, total = counter.done, counter.total
        about = f"{escape(counter.what)} [progress.download]{_of(done, total)}"
        at = self._bar.task_ids[0]
        self._bar.update(at, completed=done, total=total, description=about)

    def stop(self) -> None:
        """Wipe the bar."""
        self._bar.stop()


class NotebookBar:
    """A bar below the cell of a notebook."""

    _shown: Any = None

    def show(self, counter: Counter) -> None:
        """Draw how far it is."""
        ends = "" if counter.total is None else f' value="{counter.done}" max="{counter.total}"'
        self._draw(f"<progress{ends}></progress> {counter.what} {_of(counter.done, counter.total)}")

    def stop(self) -> None:
        """Wipe the bar."""
        if self._shown is not None:
            self._draw("")

    def _draw(self, text: str) -> None:
        shows = importlib.import_module("IPython.display")  # which every notebook has
        if self._shown is None:
            self._shown = shows.display(shows.HTML(text), display_id=True)
        else:
            self._shown.update(shows.HTML(text))


def _of(done: int, total: int | None) -> str:
    return f"{done}" if total is None else f"{done}/{total}"
