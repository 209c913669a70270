"""The library as a stranger uses it: the face, its page's examples, and results in the hand."""

import ast
import doctest
import html
import inspect
import json
import re
import shutil
import stat
import sys
from pathlib import Path

import numpy as np
import pytest
from pyarrow import csv, feather, parquet

import pate_cli as pate
from pate_cli.core.errors import OutputError, ParameterError, UsageError
from pate_cli.core.words import MechanismName
from pate_cli.files.results import Result
from pate_cli.mechanisms import MechanismChoice

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "pate_cli" / "docs" / f"{name}.md" for name in ("tutorial", "formats")]
DEMO = ROOT / "sample_votes" / "demo.parquet"
SHAPE = {"teachers": 60, "classes": 3}
CONFIDENT = {"threshold": 40.0, "sigma1": 30.0, "sigma2": 8.0}


@pytest.fixture(scope="module")
def counts():
    return np.random.default_rng(5).multinomial(60, (0.8, 0.15, 0.05), size=80)


@pytest.fixture(scope="module")
def done(counts):
    return pate.aggregate(counts, **SHAPE, **CONFIDENT, keep_ledger=True, seed=7)


class Alike(doctest.OutputChecker):
    """The same words, and numbers within a tenth: most of them hang on noise of a seed."""

    def check_output(self, want, got, optionflags):
        words, numbers = zip(*map(taken_apart, (want, got)), strict=True)
        return words[0] == words[1] and numbers[0] == pytest.approx(numbers[1], rel=0.1)


def taken_apart(text):
    number = r"\b\d+(?:\.\d+)?(?:e-\d+)?\b"
    return re.sub(number, "#", text), [float(found) for found in re.findall(number, text)]


# All show themselves but this one, which is a choice of `aggregate`.
SHOWN = set(pate.__all__) - {"Destination"}


def ran(texts, known, folder, monkeypatch):
    """How many examples there are in these texts, all of which give what they say."""
    monkeypatch.chdir(folder)
    shutil.copytree(
        ROOT / "sample_votes",
        folder / "sample_votes",
        ignore=shutil.ignore_patterns("*.spent.json"),
    )
    runner = doctest.DocTestRunner(Alike())
    said = []
    for name, text in texts:
        example = doctest.DocTestParser().get_doctest(text, known, name, name, 0)
        runner.run(example, out=said.append)
    assert not said, "".join(said)
    return runner.summarize(verbose=False).attempted


@pytest.mark.parametrize(
    ("page", "least"), [(PAGES[0], 15), (PAGES[1], 5)], ids=lambda page: str(page)[-12:]
)
def test_the_examples_of_the_pages_run(tmp_path, monkeypatch, page, least):
    blocks = re.findall(r"```python\n(>>> .*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert ran([(page.name, "\n".join(blocks))], {}, tmp_path, monkeypatch) >= least


def test_the_examples_of_the_face_run(tmp_path, monkeypatch):
    """Whoever asks for help sees how a verb is used; that is how it is."""
    texts = [(name, inspect.getdoc(getattr(pate, name))) for name in pate.__all__]
    assert {name for name, text in texts if ">>>" in text} >= SHOWN
    assert ran(texts, {"pate": pate}, tmp_path, monkeypatch) >= len(texts) - 1


def test_every_name_of_the_face_is_there_and_documented():
    assert set(pate.__all__) <= set(dir(pate))
    for name in pate.__all__:
        assert inspect.getdoc(getattr(pate, name)), name
    with pytest.raises(AttributeError, match="no attribute 'agregate'"):
        pate.agregate  # noqa: B018 - the lookup is the test


def test_types_and_names_of_the_face_agree():
    """What a type checker is told is what there is, from the same modules."""
    tree = ast.parse(Path(pate.__file__).read_text(encoding="utf-8"))
    (typed,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    told = {
        alias.name: node.module
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name != "*"
    }
    from_registry = {name for name in pate.__all__ if pate._HOMES[name] == "mechanisms"}
    assert set(told) | from_registry == set(pate.__all__)
    assert {name: f"pate_cli.{pate._HOMES[name]}" for name in told} == told


def test_a_mechanism_is_a_name_or_an_instance(counts, done):
    made = pate.ConfidentGNMax(60, 3, **CONFIDENT)
    again = pate.aggregate(counts, made, **SHAPE, seed=7)
    np.testing.assert_array_equal(again.labels.labels, done.labels.labels)
    with pytest.raises(UsageError, match="sigma1"):
        pate.aggregate(counts, made, **SHAPE, sigma1=3.0)
    with pytest.raises(UsageError, match="sigma1"):
        pate.aggregate(counts, "gnmax", **SHAPE, sigma1=3.0)
    with pytest.raises(ParameterError, match="confident"):
        pate.aggregate(counts, "best", **SHAPE)
    for teachers, classes in ((61, 3), (60, 4)):  # it must fit the votes
        with pytest.raises(ParameterError):
            pate.aggregate(counts, pate.GNMax(teachers, classes, sigma2=30.0), **SHAPE)


def test_nothing_beside_a_given_mechanism_is_passed_over(counts):
    made = pate.GNMax(60, 3, sigma2=30.0, teachers_per_record=2)
    chosen = MechanismChoice(MechanismName.GNMAX, {"sigma2": 30.0}, 2)
    for given in (made, chosen):
        for beside in ({"sigma2": 9.0}, {"teachers_per_record": 5}):
            with pytest.raises(UsageError, match=f"already has `{next(iter(beside))}`"):
                pate.quote(counts, given, **SHAPE, **beside)
        same = pate.quote(counts, given, **SHAPE, teachers_per_record=2)
        assert same.settings.mechanism["teachers_per_record"] == 2
    with pytest.raises(UsageError, match="already has `sigma2`"):
        pate.compare(counts, chosen, **SHAPE, sigma2=9.0)


@pytest.fixture(scope="module")
def results(counts, done):
    found = [
        done.labels,
        done.report,
        pate.quote(counts, **SHAPE, **CONFIDENT),
        pate.cost(counts, **SHAPE, **CONFIDENT),
        pate.compare(counts[:10], **SHAPE, **CONFIDENT),
        pate.smooth_sensitivity(counts, **SHAPE, **CONFIDENT),
        pate.tune(
            synthetic="teachers=60,classes=3,queries=40",
            target_epsilon=8.0,
            release="none",
            threshold=40.0,
            sigma1=30.0,
            sigma2=14.0,
        ),
    ]
    return {type(result).__name__: result for result in found}


PUBLIC = {"Labels", "Report", "Quote", "Tuned"}
NAMES = [*sorted(PUBLIC), "VoteCost", "Compared", "Sensitivity"]


@pytest.mark.parametrize("name", NAMES)
def test_a_result_in_every_form(results, name, tmp_path):
    result = results[name]
    assert isinstance(result, Result)
    assert result.secret is (name not in PUBLIC)
    assert ("SECRET" in repr(result)) is (name not in PUBLIC)
    facts = json.loads(result.to_json())
    assert facts == json.loads(json.dumps(result.to_dict(), allow_nan=False))
    table = result.to_arrow()
    assert table.num_rows > 0
    # Facts about labels without the labels would be taken for them.
    for suffix in ("parquet", "csv", "jsonl", "arrow", *(["json"] if name != "Labels" else [])):
        path = tmp_path / f"{name}.{suffix}"
        result.save(path)
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode & 0o077 == (0o044 if name in PUBLIC else 0), oct(mode)
        with pytest.raises(OutputError, match="exists"):
            result.save(path)
    assert parquet.read_table(tmp_path / f"{name}.parquet").num_rows == table.num_rows
    assert csv.read_csv(tmp_path / f"{name}.csv").column_names == table.column_names
    assert feather.read_table(tmp_path / f"{name}.arrow").equals(table)
    lines = (tmp_path / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    assert [list(json.loads(line)) for line in lines[:1]] == [table.column_names]
    shown = result._repr_html_()
    assert shown.startswith(f"<p><b>{type(result).__name__}: ")
    # A notebook is passed on: of a secret it has no more than `repr` says. Tuned has lines alone.
    assert ("<table>" in shown) is (name in {"Labels", "Quote", "Report"})


def test_a_notebook_shows_labels_and_report_and_says_what_is_secret(counts, done):
    names = ["<b>yes</b>", "no", "perhaps"]
    with pate.open_votes(counts, **SHAPE, label_names=names) as votes:
        shown = pate.aggregate(votes, **CONFIDENT, seed=7).labels._repr_html_()
    assert "&lt;b&gt;yes&lt;/b&gt;</td>" in shown
    assert "<b>yes" not in shown
    assert shown.count("<tr>") == 7  # names, five rows, and that there are more
    whole = done._repr_html_()
    assert done.report.summary in whole
    assert whole.endswith("; SECRET</b></p>")


def test_a_result_as_a_data_frame(results, monkeypatch):
    frame = results["VoteCost"].to_pandas()
    assert list(frame) == list(results["VoteCost"].columns())
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pandas is not installed"):
        results["VoteCost"].to_pandas()


def test_whole_numbers_of_a_data_frame_stay_whole(done):
    frame = done.labels.to_pandas()
    assert frame["label"].dtype == "Int64"
    missing = frame["label"].isna().to_numpy()
    assert 0 < missing.sum() < len(frame)
    assert frame["label"][~missing].tolist() == done.labels.labels[~missing].tolist()


def test_an_explanation_shows_itself(done):
    told = pate.explain(done.report)
    shown = told._repr_html_()
    assert all(
        f"<p>{html.escape(text)}</p>" in shown for part in told.sections for text in part.texts
    )


def test_an_unknown_suffix_is_refused_and_leaves_nothing(results, tmp_path):
    with pytest.raises(UsageError, match=r"\.parquet"):
        results["VoteCost"].save(tmp_path / "cost.xlsx")
    assert not list(tmp_path.iterdir())


def test_rounds_together_need_a_larger_delta_than_each():
    rounds = [
        pate.aggregate(
            DEMO, "gnmax", order=8, release="none", sigma2=10, delta=2.7e-10, seed=seed
        ).ledger
        for seed in (1, 2)
    ]
    assert pate.release(rounds[0], seed=3).report.delta == 2.7e-10
    with pytest.raises(ParameterError, match="the total cost needs a `delta` of at least"):
        pate.release(rounds, seed=3)
