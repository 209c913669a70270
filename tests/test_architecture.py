"""The floors of the house: an import points down, and nothing runs in a circle.

Read off the sources with `ast`: imports inside functions and those for annotations alone, too. A
new room is put on its floor in `support/floors.py`; an arrow that runs up fails here by name.
"""

import ast
import functools
import graphlib
import re
import sys
import tomllib
from pathlib import Path

import pytest

from floors import FLOORS
from pate_cli.mechanisms import CLASSES

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "pate_cli"

HEIGHT = {room: height for height, floor in enumerate(FLOORS) for room in floor}
MODULES = {
    ".".join(path.relative_to(TESTS.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


@functools.cache
def nodes(name):
    return list(ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))))


def imported(name):
    """All that a module imports, wherever in it and whatever for; a name of a module as such."""
    for node in nodes(name):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (each if each in MODULES else node.module for each in inner)


@functools.cache
def arrows():
    """Which modules of the package each of them imports."""
    found = {name: set(imported(name)) & set(MODULES) for name in MODULES}
    # The registry imports mechanisms by name.
    found["pate_cli.mechanisms"] |= {
        f"pate_cli.mechanisms.{home.partition('.')[0]}" for home in CLASSES.values()
    }
    return found


FACE = {"pate_cli", "pate_cli.__main__"}


def room(module):
    return module.split(".")[1]


def test_every_room_has_a_floor_and_every_floor_is_lived_in():
    """Nothing but the face stands loose at the root."""
    assert {room(name) for name in set(MODULES) - FACE} == set(HEIGHT)
    assert {path.stem for path in PACKAGE.glob("*.py")} == {"__init__", "__main__"}


def test_only_the_top_floor_looks_at_the_face():
    """The command line calls the library as everybody does."""
    looking = {name for name, others in arrows().items() if "pate_cli" in others}
    assert {room(name) for name in looking - FACE} <= set(FLOORS[-1])


def test_tests_mirror_the_tree():
    """A room's tests have its name; what else is in the folder is for tests of the whole."""
    whole = "audit benchmarks face forecasts forgeries fuzz golden histories kills samples support"
    folders = {path.name for path in TESTS.iterdir() if path.is_dir()} - {"__pycache__"}
    assert folders - set(whole.split()) == set(HEIGHT)


def test_a_leading_underscore_says_what_is_private():
    """`__all__` stands only where a room offers the names of its modules."""
    assert not [
        str(path.relative_to(PACKAGE))
        for path in MODULES.values()
        if path.name != "__init__.py" and "__all__ =" in path.read_text(encoding="utf-8")
    ]


def test_no_two_classes_share_a_name():
    """A name says which class is meant, in a traceback and aloud: with or without an underscore."""
    homes: dict[str, list[str]] = {}
    for module in MODULES:
        for node in nodes(module):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name.lstrip("_"), []).append(module)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_imports_point_down():
    """None from the module's own floor or above."""
    upward = [
        (name, other)
        for name in set(MODULES) - FACE
        for other in arrows()[name] - FACE
        if room(other) != room(name) and HEIGHT[room(other)] >= HEIGHT[room(name)]
    ]
    assert upward == []


def test_no_circle():
    # The registry knows mechanisms, which know their base; no mechanism knows the registry.
    graphlib.TopologicalSorter(arrows()).prepare()


def test_nothing_sound_knows_the_published_analysis():
    """Of the verbs one looks it up by its name for all others."""
    knowing = {
        name
        for name, others in arrows().items()
        if name not in FACE and any(other.startswith("pate_cli.paper") for other in others)
    }
    assert {room(name) for name in knowing} <= {"paper", "verbs"}
    assert {name for name in knowing if room(name) == "verbs"} == {"pate_cli.verbs.request"}


def test_only_declared_dependencies_are_imported():
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    declared = {re.match(r"[\w-]+", one)[0] for one in project["project"]["dependencies"]}
    assert declared == {"typer", "numpy", "scipy", "pyarrow", "rich"}
    found = {other.split(".")[0] for name in MODULES for other in imported(name)}
    # Behind --engine and dp_event, with a word on what to install.
    optional = {"dask", "distributed", "dp_accounting"}
    assert found - set(sys.stdlib_module_names) - {"pate_cli"} <= declared | optional


@pytest.mark.parametrize("public", ["Report", "Quote"])
def test_what_is_public_is_written_in_one_place(public):
    """What was read back from a file was written there before."""
    calls = [
        name
        for name in MODULES
        for node in nodes(name)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == public
    ]
    assert calls == ["pate_cli.disclosure.guarantee"]


def test_the_accountant_is_pure():
    """Functions of arrays: of the ground it knows what is neither a file, a clock nor a draw."""
    known = {
        other.removeprefix("pate_cli.")
        for name, others in arrows().items()
        if name.startswith("pate_cli.accounting")
        for other in others
        if room(other) != "accounting"
    }
    assert known == {"core.arrays", "core.checks", "core.errors"}


def test_no_chain_over_mechanisms():
    """What a mechanism alone can know is its method: nobody asks which one it is."""
    names = {home.partition(".")[2] for home in CLASSES.values()}
    asked = []
    for module in MODULES:
        for node in nodes(module):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else None
            if called in ("isinstance", "issubclass"):
                kinds = {word.id for word in ast.walk(node.args[1]) if isinstance(word, ast.Name)}
                asked += [(module, kind) for kind in kinds & names]
    assert asked == []
