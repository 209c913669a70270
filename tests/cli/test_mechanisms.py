"""`pate aggregate` with other mechanisms and the published analysis: labels, reports, refusals."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pate_cli.accounting.gnss import gnss_rdp, shift_quantile
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


def test_no_student_label_after_the_stop(ran, student):
    student()
    words = [*STUDENT, "--threshold", 20, "--sigma1", 4, "--max-answers", 3, "--seed", 2]
    report, _, sources = ran(*words)
    assert report["answers"] == 3
    last = np.flatnonzero(sources == "teachers")[-1]
    assert last < 50
    assert "student" in set(sources[:last])
    assert set(sources[last + 1 :]) == {"none"}


def test_predictions_are_matched_by_id_or_by_order(ran, student, shares):
    student()
    words = [*STUDENT, "--seed", 3]
    _, by_order, order_sources = ran(*words)
    shuffled = np.random.default_rng(1).permutation(60)
    student(shares[shuffled], ids=shuffled)
    _, by_id, id_sources = ran(*words)
    np.testing.assert_array_equal(by_id, by_order)
    np.testing.assert_array_equal(id_sources, order_sources)
    student(shares[shuffled])
    _, wrong, _ = ran(*words)
    assert wrong.tolist() != by_order.tolist()


def test_predictions_are_matched_by_the_ids_of_the_votes(ran, student, counts, shares, tmp_path):
    ids = np.array([f"q{place}" for place in range(60)])
    columns = {f"class_{j}": counts[:, j] for j in range(4)}
    pq.write_table(pa.table({"query_id": ids, **columns}), tmp_path / "named.parquet")
    words = [*STUDENT, "--seed", 3]
    student()
    _, wanted, _ = ran(*words)
    student(shares[::-1], ids=ids[::-1])
    _, found, _ = ran(*words, at=tmp_path / "named.parquet")
    np.testing.assert_array_equal(found, wanted)


PREDICTED = "the student's predictions in student.parquet"
NO_SUM = "has no probabilities that sum to 1 within 1e-6; give a softmax, or predict_proba"


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
        f"{PREDICTED}: ends at row 40, the votes go on to row 59; give a row a query, or a "
        "column `query_id`",
    ),
    "missing id": (
        lambda values: values[:41],
        range(41),
        f"{PREDICTED}: row 41 has a query without any",
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


def test_predictions_that_cannot_be_read(pate, refused, votes, student, folder, leftovers):
    path = student()
    path.write_bytes(path.read_bytes()[:-30])
    refused(
        pate("aggregate", votes, *STUDENT),
        3,
        "student.parquet: cannot be read: it is damaged or cut short; write it again",
    )
    path.unlink()
    refused(
        pate("aggregate", votes, *STUDENT),
        3,
        "student.parquet: no such file or folder",
    )
    assert leftovers() == []


def test_predictions_are_never_replaced_by_labels(pate, refused, votes, student):
    path = student()
    before = path.read_bytes()
    refused(
        pate("aggregate", votes, *STUDENT, "-o", "student.parquet", "--force"),
        2,
        "student.parquet is no earlier output of this kind, so not even --force replaces it; give "
        "the output another name",
    )
    assert path.read_bytes() == before


def test_a_student_who_agrees_costs_only_the_checks(pate, votes, student, counts):
    student(counts / 40.0)
    words = [*STUDENT, "--threshold", 30, "--sigma1", 6, "--order", 6]
    found = json.loads(pate("cost", votes, *words).stdout)
    assert found["expected_answers"] < 1e-4
    checks = found["steps"]["threshold"][0]
    assert found["rdp"][0] >= checks > 0.0
    plain = json.loads(pate("cost", votes, "--threshold", 30, "--sigma1", 6, "--order", 6).stdout)
    assert found["rdp"][0] < 1e-3 * plain["rdp"][0]


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
    np.testing.assert_array_equal(labels, mechanism.label(counts, RunKey.from_seed(4).rows(0, 1)))
    assert price.epsilon <= report["epsilon"] <= price.epsilon + 1.01e-4
    assert report["mechanism"] == mechanism.parameters()
    assert report["rounds"][0]["analysis"] == "composition"
    assert report["data_independent"]["method"] == price.method
    assert report["sanitized"]["epsilon"] is None


def test_the_run_ends_with_the_last_refusal(ran):
    words = ["--mechanism", "sparse-vector", "--refusals", 2, "--query-epsilon", 12]
    report, labels, _ = ran(*words, "--query-delta", 1e-6, "--seed", 4)
    refusals = np.flatnonzero(labels < 0)
    assert 3 <= refusals[1] < 50
    np.testing.assert_array_equal(refusals[1:], np.arange(refusals[1], 60))
    assert report["mechanism"]["refusals"] == 2
    assert report["answers"] == np.sum(labels >= 0)
    dearer, _, _ = ran(*words[:3], 5, *words[4:], "--query-delta", 1e-6)
    assert dearer["epsilon"] > report["epsilon"]


@pytest.mark.parametrize("words", STABLE, ids=lambda words: words[1])
def test_a_stable_dry_run_names_the_price_of_the_run(pate, votes, ran, words):
    result = pate("aggregate", votes, "--dry-run", *words, "--max-answers", 9)
    priced = json.loads(result.stdout)
    assert "nothing was drawn or spent" in result.stderr
    report, _, _ = ran(*words, "--max-answers", 9)
    for field in ("epsilon", "delta", "mechanism", "queries", "max_answers", "data_independent"):
        assert priced[field] == report[field]
    assert priced["threshold"] > 0.0


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


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ["--mechanism", "stability", "--query-delta", 1e-4],
            5,
            "delta 1e-05 is below 2.996e-03, the smallest reachable with 60 steps of delta 5e-05 "
            "each",
        ),
        (
            ["--mechanism", "stability", "--query-delta", 0],
            2,
            "query delta must be above 0 and below 1, got 0.0",
        ),
        (
            ["--mechanism", "stability", "--query-epsilon", -1],
            2,
            "query epsilon must be positive and finite, got -1.0",
        ),
        (
            ["--mechanism", "sparse-vector", "--refusals", 0],
            2,
            "refusals must be a whole number of at least 1, got 0",
        ),
        (
            ["--mechanism", "stability", "--refusals", 3],
            2,
            "--refusals does not go with --mechanism stability, which takes --query-epsilon, "
            "--query-delta",
        ),
        (
            ["--mechanism", "sparse-vector", "--sigma2", 3],
            2,
            "--sigma2 does not go with --mechanism sparse-vector, which takes --query-epsilon, "
            "--query-delta, --refusals",
        ),
        (
            ["--mechanism", "stability", "--teachers-per-record", 20],
            2,
            "40 teachers are too few for a stable vote: at least 41 needed",
        ),
        (
            ["--mechanism", "stability", "--delta", 1],
            2,
            "--delta must be above 0 and below 1, got 1.0",
        ),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else None,
)
def test_stable_numbers_out_of_range(pate, refused, votes, leftovers, words, code, message):
    refused(pate("aggregate", votes, *words), code, message)
    assert leftovers() == []


PAPER = ["--analysis", "paper", "--order", 14, "--sigma2", 40]
# The MNIST row's release, λβ = 0.46: past a quarter the published theorem fails.
BOLD = [*PAPER, "--beta", 0.0329, "--sigma-release", 6.23]
MILD = [*PAPER, "--beta", 0.005, "--sigma-release", 6.23]


@pytest.mark.parametrize("words", [BOLD, MILD], ids=["bold", "mild"])
def test_what_the_paper_draws_is_charged_what_it_costs_and_is_no_bound(ran, words):
    report, _, _ = ran(*words, "--release", "upper", "--seed", 1)
    found = report["sanitized"]
    beta, sigma, order = found["beta"], found["sigma_release"], found["order"]
    shift = sigma * shift_quantile(found["delta_failure"])
    exact = gnss_rdp(beta=beta, sigma=sigma, order=order, shift=shift)
    assert found["release_rdp"] == pytest.approx(exact, rel=1e-12)
    assert report["sound"] is False
    assert "charges the expected cost" in report["warnings"][0]
    assert not any(text["holds"] for text in report["statements"])


def test_a_smoothness_the_published_theorem_does_not_admit_is_refused_in_advance(
    pate, refused, votes
):
    words = [*PAPER[:2], "--order", 2.5, "--beta", 0.2, "--sigma-release", 6]
    message = (
        "the published GNSS theorem needs 1 < order < 1/(2 beta) = 2.5 (beta < 0.2 at this order), "
        "got order 2.5 with beta 0.2"
    )
    for more in ([], ["--dry-run"]):
        refused(pate("aggregate", votes, *words, *more), 2, message)
    assert pate("aggregate", votes, *words[2:]).exit_code == 0


def test_the_paper_has_no_release_for_laplace_noise(pate, refused, votes, leftovers):
    words = ["--mechanism", "lnmax", "--analysis", "paper"]
    message = "the published analysis has no smooth sensitivity for lnmax; use --analysis tight"
    for more in ([], ["--dry-run"], ["--release", "none"]):
        refused(pate("aggregate", votes, *words, *more), 2, message)
    shared = ["--analysis", "paper", "--teachers-per-record", 2]
    refused(
        pate("aggregate", votes, *shared),
        2,
        "the published analysis knows disjoint teachers only; --teachers-per-record goes with "
        "--analysis tight",
    )
    assert leftovers() == []


def test_without_a_draw_the_paper_analysis_is_still_sound(ran):
    report, _, _ = ran(*PAPER, "--release", "none")
    tight, _, _ = ran("--sigma2", 40, "--release", "none")
    assert report["sound"] is True
    assert report["epsilon"] == report["data_independent"]["epsilon"] == tight["epsilon"]
    held = {text["id"] for text in report["statements"] if text["holds"]}
    assert held == {"all-votes"}
