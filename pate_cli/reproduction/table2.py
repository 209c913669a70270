"""Table 2: the sanitized ε as published, charged correctly, and by the tight analysis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeAlias

from pate_cli.errors import ParameterError, ValidityError
from pate_cli.published import TABLE_ORDERS, gnss_rdp
from pate_cli.reproduction.release import (
    PublishedRelease,
    ReleaseParameters,
    TightFigures,
    TightRelease,
    chosen_as_in_paper,
    release_curves,
    sanitized,
    tight_figures,
    unrounded,
)
from pate_cli.reproduction.rows import PrintedRelease, ReleaseRow
from pate_cli.reproduction.table import Progress, RowResult, Status, Table, attempt
from pate_cli.reproduction.table1 import best_epsilon, expected_run
from pate_cli.reproduction.vote_folder import Asked, VoteFolder

__all__ = ["table2"]

_HEADER = ("data", "quantity")
_RESULTS = ("as published", "charged correctly", "tight, upper", "tight, unbiased")

_NOTES = (
    "As published: expected epsilon, and the noisy release charged by Theorem 23, which is false "
    "for order * beta above about 1/4; every row the paper prints is above.",
    "Charged correctly: the same release charged its exact divergence. The expectation over the "
    "first step that both columns start from is still no guarantee.",
    "Tight: every row charged whether or not it is answered, order, beta and sigma_SS by the "
    "public rule. Upper is below the true value with probability delta/10 only; unbiased half of "
    "the time. Mean and sd are over the draw.",
    "Labels only, any votes: the data-independent epsilon of the labels alone.",
    "These figures depend on the votes and are no private release of them.",
)


_ORDER, _BETA, _SIGMA = "order", "beta", "sigma_SS"
_ANSWERS, _LABELS = "expected answers", "epsilon of the labels"
_SMOOTH, _RELEASED, _ANY = "smooth sensitivity", "released epsilon", "labels only, any votes"
_QUANTITIES = (_ORDER, _BETA, _SIGMA, _ANSWERS, _LABELS, _SMOOTH, _RELEASED, _ANY)
_Cells: TypeAlias = dict[str, str]  # quantity → what stands in a column for it

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
    tight: TightFigures


def table2(
    rows: Sequence[ReleaseRow],
    folder: VoteFolder,
    *,
    progress: Progress,
    notes: Sequence[str] = (),
) -> Table:
    """Compute every row whose votes are in `folder`; arguments as in `table1`."""
    compared = any(row.printed is not None for row in rows)
    results = []
    for row in rows:
        progress(f"Table 2: {row.dataset}")
        results.append(
            attempt(
                row,
                name=row.dataset,
                kind="released epsilon",
                rest=(_printed_release(row.printed),) if row.printed else (),
                folder=folder,
                compute=partial(_result, row, folder),
            )
        )
    return Table(
        name="table2",
        title="Table 2",
        header=(*_HEADER, *(("printed",) if compared else ()), *_RESULTS),
        results=tuple(results),
        notes=(*notes, *_NOTES),
    )


def _result(row: ReleaseRow, folder: VoteFolder) -> RowResult:
    found = _compute(row, folder)
    return RowResult(
        name=row.dataset,
        status=Status.INVALID if found.failure else Status.RAN,
        lines=_lines(row, found),
        data=_data(row, found),
        notes=tuple(f"{row.dataset}: {note}" for note in _remarks(row, found)),
    )


def _compute(row: ReleaseRow, folder: VoteFolder) -> _Computed:
    rounds = tuple(folder.ask(round_) for round_ in row.rounds)
    answers, cost = expected_run(rounds, TABLE_ORDERS)
    best = best_epsilon(cost, TABLE_ORDERS, row.delta)
    epsilon, order = best
    if row.printed is not None:
        order = row.printed.order
        epsilon, _ = best_epsilon(expected_run(rounds, [order])[1], [order], row.delta)
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
        failure = str(error)
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
        tight=tight_figures(rounds, delta=row.delta),
    )


def _remarks(row: ReleaseRow, found: _Computed) -> list[str]:
    remarks = [remark for asked in found.rounds for remark in asked.votes.remarks]
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
                f"the table rounds beta to {', '.join(rounded)}. The published column uses the "
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
    """A line for every quantity: data, quantity, printed if there is such, and the four results."""
    columns = [
        *([] if row.printed is None else [_printed_cells(row.printed)]),
        _published_cells(found, found.published),
        _published_cells(found, found.correct),
        _tight_cells(found.tight, found.tight.upper),
        _tight_cells(found.tight, found.tight.unbiased),
    ]
    return tuple(
        (
            "" if number else row.dataset,
            quantity,
            *(cells.get(quantity, "-") for cells in columns),
        )
        for number, quantity in enumerate(_QUANTITIES)
    )


def _printed_cells(release: PrintedRelease) -> _Cells:
    """What the paper prints."""
    return {
        _ORDER: f"{release.order:g}",
        _BETA: _list(release.betas, "g"),
        _SIGMA: _list(release.sigmas, "g"),
        _LABELS: f"{release.expected_epsilon:#.3g}",
        _SMOOTH: _list(release.smooth, "g"),
        _RELEASED: _printed_release(release),
    }


def _printed_release(release: PrintedRelease) -> str:
    """The ε that the paper prints as released, with its standard deviation."""
    return f"{release.epsilon:.2f} ± {release.sd:.3f}"


def _published_cells(found: _Computed, release: PublishedRelease | None) -> _Cells:
    """The paper's release; where a condition failed, the expectations alone."""
    expected = {_ANSWERS: f"{found.answers:.2f}", _LABELS: f"{found.epsilon:.3f}"}
    if release is None:
        return expected | {_RELEASED: "condition fails"}
    return expected | _released(release.parameters, release.smooth, release.mean, release.sd)


def _tight_cells(figures: TightFigures, release: TightRelease) -> _Cells:
    plan = release.plan
    parameters = ReleaseParameters(plan.order, (plan.beta,), (plan.sigma,))
    return {
        _LABELS: f"{release.before:.3f}",
        _ANY: f"{figures.data_independent.epsilon:.3f}",
        **_released(parameters, (release.smooth,), release.mean, release.sd),
    }


def _released(
    parameters: ReleaseParameters, smooth: tuple[float, ...], mean: float, sd: float
) -> _Cells:
    return {
        _ORDER: f"{parameters.order:g}",
        _BETA: _list(parameters.betas, ".5g"),
        _SIGMA: _list(parameters.sigmas, ".4g"),
        _SMOOTH: _list(smooth, ".4g"),
        _RELEASED: f"{mean:.3f} ± {sd:.3f}" if math.isfinite(mean) else "infinite",
    }


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
        "tight": _tight_data(found.tight),
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


def _tight_data(tight: TightFigures) -> dict[str, Any]:
    data: dict[str, Any] = {
        release.plan.kind.value: {
            "order": release.plan.order,
            "beta": release.plan.beta,
            "sigma": release.plan.sigma,
            "labels_epsilon": release.before,
            "smooth_sensitivity": release.smooth,
            "epsilon": release.mean,
            "sd": release.sd,
        }
        for release in (tight.upper, tight.unbiased)
    }
    return data | {"data_independent": asdict(tight.data_independent)}
