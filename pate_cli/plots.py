"""Pictures, for those who installed the optional extra `plot`: how they are drawn and kept.

Every picture drawn from votes is SECRET and says so in its title. Colours are Okabe and Ito's,
which colour-blind readers can tell apart; line styles and markers differ as well.
"""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, Final

from pate_cli.errors import UsageError

__all__ = [
    "SECRET",
    "STYLE",
    "check_plot",
    "encode_figure",
    "legend_below",
    "new_axes",
    "pareto_picture",
    "require_matplotlib",
    "save_figure",
]

SECRET: Final = "secret: not releasable"  # noqa: S105 - a title, no password
STYLE: Final = {
    "font.size": 13,
    "axes.titlesize": 13,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.fontsize": 12,
    "legend.frameon": False,
    "lines.linewidth": 2.2,
    "svg.hashsalt": "pate",
}

_FORMATS = (".png", ".svg")
_SIZE = (8.0, 5.0)
_DPI = 110


def require_matplotlib() -> Any:
    """The matplotlib module; it is an extra, so that the tool itself stays small.

    Raises:
        UsageError: it is not installed.
    """
    try:
        importlib.import_module("matplotlib.figure")
        return importlib.import_module("matplotlib")
    except ImportError:
        raise UsageError(
            "--plot needs matplotlib, which is optional: pip install 'pate-cli[plot]'"
        ) from None


def check_plot(path: str | os.PathLike[str]) -> str:
    """`png` or `svg` by the suffix; called before any work, so that nothing is drawn in vain.

    Raises:
        UsageError: another suffix, or matplotlib is not installed.
    """
    suffix = PurePath(path).suffix.lower()
    if suffix not in _FORMATS:
        raise UsageError(f"--plot writes {' or '.join(_FORMATS)}, got '{os.fspath(path)}'")
    require_matplotlib()
    return suffix[1:]


def new_axes(title: str) -> tuple[Any, Any]:
    """(figure, axes) with a title that says secret, without the global state of pyplot."""
    matplotlib = require_matplotlib()
    with matplotlib.rc_context(STYLE):
        figure = matplotlib.figure.Figure(figsize=_SIZE, layout="constrained")
        axes = figure.add_subplot()
        axes.set_title(f"{title}\n{SECRET}", loc="left")
    return figure, axes


def legend_below(
    figure: Any, handles: Sequence[Any], *, columns: int = 3, title: str | None = None
) -> None:
    """A legend under the axes, where it hides nothing."""
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, title=title)


def encode_figure(figure: Any, path: str | os.PathLike[str]) -> bytes:
    """A figure in the format that the suffix of `path` names; PNG without a date.

    Raises:
        UsageError: as `check_plot`.
    """
    picture = check_plot(path)
    sink = io.BytesIO()
    stamp = {"Date": None} if picture == "svg" else {"Software": None}
    with require_matplotlib().rc_context(STYLE):
        figure.savefig(sink, format=picture, dpi=_DPI, metadata=stamp)
    return sink.getvalue()


def save_figure(figure: Any, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a figure to a file of mode 0600: whoever sees it learns about the votes.

    Raises:
        UsageError: as `check_plot`.
        OutputError: the file exists and `force` is off, or it cannot be written.
    """
    from pate_cli.files.transaction import Outputs

    with Outputs(force=force) as out:
        out.reserve(path, mode=0o600)
        out.write(path, encode_figure(figure, path))


def pareto_picture(
    points: Sequence[dict[str, Any]], winner: dict[str, Any] | None, *, picture: str
) -> bytes:
    """Expected answers against ε, coloured by agreement with the plurality.

    Args:
        points: each with `expected_answers`, `epsilon` and `agreement`.
        winner: one more of them, marked; or None.
        picture: `png` or `svg`.

    Raises:
        UsageError: matplotlib is not installed.
    """
    figure = require_matplotlib().figure.Figure(figsize=(7.0, 4.5), layout="constrained")
    axes = figure.subplots()
    marks = axes.scatter(
        [one["expected_answers"] for one in points],
        [one["epsilon"] for one in points],
        c=[one["agreement"] for one in points],
        cmap="viridis",
    )
    if points:
        figure.colorbar(marks, ax=axes, label="agreement with the plurality")
        axes.set_xscale("log")
        axes.set_yscale("log")
    if winner is not None:
        axes.scatter(
            [winner["expected_answers"]],
            [winner["epsilon"]],
            marker="*",
            s=180,
            facecolors="none",
            edgecolors="tab:red",
            label="winner",
        )
        axes.legend()
    axes.set_xlabel("expected answers")
    axes.set_ylabel("published epsilon")
    axes.grid(visible=True, which="both", alpha=0.3)
    file = io.BytesIO()
    figure.savefig(file, format=picture, dpi=150)
    return file.getvalue()
