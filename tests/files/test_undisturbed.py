"""Steps that signals do not cut: they wait, and come at once when the steps are done."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from pate_cli.files import undisturbed as module
from pate_cli.files.undisturbed import undisturbed

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


class Come(BaseException):
    """A signal has come."""


@pytest.fixture(autouse=True)
def handlers():
    """Every signal raises; what was there before comes back."""

    def come(number, _frame):
        raise Come(number)

    before = {number: signal.signal(number, come) for number in SIGNALS}
    yield come
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_waits_for_the_outermost_block(number, handlers):
    seen = []
    with pytest.raises(Come) as come, undisturbed():  # noqa: PT012 - how far it gets is the point
        with undisturbed():
            signal.raise_signal(number)
            signal.raise_signal(number)
            seen.append("inner")
        seen.append("outer")
    assert come.value.args == (number,)
    assert seen == ["inner", "outer"]
    assert {signal.getsignal(each) for each in SIGNALS} == {handlers}


def test_a_signal_comes_after_an_error_too(handlers):
    with pytest.raises(Come) as come, undisturbed():  # noqa: PT012 - both come up
        signal.raise_signal(signal.SIGTERM)
        raise OSError
    assert isinstance(come.value.__context__, OSError)
    with pytest.raises(OSError, match="alone"), undisturbed():
        raise OSError("alone")
    assert signal.getsignal(signal.SIGTERM) is handlers


def test_what_is_ignored_stays_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with undisturbed():
        signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_another_thread_holds_nothing_back(handlers):
    seen = []

    def work():
        with undisturbed():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [handlers]


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 6])
def test_a_signal_while_handlers_change(step, monkeypatch, handlers):
    """Whichever change it comes with, it comes once, and so does the next one."""
    real, calls = signal.signal, []

    def change(number, handler):
        calls.append(number)
        before = real(number, handler)
        if len(calls) == step:
            signal.raise_signal(signal.SIGINT)
        return before

    with monkeypatch.context() as patch:
        patch.setattr(module.signal, "signal", change)
        with pytest.raises(Come), undisturbed():
            pass
    for number in SIGNALS:
        with pytest.raises(Come):
            signal.raise_signal(number)
        with pytest.raises(Come), undisturbed():
            signal.raise_signal(number)


def test_a_signal_that_nobody_handles_kills_after_the_block():
    program = (
        "import signal\nfrom pate_cli.files.undisturbed import undisturbed\n"
        "with undisturbed():\n    signal.raise_signal(15)\n    print('in', flush=True)\n"
        "print('after')"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, b"in\n")
