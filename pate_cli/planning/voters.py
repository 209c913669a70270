"""Plans for many voters with few votes each: noise, queries, and how often labels are right.

The cost only depends on the votes of one voter, so more voters do not raise it. With more voters,
there can be more queries, or more votes on each query. Made-up voters are right independently of
each other, a wrong vote is for any of the other classes, and votes are spread evenly over the
queries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.few_votes import FewVotes
from pate_cli.core.errors import UnreachableError
from pate_cli.core.said import Line, Pairs, Said
from pate_cli.disclosure.cost import Cost, Rows
from pate_cli.disclosure.figures import shown
from pate_cli.files.results import Result
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.planning.search import keywords_of, least, line_of
from pate_cli.planning.vote_model import PUBLIC_SEED, win_chance

# Shares of right votes, and the wanted share of right labels if 80% of the votes are right.
_SHARES: Final = (0.6, 0.8, 0.95)
_USUAL, _GOOD = 0.8, 0.95
# The rule of thumb: this many times √k/ε votes on a query make so many labels right.
_THUMB: Final = 22.0
_LEAST: Final = 1e-4  # the smallest ε above 0 that is shown
_SIGMAS, _PRECISION, _ROWS = (0.5, 1e6), 1e-3, 500


@dataclass(frozen=True, repr=False)
class VoterPlan(Result):
    """Plan of a run of gnmax on votes of many voters, each on few queries. Public.

    Attributes:
        teachers, votes_per_teacher, queries, delta: the numbers of the run.
        epsilon: ε of the run, at most the target, nats.
        sigma2: the noise that the target needs (votes).
        votes_per_query: votes on each query if they are spread evenly.
        labels_right: the share of right labels for several shares of right votes.
        rule_of_thumb: about how many votes on a query make 95% of labels right, if 80% of votes are
            right.
        enough_for: the largest number of queries with 95% right labels; 0 if there is none.
        command: the `pate aggregate` line of the run.
    """

    teachers: int
    votes_per_teacher: int
    queries: int
    delta: float
    epsilon: float
    sigma2: float
    votes_per_query: int
    labels_right: Mapping[str, float]
    rule_of_thumb: int
    enough_for: int
    command: str

    @property
    def releasable(self) -> bool:
        """Return True, because a plan looks at no votes."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain numbers, for JSON."""
        return {"schema_version": 1, "releasable": True, **vars(self)}

    def columns(self) -> Mapping[str, NDArray[Any]]:
        """Return one row for each share of right votes."""
        right = self.labels_right
        shares = np.array([float(share) for share in right])
        return {"voters_right": shares, "labels_right": np.array([*right.values()])}

    def headline(self) -> str:
        """Return the plan in a few words."""
        votes = f"{self.teachers} teachers with {self.votes_per_teacher} votes each"
        on_each = f"{self.votes_per_query} on each of {self.queries} queries"
        return f"{votes}, {on_each}: epsilon {shown(self.epsilon)} at delta {self.delta:g}"

    def said(self) -> Said:
        """Return the expected labels, the number of votes that they need, and the command."""
        found = [
            (f"voters right {float(share):.0%}", f"{right:.1%} of labels right")
            for share, right in self.labels_right.items()
        ]
        thumb = f"{self.rule_of_thumb} votes on a query, 22 sqrt(votes per teacher) / epsilon"
        found.append(("rule of thumb", f"{thumb}, if voters are right 80% of the time"))
        found.append(
            ("enough for", f"{self.enough_for} queries, of which 95% then get right labels")
        )
        return [Line(self.headline(), "bold"), Pairs(found), Line(self.command, whole=True)]


def plan_voters(asked: Mapping[str, Any]) -> VoterPlan:
    """Return the plan for a target; `asked` has the parameters of `signatures.plan`.

    If the number of queries is left out, it is the largest number with enough right labels.

    Raises:
        UnreachableError: no noise reaches the target, or no number of queries gives such labels.
    """
    target, teachers, classes = (asked[name] for name in ("target_epsilon", "teachers", "classes"))
    few, delta = FewVotes(asked["votes_per_teacher"], asked["assigned"]), asked["delta"]
    rows = asked["queries"] or 2 * few.votes  # more queries cost no more

    def mechanism(sigma: float) -> GNMax:
        return GNMax(teachers, classes, sigma2=sigma)

    def epsilon(sigma: float) -> float:
        return Cost(delta, (Rows(mechanism(sigma), rows, rows, few),)).own.epsilon

    def labels_right(share: float, votes: float) -> float:
        return _labels_right(share, round(votes), classes, sigma)

    def good(votes: float) -> bool:
        return labels_right(_USUAL, votes) >= _GOOD

    start = 20.0 * math.sqrt(few.votes / 40.0) / max(target, _LEAST)
    sigma = least(lambda s: epsilon(s) <= target, start=start, within=_SIGMAS, precision=_PRECISION)
    sigma = math.ceil(sigma * 1000.0) / 1000.0
    # The ε of very much noise is rounded to 0.
    thumb = math.ceil(_THUMB * math.sqrt(few.votes) / max(epsilon(sigma), _LEAST))
    enough = 0
    if good(teachers):
        needed = least(good, start=thumb, within=(1.0, teachers), precision=0.01)
        enough = max(teachers * few.votes // math.ceil(needed), 1)
    queries = asked["queries"] or enough
    if not queries:
        raise UnreachableError(
            f"{teachers} teachers are too few for labels that are mostly right at epsilon "
            f"{target:g}, even if all of them vote on each query"
        )
    on_each = min(teachers * few.votes // queries, teachers)
    told = keywords_of(mechanism(sigma), queries=queries, delta=delta, classes=classes)
    told["teachers"] = min(on_each + 1, teachers) if few.assigned else teachers
    told["votes_per_teacher"] = few.votes
    right = {f"{each:g}": round(labels_right(each, on_each), 4) for each in _SHARES}
    command = line_of("VOTES", ["--assigned"] if few.assigned else [], told)
    noise = (delta, epsilon(sigma), sigma)
    return VoterPlan(teachers, few.votes, queries, *noise, on_each, right, thumb, enough, command)


def _labels_right(share: float, votes: int, classes: int, sigma: float) -> float:
    """Return how often labels of gnmax are right if this share of the votes is right."""
    random = np.random.default_rng(PUBLIC_SEED)
    right = random.binomial(votes, share, _ROWS)
    wrong = random.multinomial(votes - right, np.full(classes - 1, 1.0 / (classes - 1)))
    counts = np.column_stack([right, wrong]).astype(np.float64)
    return float(win_chance(counts, np.zeros(_ROWS, dtype=np.int64), sigma).mean())
