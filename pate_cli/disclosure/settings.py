"""Settings of a run: what it was told, all of it public and fixed before the first vote.

A file of labels carries them where its format has room, and a report states them; `verify` compares
the two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pate_cli.core.codec import encoded
from pate_cli.core.dataclass import dataclass
from pate_cli.core.label_set import LabelSet
from pate_cli.core.words import PublicFact
from pate_cli.disclosure.stop_rule import StopRule
from pate_cli.votes.facts import Group, PriorFacts


@dataclass(frozen=True)
class StatedTarget:
    """An (ε, δ) stated in advance.

    Attributes:
        epsilon: the target, nats.
        refusal_epsilon: what labels that fail the release test cost, nats; None where no votes
            can make labels cost more than the target, so that nothing is tested.
        bound: how the cost of the votes is bounded in the test.
    """

    epsilon: float
    refusal_epsilon: float | None = None
    bound: str | None = None


@dataclass(frozen=True)
class Sanitizer:
    """How a data-dependent ε gets its noise.

    Attributes:
        release: `upper`.
        order: Rényi order, > 1.
        beta: smoothness of the sensitivity, per vote.
        sigma: standard deviation of the noise, in smooth sensitivities.
    """

    release: str
    order: float
    beta: float
    sigma: float


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of one run on votes.

    Attributes:
        mechanism: its public parameters, its name among them.
        queries: how many rows are asked.
        max_answers: the public cap on answers.
        private: False where the noise came from a seed.
        delta: δ of the run.
        analysis: `tight`, `paper` or `composition`.
        target: the (ε, δ) stated in advance, if there is one.
        sanitizer: how a data-dependent ε is published beside the labels, if it is.
        read_off: facts that should be public and were read off the votes.
        groups: of the teachers, where they count differently.
        label_set: of several labels a query.
        prior: the public prior that votes, too.
        rule: of a session, when asking stops.
    """

    mechanism: Mapping[str, Any]
    queries: int
    max_answers: int
    private: bool
    delta: float
    analysis: str
    target: StatedTarget | None = None
    sanitizer: Sanitizer | None = None
    read_off: tuple[PublicFact, ...] = ()
    groups: tuple[Group, ...] = ()
    label_set: LabelSet | None = None
    prior: PriorFacts | None = None
    rule: StopRule | None = None

    def texts(self) -> dict[str, str]:
        """Return the settings as a file of labels carries them, text by name."""
        found = {name: str(value) for name, value in self.mechanism.items()}
        found |= {
            "queries": str(self.queries),
            "max_answers": str(self.max_answers),
            "private": str(self.private).lower(),
            "delta": repr(float(self.delta)),
            "analysis": self.analysis,
        }
        if self.target is not None:
            found["target_epsilon"] = repr(float(self.target.epsilon))
            if self.target.refusal_epsilon is not None:
                found["refusal_epsilon"] = repr(float(self.target.refusal_epsilon))
                found["bound"] = str(self.target.bound)
        if self.sanitizer is not None:
            found["release"] = json.dumps(encoded(self.sanitizer))
        if self.read_off:
            found["read_off"] = " ".join(self.read_off)
        if self.groups:
            found["groups"] = json.dumps(encoded(self.groups))
        if self.label_set is not None:
            found |= self.label_set.texts()
        if self.prior is not None and self.prior.weight:
            found |= self.prior.texts()
        if self.rule is not None:
            found["rule"] = json.dumps(encoded(self.rule))
        return found
