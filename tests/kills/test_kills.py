"""A slice of `make kills`: sessions, runs with a checkpoint, and two runs that share one."""

import os
import random
import signal
import time

import pytest

from ended import ended
from kills.processes import killed_again_and_again
from kills.runs import KINDS, in_place, kept_key, runs_killed, started, votes_in, words
from pate_cli.core.noise import RunKey
from slices import some

KILLS = int(os.environ.get("PATE_KILLS", "5"))


@pytest.mark.parametrize("seed", range(3, 3 + KILLS // 50 + 1))
def test_however_often_a_session_is_killed_no_answer_is_lost(seed, tmp_path):
    assert killed_again_and_again(tmp_path, min(max(KILLS, 12), 50), seed) > 0


@pytest.mark.parametrize("kind", some(list(KINDS), 3))
def test_however_often_a_run_is_killed_it_gives_one_answer(kind, tmp_path):
    assert runs_killed(tmp_path, kind, KILLS, seed=3) > 0


@pytest.mark.parametrize("kind", ["plain", "target"])
def test_two_processes_with_one_checkpoint_never_give_two_answers(kind, tmp_path):
    """Whichever comes second goes on under the same key, or ends without an answer."""
    chance, votes = random.Random(7), votes_in(tmp_path)  # noqa: S311 - of a test
    for turn in range(6):
        folder = tmp_path / f"turn{turn}"
        other = folder / "other"
        other.mkdir(parents=True)
        # The first is held up in its work while another goes on with its checkpoint.
        first = started(folder, words(votes, kind), RunKey(chance.randbytes(32)))
        deadline = time.monotonic() + 30.0
        while not (folder / "kept" / "run.json").exists():
            assert time.monotonic() < deadline
        time.sleep(0.004 * turn)
        os.kill(first, signal.SIGSTOP)
        held = kept_key(folder)
        second = started(other, words(votes, kind, kept="../kept"), RunKey(chance.randbytes(32)))
        codes = [ended(second)]
        os.kill(first, signal.SIGCONT)
        codes.insert(0, ended(first))
        if held is None:
            continue  # it had ended before it could be held
        assert codes in ([0, 0], [6, 0])
        mine, theirs = in_place(folder), in_place(other)
        if codes[0] == 0:
            assert mine["labels.npy"] == theirs["labels.npy"]
            assert mine["report.json"] == theirs["report.json"]
        else:
            assert not {"labels.npy", "report.json"} & set(mine)
            break
    else:
        pytest.fail("the first was never in the middle of its work")
