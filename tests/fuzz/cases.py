"""What is fuzzed: how input is made from a seed, and who reads it."""

import contextlib
import io
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.random import Generator

from fuzz import odd
from fuzz.damage import struck
from fuzz.whole import MARK, WHOLE, _ids, ledger, whole
from pate_cli.core.errors import VoteError
from pate_cli.core.words import Layout
from pate_cli.disclosure.ledger import Ledger
from pate_cli.disclosure.record import SpendRecord
from pate_cli.verbs.session import Session, answers_to
from pate_cli.verbs.signatures import release, spent
from pate_cli.votes.join import (
    aliases_of,
    predictions,
    query_ids,
    student,
    teacher_groups,
    with_prior,
)
from pate_cli.votes.names import ClassNames, class_names
from pate_cli.votes.opening import open_votes
from stored import lines


@dataclass(frozen=True)
class Case:
    """Input of one kind.

    Attributes:
        make: what the file holds; None where `read` makes its own.
        read: given the name of the file, in the folder it stands in, reads it as a user would.
    """

    make: Callable[[Generator], bytes] | None
    read: Callable[[str, Generator], object]

    def try_on(self, name: str, rng: Generator) -> None:
        """Make and read one; whatever reading raises."""
        if self.make is not None:
            Path(name).write_bytes(self.make(rng))
        self.read(name, rng)


def seeded(case: str, seed: int) -> Generator:
    """The randomness of one trial."""
    return np.random.default_rng([crc32(case.encode()), seed])


_SUITABLE: dict[Layout, dict[str, Any]] = {
    Layout.LABELS: {"label_names": ["cat", "dog", "bird"]},
    Layout.LONG: {"label_names": ["cat", "dog", "bird"]},
    Layout.SPARSE: {"classes": 6},
}


def read_votes(name: str, rng: Generator, layout: Layout | None = None) -> None:
    """As histograms, told as much as may be; mostly told `layout`."""
    words: dict[str, Any] = {}
    if layout is not None and rng.integers(0, 8):
        words |= {"layout": layout, **_SUITABLE.get(layout, {})}
    elif rng.integers(0, 3):
        words["layout"] = list(Layout)[rng.integers(0, len(Layout))]
    if rng.integers(0, 9) == 0:
        words["classes"] = int(rng.choice([2, 3, 4, 40]))
    if rng.integers(0, 9) == 0:
        words["teachers"] = int(rng.choice([1, 3, 5, 6, 2**31]))
    if rng.integers(0, 9) == 0:
        words["label_names"] = ["cat", "dog", "bird"]
    if rng.integers(0, 12) == 0:
        words["id_column"] = ("query_id", "label", "a\nb", "n" * 5000)[rng.integers(0, 4)]
    if rng.integers(0, 4) == 0:
        words["batch_rows"] = 7
    if "label_names" in words and rng.integers(0, 3) == 0:
        words |= {"normalise": True, "aliases": {"Katze": "cat"}}
    with open_votes(name, **words) as votes:
        votes.describe()
        if rng.integers(0, 2):
            votes.unmatched().sentences()
            votes.refuse_unmatched()
        for batch in votes.batches():
            len(batch.counts)


@contextlib.contextmanager
def _beside(rng: Generator) -> Iterator[Any]:
    """Votes on the queries of whole files, of classes that have names or not, or of labels."""
    shapes: list[tuple[list[int], dict[str, Any]]] = [
        ([3, 2, 1, 0], {"layout": "counts"}),
        ([3, 2], {"layout": "counts", "label_names": ["a", "b"]}),
        ([3, *[0] * (len(_ids()) - 1)], {"layout": "counts", "label_names": _ids()}),
        ([3, 2, 1, 0], {"layout": "multilabel-counts", "teachers": 6}),
    ]
    row, given = shapes[rng.integers(0, len(shapes))]
    table = pa.table({"query_id": _ids(), "counts": [row] * len(_ids())})
    with open_votes(table, **given) as votes:
        yield votes


def _read_student(name: str, rng: Generator) -> None:
    with _beside(rng) as votes:
        predictions(student(name, votes), _ids()[:2], 0)


def _read_prior(name: str, rng: Generator) -> None:
    with _beside(rng) as votes:
        list(with_prior(votes, name, 3).guessed(votes.queries).batches())


def _read_groups(name: str, rng: Generator) -> None:
    found = teacher_groups(name)
    assert found is not None
    _ = found.public
    names = tuple(f"teacher_{t}" for t in range(len(found)))
    found.in_columns(names if rng.integers(0, 2) else None, len(found), name)


def _read_ledger(name: str, _rng: Generator) -> None:
    found = Ledger.read(name)
    found.headline()
    found.to_json()
    _ = found + replace(found, rounds=(replace(found.rounds[0], id="another"),))


def _read_record(name: str, _rng: Generator) -> None:
    """Beside the ledger of what was drawn from."""
    found = SpendRecord.read(name) | SpendRecord.of(ledger())
    _ = found | found
    bill = spent(found)
    json.dumps(bill.to_dict(), allow_nan=False)
    list(bill.rows())
    release([name, ledger()], record=False, release="none").report.to_json()


READERS: dict[str, Callable[[str, Generator], object]] = {
    "student": _read_student,
    "prior": _read_prior,
    "queries": lambda name, _: query_ids(name, None),
    "groups": _read_groups,
    "names": lambda name, _: ClassNames(class_names(f"@{name}")),
    "aliases": lambda name, _: ClassNames(
        ("cat", "dog"), normalise=True, aliases=aliases_of(name) or {}
    ),
    "ledger": _read_ledger,
    "record": _read_record,
    # Of any kind; nothing is drawn, nor kept.
    "report": lambda name, _: release(name, record=False, release="none").report.to_json(),
}
_BESIDE = ("student", "prior", "queries", "groups", "aliases")


_SAID = (0, -1, 1.5, 10**4000, 1e999, True, None, "", "cat", f"q{MARK}", "7" * 5000, "\ud800", [],
         {}, [None] * 9, ["cat", True, 1], [MARK, 0.5, 3], {"cat": MARK}, {"2": -MARK}, [[MARK]],
         {"x": {"y": 1}}, [1e308] * 3, [MARK] * 3000)  # fmt: skip
_SESSIONS: tuple[dict[str, Any], ...] = (
    {"classes": 3, "teachers": MARK * 9, "mechanism": "stability"},
    {"label_names": ["cat", "dog", "bird"], "teachers": MARK * 9, "sigma2": 1e5, "prior_weight": 5},
    {"mechanism": "open-vocabulary", "teachers": MARK * 3, "normalise": True},
)


def _session_lines(rng: Generator) -> bytes:
    """Queries with odd values; two in three of these files are damaged, too."""
    plain = ({"counts": [MARK, 0, MARK]}, {"counts": {"cat": MARK, "1": 3}}, {"votes": [0, 1, 1]})
    rows: list[Any] = [{"id": f"q{row}", **plain[rng.integers(0, 3)]} for row in range(12)]
    for row in rng.integers(0, len(rows), 6):
        name = ("id", "counts", "votes", "prior", "x")[rng.integers(0, 5)]
        rows[row] |= {name: _SAID[rng.integers(0, 14 if name == "id" else len(_SAID))]}
    return struck(lines(rows), rng) if rng.integers(0, 3) else lines(rows)


def _read_session(name: str, rng: Generator) -> None:
    """Answer each line by a label or an error, and raise one of the errors."""
    asked = {"mechanism": "gnmax", "max_queries": 9, **_SESSIONS[rng.integers(0, len(_SESSIONS))]}
    with Session(**asked, target_epsilon=2, record=False, seed=1) as session:
        said = "".join(answers_to(session, io.BytesIO(Path(name).read_bytes())))
    answers = [json.loads(line) for line in said.splitlines()]
    assert all(("label" in answer) != ("error" in answer) for answer in answers)
    if errors := [answer["error"] for answer in answers if "error" in answer]:
        raise VoteError(errors[rng.integers(0, len(errors))])


_NAMES = ("n" * 256, "n" * 5000, "a/" * 3000, "a\nb", "a\0b", "\udcff", "\x1b[2J", "[", "[a", "**",
          "*/../*", "?", "", ".", "..", "/", "nofile/", "s3://", "file://", "file:///dev/null",
          "hdfs://", "x://y", "file:///a\nb", "file://" + "n" * 3000, "~", "{}", "%", "/dev/null",
          "/dev/zero", "/dev/full", "/dev/urandom", "/dev", "/proc/self/mem", "/proc", "socket",
          "folder", "folder/*", "folder/loop.npy", "pipe", "pipe", "pipe", "pipe")  # fmt: skip


@contextlib.contextmanager
def _thing(rng: Generator) -> Iterator[str]:
    """The name of a device, a socket, a pipe with a writer, a folder, a link, or of nothing."""

    def damaged() -> bytes:
        return _damaged(list(WHOLE)[rng.integers(0, len(WHOLE))], rng)

    name = _NAMES[rng.integers(0, len(_NAMES))]
    if name == "socket":
        Path(name).unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(name)
            yield name
    elif name == "pipe":
        with _pipe(damaged()):
            yield name
    elif name.startswith("folder"):
        shutil.rmtree("folder", ignore_errors=True)
        Path("folder").mkdir()
        for part in ("a.parquet", "b.csv", "c\nd.parquet", "n" * 250)[: rng.integers(0, 5)]:
            Path("folder", part).write_bytes(damaged())
        Path("folder/loop.npy").symlink_to("loop.npy")
        yield name
    else:
        yield name


@contextlib.contextmanager
def _pipe(data: bytes) -> Iterator[None]:
    """A named pipe that is written as soon as somebody reads it."""
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError):
                descriptor = os.open("pipe", os.O_WRONLY | os.O_NONBLOCK)
                os.set_blocking(descriptor, True)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                return
            time.sleep(0.001)

    Path("pipe").unlink(missing_ok=True)
    os.mkfifo("pipe")
    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


def _read_thing(_name: str, rng: Generator) -> None:
    readers = {"votes": read_votes, **READERS}
    reader = list(readers.values())[rng.integers(0, len(readers))]
    with _thing(rng) as name:
        reader(name, rng)


_NUMBERS = ("0", "-1", "1", "2", "3", "100", "1e-5", "0.5", "1e308", "1e-308", "5e-324", "nan",
            "inf", "-inf", "9" * 30, "9" * 5000, "1_0", "0x1", "", " ", "é", "1.5", "a\nb", "-0.0",
            "4")  # fmt: skip
_NUMERIC = ("threshold", "sigma1", "sigma2", "laplace-scale", "confidence",
            "teachers-per-record", "query-epsilon", "query-delta", "refusals", "max-queries",
            "max-answers", "classes", "teachers", "delta", "order", "beta", "sigma-release",
            "target-epsilon", "refusal-epsilon", "budget", "seed")  # fmt: skip
_WORDS = {
    "mechanism": ("confident", "gnmax", "lnmax", "stability", "sparse-vector",
                  "interactive", "x", ""),
    "layout": ("counts", "labels", "long", "sparse", "labels-by-teacher", "x"),
    "label-names": ("a,b,c", "a", ",", "a,a", " a,b", "@v.npy", "@", "x" * 9000 + ",y", "a\nb,c,d"),
    "id-column": ("query_id", "", "a\nb", "x" * 5000),
    "analysis": ("tight", "paper"),
    "release": ("none", "upper", "target"),
    "bound": ("two-tail", "conditional"),
    "aliases": ("v.npy", "none", ""),
    "groups": ("v.npy", "none", ""),
    "queries": ("v.npy", "none", ""),
    "student": ("v.npy", "none", ""),
}  # fmt: skip


def run(arguments: list[str]) -> tuple[int, str]:
    """The command line in this process: exit code, and what is said on stderr.

    Raises:
        Exception: what it raises itself under PATE_DEBUG, where it would say `internal failure`.
    """
    from typer.testing import CliRunner

    from pate_cli.cli.app import app

    found = CliRunner().invoke(app, arguments, env={"PATE_DEBUG": "1"})
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found.exit_code, found.stderr


def _read_options(_name: str, rng: Generator) -> None:
    if not Path("v.npy").exists():
        counts = np.random.default_rng(5).multinomial(100, [0.8, 0.1, 0.1], size=20)
        np.save("v.npy", counts)
        Path("led.json").write_bytes(whole("ledger"))
        Path("rep.json").write_bytes(whole("report"))
    # What earlier ones have drawn and entered.
    Path("led.json.spent.json").unlink(missing_ok=True)
    Path("rec.json").write_bytes(whole("record"))
    lines = (
        ["aggregate", "v.npy", "--dry-run"],
        ["cost", "v.npy"],
        ["smooth-sensitivity", "v.npy"],
        ["release", "led.json"],
        ["release", "rec.json", "rep.json", "led.json"],
        ["spent", "rec.json"],
    )
    given = list(lines[rng.integers(0, len(lines))])
    for _ in range(int(rng.integers(1, 5))):
        if rng.integers(0, 3):
            option = _NUMERIC[rng.integers(0, len(_NUMERIC))]
            value = _NUMBERS[rng.integers(0, len(_NUMBERS))]
        else:
            option = list(_WORDS)[rng.integers(0, len(_WORDS))]
            value = _WORDS[option][rng.integers(0, len(_WORDS[option]))]
        given += [f"--{option}", value]
    _check(*run(given), given)


class RefusalError(AssertionError):
    """An exit code that is not documented, or none of the lines one refusal should be."""


def _check(code: int, said: str, given: list[str]) -> None:
    """Notes may come before a refusal; wrong usage is told by Typer in its own lines."""
    if code != 0 and not 2 <= code <= 10:
        raise RefusalError(f"exit code {code} of {given!r:.300}: {said[-300:]!r}")
    if code == 2 and said.startswith("Usage: "):
        return
    if any(not line.isprintable() for line in said.split("\n")):
        raise RefusalError(f"control characters after {given!r:.300}")
    if code and not said.splitlines()[-1].startswith("pate: "):
        raise RefusalError(f"no line of ours after {given!r:.300}: {said[-300:]!r}")


def _damaged(kind: str, rng: Generator) -> bytes:
    return struck(whole(kind), rng)


def layout_of(kind: str) -> Layout:
    """How a whole file of this kind holds votes."""
    layouts = {
        "npy of words": Layout.LABELS,
        "npy of scores": Layout.SCORES,
        "npy of labels": Layout.MULTILABEL,
        "parquet, long": Layout.LONG,
        "parquet, sparse": Layout.SPARSE,
        "parquet, words": Layout.LABELS,
    }
    return layouts.get(kind, Layout.COUNTS)


_MAKERS: dict[str, Callable[[Generator], bytes]] = {
    "odd headers": odd.odd_header,
    "odd arrays": odd.odd_array,
    "odd parquet": odd.odd_parquet,
    "odd arrow": odd.odd_arrow,
    "odd csv": odd.odd_text,
    "odd jsonl": odd.odd_lines,
    "odd npz": odd.odd_archive,
}

CASES: dict[str, Case] = {
    **{
        kind: Case(
            partial(_damaged, kind),
            READERS.get(kind.split(",")[0], partial(read_votes, layout=layout_of(kind))),
        )
        for kind in WHOLE
    },
    **{kind: Case(make, read_votes) for kind, make in _MAKERS.items()},
    **{
        f"{beside}, {kind}": Case(_MAKERS[kind], READERS[beside])
        for beside in _BESIDE
        for kind in ("odd headers", "odd arrays", "odd parquet", "odd csv")
    },
    "names of no file": Case(None, _read_thing),
    "options": Case(None, _read_options),
    "session": Case(_session_lines, _read_session),
}
"""Every case, by its name."""
