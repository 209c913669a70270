"""Planted changes that break a promise: which of them do the tests notice?

mutants.toml lists, for each file of the package, the tests that cover it and the changes: why one
is unsound, the old text and the new, and perhaps tests of its own. `equivalent` lists changes that
break no promise, each with the reason; they are not run.

The tests run on a copy of the tree with one change at a time. If none fails, they run again with
every case of which the suite takes some. A change is caught if a test fails, or if the tests do not
end within the time limit. In the end the tests that failed run once more
without any change, because a test that always fails proves nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import queue
import re
import shutil
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from audit.plant import plant

TREE: Final = Path(__file__).resolve().parents[2]
TABLE: Final = Path(__file__).with_name("mutants.toml")
_COPIED: Final = ("pate_cli", "tests", "sample_votes")
# Processes begin with what takes long to import, and without the package.
_IMPORTED: Final = ("hypothesis", "numpy", "pyarrow.parquet", "pytest", "scipy.stats", "mpmath")
_PROCESSES: Final = multiprocessing.get_context("forkserver")
_PYTEST: Final = (
    *("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--tb=no"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """One change of a file of the package, and the tests that must notice it, below tests.

    `why` says what becomes unsound; for an equivalent change, which has no tests, why nothing does.
    """

    module: str
    why: str
    old: str
    new: str
    tests: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.module}: {self.why}"


@dataclass(frozen=True)
class Found:
    """How the tests ended with a change: `caught` by a test, `SURVIVED`, or `hangs`."""

    mutant: Mutant
    word: str
    seconds: float
    test: str = ""


def mutants_of(table: Path = TABLE) -> tuple[list[Mutant], list[Mutant]]:
    """Return the changes that must be caught, and the equivalent ones."""
    wanted, equivalent = [], []
    for module, told in tomllib.loads(table.read_text(encoding="utf-8")).items():
        for why, old, new, *tests in told.get("mutants", ()):
            wanted.append(Mutant(module, why, old, new, tuple(tests or told["tests"])))
        equivalent += [Mutant(module, *each) for each in told.get("equivalent", ())]
    return wanted, equivalent


def stale(mutants: Iterable[Mutant]) -> list[str]:
    """Return the names of changes whose old text does not occur exactly once in its file."""
    texts: dict[str, str] = {}
    for each in mutants:
        if each.module not in texts:
            texts[each.module] = (TREE / "pate_cli" / each.module).read_text(encoding="utf-8")
    return [each.name for each in mutants if texts[each.module].count(each.old) != 1]


def copied(copy: Path) -> Path:
    """Make a copy of what the tests need, and return it."""
    for name in _COPIED:
        shutil.copytree(TREE / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(TREE / "pyproject.toml", copy)
    return copy


def run_tests(
    copy: Path, tests: Iterable[str], limit: float | None = None, *, every: bool = True
) -> tuple[int, str]:
    """Return the exit code and the output of pytest; TimeoutError if it takes too long."""
    said = copy.parent / "said"
    run = _PROCESSES.Process(target=_pytest, args=(copy, list(tests), every, said))
    run.start()
    try:
        run.join(limit)
        if run.is_alive():
            raise TimeoutError
    finally:
        with contextlib.suppress(ProcessLookupError):  # it ends with all processes that it started
            os.killpg(run.pid or 0, 9)
        run.join()
    return run.exitcode or 0, said.read_text(encoding="utf-8", errors="replace")


def _pytest(copy: Path, tests: list[str], every: bool, said: Path) -> None:
    """Run tests of a copy in a process that has not imported the package yet."""
    os.setsid()
    os.chdir(copy)
    with said.open("w") as file:
        _ = [os.dup2(file.fileno(), number) for number in (1, 2)]
    paths = [str(copy), str(copy / "tests"), str(copy / "tests" / "support")]
    sys.path[:0], sys.dont_write_bytecode = paths, True
    os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    os.environ |= {"PATE_EVERY": "1" * every, "TMPDIR": str(copy.parent)}
    sys.exit(pytest.main([*_PYTEST, *tests]))


def tried(mutant: Mutant, copy: Path, limit: float) -> Found:
    """Plant a change in the copy, run its tests, and restore the file."""
    file, began = copy / "pate_cli" / mutant.module, time.monotonic()
    before, tests = file.read_bytes(), [f"tests/{each}" for each in mutant.tests]
    plant(copy / "pate_cli", mutant.module, mutant.old, mutant.new)
    try:
        code, output = run_tests(copy, tests, limit, every=False)
        if code == 0:
            code, output = run_tests(copy, tests, limit)
    except TimeoutError:
        return Found(mutant, "hangs", time.monotonic() - began)
    finally:
        file.write_bytes(before)
    if code == 0:
        return Found(mutant, "SURVIVED", time.monotonic() - began)
    failed = _FAILED.search(output)
    if failed is None:
        raise RuntimeError(f"{mutant.name}: pytest ended with {code}\n{output[-2000:]}")
    return Found(mutant, "caught", time.monotonic() - began, failed[1])


def all_tried(mutants: Iterable[Mutant], workers: int, limit: float) -> Iterator[Found]:
    """Yield how each change ended; then raise RuntimeError if a test fails without a change."""
    with TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        copies: queue.Queue[Path] = queue.Queue()
        for number in range(workers):
            copies.put(copied(Path(folder, str(number), "tree")))

        def one(mutant: Mutant) -> Found:
            copy = copies.get()
            try:
                return tried(mutant, copy, limit)
            finally:
                copies.put(copy)

        failed = {""}
        for found in pool.map(one, mutants):
            failed.add(found.test.partition("[")[0])  # a change may be in the name of a case
            yield found
        proof = sorted(failed)[1:]
        code, output = run_tests(copies.get(), proof) if proof else (0, "")
        if code:
            raise RuntimeError(f"a test fails without any change\n{output[-2000:]}")


def main() -> None:
    """Read the command line; exit with 1 if a change survives."""
    parser = argparse.ArgumentParser(prog="audit.mutants", description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="only changes whose name has it")
    parser.add_argument("--every", type=int, default=1, help="only the first of so many changes")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each change")
    asked = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    _PROCESSES.set_forkserver_preload([*_IMPORTED])
    wanted, equivalent = mutants_of()
    gone = stale([*wanted, *equivalent])
    if gone:
        raise SystemExit("\n".join(["write these changes again, their code has changed:", *gone]))
    wanted = [each for each in wanted if asked.word in each.name][:: asked.every]
    words = []
    for found in all_tried(wanted, asked.workers, asked.limit):
        words.append(found.word)
        if found.word != "caught" or asked.word:
            told = f"{found.word} ({found.seconds:.0f} s): {found.mutant.name}\n    {found.test}"
            print(told, flush=True)  # noqa: T201 - the output of a script
    for each in equivalent:
        sys.stdout.write(f"equivalent: {each.name}\n")
    survived, hang = words.count("SURVIVED"), words.count("hangs")
    sys.stdout.write(
        f"{len(words)} changes ran: {len(words) - survived} caught ({hang} because the tests did "
        f"not end), {survived} survived. {len(equivalent)} more are equivalent.\n"
    )
    raise SystemExit(1 if survived else 0)


if __name__ == "__main__":
    main()
