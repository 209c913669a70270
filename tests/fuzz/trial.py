"""One trial: success, or one refusal as it is documented, and soon."""

import re
import resource
import time
import traceback
import warnings
from pathlib import Path

from fuzz.cases import CASES, seeded
from fuzz.whole import MARK
from pate_cli.core.errors import PateError

SECONDS, SECONDS_OF_OPTIONS = 10.0, 60.0
"""CPU time that one input may take; options may ask for a long computation."""
MOST_MEMORY = 1 << 30
"""Bytes that the process may need to read one input, besides what it had before."""
LONGEST = 320
"""Characters of a message about a file of a short name."""

_QUOTED = re.compile("'[^']*'|\"[^\"]*\"")


def look(case: str, seed: int) -> tuple[str | None, bool]:
    """(what is wrong, whether it was refused)."""
    start, refused, peak, held = time.process_time(), False, _peak(), _held()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            CASES[case].try_on("v", seeded(case, seed))
    except PateError as error:
        refused = True
        # Damage may turn votes into names of columns or of queries, and names may be shown.
        names = _QUOTED if case.startswith(("jsonl", "session")) else None
        fault = fault_in(error, LONGEST if CASES[case].make else 2 * LONGEST, names)
        if fault is not None:
            return fault, refused
    except Exception as error:
        return _told(error), refused
    spent = time.process_time() - start
    if _peak() > max(peak, held + MOST_MEMORY):
        return f"took {_peak() - held >> 20} MB", refused
    most = SECONDS_OF_OPTIONS if case == "options" else SECONDS
    return (f"took {spent:.1f} s" if spent > most else None), refused


def _held() -> int:
    """Return how much memory this process has now, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _peak() -> int:
    """Return the most memory that this process had so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def fault_in(error: PateError, longest: int, names: re.Pattern[str] | None) -> str | None:
    """What is wrong with a refusal; in `names` it may say what it wants."""
    text = str(error)
    if not 2 <= error.exit_code <= 10:
        return f"{type(error).__name__} has exit code {error.exit_code}"
    if not text.isprintable():
        return f"not one printable line: {text!r:.200}"
    if len(text) > longest:
        return f"{len(text)} characters: {text:.200}"
    if str(MARK) in (text if names is None else names.sub("", text)):
        return f"a vote is shown: {text:.300}"
    return None


def _told(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "pate_cli" in frame.filename] or list(frames)
    at = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
    return f"{type(error).__name__} at {at}: {str(error)!r:.300}"
