"""The hash in a report is that of the bytes that were written, as a shell finds it, too."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from pate_cli.cli.app import app
from pate_cli.core.errors import VoteError
from pate_cli.files.digest import Hashed, digest_of
from pate_cli.files.draft import Draft
from pate_cli.verbs.verify import verify


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
        asked = ["aggregate", votes, "--mechanism", "permute-and-flip", "--seed", 3, *words]
        done = CliRunner().invoke(app, [str(word) for word in asked], prog_name="pate")
        assert done.exit_code == 0, done.stderr
        return done

    return ran


def shell_hash(folder):
    """As the module's text tells a reader to find it."""
    command = ["sh", "-c", "LC_ALL=C sha256sum part-* | sha256sum"]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return found.stdout.split()[0]


def test_what_is_written_is_counted_and_hashed():
    file = io.BytesIO()
    hashed = Hashed(Draft(file.write))
    for piece in (b"", b"one", memoryview(b"two"), b"x" * 100_000):
        hashed.write(piece)
    content = file.getvalue()
    assert hashed.digest.sha256 == hashlib.sha256(content).hexdigest()
    assert (hashed.digest.size, hashed.digest.parts) == (len(content), None)


def hash_agrees(report, labels):
    """What verify says of the labels; of the noise it says that a seed made it."""
    found = verify(json.dumps(report).encode(), labels, with_dp_accounting=False)
    outcome = {check.name: check.outcome for check in found.checks}
    assert outcome["promise"] == "FAILED"
    return outcome["labels"] == "ok"


@pytest.mark.parametrize("suffix", ["parquet", "csv", "npy", "jsonl"])
def test_a_report_has_the_hash_of_its_file(run, suffix, tmp_path):
    path = tmp_path / f"labels.{suffix}"
    report = json.loads(run("-o", path).stdout)
    content = path.read_bytes()
    assert report["labels"] == {
        "format": suffix,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "parts": None,
    }
    assert hash_agrees(report, path)
    assert digest_of(path).sha256 == report["labels"]["sha256"]


def test_a_report_has_the_hash_of_labels_on_stdout(run):
    done = run("-o", "-", "--format", "csv", "--report", "report.json")
    labels = json.loads(Path("report.json").read_text())["labels"]
    assert labels["sha256"] == hashlib.sha256(done.stdout_bytes).hexdigest()
    assert labels["bytes"] == len(done.stdout_bytes)


def test_a_folder_of_parts_has_the_hash_that_a_shell_prints(run, tmp_path):
    report = json.loads(run("-o", "parts/", "--format", "csv").stdout)
    folder = tmp_path / "parts"
    parts = sorted(folder.glob("part-*"))
    printed = shell_hash(folder)
    assert report["labels"] == {
        "format": "csv",
        "bytes": sum(part.stat().st_size for part in parts),
        "sha256": printed,
        "parts": len(parts),
    }
    assert hash_agrees(report, folder)
    # What is no part has no say; a part that is missing or more has.
    (folder / "notes.txt").write_text("mine")
    assert digest_of(folder).sha256 == printed
    (folder / "part-00077.csv").write_bytes(parts[0].read_bytes())
    assert digest_of(folder).sha256 != printed
    assert not hash_agrees(report, folder)


def test_parts_are_taken_by_name_and_not_as_a_folder_lists_them(tmp_path):
    for number in (2, 0, 10, 1):
        (tmp_path / f"part-{number:05d}.npy").write_bytes(bytes([number]) * (number + 1))
    printed = shell_hash(tmp_path)
    found = digest_of(tmp_path)
    assert (found.sha256, found.size, found.parts) == (printed, 17, 4)


def test_what_cannot_be_hashed_is_named(tmp_path):
    with pytest.raises(VoteError, match=r"cannot read .*none"):
        digest_of(tmp_path / "none")
    with pytest.raises(VoteError, match="no parts of labels in this folder"):
        digest_of(tmp_path)
