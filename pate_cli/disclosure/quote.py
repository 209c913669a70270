"""The quote of a run: what it would cost whatever the votes, before anything is spent; public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.composition import Textbook
from pate_cli.disclosure.facts import report_of, run_facts
from pate_cli.disclosure.figures import pair
from pate_cli.disclosure.ledger import Round
from pate_cli.disclosure.report import (
    SCHEMA_VERSION,
    DataIndependent,
    GroupGuarantee,
    PublicPrior,
)
from pate_cli.disclosure.settings import Settings
from pate_cli.files.document import SPARING, encoded
from pate_cli.files.results import Result
from pate_cli.mechanisms.base import ComposedMechanism

_OF_REPORT: Final = (
    *("epsilon", "delta", "sound", "queries", "max_answers", "prior", "data_independent"),
    *("crosscheck", "groups", "warnings"),
)


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
        epsilon: ε of everything that would be released, nats: the target where labels are tested.
        delta, sound, queries, max_answers, prior, groups, data_independent, crosscheck: as in
            `Report`.
        threshold: T of a mechanism that derives it.
        target: what a target would mean.
        warnings: what to know before the run.
    """

    settings: Settings
    epsilon: float
    delta: float
    sound: bool
    queries: int
    max_answers: int
    threshold: float | None = field(default=None, metadata=SPARING)
    prior: PublicPrior | None = field(default=None, metadata=SPARING)
    data_independent: DataIndependent
    crosscheck: Textbook | None = None
    target: Outlook | None = None
    groups: tuple[GroupGuarantee, ...] = field(default=(), metadata=SPARING)
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the quote as JSON-ready values."""
        found = encoded(self)
        return {"schema_version": SCHEMA_VERSION, "dry_run": True} | found.pop("settings") | found

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return one row: what is asked, and what it costs."""
        names = ("queries", "max_answers", "epsilon")
        return {name: np.array([getattr(self, name)]) for name in names}

    @property
    def releasable(self) -> bool:
        """True: it is made of public numbers alone."""
        return True

    def headline(self) -> str:
        """Return the worst case."""
        return f"at most {pair(self.epsilon, self.delta)}, whatever the votes"


def quote_of(settings: Settings, target: Outlook | None = None) -> Quote:
    """Return what the report of a run would say if its labels passed and all were answered."""
    done = Round.of(settings, answers=settings.max_answers)
    report = report_of(run_facts(done, passed=None if settings.tested is None else True))
    mechanism = settings.aggregator
    return Quote(
        settings=settings.published,
        threshold=mechanism.threshold if isinstance(mechanism, ComposedMechanism) else None,
        target=target,
        **{name: getattr(report, name) for name in _OF_REPORT},
    )
