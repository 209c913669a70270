"""The parts of README.md that the program itself writes: its example and its reference.

`make docs` rewrites them (`python tests/readme_blocks.py --write`); a test compares. The reference
is rendered from the options themselves and not by `--help`, whose layout is Typer's and changes
with its version.
"""

from __future__ import annotations

import enum
import inspect
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

from pate_cli.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"

_WIDTH, _INDENT = 100, 34
# What the example keeps of the report; "…" stands for the rest.
_KEPT = {
    "private": None,
    "sound": None,
    "epsilon": None,
    "epsilon_kind": None,
    "delta": None,
    "queries": None,
    "answers": None,
    "guarantee": {"summary", "adjacency", "covers"},
    "data_independent": {"epsilon"},
    "tested": {"passed", "target", "refusal_epsilon"},
}


def blocks() -> dict[str, str]:
    """Every generated block by its name."""
    return {"example": example(), "two-rounds": two_rounds(), "reference": reference()}


def fill(text: str, filled: dict[str, str]) -> str:
    """`text` with the content of each block between `<!-- NAME -->` and `<!-- /NAME -->`."""
    for name, content in filled.items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, found, rest = text.partition(start)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise SystemExit(f"README.md has no block {start.strip()} … {end}")
        text = f"{before}{start}{content}{end}{after}"
    return text


def example() -> str:
    """A real run on the demo votes, its report shortened."""
    votes = "sample_votes/demo.parquet"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sample_votes").symlink_to(ROOT / "sample_votes")
        words = ["aggregate", votes, "--target-epsilon", "1.5", "-o", "labels.csv"]
        run = subprocess.run(
            [sys.executable, "-m", "pate_cli", *words],
            cwd=folder,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        head = (Path(folder) / "labels.csv").read_text().splitlines()[:7]
    lines = ["```console", f"$ pate {' '.join(words)}", *_shortened(run.stdout.splitlines())]
    return "\n".join([*lines, "", "$ head -n 7 labels.csv", *head, "```", ""])


def two_rounds() -> str:
    """What the two-round script prints."""
    script = "sample_votes/two_rounds.py"
    run = subprocess.run(
        [sys.executable, script], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return "\n".join(["```console", f"$ python {script}", run.stdout.rstrip(), "```", ""])


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
    """Every command with every option."""
    out = []
    for command in app.registered_commands:
        entries = list(_entries(command.callback))
        arguments = [spelling for spelling, _ in entries if not _is_option(spelling)]
        usage = " ".join(["pate", command.name or "", *arguments, "[OPTIONS]"])
        out += [f"<details><summary><code>{usage}</code></summary>", ""]
        out += [*_paragraphs(inspect.getdoc(command.callback)), "```text"]
        for spelling, meaning in entries:
            out += _entry(spelling, meaning)
        out += ["```", "", "</details>", ""]
    return "\n".join(out)


def _entries(function: Any) -> Iterator[tuple[str, str]]:
    """(spelling, meaning) of every argument and option of a command."""
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        kind, info = get_args(hints[name])
        # `X | None` is an X that may be left out, `list[X]` one that may be given again.
        kinds = [each for each in get_args(kind) or (kind,) if each is not type(None)]
        default = getattr(parameter.default, "value", parameter.default)
        shown = default in (None, inspect.Parameter.empty) or isinstance(default, bool | list)
        meaning = info.help if shown else f"{info.help} [default: {default}]"
        # Within Annotated, Typer keeps the first spelling where a default would be.
        declared = (info.default, *(info.param_decls or ()))
        spellings = [spelling for spelling in declared if _is_option(spelling)]
        if not spellings:
            yield info.metavar or name.upper(), meaning
            continue
        names = ", ".join(sorted(spellings, key=lambda spelling: spelling.startswith("--")))
        yield f"{names} {info.metavar or _value(kinds[0])}".rstrip(), meaning


def _is_option(spelling: object) -> bool:
    return isinstance(spelling, str) and spelling.startswith("-")


def _value(kind: type) -> str:
    if issubclass(kind, enum.Enum):
        return "|".join(word.value for word in kind)
    return {bool: "", str: "TEXT", int: "N", float: "X", Path: "FILE"}[kind]


def _entry(spelling: str, meaning: str) -> Iterator[str]:
    lines = textwrap.wrap(meaning, _WIDTH - _INDENT, break_on_hyphens=False)
    if len(spelling) > _INDENT - 2:
        yield spelling
        spelling = ""
    yield f"{spelling:<{_INDENT}}{lines[0]}"
    for line in lines[1:]:
        yield " " * _INDENT + line


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        mark, _, table = paragraph.partition("\n")
        if mark.strip() == "\b":  # set as it is, in `--help` too
            yield from ["```text", *table.split("\n"), "```", ""]
            continue
        yield from textwrap.wrap(" ".join(paragraph.split()), _WIDTH, break_on_hyphens=False)
        yield ""


def main() -> None:
    """Rewrite README.md, or say that it would change."""
    text = README.read_text(encoding="utf-8")
    if "--write" in sys.argv[1:]:
        README.write_text(fill(text, blocks()), encoding="utf-8")
    elif fill(text, {"reference": reference()}) != text:
        raise SystemExit("README.md is out of date: run make docs")


if __name__ == "__main__":
    main()
