"""The textbook's number beside ours, and in a sentence which is smaller and why."""

from __future__ import annotations

from collections.abc import Sequence

from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.textbook import Gaussian, Step, textbook
from pate_cli.disclosure.report import Crosscheck, DataIndependent
from pate_cli.disclosure.settings import Settings
from pate_cli.mechanisms import mechanism_from_parameters


def textbook_steps(rounds: Sequence[Settings]) -> list[Step]:
    """Return all steps as a textbook composes them: of a session those it answers in any case."""
    steps: list[Step] = []
    for done in rounds:
        queries, answers = done.queries, done.max_answers
        if done.rule is not None:
            queries = answers = done.rule.asks
        mechanism = mechanism_from_parameters(done.mechanism)
        steps += mechanism.textbook(queries=queries, answers=answers)
    return steps


def crosscheck(rounds: Sequence[Settings], delta: float, public: DataIndependent) -> Crosscheck:
    """Return the figures of textbook accountants for rounds, compared with the worst case here."""
    steps = textbook_steps(rounds)
    found = textbook(steps, delta=delta)
    numbers = [
        None if value is None else round_up(value)
        for value in (found.rdp, found.exact, found.basic, found.advanced)
    ]
    least = min((value for value in numbers if value is not None), default=None)
    return Crosscheck(_compared({type(step) for step in steps}, least, public), *numbers)


def _compared(kinds: set[type[Step]], least: float | None, public: DataIndependent) -> str:
    """Return which number is smaller, the textbook's or the worst case of the labels, and why."""
    ours = "The worst case of the labels (data_independent.labels_epsilon)"
    where = "accounting/THEORY.md, sections"
    if least is None and len(kinds) > 1:
        return (
            f"No textbook theorem composes steps of both kinds. {ours} adds their RDP costs "
            f"({where} 9.2 and 18)."
        )
    if least is None:
        return (
            "Basic and advanced composition say nothing here, because the deltas of the steps add "
            f"up to more than delta. {ours} composes them optimally, so that they do not "
            f"({where} 14 and 18)."
        )
    if public.labels_epsilon > least:
        return f"{ours} is larger than the least of these; both are bounds ({where} 9 and 18)."
    if public.labels_epsilon == least:
        return f"{ours} is as large ({where} 9, 14 and 18)."
    if Gaussian in kinds:
        return (
            f"{ours} is smaller: a textbook accountant assumes that all noisy counts are "
            "published, but only the winning class is, or that there is none "
            f"({where} 9.1 to 9.5 and 18)."
        )
    return (
        f"{ours} is smaller: it composes the steps optimally, or charges only what they publish "
        f"({where} 9, 14 and 18)."
    )
