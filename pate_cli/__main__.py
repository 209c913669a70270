"""Entry point of `pate` and of `python -m pate_cli`."""

from __future__ import annotations

import os

from pate_cli.cli.terminal import escape_unprintable, interruptible, stoppable, take_closed_places
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
        app(prog_name="pate")


if __name__ == "__main__":
    main()
