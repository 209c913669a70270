"""`python -m benchmarks`: how long whole processes take, beside the table that is kept.

Votes are made up: 250 teachers and 10 classes, almost all histograms distinct. Seconds are wall
time of the whole process, the median of three runs where one is short; memory is the largest
resident size of the process and its children as the kernel notes it. Measure on an idle machine.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from readme_blocks import DOCS, fill

ROOT = Path(__file__).resolve().parents[2]
SAVED = Path(__file__).with_name("speed.json")
TEACHERS, CLASSES, PIECE = 250, 10, 1 << 18
CASES = (
    "aggregate",
    "aggregate --engine dask",
    "aggregate --release upper",
    "cost",
    "smooth-sensitivity",
)
LONG = 5.0  # seconds; a run that takes longer is not repeated


def votes_file(rows: int, folder: Path) -> Path:
    """Histograms of `rows` queries: one class's share is Beta(4, 1.2), the rest Dirichlet."""
    path = folder / f"{rows}.parquet"
    schema = pa.schema([(f"class_{j}", pa.uint8()) for j in range(CLASSES)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, PIECE):
            rng, size = np.random.default_rng([2018, start]), min(PIECE, rows - start)
            share = rng.beta(4.0, 1.2, size)[:, np.newaxis]
            rest = rng.dirichlet(np.ones(CLASSES - 1), size) * (1.0 - share)
            sums = np.rint(TEACHERS * np.cumsum(np.hstack([share, rest]), axis=1))
            counts = np.diff(sums, axis=1, prepend=0.0).astype(np.uint8)
            counts = rng.permuted(counts, axis=1)
            writer.write_table(pa.table(list(counts.T), schema=schema))
    return path


def decoding_seconds(path: Path) -> float:
    """How long pyarrow takes to decode the file and do nothing else, by one thread."""
    start = time.perf_counter()
    for _ in pq.ParquetFile(path).iter_batches(batch_size=1 << 16, use_threads=False):
        pass
    return time.perf_counter() - start


def process_seconds(words: list[str], folder: Path) -> tuple[float, float]:
    """(Median wall time in seconds, peak memory in MB) of a `pate` command run in a folder."""
    found: list[float] = []
    memory = 0.0
    while len(found) < 3 and sum(found) < LONG:
        start = time.perf_counter()
        with (folder / "stderr.txt").open("w+") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "pate_cli", *words],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), "PATE_HOME": str(folder)},
                stdout=subprocess.DEVNULL,
                stderr=said,
            )
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            found.append(time.perf_counter() - start)
            if process.returncode:
                said.seek(0)
                raise SystemExit(f"{words} ended with {process.returncode}:\n{said.read()}")
        memory = max(memory, used.ru_maxrss / 1024)
    return statistics.median(found), memory


def measure(largest: int) -> Iterator[dict[str, Any]]:
    """Lines of the table: `pate --help`, then every case on 10⁴, 10⁵, … rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield line("--help", 0, 0, ["--help"], folder)
        for rows in (10**k for k in range(4, len(str(largest)))):
            votes = votes_file(rows, folder)
            yield {"rows": rows, "decoding": round(decoding_seconds(votes), 4)}
            for case in CASES:
                if "dask" in case and rows < 10**6:
                    continue  # starting a cluster takes seconds, whatever the rows
                for workers in (1, 2):
                    words = [*case.split(), str(votes), "--quiet", "--workers", str(workers)]
                    if case.startswith("aggregate"):
                        words += ["-o", "labels.parquet", "--force", "--max-epsilon", "1e9"]
                        words += ["--no-record"]
                    yield line(case, rows, workers, words, folder)


def line(command: str, rows: int, workers: int, words: list[str], folder: Path) -> dict[str, Any]:
    """One line of the table."""
    seconds, memory = process_seconds(words, folder)
    return {
        "command": command,
        "rows": rows,
        "workers": workers,
        "seconds": round(seconds, 2),
        "memory_mb": round(memory),
    }


def machine() -> dict[str, Any]:
    """What the figures depend on besides the program."""
    packages = {name: importlib.metadata.version(name) for name in ("numpy", "scipy", "pyarrow")}
    return {"cores": os.cpu_count(), "python": platform.python_version(), **packages}


def table(saved: dict[str, Any]) -> str:
    """The page's table: seconds by rows, then rates and memory at the most rows."""
    lines = [each for each in saved["lines"] if each["rows"]]
    sizes = sorted({each["rows"] for each in lines})
    heads = [*(f"{rows:,} rows" for rows in sizes), "rows/s", "× decoding", "memory"]
    out = [f"| command | workers | {' | '.join(heads)} |", f"|{'---|' * (len(heads) + 2)}"]
    for command, workers in dict.fromkeys((each["command"], each["workers"]) for each in lines):
        same = (e for e in lines if (e["command"], e["workers"]) == (command, workers))
        mine = {each["rows"]: each for each in same}
        last = mine[max(mine)]
        cells = [f"{mine[rows]['seconds']:.2f}" if rows in mine else "–" for rows in sizes]
        decoding = saved["decoding"][str(last["rows"])]
        cells += [f"{last['rows'] / last['seconds']:,.0f}", f"{last['seconds'] / decoding:,.0f}"]
        out.append(f"| `{command}` | {workers} | {' | '.join(cells)} | {last['memory_mb']:,} MB |")
    help_seconds = next(each["seconds"] for each in saved["lines"] if not each["rows"])
    about = ", ".join(f"{name} {version}" for name, version in saved["machine"].items())
    return "\n".join(
        [*out, "", f"`pate --help` takes {help_seconds:.2f} s. Measured with {about}.", ""]
    )


def slower(old: dict[str, Any], new: dict[str, Any], factor: float) -> Iterator[str]:
    """The lines of both tables that take more than `factor` times as long in the new one."""
    before = {(each["command"], each["rows"], each["workers"]): each for each in old["lines"]}
    for each in new["lines"]:
        past = before.get((each["command"], each["rows"], each["workers"]))
        if past is not None and each["seconds"] > factor * past["seconds"]:
            what = f"{each['command']}, {each['rows']:,} rows, {each['workers']} workers"
            yield f"{what}: {past['seconds']:.2f} s, now {each['seconds']:.2f} s"


def main() -> None:
    """Measure, print, and compare with the table that is kept; --keep writes it and the page."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--rows", type=float, default=1e7, help="of the largest file")
    parser.add_argument("--factor", type=float, default=1.25, help="slower by more fails")
    parser.add_argument("--keep", action="store_true", help="keep these figures, write the page")
    asked = parser.parse_args()
    found: dict[str, Any] = {"machine": machine(), "decoding": {}, "lines": []}
    for each in measure(int(asked.rows)):
        sys.stdout.write(f"{each}\n")
        sys.stdout.flush()
        if "decoding" in each:
            found["decoding"][str(each["rows"])] = each["decoding"]
        else:
            found["lines"].append(each)
    if asked.keep:
        SAVED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        write_page()
        return
    if worse := list(slower(json.loads(SAVED.read_text(encoding="utf-8")), found, asked.factor)):
        raise SystemExit("\n".join(worse))


def write_page() -> None:
    """Put the table that is kept into the page."""
    page = DOCS / "evidence.md"
    filled = {"speed": table(json.loads(SAVED.read_text(encoding="utf-8")))}
    page.write_text(fill(page.read_text(encoding="utf-8"), filled), encoding="utf-8")


if __name__ == "__main__":
    main()
