"""All vote files of few voters of few votes on few queries, and exact laws of their labels."""

import itertools

import numpy as np
from scipy.special import ndtr

from laws import answers_law, gaussian_argmax_law, laplace_argmax_law
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.lnmax import LNMax


class Law:
    """Factors of a query on a moment, for each pair of histograms: of no answer, and of any."""

    def __init__(self, mechanism, order):
        m, most = mechanism.classes, mechanism.teachers
        every = itertools.product(range(most + 1), repeat=m)
        self.histograms = np.array([each for each in every if sum(each) <= most])
        self.base = (most + 1) ** np.arange(m)
        self.place = np.full((most + 1) ** m, -1)
        self.place[self.histograms @ self.base] = np.arange(len(self.histograms))
        if isinstance(mechanism, LNMax):
            law = laplace_argmax_law(self.histograms, mechanism.laplace_scale)
        else:
            law = gaussian_argmax_law(self.histograms, mechanism.sigma2)
        answered = np.ones(len(law))
        if isinstance(mechanism, ConfidentGNMax):
            top = self.histograms.max(axis=1)
            answered = ndtr((top - mechanism.threshold) / mechanism.sigma1)
        law = answers_law(answered, np.exp(law))
        with np.errstate(divide="ignore", invalid="ignore"):
            each = law[:, None] ** order * law[None] ** (1.0 - order)
        each = np.where(law[:, None] == 0.0, 0.0, each)
        self.silent, self.answered = each[..., 0], each[..., 1:].sum(axis=-1)
        self.order = order


def vectors(mechanism, rows, votes, only=None):
    """Every way of one voter to vote, as histograms, [ways, rows, classes]."""
    own = np.vstack([np.zeros(mechanism.classes, int), np.eye(mechanism.classes, dtype=int)])
    ways = itertools.product(range(len(own)), repeat=rows)
    allowed = set(range(rows) if only is None else only)
    used = ((way, np.flatnonzero(way)) for way in ways)
    fits = (way for way, at in used if at.size <= votes and allowed.issuperset(at.tolist()))
    return np.array([[own[each] for each in way] for way in fits])


def sums(ways, voters):
    """Every histogram file of so many voters who vote in one of these ways, [files, rows, m]."""
    found = np.zeros((1, *ways.shape[1:]), int)
    for _ in range(voters):
        found = np.unique((found[:, None] + ways).reshape(-1, *ways.shape[1:]), axis=0)
    return found
