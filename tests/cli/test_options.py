"""Groups of options: what Typer sees of them, and what a command gets."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from pate_cli.cli.options import MechanismOptions, Without, spread
from pate_cli.core.errors import UsageError
from pate_cli.core.words import MechanismName
from pate_cli.mechanisms import MechanismChoice


@dataclass(frozen=True)
class Size:
    width: Annotated[int, typer.Option("--width", "--w", help="Wide.")] = 3
    height: Annotated[int, typer.Option("--height", help="High.")] = 4


@dataclass(frozen=True)
class Frame(Size):
    """A group may give an option of another one a new meaning."""

    height: Annotated[int, typer.Option("--height", help="Higher.")] = 5
    colour: Annotated[str, typer.Option("--colour", help="Which.")] = "red"


@pytest.fixture
def drawn():
    """Run a command with a whole group, or with a part of one, and return what it got."""
    got = []

    def whole(name: Annotated[str, typer.Argument(help="What.")], frame: Frame) -> None:
        """Draw."""
        got.append((name, frame))

    def part(frame: Annotated[Frame, Without("colour", "width")], name: str = "x") -> None:
        got.append((name, frame))

    app = typer.Typer()
    for command in (whole, part):
        app.command(command.__name__)(spread(command))

    def run(*words):
        return CliRunner().invoke(app, list(words)), got

    return run


def test_a_command_gets_its_groups_as_objects(drawn):
    result, got = drawn("whole", "cat", "--w", "8", "--colour", "blue")
    assert result.exit_code == 0, result.output
    assert got == [("cat", Frame(width=8, height=5, colour="blue"))]


def test_options_that_a_command_lacks_keep_their_defaults(drawn):
    result, got = drawn("part", "--height", "7")
    assert result.exit_code == 0, result.output
    assert got == [("x", Frame(width=3, height=7, colour="red"))]
    for missing in ("--colour", "--width", "--w"):
        result, _ = drawn("part", missing, "1")
        assert result.exit_code == 2


def test_fields_are_shown_in_order_where_the_group_stands():
    def command(frame: Frame, name: str = "x") -> None:
        """Draw."""

    shown = inspect.signature(spread(command)).parameters
    assert list(shown) == ["width", "height", "colour", "name"]
    assert [parameter.default for parameter in shown.values()] == [3, 5, "red", "x"]
    assert spread(command).__doc__ == "Draw."


def test_slips_in_a_command_are_found_when_it_is_defined():
    def twice(size: Size, frame: Frame) -> None: ...

    with pytest.raises(ValueError, match="duplicate parameter name"):
        spread(twice)

    def unknown(frame: Annotated[Frame, Without("depth")]) -> None: ...

    with pytest.raises(KeyError, match="depth"):
        spread(unknown)


def test_another_mechanism_takes_the_options_that_it_knows():
    options = MechanismOptions(threshold=3.0, sigma1=2.0, sigma2=1.0, teachers_per_record=2)
    choice = options.choice()
    assert choice.given == {"threshold": 3.0, "sigma1": 2.0, "sigma2": 1.0}
    gnmax = MechanismChoice(MechanismName.GNMAX, {"sigma2": 1.0}, teachers_per_record=2)
    assert choice.among(MechanismName.GNMAX) == gnmax
    lnmax = MechanismChoice(MechanismName.LNMAX, {}, teachers_per_record=2)
    assert choice.among(MechanismName.LNMAX) == lnmax
    assert not choice.among(MechanismName.INTERACTIVE).complete
    assert options.given
    assert not MechanismOptions(teachers_per_record=2).given


@pytest.mark.parametrize("name", sorted(set(MechanismName) - {MechanismName.INTERACTIVE}))
def test_what_a_mechanism_does_not_know_is_refused(name):
    with pytest.raises(UsageError, match=f"--confidence does not go with --mechanism {name}, "):
        MechanismOptions(name, confidence=0.5).choice()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["--exponential-scale", 3],
            "--exponential-scale is gone: use --mechanism lnmax with --laplace-scale, which has "
            "the same epsilon an answer",
        ),
        (
            ["--mechanism", "permute-and-flip"],
            "--mechanism permute-and-flip is gone: use lnmax, which has the same epsilon an answer",
        ),
        (
            ["--release", "unbiased"],
            "--release unbiased is gone: use upper, which is a bound and not too low about half "
            "the time",
        ),
    ],
)
def test_what_is_gone_is_refused_with_what_to_use_instead(pate, words, line):
    refused = pate("aggregate", "votes.npy", *words)
    assert (refused.exit_code, refused.stderr) == (2, f"pate: {line}\n")
