"""Mechanisms by name: the one list of them. A module is imported when its mechanism is wanted."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pate_cli.core.errors import LedgerError, ParameterError, UsageError
from pate_cli.core.words import DELTA, MechanismName
from pate_cli.mechanisms.amounts import AMOUNTS, Amount, in_votes

if TYPE_CHECKING:
    from pate_cli.mechanisms.base import Mechanism, ScoredMechanism

_Kind = TypeVar("_Kind", bound="Mechanism")
# Teachers enough for any numbers that make sense.
_MANY: Final = 100_000

CLASSES: Final = {
    MechanismName.CONFIDENT: "confident.ConfidentGNMax",
    MechanismName.INTERACTIVE: "interactive.InteractiveGNMax",
    MechanismName.GNMAX: "gnmax.GNMax",
    MechanismName.LNMAX: "lnmax.LNMax",
    MechanismName.STABILITY: "stability.Stability",
    MechanismName.SPARSE_VECTOR: "sparse_vector.SparseVector",
    MechanismName.OPEN_VOCABULARY: "open_vocabulary.OpenVocabulary",
}
"""Module and class of every mechanism."""


def mechanism_class(name: MechanismName) -> type[Mechanism]:
    """The class of a mechanism."""
    module, _, attribute = CLASSES[name].partition(".")
    found: type[Mechanism] = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
    return found


RULED: Final[Mapping[MechanismName, tuple[str, ...]]] = {
    MechanismName.CONFIDENT: ("threshold", "sigma1", "sigma2"),
    MechanismName.GNMAX: ("sigma2",),
}
"""What the rule of a target settles, of the aggregators that it knows (`planning.rule`)."""


@dataclass(frozen=True)
class MechanismChoice:
    """A mechanism by name, with some of its parameters; defaults in proportion for the others.

    Attributes:
        name: which mechanism.
        given: parameters by their field names; numbers of votes also as `80%` of the teachers.
        teachers_per_record: k.
        votes_together, prior_weight: as in Mechanism.

    Raises:
        UsageError: a parameter that the mechanism does not take.
        ParameterError: no number of votes, or one that could as well be a share.
    """

    name: MechanismName
    given: Mapping[str, Any] = field(default_factory=dict)
    teachers_per_record: int = 1
    votes_together: bool = False
    prior_weight: int = 0

    def __post_init__(self) -> None:
        known = mechanism_class(self.name).options()
        for parameter, value in self.given.items():
            if parameter not in known:
                raise UsageError(
                    f"`{parameter}` does not go with `mechanism` {self.name}, which takes "
                    f"{', '.join(f'`{name}`' for name in known)}"
                )
            if parameter in AMOUNTS:
                Amount.of(parameter, value)

    def build(self, *, teachers: int, classes: int, queries: int, delta: float) -> Mechanism:
        """The mechanism for a run of this shape; ParameterError for a number out of range."""
        from pate_cli.mechanisms.base import RunShape

        kind, given = mechanism_class(self.name), in_votes(self.given, teachers)
        run = RunShape(teachers, queries, delta, self.teachers_per_record)
        return kind(
            teachers,
            classes,
            teachers_per_record=self.teachers_per_record,
            votes_together=self.votes_together,
            prior_weight=self.prior_weight,
            **{**kind.defaults(run, given), **given},
        )

    def check(self) -> None:
        """ParameterError for a number that is out of range for any votes."""
        self.build(teachers=_MANY, classes=2, queries=1, delta=DELTA)

    def with_student(self, read: Callable[[Any], Any]) -> MechanismChoice:
        """Return the choice with its student's predictions read; itself if it has no student."""
        if "predictions" not in self.given:
            return self
        return replace(self, given={**self.given, "predictions": read(self.given["predictions"])})

    @property
    def complete(self) -> bool:
        """Whether every input that has no default is given."""
        return set(mechanism_class(self.name).required) <= set(self.given)

    @property
    def left_open(self) -> tuple[str, ...]:
        """Threshold and noise that nobody gave, of the aggregators that a rule has settings for."""
        names = RULED.get(self.name, ())
        return tuple(name for name in names if name not in self.given)

    @property
    def takes_prior(self) -> bool:
        """Whether a public prior may vote, too."""
        return mechanism_class(self.name).takes_prior

    @property
    def listed(self) -> bool:
        """Whether the mechanism needs to know the classes."""
        return mechanism_class(self.name).listed

    @property
    def composed(self) -> bool:
        """Whether the cost is a composition for all votes, with nothing to sanitize or to keep."""
        from pate_cli.mechanisms.base import ComposedMechanism

        return issubclass(mechanism_class(self.name), ComposedMechanism)

    def takes(self, classes: int) -> bool:
        """Whether every input that has no default is given, and it is for so many known classes."""
        kind = mechanism_class(self.name)
        return self.complete and self.listed and classes <= kind.most_classes

    def affording(self, refusals: int) -> MechanismChoice:
        """Return the choice with so many refusals afforded, if its mechanism counts them."""
        if "refusals" not in mechanism_class(self.name).options():
            return self
        return replace(self, given={**self.given, "refusals": refusals})

    def among(self, name: MechanismName) -> MechanismChoice:
        """Another mechanism with as many of these parameters as it takes."""
        known = mechanism_class(name).options()
        kept = {key: value for key, value in self.given.items() if key in known}
        weight = self.prior_weight if mechanism_class(name).takes_prior else 0
        return replace(self, name=name, given=kept, prior_weight=weight)


def mechanism_from_parameters(parameters: Mapping[str, Any]) -> Mechanism:
    """The mechanism that `parameters()` described.

    Raises:
        LedgerError: an unknown name, a missing or foreign field, or a number out of range.
    """
    from pate_cli.mechanisms.base import Mechanism

    return _built(parameters, Mechanism)  # type: ignore[type-abstract]  # for its subclasses


def scored_from_parameters(parameters: Mapping[str, Any]) -> ScoredMechanism:
    """The mechanism with a Rényi cost that `parameters()` described; others are unknown."""
    from pate_cli.mechanisms.base import ScoredMechanism

    return _built(parameters, ScoredMechanism)  # type: ignore[type-abstract]  # as above


def _built(parameters: Mapping[str, Any], among: type[_Kind]) -> _Kind:
    fields = dict(parameters)
    name = fields.pop("name", None)
    known_name = isinstance(name, str) and name in CLASSES
    kind = mechanism_class(MechanismName(name)) if known_name else None
    if kind is None or not issubclass(kind, among):
        known = [word for word in CLASSES if issubclass(mechanism_class(word), among)]
        raise LedgerError(f"unknown mechanism {name!r}; this tool knows {', '.join(known)}")
    try:
        return kind(**fields)
    except (TypeError, ValueError, OverflowError, ParameterError) as error:
        raise LedgerError(f"mechanism {name!r} is damaged: {error}") from None
