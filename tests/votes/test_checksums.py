"""What checksums tell of damage: a bit that is changed under one changes no vote.

Damage of every other kind is for tests/fuzz.
"""

from __future__ import annotations

import bz2
import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pate_cli.core.errors import VoteError
from pate_cli.votes import open_votes
from pate_cli.votes.beside.side_files import read_side
from slices import some


def flipped(path, whole, rng, turns):
    """The file at `path` with one bit changed, another one each time; the ends among them."""
    places = [
        *range(0, len(whole), max(1, len(whole) // turns)),
        *range(len(whole) - 8, len(whole)),
    ]
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(0, 8))
        path.write_bytes(bytes(damaged))
        yield place


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("kind", some(["counts", "lists"], 2))
def test_a_flipped_bit_under_checksums_changes_no_vote(kind, version, tmp_path, histograms):
    """In pages it is always told. A footer has no checksum: it may name another column or id."""
    path = tmp_path / "v.parquet"
    table = pa.table(
        {"counts": histograms.tolist()}
        if kind == "lists"
        else {f"class_{c}": histograms[:, c] for c in range(histograms.shape[1])}
    )
    pq.write_table(table, path, data_page_version=version, write_page_checksum=True)
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    refused = same = 0
    for place in flipped(path, whole, np.random.default_rng(3), 120):
        try:
            with open_votes(path, layout="counts") as votes:
                found = np.concatenate([batch.counts for batch in votes.batches()])
        except VoteError:
            refused += 1
        else:
            same += 1
            if place < footer:
                assert np.array_equal(found, histograms), place
    assert refused > 60
    assert same > 0


def test_a_page_whose_checksum_fails_is_refused_everywhere(tmp_path, refusal, histograms):
    """Stored plainly, so that nothing but the checksum can tell: in votes, and beside them."""
    path = tmp_path / "v.parquet"
    table = pa.table({f"class_{c}": histograms[:, c] for c in range(histograms.shape[1])})
    options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(table, path, write_page_checksum=True, **options)
    pages = path.read_bytes()
    at = pages.index(histograms[:, 0].astype("<i8").tobytes()) + 8 * 5
    damaged = bytearray(pages)
    damaged[at] ^= 1
    path.write_bytes(bytes(damaged))
    assert refusal(path, layout="counts") == "v.parquet: the Parquet file is truncated or damaged"
    with pytest.raises(VoteError, match="a truncated or damaged Parquet file"):
        read_side(path, "predictions", what="the predictions")
    assert refusal(f"file://{path}", layout="counts").endswith("is truncated or damaged")


@pytest.mark.parametrize("kind", ["gzip", "zstd", "bzip2"])
def test_a_wrong_checksum_of_what_is_packed(kind, tmp_path, refusal):
    """Its last bytes say what the content must add up to."""
    text = b"class_0,class_1\n" + b"".join(b"%d,%d\n" % (n, 99 - n) for n in range(90))
    whole = bytearray(
        # The frame of pyarrow's zstd has no checksum, so one with it stands here as it is written.
        bz2.compress(text) if kind == "bzip2" else gzip.compress(text, mtime=0)
    )
    if kind == "zstd":
        block = bytes.fromhex("14a10000") + b"class_0,class_1\n1,2\n"
        path = tmp_path / "plain.csv"
        path.write_bytes(bytes.fromhex("28b52ffd00") + block)
        with open_votes(path, layout="counts") as votes:
            assert votes.queries == 1
        whole = bytearray(bytes.fromhex("28b52ffd04") + block + bytes(4))
    else:
        whole[-6 if kind == "gzip" else -3] ^= 4
    path = tmp_path / "v.csv"
    path.write_bytes(bytes(whole))
    assert refusal(path, layout="counts").endswith("is truncated or damaged")
