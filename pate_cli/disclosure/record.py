"""The record: every run that published something about these teachers' votes, and its cost.

A run enters the record before its votes are used. At first a run is pending, and its full cost
counts. The record has the outcome of a run before anybody learns it. An entry is never removed for
a reason that could depend on the votes, so that the record always has the total cost of all runs
(`disclosure.runs`).

On disk a record is a journal (`files.journal`). Its lines are events. `enter` adds a run, and
`settle` adds the outcome of a run. `ask` adds queries of a session with their answers. `amend`
replaces the entry of a run by an entry that says more, from another record or a report. `strike`
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

from pate_cli.core.errors import LedgerError, brief
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
        """Return the runs of both records, each once, with all that either record has of it.

        Raises:
            LedgerError: the records contain different queries of one session, and neither record
                contains all of them. The record of the session was copied, and queries were asked
                with both copies.
        """
        runs = {run.id: run for run in self.runs}
        for run in other.runs:
            if run.id in runs:
                runs[run.id] = joined(runs[run.id], run)
        return SpendRecord((*runs.values(), *other.missing_in(self)))

    @classmethod
    @brief
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
        self._turns: dict[str, str] = {}
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
        return replace(told, turns=self._turns[run.id], outcome=Outcome.LABELLED)

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

    def amend(self, *runs: Run) -> None:
        """Append fuller entries of runs that the record contains already; lock the file first.

        Sessions that this record can continue have no fuller entry than their own.
        """
        known = {run.id: run for run in self.record.runs}
        fuller = (run for run in runs if known.get(run.id, run) != run)
        lasting = (run for run in fuller if known[run.id].session is None)
        self._append(*({"amend": encoded(run)} for run in lasting))

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
        turn = secrets.token_hex(4)
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
            case {"amend": data}:
                run = decoded(Run, data, Refusal(LedgerError, f"{self.name} is damaged: "))
                if self._runs[run.id].session is not None:
                    raise ValueError(run.id)
                self._runs[run.id] = replace(run, session=None)
            case {"settle": str(name), "outcome": str(word), "answers": answers, "total": total}:
                run = replace(self._runs[name], outcome=Outcome(word), answers=answers)
                epsilon, delta = total
                self._runs[name] = replace(run, total_epsilon=epsilon, total_delta=delta)
            case {"strike": str(name)}:
                del self._runs[name]
            case {"goes_on_in": str(name)}:
                self.goes_on_in = name
            case {"ask": str(name), "asks": list(asks)} if self._runs[name].session is not None:
                self._asked.setdefault(name, []).extend({**ask} for ask in asks)
                # Old records have no `turn`; their queries themselves then tell copies apart.
                own = hashlib.sha256(json.dumps(asks).encode()).hexdigest()[:8]
                self._turns[name] = self._turns.get(name, "") + str(event.get("turn", own))
            case _:
                raise ValueError(event)


def queries_in(run: Run) -> tuple[int, int]:
    """Return two numbers that are larger for a later entry of the same session.

    They are the number of queries in the entry, and the length of its `turns`.
    """
    return 0 if run.settings is None else run.settings.queries, len(run.turns)


def continues(run: Run, before: Run) -> bool:
    """Return whether the later of two entries of one run contains all queries of the earlier one.

    Only a session can go on after an entry was written. If it did, the `turns` of the later entry
    begin with the `turns` of the earlier entry.
    """
    asked = before.settings
    if run == before or asked is None or asked.rule is None or not asked.queries:
        return True
    return bool(before.turns) and run.turns.startswith(before.turns)


def joined(run: Run, other: Run) -> Run:
    """Return an entry of a run with all that another entry of the same run adds to it.

    A report lacks some fields of a run. A run may have ended after an entry was written, and a
    session may have gone on. If only one of the entries has a guarantee, the result is `run`.

    Raises:
        LedgerError: neither entry contains all queries of the session.
    """
    first, last = sorted((run, other), key=queries_in)
    if not continues(last, first):
        raise LedgerError(
            f"session {run.id} has different queries in two inputs, and neither continues the "
            "other: its record was copied, and both copies were asked. Its cost covers only one "
            "copy, so discard the answers of one copy, and give only the other copy"
        )
    if run.promised is not other.promised:
        return run
    names = ["round", "drawn_from", "votes"]
    told = {name: getattr(run, name) or getattr(other, name) for name in names}
    later = []
    if run.outcome is Outcome.PENDING and other.outcome is not Outcome.PENDING:
        later += ["outcome", "answers", "total_epsilon", "total_delta"]
    if queries_in(other) > queries_in(run):
        later += ["settings", "turns", "outcome", "answers"]
    return replace(run, **told | {name: getattr(other, name) for name in later})


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
