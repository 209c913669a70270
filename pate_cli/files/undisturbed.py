"""Steps that no signal cuts in half: what interrupts a program waits until they are done."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

_SIGNALS: Final = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Hold back SIGINT, SIGTERM and SIGHUP until the block is left, then deliver them.

    For short blocks: nobody could end one that hangs. Outside of the main thread, which alone runs
    handlers, nothing needs to be held back. Handlers and not masks, for a mask is a thread's own,
    and libraries have threads to which the system would give the signal instead.
    """
    gate = _Gate()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    try:
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if handler not in (None, signal.SIG_IGN):  # None: not of Python, and cannot be put back
                gate.behind[number] = handler
                signal.signal(number, gate)
        gate.shut = True
        yield
    finally:
        gate.shut = False
        for number, handler in gate.behind.items():
            signal.signal(number, handler)
        for number in dict.fromkeys(gate.held):
            signal.raise_signal(number)


class _Gate:
    """A handler that notes signals while it is shut.

    Otherwise it is as if it were not there: a signal may break off putting it in place, or away.
    """

    def __init__(self) -> None:
        self.shut = False
        self.held: list[int] = []
        self.behind: dict[signal.Signals, Any] = {}

    def __call__(self, number: int, frame: FrameType | None) -> None:
        behind = self.behind[signal.Signals(number)]
        if self.shut:
            self.held.append(number)
        elif callable(behind):
            behind(number, frame)
        else:
            signal.signal(number, behind)
            signal.raise_signal(number)
