"""Names that follow from addresses, and the hash of what was written."""

import hashlib

import pytest

from pate_cli.core.errors import VoteError
from pate_cli.files.addresses import digest_of, stem_of
from pate_cli.files.outputs import Outputs


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


def test_what_cannot_be_hashed_is_named(tmp_path):
    with pytest.raises(VoteError, match=r"cannot read .*none"):
        digest_of(tmp_path / "none")
    with pytest.raises(VoteError, match=r"cannot read .*: Is a directory"):
        digest_of(tmp_path)


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
