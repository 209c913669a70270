"""Parameters and words that are gone: what to use instead of each."""

from __future__ import annotations

from typing import Final

GONE: Final = {
    "as_published": (
        "`analysis` paper charges a draw what it costs; for the figures that the paper printed run "
        "python -m pate_cli.paper table2"
    ),
    "escape_formulas": "give spreadsheets Parquet, which has no formulas",
    "exponential_scale": (
        "use `mechanism` lnmax with `laplace_scale`, which has the same epsilon an answer"
    ),
    "export_rdp": "pate explain REPORT --export-rdp FILE writes the curve",
    "front": "tune tells the best of each mechanism; ask for several targets to see what each buys",
    "json": "`report` - writes the report to standard output",
    "labels_as": "CSV has a row for each pair of query and label, the other formats have lists",
    "objective": "raise `min_agreement` for answers that agree more often",
    "pool": "put the queries of a cluster into one row before aggregating",
    "prior_weights": "give one `prior_weight`, or none: tune searches for the best",
    "rule_of_thumb": "left out, `order`, `beta` and `sigma_release` follow from a public rule",
    "sigmas1": "give one `sigma1`, or none: tune searches for the best",
    "sigmas2": "give one `sigma2`, or none: tune searches for the best",
    "thresholds": "give one `threshold`, or none: tune searches for the best",
    "truth": "compare the labels to the truth once they are released",
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
