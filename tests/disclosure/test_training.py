"""What a run costs one training record whose teacher was trained with differential privacy."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

import pate_cli as pate
from pate_cli.accounting.conversion import record_epsilon, round_up
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.disclosure.guarantee import report_of
from pate_cli.disclosure.settings import Training
from pate_cli.disclosure.verification import TRAINING
from refusals import refusal

VOTES = np.array([[30, 6, 4], [20, 18, 2], [25, 10, 5], [38, 1, 1]] * 10)
ASKED = {"layout": "counts", "sigma2": 20.0, "max_queries": 30}
PRIVATE = {"teacher_epsilon": 1.0, "teacher_delta": 1e-6}


def run(mechanism="gnmax", **asked):
    return pate.aggregate(VOTES, mechanism, **{**ASKED, **asked})


def amplified(epsilon, delta=1e-5):
    told = {"epsilon": epsilon, "delta": delta}
    return round_up(record_epsilon(**told, **PRIVATE))


@pytest.mark.parametrize(
    "asked", [{}, {"target_epsilon": 0.6, "sigma2": 12.0, "min_pass": 0.0, "bound": "two-tail"}]
)
def test_the_headline_is_amplified_once(asked):
    try:
        report = run(**PRIVATE, **asked).report
    except pate.RefusedError as refused:
        report = refused.report
    assert (report.epsilon_kind == "worst-case") == (not asked)
    assert report.record_epsilon == amplified(report.epsilon) < report.epsilon
    assert (
        f"For one training record, the guarantee is epsilon {report.record_epsilon:.4f}"
        in report.summary
    )
    assert report.claims("by-record")
    assert report_of(report.facts) == report
    assert TRAINING in pate.verify(report).unchecked
    told = " ".join(text for part in pate.explain(report).sections for text in part.texts)
    for words in (
        "For one training record, epsilon is at most",
        "trained with differential privacy of epsilon 1 and delta 1e-06 for one record",
        "randomness in the training of each teacher was secret",
    ):
        assert words in told
    plain = json.loads(report.to_json())["rounds"][0]
    assert plain["training"] == {"epsilon": 1.0, "delta": 1e-6}


def test_a_sanitized_bound_is_of_these_votes_and_so_the_worst_case_is_amplified():
    report = run(release="upper", **PRIVATE).report
    assert report.record_epsilon == amplified(report.data_independent.epsilon)
    low = report_of(dataclasses.replace(report.facts, sanitized=0.2))
    assert (low.epsilon, low.epsilon_kind) == (0.2, "upper")
    assert low.record_epsilon == report.record_epsilon > amplified(0.2)


def test_runs_on_the_same_votes_are_composed_and_then_amplified(tmp_path):
    record = tmp_path / "r.json"
    run(record=record, **PRIVATE)
    total = run(record=record, teacher_epsilon=0.5).report.spent
    # Trained once: what holds of both runs is the weaker statement of the two.
    assert total.record_epsilon == amplified(total.epsilon, total.delta)
    assert total.record_epsilon < 1.0 < total.epsilon
    shown = pate.spent(record).total
    assert shown.record_epsilon == total.record_epsilon
    assert run(record=record).report.spent.record_epsilon is None


def test_teachers_that_were_trained_again_have_no_total_for_one_training_record(tmp_path):
    """Two trainings at epsilon 1 tell of a record: with all votes seen, up to epsilon 2."""
    asked = {"keep_ledger": True, "release": "none", "order": 8.0, **PRIVATE}
    first, second = (run(ensemble=name, **asked) for name in ("old", "new"))
    assert first.report.record_epsilon is not None
    both = pate.release([first.ledger, second.ledger])
    for report in (both.report, pate.release(both.record).report):
        assert report.record_epsilon is None
        assert report.spent.record_epsilon is None
        assert pate.verify(report).holds
    reports = pate.release([first.report, second.report], record=False).report
    assert reports.record_epsilon is None
    assert reports.spent.record_epsilon is None
    # Ledgers once lost the names when they were moved away from their records.
    apart = [dataclasses.replace(each.ledger, records=()) for each in (first, second)]
    for record in (False, tmp_path / "r.json"):
        moved = pate.release(apart, record=record, again=True).report
        assert moved.record_epsilon is None
        assert all("ensemble" not in each for each in moved.to_dict()["rounds"])
    again = run(ensemble="new", **asked)
    assert again.report.record_epsilon is not None  # of this run alone
    assert again.report.spent.record_epsilon is None
    # A run whose teachers' training nobody states once hid that there were two trainings.
    run(ensemble="old")
    both = pate.release([first.ledger, second.ledger], again=True)
    assert both.report.record_epsilon is None
    assert "none of which was trained again" in str(first.report.statements)


def test_releases_of_ledgers_and_records_say_it(tmp_path):
    given = {"order": 8.0, "release": "none", **PRIVATE}
    first, second = (run(keep_ledger=True, **given).ledger for _ in range(2))
    report = pate.release([first, second], record=tmp_path / "r.json").report
    assert report.record_epsilon == amplified(report.epsilon)
    external = pate.Stated("replace-one", epsilon=0.1, delta=1e-7)
    other = pate.release([first, second], external=[external], again=True, record=tmp_path / "s")
    assert other.report.record_epsilon is None  # a record reaches that by another way
    total = pate.release(tmp_path / "r.json").report
    assert total.record_epsilon == amplified(total.epsilon, total.delta)


def test_a_session_says_it(tmp_path):
    asked = {"teachers": 40, "classes": 3, "target_epsilon": 1.5, "record": tmp_path / "s.json"}
    with pate.Session(**asked, **PRIVATE) as session:
        session.ask([38, 1, 1])
    report = session.report()
    assert report.record_epsilon == amplified(report.epsilon)
    with pate.Session(**asked, **PRIVATE) as again:
        assert again.asked == 1


def test_it_is_for_records_that_reach_one_teacher():
    text = refusal(ParameterError, run, teachers_per_record=2, **PRIVATE)
    assert text == "`teacher_epsilon` cannot be used if a record reached several teachers"
    teachers = np.random.default_rng(6).choice(3, size=(20, 60), p=(0.8, 0.15, 0.05))

    def grouped(shared):
        groups = pate.TeacherGroups(
            ("a",) * 20 + ("b",) * 40, weights=(2,) * 20 + (1,) * 40,
            teachers_per_record=(1,) * 20 + (shared,) * 40,
        )  # fmt: skip
        given = {"layout": "labels", "teachers": 60, "classes": 3, "groups": groups, "sigma2": 30.0}
        return pate.aggregate(teachers, "gnmax", **given, **PRIVATE)

    report = grouped(1).report  # a teacher that counts twice is one teacher
    assert report.record_epsilon == amplified(report.epsilon)
    assert "reached several teachers" in refusal(ParameterError, grouped, 2)


def test_what_holds_of_two_trainings_is_the_weaker_of_each_number():
    both = Training(1.0, 1e-6) | Training(0.5, 1e-5)
    assert both == Training(0.5, 1e-5) | Training(1.0, 1e-6) == Training(1.0, 1e-5)


def test_the_delta_of_the_training_raises_the_epsilon_of_a_record():
    told, found = {"epsilon": 2.0, "delta": 1e-5}, []
    for delta in (0.0, 0.05, 0.5):
        found.append(Training(1.0, delta).amplified(*told.values()))
        exact = record_epsilon(**told, teacher_epsilon=1.0, teacher_delta=delta)
        assert found[-1] == round_up(exact)
    assert found[0] < found[1] < found[2] < 2.0
    for wrong in (1.0, -0.1):
        with pytest.raises(ParameterError, match="`teacher_delta` must be below 1"):
            Training(1.0, wrong)


def test_numbers_that_say_nothing_are_refused():
    text = refusal(UsageError, run, teacher_delta=1e-6)
    assert text == "`teacher_delta` needs `teacher_epsilon`"
    for wrong in ({"teacher_epsilon": 0.0}, {"teacher_epsilon": 1.0, "teacher_delta": 1.0}):
        with pytest.raises(pate.PateError):
            run(**wrong)


def test_a_plan_finds_the_target_by_which_a_record_has_its_epsilon():
    asked = {"teachers": 68, "classes": 2, "queries": 40, "mechanism": "gnmax"}
    planned = pate.plan(record_epsilon=0.5, teacher_epsilon=1.0, **asked)
    told = planned.to_dict()
    assert told["record_epsilon"] == 0.5
    assert told["target_epsilon"] == pytest.approx(1.18, abs=0.01)
    assert planned.command.endswith("--teacher-epsilon 1")
    assert "one training record has epsilon 0.5000" in " ".join(
        line.text for line in planned.said() if hasattr(line, "text")
    )
    votes = np.tile([55, 13], (40, 1))
    done = pate.quote(votes, **{**planned.settings, "layout": "counts"})
    assert done.record_epsilon == 0.5
    assert "record_epsilon" not in pate.plan(target_epsilon=1.18, **asked).to_dict()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"record_epsilon": 0.5}, "give `teacher_epsilon`"),
        ({"record_epsilon": 0.5, "target_epsilon": 1.0, **PRIVATE}, "leave out `target_epsilon`"),
        ({"record_epsilon": 1.5, "teacher_epsilon": 1.0}, "below 1.5 whatever is released"),
        ({"target_epsilon": 1.0, "teachers_per_record": 2, **PRIVATE}, "reached several teachers"),
    ],
)
def test_a_plan_for_a_record_that_says_nothing(wrong, told):
    assert told in refusal(UsageError, pate.plan, teachers=60, classes=2, queries=9, **wrong)


def test_the_table_of_the_page_is_computed():
    page = Path(pate.__file__).parent.joinpath("docs", "settings.md").read_text(encoding="utf-8")
    part = page.split("## Teachers that were trained with differential privacy")[1].split("\n## ")[
        0
    ]
    head, _, *rows = (
        [float(cell) for cell in re.findall(r"[\d.]+", line.replace("ε0", ""))]
        for line in part.splitlines()
        if line.startswith("|")
    )
    assert len(rows) == 4
    for epsilon, *told in rows:
        for teacher, number in zip(head, told, strict=True):
            found = record_epsilon(epsilon=epsilon, delta=1e-5, teacher_epsilon=teacher)
            assert number == round_up(found)


def test_what_a_forged_report_leaves_out_or_adds_is_found():
    """A field that only one of two reports has is a difference, as is a list that is shorter."""
    told = pate.aggregate(VOTES, "gnmax", **ASKED, **PRIVATE).report
    plain = pate.aggregate(VOTES, "gnmax", **ASKED).report
    assert pate.verify(told).holds
    for forged in (
        dataclasses.replace(told, record_epsilon=None),
        dataclasses.replace(plain, record_epsilon=0.1),
        dataclasses.replace(told, statements=told.statements[:-1]),
    ):
        assert not pate.verify(forged).holds
