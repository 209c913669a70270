"""`python -m pate_cli.paper table1|table2` end to end, and the printed figures as data."""

import csv
import io
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import norm

from pate_cli.paper.release import ReleaseNoise, sanitized, unrounded
from pate_cli.paper.rows import printed_tables

ARCHIVE = "https://storage.googleapis.com/pate-votes/votes.gz"


@pytest.fixture
def rows(run):
    """The rows of a table by name, and its notes."""

    def call(*arguments, code=0):
        found, out, _ = run(*arguments, "--form", "json")
        assert found == code
        told = json.loads(out)
        return {row["row"]: row for row in told["rows"]}, told["notes"]

    return call


def line(out, *words):
    """The cells of the first line of text that holds all the words."""
    found = [text for text in out.splitlines() if all(word in text for word in words)]
    assert found, out
    return [cell.strip() for cell in found[0].split("  ") if cell.strip()]


# The MNIST rows of the paper.


def test_table_1_on_the_authors_mnist_votes(mnist_file, run):
    code, out, err = run("table1", "--votes", mnist_file.parent)
    assert (code, err) == (0, "")
    assert line(out, "LNMax", "  1000  ") == (
        ["MNIST", "LNMax", "1000", "1000", "1e-05", "6", "7.399", "1000", "8.03"]
    )
    assert line(out, "LNMax", "  100  ")[5:] == ["9", "2.043", "100", "2.04"]
    assert line(out, "Confident")[2:] == ["640", "282.7", "1e-05", "14", "1.999", "286", "1.97"]
    assert "computed 7.40 (moment 5), but the table prints 8.03; the last moment" in out
    assert "not the authors' file" not in out


def test_table_2_on_the_authors_mnist_votes(mnist_file, run, rows):
    mnist = rows("table2", "--votes", mnist_file.parent)[0]["MNIST, Confident-GNMax"]
    (asked,) = mnist["rounds"]
    assert (mnist["status"], asked["authentic"]) == ("ran", True)
    assert (asked["queries"], asked["classes"], asked["teachers"]) == (640, 10, 250)
    assert mnist["expected_answers"] == pytest.approx(282.72, abs=0.005)
    assert mnist["expected_epsilon"] == pytest.approx(1.999, abs=5e-4)
    published, correct = mnist["as_published"], mnist["charged_correctly"]
    assert published["noise"]["betas"] == [pytest.approx(0.46 / 14)]
    assert round(published["smooth"][0], 6) == 0.061747
    assert (round(published["epsilon"], 3), round(published["sd"], 3)) == (2.516, 0.385)
    assert correct["noise"]["betas"] == [0.0329]
    assert round(correct["smooth"][0], 5) == 0.06169
    assert round(correct["epsilon"], 3) == 3.606
    assert mnist["worst_case"] == pytest.approx(2.0499, abs=2e-4)
    assert mnist["printed"]["epsilon"] == 2.52
    _, out, _ = run("table2", "--votes", mnist_file.parent)
    assert line(out, "MNIST", "printed  ")[2:] == (
        ["2.52 ± 0.385", "2.00", "14", "0.0329", "6.23", "0.0618"]
    )
    assert line(out, "as published  ")[:3] == ["as published", "2.516 ± 0.385", "1.999"]
    assert line(out, "charged correctly  ")[:3] == ["charged correctly", "3.606 ± 0.384", "1.999"]
    assert line(out, "worst case  ")[:2] == ["worst case", "2.050"]
    assert "MNIST, Confident-GNMax: 282.72 of 640 queries are expected to be answered" in out


# Other votes under the authors' names.

GLYPH, STUDENT = "Glyph, Interactive-GNMax, two rounds", "glyph_round2_student.npy"


@pytest.fixture
def stand_ins(tmp_path, save):
    """Files under the authors' names: floats as theirs are, other numbers of classes."""
    folder = tmp_path / "authors"
    adult = save(folder, "adult_250_teachers.npy", teachers=250, classes=2, queries=120)
    save(folder, "adult_250_teachers.npy", adult.astype(np.float64))
    shape = {"teachers": 300, "classes": 12, "agreement": 0.8}
    save(folder, "glyph_round1.npy", **shape, queries=40)
    second = save(folder, "glyph_round2.npy", **shape, queries=30, seed=2)
    save(folder, STUDENT, (0.5 * second / 300 + 0.5 / 12).astype(np.float32))
    return folder


def test_other_files_are_used_and_flagged_and_absent_and_unreadable_ones_are_told(
    stand_ins, run, rows
):
    (stand_ins / "svhn_250_teachers.npy").write_bytes(b"\x93NUMPY")
    found, notes = rows("table2", "--votes", stand_ins)
    adult, glyph = found["Adult, Confident-GNMax"], found["Glyph, 2 rounds, Interactive-GNMax"]
    assert (adult["status"], adult["rounds"][0]["authentic"]) == ("ran", False)
    told = "Adult, Confident-GNMax: adult_250_teachers.npy "
    assert f"{told}is not the authors' file (its sha256 differs)" in notes
    assert f"{told}holds 120 rows, the table asks 1500" in notes
    assert (glyph["status"], len(glyph["as_published"]["smooth"])) == ("ran", 2)
    assert [(asked["queries"], asked["student"]) for asked in glyph["rounds"]] == [
        (40, False),
        (30, True),
    ]
    assert glyph["rounds"][0]["authentic"] is None
    assert found["SVHN, Confident-GNMax"]["status"] == "votes unreadable"
    for name in ("MNIST", "Glyph"):
        absent = found[f"{name}, Confident-GNMax"]
        assert absent["status"] == "votes absent"
        assert "as_published" not in absent
    (stand_ins / "svhn_250_teachers.npy").unlink()
    code, out, _ = run("table1", "--votes", stand_ins)
    assert code == 0
    assert line(out, "SVHN", "Confident") == (
        ["SVHN", "Confident-GNMax: votes absent", "-", "-", "-", "-", "-", "3098", "4.96"]
    )
    assert f"- SVHN, Confident-GNMax: absent from {stand_ins}: svhn_250_teachers.npy" in out
    assert line(out, "Glyph", "scale not published")[-2:] == ["4000", "4.30"]
    assert "the paper does not say which Laplace scale" in out
    assert ARCHIVE in out


def test_interactive_rounds_compare_the_votes_to_the_student(stand_ins, rows):
    """Round 2 written out: Pr[answer] = Φ((max_j(n_j − τ p_j) − T)/σ1)."""
    row = rows("table1", "--votes", stand_ins)[0][GLYPH]
    first, second, student = (
        np.load(stand_ins / name) for name in ("glyph_round1.npy", "glyph_round2.npy", STUDENT)
    )
    surprise = (second - 300 * student.astype(float)).max(axis=1)
    answers = norm.cdf((first.max(axis=1) - 3500) / 1500).sum()
    answers += norm.cdf((surprise - 3500) / 2000).sum()
    assert row["asked"] == 70
    assert row["answered"] == pytest.approx(answers, rel=1e-9)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda p: p[:, :-1], "have shape (30, 11), but the votes have shape (30, 12)"),
        (lambda p: p[:-1], "have shape (29, 12), but the votes have shape (30, 12)"),
        (lambda p: p * 1.1, "row 0 is not a probability distribution"),
        (lambda p: np.where(np.arange(30)[:, None] == 17, np.nan, p), "row 17 is not a"),
        (lambda p: p.astype(object), "is not an NPY array of student predictions"),
    ],
)
def test_bad_student_predictions_are_refused(stand_ins, save, rows, spoil, reason):
    save(stand_ins, STUDENT, spoil(np.load(stand_ins / STUDENT)))
    row = rows("table1", "--votes", stand_ins)[0][GLYPH]
    assert row["status"] == "votes unreadable"
    assert reason in row["reason"]


# Samples.


@pytest.fixture
def samples(tmp_path, save):
    """Two vote files in two formats, and files that are no votes."""
    folder = tmp_path / "samples"
    save(folder, "b.npy", teachers=250, classes=10, queries=200)
    votes = save(folder, "b_truth.npy", teachers=100, classes=4, queries=80)
    pq.write_table(pa.table({f"class_{j}": votes[:, j] for j in range(4)}), folder / "a.parquet")
    save(folder, "student.npy", np.ones((5, 2)) / 2)
    save(folder, "labels.npy", np.arange(5))
    (folder / "README.md").write_text("no votes")
    return folder


def test_samples_have_no_printed_figures(samples, run, rows):
    found, notes = rows("table1", "--samples", samples)
    kinds = ("LNMax", "Confident-GNMax")
    assert list(found) == [f"{data}, {kind}" for data in ("a.parquet", "b.npy") for kind in kinds]
    assert found["a.parquet, LNMax"]["rounds"][0]["laplace_scale"] == pytest.approx(8.0)
    assert found["b.npy, LNMax"]["asked"] == 200
    confident = found["b.npy, Confident-GNMax"]
    noise = {"threshold": 200.0, "sigma1": 150.0, "sigma2": 40.0}
    assert confident["rounds"][0] == confident["rounds"][0] | noise
    assert confident["printed"] is None
    assert "no published figures to compare" in notes[0]
    code, out, _ = run("table1", "--samples", samples, "--form", "csv")
    assert code == 0
    read = list(csv.DictReader(io.StringIO(out)))
    assert [row["data"] for row in read] == ["a.parquet", "a.parquet", "b.npy", "b.npy"]
    assert float(read[0]["epsilon"]) > 0


def test_samples_in_table_2(samples, run):
    """C6 fails for σ2 = 16 at the order that a.parquet leads to, and holds for b.npy."""
    pq.write_table(pa.table({"teacher_0": ["yes"], "teacher_1": ["no"]}), samples / "words.parquet")
    code, out, _ = run("table2", "--samples", samples)
    assert code == 0
    assert "no published figures to compare" in out
    released = [shown for shown in out.splitlines() if "as published  " in shown]
    assert [shown.split()[0] for shown in released] == ["a.parquet", "b.npy"]
    assert ["condition fails" in shown for shown in released] == [True, False]
    # Messages name flags, as the command line has them.
    assert line(out, "words.parquet")[1] == "Confident-GNMax: votes unreadable"
    assert "convert the column or drop it, or give --label-names if it has votes in words\n" in out


def test_a_failing_condition_is_said_and_is_exit_4(tmp_path, save, run, rows):
    folder = tmp_path / "small"
    save(folder, "small.npy", teachers=20, classes=3, queries=60)
    code, out, _ = run("table2", "--samples", folder)
    assert code == 4
    assert line(out, "as published  ")[2] == "condition fails"
    assert "smooth sensitivity is not valid at order" in out
    row = rows("table2", "--samples", folder, code=4)[0]["small.npy, Confident-GNMax"]
    assert row["status"] == "a condition fails"
    assert row["as_published"] is row["charged_correctly"] is None
    assert "C6" in row["failed_condition"]
    # Figures that do not rest on the condition are still there.
    assert row["expected_epsilon"] > 0
    assert row["worst_case"] > 0


@pytest.mark.parametrize("table", ["table1", "table2"])
@pytest.mark.parametrize(
    ("folder", "told"),
    [
        ("", "holds no vote file (.parquet or .npy); give --votes DIR\n"),
        ("nowhere", "nowhere: no such folder; give --votes DIR\n"),
    ],
)
def test_no_samples_is_exit_3(tmp_path, run, table, folder, told):
    code, out, err = run(table, "--samples", tmp_path / folder)
    assert (code, out) == (3, "")
    assert err.endswith(told)


def test_a_stream_without_unicode_and_a_reader_that_leaves(tmp_path, save):
    save(tmp_path, "b.npy", teachers=250, classes=10, queries=200)
    command = [sys.executable, "-m", "pate_cli.paper", "table2", "--samples", str(tmp_path)]
    plain = os.environ | {"PYTHONIOENCODING": "ascii"}
    said = subprocess.run(command, capture_output=True, env=plain, check=False)
    assert (said.returncode, said.stderr) == (0, b"")
    assert b" ? " in said.stdout
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        said = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, check=False)
    assert (said.returncode, said.stderr) == (-signal.SIGPIPE, b"")


# The printed figures as data, and the paper's own arithmetic on them.


def test_all_printed_rows_are_there():
    tables = printed_tables()
    assert (len(tables.table1), len(tables.table2), len(tables.sha256)) == (11, 5, 3)
    named = {name for row in (*tables.table1, *tables.table2) for name in row.files}
    assert set(tables.sha256) < named
    for row in tables.table2:
        each = (row.release.betas, row.release.smooth, row.release.sigmas)
        assert {len(values) for values in each} == {len(row.rounds)}
    # Both tables ask the same queries with the same parameters.
    confident = [row.rounds for row in tables.table1 if row.aggregator != "LNMax"]
    assert all(row.rounds in confident for row in tables.table2)
    unstated = [row.name for row in tables.table1 if not row.rounds[0].noise]
    assert unstated == ["Glyph, LNMax 4000"]


@pytest.mark.parametrize("row", printed_tables().table2, ids=lambda row: row.dataset)
def test_unrounded_parameters_explain_every_printed_row(row):
    """A flat curve at the printed SS: β, σ, mean and sd come out as the table prints them."""
    printed = row.release
    curves = [np.array([smooth]) for smooth in printed.smooth]
    found = unrounded(ReleaseNoise(printed.order, printed.betas, printed.sigmas), curves)
    assert tuple(round(beta, 4) for beta in found.betas) == printed.betas
    for sigma, exact in zip(printed.sigmas, found.sigmas, strict=True):
        assert f"{exact:.3g}" == f"{sigma:.3g}"
    release = sanitized(printed.expected_epsilon, curves, found, exact=False)
    # SVHN does not add up: 4.96 and what Theorem 23 says of the draw are 5.50, not 5.45.
    off = 0.045 if row.note else 0.0
    assert (row.dataset == "SVHN") == bool(row.note)
    assert release.epsilon == pytest.approx(printed.epsilon + off, abs=0.0101)
    assert release.sd == pytest.approx(printed.sd, abs=1.01e-3)


def test_infinite_when_beta_is_too_large_for_the_order():
    # ½·log(1 + 1/13) = 0.03705: above it the divergence is infinite.
    curve = [np.array([0.06])]
    assert sanitized(2.0, curve, ReleaseNoise(14.0, (0.0372,), (6.0,)), exact=True).epsilon is None
    assert sanitized(2.0, curve, ReleaseNoise(14.0, (0.0370,), (6.0,)), exact=True).epsilon > 2.0
