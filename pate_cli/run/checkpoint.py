"""A run that was cut short goes on where it was: its key and what was finished. SECRET.

Since all noise follows from the run's key (`core.noise`), a run that is started again under the
same key gives the same labels and the same report: nothing is drawn, published or charged twice.
What is kept of finished rows only spares the work. Whoever reads the folder knows the noise, so it
is its owner's alone, and goes when the run has ended.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import pickle
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pate_cli.core.codec import Refusal
from pate_cli.core.dataclass import dataclass
from pate_cli.core.entropy import random_name
from pate_cli.core.errors import OutputError, UsageError
from pate_cli.core.noise import RunKey
from pate_cli.files.addresses import public_name, refuse_address
from pate_cli.files.outputs import Outputs
from pate_cli.files.sealed_json import Form

_FORM: Final = Form("pate-checkpoint", "checkpoint", "checkpoint", version=1)
_RUN: Final = "run.json"
_PIECE: Final = "piece-{}-{}.bin"
_OURS: Final = re.compile(r"run\.json|piece-.*|\.pate-.*")
_NUMBERS: Final = re.compile(r"piece-([0-9]+)-([0-9]+)\.bin")
_SEAL: Final = 32
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True)
class Checkpoint:
    """What is kept of one run.

    Attributes:
        folder: where; of mode 0700, and no other run's.
        key: what all noise of the run follows from.
    """

    folder: Path
    key: RunKey

    @classmethod
    def of(cls, folder: str | os.PathLike[str], run: str, *, seed: int | None) -> Checkpoint:
        """That of a run: the one that is there, or a new one.

        Args:
            folder: where it is kept.
            run: everything that decides what comes out, votes included, in few words.
            seed: of the noise; None draws a fresh key, once.

        Raises:
            UsageError: the folder belongs to a run with other settings or other votes, or is on an
                object store.
            OutputError: it is not empty and no checkpoint, is open to others, or cannot be made.
        """
        refuse_address(folder)
        place = Path(folder)
        with _writable(place):
            place.mkdir(mode=0o700, exist_ok=True)
            known = place / _RUN
            new = not known.exists()
            if new and any(not entry.name.startswith(".pate-") for entry in place.iterdir()):
                raise OutputError(
                    f"{public_name(place)} is not empty and no checkpoint; give a folder of its own"
                )
            _refuse_shared(place)
            if new:
                key = RunKey.fresh() if seed is None else RunKey.from_seed(seed)
                with Outputs() as out:
                    out.reserve(known, mode=0o600)
                    out.write(known, _FORM.text(_RunFile(run, key.secret.hex(), key.seed)).encode())
                return cls(place, key)
            return cls(place, _decoded(known.read_bytes(), run, place))

    def pieces(self, number: int) -> Pieces:
        """What is kept of a pass over the votes."""
        return Pieces(self, number)

    def end(self, *, refused: bool = False) -> None:
        """Forget the run: it has ended, and what it promised is in place or, if `refused`, is not.

        OutputError where something cannot be removed; the key is the last to go.
        """
        try:
            # Without the key nobody could tell what the rest belongs to.
            entries = sorted(self.folder.iterdir(), key=lambda entry: entry.name == _RUN)
            ours = [entry for entry in entries if _OURS.fullmatch(entry.name)]
            for entry in ours:
                entry.unlink(missing_ok=True)
            # Whatever else was put here, such as the labels, stays.
            if len(ours) == len(entries):
                self.folder.rmdir()
        except FileNotFoundError:
            pass  # another process has ended the same run
        except OSError as error:
            raise OutputError(
                f"cannot remove {public_name(self.folder)}: {error.strerror or error}; the run has "
                f"ended and its labels {'are refused' if refused else 'stand'}, so remove what is "
                "left, which is secret"
            ) from error


def reached(folder: str | os.PathLike[str] | None) -> str | None:
    """How far the run had come that is kept in a folder, in words; None where none is."""
    if folder is None:
        return None
    place = Path(folder)
    try:
        if not (place / _RUN).exists():
            return None
        found = [match for it in place.iterdir() if (match := _NUMBERS.fullmatch(it.name))]
    except OSError:  # whoever opens the checkpoint says so
        return None
    number, start = max(((int(match[1]), int(match[2])) for match in found), default=(1, 0))
    again = f" of pass {number} over the votes" if number > 1 else ""
    return f"which had come to row {start}{again}"


@dataclass(frozen=True)
class Pieces:
    """Finished ranges of one pass, each sealed under the run's key."""

    checkpoint: Checkpoint
    number: int

    def has(self, start: int) -> bool:
        """Whether anything was kept of the range that starts at a row."""
        return self._path(start).exists()

    def find(self, start: int) -> Any:
        """What was kept; None where that is not whole."""
        try:
            data = self._path(start).read_bytes()
        except FileNotFoundError:
            return None
        seal, content = data[:_SEAL], data[_SEAL:]
        if not hmac.compare_digest(seal, self._sealed(start, content)):
            return None  # cut short, or not ours
        return pickle.loads(content)  # noqa: S301 - sealed under the run's key

    def keep(self, start: int, found: Any) -> None:
        """Keep what was found; OutputError where that cannot be written."""
        content = pickle.dumps(found)
        path = self._path(start)
        with _writable(path):
            # Two processes that go on with one run never share a draft.
            draft = path.with_suffix(f".{random_name(8)}.tmp")
            try:
                with os.fdopen(os.open(draft, _NEW, 0o600), "wb") as file:
                    file.write(self._sealed(start, content))
                    file.write(content)
                draft.replace(path)
            except BaseException:
                with contextlib.suppress(OSError):
                    draft.unlink(missing_ok=True)
                raise

    def _path(self, start: int) -> Path:
        return self.checkpoint.folder / _PIECE.format(self.number, start)

    def _sealed(self, start: int, content: bytes) -> bytes:
        return hashlib.blake2b(
            content,
            digest_size=_SEAL,
            key=self.checkpoint.key.secret,
            person=b"pate piece",
            salt=self.number.to_bytes(8, "little") + start.to_bytes(8, "little"),
        ).digest()


@dataclass(frozen=True)
class _RunFile:
    """What `run.json` holds."""

    run: str
    secret: str
    seed: int | None


def _decoded(content: bytes, run: str, place: Path) -> RunKey:
    none = Refusal(
        OutputError,
        f"{public_name(place)} holds no checkpoint that this version of pate reads: ",
        "; give another folder",
    )
    # A seed may be of any size.
    known = _FORM.read(_RunFile, content, told=none, largest=None)
    try:
        key = RunKey(bytes.fromhex(known.secret), known.seed)
    except ValueError as error:
        raise none.of(error) from None
    if known.run != run:
        raise UsageError(
            f"the checkpoint in {public_name(place)} is of a run with other flags or other votes; "
            "go on with those, or give another folder"
        )
    return key


def _refuse_shared(place: Path) -> None:
    """OutputError unless the folder is its owner's alone."""
    found = place.stat()
    if hasattr(os, "getuid") and (
        found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077
    ):
        name = public_name(place)
        raise OutputError(
            f"{name} is open to others, and a checkpoint holds the run's key; make it yours alone "
            f"(chmod 700 {name})"
        )


@contextlib.contextmanager
def _writable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OutputError(f"cannot write {public_name(path)}: {reason}") from None
