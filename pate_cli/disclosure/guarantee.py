"""`report_of` computes a report from its facts, numbers and sentences; `quote_of` computes a quote.

No other function makes a report. So anybody who has a report can compute it again from its facts
and compare every other field, as `verify` does: nobody can change a number or a sentence unnoticed.
The sentences say who is protected, what is guaranteed, and what ε means; they are in sentences.ini.
A quote is made before a run, and states the largest ε that the report of the run can have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.composition import Step, Textbook, textbook
from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.few_votes import touched
from pate_cli.core.errors import LedgerError, ReportError
from pate_cli.core.said import Pairs, Said, texts_of
from pate_cli.core.words import CEILING, PublicFact
from pate_cli.disclosure.cost import Cost, nats, pair, shown
from pate_cli.disclosure.ledger import Round, check_alike
from pate_cli.disclosure.report import (
    SCHEMA_VERSION,
    DataIndependent,
    GroupGuarantee,
    Report,
    ReportFacts,
    Statement,
)
from pate_cli.disclosure.runs import Outcome, Run, in_full
from pate_cli.disclosure.settings import Settings
from pate_cli.files.document import SPARING, encoded
from pate_cli.files.results import Result
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism
from pate_cli.votes.facts import Group, Voting

TOTAL: Final = "total"
"""The kind of a headline ε that covers all runs of a record."""

_SENTENCES: Final = {
    name: text
    for texts in texts_of(__file__, "sentences.ini").values()
    for name, text in texts.items()
}
_EXACT: Final = Context(prec=40)
_CENT: Final = Decimal("0.01")
# Each word is for an ε of at most this many nats. The words are our opinion, and the pages say so.
_SCALE: Final = ((1.0, "strong"), (5.0, "usable"), (CEILING, "weak"), (math.inf, "hardly any"))
_OVERRULED: Final = 0.9
# Good settings may answer only one of four unanimous queries, but they answer more than this share.
_ANSWERED: Final = 0.1


def sentence(name: str, **told: Any) -> str:
    """Return the sentence with this name in sentences.ini, with values in place of its braces."""
    return _SENTENCES[name].format(**told)


# --- from facts to numbers ------------------------------------------------------------------------


def run_facts(done: Round, **came: Any) -> ReportFacts:
    """Return the facts of a report on one run.

    Args:
        done: the settings of the run, and the number of its answers. **came: other fields of
            `ReportFacts`, such as `passed` after a release test or `sanitized` after a draw.
    """
    return ReportFacts(rounds=(stated(done),), **came)


def stated(done: Round) -> Round:
    """Return a round as reports contain it, without its name.

    A plan `sanitizer` that draws no sanitized ε is left out, because only ledgers need the plan.
    """
    return Round.of(done.published, answers=done.answers)


def run_of(facts: ReportFacts) -> Run:
    """Return the run that a report describes, in the form in which a record contains runs.

    Raises:
        ReportError: the report covers several rounds, and no sanitized ε was drawn for them.
    """
    plan, rounds = facts.sanitizer, facts.rounds
    told: dict[str, Any] = {"id": facts.run or f"report {facts.time}", "time": facts.time}
    if plan is not None:
        promised = not facts.seeded and not facts.drawn_as_published
        promised = promised and all(done.private for done in rounds)
        return Run.of(outcome=Outcome.RELEASED, draw=plan, promised=promised, **told)
    if len(rounds) != 1:
        raise ReportError(
            f"the report covers {len(rounds)} rounds and no sanitized epsilon was drawn for "
            "them, so it does not describe a single run; give a report or record of each run"
        )
    if facts.refused:
        return Run.of(outcome=Outcome.REFUSED, settings=rounds[0], **told)
    answers = rounds[0].answers
    return Run.of(outcome=Outcome.LABELLED, settings=rounds[0], answers=answers, **told)


def group_guarantees(
    groups: Sequence[Group], cost: Cost | None, *, epsilon: float, delta: float
) -> tuple[GroupGuarantee, ...]:
    """Return the ε of every group of teachers, which is at most the ε of the report.

    A record of group g changes at most K_g votes, so the worst-case cost of the labels is computed
    again for K_g votes. The costs of drawing a sanitized ε and of external mechanisms are the same
    for every group (THEORY.md, section 19).

    Args:
        groups: the groups of the teachers.
        cost: the cost of everything in the report; None if every group has the ε of the report:
            in a report on the total cost of several runs, and after a release test.
        epsilon, delta: the (ε, δ) that the report states.
    """
    own = dict.fromkeys((group.votes_per_record for group in groups), epsilon)
    if cost is not None and not cost.pairs:
        own = {votes: min(epsilon, cost.moving(votes).own.epsilon) for votes in own}
    return tuple(
        GroupGuarantee(**vars(group), epsilon=own[group.votes_per_record], delta=delta)
        for group in groups
    )


def report_of(facts: ReportFacts) -> Report:
    """Return the report that follows from facts, with every number and sentence.

    Raises:
        LedgerError: there is no round.
        ReportError: the facts contradict each other.
    """
    if not facts.rounds:
        raise LedgerError("there is no round, and so no cost to report; give the ledger of a run")
    for fault in _contradictions(facts):
        raise ReportError(fault)
    rounds, target, spent = facts.rounds, facts.target, facts.spent
    if facts.total and spent is not None:
        everything, labels = in_full(spent.runs)
        delta = labels_delta = spent.delta
    else:
        everything, labels = facts.cost.own, facts.cost.labels.own
        delta, labels_delta = everything.delta, labels.delta
    public = DataIndependent.of(everything, labels)
    epsilon, kind = _head(facts, public)
    if target is not None and facts.passed is None and epsilon > target.epsilon:
        raise ReportError(
            f"the report has epsilon {epsilon:g}, which is above its target {target.epsilon:g}, "
            "but the labels had no release test; do not use this report, and make it again"
        )
    unsettled, named = tuple(_unsettled(facts)), dict(rounds[0].mechanism)
    # A sanitized ε is only valid for the given votes, but training changes votes at random.
    whatever, training = public.epsilon if kind == "upper" else epsilon, facts.training
    return worded(
        Report(
            **{name: getattr(facts, name) for name in ReportFacts.__dataclass_fields__},
            epsilon=epsilon,
            epsilon_kind=kind,
            delta=delta,
            private=not facts.seeded and all(done.private for done in rounds),
            sound=not unsettled and not facts.drawn_as_published,
            mechanism=named if len(rounds) == 1 else {"name": "composition", "rounds": len(rounds)},
            queries=sum(done.queries for done in rounds),
            answers=sum(done.answers for done in rounds),
            max_answers=sum(done.max_answers for done in rounds),
            data_independent=public,
            record_epsilon=None if training is None else training.amplified(whatever, delta),
            groups=group_guarantees(
                rounds[0].groups,
                None if facts.total or facts.passed is not None else facts.cost,
                epsilon=epsilon,
                delta=delta,
            ),
            unsettled=unsettled,
            crosscheck=None if facts.total else _crosscheck(rounds, labels_delta),
        )
    )


def textbook_steps(rounds: Sequence[Settings]) -> list[Step]:
    """Return all steps that a textbook accountant composes.

    For a session, the accountant composes N queries and N answers. N is `StopRule.asks`, the number
    of queries that a session may ask even if it answers every query.
    """
    return [
        step
        for done in rounds
        for queries, answers in [touched(done.few, *done.charged)]
        for step in done.aggregator.textbook(queries=queries, answers=answers)
    ]


def _crosscheck(rounds: Sequence[Settings], delta: float) -> Textbook:
    """Return the ε's of textbook accountants for rounds, rounded up."""
    found = astuple(textbook(textbook_steps(rounds), delta=delta))
    return Textbook(*(None if each is None else round_up(each) for each in found))


def _unsettled(facts: ReportFacts) -> Iterator[str]:
    """Yield the reasons why ε is no valid bound; sentences.ini has a sentence gap-… for each."""
    yield from (fact for fact in PublicFact if any(fact in done.read_off for done in facts.rounds))
    if not facts.recorded:
        yield "draws"
    if facts.total and not all(run.claimed for run in facts.runs):
        yield "inputs"


def _head(facts: ReportFacts, public: DataIndependent) -> tuple[float, str]:
    """Return the ε that a report states, and its kind.

    A report on the total cost of all runs states the ε of the total cost. If there was a release
    test, the report states the target ε after a passed test, and the cost of failing after a failed
    test. A report without a total cost and without a release test states the smaller of the
    worst-case ε and the sanitized ε.
    """
    target, plan, drawn = facts.target, facts.plan, facts.sanitized
    if facts.total and facts.spent is not None:
        return round_up(facts.spent.epsilon), TOTAL
    if target is not None and facts.passed is not None:
        return (target.epsilon, "target") if facts.passed else (target.refusal_epsilon, "refusal")
    if plan is None or drawn is None or public.epsilon <= drawn:
        return public.epsilon, "worst-case"
    return drawn, plan.kind.value


def _contradictions(facts: ReportFacts) -> Iterator[str]:
    """Yield contradictions between facts: no run and no release can have all these facts."""
    rounds, runs = facts.rounds, facts.runs
    if facts.total:
        draws = tuple(run.draw for run in runs if run.draw is not None)
        parts = tuple(run.external for run in runs if run.external is not None)
        if not runs:
            yield "the report is a total, but has no runs"
        if (facts.earlier_draws, facts.external) != (draws, parts):
            yield "the draws and external parts of a total must be those of its runs"
        if (facts.passed, facts.sanitizer, facts.sanitized) != (None, None, None):
            yield "a total must not have a test or a draw of its own"
        return
    check_alike(rounds)
    if any(done.id or done.ensemble for done in rounds):
        yield "only a ledger may contain the name of a round or of its ensemble"
    plan = facts.plan
    if (facts.sanitized is None) != (plan is None or not plan.publishes_draw):
        yield "there is a sanitized epsilon without parameters, or parameters without an epsilon"
    if (facts.passed is None) == any(done.tested for done in rounds):
        yield "the release test has no outcome, or there is an outcome without a release test"
    if facts.refused and any(done.answers for done in rounds):
        yield f"the run has {rounds[0].answers} answers, although the release test failed"
    if not facts.refused:
        yield from (fault for done in rounds for fault in answer_faults(done))
    whole = facts.passed is not None or facts.cost.pairs or any(done.rule for done in rounds)
    if whole and (len(rounds) > 1 or facts.draws or facts.external):
        yield "a run without an RDP cost cannot share a report with other runs or with a draw"
    if len(rounds) > 1 and any(done.target for done in rounds):
        yield "a report on several rounds needs their ledgers, so no round may have a target"
    if facts.external and facts.cost.delta < facts.cost.least_delta:
        yield "an external curve or the noise needs a larger delta than the delta of the report"


def answer_faults(done: Round) -> Iterator[str]:
    """Yield a fault if a mechanism that must answer all queries left some unanswered."""
    if done.aggregator.answers_all and done.answers != done.max_answers:
        name = done.aggregator.name
        yield f"{name} answers all {done.max_answers} queries, but the report has {done.answers}"


# --- who is protected ----------------------------------------------------------------------------


def _adjacency(report: Report) -> str:
    """Return who is protected, in words: how two neighbouring vote files may differ."""
    rounds, every = report.rounds, report.all_settings
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
    return sentence(f"kind-{kind}", said=said, holds=validity(report, TOTAL)) + premise


def validity(report: Report, statement: str) -> str:
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
    text = validity(report, statement)
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
    if any(done.prior for done in report.all_settings):
        found.append(sentence("presupposed"))
    found += (f"{text[:1].upper()}{text[1:]}." for _, text in votes_of(report.rounds))
    return " ".join(found)


def _statements(report: Report) -> Iterator[Statement]:
    """Yield the statements about the published numbers, and whether each of them is true."""
    tested, together = report.passed is not None, len(report.runs) > 1 or report.total
    names = {
        "all-votes": True,
        "refusal": tested,
        "released-epsilon": report.plan is not None,
        "by-group": bool(report.groups) and not tested,
        "by-record": report.record_epsilon is not None,
        "few-votes": bool(votings(report.all_settings)),
        "external": bool(report.external),
        TOTAL: together,
        "sum": together,
        "disjoint": bool(report.disjoint),
    }
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


# --- what ε means for somebody who guesses --------------------------------------------------------


def in_a_thousand(epsilon: float, delta: float) -> str | None:
    """Return 1000·(e^ε/1000 + δ), a bound on how often in 1,000 cases an event may happen.

    With a neighbouring vote file, the event happens 1 time in 1,000. Return None if the bound is
    1,000 or more.
    """
    if epsilon > CEILING:
        return None
    times = _EXACT.fma(Decimal(1000), Decimal(delta), Decimal(epsilon).exp(_EXACT))
    return f"{times.quantize(_CENT, rounding=ROUND_CEILING)}" if times < 1000 else None


def best_guess(epsilon: float, delta: float) -> float:
    """Return the largest probability of a right guess, 50:50 beforehand, whether a record was used.

    (e^ε + δ)/(1 + e^ε): Kairouz, Oh and Viswanath (2015), Theorem 2.1.

    Args:
        epsilon: ε ≥ 0, nats; it may be infinite.
        delta: δ ≥ 0; with δ ≥ 1 nothing is promised.
    """
    other = math.exp(-epsilon)
    return min((1.0 + delta * other) / (1.0 + other), 1.0) if delta < 1.0 else 1.0


def scale_word(epsilon: float) -> str:
    """Return the word on pate's scale for an ε in nats."""
    return next(word for most, word in _SCALE if epsilon <= most)


def verdict(epsilon: float, delta: float, kind: str = "worst-case") -> str:
    """Return a word for ε, which is our opinion, and a proved bound on how often a guess is right.

    Args:
        epsilon: ε ≥ 0, nats; it may be infinite.
        delta: δ ≥ 0.
        kind: the kind of ε, as in `Report.epsilon_kind`. For `refusal`, the bound is about somebody
            who sees that the release test failed. If `kind` is `upper`, `epsilon` is a published
            sanitized ε, and the bound only covers runs that publish a sanitized ε of at most
            `epsilon`. Let a be the probability that a run publishes a sanitized ε of at most
            `epsilon`. The probability that the sanitized ε is at most `epsilon` and the guess
            whether a record was used is right, is at most (e^ε a + δ)/(1 + e^ε). To prove the bound
            (e^ε a + δ)/(1 + e^ε), apply the report's statement `released-epsilon` to two
            neighbouring vote files D and D', and once more with D and D' exchanged. If `kind` is
            `lessened`, a failed release test made the total ε of all runs smaller. The bound for
            `lessened` is the bound for `upper`, with the total ε instead of the sanitized ε; apply
            the report's statement `total` to prove the bound for `lessened`.
    """
    percent = math.ceil(1e3 * best_guess(epsilon, delta) * (1.0 + 1e-15)) / 10.0
    right = f"at most {percent:.1f}%" if percent < 100.0 else "up to 100%"
    often = f"often-{kind}" if kind in ("upper", "lessened") else "often"
    return sentence(
        "verdict",
        word=scale_word(epsilon),
        seen=" from the refusal" if kind == "refusal" else "",
        often=sentence(often, right=right, delta=shown(delta)),
    )


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
        yield "prior", sentence("guesses", weight=weight, guesses=guesses)


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


# --- quotes --------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class Quote(Result):
    """The worst case of a run, before anything is spent; public.

    Attributes:
        settings: the settings of the run; in a saved quote, the fields of the settings are beside
            the other fields of the quote.
        epsilon: the worst-case ε of everything that would be released, nats; if the run has a
            release test, the ε of its target.
        delta, sound, queries, max_answers, groups, data_independent, record_epsilon, crosscheck:
            the fields that the report of the run would have, as in `Report`.
        threshold: the threshold T that the mechanism computes from other parameters; None if it
            computes none.
        chances: the mean, worst and best probability that made-up teachers pass the release test,
            with descriptions of these teachers; None without a test.
        expected: for made-up teachers, the expected answers, their agreement with the plurality and
            the pass probability. `pate` tries several shares of right votes; `expected` is for the
            middle share, which the key `agreement` states. None without a test.
        warnings: warnings for the person who asks for the run.
    """

    settings: Settings
    epsilon: float
    delta: float
    sound: bool
    queries: int
    max_answers: int
    threshold: float | None = field(default=None, metadata=SPARING)
    data_independent: DataIndependent
    record_epsilon: float | None = field(default=None, metadata=SPARING)
    crosscheck: Textbook | None = None
    chances: Mapping[str, Any] | None = field(default=None, metadata=SPARING)
    expected: Mapping[str, float] | None = field(default=None, metadata=SPARING)
    groups: tuple[GroupGuarantee, ...] = field(default=(), metadata=SPARING)
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the quote as JSON-ready values."""
        found = encoded(self)
        settings = found.pop("settings")
        if "target" in settings:
            forecast = {name: found.pop(name) for name in ("chances", "expected") if name in found}
            settings["target"] |= forecast
        return {"schema_version": SCHEMA_VERSION, "dry_run": True} | settings | found

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a table with one row: the number of queries, the cap on answers, and ε."""
        names = ("queries", "max_answers", "epsilon")
        return {name: np.array([getattr(self, name)]) for name in names}

    @property
    def releasable(self) -> bool:
        """Return True, because a quote only depends on public numbers."""
        return True

    def said(self) -> Said:
        """Return the queries, the cost and the forecast of the run, by title."""
        return [Pairs([*self._rows()])]

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "dry run", "the votes are valid; nothing was drawn, spent or labelled"
        yield "would ask", f"{self.queries} rows, for at most {self.max_answers} answers"
        if self.expected is not None:
            answers, right = self.expected["answers"], self.expected["agreement"]
            told = f"about {answers:.0f} answers, if teachers are right {right:.0%} of the time"
            yield "expect", told
        told = f"at most {pair(self.epsilon, self.delta).removeprefix('epsilon ')}"
        yield "epsilon", f"{told}; {self._reading}"
        if self.record_epsilon is not None:
            yield "one record", sentence("one-record", epsilon=nats(self.record_epsilon))
        yield from guesses_of([self.settings])
        yield from votes_of([self.settings])
        tested = self.settings.tested
        if tested is not None:
            told = f"a failed test gives no labels and costs {shown(tested.refusal_epsilon)}"
            if self.chances is not None:
                passes = math.floor(100.0 * self.chances["worst"]["chance"])
                told = f"in the worst case that was tried, {passes} in 100 runs pass; {told}"
            yield "target", told
        yield "privacy", verdict(self.epsilon, self.delta) if self.sound else "none (see warning)"

    def headline(self) -> str:
        """Return the worst case in one phrase."""
        return f"at most {pair(self.epsilon, self.delta)}, {self._reading}"

    @property
    def _reading(self) -> str:
        return "whatever the votes" if self.sound else "nothing is promised"


def quote_of(settings: Settings) -> Quote:
    """Return the quote of a run that passes its release test and gives `max_answers` answers."""
    done = Round.of(settings, answers=settings.max_answers)
    report = report_of(run_facts(done, passed=None if settings.tested is None else True))
    mechanism, shared = settings.aggregator, {each.name for each in fields(Report)}
    return Quote(
        settings=settings.published,
        threshold=mechanism.threshold if isinstance(mechanism, ComposedMechanism) else None,
        **{each.name: getattr(report, each.name) for each in fields(Quote) if each.name in shared},
    )
