"""Names of classes on the command line: in, out, and beside the votes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pate_cli
from pate_cli.core.words import MechanismName
from pate_cli.mechanisms import MechanismChoice
from pate_cli.verbs.request import Request

NAMES = ["World", "Sports", "Business", "Sci/Tech"]
WORDS = ",".join(NAMES)
OPTIONS = ["--mechanism", "gnmax", "--sigma2", 2, "--seed", 5, "--report", "report.json"]


@pytest.fixture
def numbers():
    """Labels [queries, teachers] on which the teachers agree."""
    rng = np.random.default_rng(4)
    truth = np.arange(60) % 4
    wrong = rng.random((60, 40)) < 0.1
    return np.where(wrong, rng.integers(0, 4, size=(60, 40)), truth[:, np.newaxis])


@pytest.fixture
def ballots(tmp_path, numbers):
    """The same in words, with 3 rows of abstentions."""
    words = np.array(NAMES, dtype=object)[numbers]
    words[5, 0], words[6, 1], words[6, 2], words[7, 3], words[8, 4] = "?", "no", "", "sports", None
    path = tmp_path / "ballots.parquet"
    columns = {f"teacher_{t}": pa.array(words[:, t]).dictionary_encode() for t in range(40)}
    pq.write_table(pa.table(columns), path)
    return path


def test_votes_in_words_give_labels_in_words(pate, ballots, numbers, folder):
    result = pate("aggregate", ballots, "--label-names", WORDS, *OPTIONS, "-o", "labels.csv")
    assert result.exit_code == 0, result.stderr
    with Path("labels.csv").open(newline="") as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    truth = [NAMES[q % 4] for q in range(60)]
    assert np.mean([a == b for a, b in zip(labels, truth, strict=True)]) == 1.0
    report = (folder / "report.json").read_text()
    assert json.loads(report)["label_names"] == NAMES
    assert json.loads(report)["sound"] is True
    # How many rows were odd stays with the holder.
    odd = ("match no", "unmatched", "label name")
    told = (report, result.stdout, result.stderr)
    assert not any(word in text for word in odd for text in told)


def test_names_from_a_file_and_labels_as_a_dictionary(pate, ballots, tmp_path, folder):
    (tmp_path / "names").write_text("\n".join(NAMES) + "\n")
    told = ["--label-names", f"@{tmp_path / 'names'}"]
    result = pate("aggregate", ballots, *told, *OPTIONS, "-o", "labels.parquet")
    assert result.exit_code == 0, result.stderr
    column = pq.read_table("labels.parquet").column("label")
    assert column.chunk(0).dictionary.to_pylist() == NAMES
    result = pate("aggregate", ballots, *told, *OPTIONS, "-o", tmp_path / "names", "--force")
    assert result.exit_code == 2
    result = pate(
        "aggregate",
        ballots,
        *told,
        *OPTIONS,
        "-o",
        "l.csv",
        "--force",
        "--ledger",
        tmp_path / "names",
    )
    assert result.exit_code == 2
    assert "no earlier output of this kind, so not even --force replaces it" in result.stderr
    assert (tmp_path / "names").read_text().split() == NAMES


def test_numbers_and_words_draw_the_same_labels(numbers):
    plain = {"layout": "labels", "classes": 4}
    told = {"mechanism": "gnmax", "sigma2": 2.0, "seed": 3}
    with pate_cli.open_votes(numbers, **plain) as votes:
        without = pate_cli.aggregate(votes, **told)
    with pate_cli.open_votes(numbers, layout="labels", label_names=NAMES) as votes:
        named = pate_cli.aggregate(votes, **told)
    np.testing.assert_array_equal(named.labels.labels, without.labels.labels)
    assert named.report.to_dict() == {**without.report.to_dict(), "label_names": NAMES}
    assert without.labels.label_names is None
    assert named.labels.label_names == tuple(NAMES)


def test_a_checkpoint_under_other_names_is_of_another_run(votes):
    def digest(names, **lenient):
        with pate_cli.open_votes(votes, label_names=names, **lenient) as file:
            request = Request(file, MechanismChoice(MechanismName.GNMAX), 60, 60, 1e-5)
            return request.described(())

    assert digest(NAMES) == digest(tuple(NAMES))
    assert len({digest(None), digest(NAMES), digest(NAMES[::-1])}) == 3
    one, other = {"a": "World", "b": "Sports"}, {"b": "Sports", "a": "World"}
    assert digest(NAMES, aliases=one) == digest(NAMES, aliases=other)
    lenient = [{}, {"normalise": True}, {"aliases": one}, {"normalise": True, "aliases": one}]
    assert len({digest(NAMES, **words) for words in lenient}) == 4


def test_a_student_is_read_by_name(pate, tmp_path):
    counts = {"query_id": list(range(40)), "ant": [20] * 40, "bee": [0] * 40}
    pq.write_table(pa.table(counts), tmp_path / "votes.parquet")
    # Sure of the class that every teacher votes for: so nobody needs to be asked.
    pq.write_table(pa.table({"bee": [0.0] * 40, "ant": [1.0] * 40}), tmp_path / "student.parquet")
    result = pate(
        *("aggregate", tmp_path / "votes.parquet", "--label-names", "ant,bee", "--seed", 1),
        *("--mechanism", "interactive", "--student", tmp_path / "student.parquet"),
        *("--threshold", 15, "--sigma1", "0.5 votes", "--sigma2", 1),
        *("-o", "labels.csv", "--report", "r.json"),
    )
    assert result.exit_code == 0, result.stderr
    with Path("labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["label"], row["source"]) for row in rows} == {("ant", "student")}


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--label-names", "World"], 2, "--label-names: at least 2 names are needed, got 1"),
        (["--label-names", "@gone"], 2, "cannot read gone (No such file or directory)"),
        (
            ["--label-names", WORDS, "--classes", 3],
            2,
            "--classes is 3, but --label-names are 4",
        ),
        ([], 3, "is of type text"),
    ],
)
def test_refusals(pate, ballots, refused, words, code, text):
    assert text in refused(pate("aggregate", ballots, *words), code)


def test_the_trap_of_a_file_turned_round(pate, tmp_path, refused, numbers):
    """As many teachers as there are queries: their votes would seem to cost next to nothing."""
    np.save(tmp_path / "turned.npy", numbers.T)
    words = ["--layout", "labels", "--classes", 4, "--dry-run"]
    line = refused(pate("aggregate", tmp_path / "turned.npy", *words), 3)
    assert "as labels it has 60 teachers and 40 queries" in line
    assert "--teachers" in line
    told = json.loads(pate("aggregate", tmp_path / "turned.npy", *words, "--teachers", 60).stdout)
    words[1] = "labels-by-teacher"
    right = json.loads(pate("aggregate", tmp_path / "turned.npy", *words).stdout)
    assert (told["queries"], right["queries"]) == (40, 60)
