"""Pictures that commands draw beside their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pate_cli.files.protected import PICTURE

if TYPE_CHECKING:
    from pate_cli.files.outputs import Outputs


def promised(out: Outputs, plot: str | None, *, mode: int = 0o600) -> None:
    """Promise a picture, where one is wanted; one that shows votes is its owner's alone."""
    if plot is not None:
        from pate_cli.disclosure.pictures import check_plot

        check_plot(plot)
        out.reserve(plot, mode=mode, replaces=PICTURE)


def drawn(out: Outputs, plot: str | None, picture: Callable[[], Any]) -> None:
    """Write a picture, where one is wanted; only then is it drawn."""
    if plot is not None:
        from pate_cli.disclosure.pictures import encode_picture

        out.write(plot, encode_picture(picture(), plot))
