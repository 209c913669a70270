"""Mechanisms by name, and back from the public parameters that a ledger or report carries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pate_cli.errors import LedgerError, ParameterError
from pate_cli.mechanisms.base import Mechanism
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.words import MechanismName

__all__ = ["mechanism_from_parameters"]


_CLASSES: dict[str, type[Mechanism]] = {
    MechanismName.CONFIDENT: ConfidentGNMax,
    MechanismName.INTERACTIVE: InteractiveGNMax,
    MechanismName.GNMAX: GNMax,
    MechanismName.LNMAX: LNMax,
}


def mechanism_from_parameters(parameters: Mapping[str, Any]) -> Mechanism:
    """The mechanism that `parameters()` described.

    Raises:
        LedgerError: an unknown name, a missing or foreign field, or a number out of range.
    """
    fields = dict(parameters)
    name = fields.pop("name", None)
    kind = _CLASSES.get(name) if isinstance(name, str) else None
    if kind is None:
        known = ", ".join(_CLASSES)
        raise LedgerError(f"unknown mechanism {name!r}; this tool knows {known}")
    try:
        return kind(**fields)
    except (TypeError, ParameterError) as error:
        raise LedgerError(f"mechanism {name!r} is damaged: {error}") from None
