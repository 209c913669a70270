"""Entry point of `pate` and of `python -m pate_cli`."""

from __future__ import annotations

import os

from pate_cli.cli.terminal import escape_unprintable, interruptible, stoppable, take_closed_places
from pate_cli.core.memory import bound_reading


def main() -> None:
    """Run the command line."""
    with stoppable(), interruptible(SystemExit):
        take_closed_places()
        # Threads that numpy starts for large matrices would take a third of a run, and our matrices
        # are small. Users who want more processors have --workers and --engine.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        bound_reading()
        # This import takes a moment, so signals must be handled before it.
        from pate_cli.cli.app import app

        escape_unprintable()
        app(prog_name="pate")


if __name__ == "__main__":
    main()
