"""What a row of a vote file means."""

from __future__ import annotations

import enum


class Layout(enum.StrEnum):
    """The four shapes votes come in; the values are the words `--layout` takes.

    COUNTS             [queries, classes]: how many teachers voted for each class.
    LABELS             [queries, teachers]: the class each teacher voted for.
    LABELS_BY_TEACHER  [teachers, queries]: the same, one row per teacher (NPY only).
    LONG               one row per vote: query_id, teacher_id, label (Parquet only).
    """

    COUNTS = "counts"
    LABELS = "labels"
    LABELS_BY_TEACHER = "labels-by-teacher"
    LONG = "long"
