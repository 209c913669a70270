"""`pate smooth-sensitivity`: how far one teacher could move the cost, smoothed over distances."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from pate_cli.cli.options import (
    AccountOptions,
    OutputOptions,
    ReleaseOptions,
    RenyiOptions,
    ViewOptions,
    VoteOptions,
    Votes,
    Without,
    bound_batches,
    spread,
)
from pate_cli.cli.tables import print_smooth
from pate_cli.errors import UsageError, ValidityError
from pate_cli.words import Analysis, ReleaseKind

if TYPE_CHECKING:
    from pate_cli.mechanisms import Mechanism
    from pate_cli.pricing.sensitivity import Sensitivity
    from pate_cli.release.plan import ReleasePlan

__all__ = ["smooth_sensitivity"]


@spread
def smooth_sensitivity(
    votes: Votes,
    described: RenyiOptions,
    reading: Annotated[VoteOptions, Without("max_answers")],
    account: AccountOptions,
    release: Annotated[ReleaseOptions, Without("sigma_release", "as_published")],
    view: ViewOptions,
    output: OutputOptions,
) -> None:
    """Smooth sensitivity of the cost, by distance. NOT releasable: it describes the votes.

    paper also says whether the published conditions C5 and C6 hold; exit code 4 when they fail.
    """
    from pate_cli.plots import sensitivity_figure
    from pate_cli.pricing.sensitivity import measure_sensitivity
    from pate_cli.release.rule import choose_plan

    kind = release.kind(account.analysis)
    if kind is ReleaseKind.NONE:
        raise UsageError("--release none needs no smooth sensitivity; give upper or unbiased")
    with output.outputs() as out, reading.open(votes) as file:
        view.reserve(out)
        output.note(file.describe())
        queries, _ = reading.count(file)
        mechanism = described.build(teachers=file.teachers, classes=file.classes)
        plan = choose_plan(
            kind,
            mechanism=mechanism,
            queries=queries,
            delta=account.delta,
            order=release.order,
            beta=release.beta,
        )
        verdicts = _conditions(mechanism, plan.order, account.analysis)
        found = measure_sensitivity(
            bound_batches(file, mechanism, queries),
            mechanism,
            order=plan.order,
            beta=plan.beta,
            analysis=account.analysis,
        )
        view.draw(
            out,
            lambda: sensitivity_figure(
                found.curve,
                found.discounted(plan.beta),
                mechanism=mechanism.name,
                order=plan.order,
                beta=plan.beta,
            ),
        )
    result = _result(found, mechanism, plan, kind, account, queries=queries, conditions=verdicts)
    view.show(result, print_smooth)


def _conditions(mechanism: Mechanism, order: float, analysis: Analysis) -> list[dict[str, Any]]:
    """Verdicts on C5 and C6 at this order, all of which hold; none but in the paper's analysis.

    Raises:
        ValidityError: one fails, so that the published smooth sensitivity is not valid.
    """
    import numpy as np

    from pate_cli.published import check_conditions

    parameters = mechanism.parameters()
    if analysis is not Analysis.PAPER or "sigma2" not in parameters:
        return []
    verdicts = check_conditions(
        sigma=parameters["sigma2"], classes=mechanism.classes, orders=np.array([order])
    )
    for verdict in verdicts:
        if not verdict.holds:
            raise ValidityError(
                f"smooth sensitivity is not valid at order {order:g}: {verdict.reason}; "
                "try another order or --analysis tight"
            )
    return [asdict(verdict) for verdict in verdicts]


def _result(
    found: Sensitivity,
    mechanism: Mechanism,
    plan: ReleasePlan,
    kind: ReleaseKind,
    account: AccountOptions,
    *,
    queries: int,
    conditions: list[dict[str, Any]],
) -> dict[str, Any]:
    """The curve with its smooth maximum, and the release that serves this order best."""
    import numpy as np

    from pate_cli.release.best import best_release

    discounted = found.discounted(plan.beta)
    best = best_release(
        kind,
        rdp=found.rdp,
        curve=found.curve,
        distances=np.arange(found.curve.size),
        order=plan.order,
        delta=account.delta,
        analysis=account.analysis,
    )
    return {
        "schema_version": 1,
        "releasable": False,
        "analysis": account.analysis.value,
        "mechanism": mechanism.parameters(),
        "queries": queries,
        "delta": account.delta,
        "order": plan.order,
        "beta": plan.beta,
        "smooth_sensitivity": found.smooth(plan.beta),
        "distance": int(np.argmax(discounted)),
        "rdp": found.rdp,
        "best": None
        if best is None
        else {
            "release": kind.value,
            "beta": best.beta,
            "sigma_release": best.sigma,
            "smooth_sensitivity": best.smooth,
            "mean": best.mean,
            "sd": best.sd,
        },
        "conditions": conditions,
        "local_sensitivity": found.curve.tolist(),
        "discounted": discounted.tolist(),
        "ceiling": found.ceiling,
    }
