"""The JSON Schema of the public report, as it is shipped with the package."""

from __future__ import annotations

import json
import pkgutil
from typing import Any

__all__ = ["report_schema"]


def report_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the report that `Report.to_json` writes."""
    # Out of an archive, too, as `importlib.resources` does, which would import what reads archives.
    schema: dict[str, Any] = json.loads(pkgutil.get_data(__name__, "report.schema.json") or "")
    return schema
