"""Bytes changed at random give votes or a VoteError, never another exception."""

from __future__ import annotations

import bz2
import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from pate_cli.errors import VoteError
from pate_cli.votes import open_votes
from pate_cli.votes.beside.side_files import read_side


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


MARK = 4_711_000
"""Votes of these files are this and a little more, so that a message that shows one is noticed."""


def in_zstd(data):
    return pa.compress(data, "zstd", asbytes=True)


def content(kind, votes):
    names = [f"class_{c}" for c in range(votes.shape[1])]
    if kind == "csv":
        rows = [f"q{row}," + ",".join(map(str, line)) for row, line in enumerate(votes)]
        return "\n".join([",".join(["query_id", *names]), *rows]).encode()
    if kind == "lists":
        rows = [{"query_id": f"q{row}", "counts": line.tolist()} for row, line in enumerate(votes)]
        return "\n".join(map(json.dumps, rows)).encode()
    if kind == "objects":
        rows = [dict(zip(names, line.tolist(), strict=True)) for line in votes]
        return "\n".join(map(json.dumps, rows)).encode()
    file = io.BytesIO()
    table = pa.table({name: votes[:, c] for c, name in enumerate(names)})
    if kind in ("arrow", "feather"):
        pyarrow.feather.write_feather(table, file, compression={"arrow": "uncompressed"}.get(kind))
    elif kind == "stream":
        table = table.append_column("query_id", pa.array(map(str, range(len(votes)))))
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=16)
    elif kind == "npz":
        np.savez(file, votes)
    elif kind == "compressed":
        np.savez_compressed(file, votes)
    else:
        packers = {"gzip": gzip.compress, "bzip2": bz2.compress, "zstd": in_zstd}
        return packers[kind](content("csv", votes))
    return file.getvalue()


@pytest.mark.parametrize(
    "kind",
    [
        "csv",
        "lists",
        "objects",
        "arrow",
        "feather",
        "stream",
        "npz",
        "compressed",
        "gzip",
        "zstd",
        "bzip2",
    ],
)
def test_random_damage_of_what_is_converted(kind, tmp_path):
    """No other exception, and no vote in what is said: structure is struck as often as values."""
    rng = np.random.default_rng(11)
    votes = MARK + rng.integers(0, 9, size=(30, 3))
    votes[:, 2] = 3 * MARK + 20 - votes[:, :2].sum(axis=1)
    whole = content(kind, votes)
    path = tmp_path / "v"
    messages = []
    for turn in range(80):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), size=1 + turn % 3):
            step = rng.integers(0, 4)
            if step == 0:
                damaged[place] = rng.integers(0, 256)
            elif step == 1:
                del damaged[place : place + rng.integers(1, 9)]
                damaged += bytes(max(len(whole) - len(damaged), 0))
            elif step == 2:
                damaged[place] = rng.choice(list(b'",;{}[]\n\r\t :-e.0'))
            else:
                damaged[place:place] = damaged[place // 2 : place]
        path.write_bytes(
            bytes(damaged[: rng.integers(1, len(damaged))] if turn % 7 == 0 else damaged)
        )
        try:
            with open_votes(path, layout="counts") as opened:
                list(opened.batches())
        except VoteError as error:
            messages.append(str(error))
    assert len(messages) > 40
    assert not [text for text in messages if "\n" in text or "4711" in text]


def test_brackets_without_end_are_refused(tmp_path):
    """Each takes stack in the parser, which would end the process and not raise anything."""
    for start in (b'{"a":', b'{"a":1}\n{"a":'):
        for inner in (b"[" * 300_000, b'{"a":' * 300_000, b"[" * 300_000 + b"]" * 300_000 + b"}"):
            path = tmp_path / "v.jsonl"
            path.write_bytes(start + inner + b"\n")
            with pytest.raises(VoteError, match=r"row [01] is no JSON object"), open_votes(path):
                pass


def test_what_is_packed_too_often_is_refused(tmp_path):
    path = tmp_path / "v.csv"
    packed = b"class_0,class_1\n1,2\n"
    for _ in range(3):
        packed = gzip.compress(packed)
    path.write_bytes(packed)
    with open_votes(path, layout="counts") as votes:
        assert votes.queries == 1
    path.write_bytes(gzip.compress(packed))
    with pytest.raises(VoteError, match="is packed more than 3 times"), open_votes(path):
        pass


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
@pytest.mark.parametrize("kind", ["counts", "lists"])
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
