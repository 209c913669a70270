"""One run: batches of histograms in; labels, an account and a public report out.

Every mechanism takes this path. What differs is the account that is kept of the votes: a tally of
scores (`TightAccount`), a test before any label is drawn (`TargetAccount`), none where the cost is
a composition (`ComposedAccount`), or that of the published analysis, which keeps one of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.cost_table import Tally
from pate_cli.accounting.sensitivity import distances_for
from pate_cli.arrays import Counts, LabelArray
from pate_cli.checkpoint import Checkpoint
from pate_cli.disclosure.door import (
    composed_quote,
    for_all_votes,
    public_quote,
    quote,
    release,
    release_composed,
    release_public,
    release_tested,
)
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.profile import States, VoteProfile, states_for
from pate_cli.disclosure.report import Outlook, Quote, Report, Spent
from pate_cli.disclosure.target import Reference, TargetPlan
from pate_cli.disclosure.worst_case import Spending
from pate_cli.errors import VoteError
from pate_cli.files.part_folder import Part, PartFolder
from pate_cli.labels import NO_LABEL, SOURCES, Labels, LabelWriter
from pate_cli.ledger import Ledger, Round
from pate_cli.mechanisms.base import ComposedMechanism, Labeller, Mechanism, ScoredMechanism
from pate_cli.noise import RunKey
from pate_cli.passes import FilePasses, Passes, TallyCells, nothing_seen
from pate_cli.votes import VoteBatch
from pate_cli.votes.checks import Ids
from pate_cli.words import Bound, LabelFormat, PublicFact

__all__ = [
    "Account",
    "Aggregation",
    "ComposedAccount",
    "PartPlace",
    "Settlement",
    "Staged",
    "TargetAccount",
    "TightAccount",
    "WorstCaseAccount",
    "charge",
    "label_batches",
    "run",
    "run_in_parts",
    "settle",
]


Keep: TypeAlias = Callable[[Any, Counts], Any]
"""What an account keeps of histograms and the mechanism bound to their rows; it pickles. SECRET."""

_TEACHERS, _STUDENT, _NOBODY = map(SOURCES.index, ("teachers", "student", "none"))


class Account(Protocol):
    """What is kept of the votes while they are labelled, and what it says in the end. SECRET."""

    @property
    def keep(self) -> Keep | None:
        """Applied to every batch, wherever that is labelled; None where nothing is kept."""
        ...

    def add(self, kept: Any) -> None:
        """Charge what was kept of a batch; batches come in order."""
        ...

    def settle(self, done: Round, key: RunKey, warnings: Sequence[str]) -> Settlement:
        """The public report, drawn once, and the ledger if there is one."""
        ...

    def quote(self, *, queries: int, max_answers: int) -> Quote:
        """What the run costs for all votes, before anything is spent; public."""
        ...


@dataclass(frozen=True)
class Settlement:
    """A report (public) and the ledger behind it (SECRET); None where the cost is a composition."""

    report: Report
    ledger: Ledger | None


@dataclass(frozen=True)
class Aggregation:
    """Everything a run produces.

    Attributes:
        labels: released labels with the mechanism's public parameters; none where they were
            written while they were drawn. Public.
        report: what may be published about them. Public.
        ledger: what they cost; None where nothing was kept of the votes. SECRET.
        checkpoint: what the run would have gone on from, to be ended. SECRET.
        staged: labels that workers have written, to be committed.
    """

    labels: Labels
    report: Report
    ledger: Ledger | None
    checkpoint: Checkpoint | None = None
    staged: Staged | None = None


def run(
    passes: Passes,
    mechanism: Mechanism,
    account: Account,
    *,
    queries: int,
    max_answers: int,
    key: RunKey,
    write: Callable[[Labels], None],
    progress: Callable[[int], None] = nothing_seen,
    warnings: Sequence[str] = (),
    read_off: Sequence[PublicFact] = (),
) -> Settlement:
    """Label every row, stopping at the public cap; charge *all* rows; release.

    Rows after the stop get no label and are charged all the same: charging up to a stop that
    depends on the votes is not RDP.

    Args:
        passes: over exactly the `queries` histograms to be asked.
        mechanism: the aggregator.
        account: how it is charged, fixed before any vote was seen.
        queries: k1, fixed before any vote was seen.
        max_answers: k2, the public cap on answers.
        key: what all noise follows from.
        write: given the labels, a batch at a time and in order; they must not leave before `run`
            returns.
        progress: called with the number of rows of each finished part.
        warnings: what else a reader of the report should know.
        read_off: facts that are taken as public and were read off the votes.

    Raises:
        VoteError: from the passes, at the first row that is no vote, or when there are fewer
            or more rows than `queries`.
    """
    cap = min(max_answers, queries)
    metadata = _metadata(mechanism, queries=queries, max_answers=cap, private=key.private)
    asked = answers = 0
    for drawn, kept in label_batches(
        passes,
        mechanism,
        key=key,
        max_answers=cap,
        keep=account.keep,
        metadata=metadata,
        progress=progress,
    ):
        account.add(kept)
        asked, answers = asked + len(drawn), answers + drawn.answers
        write(drawn)
    if asked != queries:
        raise VoteError(f"expected {queries} queries, the votes hold {asked}")
    done = _round(mechanism, key, queries=queries, max_answers=cap, answers=answers)
    return account.settle(replace(done, read_off=tuple(read_off)), key, warnings)


def run_in_parts(
    passes: FilePasses,
    mechanism: Mechanism,
    account: Account,
    *,
    queries: int,
    max_answers: int,
    key: RunKey,
    place: PartPlace,
    progress: Callable[[int], None] = nothing_seen,
    read_off: Sequence[PublicFact] = (),
) -> tuple[Settlement, list[Part]]:
    """The same, with the labels staged where they are drawn, a part of a folder for each range.

    The parts are the caller's to commit. Arguments and errors are those of `run`.

    Args:
        place: the folder that the parts are for.
    """
    cap = min(max_answers, queries)
    metadata = _metadata(mechanism, queries=queries, max_answers=cap, private=key.private)
    under_way = mechanism.start()
    in_order = under_way is not mechanism
    look = _Label(key, account.keep, under_way if in_order else None)
    numbers = {start: number for number, (start, _) in enumerate(passes.ranges)}
    gather = _WritePart(place, metadata, numbers, {}, place.staged())
    receipts = []
    found = passes.gathered(
        mechanism, look, gather, ranges=passes.ranges, progress=progress, in_order=in_order
    )
    for receipt in found:
        for kept in receipt.kept:
            account.add(kept)
        receipts.append(receipt)
    # Parts that the cap falls into, and those after it, are written again with what it leaves.
    left, allowed = cap, {}
    for (start, _), receipt in zip(passes.ranges, receipts, strict=True):
        if receipt.answers >= left:
            allowed[start] = left
        left = max(left - receipt.answers, 0)
    if allowed:
        look = _Label(key, None, mechanism.start() if in_order else None)
        gather = replace(gather, allowed=allowed)
        again = [rows for rows in passes.ranges if rows[0] in allowed or in_order]
        capped = list(passes.gathered(mechanism, look, gather, ranges=again, in_order=in_order))
        redone = {rows[0]: receipt for rows, receipt in zip(again, capped, strict=True)}
        receipts = [
            redone.get(start, receipt)
            for (start, _), receipt in zip(passes.ranges, receipts, strict=True)
        ]
    asked = sum(receipt.part.rows for receipt in receipts)
    if asked != queries:
        raise VoteError(f"expected {queries} queries, the votes hold {asked}")
    answers = sum(receipt.answers for receipt in receipts)
    done = _round(mechanism, key, queries=queries, max_answers=cap, answers=answers)
    settled = account.settle(replace(done, read_off=tuple(read_off)), key, ())
    return settled, [receipt.part for receipt in receipts]


def _round(
    mechanism: Mechanism, key: RunKey, *, queries: int, max_answers: int, answers: int
) -> Round:
    return Round(
        id=key.name("round"),
        mechanism=mechanism.parameters(),
        queries=queries,
        max_answers=max_answers,
        answers=answers,
    )


@dataclass(frozen=True)
class PartPlace:
    """Where parts of labels are written, and how.

    Attributes:
        folder: what they are for.
        run: name of the attempt to fill it.
        label_format: of the parts.
    """

    folder: PartFolder
    run: str
    label_format: LabelFormat

    def staged(self) -> dict[str, int]:
        """Sizes of parts that an earlier process of the same run has left, by name."""
        return self.folder.staged(self.run)

    def abort(self) -> None:
        """Remove what is staged; nothing was released."""
        self.folder.abort(self.run)


@dataclass(frozen=True)
class Staged:
    """Parts of labels that are written but not in place; public once they are.

    Attributes:
        place: where they were written.
        parts: all of them, in order.
    """

    place: PartPlace
    parts: tuple[Part, ...]

    def commit(self, *, force: bool = False) -> None:
        """Put them in place; OutputError, and nothing is there, where that fails."""
        self.place.folder.commit(self.place.run, self.parts, force=force)


@dataclass(frozen=True)
class _Receipt:
    """A part that is staged."""

    part: Part
    answers: int
    kept: list[Any]


@dataclass(frozen=True)
class _WritePart:
    """The labels of a range, written where they were drawn."""

    place: PartPlace
    metadata: Mapping[str, str]
    numbers: Mapping[int, int]
    allowed: Mapping[int, int]
    """Answers that a cap leaves, by the first row of the range; all where nothing is said."""
    staged: Mapping[str, int]

    def __call__(self, rows: tuple[int, int], found: list[_Labelled]) -> _Receipt:
        start, stop = rows
        left = self.allowed.get(start, stop - start + 1)
        answers, place = 0, self.place
        suffix = f".{place.label_format}"
        with (
            place.folder.open_part(place.run, self.numbers[start], suffix) as file,
            LabelWriter(file, place.label_format, self.metadata, rows=stop - start) as writer,
        ):
            for drawn in found:
                table = drawn.until(left - answers, self.metadata)
                answers += table.answers
                writer.write(table)
        return _Receipt(file.part(rows=stop - start), answers, [each.kept for each in found])

    def stands(self, known: _Receipt) -> bool:
        # A part that a cap cuts may have been written over without it, in as many bytes.
        return not self.allowed and self.staged.get(known.part.name) == known.part.size


def _metadata(
    mechanism: Mechanism, *, queries: int, max_answers: int, private: bool
) -> dict[str, str]:
    """The public parameters that a file of labels carries."""
    metadata = {name: str(value) for name, value in mechanism.parameters().items()}
    metadata |= {"queries": str(queries), "max_answers": str(max_answers)}
    return metadata | {"private": str(private).lower()}


def label_batches(
    passes: Passes,
    mechanism: Mechanism,
    *,
    key: RunKey,
    max_answers: int,
    keep: Keep | None = None,
    metadata: Mapping[str, str] | None = None,
    progress: Callable[[int], None] = nothing_seen,
) -> Iterator[tuple[Labels, Any]]:
    """Labels of all rows, a batch at a time, until the cap on answers is reached; none thereafter.

    Where the teachers give no answer before the stop, the mechanism's own public label, if it has
    one, takes its place. Yields each batch with what was kept of it.
    """
    under_way = mechanism.start()
    in_order = under_way is not mechanism
    look = _Label(key, keep, under_way if in_order else None)
    answered = 0
    for drawn in passes.over(mechanism, look, progress=progress, in_order=in_order):
        table = drawn.until(max_answers - answered, metadata or {})
        answered += table.answers
        yield table, drawn.kept


@dataclass(frozen=True)
class _Labelled:
    """A batch as if no cap had been reached."""

    ids: Ids
    labels: LabelArray
    sources: NDArray[np.uint8]
    kept: Any

    def until(self, left: int, metadata: Mapping[str, str]) -> Labels:
        """The labels until so many answers were given; none thereafter."""
        labels, sources = self.labels, self.sources
        hits = sources == _TEACHERS
        if np.count_nonzero(hits) >= left:
            stopped = np.cumsum(hits) - hits >= left
            labels = np.where(stopped, np.int32(NO_LABEL), labels)
            sources = np.where(stopped, np.uint8(_NOBODY), sources)
        return Labels(np.asarray(self.ids), labels, sources, metadata)


@dataclass(frozen=True)
class _Label:
    """Labels and what is kept of a batch; rows that depend on others have a labeller under way."""

    key: RunKey
    keep: Keep | None
    under_way: Labeller | None

    def __call__(self, mechanism: Mechanism, batch: VoteBatch) -> _Labelled:
        labeller = self.under_way or mechanism
        noise = self.key.rows(batch.first_row, labeller.draws)
        labels = labeller.label(batch.counts, noise)
        sources = np.where(labels == NO_LABEL, np.uint8(_NOBODY), np.uint8(_TEACHERS))
        student = mechanism.fallback()
        if student is not None:
            free = (labels == NO_LABEL) & (student != NO_LABEL)
            labels[free], sources[free] = student[free], _STUDENT
        kept = None if self.keep is None else self.keep(mechanism, batch.counts)
        return _Labelled(batch.ids, labels, sources, kept)


@dataclass(frozen=True)
class _TallyStates:
    """Queries counted by their states."""

    states: States

    def __call__(self, mechanism: ScoredMechanism, batch: VoteBatch) -> Tally:
        return Tally.of(self.states.of(mechanism, batch.counts))


class TightAccount:
    """Scores tallied at the plan's order; their exact cost is sanitized by the plan. SECRET."""

    def __init__(self, mechanism: ScoredMechanism, plan: ReleasePlan) -> None:
        """Start at nothing; `plan` is fixed before any vote is seen."""
        self._mechanism, self._plan = mechanism, plan
        self._table = mechanism.cost_table(plan.order)
        self._tally = Tally.empty()

    @property
    def keep(self) -> Keep:
        """The cells of queries."""
        return TallyCells(self._table.grid)

    def add(self, kept: Tally) -> None:
        """Add the tally of a batch."""
        self._tally += kept

    def settle(self, done: Round, key: RunKey, warnings: Sequence[str]) -> Settlement:
        """Charge all rows, draw once, and note the draw in the ledger."""
        plan = self._plan
        ledger = charge(
            self._mechanism,
            {plan.order: self._tally},
            done,
            delta=plan.delta,
            distances=distances_for(plan.beta, teachers=self._mechanism.teachers),
            private=key.private,
        )
        return settle(ledger, plan, key, warnings)

    def quote(self, *, queries: int, max_answers: int) -> Quote:
        """The data-independent price of labels and release."""
        return quote(self._mechanism, self._plan, queries=queries, max_answers=max_answers)


class TargetAccount:
    """A target stated in advance: met whatever the votes, or tested by a coin. SECRET."""

    def __init__(
        self,
        mechanism: ScoredMechanism,
        plan: TargetPlan,
        *,
        bound: Bound,
        queries: int,
        max_answers: int,
    ) -> None:
        """Price the labels for all votes; `plan` is fixed before any vote is seen.

        Raises:
            UnreachableError: not even labels that cost nothing would be likely to pass.
            UsageError: the mechanism has no such bound.
        """
        self._mechanism, self.plan, self._bound = mechanism, plan, bound
        self._queries, self._max_answers = queries, max_answers
        self.spent: Spent | None = None
        self.public = for_all_votes([Spending(mechanism, queries, max_answers)], delta=plan.delta)
        self._states = states_for(bound, mechanism, highest_order=float(plan.orders[-1]))
        if self.needed:
            plan.check_reachable()

    @property
    def needed(self) -> bool:
        """Whether a coin must be drawn, since the labels could cost more than the target."""
        return self.public.epsilon > self.plan.epsilon

    def test(
        self,
        passes: Passes,
        key: RunKey,
        progress: Callable[[int], None] = nothing_seen,
    ) -> bool:
        """Tally all rows and draw the coin: the one thing that is ever said about the profile."""
        profile = VoteProfile(self._states)
        ceiling = self._mechanism.worst_rdp(
            queries=self._queries, answers=self._max_answers, orders=self.plan.orders
        )
        for tally in passes.over(self._mechanism, _TallyStates(self._states), progress=progress):
            profile.add_tally(tally)
        if profile.queries != self._queries:
            raise VoteError(f"expected {self._queries} queries, the votes hold {profile.queries}")
        return not key.aside("coin").comes_up(self.plan.coin(profile.at, ceiling).log_refuse)

    def refused(self, *, private: bool, read_off: Sequence[PublicFact] = ()) -> Report:
        """The public report of a refusal; `read_off` as in `run`."""
        done = Round(
            id="refused",
            mechanism=self._mechanism.parameters(),
            queries=self._queries,
            max_answers=self._max_answers,
            answers=0,
            read_off=tuple(read_off),
        )
        return self._report(done, passed=False, private=private)

    keep = None

    def add(self, kept: Any) -> None:
        """Nothing: what labels may cost is settled before they are drawn."""

    def settle(self, done: Round, key: RunKey, warnings: Sequence[str]) -> Settlement:
        """The report of labels that passed, or that needed no test; there is no ledger."""
        if self.needed:
            report = self._report(done, passed=True, private=key.private)
        else:
            report = release_public(
                done,
                self.public,
                delta=self.plan.delta,
                private=key.private,
                target=self.plan.epsilon,
                spent=self.spent,
            )
        return Settlement(report, None)

    def quote(self, *, queries: int, max_answers: int) -> Quote:
        """The price for all votes, and how likely a made-up ensemble would pass."""
        plan = self.plan
        outlook = Outlook(
            target=plan.epsilon,
            delta=plan.delta,
            refusal_epsilon=plan.refusal_epsilon,
            orders=tuple(plan.orders.tolist()),
            distances=plan.distances,
            needed=self.needed,
            reference_chance=(
                Reference(self._mechanism).chance(plan, queries) if self.needed else 1.0
            ),
        )
        price = public_quote(
            self._mechanism,
            self.public,
            delta=plan.delta,
            queries=queries,
            max_answers=max_answers,
        )
        return replace(price, target=outlook)

    def _report(self, done: Round, *, passed: bool, private: bool) -> Report:
        return release_tested(
            done,
            self.plan,
            self.public,
            bound=self._bound,
            passed=passed,
            private=private,
            spent=self.spent,
        )


class WorstCaseAccount:
    """Nothing kept: the labels cost what they cost for all votes, and no ledger is wanted."""

    def __init__(
        self, mechanism: ScoredMechanism, *, queries: int, max_answers: int, delta: float
    ) -> None:
        """Price the labels for all votes."""
        self._mechanism, self._delta = mechanism, delta
        self._public = for_all_votes([Spending(mechanism, queries, max_answers)], delta=delta)

    keep = None

    def add(self, kept: Any) -> None:
        """Nothing: the cost does not depend on the votes."""

    def settle(self, done: Round, key: RunKey, warnings: Sequence[str]) -> Settlement:
        """The report, without a ledger."""
        del warnings
        report = release_public(done, self._public, delta=self._delta, private=key.private)
        return Settlement(report, None)

    def quote(self, *, queries: int, max_answers: int) -> Quote:
        """The price, before anything is spent."""
        return public_quote(
            self._mechanism,
            self._public,
            delta=self._delta,
            queries=queries,
            max_answers=max_answers,
        )


class ComposedAccount:
    """Nothing kept: the (ε, δ) of the run is a composition, the same for all votes."""

    def __init__(self, mechanism: ComposedMechanism, *, queries: int, delta: float) -> None:
        """Compose k1 queries; UnreachableError for a δ below what they amount to."""
        self._mechanism = mechanism
        self._cost = mechanism.privacy(queries, delta)

    keep = None

    def add(self, kept: Any) -> None:
        """Nothing: the cost does not depend on the votes."""

    def settle(self, done: Round, key: RunKey, warnings: Sequence[str]) -> Settlement:
        """The report, without a ledger."""
        report = release_composed(done, self._cost, private=key.private, warnings=warnings)
        return Settlement(report, None)

    def quote(self, *, queries: int, max_answers: int) -> Quote:
        """The composition, before anything is spent."""
        return composed_quote(self._mechanism, self._cost, queries=queries, max_answers=max_answers)


def settle(ledger: Ledger, plan: ReleasePlan, key: RunKey, warnings: Sequence[str]) -> Settlement:
    """Release a run's own ledger; a draw that was published is remembered in it."""
    report = release(ledger, plan, key.aside("release"), warnings=warnings)
    return Settlement(report, ledger.with_draw(plan.draw) if plan.publishes_draw else ledger)


def charge(
    mechanism: ScoredMechanism,
    tally: Mapping[float, Tally],
    done: Round,
    *,
    delta: float,
    distances: int,
    private: bool,
) -> Ledger:
    """The ledger of one run under the tight analysis.

    Args:
        mechanism: what was run.
        tally: per Rényi order, the lattice cells of *all* rows fixed in advance, those that a cap
            left unread included.
        done: what is public about the run.
        delta: δ of the run.
        distances: D0 ≥ 1, public.
        private: whether the noise was unpredictable.
    """
    orders = sorted(tally)
    prices = [
        mechanism.cost_table(order).price(tally[order], np.arange(distances)) for order in orders
    ]
    return Ledger(
        analysis="tight",
        delta=delta,
        orders=np.array(orders),
        rdp=np.array([price.rdp for price in prices]),
        sensitivity=np.stack([price.curve for price in prices]),
        ceiling=np.array([price.ceiling for price in prices]),
        rounds=(done,),
        private=private,
    )
