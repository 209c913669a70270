"""Whatever address is given anywhere on a command line, its password and its query are not shown.

Commands and their options are found in the application: a new one is looked at without a word here.
"""

from __future__ import annotations

import shutil
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from typer.testing import CliRunner

import pate_cli as pate_library
from pate_cli.cli import app, terminal
from pate_cli.core import errors
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
AMOUNTS = ("--threshold", "--sigma1", "--sigma2", "--prior-weight")
FORCED = {"aggregate": ("--force",), "release": ("--force", "--again")}
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


PATHS = {name: place for name, place in PLACES.items() if place.flag not in AMOUNTS}


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


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_no_password_of_an_address(place, here, pate):
    for what, address in ADDRESSES.items():
        done = pate(*place.line(address))
        assert "sesame" not in done.stdout + done.stderr, what


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_no_password_of_what_is_there(place, here, pate, monkeypatch):
    """A folder may have the name of an address that has lost a slash."""
    name = f"x{SUFFIX.get(place.flag, '.npy')}"
    inside = Path("s3:", "KEY:sesame@bucket")
    inside.mkdir(parents=True)
    if place.flag not in OUTPUTS:
        for home in (inside, here):
            shutil.copy(CONTENT.get(place.name, "votes.npy"), home / name)
    # What a run leaves behind is looked at by a person, and by a pipe.
    for by_person in (True, False) if place.flag in OUTPUTS else (True,):
        monkeypatch.setattr(terminal, "read_by_person", lambda shown=by_person: shown)
        for address in (f"{inside / name}", f"{here.as_uri()}/{name}?key=sesame"):
            done = pate(*place.line(address), *FORCED.get(place.command, ()))
            assert "sesame" not in done.stdout + done.stderr, (address, by_person)


@pytest.mark.parametrize("place", PATHS.values(), ids=PATHS)
def test_whoever_names_a_file_leaves_the_password_out(place, here, pate, monkeypatch):
    """Not even where nobody looks at the whole message."""
    monkeypatch.setattr(errors, "withheld", str)
    monkeypatch.setattr(terminal, "withheld", str)
    for what in ("nowhere", "malformed", "lost a slash"):
        done = pate(*place.line(ADDRESSES[what]))
        assert "sesame" not in done.stdout + done.stderr, what


def test_a_record_that_holds_more_than_one_attempt(here, pate):
    inside = Path("s3:", "KEY:sesame@bucket")
    inside.mkdir(parents=True)
    for name in ("1.csv", "2.csv"):
        words = (*NOISE, *TARGET, "--spend", inside / "spent.json", "-o", name, "--report", "-")
        done = pate("aggregate", "votes.npy", *words)
        assert done.exit_code == 0, done.stderr
    assert "2 attempts in s3:/bucket/spent.json cost" in done.stderr
    assert "sesame" not in done.stderr


def test_no_password_of_what_no_option_is(pate):
    """What Typer says of a command line quotes it."""
    address = ADDRESSES["nowhere"]
    for words in (
        [address],
        ["verify", "r.json", "l.csv", address],
        ["aggregate", "votes.npy", "--layout", address],
        ["aggregate", "votes.npy", "--seed", address],
        ["aggregate", "votes.npy", f"--nothing={address}"],
        ["cost", "votes.npy", f"-o{address}"],
    ):
        done = pate(*words)
        assert done.exit_code == 2, words
        assert "sesame" not in done.stdout + done.stderr, words


ASKED = {
    "verify": lambda address: pate_library.verify(address),
    "its labels": lambda address: pate_library.verify("r.json", address),
    "its prior": lambda address: pate_library.verify("r.json", prior=address),
    "explain": lambda address: pate_library.explain(address),
    "votes": lambda address: pate_library.aggregate(address),
    "into": lambda address: pate_library.aggregate("votes.npy", into=address),
    "checkpoint": lambda address: pate_library.aggregate("votes.npy", checkpoint=address),
    "engine": lambda address: pate_library.aggregate("votes.npy", engine=address),
    "prior": lambda address: pate_library.aggregate("votes.npy", prior=address),
    "groups": lambda address: pate_library.aggregate("votes.npy", groups=address),
    "names": lambda address: pate_library.aggregate("votes.npy", label_names=f"@{address}"),
    "record": lambda address: pate_library.aggregate(
        "votes.npy", target_epsilon=60.0, record=address
    ),
    "truth": lambda address: pate_library.accuracy("votes.npy", address),
    "ledger": lambda address: pate_library.Ledger.read(address),
    "external": lambda address: pate_library.release(
        [pate_library.Ledger.read("a.ledger")], external=[address]
    ),
    "tune": lambda address: pate_library.tune(address, target_epsilon=60.0),
    "save": lambda address: pate_library.aggregate("votes.npy", seed=1).report.save(address),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_no_password_in_a_traceback(ask, here):
    """What caused a refusal is shown with it."""
    for what in ("nowhere", "malformed", "a user of a disk"):
        with pytest.raises(pate_library.PateError) as refused:
            ask(ADDRESSES[what])
        assert "sesame" not in "".join(traceback.format_exception(refused.value)), what


def test_no_password_in_a_notebook():
    address = ADDRESSES["nowhere"]
    shown = repr(pate_library.Destination(address, ledger=Path("a.ledger")))
    assert "labels='nowhere://bucket/folder/x.npy', report='nowhere://bucket/folder/x." in shown
    assert "sesame" not in shown
