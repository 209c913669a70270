"""The verb that plans a run before the first vote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pate_cli.core.errors import UsageError
from pate_cli.core.words import PRIOR_SHARE, MechanismName
from pate_cli.mechanisms.amounts import Amount
from pate_cli.planning import plan as planning
from pate_cli.planning.plan import Plan, Question
from pate_cli.planning.vote_model import PRIOR_ACCURACY, agreement_levels
from pate_cli.votes.join import teacher_groups


def planned(asked: Mapping[str, Any]) -> Plan:
    """Return the plan of a run before the first vote; `asked` as `signatures.plan` has it."""
    classes, labels, teachers = asked["classes"], asked["labels"], asked["teachers"]
    weight, accuracy = asked["prior_weight"], asked["prior_accuracy"]
    shared = asked["teachers_per_record"]
    if asked["groups"] is not None and (teachers is not None or shared != 1):
        name = "teachers" if teachers is not None else "teachers_per_record"
        raise UsageError(f"`{name}` does not go with `groups`, which say it themselves")
    groups = teacher_groups(asked["groups"])
    if groups is not None:
        teachers = groups.total
        shared = max(group.votes_per_record for group in groups.public)
    if (classes is None) == (labels is None):
        raise UsageError("give `classes`, or `labels` where a query has several")
    if weight is not None and accuracy is None:
        raise UsageError("`prior_weight` goes with `prior_accuracy`")
    count, agreement = classes or 2, asked["agreement"]
    guessed = Amount.of("prior_weight", PRIOR_SHARE if weight is None else weight)
    return planning.plan(
        Question(
            classes=count,
            teachers=teachers,
            epsilon=asked["target_epsilon"],
            answers=asked["answers"],
            queries=asked["queries"],
            labels=labels or 1,
            delta=asked["delta"],
            levels=None if agreement is None else agreement_levels(agreement, count),
            weights=() if groups is None else tuple(groups.weights),
            teachers_per_record=shared,
            prior_weight=None if accuracy is None else guessed,
            prior_accuracy=PRIOR_ACCURACY if accuracy is None else accuracy,
            mechanism=MechanismName(asked["mechanism"]),
        )
    )
