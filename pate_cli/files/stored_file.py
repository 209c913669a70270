"""An output on an object store or a distributed filesystem, reached through pyarrow.

It is written in a folder beside it, whose name begins with a dot so that no reader of the folder
takes it for data, and moved when the transaction is committed. That folder tells what killed runs
have left, as the one that it lies in may hold too much to be listed. There is no file mode: what is
secret never goes here.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterable, Iterator
from typing import Any

from pate_cli.core.errors import OutputError
from pate_cli.files.addresses import is_flat, listing
from pate_cli.files.draft import Draft, Held
from pate_cli.files.inputs import Place, stored_place
from pate_cli.files.owner import is_gone, owned_name
from pate_cli.files.undisturbed import undisturbed


class StoredFile:
    """A file on a pyarrow filesystem."""

    def __init__(self, name: str, filesystem: Any, path: str) -> None:
        """`path` on `filesystem`; `name` is for messages, without what may be credentials."""
        self.name = name
        self.written = False
        self._filesystem, self._path = filesystem, path
        folder, _, own = path.rpartition("/")
        run = owned_name()
        self._drafts = f"{folder}/.pate-unfinished-{own}"
        self._temporary = f"{self._drafts}/{run}"
        self._backup = f"{folder}/.pate-replaced-{own}-{run}"
        self._placed = False
        self._kept = False  # what was there before is in the backup
        self._left: set[str] = set()  # temporary names that may be in use

    @property
    def places(self) -> set[Place]:
        """The key, which is all that a store knows of a file."""
        return {stored_place(self._filesystem.type_name, self._path)}

    def check(self, *, force: bool) -> None:
        """Refuse now, before any private work, whatever would fail later; it only looks."""
        try:
            with _one_line_errors():
                found = self._kind()
        except OSError as error:
            raise OutputError(f"cannot write {self.name}: {error.strerror}") from error
        if found == "Directory" or self.name.endswith("/"):
            raise OutputError(f"cannot write {self.name}: it is a folder; name a file in it")
        if found != "NotFound" and not force:
            raise OutputError(f"{self.name} exists already; use `force` to replace it")

    def try_out(self) -> None:
        """Write beside it, as nothing else tells of rights; what is deleted may leave an empty key.

        OutputError when nothing can be written.
        """
        try:
            with _one_line_errors():
                self._put([])
                self._sweep()
        except OSError as error:
            raise OutputError(f"cannot write {self.name}: {error.strerror}") from error
        finally:
            self.clean()

    @contextlib.contextmanager
    def staging(self) -> Iterator[Draft]:
        """Hold the content back until it is whole: a store ends what it is given, whole or not."""
        held = Held()
        try:
            with held.staging() as draft:
                yield draft
            with _one_line_errors():
                self._put(held.chunks())
        finally:
            held.close()
        self.written = True

    def place(self, *, force: bool) -> None:
        """Give the content its name; a file that has it goes if `force`, else FileExistsError."""
        store = self._filesystem
        with _one_line_errors():
            if self._kind() != "NotFound":
                if not force:
                    raise FileExistsError(errno.EEXIST, "exists")
                self._left.add(self._backup)
                if is_flat(store):
                    store.copy_file(self._path, self._backup)
                else:
                    store.move(self._path, self._backup)
                self._kept = True
            self._placed = True
            store.move(self._temporary, self._path)

    def open_up(self) -> None:
        """A store has no permissions that a draft could lack."""

    def withdraw(self) -> bool:
        """Undo `place`, done or half done; whether nothing of this run is left under the name."""
        if not (self._placed or self._kept):
            return True
        try:
            with _one_line_errors():
                if self._kept:
                    if not is_flat(self._filesystem) and self._kind() != "NotFound":
                        self._remove(self._path)
                    self._filesystem.move(self._backup, self._path)
                elif self._kind() != "NotFound":
                    self._remove(self._path)
        except OSError:
            return False
        self._left.discard(self._backup)
        self._placed = self._kept = False
        return True

    def clean(self) -> None:
        """Remove what lies under temporary names."""
        if not self._left:
            return
        with undisturbed():
            for path in sorted(self._left):
                with contextlib.suppress(OSError), _one_line_errors():
                    self._remove(path)
            self._left.clear()
            with contextlib.suppress(OSError), _one_line_errors():
                if not listing(self._filesystem, self._drafts):
                    self._filesystem.delete_dir(self._drafts)

    def _sweep(self) -> None:
        """Remove what killed runs have left; what was replaced stays, as the only copy there is."""
        for name, _ in listing(self._filesystem, self._drafts):
            if is_gone(name):
                with contextlib.suppress(OSError):
                    self._filesystem.delete_file(f"{self._drafts}/{name}")

    def _kind(self) -> str:
        return str(self._filesystem.get_file_info(self._path).type.name)

    def _put(self, chunks: Iterable[bytes]) -> None:
        self._left.add(self._temporary)
        if not is_flat(self._filesystem):
            self._filesystem.create_dir(self._drafts, recursive=True)
        with self._filesystem.open_output_stream(self._temporary) as stream:
            for chunk in chunks:
                stream.write(chunk)

    def _remove(self, path: str) -> None:
        self._filesystem.delete_file(path)
        self._left.discard(path)


@contextlib.contextmanager
def _one_line_errors() -> Iterator[None]:
    """Make one line of what pyarrow raises: an OSError with its first line as the reason."""
    import pyarrow as pa

    try:
        yield
    except FileExistsError:
        raise
    except (OSError, pa.ArrowException) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise OSError(errno.EIO, f"it cannot be reached: {reason}") from error
