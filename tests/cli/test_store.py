"""Votes read from an object store and labels written to it, by this process and by others."""

import json
import re
import secrets
from pathlib import Path
from urllib.parse import parse_qs
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import FileSelector

from pate_cli.run import fold
from slices import whole

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


def listed(address):
    """Every key in the bucket, also those of folders, which have no content."""
    bucket, _, query = address("").removeprefix("s3://x:sesame@").partition("/?")
    host = parse_qs(query)["endpoint_override"][0]
    with urlopen(f"http://{host}/{bucket}?list-type=2") as found:
        return re.findall("<Key>(.*?)</Key>", found.read().decode())


@pytest.mark.parametrize(
    ("votes", "workers", "cap"), [("votes", 2, QUERIES), ("vot*/*.parquet", 1, 15)]
)
def test_a_store_gives_and_takes_what_a_disk_does(votes, workers, cap, store, pate, monkeypatch):
    address, client, bucket, parts = store
    monkeypatch.setattr(fold, "_ENTRIES", 10 * CLASSES)
    monkeypatch.setattr(fold, "_WORTH", 0)
    words = ["--workers", workers, "--max-answers", cap, *NOISE]
    pate("aggregate", parts, "-o", "here.parquet", "--report", "here.json", *words, code=0)
    to = ["-o", address("labels.parquet"), "--report", address("report.json")]
    there = pate("aggregate", address(votes), *to, *words, code=0)
    assert f"labels in s3://{bucket}/labels.parquet" in there.stderr
    for name, local in (("labels.parquet", "here.parquet"), ("report.json", "here.json")):
        with client.open_input_file(f"{bucket}/{name}") as file:
            assert file.read() == Path(local).read_bytes()
    again = pate("aggregate", address(votes), *to, *words)
    there_already = f"s3://{bucket}/report.json exists already; use --force to replace it"
    assert (again.exit_code, again.stderr) == (6, f"pate: {there_already}\n")
    assert "sesame" not in there.stderr + Path("here.json").read_text()
    assert not [key for key in listed(address) if ".pate-" in key]


@whole  # the client tries again for six seconds
def test_a_store_that_is_not_there_is_one_line(store, pate):
    address, *_ = store
    gone = address("votes").partition("?")[0] + "?endpoint_override=127.0.0.1%3A9&scheme=http"
    done = pate("aggregate", gone, "-o", "labels.csv", "--report", "report.json", *NOISE, code=3)
    assert done.stderr.count("\n") == 1
    assert "cannot be reached" in done.stderr
    assert "sesame" not in done.stderr


@pytest.mark.parametrize(
    ("votes", "labels"),
    [
        ("votes/part-0.parquet", "votes/part-0.parquet"),
        ("votes", "votes/part-1.parquet"),
        ("*/part-*.parquet", "votes/part-1.parquet"),
    ],
)
def test_votes_on_a_store_are_never_replaced(votes, labels, store, pate):
    address, client, bucket, _ = store
    inside = FileSelector(bucket, recursive=True)

    def sizes():
        return {info.path: info.size for info in client.get_file_info(inside) if info.is_file}

    before = sizes()
    keys = listed(address)
    words = ["-o", address(labels), "--report", address("new/r.json"), "--force", *NOISE]
    done = pate("aggregate", address(votes), *words, code=2)
    assert "is not recognised as an earlier output of this kind, so not even --force" in done.stderr
    assert "sesame" not in done.stderr
    assert sizes() == before
    assert listed(address) == keys


@pytest.mark.parametrize("words", [["--max-epsilon", 0.01], ["--dry-run"], ["--classes", 7]])
def test_whoever_is_refused_leaves_no_empty_key(words, store, pate):
    address, *_ = store
    keys = listed(address)
    done = pate("aggregate", address("votes"), "-o", address("new/l.csv"), *NOISE, *words)
    assert (done.exit_code == 0) == (words == ["--dry-run"]), done.stderr
    assert listed(address) == keys


def test_a_report_on_a_store_is_explained_and_verified(store, pate):
    address, client, bucket, parts = store
    labels, report, guesses = map(address, ("l.csv", "r.json", "guesses.npy"))
    np.save("guesses.npy", np.zeros(QUERIES, dtype=int))
    with client.open_output_stream(f"{bucket}/guesses.npy") as file:
        file.write(Path("guesses.npy").read_bytes())
    words = ["--workers", 1, *NOISE[:-2], "--max-epsilon", 1000]
    words += ["--prior", guesses, "--prior-weight", 2]
    pate("aggregate", parts, "-o", labels, "--report", report, *words, code=0)
    told = pate("explain", report, code=0)
    with client.open_input_file(f"{bucket}/r.json") as file:
        assert json.loads(file.read())["labels"]["sha256"] in told.stdout
    checked = ["--without-dp-accounting", "--table"]
    found = pate("verify", report, labels, "--prior", guesses, *checked, code=0)
    for line in (
        "ok: labels: SHA-256 ",
        "ok: rows and answers of the labels: ",
        "ok: the file of the prior: SHA-256 ",
    ):
        assert f"\n{line}" in found.stdout
    gone = pate("verify", address("gone.json"), labels, *checked)
    assert (gone.exit_code, gone.stdout) == (3, "")
    assert gone.stderr == f"pate: s3://{bucket}/gone.json: no such file or folder\n"
    assert "sesame" not in told.stderr + found.stdout + found.stderr
