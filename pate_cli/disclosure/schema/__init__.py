"""The JSON Schema of the public report, as it is shipped with the package."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

__all__ = ["report_schema"]


def report_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the report that `Report.to_json` writes."""
    text = resources.files(__name__).joinpath("report.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
