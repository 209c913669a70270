"""A parameter is said once: its type in the signatures, all else in the table, for both faces."""

import inspect
import traceback

import numpy as np
import pytest

import pate_cli as pate
from pate_cli.cli.app import COMMANDS, build
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.mechanisms import CLASSES, mechanism_class
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.verbs import signatures
from pate_cli.verbs.keywords import ENTRIES, GONE, keywords_of, nearest_to, of_votes
from pate_cli.verbs.request import PARAMETERS
from pate_cli.votes.opening import open_votes

VERBS = (
    pate.aggregate,
    pate.quote,
    pate.release,
    pate.cost,
    pate.compare,
    pate.smooth_sensitivity,
    pate.tune,
    pate.plan,
    pate.spent,
    pate.verify,
    pate.explain,
)
LOOKING = [pate.aggregate, pate.quote, pate.cost, pate.compare, pate.smooth_sensitivity, pate.tune]
SIGNED = (*VERBS, signatures.session)
VOTES = np.array([[30, 10], [25, 15], [5, 35]])
OTHER = {
    ("tune", "votes"),  # made-up ones need none
    ("tune", "mechanism"),  # left out, the better one
    ("spent", "record"),  # the record itself, and no place for one
    ("verify", "record"),
    ("release", "release"),
    ("plan", "queries"),  # how many there are, and not which
    ("plan", "answers"),
    ("tune", "answers"),  # an expected number need not be whole
    ("plan", "mechanism"),
    ("plan", "labels"),  # how many, and no file
    ("verify", "prior"),  # of several rounds several
    ("verify", "report"),  # its content, too
    ("session", "mechanism"),
}
"""Parameters that mean something else than those of the same name, or that take less."""


def test_a_name_has_one_type_and_one_default_in_all_verbs():
    found: dict[str, set[tuple[str, str]]] = {}
    for verb in SIGNED:
        for name, each in inspect.signature(verb).parameters.items():
            if (verb.__name__, name) not in OTHER:
                found.setdefault(name, set()).add((each.annotation, repr(each.default)))
    assert {name: kinds for name, kinds in found.items() if len(kinds) > 1} == {}


def test_the_table_says_something_of_every_parameter_and_of_nothing_else():
    known = {
        (verb.__name__, name) for verb in SIGNED for name in inspect.signature(verb).parameters
    }
    for name in COMMANDS:
        known |= {(name.replace("-", "_"), each) for each in build(name).keywords}
    known |= {("", name) for _, name in known}
    assert set(ENTRIES) - known == set()


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_help_has_a_sentence_for_every_keyword(verb):
    told = inspect.getdoc(verb)
    for name in inspect.signature(verb).parameters:
        assert f"\n    {name}: " in told, name
    assert max(map(len, told.splitlines())) <= 100


def test_help_knows_how_to_write_every_value():
    """A type that `kinds` does not know is found here, and not by whoever asks for help."""
    for name in COMMANDS:
        for keyword in build(name).keywords.values():
            assert keyword.flag != bool(keyword.metavar), keyword.name


def test_whatever_a_mechanism_takes_is_a_parameter_of_a_run():
    known = {name for name in CLASSES for name in mechanism_class(name).options()}
    assert known == set(PARAMETERS) <= set(inspect.signature(pate.aggregate).parameters)
    for kind in map(mechanism_class, CLASSES):
        if issubclass(kind, ScoredMechanism):
            for verb in (pate.cost, pate.smooth_sensitivity):
                assert set(kind.options()) <= set(inspect.signature(verb).parameters)


@pytest.mark.parametrize("verb", LOOKING, ids=lambda verb: verb.__name__)
def test_every_verb_takes_every_way_of_reading(verb):
    ways = set(inspect.signature(open_votes).parameters)
    inner = {"source", "any_name", "batch_rows", "stdin", "progress", "further"}
    if verb is pate.tune:  # which refuses votes that were opened so
        inner |= {"votes_per_teacher", "assigned"}
    ways |= {name for _, name in ENTRIES if of_votes(name)}
    assert ways - inner <= set(inspect.signature(verb).parameters)


def test_the_command_line_has_what_the_verb_has_but_for_what_is_python_alone():
    for name in COMMANDS:
        verb = getattr(signatures, name.replace("-", "_"), None)
        if verb is not None:
            taken = {each for each, one in keywords_of(verb).items() if not one.hidden}
            assert taken <= set(build(name).keywords)


def test_a_run_has_twenty_everyday_options_and_twenty_six_more():
    options = [one for one in build("aggregate").keywords.values() if one.name != "votes"]
    own = [one for one in options if one.says.group.startswith("For ")]
    everyday = [one for one in options if one.says.everyday]
    assert len(everyday) <= 21
    assert len(options) - len(everyday) - len(own) <= 26


def test_what_people_try_leads_to_a_parameter():
    keywords = keywords_of(pate.aggregate).values()
    tried = {"epsilon": "target_epsilon", "targt_epsilon": "target_epsilon", "jobs": "workers"}
    tried |= {"n_classes": "classes", "noise": "sigma2", "normalize": "normalise"}
    tried |= {"spend": "record", "student": "predictions"}
    assert {name: nearest_to(name, keywords).name for name in tried} == tried


@pytest.mark.parametrize(
    "asked", ["a run", "a session", "a query", "a report", "a ledger", "a record", "votes"]
)
def test_what_is_refused_shows_the_line_of_the_caller_and_one_of_ours(asked, monkeypatch, tmp_path):
    given = {"teachers": 40, "classes": 2, "mechanism": "gnmax", "target_epsilon": 1}
    session = pate.Session(**given, record=tmp_path / "spent.json")
    calls = {
        "a run": lambda: pate.aggregate(VOTES, layout="labels"),
        "a session": lambda: pate.Session(**given),
        "a query": lambda: session.ask([1, 2, 3]),
        "a report": session.report,
        "a ledger": lambda: pate.Ledger.read(__file__),
        "a record": lambda: pate.SpendRecord.read(__file__),
        "votes": lambda: pate.open_votes(__file__).__enter__(),
    }

    def frames():
        with pytest.raises(pate.PateError) as refused:
            calls[asked]()
        files = [frame.filename for frame in traceback.extract_tb(refused.value.__traceback__)]
        return [name for name in files if "pate_cli" in name]

    monkeypatch.delenv("PATE_DEBUG", raising=False)
    most = 2 if asked == "votes" else 1  # The function that opens votes is a generator.
    assert len(frames()) == most
    monkeypatch.setenv("PATE_DEBUG", "1")
    assert len(frames()) > most


def test_a_session_shows_its_parameters():
    """`help` and editors ask the class; it is called without the object."""
    shown = inspect.signature(pate.Session).parameters
    assert [*shown] == [*inspect.signature(signatures.session).parameters]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_a_keyword_that_is_misspelt_or_gone_says_what_to_use_instead(verb):
    known = inspect.signature(verb).parameters
    said = {name: f"`{name}` is gone: {text}" for name, text in GONE.items() if name not in known}
    for wrong, right in (("delt", "delta"), ("sed", "seed")):
        if right in known:
            said[wrong] = f"{verb.__name__} takes no `{wrong}`; did you mean `{right}`?"
    for name, text in said.items():
        with pytest.raises(UsageError) as refused:
            verb(VOTES, **{name: 1})
        assert str(refused.value) == text


@pytest.mark.parametrize(
    ("name", "word"), [("mechanism", "permute-and-flip"), ("release", "unbiased")]
)
def test_a_word_that_is_gone_says_what_to_use_instead(name, word):
    with pytest.raises(ParameterError, match=f"`{name}` {word} is gone: use "):
        pate.aggregate(VOTES, **{name: word})


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
