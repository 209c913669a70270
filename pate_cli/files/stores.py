"""Outputs on an object store or a distributed filesystem, reached through pyarrow.

A store ends what it is given, whole or not. So an output is written under a hidden name beside its
own and moved when the transaction is committed; a killed process may leave the hidden one. There is
no file mode: what is secret never goes here.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Iterator
from typing import IO, Any

from pate_cli.core.entropy import random_name
from pate_cli.core.errors import OutputError
from pate_cli.files.addresses import is_flat, reachable
from pate_cli.files.delivery import KeptOutput
from pate_cli.files.inputs import Place, stored_place


class StoredFile(KeptOutput):
    """A file on a pyarrow filesystem."""

    def __init__(self, name: str, filesystem: Any, path: str) -> None:
        """`name` is for messages, without what may be credentials."""
        super().__init__(name, stored_place(filesystem.type_name, path))
        self._filesystem, self._path = filesystem, path
        folder, _, own = path.rpartition("/")
        self._hidden = f"{folder}/.pate-unfinished-{own}-{random_name(8)}"
        self._put_aside = False

    @property
    def places(self) -> set[Place]:
        """Return the key, which is all that a store knows of a file."""
        return {self.key}

    def open(self) -> None:
        """Look what lies there; errors as `Output.open`."""
        with reachable(self.name, OutputError):
            found = self._kind()
            if found == "Directory" or self.name.endswith("/"):
                raise OutputError(f"cannot write {self.name}: it is a folder; name a file in it")
        if found != "NotFound":
            self._refuse_there()
        self._hold()

    def try_room(self, size: int) -> None:
        """Put a trial object beside the file and delete it; errors as `Output.try_room`."""
        super().try_room(size)
        with reachable(self.name, OutputError):
            self._put([b"pate looks whether it can write here\n"])
            self._filesystem.delete_file(self._hidden)
        self._put_aside = False

    def finish(self) -> None:
        """Put the draft on the store; errors as `Output.finish`."""
        super().finish()
        with reachable(self.name, OutputError):
            self._put(self.chunks())

    def deliver(self) -> None:
        """Give the draft its name; errors as `Output.deliver`."""
        with reachable(self.name, OutputError):
            there = self._kind() != "NotFound"
        if there:
            self._replace_there()
        with reachable(self.name, OutputError):
            self.left = True
            if there and not is_flat(self._filesystem):
                self._filesystem.delete_file(self._path)
            self._filesystem.move(self._hidden, self._path)
        self._put_aside = False

    def close(self) -> None:
        """Let go of the draft, also on the store; errors there are passed over."""
        super().close()
        if self._put_aside:
            with contextlib.suppress(OutputError), reachable(self.name, OutputError):
                self._filesystem.delete_file(self._hidden)
            self._put_aside = False

    def _kind(self) -> str:
        return str(self._filesystem.get_file_info(self._path).type.name)

    def _put(self, chunks: Iterable[bytes]) -> None:
        self._put_aside = True
        with self._filesystem.open_output_stream(self._hidden) as stream:
            for chunk in chunks:
                stream.write(chunk)

    @contextlib.contextmanager
    def _there(self) -> Iterator[IO[bytes]]:
        with reachable(self.name, OutputError):
            stream = self._filesystem.open_input_file(self._path)
            with io.BufferedReader(stream) as file:
                yield file
