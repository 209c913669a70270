"""A report as an entry for the public register of differential privacy deployments.

The register (registry.opendp.org) has one YAML file for each deployment, and refuses fields that
its schema does not know. JSON text is also valid YAML, so pate writes an entry as JSON. The file
registry.json, beside this module, is a template with all fields. If a report does not have the
content of a field, the field stays blank, and the person who runs the deployment fills it in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import resources
from string import Template
from typing import Any

from pate_cli.core.errors import UsageError
from pate_cli.disclosure.explain import Explanation, done_in
from pate_cli.disclosure.guarantee import by_record, sentence
from pate_cli.disclosure.report import Report


def registry_entry(report: Report, explanation: Explanation, *, unit: str | None = None) -> str:
    """Return the entry of a report as a JSON text, with "" in fields that stay blank. Public.

    The ε of the entry is valid for all vote files. The entry never has a sanitized ε, or the
    smaller ε that a failed release test costs, because such an ε is not a differential privacy
    guarantee of the deployment.

    Args:
        report: the report from which the entry takes its numbers.
        explanation: the explanation of the report, which shows that its numbers were checked; the
            title of the explanation is the name of the deployment.
        unit: what is protected, in the caller's words; None for a teacher or a training record.

    Raises:
        UsageError: the report has no guarantee, or a check of its numbers failed.
    """
    if not explanation.promised:
        raise UsageError(f"a register cannot list this report: {explanation.headline()}")
    tested, releases = report.tested, report.runs if report.total else report.rounds
    told = {
        "title": explanation.title,
        "labels": sentence(
            "registry-labels", answers=report.answers, queries=report.queries, rows=report.rows
        ),
        "unit": unit or ("one training record" if by_record(report) else "one teacher"),
        "adjacency": report.adjacency,
        "epsilon": report.data_independent.epsilon if tested is None else tested.epsilon,
        "summary": report.summary,
        "trust": sentence("rests-trust"),
        "releases": "Many releases" if len(releases) > 1 else "One release",
        "access": "Interactive" if any(done.rule for done in report.rounds) else "Non-interactive",
        "mechanisms": " ".join([*done_in(report), sentence("rests-noise")]),
    }
    form = resources.files("pate_cli.disclosure").joinpath("registry.json")
    # YAML 1.1 reads 1e-05 as a text, and 1.0e-05 as a number.
    delta = re.sub(r"^(\d+)e", r"\1.0e", json.dumps(report.delta))
    texts = {name: _text(value) for name, value in told.items()}
    return Template(form.read_text(encoding="utf-8")).substitute(texts, delta=delta)


def _text(value: Any) -> str:
    """Return a value as JSON, with escapes for letters that YAML would refuse or change."""
    found = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in found)


def blanks(entry: Any, path: str = "") -> Iterator[str]:
    """Yield the names of the blank fields of a decoded entry, such as `outer.inner`."""
    if entry == "":
        yield path
    for name, inner in entry.items() if isinstance(entry, dict) else ():
        yield from blanks(inner, f"{path}.{name}" if path else name)
    for inner in entry if isinstance(entry, list) else ():
        yield from blanks(inner, path)
