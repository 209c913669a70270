"""Table 2: the sanitized ε as published and charged correctly, and what `pate` offers instead."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from pate_cli.accounting.conversion import round_up
from pate_cli.core.errors import ParameterError, ValidityError
from pate_cli.core.progress import Advance, unseen
from pate_cli.core.words import Bound
from pate_cli.disclosure.cost import Figure
from pate_cli.disclosure.target import LIKELY
from pate_cli.published import TABLE_ORDERS, gnss_rdp
from pate_cli.reproduction.flags import in_flags
from pate_cli.reproduction.offered import MOST_OFFERED, Offered, UpperRelease, offered
from pate_cli.reproduction.release import (
    PublishedRelease,
    ReleaseParameters,
    chosen_as_in_paper,
    release_curves,
    sanitized,
    unrounded,
)
from pate_cli.reproduction.rows import PrintedRelease, ReleaseRow
from pate_cli.reproduction.table import ResultTable, RowResult, Status, Step, Steps, attempt
from pate_cli.reproduction.table1 import best_epsilon, expected_run
from pate_cli.reproduction.vote_folder import Asked, VoteFolder

_HEADER = ("data", "figure", "epsilon", "labels", "order", "beta", "sigma_SS", "smooth")
_TARGET_NAMES = {Bound.TWO_TAIL: "tested, two-tail", Bound.CONDITIONAL: "tested, conditional"}

_NOTES = (
    "Labels: what the labels alone cost, before the release is paid for. Smooth: smooth "
    "sensitivity in nats. Epsilon is that of everything published, with its standard deviation "
    "over the draw where there is one.",
    "As published: expected epsilon, and the noisy release charged by Theorem 23, which is false "
    "for order * beta above about 1/4; every row the paper prints is above.",
    "Charged correctly: the same release charged its exact divergence. The expectation over the "
    "first step that both lines start from is still no guarantee.",
    "Tested (--target-epsilon): the smallest target that passes with a chance of "
    f"{LIKELY:.1%}; a refusal costs as much. It holds for all votes. Two-tail (--bound two-tail): "
    "by the quick bound. Conditional (--bound conditional): by the sharper one, which a run takes "
    "by itself where the public shape says about a minute at most.",
    "Worst case (--release none): the epsilon of the labels alone, for all votes, always met.",
    "Upper release (--release upper): every row charged whether or not it is answered, order, "
    "beta and sigma_SS by the public rule; below the true value with probability delta/10 only.",
    "These figures depend on the votes and are no private release of them.",
)


# Two figures printed with two decimals, and parameters with three digits.
_ROUNDING = 0.02


@dataclass(frozen=True)
class _Computed:
    """One row's figures; the published ones are missing when a condition fails."""

    rounds: tuple[Asked, ...]
    answers: float
    best_epsilon: float
    best_order: float
    order: float
    epsilon: float
    published: PublishedRelease | None
    correct: PublishedRelease | None
    failure: str
    offered: Offered


def table2(
    rows: Sequence[ReleaseRow],
    folder: VoteFolder,
    *,
    progress: Advance = unseen,
    notes: Sequence[str] = (),
    quick: bool = False,
) -> ResultTable:
    """Compute every row whose votes are in `folder`; arguments as in `table1` and `offered`."""
    results, steps = [], Steps(progress, rows=len(rows), each=2 + MOST_OFFERED)
    for row in rows:
        with steps.row(f"Table 2: {row.dataset}") as step:
            results.append(
                attempt(
                    row,
                    name=row.dataset,
                    kind="printed" if row.printed else "epsilon",
                    rest=(_printed_release(row.printed),) if row.printed else (),
                    folder=folder,
                    compute=partial(_result, row, folder, quick=quick, step=step),
                )
            )
    return ResultTable(
        name="table2",
        title="Table 2",
        header=_HEADER,
        results=tuple(results),
        notes=(*notes, *_NOTES),
    )


def _result(row: ReleaseRow, folder: VoteFolder, *, quick: bool, step: Step) -> RowResult:
    found = _compute(row, folder, quick=quick, step=step)
    return RowResult(
        name=row.dataset,
        status=Status.INVALID if found.failure else Status.RAN,
        lines=_lines(row, found),
        data=_data(row, found),
        notes=tuple(f"{row.dataset}: {note}" for note in _remarks(row, found)),
    )


def _compute(row: ReleaseRow, folder: VoteFolder, *, quick: bool, step: Step) -> _Computed:
    step("labels")
    rounds = tuple(folder.ask(round_) for round_ in row.rounds)
    answers, cost = expected_run(rounds, TABLE_ORDERS)
    best = best_epsilon(cost, TABLE_ORDERS, row.delta)
    epsilon, order = best
    if row.printed is not None:
        order = row.printed.order
        epsilon, _ = best_epsilon(expected_run(rounds, [order])[1], [order], row.delta)
    step("as published")
    published, correct, failure = None, None, ""
    try:
        curves = release_curves(rounds, order)
        if row.printed is None:
            parameters = as_printed = chosen_as_in_paper(epsilon, curves[0], order=order)
        else:
            parameters = unrounded(row.printed, curves)
            as_printed = ReleaseParameters(order, row.printed.betas, row.printed.sigmas)
        published = sanitized(epsilon, curves, parameters, exact=False)
        correct = sanitized(epsilon, curves, as_printed, exact=True)
    except (ValidityError, ParameterError) as error:
        failure = in_flags(error)
    return _Computed(
        rounds=rounds,
        answers=answers,
        best_epsilon=best[0],
        best_order=best[1],
        order=order,
        epsilon=epsilon,
        published=published,
        correct=correct,
        failure=failure,
        offered=offered(rounds, delta=row.delta, quick=quick, step=step),
    )


def _remarks(row: ReleaseRow, found: _Computed) -> list[str]:
    asked = sum(len(asked.votes.counts) for asked in found.rounds)
    remarks = [f"{found.answers:.2f} of {asked} queries are expected to be answered"]
    remarks += [remark for asked in found.rounds for remark in asked.votes.remarks]
    if found.failure:
        remarks.append(found.failure)
    if row.printed is not None and found.published is not None:
        order, betas = row.printed.order, found.published.parameters.betas
        rounded = [
            f"{printed:g} (for {order * beta:.2f}/{order:g} = {beta:.6f})"
            for printed, beta in zip(row.printed.betas, betas, strict=True)
            if not math.isclose(printed, beta, rel_tol=1e-9)
        ]
        if rounded:
            remarks.append(
                f"the table rounds beta to {', '.join(rounded)}. The line as published has the "
                "unrounded beta, whose smooth sensitivity is the printed one, and the sigma_SS "
                "that is best for it; the correct charge takes both as printed."
            )
    if found.correct is not None and math.isinf(found.correct.draw):
        remarks.append("charged correctly it is infinite: beta too large for the order")
    if row.printed is not None and found.best_order != found.order:
        remarks.append(
            f"the least expected epsilon is {found.best_epsilon:.3f} at order "
            f"{found.best_order:g}; the table uses order {found.order:g}"
        )
    if row.printed is not None:
        remarks += _inconsistency(row.printed)
    if not found.offered.targets:
        remarks.append(
            "no target for all rounds can be tested before the first of them: what the later ones "
            "ask depends on its labels"
        )
    return remarks


def _inconsistency(printed: PrintedRelease) -> list[str]:
    """Whether the printed expectation and the printed release differ by more than the draw."""
    each = zip(printed.betas, printed.sigmas, strict=True)
    draw = sum(gnss_rdp(beta=beta, sigma=sigma, order=printed.order) for beta, sigma in each)
    total = printed.expected_epsilon + draw
    if abs(total - printed.epsilon) < _ROUNDING:
        return []
    return [
        f"the printed figures do not add up: {printed.expected_epsilon:g} and the {draw:.3f} of "
        f"Theorem 23 are {total:.2f}, the table prints {printed.epsilon:g}"
    ]


def _lines(row: ReleaseRow, found: _Computed) -> tuple[tuple[str, ...], ...]:
    """A line for every figure; the first of them names the data."""
    lines = [
        *([] if row.printed is None else [_printed_line(row.printed)]),
        _published_line("as published", found, found.published),
        _published_line("charged correctly", found, found.correct),
        *(
            (_TARGET_NAMES[bound], _up(target), *("-",) * 5)
            for bound, target in found.offered.targets.items()
        ),
        _worst_line(found.offered.worst),
        _upper_line(found.offered.upper),
    ]
    names = (row.dataset, *("",) * (len(lines) - 1))
    return tuple((name, *line) for name, line in zip(names, lines, strict=True))


def _printed_line(release: PrintedRelease) -> tuple[str, ...]:
    return (
        "printed",
        _printed_release(release),
        f"{release.expected_epsilon:#.3g}",
        f"{release.order:g}",
        _list(release.betas, "g"),
        _list(release.sigmas, "g"),
        _list(release.smooth, "g"),
    )


def _printed_release(release: PrintedRelease) -> str:
    """The ε that the paper prints as released, with its standard deviation."""
    return f"{release.epsilon:.2f} ± {release.sd:.3f}"


def _published_line(
    name: str, found: _Computed, release: PublishedRelease | None
) -> tuple[str, ...]:
    """The paper's release; where a condition failed, the expectation alone."""
    labels = f"{found.epsilon:.3f}"
    if release is None:
        return (name, "condition fails", labels, f"{found.order:g}", *("-",) * 3)
    return (
        name,
        f"{release.mean:.3f} ± {release.sd:.3f}" if math.isfinite(release.mean) else "infinite",
        labels,
        f"{found.order:g}",
        _list(release.parameters.betas, ".5g"),
        _list(release.parameters.sigmas, ".4g"),
        _list(release.smooth, ".4g"),
    )


def _worst_line(worst: Figure) -> tuple[str, ...]:
    shown = _up(worst.epsilon)
    order = "-" if worst.order is None else f"{worst.order:.3g}"
    return ("worst case", shown, shown, order, *("-",) * 3)


def _upper_line(release: UpperRelease) -> tuple[str, ...]:
    plan = release.plan
    return (
        "upper release",
        f"{release.mean:.3f} ± {release.sd:.3f}",
        f"{release.before:.3f}",
        f"{plan.order:g}",
        f"{plan.beta:.5g}",
        f"{plan.sigma:.4g}",
        f"{release.smooth:.4g}",
    )


def _up(epsilon: float) -> str:
    """A bound is not printed below itself."""
    return f"{round_up(epsilon, digits=3):.3f}"


def _list(values: Iterable[float], style: str) -> str:
    return " + ".join(format(value, style) for value in values)


def _data(row: ReleaseRow, found: _Computed) -> dict[str, Any]:
    """The row unrounded; no number in it is infinite."""
    return {
        "rounds": [
            {
                "file": asked.votes.name,
                "authentic": asked.votes.authentic,
                "queries": len(asked.votes.counts),
                "classes": asked.votes.counts.shape[1],
                "teachers": asked.votes.teachers,
                **asked.parameters,
                "student": asked.scores is not None,
            }
            for asked in found.rounds
        ],
        "delta": row.delta,
        "expected_answers": found.answers,
        "expected_epsilon": found.epsilon,
        "best_order": found.best_order,
        "best_expected_epsilon": found.best_epsilon,
        "failed_condition": found.failure or None,
        **({} if row.printed is None else {"printed": asdict(row.printed)}),
        "as_published": _published_data(found.published),
        "charged_correctly": _published_data(found.correct),
        "tested_target": _targets_data(found.offered),
        "worst_case": asdict(found.offered.worst),
        "upper_release": _upper_data(found.offered.upper),
    }


def _published_data(release: PublishedRelease | None) -> dict[str, Any] | None:
    if release is None:
        return None
    finite = math.isfinite(release.mean)
    return {
        "order": release.parameters.order,
        "betas": list(release.parameters.betas),
        "sigmas": list(release.parameters.sigmas),
        "smooth_sensitivity": list(release.smooth),
        "release_rdp": release.draw if finite else None,
        "epsilon": release.mean if finite else None,
        "sd": release.sd,
    }


def _targets_data(found: Offered) -> dict[str, Any] | None:
    if not found.targets:
        return None
    by_bound = {bound.value: target for bound, target in found.targets.items()}
    return {"pass_probability": LIKELY, "smallest_epsilon": by_bound}


def _upper_data(release: UpperRelease) -> dict[str, Any]:
    return {
        "order": release.plan.order,
        "beta": release.plan.beta,
        "sigma": release.plan.sigma,
        "labels_epsilon": release.before,
        "smooth_sensitivity": release.smooth,
        "epsilon": release.mean,
        "sd": release.sd,
    }
