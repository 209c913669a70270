"""Whether a run with a release test is worth starting: by its public forecast, before it spends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pate_cli.core.errors import UnreachableError
from pate_cli.planning.forecast import public_forecast, what_would_pass

if TYPE_CHECKING:
    from pate_cli.disclosure.target import TargetPlan
    from pate_cli.mechanisms.base import ScoredMechanism

# A rough forecast is off by less.
_ROUGH_BY: Final = 0.15


def refuse_hopeless(
    mechanism: ScoredMechanism,
    target: TargetPlan,
    *,
    rows: int,
    max_answers: int,
    least: float,
) -> None:
    """Refuse a run that would hardly pass its release test, however well the teachers agree.

    It looks at public numbers alone.

    Args:
        mechanism: the aggregator.
        target: settled for this run.
        rows: how many queries are asked.
        max_answers: after how many answers the run stops.
        least: the probability below which the run is not started, at the most favourable level of
            agreement; 0 starts every run.

    Raises:
        UnreachableError: the probability is smaller; it says what would pass.
    """
    if least <= 0.0:
        return

    def best(*, rough: bool) -> float:
        found = public_forecast(
            mechanism,
            target,
            rows=rows,
            max_answers=max_answers,
            bound=target.bound,
            rough=rough,
        )
        return float(found.pass_probability.max())

    if best(rough=True) >= least + _ROUGH_BY:
        return
    chance = best(rough=False)
    if chance < least:
        fewer, larger = what_would_pass(
            mechanism, target, rows=rows, bound=target.bound, least=least
        )
        advice = f"Take more noise, or a `target_epsilon` of about {larger:.2g}"
        if fewer:
            advice = f"Ask at most `max_queries` {fewer}"
        raise UnreachableError(
            f"this run would pass its release test with probability {chance:.2g} at most, below "
            f"`min_pass` {least:g}; nothing was drawn or spent. {advice}; "
            "`min_pass` 0 starts it all the same"
        )
