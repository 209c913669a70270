"""Names of classes: which text is a vote for which, beside an oracle that takes one at a time."""

import pickle
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opened import counts_of, in_csv, read, refused
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.votes.join import names_of
from pate_cli.votes.names import ABSTENTION, ClassNames, class_names, python_texts
from pate_cli.votes.opening import open_votes
from refusals import refusal
from stored import lines

NAMES = ("cat", "Guinea pig", "Ärger", "straße", "C.")
ALIASES = {"Katze": "cat", "the  Bird": "Guinea pig"}
QUOTES = ['""', "''", "``", "“”", "„“", "””", "‘’", "‚‘", "’’", "«»", "»«"]
BLANKS = ["", " ", "\t\n", "\u00a0", "  "]


def oracle(text):
    """A spelling without what `normalise` looks past, by one rule after the other."""
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
    """The class of one text, by comparing it with every name and alias."""
    spell = oracle if normalise else str.strip
    if text is None or "\0" in text or not text.strip():
        return -1
    for at, name in enumerate(names):
        if spell(text) == spell(name):
            return at
    for alias, name in aliases.items():
        if spell(text) == spell(alias):
            return names.index(name)
    return -1


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
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)


@given(texts=st.lists(said, max_size=12), normalise=st.booleans(), aliases=st.booleans())
def test_each_text_is_where_the_oracle_has_it(texts, normalise, aliases):
    mapping = ALIASES if aliases else {}
    names = ClassNames(NAMES, normalise, mapping)
    expected = [place(text, NAMES, mapping, normalise=normalise) for text in texts]
    assert names.places(texts).tolist() == expected
    plain = pa.array(texts, pa.string())
    for column in (plain, plain.cast(pa.large_string()), plain.dictionary_encode()):
        found = names.classes_of(column).to_pylist()
        assert found == [None if each < 0 else each for each in expected]


def test_a_dictionary_that_repeats_texts_and_holds_nulls_is_read_entry_by_entry():
    words = pa.array(["dog", None, "?", "dog", "unused"])
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, None], pa.int8()), words)
    assert ClassNames(("cat", "dog")).classes_of(column).to_pylist() == [1, None, None, 1, None]


def test_what_is_punctuation_alone_is_not_normalised_away():
    marks = ClassNames(("?", "!"), normalise=True)
    assert marks.places(["?", " ! ", "", "??", "."]).tolist() == [0, 1, -1, -1, -1]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Cat", "`normalise` would match it with 'cat'"),
        ("guinea  pig!", "`normalise` would match it with 'Guinea pig'"),
        ("STRASSE", "`normalise` would match it with 'straße'"),
        ("KATZE", "`normalise` would match it with 'cat'"),
        ("N/A.", ABSTENTION),
        ("None", ABSTENTION),
        ("Guinea pigs", "looks like 'Guinea pig'"),
        ("dog", None),
    ],
)
def test_the_likeliest_cause_is_told(text, cause):
    assert ClassNames(NAMES, aliases=ALIASES).cause(text) == cause


def test_normalise_is_no_advice_where_it_is_on_or_makes_names_alike():
    """Advice that would be refused is none."""
    assert ClassNames(("cat", "Cat")).normalising.class_of("CAT") == -1
    assert ClassNames(("cat", "dog"), normalise=True).normalising.class_of("kat") == -1
    assert ClassNames(("none", "some")).cause("None") == "`normalise` would match it with 'none'"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"names": ("cat", "Cat.")}, "`label_names`: 'Cat.' occurs twice with `normalise`"),
        ({"names": ("cat", " cat")}, "`label_names`: 'cat' occurs twice"),
        ({"names": ("cat", " ")}, "`label_names`: '' is empty or not a text"),
        ({"names": ("cat", "a\0")}, "`label_names`: 'a"),
        ({"names": ("cat", "\ud800")}, "`label_names`: '"),
        ({"names": ("cat", 3)}, "`label_names`: 3 is empty or not a text"),
        ({"names": ("cat",)}, "`label_names`: give 2 to 16777216 names, got 1"),
        ({"aliases": {"a": "bird"}}, "`aliases`: 'a' stands for 'bird', but 'bird' is none of"),
        ({"aliases": {"a": 0}}, "`aliases`: 'a' stands for 0, but 0 is none of `label_names`"),
        ({"aliases": {" ": "cat"}}, "`aliases`: ' ' is empty or not a text"),
        ({"aliases": {1: "cat"}}, "`aliases`: 1 is empty or not a text"),
        ({"aliases": {"DOG": "cat"}}, "`aliases`: 'DOG' stands for 'cat', but is also a name or"),
        ({"aliases": {"a": "cat", "A ": "dog"}}, "`aliases`: 'A ' stands for 'dog', but is also"),
    ],
)
def test_what_is_contradictory_is_refused(more, message):
    given = {"names": ("cat", "dog"), "normalise": True, **more}
    assert refusal(ParameterError, ClassNames, **given).startswith(message)


def test_names_come_as_texts_or_from_a_file(tmp_path):
    path, latin = tmp_path / "names", tmp_path / "latin"
    path.write_bytes("\ufeffrouge vif\r\nblé, dur\r\n sauge\n".encode())
    wanted = ("rouge vif", "blé, dur", "sauge")
    for said in (wanted, list(wanted), np.array(wanted), path, f"@{path}"):
        found = ClassNames(class_names(said)).names
        assert found == wanted
        assert all(type(name) is str for name in found)
    assert "cannot read" in refusal(UsageError, class_names, f"@{tmp_path / 'gone'}")
    latin.write_bytes("blé\nseigle\n".encode("latin-1"))
    assert "UTF-8" in refusal(UsageError, class_names, latin)
    for other in (b"a,b", {"a", "b"}, {"a": 1, "b": 2}, 3):
        assert "is neither a list of texts" in refusal(ParameterError, class_names, other)


@pytest.mark.parametrize("more", [{"normalise": True}, {"aliases": {"a": "cat"}}])
def test_spellings_need_names(more):
    (name,) = more
    given = {"normalise": False, "aliases": None}
    text = refusal(UsageError, names_of, None, **given | more)
    assert text == f"`{name}` needs `label_names`"
    assert names_of(None, **given) is None


def test_names_that_nobody_listed_are_secret_and_need_no_number():
    first = ClassNames((), normalise=True, listed=False)
    assert first.class_of("cat") == -1
    assert [first.spelled(text) for text in (" Cat.", " ", "a\0")] == ["cat", "", ""]
    found = ClassNames(("cat", "dog"), normalise=True, listed=False)
    assert found.places(["DOG!", "cow"]).tolist() == [1, -1]
    assert "cat" not in repr(found)


def test_texts_of_arrow_that_are_no_utf_8_are_none():
    """Bytes that are no text can be no name, and end no run."""
    raw = pa.array([b"cat", b"\xff", b"a\0", None], pa.binary())
    for column in (raw.view(pa.string()), raw.cast(pa.large_binary()).view(pa.large_string())):
        assert python_texts(column) == ["cat", None, None, None]
        assert ClassNames(("cat", "dog")).classes_of(column).to_pylist() == [0, None, None, None]


def test_names_travel_and_compare():
    names = ClassNames(NAMES, normalise=True, aliases=ALIASES)
    copy = pickle.loads(pickle.dumps(names))  # noqa: S301 - our own
    assert copy == names == ClassNames(NAMES, normalise=True, aliases=dict(ALIASES))
    assert (hash(copy), repr(copy)) == (hash(names), repr(names))
    assert copy.places(["katze", None]).tolist() == [0, -1]
    assert repr(names) != repr(ClassNames(NAMES, normalise=True))


@pytest.mark.parametrize(
    ("names", "words"),
    [("True,False", ("TRUE", "True", "false")), ("a,b,c", ("01", "1", "2.0"))],
)
@pytest.mark.parametrize("odd", ["unsure", "2.50", "1e0", "-1"])
def test_a_vote_in_long_form_does_not_change_how_the_others_are_read(names, words, odd, tmp_path):
    """All votes stand in one column, whose type once followed from every vote in it."""
    told = {"layout": "long", "label_names": names, "accept_unmatched": True, "teachers": 6}
    said = [[*words, *words], [*words, *words]]
    before = counts_of(in_csv(tmp_path / "v.csv", said, long=True), **told)
    said[0][0] = odd
    after = counts_of(in_csv(tmp_path / "v.csv", said, long=True), **told)
    np.testing.assert_array_equal(before[1], after[1])
    moved = after[0] - before[0]
    assert max(moved.clip(0).sum(), (-moved).clip(0).sum()) <= 1


def test_listed_ids_of_text_files_do_not_depend_on_who_voted(tmp_path):
    """One vote on q3 makes a column of texts; without this vote the ids are numbers."""
    rows = [f"{q},{t},{t % 2}" for q in (1, 2) for t in range(4)]
    for more in (["q3,0,1"], []):
        (tmp_path / "v.csv").write_text("\n".join(["query_id,teacher_id,label", *rows, *more]))
        how = {"classes": 2, "teachers": 4, "queries": ["1", "2", "q3"], "layout": "long"}
        _, ids, counts = read(tmp_path / "v.csv", **how)
        assert ids == ["1", "2", "q3"]
        assert counts.tolist() == [[2, 2], [2, 2], [0, len(more)]]


def test_listed_ids_of_text_files_are_whole_numbers_of_up_to_64_bits(tmp_path):
    rows = [f"{q},{t},{t % 2}" for q in (2**63 - 1, -(2**63)) for t in range(4)]
    (tmp_path / "v.csv").write_text("\n".join(["query_id,teacher_id,label", *rows]))
    for ids in ([2**63 - 1, -(2**63)], [2**63 - 1, -(2**63), 2**63]):
        how = {"classes": 2, "teachers": 4, "queries": [*map(str, ids)], "layout": "long"}
        _, found, counts = read(tmp_path / "v.csv", **how)
        assert found == (ids if len(ids) == 2 else [*map(str, ids)])
        assert counts.tolist()[:2] == [[2, 2], [2, 2]]


NUMERALS = {"01": 1, "1.00": 1, "1e0": 1, "1.": 1, ".0": 0, "1,0": 1, "1,": 1, "-0": 0, "2": 2}
MISSED = ("nan", "NaN", "-1.0", "-1", "-inf", "-2.5")


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("beside", ["1", "b", "unsure"])
def test_numbers_in_text_files_are_read_one_by_one(beside, normalise, tmp_path):
    """In long and in wide form, whatever other votes there are."""
    how = {"label_names": "a,b,c", "accept_unmatched": True, "normalise": normalise}
    for cell in (*NUMERALS, *MISSED, "3", "0.5", "inf", "9" * 5000):
        other = [0, beside != "unsure", 0]
        wanted = [n + (place == NUMERALS.get(cell)) for place, n in enumerate(other)]
        strange = cell not in NUMERALS and cell not in MISSED
        for layout in ("long", "labels"):
            said = [[cell, beside], [beside, cell]]
            path = in_csv(tmp_path / "v.csv", said, long=layout == "long")
            with open_votes(path, layout=layout, teachers=2, **how) as file:
                (batch,) = file.batches()
                unmatched = file.unmatched()
            assert batch.counts.tolist() == [wanted] * 2
            assert unmatched.votes == 2 * (strange + (beside == "unsure"))
            causes = [cause for text, _, cause in unmatched.texts if text != "unsure"]
            told_why = "is a number outside 0..2; number the classes from 0 on"
            assert causes == [told_why] * strange


def test_true_and_false_of_text_files_may_be_aliases(tmp_path):
    for aliases in ({"true": "yes", "false": "no"}, {"TRUE": "yes", "true": "no", "False": "no"}):
        for beside in ("FALSE", "no"):
            path = in_csv(tmp_path / "v.csv", [["TRUE", beside, "TRUE"]], long=True)
            assert counts_of(path, label_names="no,yes", aliases=aliases).tolist() == [[1, 2]]


def test_a_later_row_of_json_lines_may_have_more_keys_beside_lists(tmp_path):
    path, how = tmp_path / "v.jsonl", {"layout": "labels", "classes": 2, "teachers": 2}
    path.write_text('{"labels": [0, 1]}\n{"labels": [1, 1], "note": "late"}')
    assert counts_of(path, **how).tolist() == [[1, 1], [0, 2]]
    path.write_text('{"teacher_0": 0}\n{"teacher_0": 1, "teacher_1": 1}')
    assert "the first row has no key 'teacher_1'" in refused(path, **how)


def test_as_many_queries_as_teachers_need_a_null_for_each_missing_vote(tmp_path):
    """Else rows and columns could be exchanged; the length of the first list once decided."""
    path, how = tmp_path / "v.jsonl", {"layout": "labels", "classes": 2, "teachers": 3}
    for row in (0, 2):
        votes = [[0, 1, 1], [1, 0, 1], [1, 1, 1]]
        votes[row] = [1, 0]
        path.write_bytes(lines({"labels": each} for each in votes))
        assert "null for each missing vote" in refused(path, **how)
        votes[row] = [1, 0, None]
        path.write_bytes(lines({"labels": each} for each in votes))
        assert counts_of(path, **how)[row].tolist() == [1, 1]


def test_a_part_in_which_nobody_votes_is_read_like_the_others(tmp_path):
    (tmp_path / "p1.jsonl").write_bytes(lines([{"labels": ["cat", "dog", "cat"]}] * 2))
    for votes in (["cat", None, None], [None, None, None]):
        (tmp_path / "p2.jsonl").write_bytes(lines([{"labels": votes}]))
        counts = counts_of(tmp_path, layout="labels", label_names="cat,dog", teachers=3)
        assert counts.tolist() == [[2, 1], [2, 1], [votes.count("cat"), 0]]
