"""`pate cost`: JSON for a pipe, tables for a person, a row per query, mechanisms side by side."""

from __future__ import annotations

import csv
import json
import re
import stat
from itertools import product

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from pate_cli.core.said import as_html
from pate_cli.core.words import MechanismName
from pate_cli.planning.cost import TIGHT_ORDERS
from pate_cli.planning.words import of_cost
from slices import some


@pytest.fixture
def priced(pate, votes):
    def run(*words, at=votes):
        result = pate("cost", at, *words)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return run


@pytest.fixture
def student(folder, counts):
    random = np.random.default_rng(5)
    np.save(folder / "student.npy", random.dirichlet(np.full(4, 0.4), size=len(counts)))
    return folder / "student.npy"


MECHANISMS = [[], ["--mechanism", "gnmax"], ["--mechanism", "lnmax"]]
ANALYSES = ["tight", "paper"]


@pytest.mark.parametrize(
    ("words", "analysis"),
    some(product(MECHANISMS, ANALYSES), 5),
    ids=lambda given: given if isinstance(given, str) else given[-1] if given else "confident",
)
def test_every_order_and_step_is_there_and_adds_up(priced, words, analysis):
    found = priced(*words, "--analysis", analysis)
    assert found["releasable"] is False
    assert found["analysis"] == analysis
    assert len(found["orders"]) == len(found["rdp"]) > 5
    if analysis == "tight":
        assert found["orders"] == TIGHT_ORDERS.tolist()
    assert set(found["steps"]) == ({"argmax"} if words else {"threshold", "argmax"})
    for at, rdp in enumerate(found["rdp"]):
        assert sum(step[at] for step in found["steps"].values()) == pytest.approx(rdp, rel=1e-12)
    best = found["orders"].index(found["order"])
    log_delta = np.log(1e-5)
    order, rdp = found["order"], found["rdp"][best]
    conversion = -log_delta / (order - 1)
    if analysis == "tight":
        conversion = np.log1p(-1 / order) - (log_delta + np.log(order)) / (order - 1)
    assert found["epsilon"] == pytest.approx(rdp + conversion, rel=1e-12)
    by_plurality = found["per_query"]["by_plurality"]
    assert sum(row["queries"] for row in by_plurality) == found["queries"] == 60
    assert sum(row["share_of_cost"] for row in by_plurality) == pytest.approx(1.0)


@pytest.fixture
def prior(tmp_path, counts):
    """Wrong on one query of ten, and silent about one."""
    path, guesses = tmp_path / "guesses.npy", counts.argmax(axis=1)
    guesses[::10] = (guesses[::10] + 1) % 4
    guesses[5] = -1
    np.save(path, guesses)
    return path


def test_with_a_prior_it_tells_where_that_agrees(priced, prior):
    found = priced("--prior", prior, "--prior-weight", 8)
    by_prior = found["per_query"]["by_prior"]
    asked = {name: row["queries"] for name, row in by_prior.items()}
    assert asked == {"silent": 1, "agrees": 53, "disagrees": 6}
    answers = sum(row["expected_answers"] for row in by_prior.values())
    assert answers == pytest.approx(found["expected_answers"], rel=1e-12)
    assert sum(row["share_of_cost"] for row in by_prior.values()) == pytest.approx(1.0)
    # A prior without votes is none.
    assert priced("--prior", prior, "--prior-weight", 0) == priced()
    shown = as_html(of_cost(found))
    assert "the prior agrees with the teachers on 53 queries: " in shown
    assert "it has no guess for 1 query: " in shown


def test_what_takes_no_prior_is_compared_on_the_votes_alone(pate, votes, prior):
    words = ["--compare", "--max-queries", 10]
    plain, found = (
        {row["mechanism"]: row for row in json.loads(pate("cost", votes, *each).stdout)["compare"]}
        for each in (
            [*words, "--mechanism", "gnmax"],
            [*words, "--mechanism", "gnmax", "--prior", prior],
        )
    )
    # All ten are answered by gnmax, with a prior or without.
    alone = json.loads(
        pate("cost", votes, *words[1:], "--mechanism", "gnmax", "--prior", prior).stdout
    )
    assert found["gnmax"]["epsilon"] == pytest.approx(alone["epsilon"], rel=1e-12)
    assert set(plain) == set(found)
    for name, row in found.items():
        assert (row == plain[name]) is (name not in ("gnmax", "confident", "interactive"))
    assert "agreement counts its votes" in found["gnmax"]["note"]


def test_one_order_only(priced):
    found = priced("--order", 7.5)
    assert found["orders"] == [7.5] == [found["order"]]
    assert len(found["rdp"]) == 1
    assert found["order_at_edge"] is False
    everything = priced("--order", 8)
    assert everything["rdp"][0] > found["rdp"][0]


def test_the_price_for_all_votes_is_that_of_a_dry_run(pate, priced, votes):
    for words in ([], ["--max-answers", 9], ["--mechanism", "lnmax", "--max-queries", 20]):
        found = priced(*words)
        dry = pate("aggregate", votes, "--dry-run", "--release", "none", *words)
        wanted = json.loads(dry.stdout)["data_independent"]
        assert found["data_independent"]["epsilon"] == wanted["epsilon"]
        assert found["data_independent"]["method"] == wanted["method"]


def test_max_queries_prices_the_first_rows(priced, votes, tmp_path, counts):
    np.save(tmp_path / "first.npy", counts[:23])
    first, cut = priced(at=tmp_path / "first.npy"), priced("--max-queries", 23)
    assert first["rdp"] == cut["rdp"]
    assert cut["queries"] == 23
    assert priced("--max-queries", 600)["queries"] == 60
    assert priced("--max-answers", 7)["rdp"] == priced()["rdp"]  # rows past the cap are charged


def test_the_price_comes_without_drawing(pate, votes, monkeypatch, leftovers):
    def refuse(*_args, **_kwargs):
        raise AssertionError("nothing may be drawn")

    for distribution in ("normal", "laplace"):
        monkeypatch.setattr(f"pate_cli.core.noise.Noise.{distribution}", refuse)
    assert pate("cost", votes).exit_code == 0
    assert leftovers() == []


def test_a_table_for_a_person(screen, votes, priced):
    seen = screen("cost", votes)
    assert "NOT RELEASABLE" in seen
    found = priced()
    best = found["orders"].index(found["order"])
    assert f"epsilon {found['epsilon']:.4f} at order {found['order']:g}" in seen
    assert f"{found['rdp'][best]:.6g}" in seen
    assert f"worst case {found['data_independent']['epsilon']:.4f}" in seen
    for title in ("threshold", "argmax", "total", "plurality", "answered", "share"):
        assert title in seen
    shares = [
        float(share) for share in re.findall(r"(\d+\.\d)%$", seen.replace("\r", ""), re.MULTILINE)
    ]
    assert shares
    assert max(shares) == pytest.approx(
        100 * max(row["share_of_cost"] for row in found["per_query"]["by_plurality"]), abs=0.051
    )


def test_json_on_a_terminal_on_request(screen, votes):
    assert json.loads(screen("cost", votes, "--json", "--order", 5))["orders"] == [5.0]


def read(path):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix == ".arrow":
        return feather.read_table(path).to_pylist()
    text = path.read_text()
    if path.suffix == ".csv":
        rows = csv.DictReader(text.splitlines())
        return [{name: float(value) for name, value in row.items()} for row in rows]
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("suffix", "analysis"), some(product(["parquet", "csv", "jsonl", "arrow"], ANALYSES), 3)
)
def test_a_row_per_query_adds_up_to_the_totals(priced, counts, folder, suffix, analysis):
    name = f"rows.{suffix}"
    found = priced("--per-query", name, "--analysis", analysis)
    assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    rows = read(folder / name)
    assert [row["query_id"] for row in rows] == list(range(60))
    assert [row["plurality"] for row in rows] == counts.max(axis=1).tolist()
    assert sum(row["answer_probability"] for row in rows) == pytest.approx(
        found["expected_answers"], rel=1e-12
    )
    best = found["orders"].index(found["order"])
    for step, totals in found["steps"].items():
        column = sum(row[f"cost_{step}"] for row in rows)
        assert column == pytest.approx(totals[best], rel=1e-9)
    assert sum(row["cost"] for row in rows) == pytest.approx(found["rdp"][best], rel=1e-9)
    for row in rows:
        assert row["cost"] == pytest.approx(row["cost_threshold"] + row["cost_argmax"], rel=1e-12)


def test_rows_per_query_go_through_the_same_door_as_all_outputs(pate, votes, folder, leftovers):
    old = '"query_id","plurality"\n'
    (folder / "rows.csv").write_text(old)
    result = pate("cost", votes, "--per-query", "rows.csv")
    assert (result.exit_code, result.stdout) == (6, "")
    assert (folder / "rows.csv").read_text() == old
    assert pate("cost", votes, "--per-query", "rows.csv", "--force").exit_code == 0
    assert (folder / "rows.csv").read_text() != old
    assert leftovers() == ["rows.csv"]
    assert pate("cost", votes, "--per-query", "rows.npy").exit_code == 2
    assert pate("cost", votes, "--per-query", "rows.txt").exit_code == 2
    assert leftovers() == ["rows.csv"]


def test_rows_per_query_never_replace_the_votes(pate, refused, parquet):
    before = parquet.read_bytes()
    refused(
        pate("cost", parquet, "--per-query", parquet, "--force"),
        2,
        f"{parquet} is no earlier output of this kind, so not even --force replaces it; give the "
        "output another name",
    )
    assert parquet.read_bytes() == before


def test_mechanisms_side_by_side(priced):
    found = priced("--compare")
    assert found["releasable"] is False
    rows = {row["mechanism"]: row for row in found["compare"]}
    # One needs a student, the other is for names that nobody listed.
    others = {MechanismName.INTERACTIVE, MechanismName.OPEN_VOCABULARY}
    assert list(rows) == [name.value for name in MechanismName if name not in others]
    target = found["matched_answers"]
    assert target == pytest.approx(priced()["expected_answers"], rel=1e-12)
    for row in rows.values():
        if row["note"].endswith("the file ends before so many answers"):
            assert row["queries"] == 60
            assert row["expected_answers"] < target
        else:
            assert target - 1e-6 <= row["expected_answers"] < target + 1.0
            assert row["queries"] <= 60
        assert 0.5 < row["agreement"] <= 1.0
        assert (row["epsilon"] is None) == (row["mechanism"] in ("stability", "sparse-vector"))
        assert row["data_independent"] > (row["epsilon"] or 0.0)
    assert rows["confident"]["queries"] == 60
    every = {rows[name]["queries"] for name in ("gnmax", "lnmax")}
    assert every == {int(np.ceil(target))}


def test_a_cap_is_what_the_mechanisms_are_matched_at(priced):
    found = priced("--compare", "--max-answers", 6)
    assert found["matched_answers"] == 6.0
    rows = {row["mechanism"]: row for row in found["compare"]}
    assert rows["gnmax"]["queries"] == 6


def test_flags_reach_the_mechanisms_that_know_them(priced):
    def compared(sigma2):
        found = priced("--compare", "--sigma2", sigma2, "--max-queries", 12)
        return {row["mechanism"]: row for row in found["compare"]}

    wide, narrow = compared(20), compared(4)
    for name in ("confident", "gnmax"):
        assert wide[name]["agreement"] < narrow[name]["agreement"]
        assert wide[name]["epsilon"] < narrow[name]["epsilon"]
    for name in ("lnmax", "stability", "sparse-vector"):
        assert wide[name] == narrow[name]


def test_interactive_is_compared_only_with_a_student(priced, student):
    found = priced("--compare", "--mechanism", "interactive", "--student", student)
    names = [row["mechanism"] for row in found["compare"]]
    assert names[:3] == ["confident", "interactive", "gnmax"]


def test_a_comparison_for_a_person(screen, votes):
    seen = screen("cost", votes, "--compare")
    assert "NOT RELEASABLE" in seen
    for word in ("confident", "gnmax", "lnmax", "stability", "sparse-vector", "agreement"):
        assert word in seen
    # Why worst cases differ from that of `pate cost` alone.
    assert ", --max-answers 33; pate cost, which has no cap" in " ".join(seen.split())


def test_worst_cases_are_compared_under_a_cap_that_is_said(priced):
    found = priced("--compare")
    capped = priced("--max-answers", found["max_answers"])
    (confident,) = [row for row in found["compare"] if row["mechanism"] == "confident"]
    assert confident["data_independent"] == capped["data_independent"]["epsilon"]
    assert priced()["data_independent"]["epsilon"] >= confident["data_independent"]


def test_what_does_not_go_together(pate, refused, votes, student, leftovers):
    refused(
        pate("cost", votes, "--compare", "--per-query", "x.csv"),
        2,
        "--compare and --per-query contradict each other; give one of them",
    )
    for name in ("stability", "sparse-vector"):
        for analysis in ("paper", "tight"):
            refused(
                pate("cost", votes, "--mechanism", name, "--analysis", analysis),
                2,
                f"{name} has no Renyi cost; pate aggregate --dry-run prints its epsilon",
            )
    refused(
        pate("cost", votes, "--analysis", "paper", "--teachers-per-record", 2),
        2,
        "the published analysis knows disjoint teachers only; --teachers-per-record goes with "
        "--analysis tight",
    )
    refused(
        pate("cost", votes, "--mechanism", "interactive"),
        2,
        "interactive needs the student's predictions; give --student",
    )
    refused(
        pate("cost", votes, "--student", student),
        2,
        "--student does not go with --mechanism confident, which takes --threshold, --sigma1, "
        "--sigma2",
    )
    assert leftovers() == ["student.npy"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--order", 1], "--order must be above 1, got 1.0"),
        (["--delta", 1], "--delta must be above 0 and below 1, got 1.0"),
        (["--max-queries", 0], "--max-queries must be at least 1, got 0"),
        (["--sigma2", -1], "sigma2 must be positive and finite, got -1.0"),
        (
            ["--teachers-per-record", 0],
            "teachers_per_record must be a whole number of at least 1, got 0",
        ),
    ],
)
def test_numbers_out_of_range(pate, refused, votes, words, message):
    refused(pate("cost", votes, *words), 2, message)


def test_shared_records_cost_more(priced):
    once, twice = priced("--order", 4), priced("--order", 4, "--teachers-per-record", 2)
    assert twice["rdp"][0] > 1.5 * once["rdp"][0]
    assert twice["data_independent"]["epsilon"] > once["data_independent"]["epsilon"]
    assert twice["expected_answers"] == once["expected_answers"]


def test_one_order_and_the_moments_exclude_each_other(pate, refused, votes):
    result = pate("cost", votes, "--order", "3", "--orders", "moments")
    refused(result, 2, "--order and --orders contradict each other; give one of them")


def test_a_comparison_has_no_picture(pate, refused, votes):
    run = pate("cost", votes, "--compare", "--plot", "a.png")
    refused(run, 2, "--compare and --plot contradict each other; give one of them")
