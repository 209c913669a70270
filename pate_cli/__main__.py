"""Entry point of `pate` and of `python -m pate_cli`."""

from __future__ import annotations

import gc
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
        # Importing leaves little to collect; to look for it all the while takes a twelfth of a run.
        gc.set_threshold(100_000)
        # Nor do threads that numpy starts for large matrices: ours are small, and a run that wants
        # more processors has ways of its own.
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
        finally:
            # Nor is all that is left looked through again at the end: it goes with the process.
            gc.freeze()


if __name__ == "__main__":
    main()
