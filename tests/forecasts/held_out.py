"""What the public rule gives beside the best settings for votes that it never saw.

Twenty-four ensembles are held back: their generators are unlike the public model of
`planning.vote_model`, so that a rule cannot have been fitted to them. For each of them, and for the
samples, the table tells the expected answers of the settings that `aggregate` takes by itself, and
of those that `tune` finds on the very votes at the same agreement.

    PYTHONPATH=.:tests python tests/forecasts/held_out.py [NAME ...]

It prints one line of JSON for each ensemble, and mean and median of shares, at most 1, at the end.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from pate_cli.core.words import MechanismName, ReleaseKind
from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.forecast import forecast
from pate_cli.planning.goal import Goal
from pate_cli.planning.rule import SEARCHED_ROWS, choose, public_goal
from pate_cli.planning.tune import tune
from pate_cli.planning.vote_model import VoteModel, made_up
from pate_cli.votes.opening import open_votes

SEED = 271828
SAMPLES = Path(__file__).resolve().parents[2] / "sample_votes"


def two_camps(random, teachers, classes, rows):
    """Most queries are clear; on the others teachers are of two minds."""
    shares = np.zeros((rows, classes))
    camps = np.argsort(random.random((rows, classes)), axis=1)[:, :2]
    split = np.where(random.random(rows) < 0.65, 0.97, random.uniform(0.5, 0.9, rows))
    np.put_along_axis(shares, camps, np.column_stack([split, 1.0 - split]), axis=1)
    return _drawn(random, teachers, 0.98 * shares + 0.02 / classes)


def skilled_and_not(random, teachers, classes, rows):
    """A third of the teachers knows nearly everything, the others are right six times in ten."""
    truth = np.eye(classes)[random.integers(classes, size=rows)]
    skilled = teachers // 3
    known = 0.98 * truth + 0.02 / classes
    guessed = 0.6 * truth + 0.4 * random.dirichlet(np.full(classes, 0.5), rows)
    return _drawn(random, skilled, known) + _drawn(random, teachers - skilled, guessed)


def in_herds(random, teachers, classes, rows):
    """Teachers come in herds of one to seven, which vote alike."""
    shares = 0.8 * np.eye(classes)[random.integers(classes, size=rows)] + 0.2 / classes
    counts, left = np.zeros((rows, classes), dtype=np.int64), teachers
    while left:
        herd = min(int(random.integers(1, 8)), left)
        counts += herd * _drawn(random, 1, shares)
        left -= herd
    return counts


def by_distance(random, teachers, classes, rows):
    """Classes lie on a ring, and votes scatter around a point on it, widely for some queries."""
    places = np.arange(classes) / classes
    away = np.abs(places - random.random((rows, 1)))
    away = np.minimum(away, 1.0 - away)
    width = np.exp(random.normal(-2.6, 0.5, (rows, 1)))
    weights = np.exp(-0.5 * (away / width) ** 2) + 1e-3
    return _drawn(random, teachers, weights / weights.sum(axis=1, keepdims=True))


def unequal_classes(random, teachers, classes, rows):
    """Frequent classes are known to all teachers, rare ones to few."""
    frequency = 0.6 ** np.arange(classes)
    truth = random.choice(classes, size=rows, p=frequency / frequency.sum())
    known = np.clip(0.95 - 0.06 * truth + random.normal(0.0, 0.05, rows), 0.3, 0.99)[:, None]
    confused = np.full((rows, classes), 0.3 / (classes - 1))
    confused[:, 0] += 0.7  # what they do not know they take for the most frequent class
    return _drawn(random, teachers, known * np.eye(classes)[truth] + (1.0 - known) * confused)


def logits(random, teachers, classes, rows):
    """Each teacher takes the largest of common logits and noise of its own."""
    common = random.normal(0.0, 1.0, (rows, classes)) * 1.6
    counts = np.zeros((rows, classes), dtype=np.int64)
    for _ in range(teachers):
        own = common + random.normal(0.0, 0.8, (rows, classes))
        counts[np.arange(rows), own.argmax(axis=1)] += 1
    return counts


def _drawn(random, votes, shares):
    """Multinomial votes for shares [rows, classes]."""
    return random.multinomial(votes, shares / shares.sum(axis=1, keepdims=True))


_GENERATORS = (two_camps, skilled_and_not, in_herds, by_distance, unequal_classes, logits)
# Teachers, classes, rows and target, four times for each generator.
_SHAPES = (
    *((25, 3, 400, 2.0), (100, 10, 1000, 1.0), (250, 2, 2000, 0.6), (400, 6, 1500, 0.7)),
    *((40, 2, 500, 1.5), (120, 4, 1200, 1.0), (200, 15, 2000, 0.7), (800, 5, 3000, 0.2)),
    *((30, 4, 300, 3.0), (80, 2, 1000, 1.0), (150, 10, 1500, 1.5), (500, 3, 2500, 0.3)),
    *((50, 5, 600, 2.0), (100, 8, 1000, 1.5), (300, 12, 2000, 0.7), (1000, 4, 4000, 0.4)),
    *((35, 3, 500, 2.5), (90, 6, 900, 1.0), (250, 5, 2000, 1.0), (600, 10, 3000, 0.5)),
    *((60, 2, 800, 1.2), (75, 5, 800, 2.0), (200, 3, 1500, 0.8), (300, 20, 2000, 1.5)),
)


def cases():
    """Name, histograms and target: votes of real teachers, and the twenty-four ensembles."""
    for name, targets in (("demo", [1.5]), ("adult", [1.0, 0.5]), ("digits", [1.5, 3.0])):
        with open_votes(SAMPLES / f"{name}.parquet") as file:
            counts = np.concatenate([batch.counts for batch in file.batches()])
        for epsilon in targets:
            yield f"{name} {epsilon:g}", counts, epsilon
    for place, (teachers, classes, rows, epsilon) in enumerate(_SHAPES):
        generator = _GENERATORS[place // 4]
        counts = generator(np.random.default_rng([SEED, place]), teachers, classes, rows)
        yield f"{generator.__name__} {place % 4}", counts, epsilon


def judged(name, counts, epsilon):
    """What rule and tune give on a case, and what the public forecast of the rule says."""
    target, teachers = TargetPlan.of(epsilon, delta=1e-5), int(counts.sum(axis=1).max())
    public = made_up(teachers=teachers, classes=counts.shape[1], rows=SEARCHED_ROWS)
    start = time.process_time()
    goal = public_goal(public, target, available=len(counts))
    found = choose(goal, MechanismName.CONFIDENT)
    seconds = time.process_time() - start
    beforehand = forecast(public, found.mechanism, target, rows=found.rows, rough=True)
    middle = beforehand.at(beforehand.middle)
    votes = VoteModel(counts, teachers)
    ruled = forecast(votes, found.mechanism, target, rows=found.rows, rough=True)
    agreement = float(ruled.agreement[0])
    floor = min(max(agreement - 1e-3, 0.5), 0.999)
    goal = Goal(ReleaseKind.TARGET, epsilon=epsilon, min_agreement=floor)
    tuned = tune(votes, [goal]).best.forecast
    answers, most = float(ruled.expected_answers[0]), float(tuned.expected_answers[0])
    return {
        "name": name,
        "answers": round(answers, 1),
        "tuned": round(most, 1),
        "share": round(answers / most, 3),
        "agreement": round(agreement, 3),
        "passes": round(float(ruled.pass_probability[0]), 3),
        "passes_in_the_middle": round(middle["pass_probability"], 3),
        "rows": found.rows,
        "cpu_seconds": round(seconds, 2),
    }


def main(names):
    """Print the table."""
    found = []
    for case in cases():
        if not names or case[0] in names:
            found.append(judged(*case))
            print(json.dumps(found[-1]), flush=True)  # noqa: T201 - a tool
    shares = [min(each["share"], 1.0) for each in found]
    told = {"mean": float(np.mean(shares)), "median": float(np.median(shares))}
    print(json.dumps(told))  # noqa: T201 - a tool


if __name__ == "__main__":
    main(sys.argv[1:])
