"""`--pool`: one answer labels a cluster, from the votes to the labels, the report and its check."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow.parquet as pq
import pytest

import pate_cli as pate_library
from pate_cli.core.errors import LedgerError
from pate_cli.disclosure.ledger import Ledger, Round
from pate_cli.disclosure.schema import report_schema
from pate_cli.mechanisms import GNMax
from pate_cli.run import by_query, passes
from pate_cli.votes.facts import PoolFacts
from refusals import refusal

QUERIES, TEACHERS, CLASSES, CLUSTERS = 90, 40, 4, 20
RANDOM = np.random.default_rng(12)
NEAR = np.concatenate([np.arange(CLUSTERS), RANDOM.integers(0, CLUSTERS, QUERIES - CLUSTERS)])
NEAR = NEAR[RANDOM.permutation(QUERIES)]
RIGHT = RANDOM.integers(0, CLASSES, size=CLUSTERS)
SAID = np.where(
    RANDOM.random((QUERIES, TEACHERS)) < 0.8,
    RIGHT[NEAR][:, None],
    RANDOM.integers(0, CLASSES, size=(QUERIES, TEACHERS)),
)
NOISE = ["--threshold", 24, "--sigma1", 8, "--sigma2", 2.7, "--classes", CLASSES]
FIRST = list(dict.fromkeys(NEAR.tolist()))
"""Clusters in order of their first query."""


@pytest.fixture
def votes(tmp_path):
    """One row a vote, in no order."""
    path = tmp_path / "votes.csv"
    rows = [
        (f"q{query}", teacher, SAID[query, teacher])
        for query, teacher in np.ndindex(QUERIES, TEACHERS)
    ]
    text = [",".join(map(str, rows[place])) for place in RANDOM.permutation(len(rows))]
    path.write_text("\n".join(["query_id,teacher_id,label", *text]) + "\n")
    return path


@pytest.fixture
def pool(tmp_path):
    path = tmp_path / "pool.csv"
    text = [f"q{query},c{cluster}" for query, cluster in enumerate(NEAR.tolist())]
    path.write_text("\n".join(["query_id,cluster", *text]) + "\n")
    return path


@pytest.fixture
def array(tmp_path):
    """The same, a row a query, in the order of the pool."""
    path = tmp_path / "votes.npy"
    np.save(path, SAID)
    np.save(tmp_path / "pool.npy", NEAR)
    return [path, "--layout", "labels", "--pool", tmp_path / "pool.npy"]


def rows_of(path):
    with Path(path).open() as file:
        return list(csv.DictReader(file))


def done_of(result):
    assert result.exit_code == 0, result.stderr
    return result


def labels_by_cluster(rows):
    """The label that the queries of each cluster share."""
    found = {}
    for row in rows:
        cluster = NEAR[int(row["query_id"].removeprefix("q"))]
        assert found.setdefault(cluster, (row["label"], row["source"])) == (
            row["label"],
            row["source"],
        )
    return found


def test_from_votes_to_labels_of_every_query(pate, votes, pool):
    done = done_of(
        pate("aggregate", votes, "--pool", pool, *NOISE, "-o", "l.csv", "--report", "l.report.json")
    )
    rows = rows_of("l.csv")
    assert [row["query_id"] for row in rows] == [f"q{query}" for query in range(QUERIES)]
    found = labels_by_cluster(rows)
    answered = {cluster for cluster, (_, source) in found.items() if source == "teachers"}
    assert all(int(found[cluster][0]) == RIGHT[cluster] for cluster in answered)
    report = json.loads(Path("l.report.json").read_text())
    jsonschema.Draft202012Validator(report_schema()).validate(report)
    assert (report["queries"], report["max_answers"]) == (CLUSTERS, CLUSTERS)
    assert report["answers"] == len(answered) > CLUSTERS // 2
    assert report["pool"].items() >= {"clusters": CLUSTERS, "queries": QUERIES}.items()
    assert report["rounds"][0]["pool"]["sha256"] == report["pool"]["sha256"]
    guarantee = report["guarantee"]
    assert guarantee["summary"].endswith("followed from the votes or from private data.")
    assert "So are the clusters of the pool" in guarantee["adjacency"]
    assert f"{QUERIES} queries in {CLUSTERS} clusters x {CLASSES} classes" in done.stderr

    checked = pate("verify", "l.report.json", "l.csv", "--pool", pool, "--json")
    said = json.loads(checked.stdout)
    assert (said["failed"], said["not_checkable"]) == ([], ["clusters"])
    assert checked.exit_code == 11
    assert "pool by hash" in {one["name"] for one in said["checks"] if one["outcome"] == "ok"}
    assert pate("verify", "l.report.json", "l.csv", "--pool", votes).exit_code == 10
    told = done_of(pate("explain", "l.report.json")).stdout
    told = " ".join(told.split())
    assert f"{report['answers']} of {CLUSTERS} clusters were labelled" in told
    assert (
        f"Asked were {CLUSTERS} of the {CLUSTERS} clusters of a public pool of {QUERIES} queries"
        in told
    )
    assert "The clusters must have been chosen without the votes" in told
    done_of(pate("explain", "l.report.json", "--html", "l.html"))
    assert "--pool clusters" in Path("l.html").read_text()


def test_it_costs_what_as_many_queries_cost(pate, votes, pool):
    for flags in ((), ("--dry-run",)):
        done_of(pate("aggregate", votes, "--pool", pool, *NOISE, "--report", "r.json", *flags))
        epsilon = json.loads(Path("r.json").read_text())["epsilon"]
        choice = pate_library.ConfidentGNMax(
            teachers=TEACHERS, classes=CLASSES, threshold=24, sigma1=8, sigma2=2.7
        )
        counts = np.tile([TEACHERS, 0, 0, 0], (CLUSTERS, 1))
        assert pate_library.quote(counts, choice, layout="counts").epsilon == epsilon
        Path("r.json").unlink()


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "npy"])
def test_every_query_has_a_row_whatever_is_asked(pate, array, kind):
    """Clusters are asked in the order of the pool; rows are in that of the votes."""
    asked, name = 7, f"l.{kind}"
    line = ["aggregate", *array, "--mechanism", "gnmax", "--sigma2", 2, "--classes", CLASSES]
    done_of(pate(*line, "--max-queries", asked, "-o", name, "--report", "r.json"))
    report = json.loads(Path("r.json").read_text())
    assert (report["queries"], report["answers"]) == (asked, asked)
    there = np.isin(NEAR, FIRST[:asked])
    if kind == "npy":
        found = np.load(name).tolist()
    elif kind == "parquet":
        table = pq.read_table(name)
        assert table["query_id"].to_pylist() == list(range(QUERIES))
        found = [-1 if label is None else label for label in table["label"].to_pylist()]
        metadata = json.loads(table.schema.metadata[b"pate"])
        assert metadata["pool_clusters"] == str(CLUSTERS)
        assert (metadata["queries"], metadata["pool_queries"]) == (str(asked), str(QUERIES))
    else:
        lines = Path(name).read_text().splitlines()
        found = (
            [json.loads(line)["label"] for line in lines]
            if kind == "jsonl"
            else [row["label"] for row in rows_of(name)]
        )
        found = [-1 if label in ("", None) else int(label) for label in found]
    assert found == np.where(there, RIGHT[NEAR], -1).tolist()
    checked = json.loads(pate("verify", "r.json", name, "--json").stdout)
    assert checked["failed"] == []


def test_a_cap_counts_clusters(pate, array):
    line = ["aggregate", *array, "--mechanism", "gnmax", "--sigma2", 2, "--classes", CLASSES]
    done_of(pate(*line, "--max-answers", 3, "-o", "l.csv", "--report", "r.json"))
    found = labels_by_cluster(rows_of("l.csv"))
    assert {cluster for cluster, (label, _) in found.items() if label} == set(FIRST[:3])


def test_the_library_gives_the_same_labels(pate, array):
    done_of(pate("aggregate", *array, *NOISE, "--seed", 4, "-o", "l.npy"))
    for pool in (NEAR, pate_library.Pool(NEAR), pate_library.Pool(NEAR, ids=range(QUERIES))):
        done = pate_library.aggregate(
            SAID, layout="labels", classes=CLASSES, threshold=24, sigma1=6, sigma2=2, pool=pool,
            seed=4,
        )  # fmt: skip
        assert done.labels.labels.tolist() == np.load("l.npy").tolist()
        assert done.labels.ids.tolist() == list(range(QUERIES))
        assert done.report.headline().endswith(f"of {CLUSTERS} clusters answered")


def test_neither_batches_nor_workers_nor_a_broken_run_change_a_label(pate, array, monkeypatch):
    """Noise belongs to clusters."""
    line = ["aggregate", *array, *NOISE, "--seed", 4, "--report", "r.json", "--force"]
    done_of(pate(*line, "-o", "one.csv"))
    wanted = Path("one.csv").read_bytes()
    monkeypatch.setattr(passes, "_ENTRIES", 3 * TEACHERS)
    monkeypatch.setattr(by_query, "_QUERIES_AT_ONCE", 8)
    for flags in (("--workers", 1), ("--workers", 3)):
        done_of(pate(*line, "-o", "other.csv", *flags))
        assert Path("other.csv").read_bytes() == wanted
    with monkeypatch.context() as broken:
        broken.setattr("pate_cli.run.last_step.by_query", lambda *_: 1 / 0)
        assert pate(*line, "-o", "third.csv", "--checkpoint", "kept").exit_code != 0
    assert len(list(Path("kept").glob("piece-*"))) == -(-CLUSTERS // 3)
    with monkeypatch.context() as idle:
        # All that was drawn is there.
        idle.setattr("pate_cli.run.labelling.LabelBatch.__call__", lambda *_: 1 / 0)
        done_of(pate(*line, "-o", "third.csv", "--checkpoint", "kept"))
    assert Path("third.csv").read_bytes() == wanted
    assert not Path("kept").exists()


def test_ledgers_and_records_count_clusters(pate, array, votes):
    line = ["aggregate", *array, *NOISE, "--ensemble", "class-of-26"]
    line += ["--release", "upper", "--order", 6]
    for number in (1, 2):
        report = ("--report", f"{number}.report.json")
        done_of(pate(*line, "-o", f"{number}.csv", "--ledger", f"{number}.ledger", *report))
    ledgers = [Ledger.read(f"{number}.ledger") for number in (1, 2)]
    both = ledgers[0] + ledgers[1]
    assert both.queries == 2 * CLUSTERS
    assert {done.pool.queries for done in both.rounds} == {QUERIES}
    done_of(pate("release", "1.ledger", "2.ledger", "--report", "all.json"))
    report = json.loads(Path("all.json").read_text())
    jsonschema.Draft202012Validator(report_schema()).validate(report)
    assert report["queries"] == 2 * CLUSTERS
    assert report["pool"]["queries"] == 2 * QUERIES
    assert json.loads(pate("verify", "all.json", "--json").stdout)["failed"] == []
    second = json.loads(Path("2.report.json").read_text())
    assert second["spent"]["runs"][0]["asked"]["pool"]["clusters"] == CLUSTERS
    assert json.loads(pate("verify", "2.report.json", "2.csv", "--json").stdout)["failed"] == []
    assert "runs" in done_of(pate("spent", "--ensemble", "class-of-26")).stdout


def test_a_target_is_tested_of_clusters(pate, array):
    line = ["aggregate", *array, *NOISE, "--target-epsilon", 30, "--max-queries", CLUSTERS]
    done_of(pate(*line, "-o", "l.parquet", "--report", "l.report.json"))
    said = json.loads(pate("verify", "l.report.json", "l.parquet", "--json").stdout)
    assert said["failed"] == []


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda report: report["pool"].update(clusters=QUERIES), "pool"),
        (lambda report: report.pop("pool"), "pool"),
        (lambda report: report["pool"].update(presupposed="Nothing."), "pool"),
        (lambda report: report["rounds"][0].pop("pool"), "pool"),
        (lambda report: report["rounds"][0]["pool"].update(clusters=3), "parameters"),
        (lambda report: report["guarantee"].update(summary="Fine."), "guarantee"),
    ],
)
def test_a_report_that_says_otherwise_of_its_pool_does_not_hold(pate, array, change, name):
    done_of(pate("aggregate", *array, *NOISE, "-o", "l.csv", "--report", "l.report.json"))
    report = json.loads(Path("l.report.json").read_text())
    change(report)
    Path("x.json").write_text(json.dumps(report))
    assert name in json.loads(pate("verify", "x.json", "--json").stdout)["failed"]


def test_labels_of_another_pool_do_not_pass(pate, array):
    """Of as many clusters, whose queries are others."""
    done_of(pate("aggregate", *array, *NOISE, "-o", "l.parquet", "--report", "l.report.json"))
    report = json.loads(Path("l.report.json").read_text())
    for facts in (report["pool"], report["rounds"][0]["pool"]):
        facts["sha256"] = "0" * 64
    report["spent"] = None
    Path("x.json").write_text(json.dumps(report))
    failed = json.loads(pate("verify", "x.json", "l.parquet", "--json").stdout)["failed"]
    assert "labels by parameters" in failed
    for facts in (report["pool"], report["rounds"][0]["pool"]):
        facts["queries"] += 1
    Path("x.json").write_text(json.dumps(report))
    failed = json.loads(pate("verify", "x.json", "l.parquet", "--json").stdout)["failed"]
    assert "labels by count" in failed


def test_a_round_of_a_pool_that_cannot_be():
    mechanism = GNMax(teachers=TEACHERS, classes=CLASSES, sigma2=2.0).parameters()

    def refused(clusters, queries, sha256="0" * 64):
        pool = PoolFacts(clusters, queries, sha256)
        return refusal(LedgerError, Round, "x", mechanism, 10, 10, 0, pool=pool)

    assert "10 clusters were asked, of 9 with 20 queries" in refused(9, 20)
    assert "10 clusters were asked, of 20 with 19 queries" in refused(20, 19)
    assert "no SHA-256 of its pool" in refused(20, 20, "x")


def test_what_does_not_go_together(pate, array, votes, pool, tmp_path):
    np.save(tmp_path / "counts.npy", np.tile([TEACHERS, 0, 0, 0], (QUERIES, 1)))
    np.save(tmp_path / "guesses.npy", np.zeros(QUERIES, dtype=np.int64))
    np.save(tmp_path / "student.npy", np.full((QUERIES, CLASSES), 0.25))
    counts = [tmp_path / "counts.npy", "--layout", "counts", "--pool", tmp_path / "pool.npy"]
    for words, code, why in (
        (counts, 2, "--pool needs to know who voted"),
        ([*array, *NOISE, "-o", "parts/"], 2, "labels of a --pool go to one file"),
        (
            [*array, *NOISE, "--prior", tmp_path / "guesses.npy"],
            2,
            "--prior does not go with --pool",
        ),
        (
            [*array, *NOISE, "--mechanism", "interactive", "--student", tmp_path / "student.npy"],
            2,
            "--student does not go with --pool",
        ),
        ([*array[:-1], tmp_path / "counts.npy"], 3, "the pool must be whole numbers or texts"),
        ([*array[:-1], tmp_path / "none.npy"], 3, "none.npy"),
    ):
        done = pate("aggregate", *words)
        assert done.exit_code == code, done.stderr
        assert why in done.stderr, done.stderr
        assert list(Path().iterdir()) == []


def test_a_missing_cluster_is_said_before_the_votes_are_looked_at(pate, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("query_id,cluster\n1,\n")
    done = pate("aggregate", tmp_path / "nothing.csv", "--pool", bad)
    assert (done.exit_code, "the pool: row 0 has no cluster" in done.stderr) == (3, True)


def test_what_it_would_cost_and_how_it_is_tuned(pate, array):
    cost = json.loads(done_of(pate("cost", *array, *NOISE, "--json")).stdout)
    assert cost["queries"] == CLUSTERS
    done_of(pate("smooth-sensitivity", *array, *NOISE))
    one = ["--release", "none", *NOISE]
    tuned = done_of(pate("tune", *array, "--answers", 5, *one))
    assert re.search(r"--pool\s+\S*pool.npy", tuned.stdout + tuned.stderr)
    truth = array[-1]
    done = pate("cost", *array, "--accuracy", "--truth", truth)
    assert "--truth does not go with --pool" in done.stderr


def test_no_output_replaces_the_pool(pate, votes, pool):
    before = pool.read_bytes()
    done = pate("aggregate", votes, "--pool", pool, *NOISE, "-o", pool, "--report", "-", "--force")
    assert done.exit_code == 2
    assert f"{pool} is the pool; give the output another name" in done.stderr
    assert pool.read_bytes() == before
