"""The bound on memory while votes are read."""

import subprocess
import sys

import pytest

from pate_cli.core.memory import bounded, each_bounded

resource = pytest.importorskip("resource")


def limit():
    return resource.getrlimit(resource.RLIMIT_DATA)[0]


def test_a_library_sets_no_limit():
    before = limit()
    with bounded():
        assert limit() == before
    assert list(each_bounded(iter("ab"))) == ["a", "b"]


SCRIPTS = {
    "more than a gigabyte is refused while votes are read, and only then": (
        """
with bounded():
    try: np.ones(3 << 27)
    except MemoryError: print('refused')
    print(np.ones(1 << 25).size)
print(np.ones(3 << 26).size)
""",
        ["refused", str(1 << 25), str(3 << 26)],
    ),
    "the limit is put back by the last who holds it": (
        """
inside, leave = threading.Event(), threading.Event()
def hold():
    with bounded():
        inside.set(); leave.wait(9)
other = threading.Thread(target=hold); other.start(); inside.wait(9)
with bounded():
    with bounded(): pass
    print(limit() != before)
print(limit() != before)
leave.set(); other.join()
print(limit() == before)
""",
        ["True"] * 3,
    ),
    "the bound holds while a batch is read and not while it is used": (
        """
def made():
    for _ in range(2): yield limit() != before
for bound in each_bounded(made()): print(bound, limit() == before)
def failing():
    yield 1
    raise ValueError
try: list(each_bounded(failing()))
except ValueError: print(limit() == before)
""",
        ["True"] * 5,
    ),
    "a lower limit of the user stays": (
        """
resource.setrlimit(resource.RLIMIT_DATA, (1 << 29, resource.RLIM_INFINITY))
with bounded(): print(limit() == 1 << 29)
print(limit() == 1 << 29)
""",
        ["True"] * 2,
    ),
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
@pytest.mark.parametrize(("script", "wanted"), SCRIPTS.values(), ids=SCRIPTS)
def test_the_command_line_bounds_what_reading_takes(script, wanted):
    head = (
        "import resource, threading, numpy as np\n"
        "from pate_cli.core.memory import bound_reading, bounded, each_bounded\n"
        "def limit(): return resource.getrlimit(resource.RLIMIT_DATA)[0]\n"
        "bound_reading()\n"
        "before = limit()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", head + script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == wanted
