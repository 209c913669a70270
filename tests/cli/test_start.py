"""What a run does not use is not imported, and numpy starts no threads that nobody wants."""

import os
import subprocess
import sys

import pytest

RUN = ["--teachers", "40", "--delta", "1e-6", "--max-queries", "20", "-o", "l.csv"]
LIBRARIES = {"numpy", "scipy", "pyarrow", "pydantic", "rich"}
RARE = {"pandas", "pyarrow.dataset", "pyarrow.csv", "pydantic", "rich", "matplotlib", "distributed"}
RARE |= {"pate_cli.mechanisms.lnmax", "pate_cli.paper"}
RARE |= {"pate_cli.planning.cost", "pate_cli.planning.tune"}


@pytest.mark.parametrize(
    ("words", "heavy"),
    [(None, LIBRARIES | {"typer"}), (["--help"], LIBRARIES), (RUN, RARE)],
    ids=["import pate_cli", "help", "a run"],
)
def test_nothing_heavy_is_imported_before_it_is_used(words, heavy, votes):
    lines = ["import atexit, sys", f"atexit.register(lambda: print({heavy} & set(sys.modules)))"]
    if words is None:
        lines.append("import pate_cli")
    else:
        lines += [f"sys.argv = ['pate', 'aggregate', {str(votes)!r}, *{words}]"]
        lines.append("from pate_cli.__main__ import main; main()")
    script = "\n".join(lines)
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "set()"


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
