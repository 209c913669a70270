"""README.md as package indexes show it: they know no repository, so its links become absolute.

Where to is said once, as `Source` under `[project.urls]` in pyproject.toml.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# `](target)`, where the target is a path: neither an address nor a place on the same page.
_PATH = re.compile(r"(!?)(\[[^\]]*\])\((?!https?://|#)([^)\s]+)\)")


def absolute(text: str, source: str) -> str:
    """`text` with every relative link at the pages of `source`, and every picture at its bytes."""

    def link(found: re.Match[str]) -> str:
        picture, words, path = found.groups()
        return f"{picture}{words}({source}/{'raw' if picture else 'blob'}/HEAD/{path})"

    return _PATH.sub(link, text)


class Readme(MetadataHookInterface):
    """Fills in `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read it beside pyproject.toml."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute(text, metadata["urls"]["Source"]),
        }
