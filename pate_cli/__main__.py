"""Entry point of `pate` and of `python -m pate_cli`."""

from __future__ import annotations

import os
import sys

from pate_cli.cli.terminal import (
    escape_unprintable,
    interruptible,
    say,
    stoppable,
    take_closed_places,
)
from pate_cli.core.errors import OutputError
from pate_cli.core.memory import bound_reading


def main() -> None:
    """Run the command line."""
    with stoppable(), interruptible(SystemExit):
        take_closed_places()
        # Our matrices are small: threads that numpy starts for large ones would cost a third of a
        # run, and one that wants more processors has ways of its own.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        bound_reading()
        # It takes a moment, in which a signal may come.
        from pate_cli.cli.app import app

        escape_unprintable()
        try:
            app(prog_name="pate")
        except OSError as error:
            # Commands report their own failures; this is --help or --version to a full disk.
            if os.environ.get("PATE_DEBUG"):
                raise
            say(f"cannot write: {error.strerror or error}")
            sys.exit(OutputError.exit_code)


if __name__ == "__main__":
    main()
