"""Histories of one session on one record, drawn by a seed: asked, refused, killed, opened again.

A history depends on nothing but its seed, keys of the noise included.
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest import mock

import numpy as np

import pate_cli as pate
from kills.disk import Disk, Killed
from kills.promises import BrokenError, Left, check_record
from pate_cli.core import entropy, noise
from pate_cli.core.errors import LedgerError, OutputError
from pate_cli.disclosure import session_terms
from pate_cli.files import journal
from pate_cli.verbs import session as verb

NAMES: Final = ("Käse", 'a "b"\\', "c\nd")
KINDS: Final[tuple[dict[str, Any], ...]] = (
    # Few are answered, so that more are asked than in any case.
    {"classes": 2, "epsilon": 3, "delta": 0.01, "threshold": 6, "sigma1": 4.0, "sigma2": 3.0},
    {"classes": 2, "max_queries": 6, "mechanism": "gnmax", "sigma2": 3.0, "delta": 0.01},
    {"label_names": NAMES, "max_queries": 9, "mechanism": "gnmax", "sigma2": 4.0, "delta": 0.01},
)
TEACHERS: Final = 8
_OPS: Final = {
    "ask": 8,
    "several": 4,
    "again": 3,
    "reopen": 2,
    "second": 1,
    "clock": 1,
    "other run": 0.4,
    "read": 1,
    "lose power": 1,
    "kill": 0.5,
}
_rules: dict[str, Any] = {}


def _stop_rule(mechanism: Any, **settings: Any) -> Any:
    """Every session of a kind has the same: solved once."""
    known = f"{mechanism.parameters()} {settings}"
    if known not in _rules:
        _rules[known] = session_terms.stop_rule(mechanism, **settings)
    return _rules[known]


@dataclass
class History:
    """One of them.

    Attributes:
        seed: that all of it follows from.
        folder: an empty one.
        left: what was answered.
    """

    seed: int
    folder: Path
    left: Left = field(default_factory=Left)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311 - of a test
        self.path = self.folder / "asked.spent.json"
        self.disk = Disk(self.path, self.chance)
        self.kind = self.chance.choice(KINDS)
        self.session: pate.Session | None = None
        self.happened: list[str] = []

    @property
    def names(self) -> tuple[str, ...]:
        return self.kind.get("label_names", ())

    def run(self) -> None:
        """All of it; BrokenError where a promise is not kept."""
        with self._stage():
            for _ in range(self.chance.randint(4, 16)):
                self._step(*self.chance.choices(list(_OPS), list(_OPS.values())))
            if self.chance.random() < 0.5:
                self._dies(power=True)
            self._end()

    @contextlib.contextmanager
    def _stage(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for target, name, new in (
                (journal, "os", self.disk),
                (verb, "stop_rule", _stop_rule),
                (noise, "random_bytes", self.chance.randbytes),
                (entropy, "random_bytes", self.chance.randbytes),
            ):
                stack.enter_context(mock.patch.object(target, name, new))
            stack.enter_context(mock.patch.dict(os.environ, SOURCE_DATE_EPOCH="1700000000"))
            try:
                yield
            finally:
                self.disk.quiet()
                self._close()

    def _step(self, op: str) -> None:
        self.happened.append(op)
        if self.chance.random() < 0.3:
            self.disk.until_kill = self.chance.randint(1, 4)
        if self.chance.random() < 0.15:
            self.disk.until_fault = self.chance.randint(1, 4)
        power = self.chance.random() < 0.5
        try:
            getattr(self, f"_{op.replace(' ', '_')}")()
        except Killed:
            self._dies(power=power)
        except OutputError:
            # What is on disk is not known: who asks on is refused until it is opened again.
            if self.session is not None and self.chance.random() < 0.7:
                self._close()
        except LedgerError as error:
            raise BrokenError(f"the record cannot be read: {error}") from error
        finally:
            self.disk.quiet()

    # --- what may happen -------------------------------------------------------------------------

    def _ask(self) -> None:
        name = self._name()
        label = next(iter(self._answered([pate.Ask(self._votes(), id=name)])), ...)
        if label is not ...:
            self.left.add(name, label)

    def _several(self) -> None:
        asks = [pate.Ask(self._votes(), id=self._name()) for _ in range(self.chance.randint(1, 5))]
        for ask, label in zip(asks, self._answered(asks), strict=False):
            self.left.add(ask.id, label)

    def _again(self) -> None:
        """The id of the newest line, which may have left nobody; then the power goes, at times."""
        self._opened()
        lines = list(journal.lines_of(journal.parts_of(self.path.read_bytes())[1]))
        if lines and "id" in lines[-1]:
            name = lines[-1]["id"]
            found = self._answered([pate.Ask(self._votes(), id=name)])
            if not found:
                raise BrokenError(f"{name!r} was asked before and is not answered again")
            self.left.add(name, *found)
            if self.chance.random() < 0.5:
                self._dies(power=True)

    def _reopen(self) -> None:
        self._close()
        self._opened()

    def _second(self) -> None:
        """Another session on the same record, which is refused as long as the first is there."""
        if self.session is None:
            return
        try:
            pate.Session(teachers=TEACHERS, record=self.path, **self.kind)
        except OutputError:
            return
        raise BrokenError("two sessions are open at once")

    def _clock(self) -> None:
        os.environ["SOURCE_DATE_EPOCH"] = str(self.chance.randint(0, 2 * 10**9))

    def _other_run(self) -> None:
        """Something else is entered in the record, which is then written anew; not meanwhile."""
        votes = np.array([[5, 3]])
        done = pate.aggregate(
            votes, "gnmax", sigma2=9.0, layout="counts", record=self.path, max_epsilon=100
        )
        if self.session is not None:
            raise BrokenError(f"the record was replaced under a session: {done!r}")

    def _read(self) -> None:
        if self.path.exists():
            pate.SpendRecord.read(self.path)

    def _lose_power(self) -> None:
        self._dies(power=True)

    def _kill(self) -> None:
        self._dies(power=False)

    # --- how ------------------------------------------------------------------------------------

    def _opened(self) -> pate.Session:
        if self.session is None:
            self.session = pate.Session(teachers=TEACHERS, record=self.path, **self.kind)
        return self.session

    def _answered(self, asks: list[pate.Ask]) -> list[Any]:
        return self._opened().answered(asks)

    def _close(self) -> None:
        if self.session is not None:
            self.session.close()
        self.session = None

    def _dies(self, *, power: bool) -> None:
        self.happened.append("died without power" if power else "died")
        self.disk.quiet()
        self._close()  # as the system does
        if power and self.path.exists():
            self.disk.lose_power()

    def _name(self) -> str | int | None:
        """One that may have been asked before."""
        some = self.chance.randint(0, 7)
        return self.chance.choice([None, some, some, some, f"q{some}\n"])

    def _votes(self) -> list[int]:
        first = self.chance.randint(0, TEACHERS)
        second = self.chance.randint(0, TEACHERS - first)
        return [first, second, *[0] * (len(self.names) - 2 if self.names else 0)]

    def _end(self) -> None:
        """Everybody is gone: what is in the record, and whether it goes on from there."""
        self._close()
        if not self.path.exists():
            if len(self.left):
                raise BrokenError("there are answers and no record")
            return
        try:
            self._opened()
        except (LedgerError, OutputError) as error:
            raise BrokenError(f"cannot be opened again: {error}") from error
        check_record(self.path, self.left, names=self.names)
        session = self._opened()
        before = session.asked
        for name, label in list(self.left.named.items()):
            self.left.add(name, session.ask(self._votes(), id=name))
            if self.left.named[name] != label or session.asked != before:
                raise BrokenError(f"{name!r} was paid for again")
        if self.chance.random() < 0.3:
            more = [pate.Ask(self._votes(), id=f"more {number}") for number in range(40)]
            for ask, label in zip(more, session.answered(more), strict=False):
                self.left.add(ask.id, label)
        self._close()
        check_record(self.path, self.left, names=self.names)


def fault_of(seed: int) -> str | None:
    """What is wrong with a history, None if nothing is."""
    room = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - as fast as it goes
    with tempfile.TemporaryDirectory(prefix="pate-kills-", dir=room) as folder:
        history = History(seed, Path(folder))
        try:
            history.run()
        except BrokenError as error:
            return f"{error} ({', '.join(history.happened)})"
        except Exception as error:
            return f"{type(error).__name__}: {error} ({', '.join(history.happened)})"
    return None
