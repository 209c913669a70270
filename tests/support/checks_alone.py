"""The threshold test of a Confident query on its own."""

import numpy as np

from pate_cli.accounting.threshold import pass_moments


def threshold_rdp(v, *, threshold, sigma, orders, moved=1):
    """Cost of the test at scores v, the larger of both directions, [orders, *v.shape], nats."""
    costs = []
    for order in np.atleast_1d(orders).tolist():
        where = {"threshold": threshold, "sigma": sigma, "order": order, "moved": moved}
        moments = pass_moments(np.asarray(v, dtype=np.float64), **where)
        cap = moved**2 * order / (2.0 * sigma**2)
        costs.append(np.minimum(np.log1p(moments.excess.max(0)) / (order - 1.0), cap))
    return np.stack(costs)
