"""What is known before the first vote, and what is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from pate_cli.core.checks import at_least_one, check_delta, check_scale
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.words import DELTA, MechanismName
from pate_cli.mechanisms.amounts import Amount
from pate_cli.planning.ensembles import PRIOR_ACCURACY, Agreement, Ensembles
from pate_cli.planning.rule import MOST_ROWS

Unknown = Literal["teachers", "epsilon", "answers"]
_KNOWN: Final = (MechanismName.CONFIDENT, MechanismName.GNMAX)


@dataclass(frozen=True)
class Question:
    """Public facts about a run that is planned; of teachers, ε and answers one may be left out.

    Attributes:
        classes: m ≥ 2, of each label.
        teachers: τ ≥ 1; None to be found.
        epsilon: target ε > 0, nats; None to be found.
        answers: answers wanted, ≥ 1; None to be found. With all three given it is asked whether
            they go together.
        queries: how many queries there are to ask; None for as many as it takes.
        labels: of a query; each is asked as a row of two classes.
        delta: δ in (0, 1).
        range: how often a teacher is right on average; None where nothing is known.
        weights: votes of each teacher; none where each has one.
        teachers_per_record: k, the most votes of a row that one record moves.
        prior_weight: B of a public prior, in votes or as a share of the teachers; None without one.
        prior_accuracy: how often the prior is right, in [0, 1].
        mechanism: confident, or gnmax, which answers every row.
    """

    classes: int
    teachers: int | None = None
    epsilon: float | None = None
    answers: int | None = None
    queries: int | None = None
    labels: int = 1
    delta: float = DELTA
    range: Agreement | None = None
    weights: tuple[int, ...] = ()
    teachers_per_record: int = 1
    prior_weight: Amount | None = None
    prior_accuracy: float = PRIOR_ACCURACY
    mechanism: MechanismName = MechanismName.CONFIDENT

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if self.epsilon is not None:
            check_scale("`target_epsilon`", self.epsilon)
        sizes = {"teachers": self.teachers, "answers": self.answers, "queries": self.queries}
        given = {name: size for name, size in sizes.items() if size is not None}
        at_least_one(**given, labels=self.labels, teachers_per_record=self.teachers_per_record)
        if self.classes < 2:
            raise ParameterError(f"`classes` must be at least 2, got {self.classes}")
        if self.labels > 1 and self.classes != 2:
            raise UsageError("several `labels` are yes or no each; leave out `classes`")
        if self.mechanism not in _KNOWN:
            raise UsageError(f"a plan is for {' or '.join(_KNOWN)}, got {self.mechanism}")
        missing = [name for name in ("teachers", "epsilon", "answers") if self._open(name)]
        if len(missing) > 1:
            flags = {"epsilon": "target_epsilon"}
            names = " and ".join(f"`{flags.get(name, name)}`" for name in missing)
            raise UsageError(f"{names} are left out; a plan finds one of them")
        if self.answers is not None and self.answers > self.rows:
            raise UsageError(f"{self.answers} answers are wanted, of {self.rows} rows")
        if not 0.0 <= self.prior_accuracy <= 1.0:
            raise ParameterError(f"`prior_accuracy` must be in [0, 1], got {self.prior_accuracy:g}")

    def _open(self, name: str) -> bool:
        return getattr(self, name) is None

    @property
    def agreement(self) -> Agreement:
        """How often a teacher is right on average."""
        return self.range or Agreement.unknown(self.classes)

    @property
    def unknown(self) -> Unknown:
        """What is to be found; answers where everything is given."""
        if self.teachers is None:
            return "teachers"
        return "epsilon" if self.epsilon is None else "answers"

    @property
    def rows(self) -> int:
        """How many rows there are to ask."""
        if self.queries is None:
            return MOST_ROWS // self.labels * self.labels
        return self.queries * self.labels

    def known(self, **found: Any) -> Question:
        """The same with what was found."""
        return replace(self, **found)

    def ensembles(self) -> Ensembles:
        """Made-up teachers of this shape; `teachers` must be known."""
        if self.teachers is None:
            raise TypeError("the number of teachers is not known")
        return Ensembles.made_up(
            teachers=self.teachers,
            classes=self.classes,
            agreement=self.agreement,
            weights=self.weights,
            teachers_per_record=self.teachers_per_record,
            prior_weight=self.prior_votes,
            prior_accuracy=self.prior_accuracy,
        )

    @property
    def prior_votes(self) -> int:
        """B; 0 without a prior, or before the teachers are known."""
        if self.prior_weight is None or self.teachers is None:
            return 0
        return round(self.prior_weight.votes(self.teachers))

    def facts(self) -> dict[str, Any]:
        """In plain numbers, what was left out as None."""
        return {
            "mechanism": self.mechanism.value,
            "teachers": self.teachers,
            "classes": self.classes,
            "labels": self.labels,
            "queries": self.queries,
            "answers": self.answers,
            "target_epsilon": self.epsilon,
            "delta": self.delta,
            "agreement": [self.agreement.low, self.agreement.high],
            "teachers_per_record": self.teachers_per_record,
            "prior_accuracy": None if self.prior_weight is None else self.prior_accuracy,
        }
