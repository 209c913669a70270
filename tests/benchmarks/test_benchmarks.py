"""The benchmark's own parts: its oracle, its files, its tables. Nothing here looks at a clock."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import cases, made_up_votes, whole_process
from benchmarks.__main__ import SAVED, blocks, slower
from benchmarks.made_up_votes import VoteShape, is_whole, pieces, votes_file
from benchmarks.pages import past_one_machine, per_row, summary
from benchmarks.published_loop import confident_cost
from benchmarks.results import FileFigures, Line, Published, Results, power
from benchmarks.whole_process import field_mb, tree
from readme_blocks import fill
from slices import some


@pytest.fixture
def votes(tmp_path):
    return votes_file(VoteShape(300), tmp_path)


def _columns(path):
    return np.column_stack([column.to_numpy() for column in pq.read_table(path).columns])


@pytest.mark.parametrize(
    ("threshold", "sigma1", "sigma2"), some([(200, 150, 40), (230, 20, 15)], 2)
)
def test_the_published_loop_agrees_with_the_published_analysis(votes, threshold, sigma1, sigma2):
    words = ["cost", votes, "--analysis", "paper", "--threshold", threshold]
    words += ["--sigma1", sigma1, "--sigma2", sigma2, "--quiet"]
    run = subprocess.run(
        [sys.executable, "-m", "pate_cli", *map(str, words)], check=True, capture_output=True
    )
    found = json.loads(run.stdout)
    total, answers = confident_cost(
        _columns(votes),
        threshold=threshold,
        sigma1=sigma1,
        sigma2=sigma2,
        orders=np.array(found["orders"]),
    )
    assert len(found["orders"]) > 100
    np.testing.assert_allclose(found["rdp"], total, rtol=1e-10)
    assert found["expected_answers"] == pytest.approx(answers, rel=1e-12)


@pytest.mark.parametrize("shape", [VoteShape(5000), VoteShape(50, teachers=5000, classes=150)])
def test_votes_are_histograms_that_differ_in_agreement(tmp_path, shape):
    counts = _columns(votes_file(shape, tmp_path)).astype(int)
    assert counts.shape == (shape.rows, shape.classes)
    assert (counts.sum(axis=1) == shape.teachers).all()
    assert len(np.unique(counts, axis=0)) > 0.95 * shape.rows
    highest = counts.max(axis=1) / shape.teachers
    assert highest.min() < 0.4
    assert highest.max() > 0.95
    assert len(np.unique(counts.argmax(axis=1))) == min(shape.classes, 10) or shape.rows < 100


def test_a_shorter_file_is_the_beginning_of_a_longer_one(monkeypatch):
    monkeypatch.setattr(made_up_votes, "PIECE", 64)
    short, long = (np.concatenate(list(pieces(VoteShape(rows)))) for rows in (100, 200))
    assert len(list(pieces(VoteShape(200)))) == 4
    np.testing.assert_array_equal(short, long[:100])


def test_a_whole_file_is_used_again_and_a_broken_one_is_not(votes, tmp_path):
    before = votes.stat()
    assert votes_file(VoteShape(300), tmp_path).stat().st_mtime_ns == before.st_mtime_ns
    os.truncate(votes, before.st_size // 2)
    assert not is_whole(votes, VoteShape(300))
    assert votes_file(VoteShape(300), tmp_path).stat().st_size == before.st_size
    assert [path.name for path in tmp_path.iterdir()] == [votes.name]


def test_a_file_of_other_rows_is_not_whole(tmp_path):
    path = tmp_path / VoteShape(300).file_name
    pq.write_table(pa.table({"class_0": [1, 2]}), path)
    assert not is_whole(path, VoteShape(300))


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs /proc")
def test_a_tree_is_a_process_and_its_descendants():
    sleeper = "import subprocess, sys; p = subprocess.Popen(['cat']); print(p.pid, flush=True)"
    parent = subprocess.Popen(
        [sys.executable, "-c", f"{sleeper}; p.wait()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with parent:
        child = int(parent.stdout.readline())
        found = list(tree(parent.pid))
        held = field_mb(Path(f"/proc/{parent.pid}") / "smaps_rollup", "Pss")
        peak = field_mb(Path(f"/proc/{parent.pid}") / "status", "VmHWM")
        parent.stdin.close()
    assert found == [parent.pid, child]
    assert 0.0 < held <= peak
    assert list(tree(parent.pid))[1:] == []


@pytest.mark.parametrize(
    ("largest", "sizes"), [(1e4, [10**4]), (1e6, [10**4, 10**5, 10**6]), (5e4, [10**4])]
)
def test_sizes_rise_tenfold(largest, sizes):
    assert cases.sizes_to(largest) == sizes


def test_a_cluster_is_for_large_files_and_where_there_is_dask(monkeypatch):
    for installed, engines in [(object(), ["local", "dask"]), (None, ["local"])]:
        monkeypatch.setattr(cases.importlib.util, "find_spec", lambda _, found=installed: found)
        assert cases._engines(VoteShape(10**6)) == engines
        assert cases._engines(VoteShape(10**5)) == ["local"]


def test_commands_are_measured_as_whole_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(whole_process, "_ENOUGH_RUNS", 1)
    monkeypatch.setattr(cases, "_PUBLISHED_ROWS", 20)
    monkeypatch.setattr(cases, "SINGLES", ())
    monkeypatch.setattr(cases, "COMMANDS", ("aggregate --release upper",))
    monkeypatch.setattr(cases, "cores", lambda: 2)
    shown = []
    found = cases.measure_all([500], tmp_path, shown.append)
    assert list(found.lines) == shown
    assert [(line.command, line.rows, line.workers) for line in shown] == [
        ("--help", 0, 0),
        ("aggregate --release upper", 500, 1),
        ("aggregate --release upper", 500, 2),
    ]
    assert found.file_of(shown[1]).bytes == (tmp_path / VoteShape(500).file_name).stat().st_size
    assert set(found.machine) == {"cores", "python", "numpy", "scipy", "pyarrow", "pate"}


def test_a_command_that_fails_is_told(tmp_path):
    words = [sys.executable, "-c", "import sys; sys.exit('no such votes')"]
    with pytest.raises(SystemExit, match=r"ended with 1:\nno such votes"):
        whole_process.measure(words, folder=tmp_path, environment={})


def made_up_results(slowdown=1.0):
    """Two seconds and, a row, 1 µs for one process alone and 3 µs for all; from a million rows."""
    sizes = (10**6, 10**7)
    lines = [
        Line("cost", rows, 250, 10, "local", workers, 1, slowdown * seconds, 100.0, None)
        for rows in sizes
        for workers in (1, 2)
        for seconds in [2.0 + rows * (1e-6 + 3e-6 / workers)]
    ]
    files = tuple(FileFigures(rows, 250, 10, 10 * rows, 1e-7 * rows) for rows in sizes)
    machine = dict.fromkeys(("cores", "python", "numpy", "scipy", "pyarrow", "pate"), 2)
    single = Line("--help", 0, 0, 0, "local", 0, 5, 0.25 * slowdown, None, None)
    return Results(machine, Published(4000, 198, 5000.0), files, (single, *lines))


def test_a_table_is_read_as_it_was_saved(tmp_path):
    results = made_up_results()
    results.save(tmp_path / "new" / "speed.json")
    assert Results.load(tmp_path / "new" / "speed.json") == results


def test_the_summary_says_what_was_measured():
    rows = summary(made_up_results()).splitlines()
    # 42 s of 10⁷ rows and 100 MB, decoded in 1 s; the loop does 5,000 rows/s.
    assert rows[2] == "| `cost` | 1 | 6.00 | 42 | 238,095 | 2.4 | 42 | – | 100 MB | 48 |"
    assert rows[3] == "| `cost` | 2 | 4.50 | 27 | 370,370 | 3.7 | 27 | – | 100 MB | 74 |"
    assert rows[-1] == "| `pate --help` | 0.25 |"


def test_a_run_is_parted_into_its_start_and_what_is_shared():
    (fit,) = per_row(made_up_results())
    assert (fit.start, fit.alone, fit.shared) == pytest.approx((2.0, 1e-6, 3e-6))
    assert fit.seconds(10**9, 100) == pytest.approx(2.0 + 1000.0 + 30.0)
    row = past_one_machine(made_up_results()).splitlines()[2]
    assert row == "| `cost` | 2.0 | 4.00 | 1.00 | 4,002 | 1,032 | 1,002 |"


def test_a_noisy_machine_shares_no_less_than_nothing():
    results = made_up_results()
    lines = [
        dataclasses.replace(line, seconds=line.seconds * (2.0 if line.workers == 2 else 1.0))
        for line in results.lines
    ]
    (fit,) = per_row(dataclasses.replace(results, lines=tuple(lines)))
    assert (fit.alone, fit.shared) == pytest.approx((4e-6, 0.0))


def test_sizes_that_are_not_shared_out_are_not_fitted():
    results = made_up_results()
    lines = tuple(
        dataclasses.replace(line, rows=line.rows // 10 if line.rows == 10**6 else line.rows)
        for line in results.lines
    )
    found = dataclasses.replace(results, lines=lines)
    assert list(per_row(found)) == []
    assert past_one_machine(found).startswith("No figures")


@pytest.mark.parametrize(("slowdown", "expected"), [(1.3, True), (1.2, False), (0.5, False)])
def test_a_slower_line_is_told(tmp_path, capsys, slowdown, expected):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    made_up_results().save(old)
    made_up_results(slowdown).save(new)
    assert slower(old, new, 1.25) is expected
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 5
    assert all(line.endswith("SLOWER") is expected for line in printed)


def test_tables_without_a_line_in_common_cannot_be_compared(tmp_path):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    made_up_results().save(old)
    dataclasses.replace(made_up_results(), lines=()).save(new)
    with pytest.raises(SystemExit, match="no line in common"):
        slower(old, new, 1.25)


@pytest.mark.parametrize(("number", "text"), [(10**4, "10⁴"), (10**10, "10¹⁰"), (12000, "12,000")])
def test_powers_of_ten_are_short(number, text):
    assert power(number) == text


def test_the_pages_hold_the_table_that_is_kept():
    for page, filled in blocks(Results.load(SAVED)).items():
        text = page.read_text(encoding="utf-8")
        assert fill(text, filled) == text, "run: PYTHONPATH=tests python -m benchmarks pages"
