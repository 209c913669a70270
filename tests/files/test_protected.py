"""Which files `force` replaces: labels, reports and pages of pate, and no votes of any layout."""

import io
import itertools
import json

import numpy as np
import pyarrow as pa
import pytest

import pate_cli as pate
from pate_cli.core.errors import OutputError, UsageError
from pate_cli.core.words import LabelFormat
from pate_cli.files.protected import PAGE, REPORT, kept
from pate_cli.files.results import columns_in, encoded_table
from pate_cli.labels.forms import labels_in
from stored import npy

COUNTS = np.random.default_rng(5).multinomial(100, [0.7, 0.2, 0.1], size=20)
SAID = np.random.default_rng(5).integers(0, 3, size=(20, 9))


def votes_in(kind):
    """Votes in a format, by layout."""
    if kind is LabelFormat.NPY:
        arrays = {
            "few labels": SAID.astype(np.int8),
            "counts": COUNTS.astype("<i4"),
            "labels": SAID,
            "several": np.zeros((4, 3, 5), np.int8),
            "truth": COUNTS.argmax(axis=1),
        }
        damaged = b"\x93NUMPY\x01\x00v\x00{'descr': '<i4', 'fort"
        return {name: npy(array) for name, array in arrays.items()} | {"damaged": damaged}
    ids = np.arange(20)
    tables = {
        "counts": {"query_id": ids, **{f"class_{j}": COUNTS[:, j] for j in range(3)}},
        "labels": {"query_id": ids, **{f"teacher_{j}": SAID[:, j] for j in range(9)}},
        "long": {"query_id": ids, "teacher": ids % 4, "label": SAID[:, 0]},
        "truth": {"query_id": ids, "label": SAID[:, 0]},
    }
    found = {name: encoded_table(pa.table(table), kind) for name, table in tables.items()}
    return found | {"damaged": b"\x00", "text": b"label,source\n"}


def refused(content, replaces):
    return kept(io.BytesIO(content), replaces) is not None


CASES = [(kind, layout) for kind in LabelFormat for layout in votes_in(kind)]


@pytest.mark.parametrize(("kind", "layout"), CASES)
def test_votes_never_pass_for_labels_nor_for_anything_else(kind, layout):
    content = votes_in(kind)[layout]
    likes = [REPORT, PAGE, columns_in(kind, "query_id", "plurality"), labels_in(kind)]
    assert all(refused(content, like) for like in likes)


@pytest.mark.parametrize("kind", list(LabelFormat))
@pytest.mark.parametrize("several", [False, True])
def test_labels_make_way_for_labels_of_the_same_format(tmp_path, kind, several):
    votes = (SAID > 0)[:, :, None].repeat(2, axis=2).astype(np.int8) if several else COUNTS
    path = tmp_path / f"l.{kind}"
    told = {"layout": "multilabel" if several else "counts", "sigma2": 9.0, "seed": 1}
    pate.aggregate(votes, "gnmax", into=path, **told)
    if several and kind is LabelFormat.NPY:  # votes of teachers could look like this
        assert refused(path.read_bytes(), labels_in(kind))
        return
    for other in LabelFormat:
        assert refused(path.read_bytes(), labels_in(other)) == (other is not kind)
    assert refused(path.read_bytes(), REPORT)
    done = pate.aggregate(votes, "gnmax", **told)
    with pytest.raises(OutputError, match="exists already; use `force`"):
        done.labels.save(path)
    done.labels.save(path, force=True)


def test_reports_and_results_make_way_for_their_like(tmp_path):
    told = {"layout": "counts", "sigma2": 30.0}
    done = pate.aggregate(COUNTS, "gnmax", seed=1, record=tmp_path / "record", **told)
    report, spent, table, page = (
        tmp_path / name for name in ("r.json", "s.json", "s.csv", "p.html")
    )
    found = pate.spent(tmp_path / "record")
    results = {report: done.report, spent: found, table: found, page: pate.explain(done.report)}
    for force in (False, True):
        for path, result in results.items():
            result.save(path, force=force)
    curve = pate.rdp_curve(pate.quote(COUNTS, "gnmax", **told))
    assert not refused(report.read_bytes(), REPORT)
    assert not refused(curve.to_json().encode(), REPORT)
    assert not refused(page.read_bytes(), PAGE)
    for one, other in itertools.permutations([report, spent], 2):
        before = one.read_bytes()
        with pytest.raises(UsageError, match="not even `force`"):
            results[other].save(one, force=True)
        assert one.read_bytes() == before


def test_the_column_of_ids_may_have_any_name():
    assert not refused(b"case,label,source\n1,0,teachers\n", labels_in(LabelFormat.CSV))


@pytest.mark.parametrize("kind", ["ledger", "cost-ledger", "spend-record", "record", "checkpoint"])
def test_what_pate_keeps_is_never_replaced(kind):
    for indent in (None, 1, 2):
        content = json.dumps({"kind": f"pate-{kind}", "schema_version": 1}, indent=indent)
        assert refused(content.encode(), lambda _: True)
