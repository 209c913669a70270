"""Find settings of runs: `planned` needs no votes, `tuned` uses real or made-up votes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from pate_cli.core.arrays import stacked
from pate_cli.core.errors import UsageError
from pate_cli.core.words import PRIOR_SHARE, Bound, MechanismName, ReleaseKind
from pate_cli.disclosure.settings import Training
from pate_cli.files.addresses import public_name
from pate_cli.mechanisms import Amount, MechanismChoice, in_votes
from pate_cli.planning import plan as planning
from pate_cli.planning.goal import Goal
from pate_cli.planning.plan import Plan, Question
from pate_cli.planning.synthetic import from_recipe
from pate_cli.planning.tune import Tuned
from pate_cli.planning.tune import tune as tuned_on
from pate_cli.planning.vote_model import PRIOR_ACCURACY, VoteModel, agreement_levels
from pate_cli.planning.voters import VoterPlan, plan_voters
from pate_cli.run.fold import nothing_seen
from pate_cli.verbs.keywords import Votes, dashed
from pate_cli.verbs.request import PARAMETERS, parameters_in, reading, requested
from pate_cli.votes.join import classes_or_shares, teacher_groups
from pate_cli.votes.join import prior as prior_of


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


_MECHANISMS = (None, MechanismName.CONFIDENT, MechanismName.GNMAX)
_KINDS = (ReleaseKind.TARGET, ReleaseKind.NONE)


def tuned(asked: Mapping[str, Any]) -> Tuned:
    """Return the best settings for a goal; `asked` has the parameters of `signatures.tune`."""
    votes, release = asked["votes"], asked["release"]
    _check(votes, asked)
    mechanism = None if asked["mechanism"] is None else MechanismName(asked["mechanism"])
    if mechanism not in _MECHANISMS:
        raise UsageError(f"`mechanism` must be confident or gnmax, got {mechanism}")
    if mechanism is not None:
        MechanismChoice(
            mechanism, parameters_in(asked)
        )  # It refuses parameters of other mechanisms.
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


def _check(votes: Votes | None, asked: Mapping[str, Any]) -> None:
    """Raise UsageError if the caller gives neither votes nor `synthetic`.

    Without votes, a keyword that only makes sense for votes also raises UsageError.
    """
    if votes is None and asked["synthetic"] is None:
        raise UsageError(
            "give VOTES or `synthetic`; if you have no votes yet, use pate plan, which finds "
            "settings without votes"
        )
    for name in (*reading(asked), "max_queries", "prior", "public_votes"):
        if votes is None and asked[name] not in (None, False):
            raise UsageError(f"`{name}` needs VOTES; leave it out if you give `synthetic`")


def _made_up(asked: Mapping[str, Any]) -> tuple[VoteModel, dict[str, Any]]:
    """Return the made-up votes that `synthetic` describes, and the numbers in `synthetic`."""
    counts, guesses, recipe = from_recipe(asked["synthetic"])
    shared = asked["teachers_per_record"]
    teachers = int(recipe["teachers"])
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
        weight = Amount.of("prior_weight", asked["prior_weight"]).votes(teachers)
        given["prior_weight"] = round(weight)
    return given


def _words(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield options of `pate aggregate`, with values, that describe the votes and the prior."""
    for name, value in told.items():
        yield dashed(name)
        if value is not True:
            plain = isinstance(value, str | PathLike | int)
            yield public_name(str(value)) if plain else name.upper()
