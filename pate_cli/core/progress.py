"""A progress bar in a terminal or a notebook; elsewhere nothing is shown."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

_ROOMY: Final = 60
"""A terminal with at least this many columns shows a bar beside the numbers."""


@dataclass
class Counter:
    """A counter of finished steps.

    Call the counter with the number of newly finished steps. A second argument of the call sets the
    total number of steps.

    Attributes:
        what: the work, in words.
        total: the number of all steps; None if it is not known.
        show: a function that draws the progress; None if nothing is shown.
        done: the number of finished steps.
    """

    what: str
    total: int | None
    show: Callable[[Counter], None] | None = None
    done: int = 0

    def __call__(self, done: int, of: int | None = None, /) -> None:
        """Add finished steps, and set the total to `of` if it is given."""
        self.done += done
        self.total = self.total if of is None else of
        if self.show is not None:
            self.show(self)

    @property
    def numbers(self) -> str:
        """Return the number of finished steps as text, with the total if it is known."""
        return f"{self.done}" if self.total is None else f"{self.done}/{self.total}"


@contextlib.contextmanager
def progress(what: str, total: int | None = None, *, quiet: bool = False) -> Iterator[Counter]:
    """Show a bar with an estimate of the remaining time, and remove the bar in the end.

    If the total is not known, the bar appears with the first finished step.

    Args:
        what: the work, in words.
        total: the number of all steps; None if it is not known yet.
        quiet: show nothing.
    """
    with contextlib.ExitStack() as held:
        counter = Counter(what, total)
        # The shell of a notebook has a kernel, which can show the bar below a cell.
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
    """Yield a function that draws a bar on stderr, with the remaining time."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    picture = (BarColumn(),) if console.width >= _ROOMY else ()  # Numbers matter more than a bar.
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
    """Yield a function that draws a bar below the cell of a notebook."""
    shows = importlib.import_module("IPython.display")  # Every notebook has this module.
    drawn = shows.display(shows.HTML(""), display_id=True)

    def show(counter: Counter) -> None:
        ends = "" if counter.total is None else f' value="{counter.done}" max="{counter.total}"'
        bar = f"<progress{ends}></progress> {counter.what} {counter.numbers}"
        drawn.update(shows.HTML(bar))

    try:
        yield show
    finally:
        drawn.update(shows.HTML(""))
