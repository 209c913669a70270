"""Parameters and words that are gone: what to use instead of each."""

from __future__ import annotations

from typing import Final

GONE: Final = {
    "as_published": (
        "`analysis` paper charges a draw what it costs; for the figures that the paper printed run "
        "python -m pate_cli.reproduction table2"
    ),
    "epsilon": "say `target_epsilon`",
    "exponential_scale": (
        "use `mechanism` lnmax with `laplace_scale`, which has the same epsilon an answer"
    ),
    "pool": "put the queries of a cluster into one row before aggregating",
    "voting": (
        "every label is asked by itself; to vote on sets of labels, number the sets and give them "
        "as classes with `label_names`"
    ),
}
"""What completes "... is gone: ", by the name of the parameter; the flag is called likewise."""

GONE_WORDS: Final = {
    "permute-and-flip": "use lnmax, which has the same epsilon an answer",
    "unbiased": "use upper, which is a bound and not too low about half the time",
}
"""What completes "... is gone: ", by a word that a parameter took."""
