"""Keywords of verbs: every keyword has one home here, with its type, default and sentence.

A verb takes groups of them as `**asked: Unpack[...]`, which type checkers read. `takes_keywords`
sees to the rest at run time: it refuses a name that is none and a value of the wrong type, fills in
defaults, and lets the verb's help tell of every keyword.
"""

from __future__ import annotations

import difflib
import enum
import functools
import inspect
import textwrap
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from os import PathLike
from typing import Annotated, Any, Final, ParamSpec, TypedDict, TypeVar, get_args, get_origin

import numpy as np

from pate_cli.core.errors import ParameterError, UsageError, quoted
from pate_cli.core.gone import GONE
from pate_cli.core.words import (
    BUDGET_DELTA,
    CEILING,
    DELTA,
    MIN_PASS,
    Analysis,
    Bound,
    Layout,
    ReleaseKind,
)
from pate_cli.disclosure.budget import Budget
from pate_cli.disclosure.record_place import RecordPlace
from pate_cli.mechanisms.amounts import Amount
from pate_cli.votes.groups import Groups
from pate_cli.votes.join import Queries
from pate_cli.votes.names import Aliases, LabelNames

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
_Group = TypeVar("_Group")


@dataclass(frozen=True)
class Says:
    """Sentence of help about a keyword, and its value where it is left out."""

    sentence: str
    default: Any = None


class VoterWords(TypedDict, total=False):
    """Teachers and classes."""

    classes: Annotated[
        int | None,
        Says(
            "how many there are. If it must be read from the votes, it is not public, and the "
            "report promises nothing."
        ),
    ]
    teachers: Annotated[
        int | None, Says("how many there are; given, votes of some may be missing in a row.")
    ]
    label_names: Annotated[
        LabelNames | None,
        Says("what the classes are called, class 0 first; votes may then be texts."),
    ]
    normalise: Annotated[
        bool,
        Says(
            "texts match names also where case, blanks, punctuation at the end, quotes around "
            "them or Unicode form differ.",
            False,
        ),
    ]
    aliases: Annotated[
        Aliases | None,
        Says("other texts and the names they stand for: a mapping, or a file. Public."),
    ]
    groups: Annotated[
        Groups | None,
        Says("public groups of teachers that count differently; each gets an epsilon of its own."),
    ]


class VotesWords(VoterWords, total=False):
    """Votes and how they are laid out."""

    layout: Annotated[
        Layout | str | None, Says("what a row is; inferred only where there is no doubt.")
    ]
    accept_unmatched: Annotated[
        bool,
        Says("go on where most votes are no label name; such a file is refused otherwise.", False),
    ]
    id_column: Annotated[
        str | None,
        Says("the column of a table that names the queries, instead of query_id; also in labels."),
    ]


class ReadingWords(VotesWords, total=False):
    """Reading of votes, as in `open_votes`."""

    queries: Annotated[
        Queries | None,
        Says("in long form, the public ids to ask, in this order: an array, or a file of them."),
    ]


class RowWords(TypedDict, total=False):
    """Rows."""

    max_queries: Annotated[
        int | None,
        Says("how many queries to ask. If left out: all; with a target, as many as it pays for."),
    ]


class CapWords(TypedDict, total=False):
    """Stopping."""

    max_answers: Annotated[
        int | None,
        Says(
            "a public cap on answers, or on those of so many queries of several labels; it lowers "
            "the worst case."
        ),
    ]


class NoiseWords(TypedDict, total=False):
    """Threshold and noise, in votes or as in `80%` of the teachers."""

    threshold: Annotated[
        Amount | float | str | None,
        Says("T of confident, interactive: votes the plurality should have, or as in `80%`."),
    ]
    sigma1: Annotated[
        Amount | float | str | None, Says("noise of the threshold test, in votes or as in `60%`.")
    ]
    sigma2: Annotated[
        Amount | float | str | None, Says("noise on each count of the argmax, likewise.")
    ]


class ParameterWords(NoiseWords, total=False):
    """Parameters of a mechanism given by name; in proportion to the teachers where left out."""

    laplace_scale: Annotated[
        Amount | float | str | None, Says("b of lnmax: Laplace noise on each count, likewise.")
    ]
    predictions: Annotated[Any | None, Says("the student's, for interactive, which needs them.")]
    confidence: Annotated[
        float | None,
        Says("gamma of interactive: what a student must be surer than to give a label itself."),
    ]
    query_epsilon: Annotated[
        float | None, Says("epsilon per query of stability, per refusal of sparse-vector.")
    ]
    query_delta: Annotated[float | None, Says("delta per query or refusal, below `delta`.")]
    refusals: Annotated[int | None, Says("Q of sparse-vector: stop after so many refusals.")]


class PriorWords(TypedDict, total=False):
    """A public guess for every query, which the teachers correct."""

    prior: Annotated[
        Any | None,
        Says(
            "for gnmax, confident and interactive: classes or probabilities, an array or a file "
            "of them. They must be public: neither the votes nor any private record may have "
            "shaped them, but for what was released and paid for before."
        ),
    ]
    prior_weight: Annotated[
        Amount | float | str | None,
        Says("how many votes a guess has, or as in `20%` of the teachers. Default: 20%."),
    ]


class EnsembleWords(TypedDict, total=False):
    """Training of the teachers."""

    teachers_per_record: Annotated[
        int, Says("most of them that one record may have trained; `groups` say it themselves.", 1)
    ]


class GuaranteeWords(TypedDict, total=False):
    """Guarantee."""

    delta: Annotated[
        float, Says("of the guarantee, in (0, 1), below one over the number of records.", DELTA)
    ]


class TargetWords(TypedDict, total=False):
    """An epsilon stated in advance."""

    target_epsilon: Annotated[
        float | None,
        Says(
            "epsilon stated in advance, nats. Labels leave only if they pass a release test, which "
            "makes it hold whatever the votes; a public rule settles what you leave out."
        ),
    ]
    refusal_epsilon: Annotated[
        float | None, Says("what a failed test costs; half the target if left out.")
    ]
    bound: Annotated[
        Bound | str,
        Says(
            "how the cost of the votes is bounded for the test: `auto`, `two-tail` (quick) or "
            "`conditional` (sharper, slower).",
            Bound.AUTO,
        ),
    ]


class ReleasedWords(TypedDict, total=False):
    """A sanitized epsilon of the votes; numbers left out follow from a public rule."""

    release: Annotated[
        ReleaseKind | str | None,
        Says("`none`: the worst case alone; `upper`: also a sanitized bound of these votes."),
    ]
    order: Annotated[float | None, Says("Renyi order, above 1.")]
    beta: Annotated[float | None, Says("smoothness of the sensitivity, per vote.")]
    sigma_release: Annotated[float | None, Says("noise of the release, in smooth sensitivities.")]


class AnalysisWords(TypedDict, total=False):
    """Accounting."""

    analysis: Annotated[
        Analysis | str,
        Says("`tight`, or `paper` for the published one, which is no bound.", Analysis.TIGHT),
    ]


class AccountWords(TypedDict, total=False):
    """Budget of all runs, and the record of them."""

    budget: Annotated[
        float | None,
        Says(
            "epsilon that all runs of the record may cost at most, however they are chosen: each "
            "one is refused that would take the sum beyond it."
        ),
    ]
    budget_delta: Annotated[
        float | None,
        Says(
            "delta that all runs of the record may cost at most. Left out, "
            f"{BUDGET_DELTA:g}, a hundred runs at the default."
        ),
    ]
    budget_order: Annotated[
        float | None,
        Says(
            "Renyi order, above 1, at which costs are added up instead of epsilons: sharper for "
            "many runs. Fixed with `budget_delta` before the first run of the record."
        ),
    ]
    record: Annotated[
        str | PathLike[str] | RecordPlace | bool | None,
        Says(
            "file of all runs on votes of these teachers. A run is in it, as pending, before "
            "anything is made of the votes, and counts in full should it not end, for whatever "
            "reason. Left out, it lies beside votes that are on disk (VOTES.spent.json), but for a "
            "`seed`; False keeps none, and the report says so."
        ),
    ]
    ensemble: Annotated[
        str | None,
        Says(
            "name of these teachers: the record is then kept under it in a folder of yours, for "
            "votes that come in many files, from a store or by a pipe."
        ),
    ]

    accept_lost_record: Annotated[
        bool,
        Says(
            "begin a record anew where the one that the votes had is gone, or lost runs. What was "
            "spent before is then charged nowhere.",
            False,
        ),
    ]


class SpendingWords(TypedDict, total=False):
    """Spending of one run."""

    max_epsilon: Annotated[
        float | None,
        Says(
            "refuse, before anything is drawn or spent, a run that could cost more. Default "
            f"{CEILING:g} for runs without a `seed` whose only guarantee is a target or the worst "
            "case."
        ),
    ]
    min_pass: Annotated[
        float,
        Says(
            "refuse, before anything is drawn or spent, a run that would pass its release test "
            "with a smaller probability even if teachers agreed as favourably as is assumed.",
            MIN_PASS,
        ),
    ]
    keep_ledger: Annotated[
        bool, Says("keep an account of the votes for a later `release`. SECRET.", False)
    ]


class SeedWords(TypedDict, total=False):
    """Noise."""

    seed: Annotated[
        int | None,
        Says("reproducible noise for tests and papers; nothing drawn with it is private."),
    ]


class WorkWords(TypedDict, total=False):
    """Processes that do the work; labels do not depend on them."""

    workers: Annotated[
        int,
        Says(
            "processes that share a large file; 1 is this one, with a second thread where a core "
            "is idle. More than one needs a main module that can be imported without doing "
            "anything.",
            1,
        ),
    ]
    engine: Annotated[
        str,
        Says(
            "`local`, `dask` for a Dask cluster on this machine, or the address of a scheduler, "
            "whose workers must see the votes under the same names.",
            "local",
        ),
    ]


class CheckpointWords(TypedDict, total=False):
    """Runs that are cut short."""

    checkpoint: Annotated[
        str | PathLike[str] | None,
        Says(
            "a folder in which the run is kept until it has ended: the same call goes on there, "
            "with the same labels. With labels in memory, `end` the result's `checkpoint` once "
            "they and the report are safe. SECRET."
        ),
    ]


class PromiseWords(
    CapWords, TargetWords, ReleasedWords, AnalysisWords, SpendingWords, AccountWords, total=False
):
    """Keywords that say what is promised about labels."""


class VoteWords(ReadingWords, RowWords, EnsembleWords, GuaranteeWords, WorkWords, total=False):
    """Keywords of every verb that looks at votes."""


class MechanismWords(VoteWords, ParameterWords, PriorWords, total=False):
    """Keywords of every verb that puts a mechanism to votes."""


class QuoteWords(MechanismWords, PromiseWords, total=False):
    """Keywords of `quote`."""


class AggregateWords(QuoteWords, SeedWords, CheckpointWords, total=False):
    """Keywords of `aggregate`."""


class ReleaseWords(ReleasedWords, AccountWords, SeedWords, total=False):
    """Keywords of `release`."""


class SessionWords(
    VoterWords,
    EnsembleWords,
    ParameterWords,
    GuaranteeWords,
    AccountWords,
    SeedWords,
    total=False,
):
    """Keywords of `Session`."""


class CostWords(MechanismWords, CapWords, TargetWords, AnalysisWords, total=False):
    """Keywords of `cost`."""


class SensitivityWords(MechanismWords, AnalysisWords, total=False):
    """Keywords of `smooth_sensitivity`."""


class CompareWords(MechanismWords, CapWords, AnalysisWords, total=False):
    """Keywords of `compare`."""


class TuneWords(
    ReadingWords, RowWords, NoiseWords, PriorWords, EnsembleWords, GuaranteeWords, total=False
):
    """Keywords of `tune`: parameters that are given stay as they are, all others are searched."""


GROUPS: Final = (
    ReadingWords,
    RowWords,
    CapWords,
    EnsembleWords,
    ParameterWords,
    PriorWords,
    GuaranteeWords,
    TargetWords,
    ReleasedWords,
    AnalysisWords,
    SpendingWords,
    AccountWords,
    SeedWords,
    WorkWords,
    CheckpointWords,
)
"""In the order in which help tells of them."""

_WIDTH: Final = 96

_PLAIN: Final[dict[Any, tuple[tuple[type, ...], str]]] = {
    bool: ((bool, np.bool_), "True or False"),
    int: ((Integral,), "a whole number"),
    float: ((Real,), "a number"),
    str: ((str,), "text"),
    PathLike: ((PathLike,), "a path"),
    type(None): ((type(None),), "None"),
}


def budget_of(asked: Mapping[str, Any]) -> Budget | None:
    """Return the budget that keywords state; None where they state none."""
    return Budget.of(asked["budget"], delta=asked["budget_delta"], order=asked["budget_order"])


def only(group: Callable[..., _Group], asked: Mapping[str, Any]) -> _Group:
    """Return the keywords of a group as they were given, or their defaults."""
    hints = typing.get_type_hints(group, include_extras=True)
    return typing.cast(
        "_Group", {name: asked.get(name, _says(hint).default) for name, hint in hints.items()}
    )


def nothing(group: Any) -> dict[str, Any]:
    """Return the defaults of a group."""
    return only(group, {})


def takes_keywords(verb: Callable[_Given, _Found]) -> Callable[_Given, _Found]:
    """Check what a verb is given by keyword, and tell of it in its help.

    Raises:
        UsageError: a name that is none; it names the nearest one.
        ParameterError: a value of another type.
    """
    signature = inspect.signature(verb)
    hints = typing.get_type_hints(verb, include_extras=True)
    (group,) = get_args(hints.pop("asked"))
    own = {name: hint for name, hint in hints.items() if name != "return"}
    asked = typing.get_type_hints(group, include_extras=True)
    defaults = {name: _says(hint).default for name, hint in asked.items()}
    verb.__doc__ = f"{inspect.cleandoc(verb.__doc__ or '')}\n\n{_told(asked)}"

    @functools.wraps(verb)
    def checked(*args: _Given.args, **given: _Given.kwargs) -> _Found:
        for name, value in given.items():
            hint = asked.get(name, own.get(name))
            if hint is None and name in GONE:
                raise UsageError(f"`{name}` is gone: {GONE[name]}")
            if hint is None:
                near = difflib.get_close_matches(name, [*asked, *own], 1)
                meant = f"; did you mean `{near[0]}`?" if near else ""
                called = verb.__qualname__.partition(".")[0]
                raise UsageError(f"{called} takes no `{name}`{meant}")
            _check_type(name, value, hint)
        return verb(*args, **typing.cast("Any", {**defaults, **given}))

    checked.__dict__["__signature__"] = signature
    return checked


def _says(hint: Any) -> Says:
    found: Says = get_args(hint)[1]
    return found


def _told(asked: Mapping[str, Any]) -> str:
    """Return the help of keywords, group by group."""
    lines = []
    for group in GROUPS:
        of_group = [name for name in group.__annotations__ if name in asked]
        if of_group:
            lines += [f"{(group.__doc__ or '').rstrip('.')}:"]
            lines += [_line(name, _says(asked[name])) for name in of_group]
    return "\n".join(lines)


def _line(name: str, says: Says) -> str:
    default = "" if says.default in (None, False) else f" Default: {says.default}."
    return textwrap.fill(
        f"{name}: {says.sentence}{default}",
        _WIDTH,
        initial_indent=" " * 4,
        subsequent_indent=" " * 8,
        break_long_words=False,
    )


def _check_type(name: str, value: object, hint: Any) -> None:
    """ParameterError for a value of another type; what has checks of its own passes here."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    choices = get_args(hint) if get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    words = [choice for choice in choices if isinstance(choice, enum.EnumMeta)]
    if words and set(choices) <= {*words, str, type(None)}:
        if value is not None or type(None) not in choices:
            words[0](value)
        return
    kinds = [_PLAIN.get(get_origin(choice) or choice) for choice in choices]
    if None in kinds:
        return  # amounts, arrays and files say themselves what they are not
    whole = [kind for kind in kinds if kind is not None]
    number = isinstance(value, bool) and bool not in choices
    if number or not any(isinstance(value, kind) for kind, _ in whole):
        wanted = " or ".join(dict.fromkeys(text for _, text in whole))
        raise ParameterError(f"`{name}` must be {wanted}, got {quoted(value)}")
