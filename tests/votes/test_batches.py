from __future__ import annotations

import numpy as np
import pytest

from pate_cli.errors import ParameterError
from pate_cli.votes import Layout, open_votes
from pate_cli.votes.grid import ENTRIES_PER_BATCH, batch_size


@pytest.fixture
def sources(npy, parquet, histograms):
    labels = np.stack([np.repeat(np.arange(4), row) for row in histograms])
    queries, teachers = (axis.ravel() for axis in np.indices(labels.shape))
    return {
        "counts.npy": (npy(histograms, "c.npy"), Layout.COUNTS),
        "labels.npy": (npy(labels, "l.npy"), Layout.LABELS),
        "by-teacher.npy": (npy(labels.T, "t.npy"), Layout.LABELS_BY_TEACHER),
        "counts": (
            parquet({"v": histograms.tolist()}, "c.parquet", row_group_size=13),
            Layout.COUNTS,
        ),
        "labels": (parquet({"v": labels.tolist()}, "l.parquet"), Layout.LABELS),
        "long": (
            parquet(
                {"query_id": queries, "teacher_id": teachers, "label": labels.ravel()}, "g.parquet"
            ),
            Layout.LONG,
        ),
    }


KINDS = ["counts.npy", "labels.npy", "by-teacher.npy", "counts", "labels", "long"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [None, 0, 1, 7, 8, 39, 40, 41])
def test_limit_and_batch_rows(kind, limit, sources, histograms):
    path, layout = sources[kind]
    with open_votes(path, layout=layout, classes=4, batch_rows=7) as votes:
        for _ in range(2):
            batches = list(votes.batches(limit=limit))
            assert all(1 <= len(batch.counts) <= 7 for batch in batches)
            counts = [row for batch in batches for row in batch.counts.tolist()]
            assert counts == histograms[:limit].tolist()
            ids = [int(i) for batch in batches for i in batch.ids]
            assert ids == list(range(len(counts)))


@pytest.mark.parametrize("kind", KINDS)
def test_two_readers_at_once(kind, sources):
    path, layout = sources[kind]
    with open_votes(path, layout=layout, classes=4, batch_rows=7) as votes:
        for one, two in zip(votes.batches(), votes.batches(), strict=True):
            np.testing.assert_array_equal(one.counts, two.counts)


def test_rows_beyond_the_limit_are_not_judged(npy, parquet, histograms, refusal):
    bad = histograms.copy()
    bad[9] = 0
    for path in (npy(bad), parquet({"counts": bad.tolist()})):
        with open_votes(path, layout=Layout.COUNTS, batch_rows=6) as votes:
            assert sum(len(b.counts) for b in votes.batches(limit=9)) == 9
        assert "row 9 has no votes" in refusal(path, layout=Layout.COUNTS)


def test_default_batches_are_bounded():
    assert ENTRIES_PER_BATCH * 8 == 32 * 2**20
    assert batch_size(10) * 10 <= ENTRIES_PER_BATCH
    assert batch_size(10**9) == 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"classes": 1}, "--classes must be between 2 and 16777216, got 1"),
        ({"classes": 2**25}, "--classes must be between 2 and 16777216, got 33554432"),
        ({"teachers": 0}, "--teachers must be at least 1, got 0"),
        ({"layout": "counts"}, "layout must be a Layout, got 'counts'"),
        ({"batch_rows": 0}, "batch_rows must be at least 1, got 0"),
    ],
)
def test_parameters_out_of_range(options, text, npy):
    with pytest.raises(ParameterError) as caught, open_votes(npy([[1, 2]]), **options):
        pass
    assert str(caught.value) == text
    assert caught.value.exit_code == 2


def test_a_negative_limit(npy):
    with (
        open_votes(npy([[1, 2]]), layout=Layout.COUNTS) as votes,
        pytest.raises(ParameterError, match="limit must be at least 0, got -1"),
    ):
        votes.batches(limit=-1)
