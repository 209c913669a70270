"""The JSON Schema of the public report, as it is shipped with the package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["report_schema"]


def report_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the report that `Report.to_json` writes."""
    text = Path(__file__).with_name("report.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
