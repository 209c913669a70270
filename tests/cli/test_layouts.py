"""What each layout takes as public, and what a run says of it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slices import some

TEACHERS = 30


@pytest.fixture
def ran(pate):
    def run(*words):
        result = pate(*words)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return run


def long_form(rows):
    """Save (query, teacher, label) rows."""
    columns = dict(zip(("query_id", "teacher_id", "label"), zip(*rows, strict=True), strict=True))
    pq.write_table(pa.table(columns), "long.parquet")
    return "long.parquet"


def lists(ids):
    """The same list as NPY, Parquet and CSV."""
    np.save("q.npy", np.array(ids))
    pq.write_table(pa.table({"query_id": ids}), "q.parquet")
    text = "\n".join(["query_id,split", *(f"{query},test" for query in ids)])
    Path("q.csv").write_text(text + "\n")
    return ["q.npy", "q.parquet", "q.csv"]


@pytest.mark.parametrize("ids", [[9, 3, 4, 5], ["b", "007", "7", "a"]])
def test_a_public_list_settles_the_queries(ran, ids):
    """Exactly its ids in its order, whoever voted; a query without votes has an empty histogram."""
    voted = [(ids[place], teacher, teacher % 2) for place in (3, 1) for teacher in range(TEACHERS)]
    for path in some(lists(ids), 2):
        words = ["--classes", 2, "--teachers", TEACHERS, "--queries", path, "--force"]
        words += ["-o", "labels.csv", "--mechanism", "gnmax"]
        report = ran("aggregate", long_form(voted), *words)
        assert (report["queries"], report["answers"]) == (4, 4)
        assert (report["sound"], report["warnings"]) == (True, [])
        rows = Path("labels.csv").read_text().splitlines()[1:]
        assert [row.split(",")[0] for row in rows] == [str(query) for query in ids]
        assert ran("aggregate", "long.parquet", *words, "--max-queries", 1)["queries"] == 1
        # Somebody votes on a query that nobody voted on: the shape stays.
        more = [*voted, (ids[0], 0, 1)]
        assert ran("aggregate", long_form(more), *words)["queries"] == 4
    unlisted = ran("aggregate", "long.parquet", *words[:4], "--force")
    assert (unlisted["queries"], unlisted["sound"]) == (3, False)
    assert "the list of queries was read from the votes" in unlisted["summary"]


def test_the_trap_of_a_file_turned_round(pate, ran, refused):
    """As many teachers as there are queries: their votes would seem to cost next to nothing."""
    np.save("turned.npy", np.random.default_rng(4).integers(0, 4, size=(40, 60)))
    words = ["turned.npy", "--classes", 4, "--dry-run", "--layout"]
    line = refused(pate("aggregate", *words, "labels"), 3)
    assert "as labels it has 60 teachers and 40 queries" in line
    assert "--teachers" in line
    assert ran("aggregate", *words, "labels", "--teachers", 60)["queries"] == 40
    assert ran("aggregate", *words, "labels-by-teacher")["queries"] == 60


def test_limits_count_queries_of_several_labels_and_a_target_asks_whole_ones(ran):
    random = np.random.default_rng(12)
    chances = random.choice([0.05, 0.9], size=(40, 1, 3))
    np.save("ballots.npy", (random.random((40, 25, 3)) < chances).astype(np.uint8))
    words = ["aggregate", "ballots.npy", "--layout", "multilabel", "--label-names", "mild,big,new"]
    words += ["--seed", 5, "--force", "-o"]
    assert ran(*words, "l.jsonl", "--max-queries", 7)["queries"] == 21
    rows = [json.loads(line) for line in Path("l.jsonl").read_text().splitlines()]
    assert [row["query_id"] for row in rows] == list(range(40))
    assert all(row["labels"] == [] and len(row["unanswered"]) == 3 for row in rows[7:])
    ran(*words, "p.csv", "--max-queries", 7)
    pairs = list(csv.DictReader(Path("p.csv").read_text().splitlines()))
    assert [row["source"] == "not asked" for row in pairs] == [False] * 21 + [True] * 99
    queries = ran(*words, "t.jsonl", "--target-epsilon", 3)["queries"]
    assert 0 < queries < 120
    assert queries % 3 == 0


# 10 * (60 * 5 * cell + 10^4 * 2^-64) * (1 + e^10), rounded up to two digits; cells of 2^-53 last.
LEAST = {"confident": 1.3e-10, "gnmax": 1.3e-10, "lnmax": 1.3e-10, "sparse-vector": 7.5e-9}
# So little noise that the labels cost more than 10.
NOISY = {"confident": ["--sigma2", 1], "gnmax": ["--sigma2", 1]}


@pytest.mark.parametrize("name", LEAST)
def test_a_delta_that_floating_point_noise_would_show_in(pate, refused, votes, leftovers, name):
    least = LEAST[name]
    words = ["aggregate", votes, "--mechanism", name, *NOISY.get(name, []), "--delta"]
    for delta, more in ((1e-15, []), (0.99 * least, ["--dry-run"])):
        line = refused(pate(*words, delta, *more), 2)
        assert line == (
            f"pate: --delta must be at least {least:g} for 60 queries over 4 classes, got "
            f"{delta:g}: noise in floating-point numbers adds to delta, which matters below "
            "this value"
        )
    assert leftovers() == []
    assert pate(*words, least, "--dry-run").exit_code == 0
    line = refused(pate(*words, 1e-15, "--max-queries", 20, "--dry-run"), 2)
    assert "for 20 queries over 4 classes" in line


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (".", ". is not empty; name a new folder for the demo"),
        ("mine.txt", "mine.txt: File exists; nothing was released"),
    ],
)
def test_a_demo_is_written_into_a_folder_of_its_own(pate, refused, folder, place, line):
    (folder / "mine.txt").write_text("mine")
    assert refused(pate("demo", place), 6).endswith(line)
    assert (folder / "mine.txt").read_text() == "mine"
