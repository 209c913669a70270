"""Private labels and an honest (epsilon, delta) from a file of teacher votes.

    import pate_cli as pate

    done = pate.aggregate("votes.parquet")
    done.labels.save("labels.parquet")
    done.report.save("report.json")

Every name of this package is imported when it is first used. Publish labels and reports. Do not
publish votes, ledgers, or results that call themselves SECRET.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pate_cli import mechanisms
from pate_cli.core import __version__ as __version__

if TYPE_CHECKING:
    from pate_cli.core.errors import BudgetSpent as BudgetSpent
    from pate_cli.core.errors import PateError as PateError
    from pate_cli.disclosure.exchange import dp_event as dp_event
    from pate_cli.disclosure.exchange import rdp_curve as rdp_curve
    from pate_cli.disclosure.external import Stated as Stated
    from pate_cli.disclosure.ledger import Ledger as Ledger
    from pate_cli.disclosure.record import SpendRecord as SpendRecord
    from pate_cli.disclosure.report import RefusedError as RefusedError
    from pate_cli.disclosure.report import Report as Report
    from pate_cli.labels.labels import Labels as Labels
    from pate_cli.mechanisms.confident import ConfidentGNMax as ConfidentGNMax
    from pate_cli.mechanisms.gnmax import GNMax as GNMax
    from pate_cli.mechanisms.interactive import InteractiveGNMax as InteractiveGNMax
    from pate_cli.mechanisms.lnmax import LNMax as LNMax
    from pate_cli.mechanisms.open_vocabulary import OpenVocabulary as OpenVocabulary
    from pate_cli.mechanisms.sparse_vector import SparseVector as SparseVector
    from pate_cli.mechanisms.stability import Stability as Stability
    from pate_cli.planning.synthetic import SyntheticEnsemble as SyntheticEnsemble
    from pate_cli.run.publication import Destination as Destination
    from pate_cli.verbs.coordinated import coordinated_choice as coordinated_choice
    from pate_cli.verbs.session import Ask as Ask
    from pate_cli.verbs.session import Session as Session
    from pate_cli.verbs.signatures import aggregate as aggregate
    from pate_cli.verbs.signatures import compare as compare
    from pate_cli.verbs.signatures import cost as cost
    from pate_cli.verbs.signatures import explain as explain
    from pate_cli.verbs.signatures import plan as plan
    from pate_cli.verbs.signatures import quote as quote
    from pate_cli.verbs.signatures import release as release
    from pate_cli.verbs.signatures import smooth_sensitivity as smooth_sensitivity
    from pate_cli.verbs.signatures import spent as spent
    from pate_cli.verbs.signatures import tune as tune
    from pate_cli.verbs.signatures import verify as verify
    from pate_cli.votes.facts import TeacherGroups as TeacherGroups
    from pate_cli.votes.opening import open_votes as open_votes

_HOMES = {
    name: home
    for home, names in (
        ("core.errors", "BudgetSpent PateError"),
        ("disclosure.exchange", "dp_event rdp_curve"),
        ("disclosure.external", "Stated"),
        ("disclosure.ledger", "Ledger"),
        ("disclosure.record", "SpendRecord"),
        ("disclosure.report", "RefusedError Report"),
        ("labels.labels", "Labels"),
        ("planning.synthetic", "SyntheticEnsemble"),
        ("run.publication", "Destination"),
        ("verbs.coordinated", "coordinated_choice"),
        ("verbs.session", "Ask Session"),
        ("verbs.signatures", "aggregate compare cost explain plan quote release"),
        ("verbs.signatures", "smooth_sensitivity spent tune verify"),
        ("votes.facts", "TeacherGroups"),
        ("votes.opening", "open_votes"),
        *(f"mechanisms.{home}".rsplit(".", 1) for home in mechanisms.CLASSES.values()),
    )
    for name in names.split()
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
