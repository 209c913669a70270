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
    """Open the null device for every standard stream that is closed.

    If a standard stream stayed closed, the next opened file would get the descriptor of the stream,
    and messages to the stream would be written into the file.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:  # The next opened file gets this descriptor, which is the first free one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def escape_unprintable() -> None:
    """Escape letters that standard output cannot encode, so that printing them does not fail."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


class Stopped(KeyboardInterrupt):
    """Raised by a signal that asks the program to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def exit_code(interruption: BaseException | None) -> int:
    """Return the exit code after an interruption by a signal; None is treated like Ctrl-C."""
    return 128 + getattr(interruption, "number", signal.SIGINT)


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP like Ctrl-C, so that no incomplete output stays behind.

    After the block, SIGTERM, SIGHUP and Ctrl-C end the program at once and without a message.
    """

    def stop(number: int, _frame: object) -> None:
        raise Stopped(number)

    # Signals that are ignored, for example because of nohup, stay ignored.
    taken = [
        number
        for number in signal.Signals
        if number.name in ("SIGINT", "SIGTERM", "SIGHUP")
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
    """If a signal interrupts the block, print what was released, and raise an exception.

    `ended` takes the exit code of the program, and returns the exception to raise.
    """
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
        OutputError: standard output is closed, or has no room.
    """
    with _standard_output():
        sys.stdout.write(text)


def print_words(said: Said) -> None:
    """Print lines, pairs and tables on stdout.

    Raises:
        OutputError: standard output is closed, or has no room.
    """
    with _standard_output():
        from rich.console import Console

        from pate_cli.core.said import on_terminal

        class Printer(Console):
            def on_broken_pipe(self) -> None:
                """Raise BrokenPipeError, because `ending` handles broken pipes."""
                raise BrokenPipeError

        # A pipe has no width. Without a height, rich assumes 80 columns for a dumb terminal.
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
    """Return whether standard output is a terminal."""
    return sys.stdout is not None and not sys.stdout.closed and sys.stdout.isatty()


def told_to_person() -> bool:
    """Return whether standard error is a terminal, and not a file or log that others may read."""
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def refuse_closed() -> None:
    """Raise OutputError if standard output is closed."""
    if sys.stdout is None or sys.stdout.closed:
        raise OutputError("cannot write standard output: it is closed; connect a pipe or a file")


def say(message: str) -> None:
    """Write one line to stderr; a closed or full stderr is ignored, so that it stops no run.

    Line breaks, commands to the terminal and passwords in the message are escaped or removed.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"pate: {withheld(printable(message))}\n")
        sys.stderr.flush()


@contextlib.contextmanager
def outputs(*, force: bool) -> Iterator[Outputs]:
    """Yield a transaction for the outputs of a command.

    If the command is interrupted, `what_was_released` says whether the outputs were released.
    """
    from pate_cli.files.outputs import Outputs

    out = Outputs(force=force)
    _OUTPUTS.get().append(out)
    with out:
        yield out


@contextlib.contextmanager
def command() -> Iterator[None]:
    """Run one command in a block, and refuse outputs that would replace an input of the command.

    Messages about an interruption say whether outputs of the command were released.

    Raises:
        UsageError: an input of the command is the file behind standard output.
    """
    from pate_cli.files.protected import places_of, watched

    outs: list[Outputs] = []
    _ANSWERED.set(False)
    _OUTPUTS.set(outs)  # Messages after the command need these outputs, too.
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
    """Return the notes of an error as a text, which is printed after the message of the error."""
    return "".join(f"; {note}" for note in getattr(error, "__notes__", ()))


def answered() -> None:
    """Remember, for `what_was_released`, that the command sends answers to standard output."""
    _ANSWERED.set(True)


def what_was_released() -> str:
    """Return a phrase that says whether anything was released before an interruption."""
    if _ANSWERED.get():
        return "all answers that were sent are in the record, if there is one"
    if any(out.released for out in _OUTPUTS.get([])):
        return "some outputs were released already: count the cost of this run as spent"
    return "nothing was released"
