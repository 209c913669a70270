"""Options that commands share: groups with one spelling and one help text for each option.

A group is a frozen dataclass whose fields are annotated as Typer wants them. A command takes whole
groups; `spread` shows their fields to Typer as parameters and hands the groups back as objects.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer

from pate_cli.cli import terminal
from pate_cli.cli.commands import COMMANDS, function_of
from pate_cli.cli.help import (
    ACCOUNT,
    EPSILON,
    EVERYDAY,
    LARGE,
    MECHANISM,
    OTHER,
    PICTURES,
    PRIOR,
    SECOND,
    SHARED,
    SPECIAL,
    TARGET,
    TESTS,
    VOTES,
)
from pate_cli.core.errors import UsageError
from pate_cli.core.progress import Counter, by_the_minute, progress
from pate_cli.core.words import (
    BUDGET_DELTA,
    CEILING,
    CONFIDENCE,
    DELTA,
    LAPLACE_SHARE,
    MIN_PASS,
    PRIOR_SHARE,
    REFUSALS,
    SIGMA1_SHARE,
    SIGMA2_SHARE,
    THRESHOLD_SHARE,
    Analysis,
    Bound,
    Layout,
    MechanismName,
    ReleaseKind,
)
from pate_cli.files.addresses import public_name
from pate_cli.files.existing import PICTURE, REPORT

if TYPE_CHECKING:
    from pate_cli.core.words import PublicFact
    from pate_cli.disclosure.quote import Quote
    from pate_cli.disclosure.record_place import RecordPlace
    from pate_cli.disclosure.report import Report
    from pate_cli.files.outputs import Outputs
    from pate_cli.mechanisms import MechanismChoice
    from pate_cli.votes.vote_file import VoteFile

# Seconds that need no word.
_PATIENCE = 10.0


class _Flags(dict[str, str]):
    """The flag of every parameter, filled as commands are imported."""

    def __missing__(self, name: str) -> str:
        """Its flag in a command that was not called; a KeyError if none has it."""
        for command in COMMANDS:
            function_of(command)
        return {**self}[name]


# Predictions come in a file.
_FLAGS = _Flags({"predictions": "--student", "record": "--spend"})


class Without:
    """In `Annotated[Group, Without(...)]`: options that this command lacks; defaults stand in."""

    def __init__(self, *names: str) -> None:
        self.names = names


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Show the fields of a command's groups as parameters of its own, and call it with the groups.

    All parameters become keywords, so that those without a default may stand anywhere.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    hints = get_type_hints(command, include_extras=True)
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        group, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if not (isinstance(group, type) and dataclasses.is_dataclass(group)):
            parameters.append(parameter.replace(annotation=hint, kind=parameter.KEYWORD_ONLY))
            continue
        fields = {
            field.name: parameter.empty if field.default is dataclasses.MISSING else field.default
            for field in dataclasses.fields(group)
        }
        for name in (name for mark in marks for name in mark.names):
            del fields[name]
        kinds = get_type_hints(group, include_extras=True)
        groups[parameter.name] = (group, list(fields))
        parameters += [
            inspect.Parameter(name, parameter.KEYWORD_ONLY, default=default, annotation=kinds[name])
            for name, default in fields.items()
        ]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        built = {
            name: group(**{field: given.pop(field) for field in fields})
            for name, (group, fields) in groups.items()
        }
        command(**given, **built)

    for parameter in parameters:
        # Within Annotated, Typer keeps the first spelling where a default would be.
        _, *marks = get_args(parameter.annotation) or (None,)
        spelling = getattr(marks[-1], "default", None) if marks else None
        if isinstance(spelling, str):
            _FLAGS[parameter.name] = spelling
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def in_panel(panel: str) -> Callable[..., Any]:
    """`typer.Option` within one panel of the help."""
    return functools.partial(typer.Option, rich_help_panel=panel)


_everyday, _votes, _special = in_panel(EVERYDAY), in_panel(VOTES), in_panel(SPECIAL)
_mechanism, _other, _second = in_panel(MECHANISM), in_panel(OTHER), in_panel(SECOND)
_target, _release, _shared = in_panel(TARGET), in_panel(EPSILON), in_panel(SHARED)
_large, _tests, _prior = in_panel(LARGE), in_panel(TESTS), in_panel(PRIOR)
_account = in_panel(ACCOUNT)

Votes = Annotated[
    str,
    typer.Argument(
        metavar="VOTES",
        help="NPY, NPZ, Parquet, CSV, JSON or Arrow file, packed or not; folder or glob of parts, "
        "URI, or - for a pipe.",
        show_default=False,
    ),
]
TeachersPerRecord = Annotated[
    int,
    _shared(
        "--teachers-per-record",
        help="Most teachers that one record may have trained; 1 when their data are disjoint.",
    ),
]
Delta = Annotated[
    float, _everyday("--delta", help="delta of the guarantee, below 1 / teachers' records.")
]
Release = Annotated[
    ReleaseKind | None,
    _release(
        "--release",
        help=(
            "none: the data-independent epsilon alone (default of aggregate); upper: also a "
            "sanitized bound, too low with probability delta/10 only (default elsewhere); "
            "target: a tested target."
        ),
    ),
]


@dataclass(frozen=True)
class VoteOptions:
    """How a file of votes is to be read, and how much of it."""

    max_queries: Annotated[
        int | None, _everyday("--max-queries", help="Ask only the first N queries.")
    ] = None
    max_answers: Annotated[
        int | None,
        _mechanism(
            "--max-answers",
            help="Stop after N answers, or those of N queries of several labels: a public cap that "
            "lowers the data-independent epsilon.",
        ),
    ] = None
    layout: Annotated[
        Layout | None,
        _votes("--layout", help="What a row of the file is; inferred only when there is no doubt."),
    ] = None
    classes: Annotated[
        int | None,
        _votes("--classes", help="Number of classes m. Read off labels, it is not public."),
    ] = None
    teachers: Annotated[
        int | None,
        _votes(
            "--teachers", help="Number of teachers; also allows rows in which some are missing."
        ),
    ] = None
    queries: Annotated[
        str | None,
        _special(
            "--queries",
            metavar="FILE",
            help="In long form, the public ids to ask, in order: an array, or a table with "
            "`query_id`. One without a vote is asked, too.",
        ),
    ] = None
    id_column: Annotated[
        str | None,
        _votes(
            "--id-column",
            metavar="NAME",
            help="Column of a table that names the queries, instead of query_id; in labels and in "
            "files beside the votes, too, where they have it.",
        ),
    ] = None
    label_names: Annotated[
        str | None,
        _votes(
            "--label-names",
            metavar="A,B,...|@FILE",
            help="What the classes are called, class 0 first; a file has one a line. Votes may "
            "then be texts; one that is no name is a missing vote.",
        ),
    ] = None
    normalise: Annotated[
        bool,
        _votes(
            "--normalise",
            help="Texts match names also where case, blanks, punctuation at the end, quotes around "
            "them or Unicode form differ.",
        ),
    ] = False
    aliases: Annotated[
        str | None,
        _votes(
            "--aliases",
            metavar="FILE",
            help="Public: other texts and the names they stand for, a JSON object or a table of "
            "`alias` and `name`.",
        ),
    ] = None
    accept_unmatched: Annotated[
        bool,
        _votes(
            "--accept-unmatched",
            help="Go on where most votes are no label name; without it such a file is refused.",
        ),
    ] = False
    groups: Annotated[
        str | None,
        _shared(
            "--groups",
            metavar="FILE",
            help="Public groups of the teachers: a table with `group`, and as needed `weight`, "
            "`teachers_per_record`, `teacher_id`. Each group gets its own epsilon.",
        ),
    ] = None

    @contextlib.contextmanager
    def open(
        self, votes: str, output: OutputOptions, *, any_name: bool = False
    ) -> Iterator[VoteFile]:
        """The file, read as these options say; a bar shows how far copies of it are.

        `any_name`: as in `open_votes`.
        """
        from pate_cli.votes.opening import open_votes

        with contextlib.ExitStack() as stack:
            with output.progress("reading, bytes", None) as advance:
                file = stack.enter_context(
                    open_votes(
                        votes,
                        layout=self.layout,
                        classes=self.classes,
                        teachers=self.teachers,
                        queries=self.queries,
                        id_column=self.id_column,
                        label_names=self.label_names,
                        normalise=self.normalise,
                        aliases=self.aliases,
                        accept_unmatched=self.accept_unmatched,
                        any_name=any_name,
                        groups=self.groups,
                        progress=advance,
                    )
                )
            yield file

    def rows(self, file: VoteFile) -> int:
        """How many rows are asked, for a bar of progress."""
        return file.rows_for("max_queries", self.max_queries)

    @property
    def words(self) -> list[str]:
        """Return the words with which another command line reads the votes alike."""
        return [
            text
            for name, value in self._given.items()
            for text in (_FLAGS[name], *(() if value is True else (public_name(str(value)),)))
        ]

    @property
    def shape(self) -> dict[str, int | None]:
        """Return classes and teachers where there are no votes; UsageError for other options."""
        for name in self._given:
            if name not in ("classes", "teachers"):
                raise UsageError(f"{_FLAGS[name]} needs VOTES")
        return {"classes": self.classes, "teachers": self.teachers}

    @property
    def _given(self) -> dict[str, Any]:
        fields = [field.name for field in dataclasses.fields(self) if field.name not in self.caps]
        values = {name: getattr(self, name) for name in fields}
        return {
            name: value
            for name, value in values.items()
            if value is not None and value is not False
        }

    @property
    def caps(self) -> dict[str, int | None]:
        """The public caps, by the names the library gives them."""
        return {"max_queries": self.max_queries, "max_answers": self.max_answers}


def flagged(message: str) -> str:
    """A message of the library, whose parameters stand in backticks, with flags for them."""

    def flag(name: re.Match[str]) -> str:
        try:
            return _FLAGS[name[1]]
        except KeyError:
            return name[0]

    return re.sub(r"`(\w+)`", flag, message)


@dataclass(frozen=True)
class MechanismOptions:
    """The options that describe a mechanism; None is a default in proportion to the teachers."""

    mechanism: Annotated[
        MechanismName,
        _mechanism(
            "--mechanism",
            help="confident: answer where teachers agree; interactive: where they correct the "
            "student; gnmax, lnmax: answer every query; stability, sparse-vector: the exact "
            "plurality where no few votes could change it.",
        ),
    ] = MechanismName.CONFIDENT
    threshold: Annotated[
        str | None,
        _mechanism(
            "--threshold",
            metavar="N|N%",
            help="T: votes the plurality should have, or as in 80% of the teachers. "
            f"Default {THRESHOLD_SHARE:.0%}.",
        ),
    ] = None
    sigma1: Annotated[
        str | None,
        _mechanism(
            "--sigma1",
            "--sigma-threshold",
            metavar="N|N%",
            help=f"Noise of the threshold test, in votes or %. Default {SIGMA1_SHARE:.0%}.",
        ),
    ] = None
    sigma2: Annotated[
        str | None,
        _mechanism(
            "--sigma2",
            "--sigma-gnmax",
            metavar="N|N%",
            help=f"Noise on each count of the argmax, in votes or %. Default {SIGMA2_SHARE:.0%}.",
        ),
    ] = None
    laplace_scale: Annotated[
        str | None,
        _other(
            "--laplace-scale",
            metavar="N|N%",
            help="b of lnmax: Laplace noise on each count, the 2017 paper's 1/gamma. "
            f"In votes or %. Default {LAPLACE_SHARE:.0%}.",
        ),
    ] = None
    student: Annotated[
        str | None,
        _second(
            "--student",
            metavar="FILE",
            help="Student's predictions for interactive, probabilities a query; formats as VOTES. "
            "Labels it gives itself come out with source `student`.",
        ),
    ] = None
    confidence: Annotated[
        float | None,
        _second(
            "--confidence",
            help="gamma of interactive: where teachers do not object, student labels surer than "
            f"this come out, source `student`. Default {CONFIDENCE}.",
        ),
    ] = None
    teachers_per_record: TeachersPerRecord = 1
    query_epsilon: Annotated[
        float | None,
        _other(
            "--query-epsilon",
            help="epsilon per query (stability) or refusal (sparse-vector). "
            "Default: a public rule.",
        ),
    ] = None
    query_delta: Annotated[
        float | None,
        _other(
            "--query-delta",
            help="delta per query or refusal, below --delta. Default: half of it in all.",
        ),
    ] = None
    refusals: Annotated[
        int | None,
        _other(
            "--refusals",
            help="Q of sparse-vector: stop after so many refusals; only they cost. "
            f"Default {REFUSALS}.",
        ),
    ] = None

    def choice(self) -> MechanismChoice:
        """Return the mechanism and its parameters, with the file of the student's predictions.

        Raises:
            UsageError: an option that the mechanism does not take, or one that it needs; a number
                out of range, before any file is read.
        """
        from pate_cli.mechanisms import MechanismChoice, mechanism_class

        kind = mechanism_class(self.mechanism)
        takes = [_option(name) for name in kind.options()]
        for name in self._own:
            if name not in takes and getattr(self, name) is not None:
                raise UsageError(
                    f"{_FLAGS[name]} does not go with --mechanism {self.mechanism}, "
                    f"which takes {', '.join(_FLAGS[taken] for taken in takes)}"
                )
        for name in kind.required:
            if getattr(self, _option(name)) is None:
                raise UsageError(f"--mechanism {self.mechanism} needs {_FLAGS[name]} FILE")
        given = {
            name: getattr(self, _option(name))
            for name in kind.options()
            if name != "predictions" and getattr(self, _option(name)) is not None
        }
        choice = MechanismChoice(self.mechanism, given, self.teachers_per_record)
        choice.check()
        if self.student is None:
            return choice
        return dataclasses.replace(choice, given={**given, "predictions": self.student})

    @property
    def _own(self) -> list[str]:
        shared = ("mechanism", "teachers_per_record")
        return [field.name for field in dataclasses.fields(self) if field.name not in shared]

    @property
    def given(self) -> bool:
        """Whether anything is said about the mechanism itself."""
        return self != MechanismOptions(teachers_per_record=self.teachers_per_record)


def _option(name: str) -> str:
    """The field of the options that settles a parameter of a mechanism."""
    return {"predictions": "student"}.get(name, name)


@dataclass(frozen=True)
class PriorOptions:
    """A public guess for every query, which the teachers correct."""

    prior: Annotated[
        str | None,
        _prior(
            "--prior",
            metavar="FILE",
            help="Public guesses for gnmax, confident, interactive: a class a query, or "
            "probabilities; formats as VOTES. Neither the votes nor any private record may have "
            "shaped them.",
        ),
    ] = None
    prior_weight: Annotated[
        str | None,
        _prior(
            "--prior-weight",
            metavar="N|N%",
            help=f"B: how many votes a guess has, in votes or %. Default {PRIOR_SHARE}.",
        ),
    ] = None

    @property
    def keywords(self) -> dict[str, Any]:
        """Both, by the names the library gives them."""
        return dataclasses.asdict(self)


# Of the commands about Rényi costs, which the stability family has not.
RenyiOptions = Annotated[MechanismOptions, Without("query_epsilon", "query_delta", "refusals")]


@dataclass(frozen=True)
class EngineOptions:
    """Options on where the work on a large file is done."""

    workers: Annotated[
        int | None,
        _large(
            "--workers",
            help="Processes that share the work on a large file. Default: one a core.",
            show_default=False,
        ),
    ] = None

    engine: Annotated[
        str,
        _large(
            "--engine",
            help="local, dask (a Dask cluster on this machine), or the address of a scheduler: "
            "tcp://HOST:PORT.",
        ),
    ] = "local"
    checkpoint: Annotated[
        Path | None,
        _large(
            "--checkpoint",
            help="Keep the run in this folder (mode 0700, secret) until it has ended: killed, the "
            "same command goes on where it was, with the same labels.",
        ),
    ] = None

    @property
    def keywords(self) -> dict[str, Any]:
        """Return the options as keywords of the library."""
        from pate_cli.run.engine import cores

        return {
            "workers": cores() if self.workers is None else self.workers,
            "engine": self.engine,
        }


@dataclass(frozen=True)
class AccountOptions:
    """Options on the accounting: δ and the analysis."""

    delta: Delta = DELTA
    analysis: Annotated[
        Analysis,
        _tests(
            "--analysis",
            help="tight: sharp and sound. paper: as published in 2018, for comparison only.",
        ),
    ] = Analysis.TIGHT

    @property
    def keywords(self) -> dict[str, Any]:
        """Both, by the names the library gives them."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class ReleaseOptions:
    """How the data-dependent epsilon is published; None is a public rule."""

    release: Release = None
    order: Annotated[
        float | None,
        _tests(
            "--order",
            help="Renyi order. Default: a public rule. Rounds that are released together need one "
            "order for all.",
        ),
    ] = None
    beta: Annotated[
        float | None,
        _tests("--beta", help="Smoothness of the sensitivity, per vote. Default: a public rule."),
    ] = None
    sigma_release: Annotated[
        float | None,
        _tests(
            "--sigma-release",
            help="Noise of the release, in smooth sensitivities. Default: a public rule.",
        ),
    ] = None

    @property
    def keywords(self) -> dict[str, Any]:
        """All of it, by the names the library gives it."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class TargetOptions:
    """A target stated in advance, and how its test is made."""

    target_epsilon: Annotated[
        float | None,
        _target(
            "--target-epsilon",
            help="E: release labels only if they pass a test that makes (E, delta) hold for every "
            "vote file; a refusal exits with 8. Without --max-queries E decides how many rows.",
        ),
    ] = None
    refusal_epsilon: Annotated[
        float | None,
        _target("--refusal-epsilon", help="What a refusal costs, at most E. Default: E / 2."),
    ] = None
    bound: Annotated[
        Bound,
        _target(
            "--bound",
            help="Cost of votes in the test. two-tail: quick. conditional: sharper, slower. auto: "
            "conditional where that takes about a minute at most; goes by public numbers.",
        ),
    ] = Bound.AUTO

    @property
    def keywords(self) -> dict[str, Any]:
        """Return the options as keywords of the library."""
        return dataclasses.asdict(self)

    def patience(self, file: VoteFile, choice: MechanismChoice, rows: int) -> str | None:
        """About how long the test will take, where that is worth telling."""
        from pate_cli.accounting.tested_budget import public_orders
        from pate_cli.disclosure.profile import seconds_for, settled_bound
        from pate_cli.mechanisms.base import ScoredMechanism

        if self.target_epsilon is None or self.bound is Bound.TWO_TAIL:
            return None
        mechanism = choice.build(
            teachers=file.teachers, classes=file.classes, queries=rows, delta=DELTA
        )
        if not isinstance(mechanism, ScoredMechanism) or not self.target_epsilon > 0.0:
            return None
        orders = public_orders(epsilon=self.target_epsilon, delta=DELTA)
        bound = settled_bound(self.bound, mechanism, rows=rows, orders=orders)
        seconds = seconds_for(bound, mechanism, rows=rows, orders=orders)
        if seconds < _PATIENCE:
            return None
        return (
            f"the conditional bound takes some {seconds:.0f} s if all {rows} queries are distinct; "
            "--bound two-tail is quick"
        )


@dataclass(frozen=True)
class RunTargetOptions(TargetOptions):
    """Options on the target of a run, which may be refused for its price."""

    max_epsilon: Annotated[
        float | None,
        _target(
            "--max-epsilon",
            help="Refuse (exit 5), before anything is drawn or spent, a run that could cost more "
            "than this: all it publishes, whatever the votes, or its target. Default: "
            f"{CEILING:g} without --seed, unless an epsilon is sanitized; at a terminal you are "
            "asked.",
        ),
    ] = None
    min_pass: Annotated[
        float,
        _target(
            "--min-pass",
            help="Refuse (exit 5), before anything is drawn or spent, a run that would pass the "
            "test with a smaller probability even if teachers agreed as favourably as is assumed.",
            min=0.0,
            max=1.0,
        ),
    ] = MIN_PASS

    @property
    def keywords(self) -> dict[str, Any]:
        """By the names the library gives them."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class RecordOptions:
    """The account of all runs on votes of the same teachers."""

    budget: Annotated[
        float | None,
        _account(
            "--budget",
            help="Most epsilon that all runs of the record may cost, however they are chosen "
            "(else exit 5).",
        ),
    ] = None
    budget_delta: Annotated[
        float | None,
        _account(
            "--budget-delta",
            help=f"Most delta that all of them may cost. Default: {BUDGET_DELTA:g}.",
        ),
    ] = None
    budget_order: Annotated[
        float | None,
        _account(
            "--budget-order",
            help="Add up Renyi costs at this order instead of epsilons: sharper for many runs. "
            "Fixed before the first run of the record.",
        ),
    ] = None
    spend: Annotated[
        Path | None,
        _account(
            "--spend",
            metavar="RECORD",
            help="Record of all runs on votes of these teachers. Default: beside the votes (or "
            "ledgers), VOTES.spent.json.",
        ),
    ] = None
    ensemble: Annotated[
        str | None,
        _account(
            "--ensemble",
            metavar="NAME",
            help="Keep the record under a name of these teachers, in a folder of yours: for "
            "several files, stores and pipes.",
        ),
    ] = None
    no_record: Annotated[
        bool,
        _account(
            "--no-record", help="Keep none; the report says that earlier runs are not tracked."
        ),
    ] = False

    accept_lost_record: Annotated[
        bool,
        _account(
            "--accept-lost-record",
            help="Begin a record anew where the one that the votes had is gone, or lost runs.",
        ),
    ] = False

    def __post_init__(self) -> None:
        given = {
            "--spend": self.spend is not None,
            "--ensemble": self.ensemble is not None,
            "--no-record": self.no_record,
        }
        named = [flag for flag, there in given.items() if there]
        if len(named) > 1:
            raise UsageError(f"{named[0]} and {named[1]} contradict each other; give one of them")
        if self.no_record and self.budget is not None:
            raise UsageError("--budget needs a record; leave out --no-record")

    @property
    def keywords(self) -> dict[str, Any]:
        """By the names the library gives them."""
        return {
            "budget": self.budget,
            "budget_delta": self.budget_delta,
            "budget_order": self.budget_order,
            "record": False if self.no_record else self.spend,
            "ensemble": self.ensemble,
            "accept_lost_record": self.accept_lost_record,
        }

    def places(self, votes: str, *, seed: int | None) -> RecordPlace:
        """Return the place of the record of these votes."""
        from pate_cli.disclosure.record_place import RecordPlace

        asked = self.keywords
        return RecordPlace.of(
            votes,
            record=asked["record"],
            ensemble=asked["ensemble"],
            seeded=seed is not None,
            accept_lost=self.accept_lost_record,
        )


@dataclass(frozen=True)
class ReportOptions:
    """Options on the public report: its name and form, and the seed of the noise."""

    report: Annotated[
        str | None,
        _everyday(
            "--report",
            help="Public report (JSON); - is stdout. Default: <stem>.report.json beside the "
            "labels, and stdout in a pipe; without labels that file at a terminal, stdout in a "
            "pipe.",
        ),
    ] = None
    as_json: Annotated[
        bool, _everyday("--json", help="The report on stdout, also at a terminal.")
    ] = False
    export_rdp: Annotated[
        str | None,
        _release(
            "--export-rdp",
            metavar="FILE",
            help="Also write the Renyi curve for all votes (JSON), for other accountants. Public.",
        ),
    ] = None
    seed: Annotated[
        int | None,
        _tests(
            "--seed",
            help="Reproducible noise for tests and papers; the report says private: false.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.as_json and self.report not in (None, "-"):
            raise UsageError("--json sends the report to stdout; leave out --report FILE")
        if self.export_rdp is None:
            return
        if self.seed is not None:
            raise UsageError("--export-rdp does not go with --seed, which promises nothing")
        if self.export_rdp == "-":
            raise UsageError("--export-rdp needs the name of a file; stdout is for the report")

    @property
    def piped(self) -> bool:
        """Whether the report goes to standard output."""
        return (
            self.as_json
            or self.report == "-"
            or (self.report is None and not terminal.read_by_person())
        )

    def place(self, beside: str) -> str:
        """Return the name of the report; `beside` where none is given and a summary is read."""
        if self.piped:
            return "-"
        return beside if self.report is None else self.report

    @property
    def summed_up(self) -> bool:
        """Whether a person reads a summary on standard output."""
        return not self.piped and terminal.read_by_person()

    def reserve(self, out: Outputs, place: str | None) -> None:
        """Both outputs, before any work; no `place` if the report is not kept."""
        for path in (place, self.export_rdp):
            if path is not None:
                out.reserve(path, replaces=REPORT)

    def refuse_curve(self, *, composed: str | None, tested: bool) -> None:
        """UsageError for the curve of what has none: a mechanism, or a target."""
        if self.export_rdp is not None and (composed is not None or tested):
            raise UsageError(
                f"--export-rdp does not go with {composed or '--target-epsilon'}: what is "
                "guaranteed is an (epsilon, delta)"
            )

    def refuse_unclaimed(self, read_off: Sequence[PublicFact]) -> None:
        """UsageError for the curve of a run for which nothing will be claimed, so before it."""
        if self.export_rdp is not None and read_off:
            from pate_cli.disclosure.guarantee import GAPS

            raise UsageError(GAPS[read_off[0]])

    def write(self, out: Outputs, place: str | None, found: Report | Quote) -> None:
        """The report, or what takes its place, and its curve."""
        if place is not None:
            out.write(place, found.to_json().encode())
        if self.export_rdp is not None:
            from pate_cli.disclosure.exchange import rdp_curve

            out.write(self.export_rdp, rdp_curve(found).to_json().encode())


@dataclass(frozen=True)
class ViewOptions:
    """How a result is shown."""

    plot: Annotated[
        Path | None,
        in_panel(PICTURES)(
            "--plot",
            help="Also draw a picture (.pdf, .png, .svg; mode 0600). Secret; needs pate-cli[plot].",
        ),
    ] = None
    as_json: Annotated[
        bool, _everyday("--json", help="JSON also on a terminal, as a pipe gets it.")
    ] = False
    as_table: Annotated[
        bool, _everyday("--table", help="The table of a terminal also through a pipe.")
    ] = False

    def __post_init__(self) -> None:
        if self.as_json and self.as_table:
            raise UsageError("give --json or --table, not both")

    def reserve(self, out: Outputs, *, mode: int = 0o600) -> None:
        """Promise the picture, where one is wanted; it shows votes, so to its owner alone."""
        if self.plot is None:
            return
        from pate_cli.planning.pictures import check_plot

        check_plot(self.plot)
        out.reserve(self.plot, mode=mode, replaces=PICTURE)

    def draw(self, out: Outputs, picture: Callable[[], Any]) -> None:
        """Write the Axes of a picture, where one is wanted; only then is it drawn."""
        if self.plot is None:
            return
        from pate_cli.planning.pictures import encode_picture

        out.write(self.plot, encode_picture(picture(), self.plot))

    def show(self, result: dict[str, Any], print_table: Callable[[dict[str, Any]], None]) -> None:
        """JSON for a pipe or on request, a table for a person."""
        tabled = self.as_table or (terminal.read_by_person() and not self.as_json)
        terminal.show(result, print_table if tabled else None)


@dataclass(frozen=True)
class CheckOptions(ViewOptions):
    """How what a report is worth is shown, where the exit code says most of it."""

    quiet: Annotated[
        bool,
        _everyday("--quiet", "-q", help="Print nothing: the exit code says it, and stderr why."),
    ] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.quiet and (self.as_json or self.as_table):
            other = "--json" if self.as_json else "--table"
            raise UsageError(f"--quiet prints nothing; leave out {other}")

    def show(self, result: dict[str, Any], print_table: Callable[[dict[str, Any]], None]) -> None:
        """Show a result as a table or as JSON, unless the user asked for quiet."""
        if not self.quiet:
            super().show(result, print_table)


@dataclass(frozen=True)
class WordOptions(CheckOptions):
    """How words are shown, which are prose in a pipe, too."""

    as_json: Annotated[
        bool, _everyday("--json", help="The same as JSON: titles and their texts.")
    ] = False
    as_table: Annotated[
        bool, _everyday("--table", help="The words of a terminal, which a pipe gets as well.")
    ] = False
    quiet: Annotated[
        bool, _everyday("--quiet", "-q", help="Print nothing but why there is nothing to explain.")
    ] = False

    def show(self, result: dict[str, Any], print_table: Callable[[dict[str, Any]], None]) -> None:
        """JSON on request alone."""
        if not self.quiet:
            terminal.show(result, None if self.as_json else print_table)


@dataclass(frozen=True)
class OutputOptions:
    """How outputs are written and how much is said about it."""

    force: Annotated[
        bool,
        _everyday(
            "--force",
            help="Replace outputs of earlier runs.",
        ),
    ] = False
    quiet: Annotated[
        bool, _everyday("--quiet", "-q", help="No progress and no notes on stderr.")
    ] = False

    @contextlib.contextmanager
    def outputs(self) -> Iterator[Outputs]:
        """A transaction of outputs; as long as it takes, signs of life go where no bar is seen."""
        with by_the_minute("pate", quiet=self.quiet), terminal.outputs(force=self.force) as out:
            yield out

    def note_votes(self, file: VoteFile, rows: int | None = None) -> None:
        """Note what was read; to a person at a terminal alone also which votes count as missing.

        These are a secret of the votes, and what goes elsewhere may be kept, or shown to others.
        """
        self.note(file.describe())
        if not self.quiet and terminal.told_to_person():
            for sentence in file.unmatched(rows).sentences():
                self.note(sentence)

    def note(self, message: str) -> None:
        """One line on stderr, unless the user asked for quiet."""
        if not self.quiet:
            terminal.say(flagged(message))

    def progress(self, what: str, total: int | None) -> AbstractContextManager[Counter]:
        """A progress bar, unless the user asked for quiet."""
        return progress(what, total, quiet=self.quiet)
