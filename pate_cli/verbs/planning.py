"""The verbs about settings and costs before a run: plan, tune, cost, compare, smooth_sensitivity.

`plan` needs no votes. The results of the other verbs depend on the votes, and are secret unless the
votes are public or made up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any, cast

import numpy as np

from pate_cli.accounting.few_votes import Few
from pate_cli.core.arrays import stacked
from pate_cli.core.checks import check_orders
from pate_cli.core.errors import UsageError
from pate_cli.core.words import PRIOR_SHARE, Bound, MechanismName, OrderChoice, ReleaseKind
from pate_cli.disclosure.settings import Training
from pate_cli.disclosure.target import TargetPlan, settled_bound
from pate_cli.files.addresses import public_name
from pate_cli.mechanisms import CLASSES, RULED, Amount, MechanismChoice, in_votes, mechanism_class
from pate_cli.mechanisms.base import Mechanism
from pate_cli.planning import plan as planning
from pate_cli.planning.cost import (
    TIGHT,
    Compared,
    VoteCost,
    compare_at,
    measure_cost,
    measure_target,
)
from pate_cli.planning.goal import Goal
from pate_cli.planning.plan import Plan, Question, VoterPlan, plan_voters
from pate_cli.planning.sensitivity import Sensitivity, price_votes
from pate_cli.planning.synthetic import from_recipe
from pate_cli.planning.tune import Tuned
from pate_cli.planning.tune import tune as tuned_on
from pate_cli.planning.vote_model import PRIOR_ACCURACY, VoteModel, agreement_levels
from pate_cli.run.fold import nothing_seen
from pate_cli.verbs.keywords import dashed
from pate_cli.verbs.promise import plan_of, stated_target
from pate_cli.verbs.request import (
    PARAMETERS,
    Request,
    parameters_in,
    prior_votes,
    published,
    reading,
    requested,
)
from pate_cli.votes.join import classes_or_shares, teacher_groups
from pate_cli.votes.join import prior as prior_of

# `cost` computes pass probabilities on up to this multiple of the rows of the run.
_LOOK_AHEAD, _SLOW_LOOK_AHEAD = 10, 1
_KINDS = (ReleaseKind.TARGET, ReleaseKind.NONE)


def planned(asked: Mapping[str, Any]) -> Plan | VoterPlan:
    """Return the plan of a run without votes; `asked` has the parameters of `signatures.plan`."""
    if asked["votes_per_teacher"] is not None:
        if None in (asked["classes"], asked["teachers"], asked["target_epsilon"]):
            raise UsageError("`votes_per_teacher` needs `classes`, `teachers` and `target_epsilon`")
        if asked["answers"] is not None:
            raise UsageError("give either `votes_per_teacher` or `answers`")
        if MechanismName(asked["mechanism"]) is not MechanismName.GNMAX:
            raise UsageError("`votes_per_teacher` needs `mechanism` gnmax in a plan")
        return plan_voters(asked)
    classes, labels, teachers = asked["classes"], asked["labels"], asked["teachers"]
    weight, accuracy = asked["prior_weight"], asked["prior_accuracy"]
    shared = asked["teachers_per_record"]
    if asked["groups"] is not None and (teachers is not None or shared != 1):
        name = "teachers" if teachers is not None else "teachers_per_record"
        raise UsageError(f"`groups` already state `{name}`; leave out `{name}`")
    groups = teacher_groups(asked["groups"])
    if groups is not None:
        teachers = groups.total
        shared = max(group.votes_per_record for group in groups.public)
    if (classes is None) == (labels is None):
        raise UsageError("give `classes`, or give `labels` if a query has several labels")
    training = Training.of(asked["teacher_epsilon"], asked["teacher_delta"])
    count, agreement = classes or 2, asked["agreement"]
    guessed = Amount.of("prior_weight", PRIOR_SHARE if weight is None else weight)
    return planning.plan(
        Question(
            classes=count,
            teachers=teachers,
            epsilon=_epsilon_of(asked, training),
            answers=asked["answers"],
            queries=asked["queries"],
            labels=labels or 1,
            delta=asked["delta"],
            levels=None if agreement is None else agreement_levels(agreement, count),
            weights=() if groups is None else tuple(groups.weights),
            teachers_per_record=shared,
            training=training,
            prior_weight=None if accuracy is None else guessed,
            prior_accuracy=PRIOR_ACCURACY if accuracy is None else accuracy,
            mechanism=MechanismName(asked["mechanism"]),
        )
    )


def _epsilon_of(asked: Mapping[str, Any], training: Training | None) -> float | None:
    """Return the target ε; if `record_epsilon` is given, compute the target from it."""
    target, wanted = asked["target_epsilon"], asked["record_epsilon"]
    if wanted is None:
        return None if target is None else float(target)
    if training is None or target is not None:
        raise UsageError(
            "with `record_epsilon`, give `teacher_epsilon` and leave out `target_epsilon`"
        )
    found = training.bearable(float(wanted), asked["delta"])
    if found == math.inf:
        raise UsageError(
            "the training of the teachers already keeps epsilon for one training record below "
            f"{wanted:g} whatever is released, so `record_epsilon` does not limit a run; give "
            "`target_epsilon` instead"
        )
    return math.floor(found * 1000.0) / 1000.0


def tuned(asked: Mapping[str, Any]) -> Tuned:
    """Return the best settings for a goal; `asked` has the parameters of `signatures.tune`."""
    votes, release = asked["votes"], asked["release"]
    _refuse_missing_votes(asked)
    mechanism = None if asked["mechanism"] is None else MechanismName(asked["mechanism"])
    if mechanism is not None:
        if mechanism not in RULED:
            raise UsageError(f"`mechanism` must be confident or gnmax, got {mechanism}")
        MechanismChoice(mechanism, parameters_in(asked))  # This refuses parameters of others.
    kinds = _KINDS if release is None else (ReleaseKind(release),)
    model, basis = _made_up(asked) if votes is None else _model(asked)
    if model.few is not None:
        if release not in (None, ReleaseKind.NONE):
            raise UsageError(
                "for teachers who vote on few queries, `tune` only finds settings for runs with "
                "`release` none. For a run with a release test, choose the settings yourself; pate "
                "cost then computes the probability that the test passes"
            )
        kinds = (ReleaseKind.NONE,)
    found = tuned_on(
        model,
        [
            Goal(
                release=kind,
                epsilon=asked["target_epsilon"],
                answers=asked["answers"],
                min_agreement=asked["min_agreement"],
                delta=asked["delta"],
                bound=Bound(Bound.AUTO if kind is not kinds[0] else asked["bound"]),
            )
            for kind in kinds
        ],
        given=_given(asked, model.teachers),
        mechanism=mechanism,
        progress=asked["progress"] or nothing_seen,
        interrupted=asked["interrupted"] or (lambda: None),
    )
    told = reading(asked)
    if found.best.settings.prior_weight:
        told["prior"] = "PRIOR" if asked["prior"] is None else asked["prior"]
    return replace(
        found,
        basis=basis,
        public=votes is None or asked["public_votes"],
        votes=public_name(votes) if isinstance(votes, str) else "VOTES",
        words=tuple(_words(told)),
    )


def _refuse_missing_votes(asked: Mapping[str, Any]) -> None:
    """Raise UsageError if `tune` gets neither votes nor `synthetic`, or a keyword lacks votes."""
    if asked["votes"] is not None:
        return
    if asked["synthetic"] is None:
        raise UsageError(
            "give VOTES or `synthetic`; if you have no votes yet, use pate plan, which finds "
            "settings without votes"
        )
    for name in (*reading(asked), "max_queries", "prior", "public_votes"):
        if asked[name] not in (None, False):
            raise UsageError(f"`{name}` needs VOTES; leave it out if you give `synthetic`")


def _made_up(asked: Mapping[str, Any]) -> tuple[VoteModel, dict[str, Any]]:
    """Return the made-up votes that `synthetic` describes, and the numbers in `synthetic`."""
    counts, guesses, recipe = from_recipe(asked["synthetic"])
    teachers, shared = int(recipe["teachers"]), asked["teachers_per_record"]
    model = VoteModel(counts, teachers, teachers_per_record=shared, guesses=guesses)
    return model, {"votes": "synthetic", **recipe}


def _model(asked: Mapping[str, Any]) -> tuple[VoteModel, dict[str, Any]]:
    """Return the votes of a file with the guesses of a prior, and a description of the votes."""
    own = dict.fromkeys((*PARAMETERS, "prior", "prior_weight"))
    here = {"mechanism": MechanismName.GNMAX, "engine": "local", "workers": 1}
    with requested({**asked, **own, **here}) as request:
        file, queries, mechanism = request.file, request.queries, request.mechanism
        prior = None if asked["prior"] is None else prior_of(asked["prior"], file)
        counts, guesses = [], []
        for batch in file.batches(limit=queries):
            counts.append(batch.counts)
            if prior is not None:
                guesses.append(classes_or_shares(batch, prior))
        model = VoteModel(
            stacked(counts),
            file.teachers,
            teachers_per_record=mechanism.teachers_per_record,
            votes_together=mechanism.votes_together,
            few=request.few(),
            guesses=np.concatenate(guesses) if guesses else None,
        )
        basis = {"teachers": file.teachers, "classes": file.classes, "queries": queries}
        if file.rows_per_query > 1:
            basis["rows_per_query"] = file.rows_per_query
        return model, {"votes": "file", **basis}


def _given(asked: Mapping[str, Any], teachers: int) -> dict[str, float]:
    """Return the threshold, noise and `prior_weight` that the caller gave, as numbers of votes."""
    given = in_votes(parameters_in(asked), teachers)
    if asked["prior_weight"] is not None:
        given["prior_weight"] = prior_votes(asked["prior_weight"], teachers)
    return given


def _words(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield options of `pate aggregate`, with values, that describe the votes and the prior."""
    for name, value in told.items():
        yield dashed(name)
        if value is not True:
            plain = isinstance(value, str | PathLike | int)
            yield public_name(str(value)) if plain else name.upper()


def measured_cost(asked: Mapping[str, Any]) -> VoteCost:
    """Return what the labels from these votes would cost, computed from the votes. SECRET.

    `asked` maps each parameter of `signatures.cost` to its value.
    """
    plan = stated_target(asked)
    with requested(asked) as request:
        if plan is not None:
            request = request.by_rule(plan, rows_given=asked["max_queries"] is not None)
        unmatched = request.file.unmatched(request.queries)
        return _measured(
            request,
            asked,
            max_answers=request.max_answers,
            target=None if plan is None else _on_target(request, plan),
            unmatched=unmatched if unmatched.cast else None,
        )


def compared(asked: Mapping[str, Any]) -> Compared:
    """Return the costs of all mechanisms at the same expected number of answers. SECRET.

    `asked` maps each parameter of `signatures.cost` to its value.
    """
    if isinstance(asked["mechanism"], Mechanism):
        raise UsageError("`compare` takes the name of a mechanism, not a mechanism object")
    with requested(asked) as request:
        choice, few = cast("MechanismChoice", request.choice), request.few()
        matched = min(float(request.max_answers), _measured(request, asked).expected_answers)
        rows = [
            _compared(request.under(other), other, matched, few)
            for name in CLASSES
            if (other := choice.among(name)).takes(request.file.classes)
            and (few is None or mechanism_class(name).takes_few_votes)
        ]
        return Compared(tuple(rows), matched, request.delta)


def sensitivity(asked: Mapping[str, Any]) -> Sensitivity:
    """Return how far one training record could change the RDP cost of the labels. SECRET.

    `asked` maps each parameter of `signatures.smooth_sensitivity` to its value.
    """
    with requested(asked) as request:
        scored, queries = request.scored, request.queries
        few, paper = request.few(asked["analysis"]), published(asked["analysis"])
        plan = plan_of(ReleaseKind.UPPER, [(scored, queries)], asked)
        if paper is not None:
            return paper.sensitivity(request.rows, scored, plan, queries=queries)
        price, within = price_votes(request.rows, scored, order=plan.order, beta=plan.beta, few=few)
        return Sensitivity(price, plan, scored.parameters(), queries, within)


def _measured(request: Request, asked: Mapping[str, Any], **told: Any) -> VoteCost:
    """Return the cost of the labels of a run, with the analysis and the RDP orders in `asked`."""
    analysis, orders = published(asked["analysis"]) or TIGHT, asked["orders"]
    named = isinstance(orders, str)
    return measure_cost(
        request.rows,
        request.scored,
        orders=analysis.orders(OrderChoice(orders)) if named else check_orders(orders),
        delta=request.delta,
        analysis=analysis,
        few=request.few(asked["analysis"]),
        **told,
    )


def _on_target(request: Request, plan: TargetPlan) -> dict[str, Any]:
    """Return the pass probability of a run, and targets and row counts with which runs may pass."""
    scored = request.scored
    bound = settled_bound(plan.bound, scored, rows=request.queries, orders=plan.orders)
    further = _LOOK_AHEAD if bound is Bound.TWO_TAIL else _SLOW_LOOK_AHEAD
    rows = min(further * request.queries, request.file.queries)
    return measure_target(
        replace(request, queries=rows).rows,
        scored,
        replace(plan, bound=bound),
        queries=request.queries,
        max_answers=request.max_answers,
        few=request.few(),
    )


def _compared(
    request: Request, choice: MechanismChoice, answers: float, few: Few
) -> dict[str, Any]:
    """Return the cost of one mechanism if the expected number of answers is `answers`."""

    def build(refusals: int) -> Mechanism:
        return request.under(choice.affording(refusals)).mechanism

    return compare_at(request.rows, build, answers=answers, delta=request.delta, few=few)
