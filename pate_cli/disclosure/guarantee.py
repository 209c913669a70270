"""The guarantee in words: who is protected, what is guaranteed, and what ε means.

All sentences of a report follow from its facts and numbers. `verify` computes all sentences again,
so nobody can change a sentence unnoticed. The sentences are in sentences.ini.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from pate_cli.core.said import Pairs, texts_of
from pate_cli.core.words import CEILING
from pate_cli.disclosure.figures import nats, pair, shown, verdict
from pate_cli.disclosure.report import Report, ReportFacts, Statement
from pate_cli.disclosure.runs import Outcome
from pate_cli.disclosure.settings import Settings
from pate_cli.mechanisms.base import Mechanism
from pate_cli.votes.facts import Voting

TOTAL: Final = "total"
"""The kind of a headline ε that covers all runs of a record."""

_SENTENCES: Final = {
    name: text
    for texts in texts_of(__file__, "sentences.ini").values()
    for name, text in texts.items()
}
_OVERRULED: Final = 0.9
# Good settings may answer only one of four unanimous queries, but they answer more than this share.
_ANSWERED: Final = 0.1


def sentence(name: str, **told: Any) -> str:
    """Return the sentence with this name in sentences.ini, with values in place of its braces."""
    return _SENTENCES[name].format(**told)


# --- who is protected ----------------------------------------------------------------------------


def _adjacency(report: Report) -> str:
    """Return who is protected, in words: how two neighbouring vote files may differ."""
    rounds, every = report.rounds, all_settings(report)
    first, public = rounds[0], ["the queries"]
    if any(each.label_set is not None for each in rounds):
        public.append("the labels of a query")
    elif any("classes" in each.mechanism for each in rounds):
        public.append("the classes")
    public.append("the number of teachers")
    mechanism, who = first.aggregator, "who-one"
    if first.groups:
        public.append("their groups and weights")
        who = "who-grouped"
    elif mechanism.teachers_per_record > 1:
        who = "who-together" if mechanism.votes_together else "who-several"
    if any(each.prior for each in every):
        public.append("the guesses of the prior and their votes")
    told = {
        "who": sentence(who, k=mechanism.teachers_per_record),
        "public": f"{', '.join(public[:-1])} and {public[-1]}",
    }
    sessions = any(each.rule for each in rounds)
    further = {"session": sessions, "external": report.external, "disjoint": report.disjoint}
    names = ["neighbours", *(f"neighbours-{name}" for name, there in further.items() if there)]
    found = [sentence(name, **told) for name in names]
    for each in votings(every):
        own = "neighbours-assigned" if each.assigned else "neighbours-chosen"
        found.append(sentence(own, votes=each.votes))
    if len({done.voting for done in every}) > 1:
        found.append(sentence("neighbours-voting"))
    return " ".join(found)


def votings(rounds: Sequence[Settings]) -> tuple[Voting, ...]:
    """Return the limits that the rounds put on how many queries a teacher votes on, each once."""
    return tuple(dict.fromkeys(done.voting for done in rounds if done.voting is not None))


def all_settings(report: ReportFacts) -> tuple[Settings, ...]:
    """Return the settings of a report's rounds, and of all labelling runs in its `spent`."""
    return (*report.rounds, *(run.settings for run in report.runs if run.settings is not None))


def teachers_reached(facts: ReportFacts) -> int:
    """Return how many teachers one record may have trained.

    If the teachers have groups, the result is the largest number of any group.
    """
    first = facts.rounds[0]
    if first.groups:
        return max(group.teachers_per_record for group in first.groups)
    # Votes that always change together belong to one teacher.
    mechanism = first.aggregator
    return 1 if mechanism.votes_together else mechanism.teachers_per_record


def by_record(facts: ReportFacts) -> bool:
    """Return whether the guarantee is for one training record, not for all data of a teacher."""
    return bool(facts.external) or teachers_reached(facts) > 1


# --- what is guaranteed --------------------------------------------------------------------------


def worded(report: Report) -> Report:
    """Return a report with all sentences that follow from its facts and numbers."""
    told = covers(report)
    report = replace(
        report,
        adjacency=_adjacency(report),
        covers=sentence("covers-untracked", covers=told) if report.spent is None else told,
        statements=tuple(_statements(report)),
        warnings=tuple(dict.fromkeys(_warnings(report))),
    )
    return replace(report, summary=_summary(report))


def covers(facts: ReportFacts) -> str:
    """Return a phrase with everything that the ε of a report covers."""
    if facts.passed is not None:
        return sentence("covers-passed" if facts.passed else "covers-refused")
    own = int(facts.plan is not None)
    counts = {"labels": 1, "draw": own, "earlier": len(facts.draws) - own}
    counts["external"] = len(facts.external)
    return " and ".join(
        sentence(f"covers-{part}", count=count, s="s" * (count > 1))
        for part, count in counts.items()
        if count
    )


def premise_of(facts: ReportFacts) -> str:
    """Return the premise under which the worst-case ε holds, as the end of a sentence.

    The text is empty if there is no premise. A report on several rounds, or with the cost of other
    mechanisms, has the premise that all rounds and other mechanisms were fixed beforehand. Without
    this premise, a later round might depend on the labels of an earlier round.
    """
    return f", {sentence('fixed')}" if len(facts.rounds) + len(facts.external) > 1 else ""


def promise(report: Report) -> str:
    """Return a phrase with the (ε, δ) that a report states, the kind of ε, and its premise."""
    kind, said = report.epsilon_kind, pair(report.epsilon, report.delta)
    if report.passed is not None:  # A target keeps the digits in which it was stated.
        said = f"epsilon {shown(report.epsilon)} at delta {shown(report.delta)}"
    if not report.claimed:
        return sentence("kind-none", said=said)
    premise = {"worst-case": premise_of(report), TOTAL: f", {_chosen(report)}"}.get(kind, "")
    return sentence(f"kind-{kind}", said=said, holds=_validity(report, TOTAL)) + premise


def _validity(report: Report, statement: str) -> str:
    """Return when the ε of the report's statement `statement` holds, as the end of a sentence.

    After a failed release test, the ε of all runs may be smaller than it would be after a passed
    test (THEORY.md, section 14.5).
    """
    return sentence("lessened", statement=statement) if _lessened(report) else sentence("whatever")


def _lessened(report: Report) -> bool:
    """Return whether a release test of the report or of its runs failed."""
    return report.refused or any(run.outcome is Outcome.REFUSED for run in report.runs)


def caveat(report: Report, statement: str) -> list[str]:
    """Return a sentence on when the ε of `statement` holds if a release test failed, else []."""
    text = _validity(report, statement)
    return [f"{text[:1].upper()}{text[1:]}."] if _lessened(report) else []


def _chosen(report: Report) -> str:
    """Return the premise under which the total ε of all runs holds, as the end of a sentence."""
    return sentence("chosen-disjoint" if report.disjoint else "chosen")


def everything(report: Report) -> tuple[float, float, str]:
    """Return ε, δ and the kind of ε of the total cost of all runs, or of the report alone.

    If the report lists several runs and claims their total cost, the result is the total cost.
    If the report is on a single run or claims no total cost, the result is the report's (ε, δ).
    """
    spent = report.spent
    if spent is not None and spent.count > 1 and report.claims(TOTAL):
        return spent.epsilon, spent.delta, TOTAL
    return report.epsilon, report.delta, report.epsilon_kind


def against_a_guess(report: Report) -> tuple[float, float, str]:
    """Return ε and δ for one training record, and the kind of ε as in `Report.epsilon_kind`.

    The ε for one training record is smaller than the ε for a teacher if somebody states how private
    the training was. If a failed release test makes the total ε of all runs smaller, the kind is
    `lessened`.
    """
    epsilon, delta, kind = everything(report)
    own = report.spent.record_epsilon if kind == TOTAL and report.spent else report.record_epsilon
    kind = "lessened" if kind == TOTAL and _lessened(report) else kind
    if own is None:
        return epsilon, delta, kind
    return own, delta, "worst-case" if kind == "upper" else kind


def _summary(report: Report) -> str:
    """Return the promise of a report in a few sentences, or why the report promises nothing."""
    if not report.private:
        return sentence("gap-seed")
    if report.unsettled:
        return " ".join(sentence(f"gap-{word}") for word in report.unsettled)
    if not report.sound:
        return sentence("no-bound", said=pair(report.epsilon, report.delta))
    found, spent = [f"{promise(report)}."], report.spent
    if report.target is not None:
        came = {None: "untested", True: "passed", False: "refused"}[report.passed]
        found.append(sentence(f"met-{came}", target=shown(report.target.epsilon)))
    if report.record_epsilon is not None:
        numbers = {"epsilon": nats(report.record_epsilon), "delta": shown(report.delta)}
        found.append(sentence("by-training", **numbers))
        found += caveat(report, "by-record") if report.total or report.refused else []
    if spent is not None and report.claims(TOTAL) and not report.total:
        said = pair(spent.epsilon, spent.delta)
        told = {"count": spent.count, "said": said, "chosen": _chosen(report)}
        found.append(sentence("together-disjoint" if spent.disjoint else "together", **told))
        found += caveat(report, TOTAL)
    if any(done.prior for done in all_settings(report)):
        found.append(sentence("presupposed"))
    found += (f"{text[:1].upper()}{text[1:]}." for _, text in votes_of(report.rounds))
    return " ".join(found)


def _statements(report: Report) -> Iterator[Statement]:
    """Yield the statements about the published numbers, and whether each of them is true."""
    tested = report.passed is not None
    names = {
        "all-votes": True,
        "refusal": tested,
        "released-epsilon": report.plan is not None,
        "by-group": bool(report.groups) and not tested,
        "by-record": report.record_epsilon is not None,
        "few-votes": bool(votings(all_settings(report))),
        "external": bool(report.external),
        TOTAL: len(report.runs) > 1 or report.total,
    }
    names["sum"] = names[TOTAL]
    names["disjoint"] = bool(report.disjoint)
    every = all(run.claimed for run in report.runs)
    bounds = {"by-group": ("g", "delta"), TOTAL: ("spent.epsilon", "spent.delta")}
    bounds |= {"released-epsilon": ("sanitized", "delta"), "sum": ("spent.sum_epsilon", "d")}
    for name in (name for name, there in names.items() if there):
        epsilon, delta = bounds.get(name, ("", ""))
        holds = report.claimed and (every or name not in (TOTAL, "sum", "disjoint"))
        text = sentence(
            f"statement-{'tested' if tested and name == 'all-votes' else name}",
            ex_post=sentence("ex-post", epsilon=epsilon, delta=delta),
            premise=premise_of(report),
        )
        yield Statement(name, holds, text)


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
    """Return what was released, the meaning of ε, and what to do with the files.

    Args:
        report: the report of the release.
        publish: names of the files to publish, as the user wrote them.
        secret: names of the files to keep secret.
        check: the arguments for `pate verify`: the report and the labels.
        records: names of the record files that add up the costs of this run and of earlier runs.
        rows: the number of rows of the votes; None if it is not known.
    """
    found = [*_released(report, rows)]
    found.append(("publish" if report.claimed else "written", ", ".join(publish)))
    found.append(("keep secret", ", ".join(secret)))
    if records:
        found.append(("record", ", ".join(records)))
    elif report.claimed:
        told = "none: no record adds up the costs of this run and of earlier runs"
        found.append(("record", told))
    if check:
        found.append(("check it", shlex.join(["pate", "verify", *check])))
    return Pairs(found)


def not_asked(report: Report, rows: int) -> str | None:
    """Return a phrase with the number of rows that were not asked; None if all were asked."""
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
        yield "worst case", f"{worst}; {sentence('whatever')}{premise_of(report)}"
    if report.record_epsilon is not None and report.claimed:
        yield "one record", sentence("one-record", epsilon=nats(report.record_epsilon))
    if len({own.epsilon for own in report.groups}) > 1:
        least, *_, most = sorted(report.groups, key=lambda own: own.epsilon)
        ends = (f"{nats(own.epsilon)} for {own.group}" for own in (least, most))
        yield "by group", f"from {' to '.join(ends)}"
    yield from guesses_of(report.rounds)
    yield from votes_of(report.rounds)
    if not report.claimed:
        yield "privacy", report.summary
        return
    epsilon, delta, kind = everything(report)
    if report.spent is not None and kind != report.epsilon_kind:
        runs = f"the {report.spent.count} runs in the record"
        when = _validity(report, TOTAL)
        yield "in all", f"{nats(epsilon)} at delta {shown(delta)} for {runs}; {when}"
    yield "privacy", verdict(*against_a_guess(report))


def votes_of(rounds: Sequence[Settings]) -> Iterator[tuple[str, str]]:
    """Yield a title and a text on how many votes of a teacher count, if there is a limit."""
    if len({done.voting for done in rounds}) > 1:
        yield "votes", sentence("votes-differ")
        return
    for each in votings(rounds):
        yield "votes", sentence("votes-claimed" if each.claimed else "votes-kept", votes=each.votes)


def guesses_of(rounds: Sequence[Settings]) -> Iterator[tuple[str, str]]:
    """Yield a title and a text on the public guesses of labels in priors, if there are any."""
    priors = [done.prior for done in rounds if done.prior is not None]
    weights = {prior.weight for prior in priors}
    if priors:
        weight = f"{weights.pop()} votes" if len(weights) == 1 else "votes"
        guesses = sum(prior.guesses for prior in priors)
        told = "the guarantee is void if the votes or any private data influenced the guesses"
        yield "prior", f"{weight} for each of {guesses} guesses; {told}"


# --- warnings ------------------------------------------------------------------------------------


def _warnings(report: Report) -> Iterator[str]:
    """Yield warnings about gaps in the guarantee, useless labels, and a very large ε."""
    yield from (sentence(f"gap-{word}") for word in report.unsettled)
    if report.drawn_as_published:
        yield sentence("paper")
    for done in report.rounds:
        yield from cautions(done.aggregator, delta=report.delta)
    if min(report.epsilon, report.record_epsilon or math.inf) > CEILING:
        yield sentence("ceiling")


def cautions(mechanism: Mechanism, delta: float) -> Iterator[str]:
    """Yield warnings, made from public numbers, about useless labels and about a too large δ.

    The best possible query is one on which all votes agree. If the label of a query on which all
    votes agree is right with a probability that is closer to 1/classes (a random guess) than to 1,
    all labels are little more than noise. If even teachers who all agree are unlikely to overrule a
    guess of the prior, labels are little more than these guesses.
    """
    # If groups of teachers have different weights, `teachers` is the number of their votes.
    votes, classes, weight = mechanism.teachers, mechanism.classes, mechanism.prior_weight
    every = f"{mechanism.most_votes} votes" + (f" ({weight} of the prior)" if weight else "")
    answered, right = mechanism.unanimous()
    reached, certain = answered >= _ANSWERED, right >= (1.0 + 1.0 / classes) / 2.0
    if not reached:
        lowered = "threshold" in mechanism.options()
        remedy = "Lower --threshold" if lowered else "Raise --query-epsilon"
        yield sentence("threshold", votes=every, answered=answered, remedy=remedy)
    if not certain:
        yield sentence("noise", votes=every, right=right, guess=1.0 / classes)
    confirmed, overruled = mechanism.overruled() if weight else (1.0, 1.0)
    # The warning about the teachers' own noise comes first.
    silenced, outvoted = reached and confirmed < _ANSWERED, certain and overruled < _OVERRULED
    if weight > votes or silenced or outvoted:
        chances = {"confirmed": confirmed, "overruled": overruled}
        yield sentence("prior", votes=votes, weight=weight, **chances)
    if delta * votes > 1.0:
        yield sentence("delta", delta=delta, votes=votes)
