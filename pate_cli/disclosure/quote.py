"""The quote of a run: what it would cost whatever the votes, before anything is spent; public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.crosscheck import crosscheck
from pate_cli.disclosure.facts import group_guarantees, worst_case
from pate_cli.disclosure.figures import pair
from pate_cli.disclosure.guarantee import public_prior
from pate_cli.disclosure.report import (
    SCHEMA_VERSION,
    Crosscheck,
    DataIndependent,
    GroupGuarantee,
    PublicPrior,
)
from pate_cli.disclosure.settings import Settings
from pate_cli.files.document import SPARING, encoded
from pate_cli.files.results import Result
from pate_cli.mechanisms import mechanism_from_parameters
from pate_cli.mechanisms.base import ComposedMechanism


@dataclass(frozen=True)
class Outlook:
    """Expected outcome of a run with a target, before anything is spent; public.

    Attributes:
        target, refusal_epsilon, orders: as in `Tested`.
        needed: whether the labels could cost more than the target, so that there is a release test.
        chances: how likely made-up ensembles of this shape would pass: their mean, and the worst
            and the best with what they are like; None where nothing is tested.
        expected: answers, agreement with the plurality and pass probability of made-up teachers
            who are right as often as the middle of the range; None where nothing is tested.
    """

    target: float
    refusal_epsilon: float
    orders: tuple[float, ...]
    needed: bool
    chances: Mapping[str, Any] | None
    expected: Mapping[str, float] | None = None


@dataclass(frozen=True, repr=False, kw_only=True)
class Quote(Result):
    """Worst case of a run, before anything is spent; public.

    Attributes:
        settings: what the run would be told; the file has their fields as its own.
        delta: of everything that would be released.
        sound: false where a fact that ε takes as public was read off the votes; `warnings` say
            which.
        threshold: T of a mechanism that derives it.
        prior, groups, data_independent, crosscheck: as in `Report`.
        target: what a target would mean.
        warnings: what to know before the run.
    """

    settings: Settings
    delta: float
    sound: bool = True
    threshold: float | None = field(default=None, metadata=SPARING)
    prior: PublicPrior | None = field(default=None, metadata=SPARING)
    data_independent: DataIndependent
    crosscheck: Crosscheck | None = None
    target: Outlook | None = field(default=None, metadata=SPARING)
    groups: tuple[GroupGuarantee, ...] = field(default=(), metadata=SPARING)
    warnings: tuple[str, ...] = ()

    @property
    def epsilon(self) -> float:
        """Worst-case ε of everything that would be released, nats."""
        public = self.data_independent.epsilon
        return public if self.target is None else min(public, self.target.target)

    @property
    def queries(self) -> int:
        """How many rows would be asked."""
        return self.settings.queries

    @property
    def max_answers(self) -> int:
        """How many of them would be answered at most."""
        return self.settings.max_answers

    def to_dict(self) -> dict[str, Any]:
        """Return the quote as JSON-ready values."""
        head = {"schema_version": SCHEMA_VERSION, "dry_run": True, "epsilon": self.epsilon}
        found = encoded(self)
        return head | found.pop("settings") | {"target": None} | found

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return one row: what is asked, and what it costs."""
        row = {"queries": self.queries, "max_answers": self.max_answers, "epsilon": self.epsilon}
        return {name: np.array([value]) for name, value in row.items()}

    @property
    def releasable(self) -> bool:
        """True: it is made of public numbers alone."""
        return True

    def headline(self) -> str:
        """Return the worst case."""
        return f"at most {pair(self.epsilon, self.delta)}, whatever the votes"


def quote_of(settings: Settings) -> Quote:
    """Return the worst case of a run that is told these settings; public, and nothing is spent."""
    tested, mechanism = settings.tested, mechanism_from_parameters(settings.mechanism)
    cost = Cost.of(replace(settings, target=None))
    public, delta = worst_case(cost), cost.own.delta
    return Quote(
        settings=settings.published,
        delta=delta,
        data_independent=public,
        threshold=mechanism.threshold if isinstance(mechanism, ComposedMechanism) else None,
        prior=public_prior([settings]),
        groups=group_guarantees(
            settings.groups,
            cost if tested is None else None,
            epsilon=public.epsilon if tested is None else tested.epsilon,
            delta=delta,
        ),
        crosscheck=crosscheck([settings], delta, public),
    )
