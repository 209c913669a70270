"""The parts of README.md and of the pages in pate_cli/docs that the program itself writes.

`make docs` rewrites them (`python tests/readme_blocks.py`); a test compares. The reference
is rendered from the options themselves and not by `--help`, whose layout is Typer's and changes
with its version.
"""

import ast
import contextlib
import io
import math
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np

import pate_cli as pate
from floors import FLOORS
from pate_cli.cli import help  # noqa: A004 - a module
from pate_cli.cli.app import COMMANDS, build

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "pate_cli"
README = ROOT / "README.md"
DOCS = ROOT / "pate_cli" / "docs"
SAMPLES = ROOT / "sample_votes"
PAGES = (README, *sorted(DOCS.glob("*.md")))


def environment(folder: Path) -> dict[str, str]:
    """What a program sees that runs this package in a folder, which holds the user's state, too."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "PATE_HOME": str(folder / ".pate")}


_WIDTH = 100
# What the example keeps of the report; "…" stands for the rest.
_KEPT = {
    "private": None,
    "sound": None,
    "epsilon": None,
    "epsilon_kind": None,
    "delta": None,
    "queries": None,
    "answers": None,
    "summary": None,
    "adjacency": None,
    "covers": None,
    "data_independent": {"epsilon"},
    "passed": None,
}


def blocks() -> dict[Path, Callable[[], dict[str, str]]]:
    """Every page with what makes the generated blocks in it, by name."""
    return {
        README: lambda: {"summary": summary()},
        DOCS / "developing.md": lambda: {"floors": floors()},
        DOCS / "runs.md": lambda: {"two-rounds": two_rounds()},
        DOCS / "reference.md": lambda: {"reference": reference()},
        DOCS / "report.md": lambda: {"example": example()},
        DOCS / "sessions.md": lambda: worked("sessions.md"),
        DOCS / "settings.md": lambda: {"expected": expected()},
        DOCS / "tutorial.md": lambda: {"tutorial": tutorial()},
    }


def fill(text: str, filled: dict[str, str]) -> str:
    """`text` with the content of each block between `<!-- NAME -->` and `<!-- /NAME -->`."""
    for name, content in filled.items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, found, rest = text.partition(start)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise SystemExit(f"no block {start.strip()} … {end}")
        text = f"{before}{start}{content}{end}{after}"
    return text


def floors() -> str:
    """The rooms by floor, the highest first, each with the first sentence of its docstring."""
    lines = ["```text"]
    for height, floor in reversed(list(enumerate(FLOORS, 1))):
        for place, room in enumerate(floor):
            said = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text("utf-8")))
            sentence = re.match(r".+?[.](?=\s|$)", said or "", re.DOTALL)
            text = " ".join(sentence.group().split()) if sentence else room
            lines += textwrap.wrap(
                text.rstrip("."),
                _WIDTH,
                initial_indent=f"{'' if place else height:>2}  {room:<14}",
                subsequent_indent=" " * 18,
            )
    return "\n".join([*lines, "```", ""])


def worked(page: str, passing_over: Container[str] = ()) -> dict[str, str]:
    """The blocks of commands of a page, which says them, and what each leaves on a terminal.

    They are run in the order of the page and in one folder, which has its scripts: what is Python
    and begins with `# NAME.py`. Blocks passed over are those that no later one needs.
    """
    text = (DOCS / page).read_text(encoding="utf-8")
    found = {}
    with _folder() as folder:
        for name, script in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", text, re.DOTALL):
            (folder / name).write_text(script, encoding="utf-8")
        pattern = r"<!-- ([\w-]+) -->\n```console\n(.*?)```\n<!-- /\1 -->"
        for name, block in re.findall(pattern, text, re.DOTALL):
            if name in passing_over:
                continue
            lines = []
            for command in re.findall(r"^\$ ((?:.*\\\n)*.*)$", block, re.MULTILINE):
                lines += [f"$ {command}", *_at_a_terminal(_shell(command), folder)]
            found[name] = "\n".join(["```console", *lines, "```", ""])
    return found


def _shell(command: str) -> list[str]:
    """A line for the shell, where `pate` and `python` are these very ones; it may fail."""
    ours = shlex.quote(sys.executable)
    known = f'pate() {{ {ours} -m pate_cli "$@"; }}; python() {{ {ours} "$@"; }}'
    return ["sh", "-c", f"{known}\n{command}\ntrue"]


def summary() -> str:
    """What a person sees at a terminal, and the first labels."""
    words = ["aggregate", "sample_votes/adult.parquet", "--target-epsilon", "1.5"]
    words += ["--output", "labels.csv"]
    with _folder() as folder:
        shown = _at_a_terminal([sys.executable, "-m", "pate_cli", *words], folder)
        head = (folder / "labels.csv").read_text().splitlines()[:3]
    lines = ["```console", f"$ pate {' '.join(words)}", *shown, "$ head -n 3 labels.csv"]
    return "\n".join([*lines, *head, "```", ""])


def expected() -> str:
    """ε for all votes by number of teachers and of queries, rounded up."""
    asked = (40, 1_000)
    lines = [
        f"| teachers | {' | '.join(f'{queries:,} queries' for queries in asked)} |",
        f"|{'---|' * (len(asked) + 1)}",
    ]
    for teachers in (10, 50, 250, 1_000, 5_000):
        # Any votes of this shape have the same price.
        votes = np.tile([teachers, 0], (asked[-1], 1))
        prices = (
            pate.quote(votes, layout="counts", max_queries=queries).epsilon for queries in asked
        )
        lines.append(f"| {teachers:,} | {' | '.join(map(_rounded_up, prices))} |")
    return "\n".join([*lines, ""])


def _rounded_up(epsilon: float) -> str:
    places = 0 if epsilon >= 100.0 else 1 if epsilon >= 10.0 else 2
    return f"{math.ceil(epsilon * 10**places) / 10**places:.{places}f}"


def example() -> str:
    """A real run on the demo votes, its report shortened."""
    votes = "sample_votes/adult.parquet"
    with _folder() as folder:
        words = ["aggregate", votes, "--target-epsilon", "1.5", "-o", "labels.csv"]
        run = subprocess.run(
            [sys.executable, "-m", "pate_cli", *words],
            cwd=folder,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(folder),
        )
    shown = _shortened(run.stdout.splitlines())
    return "\n".join(["```console", f"$ pate {' '.join(words)} | cat", *shown, "```", ""])


def tutorial() -> str:
    """What the tutorial's Python prints."""
    with _folder() as folder:
        return f"```text\n{follow_tutorial(folder)}```\n"


def follow_tutorial(folder: Path) -> str:
    """Run the tutorial's Python in a folder; what it printed."""
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    script = "\n".join(re.findall(r"```python\n((?!>>>).*?)```", text, re.DOTALL))
    said = io.StringIO()
    here = patch.dict(os.environ, environment(folder))
    with contextlib.chdir(folder), contextlib.redirect_stdout(said), here:
        exec(script, {})  # noqa: S102 - our own words
    return said.getvalue()


def two_rounds() -> str:
    """What the two-round script prints."""
    script = "sample_votes/two_rounds.py"
    run = subprocess.run(
        [sys.executable, script], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return "\n".join(["```console", f"$ python {script}", run.stdout.rstrip(), "```", ""])


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder of its own that has the samples in it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(
            SAMPLES, folder / "sample_votes", ignore=shutil.ignore_patterns("*.spent.json")
        )  # a run leaves its record there
        yield folder


def _at_a_terminal(command: list[str], folder: Path) -> list[str]:
    """The lines that a command leaves on a terminal, as plain text."""
    ours, theirs = pty.openpty()
    with open(ours, "rb", closefd=True) as seen:  # noqa: PTH123 - a descriptor
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env={**environment(folder), "TERM": "dumb", "COLUMNS": "100"},
        )
        os.close(theirs)
        said = b""
        with contextlib.suppress(OSError):  # Linux says that the other end is closed
            while piece := seen.read1():
                said += piece
    if process.wait():
        raise SystemExit(said.decode())
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode()).replace("\r\n", "\n")
    lines = (line.rpartition("\r")[2].rstrip() for line in text.splitlines())
    return [line for line in lines if line]  # an empty one is what a progress bar left


def _shortened(lines: list[str]) -> Iterator[str]:
    """The lines of a run with those of its report that `_KEPT` does not name as "…"."""
    outer = inner = ""
    gap = False
    for line in lines:
        depth = len(line) - len(line.lstrip(" "))
        name = line.strip().partition(":")[0].strip('"')
        if depth == 2 and line.strip()[0] not in "]}":
            outer = name
        elif depth == 4:
            inner = name
        kept = depth == 0 or (outer in _KEPT and depth == 2)
        kept = kept or (depth == 4 and inner in (_KEPT.get(outer) or ()))
        if kept:
            yield line
        elif not gap:
            yield " " * (4 if outer in _KEPT else 2) + "…"
        gap = not kept


def reference() -> str:
    """Return every command with every option, as `--help-all` tells them on a wide terminal."""
    out = []
    for name in COMMANDS:
        built = build(name)
        text = help.of_command(
            f"pate {name}", built.help or "", built.keywords, everything=True, width=_WIDTH
        )
        out += [f"## pate {name}", "", "```text", text, "```", ""]
    return "\n".join(out)


def main() -> None:
    """Rewrite all pages, or those that are named."""
    for page, made in blocks().items():
        if page.name in sys.argv[1:] or not sys.argv[1:]:
            page.write_text(fill(page.read_text(encoding="utf-8"), made()), encoding="utf-8")


if __name__ == "__main__":
    main()
