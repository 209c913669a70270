"""Made-up votes from a line of text, such as `teachers=250,classes=10,queries=1000`."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.planning.synthetic import SyntheticEnsemble
from pate_cli.planning.vote_model import VoteModel

_WHOLE = {"teachers", "classes", "queries", "seed"}
_REQUIRED = ("teachers", "classes", "queries")
_FIELDS = (*_REQUIRED, "agreement", "spread", "confusion", "imbalance", "prior", "seed")
_PRIOR_STREAM = 1


def made_up_votes(text: str, *, teachers_per_record: int = 1) -> tuple[VoteModel, dict[str, float]]:
    """Return votes of a synthetic ensemble, as if of a file, and every number of its recipe.

    Args:
        text: `name=value` by commas: teachers, classes and queries, and as wanted agreement,
            spread, confusion, imbalance, seed, and how often a made-up prior is right.
        teachers_per_record: k, how many votes of a query one record may move.

    Raises:
        UsageError: an unknown, repeated, missing or malformed field.
        ParameterError: a number out of range.
    """
    given: dict[str, float] = {}
    for part in text.split(","):
        name, found, value = (piece.strip() for piece in part.partition("="))
        if not found or name not in _FIELDS or name in given:
            raise UsageError(
                f"`synthetic` takes each of {', '.join(_FIELDS)} once, as name=value, got {part!r}"
            )
        try:
            given[name] = int(value) if name in _WHOLE else float(value)
        except ValueError:
            raise UsageError(f"`synthetic`: {name} must be a number, got {value!r}") from None
    missing = [name for name in _REQUIRED if name not in given]
    if missing:
        raise UsageError(f"`synthetic` needs {', '.join(missing)}")
    seed = int(given.pop("seed", 0))
    if seed < 0:
        raise UsageError(f"`synthetic`: seed must be at least 0, got {seed}")
    accuracy = given.pop("prior", None)
    shape: dict[str, Any] = dict(given)
    ensemble = SyntheticEnsemble(**shape)
    counts, truth = ensemble.draw(seed)
    votes = VoteModel(counts, ensemble.teachers, teachers_per_record=teachers_per_record)
    numbers = {**asdict(ensemble), "seed": seed}
    if accuracy is None:
        return votes, numbers
    if not 0.0 <= accuracy <= 1.0:
        raise ParameterError(f"`synthetic`: prior must be between 0 and 1, got {accuracy}")
    # The votes are those of the recipe without a prior.
    random = np.random.default_rng([seed, _PRIOR_STREAM])
    wrong = random.random(truth.size) >= accuracy
    shift = np.where(wrong, random.integers(1, votes.classes, truth.size), 0)
    return replace(votes, guesses=(truth + shift) % votes.classes), {**numbers, "prior": accuracy}
