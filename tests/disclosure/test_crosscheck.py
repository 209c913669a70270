"""The textbook's numbers beside ours, for every mechanism."""

import pytest

import pate_cli as pate
import reports
from pate_cli.accounting.composition import Bounded, Gaussian
from pate_cli.core.words import Adjacency
from pate_cli.disclosure.facts import textbook_steps
from pate_cli.disclosure.verification import OK
from pate_cli.verbs.signatures import verify
from slices import some

GAUSSIAN = ("confident", "gnmax", "interactive", "paper", "groups", "several labels", "rounds")
PURE = ("lnmax", "stability", "sparse-vector", "groups, stability")


def numbers(found):
    given = (found.rdp_epsilon, found.exact_epsilon, found.basic_epsilon, found.advanced_epsilon)
    return [number for number in given if number is not None]


@pytest.mark.parametrize("kind", some(GAUSSIAN + PURE, 2))
def test_ours_is_never_above_the_textbook(kind):
    report, _ = reports.made(kind)
    found, ours = report.crosscheck, report.data_independent.labels_epsilon
    steps = {type(step) for step in textbook_steps(report.rounds)}
    assert steps == {Gaussian if kind in GAUSSIAN else Bounded}
    assert ours <= min(numbers(found))
    assert all(number == round(number, 4) for number in numbers(found))


def steps_of(kind):
    return textbook_steps(reports.made(kind)[0].rounds)


def test_steps_are_what_was_asked_at_the_caps():
    steps = steps_of("confident")
    assert [step.count for step in steps] == [40, 30]
    sigma1, sigma2 = reports.CONFIDENT["sigma1"], reports.CONFIDENT["sigma2"]
    assert steps[0].noise_multiplier == sigma1
    assert steps[1].noise_multiplier == pytest.approx(sigma2 / 2**0.5, rel=1e-15)
    one, two = steps_of("gnmax"), steps_of("two per record")
    assert two[0].noise_multiplier == one[0].noise_multiplier / 2.0
    (lnmax,) = steps_of("lnmax")
    assert (lnmax.count, lnmax.delta) == (30, 0.0)
    assert len(steps_of("rounds")) == 2


def test_a_quote_has_what_its_report_will_have():
    words = {**reports.SHAPE, **reports.CONFIDENT, "max_answers": 30}
    quoted = pate.quote(reports.votes(), **words)
    assert quoted.crosscheck == reports.made("confident")[0].crosscheck
    composed = pate.quote(reports.votes(), "stability", **reports.SHAPE)
    assert composed.crosscheck == reports.made("stability")[0].crosscheck


def test_other_mechanisms_change_nothing_of_it():
    ledger = pate.aggregate(
        reports.votes(), "gnmax", **reports.SHAPE, keep_ledger=True, seed=1
    ).ledger
    other = pate.Stated(epsilon=0.1, delta=1e-7, adjacency=Adjacency.REPLACE_ONE, covers="a model")
    bare, total = (
        pate.release(ledger, release="none", external=parts, seed=2).report
        for parts in ((), (other,))
    )
    assert total.delta > bare.delta
    assert total.crosscheck == bare.crosscheck
    assert {check.outcome for check in verify(total).checks if "dp-acc" in check.name} <= {OK}
