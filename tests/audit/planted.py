"""Bugs on purpose: the same cases against a copy of the package with one line changed.

The copy lives in a temporary folder and is audited by a process of its own, which imports nothing
of the package as it is. A change is a piece of text that must occur once. Nothing of the kind is in
the package, and no option of it leads here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pate_cli
from audit.cases import Finding
from audit.plant import plant

_TESTS = Path(__file__).resolve().parents[1]
_PACKAGE = Path(pate_cli.__file__).resolve().parent


@dataclass(frozen=True)
class Planted:
    """One change of the sources, and the case that must tell.

    Attributes:
        module: path in the package.
        name: what went wrong.
        case: that refutes the claim of what comes out.
        old, new: the text that is replaced, once.
    """

    module: str
    name: str
    case: str
    old: str
    new: str


def find_planted(bug: Planted, share: float = 1.0) -> Finding:
    """What the audit finds out about a copy with this bug, told only which case to look at."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / _PACKAGE.name
        shutil.copytree(_PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        plant(copy, bug.module, bug.old, bug.new)
        words = ["case", bug.case, "--share", str(share)]
        run = subprocess.run(
            [sys.executable, "-m", "audit", *words],
            cwd=folder,  # which `-m` looks into first
            env={**os.environ, "PYTHONPATH": os.pathsep.join([folder, str(_TESTS)])},
            capture_output=True,
            text=True,
        )
        if run.returncode:
            raise RuntimeError(f"{bug.name}: the audit ended with {run.returncode}\n{run.stderr}")
        found = json.loads(run.stdout)
        if Path(found.pop("package")) != copy.resolve():
            raise RuntimeError(f"{bug.name}: the package as it is was audited, not the copy")
    return Finding(**found)


_NOISE = "self.sigma2, noise.normal)"
_PASSES = "self.test_score(counts) + self.sigma1 * look >= self.threshold"
_GUESSED = "counts = with_votes(own, said, weight)"
_LINE = "mechanism.threshold + draws[:, 1]"
_BEST = "best_normal_from_words(words[:, -2], zeros)"
_PUBLISHED = """    cost = order * math.exp(2 * beta) / sigma**2 + (
        beta * order - math.log(1 - 2 * order * beta) / 2
    ) / (order - 1)
"""
_DRAWN_AGAIN = """            again = []
            for place, _ in enumerate(told):
                noise = RunKey.of(None).rows(0, self.mechanism.draws)
                votes = self._ballots.histograms([self._looked_at(asks[place], 0)[0]])
                again += self.mechanism.label(votes, noise).tolist()
            return again
"""

# By module: what went wrong, the case that must tell, and the text that is replaced.
_BUGS: Final = {
    "mechanisms/gnmax.py": [
        ("gnmax: half of the noise", "gnmax: a tie turned",
         _NOISE, "self.sigma2 / 2, noise.normal)"),
        ("gnmax: two classes share a draw", "gnmax: a tie turned",
         _NOISE, "self.sigma2, lambda of: noise.normal((of[0], 1)).repeat(of[1], axis=1))"),
        ("binary: the labels of a query share a draw", "binary: two labels a query",
         _NOISE, "self.sigma2, lambda of: noise.normal((of[0] // 2, 2)).repeat(2, axis=0))"),
        ("names: no noise where a vote is missing", "names: a vote goes missing",
         _NOISE, "self.sigma2 * (counts.sum() == self.teachers * len(counts)), noise.normal)"),
        ("several teachers a record: charged for one", "gnmax: three teachers a record",
         "self.teachers_per_record * np.sqrt(2.0 * answers)", "np.sqrt(2.0 * answers)"),
        ("many classes: those without votes never win", "many classes: a first vote",
         _BEST, _BEST.replace("zeros", "0 * zeros")),
        ("many classes: a thousandth of those without votes", "many classes: a first vote",
         _BEST, _BEST.replace("zeros", "zeros // 1000")),
    ],
    "mechanisms/confident.py": [
        ("confident: half of the noise on the answer", "confident: a tie that passes",
         "self.sigma2, noise.normal, beside=1)", "self.sigma2 / 2, noise.normal, beside=1)"),
        ("confident: a threshold without noise", "confident: at the threshold",
         _PASSES, "self.test_score(counts) >= self.threshold"),
        ("interactive: a threshold without noise", "interactive: student near the threshold",
         _PASSES, "self.test_score(counts) >= self.threshold"),
    ],
    "votes/join.py": [
        ("prior: fitted on the votes", "gnmax: a tie turned that a guess parts",
         _GUESSED, "counts = with_votes(own, own.argmax(axis=1), weight)"),
        ("prior: votes with the winner, not against it", "gnmax: a tie turned that a guess parts",
         _GUESSED, "won = said == own.argmax(axis=1)\n        "
         "counts = with_votes(own, np.where(won, said, -1), weight)"),
        ("prior: votes twice", "confident: a guess short of the threshold",
         _GUESSED, "counts = with_votes(own, said, 2 * weight)"),
    ],
    "mechanisms/base.py": [
        ("prior: left out of the price", "confident: at the threshold by a guess",
         "return self.teachers + self.prior_weight", "return self.teachers"),
    ],
    "mechanisms/lnmax.py": [
        ("lnmax: half of the noise", "lnmax: a rare label, one answer",
         "self.laplace_scale, noise.laplace)", "self.laplace_scale / 2, noise.laplace)"),
    ],
    "mechanisms/stability.py": [
        ("stability: half of the noise", "stability: around the threshold",
         "noise.laplace(len(counts)) / self", "noise.laplace(len(counts)) / 2 / self"),
        ("stability: half of the threshold", "stability: a tie turned",
         "/ self.query_epsilon > self.threshold", "/ self.query_epsilon > self.threshold / 2"),
    ],
    "mechanisms/sparse_vector.py": [
        ("sparse-vector: half of the threshold", "sparse-vector: rows turned, two epochs",
         _LINE, "mechanism.threshold / 2 + draws[:, 1]"),
        ("sparse-vector: a threshold without noise", "sparse-vector: one epoch",
         _LINE, "mechanism.threshold + 0 * draws[:, 1]"),
    ],
    "core/noise.py": [
        ("noise: used again from batch to batch", "gnmax: two rows in different batches",
         'self._noise("labels", operator.index(first) * operator.index(draws))',
         'self._noise("labels", 0)'),
    ],
    "votes/facts.py": [
        ("groups: one teacher of a record counts", "groups: six votes of one record",
         "k = self.teachers_per_record[rows[0]]", "k = 1"),
    ],
    "accounting/stopping.py": [
        ("session: the union for nothing", "session: the whole game",
         "found = Beyond(moments.order, test_cost, answer_cost, share * most)",
         "return Beyond(moments.order, test_cost, answer_cost, most)"),
    ],
    "disclosure/settings.py": [
        ("session: answers are not counted", "session: few are answered",
         "self.beyond.further(asked, answers)", "self.beyond.further(asked, 0)"),
    ],
    "verbs/session.py": [
        ("session: the noise of one query for all", "session: two queries, one after the other",
         "VoteBatch(self._row, rows, ", "VoteBatch(0, rows, "),
        ("session: a known id by new noise", "session: an id again and again",
         "            return [self._named(found[name]) for name in told]\n", _DRAWN_AGAIN),
    ],
    "accounting/sensitivity.py": [
        ("release: sensitivity at distance 0 only", "release: far from a tie",
         "np.max(within * np.exp(-beta * np.arange(within.size)))", "within[0]"),
        ("release: the published formula", "release: the worst pair at a tiny delta",
         "    cost = float(_cost(beta, sigma, order, shift / sigma, math))\n", _PUBLISHED),
    ],
    "run/labelling.py": [
        ("target: passing without a coin", "target: where the chance to pass changes most",
         'not key.aside("coin").comes_up(coin.log_refuse)', "coin.chance > 0.5"),
    ],
}  # fmt: skip
PLANTED: Final[Mapping[str, Planted]] = {
    bug[0]: Planted(module, *bug) for module, bugs in _BUGS.items() for bug in bugs
}
"""By name, in the order of the table."""
