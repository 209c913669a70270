"""What tests of several rooms share: golden figures, and the authors' votes where at hand."""

import json
import os
import signal
import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from pyarrow import fs

from pate_cli.mechanisms import gnmax
from slices import EVERY

# How long an example takes says nothing on a machine that is shared.
settings.register_profile("pate", deadline=None, max_examples=30 if EVERY else 15)
settings.load_profile("pate")

# Whoever runs the tests keeps a home that no test sees, nor any process that a test starts. The
# processes of one run share one that is empty; outside of tests, as fixtures of modules are, there
# is no state directory at all.
if "PATE_TESTS_HOME" not in os.environ:
    _home = tempfile.TemporaryDirectory(prefix="home-of-tests-")
    os.environ["PATE_TESTS_HOME"] = _home.name
os.environ["HOME"] = os.environ["PATE_TESTS_HOME"]
os.environ["XDG_STATE_HOME"] = os.devnull
os.environ.pop("PATE_HOME", None)

# Reports carry the time: two runs under one seed are compared byte by byte.
os.environ["SOURCE_DATE_EPOCH"] = "1519430400"

# Under nohup, and in the background of a shell, both may come ignored, which children inherit.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

TESTS = Path(__file__).resolve().parent


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory, monkeypatch):
    """What the user's state directory knows of records is of one test alone, and not at home."""
    monkeypatch.delenv("PATE_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    yield
    kept = Path(os.environ["PATE_TESTS_HOME"], ".local", "state")
    assert not kept.exists(), "the test wrote where its user keeps records"


def _once(cost):
    """A cost of scores, which is pure, found once a process for the same arguments."""

    @lru_cache(maxsize=500)
    def known(scores, shape, orders, noise):
        scores = np.frombuffer(scores).reshape(shape)
        return cost(scores, orders=np.frombuffer(orders), **dict(noise))

    def found(scores, *, orders, **noise):
        scores, orders = (np.asarray(given, dtype=np.float64) for given in (scores, orders))
        noise = tuple(noise.items())
        return known(scores.tobytes(), scores.shape, orders.tobytes(), noise).copy()

    return found


@pytest.fixture(scope="session", autouse=True)
def costs_once():
    """Mechanisms find their slowest cost once; tests of that cost itself call it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gnmax, "two_tail_rdp", _once(gnmax.two_tail_rdp))
        yield


@pytest.fixture(scope="session")
def golden():
    """Figures printed by the authors' analysis code."""
    return json.loads((TESTS / "golden" / "reference_values.json").read_text())


@pytest.fixture(scope="session")
def tight():
    """Figures of the tight analysis, computed independently."""
    return json.loads((TESTS / "golden" / "tight_values.json").read_text())


@pytest.fixture(scope="session")
def mnist_file():
    """The authors' MNIST votes: a file, or a skipped test."""
    file = Path(os.environ.get("VOTES") or TESTS.parent / "votes", "mnist_250_teachers.npy")
    if not file.exists():
        pytest.skip(f"{file.name} is not there: make votes, or make test VOTES=DIR")
    return file


@pytest.fixture(scope="session")
def mnist_votes(mnist_file):
    """The authors' MNIST votes, [9000, 10]."""
    return np.load(mnist_file, allow_pickle=False)


@pytest.fixture(scope="session")
def mnist_histograms(mnist_votes):
    """The 640 queries of Table 2, [640, 10]."""
    return mnist_votes[:640].astype(np.int64)


@pytest.fixture(scope="session")
def s3_server():
    """An S3-compatible server of this process, and a client of it."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    client = fs.S3FileSystem(
        endpoint_override=f"{host}:{port}",
        scheme="http",
        access_key="x",
        secret_key="y",  # noqa: S106 - any will do
        region="us-east-1",
        allow_bucket_creation=True,
    )
    yield f"endpoint_override={host}%3A{port}&scheme=http&region=us-east-1", client
    server.stop()
