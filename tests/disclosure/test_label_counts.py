"""Counts of labels that somebody sent: right, or refused in one sentence."""

import numpy as np
import pytest

import reports
from pate_cli.core.errors import VoteError
from pate_cli.core.words import LabelFormat
from pate_cli.disclosure.verification import count_labels
from pate_cli.labels.labels import Labels
from refusals import refusal


@pytest.mark.parametrize("label_format", list(LabelFormat))
def test_rows_that_were_not_asked_are_counted_apart(label_format, tmp_path):
    """A report counts what was asked; where a format tells no sources, the answers alone."""
    said = [3, -1, 0, -1, -1]
    sources = np.array([0, 2, 1, 3, 3], np.uint8)
    path = tmp_path / f"labels.{label_format}"
    Labels(np.arange(5), np.array(said), sources).save(path)
    found = count_labels(path, label_format, None)
    told = label_format != LabelFormat.NPY
    assert found[:4] == ((5, True, 3, 1) if told else (5, False, 5, 2))


@pytest.mark.parametrize("label_format", ["arrow", "parquet"])
def test_labels_that_were_damaged_are_counted_or_refused(label_format, tmp_path):
    report, labels = reports.made("names")
    path = tmp_path / f"labels.{label_format}"
    labels.save(path)
    whole, refused = path.read_bytes(), 0
    for place in range(0, len(whole), 5):
        path.write_bytes(whole[:place] + b"\xfe\xff\xff\xff" + whole[place + 4 :])
        try:
            count_labels(path, LabelFormat(label_format), report.label_set)
        except VoteError:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize(
    ("label_format", "content"),
    [
        ("jsonl", b"[1]\n"),
        ("jsonl", b"[" * 100_000),
        ("jsonl", b'{"label": 1, "source": "none"}\n{"label": 1}\n'),
        ("jsonl", b""),
        ("csv", b"a,b\n1,2\n"),
        ("csv", b""),
        ("npy", b"\x93NUMPY"),
        ("arrow", b"ARROW1"),
        ("parquet", b"PAR1"),
    ],
)
def test_what_are_no_labels_is_refused_in_one_sentence(label_format, content, tmp_path):
    path = tmp_path / f"labels.{label_format}"
    path.write_bytes(content)
    told = refusal(VoteError, count_labels, path, LabelFormat(label_format), None)
    assert told == f"the labels cannot be read as {label_format}"
