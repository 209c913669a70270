"""Everything that leaves a run, on vote files that differ by one teacher, with the same noise.

Only labels may differ, and what is computed from them or sanitized: that is what epsilon pays for.
"""

import contextlib
import getpass
import io
import json
import os
import re
import socket
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from typer.testing import CliRunner

from face import meaning
from pate_cli.cli.app import app
from pate_cli.core.arrays import NO_LABEL
from pate_cli.core.noise import RunKey
from pate_cli.core.words import LabelFormat
from pate_cli.labels.labels import Labels, write_labels
from slices import some

TEACHERS, CLASSES, QUERIES = 12, 3, 9
GONE = -1
ONE = 4
"""The teacher in whose votes neighbours differ."""

IDS = [f"q{7 * row % QUERIES}" for row in range(QUERIES)]

# Everything that a statement takes as public.
PUBLIC = ["--teachers", TEACHERS, "--classes", CLASSES, "--workers", 1]


KEYS: list[RunKey] = []
"""Of the commands on one vote file so far: no two have one, and so one name, in a record."""


@pytest.fixture(scope="module", autouse=True)
def same_noise():
    """The same secrets for all files: private, as a seed is not, so that reports say all they can.

    Each is known by its place in `KEYS`.
    """

    def fresh(cls, _seed):
        KEYS.append(cls(bytes([len(KEYS), *range(1, 32)])))
        return KEYS[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunKey, "of", classmethod(fresh))
        yield


def some_votes():
    """Labels [queries, teachers]: near ties, agreement, and gaps here and there."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, CLASSES, size=(QUERIES, TEACHERS))
    labels[::3] = np.where(rng.random((3, TEACHERS)) < 0.9, 1, labels[::3])
    labels[rng.random(labels.shape) < 0.1] = GONE
    labels[:, ONE] = [0, GONE, 2, 1, GONE, 0, 1, GONE, 1]
    return labels


def other(labels, votes):
    """The same file with these votes of the one teacher, by row."""
    changed = labels.copy()
    for row, vote in votes.items():
        changed[row, ONE] = vote
    return changed


VOTES = some_votes()
NEIGHBOURS = {
    "moved in the first row": other(VOTES, {0: 1}),
    "vanished from the first row": other(VOTES, {0: GONE}),
    "appeared in the middle": other(VOTES, {4: 2}),
    "vanished from the last row": other(VOTES, {QUERIES - 1: GONE}),
    "all votes moved, gone or new": other(
        VOTES, dict(enumerate([2, 1, GONE, 0, 2, GONE, 0, 1, 2]))
    ),
    "nothing is left": other(VOTES, dict.fromkeys(range(QUERIES), GONE)),
}
EVERYWHERE = NEIGHBOURS["all votes moved, gone or new"]


def histograms(labels):
    return np.stack([(labels == label).sum(axis=1) for label in range(CLASSES)], axis=1)


def nullable(values):
    return pa.array([None if v == GONE else v for v in values], pa.int64())


def npy_counts(labels, path):
    np.save(path, histograms(labels))
    return ["--layout", "counts"]


def parquet_counts(labels, path):
    columns = {f"class_{j}": histograms(labels)[:, j] for j in range(CLASSES)}
    pq.write_table(pa.table({"query_id": IDS, **columns}), path)
    return ["--layout", "counts"]


def a_column_a_teacher(labels, path):
    columns = {f"teacher_{t}": nullable(labels[:, t]) for t in range(TEACHERS)}
    pq.write_table(pa.table({"query_id": IDS, **columns}), path)
    return ["--layout", "labels"]


def short_lists(labels, path):
    rows = [[vote for vote in row if vote != GONE] for row in labels.tolist()]
    table = {"query_id": IDS, "labels": pa.array(rows, pa.list_(pa.int64()))}
    pq.write_table(pa.table(table), path)
    return ["--layout", "labels"]


def votes_of(labels, teachers):
    rows = [(q, t) for t in teachers for q in range(QUERIES) if labels[q, t] != GONE]
    return pa.table(
        {
            "query_id": pa.array([IDS[q] for q, _ in rows], pa.string()),
            "teacher_id": pa.array([t for _, t in rows], pa.int64()),
            "label": pa.array([labels[q, t] for q, t in rows], pa.int64()),
        }
    )


def asked(path):
    listed = path.with_name("asked.csv")
    listed.write_text("\n".join(["query_id", *IDS]) + "\n")
    return ["--layout", "long", "--queries", listed.name]


def long_form(labels, path):
    pq.write_table(votes_of(labels, range(TEACHERS)), path)
    return asked(path)


def npy_labels(labels, path):
    np.save(path, labels)
    return ["--layout", "labels"]


WITH_GAPS = [npy_counts, a_column_a_teacher, short_lists, long_form, parquet_counts]


@dataclass(frozen=True)
class Left:
    """What a run leaves: its code, both streams, and every new file with its mode."""

    code: int
    stdout: str
    stderr: str
    files: dict[str, tuple[int, bytes]]

    @property
    def report(self):
        """What the last command reports."""
        if self.stdout.startswith("{") or "report.json" not in self.files:
            return self.stdout
        return self.files["report.json"][1].decode()


RECORD = ".spent.json"
SECRET = {"ledger"}
"""Files that are not for publishing; that they are there at all, and their mode, is no secret."""


def left_by(labels, write: Callable, *lines, name="votes"):
    """The last of these commands on the votes, in a folder of its own; VOTES stands for them."""
    KEYS.clear()
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        path = Path(place, f"{name}.npy" if "npy" in write.__name__ else name)
        layout = write(labels, path)
        given = set(_files(Path(place)))
        for line in lines:
            words = [w for word in line for w in ([path.name] if word == "VOTES" else [word])]
            if line[0] == "aggregate":
                words += [*layout, *PUBLIC, "--max-epsilon", 1000]
            result = CliRunner().invoke(app, [str(word) for word in words], prog_name="pate")
            assert line is lines[-1] or result.exit_code == 0, result.stderr
        files = {
            at: (mode, b"" if at in SECRET else content)
            for at, (mode, content) in _files(Path(place)).items()
            if at not in given
        }
        said = result.stderr.replace(os.path.realpath(place), "PLACE")
        return Left(result.exit_code, result.stdout, said, files)


def _files(folder):
    return {
        str(path.relative_to(folder)): (stat.S_IMODE(path.stat().st_mode), path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# The labels themselves are what is paid for, and so is whatever is computed from them alone.
FROM_LABELS = {"answers", "rounds.0.answers", "labels.bytes", "labels.sha256"}
# A sanitized epsilon is drawn; the headline, where it comes from and the sentence about it follow
# from it and public numbers, which `follows_from_the_draw` checks.
FROM_DRAW = {"sanitized", "epsilon", "epsilon_kind", "summary"}


@pytest.fixture(autouse=True)
def _strangers(monkeypatch):
    """Nobody has seen votes of another run, by which its record would be found."""
    monkeypatch.setenv("PATE_HOME", os.devnull)


def from_labels(path):
    """Whether it is computed from labels alone: in a report, or in a record of several."""
    return path in FROM_LABELS or re.fullmatch(r"spent\.runs\.\d+\.answers", path) is not None


def unlike(one, two, path=""):
    """Paths of the leaves in which two JSON values differ."""
    if isinstance(one, dict) and isinstance(two, dict) and list(one) == list(two):
        return {at for key in one for at in unlike(one[key], two[key], f"{path}.{key}".strip("."))}
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        pairs = enumerate(zip(one, two, strict=True))
        return {at for key, pair in pairs for at in unlike(*pair, f"{path}.{key}".strip("."))}
    return set() if (one, type(one)) == (two, type(two)) else {path}


def same_reports(one, two):
    """Byte by byte, but for what is paid for."""
    reports = [json.loads(one), json.loads(two)]
    assert [json.dumps(report, indent=2) + "\n" for report in reports] == [one, two]
    drawn = "sanitized" in reports[0]
    allowed = FROM_DRAW if drawn else set()
    assert not {at for at in unlike(*reports) - allowed if not from_labels(at)}
    for report in reports if drawn else ():
        follows_from_the_draw(report)


def follows_from_the_draw(report):
    """The headline is the smaller of two published numbers, and the sentence names it."""
    sanitized, public = report["sanitized"], report["data_independent"]["epsilon"]
    assert report["epsilon"] == min(sanitized, public)
    kind = "worst-case" if public <= sanitized else "upper"
    assert report["epsilon_kind"] == kind
    if report["private"]:
        assert f"epsilon {report['epsilon']:.4f} at" in report["summary"]


def read_labels(name, content):
    """Ids, labels, sources and metadata of a file of labels."""
    path, metadata = Path(Path(name).name), {}
    path.write_bytes(content)
    rows = list(meaning.rows_of(path))
    if path.suffix == ".npy":  # which has neither ids nor sources: any will do to write it again
        ids, labels = list(range(len(rows))), rows
        sources = ["none" if label == NO_LABEL else "teachers" for label in labels]
    else:
        ids, labels, sources = zip(*(row.values() for row in rows), strict=True)
    if path.suffix == ".parquet":
        metadata = json.loads(pq.read_schema(path).metadata[b"pate"])
    if all(str(query).isdigit() for query in ids):
        ids = [int(query) for query in ids]
    numbers = [NO_LABEL if label in (None, "") else int(label) for label in labels]
    return np.array(ids), np.array(numbers, dtype=np.int32), np.array(sources), metadata


def same_label_files(name, one, two):
    """Each file is the other's ids and public parameters with its own labels, to the byte."""
    ids, labels, _, metadata = read_labels(name, one)
    _, its_labels, its_sources, _ = read_labels(name, two)
    again = io.BytesIO()
    table = Labels(ids, its_labels, its_sources, metadata)
    write_labels([table], again, LabelFormat.from_path(name), rows=len(table))
    assert again.getvalue() == two
    return set(np.flatnonzero(labels != its_labels).tolist())


def same_records(one, two):
    """A record is for all: it tells how many labels there were, and of the votes nothing."""
    for pair in zip(one.splitlines(), two.splitlines(), strict=True):
        line, other = ({**json.loads(text), "chain": None} for text in pair)
        if "settle" in line:
            assert isinstance(other.pop("answers"), type(line.pop("answers")))
        assert line == other


def differ_only_in_what_is_paid_for(one, two):
    """Compare all that left two runs; the rows whose labels differ."""
    assert one.code == two.code, (one.stderr, two.stderr)
    assert set(one.files) == set(two.files)
    rows, streams = set(), [one.stdout, two.stdout]
    for name, (mode, content) in one.files.items():
        its_mode, its_content = two.files[name]
        assert mode == its_mode
        if name.endswith("report.json"):
            same_reports(content.decode(), its_content.decode())
        elif name.endswith(RECORD):
            same_records(content, its_content)
        elif "labels" in name:
            rows |= same_label_files(name, content, its_content)
        else:
            assert content == its_content, name
    if streams[0].startswith("query_id,"):
        rows |= same_label_files("labels.csv", *(text.encode() for text in streams))
    elif '"dry_run"' not in streams[0] and streams[0]:
        same_reports(*streams)
    else:
        assert streams[0] == streams[1]
    same_notes(one, two)
    return rows


# How standard error repeats numbers of the report.
REPEATED = ["answered {answers} of ", ", {answers} answers: ", "epsilon {epsilon:.4f} at delta "]


def same_notes(one, two):
    """Standard error is the same but for the numbers of answers and epsilon that are published."""
    expected = one.stderr
    if one.report and '"answers"' in one.report:
        here, there = json.loads(one.report), json.loads(two.report)
        for words in REPEATED:
            expected = expected.replace(words.format_map(here), words.format_map(there))
    assert expected == two.stderr


def changed_rows(one, two):
    return set(np.flatnonzero((histograms(one) != histograms(two)).any(axis=1)).tolist())


TO_FILES = ["-o", "labels.parquet", "--report", "report.json"]
CHEAP = ["aggregate", "VOTES", "--mechanism", "lnmax"]


@pytest.mark.parametrize("write", some(WITH_GAPS, 2), ids=lambda write: write.__name__)
def test_every_layout(write):
    """All of what one teacher can do, wherever its votes stand in the file."""
    before = left_by(VOTES, write, [*CHEAP, *TO_FILES])
    assert before.code == 0, before.stderr
    for labels in NEIGHBOURS.values():
        after = left_by(labels, write, [*CHEAP, *TO_FILES])
        rows = differ_only_in_what_is_paid_for(before, after)
        assert rows <= changed_rows(VOTES, labels)


random_votes = hnp.arrays(
    np.int64, (QUERIES, TEACHERS), elements=st.integers(GONE, CLASSES - 1), fill=st.just(1)
)


@settings(max_examples=8)
@given(
    labels=random_votes,
    column=hnp.arrays(np.int64, QUERIES, elements=st.integers(GONE, CLASSES - 1)),
    write=st.sampled_from(WITH_GAPS),
    mechanism=st.sampled_from(["lnmax", "stability"]),
    way=st.sampled_from(
        [
            TO_FILES,
            ["--quiet", "-o", "labels.csv"],
            ["-o", "-", "--format", "csv", "--report", "report.json"],
            ["-o", "labels.jsonl"],
            ["-o", "labels.npy", "--max-queries", 5],
            ["--dry-run"],
        ]
    ),
)
def test_whatever_the_votes(labels, column, write, mechanism, way):
    neighbour = other(labels, dict(enumerate(column.tolist())))
    words = ["aggregate", "VOTES", "--mechanism", mechanism, *way]
    before, after = (left_by(votes, write, words) for votes in (labels, neighbour))
    assert before.code == 0, before.stderr
    rows = differ_only_in_what_is_paid_for(before, after)
    assert rows <= changed_rows(labels, neighbour)


# Words for each mechanism and each kind of release.
LNMAX, GNMAX = ["--mechanism", "lnmax"], ["--mechanism", "gnmax"]
WAYS = {
    "confident": [],
    "confident, dry": ["--dry-run"],
    "interactive": ["--mechanism", "interactive", "--student", "student.npy"],
    "gnmax": [*GNMAX, "-o", "labels.parquet"],
    "lnmax": [*LNMAX, "-o", "labels.jsonl"],
    "sparse-vector": ["--mechanism", "sparse-vector", "--refusals", 3],
    "quiet": [*LNMAX, "--quiet", "-o", "labels.npy"],
    "seeded": [*LNMAX, "--seed", 3, "-o", "labels.csv"],
    "cap": [*LNMAX, "--max-answers", 4],
    "cap, student": ["--mechanism", "interactive", "--student", "student.npy", "--max-answers", 1],
    "ledger": ["--order", 8, "--release", "none", "--ledger", "ledger"],
    "target, met": [*LNMAX, "--target-epsilon", 60, "--budget", 70],
    "target, out of reach": [*LNMAX, "--target-epsilon", 60, "--budget", 1],
    "target, dry": [*LNMAX, "--target-epsilon", 10, "--dry-run"],
    "target, refused": [*LNMAX, "--target-epsilon", 0.9, "--max-queries", 9, "--min-pass", 0],
    "target, passed": [*GNMAX, "--sigma2", 1.92, "--target-epsilon", 6, "--max-queries", 4],
    "confident, upper": ["--release", "upper", "--order", 4],
    "gnmax, upper": [*GNMAX, "--release", "upper", "--order", 4, "--quiet"],
    "lnmax, upper": [*LNMAX, "--release", "upper"],
    "ledger, upper": [*LNMAX, "--release", "upper", "--ledger", "ledger"],
    "published": [*GNMAX, "--analysis", "paper", "--sigma2", 8, "--order", 4],
}
CODES = {"target, out of reach": 5, "target, refused": 8}
OUT_OF_PLACE = {"sparse-vector", "cap", "cap, student"}
"""Where a label depends on earlier rows: what one row changes may move a stop."""


@pytest.fixture
def student():
    """A writer of votes that puts a student's predictions beside them."""

    def write(labels, path):
        surest = np.linspace(0.4, 0.98, QUERIES)
        predicted = np.stack([surest, (1 - surest) / 2, (1 - surest) / 2], axis=1)
        np.save(path.with_name("student.npy"), predicted)
        return parquet_counts(labels, path)

    return write


@pytest.mark.parametrize("way", some(WAYS, 2))
def test_every_mechanism_and_release(way, student):
    words = ["aggregate", "VOTES", *WAYS[way]]
    # Files as far apart as the two may well end differently, which is what the coin is paid for.
    neighbour = NEIGHBOURS["moved in the first row"] if way == "target, passed" else EVERYWHERE
    before, after = (left_by(labels, student, words) for labels in (VOTES, neighbour))
    assert before.code == CODES.get(way, 0), before.stderr
    rows = differ_only_in_what_is_paid_for(before, after)
    assert way in OUT_OF_PLACE or rows <= changed_rows(VOTES, neighbour)
    if "quiet" in way:
        assert before.stderr == after.stderr == ""
    if way in ("target, passed", "target, refused"):  # by a coin
        assert json.loads(before.stdout)["passed"] == ("passed" in way)


@pytest.mark.parametrize("kind", ["upper", "none"])
def test_release_from_a_ledger(kind):
    """The record holds nothing of the votes, and its file is the same."""
    keep = [*CHEAP, "--order", 4, "--release", "none", "--ledger", "ledger", *TO_FILES]
    draw = ["release", "ledger", "--release", kind]
    before, after = (left_by(labels, npy_counts, keep, draw) for labels in (VOTES, EVERYWHERE))
    assert before.code == 0, before.stderr
    differ_only_in_what_is_paid_for(before, after)
    one, two = (left_by(labels, npy_counts, keep, draw, draw) for labels in (VOTES, EVERYWHERE))
    assert one.code == two.code == (0 if kind == "none" else 7)
    assert kind == "none" or one.stderr == two.stderr


@pytest.mark.parametrize(
    "words",
    [
        [*CHEAP, *TO_FILES],
        [*CHEAP, "--order", 4, "-o", "labels.jsonl", "--report", "report.json"],
        [*CHEAP, "--dry-run", "--report", "report.json"],
    ],
    ids=["files", "upper", "dry"],
)
def test_no_name_of_the_votes_or_the_host_leaves(words, monkeypatch):
    """Not in labels, their metadata or the report; nor does anything else of where it ran.

    The record has the name of the votes, as the one thing that is its holder's to show.
    """
    one = left_by(VOTES, long_form, words, name="ward-17-patients")
    for name in ("USER", "LOGNAME", "HOSTNAME", "HOME", "TZ"):
        monkeypatch.setenv(name, "elsewhere")
    two = left_by(VOTES, long_form, words, name="others")
    assert len(one.files) == len(two.files)
    for name, (mode, content) in one.files.items():
        if name.endswith(RECORD):  # which tells its holder what the votes are called
            content = content.replace(b"ward-17-patients", b"others")
            same_records(content, two.files[f"others{RECORD}"][1])
        else:
            assert (mode, content) == two.files[name]
    told = [socket.gethostname(), "ward-17", "elsewhere", tempfile.gettempdir(), str(Path.home())]
    with contextlib.suppress(KeyError, OSError):
        told.append(getpass.getuser())
    for name, (_, content) in two.files.items():
        read = content
        if name.endswith(".parquet"):
            table = pq.read_table(io.BytesIO(content))
            read += str((table.schema.metadata, table.to_pydict())).encode()
        assert not [word for word in told if len(word) > 4 and word.encode() in read], name


def one_vote_too_many(labels, path):
    counts = histograms(labels)
    counts[6, 0] += TEACHERS + 1
    np.save(path, counts)
    return ["--layout", "counts"]


def a_query_nobody_asks(labels, path):
    stray = pa.table({"query_id": ["q99"], "teacher_id": [2], "label": [0]})
    pq.write_table(pa.concat_tables([stray, votes_of(labels, range(TEACHERS))]), path)
    return asked(path)


@pytest.mark.parametrize("write", [one_vote_too_many, a_query_nobody_asks])
def test_bad_files_are_refused_alike(write):
    """What is wrong is not the one teacher's, so that both neighbours have it."""
    refusals = {left_by(labels, write, CHEAP).stderr for labels in (VOTES, *NEIGHBOURS.values())}
    assert len(refusals) == 1
    assert left_by(VOTES, write, CHEAP).code == 3


@pytest.mark.parametrize("write", [a_column_a_teacher, short_lists, npy_labels])
@pytest.mark.parametrize("label", [CLASSES, 2**31])
def test_bad_labels_are_refused_alike(write, label):
    """It stands in place of another teacher's vote, wherever votes stand alone."""
    refusals = []
    for labels in (VOTES, EVERYWHERE):
        spoiled = np.where(labels == GONE, 0, labels) if write is npy_labels else labels.copy()
        spoiled[5, ONE + 1] = label
        refusals.append(left_by(spoiled, write, CHEAP))
    assert [run.code for run in refusals] == [3, 3]
    assert refusals[0].stderr == refusals[1].stderr
    assert refusals[0].files == refusals[1].files
    # Where rows are looked at as they are labelled, a run is entered, and struck out again.
    for name, (_, content) in refusals[0].files.items():
        assert name.endswith(RECORD)
        assert b'{"strike":' in content.splitlines()[-1]
