"""Neighbours of vote histograms, one by one and whole graphs of them."""

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np


def neighbours_of(counts, *, missing=True):
    """Every histogram one teacher away: a vote moved, and, with `missing`, withdrawn or added."""
    found = []
    for a, b in itertools.permutations(range(len(counts)), 2):
        if counts[a] > 0:
            found.append(np.array(counts))
            found[-1][[a, b]] += [-1, 1]
    if missing:
        for a, change in itertools.product(range(len(counts)), (-1, 1)):
            if counts[a] + change >= 0:
                found.append(np.array(counts))
                found[-1][a] += change
    return np.array(found)


def every_histogram(teachers, classes, *, missing=0):
    """All histograms of so many votes, or of up to `missing` fewer."""
    rows = itertools.product(range(teachers + 1), repeat=classes)
    return np.array([row for row in rows if teachers - missing <= sum(row) <= teachers])


def votes_apart(these, those):
    """How many teachers must move their vote, cast it or take it back, pair by pair."""
    moved = these[:, None] - those[None]
    return np.maximum(np.maximum(moved, 0).sum(axis=2), np.maximum(-moved, 0).sum(axis=2))


@dataclass(frozen=True)
class Graph:
    """Histograms, how far apart they are, and the ordered pairs of neighbours."""

    histograms: np.ndarray
    distances: np.ndarray
    edges: np.ndarray

    @classmethod
    def of(cls, teachers, classes, *, missing=0, teachers_per_record=1):
        histograms = every_histogram(teachers, classes, missing=missing)
        apart = votes_apart(histograms, histograms)
        edges = np.argwhere((apart > 0) & (apart <= teachers_per_record))
        return cls(histograms, apart, edges)


@dataclass(frozen=True)
class Ballots:
    """Every way in which a few teachers can vote or abstain, each vote counting for its weight.

    Two are neighbours in a group if only teachers of that group voted otherwise, so many at most.
    """

    weights: tuple[int, ...]
    groups: tuple[str, ...]
    classes: int

    @cached_property
    def votes(self):
        """[ballots, teachers], −1 for none."""
        return np.array(list(itertools.product(range(-1, self.classes), repeat=len(self.weights))))

    @cached_property
    def _found(self):
        cast = self.votes[:, :, None] == np.arange(self.classes)
        counts = (cast * np.array(self.weights)[:, None]).sum(axis=1)
        return np.unique(counts, axis=0, return_inverse=True)

    @property
    def histograms(self):
        """Those that occur."""
        return self._found[0]

    def edges(self, group, teachers_per_record):
        """Ordered pairs of different histograms of neighbours, [2, pairs]."""
        inside = np.array([name == group for name in self.groups])
        other = self.votes[:, None] != self.votes[None]
        close = (other.sum(axis=2) <= teachers_per_record) & ~other[:, :, ~inside].any(axis=2)
        pairs = self._found[1].reshape(-1)[np.argwhere(close)]
        return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0).T
