"""A run that promises practically nothing: refused in a pipe, asked about at a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess

import pytest

from slices import some

DEAR = ["--mechanism", "gnmax", "--sigma2", 2]


@pytest.fixture
def asked(command):
    """Run `pate` with stdin and stderr a terminal, and answer; (code, stdout, stderr)."""

    def run(answer, *words):
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            command(*words),
            stdin=theirs,
            stderr=theirs,
            stdout=subprocess.PIPE,
            env={**os.environ, "TERM": "dumb"},
            start_new_session=True,
        ) as process:
            os.close(theirs)
            seen = b""
            with contextlib.suppress(OSError):  # how Linux says that the other end is closed
                while data := os.read(ours, 4096):
                    seen += data
                    if answer is not None and seen.endswith(b"\n> "):
                        if isinstance(answer, signal.Signals):
                            process.send_signal(answer)
                        else:
                            price = re.search(rb"type ([0-9.]+)", seen)[1]
                            os.write(ours, answer.replace(b"N", price))
                        answer = None
            out = process.stdout.read()
        os.close(ours)
        return process.returncode, out, seen.decode().replace("\r", "")

    return run


def test_a_pipe_is_refused_at_once(pate, refused, votes, leftovers):
    line = refused(pate("aggregate", votes, *DEAR), 5)
    price = re.search(r"would cost epsilon (\S+) at delta 1e-05, whatever the votes", line)[1]
    assert "Lower --max-queries or --max-answers, take more noise, or state --target-eps" in line
    assert line.endswith(f"ask for it by name: --max-epsilon {price}")
    assert leftovers() == []
    assert not votes.with_name("votes.npy.spent.json").exists()
    done = pate("aggregate", votes, *DEAR, "--max-epsilon", price)
    assert done.exit_code == 0
    assert json.loads(done.stdout)["epsilon"] <= float(price)


def test_a_dry_run_tells_the_price_and_what_the_run_would_need(pate, votes, leftovers):
    for seed in ([], ["--seed", 1]):
        result = pate("aggregate", votes, *DEAR, *seed, "--dry-run")
        assert result.exit_code == 0
        warnings = json.loads(result.stdout)["warnings"]
        assert warnings[0].startswith("This epsilon promises practically nothing")
        assert re.search(r"a seeded test, needs --max-epsilon \S+\.$", warnings[-1])
        assert f"pate: warning: {warnings[-1]}\n" in result.stderr
    assert leftovers() == []


def test_a_seeded_run_is_a_test(pate, votes):
    result = pate("aggregate", votes, *DEAR, "--seed", 1)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["private"] is False


@pytest.mark.parametrize("answer", some([b" yes, epsilon N \n", b"N\n"], 2))
def test_a_person_who_types_the_epsilon_gets_the_labels(asked, votes, leftovers, answer):
    code, out, said = asked(answer, "aggregate", votes, *DEAR)
    assert code == 0
    price = re.search(r"would cost epsilon (\S+) at delta 1e-05, whatever the votes", said)[1]
    assert f"type {price}; anything else leaves it\n> " in said
    report = json.loads(out)
    assert 10.0 < report["epsilon"] <= float(price)
    assert report["private"] is True
    assert "votes.labels.parquet" in leftovers()
    assert said.count("joins the record") == 0
    assert said.count("60 queries x 4 classes") == 1


@pytest.mark.parametrize(
    "answer",
    some([b"1N\n", b"\n", b"yes\n", b"y\n", b"10\n", b"yes, epsilon 1\n", b"\x04"], 7),
    ids=repr,
)
def test_any_other_answer_is_a_refusal(asked, votes, leftovers, answer):
    code, out, said = asked(answer, "aggregate", votes, *DEAR)
    assert (code, out) == (5, b"")
    assert "ask for it by name: --max-epsilon" in said.splitlines()[-1]
    assert leftovers() == []
    assert not votes.with_name("votes.npy.spent.json").exists()


def test_ctrl_c_at_the_question_leaves_nothing(asked, votes, leftovers):
    code, out, said = asked(signal.SIGINT, "aggregate", votes, *DEAR)
    assert (code, out) == (130, b"")
    assert said.endswith("pate: interrupted; nothing was released\n")
    assert leftovers() == []


@pytest.mark.parametrize(
    "words",
    some(
        [["--max-epsilon", 5000], ["--max-epsilon", 12], ["--release", "upper"], ["--dry-run"]], 4
    ),
)
def test_nobody_is_asked_what_was_said_already(asked, votes, words):
    code, _, said = asked(None, "aggregate", votes, *DEAR, *words)
    assert code == (5 if words[-1] == 12 else 0)
    assert "type " not in said


def test_the_question_does_not_go_into_a_pipe(command, votes):
    """With stderr a terminal and stdin none, nobody could answer."""
    ours, theirs = pty.openpty()
    result = subprocess.run(
        command("aggregate", votes, *DEAR),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=False,
        timeout=60,
    )
    os.close(theirs)
    said = os.read(ours, 65536)
    os.close(ours)
    assert result.returncode == 5
    assert b"anything else" not in said
