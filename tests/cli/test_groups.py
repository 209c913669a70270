"""`--groups`: one epsilon per group of teachers, in reports, quotes, ledgers and refusals."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest

import pate_cli as pate_library
from pate_cli.disclosure.report import report_schema
from pate_cli.verbs.signatures import quote

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
