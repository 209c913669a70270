"""Every leaf of a report changed by itself, and by a forger who computes all that follows."""

import copy
import functools
import hashlib
import json
import tempfile
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pate_cli.core.errors import PateError
from pate_cli.disclosure.guarantee import report_of, run_of
from pate_cli.disclosure.report import CHECKED, Checked, ReportFacts, parse_report
from pate_cli.disclosure.runs import Spent
from pate_cli.disclosure.verification import BESIDE, LABELS, RUN_SETTINGS
from pate_cli.verbs.signatures import verify


def kind_of_check(path):
    """How the leaf at this path of the JSON document is declared to be checked.

    Of all runs together only the runs are stated; what they cost is computed.
    """
    names = [name for name in path if isinstance(name, str)]
    if names[0] == "spent" and names[1:2] not in ([], ["runs"]):
        return Checked.COMPUTED
    declared = {each.name: each.metadata[CHECKED] for each in fields(ReportFacts)}
    return declared.get(names[0], Checked.COMPUTED)


def leaves(value, at=()):
    """Every leaf of a JSON value: its path and what it is; lists also as a whole."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*at, name))
    elif isinstance(value, list):
        if value:
            yield at, value
        for place, inner in enumerate(value):
            yield from leaves(inner, (*at, place))
    else:
        yield at, value


def others(value):
    """What a forger may write in the place of a leaf."""
    match value:
        case list():
            return [value[:-1]]
        case None:
            return [2.5, "x"]
        case bool():
            return [not value]
        case int():
            return [value + 1, value - 1 if value else 2]
        case float():
            near = [value * 1.001 + 1e-4, value * 0.5, value * 100.0]
            return [other for other in near if other != value]
        case _:
            return [f"{value}x", value[:-1], ("0" if value[:1] != "0" else "1") + value[1:]]


def put(data, path, value):
    """The same document with another leaf."""
    altered = copy.deepcopy(data)
    functools.reduce(lambda inside, name: inside[name], path[:-1], altered)[path[-1]] = value
    return altered


def consistent(data):
    """The document with all that follows from what it states computed anew; None if none does."""
    try:
        report = parse_report(json.dumps(data).encode())
        found = report_of(_as_told(report))
    except (PateError, ArithmeticError, ValueError):
        return None
    return json.loads(found.to_json())


def _as_told(report):
    """A forger also changes what repeats the leaf: the report's run among its runs, and prices."""
    facts = report.facts
    if facts.spent is None:
        return facts
    runs = [run.priced for run in facts.spent.runs]
    own = next((place for place, run in enumerate(runs) if run.id == report.run), None)
    if own is not None and (len(report.rounds) == 1 or report.sanitizer is not None):
        beside = {name: getattr(runs[own], name) for name in BESIDE}
        runs[own] = replace(run_of(facts), **beside)
    return replace(facts, spent=Spent.of(runs))


@dataclass(frozen=True)
class Ending:
    """What came of a forged report.

    Attributes:
        by: `schema` (it cannot be read), the name of the check that failed, or empty.
        named: what `verify` names as not checked, where nothing failed.
    """

    by: str
    named: tuple[str, ...] = ()

    @property
    def caught(self):
        """Whether it is no report that holds."""
        return bool(self.by)


def ending(data, case, *, given):
    """What `verify` says of a document.

    Args:
        data: the document.
        case: what goes with the report that it was.
        given: `alone`, with labels in `csv`, or with all that there is: labels in Parquet, the
            record and the guesses.
    """
    with tempfile.TemporaryDirectory() as folder:
        labels = None
        if given != "alone" and case.labels is not None:
            labels = Path(folder, "labels.csv" if given == "csv" else "labels.parquet")
            labels.write_bytes(case.labels if given == "all" else as_csv(case.labels))
        if given == "csv" and labels is not None and isinstance(data.get("labels"), dict):
            data = put(data, ("labels",), _signed(labels))
        more = {"record": case.record, "prior": case.guesses} if given == "all" else {}
        try:
            text = json.dumps(data).encode()
            found = verify(text, labels, with_dp_accounting=False, **more)
        except PateError as error:
            return Ending(f"schema ({type(error).__name__})")
    return Ending(found.failed[0] if found.failed else "", tuple(found.unchecked))


@dataclass(frozen=True)
class Forgery:
    """One forged leaf, and what came of it.

    Attributes:
        path: of the leaf.
        other: what was written there.
        way: `singly`, or `consistently` with all that follows computed anew.
        given: as in `ending`.
        ending: what `verify` said.
    """

    path: tuple[str | int, ...]
    other: object
    way: str
    given: str
    ending: Ending

    @property
    def right(self):
        """Whether it was caught, or what could not be compared is named."""
        how = kind_of_check(self.path)
        if self.ending.caught or how is Checked.FREE:
            return True
        if how is Checked.COMPUTED:
            return False
        names = {how, LABELS, RUN_SETTINGS} if how is Checked.LABELS else {how}
        return bool(names & set(self.ending.named))


def forged(case, *, given, every=1):
    """Forgeries of a report, every so manyth of them."""
    number = 0
    for path, value in leaves(case.data):
        for other in others(value):
            number += 1
            if number % every:
                continue
            singly = put(case.data, path, other)
            ways = {"singly": singly, "consistently": consistent(singly)}
            for way, data in ways.items():
                if data is None or data == case.data or (way, data) == ("consistently", singly):
                    continue
                for known in given:
                    yield Forgery(path, other, way, known, ending(data, case, given=known))


def as_csv(parquet):
    """The same labels in CSV, which has no room for settings."""
    from pyarrow import csv

    table = pq.read_table(pa.BufferReader(parquet))
    sink = pa.BufferOutputStream()
    csv.write_csv(table, sink)
    return sink.getvalue().to_pybytes()


def _signed(path):
    content = path.read_bytes()
    return {"format": "csv", "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
