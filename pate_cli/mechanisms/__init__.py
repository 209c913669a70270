"""Mechanisms: frozen values whose docstring is their mathematics; priced by the accountant."""

from pate_cli.mechanisms.base import Mechanism, Surface, Tally
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.mechanisms.registry import mechanism_from_parameters

__all__ = [
    "ConfidentGNMax",
    "GNMax",
    "InteractiveGNMax",
    "LNMax",
    "Mechanism",
    "Surface",
    "Tally",
    "mechanism_from_parameters",
]
