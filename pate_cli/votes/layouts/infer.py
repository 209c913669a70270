"""Telling the layout from the numbers, only where no second reading is left.

A wrong guess would put a public guarantee on the wrong histograms, so the rules are deliberately
narrow and everything else asks for `--layout`:

counts  Every total is the same, τ, and `classes`, if given, is the number of columns. Besides,
        - either `teachers` is given, is the total of at least half the rows and exceeded by none,
          and is neither the number of rows nor of columns;
        - or at least DISTINCT different rows share the total exactly and some entry is at least
          the number of columns. Label matrices do not do this: as a label, that entry would need
          more classes than there are teachers, and sums of labels agree only by accident.
labels  Column names may say so; then only the shape and the flags are asked: the file carries
        query ids or a column per teacher, or `teachers` is given and is not the number of rows.
        Otherwise, who is a row must be settled: `teachers` is the number of columns and not of
        rows, or the file carries query ids (with `teachers` absent or equal to the columns). And
        counts must be ruled out, by `classes` not being the number of columns, or by most totals
        exceeding `teachers`. (Unequal totals rule nothing out: counts may lack votes.)
        Every label must be below `classes`, or, if that is not told, below the number of teachers,
        and no total may be common to half the rows: a wrong `teachers` must not turn counts over.
        Texts are never counts, so columns or lists of them are labels, of whatever shape. Nor are
        true and false in an array: `teachers` then says who is a row, as it does of texts.
labels-by-teacher  The same with `teachers` the number of rows and not of columns.

Square matrices, one teacher, unanimous files, tiny files, rows with gaps and label files without
`--teachers` are therefore never guessed. Every later row is still checked against the layout.

Inferred or told, labels are refused on opening where turned round they would be as good and the
shape speaks for it: more teachers than queries while `teachers` is not given, or `teachers` rows
where rows are queries. Query ids, and columns named teacher_0, ..., leave no such doubt.

Whether the numbers settle a layout depends on the votes, so one teacher may decide between reading
a file and asking for `--layout`; names and flags do not depend on them.
"""

from __future__ import annotations

import numpy as np

from pate_cli.core.arrays import Ints, each_once
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.core.words import Layout
from pate_cli.votes.checks import ABSENT

DISTINCT = 8
SAMPLE_ENTRIES = 1 << 18
"""How many entries from the beginning of the file are looked at."""


@dataclass(frozen=True)
class Evidence:
    """What is known beside the numbers.

    rows, columns: the file's shape. classes, teachers: from the flags. transposable: the format
    can hold a row per teacher. rows_are_queries: the file names its queries. named: the layout the
    column names speak of.
    """

    rows: int
    columns: int
    classes: int | None
    teachers: int | None
    transposable: bool
    rows_are_queries: bool = False
    named: Layout | None = None


def infer(name: str, sample: Ints, known: Evidence) -> Layout:
    """Return the layout of a matrix of which `sample` [rows, columns] is the beginning.

    Raises:
        VoteError: when more than one reading is left, naming the choices.
    """
    if known.named is Layout.COUNTS:
        return Layout.COUNTS
    if known.named is Layout.LABELS:
        if known.rows_are_queries or known.teachers not in (None, known.rows):
            return Layout.LABELS
        raise _undecided(name, sample, known)
    complete = not bool((sample == ABSENT).any())
    if complete and _surely_counts(sample, known):
        return Layout.COUNTS
    if complete and _surely_not_counts(sample, known):
        orientation = _orientation(known)
        if orientation is not None and _labels_fit(sample, known):
            return orientation
    raise _undecided(name, sample, known)


def _undecided(name: str, sample: Ints, known: Evidence) -> VoteError:
    choices = [Layout.COUNTS, Layout.LABELS]
    if known.transposable:
        choices.append(Layout.LABELS_BY_TEACHER)
    return VoteError(
        f"{name}: the layout cannot be told from the numbers; "
        f"say `layout` {'|'.join(choices)}{_hint(sample, known)}"
    )


def _surely_counts(sample: Ints, known: Evidence) -> bool:
    if known.columns < 2 or known.classes not in (None, known.columns):
        return False
    totals = sample.sum(axis=1)
    teachers = known.teachers
    if teachers is not None and teachers not in (known.rows, known.columns):
        usual = np.count_nonzero(totals == teachers) * 2 >= totals.size
        return bool(usual and totals.max() <= teachers)
    tau = int(totals[0]) if teachers is None else teachers
    if tau == known.columns and teachers is not None and known.classes is None:
        return False  # as many teachers as columns: the columns may be the teachers
    if tau <= 0 or bool((totals != tau).any()) or int(sample.max()) < known.columns:
        return False
    return len(each_once(sample, axis=0)) >= DISTINCT


def _surely_not_counts(sample: Ints, known: Evidence) -> bool:
    if known.classes is not None and known.classes != known.columns:
        return True
    if known.teachers is None:
        return False
    over = np.count_nonzero(sample.sum(axis=1) > known.teachers)
    return bool(over * 2 > sample.shape[0])


def _orientation(known: Evidence) -> Layout | None:
    teachers = known.teachers
    if known.rows_are_queries:
        return Layout.LABELS if teachers in (None, known.columns) else None
    if teachers is None or known.rows == known.columns:
        return None
    if teachers == known.columns:
        return Layout.LABELS
    if teachers == known.rows and known.transposable:
        return Layout.LABELS_BY_TEACHER
    return None


def _labels_fit(sample: Ints, known: Evidence) -> bool:
    teachers = known.columns if known.teachers is None else known.teachers
    if int(sample.max()) >= (teachers if known.classes is None else known.classes):
        return False
    _, times = np.unique(sample.sum(axis=1), return_counts=True)
    return bool(times.max() * 2 < sample.shape[0])


def _hint(sample: Ints, known: Evidence) -> str:
    """Name the odd row where the file looks like counts but for a few rows."""
    totals = np.where(sample == ABSENT, 0, sample).sum(axis=1)
    odd = totals != totals[0]
    if known.classes in (None, known.columns) and 0 < np.count_nonzero(odd) * 2 < totals.size:
        return f" (as counts, row {int(np.argmax(odd))} is the first with another total)"
    if known.teachers is None:
        return "; `teachers` and `classes` help to tell"
    return ""
