"""What a session's record may lose, and what must then be refused."""

import dataclasses
import os
import shutil

import numpy as np
import pytest

import pate_cli as pate
from pate_cli.core.errors import LedgerError, OutputError, UnreachableError, UsageError
from pate_cli.disclosure.guarantee import report_of
from pate_cli.disclosure.record import RecordFile
from pate_cli.disclosure.stopping import rule_fault, stop_rule
from refusals import refusal

ASKED = {"teachers": 8, "classes": 2, "mechanism": "gnmax", "sigma2": 9.0, "max_queries": 20}
OTHER = {"layout": "counts", "sigma2": 9.0, "max_epsilon": 100}


def answered(record, ids, votes=(8, 0)):
    with pate.Session(record=record, **ASKED) as session:
        return [session.ask(votes, id=name) for name in ids]


def test_sessions_and_runs_share_a_record_and_each_is_charged_when_it_begins(tmp_path):
    """Several at once: concurrent composition has the costs of all that are open."""
    record = tmp_path / "r.json"
    other = ASKED | {"max_queries": 19}
    with pate.Session(record=record, **ASKED) as one, pate.Session(record=record, **other) as two:
        one.ask([8, 0], id="a")
        two.ask([0, 8], id="a")
        pate.aggregate(np.array([[5, 3]]), "gnmax", record=record, **OTHER)
        one.ask([8, 0], id="b")
        spent = pate.spent(record)
        assert [run.kind for run in spent.runs] == ["session", "session", "worst-case"]
        assert [run.settings.queries for run in spent.runs] == [2, 1, 1]
        assert spent.runs[0].epsilon == one.rule.epsilon
        with pytest.raises(UnreachableError):
            pate.aggregate(np.array([[5, 3]]), "gnmax", record=record, budget=0.1, **OTHER)


def test_two_sittings_of_one_session_are_one_session(tmp_path):
    """They take turns: an id has one answer, and the rule counts what both have asked."""
    record = tmp_path / "r.json"
    asked = ASKED | {"max_queries": 3}
    with pate.Session(record=record, **asked) as one, pate.Session(record=record, **asked) as two:
        label = one.ask([8, 0], id="a")
        assert two.ask([0, 8], id="a") == label
        two.ask([0, 8], id="b")
        one.ask([8, 0])
        for session in (one, two):
            with pytest.raises(pate.BudgetSpent):
                session.ask([8, 0])
            assert session.asked == 3
    assert pate.SpendRecord.read(record).runs[0].settings.queries == 3


def test_a_record_that_takes_over_a_session_opens_no_second_one(tmp_path):
    """It tells of the session, which can only be read where it was, and opened nowhere else."""
    record, votes = tmp_path / "r.json", tmp_path / "votes.npy"
    np.save(votes, np.array([[5, 3]]))
    beside = tmp_path / "votes.npy.spent.json"
    answered(beside, "abcd")
    pate.aggregate(votes, "gnmax", record=record, **OTHER)
    session, labels = pate.SpendRecord.read(record).runs
    assert (session.settings.queries, session.answers, labels.kind) == (4, 4, "worst-case")
    with pate.Session(record=record, **ASKED) as anew:
        assert anew.asked == 0
    assert len(pate.SpendRecord.read(record).runs) == 3  # and paid for
    with pate.Session(record=beside, **ASKED) as same:
        assert same.asked == 4


@pytest.mark.parametrize("ask", [5, 0])
def test_a_session_that_a_release_moves_is_not_asked_again_for_free(tmp_path, ask):
    """A release without a draw once copied a session with its hash, but without its queries."""
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    with pate.Session(record=first, **ASKED) as session:
        session.ask_all([[8, 0]] * ask)
    pate.aggregate(np.array([[5, 3]]), "gnmax", record=second, **OTHER)
    pate.release([second, first], record=second)
    assert [run.session for run in pate.SpendRecord.read(second).runs] == [None, None]
    answered(second, "abcde")
    _, moved, anew = pate.spent(second).runs
    assert (moved.settings.queries, anew.settings.queries) == (ask, 5)


def test_a_copy_of_a_session_with_queries_takes_no_more(tmp_path):
    """Records were once written in which the copy of a session could go on at no cost."""
    answered(tmp_path / "a.json", "abc")
    (session,) = pate.SpendRecord.read(tmp_path / "a.json").runs
    file = RecordFile(tmp_path / "b.json")
    file.enter(session)
    answered(tmp_path / "b.json", "abc")
    assert len(pate.SpendRecord.read(tmp_path / "b.json").runs) == 2
    file.catch_up()
    with pytest.raises(LedgerError, match="line 7 is not a valid event"):
        file.ask(session, [{"label": 0}])


def test_two_copies_of_a_session_have_no_total_if_they_were_asked_differently(tmp_path):
    """The total once counted one of two copies: of nine queries, it stated five."""
    first, second, third = (tmp_path / f"{name}.json" for name in "abc")
    answered(first, "a")
    shutil.copy(first, second)
    for path in (first, second):
        with pate.Session(record=path, **ASKED) as session:  # Without ids the queries look alike.
            session.ask_all([[8, 0]] * 4)
    given = [pate.SpendRecord.read(path) for path in (first, second)]
    for asked in (
        {"given": [first, second]},
        {"given": [first, second], "record": False},
        {"given": [second, first], "record": third},
        {"given": given, "record": False},
        {"given": given, "record": False, "unverified": True},
        {"given": given[0], "record": second},
    ):
        assert "has different queries in two inputs" in refusal(LedgerError, pate.release, **asked)
    assert not third.exists()
    pate.release(first, record=third)
    assert "in two inputs" in refusal(LedgerError, pate.release, [third, second], record=False)


def test_a_session_goes_on_only_in_the_copy_with_all_its_queries(tmp_path):
    """The older copy once took over the newer one, and there the session had queries left."""
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    answered(first, "a")
    shutil.copy(first, second)
    answered(first, "bc")
    text = refusal(LedgerError, pate.release, first, record=second)
    assert "b.json lacks queries of session" in text
    done = pate.release([second, first], record=first)
    assert done.report.queries == 3


def reported(record):
    return pate.release(record, record=False).report


def test_reports_of_two_copies_of_a_session_have_no_total(tmp_path):
    """Reports named no turn: two copies with different queries were charged as one session."""
    first, second, total = (tmp_path / f"{name}.json" for name in "abt")
    answered(first, "a")
    shutil.copy(first, second)
    answered(first, "b")
    answered(second, "cd")
    reports = [reported(first), reported(second)]
    for record in (False, total):
        assert "in two inputs" in refusal(LedgerError, pate.release, reports, record=record)
    assert "in two inputs" in refusal(LedgerError, pate.release, reports[0], record=second)
    assert pate.release([reports[0]] * 2, record=False).report.queries == 2
    with pate.Session(record=False, **ASKED) as session:  # Without a record, turns have no names.
        session.ask((8, 0))
        early = session.report()
        session.ask((8, 0))
    given = [early, session.report()]
    assert "in two inputs" in refusal(LedgerError, pate.release, given, record=False)
    bare = dataclasses.replace(reports[0].spent.runs[0], turns="")
    spent = dataclasses.replace(reports[0].spent, runs=(bare,))
    for report in (reports[0], report_of(dataclasses.replace(reports[0].facts, spent=spent))):
        found = pate.verify(report, record=second)
        assert "the record lacks queries that the report contains" in str(found.checks)


def test_a_record_of_reports_follows_a_session_that_goes_on(tmp_path):
    """Once the second report was refused; later its queries were missing in the next total."""
    sessions, total = tmp_path / "s.json", tmp_path / "total.json"
    answered(sessions, "a")
    before = reported(sessions)
    pate.release(before, record=total)
    answered(sessions, "abc")
    after = pate.release(reported(sessions), record=total).report
    assert (after.spent.count, after.queries) == (1, 3)
    assert after.epsilon == before.epsilon  # what the rule of the session allows
    assert pate.spent(total, reports=[after, before]).holds
    entered = pate.SpendRecord.read(total).runs[0]  # The total when it entered stays.
    assert entered.total_epsilon == before.spent.runs[0].total_epsilon
    assert pate.release(total).report.queries == 3
    for given in ([before, after, sessions], [after, sessions, before]):
        assert pate.release(given, record=False).report.queries == 3
    answered(sessions, "d")  # Only the record of reports was amended: the session goes on.


def test_reports_of_runs_beside_an_open_session_have_a_total(tmp_path):
    """They list the session as it was at their time, and so differ in it."""
    record, found = tmp_path / "s.json", []
    for name in "ab":
        answered(record, name)
        found.append(pate.aggregate([[8, 0]] * 5, "gnmax", **OTHER, record=record).report)
    for given in (found, found[::-1]):
        assert pate.release(given, record=False).report.spent.count == 3


@pytest.mark.parametrize("given", [2, 2.0, np.float64(2)])
def test_equal_targets_open_one_session(tmp_path, given):
    """The target 2 once opened another session than the target 2.0, and both were paid."""
    asked = {**ASKED, "max_queries": None, "record": tmp_path / "s.json"}
    for epsilon in (2.0, given):
        with pate.Session(target_epsilon=epsilon, **asked) as session:
            session.ask((8, 0), id="a")
    assert len(pate.SpendRecord.read(tmp_path / "s.json").runs) == 1


def test_what_was_answered_is_known_after_a_failure(tmp_path, monkeypatch):
    record = tmp_path / "r.json"
    with pate.Session(record=record, **ASKED) as session:
        label = session.ask([8, 0], id="a")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", _full)
            with pytest.raises(OutputError, match="nothing was answered"):
                session.ask([8, 0], id="b")
        assert session.ask([0, 8], id="a") == label
        session.ask([8, 0], id="b")
        assert session.asked == 2
    assert pate.SpendRecord.read(record).runs[0].settings.queries == 2


def test_an_interruption_while_an_answer_is_noted_ends_the_sitting(tmp_path, monkeypatch):
    """What is on disk may then not be known here: the id gets one answer, from the record."""
    record = tmp_path / "r.json"
    with pate.Session(record=record, **ASKED) as session:
        session.ask([8, 0], id="a")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                session.ask([8, 0], id="b")
        with pytest.raises(UsageError, match="the session was closed"):
            session.ask([8, 0], id="b")
    (label,) = answered(record, "b")
    assert answered(record, "b", (0, 8)) == [label]
    assert pate.SpendRecord.read(record).runs[0].settings.queries == 2


def _interrupted(*_):
    raise KeyboardInterrupt


def _full(*_):
    raise OSError(28, "No space left on device")


def test_what_lies_beyond_is_priced_with_its_noise():
    """δ has to have room for the lattice of all the noise that may be drawn."""
    session = pate.Session(
        teachers=8, classes=2, target_epsilon=3, delta=0.01, threshold=6, sigma1=4.0, sigma2=3.0,
        record=False,
    )  # fmt: skip
    rule, mechanism = session.rule, session.mechanism
    assert rule.beyond is not None
    assert rule_fault(rule, mechanism) is None

    class Coarse(type(mechanism)):
        def smallest_delta(self, queries, *, epsilon=10.0):
            return 1.0 if queries > rule.asks else super().smallest_delta(queries, epsilon=epsilon)

    coarse = Coarse(**{name: getattr(mechanism, name) for name in _FIELDS})
    assert "delta is too small" in rule_fault(rule, coarse)
    assert stop_rule(coarse, epsilon=3.0, delta=0.01).beyond is None


_FIELDS = ("teachers", "classes", "threshold", "sigma1", "sigma2")
