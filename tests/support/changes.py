"""Files that change under a reader: seen by what the system says of them, or by their content."""

import contextlib
import os


@contextlib.contextmanager
def unseen(path):
    """What is written in the block, in place and in as many bytes, has the time of before."""
    before = path.stat()
    yield
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (before.st_ino, before.st_size) == (after.st_ino, after.st_size)


def _shrunk(path):
    os.truncate(path, path.stat().st_size // 2)


def _grown(path):
    with path.open("ab") as file:
        file.write(b"1")


def _rewritten(path):
    content = path.read_bytes()
    path.write_bytes(content)


def _replaced(path):
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


CHANGES = {"shrunk": _shrunk, "grown": _grown, "rewritten": _rewritten, "replaced": _replaced}
"""By name, what may be done to a file while it is read."""
