"""Runs a command line in a folder of its own, and keeps what it gave by meaning."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from face import meaning

_CHANCE = ("sha256", "answers", "outcomes", "passed", "label", "sanitized")
"""What depends on noise."""


@dataclass
class Ran:
    """A command that has run: its exit code, and what it said."""

    code: int
    stdout: bytes
    stderr: str


@dataclass
class Face:
    """`pate` as a shell knows it."""

    inputs: Path
    _process: subprocess.Popen = field(init=False, repr=False)

    def __post_init__(self):
        theirs, self._asking = os.pipe()
        self._answered, ours = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py")), str(theirs), str(ours)],
            pass_fds=(theirs, ours),
            stdin=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(ours)
        self._ask, self._answer = os.fdopen(self._asking, "w"), os.fdopen(self._answered)
        self._request(self.inputs, ["aggregate", "counts.npy", "--no-record", "--dry-run"])

    def close(self):
        self._ask.close()
        self._process.wait(60)
        self._answer.close()

    def run(self, folder, *words, stdin=os.devnull, stdout=None):
        """Run `pate` with these words in a folder."""
        said, complained = Path(stdout or Path(folder, ".said")), Path(folder, ".complained")
        self._request(folder, words, stdin, said, complained)
        code = int(self._answer.readline())
        return Ran(code, said.read_bytes(), complained.read_text())

    def _request(self, folder, words, stdin=os.devnull, stdout=os.devnull, stderr=os.devnull):
        asked = {
            "words": [str(word) for word in words],
            "folder": str(folder),
            "streams": [str(stdin), str(stdout), str(stderr)],
            "environment": {"XDG_STATE_HOME": str(Path(folder, ".state"))},
        }
        self._ask.write(json.dumps(asked) + "\n")
        self._ask.flush()

    def folder(self, place, text):
        """A folder with those inputs in it that are named in `text`."""
        place.mkdir(exist_ok=True)
        for path in self.inputs.iterdir():
            if path.name not in text:
                continue
            if path.is_dir():
                shutil.copytree(path, place / path.name, copy_function=os.link)
            else:
                os.link(path, place / path.name)
        return place

    def line(self, folder, line):
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
        ran = self.run(folder, *words, stdin=stdin, stdout=stdout)
        found = {"exit code": ran.code, **_written(folder, before)}
        said = None if stdout else _said(words, ran)
        if said is not None:
            found["stdout"] = said
        return _certain(found) if fresh else found


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


def _said(words, ran):
    verb = words[0]
    labels = "-o" in words and words[words.index("-o") + 1] == "-"
    if not ran.stdout or verb == "verify" or labels:
        return None
    if verb == "session":
        return [meaning.numbers("answer", json.loads(line)) for line in ran.stdout.splitlines()]
    if verb == "explain":
        return {"told": meaning.told(ran.stdout.decode())}
    kinds = {"aggregate": "quote" if "--dry-run" in words else "report", "release": "report"}
    return meaning.numbers(kinds.get(verb, verb), json.loads(ran.stdout))


def _certain(found):
    """Without what depends on noise."""
    if isinstance(found, dict):
        return {key: _certain(value) for key, value in found.items() if key not in _CHANCE}
    return [_certain(each) for each in found] if isinstance(found, list) else found
