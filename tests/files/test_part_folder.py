"""Folders of parts: on disk, on an S3-compatible store, and on a store that has real folders."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import pickle
import secrets
import signal
import stat
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import fs

from ended import ended_owner, killed
from pate_cli.core.errors import OutputError, ParameterError, PateError, UsageError
from pate_cli.files import local_folder
from pate_cli.files import part_folder as part_folder_module
from pate_cli.files.owner import owned_name
from pate_cli.files.part_folder import Part, PartFolder
from pate_cli.files.part_names import MARKER
from pate_cli.files.unfinished import hidden_folders
from pate_cli.labels.labels import LabelFormat, Labels, LabelWriter
from pate_cli.votes.sources import files as vote_files
from slices import some

RUN, OTHER = "0a1b", "2c3d"
PLACES = ["disk", "s3", "folders"]


class Place:
    """A folder of parts, and the filesystem it is on to look at it from outside."""

    def __init__(self, folder, filesystem, path):
        self.folder, self.filesystem, self.path = folder, filesystem, path

    def all(self, path=None):
        """Every file below the parent of the folder, and what it holds."""
        top = (path or self.path).rpartition("/")[0]
        found = self.filesystem.get_file_info(
            fs.FileSelector(top, recursive=True, allow_not_found=True)
        )
        return {
            info.path.removeprefix(top + "/"): self.filesystem.open_input_file(info.path).read()
            for info in found
            if info.type == fs.FileType.File
        }

    def visible(self):
        """What a reader of the folder finds."""
        return {
            name.removeprefix("out/"): data
            for name, data in self.all().items()
            if name.startswith("out/") and "_pate-unfinished-" not in name
        }

    def put(self, name, data=b"old"):
        self.filesystem.create_dir(self.path)
        with self.filesystem.open_output_stream(f"{self.path}/{name}") as stream:
            stream.write(data)


@pytest.fixture
def disk(tmp_path):
    return Place(PartFolder(str(tmp_path / "out")), fs.LocalFileSystem(), str(tmp_path / "out"))


@pytest.fixture
def s3(s3_server):
    query, client = s3_server
    bucket = f"b{secrets.token_hex(8)}"
    client.create_dir(bucket)
    return Place(PartFolder(f"s3://x:y@{bucket}/in/out?{query}"), client, f"{bucket}/in/out")


@pytest.fixture
def folders(tmp_path, monkeypatch):
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(part_folder_module, "filesystem_of", lambda uri: (store, "in/out"))
    return Place(PartFolder("hdfs://user:secret@host/in/out"), store, "in/out")


@pytest.fixture(params=PLACES)
def place(request):
    return request.getfixturevalue(request.param)


def staged(folder, contents, run=RUN):
    parts = []
    for number, data in enumerate(contents):
        with folder.open_part(run, number, ".csv") as file:
            file.write(data[:1])
            file.write(memoryview(data)[1:])
        parts.append(file.part(rows=number + 1))
    return parts


def part_of(data, number, rows):
    digest = sha256(data).hexdigest()
    return Part(f"part-{number:05d}.csv", rows, len(data), digest)


# ---------------------------------------------------------------- when all goes well


def test_parts_appear_together_with_their_marker(place):
    place.folder.check()
    parts = staged(place.folder, [b"one", b"three"])
    assert parts == [part_of(b"one", 0, 1), part_of(b"three", 1, 2)]
    assert place.visible() == {}
    place.folder.commit(RUN, reversed(parts))
    found = place.all()
    assert {name: found[f"out/{name}"] for name in ("part-00000.csv", "part-00001.csv")} == {
        "part-00000.csv": b"one",
        "part-00001.csv": b"three",
    }
    assert json.loads(found[f"out/{MARKER}"]) == {
        "rows": 3,
        "parts": [
            {"name": part.name, "rows": part.rows, "bytes": part.size, "sha256": part.digest}
            for part in parts
        ],
    }
    assert len(found) == 3  # nothing hidden is left


def test_the_same_parts_give_the_same_marker(disk, s3):
    for place, run in ((disk, RUN), (s3, OTHER)):
        place.folder.commit(run, staged(place.folder, [b"a", b"b"], run))
    assert disk.all()[f"out/{MARKER}"] == s3.all()[f"out/{MARKER}"]


def test_readers_pass_over_what_is_not_committed(place):
    def table(number):
        return Labels(np.array([number]), np.array([number]), np.zeros(1, np.uint8))

    def written(run, number):
        with (
            place.folder.open_part(run, number, ".parquet") as file,
            LabelWriter(file, LabelFormat.PARQUET, {}) as writer,
        ):
            writer.write(table(number))
        return file.part(rows=1)

    place.folder.commit(RUN, [written(RUN, number) for number in range(3)])
    written(OTHER, 7)
    read = ds.dataset(place.path, filesystem=place.filesystem, format="parquet").to_table()
    assert read.column("query_id").to_pylist() == [0, 1, 2]
    places = vote_files._walked(
        "out", (), lambda _: vote_files.listing(place.filesystem, place.path), ()
    )
    assert places == [(f"part-0000{number}.parquet",) for number in range(3)]


def write_part(folder, number, data):
    with folder.open_part(RUN, number, ".csv") as file:
        file.write(data)
    return file.part(rows=1)


def test_parts_are_written_in_other_processes(disk):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        parts = pool.starmap(write_part, [(disk.folder, n, b"%d" % n) for n in range(3)])
    disk.folder.commit(RUN, parts)
    assert {name: disk.visible()[name] for name in ("part-00000.csv", "part-00002.csv")} == {
        "part-00000.csv": b"0",
        "part-00002.csv": b"2",
    }


def test_a_folder_travels(place):
    assert pickle.loads(pickle.dumps(place.folder)) == place.folder  # noqa: S301 - our own


def test_a_part_larger_than_what_is_held_in_memory(place):
    data = os.urandom(5 << 20)
    place.folder.commit(RUN, staged(place.folder, [data]))
    assert place.visible()["part-00000.csv"] == data


def test_an_empty_folder_is_filled(place):
    place.filesystem.create_dir(place.path)
    place.folder.check()
    place.folder.commit(RUN, staged(place.folder, [b"x"]))
    assert set(place.visible()) == {"part-00000.csv", MARKER}


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_what_is_staged_is_private_and_what_is_committed_follows_the_umask(disk, umask, mask):
    umask(mask)
    out = Path(disk.path)
    parts = staged(disk.folder, [b"x"])
    (hidden,) = out.parent.iterdir()
    assert hidden.name == f".pate-unfinished-out-{RUN}.tmp"
    assert stat.S_IMODE(hidden.stat().st_mode) == 0o700
    disk.folder.commit(RUN, parts)
    assert stat.S_IMODE(out.stat().st_mode) == 0o777 & ~mask
    for path in out.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o644 & ~mask


def test_a_link_stays_and_its_folder_is_filled(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    folder = PartFolder(tmp_path / "link")
    folder.check()
    folder.commit(RUN, staged(folder, [b"x"]))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "part-00000.csv").read_bytes() == b"x"


def test_an_address_of_a_local_folder(tmp_path):
    folder = PartFolder((tmp_path / "out").as_uri())
    folder.check()
    folder.commit(RUN, staged(folder, [b"x"]))
    assert (tmp_path / "out" / "part-00000.csv").read_bytes() == b"x"


# ---------------------------------------------------------------- written twice


def test_a_part_written_again_is_replaced(place):
    staged(place.folder, [b"long and wrong"])
    parts = staged(place.folder, [b"right"])
    place.folder.commit(RUN, parts)
    assert place.visible()["part-00000.csv"] == b"right"


def test_a_part_is_held_where_every_byte_of_it_is_there(place):
    whole, missing = staged(place.folder, [b"12345", b"1"])
    assert place.folder.holds(RUN, whole)
    assert not place.folder.holds(OTHER, whole)
    for other in (b"12344", b"1234", b"123456", b""):
        staged(place.folder, [other])
        assert not place.folder.holds(RUN, whole)
    place.folder.abort(RUN)
    assert not place.folder.holds(RUN, missing)


def test_two_writers_of_one_part(place):
    with (
        place.folder.open_part(RUN, 0, ".csv") as first,
        place.folder.open_part(RUN, 0, ".csv") as second,
    ):
        first.write(b"sa")
        second.write(b"same")
        first.write(b"me")
    assert first.part(rows=1) == second.part(rows=1)
    place.folder.commit(RUN, [first.part(rows=1)])
    assert place.visible()["part-00000.csv"] == b"same"


def test_two_runs_do_not_meet(place):
    mine, theirs = staged(place.folder, [b"m"]), staged(place.folder, [b"t"], OTHER)
    place.folder.abort(OTHER)
    place.folder.commit(RUN, mine)
    with pytest.raises(OutputError, match=r"part-00000\.csv is missing"):
        place.folder.commit(OTHER, theirs, force=True)
    assert place.visible()["part-00000.csv"] == b"m"


def test_the_second_run_to_finish_is_refused(place):
    first, second = staged(place.folder, [b"1"]), staged(place.folder, [b"2"], OTHER)
    place.folder.commit(RUN, first)
    with pytest.raises(OutputError, match="exists already and is not empty"):
        place.folder.commit(OTHER, second)
    place.folder.abort(OTHER)
    assert place.visible()["part-00000.csv"] == b"1"
    assert len(place.all()) == 2


# ---------------------------------------------------------------- refused at once


def test_a_folder_that_holds_something_is_refused_without_force(place):
    place.put("part-00000.csv")
    with pytest.raises(OutputError) as caught:
        place.folder.check()
    assert str(caught.value) == (
        f"{place.folder.name} exists already and is not empty; use `force` to replace it"
    )
    place.folder.check(force=True)
    assert place.visible() == {"part-00000.csv": b"old"}


@pytest.mark.parametrize("name", ["notes.md", "part-1.csv", "part-00000.csv/inner"])
def test_what_is_no_part_is_never_replaced(place, name):
    place.put("part-00001.csv")
    if "/" in name:
        place.filesystem.create_dir(f"{place.path}/{name.partition('/')[0]}")
    place.put(name)
    with pytest.raises(OutputError, match="is no part and would be lost; name another folder"):
        place.folder.check(force=True)
    parts = staged(place.folder, [b"new"])
    with pytest.raises(OutputError, match="is no part and would be lost"):
        place.folder.commit(RUN, parts, force=True)
    assert place.visible() == {"part-00001.csv": b"old", name: b"old"}


def test_a_file_is_no_folder(place):
    parent = place.path.rpartition("/")[0]
    place.filesystem.create_dir(parent)
    with place.filesystem.open_output_stream(place.path) as stream:
        stream.write(b"x")
    with pytest.raises(OutputError, match="it is a file; name a folder"):
        place.folder.check(force=True)


def test_what_a_check_leaves_behind(place):
    for _ in range(2):
        place.folder.check()
        place.folder.try_out()
    assert place.all() == {}


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    missing = tmp_path / "missing"
    with pytest.raises(OutputError) as caught:
        PartFolder(missing / "out").check()
    assert str(caught.value) == f"cannot write {missing / 'out'}: there is no folder {missing}"
    with pytest.raises(OutputError, match="a disk is mounted there"):
        PartFolder("/proc").check()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OutputError, match=r"cannot write .*loop: "):
        PartFolder(tmp_path / "loop").check()
    with pytest.raises(OutputError, match=r"no folder can be made in .* \(File name too long\)"):
        PartFolder(tmp_path / ("n" * 250)).check()

    def refuse(*_args, **_rest):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(OutputError) as caught:
        PartFolder(tmp_path / "out").check()
    assert str(caught.value) == (
        f"cannot write {tmp_path / 'out'}: no folder can be made in {tmp_path} (Permission denied)"
    )


def test_stores_that_cannot_be_reached(s3_server):
    query, _ = s3_server
    with pytest.raises(OutputError, match=r"^s3://none/out: cannot be reached: .*NO_SUCH"):
        PartFolder(f"s3://user:secret@none/out?{query}").try_out()
    with pytest.raises(OutputError) as caught:
        PartFolder("foo://user:secret@host/out").check()
    assert str(caught.value) == "foo://host/out: no filesystem is known for this address"


def test_names_that_are_none(disk):
    with pytest.raises(UsageError, match="the path is empty"):
        PartFolder("")
    for number, suffix in ((-1, ".csv"), (100_000, ".csv"), (0, ""), (0, "/../x"), (0, ".CSV")):
        with (
            pytest.raises(ParameterError, match="is no name of a part"),
            disk.folder.open_part(RUN, number, suffix),
        ):
            pass
    for run in ("", "../x", "A", "a.b"):
        with pytest.raises(ParameterError, match="a run is named by digits and small letters"):
            disk.folder.abort(run)
    with pytest.raises(ParameterError, match="is no part of a folder"):
        Part("notes.md", 1, 1, "")
    assert disk.all() == {}


# ---------------------------------------------------------------- when things go wrong


def given_up(folder, data, error):
    with folder.open_part(RUN, 0, ".csv") as file:
        file.write(data)
        raise error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError])
def test_a_part_that_is_given_up_is_not_staged(place, error):
    with pytest.raises(error):
        given_up(place.folder, b"x", error)
    assert place.all() == {}
    with pytest.raises(OutputError, match=r"part-00000\.csv is missing; run again"):
        place.folder.commit(RUN, [part_of(b"x", 0, 1)])


def test_a_part_that_is_given_up_leaves_the_one_before(place):
    parts = staged(place.folder, [b"whole"])
    with pytest.raises(RuntimeError):
        given_up(place.folder, b"half", RuntimeError)
    place.folder.commit(RUN, parts)
    assert place.visible()["part-00000.csv"] == b"whole"


def test_a_full_disk(disk, monkeypatch):
    def write(descriptor, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", write)
    text = r"cannot write .*/out/part-00000\.csv: No space left on device"
    with pytest.raises(OutputError, match=text), disk.folder.open_part(RUN, 0, ".csv") as file:
        file.write(b"x")
    assert disk.all() == {}


def test_a_crash_before_the_commit_leaves_no_marker(place):
    """A worker that is killed leaves what it was writing; the folder stays as it was."""
    staged(place.folder, [b"one"])
    assert place.visible() == {}
    place.folder.check()  # another run may start
    place.folder.commit(OTHER, staged(place.folder, [b"two"], OTHER))
    assert place.visible()["part-00000.csv"] == b"two"
    place.folder.abort(RUN)
    assert set(place.all()) == {"out/part-00000.csv", f"out/{MARKER}"}


def test_the_next_run_sweeps_what_a_killed_one_has_staged(place):
    living = owned_name()
    for run in (living, ended_owner(), RUN):
        staged(place.folder, [b"one"], run)
    place.folder.check()
    assert len(place.all()) == 2
    for run in (living, RUN):  # the second may be gone on with
        assert place.folder.staged(run)
        place.folder.abort(run)
    assert place.all() == {}


def test_a_killed_commit_is_taken_up_again(disk):
    """The new folder has its name, and the old one was not removed yet."""
    disk.folder.commit(RUN, staged(disk.folder, [b"new"]))
    before = disk.visible()
    aside = hidden_folders(Path(disk.path), RUN)[1]
    aside.mkdir()
    (aside / "part-00000.csv").write_bytes(b"old")
    disk.folder.commit(RUN, staged(disk.folder, [b"new"]), force=True)
    assert disk.visible() == before
    assert len(disk.all()) == 2


@pytest.mark.parametrize("step", range(12))
@pytest.mark.parametrize("force", [False, True])
def test_a_signal_during_a_commit_comes_after_it(disk, monkeypatch, step, force):
    if force:
        disk.folder.commit(OTHER, staged(disk.folder, [b"old"], OTHER))
    parts = staged(disk.folder, [b"new"])
    calls = []

    def then(real):
        def taken(*given, **rest):
            calls.append(real)
            if len(calls) == step + 1:
                signal.raise_signal(signal.SIGINT)
            return real(*given, **rest)

        return taken

    come = False
    with monkeypatch.context() as patch:
        for owner, name in ((Path, "rename"), (os, "fsync"), (os, "open"), (os, "rmdir")):
            patch.setattr(owner, name, then(getattr(owner, name)))
        try:
            disk.folder.commit(RUN, parts, force=force)
        except KeyboardInterrupt:
            come = True
    assert come == (len(calls) > step)
    assert disk.visible()["part-00000.csv"] == b"new"
    assert [path.name for path in Path(disk.path).parent.iterdir()] == ["out"]


def test_what_a_killed_writer_left_is_no_part(disk):
    parts = staged(disk.folder, [b"one"])
    hidden = Path(disk.path).with_name(f".pate-unfinished-out-{RUN}.tmp")
    (hidden / ".part-00000.csv.0123").write_bytes(b"o")
    disk.folder.commit(RUN, parts)
    assert set(disk.all()) == {"out/part-00000.csv", f"out/{MARKER}"}


def test_abort_removes_a_run_and_nothing_else(place):
    place.folder.abort(RUN)
    place.put("part-00009.csv")
    staged(place.folder, [b"a", b"b"])
    for _ in range(2):
        place.folder.abort(RUN)
    assert place.all() == {"out/part-00009.csv": b"old"}


def test_parts_that_do_not_fit_the_list(place):
    parts = staged(place.folder, [b"one", b"two"])
    with pytest.raises(PateError, match="internal error: 2 parts staged and 1 listed"):
        place.folder.commit(RUN, parts[:1])
    with pytest.raises(OutputError) as caught:
        place.folder.commit(RUN, [parts[0], part_of(b"longer", 1, 1)])
    assert str(caught.value) == (
        f"cannot write {place.folder.name}: part-00001.csv is not whole; run again"
    )
    with pytest.raises(OutputError, match=r"part-00002\.csv is missing"):
        place.folder.commit(RUN, [*parts, part_of(b"x", 2, 1)])
    assert place.visible() == {}


# ---------------------------------------------------------------- force


def test_force_replaces_all_parts(place):
    place.folder.commit(RUN, staged(place.folder, [b"1", b"2", b"3"]))
    place.folder.check(force=True)
    parts = staged(place.folder, [b"new"], OTHER)
    assert place.visible()["part-00000.csv"] == b"1"
    place.folder.commit(OTHER, parts, force=True)
    found = place.all()
    assert set(found) == {"out/part-00000.csv", f"out/{MARKER}"}
    assert found["out/part-00000.csv"] == b"new"
    assert json.loads(found[f"out/{MARKER}"])["rows"] == 1


class Failing:
    """A filesystem on which one kind of request fails, from the given one on."""

    def __init__(self, real, method, after):
        self._real, self._method, self._left = real, method, after

    def __getattr__(self, name):
        real = getattr(self._real, name)
        if name != self._method:
            return real

        def step(*args, **rest):
            self._left -= 1
            if self._left < 0:
                raise OSError("AWS Error SLOW_DOWN\nmore")
            return real(*args, **rest)

        return step


@pytest.mark.parametrize(
    ("method", "after", "force"),
    some(
        [
            ("copy_file", 1, False),
            ("copy_file", 1, True),
            ("open_output_stream", 0, False),
            ("open_output_stream", 0, True),
            ("delete_file", 0, True),
            ("delete_file", 1, True),
        ],
        2,
    ),
)
def test_a_store_that_fails_during_the_commit(s3, monkeypatch, force, method, after):
    if force:
        s3.folder.commit(OTHER, staged(s3.folder, [b"old"] * 3, OTHER))
    before = s3.visible()
    parts = staged(s3.folder, [b"a", b"b"])
    real = part_folder_module.filesystem_of
    with monkeypatch.context() as patch:
        patch.setattr(
            part_folder_module,
            "filesystem_of",
            lambda uri: (Failing(real(uri)[0], method, after), real(uri)[1]),
        )
        with pytest.raises(OutputError) as caught:
            s3.folder.commit(RUN, parts, force=force)
    untouched = (method, after) == ("delete_file", 0)
    left = "what it held is gone" if force and not untouched else "nothing was released"
    assert str(caught.value) == (
        f"{s3.folder.name}: cannot be reached: AWS Error SLOW_DOWN; {left}"
    )
    if untouched:
        assert s3.visible() == before
    else:
        assert MARKER not in s3.visible()
        assert method == "delete_file" or s3.visible() == {}
    # What is staged is still there for another try.
    s3.folder.commit(RUN, parts, force=force)
    assert set(s3.visible()) == {"part-00000.csv", "part-00001.csv", MARKER}


@pytest.mark.parametrize("force", [False, True])
def test_what_a_store_does_not_give_back_is_told_of(folders, monkeypatch, force):
    """The marker cannot be written, and the labels that are in place cannot be removed."""
    if force:
        folders.folder.commit(OTHER, staged(folders.folder, [b"old"], OTHER))
    parts = staged(folders.folder, [b"a", b"b"])
    store, path = part_folder_module.filesystem_of("")
    read_only = Failing(Failing(store, "open_output_stream", 0), "delete_file", 2 if force else 0)
    with monkeypatch.context() as patch:
        patch.setattr(part_folder_module, "filesystem_of", lambda uri: (read_only, path))
        with pytest.raises(OutputError) as caught:
            folders.folder.commit(RUN, parts, force=force)
    name = folders.folder.name
    assert str(caught.value) == (
        f"{name}: cannot be reached: AWS Error SLOW_DOWN; what went to {name} stays"
    )
    assert set(folders.visible()) == {"part-00000.csv", "part-00001.csv"}


@pytest.mark.parametrize("error", [OSError(errno.EIO, "bad disk"), KeyboardInterrupt()])
@pytest.mark.parametrize(("force", "step"), [(False, 1), (True, 1), (True, 2)])
def test_a_rename_that_fails_is_undone(disk, monkeypatch, error, step, force):
    out = Path(disk.path)
    if force:
        disk.folder.commit(OTHER, staged(disk.folder, [b"old"] * 2, OTHER))
    before = disk.visible()
    parts = staged(disk.folder, [b"new"])
    real, calls = Path.rename, []

    def rename(self, target):
        calls.append(target)
        if len(calls) == step:
            raise error
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename)
        with pytest.raises((OutputError, KeyboardInterrupt)) as caught:
            disk.folder.commit(RUN, parts, force=force)
    if isinstance(error, OSError):
        assert str(caught.value) == f"cannot write {out}: bad disk; nothing was released"
    else:
        assert caught.value is error
    assert disk.visible() == before
    disk.folder.abort(RUN)
    assert [path.name for path in out.parent.iterdir()] == (["out"] if force else [])


def test_what_a_killed_commit_put_aside_comes_back(disk):
    disk.folder.commit(OTHER, staged(disk.folder, [b"old"], OTHER))
    before = disk.visible()
    staged(disk.folder, [b"new"])
    Path(disk.path).rename(hidden_folders(Path(disk.path), RUN)[1])  # killed here
    disk.folder.abort(RUN)
    assert disk.visible() == before
    assert len(disk.all()) == 2


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("step", [0, 1, 2])
def test_what_a_killed_process_of_a_run_put_aside_is_not_left_to_that_run(disk, step, goes_on):
    """Others may go on with the run; but what it replaces was this process's to put back."""
    disk.folder.commit(OTHER, staged(disk.folder, [b"old"], OTHER))
    parts = staged(disk.folder, [b"new"])

    def die(real):
        def taken(*given, **rest):
            if die.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            die.left -= 1
            return real(*given, **rest)

        return taken

    def step_by_step():
        die.left = step
        place = local_folder.LocalFolder(disk.path)
        local_folder.shutil.rmtree = die(local_folder.shutil.rmtree)
        Path.rename = die(Path.rename)
        place.place(RUN, [], b"{}", force=True)

    killed(step_by_step)
    disk.folder.check(force=True)
    content = b"new" if step == 2 else b"old"
    assert disk.visible()["part-00000.csv"] == content
    names = {path.name.partition("out")[0] for path in Path(disk.path).parent.iterdir()}
    assert names == ({""} if step == 2 else {"", ".pate-unfinished-"})
    if goes_on:
        if step == 2:
            parts = staged(disk.folder, [b"new"])
        disk.folder.commit(RUN, parts, force=True)
        assert disk.visible()["part-00000.csv"] == b"new"
        assert [path.name for path in Path(disk.path).parent.iterdir()] == ["out"]


def test_what_a_living_process_of_a_run_has_put_aside_stays(disk):
    disk.folder.commit(OTHER, staged(disk.folder, [b"new"], OTHER))
    aside = hidden_folders(Path(disk.path), RUN)[1]
    aside.mkdir()
    disk.folder.check(force=True)
    assert aside.exists()


def test_a_folder_filled_while_it_is_replaced_comes_back(disk, monkeypatch):
    out = Path(disk.path)
    out.mkdir()
    parts = staged(disk.folder, [b"new"])
    real = Path.rename

    def rename(self, target):
        if self == out and not (out / "notes.md").exists():
            (out / "notes.md").write_bytes(b"theirs")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(OutputError, match="exists already and is not empty"):
        disk.folder.commit(RUN, parts)
    assert disk.visible() == {"notes.md": b"theirs"}


def test_content_reaches_the_disk_before_the_name(disk, monkeypatch):
    steps = []
    real_sync, real_rename = os.fsync, Path.rename

    def fsync(descriptor):
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        real_sync(descriptor)

    def rename(self, target):
        steps.append("rename")
        return real_rename(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "rename", rename)
    disk.folder.commit(RUN, staged(disk.folder, [b"a", b"b"]))
    assert steps == ["file", "file", "file", "folder", "rename", "folder"]


def test_no_credentials_in_messages(s3, monkeypatch):
    def fail(*_args):
        raise pa.ArrowInvalid("Cannot parse URI: 's3://x:y@…'")

    monkeypatch.setattr(part_folder_module, "filesystem_of", fail)
    for step in (s3.folder.check, lambda: s3.folder.commit(RUN, [])):
        with pytest.raises(OutputError) as caught:
            step()
        assert str(caught.value) == f"{s3.folder.name}: no filesystem is known for this address"
        assert "x:y" not in str(caught.value)
        assert "?" not in str(caught.value)
