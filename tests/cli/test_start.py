"""What a run does not use is not imported, and numpy starts no threads that nobody wants."""

import os
import subprocess
import sys

import pytest


def test_a_run_imports_nothing_that_is_heavy_and_rare(votes):
    heavy = ("pandas", "pyarrow.dataset", "pyarrow.csv", "pydantic", "rich")
    heavy += ("matplotlib", "distributed", "pate_cli.mechanisms.lnmax", "pate_cli.paper")
    heavy += ("pate_cli.planning.cost", "pate_cli.planning.tune")
    words = ("--teachers", "40", "--delta", "1e-6", "--max-queries", "20", "-o", "l.csv")
    script = (
        "import sys\n"
        "from pate_cli.__main__ import main\n"
        f"sys.argv = ['pate', 'aggregate', {str(votes)!r}, *{words!r}]\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        f"print(*(name for name in {heavy} if name in sys.modules))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == ""


@pytest.mark.parametrize("given", [None, "3"])
def test_numpy_starts_no_threads_for_matrices_unless_told_to(given):
    """It asks once, when it is imported."""
    script = (
        "import os, sys\n"
        "import pate_cli.__main__ as entry\n"
        "assert 'numpy' not in sys.modules\n"
        "sys.argv = ['pate', '--version']\n"
        "try: entry.main()\n"
        "except SystemExit: print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    name = "OPENBLAS_NUM_THREADS"
    others = {key: value for key, value in os.environ.items() if key != name}
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env=others | ({name: given} if given else {}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines()[-1] == (given or "1")
