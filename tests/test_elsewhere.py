"""What Windows and macOS lack is done without: locks, links, modes, owners, signals, forks."""

import errno
import multiprocessing
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from pate_cli.cli.app import app
from pate_cli.cli.terminal import stoppable
from pate_cli.files import journal, outputs
from pate_cli.files.journal import locked
from pate_cli.planning.synthetic import SyntheticEnsemble
from pate_cli.run import checkpoint
from pate_cli.run.engine import Processes
from tasks import squared

LACKING = ["fchmod", "getuid", "geteuid", "sched_getaffinity", "O_NOCTTY", "O_DIRECTORY"]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """This process without what other systems lack."""
    del tmp_path  # made before: pytest asks who owns it
    opened = os.open

    def no_folders(path, *words, **rest):
        if Path(path).is_dir():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(path, *words, **rest)

    def no_links(*_words, **_rest):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    for module in ("fcntl", "pwd", "grp", "resource", "termios"):
        monkeypatch.setitem(sys.modules, module, None)
    for name in LACKING:
        monkeypatch.delattr(os, name, raising=False)
    for name in ("SIGHUP", "SIGPIPE", "SIGXFSZ"):
        monkeypatch.delattr(signal, name, raising=False)
    monkeypatch.setattr(shutil, "_use_fd_functions", False)
    monkeypatch.setattr(os, "open", no_folders)
    monkeypatch.setattr(os, "link", no_links)
    monkeypatch.setattr(outputs, "_NAMELESS", 0)
    monkeypatch.setattr(os, "chmod", lambda *_words, **_rest: None)


@pytest.fixture
def votes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("votes.npy", SyntheticEnsemble(teachers=40, classes=4, queries=60).draw(3)[0])
    return "votes.npy"


def done(*words):
    result = CliRunner().invoke(app, [str(word) for word in words], prog_name="pate")
    assert result.exit_code == 0, result.stderr
    return result


@pytest.mark.usefixtures("elsewhere")
def test_rounds_and_their_release(votes):
    done("aggregate", votes, "-o", "labels.csv", "--ledger", "a.ledger", "--checkpoint", "run",
         "--report", "report.json", "--order", 8, "--release", "none")  # fmt: skip
    assert not Path("run").exists()
    assert len(Path("labels.csv").read_text().splitlines()) == 61
    done("release", "a.ledger", "--release", "upper")
    words = ["release", "a.ledger", "--release", "upper"]
    again = CliRunner().invoke(app, words, prog_name="pate")
    assert again.exit_code == 7  # the record is kept and read without a lock, too


@pytest.mark.usefixtures("elsewhere")
def test_what_is_replaced(votes):
    for _ in range(2):
        done("aggregate", votes, "-o", "labels.parquet", "--report", "report.json",
             "--max-queries", 50, "--force")  # fmt: skip
    assert Path("labels.parquet").exists()
    assert not list(Path().glob(".*"))


@pytest.mark.usefixtures("elsewhere")
def test_a_target_and_votes_from_a_pipe(votes):
    words = ["aggregate", "-", "--layout", "counts", "--target-epsilon", "9", "--spend", "s.json"]
    words += ["--min-pass", "0", "--bound", "two-tail"]
    result = CliRunner().invoke(
        app, [*words, "-o", "labels.npy"], input=Path(votes).read_bytes(), prog_name="pate"
    )
    assert result.exit_code in (0, 8), result.stderr
    assert Path("s.json").exists()


def test_one_at_a_time_where_there_are_locks_and_at_once_elsewhere(tmp_path, monkeypatch):
    import fcntl

    taken = []
    monkeypatch.setattr(fcntl, "flock", lambda _file, how: taken.append(how))
    with locked([tmp_path / "one.json", tmp_path / "two.json"]):
        assert taken == [fcntl.LOCK_EX]
    monkeypatch.setitem(sys.modules, "fcntl", None)
    journal._say_once.cache_clear()
    with pytest.warns(UserWarning, match="no locks on files"), locked([tmp_path / "one.json"]):
        assert taken == [fcntl.LOCK_EX]


@pytest.mark.usefixtures("elsewhere")
def test_that_there_are_no_locks_is_said_once_before_anything_is_spent(votes, monkeypatch):
    journal._say_once.cache_clear()
    append, spent_before = journal.Journal.append, []

    def appended(self, *lines):
        spent_before.append(journal._say_once.cache_info().currsize)
        append(self, *lines)

    monkeypatch.setattr(journal.Journal, "append", appended)
    result = done("aggregate", votes, "-o", "labels.csv", "--mechanism", "gnmax",
                  "--sigma2", 20, "--max-queries", 3, "--spend", "r.json")  # fmt: skip
    assert result.stderr.count("this system has no locks on files") == 1
    assert spent_before[0] == 1


@pytest.mark.usefixtures("elsewhere")
def test_processors_signals_and_owners(tmp_path):
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with stoppable():
            tmp_path.chmod(0o755)
            assert checkpoint.Checkpoint.of(tmp_path / "run", "a run", seed=1).key.seed == 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize("lacking", sorted(outputs._NO_FOLDER_SYNC))
def test_a_folder_that_cannot_be_synced(tmp_path, monkeypatch, lacking):
    def fails(*_words):
        raise OSError(lacking, os.strerror(lacking))

    for name in ("fsync", "open"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fails)
            outputs.sync_folder(tmp_path)
    monkeypatch.setattr(os, "fsync", fails)
    lacking = errno.EIO  # a disk that fails is another matter
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        outputs.sync_folder(tmp_path)


def test_processes_where_nothing_can_be_forked(monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    asked = []
    known = multiprocessing.get_context
    monkeypatch.setattr(
        multiprocessing, "get_context", lambda method: asked.append(method) or known("spawn")
    )
    assert [square for square, _ in Processes(2)(squared, range(4))] == [0, 1, 4, 9]
    assert asked == [None]  # the system's own
