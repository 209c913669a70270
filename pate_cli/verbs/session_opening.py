"""Opening of a session: what is fixed before its first query, by which it is found again."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pate_cli.core.checks import MOST_CLASSES, check_delta, check_whole
from pate_cli.core.clock import now
from pate_cli.core.errors import CeilingError, ParameterError, UnreachableError, UsageError
from pate_cli.core.noise import RunKey
from pate_cli.core.words import CEILING, MechanismName
from pate_cli.disclosure.figures import nats
from pate_cli.disclosure.record import Run, SessionAsks, SessionSettings, SpendRecord
from pate_cli.disclosure.settings import Settings, StopRule
from pate_cli.disclosure.stopping import stop_rule
from pate_cli.mechanisms import MechanismChoice, mechanism_class
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism, ScoredMechanism
from pate_cli.verbs.request import among_groups, mechanism_of, prior_votes
from pate_cli.votes.ballot import BallotReader
from pate_cli.votes.facts import Group
from pate_cli.votes.groups import TeacherGroups
from pate_cli.votes.join import names_of, teacher_groups
from pate_cli.votes.names import ClassNames

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
    def of(cls, asked: Mapping[str, Any], *, private: bool) -> Opening:
        """Return what keywords open, `asked` as `Session` takes them.

        Raises:
            PateError: they contradict each other, or open nothing that goes query by query.
        """
        mechanism, prior_weight = asked["mechanism"], asked["prior_weight"]
        target_epsilon, max_queries = asked["target_epsilon"], asked["max_queries"]
        delta = check_delta(asked["delta"])
        ballots = _ballots(MechanismName(mechanism), asked)
        choice = among_groups(mechanism_of(mechanism, asked), _public(ballots))
        if prior_weight is not None:
            weight = prior_votes(prior_weight, ballots.teachers)
            choice = replace(choice, prior_weight=weight)
        built = _built(choice, ballots, max_queries, target_epsilon, delta)
        epsilon = None if target_epsilon is None else float(target_epsilon)
        until = SessionSettings(epsilon, max_queries, _digest(ballots.names))
        return cls(ballots, built, delta, private, until)

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
        until = self.until
        rule = stop_rule(
            self.mechanism, epsilon=until.epsilon, delta=self.delta, asks=until.max_queries
        )
        _refuse_dear(rule, max_epsilon, private=self.private)
        name = key.run_id if key.private else key.name("session")
        settings = self.settings(rule, SessionAsks())
        return Run.of(settings, id=name, time=now(), session=until)

    def found_in(self, record: SpendRecord) -> Run | None:
        """Return the session in a record that was opened with the same; None for none."""
        mine = (
            self.until,
            self.mechanism.parameters(),
            self.delta,
            _public(self.ballots),
            self.private,
        )
        return next((run for run in record.runs if run.opened_with == mine), None)

    def settings(self, rule: StopRule, asks: SessionAsks) -> Settings:
        """Return the settings of all that was asked so far."""
        facts = self.mechanism.parameters()
        return Settings(
            mechanism=facts,
            queries=asks.asked,
            max_answers=asks.asked,
            private=self.private,
            delta=self.delta,
            analysis="tight" if isinstance(self.mechanism, ScoredMechanism) else "composition",
            groups=_public(self.ballots),
            prior=asks.prior(facts),
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
    teachers = _teachers(asked["teachers"], groups)
    given, aliases, normalise = asked["label_names"], asked["aliases"], asked["normalise"]
    if mechanism_class(mechanism).listed:
        names = names_of(given, normalise=normalise, aliases=aliases)
        return BallotReader(teachers, _classes(asked["classes"], names), names, groups)
    if asked["classes"] is not None or given is not None:
        raise UsageError(f"{mechanism} knows no classes; leave out `classes` and `label_names`")
    if aliases is not None:
        raise UsageError(f"{mechanism} knows no names that `aliases` could stand for")
    return BallotReader(teachers, None, ClassNames((), normalise=normalise, listed=False), groups)


def _teachers(teachers: int | None, groups: TeacherGroups | None) -> int:
    if groups is None:
        return check_whole("`teachers`", 0 if teachers is None else teachers)
    if teachers not in (None, len(groups)):
        raise ParameterError(f"`teachers` is {teachers}, but `groups` has {len(groups)} teachers")
    return int(groups.total)


def _classes(classes: int | None, names: ClassNames | None) -> int:
    if names is not None:
        if classes not in (None, len(names.names)):
            raise ParameterError(
                f"`classes` {classes} is not the number of `label_names`, {len(names.names)}"
            )
        return len(names.names)
    if classes is None:
        raise UsageError("say `classes`, how many there are, or `label_names`")
    return check_whole("`classes`", classes)


def _built(
    choice: MechanismChoice,
    ballots: BallotReader,
    queries: int | None,
    target_epsilon: float | None,
    delta: float,
) -> ScoredMechanism | ComposedMechanism:
    """Return the mechanism; δ of one query follows from how many there may be."""
    teachers, classes, given = ballots.teachers, ballots.classes, choice.given
    if classes is not None and choice.composed and not (queries or "query_delta" in given):
        raise UsageError(f"{choice.name} divides delta among queries: say `max_queries`")
    if classes is None and not (queries or "threshold" in given) and target_epsilon is not None:
        # As many as there would be if names took half of delta, which they do then.
        like, half = choice.among(MechanismName.GNMAX), delta / 2.0
        closed = like.build(teachers=teachers, classes=3, queries=1, delta=half)
        queries = stop_rule(_charged(closed), epsilon=target_epsilon, delta=half).asks
    return _charged(
        choice.build(
            teachers=teachers, classes=classes or MOST_CLASSES, queries=queries or 1, delta=delta
        )
    )


def _charged(mechanism: Mechanism) -> ScoredMechanism | ComposedMechanism:
    if not isinstance(mechanism, ScoredMechanism | ComposedMechanism):
        raise UsageError(f"{mechanism.name} has no cost that a session could stop at")
    return mechanism


def _refuse_dear(rule: StopRule, max_epsilon: float | None, *, private: bool) -> None:
    named = nats(rule.epsilon)
    price = f"{rule.asks} queries cost epsilon {named}"
    if max_epsilon is not None and rule.epsilon > max_epsilon:
        raise UnreachableError(
            f"{price}, above `max_epsilon` {max_epsilon:g}; ask fewer, take more noise, or state "
            "a smaller `target_epsilon`"
        )
    if max_epsilon is None and private and rule.epsilon > CEILING:
        raise CeilingError(
            f"{price}, and above {CEILING:g} practically nothing is promised; ask fewer, take more "
            "noise, or state a smaller `target_epsilon`. To have it all the same, ask for it by "
            f"name: `max_epsilon` {named}",
            epsilon=float(named),
        )


def _digest(names: ClassNames | None) -> str | None:
    """Return SHA-256 of what texts mean: under other names a session would be another."""
    if names is None or not names.listed:
        return None
    said = [list(names.names), names.normalise, dict(names.aliases)]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
