"""What is installed: a wheel with everything in it, whose metadata leads to all else."""

import json
import os
import re
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import pate_cli

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "pate_cli").rglob("*.py"))
PAGES = sorted((ROOT / "pate_cli").rglob("*.md"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
VOTES = ROOT / "sample_votes" / "adult.parquet"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return Path(built)


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    inside = {name for name in names if ".dist-info/" not in name}
    assert {str(path.relative_to(ROOT)) for path in SOURCES} <= inside
    assert "pate_cli/py.typed" in inside
    assert {str(path.relative_to(ROOT)) for path in PAGES} <= inside
    assert all(name.startswith("pate_cli/") for name in inside)
    samples = {f"pate_cli/sample_votes/{name}.parquet" for name in ("adult", "adult_truth")}
    data = (".npy", ".parquet", ".pyc", ".png", ".svg")
    assert {name for name in inside if name.endswith(data)} == samples


def test_the_demo_runs_where_the_sources_are_not(wheel, tmp_path):
    installed, place = tmp_path / "installed", tmp_path / "demo"
    zipfile.ZipFile(wheel).extractall(installed)
    run = subprocess.run(
        [sys.executable, "-m", "pate_cli", "demo", place],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
    )
    report = json.loads((place / "labels.report.json").read_text(encoding="utf-8"))
    assert (report["epsilon"], report["private"], report["sound"]) == (1.5, True, True)
    labels = (place / "labels.csv").read_text(encoding="utf-8").splitlines()
    assert len(labels) == 1 + 4000
    assert sum(not row.endswith("not asked") for row in labels[1:]) == report["queries"]
    assert (place / "adult.parquet").read_bytes() == VOTES.read_bytes()
    lines = run.stdout.splitlines()
    assert lines[1].endswith(f" in {place}:")
    assert f"answered    {report['answers']} of {report['queries']} queries" in lines
    right, tutorial = re.fullmatch(
        r"(\d+)% of the labels are right. Next: (.+)", lines[-1]
    ).groups()
    assert int(right) > 75  # what "no" for everybody would be
    assert Path(tutorial).is_relative_to(installed)
    assert Path(tutorial).is_file()


def test_the_readme_of_the_metadata_has_no_relative_link(wheel):
    text = _metadata(wheel).partition("\n\n")[2]
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert all(link.startswith(("https://", "#")) for link in links)
    assert len(text) > 0.8 * len(README)


def test_with_an_address_its_links_lead_there():
    source, hook = "https://example.org/pate", runpy.run_path(str(ROOT / ".build" / "readme.py"))
    text = hook["standing_alone"](README, source)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert f"{source}/raw/HEAD/sample_votes/figures/flow.svg" in links
    assert f"{source}/blob/HEAD/pate_cli/docs/tutorial.md" in links
    assert re.sub(rf"{source}/(raw|blob)/HEAD/", "", text) == README


def _metadata(wheel):
    archive = zipfile.ZipFile(wheel)
    (info,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    return archive.read(info).decode()


def test_the_metadata_names_the_command_the_version_and_the_licence(wheel):
    archive = zipfile.ZipFile(wheel)
    text = _metadata(wheel)
    assert f"\nVersion: {pate_cli.__version__}\n" in text
    assert "\nLicense-Expression: Apache-2.0\n" in text
    assert "\nRequires-Python: >=3.11\n" in text
    (points,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
    points = archive.read(points).decode()
    assert re.findall(r"^([\w-]+) = pate_cli\.__main__:main$", points, re.M) == ["pate", "pate-cli"]
    assert any(name.endswith("licenses/LICENSE") for name in archive.namelist())
