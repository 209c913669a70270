"""The one way in which audits change a copy of the package."""

from __future__ import annotations

from pathlib import Path


def plant(package: Path, module: str, old: str, new: str) -> None:
    """Change a copy of the package; ValueError unless the text occurs exactly once."""
    source = package / module
    text = source.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise ValueError(f"{module} holds {text.count(old)} times {old!r}")
    source.write_text(text.replace(old, new), encoding="utf-8")
