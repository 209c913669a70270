"""Opening of a session: what is fixed before its first query, by which it is found again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sized
from dataclasses import dataclass, replace
from typing import Any, Final

from pate_cli.core.checks import MOST_CLASSES, check_whole
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.noise import RunKey
from pate_cli.core.stamps import now
from pate_cli.core.words import MechanismName
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.runs import Run
from pate_cli.disclosure.settings import Settings
from pate_cli.disclosure.stopping import stop_rule
from pate_cli.files.document import encoded
from pate_cli.mechanisms import MechanismChoice, mechanism_class
from pate_cli.mechanisms.base import Mechanism, ScoredMechanism
from pate_cli.verbs.promise import refuse_dear, run_of
from pate_cli.verbs.request import among_groups, chosen, prior_votes
from pate_cli.votes.ballot import BallotReader
from pate_cli.votes.facts import PriorFacts
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
        settings: what it is told, but for the rule that ends it.
        epsilon: the target, nats; None where there is none.
        max_queries: the most queries; None where the target decides.
    """

    ballots: BallotReader
    mechanism: Mechanism
    settings: Settings
    epsilon: float | None
    max_queries: int | None

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> Opening:
        """Return what keywords open, `asked` as `Session` takes them.

        Raises:
            PateError: they contradict each other, or open nothing that goes query by query.
        """
        name, delta = MechanismName(asked["mechanism"]), asked["delta"]
        ballots, weight = _ballots(name, asked), asked["prior_weight"]
        groups = () if ballots.groups is None else ballots.groups.public
        weight = 0 if weight is None else prior_votes(weight, ballots.teachers)
        choice = replace(among_groups(chosen(name, asked), groups), prior_weight=weight)
        epsilon, most = asked["target_epsilon"], asked["max_queries"]
        mechanism = _built(choice, ballots, epsilon, most, delta)
        settings = Settings(
            mechanism=mechanism.parameters(),
            queries=0,
            max_answers=0,
            private=asked["seed"] is None,
            delta=delta,
            analysis="tight" if isinstance(mechanism, ScoredMechanism) else "composition",
            groups=groups,
            prior=PriorFacts(weight, 0, hashlib.sha256().hexdigest()) if weight else None,
        )
        return cls(ballots, mechanism, settings, epsilon, most)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Return what the classes are called; none of them where nobody listed the names."""
        return None if self.ballots.names is None else tuple(self.ballots.names.names)

    def run(self, key: RunKey, *, max_epsilon: float | None) -> Run:
        """Return the session as a record has it before anything is asked.

        Raises:
            UnreachableError: not one query is paid for, or all cost more than `max_epsilon`.
            CeilingError: all of them promise practically nothing, and nobody asked for it so.
        """
        delta = self.settings.delta
        rule = stop_rule(self.mechanism, epsilon=self.epsilon, delta=delta, asks=self.max_queries)
        settings = replace(self.settings, rule=rule)
        refuse_dear(settings, max_epsilon)
        return run_of(settings, key, now(), session=self.digest)

    def found_in(self, record: SpendRecord) -> Run | None:
        """Return the session in a record that was opened with the same; None for none."""
        return next((run for run in record.runs if run.session == self.digest), None)

    @property
    def digest(self) -> str:
        """SHA-256 of all that was said, and of what texts mean: with other names it is another."""
        names = self.ballots.names
        texts = names and [list(names.names), names.normalise, dict(names.aliases)]
        said = [encoded(self.settings), self.epsilon, self.max_queries, texts]
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


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
    count = said if known is None else len(known)
    if count is None:
        raise UsageError(f"say `{name}`, how many there are, or `{where}`")
    if said not in (None, count):
        raise ParameterError(f"`{name}` is {said}, but `{where}` has {count}")
    return check_whole(f"`{name}`", count)


def _built(
    choice: MechanismChoice,
    ballots: BallotReader,
    epsilon: float | None,
    queries: int | None,
    delta: float,
) -> Mechanism:
    """Return the mechanism; δ of one query follows from how many there may be."""
    classes, given = ballots.classes, choice.given
    if classes is not None and choice.composed and not (queries or "query_delta" in given):
        raise UsageError(f"{choice.name} divides delta among queries: say `max_queries`")
    if classes is None and not (queries or "threshold" in given) and epsilon is not None:
        # As many as there would be if names took half of delta, which they do then.
        listed, half = replace(ballots, classes=3), delta / 2.0
        closed = _built(choice.among(MechanismName.GNMAX), listed, epsilon, 1, half)
        queries = stop_rule(closed, epsilon=epsilon, delta=half).asks
    shape = {"teachers": ballots.teachers, "classes": classes or MOST_CLASSES}
    return choice.build(**shape, queries=queries or 1, delta=delta)
