"""A command as a whole process: how long it takes, and how much memory its tree holds.

Memory is the sum of Pss (what is shared counts once) over the process and its descendants, looked
at again and again; never less than the VmHWM of one of them, the peak the kernel has noted. Linux
only; elsewhere it is not known.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Measured", "measure"]

_PROC = Path("/proc")
_PAUSE = 0.02
# A look may take this share of the time at most: it walks the page tables of every process.
_SHARE = 0.05
_ENOUGH_RUNS, _ENOUGH_SECONDS = 5, 5.0


@dataclass(frozen=True)
class Measured:
    """Runs of one command: the median of their seconds, the largest memory (MB, None: unknown)."""

    runs: int
    seconds: float
    memory_mb: float | None


def measure(words: Sequence[str], *, folder: Path, environment: Mapping[str, str]) -> Measured:
    """Run the command in `folder`: once where it is long, up to five times where it is short."""
    seconds: list[float] = []
    peaks: list[float] = []
    while len(seconds) < _ENOUGH_RUNS and sum(seconds) < _ENOUGH_SECONDS:
        elapsed, peak = _run(words, folder, environment)
        seconds.append(elapsed)
        peaks.append(peak)
    return Measured(len(seconds), statistics.median(seconds), max(peaks) or None)


def _run(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[float, float]:
    with (folder / "stderr.txt").open("w+") as messages:
        start = time.perf_counter()
        process = subprocess.Popen(
            words,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=messages,
        )
        with _Watch(process.pid) as watch:
            status = process.wait()
        elapsed = time.perf_counter() - start
        if status != 0:
            messages.seek(0)
            raise SystemExit(f"{' '.join(words)} ended with {status}:\n{messages.read()}")
    return elapsed, watch.peak_mb


class _Watch:
    """Looks at a tree of processes from a thread of its own."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self.peak_mb = 0.0

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look_on(self) -> None:
        pause = 0.0
        while not self._ended.wait(pause):
            start = time.perf_counter()
            held = 0.0
            for pid in tree(self._pid):
                held += field_mb(_PROC / str(pid) / "smaps_rollup", "Pss")
                self.peak_mb = max(self.peak_mb, field_mb(_PROC / str(pid) / "status", "VmHWM"))
            self.peak_mb = max(self.peak_mb, held)
            pause = max(_PAUSE, (time.perf_counter() - start) * (1.0 / _SHARE - 1.0))


def tree(pid: int) -> Iterator[int]:
    """Yield a process and its descendants, those that are still there."""
    yield pid
    for children in (_PROC / str(pid) / "task").glob("*/children"):
        for child in _text(children).split():
            yield from tree(int(child))


def field_mb(path: Path, name: str) -> float:
    """A field of a file of /proc, which counts in kB; 0 where there is none."""
    for line in _text(path).splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0]) / 1024.0
    return 0.0


def _text(path: Path) -> str:
    """Nothing where the process has ended meanwhile."""
    try:
        return path.read_text()
    except OSError:
        return ""
