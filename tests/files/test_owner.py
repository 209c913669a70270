"""Names that tell whose a temporary is: nobody's only if the process has ended for sure."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

import pytest

from ended import ended_owner
from pate_cli.files import owner
from pate_cli.files.owner import OWNED, is_gone, owned_name

pytestmark = pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="no /proc")


def changed(name, place, value):
    pieces = name.split("x")
    pieces[place] = value
    return "x".join(pieces)


def test_a_living_process_is_not_gone():
    name = owned_name()
    assert re.fullmatch(OWNED, name)
    assert len(name) <= 64
    assert not is_gone(name)
    assert name != owned_name()


def test_a_process_that_was_killed_is_gone_and_so_is_one_with_a_number_that_was_given_again():
    assert is_gone(ended_owner())
    name = owned_name()
    assert is_gone(changed(name, 1, "1"))


def test_what_has_ended_and_was_not_waited_for_is_gone():
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if not process:
        os.write(writing, owned_name().encode())
        os._exit(0)
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    try:
        assert is_gone(os.read(reading, 99).decode())
    finally:
        os.waitpid(process, 0)
        os.close(reading)
        os.close(writing)


def test_of_another_system_nothing_is_known():
    assert not is_gone(changed(ended_owner(), 2, "0123abcd"))


@pytest.mark.parametrize("name", ["", "0a1b", "1x2x3", "0x1x01234567x0123456789abcdef", "-1x"])
def test_other_names_are_nobody_s_to_judge(name):
    assert not is_gone(name)


def test_a_process_that_may_not_be_asked_is_alive(monkeypatch):
    name = ended_owner()

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert not is_gone(name)


def test_where_the_system_tells_nothing(monkeypatch, tmp_path):
    name = ended_owner()
    monkeypatch.setattr(owner, "_PROCESSES", tmp_path)
    assert re.fullmatch("[0-9a-f]{16}", owned_name())
    assert not is_gone(name)
