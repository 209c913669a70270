"""Facts that every statement takes as public: given by a flag, or nothing is claimed."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slices import some

TEACHERS = 30


@pytest.fixture
def labels(folder, counts):
    """Votes by teacher, of which one alone is for the last class."""
    rng = np.random.default_rng(8)
    voted = rng.integers(0, 3, size=(30, TEACHERS))
    voted[4, 7] = 3
    np.save(folder / "labels.npy", voted)
    return voted


@pytest.fixture
def long(folder):
    """Save (query, teacher, label) rows under a name."""

    def save(rows, name="long.parquet"):
        query, teacher, label = zip(*rows, strict=True)
        table = {"query_id": query, "teacher_id": teacher, "label": label}
        pq.write_table(pa.table(table), folder / name)
        return name

    return save


@pytest.fixture
def ran(pate):
    def run(*words):
        result = pate(*words)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return run


def nothing_claimed(report, reason):
    held = [text["id"] for text in report["statements"] if text["holds"]]
    assert held == []
    assert report["sound"] is False
    assert reason in report["summary"]
    assert "holds" not in report["summary"]


def claimed(report):
    held = {text["id"] for text in report["statements"] if text["holds"]}
    assert held >= {"all-votes"}
    assert report["sound"] is True
    assert report["warnings"] == []


CLASSES = (
    "Nothing is promised: the number of classes was read from the votes, and one vote can add a "
    "class. Give --classes N."
)
QUERIES = (
    "Nothing is promised: the list of queries was read from the votes, and one vote can make a "
    "query appear. Give --queries FILE."
)
RELEASES = ["upper", "none"]


@pytest.mark.parametrize("release", some(RELEASES, 2))
def test_classes_read_off_the_votes_claim_nothing(ran, labels, folder, release):
    """One vote moved away from the last class changes what is published."""
    words = ["--layout", "labels", "--release", release, "--order", 6, "--force"]
    before = ran("aggregate", "labels.npy", *words)
    labels[4, 7] = 0
    np.save(folder / "labels.npy", labels)
    after = ran("aggregate", "labels.npy", *words)
    assert (before["mechanism"]["classes"], after["mechanism"]["classes"]) == (4, 3)
    for report in (before, after):
        nothing_claimed(report, CLASSES)
    settled = ran("aggregate", "labels.npy", *words, "--classes", 4)
    assert settled["mechanism"]["classes"] == 4
    assert settled["statements"][0]["holds"] is True
    claimed(settled)


def everyone(queries):
    return [(query, teacher, teacher % 2) for query in queries for teacher in range(TEACHERS)]


@pytest.mark.parametrize("release", some(RELEASES, 2))
def test_queries_read_off_the_votes_claim_nothing(ran, long, release):
    """One vote makes a query appear, and with it a row of the labels."""
    words = ["--classes", 2, "--teachers", TEACHERS, "--release", release, "--order", 6, "--force"]
    before = ran("aggregate", long(everyone([3, 5])), *words)
    after = ran("aggregate", long([*everyone([3, 5]), (4, 0, 1)]), *words)
    assert (before["queries"], after["queries"]) == (2, 3)
    for report in (before, after):
        nothing_claimed(report, QUERIES)
    nothing_claimed(ran("aggregate", "long.parquet", *words[2:]), "the list of queries was read")


def lists(folder, ids):
    """The same list as NPY, Parquet and CSV."""
    np.save(folder / "q.npy", np.array(ids))
    pq.write_table(pa.table({"query_id": ids}), folder / "q.parquet")
    text = "\n".join(["query_id,split", *(f"{query},test" for query in ids)])
    (folder / "q.csv").write_text(text + "\n")
    return ["q.npy", "q.parquet", "q.csv"]


@pytest.mark.parametrize("ids", [[9, 3, 4, 5], ["b", "007", "7", "a"]])
def test_a_public_list_settles_the_queries(ran, long, folder, ids):
    """Exactly its ids in its order, whoever voted; a query without votes has an empty histogram."""
    voted = everyone([ids[3], ids[1]])
    for path in some(lists(folder, ids), 2):
        words = ["--classes", 2, "--teachers", TEACHERS, "--queries", path, "--force"]
        report = ran("aggregate", long(voted), *words, "-o", "labels.csv", "--mechanism", "gnmax")
        claimed(report)
        assert (report["queries"], report["answers"]) == (4, 4)
        rows = (folder / "labels.csv").read_text().splitlines()[1:]
        assert [row.split(",")[0] for row in rows] == [str(query) for query in ids]
        first = ran("aggregate", "long.parquet", *words, "--max-queries", 1, "-o", "labels.csv")
        assert first["queries"] == 1
        # Somebody votes on a query that nobody voted on: the shape stays.
        more = ran("aggregate", long([*voted, (ids[0], 0, 1)]), *words)
        assert more["queries"] == 4
