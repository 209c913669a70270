"""The special functions of scipy, imported with the first value that is wanted of one.

They take longer to import than numpy does, and half of the commands want none.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any


def _of_scipy(name: str) -> Callable[..., Any]:
    @functools.cache
    def found() -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(importlib.import_module("scipy.special"), name)
        return function

    def call(*values: Any, **options: Any) -> Any:
        return found()(*values, **options)

    call.__doc__ = f"`scipy.special.{name}`."
    return call


expit = _of_scipy("expit")
gammaln = _of_scipy("gammaln")
log_expit = _of_scipy("log_expit")
log_ndtr = _of_scipy("log_ndtr")
logsumexp = _of_scipy("logsumexp")
ndtr = _of_scipy("ndtr")
ndtri = _of_scipy("ndtri")
ndtri_exp = _of_scipy("ndtri_exp")
