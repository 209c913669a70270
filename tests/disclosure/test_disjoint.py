"""Ensembles that share nobody: who adds up, whole histories by exact laws, and the record."""

import itertools
import math
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from scipy.special import ndtr

import pate_cli as pate
from divergences import hockey_stick
from pate_cli.core.errors import LedgerError, ParameterError, UsageError
from pate_cli.disclosure.entry import Entry, RecordPlace, state_folder
from pate_cli.disclosure.runs import Budget, Outcome, Run, Spent, people_of, plain_sums, total_of
from pate_cli.disclosure.settings import Training
from some_runs import LABELLED, RELEASED, STATED, told

COUNTS = np.array([[38, 2], [36, 4]] * 12)
ASKED = {"sigma2": 40.0, "layout": "counts", "max_queries": 4}


def of(ensemble, *apart, run=LABELLED, **more):
    """A run of an ensemble that is declared disjoint from others."""
    told = {"id": ensemble, "round": f"round {ensemble}"}
    told |= {"ensemble": ensemble, "disjoint_from": apart}
    return replace(run, **told | more)


# --- who adds up ---------------------------------------------------------------------------------


def test_all_that_a_person_may_have_reached_is_in_one_set():
    """Every graph of declarations among four ensembles, every set without a declared pair."""
    pairs = list(itertools.combinations("abcd", 2))
    for declared in itertools.product((False, True), repeat=len(pairs)):
        apart = {frozenset(pair) for pair, there in zip(pairs, declared, strict=True) if there}
        runs = [
            of(one, *(o for o in "abcd"[:at] if {one, o} in apart)) for at, one in enumerate("abcd")
        ]
        sets = people_of(runs)
        for size in range(5):
            for reached in itertools.combinations("abcd", size):
                if apart.isdisjoint(map(frozenset, itertools.combinations(reached, 2))):
                    assert any({None, *reached} <= one for one in sets), (apart, reached)


def test_whatever_is_of_no_ensemble_counts_for_everybody():
    """A draw, a mechanism of others, and a run without a name."""
    runs = [of("a"), of("b", "a"), STATED]
    alone = total_of([LABELLED, STATED])
    assert total_of(runs).epsilon == alone.epsilon > total_of(runs[:2]).epsilon
    drawn = replace(RELEASED, drawn_from=(runs[0].round,))
    assert total_of([*runs, drawn]).epsilon > alone.epsilon
    with pytest.raises(LedgerError, match="rounds that the record does not contain"):
        total_of([*runs[1:], drawn])


def test_months_that_all_share_nobody_are_named_once():
    """A year of months has 66 pairs, which nobody would read."""
    runs = [of("a"), of("b", "a"), of("c", "a", "b"), of(None, id="unnamed")]
    assert Spent.of(runs).disjoint == ("any two of a, b, c",)
    assert Spent.of(runs[:2]).disjoint == ("b from a",)
    assert Spent.of([*runs, of("d", "a", "b")]).disjoint[-1] == "d from a and b"


def test_totals_are_those_of_whoever_pays_most():
    settings = told(pate.GNMax(20, 3, sigma2=4.0), 40, delta=1e-6)
    dear = Run.of(id="dear", outcome=Outcome.LABELLED, time=None, settings=settings, answers=40)
    runs = [of("a"), of("b", "a", run=dear), of("a", id="again")]
    first, last = total_of([runs[0], runs[2]]), total_of([runs[1]])
    assert first.epsilon < last.epsilon
    assert total_of(runs).epsilon == last.epsilon
    assert total_of(runs).delta == first.delta > last.delta
    assert plain_sums(runs)[1:] == [
        plain_sums(runs[:1])[-1],
        (dear.epsilon, LABELLED.delta),
        (dear.epsilon, 2 * LABELLED.delta),
    ]
    together = replace(runs[1], disjoint_from=())
    assert total_of([runs[0], together, runs[2]]).epsilon > last.epsilon
    for budget in (Budget(9.0, 1e-3), Budget(9.0, 1e-3, 6.0)):
        mine, others = (budget.spent([runs[n] for n in at])[-1] for at in ((0, 2), (1,)))
        assert budget.spent(runs)[-1] == (max(mine[0], others[0]), max(mine[1], others[1]))
        fresh = budget.spent(runs, ensemble="c", disjoint_from=("a", "b"))
        assert fresh[-1] == budget.spent(())[-1]
        assert budget.spent(runs, ensemble="c", disjoint_from=("b",))[-1] == mine


def test_a_training_record_has_an_epsilon_only_in_one_ensemble():
    """In two of them it reaches a teacher of each, and both trainings tell of it."""
    private = replace(LABELLED.settings, training=Training(1.0))
    runs = [of("a", settings=private), of("b", "a", settings=private)]
    assert Spent.of(runs).record_epsilon == Spent.of(runs[:1]).record_epsilon
    assert Spent.of([*runs, of("c", "a", settings=private)]).record_epsilon is None


def test_names_are_published_only_where_they_say_something():
    assert [run.ensemble for run in Spent.of([of("a"), of("b")]).runs] == [None, None]
    assert [run.ensemble for run in Spent.of([of("a"), of("b", "a")]).runs] == ["a", "b"]
    for wrong in (None, "a"):
        with pytest.raises(LedgerError, match="needs an ensemble other than those in"):
            replace(LABELLED, ensemble=wrong, disjoint_from=("a",))


# --- the record ----------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATE_HOME", str(tmp_path / "home"))


def run(ensemble, *apart, votes=COUNTS, **asked):
    given = {**ASKED, "ensemble": ensemble, "disjoint_from": apart, **asked}
    return pate.aggregate(votes, "gnmax", **given).report


def test_months_keep_one_record_and_do_not_add_up(home):
    first = run("october")
    second = run("november", "october", budget=first.epsilon)
    assert second.spent.count == 2
    assert second.spent.epsilon == first.spent.epsilon == first.epsilon
    assert pate.spent(ensemble="november").runs == pate.spent(ensemble="october").runs
    again = run("november")
    assert again.spent.epsilon > first.epsilon
    assert sorted(path.name for path in state_folder().glob("*.json")) == [
        "november.spent.json",
        "october.spent.json",
    ]
    record = Path(state_folder(), "october.spent.json")
    for report in (first, second, again):
        assert pate.verify(report, record=record).holds
    texts = [text for part in pate.explain(again).sections for text in part.texts]
    assert any("declared disjoint (november from october)" in text for text in texts)
    assert "declared disjoint" in " ".join(pate.verify(again).unchecked)
    total = pate.release(record, record=record).report
    assert total.epsilon == pytest.approx(again.spent.epsilon, abs=1e-4)
    with pytest.raises(LedgerError, match=r"its runs are now in october\.spent\.json"):
        pate.verify(again, record=state_folder() / "november.spent.json")
    assert "no person's data reached two ensembles" in total.summary
    assert pate.verify(total, record=record).holds
    Path(state_folder(), "november.spent.json").unlink()
    with pytest.raises(LedgerError, match=r"november\.spent\.json is gone"):
        run("november")


def test_a_declaration_joins_records_and_must_name_one(home):
    run("october")
    run("november")
    asked = {**ASKED, "ensemble": "december", "disjoint_from": "octobre"}
    for verb in (pate.quote, pate.aggregate):
        with pytest.raises(UsageError, match="names octobre, which has no run in the record"):
            verb(COUNTS, "gnmax", **asked)
    with pytest.raises(UsageError, match="`disjoint_from` needs `ensemble`"):
        pate.aggregate(COUNTS, "gnmax", **ASKED, record="a.json", disjoint_from="october")
    with pytest.raises(UsageError, match="must name other ensembles"):
        run("november", "october", "november")
    assert run("november", "october").spent.count == 3
    assert pate.spent(ensemble="november").however_chosen == tuple(
        2 * cost for cost in pate.spent(ensemble="october").running[1]
    )


def test_a_run_that_another_process_enters_in_between_is_not_lost(home):
    run("october")
    place = RecordPlace.of(None, record=None, ensemble="november", disjoint_from="october")
    run("november")
    Entry(place, of("", id="late"), budget=None).enter()
    (october, first, late) = pate.spent(ensemble="november").runs
    assert (october.ensemble, late.id) == ("october", "late")
    assert first.ensemble == late.ensemble == "november"


def test_the_same_votes_are_not_of_two_ensembles_that_share_nobody(home):
    np.save("here.npy", COUNTS)
    np.save("other.npy", COUNTS[::-1])
    told = "these votes already ran as ensemble {}, which is declared disjoint from {}"
    run("october", votes="here.npy")
    Path("here.npy").rename("moved.npy")
    with pytest.raises(UsageError, match=told.format("october", "november")):
        run("november", "october", votes="moved.npy")
    assert run("november", "october", votes="other.npy").spent.count == 2
    with pytest.raises(UsageError, match=told.format("november", "october")):
        run("october", votes="other.npy")
    assert run("december", votes="moved.npy").spent.count == 3
    # A third name in between once hid the first.
    with pytest.raises(UsageError, match=told.format("october", "january")):
        run("january", "october", votes="moved.npy")
    assert run("october", votes="moved.npy").spent.count == 4


@pytest.mark.parametrize("wrong", ["../x", "", None, 5])
def test_a_name_that_is_none_is_said_as_it_was_given(wrong, home):
    with pytest.raises(UsageError) as raised:
        run("november", wrong)
    assert str(raised.value).startswith(f"{wrong!r} is not the name of an ensemble")
    with pytest.raises(ParameterError, match="`disjoint_from` must be names of ensembles, got 5"):
        run("november", disjoint_from=5)


def test_an_interrupted_run_goes_on_with_the_declarations_it_was_entered_with(home, monkeypatch):
    run("september")
    run("october", "september")
    kept = {"checkpoint": "kept", "into": "labels.csv"}
    with monkeypatch.context() as patched:
        patched.setattr(Entry, "settle", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run("november", "september", **kept)
    with pytest.raises(UsageError, match="belongs to a run with other flags"):
        run("november", "september", "october", **kept)
    report = run("november", "september", **kept)
    assert report.spent.count == 3
    assert pate.verify(report, record=state_folder() / "september.spent.json").holds


def test_a_session_keeps_the_declarations_with_which_it_was_opened(home):
    given = {"teachers": 40, "classes": 2, "mechanism": "gnmax", "sigma2": 40.0, "max_queries": 9}

    def asked(ensemble, *apart):
        with pate.Session(ensemble=ensemble, disjoint_from=apart, **given) as session:
            session.ask([40, 0], id="a")
        return len(pate.spent(ensemble=ensemble).runs)

    assert [asked("october"), asked("november")] == [1, 1]
    assert asked("november", "october") == 3
    assert asked("november", "october") == asked("november") == 3
    for other in ("september", "nobody"):
        told = "this session was opened with `disjoint_from` october, which cannot change"
        with pytest.raises(UsageError, match=told):
            asked("november", "october", other)


def test_the_rest_of_a_budget_is_that_of_the_ensemble(home):
    votes = np.random.default_rng(5).multinomial(40, [0.9, 0.1], size=30)
    given = {"layout": "counts", "budget": 1.0, "bound": "two-tail"}
    run("october", sigma2=60.0)

    def target(ensemble, *apart):
        asked = {"ensemble": ensemble, "disjoint_from": apart, "min_pass": 0.0, **given}
        return pate.quote(votes, **asked).settings.target.epsilon

    assert target("november", "october") == 1.0 > target("october")


# --- whole histories -----------------------------------------------------------------------------


SIGMA = 1.5


def two_labels(histograms, queries):
    """The law of the labels of two queries of a month by GNMax over two classes, [4]."""
    first = [ndtr((a - b) / (math.sqrt(2.0) * SIGMA)) for a, b in (histograms[q] for q in queries)]
    return np.outer(*([each, 1.0 - each] for each in first)).ravel()


def history(early, late, plan):
    """The law of two queries of one month, and then of one of the next month, asked twice.

    Args:
        early, late: the histogram of each of two queries in either month.
        plan: the query of the later month for every pair of labels of the earlier one.
    """
    seen = zip(two_labels(early, (0, 1)), plan, strict=True)
    return np.concatenate([chance * two_labels(late, (query, query)) for chance, query in seen])


def lost(here, there, epsilon):
    """The hockey-stick divergence of two laws, the larger one of both directions."""
    return max(hockey_stick(here, there, epsilon), hockey_stick(there, here, epsilon))


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.5, None])
def test_whole_histories_cost_whoever_is_in_one_month_what_that_month_costs(epsilon):
    """Every history of every plan, in both directions; whoever is in both months pays more."""
    delta = 0.05
    settings = told(pate.GNMax(3, 2, sigma2=SIGMA), 2, delta=delta)
    run = Run.of(id="x", outcome=Outcome.LABELLED, time=None, settings=settings, answers=2)
    claim = total_of([of("early", run=run), of("late", "early", run=run)])
    assert (claim.epsilon, claim.delta) == (run.epsilon, delta)
    at = claim.epsilon if epsilon is None else epsilon
    one, other = ((2, 1), (1, 2)), ((1, 2), (2, 1))
    month = max(
        lost(two_labels(one, queries), two_labels(other, queries), at)
        for queries in itertools.product((0, 1), repeat=2)
    )
    assert epsilon is not None or month <= delta
    early, late, both = (
        max(
            lost(history(one, one, plan), history(*changed, plan), at)
            for plan in itertools.product((0, 1), repeat=4)
        )
        for changed in ((other, one), (one, other), (other, other))
    )
    assert max(early, late) <= month * (1.0 + 1e-12)
    assert epsilon is None or both > 1.1 * month
