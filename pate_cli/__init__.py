"""Private labels and an honest (epsilon, delta) from a file of teacher votes.

    import pate_cli as pate

    done = pate.aggregate("votes.parquet")
    done.labels.save("labels.parquet")
    done.report.save("report.json")

Every name below is imported when it is first used. Publish labels and reports; keep votes, ledgers
and whatever else calls itself SECRET.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pate_cli.release.report import Report
    from pate_cli.errors import PateError
    from pate_cli.labels import Labels
    from pate_cli.ledger import Ledger, SpendRecord
    from pate_cli.mechanisms.confident import ConfidentGNMax
    from pate_cli.mechanisms.gnmax import GNMax
    from pate_cli.mechanisms.interactive import InteractiveGNMax
    from pate_cli.mechanisms.lnmax import LNMax
    from pate_cli.mechanisms.permute_and_flip import PermuteAndFlip
    from pate_cli.mechanisms.sparse_vector import SparseVector
    from pate_cli.mechanisms.stability import Stability
    from pate_cli.synthetic import SyntheticEnsemble
    from pate_cli.verbs import (
        accuracy,
        aggregate,
        compare,
        cost,
        quote,
        release,
        smooth_sensitivity,
        tune,
    )
    from pate_cli.votes import open_votes
    from pate_cli.votes.side_files import StudentPredictions, Truth

__all__ = [
    "ConfidentGNMax",
    "GNMax",
    "InteractiveGNMax",
    "LNMax",
    "Labels",
    "Ledger",
    "PateError",
    "PermuteAndFlip",
    "Report",
    "SparseVector",
    "SpendRecord",
    "Stability",
    "StudentPredictions",
    "SyntheticEnsemble",
    "Truth",
    "accuracy",
    "aggregate",
    "compare",
    "cost",
    "open_votes",
    "quote",
    "release",
    "smooth_sensitivity",
    "tune",
]

_VERBS = [
    "accuracy",
    "aggregate",
    "compare",
    "cost",
    "quote",
    "release",
    "smooth_sensitivity",
    "tune",
]
_HOMES = {
    "Labels": "labels",
    "Ledger": "ledger",
    "PateError": "errors",
    "Report": "release.report",
    "SpendRecord": "ledger",
    "StudentPredictions": "votes.side_files",
    "SyntheticEnsemble": "synthetic",
    "Truth": "votes.side_files",
    "open_votes": "votes",
    **dict.fromkeys(_VERBS, "verbs"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _HOMES:
        found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    else:  # the others are mechanisms, which have a list of their own
        mechanisms = importlib.import_module(f"{__name__}.mechanisms")
        found = mechanisms.mechanism_named(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
