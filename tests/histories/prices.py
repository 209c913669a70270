"""Dear prices, looked up: pure functions of few arguments, which every history asks again.

What is known of them stays in this process from history to history; `pate` itself keeps nothing.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import pickle
import sys
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from histories.system import replaced
from pate_cli.disclosure import runs as all_runs
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.runs import Run
from pate_cli.files.document import encoded

_FUNCTIONS: Final = (
    ("pate_cli.disclosure.stopping", "stop_rule"),
    ("pate_cli.planning.sanitized", "choose_plan"),
    ("pate_cli.accounting.gaussian.two_tails", "two_tail_rdp_directions"),
    ("pate_cli.accounting.gaussian.two_classes", "two_class_rdp"),
)
_METHODS: Final = (
    ("pate_cli.mechanisms.confident", "ConfidentGNMax", "worst_rdp"),
    ("pate_cli.mechanisms.base", "OneScoreMechanism", "worst_rdp"),
)


@contextlib.contextmanager
def known() -> Iterator[None]:
    """Until the block is left."""
    with replaced(*_places()):
        yield


@functools.cache
def _places() -> tuple[tuple[Any, str, Any], ...]:
    """Wherever they are called from."""
    importlib.import_module("pate_cli.verbs.session")
    importlib.import_module("pate_cli.verbs.release")
    importlib.import_module("pate_cli.verbs.spent")
    ours = [module for name, module in sys.modules.items() if name.startswith("pate_cli.")]
    places: list[tuple[Any, str, Any]] = []
    new: Any
    for where, name in _FUNCTIONS:
        old = getattr(importlib.import_module(where), name)
        new = _looked_up(old)
        places += [(module, name, new) for module in ours if module.__dict__.get(name) is old]
    for where, called, name in _METHODS:
        place = getattr(importlib.import_module(where), called)
        places.append((place, name, _looked_up(place.__dict__[name])))
    places.append((Cost, "of_curves", property(_looked_up(Cost.of_curves.func))))
    places.append((Cost, "least_delta", property(_looked_up(Cost.least_delta.fget))))
    old, new = all_runs.total_of, _looked_up_total(all_runs.total_of)
    places += [
        (module, "total_of", new) for module in ours if module.__dict__.get("total_of") is old
    ]
    hints = functools.cache(typing.get_type_hints)
    places.append((typing, "get_type_hints", lambda group, **named: dict(hints(group, **named))))
    return tuple(places)


def _looked_up(price: Callable[..., Any]) -> Callable[..., Any]:
    found: dict[bytes, Any] = {}

    @functools.wraps(price)
    def priced(*given: Any, **named: Any) -> Any:
        key = pickle.dumps((given, named))
        if key not in found:
            found[key] = price(*given, **named)
        return found[key]

    return priced


def _looked_up_total(price: Callable[..., Any]) -> Callable[..., Any]:
    """Whatever the runs are called, and in whatever order they come."""
    found: dict[tuple[bytes, ...], Any] = {}

    @functools.wraps(price)
    def priced(runs: Sequence[Run]) -> Any:
        plain = sorted(
            ((pickle.dumps(_cost_alone(run)), run) for run in runs), key=lambda one: one[0]
        )
        key = tuple(cost for cost, _ in plain)
        if key not in found:
            found[key] = price([run for _, run in plain])
        return found[key]

    return priced


def _cost_alone(run: Run) -> Any:
    drawn = (run.draw, len(run.drawn_from))
    return run.outcome, run.counted, run.delta, encoded(run.settings), drawn, run.external
