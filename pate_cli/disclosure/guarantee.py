"""The guarantee in words: who is protected, what is promised, and which readings of ε are true.

All sentences of a report follow from its facts and numbers, both when it is written and when it is
read: nobody can put other words to the same numbers.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pate_cli.core.said import Pairs
from pate_cli.core.words import CEILING
from pate_cli.disclosure.figures import nats, pair, shown, verdict
from pate_cli.disclosure.report import Report, ReportFacts, Statement
from pate_cli.disclosure.settings import Settings
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism

TOTAL: Final = "total"
"""The kind of a headline ε that covers all runs of a record."""
DRAWS: Final = "draws"
"""Stands in `Report.unsettled` if earlier draws may not be charged."""
INPUTS: Final = "inputs"
"""Stands in `Report.unsettled` if something in a total does not verify."""

_NOTHING: Final = "Nothing is promised:"
GAPS: Final = {
    "classes": f"{_NOTHING} the number of classes was read from the votes, and one vote can add a "
    "class. Give --classes N.",
    "queries": f"{_NOTHING} the list of queries was read from the votes, and one vote can make a "
    "query appear. Give --queries FILE.",
    DRAWS: f"{_NOTHING} no record of earlier draws from these rounds was kept, so they may not be "
    "charged. Leave out --no-record.",
    INPUTS: f"{_NOTHING} the total includes something that does not verify, or that promises "
    "nothing itself, and was taken all the same (--unverified).",
}
"""Why a report promises nothing, by the word in `Report.unsettled`."""
NOT_PRIVATE: Final = (
    f"{_NOTHING} the noise came from a fixed seed, and whoever knows or guesses the seed "
    "can undo it. Use this for tests and papers only."
)
PAPER: Final = (
    "The published analysis charges the expected cost over the aggregator's coins, which is below "
    "a Renyi divergence; the sanitized epsilon is for comparison with the paper, not a bound."
)
"""Warning of a data-dependent ε of the published analysis."""

FIXED: Final = "if the mechanisms, queries and caps of all rounds were fixed beforehand"
"""Premise of the worst case of several rounds: no earlier label has shaped any setting."""
CHOSEN: Final = "if no run and no setting was chosen after seeing earlier results"
"""Premise of the total of several runs."""
PRESUPPOSED: Final = (
    "The guesses of the prior must be public: neither the votes nor any training record may have "
    "shaped them, except through labels that were released and paid for before. Otherwise nothing "
    "holds."
)
WHATEVER: Final = "it holds whatever the votes were"
_KINDS: Final = {
    "worst-case": f"; {WHATEVER}",
    "target": f", as asked; {WHATEVER}",
    "refusal": f", what the failed release test costs; {WHATEVER}",
    "upper": ", a sanitized bound for these votes, as statement released-epsilon says",
    TOTAL: f", all runs together; {WHATEVER}",
}

# An ε holds together with what was released at so small an ε.
_EX_POST: Final = (
    "For all neighbouring vote files D, D', every event S and every number e: "
    "Pr_D[S and {0} <= e] <= exp(e) * Pr_D'[S and {0} <= e] + {1}"
)
# Readings of the numbers of a report (accounting/THEORY.md, sections 7, 10, 17 and 20).
_STATEMENTS: Final = {
    "tested": "What is released, labels or the refusal, is (target.epsilon, delta)-differentially "
    "private, whatever the votes, where target stands in rounds.",
    "refusal": "For all neighbouring vote files D, D': Pr_D[refused] <= "
    "exp(target.refusal_epsilon) * Pr_D'[refused]. If what follows a refusal is (e, d)-"
    "differentially private, all of it together is (max(target.epsilon, target.refusal_epsilon + "
    "e), delta + d)-differentially private.",
    "all-votes": "Everything released is (data_independent.epsilon, delta)-differentially private, "
    "whatever the votes",
    "released-epsilon": f"{_EX_POST.format('sanitized', 'delta')}. Rounds may have been "
    "chosen after seeing earlier labels.",
    "by-group": "For vote files that differ in a record of a group, with g its epsilon in groups. "
    + _EX_POST.format("g", "delta"),
    "external": "The numbers include the external parts as their files state them. This "
    "presupposes that each part protects every training record of the teachers, at the "
    "stated cost; that its noise is independent of all other noise; and, for all-votes, that its "
    "cost was fixed beforehand. What it does may depend on whatever was released before it.",
    "total": f"{_EX_POST.format('spent.epsilon', 'spent.delta')}, where S is an event of all that "
    "the runs in spent.runs released. If no refusal lowers spent.epsilon, this is (spent.epsilon, "
    "spent.delta)-differential privacy. It presupposes that no run and no setting followed from "
    "what earlier runs released.",
    "sum": f"{_EX_POST.format('spent.sum_epsilon', 'd')}, however the runs were chosen, where d is "
    "a bound on spent.sum_delta that was fixed beforehand.",
}

_OVERRULED: Final = 0.9
# Good settings may leave three unanimous queries of four without an answer, but not nearly all.
_ANSWERED: Final = 0.1


# --- who is protected ----------------------------------------------------------------------------


def adjacency(rounds: Sequence[Settings], *, external: bool = False) -> str:
    """Return who is protected: in what two neighbouring vote files differ.

    Args:
        rounds: one or more rounds of the same teachers.
        external: whether external parts are in the total; they protect single records.
    """
    first, public = rounds[0], ["the queries"]
    if any(each.label_set is not None for each in rounds):
        public.append("the labels of a query")
    elif any("classes" in each.mechanism for each in rounds):
        public.append("the classes")
    public.append("the number of teachers")
    mechanism, who = first.aggregator, "one teacher"
    k = mechanism.teachers_per_record
    if first.groups:
        public.append("their groups and weights")
        who = (
            "the teachers of one training record, all of one group and no more than its "
            "teachers_per_record"
        )
    elif mechanism.votes_together:
        who = f"one teacher, whose vote counts up to {k} times"
    elif k > 1:
        who = f"{k} teachers, because one training record may have reached so many"
    if any(each.prior for each in rounds):
        public.append("the guesses of the prior and their votes")
    text = (
        f"Two vote files are neighbours if they differ in the votes of at most {who}: on every "
        "query these may be others, or missing. Public, and the same in both, are "
        f"{', '.join(public[:-1])} and {public[-1]}."
    )
    if any(each.rule for each in rounds):
        text += (
            " Queries came one by one, each of them the same for both after the same answers. It "
            "may have followed from these; when asking stops was fixed beforehand."
        )
    if external:
        text += (
            " With the external parts, one training record is protected: another takes its place, "
            "and the two vote files are then neighbours or the same."
        )
    return text


def teachers_reached(facts: ReportFacts) -> int:
    """Return how many teachers, of its group if there are groups, one record may have trained."""
    first = facts.rounds[0]
    if first.groups:
        return max(group.teachers_per_record for group in first.groups)
    # Votes that move together are those of one teacher.
    mechanism = first.aggregator
    return 1 if mechanism.votes_together else mechanism.teachers_per_record


def by_record(facts: ReportFacts) -> bool:
    """Return whether one training record is protected, and not all that one teacher has seen."""
    return bool(facts.external) or teachers_reached(facts) > 1


# --- what is promised ----------------------------------------------------------------------------


def worded(report: Report) -> Report:
    """Return a report with all sentences that follow from its facts and numbers."""
    report = replace(
        report,
        adjacency=adjacency(report.rounds, external=bool(report.external)),
        covers=covers(report) + ("; earlier runs are not tracked" if report.spent is None else ""),
        statements=tuple(_statements(report)),
        warnings=tuple(dict.fromkeys(_warnings(report))),
    )
    return replace(report, summary=_summary(report))


def covers(facts: ReportFacts) -> str:
    """Return all that the headline ε accounts for."""
    if facts.passed is not None:
        return "all labels, and the fact that they were released" if facts.passed else "the refusal"
    own = int(facts.plan is not None)
    earlier, external = len(facts.draws) - own, len(facts.external)
    parts = ["all labels", *["the sanitized epsilon"] * own]
    for count, part in (
        (earlier, "earlier release{} from the same votes"),
        (external, "external part{} on the same data"),
    ):
        parts += [f"{count} {part.format('s' * (count > 1))}"] * bool(count)
    return " and ".join(parts)


def premise_of(facts: ReportFacts) -> str:
    """Return what the worst case of a report rests on, to end a sentence with; "" if on nothing.

    With several parts, a later one may have been shaped by the labels of an earlier one.
    """
    return f", {FIXED}" if len(facts.rounds) + len(facts.external) > 1 else ""


def promise(report: Report) -> str:
    """Return the headline (ε, δ) of a report with what it is, and what it rests on."""
    kind, said = report.epsilon_kind, pair(report.epsilon, report.delta)
    if report.passed is not None:  # a target as it was stated
        said = f"epsilon {shown(report.epsilon)} at delta {shown(report.delta)}"
    if not report.claimed:
        return f"{said}; nothing is promised"
    premise = {"worst-case": premise_of(report), TOTAL: f", {CHOSEN}"}.get(kind, "")
    return f"{said}{_KINDS[kind]}{premise}"


def everything(report: Report) -> tuple[float, float, str]:
    """Return (ε, δ) and the kind of ε: of all runs together where that is claimed, or of this."""
    spent = report.spent
    if spent is not None and spent.count > 1 and report.claims(TOTAL):
        return spent.epsilon, spent.delta, TOTAL
    return report.epsilon, report.delta, report.epsilon_kind


def _summary(report: Report) -> str:
    """Return the promise of a report in a few sentences, or why there is none."""
    if not report.private:
        return NOT_PRIVATE
    if report.unsettled:
        return " ".join(GAPS[word] for word in report.unsettled)
    if not report.sound:
        said = pair(report.epsilon, report.delta)
        return f"{said} repeats the published analysis and is not a bound (see warnings)."
    text, spent = f"{promise(report)}.", report.spent
    if report.target is not None:
        target, passed = shown(report.target.epsilon), report.passed
        came = "passed" if passed else "are not released: they failed"
        text += (
            f" It meets the target {target} without a test."
            if passed is None
            else f" The labels {came} the release test of the target {target}."
        )
    if spent is not None and report.claims(TOTAL) and not report.total:
        together = pair(spent.epsilon, spent.delta)
        text += f" All {spent.count} runs in its record together cost {together}, {CHOSEN}."
    return f"{text} {PRESUPPOSED}" if any(done.prior for done in report.rounds) else text


def _statements(report: Report) -> Iterator[Statement]:
    """Yield the readings of the numbers, and which of them hold."""
    tested, spent, premise = report.passed is not None, report.spent, f"{premise_of(report)}."
    every = _STATEMENTS["tested"] if tested else _STATEMENTS["all-votes"] + premise
    yield Statement("all-votes", report.claimed, every)
    for name, there, end in (
        ("refusal", tested, ""),
        ("released-epsilon", report.plan is not None, ""),
        ("by-group", bool(report.groups) and not tested, premise),
        ("external", bool(report.external), ""),
    ):
        if there:
            yield Statement(name, report.claimed, _STATEMENTS[name] + end)
    if spent is not None and (spent.count > 1 or report.total):
        holds = report.claimed and all(run.claimed for run in spent.runs)
        yield from (Statement(name, holds, _STATEMENTS[name]) for name in (TOTAL, "sum"))


# --- the summary for a person ------------------------------------------------------------------


def summary_of(
    report: Report,
    *,
    publish: Sequence[str],
    secret: Sequence[str],
    check: Sequence[str] = (),
    records: Sequence[str] = (),
    rows: int | None = None,
) -> Pairs:
    """Return what was released, what it is worth, and what to do with the files.

    Args:
        report: what was released.
        publish: files to publish, as a person named them.
        secret: files to keep secret.
        check: files that `pate verify` takes.
        records: files that tell of all runs.
        rows: how many rows the votes have, if that is known.
    """
    found = [*_released(report, rows)]
    found.append(("publish" if report.claimed else "written", ", ".join(publish)))
    found.append(("keep secret", ", ".join(secret)))
    if records:
        found.append(("record", ", ".join(records)))
    elif report.claimed:
        found.append(("record", "none: this run and earlier ones are charged nowhere"))
    if check:
        found.append(("check it", shlex.join(["pate", "verify", *check])))
    return Pairs(found)


def not_asked(report: Report, rows: int) -> str | None:
    """Say how many of the rows of the votes were not asked; None where all were."""
    left = rows - report.queries
    if left <= 0:
        return None
    return f"the first {report.queries} {report.rows}; the {left} after them were not asked"


def _released(report: Report, rows: int | None) -> Iterator[tuple[str, str]]:
    left = None if rows is None else not_asked(report, rows)
    if left is not None:
        yield "asked", left
    yield "answered", f"{report.answers} of {report.queries} {report.rows}"
    yield "epsilon", promise(report).removeprefix("epsilon ")
    if report.epsilon_kind == "upper" and report.claimed:
        worst = nats(report.data_independent.epsilon)
        yield "worst case", f"{worst}; {WHATEVER}{premise_of(report)}"
    if len({own.epsilon for own in report.groups}) > 1:
        least, *_, most = sorted(report.groups, key=lambda own: own.epsilon)
        ends = (f"{nats(own.epsilon)} for {own.group}" for own in (least, most))
        yield "by group", f"from {' to '.join(ends)}"
    yield from guesses_of(report.rounds)
    if not report.claimed:
        yield "privacy", report.summary
        return
    epsilon, delta, kind = everything(report)
    if report.spent is not None and kind != report.epsilon_kind:
        runs = f"the {report.spent.count} runs in the record"
        yield "in all", f"{nats(epsilon)} at delta {shown(delta)} for {runs}; {WHATEVER}"
    yield "privacy", verdict(epsilon, delta, kind)


def guesses_of(rounds: Sequence[Settings]) -> Iterator[tuple[str, str]]:
    """Yield what ε presupposes of priors, if there are any, for a summary."""
    priors = [done.prior for done in rounds if done.prior is not None]
    weights = {prior.weight for prior in priors}
    if priors:
        weight = f"{weights.pop()} votes" if len(weights) == 1 else "votes"
        guesses = sum(prior.guesses for prior in priors)
        told = "void if the votes or any private data shaped them"
        yield "prior", f"{weight} for each of {guesses} guesses; {told}"


# --- what to beware of ---------------------------------------------------------------------------


def _warnings(report: Report) -> Iterator[str]:
    """Yield what a reader should know: gaps, labels that are useless, an ε or δ that is none."""
    yield from (GAPS[word] for word in report.unsettled)
    if report.plan is not None and report.analysis == "paper":
        yield PAPER
    for done in report.rounds:
        yield from cautions(done.aggregator, delta=report.delta)
    if report.epsilon > CEILING:
        yield (
            "This epsilon promises practically nothing: someone guessing whether one training "
            "record was used, 50:50 beforehand, can be right more than 99.99% of the time. Ask "
            "fewer queries, find settings with pate plan, or train more teachers."
        )


def cautions(mechanism: Mechanism, delta: float) -> Iterator[str]:
    """Yield warnings about settings that make labels useless or δ no promise; all are public.

    A query on which all votes agree is the best there is. Labels count as noise if even its label
    is nearer to a guess among the classes than to certainty, and as guesses of the prior if
    teachers who all agree are unlikely to overrule it.
    """
    # Where teachers count differently, `teachers` are votes.
    votes, classes, weight = mechanism.teachers, mechanism.classes, mechanism.prior_weight
    every = f"{mechanism.most_votes} votes" + (f" ({weight} of the prior)" if weight else "")
    answered, right = mechanism.unanimous()
    reached, certain = answered >= _ANSWERED, right >= (1.0 + 1.0 / classes) / 2.0
    if not reached:
        composed = isinstance(mechanism, ComposedMechanism)
        yield (
            f"The threshold is out of reach: if all {every} agree, a query is answered with "
            f"probability {answered:.2g} only. "
            f"{'Raise --query-epsilon' if composed else 'Lower --threshold'}, or train more "
            "teachers."
        )
    if not certain:
        yield (
            f"Labels are noise: if all {every} agree, an answer is right with probability "
            f"{right:.2g} only ({1.0 / classes:.2g} by guessing). Take less noise on fewer "
            "queries, as pate plan finds it, or train more teachers."
        )
    confirmed, overruled = mechanism.overruled() if weight else (1.0, 1.0)
    # The teachers' own noise is told above.
    silenced, outvoted = reached and confirmed < _ANSWERED, certain and overruled < _OVERRULED
    if weight > votes or silenced or outvoted:
        yield (
            f"Guesses of the prior are hard to overrule: if all {votes} votes of the teachers are "
            f"against a guess of {weight} votes, a query is answered with probability "
            f"{confirmed:.2g}, and an answer is theirs with probability {overruled:.2g}. Lower "
            "--prior-weight, take less noise, or train more teachers."
        )
    if delta * votes > 1.0:
        yield (
            f"delta {delta:g} is above 1 / {votes} votes, so it allows a mechanism that gives some "
            "training record away. Take one far below 1 over the number of training records."
        )
