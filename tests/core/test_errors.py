"""What is left of an address when its credentials are taken out, alone and within a text."""

import time

import pytest

from pate_cli.core.errors import PateError, quoted, shortened, withheld, without_credentials

KEPT = [
    "labels.csv",
    "a folder/b@c.csv",
    "C:/x@y?z",
    "s3://bucket/labels@2/part-0.csv",
    "hdfs://name-node:8020/user/a@b/votes.npy",
    "s3://[::1]:9000/bucket",
    "file:///home/a@b/c.npy",
    "file:/home@b/c.npy",
    "tcp://127.0.0.1:8786",
    "https://arxiv.org/abs/1610.05755",
    "s3://",
]
TAKEN = {
    "s3://KEY:sesame@bucket/x.json": "s3://bucket/x.json",
    "s3://sesame@bucket/x.json": "s3://bucket/x.json",
    "s3://bucket/x.json?secret_key=sesame": "s3://bucket/x.json",
    "s3://bucket/x.json#sesame": "s3://bucket/x.json",
    "s3://KEY:sesame@bucket?secret_key=sesame": "s3://bucket",
    "s3:/KEY:sesame@bucket/x.json": "s3:/bucket/x.json",
    "/here/s3:/KEY:sesame@bucket/x.json": "/here/s3:/bucket/x.json",
    "@s3://KEY:sesame@bucket/x.json": "@s3://bucket/x.json",
    "s3://KEY:sesame/sesame@bucket/x.json": "s3://bucket/x.json",
    "s3://KEY:sesame?sesame@bucket/x.json": "s3://bucket/x.json",
    "s3://KEY:sesame@sesame/sesame@bucket/x.json": "s3://bucket/x.json",
    "s3://KEY:sesame": "s3://",
    "s3://KEY:sesame@[::1]:9000/x": "s3://[::1]:9000/x",
    "tls://user:sesame@127.0.0.1:8786": "tls://127.0.0.1:8786",
    "file:///home/votes.npy?key=sesame": "file:///home/votes.npy",
    "file://user:sesame@host/x": "file://host/x",
    "file:/user:sesame@host/x": "file:/host/x",
}


@pytest.mark.parametrize("name", KEPT)
def test_a_name_without_credentials_is_itself(name):
    assert without_credentials(name) == name
    assert withheld(f"cannot read {name}: it is gone") == f"cannot read {name}: it is gone"


@pytest.mark.parametrize(("name", "shown"), TAKEN.items())
def test_credentials_are_taken_out(name, shown):
    assert without_credentials(name) == shown
    for text in ("cannot read {}: it is gone", "no {!r}; name a path", "one ({}), and `{}`."):
        assert withheld(text.format(name, name)) == text.format(shown, shown)


def test_a_text_that_is_cut_short_and_a_name_with_blanks_are_looked_at_whole():
    assert without_credentials("s3://KEY:open sesame\n@bucket/x") == "s3://bucket/x"
    name = f"s3://KEY:{'sesame' * 20}@bucket/{'x' * 90}"
    assert "sesame" not in quoted(name)
    assert "sesame" not in str(PateError(f"{'x' * 390} {name} {'x' * 200}"))
    assert str(PateError("no s3://KEY:sesame@bucket/x")) == "no s3://bucket/x"


def test_a_long_text_takes_no_long_time():
    began = time.perf_counter()
    for text in ("a" * 1_000_000, "a:/" * 300_000, "s3://" * 200_000, "s3://a:b@c/ " * 80_000):
        without_credentials(text)
        withheld(text)
    assert time.perf_counter() - began < 10.0


def test_a_shortened_text_is_short_when_its_line_breaks_are_written_out():
    text = shortened("\n" * 500, 200)
    assert len(text) <= 200
    assert text.startswith("\\n\\n")
