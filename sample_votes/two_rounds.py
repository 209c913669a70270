"""Two rounds on the digits and a student in between: `python sample_votes/two_rounds.py [FOLDER]`.

Round one, Confident-GNMax, labels some queries, and a small student learns them. Round two,
Interactive-GNMax, asks the teachers only where they contradict the student, and reinforces what
the student is sure of: that costs no more than the test itself. `pate release` adds up the ledgers
of both, at a Renyi order fixed before the first label. Needs nothing beyond the tool itself.

The ensemble is small, 100 teachers with 12 digits each, and so epsilon is large: this shows how
rounds are put together, not how good they can be.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from ensembles import FOLDER, load
from numpy.typing import NDArray

ORDER = 4
# Fixed beforehand, on the number of teachers alone.
ROUND1 = "--threshold 55 --sigma1 30 --sigma2 16"
ROUND2 = "--mechanism interactive --threshold 35 --sigma1 30 --sigma2 16 --confidence 0.8"
ROUND = slice(0, 200), slice(200, 400)
TEST = slice(400, None)


def pate(folder: Path, words: str, seed: int | None) -> dict[str, Any]:
    """Run `pate` in the folder; the report that it prints.

    What pate remembers of records stays in the folder, too: the same sample may be run again.
    """
    noise = [] if seed is None else ["--seed", str(seed)]
    command = [sys.executable, "-m", "pate_cli", *words.split(), *noise]
    env = os.environ | {"PATE_HOME": str(folder / "remembered")}
    run = subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)
    return json.loads(run.stdout)


def learn(pixels: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    """Weights of a softmax regression, [65, 10], by plain gradient descent."""
    inputs, wanted = with_bias(pixels), np.eye(10)[labels]
    weights = np.zeros((inputs.shape[1], 10))
    for _ in range(300):
        slope = inputs.T @ (softmax(inputs @ weights) - wanted) / len(labels)
        weights -= 1.0 * (slope + 1e-3 * weights)
    return weights


def predict(weights: NDArray[np.float64], pixels: NDArray[Any]) -> NDArray[np.float64]:
    """The student's probabilities, [queries, 10]."""
    return softmax(with_bias(pixels) @ weights)


def with_bias(pixels: NDArray[Any]) -> NDArray[np.float64]:
    """Pixels from 0 to 1, and a column of ones."""
    return np.column_stack([pixels / 16.0, np.ones(len(pixels))])


def softmax(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows that sum to 1."""
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def labels_of(path: Path) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """(labels with -1 for none, sources) of a released file."""
    table = pq.read_table(path).to_pydict()
    labels = [-1 if label is None else label for label in table["label"]]
    return np.array(labels), np.array(table["source"])


def both_rounds(folder: Path, *, seed: int | None = None) -> dict[str, Any]:
    """Run everything in a folder and leave all files there; the figures of the summary."""
    pixels = np.stack(list(load("digits_queries.parquet").values()), axis=1)
    truth = load("digits_truth.parquet")["label"]
    votes = pq.read_table(FOLDER / "digits.parquet")
    for number, rows in enumerate(ROUND, start=1):
        part = votes.slice(rows.start, rows.stop - rows.start)
        pq.write_table(part, folder / f"votes{number}.parquet")

    keep = f"--order {ORDER} --release none --layout counts"
    first = pate(
        folder,
        f"aggregate votes1.parquet {ROUND1} {keep} --ledger round1.ledger -o labels1.parquet",
        seed,
    )
    labels, _ = labels_of(folder / "labels1.parquet")
    known = labels >= 0
    weights = learn(pixels[ROUND[0]][known], labels[known])
    np.save(folder / "student.npy", predict(weights, pixels[ROUND[1]]))

    second = pate(
        folder,
        f"aggregate votes2.parquet {ROUND2} --student student.npy {keep} --ledger round2.ledger "
        "-o labels2.parquet",
        None if seed is None else seed + 1,
    )
    more, sources = labels_of(folder / "labels2.parquet")
    both = np.concatenate([labels, more])
    final = learn(pixels[: len(both)][both >= 0], both[both >= 0])
    composed = pate(folder, "release round1.ledger round2.ledger", seed)

    def accuracy(of: NDArray[np.float64]) -> float:
        right = predict(of, pixels[TEST]).argmax(axis=1) == truth[TEST]
        return float(right.mean())

    return {
        "answers": [first["answers"], second["answers"]],
        "reinforced": int((sources == "student").sum()),
        "labels right": [
            float((found == truth[rows])[found >= 0].mean())
            for found, rows in zip((labels, more), ROUND, strict=True)
        ],
        "student right": [accuracy(weights), accuracy(final)],
        "epsilon": composed["epsilon"],
        "delta": composed["delta"],
    }


def main() -> None:
    """Print what both rounds came to; files stay in the folder named, if one is."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(temporary)
        found = both_rounds(folder, seed=None)
    one, two = found["answers"]
    first, second = found["labels right"]
    before, after = found["student right"]
    sys.stdout.write(
        f"round 1: {one} of 200 queries answered, {first:.1%} of them right; student right on "
        f"{before:.1%}\n"
        f"round 2: {two} of 200 answered, {found['reinforced']} reinforced, {second:.1%} of them "
        f"right; student right on {after:.1%}\n"
        f"both rounds: epsilon {found['epsilon']:.2f} at delta {found['delta']:g}\n"
    )


if __name__ == "__main__":
    main()
