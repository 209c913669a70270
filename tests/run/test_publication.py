"""One destination: labels, report and ledger appear together, or nothing does."""

import os
import re
import stat
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from typer.testing import CliRunner

import pate_cli as pate
from pate_cli.cli.app import app
from pate_cli.core.errors import OutputError, ParameterError, UsageError, VoteError
from pate_cli.core.words import LabelFormat
from pate_cli.files.document import now
from pate_cli.files.outputs import File
from pate_cli.run import fold
from pate_cli.votes import vote_file
from slices import some

VOTES = np.random.default_rng(5).multinomial(100, [0.7, 0.2, 0.1], size=60)
GIVEN = {"layout": "counts", "seed": 4}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_path_is_labels_and_a_report_beside_them(tmp_path):
    done = pate.aggregate(VOTES, **GIVEN, into="found.csv")
    assert names(tmp_path) == ["found.csv", "found.report.json"]
    assert len(done.labels) == 0
    assert (tmp_path / "found.report.json").read_text() == done.report.to_json()
    # Drawn from a seed it promises nothing; all else holds, the hash of the labels with it.
    assert str(pate.verify("found.report.json", labels="found.csv")).endswith("hold: promise>")


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(vote_file, "ENTRIES_PER_BATCH", 21)


@pytest.mark.parametrize("label_format", some(LabelFormat, 2))
def test_how_rows_are_cut_into_batches_leaves_no_trace_in_a_file(tmp_path, label_format, request):
    rows = np.repeat(VOTES, 40, axis=0)
    pate.aggregate(rows, **GIVEN, into=f"one.{label_format}")
    request.getfixturevalue("small_batches")
    pate.aggregate(rows, **GIVEN, into=f"other.{label_format}")
    one, other = (tmp_path / f"{name}.{label_format}" for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("label_format", some(LabelFormat, 2))
def test_a_disk_that_fills_up_while_labels_are_written(tmp_path, monkeypatch, label_format):
    full = os.open("/dev/full", os.O_RDWR)
    monkeypatch.setattr(File, "begin", lambda file: setattr(file, "draft", os.fdopen(full, "w+b")))
    monkeypatch.setattr(File, "try_room", lambda *_: None)
    with pytest.raises(OutputError, match=r"l\..*: No space left on device; nothing was released"):
        pate.aggregate(np.repeat(VOTES, 100, axis=0), **GIVEN, into=f"l.{label_format}")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("asked", "error", "text"),
    [
        ({"labels": "-"}, UsageError, "cannot tell the label format of '-'"),
        ({"labels": "-", "label_format": "csv"}, UsageError, "cannot both go to stdout"),
        ({"labels": "l.txt"}, UsageError, "cannot tell the label format of 'l.txt'"),
        ({"labels": "l.csv", "label_format": "x"}, ParameterError, "`label_format` must be one of"),
    ],
)
def test_a_destination_that_makes_no_sense(asked, error, text):
    with pytest.raises(error) as refused:
        pate.Destination(**asked)
    assert text in str(refused.value)


@pytest.mark.parametrize(
    "into", [3, b"l.csv", ["l.csv"], object()], ids=lambda value: type(value).__name__
)
def test_what_is_no_destination_is_refused(into):
    with pytest.raises(ParameterError, match="`into` must be a path, an address such as"):
        pate.aggregate(VOTES, **GIVEN, into=into)


def test_a_ledger_of_what_has_none_is_refused_before_anything_is_read(tmp_path):
    for kept in ({"into": pate.Destination("l.csv", ledger="s.json")}, {"keep_ledger": True}):
        with pytest.raises(UsageError, match="a ledger cannot be used with it"):
            pate.aggregate(VOTES, "stability", layout="counts", **kept)
        with pytest.raises(UsageError, match="a ledger cannot be used with `target_epsilon`"):
            pate.aggregate(VOTES, layout="counts", target_epsilon=1.0, **kept)
    assert names(tmp_path) == []


@pytest.mark.parametrize("dry", [False, True])
def test_ids_called_as_another_column_of_labels_are_refused_before_anything_is_spent(tmp_path, dry):
    Path("votes.csv").write_text("source,class_0,class_1\na,38,2\nb,38,2\n")
    words = ["aggregate", "votes.csv", "--id-column", "source", "--mechanism", "gnmax"]
    words += ["--sigma2", "9", *(["--dry-run"] if dry else [])]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 2
    assert "called 'source', like another column" in ran.stderr
    assert names(tmp_path) == ["votes.csv"]


@pytest.mark.parametrize("to", [None, "l.csv", "l.parquet"])
@pytest.mark.parametrize("workers", [1, 2])
def test_of_rows_that_are_not_asked_the_ids_alone_are_read(tmp_path, monkeypatch, to, workers):
    """Votes that nothing is spent on are not looked at, not even whether they are votes."""
    monkeypatch.setattr(fold, "_WORTH", 0)
    rows = [*(f"q{row},38,2" for row in range(6)), "late,7,7", "last,0,0"]
    Path("votes.csv").write_text("\n".join(["query_id,class_0,class_1", *rows, ""]))
    done = pate.aggregate(
        "votes.csv", "gnmax", sigma2=9.0, max_queries=6, seed=1, into=to, workers=workers
    )
    if to is None:
        ids, sources = done.labels.ids.tolist(), done.labels.sources.tolist()
    else:
        read = csv.read_csv if to.endswith("csv") else pq.read_table
        ids, sources = (read(to)[name].to_pylist() for name in ("query_id", "source"))
    assert ids == [*(f"q{row}" for row in range(6)), "late", "last"]
    assert sources == ["teachers"] * 6 + ["not asked"] * 2
    assert (done.report.queries, done.report.answers) == (6, 6)
    with pytest.raises(VoteError, match="row 7"):
        pate.aggregate("votes.csv", "gnmax", sigma2=9.0, seed=1)


# What a report says of its run: a name that a resumed run keeps, and when it began.


def ran(**settings):
    return pate.aggregate(
        VOTES, "lnmax", **{**GIVEN, "max_epsilon": 20.0, "seed": None, **settings}
    )


def test_every_run_has_a_name_of_its_own_and_a_seed_has_one():
    names = {ran().report.run for _ in range(5)}
    assert len(names) == 5
    assert all(re.fullmatch("[0-9a-f]{32}", name) for name in names)
    assert ran(seed=1).report.run == ran(seed=1, max_queries=7).report.run
    assert ran(seed=1).report.run != ran(seed=2).report.run


def test_time_is_that_of_the_source_or_now(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert now() == ran().report.time == "1970-01-02T00:00:00Z"
    for unset in (lambda: monkeypatch.setenv("SOURCE_DATE_EPOCH", ""),
                  lambda: monkeypatch.delenv("SOURCE_DATE_EPOCH")):  # fmt: skip
        unset()
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", now())
        assert now() > "2024"


@pytest.mark.parametrize("value", ["yesterday", "1.5", "-50000000000", "9" * 30, "nan", "9" * 5000])
def test_a_time_that_is_none_is_refused_before_votes_are_read(monkeypatch, value):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", value)
    with pytest.raises(UsageError, match="SOURCE_DATE_EPOCH must be whole seconds since 1970"):
        pate.aggregate("no such file.npy", **GIVEN)


def test_the_library_publishes_what_the_command_line_does(tmp_path):
    np.save("votes.npy", VOTES)
    flags = ["--layout", "counts", "--seed", "4", "-o", "l.jsonl", "--report", "r.json"]
    run = CliRunner().invoke(app, ["aggregate", "votes.npy", *flags, "--ledger", "s.json"])
    assert run.exit_code == 0, run.output
    to = pate.Destination("l2.jsonl", report="r2.json", ledger="s2.json")
    pate.aggregate("votes.npy", **GIVEN, into=to)
    for one, other in (("l.jsonl", "l2.jsonl"), ("r.json", "r2.json")):
        assert (tmp_path / one).read_bytes() == (tmp_path / other).read_bytes()
    # Every round has a name of its own.
    one, other = (pate.Ledger.read(name).rounds for name in ("s.json", "s2.json"))
    assert [done.answers for done in one] == [done.answers for done in other]
    assert stat.S_IMODE((tmp_path / "s2.json").stat().st_mode) == 0o600


def test_a_refusal_publishes_its_report_and_no_labels(tmp_path):
    # Far above what the votes cost at this noise, so that the coin is all but never for them.
    asked = {"target_epsilon": 0.5, "max_queries": 40, "sigma2": 20.0, "bound": "two-tail"}
    asked["min_pass"] = 0.0
    with pytest.raises(pate.RefusedError) as refused:
        pate.aggregate(VOTES, "gnmax", layout="counts", seed=1, **asked, into="l.csv")
    assert names(tmp_path) == ["l.report.json"]
    assert (tmp_path / "l.report.json").read_text() == refused.value.report.to_json()
