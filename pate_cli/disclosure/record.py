"""The record: every run that published something about these teachers' votes, and its cost.

A run enters the record before its votes are used. At first a run is pending, and its full cost
counts. The record has the outcome of a run before anybody learns it. An entry is never removed for
a reason that could depend on the votes, so that the record always has the total cost of all runs
(`disclosure.runs`).

On disk a record is a journal (`files.journal`). Its lines are events. `enter` adds a run, and
`settle` adds the outcome of a run. `ask` adds queries of a session with their answers. `strike`
removes a run whose file turned out to contain no votes. `goes_on_in` has the name or path of
another record, which took over all runs.

A record is public, because it only contains settings, outcomes and worst-case costs, and nothing
of the votes. A record also has names of files and times, which its holder may prefer not to show.
Reports contain no names of files.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Final

from pate_cli.core.errors import LedgerError
from pate_cli.disclosure.ledger import Ledger, Round
from pate_cli.disclosure.runs import Outcome, Run
from pate_cli.disclosure.settings import Settings
from pate_cli.files.document import SPARING, Refusal, decoded, encoded
from pate_cli.files.journal import Journal
from pate_cli.votes.facts import PriorFacts

KIND: Final = "pate-spend-record"


@dataclass(frozen=True)
class SpendRecord:
    """All runs that published something about the votes of some teachers, in order.

    Keep the record with the votes. `aggregate(record=...)` and `release` enter their runs in a
    record, and `SpendRecord.read` reads a record.

        >>> given = {"layout": "counts", "record": "year.spent.json"}
        >>> done = pate.aggregate([[40, 38, 22]] * 30, "gnmax", **given)
        >>> again = pate.aggregate([[40, 38, 22]] * 30, "gnmax", **given)
        >>> len(pate.SpendRecord.read("year.spent.json").runs)
        2

    """

    runs: tuple[Run, ...] = ()

    def __post_init__(self) -> None:
        if len({run.id for run in self.runs}) < len(self.runs):
            raise LedgerError("the record contains a run twice")

    def missing_in(self, other: SpendRecord) -> tuple[Run, ...]:
        """Return the runs that share neither `id` nor `round` with a run of another record."""
        known = {name for run in other.runs for name in run.names}
        return tuple(run for run in self.runs if known.isdisjoint(run.names))

    def known(self, name: str) -> Run | None:
        """Return the run whose id is `name`; None if the record does not contain this run."""
        return next((run for run in self.runs if run.id == name), None)

    def touching(self, ledger: Ledger) -> tuple[Run, ...]:
        """Return the releases that drew a sanitized ε from rounds of this ledger.

        A run that drew a sanitized ε itself, without `release`, is not in the result.
        """
        mine = {done.id for done in ledger.rounds}
        return tuple(run for run in self.runs if mine & set(run.drawn_from))

    @classmethod
    def of(cls, ledger: Ledger) -> SpendRecord:
        """Return a record of the rounds of a ledger; each round becomes a run."""

        def run(done: Round) -> Run:
            # Only the ledger may contain the name of a round, and this record may be published.
            name = hashlib.sha256(f"run {done.id}".encode()).hexdigest()[:32]
            told = {"answers": done.answers, "round": done.id, "ensemble": done.ensemble}
            settings, outcome = Settings.of(done), Outcome.LABELLED
            return Run.of(id=name, outcome=outcome, time=None, settings=settings, **told)

        return cls(tuple(map(run, ledger.rounds)))

    def __or__(self, other: SpendRecord) -> SpendRecord:
        """Return the runs of both records, each once, with an outcome if either record has one.

        A session is in the result with the queries of the record that has more of them.

        Raises:
            LedgerError: two entries of one session differ, and neither is known to continue the
                other. The record of the session may have been copied, and queries may have been
                asked with both copies.
        """
        both, latest = sorted((*other.runs, *self.runs), key=queries_in), dict[str, Run]()
        for run in both:
            before = latest.get(run.id, run)
            if not continues(run, before):
                raise LedgerError(
                    f"session {run.id} has different queries in two inputs, and nothing shows that "
                    "one input continues the other, so their total cost is unknown; give only the "
                    "latest report of the session, or give its record. If the record was copied "
                    "and both copies were asked, discard the answers of one copy, and give only "
                    "the other copy"
                )
            latest[run.id] = run
        ended = {run.id: run for run in both if run.outcome is not Outcome.PENDING}
        mine = (ended.get(run.id, run) for run in self.runs)
        return SpendRecord((*mine, *other.missing_in(self)))

    @classmethod
    def read(cls, path: str | PathLike[str]) -> SpendRecord:
        """Return the record in a file; an empty record if there is no such file.

        Raises:
            LedgerError: the file is damaged, is not a record, or is not a regular file.
        """
        return RecordFile(path).record


@dataclass(frozen=True)
class Sighting:
    """A note on a record: its length and hash when pate last saw it.

    Attributes:
        record: the absolute path of the file of the record.
        lines: the number of events in the record.
        chain: the hash of all events in the record.
        ensemble: the user's last name for the teachers; None if the user gave no name.
        earlier: other names that the user gave to the teachers of the same votes before.
    """

    record: str
    lines: int
    chain: str
    ensemble: str | None = field(default=None, metadata=SPARING)
    earlier: tuple[str, ...] = field(default=(), metadata=SPARING)


class RecordFile:
    """The record in one file, as far as this process has read it.

    Attributes:
        name: the name of the file in messages.
        path: the path of the file, with links resolved.
        goes_on_in: the name or path of the record that took over the runs of this record; None if
            this record accepts runs itself.
        keys: names under which pate stores its note on this record in the user's state folder: a
            fingerprint of the votes, and hashes of the paths of earlier records. SECRET.
        ensembles: the user's names for the teachers (`ensemble` of `aggregate`) in the current run
            and in earlier runs on the same votes, the last name first.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        """Read the file if it exists; raise LedgerError if it is damaged or is not a record."""
        self._journal = Journal(path, KIND)
        self.name, self.path = self._journal.name, self._journal.path
        self.goes_on_in: str | None = None
        self.keys: tuple[str, ...] = ()
        self.ensembles: tuple[str, ...] = ()
        self._read = 0
        self._runs: dict[str, Run] = {}
        self._asked: dict[str, list[dict[str, Any]]] = {}
        self._turns: dict[str, list[str]] = {}
        self._follow()

    @property
    def successor(self) -> Path | None:
        """Return the path of the record that took over the runs of this record.

        The result is None if no other record took over the runs of this record.
        """
        if self.goes_on_in is None:
            return None
        return Path(os.path.realpath(self.path.parent / self.goes_on_in))

    @property
    def empty(self) -> bool:
        """Return whether the record has no lines yet."""
        return not self._journal.lines

    @property
    def sighting(self) -> Sighting:
        """Return the length and hash of the record, by which pate later notices lost lines."""
        lines, chain = self._journal.lines, self._journal.chain
        last = self.ensembles[0] if self.ensembles else None
        return Sighting(str(self.path), len(lines), chain, last, self.ensembles[1:])

    def tells_of(self, seen: Sighting) -> bool:
        """Return whether this record begins with all lines of the record that `seen` describes."""
        return not seen.lines or self._journal.chain_at(seen.lines) == seen.chain

    @property
    def record(self) -> SpendRecord:
        """Return all runs of the record; a session includes the queries that were asked so far."""
        return SpendRecord(tuple(map(self._so_far, self._runs.values())))

    def _so_far(self, run: Run) -> Run:
        """Return a run; a session is returned with the queries and answers recorded until now."""
        if run.settings is None or run.id not in self._asked:
            return run
        done = asked_so_far(run.settings, self._asked[run.id])
        told = replace(run, settings=Settings.of(done), answers=done.answers)
        return replace(told, turns=tuple(self._turns[run.id]), outcome=Outcome.LABELLED)

    def asked(self, session: Run) -> list[dict[str, Any]]:
        """Return the queries of a session in order, each with `label`, `id` and `prior`."""
        return self._asked.get(session.id, [])

    def refuse_run(self) -> None:
        """Raise LedgerError if this record accepts no run, because another record has its runs."""
        if self.goes_on_in is not None:
            raise LedgerError(
                f"{self.name} is closed, because its runs are now in {self.goes_on_in}; give that "
                "file as `record`, or the name of its teachers as `ensemble`"
            )

    def catch_up(self) -> None:
        """Read lines that other processes appended, and make sure that they are on disk.

        Lock the file first (`entry.held`).

        Raises:
            LedgerError: lines that were read before are gone, or new lines are damaged.
        """
        self._journal.catch_up()
        self._follow()

    def enter(self, *runs: Run) -> None:
        """Append runs that the record does not contain yet; lock the file first.

        Raises:
            OutputError: the runs cannot be written, and none was entered.
        """
        self._append(*({"enter": encoded(run)} for run in runs))

    def settle(self, run: Run) -> None:
        """Append the outcome of a run, if the run is still pending; lock the file first."""
        known = self._runs.get(run.id)
        if known is not None and known.outcome is Outcome.PENDING:
            ended = {"outcome": run.outcome.value, "answers": run.answers}
            total = [run.total_epsilon, run.total_delta]
            self._append({"settle": run.id, **ended, "total": total})

    def strike(self, run: Run) -> None:
        """Append an event that removes a run; lock the file first."""
        self._append({"strike": run.id})

    def go_on_in(self, other: RecordFile) -> None:
        """Append the name of another record, which took over all runs; lock the file first."""
        near = other.path.parent == self.path.parent
        self._append({"goes_on_in": other.path.name if near else str(other.path)})

    def ask(self, session: Run, asks: Sequence[Mapping[str, Any]]) -> None:
        """Append queries of a session and their labels to the file, before anybody gets the labels.

        Lock the file first.

        Args:
            session: the session's run, which this record already contains.
            asks: `label`, `id` and `prior` of each query.

        Raises:
            LedgerError: this record accepts no queries, because another record took over its runs.
            OutputError: the queries cannot be written.
        """
        self.refuse_run()
        # Queries without ids may look alike in two copies of the record; this name is random.
        turn = secrets.token_hex(8)
        self._append({"ask": session.id, "turn": turn, "asks": list(asks)})

    def _append(self, *events: Mapping[str, Any]) -> None:
        self._journal.append(*events)
        self._follow()

    def _follow(self) -> None:
        """Apply the events that were read since the last call."""
        lines = self._journal.lines
        while self._read < len(lines):
            try:
                self._take(lines[self._read])
            except (KeyError, ValueError, TypeError):  # The run is unknown, or it is not an event.
                raise LedgerError(
                    f"{self.name} is damaged: line {self._read + 2} is not a valid event; restore "
                    "the file from a copy"
                ) from None
            self._read += 1

    def _take(self, event: Mapping[str, Any]) -> None:
        match event:
            case {"enter": data}:
                run = decoded(Run, data, Refusal(LedgerError, f"{self.name} is damaged: "))
                if run.id in self._runs:
                    raise ValueError(run.id)
                if run.settings is not None and run.settings.queries:
                    # A session enters before its first query, so this is a copy: it cannot go on.
                    run = replace(run, session=None)
                self._runs[run.id] = run
            case {"settle": str(name), "outcome": str(word), "answers": answers, "total": total}:
                epsilon, delta = total
                ended = {"outcome": Outcome(word), "answers": answers}
                ended |= {"total_epsilon": epsilon, "total_delta": delta}
                self._runs[name] = replace(self._runs[name], **ended)
            case {"strike": str(name)}:
                del self._runs[name]
            case {"goes_on_in": str(name)}:
                self.goes_on_in = name
            case {"ask": str(name), "asks": list(asks)} if self._runs[name].session is not None:
                self._asked.setdefault(name, []).extend({**ask} for ask in asks)
                before = self._turns.setdefault(name, [])
                # Old records have no `turn`; their queries themselves then tell copies apart.
                asked = hashlib.sha256(json.dumps([before[-1:], asks]).encode()).hexdigest()[:16]
                before.append(str(event.get("turn", asked)))
            case _:
                raise ValueError(event)


def queries_in(run: Run) -> tuple[int, int]:
    """Return two numbers that are larger for a later entry of the same session.

    The first number counts the queries in the entry. The second number counts the names in
    `Run.turns`; an entry from a report has only the last name.
    """
    return 0 if run.settings is None else run.settings.queries, len(run.turns)


def continues(run: Run, before: Run) -> bool:
    """Return whether the entry `run` is known to contain all that the entry `before` contains.

    An entry of a session contains the queries of an earlier entry if its `turns` contain the last
    name in the `turns` of the earlier entry. Runs that are not sessions, and sessions without
    queries, have no `turns`.
    """
    asked = before.settings
    if run == before or asked is None or asked.rule is None or not asked.queries:
        return True
    return bool(before.turns) and before.turns[-1] in run.turns


def asked_so_far(settings: Settings, asks: Sequence[Mapping[str, Any]]) -> Round:
    """Return a session as one Round: its settings and number of answers after some queries.

    Args:
        settings: the settings of the session before its first query.
        asks: `label`, `id` and `prior` of each query so far, in order.
    """
    prior, asked = settings.prior, len(asks)
    if prior is not None:
        guesses = [(n, ask["prior"]) for n, ask in enumerate(asks, 1) if "prior" in ask]
        lines = "".join(f"{number} {json.dumps(guess)}\n" for number, guess in guesses)
        prior = PriorFacts(prior.weight, len(guesses), hashlib.sha256(lines.encode()).hexdigest())
    answers = sum(ask.get("label") is not None for ask in asks)
    return Round.of(settings, queries=asked, max_answers=asked, prior=prior, answers=answers)
