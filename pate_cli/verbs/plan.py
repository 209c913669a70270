"""The verb that plans a run before the first vote."""

from __future__ import annotations

from os import PathLike

from pate_cli.core.errors import UsageError
from pate_cli.core.words import PRIOR_SHARE, MechanismName
from pate_cli.mechanisms.amounts import Amount
from pate_cli.planning import plan as planning
from pate_cli.planning.plan import Plan, Question
from pate_cli.planning.vote_model import PRIOR_ACCURACY, agreement_levels
from pate_cli.votes.groups import TeacherGroups
from pate_cli.votes.join import teacher_groups


def planned(
    *,
    classes: int | None,
    labels: int | None,
    teachers: int | None,
    target_epsilon: float | None,
    answers: int | None,
    queries: int | None,
    delta: float,
    agreement: tuple[float, float] | float | str | None,
    groups: TeacherGroups | str | PathLike[str] | None,
    teachers_per_record: int,
    prior_accuracy: float | None,
    prior_weight: Amount | float | str | None,
    mechanism: MechanismName | str,
) -> Plan:
    """Return the plan of a run before the first vote; see `signatures.plan`."""
    weights: tuple[int, ...] = ()
    if groups is not None and (teachers is not None or teachers_per_record != 1):
        name = "teachers" if teachers is not None else "teachers_per_record"
        raise UsageError(f"`{name}` does not go with `groups`, which say it themselves")
    found = teacher_groups(groups)
    if found is not None:
        weights, teachers = tuple(found.weights), found.total
        teachers_per_record = max(group.votes_per_record for group in found.public)
    if (classes is None) == (labels is None):
        raise UsageError("give `classes`, or `labels` where a query has several")
    if prior_weight is not None and prior_accuracy is None:
        raise UsageError("`prior_weight` goes with `prior_accuracy`")
    weight = PRIOR_SHARE if prior_weight is None else prior_weight
    count = 2 if classes is None else classes
    return planning.plan(
        Question(
            classes=count,
            teachers=teachers,
            epsilon=target_epsilon,
            answers=answers,
            queries=queries,
            labels=labels or 1,
            delta=delta,
            levels=None if agreement is None else agreement_levels(agreement, count),
            weights=weights,
            teachers_per_record=teachers_per_record,
            prior_weight=None if prior_accuracy is None else Amount.of("prior_weight", weight),
            prior_accuracy=PRIOR_ACCURACY if prior_accuracy is None else prior_accuracy,
            mechanism=MechanismName(mechanism),
        )
    )
