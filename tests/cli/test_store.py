"""Votes read from an object store and labels written to it, by this process and by others."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pate_cli import engine, passes

CLASSES, QUERIES = 4, 60
NOISE = ["--threshold", 10, "--sigma1", 4, "--sigma2", 2, "--seed", 3]


@pytest.fixture
def store(s3_server, tmp_path):
    """Names of votes and labels in a new bucket, its client, and the same votes on disk."""
    query, client = s3_server
    bucket = f"b{secrets.token_hex(8)}"
    client.create_dir(bucket)
    counts = np.random.default_rng(5).multinomial(20, [0.6, 0.2, 0.1, 0.1], size=QUERIES)
    (tmp_path / "parts").mkdir()
    for number, rows in enumerate(np.array_split(np.arange(QUERIES), 2)):
        columns = {f"class_{j}": counts[rows, j] for j in range(CLASSES)}
        table = pa.table({"query_id": rows, **columns})
        name = f"part-{number}.parquet"
        pq.write_table(table, tmp_path / "parts" / name)
        pq.write_table(table, f"{bucket}/votes/{name}", filesystem=client)

    def address(folder):
        return f"s3://x:sesame@{bucket}/{folder}?{query}"

    return address, client, bucket, tmp_path / "parts"


@pytest.mark.parametrize("cap", [15, QUERIES])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_store_gives_and_takes_what_a_disk_does(cap, elsewhere, store, pate, monkeypatch):
    address, client, bucket, parts = store
    monkeypatch.setattr(passes, "_ENTRIES", 10 * CLASSES)
    if elsewhere:
        monkeypatch.setattr(engine.Processes, "worth", 0)
    workers = ["--workers", 2 if elsewhere else 1, "--max-answers", cap, *NOISE]
    here = pate("aggregate", parts, "-o", "here.parquet", "--report", "here.json", *workers)
    assert here.exit_code == 0, here.stderr
    out = address("labels")
    there = pate("aggregate", address("votes"), "-o", out, "--report", "there.json", *workers)
    assert there.exit_code == 0, there.stderr
    labels = pq.read_table(f"{bucket}/labels", filesystem=client)
    assert labels.to_pylist() == pq.read_table("here.parquet").to_pylist()
    with client.open_input_file(f"{bucket}/labels/_SUCCESS") as file:
        assert json.loads(file.read())["rows"] == QUERIES
    reports = [json.loads(Path(f"{name}.json").read_text()) for name in ("here", "there")]
    assert reports[0]["epsilon"] == reports[1]["epsilon"]
    assert "sesame" not in there.stderr + Path("there.json").read_text()
    again = pate("aggregate", address("votes"), "-o", out, "--report", "2.json", *workers)
    assert again.exit_code == 6
    assert "sesame" not in again.stderr


def test_a_store_that_is_not_there_is_one_line(store, pate):
    address, *_ = store
    gone = address("votes").partition("?")[0] + "?endpoint_override=127.0.0.1%3A9&scheme=http"
    done = pate("aggregate", gone, "-o", "labels.csv", "--report", "report.json", *NOISE)
    assert done.exit_code == 3
    assert done.stderr.count("\n") == 1
    assert "cannot be reached" in done.stderr
    assert "sesame" not in done.stderr
