"""`--groups`: one epsilon per group of teachers, in reports, quotes, ledgers and refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import pate_cli as pate_library
from pate_cli.core.errors import LedgerError, ParameterError, UsageError
from pate_cli.core.words import MechanismName
from pate_cli.disclosure.guarantee import adjacency
from pate_cli.disclosure.ledger import Ledger
from pate_cli.disclosure.report import report_schema
from pate_cli.mechanisms import MechanismChoice
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.verbs.signatures import quote
from pate_cli.votes.groups import TeacherGroups
from pate_cli.votes.opening import open_votes
from refusals import refusal
from runs import round_of
from sealing import sealed

HEAVY, LIGHT, WEIGHT = 10, 30, 4


@pytest.fixture
def labels(tmp_path):
    random = np.random.default_rng(5)
    right = random.integers(0, 4, size=(60, 1))
    guess = random.integers(0, 4, size=(60, HEAVY + LIGHT))
    path = tmp_path / "labels.npy"
    np.save(path, np.where(random.random(guess.shape) < 0.9, right, guess))
    return path


@pytest.fixture
def groups(tmp_path):
    path = tmp_path / "groups.csv"
    rows = [f"open,{WEIGHT}"] * HEAVY + ["strict,1"] * LIGHT
    path.write_text("\n".join(["group,weight", *rows]) + "\n")
    return path


@pytest.fixture
def words(labels, groups):
    return [
        labels, "--groups", groups, "--layout", "labels", "--classes", 4, "--delta", 1e-3,
        "--max-epsilon", 1000,
    ]  # fmt: skip


def reported(result):
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    jsonschema.Draft202012Validator(report_schema()).validate(report)
    assert max(own["epsilon"] for own in report["groups"]) == report["epsilon"]
    assert {own["delta"] for own in report["groups"]} == {report["delta"]}
    return report


def test_each_group_has_its_epsilon_and_the_headline_is_the_largest(pate, words):
    result = pate("aggregate", *words)
    report = reported(result)
    heavy, light = report["groups"]
    assert (heavy["group"], heavy["teachers"], heavy["total_weight"]) == ("open", 10, 40)
    assert (light["group"], light["votes_per_record"]) == ("strict", 1)
    assert report["mechanism"]["teachers"] == HEAVY * WEIGHT + LIGHT
    assert report["mechanism"]["teachers_per_record"] == heavy["votes_per_record"] == WEIGHT
    assert report["mechanism"]["votes_together"] is True
    statements = {one["id"]: one for one in report["statements"]}
    assert statements["by-group"]["holds"] is statements["all-votes"]["holds"] is True
    assert "teachers of one training record, all of one group" in report["adjacency"]
    # A group's is that of a run in which every record moves as many votes as one of its own.
    for own in report["groups"][1:]:
        mechanism = {k: v for k, v in report["mechanism"].items() if k != "name"}
        mechanism["teachers_per_record"] = own["votes_per_record"]
        counts = np.array([[30, 30, 10, 0]] * 60)
        alone = quote(counts, pate_library.ConfidentGNMax(**mechanism), layout="counts", delta=1e-3)
        assert own["epsilon"] == alone.epsilon
    assert light["epsilon"] < 0.4 * heavy["epsilon"]


def test_a_dry_run_quotes_what_a_run_reports(pate, words):
    words += ["--mechanism", "lnmax"]
    price = json.loads(pate("aggregate", *words, "--dry-run").stdout)
    assert price["groups"] == reported(pate("aggregate", *words))["groups"]
    drawn = ["--release", "upper", "--order", 8, "-o", "l.csv"]
    upper = json.loads(pate("aggregate", *words, "--dry-run", *drawn).stdout)
    for dear, plain in zip(upper["groups"], price["groups"], strict=True):
        assert dear["epsilon"] > plain["epsilon"]  # the draw is paid for in full
    assert upper["groups"][0]["epsilon"] == upper["epsilon"]


def test_a_ledger_keeps_the_groups_and_a_release_gives_their_epsilons(pate, words, folder):
    more = ["--mechanism", "lnmax", "--order", 8, "--ledger"]
    reported(pate("aggregate", *words, *more, "one.ledger", "--release", "none"))
    reported(pate("aggregate", *words, *more, "two.ledger", "-o", "l.csv", "--release", "none"))
    ledger = Ledger.read("one.ledger")
    assert [group.group for group in ledger.rounds[0].groups] == ["open", "strict"]
    both = reported(pate("release", "one.ledger", "two.ledger", "--release", "none"))
    one = reported(pate("release", "one.ledger", "--release", "none"))
    for alone, added in zip(one["groups"], both["groups"], strict=True):
        assert alone["epsilon"] < added["epsilon"] < 2.0 * alone["epsilon"]
    drawn = reported(pate("release", "one.ledger", "--release", "upper"))
    holds = {each["id"]: each["holds"] for each in drawn["statements"]}
    assert holds["by-group"] is True
    for sanitized, free in zip(drawn["groups"], one["groups"], strict=True):
        assert sanitized["epsilon"] <= drawn["epsilon"]
        # Below the headline only by a worst case in which the draw is counted.
        assert sanitized["epsilon"] in (
            drawn["epsilon"],
            max(sanitized["epsilon"], free["epsilon"]),
        )


NO_NEIGHBOURS = "runs charged for other --teachers-per-record or --groups have no common neighbours"


def test_runs_of_different_groups_have_no_common_account(pate, words, labels, folder):
    more = ["--mechanism", "lnmax", "--order", 8, "--release", "none", "--ledger"]
    assert pate("aggregate", *words, *more, "one.ledger").exit_code == 0
    rows = ["shut,4", *["open,4"] * (HEAVY - 1), *["strict,1"] * LIGHT]
    Path("other.csv").write_text("\n".join(["group,weight", *rows]))
    words[2] = "other.csv"
    two = ["aggregate", *words, *more, "two.ledger", "-o", "l.csv"]
    for record in ([], ["--spend", "s.json"]):
        result = pate(*two, *record)
        assert result.exit_code == LedgerError.exit_code
        assert NO_NEIGHBOURS in result.stderr
    assert not Path("two.ledger").exists()
    assert not Path("s.json").exists()
    assert pate(*two, "--no-record").exit_code == 0
    result = pate("release", "one.ledger", "two.ledger", "--release", "none")
    assert result.exit_code == LedgerError.exit_code
    assert NO_NEIGHBOURS in result.stderr
    plain = [labels, "--layout", "labels", "--classes", 4, "--delta", 1e-3, "--max-epsilon", 1000]
    three = ["aggregate", *plain, *more, "three.ledger", "-o", "m.csv"]
    assert pate(*three).exit_code == LedgerError.exit_code
    assert pate(*three, "--no-record").exit_code == 0
    assert pate("release", "one.ledger", "three.ledger").exit_code == LedgerError.exit_code


CONTRADICT = ": group 'open': its numbers contradict each other"
DAMAGE = {
    "more votes than weights": (lambda group: group.update(votes_per_record=5), CONTRADICT),
    "fewer votes than one teacher has": (
        lambda group: group.update(votes_per_record=3), CONTRADICT,
    ),
    "a count that is none": (
        lambda group: group.update(teachers=True), ".teachers must be a whole number",
    ),
    "a field too many": (
        lambda group: group.update(votes=[1, 2]), " has a field 'votes' that is not known",
    ),
    "a field too few": (
        lambda group: group.pop("total_weight"), " has no field 'total_weight'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_groups_of_a_ledger_are_refused(damage):
    public = TeacherGroups(("open", "open", "strict"), weights=(4, 3, 1)).public
    mechanism = GNMax(8, 3, sigma2=5.0, teachers_per_record=4, votes_together=True)
    done = round_of(mechanism, queries=9, groups=public)
    one = np.ones(1)
    ledger = Ledger(
        orders=np.array([8.0]), rdp=one, ceiling=one,
        sensitivity=one[None], rounds=(done,),
    )  # fmt: skip
    assert Ledger.from_json(ledger.to_json()).rounds == (done,)
    data = json.loads(ledger.to_json())
    change, fault = DAMAGE[damage]
    change(data["rounds"][0]["groups"][0])
    text = refusal(LedgerError, Ledger.from_json, sealed(data))
    assert text == (f"the ledger is damaged: rounds.0.groups.0{fault}; restore it from a copy")


def test_a_round_is_charged_for_the_group_that_moves_most():
    public = TeacherGroups(("open", "strict"), weights=(4, 1)).public
    mechanism = GNMax(5, 3, sigma2=5.0, teachers_per_record=3)
    assert refusal(ParameterError, round_of, mechanism, queries=9, groups=public) == (
        "a record of its groups moves up to 4 votes, it was charged for 3"
    )


def test_weights_without_groups_are_no_shared_records():
    """Of a mechanism for votes that move together, on histograms that were weighted beforehand."""
    mechanism = GNMax(8, 3, sigma2=5.0, teachers_per_record=4, votes_together=True)
    said = adjacency([round_of(mechanism, queries=9)])
    assert "at most one teacher, whose vote counts up to 4 times: on every query" in said
    apart = round_of(replace(mechanism, votes_together=False), queries=9)
    assert "4 teachers, because one training record may have reached so many" in adjacency([apart])


def test_a_tuned_line_says_the_groups_as_well(pate, words, votes):
    words = [*words[:-4], "--max-queries", 20, "--target-epsilon", 40, "--threshold", 40]
    words += ["--sigma1", 30, "--sigma2", "12"]
    result = pate("tune", *words, "--json")
    assert result.exit_code == 0, result.stderr
    assert f"--groups {words[2]}" in json.loads(result.stdout)["command"]


@pytest.mark.parametrize(("target", "all_alike"), [("3", True), ("90", False)])
def test_a_tested_target_is_every_groups_and_one_met_untested_is_not(
    pate, words, target, all_alike
):
    words += ["--mechanism", "lnmax", "--max-queries", 60, "--min-pass", 0]
    words = ["aggregate", *words, "--target-epsilon", target]
    result = pate(*words)
    report = json.loads(result.stdout)
    assert result.exit_code in (0, 8)
    epsilons = {own["epsilon"] for own in report["groups"]}
    assert max(epsilons) == report["epsilon"]
    assert (len(epsilons) == 1) is all_alike
    quoted = pate(*words, "--dry-run", "-o", "l.csv")
    price = json.loads(quoted.stdout)["groups"]
    assert (len({own["epsilon"] for own in price}) == 1) is all_alike


@pytest.mark.parametrize("mechanism", ["stability", "sparse-vector"])
def test_a_composition_costs_every_group_the_headline(pate, words, mechanism):
    report = reported(pate("aggregate", *words, "--mechanism", mechanism))
    assert [own["epsilon"] for own in report["groups"]] == [report["epsilon"]] * 2
    assert report["mechanism"]["teachers_per_record"] == WEIGHT


def test_what_does_not_go_with_groups(pate, words, votes, groups):
    result = pate("aggregate", *words, "--teachers-per-record", 2)
    assert result.exit_code == 2
    assert "--teachers-per-record does not go with --groups, which say it" in result.stderr
    result = pate("aggregate", *words, "--analysis", "paper")
    assert (result.exit_code, "--analysis paper does not go with --groups" in result.stderr) == (
        2,
        True,
    )
    result = pate("aggregate", votes, "--groups", groups, "--layout", "counts")
    assert result.exit_code == 2
    assert "--groups needs to know who voted" in result.stderr
    before = groups.read_bytes()
    result = pate("aggregate", *words, "-o", groups, "--format", "csv", "--force")
    assert (result.exit_code, groups.read_bytes()) == (2, before)
    groups.write_text("group,weight\na,0\n")
    result = pate("aggregate", *words)
    assert result.exit_code == 3
    assert "row 0 has no weight; give a whole number" in result.stderr


def test_the_verbs_that_measure_charge_the_group_that_moves_most(labels, groups):
    settings = {"layout": "labels", "classes": 4, "groups": groups}
    with open_votes(labels, **settings) as file:
        found = pate_library.cost(file, "gnmax", orders=[4.0])
        assert found.mechanism["teachers_per_record"] == WEIGHT
        tuned = pate_library.tune(file, target_epsilon=40.0, release="none", min_agreement=0.5)
        assert tuned.best.forecast.mechanism.teachers == 70
        assert tuned.best.forecast.mechanism.teachers_per_record == WEIGHT
        assert tuned.best.forecast.mechanism.votes_together
        text = refusal(UsageError, pate_library.tune, file, answers=1, teachers_per_record=2)
        assert text.startswith("`teachers_per_record` does not go with `groups`")


def test_a_mechanism_that_is_given_must_be_for_the_groups(labels, groups):
    with open_votes(labels, layout="labels", classes=4, groups=groups) as file:
        right = {"teachers_per_record": WEIGHT, "votes_together": True}
        price = quote(file, GNMax(70, 4, sigma2=50.0, **right), delta=1e-3)
        choice = MechanismChoice(MechanismName.GNMAX, {"sigma2": 50.0})
        assert quote(file, choice, delta=1e-3) == price
        text = refusal(ParameterError, quote, file, GNMax(70, 4, sigma2=50.0), delta=1e-3)
        assert text.endswith("the votes for 4")
    pairs = TeacherGroups(("a",) * 40, teachers_per_record=(4,) * 40)
    with open_votes(labels, layout="labels", classes=4, groups=pairs) as file:
        together = GNMax(40, 4, sigma2=50.0, **right)
        assert "votes_together True" in refusal(ParameterError, quote, file, together, delta=1e-3)
