"""`pate tune`: which threshold, noise and release for so many labels at such an epsilon."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pate_cli.cli.help import DATA, GOAL, PICTURES, PRIOR, SEARCH, TARGET, VOTES
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
from pate_cli.cli.tables import print_rule, print_tuned
from pate_cli.cli.terminal import exit_code, say
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import UsageError
from pate_cli.core.words import (
    DELTA,
    MIN_AGREEMENT,
    Bound,
    Objective,
)
from pate_cli.files.addresses import public_name

if TYPE_CHECKING:
    from pate_cli.mechanisms.amounts import Amount

_WARNING = (
    "NOT RELEASABLE: these settings were chosen on the votes, and a run with them on the same "
    "votes leaks what the choice says; pate plan looks at none"
)

_VALUES = "in votes, or as in 80% of the teachers: a,b,c or low:high:count."
_goal, _search = in_panel(GOAL), in_panel(SEARCH)


@dataclass(frozen=True)
class GoalOptions:
    """What is to be reached."""

    target_epsilon: Annotated[
        float | None,
        _goal("--target-epsilon", help="Most expected answers at this published epsilon or less."),
    ] = None
    answers: Annotated[
        float | None,
        _goal(
            "--answers",
            help="Least epsilon for so many expected answers; with a target the best agreement.",
        ),
    ] = None
    objective: Annotated[
        Objective,
        _goal(
            "--objective",
            help="With only a target: most answers, or most answers that equal the plurality.",
        ),
    ] = Objective.ANSWERS
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
class GridOptions:
    """The settings to try; None is a grid in proportion to the teachers."""

    threshold: Annotated[str | None, _search("--threshold", help=f"T to try, {_VALUES}")] = None
    sigma1: Annotated[
        str | None,
        _search(
            "--sigma1", "--sigma-threshold", help=f"Noise of the threshold test to try, {_VALUES}"
        ),
    ] = None
    sigma2: Annotated[
        str | None,
        _search("--sigma2", "--sigma-gnmax", help=f"Noise of the argmax to try, {_VALUES}"),
    ] = None

    @property
    def axes(self) -> dict[str, tuple[Amount, ...] | None]:
        """The values to try, by the name of the grid's axis."""
        from pate_cli.tuning.settings import parse_values

        return {
            "thresholds": parse_values("threshold", self.threshold),
            "sigmas1": parse_values("sigma1", self.sigma1),
            "sigmas2": parse_values("sigma2", self.sigma2),
        }


_safe = in_panel(DATA)


@dataclass(frozen=True)
class SafeOptions:
    """Ways to tune without private votes, and what is known about votes beside their file."""

    synthetic: Annotated[
        str | None,
        _safe(
            "--synthetic",
            help="Made-up votes: teachers=250,classes=10,queries=1000,agreement=0.85,spread=0.3,"
            "confusion=0.3,imbalance=0,seed=0, and made-up guesses with prior=0.85.",
        ),
    ] = None
    rule_of_thumb: Annotated[
        bool,
        _safe(
            "--rule-of-thumb", help="Release parameters by rule for a target, without any search."
        ),
    ] = False
    queries: Annotated[
        int | None, _safe("--queries", help="Without VOTES: how many queries there are.")
    ] = None
    public_votes: Annotated[
        bool,
        _safe(
            "--public-votes",
            help="Assert that VOTES are public, so that the result may be published.",
        ),
    ] = False
    truth: Annotated[
        str | None,
        in_panel(VOTES)(
            "--truth",
            metavar="FILE",
            help="True labels, in a file as VOTES: also estimate accuracy, from below.",
        ),
    ] = None


@dataclass(frozen=True)
class FrontOptions(ViewOptions):
    """How what was found is shown."""

    plot: Annotated[
        Path | None,
        in_panel(PICTURES)(
            "--plot", help="Also draw the Pareto front (.pdf, .png, .svg); needs pate-cli[plot]."
        ),
    ] = None
    front: Annotated[
        bool,
        _search("--front", help="Also find the Pareto front of answers, agreement and epsilon."),
    ] = False


_prior = in_panel(PRIOR)


@dataclass(frozen=True)
class TunedPriorOptions:
    """A public guess for every query, and the weights to try."""

    prior: Annotated[
        str | None,
        _prior(
            "--prior",
            metavar="FILE",
            help="Public guesses, as in pate aggregate; how much they should weigh is searched, "
            "too. With --synthetic write prior=0.85 there: made-up ones, so many of them right.",
        ),
    ] = None
    prior_weight: Annotated[
        str | None,
        _prior("--prior-weight", help="B to try, whole votes or as in 20% of the teachers: a,b,c."),
    ] = None

    @property
    def keywords(self) -> dict[str, Any]:
        """Both, by the names the library gives them."""
        from pate_cli.tuning.settings import parse_values

        weights = parse_values("prior_weight", self.prior_weight)
        return {"prior": self.prior, "prior_weights": weights}


@spread
def tune(
    votes: Annotated[
        str | None,
        typer.Argument(
            metavar="[VOTES]",
            help="Votes as in pate aggregate; none with --synthetic or --rule-of-thumb.",
            show_default=False,
        ),
    ] = None,
    *,
    wanted: GoalOptions,
    tried: GridOptions,
    teachers_per_record: TeachersPerRecord = 1,
    prior: TunedPriorOptions,
    reading: Annotated[VoteOptions, Without("max_answers", "queries")],
    safe: SafeOptions,
    view: FrontOptions,
    output: OutputOptions,
) -> None:
    """Find threshold, noise and release parameters for a goal. NOT releasable if VOTES are private.

    Searches settings of confident, and of gnmax where a target is tested, jointly with the number
    of queries; prints the winner and its `pate aggregate` line. Before there are votes pate plan
    answers, and its answers may be published.
    """
    import pate_cli as pate
    from pate_cli.planning import pictures

    axes = tried.axes
    if safe.rule_of_thumb:
        _refuse_beside_a_rule(votes, prior, reading, safe, view)
        view.show(_by_rule(wanted, axes, reading, safe, teachers_per_record), print_rule)
        return
    secret = votes is not None and not safe.public_votes
    asked: dict[str, Any] = {
        **dataclasses.asdict(wanted),
        **axes,
        **prior.keywords,
        **dataclasses.asdict(safe),
        "max_queries": reading.max_queries,
        "teachers_per_record": teachers_per_record,
        "front": view.front or view.plot is not None,
    }
    del asked["rule_of_thumb"]
    codes: list[int] = []

    def interrupted() -> None:
        codes.append(exit_code(sys.exception()))
        output.note("interrupted; pricing the best so far")

    with output.outputs() as out:
        view.reserve(out, mode=0o600 if secret else 0o644)
        if votes is None and safe.synthetic is not None:
            output.note("made-up votes: with others answers, agreement and chances differ")
        with contextlib.ExitStack() as stack:
            file = None
            if votes is None:
                asked |= reading.shape
            else:
                file = stack.enter_context(reading.open(votes, output))
                output.note_votes(file, reading.rows(file))
            tuned = pate.tune(
                file,
                progress=stack.enter_context(output.progress("tuning", None)),
                interrupted=interrupted,
                **asked,
            )
        if votes is not None:
            words = (*reading.words, *tuned.words)
            tuned = dataclasses.replace(tuned, votes=public_name(votes), words=words)
        result = tuned.to_dict()
        view.draw(
            out, lambda: pictures.pareto_figure(result["pareto"], result["winner"], secret=secret)
        )
    if not tuned.releasable:
        say(_WARNING)
    view.show(result, print_tuned)
    if not tuned.complete:
        say("interrupted: this is the best of an incomplete search")
        raise typer.Exit(*codes)


def _refuse_beside_a_rule(
    votes: str | None,
    prior: TunedPriorOptions,
    reading: VoteOptions,
    safe: SafeOptions,
    view: ViewOptions,
) -> None:
    """UsageError for what a rule would not look at, by the name a person gave it."""
    given = {
        "VOTES": votes,
        "--synthetic": safe.synthetic,
        "--public-votes": safe.public_votes or None,
        "--max-queries": reading.max_queries,
        "--layout": reading.layout,
        "--groups": reading.groups,
        "--truth": safe.truth,
        "--prior": prior.prior,
        "--prior-weight": prior.prior_weight,
        "--plot": view.plot,
    }
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"--rule-of-thumb looks at no votes and has no plot; leave out {name}")


def _by_rule(
    wanted: GoalOptions,
    axes: dict[str, tuple[Amount, ...] | None],
    reading: VoteOptions,
    safe: SafeOptions,
    teachers_per_record: int,
) -> dict[str, Any]:
    """Release parameters by both rules; UsageError without a target or for several values."""
    import pate_cli as pate

    if wanted.target_epsilon is None:
        raise UsageError("--rule-of-thumb needs --target-epsilon")
    if wanted.release not in (None, "upper"):
        raise UsageError(
            f"--rule-of-thumb is about an upper release; leave out --release {wanted.release}"
        )
    if any(values is not None and len(values) > 1 for values in axes.values()):
        raise UsageError("--rule-of-thumb takes one --threshold, --sigma1 and --sigma2 at most")
    threshold, sigma1, sigma2 = (None if values is None else values[0] for values in axes.values())
    return pate.rule_of_thumb(
        wanted.target_epsilon,
        teachers=reading.teachers,
        classes=reading.classes,
        queries=safe.queries,
        threshold=threshold,
        sigma1=sigma1,
        sigma2=sigma2,
        delta=wanted.delta,
        teachers_per_record=teachers_per_record,
    ).to_dict()
