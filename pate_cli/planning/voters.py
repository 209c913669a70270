"""Plans for many voters with few votes each: noise, queries, and how often labels are right.

The privacy cost depends on the largest number of votes of one voter, and not on the number of
voters. With more voters, there can be more queries, or more votes on each query. The plan assumes
that voters are right independently of each other, that all wrong classes are equally likely, and
that votes are spread evenly over the queries.
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
from pate_cli.disclosure.cost import Cost, Rows, shown
from pate_cli.files.results import Result
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.planning.search import keywords_of, least, line_of
from pate_cli.planning.vote_model import PUBLIC_SEED, win_chance

# The plan shows the labels for three shares of right votes. It finds the largest number of queries
# at which 95% of the labels are right if 80% of the votes are.
_SHARES: Final = (0.6, 0.8, 0.95)
_USUAL, _GOOD = 0.8, 0.95
# The rule of thumb: with k votes of each voter, 22 √k/ε votes on a query make 95% of labels right.
_THUMB: Final = 22.0
_LEAST: Final = 1e-4  # the smallest ε above 0 that a result shows
_SIGMAS, _PRECISION, _ROWS = (0.5, 1e6), 1e-3, 500


@dataclass(frozen=True, repr=False)
class VoterPlan(Result):
    """Plan of a gnmax run on the votes of many voters who vote on few queries each. Public.

    Attributes:
        teachers: the number of voters.
        votes_per_teacher: the largest number of votes of one voter.
        queries: how many queries the run asks.
        delta: δ of the run.
        epsilon: ε of the run, at most the target, nats.
        sigma2: the smallest standard deviation of the noise at which ε is at most the target, in
            votes.
        votes_per_query: the number of votes on each query if votes are spread evenly.
        labels_right: the expected share of right labels, by the share of right votes.
        rule_of_thumb: about how many votes on a query make 95% of labels right, if 80% of votes are
            right.
        enough_for: the largest number of queries at which 95% of labels are right, if 80% of votes
            are right; 0 if fewer labels are right even when all voters vote on each query.
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
        """Return True: the plan may be published, because it uses no votes."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes of the plan, ready for JSON."""
        return {"schema_version": 1, "releasable": True, **vars(self)}

    def columns(self) -> Mapping[str, NDArray[Any]]:
        """Return a table with the share of right labels for each share of right votes."""
        right = self.labels_right
        shares = np.array([float(share) for share in right])
        return {"voters_right": shares, "labels_right": np.array([*right.values()])}

    def headline(self) -> str:
        """Return the plan in a few words."""
        votes = f"{self.teachers} teachers with {self.votes_per_teacher} votes each"
        on_each = f"{self.votes_per_query} on each of {self.queries} queries"
        return f"{votes}, {on_each}: epsilon {shown(self.epsilon)} at delta {self.delta:g}"

    def said(self) -> Said:
        """Return lines with the share of right labels, the votes a query needs, and the command."""
        found = [
            (f"voters right {float(share):.0%}", f"{right:.1%} of labels are right")
            for share, right in self.labels_right.items()
        ]
        thumb = f"{self.rule_of_thumb} votes on a query (22 sqrt(votes per teacher) / epsilon)"
        found.append(("rule of thumb", f"{thumb} if voters are right 80% of the time"))
        found.append(
            (
                "enough for",
                f"{self.enough_for} queries, of which 95% get right labels if voters are right "
                "80% of the time",
            )
        )
        return [Line(self.headline(), "bold"), Pairs(found), Line(self.command, whole=True)]


def plan_voters(asked: Mapping[str, Any]) -> VoterPlan:
    """Return the plan of a gnmax run for a target ε.

    If the number of queries is left out, the plan asks as many queries as possible while 95% of the
    labels are right.

    Args:
        asked: the parameters of `signatures.plan`, by name.

    Raises:
        UnreachableError: ε is above the target even with the most noise that is tried, or
            `queries` is left out and too few labels would be right even if all voters vote on each
            query.
    """
    target, teachers, classes = (asked[name] for name in ("target_epsilon", "teachers", "classes"))
    few, delta = FewVotes(asked["votes_per_teacher"], asked["assigned"]), asked["delta"]
    # A voter changes at most two queries for each vote, so further queries cost nothing.
    rows = asked["queries"] or 2 * few.votes

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
    # With very much noise, ε is rounded to 0, and the rule of thumb would divide by 0.
    thumb = math.ceil(_THUMB * math.sqrt(few.votes) / max(epsilon(sigma), _LEAST))
    enough = 0
    if good(teachers):
        needed = least(good, start=thumb, within=(1.0, teachers), precision=0.01)
        enough = max(teachers * few.votes // math.ceil(needed), 1)
    queries = asked["queries"] or enough
    if not queries:
        raise UnreachableError(
            f"{teachers} teachers are too few for labels that are mostly right at epsilon "
            f"{target:g}, even if all of them vote on each query; take more teachers, fewer votes "
            "of each teacher or a larger epsilon"
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
    """Return the expected share of right labels of gnmax if `share` of the votes is right."""
    random = np.random.default_rng(PUBLIC_SEED)
    right = random.binomial(votes, share, _ROWS)
    wrong = random.multinomial(votes - right, np.full(classes - 1, 1.0 / (classes - 1)))
    counts = np.column_stack([right, wrong]).astype(np.float64)
    return float(win_chance(counts, np.zeros(_ROWS, dtype=np.int64), sigma).mean())
