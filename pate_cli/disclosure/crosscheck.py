"""The textbook's number beside ours, and in a sentence which is smaller and why."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from typing import Final

from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.textbook import Bounded, Gaussian, Step, textbook
from pate_cli.disclosure.report import Crosscheck, CrosscheckStep, DataIndependent

_KINDS: Final = {Gaussian: "gaussian", Bounded: "bounded"}


def crosscheck(steps: Sequence[Step], *, delta: float, public: DataIndependent) -> Crosscheck:
    """Return the figures of textbook accountants for steps, compared with the worst case here."""
    found = textbook(steps, delta=delta)
    numbers = {
        name: None if value is None else round_up(value)
        for name, value in (
            ("rdp_epsilon", found.rdp),
            ("exact_epsilon", found.exact),
            ("basic_epsilon", found.basic),
            ("advanced_epsilon", found.advanced),
        )
    }
    numbered = Crosscheck(
        delta=delta,
        steps=tuple(CrosscheckStep(_KINDS[type(step)], **asdict(step)) for step in steps),
        rdp_order=found.rdp_order,
        compared="",
        **numbers,
    )
    return reworded(numbered, public)


def reworded(found: Crosscheck, public: DataIndependent) -> Crosscheck:
    """Return figures with the sentence that compares them with the worst case here."""
    numbers = (
        found.rdp_epsilon, found.exact_epsilon, found.basic_epsilon, found.advanced_epsilon,
    )  # fmt: skip
    least = min((value for value in numbers if value is not None), default=None)
    kinds = {step.kind for step in found.steps}
    return replace(found, compared=_compared(kinds, least, public))


def _compared(kinds: Collection[str], least: float | None, public: DataIndependent) -> str:
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
    if _KINDS[Gaussian] in kinds:
        return (
            f"{ours} is smaller: a textbook accountant assumes that all noisy counts are "
            "published, but only the winning class is, or that there is none "
            f"({where} 9.1 to 9.5 and 18)."
        )
    return (
        f"{ours} is smaller: it composes the steps optimally, or charges only what they publish "
        f"({where} 9, 14 and 18)."
    )
