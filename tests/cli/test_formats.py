"""Votes in text on the command line: by whatever name their queries go, with what lies beside."""

from __future__ import annotations

import pytest

from pate_cli.files.addresses import stem_of


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
