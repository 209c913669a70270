"""A slice of `make fuzz`, that it finds what it looks for, and what it found before."""

import contextlib
import gzip
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import record_files
from fuzz import trial
from fuzz.cases import CASES, READERS, Case
from fuzz.whole import MARK, WHOLE, ledger, record, whole
from opened import counts_of, refused
from pate_cli.core.errors import LedgerError, PateError, UsageError, VoteError, quoted
from pate_cli.disclosure.ledger import Ledger
from pate_cli.disclosure.record import SpendRecord
from pate_cli.votes import names
from pate_cli.votes.join import prior, query_ids, student, teacher_groups
from pate_cli.votes.names import class_names
from pate_cli.votes.opening import open_votes
from refusals import refusal

ROUNDS = int(os.environ.get("PATE_FUZZ", "4"))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("start", range(0, ROUNDS, 250))
@pytest.mark.parametrize("case", sorted(CASES))
def test_whatever_a_file_holds_is_read_or_refused(case, start, here):
    """Random seeds would be luck: they are the same on every machine."""
    seeds = range(start, min(start + 250, ROUNDS))
    faults = {seed: trial.look(case, seed)[0] for seed in seeds}
    assert not {seed: fault for seed, fault in faults.items() if fault is not None}


@pytest.mark.parametrize("kind", sorted(set(WHOLE) - {"npy of words"}))
def test_what_is_whole_is_read(kind, here):
    """Else damage would be refused for something else."""
    reader = CASES[kind].read
    Path("v").write_bytes(whole(kind))
    for seed in range(20):
        with contextlib.suppress(PateError):
            reader("v", np.random.default_rng(seed))
            return
    pytest.fail("never read")


@pytest.fixture
def planted(here, monkeypatch):
    """What a trial says of a reader."""

    def look(read):
        monkeypatch.setitem(CASES, "planted", Case(lambda _: b"", lambda *_: read()))
        return trial.look("planted", 0)[0]

    return look


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (KeyError("x"), "KeyError at "),
        (MemoryError(), "MemoryError at "),
        (RuntimeWarning("overflow"), "RuntimeWarning at "),
        (PateError("x"), "PateError has exit code 1"),
        (VoteError("w" * 400), "400 characters"),
        (VoteError(f"row 3 has {MARK}001"), "a vote is shown"),
    ],
)
def test_faults_are_seen(error, fault, planted):
    def read():
        raise error

    assert planted(read).startswith(fault)


def test_memory_is_seen(planted, monkeypatch):
    monkeypatch.setattr(trial, "MOST_MEMORY", 1 << 20)
    fault = planted(lambda: np.ones((trial._peak() >> 3) + (32 << 17)).sum())
    assert fault.startswith("took ")
    assert fault.endswith(" MB")


def beside(read, path="v"):
    """Read something beside votes of two queries and two classes."""
    with open_votes(np.array([[3, 2], [2, 3]]), layout="counts") as votes:
        return read(path, votes)


def test_names_in_messages_are_short_and_on_one_line(here):
    assert quoted("a\nb") == r"'a\nb'"
    assert len(quoted("n" * 5000)) == 60
    assert quoted("n" * 5000).startswith("'nnn")
    assert quoted("n" * 5000).endswith("nnn'")
    assert str(VoteError("a\nb\x1b[2J\udcff")) == r"a\nb\x1b[2J\udcff"
    for name in ("a\nb", "n" * 5000, "\n" * 3000):
        for columns in (
            {"teacher_id": [1], name: [[1]], "more": [[1]]},
            {"c": [1], "d": pa.array([{name: 1}])},
        ):
            pq.write_table(pa.table(columns), "v")
            assert len(refused("v")) < 300


@pytest.mark.parametrize("said", [b"\xff\xfe", b"1\n2", b""])
def test_metadata_of_others_is_passed_over(said, here):
    field = pa.field("class_0", pa.int64(), metadata={"pate:odd_row": said})
    schema = pa.schema([field, pa.field("class_1", pa.int64())])
    pq.write_table(pa.table([[1, 2], [2, 1]], schema=schema), "v")
    assert counts_of("v").tolist() == [[1, 2], [2, 1]]


@pytest.mark.parametrize(
    ("shape", "descr"),
    [
        (f"({'9' * 4000}, {'9' * 4000})", "'<i8'"),
        (f"(1{'0' * 40}, 3)", "'<i8'"),
        (f"({'1, ' * 200})", "'<i8'"),
        ("(-1, 3)", "'<i8'"),
        ("(3L, 3)", "('<i8', 9999999999)"),
        ("(3, 3)", "'<U2147483648'"),
        ("(3, 3)", "'i99999999999999999999'"),
        ("(3, 3)", "[" * 90 + "]" * 90),
        ("(" * 300 + "3" + ")" * 300, "'<i8'"),
    ],
)
def test_headers_that_are_no_array(shape, descr, here):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    length = len(header).to_bytes(2, "little")
    Path("v").write_bytes(b"\x93NUMPY\x01\x00" + length + header + bytes(72))
    assert len(refused("v")) < 300
    for read in (student, prior):
        assert len(refusal(VoteError, beside, read)) < 300


def test_numbers_of_16_bits(here):
    np.save("v.npy", np.array([[1, 2], [2, 1]], dtype=np.float16))
    assert counts_of("v.npy", layout="counts").tolist() == [[1, 2], [2, 1]]
    np.save("v.npy", np.array([[[1, 2], [2, 1]]], dtype=np.float16))
    assert len(counts_of("v.npy", layout="multilabel-counts")) == 2
    np.save("v.npy", np.array([[1, np.inf]], dtype=np.float16))
    assert "NaN or infinite" in refused("v.npy", layout="counts")
    np.save("v.npy", np.array([[27118001, 0]]))
    assert "27118" not in refused("v.npy", layout="counts")


def test_truths_whose_bytes_are_neither_0_nor_1(here):
    np.save("v.npy", np.array([[0, 170, 1], [255, 0, 0]], dtype=np.uint8).view(np.bool_))
    given = {"layout": "labels", "label_names": "False,True", "teachers": 3}
    assert counts_of("v.npy", **given).tolist() == [[1, 2], [2, 1]]


@pytest.mark.parametrize("kind", [np.float64, np.longdouble])
def test_predictions_whose_sum_float64_cannot_hold(kind, here):
    np.save("v", np.full((2, 2), np.finfo(kind).max))
    text = refusal(VoteError, beside, student, "v.npy")
    assert "the student's predictions in v.npy" in text
    assert ("probabilities" in text) or kind is np.longdouble


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/null", "/dev/urandom"])
def test_a_device_is_no_file_of_votes(device, here):
    assert "no such file" in refused(device)
    assert "no such file" in refusal(VoteError, beside, prior, device)
    if device == "/dev/zero":
        assert "the limit of 256 MB" in refusal(LedgerError, Ledger.read, device)


@pytest.mark.parametrize("ids", [[1, 1], [1, None]])
def test_ids_under_a_name_of_thousands_of_letters(ids, here):
    name = "n" * 5000
    pq.write_table(pa.table({name: ids, "class_0": [0, 1], "class_1": [1, 0]}), "v")
    assert len(refused("v", layout="counts", id_column=name)) < 320


def test_pages_that_are_told_of_in_other_types(here):
    """The header of a page holds a number where it should tell of values."""
    table = pa.table({"teacher_0": ["cat", "dog"] * 50, "teacher_1": ["dog"] * 100})
    pq.write_table(table, "w", use_dictionary=False, compression="none")
    data = Path("w").read_bytes()
    for place in range(4, 60):
        for byte in (0x25, 0x21, 0x28, 0x29):
            Path("v").write_bytes(data[:place] + bytes([byte]) + data[place + 1 :])
            with contextlib.suppress(VoteError):
                counts_of("v", layout="labels", label_names=("cat", "dog"))


def test_groups_and_ids_that_are_no_texts(here):
    bad = pa.array([b"\xad", b"a"]).cast(pa.binary()).view(pa.string())
    pq.write_table(pa.table({"group": bad}), "v")
    assert "groups of teachers in v" in refusal(VoteError, teacher_groups, "v")
    pq.write_table(pa.table({"query_id": pa.array([[1], [2]]), "label": [0, 1]}), "v")
    for read in (prior, lambda path, _votes: query_ids(path, None)):
        assert "neither a whole number nor a text" in refusal(VoteError, beside, read)


def test_names_without_end_are_refused(here, monkeypatch):
    monkeypatch.setattr(names, "_LONGEST", 1 << 20)
    assert "is empty or not a text" in refusal(UsageError, READERS["names"], "/dev/zero", None)
    assert "cannot contain a null character" in refusal(UsageError, class_names, "@a\0b")


@pytest.mark.parametrize("name", ["n" * 300, "a\0b", "loop"])
def test_names_that_no_file_has(name, here):
    Path("loop").symlink_to("loop")
    for read in (Ledger.read, SpendRecord.read):
        refusal(LedgerError, read, name)
    refused(name)
    refusal(VoteError, beside, prior, name)


def test_brackets_in_a_record(here):
    for depth in (10, 500, 900, 950, 970, 980, 985, 990, 995, 2000, 100_000):
        line = b'{"enter":' + b"[" * depth + b"]" * depth + b"}\n"
        Path("r.json").write_bytes(record_files.content(record()) + line)
        refusal(LedgerError, SpendRecord.read, "r.json")


def test_a_ledger_of_absurd_numbers(here):
    data = json.loads(ledger().to_json())
    version = data | {"schema_version": "1\n" * 900}
    assert len(refusal(LedgerError, Ledger.from_json, json.dumps(version))) < 300
    data |= {"schema_version": 1}
    for field in ("queries", "max_answers", "answers"):
        data["rounds"][0][field] = 10**400
        assert len(refusal(LedgerError, Ledger.from_json, json.dumps(data))) < 300


def test_an_archive_with_an_entry_of_no_name(here):
    entry = bytearray(whole("npz"))
    at = entry.rindex(b"PK\x01\x02")
    entry[at + 28 : at + 30] = b"\0\0"
    Path("v").write_bytes(entry)
    assert "damaged or cut short" in refused("v")


def test_what_is_packed_too_often_is_refused(here):
    packed = gzip.compress(b"class_0,class_1\n1,2\n")
    Path("v.csv").write_bytes(packed)
    assert counts_of("v.csv", layout="counts").tolist() == [[1, 2]]
    Path("v.csv").write_bytes(gzip.compress(packed))
    assert "is none of NPY" in refused("v.csv")
