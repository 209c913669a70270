"""The standard library's `dataclass`, under the name that modules import it by."""

from dataclasses import dataclass as dataclass
