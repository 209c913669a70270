"""Documents come back from JSON as they were, or are refused by the field that is wrong."""

import enum
import json
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from pate_cli.core.arrays import Floats
from pate_cli.core.errors import LedgerError, OutputError, ParameterError
from pate_cli.files.document import SPARING, Refusal, called, decoded, encoded, parsed
from refusals import refusal

REFUSED = Refusal(LedgerError, "the test is damaged: ", "; mend it")


class Word(enum.StrEnum):
    ONE = "one"
    TWO = "two"


@dataclass(frozen=True)
class Inner:
    at: float
    word: Word = Word.ONE

    def __post_init__(self) -> None:
        if self.at < 0.0:
            raise ParameterError("at must be at least 0")
        if self.at > 9.0:
            raise LedgerError("9 is the most, take less")


@dataclass(frozen=True, eq=False)
class Outer:
    name: str
    count: int
    on: bool
    maybe: int | None
    facts: Mapping[str, Any]
    curve: Floats
    inner: tuple[Inner, ...]
    texts: tuple[str, ...] = field(default=(), metadata=called("words") | SPARING)


WHOLE = Outer("a", 1, True, None, {"x": [1, None]}, np.array([[0.1], [1e-300]]), (Inner(0.5),))
DATA = {
    "name": "a",
    "count": 1,
    "on": True,
    "maybe": None,
    "facts": {"x": [1, None]},
    "curve": [[0.1], [1e-300]],
    "inner": [{"at": 0.5, "word": "one"}],
}


def test_there_and_back():
    assert list(encoded(WHOLE).items()) == list(DATA.items())
    found = decoded(Outer, json.loads(json.dumps(DATA)), REFUSED)
    assert encoded(found) == DATA
    assert found.inner == WHOLE.inner
    assert found.curve.dtype == np.float64
    said = decoded(Outer, DATA | {"words": ["b"], "maybe": 3, "curve": []}, REFUSED)
    assert (said.texts, said.maybe, said.curve.shape) == (("b",), 3, (0,))
    assert encoded(said)["words"] == ["b"]
    assert decoded(Inner, {"at": 2, "word": "two"}, REFUSED) == Inner(2.0, Word.TWO)


NUMBER = "must be a finite number"
NO_CURVES = (1.0, [1.0, True], [1.0, "1"], [1.0, float("nan")], [1, 10**400], [[1.0], [1.0, 2.0]])
DAMAGES = {
    "it must be an object": (None, [], 3, "text"),
    "name must be a text": ({"name": 1}, {"name": None}),
    "count must be a whole number": ({"count": True}, {"count": 1.0}),
    "on must be true or false": ({"on": 1},),
    "maybe must be a whole number": ({"maybe": "1"},),
    "facts must be an object": ({"facts": []},),
    "curve must be a list of finite numbers, or of such lists": [
        {"curve": curve} for curve in (*NO_CURVES, [[1.0], 2.0], [[[1.0]]])
    ],
    "inner must be a list": ({"inner": {}},),
    "inner.0 must be an object": ({"inner": [3]},),
    "inner.1 has no field 'at'": ({"inner": [{"at": 1, "word": "one"}, {"word": "one"}]},),
    "inner.0 has no field 'word'": ({"inner": [{"at": 1}]},),
    f"inner.0.at {NUMBER}": [
        {"inner": [{"at": at, "word": "one"}]} for at in (True, float("inf"), 10**400)
    ],
    "inner.0.word must be one of one, two": [
        {"inner": [{"at": 1, "word": word}]} for word in ("three", ["one"])
    ],
    "inner.0: at must be at least 0": ({"inner": [{"at": -1, "word": "one"}]},),
    "it has an unknown field 'more'": ({"more": 1},),
    "it has an unknown field 'texts'": ({"texts": ["b"]},),
    "words must be a list": ({"words": None},),
}


@pytest.mark.parametrize(
    ("change", "fault"),
    [(change, fault) for fault, changes in DAMAGES.items() for change in changes],
)
def test_what_is_wrong_is_named(change, fault):
    data = DATA | change if isinstance(change, dict) else change
    text = refusal(LedgerError, decoded, Outer, data, REFUSED)
    assert text == f"the test is damaged: {fault}; mend it"


def test_what_a_constructor_says_in_the_readers_own_class_stands():
    data = {"at": 10, "word": "one"}
    assert refusal(LedgerError, decoded, Inner, data, REFUSED) == "9 is the most, take less"
    other = Refusal(OutputError, "no: ")
    assert refusal(OutputError, decoded, Inner, data, other) == "no: 9 is the most, take less"


NO_JSON = "the text is not valid JSON"
NO_TEXTS = {
    NO_JSON: ("", "{} {}", b"\xff\xfe\x00", "[" * 100_000, r'"\ud800"', "9" * 9000),
    "the text has a number that is NaN or infinite": ("[NaN]", "-Infinity", "[1e999]"),
    "the text has a whole number above 2^63 - 1, or below -(2^63 - 1)": (f"[{2**63}]",),
    "a JSON object has two fields of the same name": ('{"a": {"b": 1, "b": 1}}',),
    "the text is larger than the limit of 1 MB": (" " * (1 << 20) + " ",),
}


@pytest.mark.parametrize("fault", NO_TEXTS)
def test_a_text_that_says_nothing_certain(fault):
    for text in NO_TEXTS[fault]:
        found = refusal(LedgerError, parsed, text, REFUSED, most=1 << 20)
        assert found == f"the test is damaged: {fault}; mend it"


def test_an_array_by_an_alias_of_numpys_is_one():
    """What NDArray is where Python has aliases: newer numpy takes them."""

    class Alias:
        __value__ = np.ndarray[Any, np.dtype[np.float64]]
        __class_getitem__ = classmethod(types.GenericAlias)

    @dataclass(frozen=True, eq=False)
    class Aliased:
        curve: Floats

    Aliased.__annotations__["curve"] = Alias[np.float64]
    assert decoded(Aliased, {"curve": [1.0, 2.0]}, REFUSED).curve.tolist() == [1.0, 2.0]
    with pytest.raises(LedgerError, match="curve must be a list of finite numbers"):
        decoded(Aliased, {"curve": "1"}, REFUSED)
