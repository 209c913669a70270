"""Votes of an ensemble, [queries, teachers], written in every layout and format."""

import csv
import gzip
import io
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from stored import arrow, lines, npy, parquet

MARKS = {"commas": ",", "semicolons": ";", "tabs": "\t"}
JSON = {"lines": lines, "document": lambda rows: json.dumps(rows).encode()}
TYPED = {"parquet": parquet, "arrow": arrow, "stream": lambda t: arrow(t, pa.ipc.new_stream)}
FRAMES = {"pyarrow": pa.table, "pandas": pd.DataFrame, "polars": pl.DataFrame}
TABLES, PLAIN = (*MARKS, *JSON, *TYPED, *FRAMES), ("npy", "npz", "array")
ARRAYS = (*PLAIN, "objects", "lists")
GONE = ...
"""In layout long there is no row for this teacher and query."""


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
