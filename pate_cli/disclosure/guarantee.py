"""The guarantee in words: which readings of a published ε are true, and which are not.

The words of a report follow from its own numbers, both when it is written and when it is read: so
whoever reads a stranger's report can say what its numbers are worth in our words, whatever words it
came with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pate_cli.core.dataclass import dataclass
from pate_cli.core.words import Analysis, PublicFact, ReleaseKind
from pate_cli.disclosure.crosscheck import reworded
from pate_cli.disclosure.figures import nats, shown
from pate_cli.disclosure.ledger import Round
from pate_cli.disclosure.report import PublicPrior, Report, Statement, Tested
from pate_cli.disclosure.total import Spent
from pate_cli.votes.facts import Group

# What was read off the votes, what one vote can do, and what settles it.
_READ_OFF = {
    PublicFact.CLASSES: ("the number of classes", "one vote can add a class", "--classes N"),
    PublicFact.QUERIES: (
        "the list of queries",
        "one vote can make a query appear",
        "--queries FILE",
    ),
}


def adjacency(rounds: Sequence[Round], *, external: bool = False) -> str:
    """Return who is protected: what two neighbouring vote files differ in.

    What is `external` protects records and knows of no teachers: with it, a total does no more.
    """
    prior = _GUESSES if any(done.prior for done in rounds) else ""
    asked = _ONE_BY_ONE if any(done.rule for done in rounds) else ""
    return _between_files(rounds) + prior + asked + (_ONE_RECORD if external else "")


_ONE_BY_ONE = (
    " Queries came one by one: after the same answers the next is the same for both, and which it "
    "is may have followed from them. What is promised holds however they were chosen; when asking "
    "stops was fixed beforehand."
)


_GUESSES = " So are the guesses of the prior and the votes they have."
_PRESUPPOSED = (
    "The guesses of the prior must be public, or a function of what was released before this run "
    "and is paid for. If the votes, or any private record, shaped them in another way, everything "
    "is void."
)
VOID: Final = (
    " All of it is void if the votes, or any private record, shaped the guesses of the prior, but "
    "for what was released and paid for before."
)
"""What a summary that claims something adds."""


def public_prior(rounds: Sequence[Round]) -> PublicPrior | None:
    """Return the public facts of the priors of all rounds; None where no round has one."""
    priors = [done.prior for done in rounds]
    given = [prior for prior in priors if prior is not None]
    if not given:
        return None
    same = len(given) == len(rounds)
    weights, digests = {prior.weight for prior in given}, {prior.sha256 for prior in given}
    return PublicPrior(
        weight=given[0].weight if same and len(weights) == 1 else None,
        guesses=sum(prior.guesses for prior in given),
        sha256=given[0].sha256 if same and len(digests) == 1 else None,
        presupposed=_PRESUPPOSED,
    )


_ONE_RECORD = (
    " With the external parts, what is protected is one record: it is replaced by another, and the "
    "vote files are then neighbours or the same."
)


def _between_files(rounds: Sequence[Round]) -> str:
    where, classes, given = "on every query", "one class", ", the classes"
    if not any("classes" in done.mechanism for done in rounds):
        given = ""  # names that nobody listed
    if any(done.label_set is not None for done in rounds):
        given = ", the labels"
        where = "on every query, and on each label of a query that has several,"
        classes = "one answer"
    done = rounds[0]
    teachers_per_record = done.teachers_per_record
    if done.groups:
        return (
            "Neighbouring vote files differ in the teachers that one record of one group has "
            "trained, at most teachers_per_record of that group in groups and none of another: "
            f"{where} at most its votes_per_record may move from {classes} to another, appear "
            f"or go missing. The queries{given}, the teachers, their groups and weights are "
            "public, the same for both."
        )
    if done.votes_together:
        who = f"one teacher, whose vote counts for up to {teachers_per_record}"
        most = f"{teachers_per_record} votes of {classes}"
    elif teachers_per_record == 1:
        who, most = "one teacher", "one vote"
    else:
        who = f"{teachers_per_record} teachers, as one record may have trained so many"
        most = f"{teachers_per_record} votes"
    return (
        f"Neighbouring vote files differ in {who}: {where} at most {most} may move from "
        f"{classes} to another, appear or go missing. The queries{given} and the number of "
        "teachers are public, the same for both."
    )


def read_off_warning(fact: PublicFact) -> str:
    """Return the warning that a fact was read off the votes, and what settles it."""
    what, why, flag = _READ_OFF[fact]
    return (
        f"{what[0].upper()}{what[1:]} was read off the votes: {why}, and with it what is "
        f"published, so no statement holds. Give {flag}."
    )


FIXED: Final = "mechanisms, queries and caps of all rounds were fixed beforehand"
"""What the worst case of several rounds rests on: settings that no earlier label has shaped."""
_EXTERNAL = (
    "The numbers above include the external parts as their files state them. This presupposes that "
    "each protects every record that the teachers were trained on, at that cost; that "
    "its noise is independent of all other noise; and, for the statement all-votes, that its cost "
    "was fixed beforehand. What it does may depend on whatever was released before it."
)
_NOT_PRIVATE = (
    "Nothing: the noise came from a fixed seed, so whoever knows or guesses it can undo it. "
    "For tests and papers only."
)


UNRECORDED: Final = (
    "No record of earlier draws from these rounds was kept: they may not be charged, so no "
    "statement holds. Leave out --no-record."
)


DRAWS: Final = "draws"
"""The word for them among what is unsettled in a report."""

INPUTS: Final = "inputs"
"""Among what is unsettled, the word for inputs of a total that do not hold."""

UNVERIFIED: Final = (
    "Something that this total is made of does not verify, or claims nothing, and was taken all "
    "the same (--unverified): no statement holds."
)


def gap_of(read_off: Sequence[PublicFact], *, recorded: bool, verified: bool = True) -> str | None:
    """Why no statement can be claimed at all; None where nothing stands in the way."""
    gaps = []
    if not verified:
        gaps.append("it is made of something that does not verify, or that claims nothing")
    if read_off:
        facts, reasons, flags = (
            " and ".join(parts) for parts in zip(*map(_READ_OFF.__getitem__, read_off), strict=True)
        )
        was = "was" if len(read_off) == 1 else "were"
        gaps.append(f"{facts} {was} read off the votes, and {reasons}; give {flags}")
    if not recorded:
        gaps.append(
            "earlier draws from these rounds, of which no record was kept, may not be charged; "
            "leave out --no-record"
        )
    return "; ".join(gaps) or None


def covers(kind: ReleaseKind, *, earlier: int = 0, external: int = 0) -> str:
    """Return the words for all that the headline ε accounts for."""
    parts = ["all labels"]
    if kind is not ReleaseKind.NONE:
        parts.append("the sanitized epsilon")
    if earlier:
        parts.append(f"{earlier} earlier release{'s' if earlier > 1 else ''} from the same votes")
    if external:
        parts.append(f"{external} external part{'s' if external > 1 else ''} on the same records")
    return " and ".join(parts) + (" together" if len(parts) > 1 else "")


@dataclass(frozen=True)
class Claims:
    """Claims that a report may make, read off its facts.

    Attributes:
        report: whose numbers are taken as they stand.
        rounds: its rounds.
    """

    report: Report
    rounds: Sequence[Round]

    @property
    def gap(self) -> str | None:
        """Why no statement can be claimed at all; None where nothing stands in the way."""
        unsettled = self.report.unsettled
        return gap_of(
            [fact for fact in PublicFact if fact in unsettled],
            recorded=DRAWS not in unsettled,
            verified=INPUTS not in unsettled,
        )

    @property
    def open(self) -> bool:
        """Whether statements can be claimed: noise nobody can guess, and nothing unsettled."""
        return self.report.private and self.gap is None

    @property
    def drawn(self) -> bool:
        """Whether an epsilon was sanitized."""
        return self.report.sanitized.release != ReleaseKind.NONE

    @property
    def analysed(self) -> bool:
        """Whether the numbers are bounds: what the published analysis says of votes is none."""
        return self.report.analysis != Analysis.PAPER or self.report.sanitized.epsilon is None

    @property
    def public(self) -> bool:
        """Whether the headline is the worst case."""
        return self.report.epsilon == self.report.data_independent.epsilon

    @property
    def alone(self) -> bool:
        """Whether the report is of one round and nothing else.

        A later round may have been shaped by labels of an earlier one: its charge then depends on
        them, and only the ex-post statement is left of the data-dependent ones.
        """
        return len(self.rounds) + len(self.report.external) == 1

    @property
    def premise(self) -> str:
        """How a statement on the worst case ends."""
        return "." if self.alone else f", if {FIXED}."


def statements(claims: Claims) -> tuple[Statement, ...]:
    """Return the readings of the numbers, and which of them hold (accounting/THEORY.md, 7)."""
    bounded = claims.open and (claims.analysed or not claims.drawn)
    sanitized = claims.open and claims.analysed and claims.drawn
    return (
        Statement("all-votes", bounded, _ALL_VOTES + claims.premise),
        Statement("this-file", sanitized and claims.alone, _THIS_FILE + _unless_alone(claims)),
        Statement(
            "released-epsilon",
            sanitized,
            _RELEASED + ("" if claims.alone else " Rounds may have been chosen on earlier labels."),
        ),
        Statement("sanitized-for-all-votes", False, _NOT_FOR_ALL),
        *_by_group(claims, bounded=bounded, sanitized=sanitized),
        *([Statement("external", claims.open, _EXTERNAL)] if claims.report.external else ()),
    )


def _by_group(claims: Claims, *, bounded: bool, sanitized: bool) -> list[Statement]:
    """Return the statement on groups of teachers, if there are any."""
    if not claims.report.groups:
        return []
    if claims.public:
        return [Statement("by-group", bounded, _BY_GROUP + claims.premise)]
    return [Statement("by-group", sanitized, _BY_GROUP_DRAWN + claims.premise)]


def _unless_alone(claims: Claims) -> str:
    if claims.alone:
        return ""
    others = ", or external parts." if claims.report.external else "."
    return f" Not claimed for several rounds, whose charge depends on the labels{others}"


_ALL_VOTES: Final = (
    "Everything released is (data_independent.epsilon, delta)-differentially private, whatever the "
    "votes"
)
_THIS_FILE: Final = (
    "For this vote file and each of its neighbours, in both directions, what was released is (eps, "
    "delta - delta_failure)-indistinguishable for an exact eps, and sanitized.epsilon is at least "
    "that eps except with probability delta_failure."
)
_RELEASED: Final = (
    "For all neighbouring vote files D, D', every event S and every number e: "
    "Pr_D[S and sanitized.epsilon <= e] <= exp(e) * Pr_D'[S and sanitized.epsilon <= e] + delta."
)
_NOT_FOR_ALL: Final = (
    "(sanitized.epsilon, delta)-differential privacy whatever the votes: not claimed, since "
    "sanitized.epsilon describes this vote file."
)
_BY_GROUP: Final = (
    "For vote files that differ in a record of a group, everything released is (epsilon of that "
    "group in groups, delta)-differentially private, whatever the votes"
)
_BY_GROUP_DRAWN: Final = (
    "For vote files D, D' that differ in a record of a group with epsilon g in groups, every event "
    "S and every number e: Pr_D[S and g <= e] <= exp(e) * Pr_D'[S and g <= e] + delta"
)


def summary(claims: Claims) -> str:
    """Return a sentence on the headline, and more where it includes or is divided."""
    report, parts = claims.report, len(claims.report.external)
    if not report.private:
        return _NOT_PRIVATE
    if claims.gap is not None:
        return f"Nothing is claimed: {claims.gap}."
    pair = _pair(report.epsilon, report.delta)
    if report.epsilon_kind == TOTAL:
        return (
            f"{pair} is what all runs of the record cost together, whatever the votes (statement "
            "total)."
        )
    if not claims.analysed:
        return f"{pair} repeats the published analysis and is not a bound (see warnings)."
    own = " Each group of teachers has its own in groups, none above it." if report.groups else ""
    if report.met_target is not None:
        own += f" The target {shown(report.met_target)} is met without a test."
    if parts:
        pair = f"In total, with {parts} external part{'s' if parts > 1 else ''}, {pair}"
    if claims.public:
        premise = claims.premise.removesuffix(".")
        return f"{pair} holds whatever the votes{premise} (statement all-votes).{own}"
    which = "statements this-file and released-epsilon"
    if not claims.alone:
        which = "the ex-post statement released-epsilon"
    return f"{pair} is a sanitized upper bound for these votes ({which}).{own}"


def _pair(epsilon: float, delta: float) -> str:
    return f"epsilon = {nats(epsilon)} at delta = {shown(delta)}"


UNTRACKED: Final = "; earlier runs: not tracked"
"""Ends what a report covers where no record is kept."""


TOTAL: Final = "total"
"""The kind of a headline that is all that a record tells of."""


def total_summary(spent: Spent) -> str:
    """Return a sentence on all runs, where the record tells of more than the one of the report."""
    pair = _pair(spent.epsilon, spent.delta)
    return f" All {spent.count} runs in its record together: {pair} (statement total)."


_EVENT: Final = "For all neighbouring vote files D, D', every event S and every number e"
_TOTAL: Final = (
    f"{_EVENT}: Pr_D[S and spent.epsilon <= e] <= exp(e) * Pr_D'[S and spent.epsilon <= e] "
    "+ spent.delta, S being of all that the runs in spent.runs released: (spent.epsilon, "
    "spent.delta)-differential privacy where no refusal lowers it. This presupposes that "
    "which runs there were and their settings did not follow from what earlier ones "
    "released."
)
_SUM: Final = (
    f"{_EVENT}: Pr_D[S and spent.sum_epsilon <= e] <= exp(e) * Pr_D'[S and "
    "spent.sum_epsilon <= e] + d, however the runs were chosen, d being a bound on "
    "spent.sum_delta that was fixed beforehand."
)


def total_statements(spent: Spent, *, holds: bool) -> tuple[Statement, ...]:
    """Return the statements on all runs of a record (accounting/THEORY.md, section 20)."""
    total = Statement("total", holds, _TOTAL)
    return (total,) if spent.sum_epsilon is None else (total, Statement("sum", holds, _SUM))


_TESTED: Final = (
    "What is released, labels or the refusal, is (tested.target, delta)-differentially private, "
    "whatever the votes."
)
_REFUSAL: Final = (
    "For all neighbouring vote files D, D': Pr_D[refused] <= exp(tested.refusal_epsilon) * "
    "Pr_D'[refused]. If what follows a refusal is (e, d)-differentially private, all of it "
    "together is (max(tested.target, tested.refusal_epsilon + e), delta + d)-differentially "
    "private."
)


def tested_covers(*, passed: bool) -> str:
    """Return the words for all that the headline of a tested target accounts for."""
    return "all labels, and whether they passed" if passed else "the refusal"


def tested_statements(*, holds: bool) -> tuple[Statement, ...]:
    """Return the statements on a tested target, whatever came out (accounting/THEORY.md, 10)."""
    return Statement("all-votes", holds, _TESTED), Statement("refusal", holds, _REFUSAL)


def tested_summary(claims: Claims, tested: Tested) -> str:
    """Return a sentence on what came out of the release test."""
    delta = shown(claims.report.delta)
    if not claims.report.private:
        return _NOT_PRIVATE
    if claims.gap is not None:
        return f"Nothing is claimed: {claims.gap}."
    if tested.passed:
        return (
            f"epsilon = {shown(tested.target)} at delta = {delta} holds whatever the votes "
            "(statement all-votes): it was stated in advance and the labels passed its test."
        )
    return (
        f"The labels did not pass the test of the target {shown(tested.target)} and none are "
        f"released; this cost epsilon = {shown(tested.refusal_epsilon)} at delta = {delta} "
        "(statement refusal)."
    )


def worded(report: Report) -> Report:
    """The report with the words that its facts are worth, and with what it may claims.

    The facts are taken as they stand. `warnings` are not looked at.

    Raises:
        PateError: rounds that no run has.
    """
    crosscheck, tested = report.crosscheck, report.tested
    if crosscheck is not None:
        crosscheck = reworded(crosscheck, report.data_independent)
    rounds = rounds_of(report)
    claims = Claims(replace(report, crosscheck=crosscheck, prior=public_prior(rounds)), rounds)
    told = _accounted(_released(claims) if tested is None else _tested(claims, tested))
    if told.prior is not None and any(reading.holds for reading in told.statements):
        told = replace(told, summary=told.summary + VOID)
    return told


def claimed_gap(report: Report) -> str | None:
    """Return why nothing can be claimed of a report; None where nothing stands in the way."""
    return Claims(report, ()).gap


def rounds_of(report: Report) -> tuple[Round, ...]:
    """The rounds as a ledger has them; their names are known to nobody else.

    Raises:
        LedgerError: numbers that contradict each other.
        VoteError: the same of its groups.
    """
    groups = tuple(
        Group(**{name: getattr(group, name) for name in Group.__dataclass_fields__})
        for group in report.groups
    )
    read_off = tuple(fact for fact in PublicFact if fact in report.unsettled)
    return tuple(
        Round.of(
            done,
            id=f"rounds.{number}",
            answers=done.answers,
            groups=groups,
            read_off=read_off,
        )
        for number, done in enumerate(report.rounds)
    )


def _released(claims: Claims) -> Report:
    report = claims.report
    return replace(
        report,
        sound=claims.analysed and claims.gap is None,
        summary=summary(claims),
        adjacency=adjacency(claims.rounds, external=bool(report.external)),
        covers=covers(
            ReleaseKind(report.sanitized.release),
            earlier=len(report.earlier_draws),
            external=len(report.external),
        ),
        statements=statements(claims),
    )


def _tested(claims: Claims, tested: Tested) -> Report:
    return replace(
        claims.report,
        sound=claims.gap is None,
        summary=tested_summary(claims, tested),
        adjacency=adjacency(claims.rounds),
        covers=tested_covers(passed=tested.passed),
        statements=tested_statements(holds=claims.open),
    )


def _accounted(report: Report) -> Report:
    """Return the report with what it says of all runs that its record tells of."""
    spent, total = report.spent, report.epsilon_kind == TOTAL
    if spent is None:
        return replace(report, covers=report.covers + UNTRACKED)
    if spent.count == 1 and not total:
        return report
    holds = report.claims("all-votes") and all(run.claimed for run in spent.runs)
    return replace(
        report,
        summary=report.summary + (total_summary(spent) if holds and not total else ""),
        statements=(*report.statements, *total_statements(spent, holds=holds)),
    )
