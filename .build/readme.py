"""README.md as package indexes show it, which know no repository.

Its links lead to the pages of `Source` under `[project.urls]` in pyproject.toml. While none is
named there, only their words are left: the wheel holds the pages.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# `](target)`, where the target is a path: neither an address nor a place on the same page.
_PATH = re.compile(r"(!?)(\[[^\]]*\])\((?!https?://|#)([^)\s]+)\)")


def standing_alone(text: str, source: str | None) -> str:
    """`text` with every relative link at the pages of `source`, and every picture at its bytes."""

    def link(found: re.Match[str]) -> str:
        picture, words, path = found.groups()
        if source is None:
            return words[1:-1]
        return f"{picture}{words}({source}/{'raw' if picture else 'blob'}/HEAD/{path})"

    return _PATH.sub(link, text)


class Readme(MetadataHookInterface):
    """Fills in `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read it beside pyproject.toml."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": standing_alone(text, metadata.get("urls", {}).get("Source")),
        }
