"""Several labels a query, on whole graphs of small ensembles: every ballot of every teacher."""

import itertools

import numpy as np
import pytest
from scipy.special import ndtr

from divergences import renyi
from graphs import Graph
from laws import answers_law, gaussian_argmax_law, laplace_argmax_law
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.votes.opening import open_votes

LABELS = 2
NONE, NO, YES = -1, 0, 1


class Ensemble:
    """All ways in which so many teachers may vote on one query; neighbours differ in one teacher.

    A teacher's ballot is one of `kinds`, answers to every label; a file is a histogram of ballots.
    """

    def __init__(self, teachers, answers):
        self.kinds = np.array(list(itertools.product(answers, repeat=LABELS)))
        self.graph = Graph.of(teachers, len(self.kinds))
        self.edges = self.graph.edges.T
        # (no, yes) of every file and label: [files, labels, 2].
        said = [(self.kinds == answer).astype(int) for answer in (NO, YES)]
        self.pairs = np.stack([self.graph.histograms @ each for each in said], axis=2)


def laws_of(mechanism, counts):
    """log Pr of every outcome of rows [rows, classes], with ⊥ last where there may be one."""
    laplace = mechanism.name == "lnmax"
    scale = mechanism.laplace_scale if laplace else mechanism.sigma2
    chances = (laplace_argmax_law if laplace else gaussian_argmax_law)(counts, scale)
    if mechanism.name != "confident":
        return chances
    answered = ndtr((counts.max(axis=1) - mechanism.threshold) / mechanism.sigma1)
    laws = answers_law(answered, np.exp(chances))
    return np.log(laws[:, laws.max(axis=0) > 0.0])


CASES = [
    (ConfidentGNMax(3, 2, threshold=2.2, sigma1=1.0, sigma2=1.2), 3.0),
    (ConfidentGNMax(3, 2, threshold=1.0, sigma1=3.0, sigma2=4.0), 8.0),
    (GNMax(3, 2, sigma2=1.5), 5.0),
    (GNMax(3, 2, sigma2=12.0), 20.0),
    (LNMax(3, 2, laplace_scale=1.5), 2.0),
]


@pytest.fixture(scope="module", params=[(NO, YES), (NO, YES, NONE)], ids=["all vote", "missing"])
def ensemble(request):
    return Ensemble(3, request.param)


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0].name}-{case[1]:g}")
def case(request):
    return request.param


def test_the_sum_over_labels_covers_every_pair_of_files(case, ensemble):
    mechanism, order = case
    laws = laws_of(mechanism, ensemble.pairs.reshape(-1, 2))
    laws = laws.reshape(*ensemble.pairs.shape[:2], -1)
    # The law of all labels of a query together, outcome by outcome.
    joint = (laws[:, 0, :, None] + laws[:, 1, None, :]).reshape(len(laws), -1)
    np.testing.assert_allclose(np.exp(joint).sum(axis=1), 1.0, rtol=0, atol=1e-11)
    here, there = ensemble.edges
    exact = renyi(joint[here], joint[there], order)
    table = mechanism.cost_table(order)
    cells = mechanism.cells(mechanism.score(ensemble.pairs.reshape(-1, 2)), table.grid)
    cost = table.cost(cells).reshape(ensemble.pairs.shape[:2])
    bound = np.minimum(cost.sum(axis=1)[here], cost.sum(axis=1)[there])
    np.testing.assert_array_less(exact, bound * (1.0 + 1e-9) + 1e-11)
    # One label alone does not cover them: one teacher moves a vote in all labels at once.
    each = renyi(laws[here], laws[there], order)
    assert (exact > 1.5 * each.max(axis=1)).any()


def test_a_file_of_ballots_is_these_pairs():
    """The reader and the graph above agree on what one query is."""
    ensemble = Ensemble(3, (NO, YES, NONE))
    files = np.array(
        [np.repeat(ensemble.kinds, votes, axis=0) for votes in ensemble.graph.histograms]
    )
    with open_votes(files, layout="multilabel", teachers=3) as file:
        counts = np.concatenate([batch.counts for batch in file.batches()])
    np.testing.assert_array_equal(counts, ensemble.pairs.reshape(-1, 2))
