"""A report as an entry for the public register of differential privacy deployments.

The register (registry.opendp.org) keeps one YAML file for each deployment, and refuses fields that
its schema does not know. JSON is YAML, so an entry is written as JSON. Whatever a report does not
say is left blank, for whoever runs the deployment to fill in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from pate_cli.core.errors import UsageError
from pate_cli.disclosure.explain import Explanation, done_in
from pate_cli.disclosure.guarantee import by_record, sentence
from pate_cli.disclosure.report import Report


def registry_entry(
    report: Report, explanation: Explanation, *, title: str | None = None, unit: str | None = None
) -> dict[str, Any]:
    """Return the entry of a report, with empty texts where the report says nothing. Public.

    Its ε holds for all vote files: a sanitized ε, or the smaller ε of a failed test, is none that
    differential privacy of a deployment could be stated by.

    Args:
        report: a report of any author.
        explanation: what `explanation_of` says of it, so that its numbers were checked.
        title: the name of the deployment, if it is known.
        unit: what is protected, in the words of its readers; else a teacher or a training record.

    Raises:
        UsageError: the report promises nothing.
    """
    if not explanation.promised:
        raise UsageError(f"this report is no entry of a register: {explanation.headline()}")
    spent, (first, *_) = report.spent, report.rounds
    tested = first.tested if len(report.rounds) == 1 and not report.total else None
    epsilon = report.data_independent.epsilon if tested is None else tested.epsilon
    one = "one training record" if by_record(report) else "one teacher"
    session = any(done.rule for done in report.rounds)
    told = {"answers": report.answers, "queries": report.queries, "rows": report.rows}
    several = spent is not None and spent.count > 1
    return {
        "url_slug": "",
        "status": "Draft",
        "tier": 2,
        "deployment": {
            "basic": {
                "name": title or "",
                "data_curators": [{"data_curator_name": "", "data_curator_type": ""}],
                "intended_use": "",
                "data_product_type": "",
                "data_product_region": "",
                "description": sentence("registry-labels", **told),
                "publication_date": "",
                "data_product_sector": "",
            },
            "dp_variant": {
                "variant_name": "Approximate DP",
                "data_domain": sentence("registry-domain"),
                "unprotected_quantities": sentence("registry-public"),
            },
            "privacy_loss": {
                "privacy_unit": unit or one,
                "privacy_unit_details": report.adjacency,
                "privacy_parameters": {"epsilon": epsilon, "delta": report.delta},
                "privacy_parameters_details": report.summary,
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": sentence("rests-trust"),
                "actors": "",
                "release_type": "Many releases" if several else "One release",
                "data_source_type": "",
                "access_type": "Interactive" if session else "Non-interactive",
            },
            "accounting": {
                "post_processing": "",
                "composition": sentence("registry-composition"),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "",
                "mechanisms": " ".join([*done_in(report), sentence("rests-noise")]),
                "justification": "",
            },
            "administrative": {"sources": "", "registry_authors": [""]},
        },
    }


def blanks(entry: Any, path: str = "") -> Iterator[str]:
    """Yield the fields of an entry that are blank, with dots between names."""
    if entry == "":
        yield path
    items = entry.items() if isinstance(entry, dict) else ()
    for name, inner in items:
        yield from blanks(inner, f"{path}.{name}" if path else name)
    for inner in entry if isinstance(entry, list) else ():
        yield from blanks(inner, path)


def as_yaml(entry: dict[str, Any]) -> str:
    """Return an entry as JSON that is YAML: YAML 1.1 takes 1e-05 for a text, and 1.0e-05 not."""
    text = json.dumps(entry, indent=2, ensure_ascii=False)
    return re.sub(r'("delta": \d+)(?=e)', r"\1.0", text) + "\n"
