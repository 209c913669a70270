"""`python -m pate_cli.reproduction table1|table2` end to end."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ARCHIVE = "https://storage.googleapis.com/pate-votes/votes.gz"


def rows(out):
    return {row["row"]: row for row in json.loads(out)["rows"]}


def line(out, *words):
    """The cells of the first line of text that holds all the words."""
    found = [text for text in out.splitlines() if all(word in text for word in words)]
    assert found, out
    return [cell.strip() for cell in found[0].split("  ") if cell.strip()]


# The MNIST rows of the paper.


def test_table_1_on_the_authors_mnist_votes(authors, run):
    code, out, err = run("table1", "--votes", authors)
    assert code == 0
    assert err == ""
    assert line(out, "LNMax", "  1000  ") == (
        ["MNIST", "LNMax", "1000", "1000", "1e-05", "6", "7.399", "1000", "8.03"]
    )
    assert line(out, "LNMax", "  100  ")[5:] == ["9", "2.043", "100", "2.04"]
    assert line(out, "Confident")[2:] == ["640", "282.7", "1e-05", "14", "1.999", "286", "1.97"]
    assert "computed 7.40 (moment 5) where the table prints 8.03; the last moment" in out
    assert "not the authors' file" not in out


def test_table_2_on_the_authors_mnist_votes(authors, run):
    code, out, _ = run("table2", "--quick", "--votes", authors, "--json")
    assert code == 0
    mnist = rows(out)["MNIST"]
    assert mnist["status"] == "ran"
    assert mnist["rounds"][0]["authentic"] is True
    assert (mnist["rounds"][0]["classes"], mnist["rounds"][0]["teachers"]) == (10, 250)
    assert mnist["expected_answers"] == pytest.approx(282.72, abs=0.005)
    assert mnist["best_order"] == 14.0
    assert mnist["expected_epsilon"] == pytest.approx(1.999, abs=5e-4)
    published, correct = mnist["as_published"], mnist["charged_correctly"]
    assert published["betas"] == [pytest.approx(0.46 / 14)]
    assert round(published["smooth_sensitivity"][0], 6) == 0.061747
    assert round(published["epsilon"], 3) == 2.516
    assert round(published["sd"], 3) == 0.385
    assert correct["betas"] == [0.0329]
    assert round(correct["smooth_sensitivity"][0], 5) == 0.06169
    assert round(correct["epsilon"], 3) == 3.606
    targets = mnist["tested_target"]["smallest_epsilon"]
    assert targets == {"two-tail": pytest.approx(1.3122, abs=2e-4)}
    assert mnist["worst_case"]["epsilon"] == pytest.approx(2.0499, abs=2e-4)
    upper = mnist["upper_release"]
    assert round(upper["epsilon"], 3) == 2.065
    assert round(upper["sd"], 3) == 0.086
    assert mnist["printed"]["epsilon"] == 2.52


def test_table_2_text_shows_the_printed_figures_beside(authors, run):
    code, out, _ = run("table2", "--quick", "--votes", authors)
    assert code == 0
    assert line(out, "MNIST", "printed  ")[2:] == (
        ["2.52 ± 0.385", "2.00", "14", "0.0329", "6.23", "0.0618"]
    )
    assert line(out, "as published  ")[:3] == ["as published", "2.516 ± 0.385", "1.999"]
    assert line(out, "charged correctly  ")[:3] == ["charged correctly", "3.606 ± 0.384", "1.999"]
    assert line(out, "tested, two-tail  ")[:3] == ["tested, two-tail", "1.313", "-"]
    assert line(out, "worst case  ")[:2] == ["worst case", "2.050"]
    assert "MNIST: 282.72 of 640 queries are expected to be answered" in out
    assert "0.0329 (for 0.46/14 = 0.032857)" in out
    assert "\x1b" not in out
    # It fits a terminal of 100 columns.
    rows_of_text = [text for text in out.splitlines() if text and not text.startswith("- ")]
    assert max(map(len, rows_of_text)) <= 100


# Other votes under the authors' names.


@pytest.fixture
def stand_ins(tmp_path, draw, save):
    """Files under the authors' names: floats as theirs are, other numbers of classes."""
    folder = tmp_path / "authors"
    adult = draw(teachers=250, classes=2, queries=120, agreement=0.85)
    save(folder, "adult_250_teachers.npy", adult.astype(np.float64))
    first = draw(teachers=300, classes=12, queries=40, agreement=0.8)
    second = draw(teachers=300, classes=12, queries=30, agreement=0.8, seed=2)
    save(folder, "glyph_round1.npy", first)
    save(folder, "glyph_round2.npy", second)
    guess = 0.5 * second / 300 + 0.5 / 12
    save(folder, "glyph_round2_student.npy", guess.astype(np.float32))
    return folder


def test_other_files_are_used_and_flagged(stand_ins, run, no_search):
    code, out, _ = run("table2", "--quick", "--votes", stand_ins, "--json")
    assert code == 0
    found = rows(out)
    adult = found["Adult"]
    assert adult["status"] == "ran"
    assert adult["rounds"][0]["classes"] == 2
    assert adult["rounds"][0]["authentic"] is False
    notes = json.loads(out)["notes"]
    assert any(
        "Adult: adult_250_teachers.npy is not the authors' file (its sha256" in n for n in notes
    )
    assert any("adult_250_teachers.npy holds 120 rows, the table asks 1500" in n for n in notes)
    glyph = found["Glyph, 2 rounds"]
    assert glyph["status"] == "ran"
    assert glyph["upper_release"]["epsilon"] > 0
    assert glyph["tested_target"] is None
    assert any(n.startswith("Glyph, 2 rounds: no target for all rounds") for n in notes)
    assert [asked["queries"] for asked in glyph["rounds"]] == [40, 30]
    assert [asked["student"] for asked in glyph["rounds"]] == [False, True]
    assert glyph["rounds"][0]["authentic"] is None
    assert len(glyph["as_published"]["smooth_sensitivity"]) == 2
    for name in ("MNIST", "SVHN", "Glyph"):
        assert found[name]["status"] == "votes absent"
        assert "as_published" not in found[name]


def test_interactive_rounds_compare_the_votes_to_the_student(stand_ins, run):
    """Round 2 written out: Pr[answer] = Φ((max_j(n_j − τ p_j) − T)/σ1)."""
    from scipy.stats import norm

    code, out, _ = run("table1", "--votes", stand_ins, "--json")
    assert code == 0
    row = rows(out)["Glyph, Interactive-GNMax, two rounds"]
    first = np.load(stand_ins / "glyph_round1.npy")
    second = np.load(stand_ins / "glyph_round2.npy")
    student = np.load(stand_ins / "glyph_round2_student.npy").astype(float)
    surprise = (second - 300 * student).max(axis=1)
    answers = norm.cdf((first.max(axis=1) - 3500) / 1500).sum()
    answers += norm.cdf((surprise - 3500) / 2000).sum()
    assert row["asked"] == 70
    assert row["answered"] == pytest.approx(answers, rel=1e-9)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda p: p[:, :-1], "of shape (30, 11) do not fit votes (30, 12)"),
        (lambda p: p[:-1], "of shape (29, 12) do not fit votes (30, 12)"),
        (lambda p: p * 1.1, "row 0 is no probability distribution"),
        (lambda p: np.where(np.arange(30)[:, None] == 17, np.nan, p), "row 17 is no probability"),
        (lambda p: p.astype(object), "is not an NPY array of student predictions"),
        (lambda p: p.astype(str), "is not an NPY array of student predictions"),
    ],
)
def test_bad_student_predictions_are_refused(stand_ins, save, run, spoil, reason):
    good = np.load(stand_ins / "glyph_round2_student.npy")
    save(stand_ins, "glyph_round2_student.npy", spoil(good))
    code, out, _ = run("table1", "--votes", stand_ins, "--json")
    assert code == 3
    row = rows(out)["Glyph, Interactive-GNMax, two rounds"]
    assert row["status"] == "votes unreadable"
    assert reason in row["reason"]


def test_printed_figures_that_do_not_add_up_are_named(tmp_path, draw, save, run, no_search):
    """4.96 and Theorem 23 at β = .0533, σ = 4.88, order 7.5 are 5.50; Table 2 prints 5.45."""
    save(tmp_path, "svhn_250_teachers.npy", draw(teachers=250, classes=10, queries=100))
    _, out, _ = run("table2", "--quick", "--votes", tmp_path)
    assert "- SVHN: the printed figures do not add up: 4.96 and the 0.535 of Theorem 23" in out


def test_absent_rows_name_the_file_and_the_archive(stand_ins, run):
    code, out, _ = run("table1", "--votes", stand_ins)
    assert code == 0
    assert line(out, "SVHN", "Confident") == (
        ["SVHN", "Confident-GNMax: votes absent", "-", "-", "-", "-", "-", "3098", "4.96"]
    )
    assert f"- SVHN, Confident-GNMax: absent from {stand_ins}: svhn_250_teachers.npy" in out
    assert line(out, "Glyph", "scale not published")[-2:] == ["4000", "4.30"]
    assert "the paper does not say which Laplace scale" in out
    assert ARCHIVE in out


@pytest.mark.parametrize("table", ["table1", "table2"])
def test_no_row_at_all_is_exit_3(tmp_path, run, table):
    code, out, _ = run(table, "--votes", tmp_path, "--json")
    assert code == 3
    assert {row["status"] for row in rows(out).values()} <= {"votes absent", "scale not published"}


def test_an_unreadable_file_is_exit_3_though_others_ran(stand_ins, run, no_search):
    (stand_ins / "svhn_250_teachers.npy").write_bytes(b"\x93NUMPY")
    code, out, _ = run("table2", "--quick", "--votes", stand_ins, "--json")
    assert code == 3
    assert rows(out)["SVHN"]["status"] == "votes unreadable"
    assert rows(out)["Adult"]["status"] == "ran"


# Samples.


@pytest.fixture
def samples(tmp_path, draw, save):
    """Two vote files in two formats, and files that are no votes."""
    folder = tmp_path / "samples"
    folder.mkdir()
    votes = draw(teachers=100, classes=4, queries=80)
    pq.write_table(pa.table({f"class_{j}": votes[:, j] for j in range(4)}), folder / "a.parquet")
    save(folder, "b.npy", draw(teachers=250, classes=10, queries=200))
    save(folder, "b_truth.npy", np.arange(5))
    save(folder, "student.npy", np.ones((5, 2)) / 2)
    save(folder, "labels.npy", np.arange(5))
    (folder / "README.md").write_text("no votes")
    return folder


def test_samples_have_no_printed_figures(samples, run):
    code, out, _ = run("table1", "--samples", samples, "--json")
    assert code == 0
    found = rows(out)
    assert list(found) == [
        "a.parquet, LNMax",
        "a.parquet, Confident-GNMax",
        "b.npy, LNMax",
        "b.npy, Confident-GNMax",
    ]
    assert found["a.parquet, LNMax"]["laplace_scale"] == pytest.approx(8.0)
    assert found["b.npy, LNMax"]["asked"] == 200
    confident = found["b.npy, Confident-GNMax"]
    assert confident["rounds"] == [{"threshold": 200.0, "sigma1": 150.0, "sigma2": 40.0}]
    assert confident["printed"] is None
    assert "no published figures to compare" in json.loads(out)["notes"][0]


def test_samples_as_csv_and_as_latex(samples, run):
    code, out, _ = run("table1", "--samples", samples, "--csv")
    assert code == 0
    read = list(csv.DictReader(io.StringIO(out)))
    assert [row["data"] for row in read] == ["a.parquet"] * 2 + ["b.npy"] * 2
    assert float(read[0]["epsilon"]) > 0
    (samples / "a.parquet").rename(samples / "a_b.parquet")
    code, out, _ = run("table1", "--samples", samples, "--latex")
    assert code == 0
    table, _, notes = out.partition("\\end{tabular}\n")
    assert table.startswith("\\begin{tabular}{llrrrrr}\n\\toprule\ndata & aggregator & asked")
    lines = [text for text in table.splitlines() if text.endswith("\\\\")]
    assert len(lines) == 5
    assert lines[1].startswith("a\\_b.parquet & LNMax & $80$ & $80$ & $10^{-5}$ & ")
    assert all(text.count(" & ") == 6 for text in lines)
    assert "$\\delta$ $10^{-5}$, at most $12{,}000$ rows" in notes
    assert run("table1", "--samples", samples, "--tex")[:2] == (code, out)


def test_notes_are_in_the_words_of_the_command_line(samples, run, no_search):
    pq.write_table(pa.table({"teacher_0": ["yes"], "teacher_1": ["no"]}), samples / "words.parquet")
    _, out, _ = run("table2", "--quick", "--samples", samples)
    assert "convert it or drop it, or give --label-names if it holds votes in words\n" in out
    assert "- Upper release (--release upper): every row" in out
    _, out, _ = run("table2", "--quick", "--samples", samples, "--latex")
    assert "\\texttt{-{}-label-names} if it holds votes in words\\par\n" in out
    assert "\nUpper release (\\texttt{-{}-release upper}): every row" in out
    assert "below the true value with probability $\\delta$/10 only" in out
    assert " \\pm " in out
    assert " & -- & " in out
    assert out.count("\\addlinespace\n") == 1
    assert not set("`<>|±").intersection(out)


def test_what_does_not_open_as_votes_is_passed_over_with_a_note(samples, run):
    pq.write_table(pa.table({"teacher_0": ["yes"], "teacher_1": ["no"]}), samples / "words.parquet")
    (samples / "torn.npy").write_bytes(b"\x93NUMPY")
    code, out, _ = run("table1", "--samples", samples, "--json")
    assert code == 0
    assert {name.partition(",")[0] for name in rows(out)} == {"a.parquet", "b.npy"}
    noted = [note for note in json.loads(out)["notes"] if "passed over" in note]
    assert [note.partition(":")[0] for note in noted] == ["torn.npy", "words.parquet"]
    (samples / "a.parquet").unlink()
    (samples / "b.npy").unlink()
    code, out, err = run("table1", "--samples", samples)
    assert (code, out) == (3, "")
    assert "holds no vote file (.parquet or .npy); give --votes DIR; torn.npy: passed over" in err


def test_samples_in_table_2(samples, run, no_search):
    code, out, _ = run("table2", "--quick", "--samples", samples)
    assert "printed" not in [cell for text in out.splitlines() for cell in text.split()[:2]]
    assert "no published figures to compare" in out
    # C6 fails for σ2 = 16 at the order that a.parquet leads to, and holds for b.npy: a row ran.
    assert code == 0
    released = [shown for shown in out.splitlines() if "as published  " in shown]
    assert [shown.split()[0] for shown in released] == ["a.parquet", "b.npy"]
    assert ["condition fails" in shown for shown in released] == [True, False]


def test_a_failing_condition_is_said_and_is_exit_4(tmp_path, draw, save, run):
    folder = tmp_path / "small"
    save(folder, "small.npy", draw(teachers=20, classes=3, queries=60))
    code, out, _ = run("table2", "--quick", "--samples", folder)
    assert code == 4
    assert line(out, "as published  ")[2] == "condition fails"
    assert "smooth sensitivity is not valid at order" in out
    code, out, _ = run("table2", "--quick", "--samples", folder, "--json")
    assert code == 4
    row = rows(out)["small.npy"]
    assert row["status"] == "a condition fails"
    assert row["as_published"] is None
    assert row["charged_correctly"] is None
    assert "C6" in row["failed_condition"]
    # What does not rest on the condition is still there.
    assert row["expected_epsilon"] > 0
    assert row["upper_release"]["epsilon"] > 0


def test_an_ambiguous_sample_is_read_as_counts(tmp_path, save, run):
    folder = tmp_path / "same"
    save(folder, "same.npy", np.tile([250, 0, 0], (20, 1)))
    code, out, _ = run("table1", "--samples", folder, "--json")
    assert code == 0
    assert rows(out)["same.npy, LNMax"]["laplace_scale"] == pytest.approx(20.0)


@pytest.mark.parametrize("table", ["table1", "table2"])
def test_no_samples_is_exit_3(tmp_path, run, table):
    code, out, err = run(table, "--samples", tmp_path)
    assert (code, out) == (3, "")
    assert err.endswith("holds no vote file (.parquet or .npy); give --votes DIR\n")
    code, out, err = run(table, "--samples", tmp_path / "nowhere")
    assert (code, out) == (3, "")
    assert err.endswith("nowhere: no such folder; give --votes DIR\n")


def test_rich_on_a_terminal(samples, monkeypatch, run):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "160")
    code, out, _ = run("table1", "--samples", samples)
    assert code == 0
    assert "─" in out
    assert "Confident-GNMax" in out


def test_a_stream_without_unicode_and_a_reader_that_leaves(samples, draw, save):
    (samples / "a.parquet").unlink()
    save(samples, "b.npy", draw(teachers=20, classes=2, queries=20))
    command = [sys.executable, "-m", "pate_cli.reproduction"]
    command += ["table2", "--quick", "--samples", str(samples)]
    plain = os.environ | {"PYTHONIOENCODING": "ascii"}
    said = subprocess.run(command, capture_output=True, env=plain, check=False)
    assert said.returncode == 4
    assert said.stderr == b""
    assert b" +- " in said.stdout
    command[3:5] = ["table1"]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        said = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, check=False)
    assert (said.returncode, said.stderr) == (141, b"")


def test_usage_errors_are_exit_2(run):
    with pytest.raises(SystemExit) as caught:
        run("table3")
    assert caught.value.code == 2
