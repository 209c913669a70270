"""Whose a temporary is, told by its name: where no lock can be held, and nothing else is asked.

A name tells the process that made it: its number, when it was started, and the system, that is one
start of a kernel and the processes that see each other there. Another process may have the number
later, but not since then. Whether a process of another system has ended cannot be told; its
temporaries stay, and so does everything where the system does not tell of its processes.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final

from pate_cli.core.entropy import random_name

OWNED: Final = r"[1-9][0-9]{0,6}x[0-9]{1,20}x[0-9a-f]{8}x[0-9a-f]{16}"
"""What names of an owner look like: digits and small letters, at most 55."""

_PROCESSES: Final = Path("/proc")
_ENDED: Final = "ZX"


def owned_name() -> str:
    """A name like no other, which tells of this process where it can."""
    mark = random_name(8)
    process, system = os.getpid(), this_system()
    state = _state(process)
    return mark if system is None or state is None else f"{process}x{state[1]}x{system}x{mark}"


def is_gone(name: str) -> bool:
    """Whether the process that made a name has ended for sure."""
    if not re.fullmatch(OWNED, name):
        return False
    process, started, system, _ = name.split("x")
    if system != this_system():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # of another user
    state = _state(int(process))
    return state is not None and (state[0] in _ENDED or state[1] != started)


def this_system() -> str | None:
    """One start of a kernel and one room of process numbers in it; None where that is not told."""
    try:
        boot = (_PROCESSES / "sys/kernel/random/boot_id").read_bytes()
        room = os.fsencode((_PROCESSES / "self/ns/pid").readlink())
        # Where the list is that of another room, numbers mean nothing.
        if (_PROCESSES / "self").readlink() != Path(str(os.getpid())):
            return None
    except OSError:
        return None
    return hashlib.blake2b(boot + room, digest_size=4).hexdigest()


def _state(process: int) -> tuple[str, str] | None:
    """The state of a process, and when it was started; None where that is not told."""
    try:
        told = (_PROCESSES / str(process) / "stat").read_text(errors="replace")
        fields = told.rpartition(")")[2].split()  # before it a name, of any letters
        return fields[0], fields[19]
    except (OSError, IndexError):
        return None
