"""`pate tune`: the settings that give the most answers, or cost the least epsilon for so many."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pate_cli.cli.grid import TableGrid
from pate_cli.cli.help import DATA, GOAL, PRIOR, SEARCH, TARGET
from pate_cli.cli.options import (
    Delta,
    OutputOptions,
    Release,
    TeachersPerRecord,
    ViewOptions,
    VoteOptions,
    Without,
    in_panel,
    spread,
)
from pate_cli.cli.terminal import exit_code, printer, say
from pate_cli.core.words import DELTA, MIN_AGREEMENT, Bound, MechanismName
from pate_cli.files.addresses import public_name

if TYPE_CHECKING:
    from pate_cli.planning.tune import Tuned

_WARNING = (
    "NOT RELEASABLE: these settings were chosen on the votes, and a run with them on the same "
    "votes leaks what the choice says; pate plan looks at none"
)
_SETTLED = "in votes or as in 80% of the teachers. Left out, it is searched."
_goal, _search, _prior, _safe = map(in_panel, (GOAL, SEARCH, PRIOR, DATA))


@dataclass(frozen=True)
class GoalOptions:
    """What is to be reached."""

    target_epsilon: Annotated[
        float | None,
        _goal("--target-epsilon", help="Find the most expected answers at this epsilon or less."),
    ] = None
    answers: Annotated[
        float | None,
        _goal("--answers", help="Find the least epsilon for so many expected answers."),
    ] = None
    min_agreement: Annotated[
        float,
        _goal("--min-agreement", help="Least expected share of answers that equal the plurality."),
    ] = MIN_AGREEMENT
    delta: Delta = DELTA
    release: Release = None
    bound: Annotated[
        Bound,
        in_panel(TARGET)(
            "--bound",
            help="With --release target: cost of votes in its test, as in pate aggregate.",
        ),
    ] = Bound.AUTO


@dataclass(frozen=True)
class SettledOptions:
    """Settings that stay as they are, and the prior."""

    mechanism: Annotated[
        MechanismName | None,
        _search("--mechanism", "-m", help="confident or gnmax. Left out, the better one."),
    ] = None
    threshold: Annotated[
        str | None, _search("--threshold", metavar="N|N%", help=f"T, {_SETTLED}")
    ] = None
    sigma1: Annotated[
        str | None,
        _search(
            "--sigma1", "--sigma-threshold", metavar="N|N%", help=f"Noise of the test, {_SETTLED}"
        ),
    ] = None
    sigma2: Annotated[
        str | None,
        _search(
            "--sigma2", "--sigma-gnmax", metavar="N|N%", help=f"Noise of the argmax, {_SETTLED}"
        ),
    ] = None
    prior: Annotated[
        str | None,
        _prior(
            "--prior",
            metavar="FILE",
            help="Public guesses, as in pate aggregate. With --synthetic write prior=0.85 there: "
            "made-up ones, so many of them right.",
        ),
    ] = None
    prior_weight: Annotated[
        str | None,
        _prior("--prior-weight", metavar="N|N%", help=f"Votes of a guess, {_SETTLED}"),
    ] = None
    synthetic: Annotated[
        str | None,
        _safe(
            "--synthetic",
            help="Made-up votes: teachers=250,classes=10,queries=1000,agreement=0.85,spread=0.3,"
            "confusion=0.3,imbalance=0,seed=0, and made-up guesses with prior=0.85.",
        ),
    ] = None
    public_votes: Annotated[
        bool,
        _safe(
            "--public-votes",
            help="Assert that VOTES are public, so that the result may be published.",
        ),
    ] = False


@spread
def tune(
    votes: Annotated[
        str | None,
        typer.Argument(
            metavar="[VOTES]",
            help="Votes as in pate aggregate; none with --synthetic.",
            show_default=False,
        ),
    ] = None,
    *,
    wanted: GoalOptions,
    settled: SettledOptions,
    teachers_per_record: TeachersPerRecord = 1,
    reading: Annotated[VoteOptions, Without("max_answers")],
    view: Annotated[ViewOptions, Without("plot")],
    output: OutputOptions,
) -> None:
    """Find threshold, noise and rows for a goal. NOT releasable if VOTES are private.

    Searches settings of confident and of gnmax, with the number of queries and the weight of a
    prior; prints the best ones and their `pate aggregate` line. Before there are votes pate plan
    answers, and its answers may be published.
    """
    import pate_cli as pate

    asked: dict[str, Any] = {
        **dataclasses.asdict(wanted),
        **dataclasses.asdict(settled),
        "max_queries": reading.max_queries,
        "teachers_per_record": teachers_per_record,
    }
    codes: list[int] = []

    def interrupted() -> None:
        codes.append(exit_code(sys.exception()))
        output.note("interrupted; pricing the best so far")

    with output.outputs(), contextlib.ExitStack() as stack:
        file = None
        if votes is None:
            asked |= reading.shape
            output.note("made-up votes: with others answers, agreement and probabilities differ")
        else:
            file = stack.enter_context(reading.open(votes, output))
            output.note_votes(file, reading.rows(file))
        advance = stack.enter_context(output.progress("tuning", None))
        found = pate.tune(file, progress=advance, interrupted=interrupted, **asked)
    if votes is not None:
        words = (*reading.words, *found.words)
        found = dataclasses.replace(found, votes=public_name(votes), words=words)
    if not found.releasable:
        say(_WARNING)
    view.show(found.to_dict(), lambda _result: _print(found))
    if not found.complete:
        say("interrupted: this is the best of an incomplete search")
        raise typer.Exit(*codes)


def _print(found: Tuned) -> None:
    """The result for a person: its sentences, and what else meets the goal."""
    console = printer()
    *lines, command = found.lines()
    for line in lines:
        console.print(line, highlight=False, markup=False)
    if found.others:
        table = TableGrid(
            "Also found",
            ["mechanism", "release", "epsilon", "answers", "agreement", "queries"],
            named=True,
        )
        for row in found.to_dict()["others"]:
            table.add_row(
                row["mechanism"],
                row["release"],
                f"{row['epsilon']:.4f}",
                f"{row['expected_answers']:.1f}",
                f"{row['agreement']:.2%}",
                str(row["queries"]),
            )
        console.print(table)
    console.print("\n" + command, soft_wrap=True, highlight=False, markup=False)
