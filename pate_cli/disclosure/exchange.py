"""The data-independent guarantee of a report, in forms for other accountants.

`rdp_curve` and `dp_event` compute the guarantee from the public parameters of a report; they do not
need the votes. On the command line, the option `--export-rdp` of `explain` writes the curve. The
guarantee has two forms:

- A *Rényi curve*: the RDP cost at several orders, in the form of `disclosure.external.Stated`. At
  each order, no votes have a larger RDP cost than the curve. If `data_independent.method` is
  `renyi`, the report's ε comes from the Rényi curve. If `data_independent.method` is `gaussian-dp`
  or `pure-dp`, the report's ε is smaller than the ε from the Rényi curve.
- An *event* of Google's dp-accounting: one Gaussian step of size μ (THEORY.md, 9.3). An
  accountant with privacy loss distributions converts the event to (ε, δ) without loss.

**The neighbours of an event.** Under the relation `REPLACE_ONE`, `PLDAccountant` doubles the
sensitivity of a `GaussianDpEvent`, because it counts a replaced record as one added and one removed
record. The μ of `dp_event` already allows for a replaced record: it is valid if one teacher changes
its votes in any way, whether one of the teacher's records was added, removed or replaced. If
`dp_event` returned only a `GaussianDpEvent`, `PLDAccountant` would double its μ under
`REPLACE_ONE`, and ε would be too large. For the MNIST parameters of the paper, a doubled μ would
give ε = 5.607, but the right ε is 2.529. To prevent a doubled μ, `dp_event` adds a mixture of
Gaussians without any shift. The mixture without a shift costs nothing, but `PLDAccountant` refuses
every event with such a mixture under `REPLACE_ONE`. All events that are composed with the event
from `dp_event` must be stated for the neighbouring relation of the accountant.

Some reports have neither a Rényi curve nor an event, and `rdp_curve` and `dp_event` refuse them:
reports of runs with a target ε and a release test (*tested targets*), reports with the costs of
other mechanisms (`external`), and reports of runs with a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Final

import numpy as np

from pate_cli.accounting.composition import Curves
from pate_cli.accounting.conversion import significant_up
from pate_cli.core.checks import check_orders
from pate_cli.core.errors import LedgerError, ParameterError, ReportError, UsageError, brief
from pate_cli.core.words import Adjacency
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.external import Stated
from pate_cli.disclosure.guarantee import Quote, covers, report_of, votings
from pate_cli.disclosure.ledger import Round
from pate_cli.disclosure.report import Report, ReportFacts, read_report
from pate_cli.disclosure.verification import check_size

Described = Report | Quote | str | PathLike[str]
"""A report, the name of its file, or a quote."""

# Most of these orders are also default orders of dp-accounting.
_ORDERS: Final = (
    *(1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0),
    *(14.0, 16.0, 20.0, 24.0, 28.0, 32.0, 40.0, 48.0, 56.0, 64.0, 96.0, 128.0, 256.0, 512.0),
)


@brief
def rdp_curve(report: Described, *, orders: Sequence[float] | None = None) -> Stated:
    """Return the RDP cost of a release, order by order, for another accountant.

    Use the curve if other mechanisms run on the same training records. Another program, or
    `release` for other votes, can add the curve to the costs of other mechanisms. The curve
    follows from public parameters, is valid for all votes and may be published. To write the
    curve to a file, use its method `to_json`, which returns the text of the file.

        >>> price = pate.quote("sample_votes/demo.parquet", max_queries=300)
        >>> pate.rdp_curve(price, orders=[2, 8]).rdp
        (0.099318, 0.417627)

    Args:
        report: a report with a Rényi cost, or its file ("-" is standard input); or a `Quote`.
        orders: ascending orders > 1; about thirty from 1.1 to 512 if left out. The curve has none
            of the orders at which a sanitized value has infinite cost.

    Returns:
        For each order, an upper bound on the Rényi divergence between the outputs for two
        neighbouring vote files, in both directions. The bounds on the Rényi divergence do not
        decrease with the order, and are rounded up to six digits. The bounds are valid for one
        teacher whose votes change in any way, whether one of its records is replaced, added or
        removed. The bounds presuppose what the field `covers` of the curve names: for example that
        the settings of all runs were fixed before the first run, or that no teacher votes on more
        than some number of queries.

    Raises:
        UsageError: the report has no worst-case guarantee, or the guarantee is not Rényi-DP.
        ReportError: there is no report, or it is damaged.
    """
    cost, covered = _released(report)
    wanted = check_orders(_ORDERS if orders is None else orders)
    if not np.all(np.diff(wanted) > 0.0):
        raise ParameterError("orders must be ascending, each given once")
    rdp = np.array([cost.rdp_at(order) for order in wanted.tolist()])
    known = np.isfinite(rdp)
    if not known.any():
        raise UsageError("the sanitized epsilon has no RDP cost at these orders; give lower orders")
    # A bound at one order is also a bound at every smaller order, and may be the smaller bound.
    rdp = np.minimum.accumulate(rdp[known][::-1])[::-1]
    return Stated(
        Adjacency.REPLACE_ONE,
        covers=covered,
        least_delta=Cost(rows=cost.rows).least_delta,
        orders=tuple(wanted[known].tolist()),
        rdp=tuple(significant_up(value) for value in rdp.tolist()),
    )


def converted(curve: Stated, delta: float) -> float:
    """Return the ε, in nats, that other accountants get at δ from an RDP curve alone."""
    return Curves(np.array(curve.orders), np.array(curve.rdp)).epsilon(delta=delta)


@brief
def dp_event(report: Described) -> Any:
    """Return the cost of a report's labels as an event of dp-accounting, for its `PLDAccountant`.

    Use the event if you compose the labels with other mechanisms in Google's dp-accounting. Install
    dp-accounting: pip install 'pate-cli[accounting]'. For the `RdpAccountant` of dp-accounting, use
    `rdp_curve`.

        >>> price = pate.quote("sample_votes/demo.parquet", "gnmax", max_queries=300)
        >>> type(pate.dp_event(price)).__name__
        'ComposedDpEvent'

    Args:
        report: a report without a sanitized value, its file, or a `Quote`.

    Returns:
        A `dp_accounting.DpEvent`, N(0, 1) against N(μ, 1). The event covers a teacher that changes
        its votes in any way. The accountant must have the relation `ADD_OR_REMOVE_ONE` (which is
        its default) or `REPLACE_SPECIAL`. All events that are composed with the returned event must
        be stated for the neighbouring relation of the accountant.

    Raises:
        UsageError: dp-accounting is not installed, or the report has a sanitized ε, whose noise
            is not Gaussian noise of one size, or `rdp_curve` would refuse the report.
        ReportError: there is no report, or it is damaged.
    """
    try:
        # Versions whose accountants ignore the neighbouring relation lack one of these classes.
        from dp_accounting.dp_event import (
            ComposedDpEvent,
            GaussianDpEvent,
            MixtureOfGaussiansDpEvent,
        )
    except ImportError:
        raise UsageError(
            "an event needs dp-accounting 0.5.1 or later, which is optional: "
            "pip install 'pate-cli[accounting]'"
        ) from None
    cost, _ = _released(report)
    if cost.draws:
        raise UsageError(
            "a sanitized epsilon is not a Gaussian event; export the RDP curve instead"
        )
    refused_for_a_replacement = MixtureOfGaussiansDpEvent(
        standard_deviation=1.0, sensitivities=[0.0], sampling_probs=[1.0]
    )
    mu = cost.mu * (1.0 + 1e-12)
    return ComposedDpEvent([GaussianDpEvent(1.0 / mu), refused_for_a_replacement])


def _released(report: Described) -> tuple[Cost, str]:
    """Return the cost of everything in a report, and a text that names everything in it.

    Raises:
        UsageError, ReportError: for the reasons that `rdp_curve` names.
    """
    read = read_report(report) if isinstance(report, str | PathLike) else report
    if isinstance(read, Quote):
        facts = ReportFacts(rounds=(Round.of(read.settings, answers=0),), sanitized=0.0)
        cost, why = Cost.of(read.settings), None if read.sound else read.warnings[0]
    else:
        check_size(read.rounds)
        try:
            facts = read = report_of(read.facts)  # A file may claim anything.
        except (LedgerError, ParameterError, ReportError) as error:
            raise ReportError(f"{report} is damaged: {error}") from None
        cost, why = read.cost, None
        if not read.claims("all-votes"):
            why = f"the report has no worst-case guarantee, so there is no curve: {read.summary}"
        elif read.external:
            why = "the report has external parts; export a report that was made without `external`"
    if why is not None:
        raise UsageError(why)
    if cost.pairs or facts.passed is not None:
        # The report of a failed test has the smaller ε of this outcome, not of the mechanism.
        tested = facts.tested
        epsilon = read.data_independent.epsilon if tested is None else tested.epsilon
        raise UsageError(
            f"this report has no RDP curve, only an (epsilon, delta); state it to others as "
            f'{{"epsilon": {epsilon!r}, "delta": {read.delta!r}, "adjacency": "replace-one"}}'
        )
    reached = facts.teachers_reached
    premises = [f"no training record reached more than {reached} teacher{'s' * (reached > 1)}"]
    if len(facts.rounds) > 1:
        premises.append("all rounds were fixed beforehand")
    if few := votings(facts.rounds):
        most = max(each.votes for each in few)
        premises.append(f"no teacher votes on more than {most} queries of a run")
    if any(done.prior for done in facts.rounds):
        premises.append("the guesses of the prior are public")
    return cost, f"{covers(facts)}, if {' and '.join(premises)}"
