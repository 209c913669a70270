"""The table of parameters: all that is said of a name beside its type and default.

Types and defaults stand in the signatures of the verbs, where readers look for them; help.ini has
help and group of each name, and the tables below what only some of them have. The option of the
command line, both helps, completion, checks, "did you mean", docstrings and the reference page
follow.
"""

from __future__ import annotations

import configparser
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pate_cli.core import words

ARGUMENTS: Final = "Arguments"
PYTHON: Final = "Python alone"

OPTIONS: Final = {
    "as_json": "--json",
    "as_table": "--table",
    "label_format": "--format",
    "out": "--output",
    "predictions": "--student",
    "record": "--spend",
    "reports": "--verify",
}
"""Options that are not the name with dashes."""
SHORT: Final = {"mechanism": "-m", "out": "-o", "quiet": "-q"}
"""Options of one letter."""
OFF: Final = {"record": "no_record", "with_dp_accounting": "without_dp_accounting"}
"""Options that stand for False, by what they switch off."""
METAVARS: Final = {
    "agreement": "LOW:HIGH",
    "checkpoint": "FOLDER",
    "engine": "NAME|ADDRESS",
    "ensemble": "NAME",
    "external": "FILE",
    "given": "FILE",
    "id_column": "NAME",
    "reports": "REPORT",
    "synthetic": "NAME=N,...",
}
"""How help writes values whose kind does not say it."""
EXCLUDES: Final = {
    "as_json": ("as_table",),
    "compare": ("per_query", "plot", "target_epsilon"),
    "export_rdp": ("as_json", "as_table"),
    "html": ("as_json", "as_table"),
    "labels": ("classes",),
    "order": ("orders",),
    "record": ("ensemble",),
}
"""Parameters that cannot be given together."""
TRIED: Final = {
    "classes": ("num_classes", "n_classes"),
    "label_names": ("names", "class_names"),
    "max_queries": ("limit", "rows", "num_queries"),
    "mechanism": ("aggregator", "method"),
    "normalise": ("normalize",),
    "out": ("labels", "into"),
    "record": ("record_file",),
    "sigma1": ("sigma_threshold",),
    "sigma2": ("sigma_gnmax", "sigma", "noise"),
    "target_epsilon": ("epsilon", "eps", "target"),
    "teachers": ("num_teachers", "n_teachers"),
    "workers": ("jobs", "n_jobs", "processes"),
}
"""Other names that people try."""


@dataclass(frozen=True)
class HelpEntry:
    """Entry of help.ini: the help and the group of a parameter.

    Attributes:
        help: one or two sentences, which name neither the type nor the range.
        group: the heading under which help lists it.
        everyday: whether `--help` shows it; `--help-all` shows all.
    """

    help: str
    group: str
    everyday: bool


def _read() -> dict[tuple[str, str], HelpEntry]:
    """Return the entries of help.ini by verb and name; those of all verbs have no verb."""
    parser = configparser.ConfigParser(delimiters="=", interpolation=None)
    parser.read_string(Path(__file__).with_name("help.ini").read_text("utf-8"))
    found: dict[tuple[str, str], HelpEntry] = {}
    for title in parser.sections():
        told, _, group = title.rpartition(": ")
        verbs = told.replace("--help-all", "").split() or [""]
        for name, text in parser[title].items():
            said = " ".join(text.split()).format_map(vars(words))
            entry = HelpEntry(said, group, "--help-all" not in told)
            found |= {(verb, name): entry for verb in verbs}
    return found


ENTRIES: Final = _read()
HEADINGS: Final = tuple(dict.fromkeys(entry.group for entry in ENTRIES.values()))
"""Groups of parameters, in the order of the help."""


def said_of(verb: str, name: str) -> HelpEntry:
    """Return what is said of a parameter of a verb or command.

    A verb's own entries come before those that it shares with others.

    Raises:
        LookupError: nothing is said of it.
    """
    said = ENTRIES.get((verb, name)) or ENTRIES.get(("", name))
    if said is None:
        raise LookupError(f"help.ini has no entry for {name} of {verb}")
    return said


def of_votes(name: str) -> bool:
    """Return whether a parameter says how votes are read: help.ini has it under [Votes]."""
    entry = ENTRIES.get(("", name))
    return entry is not None and entry.group == "Votes"


def anywhere(name: str) -> HelpEntry | None:
    """Return what is said of a name, for whatever verb; None if nothing is."""
    found = (entry for (_, each), entry in ENTRIES.items() if each == name)
    return ENTRIES.get(("", name)) or next(found, None)
