"""`verify`: what is right holds, and whatever is altered fails, but for what nobody can check."""

from __future__ import annotations

import copy
import dataclasses
import functools
import json

import numpy as np
import pytest

import reports
from pate_cli.core.errors import ReportError, VoteError
from pate_cli.core.words import LabelFormat, LabelsAs
from pate_cli.labels.forms import LabelForm, formats_with
from pate_cli.labels.labels import write_labels
from pate_cli.verbs.verify import (
    FAILED,
    FAILS,
    HOLDS,
    HOLDS_BUT,
    OK,
    OPEN,
    SKIPPED,
    verify,
)
from slices import some

HERE = functools.partial(verify, with_dp_accounting=False)


@pytest.fixture(autouse=True, scope="module")
def _costs_once():
    with reports.costs_once():
        yield


def names(found, outcome):
    return {check.name for check in found.checks if check.outcome == outcome}


def failed(found):
    return names(found, FAILED)


LEFT = {
    "upper": {"draw"},
    "rounds": {"draw"},
    "draws": {"draw"},
    "passed": {"coin"},
    "refused": {"coin"},
    "sharp": {"coin"},
    "prior": {"guesses"},
    "prior, confident": {"draw", "guesses"},
    "prior, passed": {"coin", "guesses"},
    "priors": {"guesses"},
    "kept, upper": {"draw"},
    "account": {"external parts"},
}


@pytest.mark.parametrize(
    "kind", some([kind for kind in reports.KINDS if kind not in reports.NO_PROMISE], 3)
)
def test_every_report_holds_but_for_what_nobody_can_check(kind):
    found = verify(reports.made(kind)[0].to_json().encode())
    left = LEFT.get(kind, set())
    assert names(found, OPEN) == left, found.checks
    assert found.verdict == (HOLDS_BUT if left else HOLDS)
    assert found.holds is not bool(left)
    told = found.to_dict()
    assert (told["failed"], set(told["not_checkable"])) == ([], left)


@pytest.mark.parametrize("kind", reports.NO_PROMISE)
def test_a_report_that_promises_nothing_does_not_hold(kind):
    """Its numbers are right all the same."""
    found = HERE(reports.made(kind)[0].to_json().encode())
    assert (found.verdict, failed(found), found.holds) == (FAILS, {"promise"}, False)
    assert found.headline() == "does not hold: promise"


@pytest.mark.parametrize("kind", some(reports.KINDS, 3))
def test_what_is_looked_at(kind):
    report, _ = reports.made(kind)
    found = verify(report.to_json().encode())
    outcomes = {check.name: check.outcome for check in found.checks}
    public = ("schema", "epsilon for all votes", "release", "textbook", "headline", "facts")
    if kind == "account":  # of tested runs no textbook says anything
        public = tuple(name for name in public if name != "textbook")
    assert [outcomes[name] for name in public] == [OK] * len(public)
    library = {name: each for name, each in outcomes.items() if name.startswith("dp-accounting")}
    assert set(library.values()) <= {OK, SKIPPED}
    drawn = report.sanitized.epsilon is not None
    assert outcomes.get("draw") == (OPEN if drawn else None)
    tested = ("passed", "refused", "sharp", "met", "prior, passed")
    assert ("target" in outcomes) == (kind in tested)
    assert outcomes.get("prior") == (OK if report.prior else None)
    assert ("groups" in outcomes) == bool(report.groups)


def agrees(data):
    """Whether these facts are a report that agrees with itself."""
    try:
        return failed(HERE(json.dumps(data).encode())) <= {"promise"}
    except ReportError:
        return False


def leaves(value, at=()):
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in items:
            yield from leaves(inner, (*at, name))
    else:
        yield at, value


def others(value):
    match value:
        case None:
            return [2.5, "x"]
        case bool():
            return [not value]
        case int():
            return [value + 1, value - 1]
        case float():
            near = [value * 1.001 + 1e-4, value * 0.999]
            return [other for other in near if other != value]
        case _:
            return [f"{value}x", value[:-1]]


# What may be anything as far as a report alone can tell, and why.
FREE = {
    "schema_version": "an earlier version in our words says what it says",
    "tool.version": "the words are those of the schema's version",
    "label_names": "names say nothing about numbers; the labels have them, too",
    "groups.0.group": "the same",
    "groups.1.group": "the same",
    "groups.0.teachers": "how many teachers share the votes of a group",
}
FREE_OF = {
    # Drawn with noise. What the headline allows: the worst case is below it.
    "sanitized.epsilon": ("upper", "paper", "rounds", "draws"),
    # The other end of the coin.
    "tested.refusal_epsilon": ("passed",),
    "tested.target": ("refused",),
    # Rounds need not be of the same ensemble, and what they cost does not depend on this.
    "rounds.0.mechanism.teachers": ("rounds", "draws"),
    "rounds.1.mechanism.teachers": ("rounds", "draws"),
    "rounds.0.mechanism.classes": ("rounds", "draws"),
    "rounds.1.mechanism.classes": ("rounds", "draws"),
}


def free(path, kind):
    known = any(path == name or path.startswith(f"{name}.") for name in FREE)
    return known or kind in FREE_OF.get(path, ())


# Which leaves of which reports: what costs most to charge again is altered in a few places.
ALL = ("",)
NOT_CHARGED = (
    "epsilon", "delta", "private", "sound", "analysis", "guarantee", "sanitized.r", "sanitized.e",
    "data_independent", "crosscheck", "tested", "spent", "groups", "answers", "warnings", "label",
)  # fmt: skip
ALTERED = {
    **dict.fromkeys(("stability", "lnmax", "groups, stability"), ALL),
    "sparse-vector": ALL,
    **dict.fromkeys(("refused", "passed"), NOT_CHARGED),
    "prior": ("prior", "rounds", "guarantee", "epsilon", "data_independent"),
    **dict.fromkeys(("no record", "groups", "several labels"), NOT_CHARGED),
    "confident": ("epsilon", "data_independent", "rounds"),
    "upper": ("epsilon", "sanitized"),
    "draws": ("earlier_draws.1",),
}


@pytest.mark.parametrize("kind", some(ALTERED, 3))
def test_whatever_is_altered_fails(kind):
    report, _ = reports.made(kind)
    data = report.to_dict()
    unseen = []
    for turn, (at, value) in enumerate(leaves(json.loads(report.to_json()))):
        path = ".".join(map(str, at))
        if free(path, kind) or not path.startswith(ALTERED[kind]):
            continue
        found = others(value)
        for other in found if ALTERED[kind] is ALL else [found[turn % len(found)]]:
            altered = copy.deepcopy(data)
            *way, last = at
            functools.reduce(lambda inside, name: inside[name], way, altered)[last] = other
            if agrees(altered):
                unseen.append((path, value, other))
    assert unseen == []


@pytest.mark.parametrize("kind", ["stability", "passed", "groups", "draws"])
def test_an_entry_left_out_of_a_list_fails(kind):
    data = reports.made(kind)[0].to_dict()
    lists = [
        ["rounds"], ["warnings"], ["groups"], ["earlier_draws"], ["guarantee", "statements"],
        ["crosscheck", "steps"], ["tested", "orders"],
    ]  # fmt: skip
    for way in lists:
        altered = copy.deepcopy(data)
        try:
            inside = functools.reduce(lambda place, name: place[name], way, altered)
            inside.pop()
        except (KeyError, TypeError, IndexError):
            continue
        assert not agrees(altered), way


def test_one_change_is_told_where_it_is():
    data = reports.made("lnmax")[0].to_dict()
    cases = {
        "epsilon for all votes": ("data_independent", "labels_epsilon"),
        "textbook": ("crosscheck", "advanced_epsilon"),
        "guarantee": ("guarantee", "summary"),
    }
    for name, (field, inner) in cases.items():
        altered = copy.deepcopy(data)
        value = altered[field][inner]
        altered[field][inner] = f"{value}!" if isinstance(value, str) else value / 2.0
        found = HERE(json.dumps(altered).encode())
        assert failed(found) == {name}
        (check,) = (check for check in found.checks if check.outcome == FAILED)
        assert check.detail.startswith(f"{field}.{inner} is ")


def test_another_library_finds_a_textbook_number_that_is_too_small():
    for kind, number in (("gnmax", "rdp_epsilon"), ("gnmax", "exact_epsilon"),
                         ("stability", "basic_epsilon")):  # fmt: skip
        report, _ = reports.made(kind)
        value = getattr(report.crosscheck, number)
        wrong = dataclasses.replace(report.crosscheck, **{number: value / 3.0})
        found = verify(dataclasses.replace(report, crosscheck=wrong))
        assert any(name.startswith("dp-accounting") for name in failed(found)), number


def test_more_teachers_than_can_be_charged_again_are_refused():
    data = copy.deepcopy(reports.made("gnmax")[0].to_dict())
    for facts in (data["mechanism"], data["rounds"][0]["mechanism"]):
        facts["teachers"] = 10**9
    with pytest.raises(ReportError, match="teachers are not computed again"):
        HERE(json.dumps(data).encode())


@pytest.mark.parametrize("sigma", ["sigma1", "sigma2"])
def test_noise_too_small_to_be_charged_again_is_refused(sigma):
    """The tables grow with votes in units of it."""
    data = copy.deepcopy(reports.made("confident")[0].to_dict())
    for facts in (data["mechanism"], data["rounds"][0]["mechanism"]):
        facts[sigma] = 1e-9
    with pytest.raises(ReportError, match=f"a {sigma} of 1e-09 votes among 60 teachers"):
        HERE(json.dumps(data).encode())


# ------------------------------------------------------------------------------------- the labels

FORMATS = list(LabelFormat)
TELLING = formats_with("metadata")
OF_LABELS = (
    "gnmax", "confident", "stability", "interactive", "names", "several labels", "prior",
)  # fmt: skip


@pytest.mark.parametrize("label_format", FORMATS)
@pytest.mark.parametrize("kind", some(OF_LABELS, 3))
def test_a_report_holds_with_its_labels_and_with_no_others(kind, label_format, tmp_path):
    report, labels = reports.made(kind)
    path = tmp_path / f"labels.{label_format}"
    labels.save(path)
    signed = report.with_labels(path)
    assert signed.labels.format is label_format
    found = HERE(signed, path)
    assert not failed(found), found.checks
    outcomes = {check.name: check.outcome for check in found.checks}
    assert outcomes["labels"] == outcomes["labels by count"] == OK
    assert outcomes["labels by parameters"] == (OK if label_format in TELLING else SKIPPED)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    assert "labels" in failed(HERE(signed, path))


@pytest.mark.parametrize("as_", ["lists", "pairs"])
@pytest.mark.parametrize("label_format", ["parquet", "jsonl", "arrow"])
def test_labels_in_lists_and_in_pairs(label_format, as_, tmp_path):
    report, labels = reports.made("several labels")
    path = tmp_path / f"labels.{label_format}"
    with path.open("wb") as file:
        form = LabelForm(LabelFormat(label_format), LabelsAs(as_))
        write_labels([labels], file, form, rows=len(labels))
    found = HERE(report.with_labels(path), path)
    assert not failed(found), found.checks
    wrong = dataclasses.replace(report, answers=report.answers + 1)
    assert "labels by count" in failed(HERE(wrong.with_labels(path), path))


@pytest.mark.parametrize("label_format", FORMATS)
def test_labels_of_another_run_have_other_counts(label_format, tmp_path):
    """Even where a hash was made for them."""
    report, _ = reports.made("stability")
    _, labels = reports.made("sparse-vector")
    path = tmp_path / f"labels.{label_format}"
    labels.save(path)
    inside = {"labels by count", *(["labels by parameters"] * (label_format in TELLING))}
    found = HERE(report.with_labels(path), path)
    assert failed(found) == inside
    few = dataclasses.replace(labels, ids=labels.ids[:9], labels=labels.labels[:9],
                              sources=labels.source_codes[:9])  # fmt: skip
    few.save(path, force=True)
    assert failed(HERE(report.with_labels(path), path)) == inside


def test_names_and_parameters_stand_in_the_labels_too(tmp_path):
    report, labels = reports.made("names")
    labels.save(tmp_path / "labels.parquet")
    signed = report.with_labels(tmp_path / "labels.parquet")
    other = dataclasses.replace(signed, label_names=("ant", "cow", "bee"))
    found = HERE(other, tmp_path / "labels.parquet")
    assert failed(found) == {"labels by parameters"}
    assert found.checks[-2].detail == "their metadata give another label_names"


def test_what_is_not_there_or_no_labels(tmp_path):
    report, labels = reports.made("gnmax")
    labels.save(tmp_path / "labels.csv")
    signed = report.with_labels(tmp_path / "labels.csv")
    with pytest.raises(VoteError, match="cannot read"):
        HERE(signed, tmp_path / "none.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(VoteError, match=r"cannot read .*: Is a directory"):
        HERE(signed, tmp_path / "empty")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    found = HERE(report.with_labels(tmp_path / "other.csv"), tmp_path / "other.csv")
    assert failed(found) == {"labels by count"}
    told = {check.name: check.detail for check in HERE(signed).checks}
    assert told["labels"] == "no labels were given"


@pytest.mark.parametrize("label_format", [LabelFormat.CSV, LabelFormat.JSONL])
def test_ids_with_commas_quotes_and_lines_are_counted(label_format, tmp_path):
    report, labels = reports.made("gnmax")
    texts = np.array([f'a,"b"\n{place}' for place in range(len(labels.ids))])
    path = tmp_path / f"labels.{label_format}"
    dataclasses.replace(labels, ids=texts).save(path)
    found = HERE(report.with_labels(path), path)
    assert not failed(found), found.checks


@pytest.mark.parametrize("label_format", FORMATS)
@pytest.mark.parametrize("kind", ["gnmax", "several labels"])
def test_labels_of_which_none_is_given(label_format, kind, tmp_path):
    """Then every list is empty, and every column holds one value."""
    report, labels = reports.made(kind)
    silent = dataclasses.replace(
        labels,
        labels=np.full_like(labels.labels, -1),
        sources=np.full_like(labels.source_codes, 2),
    )
    path = tmp_path / f"labels.{label_format}"
    silent.save(path)
    rounds = ({**report.rounds[0], "answers": 0},)
    none = dataclasses.replace(report, answers=0, rounds=rounds).with_labels(path)
    found = HERE(none, path)
    assert "labels by count" not in failed(found), found.checks
