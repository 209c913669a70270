"""A folder of parts on a file system: staged in a hidden folder beside it, renamed into place.

Signals wait while folders are renamed or removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from pate_cli.core.entropy import random_name
from pate_cli.core.errors import OutputError
from pate_cli.files.addresses import public_name
from pate_cli.files.destinations import after, cause, sync_folder
from pate_cli.files.draft import Draft, on_disk
from pate_cli.files.inputs import Place, places_of_path, stored_place
from pate_cli.files.owner import owned_name
from pate_cli.files.part_names import MARKER, refuse_filled
from pate_cli.files.undisturbed import undisturbed
from pate_cli.files.unfinished import CREATE, PRIVATE, hidden_folders, put_aside, sweep

_PART_MODE: Final = 0o644


class LocalFolder:
    """A place for parts, reached by path."""

    def __init__(self, name: str) -> None:
        """`name` may be a link: the link stays and what it names is replaced, or made."""
        self._name = name
        try:
            self._target = Path(name).resolve()
        except (OSError, RuntimeError) as error:  # a loop of links
            raise OutputError(f"cannot write {name}: {error}") from error
        if self._target.is_symlink():  # the same, from Python 3.13 on
            raise OutputError(f"cannot write {name}: it is a link to itself")

    @property
    def root(self) -> str:
        """The folder, as files that are read are known by theirs."""
        return stored_place("local", str(self._target))

    @property
    def places(self) -> set[Place]:
        """What lies in it now, links followed."""
        with contextlib.suppress(OSError):
            return set().union(*map(places_of_path, self._target.iterdir()))
        return set()

    def check(self, *, force: bool) -> None:
        """Refuse whatever would fail later."""
        parent = self._target.parent
        sweep(parent)
        try:
            if self._target.exists() and not self._target.is_dir():
                raise OutputError(f"cannot write {self._name}: it is a file; name a folder")
            if not parent.is_dir():
                raise OutputError(
                    f"cannot write {self._name}: there is no folder {public_name(parent)}"
                )
            if self._target.is_mount():
                raise OutputError(
                    f"cannot write {self._name}: a disk is mounted there, and what is complete "
                    "comes by renaming a folder; name one in it"
                )
            self._refuse_filled(self._target, force=force)
        except OSError as error:
            raise OutputError(cause(self._name, error)) from error
        probe = self._staging(owned_name())
        try:
            # Permissions, read-only mounts and quotas are asked in the only way that tells.
            with undisturbed():
                probe.mkdir(0o700)
                probe.rmdir()
        except OSError as error:
            reason = f"no folder can be made in {parent} ({error.strerror})"
            raise OutputError(f"cannot write {self._name}: {reason}") from error

    def try_out(self) -> None:
        """Nothing more: `check` has done it, and left nothing."""

    @contextlib.contextmanager
    def staging(self, run: str, name: str) -> Iterator[Draft]:
        """Take a part under a name of its own, then give it its name among the staged ones."""
        folder = self._staging(run)
        folder.mkdir(0o700, exist_ok=True)
        # Two writers of one part never share a file: the last to finish replaces the other's.
        temporary = folder / f".{name}.{random_name(8)}"
        try:
            with on_disk(os.open(temporary, CREATE, PRIVATE)) as draft:
                yield draft
            temporary.replace(folder / name)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise

    def staged(self, run: str) -> dict[str, int]:
        """The bytes of every part that is whole, by name."""
        try:
            found = [path for path in self._staging(run).iterdir() if not _unfinished(path)]
            return {path.name: path.stat().st_size for path in found if path.name != MARKER}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise OutputError(cause(self._name, error)) from error

    def opened(self, run: str, name: str) -> AbstractContextManager[Any]:
        """A part that is staged, to read; OSError where it is not."""
        return (self._staging(run) / name).open("rb")

    def place(self, run: str, names: list[str], marker: bytes, *, force: bool) -> None:
        """Rename the staged folder, marker included, to the name it is wanted under."""
        del names  # all that is staged
        with undisturbed():
            self._place(run, marker, force=force)

    def _place(self, run: str, marker: bytes, *, force: bool) -> None:
        try:
            with self.staging(run, MARKER) as file:
                file.write(marker)
            folder = self._staging(run)
            granted = _granted(folder)
            for path in filter(_unfinished, folder.iterdir()):  # of writers that were killed
                path.unlink()
            sync_folder(folder)
            self._settle_aside(run)
            self._refuse_filled(self._target, force=force)
            self._swap(run, force=force)
        except OSError as error:
            # On a disk that fails on and on it may have come into place, and not back.
            stays = self._target.exists() and not self._staging(run).exists()
            left = after([self._name] if stays else [])
            raise OutputError(f"{cause(self._name, error)}; {left}") from error
        with contextlib.suppress(OSError):  # it is in place, and its owner's to open
            _open_up(self._target, *granted)
        with contextlib.suppress(OSError):  # in the way of nobody
            shutil.rmtree(self._aside(run))

    def abort(self, run: str) -> None:
        """Remove what is staged; what a killed commit had put aside comes back."""
        try:
            with undisturbed():
                self._settle_aside(run)
                folder = self._staging(run)
                if folder.exists():
                    shutil.rmtree(folder)
        except OSError as error:
            raise OutputError(cause(self._name, error)) from error

    def _settle_aside(self, run: str) -> None:
        """What a killed commit of the same run had put aside comes back, or is of no use."""
        for aside in put_aside(self._target, run):
            if self._target.exists():
                shutil.rmtree(aside)
            else:
                aside.rename(self._target)

    def _swap(self, run: str, *, force: bool) -> None:
        """What is there goes aside and comes back if the new folder cannot take its place."""
        staging, aside, target = self._staging(run), self._aside(run), self._target
        try:
            if target.exists():
                target.rename(aside)
                self._refuse_filled(aside, force=force)  # again: nobody fills it under this name
            staging.rename(target)
            sync_folder(target.parent)
        except BaseException:
            with contextlib.suppress(OSError):
                if not staging.exists():
                    target.rename(staging)
                if aside.exists():
                    aside.rename(target)
            raise

    def _refuse_filled(self, folder: Path, *, force: bool) -> None:
        if folder.is_dir():
            present = [path.name + "/" * path.is_dir() for path in folder.iterdir()]
            refuse_filled(self._name, present, force=force)

    def _staging(self, run: str) -> Path:
        return hidden_folders(self._target, run)[0]

    def _aside(self, run: str) -> Path:
        return hidden_folders(self._target, run)[1]


def _unfinished(path: Path) -> bool:
    return path.name.startswith(".")


def _granted(folder: Path) -> tuple[int, int]:
    """The modes of a new folder in this one and of a new part; only making them tells the umask."""
    inside, part = folder / ".probe", folder / ".part"
    inside.mkdir(exist_ok=True)  # a killed commit may have left one
    part.unlink(missing_ok=True)
    os.close(os.open(part, CREATE, _PART_MODE))
    modes = tuple(stat.S_IMODE(made.stat().st_mode) for made in (inside, part))
    inside.rmdir()
    part.unlink()
    return modes[0], modes[1]


def _open_up(folder: Path, mode: int, part_mode: int) -> None:
    """Give a folder and its parts their modes; until it comes to the folder nobody sees them."""
    for path in folder.iterdir():
        path.chmod(part_mode)
    folder.chmod(mode)
