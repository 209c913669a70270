"""Whatever address is given anywhere on a command line, its password and its query are not shown.

Commands and their options are found in the application: a new one is looked at without a word here.
"""

import re
import shutil
import traceback
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import pate_cli as pate_library
from pate_cli.cli import app, terminal
from pate_cli.core import errors
from pate_cli.planning.synthetic import SyntheticEnsemble
from slices import some

SHARES = ("--threshold", 24, "--sigma1", 12, "--sigma2", 6)
TARGET = ("--target-epsilon", 60, "--max-queries", 20)
# The words of a command, where they are not what is asked about.
WORDS = {"votes": "votes.npy", "given": "a.ledger", "report": "r.json"}
# What makes it quick.
USUAL = {
    "aggregate": SHARES,
    "cost": SHARES,
    "smooth-sensitivity": SHARES,
    "tune": (*TARGET, *SHARES),
    "verify": ("--without-dp-accounting",),
}
# What is said beside an option, so that it is read at all.
BESIDE = {
    "--student": ("--mechanism", "interactive"),
    "--queries": ("--layout", "long"),
    "--prior-weight": ("--prior", "guesses.npy"),
    "--aliases": ("--label-names", "ant,bee,cow,dog"),
    "aggregate --spend": TARGET,
    "tune --prior": ("--prior-weight", 4),
    "plan --prior-weight": ("--prior-accuracy", 0.9),
    "session --prior-weight": (),
}
# The content of a file that is there; votes do for whatever is not here.
CONTENT = {
    "label_names": "names.txt",
    "aliases": "aliases.json",
    "given": "a.ledger",
    "report": "r.json",
    "labels": "l.csv",
    "external": "curve.json",
    "groups": "groups.csv",
    "prior": "guesses.npy",
}
SUFFIX = {"--plot": ".png", "--per-query": ".csv", "--output": ".csv"}
# Names and numbers, which a message may quote: only the whole of it is looked at.
QUOTED = ("--threshold", "--sigma1", "--sigma2", "--laplace-scale", "--prior-weight", "--ensemble")
FORCED = {"aggregate": ("--force",), "release": ("--force", "--again")}
OUTPUTS = ("--plot", "--per-query", "--output", "--report", "--export-rdp")
OUTPUTS += ("--ledger", "--spend", "--checkpoint")
# What readers are shown word for word.
SHOWN = ("--title", "--unit")
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

    @property
    def id(self):
        return f"{self.command} {self.flag or self.name}"

    def line(self, value):
        """A command line with a value there."""
        spoken = [name for name, keyword in KEYWORDS[self.command].items() if keyword.argument]
        words = {name: WORDS.get(name) for name in spoken}
        beside = (*USUAL.get(self.command, ()), *BESIDE.get(self.id, BESIDE.get(self.flag, ())))
        if self.flag is None:
            words[self.name] = value
        elif self.flag == "--synthetic":  # which stands for votes
            words = {}
        elif self.flag == "--laplace-scale":
            beside = ("--mechanism", "lnmax")
        if self.flag is not None:
            beside = (*beside, self.flag, f"@{value}" if self.flag == "--label-names" else value)
        return [self.command, *(word for word in words.values() if word is not None), *beside]


def takes_text(keyword):
    number = keyword.metavar in ("N", "X", "E")
    return keyword.kinds and not (keyword.flag or keyword.choices or number)


KEYWORDS = {name: app.build(name).keywords for name in app.COMMANDS}
PLACES = [
    Place(command, name, None if keyword.argument else keyword.option)
    for command, keywords in KEYWORDS.items()
    for name, keyword in keywords.items()
    if takes_text(keyword) and keyword.option not in SHOWN
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder of whatever a command can read."""
    home = tmp_path_factory.mktemp("files")
    counts = SyntheticEnsemble(teachers=40, classes=4, queries=20).draw(3)[0]
    np.save(home / "votes.npy", counts)
    np.save(home / "guesses.npy", counts.argmax(axis=1))
    (home / "names.txt").write_text("ant\nbee\ncow\ndog\n")
    (home / "aliases.json").write_text('{"Ameise": "ant"}')
    (home / "groups.csv").write_text("group\n" + "a\n" * 40)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        runner = CliRunner()
        kept = ("-o", "m.csv", "--report", "m.json", "--ledger", "a.ledger")
        for words in (("-o", "l.csv", "--report", "r.json"), kept):
            done = runner.invoke(app.app, ["aggregate", "votes.npy", *map(str, SHARES), *words])
            assert done.exit_code == 0, done.stderr
        Path("curve.json").write_text(pate_library.rdp_curve("r.json").to_json())
    # The ledger names the record, which a release may take over: that of the copy stays.
    return shutil.copytree(home, tmp_path_factory.mktemp("copy"), dirs_exist_ok=True)


@pytest.fixture
def here(files, folder):
    """A copy of it to run in."""
    shutil.copytree(files, folder, dirs_exist_ok=True)
    return folder


def shown(done):
    """All that a run has said, which was about what it was asked."""
    said = done.stdout + done.stderr
    assert not re.search(
        "no option|not an option|unexpected extra|cannot be used with|contradict", said
    )
    return said


@pytest.mark.parametrize("place", some(PLACES, 4), ids=lambda place: place.id)
def test_no_password_of_an_address(place, here, pate, monkeypatch):
    """Whoever names a file leaves it out, even where nobody looks at the whole message."""
    if place.flag not in QUOTED:
        monkeypatch.setattr(errors, "withheld", str)
        monkeypatch.setattr(terminal, "withheld", str)
    # Of a demo each is a whole run.
    for what in list(ADDRESSES)[:: 3 if place.command == "demo" else 1]:
        assert "sesame" not in shown(pate(*place.line(ADDRESSES[what]))), what


@pytest.mark.parametrize("place", some(PLACES[1:], 4), ids=lambda place: place.id)
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
        monkeypatch.setattr(terminal, "read_by_person", lambda seen=by_person: seen)
        for address in (f"{inside / name}", f"{here.as_uri()}/{name}?key=sesame"):
            done = pate(*place.line(address), *FORCED.get(place.command, ()))
            assert "sesame" not in shown(done), (address, by_person)


def test_a_record_that_holds_more_than_one_attempt(here, pate):
    inside = Path("s3:", "KEY:sesame@bucket")
    inside.mkdir(parents=True)
    for name in ("1.csv", "2.csv"):
        words = (*SHARES, *TARGET, "--spend", inside / "spent.json", "-o", name, "--report", "-")
        done = pate("aggregate", "votes.npy", *words, code=0)
    assert "4 runs in s3:/bucket/spent.json cost " in done.stderr
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
    "aliases": lambda address: pate_library.aggregate(
        "votes.npy", label_names=["ant", "bee", "cow", "dog"], aliases=address
    ),
    "record": lambda address: pate_library.aggregate(
        "votes.npy", target_epsilon=60.0, record=address
    ),
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
    assert "nowhere://bucket/folder/x.npy" in shown
    assert "sesame" not in shown
