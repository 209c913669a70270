"""Texts as classes, beside an oracle that takes one letter, one spelling and one vote at a time."""

from __future__ import annotations

import dataclasses
import pickle
import sys
import unicodedata
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pate_cli.core.errors import ParameterError
from pate_cli.votes.entries import named, texts_said
from pate_cli.votes.matching import ABSTENTION, Matching, plain_texts

NAMES = ("cat", "Guinea pig", "Ärger", "straße", "C.")
ALIASES = {"Katze": "cat", "the  Bird": "Guinea pig"}
QUOTES = ['""', "''", "``", "“”", "„“", "””", "‘’", "‚‘", "’’", "«»", "»«"]


def oracle(text):
    """The rules one by one: no letter may tell spellings apart that a reader takes for the same."""
    text = " ".join(unicodedata.normalize("NFD", text).split())
    changed = True
    while changed:
        changed = False
        shorter = text
        while shorter and shorter[-1] in ".,;:!?":
            shorter = shorter[:-1]
        for opening, closing in QUOTES:
            if len(shorter) > 1 and shorter[0] == opening and shorter[-1] == closing:
                shorter = shorter[1:-1]
                break
        if shorter.strip() and shorter != text:
            text, changed = shorter.strip(), True
    return unicodedata.normalize("NFC", text.casefold())


def place(text, names, aliases, *, normalise):
    spell = oracle if normalise else str
    if text is None:
        return -1
    for at, name in enumerate(names):
        if spell(text) == spell(name):
            return at
    for alias, name in aliases.items():
        if spell(text) == spell(alias):
            return names.index(name)
    return -1


BLANKS = ["", " ", "\t\n", "\u00a0", "  "]
spelled = (
    st.sampled_from([*NAMES, *ALIASES, "dog", "", "?"])
    .flatmap(
        lambda text: st.tuples(
            st.sampled_from(BLANKS),
            st.sampled_from(['"', "“", "'", ""]),
            st.sampled_from([text, text.upper(), text.title(), text.replace(" ", " \t ")]),
            st.sampled_from(["", ".", "!?", " ,", ";"]),
            st.sampled_from(['"', "”", "'", ""]),
            st.sampled_from(BLANKS),
        )
    )
    .map("".join)
)
said = st.one_of(
    st.none(),
    st.sampled_from([*NAMES, *ALIASES]),
    spelled,
    spelled.map(lambda text: unicodedata.normalize("NFD", text)),
    st.text(max_size=5),
)


@given(texts=st.lists(said, max_size=12), normalise=st.booleans(), aliases=st.booleans())
def test_each_text_is_where_the_oracle_has_it(texts, normalise, aliases):
    mapping = ALIASES if aliases else {}
    matching = Matching(NAMES, normalise=normalise, aliases=mapping)
    expected = [place(text, NAMES, mapping, normalise=normalise) for text in texts]
    found = matching.places(texts)
    assert found.dtype == np.int64
    assert found.tolist() == expected == [matching.place(text) for text in texts]
    # numpy takes nulls for the end of a text, and has no None.
    plain = [(text or "").rstrip("\0") for text in texts]
    array = np.array(plain, dtype=np.str_).reshape(1, -1)
    for order in "<>":
        ordered = array.astype(array.dtype.newbyteorder(order))
        wanted = [place(text, NAMES, mapping, normalise=normalise) for text in plain]
        assert matching.places(ordered).tolist() == [wanted]


@given(texts=st.lists(said, max_size=12), normalise=st.booleans(), aliases=st.booleans())
def test_columns_of_a_table_are_matched_and_counted_alike(texts, normalise, aliases):
    matching = Matching(NAMES, normalise=normalise, aliases=ALIASES if aliases else {})
    expected = [place if place >= 0 else None for place in matching.places(texts).tolist()]
    plain = pa.array(texts, pa.string())
    for column in (plain, plain.cast(pa.large_string()), plain.dictionary_encode()):
        assert named(column, matching).to_pylist() == expected
        distinct, votes = texts_said(column)
        counted = dict(zip(distinct, votes.tolist(), strict=True))
        assert counted == Counter(texts)


@given(text=said.filter(lambda text: text is not None))
def test_a_cause_is_what_normalising_would_mend_or_an_abstention(text):
    matching = Matching(NAMES, aliases=ALIASES)
    cause = matching.cause(text)
    mended = place(text, NAMES, ALIASES, normalise=True) >= 0
    if place(text, NAMES, ALIASES, normalise=False) >= 0:
        assert cause is None
    elif mended:
        assert cause.startswith("differs only in ")
    else:
        assert cause in (None, ABSTENTION)
        assert Matching(NAMES, normalise=True, aliases=ALIASES).cause(text) == cause


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("cat", None),
        ("Katze", None),
        ("Cat", "differs only in case"),
        ("KATZE", "differs only in case"),
        (" cat", "differs only in blanks"),
        ("Guinea  pig", "differs only in blanks"),
        (unicodedata.normalize("NFD", "Ärger"), "differs only in Unicode form"),
        ("cat.", "differs only in punctuation"),
        ("“cat.”", "differs only in punctuation"),
        ("C", "differs only in punctuation"),
        ("STRASSE", "differs only in case"),
        (" CAT", "differs only in case and blanks"),
        (" CAT !", "differs only in case and punctuation"),
        ("guinea  pig!", "differs only in case, blanks and punctuation"),
        ("", ABSTENTION),
        (" \t", ABSTENTION),
        ("N/A.", ABSTENTION),
        ("dog", None),
    ],
)
def test_causes(text, cause):
    assert Matching(NAMES, aliases=ALIASES).cause(text) == cause


def test_a_name_that_could_be_an_abstention_is_a_name():
    assert Matching(("none", "some")).cause("None") == "differs only in case"
    assert Matching(("none", "some"), normalise=True).place("NONE") == 0


def test_both_forms_of_unicode_are_one_only_with_normalise():
    composed, decomposed = (unicodedata.normalize(form, "Ärger") for form in ("NFC", "NFD"))
    assert composed != decomposed
    for name, other in ((composed, decomposed), (decomposed, composed)):
        names = (name, "Glück")
        assert Matching(names).places([name, other]).tolist() == [0, -1]
        assert Matching(names, normalise=True).places([name, other]).tolist() == [0, 0]


def test_what_is_punctuation_alone_is_not_normalised_away():
    marks = Matching(("?", "!"), normalise=True)
    assert marks.places(["?", " ! ", "", "??", "."]).tolist() == [0, 1, -1, -1, -1]


def test_spellings_of_aliases_are_matched_with_normalise_alone():
    for normalise, wanted in ((False, [0, -1, -1, 1]), (True, [0, 0, 1, 1])):
        matching = Matching(NAMES, normalise=normalise, aliases=ALIASES)
        assert matching.places(["Katze", "katze.", "The bird", "the  Bird"]).tolist() == wanted


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"names": ("cat", "Cat.")}, "`label_names`: `normalise` makes 'cat' and 'Cat.' alike"),
        ({"names": ("cat", " ")}, "`label_names`: name 1 is of blanks alone, and `normalise` "),
        ({"names": ("cat",)}, "`label_names`: at least 2 names are needed, got 1"),
        ({"names": ("cat", "cat")}, "`label_names`: 'cat' is there twice"),
        ({"normalise": "yes"}, "`normalise` must be true or false, got 'yes'"),
        ({"aliases": [("a", "cat")]}, "`aliases` must map texts to names, got [('a', 'cat')]"),
        ({"aliases": {"a": "bird"}}, "`aliases`: 'a' stands for 'bird', which is none of `label"),
        ({"aliases": {"a": 0}}, "`aliases`: 'a' stands for 0, which is none of `label_names`"),
        ({"aliases": {"": "cat"}}, "`aliases`: alias 0 is empty, or no text"),
        ({"aliases": {" ": "cat"}}, "`aliases`: alias 0 is empty, or no text"),
        ({"aliases": {1: "cat"}}, "`aliases`: alias 0 is empty, or no text"),
        ({"aliases": {"a\0": "cat"}}, "`aliases`: alias 0 is empty, or no text"),
        ({"aliases": {"dog": "cat"}}, "`aliases`: 'dog' stands for 'cat', and for 'dog', too"),
        ({"aliases": {"DOG": "cat"}}, "`aliases`: 'DOG' stands for 'cat', and for 'dog', too"),
        (
            {"aliases": {"a": "cat", "A ": "dog"}},
            "`aliases`: 'A ' stands for 'dog', and for 'cat', too",
        ),
    ],
)
def test_what_is_contradictory_is_refused(given, message):
    with pytest.raises(ParameterError) as refused:
        Matching(**{"names": ("cat", "dog"), "normalise": True, **given})
    assert str(refused.value).startswith(message)


def test_without_normalise_spellings_are_texts_of_their_own():
    matching = Matching(("cat", "Cat"), aliases={"CAT": "Cat", " ": "cat", "cat": "cat"})
    assert matching.places(["cat", "Cat", "CAT", " ", "cAT"]).tolist() == [0, 1, 1, 0, -1]


@pytest.mark.parametrize("votes", [[1], ["cat", 1.5], [b"cat"], [["cat"]]])
def test_what_is_no_text_is_refused_and_not_quoted(votes):
    with pytest.raises(ParameterError, match=r"^votes are texts, or None where one is missing$"):
        Matching(NAMES).places(votes)


def test_letters_that_are_none_are_no_name():
    broken = np.array([sys.maxunicode + 1, 99], dtype="<u4").view("<U1")
    assert plain_texts(broken) == [None, "c"]
    assert Matching(("c", "d"), normalise=True).places(broken).tolist() == [-1, 0]
    assert plain_texts(broken[:0]) == []


def test_it_travels_and_cannot_be_changed():
    aliases = dict(ALIASES)
    matching = Matching(NAMES, normalise=True, aliases=aliases)
    assert matching.places(["katze"]).tolist() == [0]
    aliases["katze"] = "C."
    copy = pickle.loads(pickle.dumps(matching))  # noqa: S301 - our own
    assert copy == matching == Matching(list(NAMES), normalise=True, aliases=ALIASES)
    assert hash(copy) == hash(matching)
    assert copy.places(["katze", None]).tolist() == [0, -1]
    with pytest.raises(dataclasses.FrozenInstanceError):
        matching.normalise = False
