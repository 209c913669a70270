"""Tests keep away from the home of whoever runs them, and so does all that they start."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

from pate_cli.disclosure.entry import state_folder

SAYS = "from pate_cli.disclosure.entry import state_folder; print(state_folder())"


def test_no_test_knows_the_home_of_its_user(monkeypatch):
    """Without the folder that every test has for its state, records would lie in an empty home."""
    theirs = Path(pwd.getpwuid(os.getuid()).pw_dir).resolve()
    monkeypatch.delenv("XDG_STATE_HOME")
    child = subprocess.run([sys.executable, "-c", SAYS], check=True, stdout=subprocess.PIPE)
    for found in (state_folder(), Path(child.stdout.decode().strip())):
        assert found == Path(os.environ["PATE_TESTS_HOME"], ".local", "state", "pate")
        assert not found.exists()
        assert theirs not in found.resolve().parents


def test_a_test_that_writes_there_fails(tmp_path):
    """A suite of one test that forgets its state directory, under the conftest of this one."""
    here = Path(__file__).parent
    (tmp_path / "conftest.py").write_text((here / "conftest.py").read_text())
    (tmp_path / "test_it.py").write_text(
        "import os\nimport pate_cli as pate\n"
        "def test_it():\n"
        "    del os.environ['XDG_STATE_HOME']\n"
        "    given = {'layout': 'counts', 'ensemble': 'clinics'}\n"
        "    pate.aggregate([[40, 2]] * 9, 'gnmax', **given)\n"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    del kept["PATE_TESTS_HOME"]
    paths = os.pathsep.join(map(str, (here.parent, here, here / "support")))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env={**kept, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "the test wrote where its user keeps records" in done.stdout
