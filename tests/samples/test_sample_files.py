"""The committed samples: their bytes, shapes and ranges, and what the README claims of them."""

import hashlib
import re

import numpy as np
import pyarrow.parquet as pq
import pytest

from pate_cli.votes.join import prior
from pate_cli.votes.opening import open_votes


def test_the_files_are_the_ones_that_were_built(samples):
    listed = (samples / "SHA256SUMS").read_text().splitlines()
    sums = dict(reversed(line.split()) for line in listed)
    data = [path for kind in ("parquet", "npy", "txt") for path in samples.glob(f"*.{kind}")]
    kept = {path.name: path for path in data if "glyph" not in path.name}
    assert set(sums) == set(kept)
    for name, path in kept.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == sums[name], name


@pytest.mark.parametrize(
    ("name", "shape", "teachers", "right"),
    [
        ("adult", (4000, 2), 250, 0.832),
        ("digits", (597, 10), 100, 0.916),
        ("demo", (1000, 10), 250, None),
    ],
)
def test_votes(script, readme, name, shape, teachers, right):
    ensembles = script("ensembles")
    counts = ensembles.load_counts(f"{name}.parquet")
    assert counts.shape == shape
    assert counts.min() >= 0
    assert np.all(counts.sum(axis=1) == teachers)
    size = f"{shape[0]:,}(?: queries)? x {shape[1]}(?: classes)?, {teachers:,} teachers"
    assert re.search(rf"\| `{name}.parquet` \| {size} \|", readme)
    if right is not None:
        truth = ensembles.load(f"{name}_truth.parquet")["label"]
        assert truth.shape == shape[:1]
        assert (counts.argmax(axis=1) == truth).mean() == pytest.approx(right, abs=5e-4)
        assert f"{right:.1%}" in readme


def test_votes_on_several_labels(script, samples, readme):
    labels = script("make_digit_labels")
    ballots, truth = (np.load(samples / f"digit_labels{end}.npy") for end in ("", "_truth"))
    assert ballots.shape == (380, 50, 5)
    assert truth.shape == (380, 5)
    names = (samples / "digit_labels_names.txt").read_text().splitlines()
    assert names == list(labels.LABELS)
    by_label = (ballots.mean(axis=1) > 0.5) == truth
    sets = np.stack([np.bincount(row, minlength=32) for row in ballots @ (1 << np.arange(5))])
    by_set = sets.argmax(axis=1) == truth @ (1 << np.arange(5))
    for share in (by_label.mean(), by_label.all(axis=1).mean(), by_set.mean()):
        assert f"{share:.1%}" in readme


def test_ballots_in_words(script, samples, readme):
    cells = script("make_cells")
    with open_votes(samples / "cells.parquet", label_names=cells.NAMES) as votes:
        assert (votes.queries, votes.teachers, votes.layout) == (209, 40, "labels")
        counts = np.concatenate([batch.counts for batch in votes.batches()])
        assert votes.unmatched().votes == (40 - counts.sum(axis=1)).sum() > 0
        known = prior(samples / "cells_truth.parquet", votes).at(range(209), 0, -1)
    right = known == counts.argmax(axis=1)
    assert "| `cells.parquet` | 209 x 2, 40 teachers |" in readme
    assert f"as on {1 - counts.sum() / counts.shape[0] / 40:.1%} of" in readme
    assert f"the plurality is right on {right.mean():.1%}" in readme


def test_no_private_record_of_adult_is_with_two_teachers_or_the_public(script):
    ensembles, adult = script("ensembles"), script("make_adult")
    records = ensembles.load("adult_records.parquet")
    features, labels, part = adult.split(records)
    assert features.shape == (32561, 12)
    assert set(np.unique(labels)) == {0, 1}
    assert np.bincount(part[part >= 0]).tolist() == [100] * 250
    assert np.sum(part == adult.QUERY) == 4000
    assert np.sum(part == adult.TEST) == 3561
    truth = ensembles.load("adult_truth.parquet")["label"]
    np.testing.assert_array_equal(labels[part == adult.QUERY], truth)


def test_guesses_at_digits(script, samples, readme):
    ensembles = script("ensembles")
    kept = pq.read_table(samples / "digits_prior.parquet")["label"]
    assert (kept[:500].null_count, kept[500:].null_count, len(kept)) == (0, 97, 597)
    truth = ensembles.load("digits_truth.parquet")["label"]
    right = kept[:500].to_numpy() == truth[:500]
    assert f"right on {right.mean():.1%} of them" in readme
    assert f"on {right[:100].mean():.0%} of the first hundred" in readme
    assert script("prior").alone() == right[:100].mean()


def test_voters_are_the_documented_model(script, samples, readme):
    voters = script("make_voters")
    rows, truth = voters.votes()
    table = pq.read_table(samples / "voters.parquet")
    kept = np.column_stack([table[name] for name in ("query_id", "teacher_id", "label")])
    np.testing.assert_array_equal(kept, rows)
    known = pq.read_table(samples / "voters_truth.parquet")
    np.testing.assert_array_equal(known["label"], truth)
    right = (rows[:, 2] == truth[rows[:, 0]]).mean()
    assert f"{right:.1%} of the\n{len(rows):,} answers are right" in readme
    assert set(np.bincount(rows[:, 1]).tolist()) == {20, 30}
