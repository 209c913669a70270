"""Nothing that a run writes can be read by others before it is in place, and labels come last."""

import os
import stat
from pathlib import Path

import pytest

NOISE = ["--threshold", 20, "--sigma1", 8, "--sigma2", 4, "--seed", 3]
STEPS = ["open", "replace", "rename", "link", "unlink", "fsync", "mkdir", "chmod", "fchmod"]


def readable(root):
    """Files with something in them that others could read; folders are in their way, too."""
    found = set()
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if _open(Path(folder, name), 0o005)]
        found |= {
            str(Path(folder, name).relative_to(root))
            for name in files
            if _open(Path(folder, name), 0o004)
            and Path(folder, name).stat().st_size
            # Whole already, in the instant before it takes the place of another.
            and not name.startswith(".pate-unfinished-")
        }
    return found


def _open(path, bits):
    return stat.S_IMODE(path.stat().st_mode) & bits == bits


@pytest.fixture
def no_umask():
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def watched(monkeypatch, folder):
    """Look at every file at every step from now on: those that others could read, and all."""
    seen = []

    def look():
        found = (
            readable(folder),
            {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()},
        )
        if not seen or found != seen[-1]:
            seen.append(found)

    for name in STEPS:
        real = getattr(os, name)

        def step(*given, real=real, **named):
            look()
            try:
                return real(*given, **named)
            finally:
                look()

        monkeypatch.setattr(os, name, step)
    return seen


@pytest.fixture
def run(pate, no_umask, watched):
    """Run `pate`; nobody reads anything but `public`, and `last` once all of it is in place.

    `early` are records, which come before.
    """

    def check(*words, public, kept=frozenset(), early=frozenset(), last=frozenset()):
        watched.clear()
        pate(*words, code=0)
        for found, there in watched:
            new = found - set(kept) - set(early)
            assert new <= set(public)
            assert not new & set(last) or set(public) <= there
        assert watched[-1][0] == set(public) | set(kept) | set(early)

    return check


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_labels_report_ledger_and_checkpoint(force, run, votes, folder):
    kept = {"keep", *(["l.csv"] if force else [])}
    for name in kept:
        (folder / name).write_text("query_id,label,source\n")
        (folder / name).chmod(0o644)
    words = ["-o", "l.csv", "--report", "r.json", "--ledger", "d.json", "--checkpoint", "c"]
    public = {"l.csv", "r.json"}
    run("aggregate", votes, *words, *NOISE, *force, public=public - kept, kept=kept, last={"l.csv"})


def test_pages_pictures_tables_and_the_demo(run, pate, votes):
    public = {"l.csv", "r.json"}
    run("aggregate", votes, "-o", "l.csv", "--report", "r.json", *NOISE, public=public)
    run("explain", "r.json", "--html", "p.html", public={"p.html"}, kept=public)
    public |= {"p.html"}
    words = ["--per-query", "q.csv", "--plot", "p.png"]
    run("cost", votes, *words, *NOISE[:-2], public=(), kept=public)
    found = {"demo/labels.csv", "demo/labels.report.json"}
    run("demo", "demo", public=found, kept=public, early={"demo/adult.parquet.spent.json"})
