"""The special functions of scipy, imported with the first value that is wanted of one.

They take longer to import than numpy does, and half of the commands want none. Those that are
written in C are taken from where they are; what scipy has around them serves arrays of others.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any


def _of(module: str, name: str) -> Callable[..., Any]:
    @functools.cache
    def found() -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return function

    def call(*values: Any, **options: Any) -> Any:
        return found()(*values, **options)

    call.__doc__ = f"`scipy.special.{name}`."
    return call


_in_c = functools.partial(_of, "scipy.special._ufuncs")

betainc = _in_c("betainc")
expit = _in_c("expit")
gammaln = _in_c("gammaln")
log_expit = _in_c("log_expit")
log_ndtr = _in_c("log_ndtr")
logsumexp = _of("scipy.special", "logsumexp")
ndtr = _in_c("ndtr")
ndtri = _in_c("ndtri")
ndtri_exp = _in_c("ndtri_exp")
