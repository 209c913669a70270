"""`pate_cli.planning.vote_model`: made-up ensembles follow the law that they state."""

import numpy as np
import pytest

from pate_cli.core.arrays import DENSE_CLASSES, SparseCounts
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.planning.search import Tuning
from pate_cli.planning.synthetic import SyntheticEnsemble
from pate_cli.planning.vote_model import KINDS, VoteModel, agreement_levels, like, made_up


@pytest.mark.parametrize(
    ("given", "ends"),
    [
        ("0.7", (0.7, 0.7)),
        ("70%", (0.7, 0.7)),
        (" 60% : .9", (0.6, 0.9)),
        ((0.6, 0.95), (0.6, 0.95)),
        (0.8, (0.8, 0.8)),
    ],
)
def test_ranges_as_people_write_them(given, ends):
    levels = agreement_levels(given, 3)
    assert (levels[0], levels[-1]) == ends
    assert list(levels) == sorted(levels)


@pytest.mark.parametrize(
    ("given", "kind", "line"),
    [
        *((text, UsageError, "low:high") for text in ("", "x", "0.6:", "0.6-0.9", "0.6:0.7:0.8")),
        *((ends, ParameterError, "between 0 and 1") for ends in ((0.0, 0.5), (0.9, 0.6), (0.5, 1))),
    ],
)
def test_what_is_no_range(given, kind, line):
    with pytest.raises(kind, match=line):
        agreement_levels(given, 3)


@pytest.mark.parametrize(("teachers", "classes"), [(8, 2), (60, 3), (250, 10)])
def test_ensembles_have_the_means_of_independent_draws(teachers, classes):
    """Of the counts, and of what costs hang on: the lead, through a function that falls fast."""
    model = made_up(teachers=teachers, classes=classes)

    def told(counts):
        first, second = -np.sort(-counts, axis=1)[:, :2].T / teachers
        return np.stack([first, second, np.exp(-8 * (first - second))])

    for place, (level, kind) in enumerate(zip(model.levels, model.kinds, strict=True)):
        if kind == KINDS[-1]:
            continue
        spread = 0.2 if kind == KINDS[0] else 0.5
        drawn, _ = SyntheticEnsemble(teachers, classes, 20_000, level, spread).draw(seed=3)
        of_drawn = told(drawn)
        off = (told(model.counts) @ model.weights[place] - of_drawn.mean(axis=1)) / of_drawn.std(1)
        assert np.abs(off).max() < 0.05


def test_a_tenth_of_a_kind_is_hard():
    model = made_up(teachers=100, classes=10, levels=(0.9,))
    mean = model.weights @ model.largest_two[0]
    assert mean[2] < mean[0] - 1.5


def test_weights_add_up_and_rows_have_all_votes():
    model = made_up(teachers=50, classes=4, prior_accuracy=0.8).with_prior_weight(20)
    np.testing.assert_allclose(model.weights.sum(axis=1), 1.0)
    assert set(model.counts.sum(axis=1).tolist()) == {70}
    assert set(model.alone.sum(axis=1).tolist()) == {50}
    right = (model.guesses == 0) @ model.weights.mean(axis=0)
    assert right == pytest.approx(0.8, abs=0.03)


def test_teachers_of_several_votes_count_for_as_many():
    model = made_up(teachers=80, classes=3, teacher_weights=(1, 2, 5) * 10, levels=(0.9,))
    assert set(model.counts.sum(axis=1).tolist()) == {80}
    assert model.weights[0] @ model.counts[:, 0] == pytest.approx(72.0, abs=1.5)


def test_very_many_classes_are_kept_by_their_votes():
    sparse, dense = (made_up(teachers=30, classes=m, rows=200) for m in (DENSE_CLASSES + 1, 9000))
    assert isinstance(sparse.counts, SparseCounts)
    assert set(sparse.counts.counts.sum(axis=1).tolist()) == {30}
    means = [model.weights[0] @ model.largest_two[0] for model in (sparse, dense)]
    assert means[0] == pytest.approx(means[1], rel=0.05)


def test_a_model_like_a_mechanism_has_its_shape():
    mechanism = Tuning(30.0, 20.0, 8.0, 10).mechanism(teachers=40, classes=3, teachers_per_record=2)
    model = like(mechanism)
    assert (model.teachers, model.classes, model.teachers_per_record) == (40, 3, 2)
    assert model.prior_weight == 10
    assert len(model.middle) == len(KINDS)


def test_sparse_votes_of_one_class_a_row_have_no_second_count():
    counts = SparseCounts.of_votes(np.full((3, 4), 7), DENSE_CLASSES + 1)
    first, second = VoteModel(counts, 4).largest_two
    assert (first.tolist(), second.tolist()) == ([4.0] * 3, [0.0] * 3)
