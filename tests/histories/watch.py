"""What is looked at after every call: who may read what, and whether it is paid for."""

import json
import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

from histories.disk import FileNode, FolderNode, Node, contents
from histories.system import System
from kills.promises import BrokenError, Left, asks_in
from pate_cli.core.noise import RunKey

_LABELS: Final = b"query_id,label,source\n"
_LEDGER: Final = re.compile(rb'"kind": "pate-(?:cost-)?ledger"')
_ASIDE: Final = ("run id",)


class Watch:
    """The promises that hold at every moment.

    Attributes:
        owed: runs that drew something, by the record that must tell of each.
        labels: of every run those that anybody could have read, by row.
        questions: what was asked under a key.
        left: of the session, what was answered.
    """

    def __init__(self, system: System) -> None:
        self.owed: dict[str, set[str]] = defaultdict(set)
        self.labels: dict[str, dict[str, str]] = defaultdict(dict)
        self.questions: dict[str, Any] = {}
        self.left = Left()
        self._system = system
        self._secrets: list[bytes] = []
        system.changed = self._changed

    def made(self, secret: bytes) -> bytes:
        """A key was made; whoever can read it can take the noise off."""
        self._secrets += [secret, secret.hex().encode()]
        return secret

    def spying(self, drawn: Callable[..., Any]) -> Callable[..., Any]:
        """In the place of the method of a key that gives its noise."""

        def spied(key: RunKey, purpose: str, position: int) -> Any:
            if key.private and purpose not in _ASIDE and self._system.me.records:
                self._drawn(key)
            return drawn(key, purpose, position)

        return spied

    def _drawn(self, key: RunKey) -> None:
        """Noise is drawn for a run: the record tells of it, and goes on to do so."""
        me, name = self._system.me, key.run_id
        if not me.alive:
            return
        if me.resumes is not None and name not in me.resumes:
            self._system.break_("a run that was resumed draws under another key")
        if self.questions.setdefault(name, me.question) != me.question:
            self._system.break_("two questions are asked under one key")
        me.run = name
        self._owe(name, me.records)

    def _owe(self, run: str, records: tuple[str, ...]) -> None:
        for path in records:
            for content in self.may_hold(path):
                if content is None or run.encode() not in content:
                    self._system.break_(
                        f"run {run[:6]} drew what {path} would not tell of without power"
                    )
            self.owed[path].add(run)

    def may_hold(self, path: str) -> set[bytes | None]:
        """What a file would hold after a loss of power."""
        return contents(self._system.tree, tuple(path.split("/")))

    def _changed(self, path: str, node: Node) -> None:
        """A file was written, or has another name or other permissions."""
        if isinstance(node, FolderNode):
            return
        node.shown |= not self._system.private(path)
        if node.shown and self._secret(path, node.data):
            self._system.break_(f"{path} is secret, and its mode is or was {node.mode:o}")
        if node.data.startswith(_LABELS):
            self._labels(path, node)

    def _secret(self, path: str, data: bytes) -> bool:
        if "piece-" in path or _LEDGER.search(data):
            return True
        return any(secret in data for secret in self._secrets)

    def _labels(self, path: str, node: FileNode) -> None:
        """Labels that anybody can read are owed for, and never others of the same run."""
        if node.run is None:  # all of a run may be kept, so that it draws nothing
            me = self._system.me
            node.run = me.run or next(iter(me.resumes or ()), "")
        if not node.run or self._system.private(path):
            return
        self._owe(node.run, self._records(node.run))
        known = self.labels[node.run]
        for line in node.data[len(_LABELS) :].split(b"\n")[:-1]:
            row, _, label = line.decode().partition(",")
            if known.setdefault(row, label) != label:
                self._system.break_(f"row {row} of run {node.run[:6]} was drawn twice")

    def _records(self, run: str) -> tuple[str, ...]:
        me = self._system.me
        return (
            me.records
            if me.run == run
            else tuple(p for p, runs in self.owed.items() if run in runs)
        )

    def struck_out(self, run: str) -> None:
        """A file turned out to hold no votes, and nobody could have read a label."""
        if run not in self.labels:
            for runs in self.owed.values():
                runs.discard(run)

    def check_owed(self) -> None:
        """BrokenError where a record does not tell of what followed from its runs."""
        for path, runs in self.owed.items():
            if not runs:
                continue
            node = self._system.node(path)
            if not isinstance(node, FileNode):
                raise BrokenError(f"{path} is gone, and {len(runs)} runs were in it")
            for run in runs:
                if run.encode() not in node.data:
                    raise BrokenError(f"{path} has lost run {run[:6]}")

    def answered(self, record: str, names: tuple[str, ...]) -> None:
        """Answers leave a session: whatever happens now, the record tells of them."""
        for content in self.may_hold(record):
            told = {}
            for line in asks_in(content or b""):
                label = line["label"]
                told[line.get("id")] = names[label] if names and label is not None else label
            for name, label in self.left.named.items():
                if name not in told or told[name] != label:
                    raise BrokenError(
                        f"{name!r} left, and might not be in the record without power"
                    )


def run_of(report: bytes) -> str | None:
    """The name of the run of a report."""
    try:
        found = json.loads(report)
    except ValueError:
        return None
    return found.get("run")
