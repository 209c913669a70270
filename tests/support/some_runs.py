"""A run of each kind that a record tells of: labelled, under way, a release, a stated cost."""

from __future__ import annotations

from pate_cli.core.words import Adjacency
from pate_cli.disclosure.budget import Budget
from pate_cli.disclosure.external import Stated
from pate_cli.disclosure.plan import Draw
from pate_cli.disclosure.record import Outcome, Run, RunKind
from pate_cli.disclosure.settings import RowsAsked
from pate_cli.mechanisms.gnmax import GNMax

ASKED = RowsAsked(mechanism=GNMax(20, 3, sigma2=4.0).parameters(), queries=10, max_answers=10)
LABELLED = Run(
    id="a", kind=RunKind.WORST_CASE, outcome=Outcome.LABELLED, time="2026-01-01T00:00:00Z",
    epsilon=0.7, delta=1e-5, asked=ASKED, round="round a", answers=5, votes="votes.npy",
)  # fmt: skip
TRIED = Run(
    id="f00d", kind=RunKind.TARGET, outcome=Outcome.PENDING, time=None, epsilon=1.5,
    refusal_epsilon=0.75, delta=1e-5, budget=Budget(3.0, 1e-4, 8.0),
)  # fmt: skip
RELEASED = Run(
    id="d", kind=RunKind.RELEASE, outcome=Outcome.RELEASED, time=None, delta=1e-5,
    drawn_from=("round a",), draw=Draw(0.05, 9.0, 3.0),
)  # fmt: skip
STATED = Run(
    id="x", kind=RunKind.EXTERNAL, outcome=Outcome.STATED, time=None, epsilon=0.2, delta=0.0,
    external=Stated(Adjacency.REPLACE_ONE, name="sgd", epsilon=0.2, delta=0.0),
)  # fmt: skip
