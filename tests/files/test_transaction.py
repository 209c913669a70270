"""Outputs: what appears when all goes well, and what is refused before any work."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

import pytest

from pate_cli.core.errors import OutputError, PateError, UsageError
from pate_cli.files import destinations
from pate_cli.files.transaction import Outputs
from refusals import unreserved


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


# ---------------------------------------------------------------- when all goes well


@pytest.mark.parametrize("data", [b"abc", bytearray(b"abc"), memoryview(b"abc")])
def test_files_appear_only_on_leaving_the_block(tmp_path, data):
    with Outputs() as out:
        out.reserve(tmp_path / "a")
        out.reserve(str(tmp_path / "b"))
        out.write(str(tmp_path / "a"), data)
        out.write(tmp_path / "b", b"")
        assert not (tmp_path / "a").exists()
        assert not (tmp_path / "b").exists()
        assert out.released is False
    assert out.released is True
    assert names(tmp_path) == ["a", "b"]
    assert (tmp_path / "a").read_bytes() == b"abc"
    assert (tmp_path / "b").read_bytes() == b""
    assert (tmp_path / "a").stat().st_nlink == 1


def test_content_comes_piece_by_piece(tmp_path):
    path = tmp_path / "a"
    with Outputs() as out:
        out.reserve(path, mode=0o600)
        with out.open(path) as file:
            for piece in (b"one ", bytearray(b"two "), memoryview(b"three")):
                assert file.write(piece) == len(piece)
                assert not path.exists()
            (staged,) = tmp_path.iterdir()
            assert staged.read_bytes() == b"one two three"  # on its way to the disk at once
            assert mode_of(staged) == 0o600
        with pytest.raises(ValueError, match="closed"):
            file.write(b"x")
        assert not path.exists()
    assert path.read_bytes() == b"one two three"
    assert names(tmp_path) == ["a"]


def test_an_output_opened_twice_is_an_internal_error(tmp_path, fails):
    def body(out):
        out.reserve(tmp_path / "a")
        for _ in range(2):
            with out.open(tmp_path / "a") as file:
                file.write(b"x")

    error, _ = fails(PateError, body)
    assert re.search("was written already", str(error))
    assert names(tmp_path) == []


def test_a_file_and_its_labels_at_once(tmp_path):
    with Outputs() as out:
        for name in "ab":
            out.reserve(tmp_path / name)
        with out.open(tmp_path / "a") as first, out.open(tmp_path / "b") as second:
            second.write(b"2")
            first.write(b"1")
    assert [(tmp_path / name).read_bytes() for name in "ab"] == [b"1", b"2"]


def test_a_bare_name_is_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Outputs() as out:
        out.reserve("labels.csv")
        out.write("labels.csv", b"x")
    assert names(tmp_path) == ["labels.csv"]


def test_the_longest_name_a_folder_takes(tmp_path):
    name = "n" * os.pathconf(tmp_path, "PC_NAME_MAX")
    with Outputs() as out:
        out.reserve(tmp_path / name)
        out.write(tmp_path / name, b"x")
    assert names(tmp_path) == [name]


def test_a_reserved_output_that_is_never_written_does_not_appear(tmp_path):
    with Outputs() as out:
        out.reserve(tmp_path / "a")
        assert names(tmp_path) == []
    assert names(tmp_path) == []
    assert out.released is False


def test_content_and_folder_reach_the_disk_in_order(tmp_path, monkeypatch):
    synced = []
    real = os.fsync

    def fsync(descriptor):
        found = os.fstat(descriptor)
        synced.append(("folder" if stat.S_ISDIR(found.st_mode) else "file", names(tmp_path)))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with Outputs() as out:
        for name in ("a", "b"):
            out.reserve(tmp_path / name)
            out.write(tmp_path / name, b"x")
    assert [kind for kind, _ in synced] == ["file", "file", "folder"]
    assert synced[-1][1] == ["a", "b"]


def test_files_appear_in_the_order_of_reservation(tmp_path, monkeypatch):
    placed = []
    real = destinations.File.place

    def place(self, *, force):
        placed.append(self.name)
        real(self, force=force)

    monkeypatch.setattr(destinations.File, "place", place)
    monkeypatch.chdir(tmp_path)
    with Outputs() as out:
        out.reserve("ledger")
        out.reserve("labels")
        out.write("labels", b"2")
        out.write("ledger", b"1")
    assert placed == ["ledger", "labels"]


# ---------------------------------------------------------------- permissions


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("mask", "mode", "expected"),
    [
        (0o022, 0o644, 0o644),
        (0o077, 0o644, 0o600),
        (0o000, 0o600, 0o600),
        (0o000, 0o644, 0o644),
        (0o027, 0o644, 0o640),
    ],
)
def test_mode_bits_are_the_wish_less_the_umask(tmp_path, umask, mask, mode, expected, force):
    umask(mask)
    path = tmp_path / "out"
    with Outputs(force=force) as out:
        out.reserve(path, mode=mode)
        out.write(path, b"x")
        (temporary,) = tmp_path.iterdir()
        assert mode_of(temporary) == 0o600
    assert mode_of(path) == expected


def test_a_secret_is_secret_from_the_first_instant(tmp_path, umask, monkeypatch):
    umask(0o000)
    seen = []
    real = os.open

    def spy(path, flags, mode=0o777, **rest):
        descriptor = real(path, flags, mode, **rest)
        if flags & os.O_CREAT:
            assert flags & os.O_EXCL
            seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return descriptor

    monkeypatch.setattr(os, "open", spy)
    with Outputs() as out:
        out.reserve(tmp_path / "ledger", mode=0o600)
        out.write(tmp_path / "ledger", b"secret")
    assert seen
    assert set(seen) == {0o600}


def test_replacing_a_readable_file_by_a_secret_hides_it(tmp_path, umask):
    path = tmp_path / "ledger"
    path.write_bytes(b"old")
    path.chmod(0o644)
    with Outputs(force=True) as out:
        out.reserve(path, mode=0o600)
        out.write(path, b"new")
    assert mode_of(path) == 0o600
    assert path.read_bytes() == b"new"


# ---------------------------------------------------------------- refused at reservation


def test_an_existing_file_is_refused_without_force(tmp_path, fails):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    assert unreserved(fails, path) == f"{path} exists already; use `force` to replace it"
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_an_existing_file_is_replaced_with_force(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with Outputs(force=True) as out:
        out.reserve(path)
        out.write(path, b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_is_refused(tmp_path, force, fails):
    text = f"cannot write {tmp_path}: it is a folder; name a file in it"
    assert unreserved(fails, tmp_path, force=force) == text
    slashed = f"{tmp_path}/new/"
    assert unreserved(fails, slashed, force=force) == (
        f"cannot write {slashed}: it is a folder; name a file in it"
    )


def test_a_missing_folder_is_refused(tmp_path, fails):
    path = tmp_path / "missing" / "a"
    assert (
        unreserved(fails, path) == f"cannot write {path}: there is no folder {tmp_path / 'missing'}"
    )


def test_a_file_where_a_folder_should_be_is_refused(tmp_path, fails):
    (tmp_path / "file").write_bytes(b"")
    path = tmp_path / "file" / "a"
    assert unreserved(fails, path) == f"cannot write {path}: there is no folder {tmp_path / 'file'}"


def test_a_read_only_folder_is_refused(tmp_path, fails):
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o555)
    if os.access(folder, os.W_OK):
        pytest.skip("this user may write in read-only folders")
    path = folder / "a"
    assert unreserved(fails, path) == (
        f"cannot write {path}: no file can be made in {folder} (Permission denied)"
    )


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EDQUOT])
def test_a_folder_that_takes_no_files_is_refused(tmp_path, monkeypatch, number, fails):
    def refuse(*_args, **_rest):
        raise OSError(number, os.strerror(number))

    path = tmp_path / "a"
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        text = unreserved(fails, path)
    reason = os.strerror(number)
    assert text == f"cannot write {path}: no file can be made in {tmp_path} ({reason})"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no /proc")
def test_a_folder_that_nobody_may_write_in_is_refused(fails):
    assert unreserved(fails, "/proc/labels.csv").startswith(
        "cannot write /proc/labels.csv: no file can be made in /proc ("
    )


def test_a_name_too_long_is_refused(tmp_path, fails):
    path = tmp_path / ("n" * 300)
    assert unreserved(fails, path) == f"cannot write {path}: File name too long"
    shown = unreserved(fails, tmp_path / ("n" * 5000))
    assert shown.endswith("nnn: File name too long")
    assert len(shown) <= 600


def test_an_empty_name_is_refused(fails):
    assert unreserved(fails, "", UsageError) == "an output needs a name; the path is empty"


def test_a_refusal_leaves_earlier_reservations_unwritten(tmp_path, fails):
    def body(out):
        out.reserve(tmp_path / "a")
        out.reserve(tmp_path / "missing" / "b")

    error, _ = fails(OutputError, body)
    assert re.search("there is no folder", str(error))
    assert names(tmp_path) == []


def test_a_refused_output_cannot_be_written_later(tmp_path, fails):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def body(out):
        with pytest.raises(OutputError):
            out.reserve(path)
        path.unlink()
        out.write(path, b"x")

    error, _ = fails(PateError, body)
    assert str(error) == f"internal error: output {path} was not reserved"
    assert names(tmp_path) == []


# ---------------------------------------------------------------- the same place twice


@pytest.mark.parametrize("other", ["a", "./a", "sub/../a", "absolute", "link"])
def test_the_same_path_twice_is_a_usage_error(tmp_path, monkeypatch, fails, other):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("a")
    other = str(tmp_path / "a") if other == "absolute" else other

    def body(out):
        out.reserve("a")
        out.reserve(other)

    error, _ = fails(UsageError, body)
    assert str(error) == f"two outputs go to the same place, {other}; give each its own"
    assert error.exit_code == 2


@pytest.mark.parametrize("other", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_twice_is_a_usage_error(other, fails):
    def body(out):
        out.reserve("-")
        out.reserve(other)

    error, _ = fails(UsageError, body)
    assert re.search("two outputs go to the same place", str(error))


def test_the_null_device_may_be_named_twice():
    with Outputs() as out:
        out.reserve(os.devnull)
        out.reserve(os.devnull)
        out.write(os.devnull, b"a")
        out.write(os.devnull, b"b")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_writing_what_was_not_reserved_or_twice_is_an_internal_error(tmp_path, fails):
    def body(out):
        out.write("x", b"")

    error, _ = fails(PateError, body)
    assert re.search("output x was not reserved", str(error))
    assert error.exit_code == 1

    def body(out):
        out.reserve(tmp_path / "a")
        out.write(tmp_path / "a", b"1")
        out.write(tmp_path / "a", b"2")

    error, _ = fails(PateError, body)
    assert re.search("was written already", str(error))
    assert names(tmp_path) == []
