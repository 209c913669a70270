"""Sessions: what is asked, answered, paid for and kept."""

import copy
import json
import multiprocessing
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

import pate_cli as pate
from pate_cli.core.errors import ParameterError, UnreachableError, UsageError, VoteError
from pate_cli.files import journal
from refusals import refusal
from slices import some

NAMES = ("cat", "dog", "bird")
AGREED = [240, 7, 3]
SMALL = {"teachers": 250, "classes": 3, "mechanism": "gnmax", "sigma2": 40}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def small(**more):
    return pate.Session(**(SMALL | {"target_epsilon": 1.0, "record": "r.json"} | more))


def record():
    return pate.SpendRecord.read("r.json")


@pytest.mark.parametrize(
    ("settings", "asks"),
    some(
        [
            (SMALL, 75),
            (
                SMALL | {"classes": 10, "mechanism": "lnmax", "sigma2": None, "laplace_scale": 40},
                75,
            ),
            ({"teachers": 250, "classes": 10, "mechanism": "confident"}, 158),
            (SMALL | {"teachers_per_record": 2}, 10),
        ],
        2,
    ),
)
def test_a_session_that_is_spent_cost_what_a_file_of_as_many_does(settings, asks):
    """To four decimals, and one query more would cost too much."""
    given = {name: value for name, value in settings.items() if value is not None}
    with pate.Session(**given, target_epsilon=1.0, record="r.json") as session:
        rule = session.rule
        session.ask_all([np.eye(given["classes"], dtype=int)[0] * 250] * rule.asks)
        epsilon = session.report().epsilon
    assert rule.asks >= asks * 0.8
    asked = {name: value for name, value in given.items() if name not in ("teachers", "mechanism")}
    classes = asked.pop("classes")
    for queries, holds in ((rule.asks, True), (rule.asks + 1, False)):
        votes = [[250] + [0] * (classes - 1)] * queries
        price = pate.quote(votes, given["mechanism"], layout="counts", record=False, **asked)
        assert (price.epsilon == epsilon) is holds
        assert (price.epsilon <= 1.0) is holds


def test_a_stream_on_which_teachers_disagree_goes_on_for_longer():
    with pate.Session(teachers=250, classes=10, target_epsilon=1.0, record="r.json") as session:
        rule = session.rule
        split = [25] * 10
        labels = session.answered([split] * (2 * rule.most))
        assert rule.most > 10 * rule.asks
        assert len(labels) > 1.5 * rule.asks
        assert rule.allows(session.asked, session.answers)
        assert not rule.allows(session.asked + 1, session.answers + 1)
        refusal(pate.BudgetSpent, session.ask, split)
        assert pate.verify(session.report()).holds


def test_a_query_of_which_no_vote_is_a_name_is_one_like_others():
    """Also the first: a refusal would tell for nothing that no teacher said a name."""
    given = SMALL | {
        "classes": None,
        "label_names": NAMES,
        "target_epsilon": 1.0,
        "record": "r.json",
    }
    with pate.Session(**given) as session:
        session.ask(["Cat"] * 250, id="q")
        session.ask([None] * 250)
        assert session.asked == 2
    with pate.Session(**given) as session:
        session.ask(["Dog"] * 250)
        assert session.asked == 3


def test_a_guess_votes_too():
    given = {
        "record": False,
        "seed": 1,
        "prior_weight": 200,
        "max_queries": 60,
        "target_epsilon": None,
    }
    with small(**given) as session:
        session.ask_all([pate.Ask([100, 100, 50], prior=1)] * 30)
        session.ask_all([[100, 100, 50]] * 30)
        backed = session.labels.labels[:30]
        report = session.report()
    assert np.all(backed == 1)
    assert set(session.labels.labels[30:].tolist()) != {1}
    assert (report.rounds[0].prior.weight, report.rounds[0].prior.guesses) == (200, 30)


def test_groups_vote_by_their_weights():
    groups = pate.TeacherGroups(groups=["a"] * 3 + ["b"], weights=[1, 1, 1, 5])
    given = {"groups": groups, "classes": 2, "mechanism": "gnmax", "sigma2": "0.5 votes"}
    with pate.Session(**given, max_queries=3, target_epsilon=1e9, record=False, seed=2) as session:
        assert session.ask([0, 0, 0, 1]) == 1
        refusal(VoteError, session.ask, [4, 4])
        report = session.report()
    assert [group.group for group in report.groups] == ["a", "b"]
    assert report.mechanism["teachers_per_record"] == 5


def test_an_id_gets_one_answer_whatever_is_voted_then():
    with small() as session:
        first = session.ask([90, 80, 80], id="q7")
        for votes in ([250, 0, 0], [0, 250, 0], "no votes at all"):
            assert session.ask(votes, id="q7") == first
        assert session.remaining == 74
        both = session.ask_all([pate.Ask([90, 80, 80], id="q8")] * 3)
        assert len(set(both)) == 1
        assert session.remaining == 73
    with small() as again:
        assert again.ask([0, 0, 250], id="q7") == first
        assert again.remaining == 73
        again.answered([AGREED] * 100)
        assert again.ask([0, 0, 250], id="q7") == first


def test_two_ids_that_look_alike_in_saved_labels_are_refused_before_anything_is_paid():
    """A file of labels holds the number 7 and the text 7 as one, and nobody could tell them."""
    with small() as session:
        session.ask_all([pate.Ask(AGREED, id=name) for name in (7, "7 ", -7, "07", "x")])
        for name in ("7", "-7"):
            assert "looks the same in saved labels as" in refusal(
                ParameterError, session.ask, AGREED, id=name
            )
        both = [pate.Ask(AGREED, id="8"), pate.Ask(AGREED, id=8)]
        assert "looks the same in saved labels as '8'" in refusal(
            ParameterError, session.ask_all, both
        )
        assert session.asked == 5
    with small() as again:
        assert "looks the same in saved labels as 7" in refusal(
            ParameterError, again.ask, AGREED, id="7"
        )


def test_queries_without_an_id_are_numbered_by_what_is_free():
    with small() as session:
        for name in (None, 0, None, 2, None):
            session.ask(AGREED, id=name)
        assert session.labels.ids.tolist() == [1, 0, 3, 2, 4]


@pytest.mark.parametrize("name", ["", "a" * 1001, "\ud800", "a\0", True, 1.5, 2**63])
def test_what_is_no_id_is_refused(name):
    with small() as session:
        assert refusal(ParameterError, session.ask, AGREED, id=name).startswith("an id is a text")
        assert session.asked == 0


def asked_so_far():
    return [run.settings.queries for run in record().runs]


def test_what_was_asked_is_on_disk_before_it_is_answered(monkeypatch):
    """The answer is not even named before the lines of all of the batch are synced."""
    seen = []
    real = os.fsync
    monkeypatch.setattr(journal.os, "fsync", lambda file: (seen.extend(asked_so_far()), real(file)))
    with small() as session:
        session.ask_all([AGREED] * 7)
        assert seen[-1] == 7
        session.ask(AGREED)
        assert seen[-1] == 8
        assert asked_so_far() == [8]


def test_other_settings_are_another_session():
    for more in (
        {},
        {"target_epsilon": 1.1},
        {"sigma2": 41},
        {"delta": 1e-6},
        {"label_names": NAMES},
    ):
        with small(**more) as session:
            session.ask(AGREED, id="q")
            assert session.asked == 1
    assert len(record().runs) == 5


def test_a_session_beyond_the_budget_is_not_opened():
    with small(budget=1.5):
        pass
    with small(budget=1.5):  # the same again
        pass
    text = refusal(UnreachableError, small, target_epsilon=0.9, budget=1.5)
    assert text.startswith(
        "the budget is epsilon 1.5 at delta 0.001, and 1 run in r.json spent epsilon 0.9938"
    )
    assert len(record().runs) == 1


def test_a_session_needs_a_record():
    given = SMALL | {"target_epsilon": 1.0}
    assert "name a `record`" in refusal(UsageError, pate.Session, **given)
    with pate.Session(**given, record=False) as session:
        session.ask(AGREED)
        assert session.report().spent is None
    assert list(Path().iterdir()) == []


def test_one_query_that_is_none_stops_the_batch_before_anything_is_spent():
    with small() as session:
        text = refusal(VoteError, session.ask_all, [AGREED, [1, 2], AGREED])
        assert text == "query 1: got 2 counts for 3 classes; give one count per class"
        refusal(VoteError, session.ask, [200, 200, 200], id="q")
        assert session.asked == 0


def asked_elsewhere(session, told):
    told.put(refusal(UsageError, session.ask, AGREED))


def test_a_session_stays_in_its_process():
    with small() as session:
        context = multiprocessing.get_context("fork")
        told = context.Queue()
        child = context.Process(target=asked_elsewhere, args=(session, told))
        child.start()
        assert told.get(timeout=30) == "the session was opened in another process; open it again"
        child.join()
        session.ask(AGREED)
    assert refusal(UsageError, session.ask, AGREED) == "the session was closed; open it again"


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"teachers": None}, UsageError, "give the number of teachers"),
        ({"classes": None}, UsageError, "give the number of classes"),
        ({"target_epsilon": None}, UsageError, "give `target_epsilon` or `max_queries`"),
        ({"target_epsilon": 0.01}, UnreachableError, "one query alone costs"),
        ({"target_epsilon": None, "max_queries": 10**6}, UnreachableError, "hardly anybody"),
        ({"mechanism": "interactive"}, UsageError, "interactive has no sessions"),
        ({"mechanism": "sparse-vector"}, UsageError, "sparse-vector has no sessions"),
        ({"mechanism": "stability", "sigma2": None}, UsageError, "give `max_queries`"),
        ({"threshold": 3}, UsageError, "`threshold` cannot be used with `mechanism` gnmax"),
        ({"label_names": ["a", "b"]}, ParameterError, "`classes` is 3, but `label_names` has 2"),
        ({"normalise": True}, UsageError, "`normalise` needs `label_names`"),
        ({"prior_weight": 1.5}, ParameterError, "`prior_weight` must be a whole"),
        ({"delta": 2.0}, ParameterError, "`delta` must be"),
        ({"mechanism": "open-vocabulary"}, UsageError, "no list of classes"),
        (
            {"mechanism": "open-vocabulary", "classes": None, "aliases": {"kitty": "cat"}},
            UsageError,
            "leave out `aliases`",
        ),
    ],
)
def test_what_cannot_be_opened_is_refused_and_leaves_nothing(given, error, text):
    asked = SMALL | {"target_epsilon": 1.0, "record": "r.json"} | given
    asked = {name: value for name, value in asked.items() if value is not None}
    assert text in refusal(error, pate.Session, **asked)
    assert list(Path().iterdir()) == []


def test_a_guess_needs_votes_of_its_own():
    with small() as session:
        assert "give `prior_weight`" in refusal(UsageError, session.ask, AGREED, prior=1)
    with small(prior_weight=20) as session:
        refusal(ParameterError, session.ask, AGREED, prior=3)
        refusal(ParameterError, session.ask, AGREED, prior="cat")
        assert session.asked == 0


def test_noise_from_a_seed_promises_nothing_and_is_the_same_in_one_sitting_or_two():
    with small(record=False, seed=7) as session:
        at_once = session.ask_all([[90, 80, 80]] * 20)
        assert not session.report().private
    with small(record=False, seed=7) as session:
        in_turn = [*session.ask_all([[90, 80, 80]] * 10), *session.ask_all([[90, 80, 80]] * 10)]
    halves = []
    for _ in range(2):
        with small(seed=7) as session:
            halves += session.ask_all([[90, 80, 80]] * 10)
    assert halves == in_turn == at_once
    assert not record().runs[0].claimed


def test_every_sitting_has_noise_of_its_own():
    """Two sittings of one session, and two sessions, share no draw."""
    found = []
    for place in ("r.json", "r.json", "s.json"):
        with small(record=place) as session:
            found.append(tuple(session.ask_all([[84, 83, 83]] * 30)))
    assert len(set(found)) == 3


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_session_has_no_copy(copied):
    """A copy once had the same key: other queries in it got the same noise as in the original."""
    with small() as session:
        assert "cannot be copied or pickled" in refusal(UsageError, copied, session)


OPEN = {"teachers": 400, "mechanism": "open-vocabulary", "target_epsilon": 3.0, "record": "r.json"}


def test_only_names_that_many_say_come_out():
    votes = ["heron"] * 370 + ["egret"] * 10 + [f"odd {n}" for n in range(20)]
    with pate.Session(**OPEN) as session:
        # One of 50 stays away, or is another, by chance: 50 Φ((186 − 370)/32) = 2e-7.
        found = session.ask_all([votes] * 50)
        labels = session.labels
        report = session.report()
    assert set(found) == {"heron"}
    assert labels.label_names == ("heron",)
    everything = json.dumps(report.to_dict()) + Path("r.json").read_text() + repr(labels.metadata)
    assert "odd" not in everything
    assert "egret" not in everything
    assert "classes" not in report.mechanism
    assert pate.verify(report).holds
    with pate.Session(**OPEN) as session:
        assert session.labels.labels.tolist() == [0] * 50


def test_a_name_that_one_record_brings_in_stays_in():
    with pate.Session(**OPEN) as session:
        rule, mechanism = session.rule, session.mechanism
        assert rule.asks * mechanism.leak <= 0.51 * rule.delta
        found = session.ask_all([["secret"], []] * (rule.asks // 2))
    assert set(found) == {None}
    assert "secret" not in Path("r.json").read_text()


def test_that_teachers_cast_few_votes_is_the_holders_word():
    """A session does not see on which queries a teacher voted."""
    with small(votes_per_teacher=2, max_queries=4, target_epsilon=None) as session:
        session.ask([3, 1, 0])
        report = session.report()
    assert report.rounds[0].voting.claimed
    found = pate.verify(report, with_dp_accounting=False)
    assert "how many votes each teacher had" in found.remark()
