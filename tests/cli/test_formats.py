"""Votes in text on the command line: by whatever name their queries go, with what lies beside."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from pate_cli.files.addresses import stem_of

NOISE = ["--sigma1", 8, "--sigma2", 4, "--threshold", 20, "--seed", 3]


@pytest.mark.parametrize(
    ("source", "stem"),
    [
        ("a/votes.csv.gz", "votes"),
        ("votes.TSV", "votes"),
        ("votes.jsonl.zst", "votes"),
        ("v.1.feather", "v.1"),
        ("votes.npy.bz2", "votes"),
        ("votes.gz", "votes"),
        ("s3://k:s@b/round1.csv?region=eu", "round1"),
        ("s3://b/parts/*.csv", "votes"),
        ("s3://b/parts/", "parts"),
        ("notes.txt", "notes.txt"),
        (".csv", "votes"),
        ("-", "votes"),
    ],
)
def test_outputs_are_named_after_the_votes(source, stem):
    assert stem_of(source) == stem


@pytest.fixture
def images(counts, folder):
    """Votes in packed CSV whose queries are images."""
    names = [f"img{row:03d}" for row in range(len(counts))]
    lines = [f"{name}," + ",".join(map(str, row)) for name, row in zip(names, counts, strict=True)]
    head = "image," + ",".join(f"class_{j}" for j in range(counts.shape[1]))
    (folder / "v.csv.gz").write_bytes(gzip.compress("\n".join([head, *lines]).encode()))
    return names


def test_files_beside_the_votes_by_the_same_name(images, counts, pate, folder):
    """A student in another order, and in another format than the votes."""
    order = np.random.default_rng(2).permutation(len(images))
    sure = np.where(np.arange(4) == counts.argmax(axis=1)[:, np.newaxis], 0.97, 0.01)
    lines = [f"{images[row]}," + ",".join(map(str, sure[row])) for row in order]
    (folder / "student.csv").write_text("\n".join(["image,a,b,c,d", *lines]))
    by = ["v.csv.gz", "--id-column", "image"]
    asked = ["--mechanism", "interactive", "--student", "student.csv", "--confidence", 0.9]
    done = pate("aggregate", *by, *asked, "-o", "l.jsonl", "--report", "r.json", *NOISE)
    assert done.exit_code == 0, done.stderr
    rows = [json.loads(line) for line in Path("l.jsonl").read_text().splitlines()]
    by_student = [row["label"] for row in rows if row["source"] == "student"]
    wanted = [int(counts[k].argmax()) for k, row in enumerate(rows) if row["source"] == "student"]
    assert by_student == wanted
    assert len(by_student) > 20
