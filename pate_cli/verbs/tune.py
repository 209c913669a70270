"""The verb that searches for settings on votes, before any of them are spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from pate_cli.core.arrays import stacked
from pate_cli.core.errors import UsageError
from pate_cli.core.words import Bound, MechanismName, ReleaseKind
from pate_cli.files.addresses import public_name
from pate_cli.mechanisms.amounts import Amount, in_votes
from pate_cli.planning.goal import Goal
from pate_cli.planning.synthetic import from_recipe
from pate_cli.planning.tune import Tuned
from pate_cli.planning.tune import tune as tuned_on
from pate_cli.planning.vote_model import VoteModel
from pate_cli.verbs.request import reading
from pate_cli.votes.join import classes_or_shares
from pate_cli.votes.join import prior as prior_of
from pate_cli.votes.opening import open_votes

_MECHANISMS = (MechanismName.CONFIDENT, MechanismName.GNMAX)


def tuned(asked: Mapping[str, Any]) -> Tuned:
    """Return the best settings for a goal; `asked` as `signatures.tune` has it."""
    votes, synthetic, mechanism = asked["votes"], asked["synthetic"], asked["mechanism"]
    release, public_votes = asked["release"], asked["public_votes"]
    kinds = (ReleaseKind.TARGET, ReleaseKind.NONE) if release is None else (ReleaseKind(release),)
    goals = [
        Goal(
            release=kind,
            epsilon=asked["target_epsilon"],
            answers=asked["answers"],
            min_agreement=asked["min_agreement"],
            delta=asked["delta"],
            bound=Bound(asked["bound"])
            if kind is ReleaseKind.TARGET or release is not None
            else Bound.AUTO,
        )
        for kind in kinds
    ]
    _check(votes, synthetic, asked, public=public_votes)
    if mechanism is not None and MechanismName(mechanism) not in _MECHANISMS:
        raise UsageError(f"`mechanism` must be confident or gnmax, got {mechanism}")
    words = _words(votes, asked)
    if synthetic is not None:
        k = asked["teachers_per_record"]
        counts, guesses, recipe = from_recipe(synthetic)
        model = VoteModel(counts, int(recipe["teachers"]), teachers_per_record=k, guesses=guesses)
        basis: dict[str, Any] = {"votes": "synthetic", **recipe}
    else:
        model, basis = _model(votes, asked)
    found = tuned_on(
        model,
        goals,
        given=_given(asked, model.teachers),
        mechanism=None if mechanism is None else MechanismName(mechanism),
        progress=asked["progress"] or (lambda _looked_at: None),
        interrupted=asked["interrupted"] or (lambda: None),
    )
    return replace(
        found,
        basis=basis,
        public=votes is None or public_votes,
        votes=public_name(votes) if isinstance(votes, str) else "VOTES",
        words=(*words, *_prior_words(asked, found)),
    )


def _check(votes: Any, synthetic: str | None, asked: Mapping[str, Any], *, public: bool) -> None:
    """UsageError for what contradicts itself, or leaves open what to search on."""
    if votes is not None and synthetic is not None:
        raise UsageError("`synthetic` looks at no votes; leave out VOTES")
    if votes is None and synthetic is None:
        raise UsageError(
            "give VOTES or `synthetic`; before there are votes, pate plan says what to expect"
        )
    given = {name: asked[name] for name in (*reading(asked), "max_queries", "prior")}
    for name, value in {**given, "public_votes": public}.items():
        if votes is None and value is not None and value is not False:
            raise UsageError(f"`{name}` needs VOTES; `synthetic` says all of its own")
    if asked["prior_weight"] is not None and votes is not None and asked["prior"] is None:
        raise UsageError("`prior_weight` needs `prior`, the guesses that it weighs")


def _model(votes: Any, asked: Mapping[str, Any]) -> tuple[VoteModel, dict[str, Any]]:
    """The votes of a file, with the guesses of a prior, and in numbers what they are."""
    with open_votes(votes, **reading(asked)) as file:
        file.refuse_unlisted("what is asked")
        file.refuse_unmatched()
        k = asked["teachers_per_record"]
        if file.facts.groups:
            if k != 1:
                raise UsageError("`teachers_per_record` does not go with `groups`")
            k = max(group.votes_per_record for group in file.facts.groups)
        queries = file.rows_for("max_queries", asked["max_queries"])
        prior = None if asked["prior"] is None else prior_of(asked["prior"], file)
        counts, guesses = [], []
        for batch in file.batches(limit=queries):
            counts.append(batch.counts)
            if prior is not None:
                guesses.append(classes_or_shares(batch, prior))
        model = VoteModel(
            stacked(counts),
            file.teachers,
            teachers_per_record=k,
            votes_together=bool(file.facts.groups) and file.votes_together,
            guesses=np.concatenate(guesses) if guesses else None,
        )
        basis = {"teachers": file.teachers, "classes": file.classes, "queries": queries}
        if file.rows_per_query > 1:
            basis["rows_per_query"] = file.rows_per_query
        return model, {"votes": "file", **basis}


def _given(asked: Mapping[str, Any], teachers: int) -> dict[str, float]:
    """The parameters that are settled, in votes."""
    named = {name: asked[name] for name in ("threshold", "sigma1", "sigma2")}
    given = in_votes({name: each for name, each in named.items() if each is not None}, teachers)
    if asked["prior_weight"] is not None:
        weight = Amount.of("prior_weight", asked["prior_weight"]).votes(teachers)
        given["prior_weight"] = round(weight)
    return given


def _words(votes: Any, asked: Mapping[str, Any]) -> list[str]:
    """Options on an `aggregate` line that describe the votes."""
    words: list[str] = []
    for name, value in reading(asked).items():
        if votes is None or value is None or value is False:
            continue
        words.append(f"--{name.replace('_', '-')}")
        if value is not True:
            plain = isinstance(value, str | PathLike | int)
            words.append(public_name(str(value)) if plain else name.upper())
    return words


def _prior_words(asked: Mapping[str, Any], found: Tuned) -> list[str]:
    """The prior on an `aggregate` line, where it has any weight."""
    if not found.best.settings.prior_weight:
        return []
    prior = asked["prior"]
    return ["--prior", public_name(prior) if isinstance(prior, str | PathLike) else "PRIOR"]
