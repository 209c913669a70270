"""`release` launders nothing: what it is made of verifies, or the report says that it does not."""

import dataclasses
import json

import pytest

import pate_cli as pate
import reports
from pate_cli.core.errors import LedgerError, MismatchError, SpentError, UsageError
from pate_cli.disclosure.guarantee import report_of, run_of, sentence
from pate_cli.disclosure.record import RecordFile
from pate_cli.disclosure.runs import Outcome
from pate_cli.verbs.signatures import verify

VOTES = [[50, 6, 4]] * 20
GIVEN = {"layout": "counts", "teachers": 60, "sigma2": 20.0}


@pytest.fixture
def ran(tmp_path):
    """Two runs in a record: the reports, and where the record is."""
    record = tmp_path / "record"
    found = [
        pate.aggregate(VOTES, "gnmax", **GIVEN, max_queries=rows, record=record).report
        for rows in (10, 20)
    ]
    return found, record


def alone(rows=20, **more):
    return pate.aggregate(VOTES, "gnmax", **GIVEN, max_queries=rows, record=False, **more).report


def written(tmp_path, report, **changes):
    """The file of a report with some fields of another value."""
    path = tmp_path / "forged.json"
    path.write_text(json.dumps(report.to_dict() | changes))
    return path


def released(*given, **more):
    return pate.release(list(given), record=False, **more).report


def test_a_record_that_was_changed_is_refused(ran):
    _, path = ran
    known = pate.SpendRecord.read(path)
    cheap = dataclasses.replace(known.runs[0], epsilon=0.01)
    with pytest.raises(MismatchError, match="its settings give"):
        released(pate.SpendRecord((cheap, known.runs[1])))


def test_two_reports_that_tell_otherwise_of_a_run_are_refused(ran):
    """Consistent by itself, a forged report is told by another one."""
    (first, last), path = ran
    (run,) = first.spent.runs
    told = dataclasses.replace(run.settings, queries=4, max_answers=4)
    other = dataclasses.replace(run, settings=told, answers=4).priced
    with pytest.raises(MismatchError, match=f"have different costs for run {run.id};"):
        released(pate.SpendRecord((other,)), last)
    with pytest.raises(MismatchError, match=f"have different costs for run {run.id};"):
        pate.release(pate.SpendRecord((other,)), record=path)


def test_what_is_taken_unverified_is_said_and_stays_said(tmp_path):
    """Nothing is claimed for it, nor for anything that is made of it later."""
    forged = written(tmp_path, alone(), epsilon=0.01)
    done = pate.release(forged, unverified=True, record=tmp_path / "record")
    report = done.report
    assert report.unsettled == ("inputs",)
    assert sentence("gap-inputs") in report.warnings
    assert not any(statement.holds for statement in report.statements)
    assert report.summary.startswith(
        "Nothing is promised: because of --unverified, the total includes a report"
    )
    assert verify(report, with_dp_accounting=False).failed == ["promise"]
    for later in (report, done.record, tmp_path / "record"):
        with pytest.raises(UsageError, match=r"(?i)nothing is promised|has no guarantee"):
            released(later)
    assert released(report, alone(3), unverified=True).unsettled == ("inputs",)


def test_what_claims_nothing_is_refused_by_name_or_said():
    seeded = alone(seed=1)
    with pytest.raises(UsageError, match="cannot be released: Nothing is promised"):
        released(seeded)
    assert released(seeded, unverified=True).unsettled == ("inputs",)


def test_runs_of_a_report_that_claims_nothing_have_no_promise_either(tmp_path):
    """Though each of them would have one by itself."""
    run = pate.aggregate(VOTES, "gnmax", **GIVEN, record=tmp_path / "r.json").report
    unknown = report_of(dataclasses.replace(run.facts, recorded=False))
    assert (run.claimed, unknown.claimed) == (True, False)
    done = pate.release(unknown, unverified=True, record=tmp_path / "other.json")
    assert done.report.unsettled == ("inputs",)
    assert [run.promised for run in done.record.runs] == [False]


def test_caveats_of_inputs_survive(tmp_path):
    """That a prior must be public, that draws may be missing, and what others state."""
    prior = [0] * 20
    guessed = alone(prior=prior, prior_weight=5)
    assert "guesses of the prior must be public" in released(guessed).summary
    ledger = pate.aggregate(
        VOTES, "gnmax", **GIVEN, release="none", order=6.0, keep_ledger=True, record=False
    ).ledger
    drawn = pate.release(ledger, release="none", record=False).report
    assert "draws" in drawn.unsettled
    with pytest.raises(UsageError, match="cannot be released: Nothing is promised"):
        released(drawn, alone(3))
    other = pate.Stated(epsilon=0.3, delta=1e-6, adjacency="replace-one", covers="a model")
    total = released(alone(), external=[other])
    assert any(part.covers == "a model" for part in released(total).external)


def test_a_further_draw_is_charged_with_those_before_it(tmp_path):
    """With the one that the run itself published, and with that of an earlier release."""
    plan = {"order": 6.0, "beta": 0.05, "sigma_release": 8.0}
    done = pate.aggregate(
        VOTES, "gnmax", **GIVEN, **plan, release="upper", keep_ledger=True, record=False
    )
    (own,), (told,) = done.ledger.draws, done.ledger.rounds
    bare = dataclasses.replace(done.ledger, rounds=(dataclasses.replace(told, sanitizer=None),))
    draw = {"release": "upper", "seed": 5, "beta": 0.02, "sigma_release": 9.0}
    first, further = (pate.release(one, record=False, **draw).report for one in (bare, done.ledger))
    assert further.sanitized - first.sanitized == pytest.approx(own.rdp(6.0), abs=1.1e-4)
    place = tmp_path / "r.json"
    pate.release(bare, record=place, **draw)
    (run,) = [run for run in pate.SpendRecord.read(place).runs if run.draw is not None]
    assert run.drawn_from == (told.id,)
    again = pate.release(bare, record=place, again=True, **draw).report
    assert again.earlier_draws == (run.draw,)
    assert again.sanitized - first.sanitized == pytest.approx(run.draw.rdp(6.0), abs=1.1e-4)
    assert again.data_independent.epsilon > first.data_independent.epsilon
    # Nothing new is drawn, but what was drawn before stays published.
    quiet = pate.release(done.ledger, release="none", record=False).report.data_independent
    assert quiet.epsilon > quiet.labels_epsilon


def test_a_total_of_a_refusal_verifies():
    """A refusal has no answers in a record, and none in the total of its report."""
    with reports.called_private():
        refused, _ = reports._test(refuse=True, record=False)
    total = released(refused, alone())
    assert [run.answers for run in total.spent.runs] == [None, 20]
    assert verify(total, with_dp_accounting=False).holds


def test_records_that_are_given_together_become_the_first_of_them(tmp_path):
    """Whoever gives them says that the teachers are the same; the others take no run after that."""
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    for place in (one, other):
        pate.aggregate(VOTES, "gnmax", **GIVEN, max_queries=10, record=place)
    done = pate.release([one, other])
    assert f"{one} takes over the runs of {other}, which takes no further runs" in done.joined
    assert done.report.spent.count == len(pate.SpendRecord.read(one).runs) == 2
    assert pate.release(one).joined is None
    with pytest.raises(
        LedgerError, match=r"other\.json is closed, because its runs are now in one\.json"
    ):
        pate.aggregate(
            VOTES, "gnmax", **GIVEN, max_queries=10, record=other, accept_lost_record=True
        )


@pytest.mark.parametrize("kept", [False, True])
def test_a_record_promises_nothing_of_a_draw_by_the_analysis_of_the_paper(kept, tmp_path):
    """The report of such a run said that its epsilon is no bound, but the total of its record
    claimed it, as did the next report after a draw from a ledger, and a release from a ledger
    whose run had drawn an epsilon itself."""
    record = tmp_path / "record"
    given = {**GIVEN, "teachers_per_record": 1, "record": record, "order": 6.0}
    how = {"release": "none", "keep_ledger": True} if kept else {"release": "upper"}
    ran = pate.aggregate(VOTES, "gnmax", analysis="paper", **given, **how)
    if kept:
        assert ran.report.sound
        drawn = pate.release(ran.ledger, release="upper").report
        assert not drawn.sound
        assert not pate.release(ran.ledger, release="none").report.sound
    else:
        assert not ran.report.sound
    later = pate.aggregate(VOTES, "gnmax", **GIVEN, record=record).report
    assert not any(later.claims(name) for name in ("total", "sum"))
    with pytest.raises(UsageError, match="has no guarantee"):
        pate.release(record)
    assert pate.release(record, unverified=True).report.unsettled == ("inputs",)


def test_a_quote_of_a_draw_by_the_analysis_of_the_paper_promises_nothing():
    """The quote said that epsilon holds whatever the votes, and the report that it is no bound."""
    quote = pate.quote(VOTES, "gnmax", **GIVEN, analysis="paper", release="upper", order=6.0)
    assert (quote.sound, quote.warnings) == (False, (sentence("paper"),))
    assert quote.headline().endswith("nothing is promised")


def kept(**more):
    """The ledger of a run that draws nothing."""
    given = {"order": 6.0, "release": "none", "keep_ledger": True}
    return pate.aggregate(VOTES, "gnmax", **GIVEN, **given, **more).ledger


def test_a_ledger_in_memory_without_a_record_claims_nothing(tmp_path):
    """Three draws from it claimed the same epsilon, each without the cost of the others."""
    ledger = kept()
    for _ in range(3):
        drawn = pate.release(ledger, release="upper").report
        assert (drawn.claimed, drawn.summary) == (False, sentence("gap-draws"))
    named = pate.release(ledger, release="upper", record=tmp_path / "r.json").report
    assert named.claimed
    with pytest.raises(SpentError):
        pate.release(ledger, release="upper", record=tmp_path / "r.json")


def test_a_seed_hides_no_earlier_draw_from_a_report_that_draws_nothing(tmp_path):
    """With a seed, the report left out a published draw of the record and claimed its epsilon; a
    record that the user named hid it as well."""
    ledger = kept(record=tmp_path / "r.json")
    pate.release(ledger, release="upper")
    honest = pate.release(ledger, release="none").report
    for more in ({}, {"record": tmp_path / "other.json"}):
        report = pate.release(ledger, release="none", seed=3, **more).report
        assert report.earlier_draws == honest.earlier_draws != ()
        assert report.epsilon == honest.epsilon


def test_the_labels_of_a_report_with_a_draw_are_not_forgotten(tmp_path):
    """A total took the draw of such a report for all of it, and left out what its labels cost."""
    drawn = pate.release(kept(), release="upper", record=tmp_path / "r.json").report
    bare = report_of(dataclasses.replace(drawn.facts, spent=None))
    for unverified in (False, True):
        with pytest.raises(UsageError, match="covers several runs but does not list them"):
            released(bare, alone(), unverified=unverified)
    total = released(drawn, alone())
    assert total.queries == drawn.queries + 20


DRAWN = {**GIVEN, "order": 8, "release": "none", "keep_ledger": True}


def test_a_record_that_learnt_of_a_draw_from_its_report_counts_the_draw(tmp_path):
    """It once forgot the rounds of the draw: two later draws were charged as one."""
    ledger = pate.aggregate(VOTES, "gnmax", **DRAWN, record=tmp_path / "a.json").ledger
    first = pate.release(ledger, release="upper").report
    year = tmp_path / "year.json"
    pate.release(first, record=year)
    with pytest.raises(SpentError, match="already drawn 1 time"):
        pate.release(ledger, release="upper", record=year)
    second = pate.release(ledger, release="upper", record=year, again=True).report
    assert second.spent.count == 3
    assert len(second.earlier_draws) == 1
    third = pate.release(ledger, release="upper", record=year, again=True).report
    assert len(third.earlier_draws) == 2
    assert pate.verify(third, record=year).holds


def test_a_record_that_knows_only_the_report_of_the_labels_takes_over_their_draw(tmp_path):
    done = pate.aggregate(VOTES, "gnmax", **DRAWN, record=tmp_path / "a.json")
    year = tmp_path / "year.json"
    pate.release(done.report, record=year)
    pate.release(done.ledger, release="upper")
    total = pate.release(tmp_path / "a.json", record=year).report
    assert total.spent.count == 2
    assert released(year).epsilon == total.epsilon


def test_a_ledger_whose_record_is_not_there_draws_nothing(tmp_path, monkeypatch):
    """On another machine it drew a second time at the cost of one draw, and promised it."""
    (tmp_path / "here").mkdir()
    record = tmp_path / "here/a.json"
    ledger = pate.aggregate(VOTES, "gnmax", **DRAWN, record=record).ledger
    ledger.save(tmp_path / "led.json")
    pate.release(ledger, release="upper")
    record.rename(tmp_path / "kept.json")
    monkeypatch.setenv("PATE_HOME", str(tmp_path / "other"))
    for given in (ledger, tmp_path / "led.json"):
        with pytest.raises(LedgerError, match="which is not there; bring this record"):
            pate.release(given, release="upper")
    with pytest.raises(SpentError, match="already drawn 1 time"):
        pate.release(ledger, release="upper", record=tmp_path / "kept.json")
    pate.release(ledger, release="upper", record=tmp_path / "new.json", accept_lost_record=True)


def test_an_external_curve_may_stand_in_records_of_other_deltas(tmp_path):
    """The two entries once had to agree on epsilon at their deltas."""
    curve = pate.Stated("replace-one", name="dpsgd", orders=(2, 8, 32), rdp=(0.1, 0.4, 1.6))
    found = []
    for delta in (1e-5, 1e-6):
        record = tmp_path / f"{delta}.json"
        pate.aggregate(VOTES, "gnmax", **GIVEN, delta=delta, record=record)
        found.append(pate.release(record, external=[curve]).report)
    totals = {released(*given).epsilon for given in (found, found[::-1])}
    assert len(totals) == 1
    assert totals.pop() > found[0].epsilon


def test_whole_numbers_in_an_external_cost_are_numbers(tmp_path):
    """The cost of the record was once of another statement after it was read again."""
    record = tmp_path / "a.json"
    pate.aggregate(VOTES, "gnmax", **GIVEN, record=record)
    cost = pate.Stated("replace-one", epsilon=1, delta=0)
    assert cost.digest == pate.Stated("replace-one", epsilon=1.0, delta=0.0).digest
    report = pate.release(record, external=[cost]).report
    assert pate.verify(report).holds
    assert pate.release(record).report.epsilon == report.epsilon


def two_days(tmp_path, monkeypatch):
    """The reports of a run in a.json and, a day later, of one in b.json."""
    reports = []
    for day, name in enumerate("ab", 1):
        monkeypatch.setattr("pate_cli.verbs.aggregate.now", lambda day=day: f"2026-01-0{day}")
        given = {**GIVEN, "record": tmp_path / f"{name}.json"}
        reports.append(pate.aggregate(VOTES, "gnmax", **given).report)
    return reports


def test_a_report_may_leave_out_runs_that_began_after_it_in_another_record(tmp_path, monkeypatch):
    """A run that was taken over stood after later ones, which its report then left out."""
    reports = two_days(tmp_path, monkeypatch)
    joined = tmp_path / "b.json"
    pate.release([joined, tmp_path / "a.json"])
    assert [run.time for run in pate.SpendRecord.read(joined).runs] == ["2026-01-02", "2026-01-01"]
    assert pate.spent(joined, reports=reports).holds


def test_a_run_from_a_seed_that_enters_a_record_fails_for_its_seed_only(tmp_path):
    report = pate.aggregate(VOTES, "gnmax", **GIVEN, seed=1, record=tmp_path / "r.json").report
    assert pate.verify(report).failed == ["promise"]


@pytest.mark.parametrize("first", ["record", "forged"])
def test_what_does_not_verify_changes_no_entry_of_a_record(tmp_path, first):
    """With `unverified`, the settings of a forged report once replaced those of a pending run."""
    dear = pate.aggregate(VOTES, "gnmax", **{**GIVEN, "sigma2": 4.0}, record=tmp_path / "a").report
    (run,) = dear.spent.runs
    pending = {"outcome": Outcome.PENDING, "answers": None, "total_epsilon": None}
    path = tmp_path / "pending.json"
    RecordFile(path).enter(dataclasses.replace(run, **pending, total_delta=None))
    text = dear.to_json().replace('"sigma2": 4.0', '"sigma2": 400.0')
    (tmp_path / "forged.json").write_text(text)
    given = [path, tmp_path / "forged.json"]
    report = pate.release(given if first == "record" else given[::-1], unverified=True).report
    assert (report.sound, report.unsettled) == (False, ("inputs",))
    assert report.epsilon == released(path).epsilon == dear.epsilon


def test_a_report_gives_no_run_of_a_record_an_ensemble(tmp_path):
    """A run without an ensemble counts for everybody; a forged report once took that away."""
    record = tmp_path / "a.json"
    report = pate.aggregate(VOTES, "gnmax", **GIVEN, record=record).report
    named = dataclasses.replace(report.spent.runs[0], ensemble="oct")
    other = dataclasses.replace(
        run_of(alone(5)), ensemble="nov", disjoint_from=("oct",), round="", session=None
    )
    forged = pate.SpendRecord((named, other))
    assert pate.release([record, forged]).report.epsilon > report.epsilon
    assert pate.SpendRecord.read(record).runs[0].ensemble is None


def test_a_report_may_leave_out_an_external_cost_that_was_stated_after_it(tmp_path, monkeypatch):
    reports = two_days(tmp_path, monkeypatch)
    cost = pate.Stated("replace-one", epsilon=0.1, delta=1e-7)
    pate.release(tmp_path / "b.json", external=[cost])
    pate.release([tmp_path / "b.json", tmp_path / "a.json"])
    assert pate.spent(tmp_path / "b.json", reports=reports).holds


@pytest.mark.parametrize("damage", ["", "damaged\n"])
def test_a_run_that_ends_after_its_record_was_taken_over_ends_in_the_other_record(tmp_path, damage):
    """There it stayed pending, and its report did not fit; it ends even if that is damaged."""
    old, year = tmp_path / "old.json", tmp_path / "year.json"

    def progress(*_):
        if old.exists() and not year.exists():
            pate.release(old, record=year)
            year.write_text(year.read_text() + damage)

    given = {**GIVEN, "record": old, "progress": progress}
    report = pate.aggregate(VOTES, "gnmax", **given).report
    assert report.answers == len(VOTES)
    if not damage:
        assert [run.outcome for run in pate.SpendRecord.read(year).runs] == [Outcome.LABELLED]
        assert pate.spent(year, reports=[report]).holds


def test_an_input_that_contradicts_a_record_changes_nothing_in_it(tmp_path):
    """Alone it verifies; with `unverified`, its settings once entered the record."""
    path = tmp_path / "record.json"
    report = pate.aggregate(VOTES, "gnmax", **GIVEN, max_queries=5, record=path).report
    (run,) = report.spent.runs
    mechanism = {**run.settings.mechanism, "sigma2": 90.0}
    settings = dataclasses.replace(run.settings, mechanism=mechanism, queries=9, max_answers=9)
    forged = pate.SpendRecord((dataclasses.replace(run, settings=settings, answers=9).priced,))
    with pytest.raises(MismatchError, match="have different costs for run"):
        pate.release([path, forged])
    for given in ([path, forged], [forged]):
        total = pate.release(given, unverified=True, record=path).report
        assert (total.sound, total.epsilon) == (False, report.epsilon)
        assert released(path).epsilon == report.epsilon
