"""All cases, and the table that they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from audit.cases import LABELS, RELEASES, RUNS, VOTES, Case, Finding
from audit.exact import ExactReleaseCase
from audit.sessions import SESSIONS

_EXACT = (
    # λ, β and σ_SS of the first row of the paper's Table 2.
    ExactReleaseCase(
        "release: the worst pair at a tiny delta", order=14.0, beta=0.0329, sigma=6.23, delta=1e-8
    ),
)

CASES: Final[Mapping[str, Case]] = {
    case.name: case for case in (*LABELS, *VOTES, *RUNS, *SESSIONS, *RELEASES, *_EXACT)
}
"""By name, in the order of the table."""

_NAME = 48


HEAD: Final = f"{'case':<{_NAME}}{'claimed':>9}{'delta':>9}{'proven':>9}{'draws':>11}{'seconds':>9}"


def line(name: str, found: Finding, verdict: str) -> str:
    """One case."""
    draws = f"{found.draws:,}" if found.draws else "exact"
    return (
        f"{name:<{_NAME}}{found.epsilon:>9.3f}{found.delta:>9.2g}{found.proven:>9.3f}{draws:>11}"
        f"{found.seconds:>9.1f}  {verdict}"
    )
