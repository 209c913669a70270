"""What one teacher says changes this teacher's votes in the histograms, and nothing else.

The guarantee compares two vote files that differ in all votes of one teacher. So when one teacher
says something else that is allowed, the votes must still be accepted, with the same shape, ids,
facts and order; and in each row at most the vote of this teacher may move, appear or go missing.
The test draws an ensemble, a format, a layout and options, and then changes one teacher.
"""

import csv
import gzip
import io
import json
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.core.arrays import SparseCounts
from pate_cli.votes.facts import TeacherGroups
from pate_cli.votes.opening import open_votes
from slices import tries
from stored import arrow, lines, npy, parquet

MARKS = {"commas": ",", "semicolons": ";", "tabs": "\t"}
JSON = {"lines": lines, "document": lambda rows: json.dumps(rows).encode()}
TYPED = {"parquet": parquet, "arrow": arrow, "stream": lambda t: arrow(t, pa.ipc.new_stream)}
FRAMES = {"pyarrow": pa.table, "pandas": pd.DataFrame, "polars": pl.DataFrame}
TABLES, PLAIN = (*MARKS, *JSON, *TYPED, *FRAMES), ("npy", "npz", "array")
ARRAYS = (*PLAIN, "objects", "lists")
GONE = ...  # In layout long there is no row for this teacher and query.


def _rows(layout, how, votes):
    """The rows of a table, as dictionaries."""
    ids = how["ids"] or [None] * len(votes)
    if layout == "long":
        cells = [(q, t) for q in range(len(votes)) for t in range(len(votes[0]))]
        how["random"].seed(0)
        how["random"].shuffle(cells)
        names = ("query_id", "teacher_id", "label")
        found = [(ids[q], how["titles"][t], votes[q][t]) for q, t in cells]
        return [dict(zip(names, row, strict=True)) for row in found if row[2] is not GONE]
    found = []
    for key, said in zip(ids, votes, strict=False):
        title, each = ("teacher_{}", "labels"), list(said)
        if layout == "counts":
            title, each = ("class_{}", "counts"), [said.count(n) for n in range(3)]
        while how["short"] and each and each[-1] is None:
            each.pop()
        row = {title[0].format(n): vote for n, vote in enumerate(each)}
        if how["form"] in JSON and found and how["omit"]:  # The first row must have all keys.
            row = {name: vote for name, vote in row.items() if vote is not None}
        row = row if how["wide"] else {title[1]: each}
        found.append(row if key is None else {"query_id": key, **row})
    return found


def _array(form, votes, turned):
    """An array, or a list of rows."""
    if form == "lists":
        return [list(row) for row in (zip(*votes, strict=True) if turned else votes)]
    if form in PLAIN:
        words = any(isinstance(each, str) for row in votes for each in row)
        votes = [["" if words and vote is None else vote for vote in row] for row in votes]
    array = np.array(votes, dtype=object if form == "objects" else None)
    return np.swapaxes(array, 0, 1) if turned else array


def written(layout, how, votes, folder):
    """The votes in memory, or the path of a file or a folder.

    `how` has the format (`form`), `ids` of the queries, the ids of the teachers in layout long
    (`titles`), the number of rows in each part (`cut`), a source of the order of votes (`random`),
    and what is true or not: `wide` for columns and not lists, `turned` for a row per teacher,
    `short` and `omit` for lists and objects without missing votes, and `gz`.
    """
    form = how["form"]
    if form in ARRAYS:
        array = _array(form, votes, how["turned"])
        if form in ("npy", "npz"):
            (folder / "votes").write_bytes(npy(array, np.save if form == "npy" else np.savez))
        return folder / "votes" if form in ("npy", "npz") else array
    rows = _rows(layout, how, votes)
    names = [*dict.fromkeys(name for row in rows for name in row)]
    names = names or ["query_id", "teacher_id", "label"]
    if form in FRAMES:
        return FRAMES[form]({name: [row[name] for row in rows] for name in names})
    cut = how["cut"] or len(rows) or 1
    for at in range(0, len(rows) or 1, cut):
        part = rows[at : at + cut]
        if form in MARKS:
            file = io.StringIO(newline="")
            writer = csv.DictWriter(file, names, delimiter=MARKS[form])
            writer.writeheader()
            writer.writerows(part)
            content = file.getvalue().encode()
        elif form in JSON:
            content = JSON[form](part)
        else:
            content = TYPED[form](pa.table({name: [row[name] for row in part] for name in names}))
        (folder / f"part-{at}").write_bytes(gzip.compress(content) if how["gz"] else content)
    return folder


NAMES = (("cat", "dog", "größe"), ("True", "false"), ("TRUE", "True", "no"), ("NA", 'a "b", c'))
NUMERALS = (("1", "0"), ("7", "007", "1e0"))  # CSV allows no such names.
STRAYS = (
    *("unsure", " cat ", "CAT.", "'cat'", "NA", " NA ", "nan", "null", "-1", "-0", "0", "1", "01"),
    *("1e0", "1.5", "9", "inf", "1,000", "TRUE", "true", "false", '"', "'", ",", "a;b", "c\td"),
    *("#", "[" * 70, "[null", '"k": ' * 50, "x" * 5000, "\0", "a\0b", "2020-01-01", "\ud800"),
)
NUMBERS = [each.format(n) for each in ("{}", " {}", "0{}", "{}.0", "{}e0", "{}.") for n in "012"]
NAN = float("nan")


def entries(form, kind, gaps):
    """All that a teacher may say about a query; with `gaps`, also a missing vote."""
    text, none = form in MARKS, (None,)
    if kind == "word":
        fit = [each for each in STRAYS if each != "\ud800" or form in (*JSON, *ARRAYS)]
        none = ("", " ", "NA") if text else (None, NAN) if form == "pandas" else (None,)
        other = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\r\n"))
        names = sorted({name for names in NAMES for name in names})
        return st.sampled_from(names) | st.sampled_from([*fit, *none]) | other
    if kind == "scores":
        each = st.sampled_from([0, 1, 0.5, 1e300, *(() if form in PLAIN else (2**53, 2**53 + 1))])
        return st.tuples(each, each, each) | (st.just((NAN,) * 3) if gaps else st.nothing())
    if kind == "multilabel":
        each = entries(form, "truth" if form == "objects" else "bit", gaps)
        return st.tuples(each, each)
    if text and kind != "counts":
        said = NUMBERS if kind == "number" else ("TRUE", "true", " False", "false")
        none = ("", " ", "NA", " NA ", *(("nan", "-1") if kind == "number" else ()))
    else:
        said = {"truth": (True, False), "bit": (0, 1)}.get(kind, (0, 1, 2))
    if form in PLAIN:
        none = (-1, NAN)
    elif kind in ("number", "bit") and not text:
        said, none = (*said, *([1.0] if form != "polars" else [])), (*none, -1)
        none = (*none, NAN) if form in ARRAYS else none
    elif kind == "truth" and form in ("lists", "objects", "pandas"):
        none = (None, NAN)
    return st.sampled_from([*said, *(none if gaps else ())])


@st.composite
def cases(draw):
    """How votes are written and read; votes [queries, teachers], and others of one teacher."""

    def some(*these):
        return draw(st.sampled_from(these))

    rows, width, form = draw(st.integers(1, 5)), draw(st.integers(2, 4)), some(*TABLES, *ARRAYS)
    text, array, plain = form in MARKS, form in ARRAYS, form in PLAIN
    layout = some("labels", "scores", "multilabel") if array else some("long", "labels", "counts")
    long, one = layout == "long", draw(st.integers(0, width - 1))
    kind = some("number", "truth", "word", "word") if layout in ("long", "labels") else layout
    wide, turned, often = (
        long or text or some(True, False),
        array and some(True, False),
        st.booleans(),
    )
    ids = not array and (long or draw(often)) and some("{}", "q{}", "00{}", "é{}")
    gaps = kind == "word" or (draw(often) and not (kind == "truth" and plain))
    told = (gaps and kind != "word") or kind == "counts" or draw(often)
    told = told or (width > rows and (array or not (ids or wide)))
    groups = kind != "counts" and draw(often)
    few = told and gaps and not groups and kind != "scores" and draw(st.none() | st.integers(1, 3))
    more = 2 if told and wide and not (array or few or groups) and draw(often) else 0
    options = {"layout": f"{layout}-by-teacher" if turned else layout}
    options |= {"teachers": width + more} if told else {}
    options |= {"votes_per_teacher": few} if few else {}
    if kind == "word":
        names = some(*NAMES, *(() if text else NUMERALS))
        extra = some({}, {"aliases": {"unsure": names[0]}}, {"normalise": names[0] != "TRUE"})
        options |= some({"label_names": names, **extra}, {"any_name": True})
    elif kind == "number" or (kind in ("truth", "multilabel") and draw(often)):
        options["classes"] = 3 if kind == "number" else 2
    titles = [f"teacher_{t}" if long else t for t in range(width)]
    weights = draw(st.lists(st.integers(1, 9), min_size=width, max_size=width))
    if groups:
        named = titles if long or (wide and not array and draw(often)) else None
        options["groups"] = TeacherGroups(["a"] * width, weights, ids=named)
    said = entries(form, kind, gaps)
    said = said | st.just(GONE) if long and told else said
    votes = [[draw(said) for _ in range(width)] for _ in range(rows)]
    votes[0][one - 1] = draw(entries(form, kind, gaps=False).filter(lambda each: each != NAN))
    other = [[draw(said) if t == one else row[t] for t in range(width)] for row in votes]
    if few and wide and not array and kind != "counts" and draw(often):
        lists = [[(q - t) % rows < few for t in range(width)] for q in range(rows)]
        options |= {"assigned": True, "teachers": max(map(sum, lists))}
        options |= {"classes": 2} if kind == "truth" else {}
        for row, listed in [*zip(votes, lists, strict=True), *zip(other, lists, strict=True)]:
            row[:] = [
                v if may else "" if text else None for v, may in zip(row, listed, strict=True)
            ]
    keys = [ids.format(n) if ids else n for n in range(rows + 1)]
    keys = [*range(rows + 1)] if ids == "{}" and not text and draw(often) else keys
    options |= {"queries": draw(st.permutations(keys))} if long and told else {}
    how = {"form": form, "wide": wide, "ids": keys if ids else None, "titles": titles}
    how |= {"turned": turned, "cut": draw(st.none() | st.integers(1, 9)), "gz": draw(often)}
    how |= {"omit": draw(often), "random": draw(st.randoms(use_true_random=True))}
    how["short"] = told and not (wide or array or groups or few or rows == width) and draw(often)
    return options, how, votes, other, weights[one] if groups else 1


def read(source, options):
    """What must not depend on one teacher, and the votes by class in each row."""
    with open_votes(source, **options) as file:
        rows, ids = [], []
        for batch in file.batches():
            dense, ids = not isinstance(batch.counts, SparseCounts), [*ids, *batch.ids]
            counts = SparseCounts.of(batch.counts) if dense else batch.counts
            names = file.names.names if file.unlisted else range(file.classes)
            for labels, votes in zip(counts.labels, counts.counts, strict=True):
                pairs = zip(labels.tolist(), votes.tolist(), strict=True)
                rows.append(Counter({names[label]: n for label, n in pairs if n}))
        shape = (file.queries, file.classes, file.teachers, file.layout, file.width)
        return (shape, [(type(each), each) for each in ids], file.facts, file.order), rows


@given(cases())
@settings(max_examples=tries(360))
def test_one_teacher_changes_one_vote_of_a_row(case):
    options, how, votes, other, weight = case
    layout, found = options["layout"].removesuffix("-by-teacher"), []
    for each in (votes, other):
        with tempfile.TemporaryDirectory() as folder:
            found.append(read(written(layout, how, each, Path(folder)), options))
    (public, before), (same, after) = found
    assert public == same
    for one, two in zip(before, after, strict=True):
        assert max((one - two).total(), (two - one).total()) <= weight
