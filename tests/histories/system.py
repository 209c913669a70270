"""An operating system under `pate`: processes that die, calls that fail, power that goes.

It stands in the place of `os` and of `fcntl` for what lies in one folder; files there are real, and
`disk` knows what they would hold after a loss of power. Every call that changes something is a
step: in front of it or behind it the process may die, in its place there may be an error, and
another process may have its turn.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import io
import os
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from histories.disk import FileNode, FolderNode, Node, survived, torn
from kills.promises import BrokenError

_FIRST: Final = 1_000_000
"""Numbers of open files that nobody else has, and that are never given again."""


_CALLS: Final = (
    "open", "close", "write", "read", "lseek", "fsync", "ftruncate", "fdopen", "fstat",
    "replace", "link", "unlink", "mkdir", "rmdir", "stat", "lstat", "listdir", "scandir", "getpid",
)  # fmt: skip
_UNKNOWN: Final = ("dup", "chmod", "fchmod", "truncate", "symlink", "kill")
"""Calls that `pate` does not make: one that it begins to make must be told here."""
_REAL: Final = {name: getattr(os, name) for name in (*_CALLS, *_UNKNOWN, "rename", "remove")}
_real: Final = SimpleNamespace(**_REAL)
_real_flock, _real_file = fcntl.flock, io.open


def _of_numbers(call: Callable[..., Any]) -> Callable[..., Any]:
    """A call on an open file: of a number that is not ours the real one."""

    def called(self: System, number: Any, *given: Any, **named: Any) -> Any:
        if not isinstance(number, int) or number < _FIRST:
            return _REAL[call.__name__](number, *given, **named)
        return call(self, number, *given, **named)

    return called


def _of_paths(call: Callable[..., Any]) -> Callable[..., Any]:
    """A call on a path, given below the folder and whole: of one elsewhere the real one."""

    def called(self: System, path: Any, *given: Any, dir_fd: Any = None, **named: Any) -> Any:
        at = self._at(path, dir_fd)
        if at is None:
            return _REAL[call.__name__](path, *given, dir_fd=dir_fd, **named)
        named.pop("follow_symlinks", None)
        return call(self, at, f"{self.root}/{at}", *given, **named)

    return called


class Killed(BaseException):
    """The process is no more: nothing of it may run."""


@dataclass(eq=False)
class Process:
    """One of them.

    Attributes:
        number: by which others know it.
        doing: what it was started for.
        records: where what it spends must be noted.
        outputs: what it alone is to put in place.
        until_kill: the step at which it dies, counted down; None for none.
        until_fault: likewise one that fails.
        question: what it asks under its key.
        resumes: runs that it goes on with, if it goes on with one.
        run: whose labels it draws.
    """

    number: int
    doing: str
    records: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    question: Any = None
    resumes: frozenset[str] | None = None
    until_kill: int | None = None
    until_fault: int | None = None
    failing: bool = False
    alive: bool = True
    run: str | None = None
    opened: set[int] = field(default_factory=set)


@dataclass
class _Open:
    """An open file or folder."""

    number: int
    path: str
    node: Node
    process: Process
    at: int = 0


class System:
    """The machine, with one folder of interest on its disk.

    Attributes:
        me: the process that runs.
        broken: the first promise that was seen not to be kept.
        power: whether a process that dies takes the power along.
    """

    def __init__(self, root: Path, chance: random.Random, told: Callable[[str], None]) -> None:
        self.root = os.path.realpath(root)
        self.chance, self._told = chance, told
        self.tree = FolderNode(0o755)
        self.steps = 0
        self.broken: str | None = None
        self.power = False
        self.changed: Callable[[str, Node], None] = lambda path, node: None
        self._prefix = self.root + "/"
        self._opened: dict[int, _Open] = {}
        self._next = _FIRST
        self._numbers = iter(range(1000, 10**6))
        self.processes: dict[int, Process] = {}
        self._turns: _Turns | None = None
        self.me = Process(999, "the history")  # which never ends

    def process(self, doing: str, records: tuple[str, ...] = ()) -> Process:
        """A new one, which runs when it is made `me`."""
        new = Process(next(self._numbers), doing, records)
        self.processes[new.number] = new
        return new

    @contextlib.contextmanager
    def running(self, process: Process) -> Iterator[None]:
        """It is its turn."""
        before, self.me = self.me, process
        try:
            yield
        finally:
            self.me = before

    def end(self, process: Process) -> None:
        """It is over, and the system closes what it had open."""
        process.alive = False
        for number in list(process.opened):
            _real.close(self._opened.pop(number).number)
        process.opened.clear()

    def together(self, one: Callable[[], None], other: Callable[[], None]) -> None:
        """Two things at once; whose turn it is may change in front of every step."""
        self._turns = _Turns(self)
        try:
            self._turns.run(one, other)
        finally:
            self._turns = None

    def lose_power(self) -> None:
        """Everybody dies; the folder holds what the disk may hold of it."""
        self._told("the power goes")
        for process in self.processes.values():
            self.end(process)
        self.processes.clear()
        self.tree = survived(self.tree, self.chance)
        with self._unpatched():
            for entry in os.scandir(self.root):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    Path(entry.path).unlink()
            self._put(self.tree, self.root, {})
        for path, node in self._under("", self.tree):
            self._told(f"  there is {path} {_size(node)}")

    def _put(self, folder: FolderNode, path: str, known: dict[Node, str]) -> None:
        for name, node in folder.names.items():
            place = f"{path}/{name}"
            if isinstance(node, FolderNode):
                Path(place).mkdir(0o700)
                self._put(node, place, known)
                Path(place).chmod(node.mode)
            elif node in known:
                os.link(known[node], place)
            else:
                known[node] = place
                number = os.open(place, os.O_CREAT | os.O_WRONLY, node.mode)
                os.write(number, node.data)
                os.close(number)

    def break_(self, what: str) -> None:
        """A promise was not kept: the history ends here."""
        if self.broken is None:
            self.broken = what
            self._told(f"BROKEN: {what}")
        self.end(self.me)
        raise Killed

    def check_model(self) -> None:
        """BrokenError where the folder holds anything else than the calls told."""
        known = dict(self._under("", self.tree))
        with self._unpatched():
            found = {
                os.path.relpath(Path(at, name), self.root)
                for at, folders, names in os.walk(self.root)
                for name in folders + names
            }
            differ = found ^ set(known) or {
                path
                for path, node in known.items()
                if isinstance(node, FileNode) and Path(self.root, path).read_bytes() != node.data
            }
        if differ:
            raise BrokenError(f"the simulator missed a call on {sorted(differ)}")

    def node(self, path: str) -> Node | None:
        """What a path below the folder stands for."""
        here: Node | None = self.tree
        for name in filter(None, path.split("/")):
            if not isinstance(here, FolderNode):
                return None
            here = here.names.get(name)
        return here

    def private(self, path: str) -> bool:
        """Whether it is its owner's alone, by its own permissions or those of a folder above it."""
        here: Node | None = self.tree
        for name in path.split("/"):
            if isinstance(here, FolderNode):
                here = here.names.get(name)
            if here is None or not here.mode & 0o077:
                return True
        return False

    def _at(self, path: Any, dir_fd: int | None = None) -> str | None:
        """The path below the folder; None for what is elsewhere."""
        if isinstance(path, int):
            return None
        name = os.fspath(path)
        if isinstance(name, bytes):
            return None
        if dir_fd is not None and dir_fd in self._opened:
            name = f"{self.root}/{self._opened[dir_fd].path}/{name}"
        if not name.startswith(self._prefix):
            return None
        return name[len(self._prefix) :].rstrip("/")

    def _folder(self, path: str) -> tuple[FolderNode, str]:
        above, _, name = path.rpartition("/")
        found = self.node(above)
        if not isinstance(found, FolderNode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return found, name

    def _under(self, path: str, node: Node) -> Iterator[tuple[str, Node]]:
        if isinstance(node, FolderNode):
            for name, each in node.names.items():
                place = f"{path}/{name}" if path else name
                yield place, each
                yield from self._under(place, each)

    def _due(self, what: str) -> tuple[bool, bool]:
        """Whether the process dies at this step, and whether the step fails."""
        me = self.me
        if not me.alive:
            raise Killed
        if self._turns is not None:
            self._turns.maybe()
            if not me.alive:
                raise Killed
        self.steps += 1
        kill = fault = False
        if me.until_kill is not None:
            me.until_kill -= 1
            kill = me.until_kill == 0
        if me.until_fault is not None:
            me.until_fault -= 1
            # Once a disk fails it may go on failing, or not.
            fault = me.until_fault == 0 or (me.failing and self.chance.random() < 0.5)
            me.failing |= fault
        note = " (dies)" * kill + " (fails)" * fault
        self._told(f"    {me.number} {what}{note}")
        return kill, fault

    def _die(self) -> None:
        self.end(self.me)
        if self.power:
            for process in self.processes.values():
                self.end(process)
        raise Killed

    def _step(self, what: str, path: str, act: Callable[[], Any], number: int = errno.EIO) -> Any:
        """A step that is done whole or not at all."""
        kill, fault = self._due(f"{what} {path}")
        if fault:
            raise OSError(number, os.strerror(number), path)
        if kill and self.chance.random() < 0.5:
            self._die()
        done = act()
        if kill:
            self._die()
        return done

    def open(self, path, flags, mode=0o777, *, dir_fd=None):
        at = "" if os.fspath(path) == self.root else self._at(path, dir_fd)
        if at is None:
            return _real.open(path, flags, mode, dir_fd=dir_fd)
        place = f"{self.root}/{at}"
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            # A file without a name, which goes with its process.
            draft, node = f"{at}/a draft".lstrip("/"), FileNode(mode & ~0o022)
            opened = functools.partial(self._opened_as, place, flags, mode, draft, node)
            return self._step("draft in", at or ".", opened)
        if flags & os.O_CREAT and self.node(at) is None:
            create = functools.partial(self._create, at, flags, mode)
            return self._step("create", at, create, errno.ENOSPC)
        if not self.me.alive:
            raise Killed
        node = self.node(at)
        return self._opened_as(place, flags, mode, at, node)

    def _create(self, at: str, flags: int, mode: int) -> int:
        folder, name = self._folder(at)
        node = FileNode(mode & ~0o022)
        number = self._opened_as(f"{self.root}/{at}", flags, mode, at, node)
        folder.change({name: node})
        self.changed(at, node)
        return number

    def _opened_as(self, place: str, flags: int, mode: int, at: str, node: Any) -> int:
        self._next += 1
        self._opened[self._next] = _Open(_real.open(place, flags, mode), at, node, self.me)
        self.me.opened.add(self._next)
        return self._next

    @_of_numbers
    def close(self, number):
        known = self._opened.pop(number, None)  # of a process that died it is closed already
        if known is not None:
            known.process.opened.discard(number)
            _real.close(known.number)

    @_of_numbers
    def write(self, number, data):
        known = self._known(number)
        kill, fault = self._due(f"write {known.path} {len(data)} bytes")
        size = len(data)
        if kill or fault:
            size = torn(self.chance, 0, size)
        elif size and self.chance.random() < 0.1:
            size = self.chance.randint(1, size)  # short, and no error
        if size:
            part = bytes(data[:size])
            os.pwrite(known.number, part, known.at)
            known.node.write(known.at, part)
            known.at += size
            self._touched(known.path, known.node)
        if kill:
            self._die()
        if fault:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return size

    @_of_numbers
    def read(self, number, size):
        known = self._known(number)
        found = os.pread(known.number, size, known.at)
        known.at += len(found)
        return found

    @_of_numbers
    def lseek(self, number, place, how):
        assert how == os.SEEK_SET
        self._known(number).at = place
        return place

    @_of_numbers
    def fsync(self, number):
        known = self._known(number)
        kill, fault = self._due(f"sync {known.path or '.'}")
        if not fault and (not kill or self.chance.random() < 0.5):
            known.node.sync()
        elif fault and isinstance(known.node, FileNode) and self.chance.random() < 0.5:
            known.node.give_up()
        if kill:
            self._die()
        if fault:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    @_of_numbers
    def ftruncate(self, number, size):
        known = self._known(number)

        def cut() -> None:
            _real.ftruncate(known.number, size)
            known.node.cut(size)
            self._touched(known.path, known.node)

        return self._step("cut", known.path, cut)

    @_of_numbers
    def fdopen(self, number, *_given, **_options):
        return io.BufferedRandom(_Raw(self, number))

    @_of_numbers
    def fstat(self, number):
        if number not in self._opened:
            raise Killed
        return _real.fstat(self._opened[number].number)

    def flock(self, opened, how):
        if not isinstance(opened, int) or opened < _FIRST:
            return _real_flock(opened, how)
        if how == fcntl.LOCK_UN and opened not in self._opened:
            return None
        known = self._known(opened)
        if how & fcntl.LOCK_NB or how == fcntl.LOCK_UN:
            return _real_flock(known.number, how)
        while True:
            self._due(f"lock {known.path or '.'}")
            try:
                return _real_flock(known.number, how | fcntl.LOCK_NB)
            except BlockingIOError:
                if self._turns is None or not self._turns.wait():
                    self.break_(f"{self.me.doing} waits for a lock for ever")

    def replace(self, old, new, *, src_dir_fd=None, dst_dir_fd=None):
        before, after = self._at(old, src_dir_fd), self._at(new, dst_dir_fd)
        if before is None or after is None:
            return _real.replace(old, new)

        def rename() -> None:
            _real.replace(f"{self.root}/{before}", f"{self.root}/{after}")
            (folder, name), (to, called) = self._folder(before), self._folder(after)
            assert folder is to, (before, after)
            node, gone = folder.names[name], folder.names.get(called)
            self._refuse_guarded(gone, after)
            self._refuse_guarded(node, before)
            if node is not gone:  # else both are one file, and nothing happens
                folder.change({name: None, called: node})
            self._touched(after, node)

        return self._step("rename", f"{before} to {after}", rename)

    def link(self, old, new, *, src_dir_fd=None, dst_dir_fd=None, follow_symlinks=True):
        before, after = self._at(old), self._at(new)
        if src_dir_fd in self._opened:
            known = self._known(src_dir_fd)
            source, node, before = f"/proc/self/fd/{known.number}", known.node, known.path
        elif before is None or after is None:
            return _real.link(old, new)
        else:
            source, node = f"{self.root}/{before}", self.node(before)

        def link() -> None:
            # Given a folder, or links are not followed.
            _real.link(source, f"{self.root}/{after}", src_dir_fd=0)
            self._named(after, node)
            self._touched(after, node)

        return self._step("link", f"{before} to {after}", link, errno.ENOSPC)

    def _named(self, at: str, node: Node | None) -> None:
        """A name comes, or goes with None."""
        folder, name = self._folder(at)
        if node is None:
            self._refuse_guarded(folder.names[name], at)
        folder.change({name: node})

    @_of_paths
    def unlink(self, at, place):
        if self.node(at) is None and self.me.alive:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), at)
        return self._step("remove", at, lambda: (_real.unlink(place), self._named(at, None))[1])

    @_of_paths
    def mkdir(self, at, place, mode=0o777):
        if self.node(at) is not None and self.me.alive:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), at)

        def mkdir() -> None:
            _real.mkdir(place, mode)
            self._named(at, FolderNode(mode & ~0o022))

        return self._step("make folder", at, mkdir, errno.ENOSPC)

    @_of_paths
    def rmdir(self, at, place):
        return self._step(
            "remove folder", at, lambda: (_real.rmdir(place), self._named(at, None))[1]
        )

    def stat(self, path, *, dir_fd=None, follow_symlinks=True):
        if isinstance(path, int):
            return self.fstat(path)
        if dir_fd in self._opened:
            path, dir_fd = f"{self.root}/{self._at(path, dir_fd)}", None
        return _real.stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)

    def lstat(self, path, *, dir_fd=None):
        return self.stat(path, dir_fd=dir_fd, follow_symlinks=False)

    def listdir(self, path="."):
        return sorted(_real.listdir(path))

    def scandir(self, path="."):
        if path in self._opened:
            path = self._opened[path].number
        with _real.scandir(path) as entries:
            return _Entries(sorted(entries, key=lambda entry: entry.name))

    def getpid(self):
        return self.me.number

    def _known(self, number: int) -> _Open:
        if not self.me.alive or number not in self._opened:
            raise Killed
        return self._opened[number]

    def _touched(self, path: str, node: Node) -> None:
        self._refuse_guarded(node, path)
        self.changed(path, node)
        for place, each in self._under(path, node):
            self.changed(place, each)

    def _refuse_guarded(self, node: Node | None, path: str) -> None:
        if isinstance(node, FileNode) and node.guarded:
            self.break_(f"{path} is nobody's to touch")

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """For whoever calls `os` and `fcntl`, until the block is left."""
        places: list[tuple[Any, str, Any]] = [(os, name, getattr(self, name)) for name in _CALLS]
        places += [(os, name, functools.partial(self._unknown, name)) for name in _UNKNOWN]
        places += [(os, "rename", self.replace), (os, "remove", self.unlink)]
        places += [(fcntl, "flock", self.flock), (io, "open", self._looked)]
        with replaced(*places):
            yield

    def _unknown(self, name, *_given, **_named):
        raise NotImplementedError(f"the simulator knows nothing of os.{name}")

    def _looked(self, file, *given, **options):
        """A file is opened to be read: another process may have its turn before."""
        if self._at(file) is not None:
            if self._turns is not None and self.me.alive:
                self._turns.maybe()
            if not self.me.alive:
                raise Killed
        return _real_file(file, *given, **options)

    @contextlib.contextmanager
    def _unpatched(self) -> Iterator[None]:
        with replaced(*((os, name, real) for name, real in _REAL.items())):
            yield


@contextlib.contextmanager
def replaced(*places: tuple[Any, str, Any]) -> Iterator[None]:
    """Attributes are something else until the block is left; quicker than `mock`."""
    before = [(place, name, place.__dict__[name]) for place, name, _ in places]
    for place, name, new in places:
        setattr(place, name, new)
    try:
        yield
    finally:
        for place, name, old in before[::-1]:
            setattr(place, name, old)


class _Turns:
    """Threads of which one runs at a time, the same ones in the same order for a seed."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._locks: dict[int, threading.Lock] = {}
        self._here = 0
        self._left: set[int] = set()

    def run(self, *tasks: Callable[[], None]) -> None:
        self._locks = {number: threading.Lock() for number in range(len(tasks) + 1)}
        for lock in self._locks.values():
            lock.acquire()
        self._left = set(range(1, len(tasks) + 1))
        before = self._system.me
        threads = [
            threading.Thread(target=self._alone, args=(number, task), daemon=True)
            for number, task in enumerate(tasks, 1)
        ]
        for thread in threads:
            thread.start()
        self._here = 1
        self._locks[1].release()
        self._locks[0].acquire()
        for thread in threads:
            thread.join()
        self._system.me = before

    def _alone(self, number: int, task: Callable[[], None]) -> None:
        self._locks[number].acquire()
        try:
            task()
        finally:
            self._left.discard(number)
            self._here = min(self._left, default=0)
            self._locks[self._here].release()

    def maybe(self) -> None:
        """Have the other one go on, or not."""
        if len(self._left) > 1 and self._system.chance.random() < 0.2:
            self.wait()

    def wait(self) -> bool:
        """Have the other one go on; whether there is one."""
        if len(self._left) < 2:
            return False
        mine, me = self._here, self._system.me
        self._here = next(number for number in self._left if number != mine)
        self._locks[self._here].release()
        self._locks[mine].acquire()
        self._system.me = me
        return True


class _Raw(io.RawIOBase):
    """What `os.fdopen` gives, below its buffer: a file of the system by its number."""

    def __init__(self, system: System, number: int) -> None:
        self._system, self._number, self._at = system, number, 0

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def readinto(self, into: Any) -> int:
        found = self._system.read(self._number, len(into))
        into[: len(found)] = found
        self._at += len(found)
        return len(found)

    def write(self, data: Any) -> int:
        count = self._system.write(self._number, memoryview(data))
        self._at += count
        return count

    def tell(self) -> int:
        return self._at

    def seek(self, place: int, how: int = os.SEEK_SET) -> int:
        assert how in (os.SEEK_SET, os.SEEK_CUR)
        place += self._at if how == os.SEEK_CUR else 0
        self._at = self._system.lseek(self._number, place, os.SEEK_SET)
        return self._at

    def truncate(self, size: int | None = None) -> int:
        self._system.ftruncate(self._number, self._at if size is None else size)
        return self._at

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._system.close(self._number)


class _Entries(list):
    """What `os.scandir` gives, in an order that follows from the names."""

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _size(node: Node) -> str:
    return "" if isinstance(node, FolderNode) else f"{len(node.data)} bytes {node.mode:o}"
