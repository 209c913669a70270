"""Requests: open votes, a mechanism for them, public numbers, and the analysis that charges."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pate_cli.core.errors import ParameterError, UnreachableError, UsageError
from pate_cli.core.stamps import __version__
from pate_cli.core.words import PRIOR_SHARE, Analysis, MechanismName
from pate_cli.disclosure.settings import Settings
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms import MechanismChoice
from pate_cli.mechanisms.amounts import Amount, in_votes
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism, ScoredMechanism
from pate_cli.run.engine import Engine, engine_of, here
from pate_cli.run.fold import AskedRows
from pate_cli.verbs.keywords import of_votes
from pate_cli.votes.facts import Group
from pate_cli.votes.join import student
from pate_cli.votes.join import with_prior as with_votes_of_prior
from pate_cli.votes.opening import open_votes
from pate_cli.votes.vote_file import VoteFile

if TYPE_CHECKING:
    from pate_cli.paper.analysis import PublishedAnalysis

PARAMETERS: Final = (
    *("threshold", "sigma1", "sigma2", "laplace_scale", "predictions", "confidence"),
    *("query_epsilon", "query_delta", "refusals"),
)
"""Keywords that are parameters of mechanisms."""
# Answers of the rule's own settings are so much better than guesses, where all votes agree.
_LEAST_GAIN: Final = 1.0 / 3.0
_MOST_PRIOR: Final = 2.0**31


@dataclass(frozen=True)
class Request:
    """Opened votes, the mechanism that they are put to, and the public numbers of a run.

    Attributes:
        file: the votes, those of a prior among them.
        choice: the mechanism, or its name with some parameters.
        queries: how many rows are asked, the first ones.
        max_answers: the public cap on answers, at most `queries`.
        delta: δ of the run.
        engine: where the work is done.
    """

    file: VoteFile
    choice: Mechanism | MechanismChoice
    queries: int
    max_answers: int
    delta: float
    engine: Engine = here

    @functools.cached_property
    def mechanism(self) -> Mechanism:
        """Return the mechanism, built for this run."""
        if not isinstance(self.choice, MechanismChoice):
            return self.choice
        return among_groups(self.choice, self.file.facts.groups).build(
            teachers=self.file.teachers,
            classes=self.file.classes,
            queries=self.queries,
            delta=self.delta,
        )

    @property
    def composed(self) -> str | None:
        """Return the name of a mechanism without an RDP cost; None for one with."""
        mechanism = self.mechanism
        return mechanism.name if isinstance(mechanism, ComposedMechanism) else None

    @property
    def scored(self) -> ScoredMechanism:
        """Return the mechanism, if it has an RDP cost; UsageError if not."""
        if not isinstance(self.mechanism, ScoredMechanism):
            raise UsageError(
                f"{self.mechanism.name} has no Renyi cost; pate aggregate --dry-run prints its "
                "epsilon"
            )
        return self.mechanism

    def refuse_few(self, what: str) -> None:
        """UsageError for teachers who vote on few queries, which `what` does not go with."""
        if self.file.facts.voting is not None:
            raise UsageError(f"`votes_per_teacher` does not go with {what}")

    def under(self, choice: MechanismChoice) -> Request:
        """Return these votes put to another mechanism, without the prior if it takes none."""
        file = self.file if choice.takes_prior else self.file.without_prior
        choice = replace(choice, prior_weight=_weight(file))
        return replace(self, file=file, choice=choice)

    def by_rule(self, plan: TargetPlan, *, rows_given: bool) -> Request:
        """Return the request with settings and rows that nobody gave, by the public rule.

        Rows are those of whole queries.
        """
        from pate_cli.planning.rule import SEARCHED_ROWS, choose, public_goal, rows_for
        from pate_cli.planning.vote_model import like

        asked = self.queries if rows_given else None
        rows, choice = self.queries, self.choice
        votes = like(self.scored, rows=SEARCHED_ROWS)
        goal = public_goal(votes, plan, available=rows, asked=asked)
        if isinstance(choice, MechanismChoice) and choice.left_open:
            given = in_votes(choice.given, self.file.teachers)
            found = choose(goal, choice.name, given=given)
            if asked is None:
                _refuse_useless(found.mechanism, plan)
            rows = found.rows
            values = {name: Amount(each) for name, each in found.settings.parameters.items()}
            choice = replace(choice, given={**values, **choice.given})
        elif asked is None:
            rows = rows_for(goal, self.scored).rows
        each = self.file.rows_per_query
        rows = max(rows // each, 1) * each
        file = self.file.guessed(rows)
        cap = min(self.max_answers, rows)
        return replace(self, file=file, choice=choice, queries=rows, max_answers=cap)

    @functools.cached_property
    def rows(self) -> AskedRows:
        """Return the rows that are asked."""
        return AskedRows(self.file, self.queries, self.engine)

    def described(self, settings: Settings, *beside: Any) -> str:
        """Return a digest of all that decides what a run gives, its votes included, once read.

        Args:
            settings: what the run is told.
            beside: what else belongs to it: its seed, its record.
        """
        mechanism, names = self.mechanism, self.file.names
        named = names and (names.names, names.normalise, sorted(names.aliases.items()))
        private = [pickle.dumps(getattr(mechanism, name)) for name in mechanism.private_inputs()]
        content = (__version__, settings, private, self.file.facts, named, beside, self.rows.digest)
        return hashlib.blake2b(repr(content).encode(), digest_size=16).hexdigest()


def reading(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of how votes are read; None and False say nothing."""
    whose = ("groups", "votes_per_teacher", "assigned")
    told = {name: value for name, value in asked.items() if name in whose or of_votes(name)}
    return {name: value for name, value in told.items() if value is not None and value is not False}


@contextlib.contextmanager
def requested(asked: Mapping[str, Any]) -> Iterator[Request]:
    """Open the votes and put them to the mechanism, which must fit.

    `asked` has every parameter of a verb that looks at votes. A file of which no vote is a vote is
    refused before anything is made of it.

    Raises:
        PateError: votes that cannot be read, a mechanism of another shape, a count out of range.
    """
    votes, choice = asked["votes"], mechanism_of(asked)
    # Votes that are open say themselves whether their names are listed.
    unlisted = not choice.listed and not isinstance(votes, VoteFile)
    with (
        engine_of(asked["engine"], workers=asked["workers"]) as engine,
        open_votes(votes, any_name=unlisted, **reading(asked)) as file,
    ):
        if choice.listed:
            file.refuse_unlisted("what is asked")
        file.refuse_unmatched()
        choice = choice.with_student(lambda given: student(given, file))
        queries = file.rows_for("max_queries", asked["max_queries"])
        file = _with_prior(file, asked, queries)
        if isinstance(choice, MechanismChoice):
            choice = replace(choice, prior_weight=_weight(file))
        else:
            _check_fits(choice, file)
        cap = min(queries, file.rows_for("max_answers", asked.get("max_answers")))
        yield Request(file, choice, queries, cap, asked["delta"], engine)


def _check_fits(mechanism: Mechanism, file: VoteFile) -> None:
    """ParameterError for a mechanism that was built for other votes."""
    shape = {"teachers": file.teachers, "classes": file.classes, "prior_weight": _weight(file)}
    if file.facts.groups:
        shape["teachers_per_record"] = max(group.votes_per_record for group in file.facts.groups)
        shape["votes_together"] = mechanism.votes_together and file.votes_together
    for name, value in shape.items():
        if getattr(mechanism, name) != value:
            raise ParameterError(
                f"the mechanism is for {name} {getattr(mechanism, name)}, the votes for {value}"
            )


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


def mechanism_of(asked: Mapping[str, Any]) -> Mechanism | MechanismChoice:
    """Return a mechanism that is given, or the one of a name as `chosen` has it.

    UsageError for a parameter beside a mechanism that is given, which settles it.
    """
    mechanism = asked["mechanism"]
    if not isinstance(mechanism, Mechanism | MechanismChoice):
        return chosen(mechanism, asked)
    for name in _parameters(asked):
        raise UsageError(f"{name} is settled by the mechanism that is given")
    if asked["teachers_per_record"] not in (1, mechanism.teachers_per_record):
        raise UsageError("teachers_per_record is settled by the mechanism that is given")
    return mechanism


def chosen(name: MechanismName | str, asked: Mapping[str, Any]) -> MechanismChoice:
    """Return the mechanism of a name with the parameters that are given; others have defaults."""
    return MechanismChoice(MechanismName(name), _parameters(asked), asked["teachers_per_record"])


def _parameters(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of mechanisms that are given."""
    return {name: asked[name] for name in PARAMETERS if asked.get(name) is not None}


def _with_prior(file: VoteFile, asked: Mapping[str, Any], queries: int) -> VoteFile:
    """Return the votes with those of a prior, if one is given."""
    prior, weight = asked["prior"], asked["prior_weight"]
    if prior is None:
        return file
    votes = prior_votes(PRIOR_SHARE if weight is None else weight, file.teachers)
    return with_votes_of_prior(file, prior, votes).guessed(queries)


def prior_votes(weight: Amount | float | str, teachers: int) -> int:
    """Return how many votes a guess has: a number of them, or a share of the teachers, rounded.

    ParameterError for what is no whole number of votes.
    """
    given = Amount.of("prior_weight", weight)
    votes = given.votes(teachers)
    if given.share:
        votes = float(round(votes))
    if not 0.0 <= votes < _MOST_PRIOR or votes != int(votes):
        raise ParameterError(
            f"`prior_weight` must be a whole number of votes, at least 0, got {votes:g}"
        )
    return int(votes)


def _weight(file: VoteFile) -> int:
    """Return how many votes a guess of the prior has; 0 without one."""
    return 0 if file.facts.prior is None else file.facts.prior.weight


def among_groups(choice: MechanismChoice, groups: Sequence[Group]) -> MechanismChoice:
    """Return a mechanism for teachers in groups, which say how many votes one record moves."""
    if not groups:
        return choice
    if choice.teachers_per_record != 1:
        raise UsageError("`teachers_per_record` does not go with `groups`, which say it themselves")
    return replace(
        choice,
        teachers_per_record=max(group.votes_per_record for group in groups),
        votes_together=all(group.teachers_per_record == 1 for group in groups),
    )


def published(name: Analysis | str) -> PublishedAnalysis | None:
    """Return the published analysis where a name asks for it, loaded for that; else None."""
    if Analysis(name) is Analysis.TIGHT:
        return None
    from pate_cli.paper.analysis import PublishedAnalysis

    return PublishedAnalysis()
