"""A run of each kind that a record tells of: labelled, under way, a release, a stated cost."""

import runs
from pate_cli.core.words import Adjacency, ReleaseKind
from pate_cli.disclosure.external import Stated
from pate_cli.disclosure.runs import Budget, Outcome, Run
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.gnmax import GNMax


def told(mechanism, queries, **more):
    """What a run with fresh noise is told that asks so many rows."""
    return runs.told(mechanism, queries=queries, private=True, **more)


ASKED = told(GNMax(20, 3, sigma2=4.0), 10)
LABELLED = Run.of(
    id="a", outcome=Outcome.LABELLED, time="2026-01-01T00:00:00Z", settings=ASKED,
    round="round a", answers=5, votes="votes.npy",
)  # fmt: skip
TRIED = Run.of(
    id="f00d", time=None, budget=Budget(3.0, 1e-4, 8.0),
    settings=told(
        GNMax(20, 3, sigma2=4.0), 10, target=TargetPlan(1.5, 1e-5, 0.75, test_orders=(8.0,))
    ),
)  # fmt: skip
RELEASED = Run.of(
    id="d", outcome=Outcome.RELEASED, time=None, drawn_from=("round a",),
    draw=ReleasePlan(ReleaseKind.UPPER, 1e-5, 4.0, 0.05, 9.0),
)  # fmt: skip
STATED = Run.of(
    id="x", outcome=Outcome.STATED, time=None,
    external=Stated(Adjacency.REPLACE_ONE, name="sgd", epsilon=0.2, delta=0.0),
)  # fmt: skip
