"""The floors of the house: an import points down, and nothing runs in a circle.

Read off the sources with `ast`, imports inside functions included. A new room is put on its floor
below; an arrow that runs upward fails here by name.
"""

from __future__ import annotations

import ast
import graphlib
from pathlib import Path

import pytest

from pate_cli.mechanisms import CLASSES

PACKAGE = Path(__file__).resolve().parents[1] / "pate_cli"

# From the ground up; rooms of one floor do not know of each other.
FLOORS = [
    ["errors"],
    ["arrays", "clock", "entropy"],
    ["words", "checks", "noise"],
    ["engine", "multilabel"],
    ["label_forms"],
    ["files"],
    ["checkpoint", "results", "sealed"],
    ["labels"],
    ["votes", "accounting"],
    ["mechanisms", "synthetic"],
    ["ledger", "passes"],
    ["disclosure"],
    ["accounts", "pricing"],
    ["run"],
    ["published"],
    ["tuning", "plots"],
    ["verbs"],
    ["cli", "reproduction"],
    ["__main__"],
]
HEIGHT = {room: height for height, floor in enumerate(FLOORS) for room in floor}


def modules():
    return {
        ".".join(("pate_cli", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path
        for path in sorted(PACKAGE.rglob("*.py"))
    }


MODULES = modules()


def imported(name):
    """Every module of the package that a module imports, wherever in it; types apart."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in MODULES:
                    yield inner
                elif node.module in MODULES:
                    yield node.module


ARROWS = {name: set(imported(name)) - {"pate_cli"} for name in MODULES}
# The registry imports mechanisms by name.
ARROWS["pate_cli.mechanisms"] |= {
    f"pate_cli.mechanisms.{home.partition('.')[0]}" for home in CLASSES.values()
}


def room(module):
    return module.split(".")[1]


def test_every_room_has_a_floor_and_every_floor_is_lived_in():
    assert {room(name) for name in MODULES if name != "pate_cli"} == set(HEIGHT)


@pytest.mark.parametrize("name", sorted(set(MODULES) - {"pate_cli"}))
def test_imports_point_down(name):
    upward = {
        other
        for other in ARROWS[name]
        if room(other) != room(name) and HEIGHT[room(other)] >= HEIGHT[room(name)]
    }
    assert not upward, f"{name} imports from its own floor or above: {sorted(upward)}"


def test_no_circle():
    # The registry knows mechanisms, which know their base; no mechanism knows the registry.
    graphlib.TopologicalSorter(ARROWS).prepare()


def test_nothing_sound_knows_the_published_analysis():
    outside = {
        room(name)
        for name, others in ARROWS.items()
        if room(f"{name}.") != "published"
        and any(other.startswith("pate_cli.published") for other in others)
    }
    assert outside <= {"verbs", "reproduction"}


def test_the_accountant_is_pure():
    known = {
        room(other)
        for name, others in ARROWS.items()
        if name.startswith("pate_cli.accounting")
        for other in others
    }
    assert known <= {"accounting", "arrays", "checks", "errors"}


def test_no_chain_over_mechanisms():
    """What a mechanism alone can know is its method: nobody asks which one it is."""
    names = {home.partition(".")[2] for home in CLASSES.values()}
    asked = []
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "isinstance",
                "issubclass",
            ):
                kinds = {word.id for word in ast.walk(node.args[1]) if isinstance(word, ast.Name)}
                asked += [(module, kind) for kind in kinds & names]
    assert asked == []
