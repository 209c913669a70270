"""The mechanisms by name; the module of a mechanism is imported when it is used.

A `MechanismChoice` holds parameters as users write them. Numbers of votes among them may be 200,
80% of the teachers, or 0.8 votes.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pate_cli.core.errors import LedgerError, ParameterError, UsageError, quoted
from pate_cli.core.words import MechanismName

if TYPE_CHECKING:
    from pate_cli.mechanisms.base import Mechanism, ScoredMechanism

_Kind = TypeVar("_Kind", bound="Mechanism")

CLASSES: Final = {
    MechanismName.CONFIDENT: "confident.ConfidentGNMax",
    MechanismName.INTERACTIVE: "interactive.InteractiveGNMax",
    MechanismName.GNMAX: "gnmax.GNMax",
    MechanismName.LNMAX: "lnmax.LNMax",
    MechanismName.STABILITY: "stability.Stability",
    MechanismName.SPARSE_VECTOR: "sparse_vector.SparseVector",
    MechanismName.OPEN_VOCABULARY: "open_vocabulary.OpenVocabulary",
}
"""The module and the class of every mechanism."""


def mechanism_class(name: MechanismName) -> type[Mechanism]:
    """Return the class of a mechanism."""
    module, _, attribute = CLASSES[name].partition(".")
    found: type[Mechanism] = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
    return found


RULED: Final[Mapping[MechanismName, tuple[str, ...]]] = {
    MechanismName.CONFIDENT: ("threshold", "sigma1", "sigma2"),
    MechanismName.GNMAX: ("sigma2",),
}
"""The parameters of mechanisms that the public rule of a target chooses (`planning.rule`)."""


AMOUNTS: Final = ("threshold", "sigma1", "sigma2", "laplace_scale")
"""The parameters of mechanisms that are numbers of votes."""

_SPELLED: Final = re.compile(r"\s*(\S+?)\s*(%|votes?)?\s*")


@dataclass(frozen=True)
class Amount:
    """A number of votes, or a share of the teachers.

    Attributes:
        value: a number of votes, or a share in which 1 means all teachers.
        share: whether `value` is a share.
    """

    value: float
    share: bool = False

    @classmethod
    def of(cls, name: str, given: object) -> Amount:
        """Read the value of the parameter `name`: a number, or a text that may have a unit.

        Raises:
            ParameterError: the value is not a number, or it is between 0 and 1 and has no unit.
                A number between 0 and 1 without a unit is an error, because it could be a share.
                Read as votes, the number would mean almost no noise, or no threshold.
        """
        if isinstance(given, Amount):
            return given
        value, unit = _split(given)
        if value is None:
            raise ParameterError(
                f"`{name}` must be a number of votes, or a share of the teachers such as 80%, got "
                f"{quoted(given)}"
            )
        if unit is None and 0.0 < value < 1.0:
            raise ParameterError(
                f"`{name}` {value:g} is {value:g} votes, or {100 * value:g}% of the teachers? "
                f"Write {100 * value:g}%, or '{value:g} votes'"
            )
        return cls(value / 100.0, share=True) if unit == "%" else cls(value)

    def votes(self, teachers: int) -> float:
        """Return the amount in votes; a share of this many teachers is rounded to 12 digits."""
        if not self.share or not math.isfinite(self.value):
            return self.value
        return float(f"{self.value * teachers:.12g}")


def in_votes(given: Mapping[str, Any], teachers: int) -> dict[str, Any]:
    """Return the parameters of a mechanism, with every number of votes as a plain number."""
    return {
        name: Amount.of(name, value).votes(teachers) if name in AMOUNTS else value
        for name, value in given.items()
    }


def _split(given: object) -> tuple[float | None, str | None]:
    """Return the number and the unit of a value such as `80%`; what is missing is None."""
    unit = None
    if isinstance(given, str):
        spelled = _SPELLED.fullmatch(given)
        given, unit = spelled.groups() if spelled else (given, None)
    with contextlib.suppress(ValueError, OverflowError):
        if isinstance(given, str | Real) and not isinstance(given, bool):
            return float(given), unit
    return None, unit


@dataclass(frozen=True)
class MechanismChoice:
    """The name of a mechanism and some of its parameters; all other parameters have defaults.

    Default values depend on the number of teachers.

    Attributes:
        name: the name of the mechanism.
        given: given parameters by their field names; a number of votes may also be a share such as
            `80%`.
        teachers_per_record: k, how many teachers one record may have trained.
        votes_together, prior_weight: see Mechanism.

    Raises:
        UsageError: `given` has a parameter that the mechanism does not have.
        ParameterError: a text is not a number of votes, or a number between 0 and 1 could mean a
            share.
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
                    f"`{parameter}` cannot be used with `mechanism` {self.name}, which takes "
                    f"{', '.join(f'`{name}`' for name in known)}"
                )
            if parameter in AMOUNTS:
                Amount.of(parameter, value)

    def build(
        self,
        *,
        teachers: int,
        classes: int,
        queries: int,
        delta: float,
        voters: int | None = None,
    ) -> Mechanism:
        """Return the mechanism for a run with these numbers of teachers, classes and queries.

        The default values of parameters that are not given depend on `voters`, the number of
        teachers who vote on a query. If `voters` is None, all teachers vote on every query.

        Raises:
            ParameterError: a number is out of range.
        """
        from pate_cli.mechanisms.base import RunShape

        kind, given = mechanism_class(self.name), in_votes(self.given, teachers)
        run = RunShape(voters or teachers, queries, delta, self.teachers_per_record)
        return kind(
            teachers,
            classes,
            teachers_per_record=self.teachers_per_record,
            votes_together=self.votes_together,
            prior_weight=self.prior_weight,
            **{**kind.defaults(run, given), **given},
        )

    def with_student(self, read: Callable[[Any], Any]) -> MechanismChoice:
        """Return the choice with `read(predictions)` in place of the student's predictions.

        If no predictions are given, the choice does not change.
        """
        if "predictions" not in self.given:
            return self
        return replace(self, given={**self.given, "predictions": read(self.given["predictions"])})

    @property
    def left_open(self) -> tuple[str, ...]:
        """Return the names of missing parameters that pate can choose if a run has a tested target.

        pate then chooses the threshold and the noise of `confident`, and the noise of `gnmax`, by a
        public rule.
        """
        names = RULED.get(self.name, ())
        return tuple(name for name in names if name not in self.given)

    @property
    def takes_prior(self) -> bool:
        """Return whether the mechanism allows a public prior."""
        return mechanism_class(self.name).takes_prior

    @property
    def listed(self) -> bool:
        """Return whether the mechanism needs a list of the classes."""
        return mechanism_class(self.name).listed

    @property
    def composed(self) -> bool:
        """Return whether the cost is a composition of (ε, δ) pairs, without an RDP cost."""
        from pate_cli.mechanisms.base import ComposedMechanism

        return issubclass(mechanism_class(self.name), ComposedMechanism)

    def takes(self, classes: int) -> bool:
        """Return whether the mechanism can run with this many classes and the given parameters.

        For a mechanism without a list of classes (`open-vocabulary`), the result is always False.
        """
        kind = mechanism_class(self.name)
        complete = set(kind.required) <= set(self.given)
        return complete and kind.listed and classes <= kind.most_classes

    def affording(self, refusals: int) -> MechanismChoice:
        """Return the choice with this value of `refusals`, if its mechanism has this parameter.

        `refusals` is the number of unanswered queries after which the mechanism stops.
        """
        if "refusals" not in mechanism_class(self.name).options():
            return self
        return replace(self, given={**self.given, "refusals": refusals})

    def among(self, name: MechanismName) -> MechanismChoice:
        """Return a choice of the mechanism `name`; it keeps given parameters that `name` has."""
        known = mechanism_class(name).options()
        kept = {key: value for key, value in self.given.items() if key in known}
        weight = self.prior_weight if mechanism_class(name).takes_prior else 0
        return replace(self, name=name, given=kept, prior_weight=weight)


def mechanism_from_parameters(parameters: Mapping[str, Any]) -> Mechanism:
    """Build a mechanism from a dictionary of its parameters, as `Mechanism.parameters` returns it.

    Raises:
        LedgerError: the name is unknown, a field is missing or unknown, or a number is out of
            range.
    """
    from pate_cli.mechanisms.base import Mechanism

    return _built(parameters, Mechanism)  # type: ignore[type-abstract]  # for its subclasses


def scored_from_parameters(parameters: Mapping[str, Any]) -> ScoredMechanism:
    """Return the mechanism with these parameters; raise LedgerError if it has no RDP cost."""
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
        raise LedgerError(f"mechanism {name!r} has wrong parameters: {error}") from None
