"""Kinds of check: each field of a report declares how whoever holds the report can check it."""

from __future__ import annotations

import enum
from typing import Final


class Checked(enum.StrEnum):
    """How a field of a report can be checked, and what `verify` calls that.

    `verify` computes again what is COMPUTED. For each of the others that a report has it says what
    the field was compared with, or why it was not.

    Attributes:
        COMPUTED: it follows from other fields (`disclosure.facts.report_of`).
        PARTS: its own fields declare how each is checked.
        LABELS: the file of labels tells, by its hash, its rows and the settings it carries.
        RECORD: only the record tells, which the holder of the votes keeps.
        RELEASE_TEST: it came out of a random draw whose chance follows from the votes.
        SANITIZING: it was drawn around a number that describes the votes.
        EXTERNAL: others state it.
        FREE: nothing follows from it.
    """

    COMPUTED = "numbers and words"
    PARTS = "parts"
    LABELS = "settings that the labels carry"
    RECORD = "whether runs are missing, and what earlier ones did"
    RELEASE_TEST = "the random draw of the release test"
    SANITIZING = "the random draw of the sanitized epsilon"
    EXTERNAL = "what others state"
    FREE = "nothing"


CHECKED: Final = "checked"
"""Name of the metadata of a dataclass field that says how it is checked."""
COMPUTED: Final = {CHECKED: Checked.COMPUTED}
PARTS: Final = {CHECKED: Checked.PARTS}
LABELS: Final = {CHECKED: Checked.LABELS}
RECORD: Final = {CHECKED: Checked.RECORD}
RELEASE_TEST: Final = {CHECKED: Checked.RELEASE_TEST}
SANITIZING: Final = {CHECKED: Checked.SANITIZING}
EXTERNAL: Final = {CHECKED: Checked.EXTERNAL}
FREE: Final = {CHECKED: Checked.FREE}
