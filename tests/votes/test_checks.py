"""Every kind of bad number has its own message, with its row and without its value."""

from __future__ import annotations

import numpy as np
import pytest

from advice import FRACTION, MISSING, NO_VOTES, PROBABILITIES
from pate_cli.votes import Layout, open_votes
from pate_cli.votes.checks import ABSENT, tally

NOT_FINITE = (
    "has NaN or infinity; repair the row. Where NaN stands for a missing label, give `teachers` N"
)
NEGATIVE = (
    "has a negative number; votes are counted from 0. Where -1 is a class, as in -1 and 1, store 0 "
    "and 1; where it stands for no vote, give `teachers` N"
)
GOOD = [[7.0, 3.0]] * 20


def damaged(row, values, dtype=np.float64):
    array = np.array(GOOD)
    array[row] = values
    return array.astype(dtype)


@pytest.mark.parametrize("batch_rows", [None, 1, 6])
@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([np.nan, 3], NOT_FINITE),
        ([np.inf, 3], NOT_FINITE),
        ([7.5, 2.5], FRACTION),
        ([-1, 11], NEGATIVE),
        ([2.0**31, 0], "has a number above 2147483647, which is no vote; check the file"),
        ([1e300, 0], "has a number above 2147483647, which is no vote; check the file"),
        ([0, 0], NO_VOTES),
        ([2.0**31 - 1, 2], "has a total above 2147483647; check the file"),
        (
            [7, 2],
            f"is the first whose total is not the 10 votes of row 0. {MISSING}",
        ),
    ],
)
def test_bad_counts(values, text, batch_rows, npy, refusal):
    path = npy(damaged(17, values))
    assert refusal(path, layout=Layout.COUNTS, batch_rows=batch_rows) == f"v.npy: row 17 {text}"


def test_the_row_is_counted_over_all_parts(parquet, refusal, tmp_path):
    parquet({"class_0": [7] * 10, "class_1": [3] * 10}, "parts/a.parquet")
    parquet({"class_0": [7] * 7 + [8], "class_1": [3] * 8}, "parts/b.parquet")
    assert refusal(tmp_path / "parts").startswith("parts: row 17 is the first whose total")


def test_shares_are_recognised(npy, refusal):
    message = refusal(npy([[0.7, 0.3], [0.2, 0.8]]), layout=Layout.COUNTS)
    assert message == (
        "v.npy: row 0 sums to 1. If these are shares of teachers with one vote each, store how "
        f"many voted for each class. {PROBABILITIES}"
    )


def test_huge_unsigned_counts_do_not_turn_negative(npy, refusal):
    message = refusal(npy(np.array([[1, 2], [2**64 - 1, 4]], dtype=">u8")), layout=Layout.COUNTS)
    assert message.startswith("v.npy: row 1 has a number above 2147483647")


def test_row_zero_is_checked_on_opening(npy):
    from pate_cli.core.errors import VoteError

    with (
        pytest.raises(VoteError, match="row 0 has no votes"),
        open_votes(npy([[0, 0], [1, 2]]), layout=Layout.COUNTS),
    ):
        pass


def test_labels_out_of_range(npy, refusal):
    path = npy([[0, 1], [1, 2], [3, 0]])
    assert refusal(path, layout=Layout.LABELS, classes=3) == (
        "v.npy: row 2 has a label outside 0..2; labels count from 0: check `classes` and the file"
    )
    assert refusal(path, layout=Layout.LABELS_BY_TEACHER, classes=3, teachers=3).startswith(
        "v.npy: column 0 has a label outside 0..2"
    )
    assert refusal(npy([[0], [70000]]), layout=Layout.LABELS) == (
        "v.npy: row 1 has a label above 65535; if that is right, give `classes`"
    )
    assert refusal(npy([[0], [0]]), layout=Layout.LABELS) == (
        "v.npy: only label 0 occurs; give `classes`"
    )


def test_classes_must_fit_counts(npy, refusal):
    assert refusal(npy([[1, 2, 3]]), layout=Layout.COUNTS, classes=4) == (
        "v.npy: has counts of 3 classes, but `classes` 4"
    )
    assert refusal(npy([[1], [1]]), layout=Layout.COUNTS) == (
        "v.npy: has counts of one class only; there is nothing to choose from"
    )


def test_tally_skips_absent_votes():
    labels = np.array([[0, 2, ABSENT], [ABSENT, ABSENT, 1]])
    np.testing.assert_array_equal(tally(labels, 3), [[1, 0, 1], [0, 1, 0]])


def test_no_message_quotes_a_vote(npy, refusal):
    secret = 7919
    array = np.full((20, 3), secret)
    for row, entry in ((3, 7907), (4, 0)):
        array[row, 0] = entry
    message = refusal(npy(array), layout=Layout.COUNTS, teachers=20_000)
    assert "row 0" in message
    assert str(secret) not in message
    labels = refusal(npy(array), layout=Layout.LABELS, classes=10)
    assert str(secret) not in labels


def test_a_batch_is_a_copy_of_the_mapped_file(npy):
    path = npy(np.array([[3, 4], [5, 2]]))
    with open_votes(path, layout=Layout.COUNTS) as votes:
        batch = next(votes.batches())
        with path.open("r+b") as file:
            file.seek(-32, 2)
            file.write(b"\x09")
        assert batch.counts[0, 0] == 3
