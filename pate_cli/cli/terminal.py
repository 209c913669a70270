"""The terminal: signals, standard streams, lines on stderr, and results on stdout."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from pate_cli.core.errors import OutputError, printable, withheld
from pate_cli.verbs.keywords import with_options

if TYPE_CHECKING:
    from pate_cli.core.said import Said
    from pate_cli.files.outputs import Outputs

_ENDLESS: Final = 10_000


def take_closed_places() -> None:
    """Let no file that is opened take the place of a standard stream that is closed.

    What is written to that stream, by whatever is called, would be written into the file.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:  # and the first that is free is this one
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def escape_unprintable() -> None:
    """Let no letter that the terminal or a file name's encoding lacks stop a table."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


class Stopped(KeyboardInterrupt):
    """A signal that asks the program to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def exit_code(interruption: BaseException | None) -> int:
    """Return the exit code of an interruption; Ctrl-C may come without a number."""
    return 128 + getattr(interruption, "number", signal.SIGINT)


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Take SIGTERM and SIGHUP for what Ctrl-C is: nothing half-written stays behind either.

    After the block, when all is said, each ends the program at once and in silence.
    """

    def stop(number: int, _frame: object) -> None:
        raise Stopped(number)

    numbers = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
    # What nohup and its like have set to be ignored stays so.
    taken = [
        number
        for number in numbers
        if number is not None
        and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)
    ]
    try:
        for number in taken:
            signal.signal(number, stop)
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def interruptible(ended: Callable[[int], BaseException]) -> Iterator[None]:
    """Say of an interruption what it left behind; `ended` by the exit code goes on its way."""
    try:
        yield
    except KeyboardInterrupt as error:
        say(f"interrupted; {what_was_released()}{notes_of(error)}")
        raise ended(exit_code(error)) from None


_OUTPUTS: ContextVar[list[Outputs]] = ContextVar("outputs")
_ANSWERED: ContextVar[bool] = ContextVar("answered", default=False)


def write(text: str) -> None:
    """Write a text to stdout.

    Raises:
        OutputError: there is no standard output, or no place there.
    """
    with _standard_output():
        sys.stdout.write(text)


def print_words(said: Said) -> None:
    """Print lines, facts and tables on stdout; errors as `write`."""
    with _standard_output():
        from rich.console import Console

        from pate_cli.core.said import on_terminal

        class Printer(Console):
            def on_broken_pipe(self) -> None:
                """Leave it to the command line, which knows what is expected of a filter."""
                raise BrokenPipeError

        # A pipe has no end; without a height rich takes a dumb terminal for one of 80 columns.
        width, height = shutil.get_terminal_size((_ENDLESS, 24))
        on_terminal(Printer(width=width, height=height), said)


@contextlib.contextmanager
def _standard_output() -> Iterator[None]:
    refuse_closed()
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write standard output: {error.strerror or error}") from error


def read_by_person() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout is not None and not sys.stdout.closed and sys.stdout.isatty()


def told_to_person() -> bool:
    """Whether standard error is a terminal, where nothing of what is said is kept."""
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def refuse_closed() -> None:
    """OutputError where there is no standard output."""
    if sys.stdout is None or sys.stdout.closed:
        raise OutputError("cannot write standard output: it is closed")


def say(message: str) -> None:
    """One line on stderr, if it can be written: a closed or full stderr must not stop a run.

    What a name may hold beside letters must not break the line or command the terminal, nor give
    away a password.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"pate: {withheld(printable(message))}\n")
        sys.stderr.flush()


@contextlib.contextmanager
def outputs(*, force: bool) -> Iterator[Outputs]:
    """A transaction of outputs; `what_was_released` knows whether any have left for good."""
    from pate_cli.files.outputs import Outputs

    out = Outputs(force=force)
    _OUTPUTS.get().append(out)
    with out:
        yield out


@contextlib.contextmanager
def command() -> Iterator[None]:
    """One command, whose outputs know what it reads, and `what_was_released` knows the outputs.

    UsageError where a file that is read is standard output, too: what is printed goes there.
    """
    from pate_cli.files.protected import places_of, watched

    outs: list[Outputs] = []
    _ANSWERED.set(False)
    _OUTPUTS.set(outs)  # and known after the command, too, until there is another
    try:
        with watched() as inputs, warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_: say(with_options(str(message), {}))
            inputs.claim("standard output", places_of(1))
            yield
    finally:
        for out in outs:
            out.discard()


def notes_of(error: BaseException) -> str:
    """Return notes that an error got on its way, to go behind its message."""
    return "".join(f"; {note}" for note in getattr(error, "__notes__", ()))


def answered() -> None:
    """Note that something has left on standard output that is in the record of what was spent."""
    _ANSWERED.set(True)


def what_was_released() -> str:
    """Return whether anything has left for good, for a message about an interruption."""
    if _ANSWERED.get():
        return "what was answered is in the record"
    if any(out.released for out in _OUTPUTS.get([])):
        return "outputs left already: count this run as spent"
    return "nothing was released"
