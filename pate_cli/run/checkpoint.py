"""A checkpoint is a folder from which an interrupted run continues without a second draw. SECRET.

All noise follows from the key of the run (`core.noise`). So a run that is started again with the
same key gives the same labels and the same report, and nothing is drawn, published or charged
twice. The folder also has the labels of finished rows, so that they need not be drawn again.
Anybody who can read the folder can compute the noise of the run. Therefore only the owner may read
the folder, and the folder is removed when the run has ended.
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
    """A folder with the key of one run, and the labels of its finished ranges. SECRET.

    Attributes:
        folder: the folder, which has mode 0700 and belongs to this run only.
        key: the key from which all noise of the run follows.
    """

    folder: Path
    key: RunKey

    @classmethod
    def of(cls, folder: str | os.PathLike[str], run: str, *, seed: int | None) -> Checkpoint:
        """Return the checkpoint of a run: the existing one, or a new one.

        Args:
            folder: the folder of the checkpoint.
            run: a digest of everything that decides the result of the run, including its votes.
            seed: the seed of the noise. If the seed is None, a checkpoint that does not exist yet
                gets a random key.

        Raises:
            UsageError: the folder belongs to a run with other settings or other votes, or is on an
                object store.
            OutputError: the folder has other files, others may read it, or it cannot be made.
        """
        refuse_address(folder)
        place, begun, name = Path(folder), Path(folder, _RUN), public_name(folder)
        with writing(name):
            place.mkdir(mode=0o700, exist_ok=True)
            found, own = place.stat(), getattr(os, "getuid", lambda: None)()
            if own is not None and (stat.S_IMODE(found.st_mode) & 0o077 or found.st_uid != own):
                raise OutputError(
                    f"others may read {name}, but a checkpoint has the secret key of the run; make "
                    f"it private (chmod 700 {name})"
                )
            if begun.exists():
                return cls(place, _decoded(begun.read_bytes(), run, name))
            if not all(entry.name.startswith(".pate-") for entry in place.iterdir()):
                raise OutputError(
                    f"{name} is not empty, and it is not a checkpoint; give another folder"
                )
        key = RunKey.of(seed)
        known = _RunFile(run, key.secret.hex(), None if seed is None else f"{seed:x}")
        with Outputs() as out:
            out.reserve(begun, mode=0o600)
            out.write(begun, _FORM.text(known).encode())
        return cls(place, key)

    def has(self, start: int) -> bool:
        """Return whether a result is stored for the range that starts at row `start`."""
        return self._path(start).exists()

    def find(self, start: int) -> Any:
        """Return the result of the range that starts at row `start`; None if it is not valid."""
        try:
            data = self._path(start).read_bytes()
        except FileNotFoundError:
            return None
        seal, content = data[:_SEAL], data[_SEAL:]
        if not hmac.compare_digest(seal, self._sealed(start, content)):
            return None  # A power cut made it incomplete, or another run wrote it.
        return pickle.loads(content)  # noqa: S301 - sealed under the run's key

    def keep(self, start: int, found: Any) -> None:
        """Store the result of the range that starts at row `start`.

        Raises:
            OutputError: the result cannot be written.
        """
        content, path = pickle.dumps(found), self._path(start)
        with writing(public_name(path)):
            # Two processes that continue the same run must not share a draft.
            draft = path.with_suffix(f".{secrets.token_hex(8)}.tmp")
            with os.fdopen(os.open(draft, NEW, 0o600), "wb") as file:
                file.write(self._sealed(start, content) + content)
            draft.replace(path)

    def end(self) -> None:
        """Remove the checkpoint, because the run has ended and its outputs are in place.

        The key is removed last, because without the key nobody could tell to which run the other
        files belong.

        Raises:
            OutputError: a file cannot be removed.
        """
        try:
            for pattern in (".pate-*", "piece-*", _RUN):
                for ours in self.folder.glob(pattern):
                    ours.unlink(missing_ok=True)
            # Other files that somebody put here, such as the labels, stay.
            if not any(self.folder.iterdir()):
                self.folder.rmdir()
        except FileNotFoundError:  # Another process has removed it.
            pass
        except OSError as error:
            raise OutputError(
                f"cannot remove {public_name(self.folder)}: {error.strerror or error}; the run has "
                "ended, so remove the rest of this secret folder yourself"
            ) from error

    def _path(self, start: int) -> Path:
        return self.folder / f"piece-{start}.bin"

    def _sealed(self, start: int, content: bytes) -> bytes:
        return hmac.digest(self.key.secret, f"pate piece {start} ".encode() + content, "sha256")


def begun(folder: str | os.PathLike[str] | None) -> bool:
    """Return whether a folder is the checkpoint of a run that has begun and not ended."""
    return folder is not None and os.path.exists(os.path.join(folder, _RUN))  # noqa: PTH110, PTH118


@dataclass(frozen=True)
class _RunFile:
    """The content of `run.json`; numbers are hexadecimal, because a seed may have any size."""

    run: str
    secret: str
    seed: str | None


def _decoded(content: bytes, run: str, name: str) -> RunKey:
    """Return the key in a checkpoint; raise an error if it belongs to another run."""
    try:
        known = _FORM.read(_RunFile, content)
        seed = None if known.seed is None else int(known.seed, 16)
        key = RunKey(bytes.fromhex(known.secret), seed)
    except (LedgerError, ValueError) as error:
        raise OutputError(
            f"{name} has no checkpoint that this version of pate can read ({error}); "
            "give another folder"
        ) from None
    if known.run != run:
        raise UsageError(
            f"the checkpoint in {name} belongs to a run with other flags or other votes; "
            "use the flags and votes of that run, or give another folder"
        )
    return key
