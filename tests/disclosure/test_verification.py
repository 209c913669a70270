"""Single checks of reports: runs that contradict each other or themselves, counts of labels."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

import pate_cli as pate
import reports
from forgeries.cases import case
from pate_cli.core.errors import VoteError
from pate_cli.core.words import LabelFormat
from pate_cli.disclosure.guarantee import report_of
from pate_cli.disclosure.report import Checked, parse_report
from pate_cli.disclosure.runs import Outcome, Run, Spent
from pate_cli.disclosure.settings import StopRule
from pate_cli.disclosure.verification import (
    PROMISE,
    count_labels,
    faults_of_runs,
    same_cost,
    told_apart,
)
from pate_cli.labels.labels import Labels
from pate_cli.verbs.signatures import verify
from refusals import refusal
from some_runs import LABELLED, RELEASED, STATED, TRIED, told

NOISE = {"threshold": 12.0, "sigma1": 9.0, "sigma2": 6.0}
RULE = StopRule(9.0, 1e-5, 10)


def session(queries, answers, *, rule=RULE, **noise):
    """A session that has asked so many queries, in the record."""
    mechanism = pate.ConfidentGNMax(20, 3, **NOISE | noise)
    settings = told(mechanism, queries, rule=rule)
    told_of = {"answers": answers, "session": "x", "turns": "0" * queries}
    return Run.of(id="s", outcome=Outcome.LABELLED, time=None, settings=settings, **told_of)


def failed(report):
    return verify(report, with_dp_accounting=False).failed


def apart(one, other):
    return list(told_apart(one, other))


def test_a_session_that_goes_on_has_no_fewer_answers_and_no_more_than_queries():
    early = {(q, a): session(q, a) for q in (2, 3, 5) for a in range(q + 1)}
    for ((q, a), one), ((more, by_now), other) in itertools.product(early.items(), repeat=2):
        if q < more:
            goes_on = 0 <= by_now - a <= more - q
            assert (not apart(one, other)) == goes_on, (q, a, more, by_now)


@pytest.mark.parametrize(
    "change", [{"sigma2": 60.0}, {"threshold": 13.0}, {"rule": StopRule(2.0, 1e-5, 10)}]
)
def test_a_session_that_goes_on_keeps_its_settings(change):
    assert not apart(session(2, 1), session(5, 2))
    assert apart(session(2, 1), session(5, 2, **change))
    assert not same_cost(session(2, 1), session(5, 2, **change))


def test_a_pending_run_ends_at_its_cost():
    ended = replace(LABELLED, total_epsilon=3.0)
    early = replace(LABELLED, outcome=Outcome.PENDING, answers=None)
    assert not apart(early, ended)
    cheaper = told(pate.GNMax(20, 3, sigma2=4.0), 5)
    for change in ({"epsilon": 0.01}, {"delta": 1e-9}, {"settings": cheaper}):
        assert apart(replace(early, **change), ended), change


def test_entries_of_one_run_agree_on_its_cost_only_if_all_that_it_follows_from_is_the_same():
    one = replace(LABELLED, ensemble="a", disjoint_from=("b",))
    assert same_cost(one, one)
    assert same_cost(one, replace(one, total_epsilon=9.0, votes="other.npy"))
    cheaper = told(pate.GNMax(20, 3, sigma2=4.0), 5)
    for change in (
        {"epsilon": 0.01}, {"delta": 1e-9}, {"answers": 4}, {"settings": cheaper},
        {"ensemble": "c"}, {"disjoint_from": ()}, {"disjoint_from": ("b", "c")},
    ):  # fmt: skip
        assert not same_cost(one, replace(one, **change)), change


def test_runs_contradict_themselves():
    """An outcome that their kind cannot have, answers without labels, another hash or cost."""
    named = replace(STATED, id=STATED.external.digest)
    refused, whole = replace(TRIED, outcome=Outcome.REFUSED), replace(LABELLED, answers=10)
    assert not list(faults_of_runs([whole, TRIED, refused, RELEASED, named]))
    for wrong in (
        STATED,
        replace(named, outcome=Outcome.PENDING),
        replace(whole, outcome=Outcome.REFUSED, answers=None),
        replace(whole, epsilon=0.5 * whole.epsilon),
        LABELLED,  # fewer answers than queries
        replace(RELEASED, outcome=Outcome.LABELLED),
        replace(RELEASED, delta=1e-9),
        replace(TRIED, answers=3),
    ):
        assert len(list(faults_of_runs([whole, wrong]))) == 1, wrong


def test_a_report_lists_the_run_that_it_is_about():
    """Of labels alone by their rounds, and of a draw by its name."""
    kept = reports.made("kept")[0]
    drawn = parse_report(json.dumps(case("release of several").data).encode())
    for report in (kept, drawn):
        others = [run for run in report.spent.runs if run.id != report.run]
        assert len(others) == len(report.spent.runs) - 1
        forged = report_of(replace(report.facts, spent=Spent.of(others)))
        assert forged.spent.epsilon < report.spent.epsilon
        assert failed(forged) == [Checked.COMPUTED, PROMISE]


def test_a_total_has_the_rounds_of_its_runs():
    total = reports.made("account")[0]
    for rounds in (total.rounds[1:], total.rounds[::-1], (*total.rounds, total.rounds[0])):
        assert failed(report_of(replace(total.facts, rounds=rounds))) == [Checked.COMPUTED, PROMISE]


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
    for place in range(0, len(whole), 11):
        path.write_bytes(whole[:place] + b"\xfe\xff\xff\xff" + whole[place + 4 :])
        try:
            count_labels(path, LabelFormat(label_format), report.label_set)
        except VoteError:
            refused += 1
    assert refused > 9


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
    assert told.startswith(f"the labels cannot be read as {label_format}; give the file that ")
