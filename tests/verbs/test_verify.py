"""`verify`: an honest report holds, what is altered fails, and what cannot be checked is named.

Every leaf of reports is forged in `tests/forgeries`; here are the doors, the labels, the guesses,
the record and the other library.
"""

import copy
import dataclasses
import functools
import json
import unicodedata

import numpy as np
import pytest

import pate_cli as pate
import reports
from forgeries.forge import leaves, others, put
from pate_cli.core.errors import PateError, ReportError, UsageError
from pate_cli.core.words import Bound, LabelFormat
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.guarantee import report_of
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.report import Checked, parse_report
from pate_cli.disclosure.runs import Outcome
from pate_cli.disclosure.verification import (
    COUNTS,
    FAILED,
    GUESSES,
    GUESSES_FILE,
    LABELS,
    OK,
    OPEN,
    PROMISE,
    RUN_SETTINGS,
    SKIPPED,
)
from pate_cli.labels.forms import formats_with
from pate_cli.verbs.signatures import verify
from slices import some

HERE = functools.partial(verify, with_dp_accounting=False)


@pytest.fixture(autouse=True, scope="module")
def _costs_once():
    with reports.costs_once():
        yield


def named(found, outcome):
    return {check.name for check in found.checks if check.outcome == outcome}


def failed(found):
    return named(found, FAILED)


def told(found):
    return {check.name: check.detail for check in found.checks}


def of(data):
    return HERE(json.dumps(data).encode())


def again(report, **changed):
    """The report of the same facts but for some, with all that follows computed anew."""
    return report_of(dataclasses.replace(report.facts, **changed))


def retold(report, **changed):
    """The report of a run that was told otherwise."""
    (done,) = report.rounds
    return again(report, rounds=(dataclasses.replace(done, **changed),))


LEFT = {
    "upper": {Checked.SANITIZING},
    "rounds": {Checked.SANITIZING},
    "draws": {Checked.SANITIZING},
    "passed": {Checked.RELEASE_TEST},
    "refused": {Checked.RELEASE_TEST},
    "sharp": {Checked.RELEASE_TEST},
    "prior": {GUESSES},
    "prior, confident": {Checked.SANITIZING, GUESSES},
    "prior, passed": {Checked.RELEASE_TEST, GUESSES},
    "priors": {GUESSES},
    "kept, upper": {Checked.SANITIZING},
    "account": {Checked.EXTERNAL},
}


@pytest.mark.parametrize(
    "kind", some([kind for kind in reports.KINDS if kind not in reports.NO_PROMISE], 3)
)
def test_an_honest_report_holds_and_what_nobody_can_check_is_named(kind):
    report, _ = reports.made(kind)
    found = verify(report.to_json().encode())
    left = LEFT.get(kind, set()) | {Checked.RECORD}
    left |= {RUN_SETTINGS} if kind == "refused" else set()
    assert found.holds, found.checks
    assert named(found, OPEN) == left, found.checks
    assert found.headline().startswith(f"holds: epsilon {report.epsilon:.4f} at delta ")
    assert all(name in found.remark() for name in left)
    data = found.to_dict()
    assert (data["failed"], data["epsilon"], data["delta"]) == ([], report.epsilon, report.delta)
    assert left <= set(data["not_checked"])


def test_votes_of_several_teachers_are_not_charged_as_one_teachers():
    """Those of one teacher are all for the same class, and so cost less."""
    groups = pate.TeacherGroups(["a"] * 9, teachers_per_record=[2] * 9)
    votes = np.zeros((3, 9), dtype=int)
    done = pate.aggregate(votes, "gnmax", layout="labels", classes=2, sigma2=9.0, groups=groups)
    forged = done.report.to_dict()
    forged["rounds"][0]["mechanism"]["votes_together"] = True
    with pytest.raises(ReportError, match="the mechanism only allows for one"):
        verify(json.dumps(forged).encode())


def test_more_teachers_than_can_be_charged_again_are_refused():
    data = copy.deepcopy(reports.made("gnmax")[0].to_dict())
    for facts in (data["mechanism"], data["rounds"][0]["mechanism"]):
        facts["teachers"] = 10**9
    with pytest.raises(ReportError, match="its cost again would take too long"):
        of(data)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A report of the third of three runs, and the record."""
    folder = tmp_path_factory.mktemp("kept")
    votes = np.tile([[50, 6, 4]], (20, 1))
    given = {"layout": "counts", "teachers": 60, "record": folder / "record"}
    for rows in (10, 15):
        pate.aggregate(votes, "gnmax", sigma2=20.0, max_queries=rows, **given)
    done = pate.aggregate(votes, "gnmax", sigma2=20.0, **given)
    return done.report, folder / "record"


def test_the_record_tells_whether_runs_are_missing(kept):
    report, record = kept
    found = HERE(report, record=record)
    assert (found.holds, found.unchecked) == (True, [LABELS])
    cut = again(report, spent=type(report.spent).of(report.spent.runs[1:]))
    assert HERE(cut).holds
    assert Checked.RECORD in HERE(cut).remark()
    found = HERE(cut, record=SpendRecord.read(record))
    assert "leaves out run" in told(found)[Checked.RECORD]
    assert not HERE(report, record=SpendRecord()).holds


def test_a_run_that_was_under_way_may_have_ended_since_and_not_the_other_way_round(kept):
    report, record = kept[0], SpendRecord.read(kept[1])
    first, *others = report.spent.runs
    early = dataclasses.replace(first, outcome=Outcome.PENDING, answers=None)
    told = again(report, spent=type(report.spent).of((early, *others)))
    assert HERE(told, record=record).holds
    rolled_back = SpendRecord((early, *record.runs[1:]))
    assert failed(HERE(report, record=rolled_back)) == {Checked.RECORD}
    struck = SpendRecord(record.runs[1:])  # its file turned out to hold no votes
    assert HERE(told, record=struck).holds
    assert failed(HERE(report, record=struck)) == {Checked.RECORD}


FORMATS = list(LabelFormat)
TELLING = formats_with("metadata")
OF_LABELS = (
    "gnmax", "confident", "stability", "interactive", "names", "several labels", "prior", "upper",
    "passed", "met", "groups", "paper",
)  # fmt: skip


def test_a_false_epsilon_is_no_promise_and_its_time_is_named():
    report = reports.made("gnmax")[0]
    honest, false = HERE(report), HERE(dataclasses.replace(report, epsilon=0.5))
    assert PROMISE in named(honest, OK)
    assert failed(false) == {Checked.COMPUTED, PROMISE}
    assert not [check for check in false.checks if check.outcome == OK and "0.5" in check.detail]
    later = report_of(dataclasses.replace(report.facts, time="2031-01-01T00:00:00Z", spent=None))
    assert any("when runs began" in name for name in named(HERE(later), OPEN))


@pytest.mark.parametrize("label_format", FORMATS)
@pytest.mark.parametrize("kind", some(OF_LABELS, 4))
def test_a_report_holds_with_its_labels_and_with_no_others(kind, label_format, tmp_path):
    report, labels = reports.made(kind)
    path = tmp_path / f"labels.{label_format}"
    labels.save(path)
    signed = report.with_labels(path)
    assert signed.labels.format is label_format
    found = HERE(signed, path)
    outcomes = {check.name: check.outcome for check in found.checks}
    assert failed(found) <= {PROMISE}, found.checks
    assert outcomes[LABELS] == outcomes[COUNTS] == OK
    assert outcomes[Checked.LABELS] == (OK if label_format in TELLING else SKIPPED)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    assert LABELS in failed(HERE(signed, path))


@pytest.mark.parametrize("said", FORMATS)
def test_labels_are_of_the_format_that_the_report_says(said, tmp_path):
    """Or a report could say of a file with settings that its format stores none."""
    report, labels = reports.made("gnmax")
    labels.save(tmp_path / "labels.parquet")
    signed = report.with_labels(tmp_path / "labels.parquet")
    told = dataclasses.replace(signed, labels=dataclasses.replace(signed.labels, format=said))
    assert HERE(told, tmp_path / "labels.parquet").holds is (said is LabelFormat.PARQUET)


@pytest.mark.parametrize("said", [LabelFormat.PARQUET, LabelFormat.CSV])
def test_labels_have_the_rows_and_answers_of_the_report(said, tmp_path):
    report, labels = reports.made("confident")
    path = tmp_path / f"labels.{said}"
    labels.save(path)
    assert COUNTS not in failed(HERE(report.with_labels(path), path))
    for change in (
        {"answers": report.answers - 1},
        {"answers": report.answers + 1},
        {"queries": report.queries - 1},
        {"queries": report.queries + 1},
    ):
        forged = retold(report, **change).with_labels(path)
        assert COUNTS in failed(HERE(forged, path)), change


def carried(report, labels, tmp_path):
    """What is said of a report beside these labels in Parquet, hashed for it."""
    path = tmp_path / "labels.parquet"
    labels.save(path, force=True)
    return told(HERE(report.with_labels(path), path))[Checked.LABELS]


def test_a_target_is_bound_to_labels_that_carry_it(tmp_path):
    """Another one, computed anew, cannot be told from outside, but by such labels."""
    report, labels = reports.made("passed")
    (done,) = report.rounds
    for change in ({"epsilon": 1.1, "refusal_epsilon": 0.55}, {"refusal_epsilon": 0.3},
                   {"bound": Bound.CONDITIONAL}):  # fmt: skip
        target = dataclasses.replace(done.target, **change).settled(
            done.aggregator, queries=done.queries, worst_case=Cost.of_labels(done).own.epsilon
        )
        forged = retold(report, target=target)
        assert HERE(forged).holds
        assert carried(forged, labels, tmp_path).startswith("the labels have another ")
    plain = again(report, rounds=(dataclasses.replace(done, target=None),), passed=None)
    assert carried(plain, labels, tmp_path).startswith("the labels have another ")


def test_a_release_test_that_no_run_would_have_is_found():
    """Other orders would pass or fail other votes, and those of a run follow from its settings."""
    report, _ = reports.made("passed")
    target = report.target
    for orders in (target.test_orders[:1], (*target.test_orders, 40.0)):
        if orders != target.test_orders:
            forged = retold(report, target=dataclasses.replace(target, test_orders=orders))
            assert failed(HERE(forged)) == {Checked.COMPUTED, PROMISE}, orders


def test_noise_draws_groups_and_what_was_read_off_are_bound_too(tmp_path):
    louder = {**reports.made("gnmax")[0].mechanism, "sigma2": 1200.0}
    wider = dataclasses.replace(reports.made("upper")[0].rounds[0].sanitizer, sigma=80.0)
    for kind, name, change in (
        ("gnmax", "sigma2", {"mechanism": louder}),
        ("upper", "sanitizer", {"sanitizer": wider}),
        ("classes read off", "read_off", {"read_off": ()}),
        ("seeded", "private", {"private": True}),
        ("paper", "analysis", {"analysis": "tight"}),
        # Of no prior at all, the numbers are those of fewer votes, and the labels know better.
        *((kind, "prior", {"prior": None}) for kind in ("prior", "prior, passed")),
    ):
        report, labels = reports.made(kind)
        if name == "prior":
            shape = {key: one for key, one in report.mechanism.items() if key != "prior_weight"}
            change = change | {"mechanism": shape}
        forged = retold(report, **change)
        assert (
            carried(forged, labels, tmp_path) == f"the labels have another {name} than the report"
        ), kind
        assert (
            carried(report, labels, tmp_path)
            == "the settings in the labels are the same as in the report"
        )


def test_labels_stripped_of_their_settings(tmp_path):
    from pyarrow import parquet

    report, labels = reports.made("passed")
    for metadata in (None, {"pate": "[]"}, {"pate": "{}"}, {"pate": "[1]"}, {"pate": "x"}):
        table = labels.to_arrow().replace_schema_metadata(metadata)
        parquet.write_table(table, tmp_path / "l.parquet")
        signed = report.with_labels(tmp_path / "l.parquet")
        assert not HERE(signed, tmp_path / "l.parquet").holds


def test_the_guesses_are_known_by_their_hash(tmp_path):
    report, _ = reports.made("prior")
    assert told(HERE(report))[GUESSES_FILE].endswith(" was not given")
    assert GUESSES_FILE not in failed(HERE(report, prior=reports.guesses()))
    assert failed(HERE(report, prior=np.zeros(40, dtype=np.int64))) == {GUESSES_FILE}
    assert GUESSES_FILE in failed(HERE(reports.made("gnmax")[0], prior=reports.guesses()))
    path = tmp_path / "guesses.npy"
    np.save(path, reports.guesses())
    done = pate.aggregate(reports.votes(), "gnmax", **reports.SHAPE, prior=path, prior_weight=12)
    assert HERE(done.report, prior=path).holds
    np.save(path, reports.guesses()[::-1])
    assert failed(HERE(done.report, prior=path)) == {GUESSES_FILE}


def test_another_library_finds_a_textbook_number_that_is_too_small():
    pytest.importorskip("dp_accounting")
    for kind, number in (("gnmax", "rdp_epsilon"), ("gnmax", "exact_epsilon"),
                         ("stability", "basic_epsilon")):  # fmt: skip
        report, _ = reports.made(kind)
        value = getattr(report.crosscheck, number)
        wrong = dataclasses.replace(report.crosscheck, **{number: value / 3.0})
        found = verify(dataclasses.replace(report, crosscheck=wrong))
        assert any(name.startswith("dp-accounting") for name in failed(found)), number
        assert not any(name.startswith("dp-acc") for name in failed(verify(report)))


COMMAND = "\x1b]0;pwned\x07\x1b[2J\u202e\u2028\x9b31m"


def unprintable(text):
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")} - {"\n"}


@pytest.mark.parametrize("kind", some(["names", "groups", "passed", "external"], 2))
def test_no_command_to_the_terminal_comes_through(kind):
    pair = pate.Stated(epsilon=3.0, delta=1e-6, adjacency="replace-one", covers="a model")
    report = reports.total(pair) if kind == "external" else reports.made(kind)[0]
    data = report.to_dict()
    texts = [way for way, value in leaves(data) if isinstance(value, str)]
    for way in (*texts, ("rounds", 0, "mechanism", COMMAND)):
        shown = []
        for look in (of, explained):
            try:
                shown += list(printed(look(put(data, way, COMMAND))))
            except PateError as error:
                shown.append(str(error))
        assert not unprintable("".join(shown)), way


def explained(data):
    return pate.explain(parse_report(json.dumps(data)))


def printed(found):
    yield found.headline()
    if hasattr(found, "checks"):
        yield from (text for check in found.checks for text in vars(check).values())
    else:
        for section in found.sections:
            yield from (section.title, *section.texts)


def test_no_curve_is_made_of_what_is_only_claimed(tmp_path):
    data = reports.made("seeded")[0].to_dict()
    claimed = [one | {"holds": True} for one in data["statements"]]
    (tmp_path / "r.json").write_text(json.dumps(data | {"statements": claimed}))
    with pytest.raises(UsageError, match="no worst-case guarantee, so there is no curve: Nothing"):
        pate.rdp_curve(tmp_path / "r.json", orders=[4.0])


KINDS = ("gnmax", "passed", "refused", "upper", "groups", "kept", "account")


def found_of(data):
    """What is said of a report in words, and what is checked of it; None if it is refused."""
    try:
        return explained(data), of(data)
    except PateError:
        return None


@pytest.mark.parametrize("kind", some(KINDS, 4))
def test_a_forged_leaf_is_told_as_no_promise(kind):
    whole = reports.made(kind)[0].to_dict()
    told = found_of(whole)
    assert told[0].promised
    forged = 0
    for path, value in some(list(leaves(whole)), 8):
        found = found_of(put(whole, path, next(iter(others(value)), None)))
        if found is None:
            continue
        words, checked = found
        assert words.promised is checked.holds, path
        assert words.failed == tuple(name for name in checked.failed if name != "promise")
        if words.failed:
            assert [section.title for section in words.sections] == ["Nothing is promised"]
            forged += 1
    assert forged > 3
