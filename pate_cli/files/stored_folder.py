"""A folder of parts on an object store or a distributed filesystem, reached through pyarrow.

There is no renaming of folders: parts are staged in a hidden folder within the folder itself,
copied to their names, and only the marker, which comes last, says that all are there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar

from pate_cli.core.errors import OutputError
from pate_cli.files.addresses import is_flat, listing, reachable
from pate_cli.files.destinations import after
from pate_cli.files.draft import Draft, Held
from pate_cli.files.inputs import Place, stored_place
from pate_cli.files.owner import is_gone
from pate_cli.files.part_names import MARKER, refuse_filled
from pate_cli.files.undisturbed import undisturbed

_STAGING: Final = "_pate-unfinished-"
_PROBE: Final = f"{_STAGING}probe"
_AT_ONCE: Final = 16  # requests under way; each spends its time waiting
_Found = TypeVar("_Found")


class StoredFolder:
    """A place for parts on a pyarrow filesystem."""

    def __init__(self, name: str, filesystem: Any, path: str) -> None:
        """`path` on `filesystem`; `name` is for messages."""
        self._name, self._filesystem, self._path = name, filesystem, path

    @property
    def root(self) -> str:
        """The folder, as files that are read are known by theirs."""
        return stored_place(self._filesystem.type_name, self._path)

    @property
    def places(self) -> set[Place]:
        """Nothing more: a store has no second names."""
        return set()

    def check(self, *, force: bool) -> None:
        """Refuse whatever would fail later."""
        with reachable(self._name, OutputError):
            if self._filesystem.get_file_info(self._path).type.name == "File":
                raise OutputError(f"cannot write {self._name}: it is a file; name a folder")
            self._refuse_filled(force=force)
            self._sweep()

    def try_out(self) -> None:
        """Write to it, as nothing else tells of rights: what is deleted may leave an empty key."""
        with reachable(self._name, OutputError):
            new = not self._listed()
            with undisturbed():
                self._make(self._path)
                self._put(f"{self._path}/{_PROBE}", [])
                self._remove(_PROBE)
                if new and is_flat(self._filesystem) and not self._listed():
                    self._filesystem.delete_dir(self._path)

    @contextlib.contextmanager
    def staging(self, run: str, name: str) -> Iterator[Draft]:
        """Hold a part back until it is whole: a store ends what it is given, whole or not."""
        held = Held()
        try:
            with held.staging() as draft:
                yield draft
            with reachable(self._name, OutputError):
                self._make(self._staging(run))
                self._put(f"{self._staging(run)}/{name}", held.chunks())
        finally:
            held.close()

    def staged(self, run: str) -> dict[str, int]:
        """The bytes of every part that is whole, by name."""
        from pyarrow import fs

        with reachable(self._name, OutputError):
            inside = fs.FileSelector(self._staging(run), allow_not_found=True)
            found = self._filesystem.get_file_info(inside)
        return {info.base_name: info.size for info in found if info.type.name == "File"}

    def opened(self, run: str, name: str) -> AbstractContextManager[Any]:
        """A part that is staged, to read; OutputError where it is not."""
        with reachable(self._name, OutputError):
            where = f"{self._staging(run)}/{name}"
            found: AbstractContextManager[Any] = self._filesystem.open_input_file(where)
            return found

    def place(self, run: str, names: list[str], marker: bytes, *, force: bool) -> None:
        """Give the parts their names, then write the marker."""
        store, path = self._filesystem, self._path
        move = store.copy_file if is_flat(store) else store.move
        with reachable(self._name, OutputError):
            old = set(self._refuse_filled(force=force))
        gone = placing = False
        try:
            with reachable(self._name, OutputError):
                self._make(path)
                # What is incomplete must not look complete: the old marker is the first to go.
                _for_all(self._remove, old & {MARKER})
                gone = bool(old)
                _for_all(self._remove, old - {MARKER})
                placing = True
                _for_all(lambda name: move(f"{self._staging(run)}/{name}", f"{path}/{name}"), names)
                self._put(f"{path}/{MARKER}", [marker])
        except BaseException as error:
            left = "what it held is gone" if gone else after([])
            if placing:
                with undisturbed():
                    if not all([self._withdrawn(MARKER), *_for_all(self._withdrawn, names)]):
                        left = after([self._name])
            if isinstance(error, OutputError):
                raise OutputError(f"{error}; {left}") from error
            raise
        with undisturbed(), contextlib.suppress(OSError):  # hidden from readers
            store.delete_dir(self._staging(run))

    def abort(self, run: str) -> None:
        """Remove what is staged."""
        with (
            undisturbed(),
            reachable(self._name, OutputError),
            contextlib.suppress(FileNotFoundError),
        ):
            self._filesystem.delete_dir(self._staging(run))

    def _sweep(self) -> None:
        """Remove what runs have staged that were killed, and cannot go on with it."""
        for name, is_folder in self._listed():
            if is_folder and is_gone(name.removeprefix(_STAGING)):
                with contextlib.suppress(OSError):
                    self._filesystem.delete_dir(f"{self._path}/{name}")

    def _refuse_filled(self, *, force: bool) -> list[str]:
        """What the folder holds, what runs have staged apart: another may be under way."""
        present = [
            name + "/" * is_folder
            for name, is_folder in self._listed()
            if not name.startswith(_STAGING)
        ]
        refuse_filled(self._name, present, force=force)
        return present

    def _listed(self) -> list[tuple[str, bool]]:
        try:
            return listing(self._filesystem, self._path)
        except FileNotFoundError:
            return []

    def _make(self, path: str) -> None:
        if not is_flat(self._filesystem):
            self._filesystem.create_dir(path, recursive=True)

    def _remove(self, name: str) -> None:
        self._filesystem.delete_file(f"{self._path}/{name}")

    def _withdrawn(self, name: str) -> bool:
        """Whether it is there no more."""
        try:
            with reachable(self._name, OutputError), contextlib.suppress(FileNotFoundError):
                self._remove(name)
        except OutputError:
            return False
        return True

    def _put(self, path: str, chunks: Iterable[bytes]) -> None:
        with self._filesystem.open_output_stream(path) as stream:
            for chunk in chunks:
                stream.write(chunk)

    def _staging(self, run: str) -> str:
        return f"{self._path}/{_STAGING}{run}"


def _for_all(step: Callable[[str], _Found], names: Iterable[str]) -> list[_Found]:
    """Take a step for every name, many at once."""
    from concurrent.futures import ThreadPoolExecutor  # long to import, and few write to a store

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(step, names))
