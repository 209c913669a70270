"""`pate session`: JSON lines in and out, in this process and in processes of their own."""

import json
import signal
import subprocess

import pytest

from pate_cli.disclosure.record import SpendRecord

SETTINGS = (
    "session", "--teachers", 250, "--classes", 3, "--mechanism", "gnmax", "--sigma2", 40,
    "--target-epsilon", 1, "--spend", "r.json",
)  # fmt: skip
OPENING = "pate: epsilon 0.9938 at delta 1e-05 for 75 queries"


def line(name=None, counts=(3, 240, 7), **more):
    told = {} if name is None else {"id": name}
    return json.dumps({**told, "counts": counts, **more}) + "\n"


def answers(text):
    return [json.loads(each) for each in text.splitlines()]


def test_the_budget_ends_it_after_the_last_answer(pate, folder):
    given = (*SETTINGS, "--report", "report.json")
    done = pate(*given, input=line() * 80)
    assert (done.exit_code, len(answers(done.stdout))) == (5, 75)
    last = "pate: the session may ask no more: its 75 queries have used up epsilon 0.9938"
    assert done.stderr.splitlines()[-1] == last
    report = json.loads((folder / "report.json").read_text())
    assert (report["epsilon"], report["queries"]) == (0.9938, 75)
    pate("verify", "report.json", code=0)
    assert "asked one by one" in pate("explain", "report.json").stdout
    bill = pate("spent", "r.json", "--verify", "report.json", "--table", code=0)
    assert "gnmax (session)" in bill.stdout
    pate(*SETTINGS, input="", code=0)
    pate(*SETTINGS, input=line(), code=5)
    pate("release", "r.json", "--report", "-", code=0)


def test_a_line_without_an_end_is_refused_before_it_takes_long(pate):
    done = pate(*SETTINGS, input=b" " * (17 << 20), code=3)
    told = "pate: line 1 is longer than 16 MB; write one query per line"
    assert done.stderr.splitlines()[-1] == told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 2: not a query: the text is not valid JSON"),
        ("[1]", "line 2: not a query: a line must be a JSON object"),
        ('{"counts": [1, 2]}', "line 2: query 0: got 2 counts for 3 classes"),
        ('{"counts": [300, 0, 0], "id": "x"}', "line 2: query 'x': the query has more votes than"),
        (
            '{"count": [1, 2]}',
            "line 2: not a query: the only fields of a query are counts, id, prior, votes",
        ),
        ('{"id": "x"}', "line 2: not a query: a query has either counts or votes"),
        ('{"counts": [1, 2, 3], "votes": []}', "line 2: not a query: a query has either"),
        (
            '{"counts": [1, 2, 3], "id": 1, "id": 2}',
            "line 2: not a query: a JSON object has two fields of the same name",
        ),
        ("\xff", "line 2: not a query: the text is not valid JSON"),
    ],
)
def test_a_line_that_is_no_query_is_answered_by_an_error_and_costs_nothing(pate, text, message):
    source = line("a").encode() + text.encode("latin-1") + b"\n" + line("c").encode()
    done = pate(*SETTINGS, input=source, code=0)
    first, second, third = answers(done.stdout)
    assert (first["id"], third["id"]) == ("a", "c")
    assert second.pop("error").startswith(message)
    assert second == ({"id": "x"} if '"id": "x"' in text else {})
    assert first["remaining"] >= third["remaining"] == 73
    assert SpendRecord.read("r.json").runs[0].settings.queries == 2


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        ({"id": ""}, 2, "an id is a text"),
        ({"id": 1, "prior": 2}, 2, "guesses of the prior have no weight: give --prior-weight"),
        ({"id": "x", "votes": []}, 3, "not a query: a query has either counts or votes"),
    ],
)
def test_a_strict_session_ends_there_and_what_came_before_is_answered(pate, more, code, message):
    bad = json.dumps({"counts": [3, 240, 7], **more}) + "\n"
    source = line("a") + bad + line("c")
    done = pate(*SETTINGS, "--strict", input=source)
    assert done.exit_code == code
    assert [each["id"] for each in answers(done.stdout)] == ["a"]
    assert done.stderr.splitlines()[-1].startswith(f"pate: line 2: {message}")
    assert SpendRecord.read("r.json").runs[0].settings.queries == 1
    done = pate(*SETTINGS, input=source, code=0)
    told = answers(done.stdout)[1]
    assert told["error"].startswith(f"line 2: {message}")
    assert told == {"id": more["id"], "error": told["error"]}


def test_a_reader_who_leaves_ends_it_in_silence(here_and_there):
    with here_and_there(*SETTINGS) as process:
        process.stdout.close()
        process.stdin.write(line().encode() * 3)
        process.stdin.close()
        process.stdin = None
        assert process.wait(timeout=60) == 141
        assert process.stderr.read().decode().splitlines() == [OPENING]
    assert SpendRecord.read("r.json").runs[0].settings.queries == 3


def test_an_interruption_says_what_was_kept(here_and_there):
    with here_and_there(*SETTINGS) as process:
        process.stdin.write(line().encode())
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        said = process.stderr.read().decode()
    assert (
        said.splitlines()[-1]
        == "pate: interrupted; all answers that were sent are in the record, if there is one"
    )
    assert SpendRecord.read("r.json").runs[0].settings.queries == 1


@pytest.fixture
def here_and_there(command):
    """Start `pate` with pipes to all of it."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return lambda *words: subprocess.Popen(command(*words), **pipes)
