"""What earlier versions had: parameters and words are refused, fields of documents passed over."""

from __future__ import annotations

import json
from typing import Any, Final

from pate_cli.core.errors import PateError

GONE: Final = {
    "as_published": (
        "`analysis` paper charges a draw what it costs; for the figures that the paper printed run "
        "python -m pate_cli.reproduction table2"
    ),
    "exponential_scale": (
        "use `mechanism` lnmax with `laplace_scale`, which has the same epsilon an answer"
    ),
    "pool": "put the queries of a cluster into one row before aggregating",
    "voting": (
        "every label is asked by itself; to vote on sets of labels, number the sets and give them "
        "as classes with `label_names`"
    ),
}
"""What completes "... is gone: ", by the name of the parameter; the flag is called likewise."""

GONE_WORDS: Final = {
    "permute-and-flip": "use lnmax, which has the same epsilon an answer",
    "unbiased": "use upper, which is a bound and not too low about half the time",
}
"""What completes "... is gone: ", by a word that a parameter took."""

_FIELDS: Final = {"pool": None, "voting": "binary", "parts": None}
"""Fields that are gone, and what each said of a run or a file as there still are."""


def without_gone(document: dict[str, Any], error: type[PateError], called: str) -> dict[str, Any]:
    """Return a JSON document of an earlier version, without the fields that are gone since.

    Args:
        document: what was read.
        error: raised where such a field tells of what there is no more.
        called: begins its message: which document of which version it is.
    """

    def kept(facts: dict[str, Any]) -> dict[str, Any]:
        for name, usual in _FIELDS.items():
            if facts.get(name, usual) != usual:
                raise error(
                    f"{called}: it tells of {name!r}, which is gone; use the version of pate that "
                    "wrote it"
                )
        return {name: fact for name, fact in facts.items() if name not in _FIELDS}

    # The parser calls it for every object, however deep: Python itself would not go so deep.
    found: dict[str, Any] = json.loads(json.dumps(document), object_hook=kept)
    return found
