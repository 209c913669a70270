"""A journal: what is appended is there after every kind of end, and nothing else passes for it."""

import json
import os

import pytest

from pate_cli.core.errors import LedgerError
from pate_cli.files.journal import Journal
from refusals import refusal

LINES = [{"enter": {"id": "a"}}, {"settle": "a", "answers": None}, {"ask": "ä\n", "asks": [0.1]}]


@pytest.fixture
def place(tmp_path):
    return tmp_path / "r.json"


@pytest.fixture
def whole(place):
    journal = Journal(place, "some")
    for line in LINES:
        journal.append(line)
    return place.read_bytes()


def read(place):
    return Journal(place, "some").lines


def test_what_is_appended_is_read_again(place):
    journal = Journal(place, "some")
    assert (journal.lines, journal.chain) == ([], "")
    assert not place.exists()
    journal.append(*LINES[:2])
    journal.append()
    other = Journal(place, "some")
    assert other.lines == journal.lines == LINES[:2]
    other.append(LINES[2])
    journal.refresh()
    assert journal.lines == LINES
    assert journal.chain == other.chain == journal.chain_at(3) != journal.chain_at(2)
    assert journal.chain_at(4) is None
    assert [set(json.loads(line)) >= {"chain"} for line in place.read_bytes().splitlines()]


def test_a_last_line_that_is_torn_counts_for_nothing_and_is_cut_off(place, whole, monkeypatch):
    """Wherever the write of a process ended that was killed."""
    monkeypatch.setattr(os, "fsync", lambda _opened: None)
    ends = [at for at, byte in enumerate(whole, 1) if byte == 10]
    for cut in range(len(whole) + 1):
        for after in (b"", bytes(9)):  # what some systems leave where nothing got to disk
            place.write_bytes(whole[:cut] + after)
            kept = max(sum(end <= cut for end in ends) - 1, 0)
            journal = Journal(place, "some")
            assert journal.lines == LINES[:kept]
            journal.catch_up()
            journal.append({"strike": "a"})
            assert read(place) == [*LINES[:kept], {"strike": "a"}]


def test_every_change_of_what_was_written_is_refused(place, whole):
    """But for the end of the last line, by which that one is torn."""
    for at in range(len(whole) - 1):
        place.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(LedgerError):
            read(place)


@pytest.mark.parametrize("order", [(0, 2, 3), (0, 1, 3), (0, 1, 3, 2), (0, 1, 1, 2, 3), (1, 2, 3)])
def test_lines_left_out_exchanged_or_repeated_are_refused(place, whole, order):
    lines = whole.splitlines(keepends=True)
    place.write_bytes(b"".join(lines[at] for at in order))
    with pytest.raises(LedgerError):
        read(place)


@pytest.mark.parametrize(
    "content", [b"{}\n", b"[" * 9999, b"\x93NUMPY\n", b'{"kind": "some"}\n', None]
)
def test_another_file_or_kind_is_no_journal(place, whole, content):
    place.write_bytes(whole if content is None else content)
    text = refusal(LedgerError, Journal, place, "other" if content is None else "some")
    assert text.startswith(str(place))
    assert "is not a record of what runs cost, or another version of pate wrote it" in text
    for path in (place.parent, os.devnull):
        assert "not a regular file" in refusal(LedgerError, Journal, path, "some")


def test_lines_that_are_appended_before_others_were_written_again_stay(place, whole):
    journal, other = Journal(place, "some"), Journal(place, "some")
    other.append({"strike": "a"})
    journal.refresh()
    journal.append({"strike": "b"})
    journal.catch_up()
    assert read(place) == [*LINES, {"strike": "a"}, {"strike": "b"}]


LOSSES = {
    "truncated": lambda whole: whole[:-5],
    "emptied": lambda whole: b"",
    "rolled back": lambda whole: whole[: whole.rindex(b"\n", 0, -1) + 1],
    "overwritten": lambda whole: bytes(len(whole)),
    "changed": lambda whole: whole[:-40] + b"x" + whole[-39:],
    "removed": lambda whole: None,
}


@pytest.mark.parametrize("how", LOSSES)
def test_what_was_lost_while_somebody_holds_it_is_noticed_by_the_next_append(place, whole, how):
    journal, left = Journal(place, "some"), LOSSES[how](whole)
    place.unlink()
    if left is not None:
        place.write_bytes(left)
    with pytest.raises(LedgerError, match="lost or changed lines"):
        journal.catch_up()
    assert (place.read_bytes() if place.exists() else None) == left


def test_links_lead_to_one_journal(place, whole, tmp_path):
    (tmp_path / "link.json").symlink_to(place)
    Journal(tmp_path / "link.json", "some").append({"strike": "a"})
    assert (tmp_path / "link.json").is_symlink()
    assert len(read(place)) == 4
