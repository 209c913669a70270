"""How many answers an ε buys, by each way to an ε that may be published: a table of its own.

Every way is tuned on the votes themselves, so the figures compare the ways and promise nothing: on
private votes they would be secret, and settings fixed beforehand do worse.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from pate_cli.core.errors import PateError
from pate_cli.core.progress import Advance, unseen
from pate_cli.core.words import DELTA, MIN_AGREEMENT, ReleaseKind
from pate_cli.planning.goal import Goal
from pate_cli.planning.tune import Tuned, tune
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import VoteModel
from pate_cli.reproduction.paper_budget import PaperBudget, PaperOutcome
from pate_cli.reproduction.table import ResultTable, RowResult, Status, Step, Steps, attempt
from pate_cli.reproduction.vote_folder import VoteFolder

TARGETS: Final = (1.0, 1.5, 2.0, 3.0)
"""The ε's of the table."""

# Settings of the published analysis, in units of the number of teachers.
_THRESHOLDS = (0.4, 1.0)
_SIGMAS1 = (0.2, 0.5, 0.9)
_SIGMAS2 = (0.12, 0.16, 0.24, 0.32)

_TESTED, _WORST, _PAPER = "tested target", "worst case", "published, corrected"
_WAYS = {
    _TESTED: ReleaseKind.TARGET,
    _WORST: ReleaseKind.NONE,
    "upper release": ReleaseKind.UPPER,
}

_NOTES = (
    f"Expected answers at an epsilon of at most so much, delta {DELTA:g}, at least "
    f"{MIN_AGREEMENT:.0%} of them equal to the plurality. A dash: nothing on the grid gives any.",
    "Each figure is the best that pate tune finds on these very votes, of the published analysis "
    f"the best over rows and {len(_THRESHOLDS) * len(_SIGMAS1) * len(_SIGMAS2)} settings, T = "
    f"{'|'.join(map(str, _THRESHOLDS))}, sigma1 = {'|'.join(map(str, _SIGMAS1))}, sigma2 = "
    f"{'|'.join(map(str, _SIGMAS2))} times the number of teachers: optimistic, and secret where "
    "the votes are private. What is found at a smaller epsilon counts at a larger one.",
    "Tested target (--target-epsilon): answers times the chance that they pass; a refusal costs "
    "half the target. Holds for all votes. Where the worst case allows more, it always passes. By "
    "the bound that a run takes by itself (--bound auto): conditional where the public shape says "
    "about a minute at most, else two-tail.",
    "Worst case (--release none): labels alone, for all votes, with a public cap on answers "
    "(--max-answers) where it helps.",
    "Upper release (--release upper): mean plus two standard deviations of what is released; about "
    "these votes.",
    "Published, corrected: the published analysis, its draw charged correctly, with the best beta "
    "and sigma_SS for that; mean plus two standard deviations. An expectation, not a guarantee.",
)


@dataclass(frozen=True)
class VotesOf:
    """One vote file."""

    folder: VoteFolder
    name: str

    @property
    def dataset(self) -> str:
        """What the table calls it."""
        return self.name

    @property
    def files(self) -> tuple[str, ...]:
        """The file alone."""
        return (self.name,)


@dataclass(frozen=True)
class _Cell:
    """Expected answers and how they come about; or why there are none."""

    answers: float
    how: dict[str, Any]

    @classmethod
    def without(cls, reason: str) -> _Cell:
        return cls(0.0, {"reason": reason})

    @property
    def text(self) -> str:
        return f"{self.answers:.1f}" if self.answers > 0.0 else "-"


def settings_for(teachers: int) -> list[Tuning]:
    """The settings at which the published analysis is tried, in votes."""
    shares = np.array(list(itertools.product(_THRESHOLDS, _SIGMAS1, _SIGMAS2)))
    return [Tuning(t, one, two) for t, one, two in (shares * teachers).round(6).tolist()]


def answers(
    rows: Sequence[VotesOf],
    *,
    progress: Advance = unseen,
    notes: Sequence[str] = (),
    targets: Sequence[float] = TARGETS,
    settings: Callable[[int], Sequence[Tuning]] = settings_for,
) -> ResultTable:
    """Compute every row.

    Args:
        rows: vote files, each all of whose rows may be asked.
        progress: told of the searches that are done, and of the one at hand.
        notes: what else the reader has to know.
        targets: ε's, ascending.
        settings: those of the published analysis for a number of teachers.
    """
    results = []
    # A search each for a way and a target; one for all targets where nothing is searched anew.
    steps = Steps(progress, rows=len(rows), each=len(_WAYS) * len(targets) + 1)
    for row in rows:
        with steps.row(f"Answers: {row.name}") as step:
            results.append(
                attempt(
                    row,
                    name=row.name,
                    kind="answers",
                    rest=(),
                    folder=row.folder,
                    compute=partial(_result, row, step=step, targets=targets, settings=settings),
                )
            )
    return ResultTable(
        name="answers",
        title="Expected answers by epsilon",
        header=("data", "epsilon at most", *(f"{target:g}" for target in targets)),
        results=tuple(results),
        notes=(*notes, *_NOTES),
    )


def _result(
    row: VotesOf,
    *,
    step: Step,
    targets: Sequence[float],
    settings: Callable[[int], Sequence[Tuning]],
) -> RowResult:
    votes = row.folder.read(row.name, None)
    sample = VoteModel(votes.counts, votes.teachers)

    def searched(way: str, target: float) -> _Cell:
        step(f"{way}, epsilon {target:g}")
        return _tuned(tune(sample, [Goal(_WAYS[way], epsilon=target)]))

    found = {way: _ascending(partial(searched, way), targets) for way in _WAYS}
    # A target that labels meet whatever the votes passes always.
    pairs = zip(found[_TESTED], found[_WORST], strict=True)
    found[_TESTED] = [max(pair, key=lambda cell: cell.answers) for pair in pairs]
    step(_PAPER)
    paper = PaperBudget(sample, settings(votes.teachers), delta=DELTA)

    def published(target: float) -> _Cell:
        best = paper.best(target, min_agreement=MIN_AGREEMENT)
        return (
            _Cell.without("no setting of the grid gives an answer")
            if best is None
            else _as_in_paper(best)
        )

    found[_PAPER] = _ascending(published, targets)
    names = (row.name, *("",) * (len(found) - 1))
    missing = [
        f"{row.name}, {way} at {target:g}: {cell.how['reason']}"
        for way, cells in found.items()
        for target, cell in zip(targets, cells, strict=True)
        if cell.answers == 0.0
    ]
    return RowResult(
        name=row.name,
        status=Status.RAN,
        lines=tuple(
            (name, way, *(cell.text for cell in cells))
            for name, (way, cells) in zip(names, found.items(), strict=True)
        ),
        data={
            "queries": sample.rows,
            "teachers": sample.teachers,
            "classes": sample.classes,
            "delta": DELTA,
            "min_agreement": MIN_AGREEMENT,
            **{
                way: [
                    {"epsilon": target, "answers": cell.answers, **cell.how}
                    for target, cell in zip(targets, cells, strict=True)
                ]
                for way, cells in found.items()
            },
        },
        notes=(
            *(f"{row.name}: {remark}" for remark in votes.remarks),
            *missing,
        ),
    )


def _ascending(cell_of: Callable[[float], _Cell], targets: Sequence[float]) -> list[_Cell]:
    """A cell for each ε; what is had at a smaller one is had at a larger one as well."""
    cells: list[_Cell] = []
    for target in targets:
        try:
            cell = cell_of(target)
        except PateError as error:
            cell = _Cell.without(str(error))
        if cells and cells[-1].answers > cell.answers:
            cell = cells[-1]
        cells.append(cell)
    return cells


def _tuned(found: Tuned) -> _Cell:
    forecast = found.best.forecast
    how = {
        **asdict(forecast.settings),
        "queries": forecast.rows,
        "max_answers": found.best.max_answers,
        "pass_probability": float(forecast.pass_probability[0]),
        "agreement": float(forecast.agreement[0]),
    }
    return _Cell(float(forecast.expected_answers[0]), how)


def _as_in_paper(best: PaperOutcome) -> _Cell:
    how = {
        **asdict(best.setting),
        "queries": best.queries,
        "order": best.release.order,
        "beta": best.release.beta,
        "sigma_release": best.release.sigma,
        "mean": best.release.mean,
        "sd": best.release.sd,
        "agreement": best.agreement,
    }
    return _Cell(best.answers, how)
