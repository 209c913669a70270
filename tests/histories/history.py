"""A history: what happens to the votes of some teachers, drawn by a seed.

It depends on nothing but its seed, keys of the noise included.
"""

import contextlib
import hashlib
import json
import os
import random
import secrets
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np

import pate_cli as pate
from histories.disk import FileNode, FolderNode
from histories.said import Said
from histories.system import Killed, Process, System, replaced
from histories.watch import Watch, run_of
from kills.promises import BrokenError, asks_in, check_record
from pate_cli.core import noise
from pate_cli.core.errors import LedgerError, PateError
from pate_cli.core.noise import RunKey
from pate_cli.disclosure import entry
from pate_cli.disclosure.entry import RecordPlace
from pate_cli.disclosure.report import RefusedError
from pate_cli.run import fold

TEACHERS: Final = 8
VOTES: Final = np.array([[6, 2, 0], [3, 3, 2], [0, 8, 0], [1, 1, 6], [4, 4, 0], [7, 1, 0]])
NAMES: Final = ("Käse", 'a "b"\\', "c\nd")
SESSIONS: Final[tuple[dict[str, Any], ...]] = (
    # Few are answered, so that more are asked than in any case.
    {
        "classes": 2, "target_epsilon": 3, "delta": 0.01, "threshold": 6, "sigma1": 4.0,
        "sigma2": 3.0,
    },
    {"classes": 2, "max_queries": 6, "mechanism": "gnmax", "sigma2": 3.0, "delta": 0.01},
    {"label_names": NAMES, "max_queries": 9, "mechanism": "gnmax", "sigma2": 4.0, "delta": 0.01},
)  # fmt: skip
_ASKED: Final[dict[str, dict[str, Any]]] = {
    "plain": {"mechanism": "gnmax", "sigma2": 3.0, "max_epsilon": 1e6},
    "confident": {
        "mechanism": "confident", "threshold": 5.0, "sigma1": 4.0, "sigma2": 3.0,
        "max_epsilon": 1e6,
    },
    "kept": {
        "mechanism": "gnmax", "sigma2": 3.0, "order": 8.0, "release": "none", "max_epsilon": 1e6,
    },
    "target": {
        "mechanism": "confident", "threshold": 5.0, "sigma1": 4.0, "sigma2": 3.0,
        "target_epsilon": 4.7, "max_queries": 6, "bound": "two-tail", "min_pass": 0.0,
    },
}  # fmt: skip
_STEPS: Final = {
    "label": 5, "target": 4, "resume": 2, "release": 2, "ask": 4, "several": 2, "again": 1.5,
    "reopen": 1, "second": 0.5, "together": 2, "clock": 1, "read": 1, "lose power": 1, "kill": 0.5,
}  # fmt: skip
_LASTS: Final = {"spent": 1, "release": 45}
"""How many steps of the system something takes, about; a run 65."""
_LENGTHS: Final = (1, 1, 2, 2, 3, 5)
_DOOM: Final = 0.3
"""How often a process dies at some step; half as often one of its steps fails."""


@dataclass(frozen=True)
class Line:
    """A command: what is asked, and where it goes."""

    kind: str
    votes: str
    output: str
    ledger: str | None
    checkpoint: str | None
    force: bool

    @property
    def question(self) -> tuple[Any, ...]:
        """What decides about labels."""
        return (self.kind, self.votes, self.ledger is not None)

    @property
    def outputs(self) -> tuple[str, ...]:
        """All files that it is to write."""
        known = (self.output, self.report, self.ledger)
        return tuple(name for name in known if name is not None)

    @property
    def report(self) -> str:
        """Beside the labels."""
        return f"{self.output.removesuffix('.csv')}.report.json"


@dataclass
class History:
    """One of them.

    Attributes:
        seed: that all of it follows from.
        folder: an empty one.
        told: is given every step in words.
    """

    seed: int
    folder: Path
    told: Callable[[str], None] = lambda _: None
    happened: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311 - of a test
        told, here = self.told, f"{self.folder}/"
        self.told = lambda text: told(text.replace(here, ""))
        self.system = System(self.folder, self.chance, self.told)
        self.watch = Watch(self.system)
        self.session: pate.Session | None = None
        self.sitting: Process | None = None
        self.opened = False
        self.kind = self.chance.choice(SESSIONS)
        self.kept = self.chance.choice(["named", "named", "beside", "ensemble"])
        self.record = {
            "named": "all.spent.json",
            "beside": "votes.npy.spent.json",
            "ensemble": "home/pate/teachers.spent.json",
        }[self.kept]
        self.begun: dict[str, Line] = {}
        self.released = 0
        self.drawn: set[tuple[str, ...]] = set()
        self.doom = _DOOM
        self.inputs: dict[str, bytes] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return self.kind.get("label_names", ())

    @property
    def _where(self) -> dict[str, Any]:
        """The record, as one names it."""
        if self.kept == "ensemble":
            return {"record": None, "ensemble": "teachers"}
        return {"record": self._path(self.record)}

    def run(self) -> None:
        """All of it; BrokenError where a promise is not kept."""
        with self._stage():
            for _ in range(self.chance.choice(_LENGTHS)):
                self._step(*self.chance.choices(list(_STEPS), list(_STEPS.values())))
            if self.chance.random() < 0.4:
                self._lose_power()
                self._check()
            self._end()
        self.system.check_model()

    @contextlib.contextmanager
    def _stage(self) -> Iterator[None]:
        system, random_bytes = self.system, self.chance.randbytes
        self._set_out()
        places = [
            (noise, "random_bytes", lambda size: self.watch.made(random_bytes(size))),
            (secrets, "token_hex", lambda size: random_bytes(size).hex()),
            (RunKey, "_noise", self.watch.spying(RunKey._noise)),
            # What the user's folder knows.
            (entry, "remember", lambda keys, seen: None),
            (fold, "_ENTRIES", 2 * VOTES.shape[1]),  # two rows are a range, and a piece
        ]
        environment = {"SOURCE_DATE_EPOCH": "1700000000", "XDG_STATE_HOME": self._path("home")}
        mask = os.umask(0o022)
        try:
            with patch.dict(os.environ, environment), system.in_place(), replaced(*places):
                try:
                    yield
                finally:
                    for process in system.processes.values():
                        system.end(process)
        finally:
            os.umask(mask)

    def _set_out(self) -> None:
        """What is there before: votes, and files of others."""
        bad = VOTES.copy()
        bad[-1, 0] = -1
        for name, votes in (("votes.npy", VOTES), ("bad.npy", bad)):
            np.save(self.folder / name, votes)
            self.inputs[name] = (self.folder / name).read_bytes()
        for name in ("notes.txt", ".pate-unfinished-notes"):
            (self.folder / name).write_bytes(b"of somebody else\n")
            self.inputs[name] = b"of somebody else\n"
        (self.folder / "home").mkdir()
        names: dict[str, Any] = {"home": FolderNode(0o755)}
        for name, data in self.inputs.items():
            names[name] = FileNode(0o644, data, data, [data], guarded=True)
        self.system.tree = FolderNode(0o755, names, dict(names))

    def _path(self, name: str) -> str:
        return f"{self.system.root}/{name}"

    def _step(self, name: str) -> None:
        self.happened.append(name)
        self.told(f"{name}")
        self.system.power = self.chance.random() < 0.5
        getattr(self, f"_{name.replace(' ', '_')}")()
        self._settle()
        self._check()

    def _settle(self) -> None:
        """What became of those who died."""
        if self.system.broken is not None:
            raise BrokenError(self.system.broken)
        if self.sitting is not None and not self.sitting.alive:
            self.session = self.sitting = None
        if self.system.power and any(not each.alive for each in self.system.processes.values()):
            self._lose_power()
        dead = [number for number, each in self.system.processes.items() if not each.alive]
        for number in dead:
            del self.system.processes[number]

    def _check(self) -> None:
        """What holds whenever nobody is at work."""
        self.watch.check_owed()
        for name, data in self.inputs.items():
            node = self.system.node(name)
            if not isinstance(node, FileNode) or node.data != data:
                raise BrokenError(f"{name} was an input, or somebody else's")
        for name in ("a", "b"):
            if self.system.node(f"{name}.csv") and not self.system.node(f"{name}.report.json"):
                raise BrokenError(f"{name}.csv is there without its report")

    def _process(self, doing: str, records: tuple[str, ...] = ()) -> Process:
        """A new one, which may have bad luck."""
        process = self.system.process(doing, records)
        self._luck(process, _LASTS.get(doing, 65))
        return process

    def _luck(self, process: Process, steps: int) -> None:
        """It may die within so many steps, or one of them may fail."""
        process.until_kill = process.until_fault = None
        process.failing = False
        if self.chance.random() < self.doom:
            process.until_kill = self.chance.randint(1, steps)
        if self.chance.random() < self.doom / 2:
            process.until_fault = self.chance.randint(1, steps)

    def _alone(self, process: Process, act: Callable[[], Any]) -> tuple[str, Any]:
        """Do it in a process of its own: how that ended, and what it gave."""
        with self.system.running(process):
            said = Said(self.system)
            try:
                done = act()
            except Killed:
                self.told(f"  {process.doing} died")
                return "died", None
            except PateError as error:
                self.told(f"  {process.doing}: {type(error).__name__}: {error}")
                said.check(error)
                return "refused", error
            else:
                return ("done", done) if process.alive else ("died", None)
            finally:
                if process is not self.sitting:
                    alive, process.alive = process.alive, False
                    self.system.end(process)
                    if alive:
                        self.system.processes.pop(process.number, None)

    def _label(self) -> None:
        self._run(self._line())

    def _target(self) -> None:
        self._run(self._line("target"))

    def _resume(self) -> None:
        """A run with a checkpoint is most likely cut short, and goes on."""
        line = self._line(self.chance.choice([None, "target"]), resumed=True)
        self.doom = 0.8
        self._run(line)
        self.doom = _DOOM
        self._settle()
        self._check()
        if self.chance.random() < 0.2:
            line = self._line(self.chance.choice([None, "target"]), resumed=True)
        self._run(line)

    def _together(self) -> None:
        """Two things in two processes at once."""
        one = self._line(self.chance.choice([None, "target"]))
        other = self._line(self.chance.choice([None, "target"]))
        if self.chance.random() < 0.3:
            other = one
        errors: list[BaseException] = []

        def task(line: Line) -> Callable[[], None]:
            # What the other one does to it is none of this one's doing.
            shared = bool(set(one.outputs) & {*other.outputs, self.record})
            shared |= self.record in other.outputs or one.checkpoint == other.checkpoint

            def run() -> None:
                try:
                    self._run(line, alone=False, shared=shared)
                except BaseException as error:
                    errors.append(error)

            return run

        self.system.together(task(one), task(other))
        if errors:
            raise errors[0]

    def _line(self, kind: str | None = None, *, resumed: bool = False) -> Line:
        chance = self.chance
        checkpoint = chance.choice(["keep0", "keep1"]) if resumed or chance.random() < 0.3 else None
        known = None if checkpoint is None else self.begun.get(checkpoint)
        if known is not None and kind != "kept" and chance.random() < 0.75:
            return known
        kind = kind or chance.choice(["plain", "plain", "confident", "kept"])
        output = chance.choice(["a.csv", "a.csv", "b.csv"])
        if chance.random() < 0.04:  # which are no outputs, whoever asks
            output = chance.choice(["votes.npy", self.record])
        votes = "bad.npy" if chance.random() < 0.08 else "votes.npy"
        stem = output.removesuffix(".csv")
        ledger = f"{stem}.ledger.json" if kind == "kept" else None
        line = Line(kind, votes, output, ledger, checkpoint, chance.random() < 0.4)
        if checkpoint is not None:
            self.begun[checkpoint] = line
        return line

    def _run(self, line: Line, *, alone: bool = True, shared: bool = False) -> None:
        if alone and self.chance.random() < 0.7:
            self._close()  # as long as a session is open no other run is entered
        process = self._process(f"{line.kind} to {line.output}", self._records(line))
        process.question, process.outputs = line.question, () if shared else line.outputs
        if alone and line.checkpoint is not None:
            process.resumes = self._resumed(line)
        self.told(f"  {process.number} is {line}")
        how, got = self._alone(process, lambda: self._aggregated(line))
        if self.system.broken is not None:
            return
        if how == "done" and not shared:
            self._check_done(line, got)
        elif how == "refused" and not shared:
            self._check_refused(line, got)
        if line.votes == "bad.npy" and process.run is not None:  # perhaps it died in doing so
            self.watch.struck_out(process.run)

    def _aggregated(self, line: Line) -> Any:
        asked = dict(_ASKED[line.kind])
        to = pate.Destination(
            self._path(line.output),
            ledger=None if line.ledger is None else self._path(line.ledger),
            label_format="csv",
            force=line.force,
        )
        votes = self._path(line.votes)
        where = RecordPlace.of(
            votes, **({"record": None} if self.kept == "beside" else self._where)
        )
        if line.checkpoint is not None:
            asked["checkpoint"] = self._path(line.checkpoint)
        # As the command line does it; a few rows at a time, or they would be one batch.
        with pate.open_votes(votes, layout="counts", teachers=TEACHERS, batch_rows=2) as file:
            return pate.aggregate(file, into=to, record=where, **asked)

    def _records(self, line: Line) -> tuple[str, ...]:
        if self.kept == "beside":
            return (f"{line.votes}.spent.json",)
        beside = f"{line.votes}.spent.json"
        there = self.system.node(beside) is not None and beside != self.record
        return (self.record, beside) if there else (self.record,)

    def _resumed(self, line: Line) -> frozenset[str] | None:
        """The run that a checkpoint is of."""
        node = self.system.node(f"{line.checkpoint}/run.json")
        if not isinstance(node, FileNode):
            return None
        secret = json.loads(node.data)["secret"]
        return frozenset({RunKey(bytes.fromhex(secret)).run_id})

    def _check_done(self, line: Line, done: Any) -> None:
        """All of it is in place, and stays there without power."""
        report = self._stays(line.report)
        labels = self._stays(line.output)
        if hashlib.sha256(labels).hexdigest() != json.loads(report)["labels"]["sha256"]:
            raise BrokenError(f"{line.report} tells of other labels")
        if line.ledger is not None:
            self._stays(line.ledger)
        if run_of(report) != done.report.run:
            raise BrokenError(f"{line.report} is of another run")
        if line.checkpoint is not None and self.system.node(line.checkpoint) is not None:
            raise BrokenError(f"{line.checkpoint} is there, and its run has ended")

    def _stays(self, name: str) -> bytes:
        """A file that is there, and would be without power."""
        node = self.system.node(name)
        if not isinstance(node, FileNode):
            raise BrokenError(f"{name} is promised and not there")
        if self.watch.may_hold(name) != {node.data}:
            raise BrokenError(f"{name} is promised, and might not be there without power")
        return node.data

    def _check_refused(self, line: Line, error: PateError) -> None:
        """Of a run whose labels were refused there is a report."""
        if isinstance(error, RefusedError) and run_of(self._stays(line.report)) != error.report.run:
            raise BrokenError(f"{line.report} is of another run than was refused")

    def _release(self) -> None:
        """Of a ledger, once or twice; one is made if there is none."""
        names = ("a.ledger.json", "b.ledger.json")
        there = [name for name in names if self.system.node(name) is not None]
        if not there:
            self._run(self._line("kept"))
            self._settle()
            there = [name for name in names if self.system.node(name) is not None]
        for _ in range(self.chance.randint(1, 2) if there else 0):
            self._released(self.chance.choice(there))
            self._settle()

    def _released(self, name: str) -> None:
        node = self.system.node(name)
        if not isinstance(node, FileNode):
            return
        told = [
            os.path.relpath(path, self.system.root)
            for path in json.loads(node.data).get("records", ())
        ]
        beside = f"{name}.spent.json"
        records = [path for path in (*told, beside) if self.system.node(path) is not None]
        process = self._process("release", tuple(records or [beside]))
        process.question = name, self.system.steps
        rounds = tuple(one["id"] for one in json.loads(node.data)["rounds"])
        self.released += 1
        place = f"released{self.released}.json"
        process.outputs = (place,)
        again = self.chance.random() < 0.4

        def released() -> str:
            done = pate.release(self._path(name), release="upper", again=again)
            done.report.save(self._path(place))
            return str(done.report.run)

        how, run = self._alone(process, released)
        if how == "done":
            if run_of(self._stays(place)) != run:
                raise BrokenError(f"{place} is of another run")
            if rounds in self.drawn and not again:
                raise BrokenError(f"{name} was released before, and nobody asked for it again")
            self.drawn.add(rounds)

    def _sits(self, act: Callable[[pate.Session], Any]) -> Any:
        """Something is asked of the session, which is opened if it is not; None where it failed."""
        if self.sitting is None:
            self.sitting = self.system.process("session")
        self._luck(self.sitting, 4 if self.session is not None else 25)
        sitting = self.sitting

        def asked() -> Any:
            if self.session is None:
                self.session = pate.Session(teachers=TEACHERS, **self._where, **self.kind)
                self.opened = True
            return act(self.session)

        how, got = self._alone(sitting, asked)
        sitting.until_kill = sitting.until_fault = None
        sitting.failing = False
        if self.system.broken is not None:
            return None
        if how == "done":
            return got
        if isinstance(got, LedgerError):
            raise BrokenError(f"the record cannot be read: {got}")
        # What is on disk is not known: who asks on is refused until it is opened again.
        if how == "refused" and self.chance.random() < 0.7:
            self._close()
        return None

    def _asked(self, asks: list[pate.Ask]) -> list[Any] | None:
        found = self._sits(lambda session: session.answered(asks))
        for ask, label in zip(asks, found or [], strict=False):
            self.watch.left.add(ask.id, label)
        if found:
            self.watch.answered(self.record, self.names)
        return found

    def _ask(self) -> None:
        self._asked([pate.Ask(self._votes(), id=self._name())])

    def _several(self) -> None:
        self._asked(
            [pate.Ask(self._votes(), id=self._name()) for _ in range(self.chance.randint(1, 5))]
        )

    def _again(self) -> None:
        """The id of the newest line, which may have left nobody; then the power goes, at times."""
        self._sits(lambda session: session.asked)
        node = self.system.node(self.record)
        if self.system.broken is not None or not isinstance(node, FileNode):
            return
        lines = asks_in(node.data)
        if lines and "id" in lines[-1]:
            name = lines[-1]["id"]
            found = self._asked([pate.Ask(self._votes(), id=name)])
            if found is not None and not found:
                raise BrokenError(f"{name!r} was asked before and is not answered again")
            if self.chance.random() < 0.5:
                self._lose_power()

    def _reopen(self) -> None:
        self._close()
        self._sits(lambda session: session.asked)

    def _second(self) -> None:
        """Another sitting of the session asks something meanwhile."""
        if self.session is None or self.sitting is None:
            return
        process = self.system.process("a second sitting")
        ask = pate.Ask(self._votes(), id=self._name())

        def asked() -> list[Any]:
            with pate.Session(teachers=TEACHERS, **self._where, **self.kind) as second:
                return second.answered([ask])

        how, got = self._alone(process, asked)
        if how == "done":
            for label in got:
                self.watch.left.add(ask.id, label)

    def _close(self) -> None:
        if self.session is not None and self.sitting is not None and self.sitting.alive:
            with self.system.running(self.sitting), contextlib.suppress(Killed):
                self.session.close()
        if self.sitting is not None:
            self.system.end(self.sitting)
            self.system.processes.pop(self.sitting.number, None)
        self.session = self.sitting = None

    def _name(self) -> str | int | None:
        """One that may have been asked before."""
        some = self.chance.randint(0, 7)
        return self.chance.choice([None, some, some, some, f"q{some}\n"])

    def _votes(self) -> list[int]:
        first = self.chance.randint(0, TEACHERS)
        second = self.chance.randint(0, TEACHERS - first)
        return [first, second, *[0] * (len(self.names) - 2 if self.names else 0)]

    def _clock(self) -> None:
        os.environ["SOURCE_DATE_EPOCH"] = str(self.chance.randint(0, 2 * 10**9))

    def _read(self, *, reports: bool = True) -> None:
        """The record, beside the reports that are there."""
        if self.system.node(self.record) is None:
            return
        names = [
            name
            for name in self.system.tree.names
            if reports and (name.endswith("report.json") or name.startswith("released"))
        ]
        process = self.system.process("spent")
        how, bill = self._alone(
            process,
            lambda: pate.spent(self._path(self.record), reports=list(map(self._path, names))),
        )
        if how == "refused":
            raise BrokenError(f"the record cannot be read: {bill}")
        if how == "done" and self.kept == "named" and not bill.holds:
            raise BrokenError(f"the record does not tell of a report: {bill.reports}")

    def _kill(self) -> None:
        if self.sitting is not None:
            self.system.end(self.sitting)

    def _lose_power(self) -> None:
        self.session = self.sitting = None
        self.system.lose_power()
        self.system.power = False

    def _end(self) -> None:
        """Everybody is gone: what is left is read, and goes on from there."""
        self._close()
        self._check()
        self._read(reports=self.chance.random() < 0.25)
        if not self.opened:
            return
        self._quietly_open()
        check_record(Path(self._path(self.record)), self.watch.left, names=self.names)
        session = self.session
        assert session is not None
        before = session.asked
        for name, label in list(self.watch.left.named.items()):
            with self.system.running(self.sitting or self.system.me):
                self.watch.left.add(name, session.ask(self._votes(), id=name))
            if self.watch.left.named[name] != label or session.asked != before:
                raise BrokenError(f"{name!r} was paid for again")
        self._close()

    def _quietly_open(self) -> None:
        self.sitting = self.system.process("session")
        with self.system.running(self.sitting):
            try:
                self.session = pate.Session(teachers=TEACHERS, **self._where, **self.kind)
            except PateError as error:
                raise BrokenError(f"cannot be opened again: {error}") from error


def fault_of(seed: int, told: Callable[[str], None] = lambda _: None) -> str | None:
    """What is wrong with a history, None if nothing is."""
    room = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - as fast as it goes
    with tempfile.TemporaryDirectory(prefix="pate-histories-", dir=room) as folder:
        history = History(seed, Path(folder), told)
        try:
            history.run()
        except BrokenError as error:
            fault = str(error)
        except Exception as error:  # no refusal, and so a traceback for whoever ran it
            fault = f"{type(error).__name__}: {error}"
        else:
            return None
    return f"{fault.replace(f'{folder}/', '')} ({', '.join(history.happened)})"
