"""`--votes-per-teacher` on the command line: exit codes, and what is said of it."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

VOTERS, QUERIES, K = 120, 40, 8
WORDS = ("--classes", 3, "--teachers", VOTERS, "-m", "gnmax", "--sigma2", 15)


@pytest.fixture
def votes(folder):
    random = np.random.default_rng(8)
    rows = [
        (int(query), voter, int(random.integers(0, 3)))
        for voter in range(VOTERS)
        for query in random.choice(QUERIES, size=12, replace=False)
    ]
    names = ("query_id", "teacher_id", "label")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), folder / "votes.parquet")
    (folder / "queries.csv").write_text("query_id\n" + "\n".join(map(str, range(QUERIES))))
    return ("votes.parquet", "--queries", "queries.csv", *WORDS)


def test_a_run_says_that_few_votes_count_and_costs_less(pate, votes):
    result = pate("aggregate", *votes, "--votes-per-teacher", K)
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["rounds"][0]["voting"] == {"votes": K, "assigned": False}
    assert "Only the first 8 votes of each teacher counted" in report["summary"]
    every = pate("aggregate", *votes, "--dry-run")
    assert report["epsilon"] < json.loads(every.stdout)["epsilon"]
    told = pate("explain", "votes.report.json").stdout
    assert "no quotas, no queues, no stand-ins" in " ".join(told.split())
    assert pate("verify", "votes.report.json", "votes.labels.parquet").exit_code == 0
    spent = json.loads(pate("spent", "votes.parquet").stdout)
    assert spent["runs"][0]["settings"]["voting"] == {"votes": K, "assigned": False}


@pytest.mark.parametrize(("words", "told"), [
    (("-m", "sparse-vector"), "sparse-vector"),
    (("-m", "interactive", "--student", "guesses.npy"), "interactive"),
])  # fmt: skip
def test_a_mechanism_without_a_proof_is_refused(pate, votes, words, told):
    np.save("guesses.npy", np.full((QUERIES, 3), 1 / 3))
    result = pate("aggregate", *votes[:7], *words, "--votes-per-teacher", K)
    line = f"pate: --votes-per-teacher cannot be used with {told}"
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, line)
