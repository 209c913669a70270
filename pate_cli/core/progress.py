"""A bar on stderr that shows a person at a terminal how far the work is; nothing anywhere else."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Protocol


class Advance(Protocol):
    """Tells a bar of steps just done, of how many, once that is known, and what is at hand now."""

    def __call__(self, done: int, of: int | None = None, /, *, what: str | None = None) -> None:
        """So many more steps are done."""


def unseen(_done: int, _of: int | None = None, /, *, what: str | None = None) -> None:
    """Where nobody looks."""
    del what


@contextlib.contextmanager
def progress(
    what: str, total: int | None, *, quiet: bool = False, clock: bool = False
) -> Iterator[Advance]:
    """A progress bar, with an estimate of the time left; silent off a terminal.

    Where nobody knows how much there is to do, it may be nothing: then it begins with the first.

    Args:
        what: what is done.
        total: how many steps that takes; None where it is not known yet.
        quiet: show nothing.
        clock: show the time that has passed, a sign of life, in place of the estimate: for steps
            of which some take far longer than others.
    """
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield unseen
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn() if clock else TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(escape(what), total=total)

    def advance(done: int, of: int | None = None, /, *, what: str | None = None) -> None:
        bar.start()
        description = None if what is None else escape(what)
        bar.update(task, advance=done, total=of, description=description)

    try:
        if total is not None:
            bar.start()
        yield advance
    finally:
        bar.stop()
