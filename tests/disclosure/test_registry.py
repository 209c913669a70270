"""An entry for the register of deployments: its fields and no others, true, public, and YAML."""

import json
from dataclasses import replace

import pytest

import reports
from pate_cli.core.errors import UsageError
from pate_cli.disclosure.explain import blanks, explanation_of, registry_entry
from slices import some

# The fields of deployments-schema.yaml of the register that an entry has, and refuses all others.
FIELDS = {
    "": "url_slug status tier deployment",
    "deployment": "basic dp_variant privacy_loss deployment_model accounting implementation "
    "administrative",
    "basic": "name data_curators intended_use data_product_type data_product_region description "
    "publication_date data_product_sector",
    "data_curators": "data_curator_name data_curator_type",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters "
    "privacy_parameters_details",
    "privacy_parameters": "epsilon delta",
    "deployment_model": "model_name model_name_details actors release_type data_source_type "
    "access_type",
    "accounting": "post_processing composition",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
    "administrative": "sources registry_authors",
}
PROMISES = [kind for kind in reports.KINDS if kind not in reports.NO_PROMISE]


def entry_of(report, title=None, unit=None):
    return json.loads(registry_entry(report, explanation_of(report, (), title=title), unit=unit))


def check_fields(value, name=""):
    if isinstance(value, dict):
        assert list(value) == FIELDS[name].split()
        for inner, held in value.items():
            check_fields(held, inner)
    elif isinstance(value, list):
        for held in value:
            check_fields(held, name)
    else:
        assert isinstance(value, str | int | float)


@pytest.mark.parametrize("kind", some(PROMISES, 3))
def test_an_entry_has_the_fields_of_the_register_and_a_promise_for_all_votes(kind):
    report = reports.made(kind)[0]
    entry = entry_of(report)
    check_fields(entry)
    loss = entry["deployment"]["privacy_loss"]
    target = report.rounds[0].tested if len(report.rounds) == 1 else None
    worst = report.data_independent.epsilon if target is None else target.epsilon
    assert loss["privacy_parameters"] == {"epsilon": worst, "delta": report.delta}
    assert worst >= report.epsilon
    for hidden in (report.run, report.time):
        assert hidden is None or hidden not in json.dumps(entry)


def test_what_is_not_known_is_blank_and_named():
    report = reports.made("passed")[0]
    blank = list(blanks(entry_of(report)))
    assert "deployment.basic.data_curators.data_curator_name" in blank
    assert "deployment.administrative.registry_authors" in blank
    assert "deployment.basic.name" in blank
    named = entry_of(report, title="Labels of May", unit="one hospital")
    assert set(blank) - set(blanks(named)) == {"deployment.basic.name"}
    assert named["deployment"]["privacy_loss"]["privacy_unit"] == "one hospital"


@pytest.mark.parametrize("kind", some(reports.NO_PROMISE, 2))
def test_what_promises_nothing_is_no_entry(kind):
    with pytest.raises(UsageError, match="a register cannot list this report"):
        entry_of(reports.made(kind)[0])


@pytest.mark.parametrize(
    "unit", ["a: b # c\n- 'x\"\u2028<b>é", "a\x7fb", "a\x85b\u2028", "\ud800", "$x ü 😀"]
)
@pytest.mark.parametrize("delta", [1e-5, 2.5e-7, 0.001])
def test_yaml_reads_what_json_reads(unit, delta):
    """YAML 1.1, as most readers have it, takes 1e-05 for a text."""
    yaml = pytest.importorskip("yaml")
    report = replace(reports.made("passed")[0], delta=delta)
    text = registry_entry(report, explanation_of(report, (), title=unit), unit=unit)
    assert yaml.safe_load(text) == json.loads(text)
    loss = yaml.safe_load(text)["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"]["delta"] == delta
    assert loss["privacy_unit"] == unit
