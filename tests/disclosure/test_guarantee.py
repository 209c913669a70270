"""What a report may claim follows from its facts alone, whatever it was written with."""

import dataclasses
from pathlib import Path

import pytest

import pate_cli as pate
import reports
from pate_cli.core.errors import ReportError
from pate_cli.core.words import PublicFact, ReleaseKind
from pate_cli.disclosure import guarantee
from pate_cli.disclosure.guarantee import guesses_of, report_of, sentence
from pate_cli.disclosure.report import read_report
from pate_cli.disclosure.settings import ReleasePlan

DRAWN = ReleasePlan(ReleaseKind.UPPER, 1e-5, 4.0, 0.05, 9.0)

PRIORS = ("prior", "prior, confident", "prior, passed", "priors")
KINDS = {"worst-case", "target", "refusal", "upper", "total"}


def held(report):
    return {one.id for one in report.statements if one.holds}


CLAIMS = {
    "gnmax": {"all-votes"},
    "upper": {"all-votes", "released-epsilon"},
    # The charge of a later round may depend on the labels of an earlier one.
    "rounds": {"all-votes", "released-epsilon"},
    "draws": {"all-votes", "released-epsilon", "total", "sum"},
    "kept": {"all-votes", "total", "sum"},
    "account": {"all-votes", "external", "total", "sum"},
    "passed": {"all-votes", "refusal"},
    "refused": {"all-votes", "refusal"},
    "groups": {"all-votes", "by-group"},
    "prior": {"all-votes"},
    "prior, confident": {"all-votes", "released-epsilon"},
    "priors": {"all-votes"},
    "paper": set(),
    "no record": set(),
    "classes read off": set(),
    "queries read off": set(),
    "seeded": set(),
}


@pytest.mark.parametrize("kind", reports.KINDS)
def test_a_report_is_computed_from_its_facts_and_survives_its_file(kind, tmp_path):
    report, _ = reports.made(kind)
    assert report_of(report.facts) == report
    report.save(tmp_path / "r.json")
    found = read_report(tmp_path / "r.json")
    assert found == report or kind == "paper"  # whose plan is of another class
    assert found.to_json() == report.to_json()
    assert held(report) == CLAIMS.get(kind, held(report))
    # What a prior presupposes is said of every report with one and of no other.
    assert report.summary.endswith(sentence("presupposed")) == (kind in PRIORS)
    assert ("guesses of the prior" in report.adjacency) == (kind in PRIORS)
    assert any(done.prior for done in report.rounds) == (kind in PRIORS)
    if report.crosscheck is not None:
        textbook = [number for number in vars(report.crosscheck).values() if number is not None]
        assert report.data_independent.labels_epsilon <= min(textbook)


def told(report, **changed):
    rounds = tuple(dataclasses.replace(done, **changed) for done in report.rounds)
    return report_of(dataclasses.replace(report.facts, rounds=rounds, spent=None))


@pytest.mark.parametrize(
    "kind", ["upper", "gnmax", "passed", "refused", "groups", "rounds", "prior, confident"]
)
def test_nothing_holds_of_noise_that_can_be_guessed_or_of_what_is_unsettled(kind):
    report, _ = reports.made(kind)
    seeded = told(report, private=False)
    assert held(seeded) == set()
    assert seeded.summary == reports.made("seeded")[0].summary != report.summary
    for fact in PublicFact:
        unsettled = told(report, read_off=(fact,))
        assert held(unsettled) == set()
        assert not unsettled.sound
        assert unsettled.summary == sentence(f"gap-{fact}")
    drawn_from_a_seed = report_of(dataclasses.replace(report.facts, seeded=True))
    assert (drawn_from_a_seed.private, held(drawn_from_a_seed)) == (False, set())
    unrecorded = report_of(dataclasses.replace(report.facts, recorded=False))
    assert (held(unrecorded), unrecorded.summary) == (set(), sentence("gap-draws"))


def test_what_is_no_bound_holds_in_no_reading_and_has_no_parts_that_do():
    other = reports.total(pate.Stated("replace-one", epsilon=0.1, delta=1e-7)).external
    facts = dataclasses.replace(told(reports.made("upper")[0], analysis="paper"), external=other)
    report = report_of(facts.facts)
    assert not report.sound
    assert held(report) == set()


def test_a_total_holds_where_every_run_does():
    kept = reports.made("kept")[0]
    first, *others = kept.spent.runs
    seeded = dataclasses.replace(first.settings, private=False)
    read_off = dataclasses.replace(first.settings, read_off=(PublicFact.CLASSES,))
    for change in ({"promised": False}, {"settings": seeded}, {"settings": read_off}):
        runs = (dataclasses.replace(first, **change), *others)
        spent = dataclasses.replace(kept.spent, runs=runs)
        report = report_of(dataclasses.replace(kept.facts, spent=spent))
        assert held(report) == {"all-votes"}
        assert "All 3 runs" in kept.summary
        assert "runs" not in report.summary


@pytest.mark.parametrize(
    ("kind", "changed", "fault"),
    [
        ("upper", {"sanitized": None}, None),
        ("gnmax", {"sanitized": 1.0}, "sanitized epsilon without parameters"),
        ("passed", {"passed": None}, "release test has no outcome"),
        ("gnmax", {"passed": True}, "an outcome without a release test"),
        ("passed", {"passed": False}, "although the release test failed"),
        ("passed", {"external": (pate.Stated("replace-one", epsilon=0.1, delta=0.0),)}, "RDP cost"),
        ("stability", {"earlier_draws": (DRAWN,)}, "RDP cost"),
        ("gnmax", {"total": True}, "a total, but has no runs"),
        ("account", {"external": ()}, "those of its runs"),
        ("account", {"sanitized": 1.0}, "a draw of its own"),
    ],
)  # fmt: skip
def test_facts_that_contradict_each_other_have_no_report(kind, changed, fault):
    facts = dataclasses.replace(reports.made(kind)[0].facts, **changed)
    if fault is None:  # what a run drew is charged, published or not
        assert report_of(facts).data_independent == reports.made(kind)[0].data_independent
        return
    with pytest.raises(ReportError, match=fault):
        report_of(facts)


VOID = "the guarantee is void if the votes or any private data influenced the guesses"


def test_a_release_lists_the_priors_of_its_rounds():
    report, _ = reports.made("priors")
    listed = {done.prior.weight: done.prior for done in report.rounds if done.prior}
    assert {weight: prior.guesses for weight, prior in listed.items()} == {12: 20, 7: 20}
    assert listed[7].sha256 == listed[12].sha256
    assert list(guesses_of(report.rounds)) == [("prior", f"votes for each of 40 guesses; {VOID}")]
    one, _ = reports._released_priors(12, 0)
    assert list(guesses_of(one.rounds)) == [("prior", f"12 votes for each of 20 guesses; {VOID}")]


def test_a_quote_tells_of_the_prior_as_the_report_will():
    words = {"prior": reports.guesses(), "prior_weight": 12, **reports.SHAPE}
    quoted = pate.quote(reports.votes(), "gnmax", max_answers=30, **words)
    report, _ = reports.made("prior")
    assert quoted.to_dict()["prior"] == report.to_dict()["rounds"][0]["prior"]


def test_of_a_prior_without_a_vote_nothing_is_said():
    words = {"seed": 3, **reports.SHAPE}
    with_one, without = (
        pate.aggregate(reports.votes(), "gnmax", **words, **more)
        for more in ({"prior": reports.guesses(), "prior_weight": 0}, {})
    )
    assert with_one.labels.metadata == without.labels.metadata
    one, other = (
        dataclasses.replace(done.report, run=None, time=None).to_json()
        for done in (with_one, without)
    )
    assert one == other


def test_every_sentence_is_one_that_some_report_can_have():
    """A name in sentences.ini stands in the code, alone or behind the word before its dash."""
    folder = Path(guarantee.__file__).parent
    code = "".join(path.read_text() for path in folder.glob("*.py"))
    code = code.replace("'", '"')
    for name in guarantee._SENTENCES:
        head, _, rest = name.partition("-")
        built = f'f"{head}-' in code and (f'"{rest}"' in code or rest in {*PublicFact, *KINDS})
        assert f'"{name}"' in code or built, name
