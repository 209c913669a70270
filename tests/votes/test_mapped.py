"""Arrays that are mapped files: read like others, and refused where the file shrinks."""

from __future__ import annotations

import mmap
import subprocess
import sys

import numpy as np
import pytest

from pate_cli.votes import open_votes
from pate_cli.votes.sources.mapped import Mapped
from pate_cli.votes.sources.npy import HeldArray

PROGRAM = """
import os, sys
import numpy as np
from pate_cli.core.errors import VoteError
from pate_cli.votes import open_votes

view, layout, *files = sys.argv[1:]
for path, left in zip(files[::2], map(int, files[1::2])):
    votes = eval(view, {"np": np, "path": path})
    try:
        with open_votes(votes, layout=layout, batch_rows=100) as file:
            batches = iter(file.batches())
            next(batches)
            os.truncate(path, left)
            for _ in batches:
                pass
    except VoteError as error:
        print(error)
"""
LOADED = "np.load(path, mmap_mode='r')"
MIDDLE = 128 + 2_000 * 3 * 8 + 1000  # a page that is whole in the mapping, and not in the file


@pytest.mark.parametrize(
    ("view", "layout"),
    [
        (LOADED, "counts"),
        ("np.load(path, mmap_mode='c')", "counts"),
        ("np.memmap(path, np.int64, 'r', 128, (9_000, 3))", "counts"),
        (f"np.asarray({LOADED})[::2]", "counts"),
        (f"{LOADED}.T % 3", None),
        (f"{LOADED}.T", "labels-by-teacher"),
        (f"{LOADED}.reshape(9_000, 1, 3)", "scores"),
    ],
)
def test_a_file_that_shrinks_under_a_mapping_is_refused(view, layout, tmp_path):
    files = []
    for left in (0, 128, MIDDLE):
        path = tmp_path / f"{left}.npy"
        np.save(path, np.tile([[2, 1, 0]], (9_000, 1)))
        files += [str(path), str(left)]
    if layout is None:  # in memory, whatever becomes of the file
        layout, said = "labels-by-teacher", ""
    else:
        said = 3 * "array: has changed while it was read; start again\n"
    line = [sys.executable, "-c", PROGRAM, view, layout, *files]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, said), done.stderr


BESIDE = """
import os, sys
import numpy as np
import pate_cli as pate
from pate_cli.core.errors import VoteError

kind, kept, path, when = sys.argv[1:]
values = np.load(path, mmap_mode="r")
if when == "before":
    os.truncate(path, 128)
try:
    given = getattr(pate, kind)(values)
except VoteError as error:
    print(error)
else:
    os.truncate(path, 128)
    print(getattr(given, kept).sum())
"""


@pytest.mark.parametrize(
    ("kind", "kept", "noun"),
    [
        ("Prior", "guesses", "the prior"),
        ("Truth", "labels", "true labels"),
    ],
)
def test_what_is_mapped_beside_the_votes_is_copied(kind, kept, noun, tmp_path):
    path = tmp_path / "beside.npy"
    for when in ("before", "after"):
        np.save(path, np.arange(30_000) % 3)
        line = [sys.executable, "-c", BESIDE, kind, kept, str(path), when]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        refused = f"{noun}: has changed while it was read; start again"
        assert done.stdout.strip() == (refused if when == "before" else "30000"), when


@pytest.mark.parametrize(
    "view",
    [
        lambda votes: votes,
        lambda votes: votes[5:-3],
        lambda votes: votes[::-1],
        lambda votes: votes[::7, ::-1],
        lambda votes: votes[:, :1],
        lambda votes: votes[3:4],
        lambda votes: np.flipud(np.asarray(votes))[:, 1:2],
        lambda votes: np.lib.stride_tricks.sliding_window_view(votes[:, 0], 4),
        lambda votes: np.broadcast_to(votes[:1], (50, votes.shape[1])),
        lambda votes: votes.view(">i8"),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("width", [2, 90_000])
def test_whatever_is_seen_of_a_mapping_is_read(view, order, width, tmp_path):
    path, rng = tmp_path / "v.npy", np.random.default_rng(3)
    rows = 400 if width < 10 else 12
    votes = np.asarray(rng.integers(9, size=(rows, width)), dtype=">i8", order=order)
    np.save(path, votes)
    seen = view(np.load(path, mmap_mode="r"))
    held = HeldArray.of(seen, "array")
    assert held.mapped is not None
    for first, stop in ((0, 5), (2, 300)):
        for axis, part in ((0, seen[first:stop]), (1, seen[:, first:stop])):
            found = held.rows(axis, first, stop)
            assert Mapped.under(found) is None
            assert found.dtype == part.dtype
            np.testing.assert_array_equal(found, part)


def test_a_mapping_of_no_file_is_memory():
    votes = np.frombuffer(mmap.mmap(-1, 8 * 30), np.int64).reshape(10, 3)
    assert HeldArray.of(votes, "array").mapped is None


def test_votes_of_a_mapping(tmp_path):
    path, votes = tmp_path / "v.npy", np.tile([[2, 5, 0], [0, 3, 4]], (1_500, 1))
    np.save(path, votes)
    with open_votes(np.load(path, mmap_mode="r"), layout="counts", batch_rows=700) as file:
        np.testing.assert_array_equal(np.vstack([it.counts for it in file.batches()]), votes)
