"""How far the work is: a bar at a terminal and in a notebook, elsewhere nothing."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

_ROOMY: Final = 60
"""Columns of a terminal from which on there is a bar beside the numbers."""


@dataclass
class Counter:
    """A count of steps that are done.

    Call it with how many more are done, then with how many there are once that is known.

    Attributes:
        what: what is done.
        total: how many steps that takes; None where it is not known.
        show: draws how far it is for whoever looks; None where nobody does.
        done: how many of them are.
    """

    what: str
    total: int | None
    show: Callable[[Counter], None] | None = None
    done: int = 0

    def __call__(self, done: int, of: int | None = None, /) -> None:
        """Count so many more steps."""
        self.done += done
        self.total = self.total if of is None else of
        if self.show is not None:
            self.show(self)

    @property
    def numbers(self) -> str:
        """Return how many steps are done, of how many if that is known."""
        return f"{self.done}" if self.total is None else f"{self.done}/{self.total}"


@contextlib.contextmanager
def progress(what: str, total: int | None = None, *, quiet: bool = False) -> Iterator[Counter]:
    """Show a bar with an estimate of the time left to whoever looks; it is wiped in the end.

    Where nobody knows how much there is to do, it may be nothing: then it begins with the first.

    Args:
        what: what is done.
        total: how many steps that takes; None where it is not known yet.
        quiet: show nothing.
    """
    with contextlib.ExitStack() as held:
        counter = Counter(what, total)
        # The cell of a notebook has a kernel to show it.
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        if not quiet and hasattr(shell, "kernel"):
            counter.show = held.enter_context(_bar_in_notebook())
        elif not quiet and sys.stderr and not sys.stderr.closed and sys.stderr.isatty():
            counter.show = held.enter_context(_bar_at_terminal())
        if total is not None:
            counter(0)
        yield counter


@contextlib.contextmanager
def _bar_at_terminal() -> Iterator[Callable[[Counter], None]]:
    """Yield what draws a bar on stderr, with the time that is left."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    picture = (BarColumn(),) if console.width >= _ROOMY else ()  # numbers come first
    columns = (TextColumn("{task.description}"), *picture, TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task("", total=None)

    def show(counter: Counter) -> None:
        bar.start()
        about = f"{escape(counter.what)} [progress.download]{counter.numbers}"
        bar.update(task, completed=counter.done, total=counter.total, description=about)

    try:
        yield show
    finally:
        bar.stop()


@contextlib.contextmanager
def _bar_in_notebook() -> Iterator[Callable[[Counter], None]]:
    """Yield what draws a bar below the cell of a notebook."""
    shows = importlib.import_module("IPython.display")  # which every notebook has
    drawn = shows.display(shows.HTML(""), display_id=True)

    def show(counter: Counter) -> None:
        ends = "" if counter.total is None else f' value="{counter.done}" max="{counter.total}"'
        bar = f"<progress{ends}></progress> {counter.what} {counter.numbers}"
        drawn.update(shows.HTML(bar))

    try:
        yield show
    finally:
        drawn.update(shows.HTML(""))
