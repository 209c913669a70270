"""The bound on memory while votes are read."""

import subprocess
import sys

import pytest

from pate_cli.core.memory import bounded, each_bounded

resource = pytest.importorskip("resource")
on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")


def limit():
    return resource.getrlimit(resource.RLIMIT_DATA)[0]


def in_process(script):
    """Run a script in a process of its own, and return its words."""
    head = (
        "import resource, threading, numpy as np\n"
        "from pate_cli.core.memory import bound_reading, bounded, each_bounded\n"
        "def limit(): return resource.getrlimit(resource.RLIMIT_DATA)[0]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", head + script], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_a_library_sets_no_limit():
    before = limit()
    with bounded():
        assert limit() == before
    assert list(each_bounded(iter("ab"))) == ["a", "b"]


@on_linux
def test_more_than_a_gigabyte_is_refused_while_votes_are_read_and_only_then():
    assert in_process(
        "bound_reading()\n"
        "with bounded():\n"
        "    try: np.ones(3 << 27)\n"
        "    except MemoryError: print('refused')\n"
        "    print(np.ones(1 << 25).size)\n"
        "print(np.ones(3 << 26).size)\n"
    ) == ["refused", str(1 << 25), str(3 << 26)]


@on_linux
def test_the_limit_is_put_back_by_the_last_who_holds_it():
    assert (
        in_process(
            "bound_reading()\n"
            "before = limit()\n"
            "inside, leave = threading.Event(), threading.Event()\n"
            "def hold():\n"
            "    with bounded():\n"
            "        inside.set(); leave.wait(9)\n"
            "other = threading.Thread(target=hold); other.start(); inside.wait(9)\n"
            "with bounded():\n"
            "    with bounded(): pass\n"
            "    print(limit() != before)\n"
            "print(limit() != before)\n"
            "leave.set(); other.join()\n"
            "print(limit() == before)\n"
        )
        == ["True"] * 3
    )


@on_linux
def test_the_bound_holds_while_a_batch_is_read_and_not_while_it_is_used():
    assert (
        in_process(
            "bound_reading()\n"
            "before = limit()\n"
            "def made():\n"
            "    for _ in range(2): yield limit() != before\n"
            "for bound in each_bounded(made()): print(bound, limit() == before)\n"
            "def failing():\n"
            "    yield 1\n"
            "    raise ValueError\n"
            "try: list(each_bounded(failing()))\n"
            "except ValueError: print(limit() == before)\n"
        )
        == ["True"] * 5
    )


@on_linux
def test_a_lower_limit_of_the_user_stays():
    assert (
        in_process(
            "bound_reading()\n"
            "resource.setrlimit(resource.RLIMIT_DATA, (1 << 29, resource.RLIM_INFINITY))\n"
            "with bounded(): print(limit() == 1 << 29)\n"
            "print(limit() == 1 << 29)\n"
        )
        == ["True"] * 2
    )
