"""Opening of a session: what is fixed before its first query, by which it is found again."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sized
from dataclasses import dataclass, replace
from typing import Any, Final

from pate_cli.core.checks import MOST_CLASSES, check_whole
from pate_cli.core.clock import now
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.noise import RunKey
from pate_cli.core.words import MechanismName
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.runs import Run, SessionSettings
from pate_cli.disclosure.settings import Settings, StopRule
from pate_cli.disclosure.stopping import stop_rule
from pate_cli.mechanisms import MechanismChoice, mechanism_class
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism, ScoredMechanism
from pate_cli.verbs.limits import refuse_cost
from pate_cli.verbs.request import among_groups, chosen, prior_votes
from pate_cli.votes.ballot import BallotReader
from pate_cli.votes.facts import Group, PriorFacts
from pate_cli.votes.join import names_of, teacher_groups
from pate_cli.votes.names import ClassNames

_CHEAPER: Final = "Ask fewer, take more noise, or state a smaller `target_epsilon`"
_NOT_ONE_BY_ONE: Final = {
    MechanismName.INTERACTIVE: "its student's predictions are of all queries; give a guess as "
    "`prior`",
    MechanismName.SPARSE_VECTOR: "its noisy threshold would have to be kept; take stability",
}


@dataclass(frozen=True)
class Opening:
    """Settings of a session before anything is asked; public.

    Attributes:
        ballots: how votes are read.
        mechanism: the aggregator.
        delta: δ of all that the session says.
        private: False where the noise comes from a seed.
        until: what ends it, and what its classes are called.
    """

    ballots: BallotReader
    mechanism: ScoredMechanism | ComposedMechanism
    delta: float
    private: bool
    until: SessionSettings

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> Opening:
        """Return what keywords open, `asked` as `Session` takes them.

        Raises:
            PateError: they contradict each other, or open nothing that goes query by query.
        """
        mechanism, epsilon, delta = asked["mechanism"], asked["target_epsilon"], asked["delta"]
        ballots = _ballots(MechanismName(mechanism), asked)
        choice = among_groups(chosen(mechanism, asked), _public(ballots))
        if asked["prior_weight"] is not None:
            weight = prior_votes(asked["prior_weight"], ballots.teachers)
            choice = replace(choice, prior_weight=weight)
        built = _built(choice, ballots, asked["max_queries"], epsilon, delta)
        until = SessionSettings(
            None if epsilon is None else float(epsilon),
            asked["max_queries"],
            _digest(ballots.names),
        )
        return cls(ballots, built, delta, asked["seed"] is None, until)

    @functools.cached_property
    def names(self) -> tuple[str, ...] | None:
        """Return what the classes are called; none of them where nobody listed the names."""
        names = self.ballots.names
        if self.ballots.classes is None:
            return ()
        return None if names is None else tuple(names.names)

    def run(self, key: RunKey, *, max_epsilon: float | None) -> Run:
        """Return the session as a record has it before anything is asked.

        Raises:
            UnreachableError: not one query is paid for, or all cost more than `max_epsilon`.
            CeilingError: all of them promise practically nothing, and nobody asked for it so.
        """
        until, delta = self.until, self.delta
        rule = stop_rule(self.mechanism, epsilon=until.epsilon, delta=delta, asks=until.max_queries)
        if max_epsilon is not None or self.private:
            what = f"a session of {rule.asks} queries"
            refuse_cost(what, rule.epsilon, delta, max_epsilon, _CHEAPER)
        name = key.run_id if key.private else key.name("session")
        return Run.of(id=name, time=now(), settings=self._settings(rule), session=until)

    def found_in(self, record: SpendRecord) -> Run | None:
        """Return the session in a record that was opened with the same; None for none."""
        return next((run for run in record.runs if self._opened(run)), None)

    def _opened(self, run: Run) -> bool:
        """Return whether a run is a session that was opened with the same."""
        if run.session != self.until or run.settings is None:
            return False
        told = run.settings
        mine = (self.mechanism.parameters(), self.delta, _public(self.ballots), self.private)
        return (told.mechanism, told.delta, told.groups, told.private) == mine

    def _settings(self, rule: StopRule) -> Settings:
        """Return the settings of the session before anything is asked."""
        weight = self.mechanism.prior_weight
        return Settings(
            mechanism=self.mechanism.parameters(),
            queries=0,
            max_answers=0,
            private=self.private,
            delta=self.delta,
            analysis="tight" if isinstance(self.mechanism, ScoredMechanism) else "composition",
            groups=_public(self.ballots),
            prior=PriorFacts(weight, 0, hashlib.sha256().hexdigest()) if weight else None,
            rule=rule,
        )


def _public(ballots: BallotReader) -> tuple[Group, ...]:
    """Return the groups of the teachers, none where all count alike."""
    return () if ballots.groups is None else ballots.groups.public


def _ballots(mechanism: MechanismName, asked: Mapping[str, Any]) -> BallotReader:
    """Return how votes for a mechanism are read."""
    if mechanism in _NOT_ONE_BY_ONE:
        raise UsageError(f"{mechanism} does not go one by one: {_NOT_ONE_BY_ONE[mechanism]}")
    groups = teacher_groups(asked["groups"])
    teachers = _count("teachers", asked["teachers"], groups, "groups")
    if groups is not None:
        teachers = int(groups.total)
    given, aliases, normalise = asked["label_names"], asked["aliases"], asked["normalise"]
    if mechanism_class(mechanism).listed:
        names = names_of(given, normalise, aliases)
        known = None if names is None else names.names
        classes = _count("classes", asked["classes"], known, "label_names")
        return BallotReader(teachers, classes, names, groups)
    for name in ("classes", "label_names", "aliases"):
        if asked[name] is not None:
            raise UsageError(f"{mechanism} knows no classes; leave out `{name}`")
    return BallotReader(teachers, None, ClassNames((), normalise=normalise, listed=False), groups)


def _count(name: str, said: int | None, known: Sized | None, where: str) -> int:
    """Return how many there are, as it is said or as the keyword `where` lists them.

    Raises:
        UsageError: neither is given.
        ParameterError: the two differ, or it is no count.
    """
    if known is None:
        if said is None:
            raise UsageError(f"say `{name}`, how many there are, or `{where}`")
        return check_whole(f"`{name}`", said)
    if said not in (None, len(known)):
        raise ParameterError(f"`{name}` is {said}, but `{where}` has {len(known)}")
    return len(known)


def _built(
    choice: MechanismChoice,
    ballots: BallotReader,
    queries: int | None,
    target_epsilon: float | None,
    delta: float,
) -> ScoredMechanism | ComposedMechanism:
    """Return the mechanism; δ of one query follows from how many there may be."""
    classes, given = ballots.classes, choice.given
    if classes is not None and choice.composed and not (queries or "query_delta" in given):
        raise UsageError(f"{choice.name} divides delta among queries: say `max_queries`")
    if classes is None and not (queries or "threshold" in given) and target_epsilon is not None:
        # As many as there would be if names took half of delta, which they do then.
        half = delta / 2.0
        closed = choice.among(MechanismName.GNMAX).build(
            teachers=ballots.teachers, classes=3, queries=1, delta=half
        )
        queries = stop_rule(_charged(closed), epsilon=target_epsilon, delta=half).asks
    known = classes or MOST_CLASSES
    return _charged(
        choice.build(teachers=ballots.teachers, classes=known, queries=queries or 1, delta=delta)
    )


def _charged(mechanism: Mechanism) -> ScoredMechanism | ComposedMechanism:
    if not isinstance(mechanism, ScoredMechanism | ComposedMechanism):
        raise UsageError(f"{mechanism.name} has no cost that a session could stop at")
    return mechanism


def _digest(names: ClassNames | None) -> str | None:
    """Return SHA-256 of what texts mean: under other names a session would be another."""
    if names is None or not names.listed:
        return None
    said = [list(names.names), names.normalise, dict(names.aliases)]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
