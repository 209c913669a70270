"""The verb that checks a report: every number again, from the parameters it states alone.

A report is written once more from its own public facts (and its one draw), and compared leaf by
leaf; then with the labels it came with; then with another library, where that is installed. What
nobody can check without the votes is said to be so: a draw, and earlier attempts of a record.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli import __version__
from pate_cli.disclosure.cautions import cautions
from pate_cli.disclosure.door import (
    for_all_votes,
    release_composed,
    release_tested,
    released,
)
from pate_cli.disclosure.guarantee import UNRECORDED, read_off_warning
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.profile import coin_orders
from pate_cli.disclosure.reader import ReadReport, parse_report, read_report, report_of
from pate_cli.disclosure.report import Crosscheck, Report
from pate_cli.disclosure.target import TargetPlan
from pate_cli.disclosure.worst_case import spendings
from pate_cli.errors import PateError, ReportError, UsageError, VoteError
from pate_cli.files.digest import digest_of
from pate_cli.ledger import Round
from pate_cli.mechanisms import mechanism_from_parameters
from pate_cli.mechanisms.base import ComposedMechanism
from pate_cli.multilabel import LabelSet
from pate_cli.results import Result
from pate_cli.verbs.label_counts import count_labels
from pate_cli.votes import Group
from pate_cli.words import Analysis, Bound, MechanismName, PublicFact, ReleaseKind

__all__ = ["Check", "Verification", "verify"]

OK, FAILED, OPEN = "ok", "FAILED", "not checkable"

_LIBRARY: Final = "dp_accounting"
_ROUND_OFF: Final = 1e-9  # of what is published with all digits, on another machine
_SIX_DIGITS: Final = 1e-5  # to which every part is rounded up
_STEP: Final = 1e-4  # of what is rounded up
_MOST_TEACHERS: Final = 1_000_000  # what they cost takes time and memory in proportion
# Which check a field belongs to, by its first name; what is in none is a fact of the run.
_CHECKS: Final = {
    "epsilon for all votes": ("data_independent",),
    "release": ("sanitized",),
    "target": ("tested",),
    "record": ("spent",),
    "groups": ("groups",),
    "textbook": ("crosscheck",),
    "headline": ("epsilon", "epsilon_kind", "delta", "private", "sound"),
    "guarantee": ("guarantee", "warnings"),
    "facts": (
        "schema_version", "tool", "run", "time", "labels", "releasable", "analysis", "conversion",
        "mechanism", "queries", "answers", "max_answers", "labels_per_query", "voting",
        "label_names", "rounds",
    ),
}  # fmt: skip
# What other mechanisms on the same records raise, and what they do not.
_ON_TOTAL: Final = (
    "epsilon", "delta", "data_independent", "groups", "guarantee", "warnings", "external",
)  # fmt: skip
_NOT_ON_TOTAL: Final = frozenset(
    f"data_independent.labels_{name}" for name in ("epsilon", "order", "method")
)
_WORDS: Final = ("guarantee", "warnings", "conversion", "compared")
_MET: Final = re.compile(r" The target (\S+) is met without a test\.$")


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: what.
        outcome: `ok`, `FAILED` or `not checkable`.
        detail: what was found, or why nothing could be.
    """

    name: str
    outcome: str
    detail: str


@dataclass(frozen=True, repr=False)
class Verification(Result):
    """Every check of a report, in order; public."""

    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether everything that can be checked holds."""
        return all(check.outcome != FAILED for check in self.checks)

    @property
    def releasable(self) -> bool:
        """Of a public report and public labels."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """The outcome, and every check."""
        return {"holds": self.holds, "checks": [asdict(check) for check in self.checks]}

    def columns(self) -> dict[str, NDArray[Any]]:
        """A row a check."""
        return {
            name: np.array([getattr(check, name) for check in self.checks])
            for name in ("name", "outcome", "detail")
        }

    def headline(self) -> str:
        """How many failed."""
        failed = sum(check.outcome == FAILED for check in self.checks)
        return (
            f"{failed} of {len(self.checks)} checks failed"
            if failed
            else "all holds that can be checked"
        )


def verify(
    report: Report | str | PathLike[str] | bytes,
    labels: str | PathLike[str] | None = None,
    *,
    with_dp_accounting: bool | None = None,
) -> Verification:
    """Check a report against its schema, its own parameters, and its labels.

    Args:
        report: what to check, its file ("-" is standard input), or the content of one.
        labels: the file or folder of labels that it came with, by path or address.
        with_dp_accounting: also ask Google's library for the textbook numbers; where it is
            installed, if left out.

    Raises:
        ReportError: no report, or one against the schema, or of more teachers than can be charged
            again in reasonable time.
        UsageError: the library is asked for and not installed.
        VoteError: the labels cannot be read.
    """
    if isinstance(report, Report):
        read = report_of(report)
    elif isinstance(report, bytes):
        read = parse_report(report)
    else:
        read = read_report(report)
    version = read.report.read_as
    checks = [Check("schema", OK, f"the report is as version {version} of the schema wants it")]
    checks += _recomputed(read)
    checks += _labels(read.report, labels)
    checks += _library(read.report.crosscheck, with_dp_accounting)
    return Verification(tuple(checks))


# --- the report, from its own facts --------------------------------------------------------------


def _recomputed(read: ReadReport) -> Iterator[Check]:
    report = read.report
    try:
        again = _again(report).to_dict()
    except ReportError:
        raise
    except (PateError, OverflowError, ValueError) as error:
        yield Check("parameters", FAILED, f"no run has them: {error}")
        return
    other = report.tool != __version__
    unknown = _earlier_unknown(report)
    apart: dict[str, list[str]] = {name: [] for name in _CHECKS}
    reworded = False
    for path, here, there in _differences(read.data, again):
        if report.external and _hangs_on_total(path, report):
            continue
        words = bool(set(path.split(".")) & set(_WORDS)) and not path.endswith(".holds")
        if words and other:
            reworded = True
            continue
        name = next(key for key, fields in _CHECKS.items() if path.partition(".")[0] in fields)
        apart[name].append(f"{path} is {_shown(here)}, its parameters give {_shown(there)}")
    apart["record"] += _record_faults(report)
    apart["target"] += _target_faults(report)
    apart["headline"] += _total_faults(report)
    apart["groups"] += _group_faults(report)
    for name, fields in _CHECKS.items():
        if not any(read.data.get(field) for field in fields) and not apart[name]:
            continue
        if unknown and name in ("epsilon for all votes", "groups", "headline"):
            yield Check(name, OPEN, "version 3 does not say with which draws it was charged")
        elif apart[name]:
            yield Check(name, FAILED, apart[name][0])
        elif report.external and name in ("headline", "groups", "guarantee"):
            yield Check(name, OPEN, "external costs are in it, from files that the holder keeps")
        else:
            yield Check(name, OK, _found(name, report))
    if reworded:
        yield Check("wording", OPEN, f"pate {report.tool} wrote it, this is {__version__}")
    if report.sanitized.epsilon is not None:
        yield Check("draw", OPEN, "sanitized.epsilon is noisy, and the votes behind it are secret")
    if report.spent is not None and report.spent.attempts > 1:
        yield Check("earlier attempts", OPEN, "they are in the record, which the holder keeps")


def _again(report: Report) -> Report:
    """The report written again from what is public in it; PateError where no run is like that."""
    groups = tuple(
        Group(**{name: getattr(group, name) for name in Group.__dataclass_fields__})
        for group in report.groups
    )
    read_off = tuple(fact for fact in PublicFact if read_off_warning(fact) in report.warnings)
    rounds = [_round(number, facts, groups, read_off) for number, facts in enumerate(report.rounds)]
    kind = ReleaseKind(report.sanitized.release)
    recorded = UNRECORDED not in report.warnings
    mechanisms = [mechanism_from_parameters(each.mechanism) for each in rounds]
    if any(mechanism.teachers > _MOST_TEACHERS for mechanism in mechanisms):
        raise ReportError(f"more than {_MOST_TEACHERS} teachers are not computed again")
    delta = _labels_delta(report)
    warned = cautions(*mechanisms, delta=delta)
    if report.tested is not None:
        tested, (spending,) = report.tested, spendings(rounds)
        plan, bound = TargetPlan(tested.target, delta, tested.refusal_epsilon), Bound(tested.bound)
        found = release_tested(
            _only(rounds),
            plan,
            for_all_votes([spending], delta=delta),
            bound=bound,
            orders=coin_orders(bound, spending.mechanism, plan.orders),
            passed=tested.passed,
            private=report.private,
            warnings=warned,
        )
    elif report.analysis == "composition":
        mechanism = mechanisms[0]
        if not isinstance(mechanism, ComposedMechanism):
            raise UsageError(f"{mechanism.name} is not charged by composition")
        cost = mechanism.privacy(_only(rounds).queries, delta)
        found = release_composed(_only(rounds), cost, private=report.private, warnings=warned)
    else:
        found = released(
            rounds,
            _plan(report, kind),
            report.sanitized.epsilon,
            private=report.private,
            prior=report.earlier_draws,
            recorded=recorded,
            warnings=warned,
        )
    met = _MET.search(report.summary)
    extra = [text for text in report.warnings if text not in found.warnings]
    return replace(
        found,
        summary=found.summary + (met[0] if met else ""),
        warnings=(*found.warnings, *extra) if report.tool != __version__ else found.warnings,
        spent=report.spent,
        label_names=report.label_names,
        run=report.run,
        time=report.time,
        labels=report.labels,
        tool=report.tool,
        crosscheck=None if report.crosscheck is None else found.crosscheck,
    )


def _plan(report: Report, kind: ReleaseKind) -> ReleasePlan:
    """The plan of the release; any numbers will do where nothing is drawn."""
    drawn = report.sanitized
    order, beta, sigma = drawn.order or 2.0, drawn.beta or 1e-3, drawn.sigma_release or 1.0
    plan = ReleasePlan(kind, _labels_delta(report), order, beta, sigma)
    if Analysis(report.analysis) is Analysis.TIGHT:
        return plan
    from pate_cli.published.account import PublishedPlan

    # The only release whose headline need not be the smaller number.
    as_published = kind is ReleaseKind.UNBIASED and report.epsilon == drawn.epsilon
    return PublishedPlan.of(plan, as_published=as_published)


def _hangs_on_total(path: str, report: Report) -> bool:
    """Whether what stands there follows from costs that the report does not tell in full."""
    if path == "sound":  # of an estimate it depends on which number is the smaller
        return report.sanitized.release == ReleaseKind.UNBIASED.value
    return path.startswith(_ON_TOTAL) and path not in _NOT_ON_TOTAL


def _labels_delta(report: Report) -> float:
    """δ without what external parts add to it."""
    return report.crosscheck.delta if report.external and report.crosscheck else report.delta


def _round(
    number: int,
    facts: Mapping[str, Any],
    groups: tuple[Group, ...],
    read_off: tuple[PublicFact, ...],
) -> Round:
    return Round(
        id=f"rounds.{number}",
        mechanism=facts["mechanism"],
        queries=facts["queries"],
        max_answers=facts["max_answers"],
        answers=facts["answers"],
        groups=groups,
        read_off=read_off,
        label_set=LabelSet.from_facts(facts) if "labels_per_query" in facts else None,
    )


def _only(rounds: Sequence[Round]) -> Round:
    if len(rounds) != 1:
        raise UsageError("a report of several rounds is of their ledgers")
    return rounds[0]


def _earlier_unknown(report: Report) -> bool:
    return report.read_as == 3 and "earlier release" in report.covers and not report.earlier_draws


def _differences(here: Any, there: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(here, dict) and isinstance(there, dict):
        for name in dict.fromkeys((*here, *there)):
            at = f"{path}.{name}" if path else name
            yield from _differences(here.get(name), there.get(name), at)
    elif isinstance(here, list) and isinstance(there, list):
        if len(here) != len(there):
            yield path, f"{len(here)} entries", f"{len(there)}"
            return
        for place, (one, other) in enumerate(zip(here, there, strict=True)):
            yield from _differences(one, other, f"{path}.{place}")
    elif not _alike(here, there):
        yield path, here, there


def _alike(here: Any, there: Any) -> bool:
    if isinstance(here, bool) or isinstance(there, bool):
        return here is there
    if isinstance(here, float | int) and isinstance(there, float | int):
        return math.isclose(here, there, rel_tol=_ROUND_OFF, abs_tol=0.0)
    return bool(here == there)


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _found(name: str, report: Report) -> str:
    public, crosscheck = report.data_independent, report.crosscheck
    if name == "epsilon for all votes":
        return f"{public.epsilon:g} for everything, {public.labels_epsilon:g} for the labels"
    if name == "textbook" and crosscheck is not None:
        numbers = {
            word: getattr(crosscheck, f"{word}_epsilon")
            for word in ("rdp", "exact", "basic", "advanced")
        }
        given = [f"{word} {value:g}" for word, value in numbers.items() if value is not None]
        return ", ".join(given) or "no theorem applies"
    if name == "headline":
        return f"epsilon {report.epsilon:g} at delta {report.delta:g}, {report.epsilon_kind}"
    return "as its parameters give it"


def _record_faults(report: Report) -> Iterator[str]:
    """The record holds this attempt and perhaps others, each of which costs something."""
    spent = report.spent
    if spent is None:
        return
    for name, total, own in (
        ("epsilon", spent.epsilon, report.epsilon),
        ("delta", spent.delta, report.delta),
    ):
        own = float(f"{own:.9g}")
        if total < own or (spent.attempts == 1 and total != own):
            yield f"spent.{name} is {total:g}, this attempt alone cost {own:g}"


def _target_faults(report: Report) -> Iterator[str]:
    tested, met = report.tested, _MET.search(report.summary)
    if met is not None and not _reaches(met[1], report.epsilon):
        yield f"epsilon {report.epsilon:g} is above the target {met[1]}"
    if tested is None:
        return
    if report.data_independent.epsilon <= tested.target:
        yield f"the labels cost at most {tested.target:g} for all votes, so no test was needed"
    if not tested.passed and report.answers:
        yield f"{report.answers} answers after a refusal"


def _total_faults(report: Report) -> Iterator[str]:
    """What external costs, which are taken as they are, must still agree with."""
    if not report.external:
        return
    least = report.data_independent.epsilon
    if report.sanitized.epsilon is not None:
        least = min(least, report.sanitized.epsilon)
    if report.epsilon != least:
        yield f"epsilon is {report.epsilon:g}, the smaller of its two sources is {least:g}"
    if report.data_independent.epsilon < report.data_independent.labels_epsilon:
        yield "epsilon of everything is below that of the labels"
    added = math.fsum(float(part["delta"]) for part in report.external)
    if not math.isclose(report.delta, _labels_delta(report) + added, rel_tol=_SIX_DIGITS):
        yield f"delta is {report.delta:g}, the external parts add {added:g}"


def _reaches(target: str, epsilon: float) -> bool:
    try:
        return epsilon <= float(target)
    except ValueError:
        return False


def _group_faults(report: Report) -> Iterator[str]:
    """Every teacher is of one group, and no group has more than the headline, draw or none."""
    if not report.groups:
        return
    if len({group.group for group in report.groups}) < len(report.groups):
        yield "two groups have the same name"
    votes = sum(group.total_weight for group in report.groups)
    for done in report.rounds:
        if done["mechanism"].get("teachers") != votes:
            yield f"the teachers have {votes} votes, a round was charged for another number"
    for group in report.groups:
        if group.epsilon > report.epsilon:
            yield f"group {group.group!r} has {group.epsilon:g}, above the headline"


# --- the labels ----------------------------------------------------------------------------------


def _labels(report: Report, labels: str | PathLike[str] | None) -> Iterator[Check]:
    known = report.labels
    if labels is None:
        why = "the report tells of none" if known is None else "no labels were given"
        yield Check("labels", OPEN, why)
        return
    if known is None:
        yield Check("labels", OPEN, "the report names no hash of labels")
        return
    digest = digest_of(labels)
    same = (digest.sha256, digest.size, digest.parts) == (known.sha256, known.bytes, known.parts)
    yield Check(
        "labels",
        OK if same else FAILED,
        f"SHA-256 {digest.sha256}" + ("" if same else f", the report names {known.sha256}"),
    )
    if len(report.rounds) != 1:
        return
    try:
        counts = count_labels(labels, known.format, report.label_set)
    except VoteError as error:
        yield Check("labels by count", FAILED, str(error))
        return
    faults = []
    if counts.queries != report.queries:
        faults.append(f"{counts.queries} rows, the report says {report.queries}")
    parameters = report.rounds[0]["mechanism"]
    # A student's labels are no answers, and not every format tells them apart.
    mixed = counts.answers is None and parameters["name"] == MechanismName.INTERACTIVE
    found = counts.labelled if counts.answers is None else counts.answers
    if found < report.answers or (found > report.answers and not mixed):
        faults.append(f"{found} answers, the report says {report.answers}")
    expected: dict[str, Any] = {name: str(value) for name, value in parameters.items()}
    expected |= {name: str(report.rounds[0][name]) for name in ("queries", "max_answers")}
    expected["private"] = str(report.private).lower()
    if report.label_set is not None:
        expected |= report.label_set.texts()
    elif report.label_names is not None:
        expected["label_names"] = list(report.label_names)
    for name, value in expected.items() if counts.metadata is not None else ():
        if counts.metadata is not None and counts.metadata.get(name) != value:
            faults.append(f"their metadata give another {name}")
    yield Check(
        "labels by count",
        FAILED if faults else OK,
        faults[0] if faults else f"{counts.queries} rows, {report.answers} answers",
    )


# --- another library -----------------------------------------------------------------------------


def _library(crosscheck: Crosscheck | None, wanted: bool | None) -> Iterator[Check]:
    name = "dp-accounting"
    there = importlib.util.find_spec(_LIBRARY) is not None
    if wanted and not there:
        raise UsageError("dp-accounting is not installed; pip install 'pate-cli[accounting]'")
    if wanted is False or not there:
        why = "not asked" if wanted is False else "not installed (pip install pate-cli[accounting])"
        yield Check(name, OPEN, why)
        return
    if crosscheck is None:
        yield Check(name, OPEN, "the report has no textbook numbers")
        return
    try:
        yield from _asked(crosscheck, name)
    except Exception as error:  # whatever another library raises is no fault of the report
        yield Check(name, OPEN, f"it failed: {type(error).__name__}")


def _asked(crosscheck: Crosscheck, name: str) -> Iterator[Check]:
    steps = [step for step in crosscheck.steps if step["count"]]
    kinds = {step["kind"] for step in steps}
    if kinds == {"gaussian"}:
        library = importlib.import_module(_LIBRARY)
        for check, ours, accountant, room in (
            ("rdp", crosscheck.rdp_epsilon, library.rdp.RdpAccountant(), 1.0),
            ("pld", crosscheck.exact_epsilon, library.pld.PLDAccountant(
                value_discretization_interval=1e-3), 1.01),
        ):  # fmt: skip
            for step in steps:
                event = library.GaussianDpEvent(step["noise_multiplier"])
                accountant.compose(library.SelfComposedDpEvent(event, step["count"]))
            theirs = float(accountant.get_epsilon(crosscheck.delta))
            # Theirs by privacy loss distributions is rounded up on its own grid.
            near = (theirs - 2.0 * _STEP) / room <= (ours or 0.0) <= theirs + 2.0 * _STEP
            yield Check(
                f"{name} ({check})", OK if near else FAILED, f"it gives {theirs:.6g}, ours {ours:g}"
            )
    elif kinds == {"bounded"}:
        pld = importlib.import_module(f"{_LIBRARY}.pld.privacy_loss_distribution")
        common = importlib.import_module(f"{_LIBRARY}.pld.common")
        total = pld.identity(value_discretization_interval=1e-3)
        for step in steps:
            pair = common.DifferentialPrivacyParameters(step["epsilon"], step["delta"])
            one = pld.from_privacy_parameters(pair, value_discretization_interval=1e-3)
            total = total.compose(one.self_compose(step["count"]))
        theirs = float(total.get_epsilon_for_delta(crosscheck.delta))
        given = [
            value
            for value in (crosscheck.basic_epsilon, crosscheck.advanced_epsilon)
            if value is not None
        ]
        if not given:
            yield Check(name, OPEN, "the report has no textbook number")
            return
        # Its steps are rounded up to the grid, each by one interval at most.
        slack = 1e-3 * sum(step["count"] for step in steps) + 2.0 * _STEP
        near = theirs <= min(given) + slack
        yield Check(
            name, OK if near else FAILED, f"it gives {theirs:.6g}, a textbook {min(given):g}"
        )
    else:
        yield Check(name, OPEN, "the steps are of both kinds" if kinds else "nothing was asked")
