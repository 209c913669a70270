"""How many votes a query needs if many people vote on few queries: `python sample_votes/crowd.py`.

Made-up people vote on 20 queries each; 80% of their votes are right, and the others are for any of
the 9 other classes. The noise of GNMax is what the epsilon needs. Takes half a minute.
"""

from __future__ import annotations

import sys
from typing import Any

import pate_cli as pate

PEOPLE = 5000
EACH = 20
EPSILONS = (1, 2, 4)
VOTES = (5, 10, 20, 30, 50, 70, 100, 150, 200)
_SHARE = "0.8"
_LOOKS = (("#0072B2", "-", "o"), ("#D55E00", "--", "s"), ("#009E73", "-.", "^"))


def right(epsilon: float, votes: int) -> float:
    """Return the share of right labels if every query has so many votes."""
    asked = {"classes": 10, "mechanism": "gnmax", "queries": PEOPLE * EACH // votes}
    people = {"teachers": PEOPLE, "votes_per_teacher": EACH}
    return float(pate.plan(target_epsilon=epsilon, **people, **asked).labels_right[_SHARE])


def curves() -> dict[float, list[float]]:
    """Return the share of right labels at each of `VOTES`, for every ε."""
    return {epsilon: [right(epsilon, votes) for votes in VOTES] for epsilon in EPSILONS}


def picture(points: dict[float, list[float]]) -> Any:
    """Return the share of right labels against the votes on a query, a curve for each ε."""
    from pate_cli.disclosure.pictures import new_axes, styled, with_legend

    @styled
    def drawn() -> Any:
        (axes,) = new_axes(f"People who vote on {EACH} queries each, right 80% of the time")
        for (epsilon, curve), (colour, line, marker) in zip(points.items(), _LOOKS, strict=True):
            shares = [100.0 * each for each in curve]
            look = {"color": colour, "linestyle": line, "marker": marker}
            axes.plot(VOTES, shares, label=f"ε = {epsilon}", **look)
        axes.set_xscale("log")
        axes.set_xticks(VOTES, [str(votes) for votes in VOTES])
        axes.minorticks_off()
        axes.set_xlabel("votes on each query")
        axes.set_ylabel("labels that are right (%)")
        return with_legend(axes, columns=3)

    return drawn()


def main() -> None:
    """Print the table."""
    sys.stdout.write(f"votes on a query  {'  '.join(f'epsilon {each}' for each in EPSILONS)}\n")
    for votes, shares in zip(VOTES, zip(*curves().values(), strict=True), strict=True):
        sys.stdout.write(f"{votes:16}  {'  '.join(f'{share:9.1%}' for share in shares)}\n")


if __name__ == "__main__":
    main()
