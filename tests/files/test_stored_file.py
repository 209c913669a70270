"""Files on a store: written aside, moved at the commit, and nothing left behind when it fails."""

from __future__ import annotations

import secrets

import pytest
from pyarrow import fs

from ended import ended_owner
from pate_cli.core.errors import OutputError, UsageError
from pate_cli.files import destinations
from pate_cli.files.transaction import Outputs
from refusals import refusal
from slices import some


@pytest.fixture(params=["s3", "folders"])
def store(request, tmp_path, monkeypatch):
    """An address in a new place, and what lies there: a bucket, or a filesystem with folders."""
    if request.param == "s3":
        query, client = request.getfixturevalue("s3_server")
        base = f"b{secrets.token_hex(8)}"
        client.create_dir(base)
    else:
        query, base = "x=1", "in"
        client = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
        client.create_dir(base)
        monkeypatch.setattr(
            destinations,
            "filesystem_of",
            lambda uri: (client, uri.partition("@")[2].partition("?")[0]),
        )

    def held():
        found = client.get_file_info(fs.FileSelector(base, recursive=True))
        return {
            info.path.removeprefix(f"{base}/"): client.open_input_file(info.path).read()
            for info in found
            if info.is_file
        }

    def put(name, data):
        with client.open_output_stream(f"{base}/{name}") as file:
            file.write(data)

    return lambda name: f"s3://x:sesame@{base}/{name}?{query}", held, put


def write(*names, force=False, data=b"new", fail=None):
    with Outputs(force=force) as out:
        for name in names:
            out.reserve(name)
        for name in names:
            out.write(name, data)
        if fail is not None:
            raise fail


def test_content_comes_at_the_commit(store):
    address, held, _ = store
    with Outputs() as out:
        out.reserve(address("l.csv"))
        assert held() == {}
        with out.open(address("l.csv")) as file:
            for _ in range(3):
                file.write(b"x" * (1 << 20))
        ((name, content),) = held().items()
        assert name.startswith(".pate-")
        assert len(content) == 3 << 20
    assert list(held()) == ["l.csv"]


def test_what_killed_runs_have_left_is_swept(store):
    address, held, put = store
    with Outputs() as living:
        living.reserve(address("l.csv"))
        living.write(address("l.csv"), b"new")
        (draft,) = held()
        folder, _, _ = draft.partition("/")
        assert folder == ".pate-unfinished-l.csv"
        put(f"{folder}/{ended_owner()}", b"left")
        put(f".pate-replaced-l.csv-{ended_owner()}", b"old")  # the only copy there may be
        with Outputs() as other:
            other.reserve(address("l.csv"))
        assert set(held().values()) == {b"new", b"old"}
    assert set(held().values()) == {b"new", b"old"}
    assert "l.csv" in held()


@pytest.mark.parametrize("fail", some([ValueError("mine"), KeyboardInterrupt()], 2))
@pytest.mark.parametrize("force", [False, True])
def test_nothing_is_left_of_what_fails(fail, force, store):
    address, held, put = store
    if force:
        put("l.csv", b"old")
    with pytest.raises(type(fail)):
        write(address("l.csv"), force=force, fail=fail)
    assert held() == ({"l.csv": b"old"} if force else {})


def test_what_is_there_stays_unless_told(store):
    address, held, put = store
    put("l.csv", b"old")
    shown = address("l.csv").replace("x:sesame@", "").partition("?")[0]
    message = refusal(OutputError, write, address("l.csv"))
    assert message == f"{shown} exists already; use `force` to replace it"
    write(address("l.csv"), force=True)
    assert held() == {"l.csv": b"new"}
    with pytest.raises(OutputError, match="it is a folder; name a file in it"):
        write(address("l.csv").replace("/l.csv", ""))
    two = refusal(UsageError, write, address("a"), address("a").replace("sesame", "other"))
    assert two.startswith("two outputs go to the same place, s3://")
    assert "sesame" not in two + message
    assert held() == {"l.csv": b"new"}


def test_what_appears_during_the_run_stays(store):
    address, held, put = store

    def run():
        with Outputs() as out:
            out.reserve(address("l.csv"))
            out.write(address("l.csv"), b"new")
            put("l.csv", b"theirs")

    message = refusal(OutputError, run)
    assert message.endswith(
        "l.csv: it appeared during the run; use `force` to replace it; nothing was released"
    )
    assert held() == {"l.csv": b"theirs"}


@pytest.mark.parametrize("force", some([False, True], 2))
def test_a_later_output_that_fails_takes_the_earlier_back(force, store, tmp_path, monkeypatch):
    address, held, put = store
    if force:
        put("l.csv", b"old")

    def broken(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(destinations.File, "place", broken)
    report = str(tmp_path / "report.json")
    with pytest.raises(OutputError, match="No space left on device; nothing was released"):
        write(address("l.csv"), report, force=force)
    assert held() == ({"l.csv": b"old"} if force else {})


def test_a_store_that_fails_is_one_line(store, monkeypatch):
    address, held, _ = store
    with pytest.raises(OutputError) as caught, Outputs() as out:  # noqa: PT012
        out.reserve(address("l.csv"))
        out._files[address("l.csv")]._path += "/no/place"

        def broken(*_, **__):
            raise OSError("AWS Error ACCESS_DENIED\nmore")

        monkeypatch.setattr("pate_cli.files.stored_file.StoredFile._put", broken)
        out.write(address("l.csv"), b"new")
    assert str(caught.value).endswith(
        "l.csv: it cannot be reached: AWS Error ACCESS_DENIED; nothing was released"
    )
    assert "sesame" not in str(caught.value)
    assert held() == {}


@pytest.mark.parametrize("name", ["s3://k:sesame@b/l.json", "s3:/b/l.json", "gs://b/l"])
def test_secrets_stay_on_disk(name):
    with pytest.raises(UsageError) as caught, Outputs() as out:
        out.reserve(name, mode=0o600)
    shown = {"s3://k:sesame@b/l.json": "s3://b/l.json", "s3:/b/l.json": "s3://b/l.json"}
    assert str(caught.value) == (
        f"{shown.get(name, name)} must be on disk: an object store has no file mode, which keeps a "
        "secret; name a path"
    )


def test_an_address_of_this_disk_is_a_file(tmp_path):
    path = tmp_path / "secret.json"
    with Outputs() as out:
        out.reserve(path.as_uri(), mode=0o600)
        out.write(path.as_uri(), b"new")
    assert path.stat().st_mode & 0o777 == 0o600
    assert refusal(UsageError, write, path.as_uri(), str(path), force=True).startswith("two output")
