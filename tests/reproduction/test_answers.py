"""How many answers an epsilon buys, on votes small enough to search at once."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from pate_cli import published
from pate_cli.accounting.gnss import gnss_rdp
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import VoteModel
from pate_cli.reproduction.answers import VotesOf, answers, settings_for
from pate_cli.reproduction.paper_budget import PaperBudget
from pate_cli.reproduction.vote_folder import VoteFolder

WAYS = ["tested target", "worst case", "upper release", "published, corrected"]


def one_setting(teachers):
    return [Tuning(0.6 * teachers, 0.6 * teachers, 0.25 * teachers)]


@pytest.fixture
def folder(tmp_path, draw, save):
    save(tmp_path, "votes.npy", draw(teachers=40, classes=2, queries=80, agreement=0.95))
    return VoteFolder(tmp_path, {}, infer=True)


def computed(folder, targets, names=("votes.npy",)):
    rows = [VotesOf(folder, name) for name in names]
    return answers(rows, targets=targets, settings=one_setting)


def test_every_way_grows_with_epsilon_and_a_tested_target_beats_the_worst_case(folder):
    table = computed(folder, (0.5, 1.0))
    assert table.exit_code == 0
    (row,) = json.loads(table.json())["rows"]
    found = {way: [cell["answers"] for cell in row[way]] for way in WAYS}
    for way, (fewer, more) in found.items():
        assert 0.0 <= fewer <= more <= 80.0 + 1e-6, way
    assert found["tested target"][0] >= found["worst case"][0] > 0.0
    assert found["tested target"][1] > found["worst case"][1]
    assert found["tested target"][0] > found["published, corrected"][0]
    (lines,) = (result.lines for result in table.results)
    assert [line[:2] for line in lines] == list(zip(["votes.npy", "", "", ""], WAYS, strict=True))
    assert lines[0][2] == f"{found['tested target'][0]:.1f}"


def test_out_of_reach_is_a_dash_and_a_reason(folder):
    table = computed(folder, (0.001,))
    assert table.exit_code == 0
    (result,) = table.results
    assert {line[2] for line in result.lines} == {"-"}
    for way in WAYS:
        assert any(note.startswith(f"votes.npy, {way} at 0.001: ") for note in table.all_notes)


def test_the_published_release_fits_and_is_charged_its_exact_divergence(draw):
    """Mean and deviation put together from the parts; 3% more rows would not fit."""
    counts = draw(teachers=60, classes=3, queries=200, agreement=0.95)
    sample = VoteModel(counts, 60)
    best = PaperBudget(sample, one_setting(60), delta=1e-5).best(4.0, min_agreement=0.9)
    assert 0 < best.queries < 190
    release, setting = best.release, best.setting

    def published_at(rows):
        cost = published.confident_expected_cost(
            counts[:rows], **setting.parameters, orders=[release.order]
        ).sum()
        curve = published.expected_local_sensitivity(
            counts[:rows], **setting.parameters, order=release.order, teachers=60
        )
        sd = release.sigma * published.smooth_sensitivity(curve, beta=release.beta)
        draw = gnss_rdp(beta=release.beta, sigma=release.sigma, order=release.order)
        return cost + draw - math.log(1e-5) / (release.order - 1.0), sd

    mean, sd = published_at(best.queries)
    assert release.mean == pytest.approx(mean, rel=1e-9)
    assert release.sd == pytest.approx(sd, rel=1e-9)
    assert mean + 2 * sd <= 4.0
    more, wider = published_at(math.ceil(1.03 * best.queries) + 1)
    assert more + 2 * wider > 4.0
    chance = sample.answer_chance(setting)
    assert best.answers == pytest.approx(chance[: best.queries].sum(), rel=1e-12)


def test_the_settings_are_in_proportion():
    settings = settings_for(250)
    assert len(settings) == 24
    assert {each.threshold for each in settings} == {100.0, 250.0}
    assert {each.sigma2 for each in settings} == {30.0, 40.0, 60.0, 80.0}


def test_command_line_reads_both_folders(tmp_path, save, run):
    for name in ("samples", "votes"):
        save(tmp_path / name, f"{name}.npy", np.array([[9, 1]] * 30 + [[9, 2]]))
    save(tmp_path / "samples", "records.npy", np.ones((2, 2)))
    code, out, err = run(
        "answers", "--samples", tmp_path / "samples", "--votes", tmp_path / "votes", "--json"
    )
    assert (code, err) == (3, "")
    rows = json.loads(out)["rows"]
    assert [(row["row"], row["status"]) for row in rows] == [
        ("samples.npy", "votes unreadable"),
        ("votes.npy", "votes unreadable"),
    ]
    code, out, err = run("answers", "--samples", tmp_path / "nowhere")
    assert (code, out) == (3, "")
    assert "no such folder" in err
