"""Processes that take a step and end, or are killed."""

import contextlib
import os
import signal
import sys
import warnings


def forked(step):
    """The process of a step, which ends with the step's exit code; with 70 where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of this process are idle
        process = os.fork()
    if process:
        return process
    code = 70
    try:
        step()
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else 70
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
        os._exit(code)


def ended(process):
    """The exit code of a process, once it has ended; negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def killed(step):
    """A process that takes a step and is then killed."""

    def run():
        step()
        os.kill(os.getpid(), signal.SIGKILL)

    assert ended(forked(run)) == -signal.SIGKILL
