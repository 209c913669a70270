"""What a run does not wait for is not imported, and is what it was when somebody looks into it."""

import importlib
import os
import subprocess
import sys
import threading
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest

from pate_cli.cli import start
from pate_cli.cli.app import app
from pate_cli.core.words import ReleaseKind

ASIDE = ("numpy.ma", "numpy.random", "numpy.testing", "numpy.f2py", "numpy.ctypeslib")


@pytest.fixture
def run_here(votes):
    """Statements in a process of their own, after a run with these words; what they print."""

    def run(*words, after, command="aggregate"):
        script = (
            "import sys\n"
            "from pate_cli.__main__ import main\n"
            f"sys.argv = ['pate', {command!r}, {str(votes)!r}, *{words!r}]\n"
            "try: main()\n"
            f"except SystemExit as end: assert not end.code, end.code\n{after}"
        )
        ran = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.splitlines()

    return run


def test_a_run_waits_for_nothing_that_it_does_not_use(run_here):
    words = ("--teachers", "40", "--delta", "1e-6", "--max-queries", "20", "-o", "l.csv")
    dear = (
        *ASIDE,
        "scipy.special",
        "scipy.sparse",
        "pandas",
        "pyarrow.dataset",
        "pydantic",
        "rich",
    )
    after = (
        "import pate_cli.cli.start as start\n"
        f"print(*(n for n in {dear} if type(sys.modules.get(n)).__name__ == 'module'))\n"
        "import numpy as np, numpy.ma.core\n"
        "from numpy.random import default_rng\n"
        "print(np.ma.masked_array([1, 2], [0, 1]).sum(), np.ma is numpy.ma, np.ma.core.masked)\n"
        "print(default_rng(1).random() == np.random.default_rng(1).random(), np.random.__name__)\n"
        "import pate_cli.core.special as ours, scipy.special as theirs, scipy.stats\n"
        "print(theirs.__name__, scipy.special is sys.modules['scipy.special'],\n"
        "    theirs._ufuncs is scipy.special._ufuncs is sys.modules['scipy.special._ufuncs'],\n"
        "    ours.log_ndtr(-9.0) == theirs.log_ndtr(-9.0), theirs.logsumexp([0.0]))"
    )
    none, masked, drawn, special = run_here(*words, after=after)[-4:]
    assert none == ""
    assert masked == "1 True --"
    assert drawn == "True numpy.random"
    assert special == "scipy.special True True True 0.0"


@pytest.mark.parametrize("command", ["cost", "smooth-sensitivity"])
def test_nobody_looks_for_masks(command, run_here):
    after = "print(type(sys.modules['numpy.ma']).__name__)"
    assert run_here("--max-queries", "20", after=after, command=command)[-1] == "_PutOff"


@pytest.mark.parametrize("given", [None, "3"])
def test_numpy_starts_no_threads_for_matrices_unless_told_to(given):
    """It asks once, when it is imported."""
    script = (
        "import os, sys\n"
        "import pate_cli.__main__ as entry\n"
        "assert 'numpy' not in sys.modules\n"
        "sys.argv = ['pate', '--version']\n"
        "try: entry.main()\n"
        "except SystemExit: print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    name = "OPENBLAS_NUM_THREADS"
    others = {key: value for key, value in os.environ.items() if key != name}
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env=others | ({name: given} if given else {}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines()[-1] == (given or "1")


def test_threads_that_look_together_find_all_of_it(tmp_path, monkeypatch):
    home = tmp_path / "late_package"
    home.mkdir()
    (home / "__init__.py").touch()
    (home / "part.py").write_text("import time\ntime.sleep(0.05)\nfound = [3]\n")
    monkeypatch.syspath_prepend(tmp_path)
    package = importlib.import_module("late_package")
    package.part = part = start._PutOff("late_package.part", [])
    monkeypatch.setitem(sys.modules, part.__name__, part)
    monkeypatch.delitem(sys.modules, package.__name__)  # at the end of the test
    sys.modules[package.__name__] = package
    found = []
    threads = [threading.Thread(target=lambda: found.append(part.found)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[3]] * 4
    assert all(each is found[0] for each in found), "imported once"
    assert package.part is sys.modules[part.__name__] is not part


class Kind(StrEnum):
    ONE = "one"


@pytest.mark.parametrize(
    ("word", "kind", "value"),
    [
        ("one", Kind, Kind.ONE),
        ("1e-6", float, 1e-6),
        ("-3", int, -3),
        ("7", float, 7.0),
        ("a/b", Path, Path("a/b")),
        ("a", str, "a"),
        (True, bool, True),
    ],
)
def test_a_plain_word_is_read_at_once(word, kind, value):
    assert start._is_plain(word, kind)
    assert kind(word) == value


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("ONE", Kind),
        ("two", Kind),
        ("nan", float),
        ("inf", float),
        ("1_000", float),
        (" 1", float),
        ("１", float),
        ("1e400", float),
        ("1.0", int),
        ("1_0", int),
        ("9" * 30, int),
        ("yes", bool),
        (["a"], str),
        ("a", None),
        ("a", str | int),
    ],
)
def test_all_others_are_left_to_typer(word, kind):
    assert not start._is_plain(word, kind)


def test_both_ways_read_the_same(monkeypatch):
    """Typer's reading of plain words, which it does no more, is this one."""
    from typer.main import get_command

    command = get_command(app).commands["aggregate"]
    context = command.context_class(command, info_name="aggregate")
    words = {
        "delta": "1e-6",
        "max_queries": "20",
        "release": "upper",
        "ledger": "a/b.json",
        "labels_path": "x.csv",
    }
    seen = {}
    for parameter in command.get_params(context):
        if parameter.name in words:
            theirs = type(parameter).process_value(parameter, context, words[parameter.name])
            ours = parameter.process_value(context, words[parameter.name])
            assert (type(ours), ours) == (type(theirs), theirs), parameter.name
            seen[parameter.name] = ours
    assert seen["release"] is ReleaseKind.UPPER
    assert len(seen) == len(words)
    assert np.isfinite(seen["delta"])
