"""The published analysis is not loaded before it is asked for."""

from __future__ import annotations

import subprocess
import sys


def test_the_published_one_is_loaded_where_it_is_asked_for():
    lines = (
        "import sys, pate_cli.verbs.measure, pate_cli.verbs.aggregate, pate_cli.verbs.release",
        "from pate_cli.verbs.request import published",
        "published('tight')",
        "print('pate_cli.paper' in sys.modules)",
        "published('paper')",
        "print('pate_cli.paper' in sys.modules)",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]
