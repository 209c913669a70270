"""The four shapes votes come in; defined with the other words of the command line."""

from __future__ import annotations

from pate_cli.choices import Layout

__all__ = ["Layout"]
