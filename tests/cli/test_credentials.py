"""Whatever address is given anywhere on a command line, its password and its query are not shown.

Commands and their options are found in the application: a new one is looked at without a word here.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from typer.testing import CliRunner

from pate_cli.cli import app, terminal
from pate_cli.mechanisms.synthetic import SyntheticEnsemble

NOISE = ("--threshold", 24, "--sigma1", 12, "--sigma2", 6)
TARGET = ("--target-epsilon", 60, "--max-queries", 60)
# The words of a command, where they are not what is asked about; and what makes it quick.
WORDS = {"votes": "votes.npy", "ledgers": "a.ledger", "report": "r.json"}
USUAL = {
    "aggregate": NOISE,
    "cost": NOISE,
    "smooth-sensitivity": NOISE,
    "tune": (*TARGET, "--threshold", 24, "--sigma1", 12, "--sigma2", 6),
    "verify": ("--without-dp-accounting",),
}
# What else is said, so that an option is read at all.
BESIDE = {
    "--spend": ("--target-epsilon", 60),
    "--student": ("--mechanism", "interactive", *NOISE[2:]),
    "--queries": ("--layout", "long", *NOISE),
    "--truth": ("--accuracy",),
}
# The content of a file that is there; votes do for whatever is not here.
CONTENT = {"ledgers": "a.ledger", "report": "r.json", "labels": "l.csv", "external": "curve.json"}
SUFFIX = {"--plot": ".png", "--per-query": ".csv", "--output": ".csv"}
OUTPUTS = (
    "--plot",
    "--per-query",
    "--output",
    "--report",
    "--export-rdp",
    "--ledger",
    "--spend",
    "--checkpoint",
)
ADDRESSES = {
    "nowhere": "nowhere://KEY:sesame@bucket/folder/x.npy?secret_key=sesame",
    "malformed": "s3://KEY:sesame/sesame@bucket/x.npy?secret_key=sesame",
    "no bucket": "s3://KEY:sesame",
    "a user of a disk": "file://KEY:sesame@host/x.npy",
    "lost a slash": "s3:/KEY:sesame@bucket/x.npy",
    "a scheduler": "tls://user:sesame@127.0.0.1:9",
}


@dataclass(frozen=True)
class Place:
    """Where on a command line a text or a path can stand."""

    command: str
    name: str
    flag: str | None

    def line(self, value):
        """A command line with a value there."""
        usual = USUAL.get(self.command, ())
        words = [(name, WORDS.get(name)) for name in spoken(self.command)]
        if self.flag is None:
            words = [(name, value if name == self.name else word) for name, word in words]
            beside = ()
        else:
            value = f"@{value}" if self.flag == "--label-names" else value
            beside = (*BESIDE.get(self.flag, ()), self.flag, value)
        return [self.command, *(word for _, word in words if word is not None), *usual, *beside]


def parameters(callback):
    """Each parameter of a command with what it takes and how it is spelled; None for a word."""
    for name, hint in get_type_hints(callback, include_extras=True).items():
        if get_origin(hint) is Annotated:
            kind, info = get_args(hint)[0], get_args(hint)[-1]
            spelled = [info.default, *(info.param_decls or ())]
            flags = [flag for flag in spelled if isinstance(flag, str) and flag.startswith("--")]
            yield name, kind, flags[0] if flags else None


def takes_text(kind):
    return kind in (str, Path) or any(map(takes_text, get_args(kind)))


CALLBACKS = {found.name: found.callback for found in app.app.registered_commands}
PLACES = {
    f"{command} {flag or name}": Place(command, name, flag)
    for command, callback in CALLBACKS.items()
    for name, kind, flag in parameters(callback)
    if takes_text(kind)
}


def spoken(command):
    """The words of a command in order."""
    return [name for name, _, flag in parameters(CALLBACKS[command]) if flag is None]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder of whatever a command can read."""
    home = tmp_path_factory.mktemp("files")
    counts = SyntheticEnsemble(teachers=40, classes=4, queries=60).draw(3)[0]
    np.save(home / "votes.npy", counts)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        runner = CliRunner()
        for words in (
            ("-o", "l.csv", "--report", "r.json", "--export-rdp", "curve.json"),
            ("-o", "m.csv", "--report", "m.json", "--ledger", "a.ledger"),
        ):
            done = runner.invoke(app.app, ["aggregate", "votes.npy", *map(str, NOISE), *words])
            assert done.exit_code == 0, done.stderr
    return home


@pytest.fixture
def here(files, folder):
    """A copy of it to run in."""
    shutil.copytree(files, folder, dirs_exist_ok=True)
    return folder


@pytest.fixture(params=[False, True], ids=["pipe", "person"])
def read_by(request, monkeypatch):
    """Whether it is a person who reads standard output."""
    monkeypatch.setattr(terminal, "read_by_person", lambda: request.param)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_no_password_of_an_address(place, here, pate):
    for what, address in ADDRESSES.items():
        done = pate(*place.line(address))
        assert "sesame" not in done.stdout + done.stderr, what


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_no_password_of_what_is_there(place, read_by, here, pate):
    """A folder may have the name of an address that has lost a slash."""
    name = f"x{SUFFIX.get(place.flag, '.npy')}"
    content = CONTENT.get(place.name, "votes.npy")
    inside = Path("s3:", "KEY:sesame@bucket")
    inside.mkdir(parents=True)
    for number, address in enumerate((str(inside / name), f"{here.as_uri()}/{name}?key=sesame")):
        if place.flag not in OUTPUTS:
            shutil.copy(content, inside / name)
            shutil.copy(content, name)
        more = (
            ("-o", f"{number}.csv")
            if place.command == "aggregate" and place.flag != "--output"
            else ()
        )
        done = pate(*place.line(address), *more)
        print(place.line(address), done.exit_code, done.stdout[:0], done.stderr)
        assert "sesame" not in done.stdout + done.stderr, address
