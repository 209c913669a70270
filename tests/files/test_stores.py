"""Outputs on a store: tried by a put and a delete, whole under their name, no secret among them."""

import secrets

import pytest
from pyarrow import fs

from pate_cli.core.errors import OutputError, UsageError
from pate_cli.files import outputs
from pate_cli.files.outputs import Outputs
from pate_cli.files.protected import beginning
from refusals import refusal

OLD = beginning(b"old")


@pytest.fixture(params=["s3", "folders"])
def store(request, tmp_path, monkeypatch):
    """Addresses on two kinds of stores, what lies there, and how to put something."""
    if request.param == "s3":
        query, client = request.getfixturevalue("s3_server")
        base = f"b{secrets.token_hex(8)}"
        client.create_dir(base)
    else:
        query, base = "x=1", "in"
        client = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
        client.create_dir(base)
        reached = lambda uri: (client, uri.partition("@")[2].partition("?")[0])  # noqa: E731
        monkeypatch.setattr(outputs, "filesystem_of", reached)

    def held():
        found = client.get_file_info(fs.FileSelector(base, recursive=True))
        files = [each.path for each in found if each.is_file]
        return {
            path.removeprefix(f"{base}/"): client.open_input_file(path).read() for path in files
        }

    def put(name, data):
        with client.open_output_stream(f"{base}/{name}") as file:
            file.write(data)

    return lambda name: f"s3://x:sesame@{base}/{name}?{query}", held, put


def write(*names, force=False, data=b"new", fail=None, **more):
    with Outputs(force=force) as out:
        for name in names:
            out.reserve(name, replaces=OLD, **more)
        for name in names:
            out.write(name, data)
        if fail is not None:
            raise fail


def test_content_is_there_whole_before_it_gets_its_name(store):
    address, held, _ = store
    with Outputs() as out:
        out.reserve(address("l.csv"))
        assert held() == {}
        with out.open(address("l.csv")) as file:
            for _ in range(3):
                file.write(b"x" * (1 << 20))
            assert held() == {}
        ((name, content),) = held().items()
        assert name.startswith(".pate-")
        assert len(content) == 3 << 20
    assert list(held()) == ["l.csv"]


@pytest.mark.parametrize("fail", [ValueError("mine"), KeyboardInterrupt()])
@pytest.mark.parametrize("force", [False, True])
def test_nothing_is_left_of_what_fails(fail, force, store):
    address, held, put = store
    if force:
        put("l.csv", b"old")
    with pytest.raises(type(fail)):
        write(address("l.csv"), force=force, fail=fail)
    assert held() == ({"l.csv": b"old"} if force else {})


def test_what_is_there_stays_unless_it_begins_alike_and_is_forced(store):
    address, held, put = store
    put("l.csv", b"old")
    put("v.csv", b"votes")
    shown = address("l.csv").replace("x:sesame@", "").partition("?")[0]
    message = refusal(OutputError, write, address("l.csv"))
    assert message == f"{shown} exists already; use `force` to replace it"
    write(address("l.csv"), force=True)
    assert "not even `force`" in refusal(UsageError, write, address("v.csv"), force=True)
    folder = refusal(OutputError, write, address("l.csv").replace("/l.csv", ""))
    assert "it is a folder; name a file in it" in folder
    two = refusal(UsageError, write, address("a"), address("a").replace("sesame", "other"))
    assert two.startswith("two outputs would be written to the same place, s3://")
    assert "sesame" not in two + message
    assert held() == {"l.csv": b"new", "v.csv": b"votes"}


def test_what_appears_during_the_run_stays_unless_it_is_of_the_same_run(store):
    address, held, put = store

    def run(theirs):
        with Outputs() as out:
            out.reserve(address("l.csv"), resumed=True)
            out.write(address("l.csv"), b"new")
            put("l.csv", theirs)

    message = refusal(OutputError, run, b"theirs")
    assert message.endswith("exists already; give the output another name; nothing was released")
    assert held() == {"l.csv": b"theirs"}
    run(b"new")
    assert held() == {"l.csv": b"new"}


@pytest.mark.parametrize("denied", ["delete_file", "open_output_stream"])
def test_a_store_that_denies_something_is_told_before_the_run(tmp_path, monkeypatch, denied):
    """Where nothing can be deleted, what was put to try it stays: its name says what it is."""
    local = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    class Denying:
        type_name = "s3"

        def __getattr__(self, name):
            def deny(*_, **__):
                raise OSError("AWS Error ACCESS_DENIED\nmore")

            return deny if name == denied else getattr(local, name)

    monkeypatch.setattr(outputs, "filesystem_of", lambda uri: (Denying(), "l.csv"))
    with Outputs() as out:
        out.reserve("s3://x:sesame@b/l.csv")
        denial = refusal(OutputError, out.try_out)
    assert denial == "cannot write s3://b/l.csv: AWS Error ACCESS_DENIED"
    left = [path.name for path in tmp_path.iterdir()]
    assert all(name.startswith(".pate-unfinished-") for name in left)
    assert len(left) == (denied == "delete_file")


@pytest.mark.parametrize("name", ["s3://k:sesame@b/l.json", "gs://b/l"])
def test_secrets_stay_on_disk(name):
    text = refusal(UsageError, write, name, mode=0o600)
    shown = name.replace("k:sesame@", "")
    assert text.startswith(f"{shown} must be on disk: an object store has no file mode")


def test_an_address_of_this_disk_is_a_file(tmp_path):
    path = tmp_path / "secret.json"
    write(path.as_uri(), data=b"old", mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    assert refusal(UsageError, write, path.as_uri(), str(path), force=True).startswith("two output")
