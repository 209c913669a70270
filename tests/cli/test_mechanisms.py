"""`pate aggregate` with other mechanisms and the published analysis: labels, reports, refusals."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pate_cli.core.noise import RunKey
from pate_cli.mechanisms.sparse_vector import SparseVector
from pate_cli.mechanisms.stability import Stability

STUDENT = ["--mechanism", "interactive", "--student", "student.parquet"]


@pytest.fixture
def shares(counts):
    """A student that is right and sure on even rows and clueless on odd ones."""
    values = np.full(counts.shape, 0.25)
    values[::2] = 0.01
    values[np.arange(0, 60, 2), counts[::2].argmax(axis=1)] = 0.97
    return values


@pytest.fixture
def student(folder, shares):
    """Write a student's predictions, those of `shares` unless others are given."""

    def write(values=shares, ids=None, name="student.parquet"):
        columns = {f"class_{j}": values[:, j] for j in range(values.shape[1])}
        if ids is not None:
            columns["query_id"] = ids
        pq.write_table(pa.table(columns), folder / name)
        return folder / name

    return write


@pytest.fixture
def ran(pate, votes, folder):
    """Run `aggregate`; the report, and labels and sources by row."""

    def run(*words, at=votes):
        dear = ["--max-epsilon", 1000]  # small teachers cost much
        result = pate("aggregate", at, "-o", "l.parquet", "--force", *dear, *words)
        assert result.exit_code == 0, result.stderr
        table = pq.read_table(folder / "l.parquet").to_pydict()
        labels = [-1 if label is None else label for label in table["label"]]
        return json.loads(result.stdout), np.array(labels), np.array(table["source"])

    return run


def test_sure_students_are_reinforced_and_their_labels_say_so(ran, student, shares):
    student()
    report, labels, sources = ran(*STUDENT, "--threshold", 25, "--sigma1", "0.5 votes")
    told = json.loads(pq.read_schema("l.parquet").metadata[b"pate"])["sources"]
    assert "student: its own label, reinforced" in told
    assert set(sources[::2]) == {"student"}
    np.testing.assert_array_equal(labels[::2], shares[::2].argmax(axis=1))
    assert "student" not in set(sources[1::2])
    assert np.all((labels == -1) == (sources == "none"))
    assert report["answers"] == np.sum(sources == "teachers") > 0
    assert report["mechanism"]["confidence"] == 0.9
    # A student is never sure enough for a confidence of 1.
    _, _, sources = ran(*STUDENT, "--confidence", 1)
    assert "student" not in set(sources)


PREDICTED = "the student's predictions in student.parquet"
NO_SUM = "must hold probabilities that sum to 1 within 1e-6, as from softmax or predict_proba"


def with_row(row, value):
    def change(values):
        values = values.copy()
        values[row] = value
        return values

    return change


BAD_STUDENTS = {
    "sum": (with_row(17, [0.3, 0.3, 0.3, 0.3]), None, f"{PREDICTED}: row 17 {NO_SUM}"),
    "NaN": (with_row(5, np.nan), None, f"{PREDICTED}: row 5 {NO_SUM}"),
    "negative": (with_row(9, [1.5, -0.5, 0, 0]), None, f"{PREDICTED}: row 9 {NO_SUM}"),
    "logits": (lambda values: 9.0 * values, None, f"{PREDICTED}: row 0 {NO_SUM}"),
    "missing row": (
        lambda values: values[:41],
        None,
        f"{PREDICTED}: ends at row 40, but the votes go on to row 59; "
        "give one row per query, or query_id",
    ),
    "missing id": (
        lambda values: values[:41],
        range(41),
        f"{PREDICTED}: row 41 belongs to a query without predictions",
    ),
    "id twice": (
        lambda values: values,
        [*range(33), 7, *range(34, 60)],
        f"{PREDICTED}: row 33 has the query id of row 7, too",
    ),
    "classes": (
        lambda values: values[:, :3] / values[:, :3].sum(axis=1, keepdims=True),
        None,
        f"{PREDICTED}: must be probabilities [queries, 4], got (60, 3)",
    ),
}


@pytest.mark.parametrize("case", BAD_STUDENTS)
@pytest.mark.parametrize("command", ["aggregate", "cost"])
def test_bad_predictions_are_named_by_row(
    pate, refused, votes, student, shares, leftovers, case, command
):
    change, ids, message = BAD_STUDENTS[case]
    student(change(shares), ids=None if ids is None else list(ids))
    refused(pate(command, votes, *STUDENT), 3, message)
    assert leftovers() == ["student.parquet"]


STABLE = [["--mechanism", "stability"], ["--mechanism", "sparse-vector"]]
WIDE = ["--query-epsilon", 5, "--query-delta", 1e-7]


@pytest.mark.parametrize("words", STABLE, ids=lambda words: words[1])
def test_stable_labels_are_exact_pluralities(ran, counts, words):
    report, labels, sources = ran(*words, *WIDE, "--seed", 4)
    answered = labels >= 0
    assert 5 < answered.sum() < 60
    np.testing.assert_array_equal(labels[answered], counts[answered].argmax(axis=1))
    np.testing.assert_array_equal(sources, np.where(answered, "teachers", "none"))
    if words[1] == "stability":
        mechanism = Stability(40, 4, query_epsilon=5.0, query_delta=1e-7)
        price = mechanism.privacy(60, 1e-5)
    else:
        mechanism = SparseVector(40, 4, query_epsilon=5.0, query_delta=1e-7, refusals=10)
        price = mechanism.privacy(60, 1e-5)
        refusals = np.flatnonzero(~answered)
        if len(refusals) >= 10:
            np.testing.assert_array_equal(refusals[9:], np.arange(refusals[9], 60))
    np.testing.assert_array_equal(labels, mechanism.label(counts, RunKey.of(4).rows(0, 1)))
    assert price.epsilon <= report["epsilon"] <= price.epsilon + 1.01e-4
    assert report["mechanism"] == mechanism.parameters()
    assert report["rounds"][0]["analysis"] == "composition"
    assert report["data_independent"]["method"] == price.method
    assert report.get("sanitized") is None


def test_a_stable_epsilon_does_not_look_at_the_votes(pate, ran, counts, tmp_path):
    np.save(tmp_path / "other.npy", np.ascontiguousarray(np.roll(counts, 1, axis=1)[::-1]))
    for words in STABLE:
        one, _, _ = ran(*words)
        other, _, _ = ran(*words, at=tmp_path / "other.npy")
        assert one["epsilon"] == other["epsilon"]
        assert one["mechanism"] == other["mechanism"]


@pytest.mark.parametrize("words", STABLE, ids=lambda words: words[1])
@pytest.mark.parametrize(
    ("more", "what"),
    [
        (["--release", "upper"], "--release upper"),
        (["--ledger", "l.json"], "a ledger"),
        (["--analysis", "paper"], "--analysis paper"),
    ],
)
def test_stable_mechanisms_have_nothing_to_sanitize(
    pate, refused, votes, leftovers, words, more, what
):
    said = f"{what} does not go with {words[1]}, which has no Renyi cost to keep or to sanitize"
    for dry in ([], ["--dry-run"]):
        refused(pate("aggregate", votes, *words, *more, *dry), 2, said)
    assert leftovers() == []


# The MNIST row's release, λβ = 0.46: past a quarter the published theorem fails.
