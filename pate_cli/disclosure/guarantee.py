"""The guarantee in words: who is protected, what is promised, and which readings of ε are true.

All sentences of a report follow from its own numbers, both when it is written and when it is read:
nobody can put other words to the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pate_cli.core.words import Analysis, ReleaseKind
from pate_cli.disclosure.crosscheck import reworded
from pate_cli.disclosure.figures import pair, shown
from pate_cli.disclosure.ledger import Round
from pate_cli.disclosure.report import PublicPrior, Report, Statement
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
    "The guesses of the prior must be public: neither the votes nor any private record may have "
    "shaped them, except through labels that were released and paid for before. Otherwise nothing "
    "holds."
)
RECORD: Final = "each record"
TEACHER: Final = "all that one teacher was trained on"
UNTRACKED: Final = "; earlier runs are not tracked"


def _ex_post(value: str, delta: str) -> str:
    return (
        "For all neighbouring vote files D, D', every event S and every number e: "
        f"Pr_D[S and {value} <= e] <= exp(e) * Pr_D'[S and {value} <= e] + {delta}"
    )


_ALL_VOTES: Final = (
    "Everything released is (data_independent.epsilon, delta)-differentially private, whatever the "
    "votes"
)
_THIS_FILE: Final = (
    "For this vote file and each of its neighbours, in both directions, what was released is (eps, "
    "delta - delta_failure)-indistinguishable for an exact eps, and sanitized.epsilon is at least "
    "that eps except with probability delta_failure."
)
_RELEASED: Final = f"{_ex_post('sanitized.epsilon', 'delta')}."
_NOT_FOR_ALL: Final = (
    "(sanitized.epsilon, delta)-differential privacy whatever the votes: not claimed, since "
    "sanitized.epsilon describes this vote file."
)
_BY_GROUP: Final = (
    "For vote files that differ in a record of a group, everything released is (epsilon of that "
    "group in groups, delta)-differentially private, whatever the votes"
)
_BY_GROUP_DRAWN: Final = (
    "For vote files that differ in a record of a group, with g its epsilon in groups. "
    + _ex_post("g", "delta")
)
_EXTERNAL: Final = (
    "The numbers include the external parts as their files state them. This presupposes that each "
    "part protects every record that the teachers were trained on, at the stated cost; that its "
    "noise is independent of all other noise; and, for all-votes, that its cost was fixed "
    "beforehand. What it does may depend on whatever was released before it."
)
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
_TOTAL: Final = (
    f"{_ex_post('spent.epsilon', 'spent.delta')}, where S is an event of all that the runs in "
    "spent.runs released. If no refusal lowers spent.epsilon, this is (spent.epsilon, spent.delta)"
    "-differential privacy. It presupposes that no run and no setting followed from what earlier "
    "runs released."
)
_SUM: Final = (
    f"{_ex_post('spent.sum_epsilon', 'd')}, however the runs were chosen, where d is a bound on "
    "spent.sum_delta that was fixed beforehand."
)


def adjacency(rounds: Sequence[Round], *, external: bool = False) -> str:
    """Return who is protected: in what two neighbouring vote files differ.

    Args:
        rounds: one or more rounds of the same teachers.
        external: whether external parts are in the total; they protect single records.
    """
    done, where, otherwise = rounds[0], "on every query", "vote for another class"
    public = ", the classes" if any("classes" in each.mechanism for each in rounds) else ""
    if any(each.label_set is not None for each in rounds):
        where, otherwise = "on every query and each of its labels", "answer otherwise"
        public = ", the labels"
    public += " and the number of teachers"
    k, who, each_may = done.teachers_per_record, "one teacher", "it may"
    if done.votes_together:
        who = f"one teacher, whose vote counts up to {k} times"
    elif k > 1:
        who = f"{k} teachers, because one record may have trained so many"
        each_may = "each of them may"
    change = f"{each_may} {otherwise}, or not at all"
    if done.groups:
        who = (
            "the teachers of one record, all of one group and no more than its teachers_per_record"
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
            " With the external parts, one record is protected: another record takes its place, "
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


def covers(kind: ReleaseKind, *, earlier: int = 0, external: int = 0) -> str:
    """Return all that the headline ε accounts for.

    Args:
        kind: what is published about ε beside the labels.
        earlier: how many earlier sanitized values from the same votes.
        external: how many external parts.
    """
    parts = ["all labels"]
    if kind is not ReleaseKind.NONE:
        parts.append("the sanitized epsilon")
    if earlier:
        parts.append(f"{earlier} earlier release{'s' if earlier > 1 else ''} from the same votes")
    if external:
        parts.append(f"{external} external part{'s' if external > 1 else ''} on the same records")
    return " and ".join(parts) + (" together" if len(parts) > 1 else "")


def premise_of(report: Report) -> str:
    """Return what the worst case of a report rests on, to end a sentence with; "" if on nothing."""
    return f", {FIXED}" if _several(report) else ""


def teachers_per_record(report: Report) -> int:
    """Return how many teachers, of its group if there are groups, one record may have trained."""
    if report.groups:
        return max(group.teachers_per_record for group in report.groups)
    # Votes that move together are those of one teacher.
    return max(
        1 if each.mechanism.get("votes_together") else each.mechanism.get("teachers_per_record", 1)
        for each in report.rounds
    )


def unit_of(report: Report) -> str:
    """Return what is protected: one record, or all that one teacher was trained on."""
    return RECORD if report.external or teachers_per_record(report) > 1 else TEACHER


def worded(report: Report) -> Report:
    """Return a report with all sentences that follow from its facts, and what it may claim.

    The facts are taken as they stand. `warnings` are left as they are.

    Raises:
        PateError: rounds that no run has.
    """
    rounds, tested, crosscheck = report.rounds, report.tested, report.crosscheck
    if crosscheck is not None:
        crosscheck = reworded(crosscheck, report.data_independent)
    # What the published analysis draws is no bound.
    bound = report.analysis != Analysis.PAPER or report.sanitized.epsilon is None
    covered = covers(
        ReleaseKind(report.sanitized.release),
        earlier=len(report.earlier_draws),
        external=len(report.external),
    )
    if tested is not None:
        covered = (
            "all labels, and the fact that they were released" if tested.passed else "the refusal"
        )
    report = replace(
        report,
        crosscheck=crosscheck,
        prior=public_prior(rounds),
        sound=bound and not any(word in report.unsettled for word in GAPS),
        adjacency=adjacency(rounds, external=bool(report.external)),
        covers=covered + (UNTRACKED if report.spent is None else ""),
    )
    statements = tuple(_statements(report))
    return replace(report, statements=statements, summary=_summary(report, statements))


def _several(report: Report) -> bool:
    """Return whether a later part may have been shaped by the labels of an earlier one.

    Its charge then depends on these labels, and only the ex-post statement is left of those that
    depend on the votes.
    """
    return len(report.rounds) + len(report.external) > 1


def _statements(report: Report) -> Iterator[Statement]:
    """Yield the readings of the numbers, and which of them hold (accounting/THEORY.md, 7)."""
    holds, several = report.private and report.sound, _several(report)
    premise = f"{premise_of(report)}."
    if report.tested is not None:  # section 10
        yield Statement("all-votes", holds, _TESTED)
        yield Statement("refusal", holds, _REFUSAL)
    else:
        yield Statement("all-votes", holds, _ALL_VOTES + premise)
    if report.sanitized.release != ReleaseKind.NONE:
        not_for, rounds = "", ""
        if several:
            not_for = " Not claimed of several rounds or parts: what they cost depends on labels."
            rounds = " Rounds may have been chosen after seeing earlier labels."
        yield Statement("this-file", holds and not several, _THIS_FILE + not_for)
        yield Statement("released-epsilon", holds, _RELEASED + rounds)
        yield Statement("sanitized-for-all-votes", False, _NOT_FOR_ALL)
    if report.groups and report.tested is None:
        public = report.epsilon == report.data_independent.epsilon
        yield Statement("by-group", holds, (_BY_GROUP if public else _BY_GROUP_DRAWN) + premise)
    if report.external:
        yield Statement("external", holds, _EXTERNAL)
    spent = report.spent
    if spent is not None and (spent.count > 1 or report.epsilon_kind == TOTAL):  # section 20
        total = holds and all(run.claimed for run in spent.runs)
        yield Statement("total", total, _TOTAL)
        if spent.sum_epsilon is not None:
            yield Statement("sum", total, _SUM)


def _summary(report: Report, statements: Sequence[Statement]) -> str:
    """Return the promise of a report in a few sentences, or why there is none."""
    if not report.private:
        return NOT_PRIVATE
    gaps = [text for word, text in GAPS.items() if word in report.unsettled]
    if gaps:
        return " ".join(gaps)
    text, spent = _headline(report), report.spent
    total = any(one.holds for one in statements if one.id == "total")
    if total and spent is not None and report.epsilon_kind != TOTAL:
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
        if tested.passed:
            return (
                f"{target} {at} holds whatever the votes. It was stated in advance, and the labels "
                "passed the release test."
            )
        return (
            f"The labels failed the release test of the target {target} and are not released. "
            f"This cost epsilon {shown(tested.refusal_epsilon)} {at}, whatever the votes."
        )
    if report.epsilon_kind == TOTAL:
        return f"All runs of the record together cost {said}, whatever the votes, {CHOSEN}."
    if not report.sound:
        return f"{said} repeats the published analysis and is not a bound (see warnings)."
    if report.external:
        count = len(report.external)
        said = f"Together with {count} external part{'s' if count > 1 else ''}, {said}"
    if report.epsilon == report.data_independent.epsilon:
        said += f" holds whatever the votes{premise_of(report)}."
    else:
        said += " is a sanitized upper bound for these votes, as statement released-epsilon says."
    if report.groups:
        said += " Each group of teachers has an epsilon of its own, none above this one."
    if report.met_target is not None:
        said += f" It meets the target {shown(report.met_target)} without a test."
    return said
