"""What `make bench` found: lines, files, machine; kept as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["FileFigures", "Line", "Published", "Results", "power"]


@dataclass(frozen=True)
class Line:
    """One command on one file.

    Attributes:
        command: as given to `pate`, without file, workers and outputs.
        rows: of the file; 0 without a file.
        teachers, classes: of the file.
        engine: "local" or "dask".
        workers: processes that share the work; 0 where the command has no say in it.
        runs: how many there were.
        seconds: median wall time of the whole process.
        memory_mb: peak of the process and its descendants, MB; None where it is not known.
        noise_seconds: random words, quantiles and argmax of as many rows, one thread, just before
            and after the runs; None where no labels are drawn.
    """

    command: str
    rows: int
    teachers: int
    classes: int
    engine: str
    workers: int
    runs: int
    seconds: float
    memory_mb: float | None
    noise_seconds: float | None

    def __post_init__(self) -> None:
        if not (self.runs >= 1 and 0.0 < self.seconds < math.inf):
            raise ValueError(f"a line needs a run and its seconds: {self}")

    @property
    def name(self) -> str:
        """What tells it from other lines."""
        if not self.rows:
            return f"pate {self.command}"
        shape = f"{self.rows:,} × {self.classes}, {self.teachers:,} teachers"
        return f"{self.command}: {shape}, {self.sharing}"

    @property
    def sharing(self) -> str:
        """Who does the work."""
        workers = f"{self.workers} worker{'s' if self.workers != 1 else ''}"
        return workers if self.engine == "local" else f"{workers} ({self.engine})"


@dataclass(frozen=True)
class FileFigures:
    """A file and what bare decoding takes.

    Attributes:
        bytes: its size.
        decode_seconds: pyarrow decodes all its columns, one thread, batch by batch.
    """

    rows: int
    teachers: int
    classes: int
    bytes: int
    decode_seconds: float

    def __post_init__(self) -> None:
        if not (self.bytes > 0 and 0.0 < self.decode_seconds < math.inf):
            raise ValueError(f"a file has bytes, decoding takes time: {self}")


@dataclass(frozen=True)
class Published:
    """The row-by-row loop over so many rows and orders; rows_a_second without its start."""

    rows: int
    orders: int
    rows_a_second: float


@dataclass(frozen=True)
class Results:
    """A whole table."""

    machine: dict[str, str | int]
    published: Published
    files: tuple[FileFigures, ...]
    lines: tuple[Line, ...]

    def file_of(self, line: Line) -> FileFigures:
        """The file a line was measured on."""
        shape = (line.rows, line.teachers, line.classes)
        return next(f for f in self.files if (f.rows, f.teachers, f.classes) == shape)

    def save(self, path: Path) -> None:
        """Write as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read what `save` wrote."""
        held = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            held["machine"],
            Published(**held["published"]),
            tuple(FileFigures(**each) for each in held["files"]),
            tuple(Line(**each) for each in held["lines"]),
        )


def power(number: int) -> str:
    """10⁶ for 1000000; others with commas."""
    exponent = len(str(number)) - 1
    if number == 10**exponent and exponent > 3:
        return "10" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{number:,}"
