"""`pate smooth-sensitivity`: how far one teacher could move the cost, smoothed over distances."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pate_cli.cli import options as opt
from pate_cli.cli.notes import note, outputs, prints_json
from pate_cli.cli.pictures import reserve_plot
from pate_cli.cli.setup import MechanismOptions, bound_batches, count_queries, release_kind
from pate_cli.errors import UsageError, ValidityError
from pate_cli.words import Analysis, MechanismName

__all__ = ["smooth_sensitivity"]


def smooth_sensitivity(
    votes: opt.Votes,
    mechanism: opt.Mechanism = MechanismName.CONFIDENT,
    threshold: opt.Threshold = None,
    sigma1: opt.Sigma1 = None,
    sigma2: opt.Sigma2 = None,
    laplace_scale: opt.LaplaceScale = None,
    student: opt.Student = None,
    confidence: opt.Confidence = None,
    teachers_per_record: opt.TeachersPerRecord = 1,
    max_queries: opt.MaxQueries = None,
    delta: opt.Delta = 1e-5,
    analysis: opt.AnalysisOption = Analysis.TIGHT,
    release: opt.Release = None,
    order: opt.Order = None,
    beta: opt.Beta = None,
    plot: opt.Plot = None,
    as_json: opt.Json = False,
    layout: opt.LayoutOption = None,
    classes: opt.Classes = None,
    teachers: opt.Teachers = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
) -> None:
    """Smooth sensitivity of the cost, by distance. NOT releasable: it describes the votes.

    paper also says whether the published conditions C5 and C6 hold; exit code 4 when they fail.
    """
    import numpy as np

    from pate_cli.pricing.sensitivity import measure_sensitivity
    from pate_cli.published import check_conditions
    from pate_cli.release.best import best_release
    from pate_cli.release.rule import choose_plan
    from pate_cli.votes import open_votes
    from pate_cli.words import ReleaseKind

    kind = release_kind(release, analysis=analysis, as_published=False)
    if kind is ReleaseKind.NONE:
        raise UsageError("--release none needs no smooth sensitivity; give upper or unbiased")
    verdicts: list[dict[str, Any]] = []
    with (
        outputs(force=force) as out,
        open_votes(votes, layout=layout, classes=classes, teachers=teachers) as file,
    ):
        reserve_plot(out, plot)
        note(file.describe(), quiet=quiet)
        queries, _ = count_queries(file, max_queries=max_queries, max_answers=None)
        aggregator = MechanismOptions(
            mechanism,
            threshold,
            sigma1,
            sigma2,
            laplace_scale,
            student,
            confidence,
            teachers_per_record,
        ).build(teachers=file.teachers, classes=file.classes)
        plan = choose_plan(
            kind, mechanism=aggregator, queries=queries, delta=delta, order=order, beta=beta
        )
        if analysis is Analysis.PAPER and "sigma2" in aggregator.parameters():
            verdicts = [
                asdict(verdict)
                for verdict in check_conditions(
                    sigma=aggregator.parameters()["sigma2"],
                    classes=file.classes,
                    orders=np.array([plan.order]),
                )
            ]
        for verdict in verdicts:
            if not verdict["holds"]:
                raise ValidityError(
                    f"smooth sensitivity is not valid at order {plan.order:g}: "
                    f"{verdict['reason']}; try another order or --analysis tight"
                )
        found = measure_sensitivity(
            bound_batches(file, aggregator, queries),
            aggregator,
            order=plan.order,
            beta=plan.beta,
            analysis=analysis,
        )
        discounted = found.discounted(plan.beta)
        if plot is not None:
            from pate_cli.figures import sensitivity_figure
            from pate_cli.plots import encode_figure

            figure = sensitivity_figure(
                found.curve,
                discounted,
                mechanism=aggregator.name,
                order=plan.order,
                beta=plan.beta,
            )
            out.write(plot, encode_figure(figure, plot))
    best = best_release(
        kind,
        rdp=found.rdp,
        curve=found.curve,
        distances=np.arange(found.curve.size),
        order=plan.order,
        delta=delta,
        analysis=analysis,
    )
    result: dict[str, Any] = {
        "schema_version": 1,
        "releasable": False,
        "analysis": analysis.value,
        "mechanism": aggregator.parameters(),
        "queries": queries,
        "delta": delta,
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
        "conditions": verdicts,
        "local_sensitivity": found.curve.tolist(),
        "discounted": discounted.tolist(),
        "ceiling": found.ceiling,
    }
    if not prints_json(result, as_json=as_json):
        from pate_cli.cli.tables import print_smooth

        print_smooth(result)
