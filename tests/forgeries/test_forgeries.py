"""No field of a report can be changed unseen: it is computed again, compared, or named."""

import dataclasses
import json
from dataclasses import replace

import pytest

from forgeries.cases import KINDS, case
from forgeries.forge import Checked, consistent, ending, forged, kind_of_check, leaves, put
from pate_cli.disclosure.guarantee import report_of
from pate_cli.disclosure.report import ReportFacts, parse_report
from pate_cli.disclosure.runs import Spent
from pate_cli.disclosure.verification import PROMISE
from pate_cli.verbs.signatures import verify
from reports import costs_once
from slices import EVERY

ALL = pytest.mark.parametrize("kind", KINDS)


def test_every_fact_declares_how_it_is_checked():
    """A new fact that declares nothing fails here; whatever is no fact is computed again."""
    declared = {each.metadata.get("checked") for each in dataclasses.fields(ReportFacts)}
    assert declared == set(Checked) - {Checked.COMPUTED}


@ALL
def test_a_report_holds_with_all_that_goes_with_it(kind):
    found = ending(case(kind).data, case(kind), given="all")
    assert not found.caught, found
    assert Checked.RECORD not in found.named
    assert (Checked.LABELS in found.named) is False


@ALL
def test_a_forged_leaf_is_caught_or_named(kind):
    """Singly and consistently; alone, with labels that carry no settings, and with all there is.

    With all there is nothing is left to a forger but what is drawn at random, and what others
    state.
    """
    open_to_all = {Checked.FREE, Checked.SANITIZING, Checked.EXTERNAL, Checked.RELEASE_TEST}
    with costs_once():
        for one in forged(case(kind), given=("alone", "csv", "all"), every=1 if EVERY else 59):
            assert one.right, one
            if one.given == "all":
                assert one.ending.caught or kind_of_check(one.path) in open_to_all, one


def test_noise_that_was_never_drawn_is_caught_by_parquet_and_named_beside_csv():
    """A hundred times the noise, priced anew: a CSV cannot tell."""
    known, path = case("worst case"), ("rounds", 0, "mechanism", "sigma2")
    cheap = consistent(put(known.data, path, 800.0))
    assert cheap["epsilon"] < 0.5 * known.data["epsilon"]
    assert not ending(cheap, known, given="csv").caught
    assert Checked.LABELS in ending(cheap, known, given="csv").named
    assert ending(cheap, known, given="all").caught


def test_names_of_classes_cannot_be_permuted_beside_parquet():
    known = case("worst case")
    turned = put(known.data, ("label_names",), ["bee", "ant", "cow"])
    assert ending(turned, known, given="all").by == Checked.LABELS
    assert Checked.LABELS in ending(turned, known, given="csv").named


def test_runs_cut_short_are_caught_by_the_record_and_named_without():
    known = case("worst case")
    spent = known.data["spent"]
    for left in range(len(spent["runs"])):
        runs = spent["runs"][:left] + spent["runs"][left + 1 :]
        data = put(known.data, ("spent", "runs"), runs)
        assert ending(data, known, given="alone").caught
        assert ending(data, known, given="all").caught


def test_a_release_cannot_keep_a_round_quiet():
    """Of fewer rounds it has a smaller worst case, and the record knows what was drawn from."""
    known = case("release of several")
    cut = consistent(put(known.data, ("rounds",), known.data["rounds"][:1]))
    assert cut["data_independent"]["epsilon"] < known.data["data_independent"]["epsilon"]
    assert ending(cut, known, given="all").by == Checked.RECORD
    assert Checked.RECORD in ending(cut, known, given="alone").named


def test_the_own_run_of_a_release_draws_as_the_report_says():
    """With more noise among the runs than in the report, the total would be smaller."""
    data = case("release of several").data
    report = parse_report(json.dumps(data).encode())
    runs = [
        run if run.id != report.run else replace(run, draw=replace(run.draw, sigma=100.0)).priced
        for run in report.spent.runs
    ]
    cheaper = report_of(replace(report.facts, spent=Spent.of(runs)))
    assert cheaper.spent.epsilon < report.spent.epsilon - 0.1
    assert verify(cheaper, with_dp_accounting=False).failed == [Checked.COMPUTED, PROMISE]


def test_all_leaves_are_reached():
    """The tool changes numbers, words, lists and what is not there."""
    kinds = {type(value) for kind in KINDS for _, value in leaves(case(kind).data)}
    assert kinds == {bool, int, float, str, list, type(None)}
