"""The ledger: what runs have spent on the votes they saw.

The ledger is SECRET. Its Rényi costs and sensitivities are functions of the votes, and publishing
them would itself cost privacy; `release` is the only way from a ledger to a number fit for
publishing. Ledgers of rounds, parts or workers add up: `+` is commutative and associative, with
`Ledger.zero` as identity.
"""

from __future__ import annotations

import re
from dataclasses import field, replace
from os import PathLike
from typing import Any, Final

import numpy as np

from pate_cli.accounting.gnss import gnss_rdp
from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_delta, check_orders
from pate_cli.core.codec import SPARING, called, encoded
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import LedgerError, ParameterError, quoted, shortened
from pate_cli.core.words import PublicFact
from pate_cli.disclosure.settings import RowsAnswered
from pate_cli.files.reading import LARGEST, reading
from pate_cli.files.results import Result
from pate_cli.files.sealed_json import Form
from pate_cli.mechanisms import mechanism_from_parameters
from pate_cli.votes.facts import Group

_LEDGER: Final = Form("pate-ledger", "ledger", version=1, marks={"releasable": False})
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Draw:
    """The public parameters of one sanitized draw; its cost at any order follows from them.

    Attributes:
        beta: smoothness β > 0 per vote.
        sigma: standard deviation in smooth sensitivities, > 0.
        shift: κ ≥ 0 in smooth sensitivities.
    """

    beta: float
    sigma: float = field(metadata=called("sigma_release"))
    shift: float

    def __post_init__(self) -> None:
        self.rdp(1.0 + 1e-9)  # ParameterError where something is out of range

    def rdp(self, order: float) -> float:
        """ε_κ(λ), nats; ParameterError where it is infinite."""
        return gnss_rdp(beta=self.beta, sigma=self.sigma, order=order, shift=self.shift)


@dataclass(frozen=True, kw_only=True)
class Round(RowsAnswered):
    """What is public about one run of a mechanism.

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
        counts = (self.answers, self.max_answers, self.queries)
        whole = all(isinstance(count, int | np.integer) for count in counts)
        if not (whole and 0 <= self.answers <= self.max_answers <= self.queries):
            raise LedgerError(
                f"round {shortened(self.id)}: answers, max_answers and queries must be whole "
                f"numbers, 0 <= {self.answers} <= {self.max_answers} <= {self.queries}"
            )
        k, together = self.teachers_per_record, self.votes_together
        if not (isinstance(k, int | np.integer) and isinstance(together, bool | np.bool_)):
            raise LedgerError(
                f"round {shortened(self.id)}: its mechanism must say a whole number as "
                "`teachers_per_record`, and true or false as `votes_together`, where it has them"
            )
        moved = max((group.votes_per_record for group in self.groups), default=None)
        if moved not in (None, k):
            raise LedgerError(
                f"round {shortened(self.id)}: a record of its groups moves up to {moved} votes, "
                f"but it was charged for {shortened(str(k))}"
            )
        self._check_prior()
        if self.rule is not None and not self.rule.allows(self.queries, self.answers):
            raise LedgerError(
                f"round {shortened(self.id)}: {self.answers} answers to {self.queries} queries are "
                "more than its rule allows"
            )

    def _check_prior(self) -> None:
        """LedgerError for a prior other than the one that the round was charged with."""
        charged, prior = self.mechanism.get("prior_weight", 0), self.prior
        weight = 0 if prior is None else prior.weight
        if charged != weight or (prior is not None and not weight):
            raise LedgerError(
                f"round {shortened(self.id)}: its prior has {weight} votes, but it was charged for "
                f"{shortened(str(charged))}"
            )
        if prior is None:
            return
        if not 0 <= prior.guesses <= self.queries:
            raise LedgerError(
                f"round {shortened(self.id)}: {prior.guesses} guesses of its prior for "
                f"{self.queries} queries"
            )
        if not _SHA256.fullmatch(prior.sha256):
            raise LedgerError(
                f"round {shortened(self.id)}: {quoted(prior.sha256)} is no SHA-256 of its prior"
            )

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
    """What one or several rounds of labels have cost on these votes, to be added up. SECRET.

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
        names = [done.id for done in self.rounds]
        if len(set(names)) != len(names):
            raise LedgerError("a round is given twice; give every ledger once")
        # What one record costs at k teachers says nothing of what it costs at another k.
        charged = sorted({str(done.teachers_per_record) for done in self.rounds})
        if len(charged) > 1:
            raise LedgerError(
                "rounds charged for different `teachers_per_record` "
                f"({shortened(', '.join(charged))}) have "
                "no common cost; release each by itself"
            )
        if len({(done.votes_together, done.groups) for done in self.rounds}) > 1:
            raise LedgerError(
                "rounds of teachers in different `groups` have no common neighbours; release each "
                "by itself"
            )

    @classmethod
    def zero(cls, *, analysis: str, delta: float, orders: Floats) -> Ledger:
        """Nothing spent: the identity of `+` among ledgers with these orders."""
        orders = check_orders(orders)
        nothing = np.zeros(orders.size)
        return cls(
            analysis=analysis,
            delta=delta,
            orders=orders,
            rdp=nothing,
            sensitivity=np.zeros((orders.size, 0)),
            ceiling=nothing,
            rounds=(),
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
        """The ledger of both. Costs and sensitivities add at each order.

        With charges that depend on the votes and rounds chosen on earlier labels the sum is an
        ex-post bound at one order fixed beforehand (accounting/THEORY.md, section 4), not RDP.

        Raises:
            LedgerError: different analyses, deltas, orders, teachers per record or groups, or a
                round in both.
        """
        for what, mine, theirs in (
            ("analysis", self.analysis, other.analysis),
            ("delta", self.delta, other.delta),
            ("orders", self.orders.tolist(), other.orders.tolist()),
        ):
            if mine != theirs:
                raise LedgerError(
                    f"ledgers can be added only with the same {what}, got {mine} and {theirs}"
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
        """The sensitivity curves over more distances; past its own, a ledger knows its ceiling."""
        missing = distances - self.sensitivity.shape[1]
        tail = np.repeat(self.ceiling[:, None], missing, axis=1)
        return np.concatenate([self.sensitivity, tail], axis=1)

    @property
    def draws(self) -> tuple[Draw, ...]:
        """Every sanitized value that the rounds themselves published."""
        return tuple(draw for done in self.rounds for draw in done.draws)

    def with_draw(self, draw: Draw) -> Ledger:
        """This ledger of a single round, after the round published a sanitized value."""
        (only,) = self.rounds
        return replace(self, rounds=(replace(only, draws=(*only.draws, draw)),))

    def row(self, order: float) -> int:
        """Index of an order in the ledger.

        Raises:
            LedgerError: the order was not charged.
        """
        found = np.flatnonzero(np.isclose(self.orders, order, rtol=1e-12, atol=0.0))
        if found.size == 0:
            held = ", ".join(f"{value:g}" for value in self.orders)
            raise LedgerError(f"order {order:g} was not charged; this ledger holds {held}")
        return int(found[0])

    def to_dict(self) -> dict[str, Any]:
        """What the ledger file holds."""
        return {**_LEDGER.marks, **encoded(self)}

    def to_json(self) -> str:
        """The ledger file, to be written with mode 0600."""
        return _LEDGER.text(self)

    def columns(self) -> dict[str, Floats]:
        """What was spent by order."""
        return {"order": self.orders, "rdp": self.rdp, "ceiling": self.ceiling}

    def headline(self) -> str:
        """How many rounds, and at which orders."""
        held = ", ".join(f"{order:g}" for order in self.orders)
        return f"{len(self.rounds)} round(s), {self.analysis} analysis at order {held}"

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Ledger:
        """The ledger in a file; LedgerError, naming the file, where there is none."""
        with reading(path, "one of the ledgers") as file:
            return cls.from_json(file.read(LARGEST + 1))

    @classmethod
    def from_json(cls, text: str | bytes) -> Ledger:
        """Read a ledger file.

        Raises:
            LedgerError: truncated, foreign, damaged, or of another version of the schema.
        """
        found = _LEDGER.read(cls, text)
        if not found.rounds:
            raise LedgerError("the ledger is damaged: it holds no round; restore it from a copy")
        for done in found.rounds:
            mechanism_from_parameters(done.mechanism)  # refuses what no run has
        return found
