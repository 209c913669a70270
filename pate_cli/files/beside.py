"""Names of outputs that nobody named: after the votes, or beside the labels."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from pate_cli.core.words import LABEL_SUFFIXES, VOTE_SUFFIXES
from pate_cli.files.addresses import is_address, public_name

_TABLE: Final = "|".join(map(re.escape, (*LABEL_SUFFIXES, *chain(*VOTE_SUFFIXES.values()))))
_KNOWN_SUFFIX: Final = re.compile(rf"({_TABLE})?(\.(gz|zst|bz2))?$", re.IGNORECASE)


def report_beside(labels: str, votes: str) -> str:
    """Return the name of the report that belongs to labels at `labels`: a path or an address.

    Labels that go to a device or a pipe have no folder: then it is named after the votes.
    """
    if is_address(labels):
        bits = urlsplit(labels)
        return urlunsplit(bits._replace(path=_report_of(bits.path, votes)))
    if labels != "-" and has_no_name(labels):
        return _report_of("", votes)
    return _report_of(labels, votes)


def _report_of(labels: str, votes: str) -> str:
    folder, slash, name = labels.rpartition("/")
    stem = _KNOWN_SUFFIX.sub("", name).removesuffix(".labels")
    return f"{folder}{slash}{stem if stem.strip('.') else stem_of(votes)}.report.json"


def has_no_name(source: str) -> bool:
    """Return whether votes come by a pipe or a device, whose name says nothing of them."""
    if source == "-":
        return True
    if is_address(source):
        return False
    place = Path(source)
    return place.exists() and not (place.is_file() or place.is_dir())


def stem_of(source: str) -> str:
    """Return a stem for outputs named after the votes: `votes` if these have no name."""
    last = re.split(r"[/\\]", public_name(source).rstrip("/\\"))[-1]
    stem = _KNOWN_SUFFIX.sub("", last)
    nameless = not stem.strip(".-") or re.search(r"[*?\[\]:]", stem)
    return "votes" if nameless else stem
