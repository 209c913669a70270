"""The tables of pate_cli/docs/evidence.md and of this folder's page, written from a saved table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.results import Line, Results, power

__all__ = ["PerRow", "every_line", "past_one_machine", "per_row", "summary"]

_GOAL_ROWS, _GOAL_CORES = 10**9, 100
# Fewer rows are not shared out at all, so that two sizes would differ by more than their rows.
_SHARED_FROM = 10**6


def summary(results: Results) -> str:
    """Each command by seconds at every size, and its rates at the largest."""
    of_size = _by_size(results)
    sizes = sorted({line.rows for line in of_size})
    if not sizes:
        raise ValueError("a table needs a line of some size")
    largest = power(sizes[-1])
    heads = [
        "command",
        "workers",
        *map(power, sizes),
        "rows/s",
        "MB/s",
        "× decoding",
        "× noise",
        "memory",
    ]
    rows = []
    for command, engine, workers in dict.fromkeys(map(_who, of_size)):
        mine = {one.rows: one for one in of_size if _who(one) == (command, engine, workers)}
        seconds = [_seconds(mine[size].seconds) if size in mine else "–" for size in sizes]
        rates = _rates(results, mine[sizes[-1]]) if sizes[-1] in mine else ["–"] * 6
        who = f"{workers}" if engine == "local" else f"{workers} ({engine})"
        rows.append([f"`{command}`", who, *seconds, *rates])
    machine = results.machine
    packages = ", ".join(f"{name} {machine[name]}" for name in ("numpy", "scipy", "pyarrow"))
    return "\n".join(
        [
            *_table([*heads, "× published"], rows),
            "",
            f"Seconds by rows, then rates at {largest} rows. {machine['cores']} cores, "
            f"Python {machine['python']}, {packages}, pate {machine['pate']}.",
            "",
            *_table(
                ["run", "seconds"], [[_single(o), _seconds(o.seconds)] for o in _singles(results)]
            ),
            "",
        ]
    )


def every_line(results: Results) -> str:
    """One row a line."""
    heads = ["command", "rows", "workers", "runs", "seconds", "rows/s", "MB/s"]
    rows = [
        [
            *(f"`{o.command}`", power(o.rows), o.sharing, str(o.runs), _seconds(o.seconds)),
            *_rates(results, o),
        ]
        for o in _by_size(results)
    ]
    files = [
        [
            power(file.rows),
            f"{file.teachers:,} × {file.classes}",
            f"{file.bytes / 1e6:,.2f}",
            f"{1e3 * file.decode_seconds:,.1f}",
            f"{file.bytes / 1e6 / file.decode_seconds:,.0f}",
        ]
        for file in results.files
    ]
    of_files = ["rows", "teachers × classes"]
    loop = results.published
    return "\n".join(
        [
            *_table([*heads, "× decoding", "× noise", "memory", "× published"], rows),
            "",
            *_table([*of_files, "MB", "bare decoding, ms", "MB/s"], files),
            "",
            f"The published loop: {loop.rows_a_second:,.0f} rows/s, from {loop.rows:,} rows at "
            f"{loop.orders} orders.",
            "",
        ]
    )


@dataclass(frozen=True)
class PerRow:
    """Seconds = start + rows · (alone + shared / cores), fitted to the two largest sizes.

    Attributes:
        start: seconds, by one worker.
        alone: seconds a row that no worker takes over.
        shared: seconds a row that are divided among the workers.
    """

    command: str
    start: float
    alone: float
    shared: float

    def seconds(self, rows: int, cores: int) -> float:
        """Of a run."""
        return self.start + rows * (self.alone + self.shared / cores)


def per_row(results: Results) -> Iterator[PerRow]:
    """Yield the fit of every command that was measured at two large sizes by one and by several."""
    sized = [line for line in _by_size(results) if line.rows >= _SHARED_FROM]
    lines = [line for line in sized if line.engine == "local"]
    for command in dict.fromkeys(line.command for line in lines):
        mine = [line for line in lines if line.command == command]
        few, many = (sorted({line.rows for line in mine}) * 2)[-2:]
        most = max(line.workers for line in mine)
        at = {(line.rows, line.workers): line.seconds for line in mine}
        if few >= many or most < 2 or any((n, w) not in at for n in (few, many) for w in (1, most)):
            continue
        one, several = ((at[many, w] - at[few, w]) / (many - few) for w in (1, most))
        # A noisy machine may seem to share out more than there is, or nothing.
        shared = min(max((one - several) * most / (most - 1), 0.0), one)
        yield PerRow(command, max(at[many, 1] - one * many, 0.0), one - shared, shared)


def past_one_machine(results: Results) -> str:
    """What many rows on many cores should take, from the fit."""
    sized = {line.rows for line in _by_size(results)}
    file = max((f for f in results.files if f.rows in sized), key=lambda f: f.rows)
    decode = file.decode_seconds / file.rows
    rows = [
        [
            f"`{fit.command}`",
            f"{fit.start:.1f}",
            f"{1e6 * (fit.alone + fit.shared):.2f}",
            f"{1e6 * fit.alone:.2f}",
            *(_seconds(fit.seconds(_GOAL_ROWS, cores)) for cores in (1, _GOAL_CORES)),
            _seconds(fit.start + _GOAL_ROWS * fit.alone),
        ]
        for fit in per_row(results)
    ]
    if not rows:
        return f"No figures: they need two sizes of {power(_SHARED_FROM)} rows or more.\n"
    goal = f"{power(_GOAL_ROWS)} rows"
    heads = ["command", "start, s", "µs a row", "of it alone", f"{goal}, 1 core"]
    return "\n".join(
        [
            *_table([*heads, f"{_GOAL_CORES} cores", "any number"], rows),
            "",
            f"Last three columns in seconds. Decoding alone is {1e6 * decode:.2f} µs a row: "
            f"{_seconds(_GOAL_ROWS * decode / _GOAL_CORES)} s of {goal} on {_GOAL_CORES} cores, "
            f"from a file of {_GOAL_ROWS * file.bytes / file.rows / 1e9:.1f} GB.",
            "",
        ]
    )


def _by_size(results: Results) -> list[Line]:
    """Lines of the sizes 10⁴, 10⁵, …; by command, as they were measured."""
    sized = [line for line in results.lines if line.rows and power(line.rows) != f"{line.rows:,}"]
    commands = list(dict.fromkeys(line.command for line in sized))
    return sorted(sized, key=lambda line: commands.index(line.command))


def _singles(results: Results) -> list[Line]:
    sized = _by_size(results)
    return [line for line in results.lines if line not in sized]


def _single(line: Line) -> str:
    if not line.rows:
        return f"`pate {line.command}`"
    shape = f"{line.rows:,} queries × {line.teachers:,} teachers × {line.classes} classes"
    return f"`{line.command}`, {shape}"


def _who(line: Line) -> tuple[str, str, int]:
    return line.command, line.engine, line.workers


def _rates(results: Results, line: Line) -> list[str]:
    """rows/s, MB/s, × decoding, × noise where labels are drawn, memory, × published."""
    file = results.file_of(line)
    rate = line.rows / line.seconds
    memory = "–" if line.memory_mb is None else f"{line.memory_mb:,.0f} MB"
    return [
        f"{rate:,.0f}",
        f"{file.bytes / 1e6 / line.seconds:,.1f}",
        f"{line.seconds / file.decode_seconds:,.0f}",
        "–" if line.noise_seconds is None else f"{line.seconds / line.noise_seconds:,.1f}",
        memory,
        f"{rate / results.published.rows_a_second:,.0f}",
    ]


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds < 10.0 else f"{seconds:,.0f}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
