"""Hockey-sticks of many rows that all have the same law."""

import itertools

import numpy as np
from scipy.special import logsumexp
from scipy.stats import binom

from divergences import renyi

# Counts of one outcome that are looked at lie within so many standard deviations, and a few more.
_WIDTH, _MORE = 11.0, 60.0


def three_of(log_p, log_q):
    """Outcomes merged into three at most, those of like ratios, so that P and Q stay most apart."""
    possible = np.maximum(log_p, log_q) > -np.inf
    log_p, log_q = log_p[possible], log_q[possible]
    size = log_p.size
    if size <= 3:
        return log_p, log_q
    order = np.argsort(log_p - log_q)
    pairs = [
        [np.logaddexp.reduceat(log[order], [0, *cuts]) for log in (log_p, log_q)]
        for cuts in itertools.combinations(range(1, size), 2)
    ]
    apart = renyi(*np.swapaxes(pairs, 0, 1), 2.0)
    return pairs[int(np.argmax(apart))]


def hockey_stick_of_rows(log_p, log_q, rows, epsilon):
    """sup over events of P^k − e^ε Q^k for laws of one row, [outcomes] each.

    Exact but for round-off with three outcomes or fewer; of more, which are merged, never too much.
    Given how often one outcome occurs, the ratio of P^k to Q^k is monotone in the count of another:
    events are tails of binomial laws. Counts of the first that hardly ever occur are left out.
    """
    log_p, log_q = three_of(np.asarray(log_p), np.asarray(log_q))
    # The rarest is the one whose counts are gone through.
    rarest = np.argsort(np.maximum(log_p, log_q))
    log_p, log_q = log_p[rarest], log_q[rarest]
    if log_p.size == 2:
        often, p, q = np.zeros(1), np.ones(1), np.ones(1)
        loss = np.zeros(1)
    else:
        middle, spread = rows * np.exp(log_p[0]), np.sqrt(rows * np.exp(log_p[0]))
        reach = _WIDTH * spread + _MORE
        often = np.arange(max(0.0, middle - reach) // 1, min(rows, middle + reach) // 1 + 1.0)
        p, q = (binom.pmf(often, rows, np.exp(log[0])) for log in (log_p, log_q))
        loss = often * (log_p[0] - log_q[0])
    left = rows - often
    share = [np.exp(log - logsumexp(log)) for log in (log_p[-2:], log_q[-2:])]
    # The outcome that speaks for P, whose count must exceed the rest of the way to ε.
    gain = (log_p - log_q)[-2:]
    up = int(gain[1] > gain[0])
    step = abs(gain[1] - gain[0])
    missing = epsilon - loss - left * gain[1 - up]
    least = np.floor(missing / step) if step > 0.0 else np.where(missing < 0.0, -1.0, rows)
    here, there = (binom.sf(least, left, both[up]) for both in share)
    return float(np.maximum(p * here - np.exp(epsilon) * q * there, 0.0).sum())
