"""Bugs on purpose: each in the place of something in `pate_cli`, until a block is left."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from histories.system import replaced
from pate_cli.core.errors import OutputError, PateError
from pate_cli.core.noise import RunKey
from pate_cli.disclosure import entry
from pate_cli.disclosure.entry import Entry
from pate_cli.disclosure.record import RecordFile, SpendRecord
from pate_cli.disclosure.runs import Outcome, Run
from pate_cli.files import journal, outputs, protected
from pate_cli.files.journal import Journal
from pate_cli.files.outputs import File, Output, Outputs
from pate_cli.files.protected import Inputs
from pate_cli.run import checkpoint
from pate_cli.run.checkpoint import Checkpoint
from pate_cli.verbs import aggregate as verb
from pate_cli.verbs import session as sessions
from pate_cli.verbs.session import Session

Place = tuple[Any, str, Any]
MOST: Final = 10_000
"""Histories within which each must be found."""
KNOWN: Final = Path(__file__).with_name("planted.json")
"""The first history that finds each; `make histories-planted` writes it."""


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


# --- what is on disk -----------------------------------------------------------------------------


def _unsynced_folders() -> list[Place]:
    deliver = File.deliver

    def delivered(self: File) -> None:
        with replaced((outputs, "sync_folder", _nothing)):
            deliver(self)

    return [(File, "deliver", delivered)]


def _unsynced_home() -> list[Place]:
    make = entry.make_folder

    def made(folder: Path, mode: int) -> None:
        with replaced((outputs, "sync_folder", _nothing)):
            make(folder, mode)

    return [(entry, "make_folder", made)]


def _given_up_lines() -> list[Place]:
    def synced(self: Journal) -> None:
        """What others wrote is synced, and not written again."""
        self.refresh()
        if self._others:
            try:
                opened = os.open(self.path, os.O_RDONLY)
                os.fsync(opened)
                os.close(opened)
                outputs.sync_folder(self.path.parent)
            except OSError as error:
                raise OutputError(f"cannot write {self.name}: {error.strerror}") from None
            self._others = b""

    return [(Journal, "catch_up", synced)]


# --- the record ----------------------------------------------------------------------------------


def _strike_after_the_coin() -> list[Place]:
    enter, settle = Entry.enter, Entry.settle

    def settled(self: Entry, outcome: Outcome, *, answers: int | None = None) -> Any:
        enter(self)
        return settle(self, outcome, answers=answers)

    return [(Entry, "enter", _nothing), (Entry, "settle", settled)]


def _debit_after_the_labels() -> list[Place]:
    enter, settle, publishing = Entry.enter, Entry.settle, verb.publishing
    late: list[tuple[Entry, Outcome, int | None]] = []

    def settled(self: Entry, outcome: Outcome, *, answers: int | None = None) -> None:
        late.append((self, outcome, answers))

    @contextlib.contextmanager
    def published(*given: Any, **named: Any) -> Iterator[Any]:
        late.clear()
        with publishing(*given, **named) as place:
            yield place
        for one, outcome, answers in late:
            enter(one)
            settle(one, outcome, answers=answers)

    places = [(Entry, "enter", _nothing), (Entry, "settle", settled)]
    return [*places, (verb, "publishing", published)]


def _refusals_are_free() -> list[Place]:
    settle = Entry.settle

    def settled(self: Entry, outcome: Outcome, *, answers: int | None = None) -> Any:
        if outcome is Outcome.REFUSED:
            self._fresh = True
            self._withdrawn()
            return None
        return settle(self, outcome, answers=answers)

    return [(Entry, "settle", settled)]


def _failures_are_free() -> list[Place]:
    @contextlib.contextmanager
    def standing(self: Entry, *, until_read: bool) -> Iterator[None]:
        try:
            yield
        except PateError:
            self._withdrawn()
            raise

    return [(Entry, "standing", standing)]


def _only_the_newest_run() -> list[Place]:
    enter = RecordFile.enter

    def entered(self: RecordFile, *runs: Run) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink()
        RecordFile.__init__(self, self.path)
        enter(self, *runs)

    return [(RecordFile, "enter", entered)]


# --- a checkpoint --------------------------------------------------------------------------------


def _another_question() -> list[Place]:
    decode = checkpoint._decoded

    def decoded(content: bytes, run: str, name: str) -> RunKey:
        return decode(content, json.loads(content)["run"], name)

    return [(checkpoint, "_decoded", decoded)]


def _another_key() -> list[Place]:
    of = Checkpoint.of.__func__  # type: ignore[attr-defined]

    @classmethod  # type: ignore[misc]
    def resumed(cls: type[Checkpoint], folder: Any, run: str, *, seed: int | None) -> Checkpoint:
        there = (Path(folder) / "run.json").exists()
        found: Checkpoint = of(cls, folder, run, seed=seed)
        return Checkpoint(found.folder, RunKey.of(None)) if there else found

    return [(Checkpoint, "of", resumed)]


def _torn_pieces() -> list[Place]:
    def find(self: Checkpoint, start: int) -> Any:
        return pickle.loads(self._path(start).read_bytes()[checkpoint._SEAL :])  # noqa: S301

    return [(Checkpoint, "find", find)]


# --- who may read or write -----------------------------------------------------------------------


def _open_files() -> list[Place]:
    reserve = Outputs.reserve

    def reserved(self: Outputs, path: Any, mode: int = 0o644, **more: Any) -> None:
        reserve(self, path, mode=0o644, **more)

    return [(Outputs, "reserve", reserved)]


# --- a session -----------------------------------------------------------------------------------


def _noted_before() -> list[Place]:
    def pay(self: Any, lines: Any) -> None:
        """What was asked is put on disk when the next is, after its answer left."""
        late, self._late = getattr(self, "_late", []), lines
        if self._file is not None and late:
            self._file.ask(self._run, late)
        self._learn(lines)

    return [(Session, "_pay", pay)]


def _ids_are_forgotten() -> list[Place]:
    learn = Session._learn

    def forgets(self: Session, lines: Any) -> None:
        learn(self, [{name: one[name] for name in one if name != "id"} for one in lines])

    return [(Session, "_learn", forgets)]


def _torn_lines_stay() -> list[Place]:
    write = Journal._write

    def written(self: Journal, content: bytes, at: int, *, cut: bool = False) -> None:
        """What stands behind the last whole line is written after, and not cut off."""
        if cut and self.path.exists():
            at = self.path.stat().st_size
        write(self, content, at)

    return [(Journal, "_write", written)]


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


BUGS: Final[dict[str, Callable[[], list[Place]]]] = {
    "a name before its content is on disk": lambda: [(File, "finish", Output.finish)],
    "names that are not synced": _unsynced_folders,
    "a new folder that is not synced": _unsynced_home,
    "lines that a failed sync gave up": _given_up_lines,
    "what stays is also not released": lambda: _after(lambda left: f"{AFTER(left)}; {AFTER([])}"),
    "what stays is not told of": lambda: _after(lambda left: AFTER([])),
    "what is paid for is not told of": lambda: [(Entry, "_noted", _nothing)],
    "labels before their report": lambda: [(Output, "turn", property(_labels_first))],
    "the strike after the coin": _strike_after_the_coin,
    "the debit after the labels": _debit_after_the_labels,
    "a refusal costs nothing": _refusals_are_free,
    "a run that fails costs nothing": _failures_are_free,
    "no lock on the record": lambda: [(entry, "locked", lambda _: contextlib.nullcontext())],
    "the record replaced, not added to": _only_the_newest_run,
    "a second release without asking": lambda: [(SpendRecord, "touching", lambda *_: ())],
    "a checkpoint of another question": _another_question,
    "a resumed run under another key": _another_key,
    "pieces that are torn": _torn_pieces,
    "files that all may read": _open_files,
    "an input that is replaced": lambda: [
        (Inputs, "claim", _nothing),
        (protected, "kept", _nothing),
    ],
    "an answer before its debit": _noted_before,
    "a known id drawn again": lambda: [(sessions, "_name", lambda ask, place: (place,))],
    "ids forgotten": _ids_are_forgotten,
    "torn lines that stay": _torn_lines_stay,
    "lines that are not synced": lambda: [(journal, "os", _Unsynced())],
    "failures passed over": _failures_are_passed_over,
    "lines known before they are safe": lambda: [(Journal, "catch_up", Journal.refresh)],
}
"""What is planted, by name."""
