"""How many answers an ε buys, by each way to one that may be published; takes minutes.

`python sample_votes/answers.py [FOLDER]` runs `pate tune` on the samples, and on the vote files
(.npy) of a folder, for example of the authors'. Settings are tuned on the votes themselves, so the
figures compare the ways and promise nothing: on private votes they would be SECRET, and settings
fixed beforehand do worse.

Tested target: answers times the chance that they pass the release test; it holds for all votes, and
where the worst case allows more, it always passes. Worst case: labels alone, for all votes. Upper
release: a bound about these votes. At least 90% of the answers equal the plurality, δ = 1e-5.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from ensembles import FOLDER

import pate_cli as pate

TARGETS = (1.0, 1.5, 2.0, 3.0)
WAYS = {"tested target": "target", "worst case": "none", "upper release": "upper"}
SAMPLES = ("demo.parquet", "adult.parquet", "digits.parquet")
MOST_ROWS = 12_000


def answers(votes: Path, way: str, target: float) -> float:
    """Expected answers within ε of the best settings; 0 where nothing is reached."""
    layout = "counts" if votes.suffix == ".npy" else None
    try:
        found = pate.tune(
            votes,
            target_epsilon=target,
            release=way,
            layout=layout,
            max_queries=MOST_ROWS,
            public_votes=True,
        )
    except pate.UnreachableError:
        return 0.0
    return float(found.to_dict()["winner"]["expected_answers"])


def lines(votes: Path, targets: tuple[float, ...] = TARGETS) -> Iterator[str]:
    """A line for each way; what is had at a smaller ε is had at a larger one as well."""
    found = {
        name: [answers(votes, way, target) for target in targets] for name, way in WAYS.items()
    }
    pairs = zip(found["tested target"], found["worst case"], strict=True)
    found["tested target"] = [max(pair) for pair in pairs]
    for name, row in found.items():
        best = [max(row[: place + 1]) for place in range(len(row))]
        yield f"{votes.name:24} {name:14}" + "".join(f"{each:9.1f}" for each in best)


def main(folder: str | None = None) -> None:
    """Print the table, a vote file as soon as it is done."""
    files = [FOLDER / name for name in SAMPLES]
    files += [] if folder is None else sorted(Path(folder).glob("*_teachers.npy"))
    head = "".join(f"{target:9g}" for target in TARGETS)
    sys.stdout.write(f"{'expected answers at ε =':39}{head}\n")
    for votes in files:
        for line in lines(votes):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
