"""Documents that are damaged field by field: each is read, or refused in one line of its own class.

Every field is dropped, and replaced by whatever JSON can hold. What is read after that is used as
its readers use it, so that nothing odd passes a reader and ends what comes behind it.
"""

import copy
import functools
import json
from dataclasses import replace

import numpy as np
import pytest

import pate_cli as pate
import record_files
import reports
from fuzz.whole import record
from fuzz.whole import report as whole_report
from pate_cli.core.arrays import LabelSet
from pate_cli.core.errors import LedgerError, PateError
from pate_cli.core.words import PublicFact, ReleaseKind
from pate_cli.disclosure.external import Stated, refuse_short, stated_rdp
from pate_cli.disclosure.ledger import Ledger, Round
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.runs import RunKind
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.files.document import encoded
from pate_cli.votes.facts import TeacherGroups
from sealing import sealed
from slices import EVERY, some
from some_runs import told as told_of

GONE = object()
ODD = [
    GONE, None, True, -1, 7, 0.5, 1e308, 10**400, float("nan"), "text", [], ["a"], [[1], [1, 2]],
    {"a": [{"a": None}]},
]  # fmt: skip


def places(value, way=()):
    """The way to every field of a document; the first of a list stands for all of them."""
    for key in value if isinstance(value, dict) else range(min(len(value), 1)):
        yield (*way, key)
        if isinstance(value[key], dict | list):
            yield from places(value[key], (*way, key))


def put(data, way, odd):
    altered = copy.deepcopy(data)
    inside = functools.reduce(lambda found, key: found[key], way[:-1], altered)
    if odd is GONE:
        del inside[way[-1]]
    else:
        inside[way[-1]] = odd
    return altered


def damaged(data, known=()):
    """Every field that is not known replaced by odd values; and one more field beside it.

    Fields take turns at a third of the values, or a seventh; `make fuzz` tries all kinds of damage.
    """
    turns = 3 if EVERY else 7
    for turn, way in enumerate(places(data)):
        if way in known:
            continue
        shorter = [GONE] * isinstance(way[-1], int)  # a list that fits no other one
        for odd in [*shorter, *ODD[turn % turns :: turns]]:
            yield f"{way}: {'gone' if odd is GONE else odd!r}"[:80], put(data, way, odd)
        if isinstance(way[-1], str):
            yield f"{way}: more", put(data, (*way[:-1], "more"), 1)


def check(cases, read, use, *errors):
    """How many are read; whatever refuses the others, or ends their use, does so in one line."""
    read_any = 0
    for name, altered in cases:
        found = one_line(name, errors, read, altered)
        if found is not REFUSED:
            read_any += 1
            one_line(name, PateError, use, found)
    return read_any


REFUSED = object()


def one_line(name, errors, step, given):
    """What a step gives, or that it is refused in one line."""
    try:
        return step(given)
    except errors as refusal:
        text = str(refusal)
        assert text, name
        assert text.isprintable(), name
        assert len(text) <= 600, name
        return REFUSED
    except Exception as error:
        raise AssertionError(name) from error


def ledger():
    """One with whatever a ledger can hold."""
    groups = TeacherGroups(("a", "a", "b"), weights=(2, 2, 1)).public
    mechanism = pate.GNMax(5, 2, sigma2=20.0, teachers_per_record=2, votes_together=True)
    plan = ReleasePlan(ReleaseKind.UPPER, 1e-5, 6.0, 0.02, 9.0)
    asked = told_of(
        mechanism, 40, max_answers=30, sanitizer=plan, read_off=(PublicFact.QUERIES,),
        groups=groups, label_set=LabelSet(2, ("x", "y")),
    )  # fmt: skip
    return Ledger(
        orders=np.array([6.0, 8.0]),
        rdp=np.array([0.1, 0.2]),
        ceiling=np.array([0.3, 0.4]),
        sensitivity=np.array([[0.1, 0.2], [0.1, 0.2]]),
        rounds=(Round.of(asked, id="a" * 32, answers=20),),
    )


def from_file(path, reader, content):
    path.write_bytes(content)
    return reader(path)


def told(found):
    found.headline()
    found.to_json()
    _ = found.columns(), found.draws


def released(found, other):
    told(found)
    pate.release(found, order=found.orders[0], release="none", again=True)
    _ = found + replace(other, rounds=(replace(other.rounds[0], id="another"),))


@functools.cache
def paper_ledger():
    return pate.aggregate(
        reports.votes(), "gnmax", **reports.SHAPE, analysis="paper", order=6.0, keep_ledger=True
    ).ledger


@pytest.mark.parametrize("whole", [ledger, paper_ledger], ids=["tight", "paper"])
def test_a_ledger(whole, tmp_path):
    data = json.loads(whole().to_json())
    with reports.costs_once():
        assert check(
            damaged(data),
            lambda altered: from_file(tmp_path / "l.json", Ledger.read, sealed(altered).encode()),
            lambda found: released(found, whole()),
            LedgerError,
        )


def use_record(found):
    (found | found).touching(ledger())
    _ = found | pate.SpendRecord.of(ledger())
    bill = pate.spent(found)
    json.dumps(bill.to_dict(), allow_nan=False)
    assert len(list(bill.rows())) == len(found.runs)
    json.loads(pate.release(found, record=False).report.to_json())


@pytest.mark.parametrize("kind", some(list(RunKind), 2))
def test_a_record(kind, tmp_path):
    """A run of every kind, damaged one at a time, beside whole ones of the others."""
    data = {"runs": [encoded(run) for run in record().runs]}
    at = [run.kind for run in record().runs].index(kind)
    data["runs"].insert(0, data["runs"].pop(at))

    def read(altered):
        runs = altered["runs"] if isinstance(altered, dict) and "runs" in altered else [altered]
        events = [{"enter": run} for run in (runs if isinstance(runs, list) else [runs])]
        return SpendRecord.read(record_files.journal_of(tmp_path / "r.json", events))

    assert check(damaged(data), read, use_record, LedgerError)


def test_a_report_that_is_released(tmp_path):
    data = json.loads(whole_report().to_json())
    assert check(
        damaged(data),
        lambda altered: from_file(tmp_path / "r.json", str, json.dumps(altered).encode()),
        lambda path: pate.release(path, record=False).report.to_json(),
        LedgerError,
    )


@pytest.mark.parametrize("kind", ["curve", "exported", "pair"])
def test_an_external_cost(kind, tmp_path):
    data = {
        "curve": {"orders": [2, 8.0, 16.0], "rdp": [0.1, 0.4, 0.9], "adjacency": "replace-one"},
        "exported": pate.rdp_curve(reports.made("draws")[0], orders=[2.0, 8.0, 16.0]).to_dict(),
        "pair": {"epsilon": 1, "delta": 1e-6, "adjacency": "add-or-remove-one"},
    }[kind]
    data = {"covers": "a student", "least_delta": 1e-9, **data}

    def use(part):
        refuse_short([part], 8.0)
        stated_rdp([part], np.array([1.5, 8.0]))
        json.dumps(encoded(part), allow_nan=False)

    assert check(
        damaged(data),
        lambda altered: from_file(tmp_path / "e.json", Stated.read, json.dumps(altered).encode()),
        use,
        LedgerError,
    )
