"""What is measured: which commands, on which files, by how many workers."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import pate_cli
from benchmarks.made_up_votes import VoteShape, pieces, votes_file
from benchmarks.published_loop import confident_cost
from benchmarks.results import FileFigures, Line, Published, Results
from benchmarks.whole_process import measure
from pate_cli.core.noise import RunKey
from pate_cli.mechanisms.base import noisy_argmax
from pate_cli.published import TABLE_ORDERS
from pate_cli.run.engine import cores

__all__ = ["COMMANDS", "measure_all", "sizes_to"]

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = (
    "aggregate",
    "aggregate --release upper",
    "cost",
    "smooth-sensitivity",
)
SINGLES = (VoteShape(640), VoteShape(12_000, teachers=5_000, classes=150))
_SINGLE_COMMANDS = ("aggregate", "aggregate --release upper")
_SMALLEST = 10**4
# Starting one takes seconds, whatever the rows.
_WORTH_A_CLUSTER = 10**6
_PUBLISHED_ROWS = 4000
_BATCH = 1 << 16
_RUNS = 3


def sizes_to(largest: float) -> list[int]:
    """10⁴, 10⁵, … up to `largest` rows."""
    sizes = [_SMALLEST]
    while sizes[-1] * 10 <= largest:
        sizes.append(sizes[-1] * 10)
    return sizes


def measure_all(sizes: list[int], folder: Path, show: Callable[[Line], None]) -> Results:
    """Measure every case on files kept in `folder`; `show` sees each line as it comes."""
    lines, files = [], []
    with tempfile.TemporaryDirectory() as scratch:
        bench = _Bench(Path(scratch))
        for line in bench.on_nothing():
            lines.append(line)
            show(line)
        for shape in (*SINGLES, *map(VoteShape, sizes)):
            path = votes_file(shape, folder)
            files.append(_figures(shape, path))
            cases = bench.alone if shape in SINGLES else bench.shared
            for line in cases(shape, path):
                lines.append(line)
                show(line)
    return Results(_machine(), _published(), tuple(files), tuple(lines))


class _Bench:
    """Runs commands of this tree's program in a folder that takes their outputs."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch

    def on_nothing(self) -> Iterator[Line]:
        """Starting, and no more."""
        yield self._line("--help", ["--help"], None, "local", 0)

    def alone(self, shape: VoteShape, path: Path) -> Iterator[Line]:
        """A file by itself, as a user would run it."""
        for command in _SINGLE_COMMANDS:
            yield self._on_file(command, shape, path, "local", cores())

    def shared(self, shape: VoteShape, path: Path) -> Iterator[Line]:
        """Every command, by one worker and by all cores."""
        for command in COMMANDS:
            for engine in _engines(shape):
                for workers in sorted({1, cores()}):
                    yield self._on_file(command, shape, path, engine, workers)

    def _on_file(
        self, command: str, shape: VoteShape, path: Path, engine: str, workers: int
    ) -> Line:
        words = [*command.split(), str(path), "--quiet"]
        words += ["--workers", str(workers), "--engine", engine]
        if not command.startswith("aggregate"):
            return self._line(command, words, shape, engine, workers)
        # Millions of rows cost far more than would be allowed unnamed.
        words += ["--report", "report.json", "--force", "--max-epsilon", "1e9"]
        words += [] if "--output" in command else ["--output", "labels.parquet"]
        # Beside each line: a machine's speed drifts by more than lines differ.
        before = noise_seconds(shape)
        line = self._line(command, words, shape, engine, workers)
        noise = 0.5 * (before + noise_seconds(shape))
        return replace(line, noise_seconds=round(noise, 6))

    def _line(
        self, command: str, words: list[str], shape: VoteShape | None, engine: str, workers: int
    ) -> Line:
        measured = measure(
            [sys.executable, "-m", "pate_cli", *words],
            folder=self._scratch,
            environment={"PYTHONPATH": str(ROOT)},
        )
        rows, teachers, classes = (shape.rows, shape.teachers, shape.classes) if shape else (0,) * 3
        return Line(
            command,
            rows,
            teachers,
            classes,
            engine,
            workers,
            measured.runs,
            round(measured.seconds, 4),
            None if measured.memory_mb is None else round(measured.memory_mb, 1),
            None,
        )


def _engines(shape: VoteShape) -> list[str]:
    """Dask, too, where it is installed and there is work for a cluster."""
    dask = shape.rows >= _WORTH_A_CLUSTER and importlib.util.find_spec("distributed") is not None
    return ["local", "dask"] if dask else ["local"]


def _figures(shape: VoteShape, path: Path) -> FileFigures:
    decode = statistics.median(_decode(path) for _ in range(_RUNS))
    size = path.stat().st_size
    return FileFigures(shape.rows, shape.teachers, shape.classes, size, round(decode, 6))


def noise_seconds(shape: VoteShape) -> float:
    """What no run can do without: a noisy maximum and a noisy argmax of as many rows."""
    noise = RunKey.fresh().rows(0, shape.classes + 1)
    votes = np.zeros((_BATCH, shape.classes), dtype=np.int64)
    start = time.perf_counter()
    for first in range(0, shape.rows, _BATCH):
        noisy_argmax(votes[: shape.rows - first], 40.0, noise.normal, beside=1)
    return time.perf_counter() - start


def _decode(path: Path) -> float:
    start = time.perf_counter()
    for _ in pq.ParquetFile(path).iter_batches(batch_size=_BATCH, use_threads=False):
        pass
    return time.perf_counter() - start


def _published() -> Published:
    """With the program's defaults for 250 teachers and the orders of the paper's tables."""
    votes, orders = next(pieces(VoteShape(_PUBLISHED_ROWS))), np.array(TABLE_ORDERS)
    seconds = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        confident_cost(votes, threshold=200.0, sigma1=150.0, sigma2=40.0, orders=orders)
        seconds.append(time.perf_counter() - start)
    rate = len(votes) / statistics.median(seconds)
    return Published(len(votes), len(orders), round(rate, 1))


def _machine() -> dict[str, str | int]:
    packages = ("numpy", "scipy", "pyarrow")
    return {
        "cores": cores(),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in packages},
        "pate": pate_cli.__version__,
    }
