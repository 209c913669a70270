"""A record follows votes wherever they go, and one that is gone while they stay is missed."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import pate_cli as pate
from pate_cli.core.errors import LedgerError
from pate_cli.disclosure import entry
from pate_cli.disclosure.entry import held, keys_of_votes, recall, remember, state_folder
from pate_cli.disclosure.record import RecordFile, Sighting
from refusals import refusal

COUNTS = np.array([[38, 2], [36, 4]] * 12)
ASKED = {"sigma2": 40.0, "layout": "counts", "max_queries": 4}
SESSION = {"teachers": 40, "classes": 2, "mechanism": "gnmax", "sigma2": 40.0, "max_queries": 9}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATE_HOME", str(tmp_path / "home"))


def run(votes, **asked):
    """One run, and how many the record tells of."""
    return pate.aggregate(votes, "gnmax", **{**ASKED, **asked}).report.spent.count


@pytest.fixture
def votes():
    np.save("votes.npy", COUNTS)
    assert run("votes.npy") == 1
    return Path("votes.npy").resolve()


WAYS = {
    "moved": lambda votes: votes.rename("other.npy"),
    "copied": lambda votes: shutil.copy(votes, "other.npy"),
    "hard link": lambda votes: os.link(votes, "other.npy"),
    "link": lambda votes: Path("other.npy").symlink_to(votes),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_record_follows_votes(votes, way):
    WAYS[way](votes)
    assert run("other.npy") == 2
    assert not Path("other.npy.spent.json").exists()
    assert run(Path("other.npy").resolve().as_uri()) == 3
    assert len(pate.spent("other.npy").runs) == 3


def csv_of(path, last):
    """Votes in a CSV, whose last row tells them from others."""
    Path("parts").mkdir(exist_ok=True)
    rows = [",".join(map(str, row)) for row in COUNTS.tolist()]
    Path(path).write_text("\n".join(["class_0,class_1", *rows, last]))


def test_a_record_follows_votes_into_a_folder_and_out_of_it():
    csv_of("a.csv", "9,31")
    csv_of("parts/b.csv", "8,32")
    assert run("a.csv") == 1
    Path("a.csv").rename("parts/a.csv")
    assert run("parts") == 2
    Path("parts/b.csv").rename("b.csv")
    assert run("b.csv") == 3


def test_a_record_under_another_name_takes_over_all_that_was_spent(votes):
    assert run(votes, ensemble="clinics") == 2
    assert run(votes) == 3
    for given in ({"ensemble": "clinics"}, {"record": votes}):
        assert len(pate.spent(**given).runs) == 3
    assert run(votes, record="again.json") == 4
    assert run(votes) == 5


def test_a_record_that_was_taken_over_takes_no_more_runs(votes, monkeypatch):
    run(votes, ensemble="clinics")
    before = Path("votes.npy.spent.json").read_bytes()
    monkeypatch.setenv("PATE_HOME", "elsewhere")
    for act in (
        lambda: run(votes),
        lambda: run(votes, record="third.json"),
        lambda: run(votes, record="votes.npy.spent.json"),
        lambda: pate.Session(record="votes.npy.spent.json", **SESSION),
        lambda: pate.release("votes.npy.spent.json"),
        lambda: pate.spent("votes.npy.spent.json"),
    ):
        text = refusal(LedgerError, act)
        assert "clinics.spent.json; give that file as `record`" in text
    assert Path("votes.npy.spent.json").read_bytes() == before
    assert not Path("third.json").exists()
    monkeypatch.setenv("PATE_HOME", "home")
    assert run(votes) == 3


def test_a_session_ends_when_its_record_is_taken_over(votes):
    """It once went on in the old record, and the new record stated too few queries and answers."""
    with pate.Session(record="votes.npy.spent.json", **SESSION) as session:
        first = session.ask([40, 0], id="a")
        assert run(votes, record="all.json") == 3
        assert session.ask([0, 40], id="a") == first
        assert "is closed" in refusal(LedgerError, session.ask, [40, 0], id="b")
    with pate.Session(record="votes.npy.spent.json", **SESSION) as session:
        assert (session.asked, session.ask([0, 40], id="a")) == (1, first)
        assert "is closed" in refusal(LedgerError, session.ask, [40, 0], id="b")
    (there,) = [one for one in pate.spent("all.json").runs if one.kind == "session"]
    assert (there.epsilon, there.settings.queries) == (session.rule.epsilon, 1)


def test_two_records_of_the_same_votes_are_joined_by_name():
    for name, last in (("a", "9,31"), ("b", "8,32")):
        csv_of(f"{name}.csv", last)
        run(f"{name}.csv", record=f"{name}.json")
        Path(f"{name}.csv").rename(f"parts/{name}.csv")
    text = refusal(LedgerError, run, "parts")
    assert "a.json and " in text
    assert "b.json are two records of these teachers; name the record to keep" in text
    assert run("parts", record="b.json") == 3
    assert run("parts") == 4
    assert len(pate.spent("b.json").runs) == 4


def test_the_same_record_by_other_names_is_no_other_record(votes):
    """A copy beside copied votes, a link, and one that is both given and named."""
    record = "votes.npy.spent.json"
    Path("copy").mkdir()
    for name in ("votes.npy", record):
        shutil.copy(name, f"copy/{name}")
    os.link(record, "link.json")
    Path("soft.json").symlink_to(record)
    assert pate.release(record, record=record).report.spent.count == 1
    assert run(votes, record="link.json") == 2
    assert run(votes, record="soft.json") == 3
    assert run("copy/votes.npy") == 4
    assert len(pate.spent(record).runs) == 4
    Path("year").mkdir()
    for name in ("votes.npy", record):
        Path(name).rename(f"year/{name}")
    assert run("year/votes.npy") == 5
    assert not Path(record).exists()


LOSSES = {
    "gone": lambda path: path.unlink(),
    "emptied": lambda path: path.write_bytes(b""),
    "rolled back": lambda path: path.write_bytes(
        b"".join(path.read_bytes().splitlines(keepends=True)[:2])
    ),
}


@pytest.mark.parametrize("how", LOSSES)
def test_a_record_that_is_lost_is_missed_until_that_is_accepted(votes, how):
    record = Path("votes.npy.spent.json")
    LOSSES[how](record)
    before = record.exists() and record.read_bytes()
    text = refusal(LedgerError, run, "votes.npy")
    assert "votes.npy.spent.json is gone, or lost some of the 2 lines" in text
    assert "accept_lost_record" in text
    assert (record.exists() and record.read_bytes()) == before
    run("votes.npy", accept_lost_record=True)
    run("votes.npy")


def test_so_is_that_of_a_session_and_that_of_moved_votes(votes):
    with pate.Session(record="s.json", **SESSION) as session:
        session.ask([40, 0])
    Path("s.json").unlink()
    assert "s.json is gone" in refusal(LedgerError, pate.Session, record="s.json", **SESSION)
    with pate.Session(record="s.json", accept_lost_record=True, **SESSION) as session:
        assert session.asked == 0
    votes.rename("other.npy")
    Path("votes.npy.spent.json").unlink()
    assert "is gone" in refusal(LedgerError, run, "other.npy")


def test_what_is_known_is_for_one_user_alone(votes):
    folder = state_folder()
    assert folder == Path("home").resolve()
    seen = list((folder / "seen").iterdir())
    assert len(seen) == 2  # of the votes, and of the record
    assert {path.stat().st_mode & 0o777 for path in seen} == {0o600}
    assert (folder / "seen").stat().st_mode & 0o777 == 0o700
    public = Path("votes.npy.spent.json").read_text()
    assert not any(path.name[:16] in public for path in seen)


def test_without_a_place_to_keep_it_nothing_is_known_and_runs_go_on(votes, monkeypatch):
    monkeypatch.setenv("PATE_HOME", os.devnull)
    votes.rename("other.npy")
    with pytest.warns(UserWarning, match="begins a new record") as told:
        assert run("other.npy") == 1
    assert told[0].filename == __file__  # the line of whoever called


@pytest.mark.parametrize("content", [b"", b"[]", b'{"record": 1}', b"\xff", b"[" * 9999])
def test_damage_there_is_no_knowledge(votes, content):
    for path in (state_folder() / "seen").iterdir():
        path.write_bytes(content)
    assert run(votes) == 2


@pytest.mark.parametrize("size", [0, 1, 1 << 16, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 20])
def test_a_fingerprint_is_of_the_size_and_of_both_ends(tmp_path, size):
    path = tmp_path / "v"
    content = bytes(range(256)) * (size // 256) + bytes(size % 256)
    path.write_bytes(content)
    (key,) = keys_of_votes(path)
    others = [content + b"x", content[:-1]]
    if content:
        others += [b"x" + content[1:], content[:-1] + b"x"]
    for other in set(others) - {content}:
        path.write_bytes(other)
        assert keys_of_votes(path) != (key,)


def test_the_last_sighting_counts():
    for lines in (1, 2):
        remember(["k"], Sighting("/r.json", lines, "c"))
    assert [seen.lines for seen in recall(["k", "none"])] == [2]


def test_a_second_file_of_as_many_teachers_is_told_how_to_join(votes, recwarn):
    np.save("b.npy", COUNTS[::-1])
    with pytest.warns(UserWarning, match=r"votes\.npy\.spent\.json beside it also has 40 teachers"):
        run("b.npy")
    recwarn.clear()
    run("b.npy")  # its record is there
    np.save("c.npy", COUNTS[1:])
    run("c.npy", ensemble="wards")  # and this one is named
    np.save("d.npy", COUNTS[:, ::-1] * 2)
    run("d.npy")  # and these are others
    assert not recwarn.list


@pytest.mark.parametrize("record", [None, "r.json"])
def test_a_report_says_that_a_run_is_in_no_record(record):
    told = pate.aggregate(COUNTS, "gnmax", record=record, **ASKED).report.headline()
    assert told.endswith("queries answered; in no record") is (record is None)


def test_a_run_that_is_entered_meanwhile_is_no_loss(votes, monkeypatch):
    """Another process appends after the record was read and before what is known of it."""
    recall, asked = entry.recall, []

    def late(keys):
        asked.append(keys)
        if len(asked) == 1:  # the record that is named was read by then
            run("votes.npy")
        return recall(keys)

    monkeypatch.setattr(entry, "recall", late)
    assert run("votes.npy", record="votes.npy.spent.json") == 3


def test_nobody_else_can_lock_a_record_that_is_held(tmp_path):
    """Or two runs at once would each see what was left of the budget, and spend it twice."""
    fcntl = pytest.importorskip("fcntl")
    other = os.open(tmp_path, os.O_RDONLY)
    try:
        with held([RecordFile(tmp_path / "r.json")]), pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(other)


def test_a_copied_state_folder_loses_no_runs_of_an_ensemble(tmp_path, monkeypatch):
    """The record of this name in one folder takes over that in the other, and not itself."""
    np.save("votes.npy", COUNTS)
    assert run("votes.npy", ensemble="c") == 1
    shutil.copytree("home", "other")
    monkeypatch.setenv("PATE_HOME", str(tmp_path / "other"))
    assert run("votes.npy", ensemble="c") == 2
    monkeypatch.setenv("PATE_HOME", str(tmp_path / "home"))
    assert len(pate.spent(ensemble="c").runs) == 2
    assert run("votes.npy", ensemble="c") == 3
    shutil.copy("votes.npy", "copied.npy")
    assert run("copied.npy", ensemble="fresh") == 4


def test_a_run_without_the_budget_may_cost_more_and_the_total_says_so(votes):
    def told():
        return [line.text for line in pate.spent(votes).said() if hasattr(line, "text")]

    over = "the runs cost more than this budget"
    run(votes, sigma2=400.0, budget=1.0)
    assert not any(line.startswith(over) for line in told())
    run(votes, sigma2=4.0)
    assert any(line.startswith(over) for line in told())
