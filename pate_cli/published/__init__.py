"""The analysis of "Scalable Private Learning with PATE" (ICLR 2018) as it was published.

It repeats Tables 1 and 2. Its GNSS theorem is unsound and its expectations are not guarantees;
each docstring says so where it applies. Numbers are in nats, arrays are [orders, queries].
"""

from __future__ import annotations

from pate_cli.published.conditions import Conditions, check_conditions, require_conditions
from pate_cli.published.confident import (
    confident_expected_cost,
    expected_answers,
    expected_local_sensitivity,
    smooth_sensitivity,
)
from pate_cli.published.conversion import TABLE_ORDERS, gnss_rdp, to_epsilon
from pate_cli.published.distances import gnmax_local_sensitivity
from pate_cli.published.gnmax import data_dependent_rdp, gnmax_log_q, gnmax_rdp
from pate_cli.published.laplace import laplace_log_q, laplace_rdp
from pate_cli.published.plateau import Plateau, find_plateau, log_q0
from pate_cli.published.threshold import (
    log_probability_answered,
    threshold_local_sensitivity,
    threshold_rdp,
)

__all__ = [
    "TABLE_ORDERS",
    "Conditions",
    "Plateau",
    "check_conditions",
    "confident_expected_cost",
    "data_dependent_rdp",
    "expected_answers",
    "expected_local_sensitivity",
    "find_plateau",
    "gnmax_local_sensitivity",
    "gnmax_log_q",
    "gnmax_rdp",
    "gnss_rdp",
    "laplace_log_q",
    "laplace_rdp",
    "log_probability_answered",
    "log_q0",
    "require_conditions",
    "smooth_sensitivity",
    "threshold_local_sensitivity",
    "threshold_rdp",
    "to_epsilon",
]
