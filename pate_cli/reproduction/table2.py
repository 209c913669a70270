"""Table 2: the sanitized ε as published, charged correctly, and by the tight analysis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from pate_cli.errors import ParameterError, ValidityError
from pate_cli.published import TABLE_ORDERS, gnss_rdp, to_epsilon
from pate_cli.reproduction import release_cells as cells
from pate_cli.reproduction.figures import PrintedRelease, ReleaseRow
from pate_cli.reproduction.outcome import Outcome, Progress, Status, Table, attempt
from pate_cli.reproduction.published_release import (
    Parameters,
    PublishedRelease,
    chosen_as_in_paper,
    release_curves,
    sanitized,
    unrounded,
)
from pate_cli.reproduction.table1 import expected_run
from pate_cli.reproduction.tight_release import TightFigures, tight_figures
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


# Two figures printed with two decimals, and parameters with three digits.
_ROUNDING = 0.02


@dataclass(frozen=True)
class _Computed:
    """One row's figures; the published ones are missing when a condition fails."""

    rounds: tuple[Asked, ...]
    answers: float
    best_order: float
    best_epsilon: float
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
    compared: bool,
    progress: Progress,
    notes: Sequence[str] = (),
) -> Table:
    """Compute every row whose votes are in `folder`; arguments as in `table1`."""
    outcomes = []
    for row in rows:
        progress(f"Table 2: {row.dataset}")
        outcomes.append(
            attempt(
                row,
                name=row.dataset,
                kind="released epsilon",
                rest=(cells.printed_release(row.printed),) if compared else (),
                folder=folder,
                compute=partial(_outcome, row, folder, compared=compared),
            )
        )
    return Table(
        name="table2",
        title="Table 2",
        header=(*_HEADER, *(("printed",) if compared else ()), *_RESULTS),
        outcomes=tuple(outcomes),
        notes=(*notes, *_NOTES),
    )


def _outcome(row: ReleaseRow, folder: VoteFolder, *, compared: bool) -> Outcome:
    found = _compute(row, folder)
    lines = _lines(row, found)
    if not compared:
        lines = [line[:2] + line[3:] for line in lines]
    return Outcome(
        name=row.dataset,
        status=Status.INVALID if found.failure else Status.RAN,
        lines=tuple(lines),
        data=_data(row, found, compared=compared),
        notes=tuple(f"{row.dataset}: {note}" for note in _remarks(row, found)),
    )


def _compute(row: ReleaseRow, folder: VoteFolder) -> _Computed:
    rounds = tuple(folder.ask(one) for one in row.rounds)
    answers, cost = expected_run(rounds, TABLE_ORDERS)
    every = to_epsilon(cost, orders=TABLE_ORDERS, delta=row.delta)
    best = int(every.argmin())
    if row.printed is None:
        order, epsilon = TABLE_ORDERS[best], float(every[best])
    else:
        order = row.printed.order
        at_order = expected_run(rounds, [order])[1]
        epsilon = float(to_epsilon(at_order, orders=order, delta=row.delta)[0])
    published, correct, failure = None, None, ""
    try:
        curves = release_curves(rounds, order)
        if row.printed is None:
            parameters = as_printed = chosen_as_in_paper(epsilon, curves[0], order=order)
        else:
            parameters = unrounded(row.printed, curves)
            as_printed = Parameters(order, row.printed.betas, row.printed.sigmas)
        published = sanitized(epsilon, curves, parameters, exact=False)
        correct = sanitized(epsilon, curves, as_printed, exact=True)
    except (ValidityError, ParameterError) as error:
        failure = str(error)
    return _Computed(
        rounds=rounds,
        answers=answers,
        best_order=TABLE_ORDERS[best],
        best_epsilon=float(every[best]),
        order=order,
        epsilon=epsilon,
        published=published,
        correct=correct,
        failure=failure,
        tight=tight_figures(rounds, delta=row.delta),
    )


def _remarks(row: ReleaseRow, found: _Computed) -> list[str]:
    remarks = [remark for one in found.rounds for remark in one.votes.remarks]
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


def _lines(row: ReleaseRow, found: _Computed) -> list[tuple[str, ...]]:
    """A line for every quantity: data, quantity, printed, and the four results."""
    columns = [
        cells.printed(row.printed),
        cells.published(found.published, epsilon=found.epsilon, answers=found.answers),
        cells.published(found.correct, epsilon=found.epsilon, answers=found.answers),
        cells.tight(found.tight, found.tight.upper),
        cells.tight(found.tight, found.tight.unbiased),
    ]
    return [
        (row.dataset if number == 0 else "", quantity, *(one.get(quantity, "-") for one in columns))
        for number, quantity in enumerate(cells.QUANTITIES)
    ]


def _data(row: ReleaseRow, found: _Computed, *, compared: bool) -> dict[str, Any]:
    """The row unrounded; no number in it is infinite."""
    printed = asdict(row.printed) if row.printed is not None else None
    return {
        "rounds": [
            {
                "file": one.votes.name,
                "authentic": one.votes.authentic,
                "queries": len(one.votes.counts),
                "classes": one.votes.counts.shape[1],
                "teachers": one.votes.teachers,
                "threshold": one.threshold,
                "sigma1": one.sigma1,
                "sigma2": one.sigma2,
                "student": one.scores is not None,
            }
            for one in found.rounds
        ],
        "delta": row.delta,
        "expected_answers": found.answers,
        "expected_epsilon": found.epsilon,
        "best_order": found.best_order,
        "best_expected_epsilon": found.best_epsilon,
        "failed_condition": found.failure or None,
        **({"printed": printed} if compared else {}),
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
        one.plan.kind.value: {
            "order": one.plan.order,
            "beta": one.plan.beta,
            "sigma": one.plan.sigma,
            "labels_epsilon": one.before,
            "smooth_sensitivity": one.smooth,
            "epsilon": one.mean,
            "sd": one.sd,
        }
        for one in (tight.upper, tight.unbiased)
    }
    return data | {"data_independent": asdict(tight.data_independent)}
