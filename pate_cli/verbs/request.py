"""A request: an open vote file, the mechanism that labels its rows, and public numbers of a run."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pate_cli.accounting.few_votes import Few
from pate_cli.core import __version__
from pate_cli.core.errors import ParameterError, UnreachableError, UsageError
from pate_cli.core.words import PRIOR_SHARE, Analysis, MechanismName
from pate_cli.disclosure.settings import Settings
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms import Amount, MechanismChoice, in_votes
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
# If all votes agree, answers must be right more often than random guesses, by this share of the
# largest possible difference.
_LEAST_GAIN: Final = 1.0 / 3.0
_MOST_PRIOR: Final = 2.0**31


@dataclass(frozen=True)
class Request:
    """An open vote file, the mechanism that labels its rows, and the public numbers of a run.

    Attributes:
        file: the votes of the teachers; if there is a prior, its guesses are added as votes.
        choice: the mechanism, or the name of a mechanism with some parameters.
        queries: how many rows are asked; the first rows of the file are asked.
        max_answers: the public cap on answers, at most `queries`.
        delta: δ of the run.
        engine: where rows are read and labelled: in this process, in other processes, or on a
            cluster.
    """

    file: VoteFile
    choice: Mechanism | MechanismChoice
    queries: int
    max_answers: int
    delta: float
    engine: Engine = here

    @functools.cached_property
    def mechanism(self) -> Mechanism:
        """Return the mechanism with the teachers, classes, queries and δ of this run."""
        if not isinstance(self.choice, MechanismChoice):
            return self.choice
        teachers, voting = self.file.teachers, self.file.facts.voting
        every = self.file.queries // self.file.rows_per_query
        return among_groups(self.choice, self.file.facts.groups).build(
            teachers=teachers,
            classes=self.file.classes,
            queries=self.queries,
            delta=self.delta,
            voters=None if voting is None else voting.on_each(teachers, every),
        )

    @property
    def composed(self) -> str | None:
        """Return the mechanism's name if the mechanism has no RDP cost; otherwise None."""
        mechanism = self.mechanism
        return mechanism.name if isinstance(mechanism, ComposedMechanism) else None

    @property
    def scored(self) -> ScoredMechanism:
        """Return the mechanism; raise UsageError if it has no RDP cost."""
        if not isinstance(self.mechanism, ScoredMechanism):
            raise UsageError(
                f"{self.mechanism.name} has no RDP costs, which are needed here; give another "
                f"`mechanism`. pate aggregate --dry-run prints the epsilon of {self.mechanism.name}"
            )
        return self.mechanism

    def few(self, analysis: Analysis | str = Analysis.TIGHT) -> Few:
        """Return the limit on the rows that one teacher votes on; None if there is no limit.

        Raises:
            ParameterError: no privacy proof covers `votes_per_teacher` with this mechanism, these
                groups or this analysis.
        """
        if self.file.facts.voting is None:
            return None
        return self.settings(analysis, private=True).few

    def settings(self, analysis: Analysis | str, **beside: Any) -> Settings:
        """Return the settings of a run; `beside` has settings that the request does not have."""
        return Settings(
            mechanism=self.mechanism.parameters(),
            queries=self.queries,
            max_answers=self.max_answers,
            delta=self.delta,
            analysis="composition" if self.composed else Analysis(analysis).value,
            **self.file.facts.of_round,
            **beside,
        )

    def under(self, choice: MechanismChoice) -> Request:
        """Return this request with another mechanism, and no prior if that mechanism takes none."""
        file = self.file if choice.takes_prior else self.file.without_prior
        choice = replace(choice, prior_weight=_weight(file))
        return replace(self, file=file, choice=choice)

    def by_rule(self, plan: TargetPlan, *, rows_given: bool) -> Request:
        """Return the request with the settings that the user left open, chosen by a public rule.

        The public rule also chooses the number of rows, unless `rows_given` is True. If a query has
        several rows, one for each label, a run asks all or none of the rows of a query. The public
        rule cannot choose settings for teachers who vote on few queries, so a request with
        `votes_per_teacher` is returned unchanged.

        Raises:
            UsageError: the user gave `votes_per_teacher`, but not all settings that the public
                rule would choose.
        """
        from pate_cli.planning.rule import SEARCHED_ROWS, choose, public_goal, rows_for
        from pate_cli.planning.vote_model import like

        asked = self.queries if rows_given else None
        rows, choice = self.queries, self.choice
        left_open = choice.left_open if isinstance(choice, MechanismChoice) else ()
        if self.file.facts.voting is not None:
            if left_open:
                names = " and ".join(f"`{name}`" for name in left_open)
                raise UsageError(
                    "with `votes_per_teacher` and a target, pate cannot choose all settings; "
                    f"give {names}"
                )
            return self
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
        """Return the rows that the run asks, which `engine` will read."""
        return AskedRows(self.file, self.queries, self.engine)

    def described(self, settings: Settings, *beside: Any) -> str:
        """Return a hash of everything that determines the result of a run, including its votes.

        Read all rows before you call this method, because the hash includes a digest of the rows.

        Args:
            settings: the settings of the run.
            beside: other values that the run depends on, such as its seed and its record.
        """
        mechanism, names = self.mechanism, self.file.names
        named = names and (names.names, names.normalise, sorted(names.aliases.items()))
        private = [pickle.dumps(getattr(mechanism, name)) for name in mechanism.private_inputs()]
        content = (__version__, settings, private, self.file.facts, named, beside, self.rows.digest)
        return hashlib.blake2b(repr(content).encode(), digest_size=16).hexdigest()


def reading(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return those keywords that decide how votes are read and are neither None nor False."""
    whose = ("groups", "votes_per_teacher", "assigned")
    told = {name: value for name, value in asked.items() if name in whose or of_votes(name)}
    return {name: value for name, value in told.items() if value is not None and value is not False}


@contextlib.contextmanager
def requested(asked: Mapping[str, Any]) -> Iterator[Request]:
    """Open the votes that the caller gave, and yield the request for a run on them.

    `asked` maps each parameter of a public function that reads votes, such as `signatures.cost`, to
    its value.

    If classes have names and no vote in a file is one of these names, the file is refused at once.

    Raises:
        PateError: the votes cannot be read, the mechanism was built for other votes, or a number is
            out of range.
    """
    votes, choice = asked["votes"], mechanism_of(asked)
    # The names of classes in an open vote file were checked when it was opened.
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
        if asked["prior"] is not None:
            weight = PRIOR_SHARE if asked["prior_weight"] is None else asked["prior_weight"]
            votes = prior_votes(weight, file.teachers)
            file = with_votes_of_prior(file, asked["prior"], votes).guessed(queries)
        if isinstance(choice, MechanismChoice):
            choice = replace(choice, prior_weight=_weight(file))
        else:
            _check_fits(choice, file)
        cap = min(queries, file.rows_for("max_answers", asked.get("max_answers")))
        yield Request(file, choice, queries, cap, asked["delta"], engine)


def _check_fits(mechanism: Mechanism, file: VoteFile) -> None:
    """Raise ParameterError if `mechanism` was built for other votes than the votes of `file`."""
    shape = {"teachers": file.teachers, "classes": file.classes, "prior_weight": _weight(file)}
    if file.facts.groups:
        shape["teachers_per_record"] = max(group.votes_per_record for group in file.facts.groups)
        shape["votes_together"] = mechanism.votes_together and file.votes_together
    for name, value in shape.items():
        if getattr(mechanism, name) != value:
            raise ParameterError(
                f"the mechanism object has `{name}` {getattr(mechanism, name)}, but the votes have "
                f"{value}; give a mechanism object that was built for these votes"
            )


def _refuse_useless(mechanism: ScoredMechanism, plan: TargetPlan) -> None:
    """Raise UnreachableError if labels of unanimous teachers are little better than guesses."""
    _, right = mechanism.unanimous()
    if right - 1.0 / mechanism.classes >= _LEAST_GAIN * (1.0 - 1.0 / mechanism.classes):
        return
    raise UnreachableError(
        f"a target of {plan.epsilon:g} needs so much noise that an answer is right with "
        f"probability {right:.2f} even if all votes agree; nothing was drawn or spent. Take a "
        "larger `target_epsilon`. A run whose settings you give yourself is not refused"
    )


def mechanism_of(asked: Mapping[str, Any]) -> Mechanism | MechanismChoice:
    """Return the mechanism object in `asked`, or the mechanism that its name and parameters choose.

    Raises:
        UsageError: a parameter is given beside a mechanism object, which already has it.
    """
    mechanism = asked["mechanism"]
    if not isinstance(mechanism, Mechanism | MechanismChoice):
        return chosen(mechanism, asked)
    for name in parameters_in(asked):
        raise UsageError(f"the mechanism object already has `{name}`; leave out `{name}`")
    if asked["teachers_per_record"] not in (1, mechanism.teachers_per_record):
        raise UsageError(
            "the mechanism object already has `teachers_per_record`; leave out this keyword"
        )
    return mechanism


def chosen(name: MechanismName | str, asked: Mapping[str, Any]) -> MechanismChoice:
    """Return a mechanism by its name and the given parameters; other parameters get defaults."""
    return MechanismChoice(MechanismName(name), parameters_in(asked), asked["teachers_per_record"])


def parameters_in(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords in `asked` that are parameters of mechanisms and are not None."""
    return {name: asked[name] for name in PARAMETERS if asked.get(name) is not None}


def prior_votes(weight: Amount | float | str, teachers: int) -> int:
    """Return how many votes a guess of the prior is worth; a share of the teachers is rounded.

    Raises:
        ParameterError: the weight is not a whole number of votes, or it is out of range.
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
    """Return how many votes a guess of the prior is worth; 0 without a prior."""
    return 0 if file.facts.prior is None else file.facts.prior.weight


def among_groups(choice: MechanismChoice, groups: Sequence[Group]) -> MechanismChoice:
    """Return a mechanism for teachers in groups.

    The groups decide how many votes one training record can change.
    """
    if not groups:
        return choice
    if choice.teachers_per_record != 1:
        raise UsageError("with `groups`, leave out `teachers_per_record`: each group has its own")
    return replace(
        choice,
        teachers_per_record=max(group.votes_per_record for group in groups),
        votes_together=all(group.teachers_per_record == 1 for group in groups),
    )


def published(name: Analysis | str) -> PublishedAnalysis | None:
    """Return the analysis of the 2018 paper if `name` is `paper`; None for the tight analysis."""
    if Analysis(name) is Analysis.TIGHT:
        return None
    from pate_cli.paper.analysis import PublishedAnalysis

    return PublishedAnalysis()
