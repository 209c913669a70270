"""What a disk holds for sure, and what it may hold: beside real files, a model of both.

As POSIX has it: the content of a file is safe once the file was synced, a name once its folder was.
Until then each change may have got there or not, whatever became of the others; of a file that was
written perhaps a part did, with zeros or older bytes in the place of the rest. A sync that fails
may have given up what it was to write: a later one that goes well does not bring that back.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(eq=False)
class FileNode:
    """A file, whatever it is called.

    Attributes:
        mode: its permissions.
        data: what readers find.
        disk: what is there for sure.
        may: what a loss of power may leave, `disk` first and the newest last.
        run: whose labels it holds, if it does.
        shown: anybody could open it once, and may still hold it open.
        guarded: it is nobody's to touch.
    """

    mode: int
    data: bytes = b""
    disk: bytes = b""
    may: list[bytes] = field(default_factory=lambda: [b""])
    run: str | None = None
    shown: bool = False
    guarded: bool = False
    _dirty: list[tuple[int, int]] = field(default_factory=list)

    def write(self, at: int, data: bytes) -> None:
        """Bytes at a place; zeros before it where there was nothing."""
        known = self.data.ljust(at, b"\0")
        self.data = known[:at] + data + known[at + len(data) :]
        self._dirty.append((min(at, len(self.data)), at + len(data)))
        self.may.append(self._would_be())

    def cut(self, size: int) -> None:
        """As `ftruncate`."""
        self.data = self.data[:size].ljust(size, b"\0")
        self.may.append(self._would_be())

    def sync(self) -> None:
        """What was written since the last time is safe."""
        self.disk = self._would_be()
        self.may, self._dirty = [self.disk], []

    def give_up(self) -> None:
        """What was written is taken for written, and is not there."""
        self.may, self._dirty = [self.disk], []

    def after_power_loss(self, chance: random.Random) -> bytes:
        """One of the contents it may have."""
        *earlier, newest = self.may
        kept = newest
        if earlier:
            kept = chance.choice(self.may)
            if chance.random() < 0.6:
                start = _alike(earlier[0], newest)
                cut = torn(chance, start, len(newest))
                rest = [b"", bytes(len(newest) - cut), earlier[0][cut:]]
                kept = newest[:cut] + chance.choice(rest)
        return kept

    def _would_be(self) -> bytes:
        """What a sync would make of it: what was given up before is not in it."""
        known = bytearray(self.disk[: len(self.data)].ljust(len(self.data), b"\0"))
        for start, stop in self._dirty:
            known[start:stop] = self.data[start:stop]
        return bytes(known[: len(self.data)])


@dataclass(eq=False)
class FolderNode:
    """A folder.

    Attributes:
        mode: its permissions.
        names: what readers find in it.
        disk: names that are there for sure.
        since: changes of names since it was synced, each of which is made or not made.
    """

    mode: int
    names: dict[str, Node] = field(default_factory=dict)
    disk: dict[str, Node] = field(default_factory=dict)
    since: list[dict[str, Node | None]] = field(default_factory=list)

    def change(self, changed: dict[str, Node | None]) -> None:
        """Names come, go or stand for something else, all at once."""
        self.since.append(changed)
        _apply(self.names, changed)

    def sync(self) -> None:
        """Its names are safe."""
        self.disk, self.since = dict(self.names), []

    def may_be(self, name: str) -> list[Node | None]:
        """What a name may stand for after a loss of power."""
        found = [self.disk.get(name), *(each[name] for each in self.since if name in each)]
        return list(dict.fromkeys(found))

    def after_power_loss(self, chance: random.Random) -> dict[str, Node]:
        """The names it may have: changes up to a moment, or any of them."""
        found = dict(self.disk)
        made = self.since[: chance.randint(0, len(self.since))]
        if chance.random() < 0.5:
            made = [each for each in self.since if chance.random() < 0.5]
        for each in made:
            _apply(found, each)
        return found


Node = FileNode | FolderNode


def survived(folder: FolderNode, chance: random.Random) -> FolderNode:
    """What is there after a loss of power, all of it safe; a file keeps its second names."""
    return _survived(folder, chance, {})


def contents(folder: FolderNode, path: tuple[str, ...]) -> set[bytes | None]:
    """All that may be found under a path after a loss of power; None for no file there."""
    name, *rest = path
    found: set[bytes | None] = set()
    for node in folder.may_be(name):
        if rest and isinstance(node, FolderNode):
            found |= contents(node, tuple(rest))
        elif isinstance(node, FileNode) and not rest:
            found |= set(node.may)
        else:
            found.add(None)
    return found


def torn(chance: random.Random, start: int, stop: int) -> int:
    """How far something got: anywhere, and often where a line has hardly begun."""
    return chance.randint(start, min(stop, start + chance.choice([9, stop])))


def _survived(
    folder: FolderNode, chance: random.Random, known: dict[FileNode, FileNode]
) -> FolderNode:
    names: dict[str, Node] = {}
    for name, node in folder.after_power_loss(chance).items():
        if isinstance(node, FolderNode):
            names[name] = _survived(node, chance, known)
            continue
        if node not in known:
            data = node.after_power_loss(chance)
            known[node] = FileNode(
                node.mode, data, data, [data], run=node.run, guarded=node.guarded
            )
        names[name] = known[node]
    return FolderNode(folder.mode, names, dict(names))


def _apply(names: dict[str, Node], changed: dict[str, Node | None]) -> None:
    for name, node in changed.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _alike(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
