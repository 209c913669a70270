"""A folder from which a run that was cut short goes on, without a second draw. SECRET.

All noise follows from the run's key (`core.noise`), so a run that is started again under the same
key gives the same labels and the same report: nothing is drawn, published or charged twice. What is
kept of finished rows only spares the work. Whoever reads the folder knows the noise, so it is its
owner's alone, and goes when the run has ended.
"""

from __future__ import annotations

import hmac
import os
import pickle
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pate_cli.core.errors import LedgerError, OutputError, UsageError
from pate_cli.core.noise import RunKey
from pate_cli.files.addresses import public_name, refuse_address
from pate_cli.files.document import Form
from pate_cli.files.outputs import NEW, Outputs, writing

_FORM: Final = Form("pate-checkpoint", "checkpoint", version=1)
_RUN: Final = "run.json"
_SEAL: Final = 32


@dataclass(frozen=True)
class Checkpoint:
    """Folder with the key of one run, and the labels of its finished ranges. SECRET.

    Attributes:
        folder: where; of mode 0700, and no other run's.
        key: what all noise of the run follows from.
    """

    folder: Path
    key: RunKey

    @classmethod
    def of(cls, folder: str | os.PathLike[str], run: str, *, seed: int | None) -> Checkpoint:
        """Return the checkpoint of a run: the one that is there, or a new one.

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
        place, begun, name = Path(folder), Path(folder, _RUN), public_name(folder)
        with writing(name):
            place.mkdir(mode=0o700, exist_ok=True)
            found, own = place.stat(), getattr(os, "getuid", lambda: None)()
            if own is not None and (stat.S_IMODE(found.st_mode) & 0o077 or found.st_uid != own):
                raise OutputError(
                    f"{name} is open to others, and a checkpoint holds the run's key; make it "
                    f"yours alone (chmod 700 {name})"
                )
            if begun.exists():
                return cls(place, _decoded(begun.read_bytes(), run, name))
            if not all(entry.name.startswith(".pate-") for entry in place.iterdir()):
                raise OutputError(f"{name} is not empty and no checkpoint; give another folder")
        key = RunKey.of(seed)
        known = _RunFile(run, key.secret.hex(), None if seed is None else f"{seed:x}")
        with Outputs() as out:
            out.reserve(begun, mode=0o600)
            out.write(begun, _FORM.text(known).encode())
        return cls(place, key)

    def has(self, start: int) -> bool:
        """Return whether anything is kept of the range that starts at a row."""
        return self._path(start).exists()

    def find(self, start: int) -> Any:
        """Return what is kept of the range that starts at a row; None where that is not whole."""
        try:
            data = self._path(start).read_bytes()
        except FileNotFoundError:
            return None
        seal, content = data[:_SEAL], data[_SEAL:]
        if not hmac.compare_digest(seal, self._sealed(start, content)):
            return None  # cut short by a power cut, or not ours
        return pickle.loads(content)  # noqa: S301 - sealed under the run's key

    def keep(self, start: int, found: Any) -> None:
        """Keep what was found in the range that starts at a row.

        OutputError where that cannot be written.
        """
        content, path = pickle.dumps(found), self._path(start)
        with writing(public_name(path)):
            # Two processes that go on with one run never share a draft.
            draft = path.with_suffix(f".{secrets.token_hex(8)}.tmp")
            with os.fdopen(os.open(draft, NEW, 0o600), "wb") as file:
                file.write(self._sealed(start, content) + content)
            draft.replace(path)

    def end(self) -> None:
        """Forget the run: it has ended, and what it promised is in place or refused.

        OutputError where something cannot be removed. The key is the last to go: without it nobody
        could tell what the rest belongs to.
        """
        try:
            for pattern in (".pate-*", "piece-*", _RUN):
                for ours in self.folder.glob(pattern):
                    ours.unlink(missing_ok=True)
            # Whatever else was put here, such as the labels, stays.
            if not any(self.folder.iterdir()):
                self.folder.rmdir()
        except FileNotFoundError:  # another process was first
            pass
        except OSError as error:
            raise OutputError(
                f"cannot remove {public_name(self.folder)}: {error.strerror or error}; the run has "
                "ended, so remove what is left, which is secret"
            ) from error

    def _path(self, start: int) -> Path:
        return self.folder / f"piece-{start}.bin"

    def _sealed(self, start: int, content: bytes) -> bytes:
        return hmac.digest(self.key.secret, f"pate piece {start} ".encode() + content, "sha256")


def begun(folder: str | os.PathLike[str] | None) -> bool:
    """Return whether a folder has a run that was begun and has not ended."""
    return folder is not None and os.path.exists(os.path.join(folder, _RUN))  # noqa: PTH110, PTH118


@dataclass(frozen=True)
class _RunFile:
    """Content of `run.json`; numbers in hexadecimal, as a seed may be of any size."""

    run: str
    secret: str
    seed: str | None


def _decoded(content: bytes, run: str, name: str) -> RunKey:
    """Return the key of the run that a checkpoint is of, which must be this one."""
    try:
        known = _FORM.read(_RunFile, content)
        seed = None if known.seed is None else int(known.seed, 16)
        key = RunKey(bytes.fromhex(known.secret), seed)
    except (LedgerError, ValueError) as error:
        raise OutputError(
            f"{name} holds no checkpoint that this version of pate reads ({error}); "
            "give another folder"
        ) from None
    if known.run != run:
        raise UsageError(
            f"the checkpoint in {name} is of a run with other flags or other votes; "
            "go on with those, or give another folder"
        )
    return key
