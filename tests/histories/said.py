"""What a command says when it fails, beside what lies there: none of it may be false."""

import re
from collections.abc import Iterator
from typing import Any, Final

from histories.disk import FolderNode, Node
from histories.system import System
from kills.promises import BrokenError, asks_in, events_in
from pate_cli.core.errors import PateError
from pate_cli.disclosure.report import RefusedError

_NOTHING: Final = re.compile(r"nothing was released|none are released")
_STAYS: Final = re.compile(r"what was written to (.+?) stays")
_ENDED: Final = "the run has ended"
_ENTERED: Final = re.compile(r"the run(?: at epsilon (\S+))? stays in (.+?), and its cost counts")
_NOT_ENTERED: Final = "pate keeps the record of all runs in this file"
_NOT_ASKED: Final = re.compile(r"cannot write (\S+): [^;]+; nothing was asked")
_THERE: Final = re.compile(
    r"\S+(?= exists already| is in use|: another file is there)|(?<=cannot remove )[^\s:]+"
    r"|(?<=the checkpoint in )\S+"
)
_Lies = tuple[Node | None, Any]


class Said:
    """What lay there before a command of the process that runs, for when that fails."""

    def __init__(self, system: System) -> None:
        self._system, self._me = system, system.me
        self._alone = system._turns is None  # else others may change what is not its own
        self._resumed = system.me.resumes or set()
        self._before = {path: _lies(node) for path, node in system._under("", system.tree)}

    def check(self, error: PateError) -> None:
        """BrokenError where anything it says is not so."""
        text = "; ".join([str(error), *getattr(error, "__notes__", ())])
        text = text.replace(f"{self._system.root}/", "")
        left = {name for name in self._me.outputs if self._changed(name)}
        if isinstance(error, RefusedError):  # of which its report tells
            left = {name for name in left if not name.endswith(".report.json")}
        # A run that failed its release test has ended without labels: its outputs are as they were.
        outputs = text.replace(_ENDED, "") if isinstance(error, RefusedError) else text
        wrong = [*self._of_outputs(outputs, left), *self._of_record(text), *self._of_names(text)]
        if not isinstance(error, RefusedError):
            wrong += self._of_what_counts(text)
        if wrong:
            raise BrokenError(f"{', '.join(sorted(wrong))}, and it says: {text}")

    def _of_outputs(self, text: str, left: set[str]) -> Iterator[str]:
        told = {name.rstrip("/") for names in _STAYS.findall(text) for name in names.split(", ")}
        nothing, ended = len(_NOTHING.findall(text)), _ENDED in text
        if nothing + bool(told) + ended > 1:
            yield "not all of this can be so"
        for name in told if self._alone else told & set(self._me.outputs):
            if not self._changed(name):
                yield f"{name} is as it was"
        if ended:
            told |= set(self._me.outputs)
            yield from (f"{name} is as it was" for name in told - left)
        for name in left - told:
            # Where a disk goes on failing, what was put aside may come back with the next run only.
            if not self._me.failing or self._is(name) != _lies(None):
                yield f"{name} changed"

    def _of_record(self, text: str) -> Iterator[str]:
        for epsilon, names in _ENTERED.findall(text):
            for name in names.split(" and "):
                known = set(_runs(self._was(name)) if self._alone else ()) - self._resumed
                costs = [cost for run, cost in _runs(self._is(name)).items() if run not in known]
                if epsilon not in costs:
                    yield f"{name} does not tell of it"
        if self._alone and _NOT_ENTERED in text and _NOTHING.search(text):
            yield from (f"{name} changed" for name in self._me.records if self._changed(name))
        for name in _NOT_ASKED.findall(text):
            if asks_in(self._is(name)[1]) != asks_in(self._was(name)[1]):
                yield f"{name} tells of more"

    def _of_what_counts(self, text: str) -> Iterator[str]:
        """A run that was entered is told of; not by who saves what a release gave."""
        told = _ENTERED.search(text) or _ENDED in text
        if self._alone and self._me.doing != "release" and not told:
            for name in self._me.records:
                new = set(_runs(self._is(name))) - set(_runs(self._was(name)))
                if new and not (
                    _NOT_ENTERED in text and f"what was written to {name} stays" in text
                ):
                    yield f"{name} tells of a run"

    def _of_names(self, text: str) -> Iterator[str]:
        if self._alone:
            missing = (name for name in _THERE.findall(text) if self._is(name) == _lies(None))
            yield from (f"there is no {name}" for name in missing)

    def _was(self, name: str) -> _Lies:
        return self._before.get(name, _lies(None))

    def _is(self, name: str) -> _Lies:
        return _lies(self._system.node(name))

    def _changed(self, name: str) -> bool:
        return self._is(name) != self._was(name)


def _lies(node: Node | None) -> _Lies:
    """A file or folder, and all that is in it."""
    if isinstance(node, FolderNode):
        return node, {name: _lies(each) for name, each in node.names.items()}
    return node, b"" if node is None else node.data


def _runs(record: _Lies) -> dict[str, str]:
    """What runs of a record cost, as messages have it, by name."""
    runs: dict[str, dict[str, Any]] = {}
    for event in events_in(record[1]):
        if "enter" in event:
            runs[event["enter"]["id"]] = event["enter"]
        elif "settle" in event:
            runs[event["settle"]]["outcome"] = event["outcome"]
        elif "strike" in event:
            del runs[event["strike"]]
    return {name: _cost(run) for name, run in runs.items()}


def _cost(run: dict[str, Any]) -> str:
    refused = run["outcome"] == "refused"
    return f"{run['settings']['target']['refusal_epsilon'] if refused else run['epsilon']:g}"
