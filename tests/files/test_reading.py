"""The hash in a report is that of the bytes that were written."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from pate_cli.cli.app import app
from pate_cli.core.errors import VoteError
from pate_cli.files.outputs import Outputs
from pate_cli.files.reading import digest_of
from pate_cli.verbs.signatures import verify


@pytest.fixture
def votes(tmp_path):
    path = tmp_path / "votes.npy"
    np.save(path, np.random.default_rng(1).multinomial(60, (0.8, 0.15, 0.05), size=3000))
    return path


@pytest.fixture
def run(votes, tmp_path, monkeypatch):
    """Run `pate aggregate` on these votes; the report."""
    monkeypatch.chdir(tmp_path)

    def ran(*words):
        asked = ["aggregate", votes, "--mechanism", "lnmax", "--seed", 3, *words]
        done = CliRunner().invoke(app, [str(word) for word in asked], prog_name="pate")
        assert done.exit_code == 0, done.stderr
        return done

    return ran


def test_what_is_written_is_counted_and_hashed_before_it_has_a_place(tmp_path):
    content = b"onetwo" + b"x" * (3 << 20)
    with Outputs() as out:
        out.reserve(tmp_path / "a")
        out.try_out({str(tmp_path / "a"): 1 << 24})
        with out.open(tmp_path / "a") as file:
            for piece in (b"", b"one", memoryview(b"two"), content[6:]):
                file.write(piece)
        found = out.digest(tmp_path / "a")
        assert not (tmp_path / "a").exists()
    assert found.sha256 == hashlib.sha256(content).hexdigest()
    assert found.size == len(content)
    assert (tmp_path / "a").read_bytes() == content


def hash_agrees(report, labels):
    """What verify says of the labels; of the noise it says that a seed made it."""
    found = verify(json.dumps(report).encode(), labels, with_dp_accounting=False)
    outcome = {check.name: check.outcome for check in found.checks}
    assert outcome["promise"] == "FAILED"
    return outcome["labels"] == "ok"


@pytest.mark.parametrize("suffix", ["parquet", "csv", "npy", "jsonl", "arrow"])
def test_a_report_has_the_hash_of_its_file(run, suffix, tmp_path):
    path = tmp_path / f"labels.{suffix}"
    report = json.loads(run("-o", path).stdout)
    content = path.read_bytes()
    assert report["labels"] == {
        "format": suffix,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    assert hash_agrees(report, path)
    assert digest_of(path).sha256 == report["labels"]["sha256"]


def test_what_cannot_be_hashed_is_named(tmp_path):
    with pytest.raises(VoteError, match=r"cannot read .*none"):
        digest_of(tmp_path / "none")
    with pytest.raises(VoteError, match=r"cannot read .*: Is a directory"):
        digest_of(tmp_path)
