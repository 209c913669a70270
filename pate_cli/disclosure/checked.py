"""How a reader can check what a report states.

A report has facts and what is computed from them. `verify` computes the second kind again. Each
fact says in its declaration what else can tell whether it is true.
"""

from __future__ import annotations

import enum
from typing import Final


class Checked(enum.StrEnum):
    """Kinds of check: how a reader can tell that a field of a report is true, as `verify` says it.

    Attributes:
        COMPUTED: it follows from the facts (`disclosure.facts.report_of`).
        LABELS: the file of labels tells, by its hash, its rows and the settings it carries.
        RECORD: only the record tells, which the holder of the votes keeps.
        RELEASE_TEST: it came out of a random draw whose chance follows from the votes.
        SANITIZING: it was drawn around a number that describes the votes.
        EXTERNAL: others state it.
        FREE: nothing follows from it.
    """

    COMPUTED = "numbers and words"
    LABELS = "settings that the labels carry"
    RECORD = "whether runs are missing, and what earlier ones did"
    RELEASE_TEST = "the random draw of the release test"
    SANITIZING = "the random draw of the sanitized epsilon"
    EXTERNAL = "what others state"
    FREE = "nothing"


CHECKED: Final = "checked"
"""Name of the metadata of a fact that says how it is checked; what has none is computed."""
LABELS: Final = {CHECKED: Checked.LABELS}
RECORD: Final = {CHECKED: Checked.RECORD}
RELEASE_TEST: Final = {CHECKED: Checked.RELEASE_TEST}
SANITIZING: Final = {CHECKED: Checked.SANITIZING}
EXTERNAL: Final = {CHECKED: Checked.EXTERNAL}
FREE: Final = {CHECKED: Checked.FREE}
