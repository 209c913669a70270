"""The guarantee in words: who is protected, what is promised, and which readings of ε are true.

All sentences of a report follow from its facts and numbers, both when it is written and when it is
read: nobody can put other words to the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pate_cli.disclosure.figures import pair, shown
from pate_cli.disclosure.report import PublicPrior, Report, ReportFacts, Statement
from pate_cli.disclosure.settings import Settings

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
FIXED: Final = "if the mechanisms, queries and caps of all rounds were fixed beforehand"
"""Premise of the worst case of several rounds: no earlier label has shaped any setting."""
CHOSEN: Final = "if no run and no setting was chosen after seeing earlier results"
"""Premise of the total of several runs."""
PRESUPPOSED: Final = (
    "The guesses of the prior must be public: neither the votes nor any training record may have "
    "shaped them, except through labels that were released and paid for before. Otherwise nothing "
    "holds."
)
RECORD: Final = "each training record"
TEACHER: Final = "all that one teacher was trained on"


def _ex_post(value: str, delta: str) -> str:
    """Return the statement that an ε holds together with what was released at so small an ε."""
    return (
        "For all neighbouring vote files D, D', every event S and every number e: "
        f"Pr_D[S and {value} <= e] <= exp(e) * Pr_D'[S and {value} <= e] + {delta}"
    )


_STATEMENTS: Final = {
    "tested": "What is released, labels or the refusal, is (tested.target, delta)-differentially "
    "private, whatever the votes.",
    "refusal": "For all neighbouring vote files D, D': Pr_D[refused] <= "
    "exp(tested.refusal_epsilon) * Pr_D'[refused]. If what follows a refusal is (e, d)-"
    "differentially private, all of it together is (max(tested.target, tested.refusal_epsilon + "
    "e), delta + d)-differentially private.",
    "all-votes": "Everything released is (data_independent.epsilon, delta)-differentially private, "
    "whatever the votes",
    "released-epsilon": f"{_ex_post('sanitized.epsilon', 'delta')}. Rounds may have been chosen "
    "after seeing earlier labels.",
    "by-group": "For vote files that differ in a record of a group, with g its epsilon in groups. "
    + _ex_post("g", "delta"),
    "external": "The numbers include the external parts as their files state them. This "
    "presupposes that each part protects every training record of the teachers, at the "
    "stated cost; that its noise is independent of all other noise; and, for all-votes, that its "
    "cost was fixed beforehand. What it does may depend on whatever was released before it.",
    "total": f"{_ex_post('spent.epsilon', 'spent.delta')}, where S is an event of all that the "
    "runs in spent.runs released. If no refusal lowers spent.epsilon, this is (spent.epsilon, "
    "spent.delta)-differential privacy. It presupposes that no run and no setting followed from "
    "what earlier runs released.",
    "sum": f"{_ex_post('spent.sum_epsilon', 'd')}, however the runs were chosen, where d is a "
    "bound on spent.sum_delta that was fixed beforehand.",
}
"""Readings of the numbers of a report (accounting/THEORY.md, sections 7, 10, 17 and 20)."""


def adjacency(rounds: Sequence[Settings], *, external: bool = False) -> str:
    """Return who is protected: in what two neighbouring vote files differ.

    Args:
        rounds: one or more rounds of the same teachers.
        external: whether external parts are in the total; they protect single records.
    """
    first, where, otherwise = rounds[0], "on every query", "vote for another class"
    public = ", the classes" if any("classes" in each.mechanism for each in rounds) else ""
    if any(each.label_set is not None for each in rounds):
        where, otherwise = "on every query and each of its labels", "answer otherwise"
        public = ", the labels"
    public += " and the number of teachers"
    k, who, each_may = first.mechanism.get("teachers_per_record", 1), "one teacher", "it may"
    if first.mechanism.get("votes_together"):
        who = f"one teacher, whose vote counts up to {k} times"
    elif k > 1:
        who = f"{k} teachers, because one training record may have reached so many"
        each_may = "each of them may"
    change = f"{each_may} {otherwise}, or not at all"
    if first.groups:
        who = (
            "the teachers of one training record, all of one group and no more than its "
            "teachers_per_record"
        )
        change = "at most its votes_per_record votes may differ or be missing"
        public += ", with their groups and weights,"
    text = (
        f"Two vote files are neighbours if they differ in at most {who}: {where} {change}. The "
        f"queries{public} are public and the same in both."
    )
    if any(each.prior for each in rounds):
        text += " So are the guesses of the prior and their votes."
    if any(each.rule for each in rounds):
        text += (
            " Queries came one by one: after the same answers, the next query is the same for "
            "both. The promise holds even if a query was chosen after seeing earlier answers; when "
            "asking stops was fixed beforehand."
        )
    if external:
        text += (
            " With the external parts, one training record is protected: another takes its place, "
            "and the two vote files are then neighbours or the same."
        )
    return text


def public_prior(rounds: Sequence[Settings]) -> PublicPrior | None:
    """Return the public facts of the priors of all rounds; None if no round has one."""
    given = [done.prior for done in rounds if done.prior is not None]
    if not given:
        return None
    same = len(given) == len(rounds)
    weights, digests = {prior.weight for prior in given}, {prior.sha256 for prior in given}
    return PublicPrior(
        weight=given[0].weight if same and len(weights) == 1 else None,
        guesses=sum(prior.guesses for prior in given),
        sha256=given[0].sha256 if same and len(digests) == 1 else None,
        presupposed=PRESUPPOSED,
    )


def covers(facts: ReportFacts) -> str:
    """Return all that the headline ε accounts for."""
    if facts.refused:
        return "the refusal"
    if facts.passed:
        return "all labels, and the fact that they were released"
    counts = {
        "the sanitized epsilon": int(facts.plan is not None),
        "earlier release{} from the same votes": len(facts.draws) - (facts.plan is not None),
        "external part{} on the same data": len(facts.external),
    }
    parts = ["all labels"]
    for part, count in counts.items():
        if count:
            number = f"{count} " if "{}" in part else ""
            parts.append(number + part.format("s" if count > 1 else ""))
    return " and ".join(parts) + (" together" if len(parts) > 1 else "")


def premise_of(facts: ReportFacts) -> str:
    """Return what the worst case of a report rests on, to end a sentence with; "" if on nothing.

    With several parts, a later one may have been shaped by the labels of an earlier one.
    """
    return f", {FIXED}" if len(facts.rounds) + len(facts.external) > 1 else ""


def teachers_per_record(facts: ReportFacts) -> int:
    """Return how many teachers, of its group if there are groups, one record may have trained."""
    first = facts.rounds[0]
    if first.groups:
        return max(group.teachers_per_record for group in first.groups)
    if first.mechanism.get("votes_together"):  # votes that move together are those of one teacher
        return 1
    found: int = first.mechanism.get("teachers_per_record", 1)
    return found


def unit_of(facts: ReportFacts) -> str:
    """Return what is protected: one record, or all that one teacher was trained on."""
    return RECORD if facts.external or teachers_per_record(facts) > 1 else TEACHER


def worded(report: Report) -> Report:
    """Return a report with all sentences that follow from its facts and numbers.

    `warnings` are left as they are.
    """
    report = replace(
        report,
        prior=public_prior(report.rounds),
        adjacency=adjacency(report.rounds, external=bool(report.external)),
        covers=covers(report) + ("; earlier runs are not tracked" if report.spent is None else ""),
        statements=tuple(_statements(report)),
    )
    return replace(report, summary=_summary(report))


def _statements(report: Report) -> Iterator[Statement]:
    """Yield the readings of the numbers, and which of them hold."""
    promised, premise, spent = (
        report.private and report.sound,
        f"{premise_of(report)}.",
        report.spent,
    )

    def reading(name: str, end: str = "", *, holds: bool = promised) -> Statement:
        return Statement(name, holds, _STATEMENTS[name] + end)

    if report.tested is None:
        yield reading("all-votes", premise)
    else:
        yield Statement("all-votes", promised, _STATEMENTS["tested"])
        yield reading("refusal")
    if report.plan is not None:
        yield reading("released-epsilon")
    if report.groups and report.tested is None:
        yield reading("by-group", premise)
    if report.external:
        yield reading("external")
    if spent is not None and (spent.count > 1 or report.total):
        holds = promised and all(run.claimed for run in spent.runs)
        yield reading("total", holds=holds)
        if spent.sum_epsilon is not None:
            yield reading("sum", holds=holds)


def _summary(report: Report) -> str:
    """Return the promise of a report in a few sentences, or why there is none."""
    if not report.private:
        return NOT_PRIVATE
    if report.unsettled:
        return " ".join(GAPS[word] for word in report.unsettled)
    text, spent = _headline(report), report.spent
    if spent is not None and report.claims("total") and not report.total:
        text += (
            f" All {spent.count} runs in its record together cost "
            f"{pair(spent.epsilon, spent.delta)}, {CHOSEN}."
        )
    if report.sound and report.prior is not None:
        text += f" {report.prior.presupposed}"
    return text


def _headline(report: Report) -> str:
    tested, said = report.tested, pair(report.epsilon, report.delta)
    if tested is not None:
        target, at = f"epsilon {shown(tested.target)}", f"at delta {shown(report.delta)}"
        if report.passed:
            return (
                f"{target} {at} holds whatever the votes. It was stated in advance, and the labels "
                "passed the release test."
            )
        return (
            f"The labels failed the release test of the target {target} and are not released. "
            f"This cost epsilon {shown(tested.refusal_epsilon)} {at}, whatever the votes."
        )
    if report.total:
        return f"All runs of the record together cost {said}, whatever the votes, {CHOSEN}."
    if not report.sound:
        return f"{said} repeats the published analysis and is not a bound (see warnings)."
    if report.external:
        count = len(report.external)
        said = f"Together with {count} external part{'s' if count > 1 else ''}, {said}"
    if report.epsilon_kind == "upper":
        said += " is a sanitized upper bound for these votes, as statement released-epsilon says."
    else:
        said += f" holds whatever the votes{premise_of(report)}."
    if report.groups:
        said += " Each group of teachers has an epsilon of its own, none above this one."
    if report.met_target is not None:
        said += f" It meets the target {shown(report.met_target)} without a test."
    return said
