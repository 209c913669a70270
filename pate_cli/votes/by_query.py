"""Layouts with a row per query: counts, sparse, labels, scores, and several labels per query.

If each query has several labels, each pair of a query and a label has its own row in the
`VoteFile`: a histogram of the two classes no and yes. The rows of one query, one for each label,
follow each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from pate_cli.core.arrays import CLASSES, DENSE_CLASSES, Ints, LabelSet, SparseCounts, compact
from pate_cli.core.errors import ParameterError, UsageError, VoteError, quoted
from pate_cli.core.words import Layout, PublicFact
from pate_cli.votes.checks import ABSENT, check_labels, refuse, tally
from pate_cli.votes.columns import COUNT, LABEL
from pate_cli.votes.matrix import LIST_ROWS, OfArray, OfTable, Opened, file_of
from pate_cli.votes.vote_file import ENTRIES_PER_BATCH, Span, VoteBatch, VoteFile

LARGEST_LABEL_SEEN = (1 << 16) - 1
"""The largest label if `classes` is not given. A larger label is treated as damage, because each
histogram would have an entry for every smaller label."""

_WIDTH_OF_TEXT = 4
"""How many numbers take as much memory as one vote in words; this limits the size of batches."""

Count = Callable[[Ints, int], Ints]
"""A function of entries and the number of their first query: it returns the votes for no and yes,
[queries, labels, 2]."""


def open_counts(opened: Opened) -> VoteFile:
    """Open an array [queries, classes], a table with a column per class, or lists of counts."""
    reading, columns, classes = opened.reading, opened.columns, opened.width
    own, named = columns.class_names, reading.label_names
    if own is not None and named is not None and (other := {*own} ^ {*named}):
        only = f"{quoted(min(other))} must be both a column and in `label_names`"
        raise VoteError(f"{opened.source.name}: class {only}")
    _, _, head = next(opened.blocks(Span(0, 1, 1)))
    teachers = reading.teachers or int(head.sum())
    opened.check_counts(head, 0, teachers)
    return file_of(opened, classes, teachers, partial(_counts, opened, teachers), classes)


def open_sparse(opened: OfTable) -> VoteFile:
    """Open a table with the list columns `label` and `count`."""
    reading, classes = opened.reading, opened.reading.classes
    if classes is None:
        raise UsageError(
            f"{opened.source.name}: layout sparse needs `classes`, the number of classes"
        )
    _, head = next(opened.source.batches([COUNT], 1))
    teachers = reading.teachers or int(opened.lists(head.column(0), 0, (0, classes)).sum())
    read = partial(_sparse, opened, classes, teachers)
    next(read(Span(0, 1, 1)))
    width = classes if classes <= DENSE_CLASSES else teachers
    return file_of(opened, classes, teachers, read, width)


def _counts(opened: Opened, teachers: int, span: Span) -> Iterator[VoteBatch]:
    for row, ids, counts in opened.blocks(span):
        opened.check_counts(counts, row, teachers)
        yield VoteBatch(row, ids, compact(counts))


def _sparse(opened: OfTable, classes: int, teachers: int, span: Span) -> Iterator[VoteBatch]:
    size, where, most = min(span.size, LIST_ROWS), opened.where, min(classes, max(teachers, 1))
    for row, batch in opened.source.batches(opened.columns.all, size, span.start, span.stop):
        labels = opened.lists(batch.column(LABEL), row, (0, most))
        counts = opened.lists(batch.column(COUNT), row, (0, most))
        check_labels(labels, row, where, classes)
        uneven = (labels != ABSENT).sum(axis=1) != (counts != ABSENT).sum(axis=1)
        ordered = np.sort(labels, axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != ABSENT)
        refuse(uneven, row, where, f"has lists {LABEL} and {COUNT} of different lengths")
        refuse(counts == 0, row, where, "has a count of 0; list only the classes with votes")
        refuse(twice, row, where, "lists a label twice; list it once, with the sum of its counts")
        there = np.nonzero(labels != ABSENT)
        shape = (len(labels), classes)
        found = SparseCounts.of_entries(there[0], labels[there], counts[there], shape)
        opened.check_counts(found.counts, row, teachers)
        dense = found.dense() if classes <= DENSE_CLASSES else found
        yield VoteBatch(row, opened.ids(batch, row), dense)


def open_labels(opened: Opened) -> VoteFile:
    """Open labels: an array [queries, teachers], or a table.

    The table has a column for each teacher, or one column with a list of labels for each query.
    """
    reading, weights = opened.reading, weights_of(opened)
    teachers = reading.teachers or opened.width
    classes = reading.classes or classes_above(_largest_label(opened), opened.source.name)
    width = max(teachers, opened.width, classes if classes <= DENSE_CLASSES else 1)
    if opened.words is not None:
        width = max(width, teachers * _WIDTH_OF_TEXT)
    off = (PublicFact.CLASSES,) if reading.classes is None else ()
    read = partial(_votes, opened, classes, weights)
    return file_of(opened, classes, teachers, read, width, read_off=off)


def open_scores(opened: OfArray) -> VoteFile:
    """Open an array of scores [queries, teachers, classes]."""
    weights, teachers, classes = weights_of(opened), opened.width, opened.source.shape[2]
    read = partial(_best_scored, opened, classes, weights)
    return file_of(opened, classes, teachers, read, teachers * classes)


def weights_of(opened: Opened) -> Ints | None:
    """Return how many votes the vote of each teacher counts as; None if each counts as one.

    VoteError is raised if the number of teachers in the votes does not fit the options `teachers`
    and `groups`, or if rows and columns may be swapped. If rows and columns were swapped, pate
    would take the queries for teachers. If pate took many queries for teachers, the computed ε
    would be far too small.
    """
    queries, teachers, said = opened.rows, opened.width, opened.reading.ensemble
    name, groups, columns = opened.source.name, opened.reading.groups, opened.columns
    shape = f"{name}: in layout {opened.layout} the votes have {teachers} teachers"
    if not columns.rows_are_queries and said is None and teachers > queries:
        fix = f"give `teachers` {teachers} if this is right; if rows and columns are exchanged"
        raise VoteError(
            f"{shape} and {queries} queries; {fix}, transpose the votes and give `teachers` "
            f"{queries}"
        )
    if not columns.rows_are_queries and said == queries != teachers:
        turn = "store one row per query" if columns.votes else "give the `layout` by teacher"
        turn += ", with null for each missing vote" if columns.is_list else ""
        raise VoteError(
            f"{shape}, but `teachers` is {said}, the number of queries: rows and columns are "
            f"exchanged; {turn}"
        )
    if groups is not None:
        return groups.in_columns(columns.titles or None, teachers, name)
    every = 3 in opened.traits.sides
    fewer = opened.reading.assigned  # If True, only some teachers vote on each query.
    if said is not None and not fewer and (teachers > said or (every and teachers < said)):
        missing = "write NaN for each missing vote, or leave out missing votes at the end of a list"
        raise VoteError(f"{shape}, but `teachers` is {said}; {missing}")
    return None


def classes_above(top: int, name: str) -> int:
    """Return the number of classes if `top` is the largest label of all."""
    if top < 1:
        raise VoteError(f"{name}: only label 0 occurs; give `classes`, the number of classes")
    return top + 1


def _votes(opened: Opened, classes: int, weights: Ints | None, span: Span) -> Iterator[VoteBatch]:
    for row, ids, labels in opened.blocks(span):
        check_labels(labels, row, opened.where, classes)
        yield VoteBatch(row, ids, tally(labels, classes, weights))


def _largest_label(opened: Opened) -> int:
    top = 0
    size = ENTRIES_PER_BATCH // max(opened.width, 1) + 1
    for row, _, labels in opened.blocks(Span(0, opened.rows, size)):
        check_labels(labels, row, opened.where, LARGEST_LABEL_SEEN + 1)
        top = max(top, int(labels.max(initial=0)))
    return top


def _best_scored(
    opened: OfArray, classes: int, weights: Ints | None, span: Span
) -> Iterator[VoteBatch]:
    """Yield histograms in which each teacher votes for its class of highest score.

    If several classes have the highest score, the teacher votes for the first of them.
    """
    for row, scores in opened.slabs(span):
        votes = scores.argmax(axis=2).astype(np.int64, copy=False)
        # NaN sorts above all numbers, so it is the best score of a teacher that has one.
        bad = ~np.isfinite(np.take_along_axis(scores, votes[:, :, None], axis=2)[:, :, 0])
        if opened.reading.teachers is not None and bad.any():
            none = np.isnan(scores).all(axis=2)
            votes[none], bad[none] = ABSENT, False
        what = "has a teacher whose best score is NaN or infinite. If votes may be missing, give"
        more = "`teachers` N, the number of all teachers, and NaN for all scores of a missing vote"
        refuse(bad, row, opened.where, f"{what} {more}")
        yield VoteBatch(row, np.arange(row, row + len(votes)), tally(votes, classes, weights))


def open_multilabel(opened: OfArray) -> VoteFile:
    """Open votes [queries, teachers, labels]: 1 for yes, 0 for no."""
    weights, teachers = weights_of(opened), opened.width
    each = np.ones(teachers, dtype=np.int64) if weights is None else weights
    count = partial(_said, opened, each)
    return _file(opened, opened.source.shape[2], teachers, count)


def open_multilabel_counts(opened: Opened) -> VoteFile:
    """Open counts of yes [queries, labels], or of no and yes [queries, labels, 2]."""
    name, teachers = opened.source.name, opened.reading.teachers
    if isinstance(opened, OfArray) and opened.source.shape[2:] not in ((), (CLASSES,)):
        shape = opened.source.shape
        raise VoteError(
            f"{name}: has shape {shape}; the last dimension must have two entries, the count of no "
            "and the count of yes"
        )
    _, _, head = next(opened.blocks(Span(0, 1, 1)))
    if teachers is None and head.ndim == 2:
        raise VoteError(
            f"{name}: counts of yes do not show how many teachers said no; give `teachers` N, the "
            "number of all teachers"
        )
    teachers = teachers or int(head[0, 0].sum())
    count = partial(_counted, opened, teachers)
    count(head, 0)
    return _file(opened, opened.width, teachers, count)


def _file(opened: Opened, labels: int, teachers: int, count: Count) -> VoteFile:
    columns, names = opened.columns, opened.reading.label_names
    titles = columns.titles or names
    if names is not None and (len(names) != labels or titles != names):
        other = f"differ from the {len(names)} `label_names`; give one name per label, in order"
        raise VoteError(f"{opened.source.name}: the {labels} labels of the votes {other}")
    if opened.reading.classes not in (None, CLASSES):
        raise ParameterError(f"`classes` is {opened.reading.classes}, but each label is yes or no")
    entries = CLASSES if opened.layout is Layout.MULTILABEL_COUNTS else max(teachers, CLASSES)
    read, label_set = partial(_pairs, opened, count, labels), LabelSet(labels, titles)
    return file_of(opened, CLASSES, teachers, read, entries, label_set=label_set)


def _pairs(opened: Opened, count: Count, labels: int, span: Span) -> Iterator[VoteBatch]:
    """Yield the rows of a span, which are pairs of a query and a label.

    If only some rows of a query are in the span, the whole query is read and the rest is dropped.
    """
    start, stop, size = span
    whole_queries = Span(start // labels, -(-stop // labels), max(size // labels, 1))
    for query, ids, values in opened.blocks(whole_queries):
        row, pairs = query * labels, count(values, query).reshape(-1, CLASSES)
        wanted = slice(max(start - row, 0), min(stop - row, len(pairs)))
        each = np.repeat(np.arange(len(values)), labels)[wanted]
        own = ids[each] if isinstance(ids, np.ndarray) else tuple(ids[at] for at in each)
        yield VoteBatch(row + wanted.start, own, np.ascontiguousarray(pairs[wanted]))


def _counted(opened: Opened, teachers: int, counts: Ints, row: int) -> Ints:
    both = counts if counts.ndim == 3 else counts[:, :, np.newaxis]
    opened.check_counts(both, row, teachers)
    return counts if counts.ndim == 3 else np.stack([teachers - counts, counts], axis=2)


def _said(opened: Opened, weights: Ints, said: Ints, row: int) -> Ints:
    check_labels(said, row, opened.where, CLASSES)
    return np.stack([np.einsum("qtl,t->ql", said == side, weights) for side in (0, 1)], axis=2)
