"""Bytes changed at random give votes or a VoteError, never another exception."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pate_cli.errors import VoteError
from pate_cli.votes import open_votes


def write(kind, path, counts):
    if kind == "npy":
        with path.open("wb") as file:
            np.save(file, counts)
    elif kind == "wide":
        names = pa.array([f"q{row}" for row in range(len(counts))])
        columns = {f"class_{c}": counts[:, c] for c in range(counts.shape[1])}
        pq.write_table(pa.table({"query_id": names, **columns}), path)
    elif kind == "list":
        pq.write_table(pa.table({"counts": counts.tolist()}), path)
    else:
        votes = np.arange(100)
        columns = {"query_id": votes // 5, "teacher_id": votes % 5, "label": votes % 3}
        pq.write_table(pa.table(columns), path)


@pytest.mark.parametrize("kind", ["npy", "wide", "list", "long"])
def test_random_damage(kind, tmp_path, histograms):
    rng = np.random.default_rng(7)
    path = tmp_path / "v"
    write(kind, path, histograms)
    whole = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    refused = 0
    for _ in range(150):
        damaged = whole.copy()
        # Most of the damage goes where the structure is: the head of NPY, the foot of Parquet.
        near = rng.integers(0, min(400, len(whole) - 8), size=2)
        places = near + 6 if kind == "npy" else len(whole) - 1 - near
        damaged[[*places, rng.integers(6, len(whole))]] = rng.integers(0, 256, size=3)
        path.write_bytes(damaged.tobytes())
        try:
            with open_votes(path) as votes:
                list(votes.batches())
        except VoteError:
            refused += 1
    assert refused > 75
