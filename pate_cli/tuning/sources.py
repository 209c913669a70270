"""Electorates that are not a file of votes."""

from __future__ import annotations

from typing import Any

from pate_cli.errors import UsageError
from pate_cli.synthetic import SyntheticEnsemble
from pate_cli.tuning.electorate import Electorate

__all__ = ["made_up", "reference"]

# The public recipe that `pate` also chooses release parameters by, where none is given.
_AGREEMENT, _SPREAD, _SEED = 0.75, 0.4, 20180224
_WHOLE = {"teachers", "classes", "queries", "seed"}
_REQUIRED = ("teachers", "classes", "queries")
_FIELDS = (*_REQUIRED, "agreement", "spread", "confusion", "imbalance", "seed")


def made_up(text: str, *, teachers_per_record: int = 1) -> tuple[Electorate, dict[str, float]]:
    """A synthetic electorate from `teachers=250,classes=10,queries=1000,…,seed=0`.

    Returns:
        The electorate with its truth, and every number of its recipe.

    Raises:
        UsageError: an unknown, repeated, missing or malformed field.
        ParameterError: a number out of range.
    """
    given: dict[str, float] = {}
    for part in text.split(","):
        name, found, value = (piece.strip() for piece in part.partition("="))
        if not found or name not in _FIELDS or name in given:
            raise UsageError(
                f"--synthetic takes each of {', '.join(_FIELDS)} once, as name=value, got {part!r}"
            )
        try:
            given[name] = int(value) if name in _WHOLE else float(value)
        except ValueError:
            raise UsageError(f"--synthetic: {name} must be a number, got {value!r}") from None
    missing = [name for name in _REQUIRED if name not in given]
    if missing:
        raise UsageError(f"--synthetic needs {', '.join(missing)}")
    seed = int(given.pop("seed", 0))
    if seed < 0:
        raise UsageError(f"--synthetic: seed must be at least 0, got {seed}")
    recipe: dict[str, Any] = dict(given)
    ensemble = SyntheticEnsemble(**recipe)
    return _drawn(ensemble, seed, teachers_per_record)


def reference(
    *, teachers: int, classes: int, queries: int, teachers_per_record: int = 1
) -> tuple[Electorate, dict[str, float]]:
    """The reference electorate (mean agreement 0.75, spread 0.4, a fixed seed) of this shape."""
    ensemble = SyntheticEnsemble(
        teachers=teachers,
        classes=classes,
        queries=queries,
        agreement=_AGREEMENT,
        spread=_SPREAD,
    )
    return _drawn(ensemble, _SEED, teachers_per_record)


def _drawn(
    ensemble: SyntheticEnsemble, seed: int, teachers_per_record: int
) -> tuple[Electorate, dict[str, float]]:
    counts, truth = ensemble.draw(seed)
    recipe = {name: getattr(ensemble, name) for name in _FIELDS if name != "seed"} | {"seed": seed}
    return Electorate(counts, ensemble.teachers, teachers_per_record, truth), recipe
