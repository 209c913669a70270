"""`pate explain --html`: the page of a report as a file."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

import pate_cli as pate_library

NOISE = ("--threshold", 24, "--sigma1", 12, "--sigma2", 6)


@pytest.fixture
def released(pate, votes, folder):
    """A report."""
    done = pate("aggregate", votes, *NOISE, "-o", "l.csv", "--report", "r.json")
    assert done.exit_code == 0, done.stderr
    return "r.json"


def test_a_page_is_written_instead(pate, released):
    told = pate("explain", released, "--html", "page.html")
    assert (told.exit_code, told.stdout, told.stderr) == (0, "", "")
    page = Path("page.html").read_text(encoding="utf-8")
    assert page == pate_library.explain(released).to_html()
    assert json.loads(Path(released).read_text())["labels"]["sha256"] in page
    assert stat.S_IMODE(Path("page.html").stat().st_mode) == 0o644


def test_a_page_that_is_there_is_kept(pate, refused, released):
    Path("page.html").write_text("<!doctype html>mine")
    told = pate("explain", released, "--html", "page.html")
    assert told.exit_code == 6
    assert "page.html" in told.stderr
    assert Path("page.html").read_text() == "<!doctype html>mine"
    assert pate("explain", released, "--html", "page.html", "--force").exit_code == 0
    assert Path("page.html").read_text().startswith("<!DOCTYPE html>")


def test_an_entry_of_the_register_names_what_is_blank(pate, released):
    given = ("--registry", "entry.yaml", "--title", "Labels of May", "--unit", "one hospital")
    told = pate("explain", released, *given)
    assert (told.exit_code, told.stdout) == (0, "")
    assert told.stderr.startswith(
        "pate: left blank for you to fill in: url_slug, deployment.basic."
    )
    entry = json.loads(Path("entry.yaml").read_text())
    assert entry["deployment"]["basic"]["name"] == "Labels of May"
    assert pate("explain", released, *given).exit_code == 6
    assert pate("explain", released, *given, "--force").exit_code == 0
    assert pate("explain", released, *given[2:]).stdout.startswith("Labels of May\n\nWhat is")


def test_a_pipe_is_read_once_for_all_that_is_written(pate, released):
    words = ("--html", "page.html", "--export-rdp", "curve.json", "--registry", "entry.yaml")
    told = pate("explain", "-", *words, input=Path(released).read_text())
    assert told.exit_code == 0, told.stderr
