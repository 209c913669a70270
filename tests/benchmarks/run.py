"""Wall times of the program as whole processes, on synthetic votes: `make bench`.

Prints a table; it asserts nothing about time, since machines differ. The best of a few runs is
shown, with the largest memory that the process held.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from pate_cli.synthetic import SyntheticEnsemble

CASES = {
    "aggregate      640 x  10,   250 teachers": SyntheticEnsemble(250, 10, 640),
    "aggregate    9,000 x  10,   250 teachers": SyntheticEnsemble(250, 10, 9_000),
    "aggregate   12,000 x 150, 5,000 teachers": SyntheticEnsemble(5_000, 150, 12_000),
}
REPEATS = 3


def measure(words: list[str], folder: str) -> tuple[float, float]:
    """(seconds, peak MB) of one process; fails when it does."""
    start = time.perf_counter()
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(words)} ended with exit code {process.returncode}")
    # Linux counts in kB, macOS in bytes.
    return seconds, usage.ru_maxrss / (1024.0 if sys.platform == "linux" else 1024.0**2)


def report(name: str, words: list[str], folder: str) -> None:
    """One line of the table."""
    runs = [measure(words, folder) for _ in range(REPEATS)]
    seconds, memory = min(run[0] for run in runs), max(run[1] for run in runs)
    sys.stdout.write(f"{name:<44}{seconds:>9.2f} s{memory:>9.0f} MB\n")
    sys.stdout.flush()


def main() -> None:
    """Measure every case."""
    pate = [sys.executable, "-m", "pate_cli"]
    sys.stdout.write(f"{f'best of {REPEATS}, whole process':<44}{'wall':>11}{'memory':>12}\n")
    with tempfile.TemporaryDirectory() as folder:
        report("--help", [*pate, "--help"], folder)
        for name, ensemble in CASES.items():
            votes = Path(folder) / "votes.npy"
            np.save(votes, ensemble.draw(1)[0])
            words = [*pate, "aggregate", str(votes), "--layout", "counts", "--force", "--quiet"]
            report(name, words, folder)


if __name__ == "__main__":
    main()
