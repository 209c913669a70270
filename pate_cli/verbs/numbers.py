"""Numbers of a run that are wrong whatever the votes: said before a file is touched."""

from __future__ import annotations

from pate_cli.core.checks import at_least_one, check_delta, check_positive
from pate_cli.core.noise import RunKey
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.rule import check_given
from pate_cli.disclosure.target import TargetPlan


def check_numbers(
    *,
    delta: float,
    max_queries: int | None = None,
    max_answers: int | None = None,
    max_epsilon: float | None = None,
    target_epsilon: float | None = None,
    refusal_epsilon: float | None = None,
    budget: float | None = None,
    order: float | None = None,
    beta: float | None = None,
    sigma_release: float | None = None,
    seed: int | None = None,
    workers: int = 1,
) -> None:
    """ParameterError for the first that is out of range; the verbs explain them."""
    check_delta(delta)
    counts = {"max_queries": max_queries, "max_answers": max_answers, "workers": workers}
    at_least_one(**{name: count for name, count in counts.items() if count is not None})
    for name, epsilon in (("max_epsilon", max_epsilon), ("budget", budget)):
        if epsilon is not None:
            check_positive(f"`{name}`", epsilon)
    if target_epsilon is not None:
        TargetPlan.of(target_epsilon, delta=delta, refusal_epsilon=refusal_epsilon)
    if (order, beta, sigma_release) != (None, None, None):
        check_given(ReleaseKind.UPPER, delta=delta, order=order, beta=beta, sigma=sigma_release)
    if seed is not None:
        RunKey.from_seed(seed)
