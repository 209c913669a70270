"""The ledger: what runs have spent on the votes they saw.

The ledger is SECRET. Its Rényi costs and sensitivities are functions of the votes, and publishing
them would itself cost privacy; `release` is the only way from a ledger to a number fit for
publishing. Ledgers of rounds, parts or workers add up: `+` is commutative and associative, with
`Ledger.zero` as identity.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Final

import numpy as np

from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_delta, check_orders
from pate_cli.core.codec import SPARING, encoded
from pate_cli.core.errors import LedgerError, ParameterError, quoted, shortened
from pate_cli.core.words import PublicFact
from pate_cli.disclosure.plan import Draw
from pate_cli.disclosure.settings import RowsAnswered
from pate_cli.files.reading import LARGEST, reading
from pate_cli.files.results import Result
from pate_cli.files.sealed_json import Form
from pate_cli.mechanisms import mechanism_from_parameters
from pate_cli.votes.facts import Group

_LEDGER: Final = Form("pate-ledger", "ledger", version=1, marks={"releasable": False})
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Round(RowsAnswered):
    """Public facts of one run of a mechanism, as its ledger keeps them.

    Attributes:
        id: random name of the run, so that no run is charged twice or forgotten.
        draws: sanitized values that the run itself published; a later release pays for them.
        read_off: facts that are taken as public and were read off the votes: no statement holds.
        groups: of the teachers, where they count differently; none where they do not.
    """

    id: str
    draws: tuple[Draw, ...] = ()
    read_off: tuple[PublicFact, ...] = ()
    groups: tuple[Group, ...] = field(default=(), metadata=SPARING)

    def __post_init__(self) -> None:
        mechanism_from_parameters(self.mechanism)  # refuses what no run has
        for fault in self._faults():
            raise LedgerError(f"round {shortened(self.id)}: {fault}")

    def _faults(self) -> Iterator[str]:
        """Yield what contradicts itself, or what the mechanism was charged with."""
        answers, most, queries = self.answers, self.max_answers, self.queries
        if not 0 <= answers <= most <= queries:
            yield (
                "answers, max_answers and queries must be whole numbers, "
                f"0 <= {answers} <= {most} <= {queries}"
            )
        k = self.teachers_per_record
        moved = max((group.votes_per_record for group in self.groups), default=k)
        if moved != k:
            yield f"a record of its groups moves up to {moved} votes, but it was charged for {k}"
        charged, prior = self.mechanism.get("prior_weight", 0), self.prior
        weight = 0 if prior is None else prior.weight
        if charged != weight or (prior is not None and not weight):
            yield f"its prior has {weight} votes, but it was charged for {charged:g}"
        if prior is not None and not 0 <= prior.guesses <= queries:
            yield f"{prior.guesses} guesses of its prior for {queries} queries"
        if prior is not None and not _SHA256.fullmatch(prior.sha256):
            yield f"{quoted(prior.sha256)} is no SHA-256 of its prior"
        if self.rule is not None and not self.rule.allows(queries, answers):
            yield f"{answers} answers to {queries} queries are more than its rule allows"
        if len(self.draws) > 1:
            yield "a run draws once"

    @property
    def teachers_per_record(self) -> int:
        """How many teachers one record may have trained, as the round was charged."""
        found: int = self.mechanism.get("teachers_per_record", 1)
        return found

    @property
    def votes_together(self) -> bool:
        """Whether these are the votes of one teacher, as the round was charged."""
        found: bool = self.mechanism.get("votes_together", False)
        return found


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ledger(Result):
    """Costs of one or several rounds of labels on these votes, kept to be composed. SECRET.

    Keep it where there is to be another round on the same teachers, or where ε is published later:
    `aggregate(..., keep_ledger=True)`, or `release="none"`, returns it, and `release` turns one or
    several into one report. It holds Rényi costs and local sensitivities per order, and the public
    facts of every round. Rounds to be added up need the same `order`.

        >>> given = {"order": 8, "release": "none"}
        >>> first = pate.aggregate("sample_votes/demo.parquet", max_queries=100, seed=1, **given)
        >>> second = pate.aggregate("sample_votes/demo.parquet", max_queries=100, seed=2, **given)
        >>> first.ledger + second.ledger
        <Ledger: 2 round(s), tight analysis at order 8; SECRET>
        >>> first.ledger.save("first.json")
        >>> pate.Ledger.read("first.json").queries
        100

    Attributes:
        analysis: `tight` or `paper`.
        delta: δ the rounds were run for.
        private: False when some labels were drawn from a fixed seed.
        rounds: one entry a run, sorted by id.
        orders: Rényi orders, [orders].
        rdp: total cost at each order, [orders], nats.
        ceiling: a bound on LS_d for every d that no vote can change, [orders], nats.
        sensitivity: LS_d of that cost at each order and distance d < D0, [orders, D0], nats.
        records: files of the account that the rounds are in.
    """

    analysis: str
    delta: float
    private: bool = True
    rounds: tuple[Round, ...]
    orders: Floats
    rdp: Floats
    ceiling: Floats
    sensitivity: Floats
    records: tuple[str, ...] = field(default=(), metadata=SPARING)

    def __post_init__(self) -> None:
        if self.analysis not in ("tight", "paper"):
            raise LedgerError(
                f"unknown analysis {quoted(self.analysis)}; this tool knows tight and paper"
            )
        try:
            check_delta(self.delta)
            check_orders(self.orders)
        except ParameterError as error:
            raise LedgerError(f"the ledger is damaged: {error}") from None
        shapes_agree = (
            self.orders.ndim == 1
            and self.rdp.shape == self.ceiling.shape == self.orders.shape
            and self.sensitivity.ndim == 2
            and self.sensitivity.shape[0] == self.orders.size
        )
        if not shapes_agree:
            raise LedgerError("the ledger is damaged: its curves do not match its orders")
        for values in (self.rdp, self.sensitivity, self.ceiling):
            if not np.all(np.isfinite(values) & (values >= 0.0)):
                raise LedgerError("the ledger is damaged: a cost is negative or not finite")
        if not self.rounds:
            raise LedgerError("the ledger is damaged: it holds no round; restore it from a copy")
        names = [done.id for done in self.rounds]
        if len(set(names)) != len(names):
            raise LedgerError("a round is given twice; give every ledger once")
        # What one record costs at k teachers says nothing of what it costs at another k.
        charged = sorted({str(done.teachers_per_record) for done in self.rounds})
        if len(charged) > 1:
            raise LedgerError(
                f"rounds charged for different `teachers_per_record` ({', '.join(charged)}) have "
                "no common cost; release each by itself"
            )
        if len({(done.votes_together, done.groups) for done in self.rounds}) > 1:
            raise LedgerError(
                "rounds of teachers in different `groups` have no common neighbours; release each "
                "by itself"
            )

    @property
    def queries(self) -> int:
        """Rows asked in all rounds."""
        return sum(done.queries for done in self.rounds)

    @property
    def answers(self) -> int:
        """Labels released in all rounds."""
        return sum(done.answers for done in self.rounds)

    def __add__(self, other: Ledger) -> Ledger:
        """Return the ledger of both: costs and sensitivities add at each order.

        With charges that depend on the votes and rounds chosen on earlier labels the sum is an
        ex-post bound at one order fixed beforehand (accounting/THEORY.md, section 4), not RDP.

        Raises:
            LedgerError: different analyses, deltas, orders, teachers per record or groups, or a
                round in both.
        """
        mine, theirs = (
            {"analysis": each.analysis, "delta": each.delta, "orders": each.orders.tolist()}
            for each in (self, other)
        )
        for what in mine:
            if mine[what] != theirs[what]:
                raise LedgerError(
                    f"ledgers can be added only with the same {what}, got {mine[what]} and "
                    f"{theirs[what]}"
                )
        distances = max(self.sensitivity.shape[1], other.sensitivity.shape[1])
        return Ledger(
            analysis=self.analysis,
            delta=self.delta,
            orders=self.orders,
            rdp=self.rdp + other.rdp,
            sensitivity=self._extended(distances) + other._extended(distances),
            ceiling=self.ceiling + other.ceiling,
            rounds=tuple(sorted(self.rounds + other.rounds, key=lambda done: done.id)),
            private=self.private and other.private,
            records=tuple(dict.fromkeys((*self.records, *other.records))),
        )

    def _extended(self, distances: int) -> Floats:
        """Return sensitivities at more distances; past its own, a ledger knows its ceiling."""
        missing = distances - self.sensitivity.shape[1]
        return np.hstack([self.sensitivity, np.repeat(self.ceiling[:, None], missing, axis=1)])

    @property
    def draws(self) -> tuple[Draw, ...]:
        """Every sanitized value that the rounds themselves published."""
        return tuple(draw for done in self.rounds for draw in done.draws)

    def with_draw(self, draw: Draw) -> Ledger:
        """Return this ledger of a single round once the round published a sanitized value."""
        (only,) = self.rounds
        return replace(self, rounds=(replace(only, draws=(*only.draws, draw)),))

    def row(self, order: float) -> int:
        """Return the index of an order in the ledger.

        Raises:
            LedgerError: the order was not charged.
        """
        found = np.flatnonzero(np.isclose(self.orders, order, rtol=1e-12, atol=0.0))
        if found.size == 0:
            held = ", ".join(f"{value:g}" for value in self.orders)
            raise LedgerError(f"order {order:g} was not charged; this ledger holds {held}")
        return int(found[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the ledger file."""
        return {**_LEDGER.marks, **encoded(self)}

    def to_json(self) -> str:
        """Return the text of the ledger file, to be written with mode 0600."""
        return _LEDGER.text(self)

    def columns(self) -> dict[str, Floats]:
        """Return a row an order: its RDP cost, and the bound on its sensitivity, nats."""
        return {"order": self.orders, "rdp": self.rdp, "ceiling": self.ceiling}

    def headline(self) -> str:
        """Return how many rounds there are, and at which orders they are charged."""
        held = ", ".join(f"{order:g}" for order in self.orders)
        return f"{len(self.rounds)} round(s), {self.analysis} analysis at order {held}"

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Ledger:
        """Return the ledger in a file; LedgerError, naming the file, where there is none."""
        with reading(path, "one of the ledgers") as file:
            return cls.from_json(file.read(LARGEST + 1))

    @classmethod
    def from_json(cls, text: str | bytes) -> Ledger:
        """Return the ledger that the text of a file states.

        Raises:
            LedgerError: truncated, foreign, damaged, or of another version of the schema.
        """
        return _LEDGER.read(cls, text)
