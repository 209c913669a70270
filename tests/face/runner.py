"""Runs a command line in a folder of its own, and keeps what it gave by meaning."""

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from face import meaning
from pate_cli.cli.app import app

_CHANCE = ("sha256", "answers", "passed", "label", "sanitized")
"""What depends on noise."""


def run(folder, *words, stdin=os.devnull):
    """Run `pate` with these words in a folder: exit_code, stdout and stderr of the result."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("XDG_STATE_HOME", str(Path(folder, ".state")))
        words, given = [str(word) for word in words], Path(stdin).read_bytes()
        return CliRunner().invoke(app, words, prog_name="pate", input=given)


def with_inputs(place, inputs, text):
    """The place, a new folder with those of the inputs in it that are named in `text`."""
    place.mkdir()
    for path in inputs.iterdir():
        if path.name not in text:
            continue
        if path.is_dir():
            shutil.copytree(path, place / path.name, copy_function=os.link)
        else:
            os.link(path, place / path.name)
    return place


def case(place, inputs, lines):
    """What each of these lines gives, run one after the other in a new folder with their inputs."""
    folder = with_inputs(place, inputs, " ".join(lines))
    return [line(folder, each) for each in lines]


def refused(place, inputs, asked):
    """Run wrong input in a new folder, and say what it left behind."""
    folder = with_inputs(place, inputs, asked.line)
    for name, content in asked.files.items():
        (folder / name).write_bytes(content)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    ran = run(folder, *asked.line.split())
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return ran, [path.name for path in after if before.get(path) != after[path]]


def line(folder, line):
    """Run a line as a shell would, and say what it gave."""
    line, _, fresh = line.partition("#")
    words, stdin, stdout = shlex.split(line), os.devnull, None
    while len(words) > 1 and words[-2] in ("<", ">"):
        *words, mark, place = words
        if mark == "<":
            stdin = Path(folder, place)
        else:
            stdout = Path(folder, place)
    before = _stamps(folder)
    if stdout or stdin != os.devnull:  # What is behind a descriptor is known in a process alone.
        code, text = _process(folder, words, stdin, stdout)
    else:
        ran = run(folder, *words)
        code, text = ran.exit_code, ran.stdout
    found = {"exit code": code, **_written(folder, before)}
    said = None if stdout else _said(words, text)
    if said is not None:
        found["stdout"] = said
    return _certain(found) if fresh else found


def _process(folder, words, stdin, stdout):
    """Run `pate` in a process of its own, with files as standard input and output."""
    state = {**os.environ, "XDG_STATE_HOME": str(Path(folder, ".state"))}
    with Path(stdin).open("rb") as given, Path(stdout or os.devnull).open("wb") as to:
        kept = to if stdout else subprocess.PIPE
        program = [sys.executable, "-m", "pate_cli", *words]
        ran = subprocess.run(
            program, stdin=given, stdout=kept, stderr=subprocess.PIPE, cwd=folder, env=state
        )
    return ran.returncode, (ran.stdout or b"").decode()


def _stamps(folder):
    return {path: path.stat().st_mtime_ns for path in Path(folder).rglob("*")}


def _written(folder, before):
    found = {}
    for path, stamp in sorted(_stamps(folder).items()):
        name = str(path.relative_to(folder))
        if name.startswith(".") or before.get(path) == stamp or path.is_dir():
            continue
        if name.startswith("labels") and not name.endswith("report.json"):
            found[name] = {"labels": meaning.labels(path)}
        elif name.endswith("report.json"):
            found[name] = meaning.numbers("report", json.loads(path.read_text()))
        elif name.startswith("by_query"):
            found[name] = meaning.by_query(path)
        elif name == "curve.json":
            found[name] = meaning.numbers("curve", json.loads(path.read_text()))
        elif name.endswith(".ledger"):
            found[name] = {"mode": oct(stat.S_IMODE(path.stat().st_mode))}
        elif name.endswith(".html"):
            found[name] = {"told": meaning.told(path.read_text())}
    return found


def _said(words, stdout):
    verb = words[0]
    if not stdout or verb == "verify":
        return None
    if verb == "session":
        return [meaning.numbers("answer", json.loads(line)) for line in stdout.splitlines()]
    if verb == "explain":
        return {"told": meaning.told(stdout)}
    kinds = {"aggregate": "quote" if "--dry-run" in words else "report", "release": "report"}
    return meaning.numbers(kinds.get(verb, verb), json.loads(stdout))


def _certain(found):
    """Without what depends on noise."""
    if isinstance(found, dict):
        return {key: _certain(value) for key, value in found.items() if key not in _CHANCE}
    return [_certain(each) for each in found] if isinstance(found, list) else found
