"""Bugs on purpose: each in the place of something in `pate_cli`, until a block is left."""

import contextlib
import json
import os
import pickle
from collections.abc import Callable, Iterator
from typing import Any, Final

from histories.system import replaced
from pate_cli.core.errors import OutputError
from pate_cli.core.noise import RunKey
from pate_cli.disclosure import entry
from pate_cli.disclosure.entry import Entry
from pate_cli.disclosure.record import RecordFile, SpendRecord
from pate_cli.disclosure.runs import Run
from pate_cli.files import journal, outputs, protected
from pate_cli.files.journal import Journal
from pate_cli.files.outputs import File, Output, Outputs
from pate_cli.files.protected import Inputs
from pate_cli.run import checkpoint
from pate_cli.run.checkpoint import Checkpoint
from pate_cli.verbs import session as sessions
from pate_cli.verbs.session import Session

Place = tuple[Any, str, Any]
MOST: Final = 10_000
"""Histories within which each must be found."""


@contextlib.contextmanager
def bug(name: str) -> Iterator[None]:
    """It is there until the block is left."""
    with replaced(*BUGS[name]()):
        yield


AFTER = outputs.after


def _after(said: Callable[[Any], str]) -> list[Place]:
    """What is said where something stays."""
    return [(outputs, "after", lambda left: said(left) if left else AFTER(left))]


def _labels_first(output: Output) -> bool:
    return not output.name.endswith("csv")


def _unsynced_folders() -> list[Place]:
    deliver = File.deliver

    def delivered(self: File) -> None:
        with replaced((outputs, "sync_folder", _nothing)):
            deliver(self)

    return [(File, "deliver", delivered)]


def _another_question() -> list[Place]:
    decode = checkpoint._decoded

    def decoded(content: bytes, run: str, name: str) -> RunKey:
        return decode(content, json.loads(content)["run"], name)

    return [(checkpoint, "_decoded", decoded)]


def _torn_pieces() -> list[Place]:
    def find(self: Checkpoint, start: int) -> Any:
        return pickle.loads(self._path(start).read_bytes()[checkpoint._SEAL :])  # noqa: S301

    return [(Checkpoint, "find", find)]


def _open_files() -> list[Place]:
    reserve = Outputs.reserve

    def reserved(self: Outputs, path: Any, mode: int = 0o644, **more: Any) -> None:
        reserve(self, path, mode=0o644, **more)

    return [(Outputs, "reserve", reserved)]


def _ids_are_forgotten() -> list[Place]:
    learn = Session._learn

    def forgets(self: Session, lines: Any) -> None:
        learn(self, [{name: one[name] for name in one if name != "id"} for one in lines])

    return [(Session, "_learn", forgets)]


class _Unsynced:
    """`os`, whose files are not synced."""

    fsync = staticmethod(lambda opened: None)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


def _failures_are_passed_over() -> list[Place]:
    ask = RecordFile.ask

    def passed(self: RecordFile, session: Run, asks: Any) -> None:
        with contextlib.suppress(OutputError):
            ask(self, session, asks)

    return [(RecordFile, "ask", passed)]


def _nothing(*_: Any, **__: Any) -> None:
    pass


_BUGS: Final[dict[tuple[str, int], Callable[[], list[Place]]]] = {
    ("a name before its content is on disk", 5): lambda: [(File, "finish", Output.finish)],
    ("names that are not synced", 5): _unsynced_folders,
    ("what stays is also not released", 61): lambda: _after(
        lambda left: f"{AFTER(left)}; {AFTER([])}"
    ),
    ("what stays is not told of", 130): lambda: _after(lambda left: AFTER([])),
    ("what is paid for is not told of", 8): lambda: [(Entry, "_noted", _nothing)],
    ("nothing is entered", 0): lambda: [(Entry, "enter", _nothing)],
    ("labels before their report", 34): lambda: [(Output, "turn", property(_labels_first))],
    ("no lock on the record", 51): lambda: [(entry, "locked", lambda _: contextlib.nullcontext())],
    ("a second release without asking", 21): lambda: [(SpendRecord, "touching", lambda *_: ())],
    ("a checkpoint of another question", 246): _another_question,
    ("pieces that are torn", 128): _torn_pieces,
    ("files that all may read", 21): _open_files,
    ("an input that is replaced", 5): lambda: [
        (Inputs, "claim", _nothing),
        (protected, "kept", _nothing),
    ],
    ("a known id drawn again", 3): lambda: [(sessions, "_name", lambda ask, place: (place,))],
    ("ids forgotten", 3): _ids_are_forgotten,
    ("lines that are not synced", 0): lambda: [(journal, "os", _Unsynced())],
    ("failures passed over", 11): _failures_are_passed_over,
    ("lines known before they are safe", 20): lambda: [(Journal, "catch_up", Journal.refresh)],
}
"""What is planted, by name and the first history that is known to find it."""
BUGS: Final = {name: places for (name, _), places in _BUGS.items()}
KNOWN: Final = dict(_BUGS.keys())
