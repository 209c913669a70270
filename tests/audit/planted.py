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

__all__ = ["PLANTED", "Planted", "find_planted"]

_TESTS = Path(__file__).resolve().parents[1]
_PACKAGE = Path(pate_cli.__file__).resolve().parent


@dataclass(frozen=True)
class Planted:
    """One change of the sources, and the case that must tell.

    Attributes:
        name: what went wrong.
        module: path in the package.
        old, new: the text that is replaced, once.
        case: that refutes the claim of what comes out.
    """

    name: str
    module: str
    old: str
    new: str
    case: str

    def plant(self, package: Path) -> None:
        """Change a copy of the package; ValueError unless the text occurs exactly once."""
        source = package / self.module
        text = source.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.module} holds {text.count(self.old)} times {self.old!r}")
        source.write_text(text.replace(self.old, self.new), encoding="utf-8")


def find_planted(bug: Planted, share: float = 1.0) -> Finding:
    """What the audit finds out about a copy with this bug, told only which case to look at."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / _PACKAGE.name
        shutil.copytree(_PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        bug.plant(copy)
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


PLANTED: Final[Mapping[str, Planted]] = {
    bug.name: bug
    for bug in (
        Planted(
            "gnmax: half of the noise",
            "mechanisms/gnmax.py",
            "self.sigma2, noise.normal)",
            "self.sigma2 / 2, noise.normal)",
            "gnmax: a tie turned",
        ),
        Planted(
            "gnmax: two classes share a draw",
            "mechanisms/gnmax.py",
            "self.sigma2, noise.normal)",
            "self.sigma2, lambda of: noise.normal((of[0], 1)).repeat(of[1], axis=1))",
            "gnmax: a tie turned",
        ),
        Planted(
            "confident: half of the noise on the answer",
            "mechanisms/confident.py",
            "self.sigma2, noise.normal, beside=1)",
            "self.sigma2 / 2, noise.normal, beside=1)",
            "confident: a tie that passes",
        ),
        Planted(
            "confident: a threshold without noise",
            "mechanisms/confident.py",
            "self.test_score(counts) + self.sigma1 * look >= self.threshold",
            "self.test_score(counts) >= self.threshold",
            "confident: at the threshold",
        ),
        Planted(
            "prior: fitted on the votes",
            "votes/join.py",
            "counts = with_votes(own, said, weight)",
            "counts = with_votes(own, own.argmax(axis=1), weight)",
            "gnmax: a tie turned that a guess parts",
        ),
        Planted(
            "prior: votes with the winner, not against it",
            "votes/join.py",
            "counts = with_votes(own, said, weight)",
            "won = said == own.argmax(axis=1)\n"
            "        counts = with_votes(own, np.where(won, said, -1), weight)",
            "gnmax: a tie turned that a guess parts",
        ),
        Planted(
            "prior: left out of the price",
            "mechanisms/base.py",
            "return self.teachers + self.prior_weight",
            "return self.teachers",
            "confident: at the threshold by a guess",
        ),
        Planted(
            "prior: votes twice",
            "votes/join.py",
            "counts = with_votes(own, said, weight)",
            "counts = with_votes(own, said, 2 * weight)",
            "confident: a guess short of the threshold",
        ),
        Planted(
            "interactive: a threshold without noise",
            "mechanisms/confident.py",
            "self.test_score(counts) + self.sigma1 * look >= self.threshold",
            "self.test_score(counts) >= self.threshold",
            "interactive: student near the threshold",
        ),
        Planted(
            "lnmax: half of the noise",
            "mechanisms/lnmax.py",
            "self.laplace_scale, noise.laplace)",
            "self.laplace_scale / 2, noise.laplace)",
            "lnmax: a rare label, one answer",
        ),
        Planted(
            "stability: half of the noise",
            "mechanisms/stability.py",
            "noise.laplace(len(counts)) / self.query_epsilon",
            "noise.laplace(len(counts)) / 2 / self.query_epsilon",
            "stability: around the threshold",
        ),
        Planted(
            "stability: half of the threshold",
            "mechanisms/stability.py",
            "/ self.query_epsilon > self.threshold",
            "/ self.query_epsilon > self.threshold / 2",
            "stability: a tie turned",
        ),
        Planted(
            "sparse-vector: half of the threshold",
            "mechanisms/sparse_vector.py",
            "mechanism.threshold + draws[:, 1]",
            "mechanism.threshold / 2 + draws[:, 1]",
            "sparse-vector: rows turned, two epochs",
        ),
        Planted(
            "sparse-vector: a threshold without noise",
            "mechanisms/sparse_vector.py",
            "mechanism.threshold + draws[:, 1]",
            "mechanism.threshold + 0 * draws[:, 1]",
            "sparse-vector: one epoch",
        ),
        Planted(
            "several teachers a record: charged for one",
            "mechanisms/gnmax.py",
            "self.teachers_per_record * np.sqrt(2.0 * answers)",
            "np.sqrt(2.0 * answers)",
            "gnmax: three teachers a record",
        ),
        Planted(
            "noise: used again from batch to batch",
            "core/noise.py",
            'self._noise("labels", operator.index(first) * operator.index(draws))',
            'self._noise("labels", 0)',
            "gnmax: two rows in different batches",
        ),
        Planted(
            "groups: one teacher of a record counts",
            "votes/groups.py",
            "k, sum(weights[:k])",
            "k, weights[0]",
            "groups: six votes of one record",
        ),
        Planted(
            "binary: the labels of a query share a draw",
            "mechanisms/gnmax.py",
            "self.sigma2, noise.normal)",
            "self.sigma2, lambda of: noise.normal((of[0] // 2, 2)).repeat(2, axis=0))",
            "binary: two labels a query",
        ),
        Planted(
            "many classes: those without votes never win",
            "mechanisms/gnmax.py",
            "best_normal_from_words(words[:, -2], zeros)",
            "best_normal_from_words(words[:, -2], 0 * zeros)",
            "many classes: a first vote",
        ),
        Planted(
            "many classes: a thousandth of those without votes",
            "mechanisms/gnmax.py",
            "best_normal_from_words(words[:, -2], zeros)",
            "best_normal_from_words(words[:, -2], zeros // 1000)",
            "many classes: a first vote",
        ),
        Planted(
            "names: no noise where a vote is missing",
            "mechanisms/gnmax.py",
            "self.sigma2, noise.normal)",
            "self.sigma2 * (counts.sum() == self.teachers * len(counts)), noise.normal)",
            "names: a vote goes missing",
        ),
        Planted(
            "session: the union for nothing",
            "accounting/stopping.py",
            "found = Beyond(moments.order, test_cost, answer_cost, share * most)",
            "return Beyond(moments.order, test_cost, answer_cost, most)",
            "session: the whole game",
        ),
        Planted(
            "session: answers are not counted",
            "disclosure/settings.py",
            "self.beyond.further(asked, answers)",
            "self.beyond.further(asked, 0)",
            "session: few are answered",
        ),
        Planted(
            "session: the noise of one query for all",
            "verbs/session.py",
            "VoteBatch(self._row, rows, ",
            "VoteBatch(0, rows, ",
            "session: two queries, one after the other",
        ),
        Planted(
            "session: a known id by new noise",
            "verbs/session.py",
            "                found.append(self._named(known[name]))\n",
            "                noise = RunKey.of(None).rows(0, self.mechanism.draws)\n"
            "                votes = [self._looked_at(asks[len(found)], 0)[0]]\n"
            "                votes = self._ballots.histograms(votes)\n"
            "                found += self.mechanism.label(votes, noise).tolist()\n",
            "session: an id again and again",
        ),
        Planted(
            "release: sensitivity at distance 0 only",
            "accounting/sensitivity.py",
            "np.max(within * np.exp(-beta * np.arange(within.size)))",
            "within[0]",
            "release: far from a tie",
        ),
        Planted(
            "release: the published formula",
            "accounting/sensitivity.py",
            "    cost = float(_cost(beta, sigma, order, shift / sigma, math))\n",
            "    cost = order * math.exp(2 * beta) / sigma**2 + (\n"
            "        beta * order - math.log(1 - 2 * order * beta) / 2\n"
            "    ) / (order - 1)\n",
            "release: the worst pair at a tiny delta",
        ),
        Planted(
            "target: passing without a coin",
            "run/labelling.py",
            'not key.aside("coin").comes_up(coin.log_refuse)',
            "coin.chance > 0.5",
            "target: where the chance to pass changes most",
        ),
    )
}
"""By name, in the order of the table."""
