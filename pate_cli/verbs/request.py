"""What a verb works on: votes that are open, a mechanism for them, and public numbers."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from pate_cli.core.checks import at_least_one, check_delta, check_positive
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, UnreachableError, UsageError
from pate_cli.core.noise import RunKey
from pate_cli.core.version import __version__
from pate_cli.core.words import PRIOR_SHARE, Analysis, Bound, MechanismName, ReleaseKind
from pate_cli.disclosure.target import TargetPlan
from pate_cli.disclosure.worst_case import Spending, least_delta
from pate_cli.mechanisms import MechanismChoice
from pate_cli.mechanisms.amounts import Amount, in_votes
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism, ScoredMechanism
from pate_cli.run.accounts import Account, PublicAccount
from pate_cli.run.engine import Engine, engine_of, here
from pate_cli.run.fold import AskedRows
from pate_cli.verbs.analyses import analysis_of
from pate_cli.verbs.keywords import ParameterWords, PromiseWords, ReadingWords, WorkWords, only
from pate_cli.votes.facts import Group
from pate_cli.votes.join import student
from pate_cli.votes.join import with_prior as with_votes_of_prior
from pate_cli.votes.opening import open_votes
from pate_cli.votes.vote_file import VoteFile

Votes: TypeAlias = Any
"""A path or URI, an array, a pyarrow.Table, or what `open_votes` yields."""
Progress: TypeAlias = Callable[..., None]

_WHOLE: Final = ("max_queries", "max_answers", "workers")
# Answers of the rule's own settings are so much better than guesses, where all votes agree.
_LEAST_GAIN: Final = 1.0 / 3.0
_MOST_PRIOR: Final = 2.0**31
_PRICES: Final = ("max_epsilon", "budget")


@dataclass(frozen=True)
class Request:
    """An opened file, the mechanism it is put to, and the public numbers of the run."""

    file: VoteFile
    choice: Mechanism | MechanismChoice
    queries: int
    max_answers: int
    delta: float
    engine: Engine = here

    @functools.cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism, built for this run."""
        if not isinstance(self.choice, MechanismChoice):
            return self.choice
        choice = self.choice
        if self.groups:
            choice = replace(
                choice,
                teachers_per_record=votes_per_record(self.file, choice.teachers_per_record),
                votes_together=self.file.votes_together,
            )
        return choice.build(
            teachers=self.file.teachers,
            classes=self.file.classes,
            queries=self.queries,
            delta=self.delta,
        )

    @property
    def groups(self) -> tuple[Group, ...]:
        """Of the teachers, none where all count alike."""
        return self.file.groups

    @property
    def composed(self) -> str | None:
        """The name of a mechanism without a Rényi cost."""
        mechanism = self.mechanism
        return mechanism.name if isinstance(mechanism, ComposedMechanism) else None

    @property
    def scored(self) -> ScoredMechanism:
        """The mechanism, if it has a Rényi cost; UsageError if not."""
        if not isinstance(self.mechanism, ScoredMechanism):
            raise UsageError(
                f"{self.mechanism.name} has no Renyi cost; pate aggregate --dry-run prints its "
                "epsilon"
            )
        return self.mechanism

    def under(self, choice: MechanismChoice) -> Request:
        """The same votes put to another mechanism, without the prior if it takes none."""
        file = self.file if choice.takes_prior else self.file.without_prior
        choice = replace(choice, prior_weight=weight_of(file))
        return replace(self, file=file, choice=choice)

    def check_delta(self) -> None:
        """ParameterError for a δ beside which floating-point noise is not negligible."""
        mechanism = self.mechanism
        if isinstance(mechanism, ScoredMechanism):
            spent = [Spending(mechanism, self.queries, self.max_answers)]
            least = least_delta(spent, delta=self.delta)
        else:
            least = mechanism.smallest_delta(self.queries)
        if 0.0 < self.delta < least:
            raise ParameterError(
                f"`delta` must be at least {least:g} for {self.queries} queries over "
                f"{self.file.classes} classes, got {self.delta:g}: below it what the resolution of "
                "floating-point noise adds to delta is no longer negligible"
            )

    def by_rule(self, plan: TargetPlan, *, bound: Bound, rows_given: bool) -> Request:
        """The same with the settings and rows that nobody asked for, by the public rule.

        Rows are those of whole queries.
        """
        from pate_cli.planning.rule import SEARCHED_ROWS, choose, rows_for
        from pate_cli.planning.vote_model import like

        asked = self.queries if rows_given else None
        rows, choice = self.queries, self.choice
        if isinstance(choice, MechanismChoice) and choice.left_open:
            chosen = choose(
                like(self.scored, rows=SEARCHED_ROWS),
                plan,
                bound=bound,
                available=self.queries,
                asked=asked,
                given=in_votes(choice.given, self.file.teachers),
                tested=choice.name is MechanismName.CONFIDENT,
                untested=choice.name is MechanismName.GNMAX,
            )
            if asked is None:
                _refuse_useless(chosen.mechanism, plan)
            rows = chosen.rows
            values = {name: Amount(each) for name, each in chosen.settings.parameters.items()}
            choice = replace(choice, given={**values, **choice.given})
        elif not rows_given:
            votes = like(self.scored, rows=SEARCHED_ROWS)
            rows = rows_for(votes, self.scored, plan, bound=bound, available=self.queries).rows
        each = self.file.rows_per_query
        rows = max(rows // each, 1) * each
        file = self.file.guessed(rows)
        cap = min(self.max_answers, rows)
        return replace(self, file=file, choice=choice, queries=rows, max_answers=cap)

    @functools.cached_property
    def rows(self) -> AskedRows:
        """The rows that are asked."""
        return AskedRows(self.file, self.queries, self.engine)

    def described(self, settings: Any) -> str:
        """Return a digest of all that decides what a run gives, its votes included, once read."""
        mechanism, names = self.mechanism, self.file.names
        content = (
            __version__,
            mechanism.parameters(),
            [pickle.dumps(getattr(mechanism, name)) for name in mechanism.private_inputs()],
            (self.queries, self.max_answers, self.delta, self.file.facts),
            None
            if names is None
            else (names.names, names.normalise, sorted(names.aliases.items())),
            settings,
            self.rows.digest,
        )
        return hashlib.blake2b(repr(content).encode(), digest_size=16).hexdigest()

    def account(self, promise: PromiseWords) -> Account:
        """How the run is charged, fixed before any vote is seen; errors as `check_delta`.

        Where nothing is sanitized, now or later from a ledger, nothing is kept of the votes.
        """
        release, analysis = promise["release"], Analysis(promise["analysis"])
        order, beta, sigma = promise["order"], promise["beta"], promise["sigma_release"]
        ledger = promise["keep_ledger"]
        self.check_delta()
        if self.groups and analysis is not Analysis.TIGHT:
            raise UsageError(f"`analysis` {analysis} does not go with `groups`")
        drawn = (order, beta, sigma) != (None, None, None)
        plain = analysis is Analysis.TIGHT and not drawn
        default = ReleaseKind.NONE if plain else ReleaseKind.UPPER
        kind = kind_of(release, default=default)
        if isinstance(self.mechanism, ComposedMechanism):
            name = self.mechanism.name
            if release is not None and kind is not ReleaseKind.NONE:
                raise UsageError(f"`release` {kind} does not go with {name}: nothing to sanitize")
            if analysis is not Analysis.TIGHT:
                raise UsageError(f"`analysis` {analysis} does not go with {name}")
            return PublicAccount(
                self.mechanism,
                queries=self.queries,
                max_answers=self.max_answers,
                delta=self.delta,
            )
        scored = self.scored
        if kind is ReleaseKind.NONE and plain and not ledger:
            return PublicAccount(
                scored, queries=self.queries, max_answers=self.max_answers, delta=self.delta
            )
        from pate_cli.planning.sanitized import choose_plan

        plan = choose_plan(
            kind,
            mechanism=scored,
            queries=self.queries,
            delta=self.delta,
            order=order,
            beta=beta,
            sigma=sigma,
        )
        return analysis_of(analysis).account(scored, plan)


@contextlib.contextmanager
def requested(
    votes: Votes, mechanism: Mechanism | MechanismChoice | str, asked: Mapping[str, Any]
) -> Iterator[Request]:
    """Open the votes and see to it that the mechanism fits them; `asked` as the verbs take it.

    Raises:
        PateError: votes that cannot be read, a mechanism of another shape, a count out of range.
    """
    choice: Mechanism | MechanismChoice
    if isinstance(mechanism, Mechanism):
        _refuse_settled(mechanism, asked)
        choice = mechanism
    else:
        choice = mechanism_of(mechanism, asked)
    with opened(votes, asked, any_name=not choice.listed) as (file, place):
        if isinstance(choice, Mechanism):
            for name in ("teachers", "classes"):
                if getattr(choice, name) != getattr(file, name):
                    raise ParameterError(
                        f"the mechanism is for {getattr(choice, name)} {name}, the votes have "
                        f"{getattr(file, name)}"
                    )
            if file.groups:
                moved = votes_per_record(file, 1)
                if choice.teachers_per_record != moved or (
                    choice.votes_together and not file.votes_together
                ):
                    raise ParameterError(
                        "the mechanism is not for these `groups`: build it with "
                        f"teachers_per_record={moved}, the most votes that one record moves"
                    )
        choice = choice.with_student(lambda given: student(given, file))
        queries = file.rows_for("max_queries", asked["max_queries"])
        file = with_prior(file, asked, queries)
        if isinstance(choice, MechanismChoice):
            choice = replace(choice, prior_weight=weight_of(file))
        elif choice.prior_weight != weight_of(file):
            raise ParameterError(
                f"the mechanism is for a prior of weight {choice.prior_weight}; give `prior`, and "
                "`prior_weight` the same"
            )
        cap = min(queries, file.rows_for("max_answers", asked.get("max_answers")))
        yield Request(file, choice, queries, cap, asked["delta"], place)


@contextlib.contextmanager
def opened(
    votes: Votes, asked: Mapping[str, Any], *, any_name: bool = False
) -> Iterator[tuple[VoteFile, Engine]]:
    """The votes, read as is asked, and where the work on them is done.

    Before anything is made of them: a file that holds no vote that is any is none of these votes.

    Args:
        votes: as the verbs take them.
        asked: likewise.
        any_name: as `open_votes` has it, where it opens them.
    """
    work, reading = only(WorkWords, asked), only(ReadingWords, asked)
    unlisted = any_name and not isinstance(votes, VoteFile)  # which says so itself
    with (
        engine_of(work["engine"], workers=work["workers"]) as place,
        open_votes(votes, any_name=unlisted, **reading) as file,
    ):
        if file.prior is not None and "prior" not in asked:
            raise UsageError("votes with a prior do not go with this; give `file.without_prior`")
        if not any_name:
            file.refuse_unlisted("what is asked")
        file.refuse_unmatched()
        yield file, place


def _refuse_useless(mechanism: ScoredMechanism, plan: TargetPlan) -> None:
    """UnreachableError where even unanimous teachers are hardly better than guesses."""
    _, right = mechanism.unanimous()
    if right - 1.0 / mechanism.classes >= _LEAST_GAIN * (1.0 - 1.0 / mechanism.classes):
        return
    raise UnreachableError(
        f"a target of {plan.epsilon:g} takes so much noise that even where all votes agree an "
        f"answer is right with probability {right:.2f} only; nothing was drawn or spent. Take a "
        "larger `target_epsilon`; settings that are given are run all the same"
    )


def check_numbers(asked: Mapping[str, Any]) -> None:
    """ParameterError for a number of a run that is wrong whatever the votes.

    Said before a file is touched, where `asked` has it.
    """
    check_delta(asked["delta"])
    given = {name: value for name, value in asked.items() if value is not None}
    at_least_one(**{name: given[name] for name in _WHOLE if name in given})
    for name in _PRICES:
        if name in given:
            check_positive(f"`{name}`", given[name])
    target, refusal = asked["target_epsilon"], asked["refusal_epsilon"]
    if target is not None:
        TargetPlan.of(target, delta=asked["delta"], refusal_epsilon=refusal)
    release = (asked["order"], asked["beta"], asked["sigma_release"])
    if release != (None, None, None):
        from pate_cli.planning.sanitized import check_given

        order, beta, sigma = release
        check_given(delta=asked["delta"], order=order, beta=beta, sigma=sigma)
    if asked["seed"] is not None:
        RunKey.from_seed(asked["seed"])


def mechanism_of(mechanism: MechanismChoice | str, asked: Mapping[str, Any]) -> MechanismChoice:
    """The mechanism of this name, with the parameters that are asked and the others by default."""
    if isinstance(mechanism, MechanismChoice):
        _refuse_settled(mechanism, asked)
        return mechanism
    return MechanismChoice(
        MechanismName(mechanism), _parameters(asked), asked["teachers_per_record"]
    )


def _parameters(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in only(ParameterWords, asked).items() if value is not None}


def _refuse_settled(given: Mechanism | MechanismChoice, asked: Mapping[str, Any]) -> None:
    """UsageError for what would be passed over: a mechanism that is given settles it."""
    beside = list(_parameters(asked))
    if asked["teachers_per_record"] not in (1, given.teachers_per_record):
        beside.append("teachers_per_record")
    if beside:
        raise UsageError(f"{beside[0]} is settled by the mechanism that is given")


def with_prior(file: VoteFile, asked: Mapping[str, Any], queries: int) -> VoteFile:
    """The votes with those of the prior that is asked, if there is one."""
    prior, weight = asked["prior"], asked["prior_weight"]
    if prior is None:
        if weight is not None:
            raise UsageError("`prior_weight` goes with `prior`")
        return file
    given = Amount.of("prior_weight", PRIOR_SHARE if weight is None else weight)
    votes = given.votes(file.teachers)
    if given.share:
        votes = float(round(votes))
    if not 0.0 <= votes < _MOST_PRIOR or votes != int(votes):
        raise ParameterError(
            f"`prior_weight` must be a whole number of votes, at least 0, got {votes:g}"
        )
    return with_votes_of_prior(file, prior, int(votes)).guessed(queries)


def weight_of(file: VoteFile) -> int:
    """B of its prior, 0 without one."""
    return 0 if file.prior is None else file.prior.weight


def votes_per_record(file: VoteFile, teachers_per_record: int) -> int:
    """k, as was said or as the groups of the teachers say; UsageError for both."""
    if not file.groups:
        return teachers_per_record
    if teachers_per_record != 1:
        raise UsageError("`teachers_per_record` does not go with `groups`, which say it themselves")
    return max(group.votes_per_record for group in file.groups)


def kind_of(release: ReleaseKind | str | None, *, default: ReleaseKind) -> ReleaseKind:
    """Return what is published beside the labels: a sanitized bound or nothing.

    UsageError for a target, which is tested and not drawn.
    """
    kind = default if release is None else ReleaseKind(release)
    if kind is ReleaseKind.TARGET:
        raise UsageError("`release` target goes with `aggregate` and its `target_epsilon`")
    return kind
