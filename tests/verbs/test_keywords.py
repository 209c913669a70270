"""Every keyword has one home: its name, its type and its sentence, in every verb that takes it."""

from __future__ import annotations

import csv
import inspect
import typing

import numpy as np
import pytest
from pate_cli.verbs.keywords import GROUPS, ParameterWords, ReadingWords, VotesWords

import pate_cli as pate
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.gone import GONE
from pate_cli.mechanisms import CLASSES, mechanism_class
from slices import some

VERBS = (
    pate.aggregate,
    pate.quote,
    pate.release,
    pate.cost,
    pate.compare,
    pate.smooth_sensitivity,
    pate.tune,
)
LOOKING = [verb for verb in VERBS if verb is not pate.release]
VOTES = np.array([[30, 10], [25, 15], [5, 35]])
GIVEN = {"seed": 1, "sigma2": 15.0}


def words_of(verb):
    (group,) = typing.get_args(typing.get_type_hints(verb)["asked"])
    return typing.get_type_hints(group)


def own(verb):
    return {
        name
        for name, parameter in inspect.signature(verb).parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD
    }


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_help_has_a_sentence_for_every_keyword(verb):
    told = inspect.getdoc(verb)
    for name in {*own(verb), *words_of(verb)}:
        assert any(
            name in line.partition(":")[0].replace(" ", "").split(",")
            for line in told.splitlines()
            if line.startswith("    ") and ": " in line
        ), name
    assert max(map(len, told.splitlines())) <= 100


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_signatures_are_short_and_say_nothing_twice(verb):
    assert len(inspect.signature(verb).parameters) <= 22
    assert not own(verb) & set(words_of(verb))


def test_every_keyword_has_one_home():
    homes = [name for group in GROUPS for name in group.__annotations__]
    assert sorted(homes) == sorted(set(homes))
    for verb in VERBS:
        assert set(words_of(verb)) <= set(homes)


def test_whatever_a_mechanism_takes_has_a_home():
    known = {name for name in CLASSES for name in mechanism_class(name).options()}
    assert known == set(ParameterWords.__annotations__)


@pytest.mark.parametrize("verb", LOOKING, ids=lambda verb: verb.__name__)
def test_every_verb_takes_every_way_of_reading(verb):
    assert (
        set(VotesWords.__annotations__) < set(ReadingWords.__annotations__) <= set(words_of(verb))
    )


@pytest.mark.parametrize("verb", some(LOOKING, 3), ids=lambda verb: verb.__name__)
def test_votes_in_words_are_read_by_every_verb(verb, tmp_path):
    votes, names = tmp_path / "votes.csv", ["no", "yes"]
    teachers = [f"teacher_{j}" for j in range(20)]
    with votes.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", *teachers])
        writer.writerows([f"q{i}", *(["yes"] * (12 + i) + ["no"] * (8 - i))] for i in range(4))
    given = {"label_names": names, "id_column": "row", "layout": "labels"}
    if verb is pate.tune:
        values = {"threshold": 12, "sigma1": 8, "sigma2": 4}
        verb(votes, answers=1, min_agreement=0.5, **values, **given)
    else:
        verb(votes, **given)
    groups = tmp_path / "groups.csv"
    groups.write_text("teacher_id,group,weight\n" + "".join(f"{t},all,1\n" for t in teachers))
    with pytest.raises(pate.PateError, match="column"):
        verb(votes, **given | {"id_column": "nowhere", "groups": groups})


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
@pytest.mark.parametrize(("wrong", "right"), [("delt", "delta"), ("sed", "seed")])
def test_a_misspelt_keyword_gets_the_nearest_right_one(verb, wrong, right):
    if right not in words_of(verb):
        return
    with pytest.raises(UsageError) as refused:
        verb(VOTES, **{wrong: 1})
    assert str(refused.value) == f"{verb.__name__} takes no `{wrong}`; did you mean `{right}`?"


def test_a_keyword_near_none_is_refused_as_well():
    with pytest.raises(UsageError) as refused:
        pate.aggregate(VOTES, xyzzy=1)
    assert str(refused.value) == "aggregate takes no `xyzzy`"


@pytest.mark.parametrize("name", GONE)
def test_a_keyword_that_is_gone_says_what_to_use_instead(name):
    for verb in VERBS:
        with pytest.raises(UsageError) as refused:
            verb(VOTES, **{name: 1})
        assert str(refused.value) == f"`{name}` is gone: {GONE[name]}"


def test_a_word_that_is_gone_says_what_to_use_instead():
    with pytest.raises(ParameterError) as refused:
        pate.aggregate(VOTES, "permute-and-flip")
    assert str(refused.value) == (
        "`mechanism` permute-and-flip is gone: use lnmax, which has the same epsilon an answer"
    )


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("delta", "1e-5", "a number"),
        ("delta", True, "a number"),
        ("delta", None, "a number"),
        ("order", "8", "a number or None"),
        ("classes", 2.0, "a whole number or None"),
        ("workers", True, "a whole number"),
        ("seed", 1.5, "a whole number or None"),
        ("keep_ledger", 1, "True or False"),
        ("engine", None, "text"),
        ("confidence", [0.9], "a number or None"),
    ],
)
def test_a_wrong_type_is_refused_in_a_line(name, value, wanted):
    with pytest.raises(ParameterError) as refused:
        pate.aggregate(VOTES, **{name: value})
    assert str(refused.value) == f"`{name}` must be {wanted}, got {value!r}"


@pytest.mark.parametrize("word", ["layout", "mechanism", "release", "analysis", "bound"])
@pytest.mark.parametrize("value", [3, "nothing", 2.5])
def test_another_word_is_refused_with_the_choices(word, value):
    with pytest.raises(ParameterError, match=f"`{word}` must be one of"):
        pate.aggregate(VOTES, **{word: value})


def test_numbers_of_numpy_are_numbers():
    given = {"delta": np.float64(1e-5), "max_queries": np.int64(2), "seed": np.int64(1)}
    assert pate.aggregate(VOTES, "gnmax", layout="counts", **given).labels.asked == 2


def test_none_of_a_mechanism_is_its_default():
    one, other = (
        pate.aggregate(VOTES, "gnmax", layout="counts", seed=1, **given)
        for given in ({}, {"sigma2": None, "threshold": None})
    )
    assert one.report == other.report
