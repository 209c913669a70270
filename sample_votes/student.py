"""The whole of PATE on census records: `python sample_votes/student.py [SEEDS]`.

Teachers' votes become private labels (`pate aggregate`), the labels train a random forest, and the
forest is tested on records that nobody trained on. Beside it stand the forest that saw all private
records, the ensemble's plurality, and what ICLR 2018 published for Adult. Runs with --seed 0, 1, …
so that the table can be made again; a student to be published is trained without.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from ensembles import FOLDER, load, load_counts
from make_adult import QUERY, TEST, split
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

RUNS = {
    "LNMax b=20": "--mechanism lnmax --laplace-scale 20 --max-queries 500 --release upper",
    "Confident T=300 s1=200 s2=40": "--threshold 300 --sigma1 200 --sigma2 40 --max-queries 1500 "
    "--release upper",
}
PUBLISHED = {
    "LNMax b=20": "500 answers, epsilon 2.66, student 83.0%",
    "Confident T=300 s1=200 s2=40": "524 answers, epsilon 1.90, student 83.7%",
}
SEEDS = 10


def forest(seed: int, *, few: bool = True) -> RandomForestClassifier:
    """100 trees; with few labels every split may look at every feature."""
    features = None if few else "sqrt"
    return RandomForestClassifier(n_estimators=100, random_state=seed, max_features=features)


def aggregate(flags: str, seed: int) -> tuple[NDArray[Any], NDArray[Any], dict[str, Any]]:
    """(places of the answered queries, their labels, the report) of one run."""
    with tempfile.TemporaryDirectory() as folder:
        labels = Path(folder) / "labels.parquet"
        words = [str(FOLDER / "adult.parquet"), *flags.split(), "--output", str(labels)]
        run = subprocess.run(
            [sys.executable, "-m", "pate_cli", "aggregate", *words, "--seed", str(seed), "-q"],
            check=True,
            stdout=subprocess.PIPE,
        )
        table = pq.read_table(labels).to_pydict()
    found = np.array([-1 if label is None else label for label in table["label"]])
    answered = np.flatnonzero(found >= 0)
    return answered, found[answered], json.loads(run.stdout)


def spread(values: list[float], form: str) -> str:
    """Mean ± standard deviation."""
    return f"{np.mean(values):{form}} ± {np.std(values, ddof=1):{form}}"


def line(*cells: str) -> None:
    """A row of the table."""
    widths = (30, 12, 14, 16, 16)
    padded = [f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=False)]
    sys.stdout.write("".join(padded).rstrip() + "\n")
    sys.stdout.flush()


def main() -> None:
    """Print the table, over as many seeds as named on the command line."""
    seeds = range(max(2, int(sys.argv[1])) if len(sys.argv) > 1 else SEEDS)
    features, truth, part = split(load("adult_records.parquet"))
    queries, test = features[part == QUERY], features[part == TEST]
    asked, tested = truth[part == QUERY], truth[part == TEST]
    private = part >= 0

    def accuracy(fit: RandomForestClassifier) -> float:
        return float(fit.score(test, tested))

    line("aggregator", "answers", "epsilon", "labels right", "student right")
    for name, flags in RUNS.items():
        answers, epsilons, right, students = [], [], [], []
        for seed in seeds:
            answered, labels, report = aggregate(flags, seed)
            answers.append(float(len(answered)))
            epsilons.append(report["epsilon"])
            right.append(float((labels == asked[answered]).mean()))
            students.append(accuracy(forest(seed).fit(queries[answered], labels)))
        line(
            name,
            spread(answers, ".0f"),
            spread(epsilons, ".2f"),
            spread(right, ".1%"),
            spread(students, ".1%"),
        )
        line("  published, ICLR 2018", f"({PUBLISHED[name]})")
    plurality = load_counts("adult.parquet").argmax(axis=1)
    for asking in (500, 1500):
        fits = [accuracy(forest(s).fit(queries[:asking], plurality[:asking])) for s in seeds]
        line("plurality, no noise", str(asking), "none", "", spread(fits, ".1%"))
    fits = [accuracy(forest(s, few=False).fit(features[private], truth[private])) for s in seeds]
    sys.stdout.write(
        f"\nnot private: a forest on all {private.sum()} private records is right on "
        f"{spread(fits, '.1%')} (published baseline 85.0%)\n"
        f"the ensemble's plurality is right on {(plurality == asked).mean():.1%} of "
        f"{len(asked)} queries; answering '<=50K' always, on {1 - tested.mean():.1%} of "
        f"{len(tested)} test records\n"
        "epsilon at delta 1e-5: what `pate aggregate --release upper` publishes; "
        f"± over {len(fits)} seeds\n"
    )


if __name__ == "__main__":
    main()
