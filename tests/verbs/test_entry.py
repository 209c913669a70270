"""Whatever ends a run once it is entered leaves it standing: every place is tried."""

import contextlib
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pate_cli as pate
import record_files
from changes import unseen
from pate_cli.accounting.gaussian import conditional
from pate_cli.core.errors import (
    LedgerError,
    ParameterError,
    PateError,
    UnreachableError,
    UsageError,
    VoteError,
)
from pate_cli.core.noise import Noise, RunKey
from pate_cli.core.words import Bound
from pate_cli.disclosure.entry import Entry, RecordPlace
from pate_cli.disclosure.record import RecordFile, SpendRecord
from pate_cli.disclosure.report import RefusedError
from pate_cli.disclosure.runs import Budget, Outcome, Run, plain_sums
from pate_cli.disclosure.target import States, TargetPlan
from refusals import refusal
from slices import some
from some_runs import TRIED

PACKAGE = str(Path(pate.__file__).parent)
COUNTS = np.array([[38, 2], [36, 4]] * 12)
# The coin comes up for the labels with one, and against them with the other.
KEYS = {Outcome.LABELLED: RunKey(bytes(32)), Outcome.REFUSED: RunKey(bytes(31) + b"\x01")}
ENDS = (KeyboardInterrupt, MemoryError, VoteError, OSError)
RECORD = Path("votes.spent.json")
GIVEN = {
    "sigma2": 4.0,
    "layout": "counts",
    "target_epsilon": 1.5,
    "min_pass": 0.0,
    "delta": 1e-4,
    "record": RECORD,
}


def ask(votes=COUNTS, mechanism="gnmax", **changes):
    """One run at a target; its outcome."""
    asked = GIVEN | {"bound": "conditional", "max_queries": len(COUNTS)} | changes
    try:
        pate.aggregate(votes, mechanism, **asked)
    except RefusedError:
        return Outcome.REFUSED
    return Outcome.LABELLED


def attempts():
    return SpendRecord.read(RECORD).runs


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.fsync", lambda _descriptor: None)  # no power is cut here
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


@pytest.fixture
def under(monkeypatch):
    """The key of the next runs."""
    return lambda key: monkeypatch.setattr(RunKey, "of", classmethod(lambda _cls, _seed: key))


class Walk:
    """Which functions of the package run once an attempt is being entered, and a way to break in.

    A place is the first call of a function: while the attempt is entered, until the coin is drawn,
    until that is noted, and once more thereafter.
    """

    ENTERING, ENTERED, DRAWN, NOTED = range(1, 5)

    def __init__(self, monkeypatch):
        self.places, self._phase, self._at, self._end = {}, 0, None, None
        for owner, name, before, after in (
            (Entry, "enter", self.ENTERING, self.ENTERED),
            (Noise, "comes_up", self.ENTERED, self.DRAWN),
            (Entry, "settle", self.DRAWN, self.NOTED),
        ):
            monkeypatch.setattr(owner, name, self._phased(getattr(owner, name), before, after))

    def _phased(self, call, before, after):
        def phased(*args, **kwargs):
            self._phase = before
            found = call(*args, **kwargs)
            self._phase = after
            return found

        return phased

    def run(self, at=None, end=None):
        """The outcome, all places noted; or `end` raised at one of them."""
        self.places, self._phase, self._at, self._end = {}, 0, at, end
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            return ask()
        finally:
            sys.settrace(before)

    def _called(self, frame, _event, _argument):
        code = frame.f_code
        if not self._phase or not code.co_filename.startswith(PACKAGE):
            return
        place = (self._phase, code.co_filename, code.co_firstlineno)
        self.places[place] = None
        if place == self._at:
            self._at = None
            raise self._end


def survey(walk, outcome, places):
    """Places from which an attempt goes another way than it should; each is broken into once."""
    whole, name = RECORD.read_bytes(), KEYS[outcome].run_id
    pending, noted = [(name, Outcome.PENDING)], [(name, outcome)]
    for number, place in enumerate(places):
        record_files.unlink(RECORD)
        end = ENDS[(number + number // len(ENDS)) % len(ENDS)]
        with contextlib.suppress(end, PateError):
            walk.run(place, end())
        found = [(one.id, one.outcome) for one in attempts()]
        allowed = {walk.ENTERING: ([], pending, noted), walk.NOTED: (noted,)}
        stands = found in allowed.get(place[0], (pending, noted))
        if stands and number % 4 == 0:
            # Taken up again it is the same attempt, and the coin comes up as it did.
            stands = ask() is outcome and RECORD.read_bytes() == whole
        if not stands:
            yield place


@pytest.mark.parametrize("outcome", KEYS)
def test_what_is_entered_stands_whatever_comes_next(outcome, under, monkeypatch):
    walk = Walk(monkeypatch)
    under(KEYS[outcome])
    assert walk.run() is outcome
    places = list(walk.places)
    assert all(sum(place[0] == phase for place in places) > 40 for phase in range(1, 5))
    if outcome is Outcome.REFUSED:  # until it is drawn, a coin is like the other
        places = [place for place in places if place[0] == walk.DRAWN]
    # Once noted, it is not touched again: some places will do.
    late = [place for place in places if place[0] == walk.NOTED]
    places = [place for place in places if place[0] != walk.NOTED] + late[::4]
    places = some(places, 8)
    assert list(survey(walk, outcome, places)) == []


def test_nothing_is_made_of_votes_before_the_record_knows(monkeypatch):
    """Whatever bound, and with no coin at all: they are read, and that they are votes is told."""
    seen = []

    def of(self, *args, before=States.of):
        seen.append(attempts()[0].outcome)
        return before(self, *args)

    monkeypatch.setattr(States, "of", of)
    for bound in (Bound.TWO_TAIL, Bound.CONDITIONAL):
        record_files.unlink(RECORD)
        ask(bound=bound)
    assert seen == [Outcome.PENDING] * 2


@pytest.mark.parametrize("target", [1.5, 50.0])
def test_what_is_no_vote_is_told_before_anything_is_entered(target):
    """The last row has a vote too many; with 50 there is no coin to draw."""
    votes = COUNTS.copy()
    votes[-1, 0] += 1
    with pytest.raises(VoteError, match="row 23"):
        ask(votes, target_epsilon=target)
    assert attempts() == ()


def test_votes_that_change_under_the_run_are_paid_for(tmp_path, monkeypatch):
    path = tmp_path / "votes.npy"
    np.save(path, COUNTS)
    enter = Entry.enter

    def entering(book):
        enter(book)
        with unseen(path):
            np.save(path, COUNTS[::-1])

    monkeypatch.setattr(Entry, "enter", entering)
    with pytest.raises(VoteError, match="changed while they were read"):
        ask(path)
    assert [one.outcome for one in attempts()] == [Outcome.PENDING]


@pytest.mark.parametrize("outcome", KEYS)
def test_an_interruption_right_after_the_draw_gives_no_second_one(outcome, under, monkeypatch):
    under(KEYS[outcome])
    comes_up, coins = Noise.comes_up, []

    def drawn(noise, log_chance):
        coins.append(comes_up(noise, log_chance))
        if len(coins) == 1:
            raise KeyboardInterrupt
        return coins[-1]

    monkeypatch.setattr(Noise, "comes_up", drawn)
    with pytest.raises(KeyboardInterrupt):
        ask(checkpoint="kept")
    assert [one.outcome for one in attempts()] == [Outcome.PENDING]
    # A new run would draw another coin.
    under(KEYS[Outcome.LABELLED if outcome is Outcome.REFUSED else Outcome.REFUSED])
    assert ask(checkpoint="kept") is outcome
    assert coins[0] == coins[1]
    assert [one.outcome for one in attempts()] == [outcome]
    assert not Path("kept").exists()


def entry(name="a", *, epsilon=1.0, path=RECORD, **given):
    settings = replace(
        TRIED.settings, target=TargetPlan(epsilon, 1e-5, epsilon / 2.0, test_orders=(8.0,))
    )
    run = Run.of(id=name, time=None, settings=settings)
    return Entry(RecordPlace(RecordFile(path)), run, **{"budget": None} | given)


def test_a_budget_is_kept_against_all_runs_of_the_record():
    first = entry("a", epsilon=1.0)
    first.enter()
    with pytest.raises(UnreachableError, match=r"1 run in .*votes\.spent\.json"):
        entry("b", epsilon=1.0, budget=Budget(1.9))
    first.settle(Outcome.REFUSED)
    later = entry("b", epsilon=1.0, budget=Budget(1.9))
    beside = entry("c", epsilon=1.0, budget=Budget(1.9))
    later.enter()
    with pytest.raises(UnreachableError):  # it has become too much meanwhile
        beside.enter()
    assert [run.id for run in attempts()] == ["a", "b"]


def test_a_takeover_that_was_cut_short_is_made_good(monkeypatch):
    """Killed between both records, the earlier one still takes runs: they are taken over later."""
    entry("a", path=Path("one.json")).enter()
    place = RecordPlace.found(Path("all.json"), [Path("one.json")])
    run = SpendRecord.read("one.json").runs[0]
    with monkeypatch.context() as patch:
        patch.setattr(RecordFile, "go_on_in", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            Entry(place, replace(run, id="c"), budget=None).enter()
    entry("b", path=Path("one.json")).enter()
    place = RecordPlace.found(Path("all.json"), [Path("one.json")])
    Entry(place, replace(run, id="d"), budget=None).enter()
    assert [run.id for run in SpendRecord.read("all.json").runs] == ["a", "c", "b", "d"]


def test_votes_in_memory_and_whoever_wants_none_have_no_record(tmp_path):
    np.save(tmp_path / "votes.npy", COUNTS)
    asked = {"sigma2": 4.0, "layout": "counts", "max_queries": 4}
    untracked = pate.aggregate(COUNTS, "gnmax", **asked).report
    assert "are not tracked" in untracked.covers
    for votes, more in ((COUNTS, {}), ("votes.npy", {"record": False}), ("votes.npy", {"seed": 1})):
        assert pate.aggregate(votes, "gnmax", **asked, **more).report.spent is None
    assert {path.name for path in tmp_path.iterdir()} == {"votes.npy"}


def test_what_another_process_has_settled_is_not_struck_out():
    """Both go on with one run, and only one of them finds that the file has changed."""
    ask(checkpoint="kept")
    (run,) = attempts()
    pending = replace(run, outcome=Outcome.PENDING)
    record_files.unlink(RECORD)
    one, other = (Entry(RecordPlace(RecordFile(RECORD)), pending, budget=None) for _ in range(2))
    one.enter()
    other.enter()
    other.settle(Outcome.LABELLED, answers=1)
    with pytest.raises(VoteError), one.standing(until_read=True):
        raise VoteError("changed")
    (kept,) = attempts()
    assert kept.outcome is Outcome.LABELLED


def test_what_a_run_rests_on_is_on_disk_before_it_draws(tmp_path, monkeypatch):
    """Also the folder of an ensemble, and a record that another process was killed beside."""
    synced, drawn = [], []
    real = os.fsync

    def fsync(opened):
        synced.append(str(Path(f"/proc/self/fd/{opened}").readlink()))
        real(opened)

    def noise(key, purpose, position):
        if purpose != "run id":
            drawn.append(set(synced))
        return drawing(key, purpose, position)

    drawing = RunKey._noise
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(RunKey, "_noise", noise)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    ask(record=None, ensemble="hospitals", checkpoint="kept")
    folders = {str(tmp_path), str(tmp_path / "state"), str(tmp_path / "state" / "pate")}
    assert folders <= drawn[0]
    # The same run again: its entry stands already, and its name may not be safe.
    synced.clear()
    place = RecordPlace.of(None, record=None, ensemble="hospitals")
    (run,) = place.record.runs
    Entry(place, run, budget=None).enter()
    assert str(tmp_path / "state" / "pate") in synced


def test_a_row_that_is_no_vote_strikes_an_untested_run_out_and_nothing_else_does(monkeypatch):
    votes = COUNTS.copy()
    votes[-1, 0] += 1
    asked = {"sigma2": 4.0, "layout": "counts", "record": RECORD}
    with pytest.raises(VoteError, match="row 23"):
        pate.aggregate(votes, "gnmax", **asked)
    assert attempts() == ()
    monkeypatch.setattr("pate_cli.verbs.aggregate.run", _interrupted)
    with pytest.raises(KeyboardInterrupt) as ended:
        pate.aggregate(COUNTS, "gnmax", **asked)
    assert "stays in votes.spent.json, and its cost counts" in ended.value.__notes__[0]
    assert [run.outcome for run in attempts()] == [Outcome.PENDING]


def _interrupted(*_given, **_more):
    raise KeyboardInterrupt


def test_memory_is_refused_to_neighbours_alike(monkeypatch):
    """Rows with one gap between counts fitted, where those with many did not."""
    monkeypatch.setattr(conditional, "_MOST_BYTES", 2**24)
    narrow = np.full((24, 3), 20)
    wide = np.random.default_rng(1).multinomial(60, [0.6, 0.3, 0.1], size=24)
    for votes in (narrow, wide):
        with pytest.raises(ParameterError, match="might need about"):
            ask(votes)
        assert not RECORD.exists()


def test_a_run_that_was_entered_before_is_never_withdrawn(tmp_path):
    """Also if it brings along other runs that the record does not have yet."""
    record, pending = tmp_path / "r.json", replace(TRIED, outcome=Outcome.PENDING, budget=None)
    Entry(RecordPlace.of(None, record=record), pending, budget=None).enter()
    other = SpendRecord((replace(pending, id="other", round="other"),))
    again = Entry(RecordPlace.of(None, record=record), pending, budget=None, beside=other)
    again.enter()
    with pytest.raises(VoteError), again.standing(until_read=True):
        raise VoteError("no votes")
    assert {run.id for run in SpendRecord.read(record).runs} == {pending.id, "other"}


def test_a_budget_needs_a_record():
    with pytest.raises(UsageError, match="needs a record"):
        Entry(RecordPlace(), TRIED, budget=Budget(1.0))


def test_runs_for_other_neighbours_enter_no_record(tmp_path):
    place = RecordPlace.of(None, record=tmp_path / "r.json")
    Entry(place, TRIED, budget=None).enter()
    settings = replace(TRIED.settings, target=None)
    mechanism = {**settings.mechanism, "teachers_per_record": 2}
    other = replace(TRIED, id="other", settings=replace(settings, mechanism=mechanism))
    with pytest.raises(LedgerError, match="cannot share a total"):
        Entry(place, other, budget=None)


def test_a_record_with_a_filter_takes_over_no_run_from_before_it():
    """A record that began with an order took over a record that had begun without one. Its order
    may have been chosen by what the other had released, but the budget went on to admit runs."""
    ruled = Budget(9.0, 1e-3, 8.0)
    for path, budget in (("plain", None), ("ruled", ruled), ("alike", ruled)):
        entry(path, path=Path(path), budget=budget).enter()
    plain = SpendRecord.read("plain")

    def merged(into, *others, beside=None, **given):
        place = RecordPlace.found(Path(into), [*map(Path, others)])
        return Entry(place, None, budget=None, beside=beside, **given)

    for given in (
        {"others": ["plain"]},
        {"others": ["alike", "plain"]},
        {"others": [], "beside": plain},
    ):
        with pytest.raises(UsageError, match="must be fixed before the first run"):
            merged("ruled", *given.pop("others"), **given)
    with pytest.raises(UsageError, match="must be fixed before the first run"):
        merged("new", "ruled", "plain")
    merged("ruled", "alike").enter()
    merged("plain", "ruled").enter()  # A record that began without an order never admits at one.
    # The taken-over runs admit nothing at their order there, and the plain sums stay.
    found = pate.spent("plain", budget=9.0, budget_delta=1e-3, budget_order=8.0)
    assert found.however_chosen == plain_sums(SpendRecord.read("plain").runs)[-1]
    entry("fresh", path=Path("plain"), budget=Budget(9.0, 1e-3)).enter()
    with pytest.raises(UsageError, match="`budget_order`"):
        entry("late", path=Path("plain"), budget=ruled)


def test_an_interruption_while_a_run_enters_says_that_it_costs(tmp_path, monkeypatch):
    """Its line was in the record, but only an error of the disk said so."""

    def interrupted(self, *runs):
        enter(self, *runs)
        raise KeyboardInterrupt

    enter = RecordFile.enter
    monkeypatch.setattr(RecordFile, "enter", interrupted)
    with pytest.raises(KeyboardInterrupt) as stopped:
        pate.aggregate(COUNTS, "gnmax", layout="counts", record=tmp_path / "r.json")
    assert "r.json, and its cost counts" in str(stopped.value.__notes__)


def test_a_folder_whose_name_is_not_utf_8_is_refused_at_no_cost(tmp_path, monkeypatch):
    """The ledger once named its record there, and could not be read again."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff"))
    folder.mkdir()
    monkeypatch.chdir(folder)
    np.save("v.npy", COUNTS)
    for votes, record in (("v.npy", False), (COUNTS, "r.json")):
        text = refusal(UsageError, pate.aggregate, votes, "gnmax", layout="counts", record=record)
        assert "is not UTF-8, as the name of a file must be" in text
