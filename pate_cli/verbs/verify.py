"""The verb that checks a report: every number again, from the parameters it states alone.

A report is written once more from its own public facts (and its one draw), and compared leaf by
leaf, words included; then with the labels it came with; then with another library, where that is
installed. What nobody can check from outside is said to be so, whatever the report says of it: a
draw, a coin, attempts in a record, what files of others state. The worst case is computed at the
orders that the report names: it holds at any.

The words are those of the schema's version; versions 5 and 6 share theirs. An earlier version's
cannot be made again: what it may claim is compared all the same, and its sentences are called not
ours.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from decimal import Decimal
from itertools import zip_longest
from os import PathLike, fspath
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.rdp_curve import RdpCurve
from pate_cli.core.arrays import Floats
from pate_cli.core.codec import Refusal, decoded
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import (
    PateError,
    ReportError,
    UnreachableError,
    UsageError,
    VoteError,
    printable,
    shortened,
)
from pate_cli.core.version import __version__
from pate_cli.core.words import (
    Adjacency,
    Bound,
    LabelFormat,
    MechanismName,
    ReleaseKind,
)
from pate_cli.disclosure import door
from pate_cli.disclosure.cautions import cautions
from pate_cli.disclosure.charge import CHARGE, charge_of
from pate_cli.disclosure.external import External, ExternalCurve, ExternalPair, StatedCost
from pate_cli.disclosure.guarantee import DRAWS, TOTAL
from pate_cli.disclosure.label_counts import count_labels
from pate_cli.disclosure.ledger import Round
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.profile import coin_orders
from pate_cli.disclosure.reader import ReadReport, parse_report, read_report, report_of
from pate_cli.disclosure.record import Outcome, Run, RunKind
from pate_cli.disclosure.report import SCHEMA_VERSION, SINCE, Crosscheck, LabelFile, Report
from pate_cli.disclosure.session_terms import SessionTerms, rule_fault
from pate_cli.disclosure.stop_rule import StopRule
from pate_cli.disclosure.target import TargetPlan
from pate_cli.disclosure.terms import AccountTerms, ComposedTerms, ScoredTerms, TargetTerms
from pate_cli.disclosure.total import Spent
from pate_cli.disclosure.wording import rounds_of, worded
from pate_cli.disclosure.worst_case import spendings
from pate_cli.files.addresses import public_name
from pate_cli.files.beside import has_no_name
from pate_cli.files.digest import digest_of
from pate_cli.files.results import Result
from pate_cli.labels.forms import FORMATS, formats_with
from pate_cli.mechanisms import mechanism_from_parameters
from pate_cli.mechanisms.base import ComposedMechanism, ScoredMechanism
from pate_cli.verbs.analyses import analysis_of
from pate_cli.votes.facts import PriorFacts
from pate_cli.votes.join import content_of

OK, FAILED, OPEN, SKIPPED = "ok", "FAILED", "not checkable", "passed over"
HOLDS, HOLDS_BUT, FAILS = "holds", "holds but for what is listed", "does not hold"

_Guesses: TypeAlias = Any
_LIBRARY: Final = "dp_accounting"
_ROUND_OFF: Final = 1e-9  # of what is published with all digits, on another machine
_SIX_DIGITS: Final = 2e-5  # to which every part is rounded up, twice
_STEP: Final = 1e-4  # of what is rounded up
_MOST_VOTES: Final = 1_000_000  # what they cost takes time and memory in proportion
_OUR_WORDS: Final = 5  # since this version: what it knows of, it says as this one does
# Which check a field belongs to, by its first name; what is in none is a fact of the run.
_CHECKS: Final = {
    "epsilon for all votes": ("data_independent",),
    "release": ("sanitized",),
    "target": ("tested", "met_target"),
    "record": ("spent",),
    "groups": ("groups",),
    "prior": ("prior",),
    "textbook": ("crosscheck",),
    "headline": ("epsilon", "epsilon_kind", "delta", "private", "sound"),
    "guarantee": ("guarantee", "warnings", "unsettled"),
    "total": ("external",),
    "facts": (
        "schema_version", "tool", "run", "time", "labels", "releasable", "analysis", "conversion",
        "mechanism", "queries", "answers", "max_answers", "labels_per_query",
        "label_names", "rounds",
    ),
}  # fmt: skip
_STATED: Final = Refusal(ReportError, "an external part is damaged: ")
_OF_THE_COIN: Final = ("tested.orders", "tested.distances")


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: what.
        outcome: `ok`, `FAILED`, `not checkable` from outside, or `passed over` as not wanted here.
        detail: what was found, or why nothing could be; printable, whatever the report holds.
    """

    name: str
    outcome: str
    detail: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "detail", printable(self.detail))


@dataclass(frozen=True, repr=False)
class Verification(Result):
    """Every check of a report, in order; public."""

    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether everything holds, and nothing is left that cannot be checked from outside."""
        return self.verdict == HOLDS

    @property
    def verdict(self) -> str:
        """`holds`, `holds but for what is listed`, or `does not hold`."""
        if self._named(FAILED):
            return FAILS
        return HOLDS_BUT if self._named(OPEN) else HOLDS

    @property
    def releasable(self) -> bool:
        """Of a public report and public labels."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """The outcome, and every check."""
        return {
            "verdict": self.verdict,
            "holds": self.holds,
            "failed": self._named(FAILED),
            "not_checkable": self._named(OPEN),
            "checks": [asdict(check) for check in self.checks],
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """A row a check."""
        return {
            name: np.array([getattr(check, name) for check in self.checks])
            for name in ("name", "outcome", "detail")
        }

    def headline(self) -> str:
        """The verdict, with the names of what stands against it."""
        names = self._named(FAILED) or self._named(OPEN)
        return f"{self.verdict}: {', '.join(names)}" if names else self.verdict

    def _named(self, outcome: str) -> list[str]:
        return [check.name for check in self.checks if check.outcome == outcome]


def verify(
    report: Report | str | PathLike[str] | bytes,
    labels: str | PathLike[str] | None = None,
    *,
    prior: Any | Sequence[Any] | None = None,
    with_dp_accounting: bool | None = None,
) -> Verification:
    """Check a report from outside: its schema, its numbers from its own parameters, its labels.

    Use it on what you are given, or before you publish. It needs neither votes nor ledger, and
    computes every number again that does not hang on them.

        >>> done = pate.aggregate("sample_votes/demo.parquet", max_queries=300, into="bought.csv")
        >>> pate.verify(done.report, "bought.csv", with_dp_accounting=False)
        <Verification: holds>

    Args:
        report: what to check, its file by path or address ("-" is standard input), or the content
            of one.
        labels: the file of labels that it came with, by path or address.
        prior: the guesses that voted, too, or their file; of rounds with several a list of them.
        with_dp_accounting: also ask Google's library for the textbook numbers; where it is
            installed, if left out.

    Raises:
        ReportError: no report, or one against the schema, or of more teachers than can be charged
            again in reasonable time.
        UsageError: the library is asked for and not installed; labels or a prior that come by a
            pipe, for they are read more than once.
        VoteError: the labels or the prior cannot be read.
    """
    priors = _several(prior)
    for given in (labels, *priors):
        if isinstance(given, str | PathLike) and has_no_name(fspath(given)):
            raise UsageError(
                f"{public_name(given)}: is a pipe, and what goes with a report is read more than "
                "once; give a file"
            )
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
    checks += _prior(read.report, priors)
    checks += _library(read.report.crosscheck, with_dp_accounting)
    return Verification(tuple(checks))


# --- the report, from its own facts --------------------------------------------------------------


def _recomputed(read: ReadReport) -> Iterator[Check]:
    report = read.report
    try:
        again = _again(report).to_dict()
        promised, total = worded(report), list(_total_faults(report))
    except ReportError:
        raise
    except (PateError, OverflowError, ValueError) as error:
        yield Check("parameters", FAILED, f"no run has them: {error}")
        return
    earlier_words = False
    apart: dict[str, list[str]] = {name: [] for name in _CHECKS}
    told = read.data if report.read_as >= SINCE["stated"] else _in_todays_flags(read.data)
    for path, here, there in _differences(told, again):
        if report.read_as < _OUR_WORDS and _is_sentence(path):
            earlier_words = True
            continue
        if report.read_as < _OUR_WORDS and path.startswith(_OF_THE_COIN):
            continue  # each version tosses its own, which nobody can check
        name = next(key for key, fields in _CHECKS.items() if path.partition(".")[0] in fields)
        apart[name].append(f"{path} is {_shown(here)}, its parameters give {_shown(there)}")
    apart["record"] += _record_faults(report)
    apart["target"] += _target_faults(report)
    apart["total"] += total
    apart["groups"] += _group_faults(report)
    for name, fields in _CHECKS.items():
        if apart[name]:
            yield Check(name, FAILED, apart[name][0])
        elif any(read.data.get(field) for field in fields):
            yield Check(name, OK, _found(name, report))
    claimed = report.private and promised.sound
    yield Check("promise", OK if claimed else FAILED, promised.summary)
    if earlier_words:
        yield Check(
            "wording", OPEN, f"of another version, {report.read_as}: these words are not ours"
        )
    yield from _from_outside(report)


def _from_outside(report: Report) -> Iterator[Check]:
    """What nobody can check without what its holder keeps."""
    if report.sanitized.epsilon is not None:
        yield Check("draw", OPEN, "sanitized.epsilon is noisy, and the votes behind it are secret")
    if report.tested is not None:
        yield Check(
            "coin",
            OPEN,
            "cannot be checked from outside: its chance follows from the votes, which are secret",
        )
    if report.read_as >= SINCE["stated"]:
        told = "not tracked" if report.spent is None else "those in spent, or its holder knows more"
        yield Check("earlier runs", SKIPPED, told)
    elif report.spent is not None:
        yield Check("earlier attempts", OPEN, "they are in the record, which the holder keeps")
    elif report.tested is not None or report.met_target is not None:
        yield Check("earlier attempts", OPEN, "no record of them was kept")
    if _earlier_unknown(report):
        yield Check("earlier draws", OPEN, "version 3 does not say with which it was charged")
    if any("prior" in done for done in report.rounds):
        yield Check(
            "guesses",
            OPEN,
            "whether the votes or a private record shaped them cannot be checked from outside",
        )
    if report.external:
        yield Check("external parts", OPEN, "they are as files state them, which others keep")


def _in_todays_flags(data: Any) -> Any:
    """What a report of an earlier version says, with flags by the names they have now."""
    if isinstance(data, Mapping):
        return {name: _in_todays_flags(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_in_todays_flags(value) for value in data]
    return data.replace("--no-spend", "--no-record") if isinstance(data, str) else data


def _is_sentence(path: str) -> bool:
    """Whether a version words it in its own way; what holds, and which statements there are, no."""
    first, _, rest = path.partition(".")
    if first == "guarantee":
        return not rest.startswith("statements") or path.endswith(".text")
    return first in ("warnings", "conversion") or path == "crosscheck.compared"


def _again(report: Report) -> Report:
    """The report written again from what is public in it; PateError where no run is like that."""
    rounds = rounds_of(report)
    mechanisms = [mechanism_from_parameters(each.mechanism) for each in rounds]
    if any(mechanism.most_votes > _MOST_VOTES for mechanism in mechanisms):
        raise ReportError(
            f"more than {_MOST_VOTES} teachers are not computed again; a vote of a prior counts as "
            "one"
        )
    for mechanism in mechanisms:
        for name, value in mechanism.parameters().items():
            if name.startswith("sigma") and mechanism.most_votes > _MOST_VOTES * value:
                raise ReportError(
                    f"a {name} of {value:g} votes among {mechanism.most_votes} teachers is not "
                    "computed again: it takes too long"
                )
    total = report.epsilon_kind == TOTAL
    delta = report.delta if total else _labels_delta(report)
    warned = cautions(*mechanisms, delta=delta)
    if total:
        if report.spent is None or not report.spent.runs:
            raise UsageError("a total of no runs")
        account = AccountTerms(report.spent.runs, recorded=DRAWS not in report.unsettled)
        found = door.report(
            rounds, account, account.headline, private=report.private, warnings=warned
        )
    elif report.tested is not None:
        tested, done = report.tested, _only(rounds)
        (spending,) = spendings([done])
        target = TargetPlan(tested.target, delta, tested.refusal_epsilon)
        if report.read_as >= _OUR_WORDS and not target.reachable:
            raise UnreachableError(f"no run tests the target {tested.target:g}: nothing passes it")
        bound = Bound(tested.bound)
        tested_terms = TargetTerms(
            ScoredTerms([spending], delta),
            target,
            bound,
            tuple(coin_orders(bound, spending.mechanism, target.orders).tolist()),
        )
        found = door.report(
            [done],
            tested_terms,
            tested_terms.decided(passed=tested.passed),
            private=report.private,
            warnings=warned,
        )
    elif len(rounds) == 1 and rounds[0].rule is not None:
        found = _session_again(report, rounds[0], rounds[0].rule, warned)
    elif report.analysis == "composition":
        mechanism = mechanisms[0]
        if not isinstance(mechanism, ComposedMechanism):
            raise UsageError(f"{mechanism.name} is not charged by composition")
        composed = ComposedTerms(mechanism.privacy(_only(rounds).queries, delta))
        found = door.report(
            rounds, composed, composed.headline, private=report.private, warnings=warned
        )
    else:
        found = _released_again(report, rounds, delta=delta, warned=warned)
    # What a version says of an account is its own; the rest is compared as if it were of today.
    told = replace(
        found,
        met_target=report.met_target,
        spent=report.spent,
        read_as=max(report.read_as, _OUR_WORDS),
    )
    return replace(
        worded(told),
        read_as=SCHEMA_VERSION,
        label_names=report.label_names,
        run=report.run,
        time=report.time,
        labels=report.labels,
        tool=report.tool,
        crosscheck=None if report.read_as < SINCE["crosscheck"] else found.crosscheck,
    )


def _session_again(report: Report, done: Round, rule: StopRule, warned: Sequence[str]) -> Report:
    mechanism = mechanism_from_parameters(done.mechanism)
    if not isinstance(mechanism, ScoredMechanism | ComposedMechanism):
        raise UsageError(f"{mechanism.name} is not asked one by one")
    if rule.delta != report.delta:
        raise UsageError(f"a rule at delta {rule.delta:g} for {report.delta:g}")
    fault = rule_fault(rule, mechanism)
    if fault is not None:
        raise UnreachableError(f"the rule of the session says {rule.epsilon:g}, but {fault}")
    terms = SessionTerms(mechanism, rule)
    return door.report([done], terms, terms.headline, private=report.private, warnings=warned)


def _released_again(
    report: Report, rounds: Sequence[Round], *, delta: float, warned: Sequence[str]
) -> Report:
    plan = _plan(report, delta=delta)
    external, told = _external(report)
    terms = ScoredTerms(
        spendings(rounds),
        plan.delta,
        plan,
        prior=report.earlier_draws,
        recorded=DRAWS not in report.unsettled,
        external=external,
        stated=(report.data_independent.labels_order, report.data_independent.order),
    )
    found = door.report(
        rounds,
        terms,
        terms.drawn(report.sanitized.epsilon),
        private=report.private,
        warnings=warned,
    )
    if report.read_as >= SINCE["stated"] or not (report.external or _earlier_unknown(report)):
        return found
    # What is charged beside the labels is known to six digits, or only from below: what is stated
    # is taken over where it can be, and what follows from it follows.
    room = math.inf if not told or _earlier_unknown(report) else 1.0
    public = found.data_independent
    if _near(report.data_independent.epsilon, public.epsilon, room=room):
        stated = report.data_independent
        public = replace(public, epsilon=stated.epsilon, order=stated.order, method=stated.method)
    epsilon = plan.headline(report.sanitized.epsilon, public.epsilon)
    groups = found.groups
    if groups:
        # At which order a group was charged nobody knows: no less than without the curves.
        pairs = External(tuple(part for part in external.parts if isinstance(part, ExternalPair)))
        least = replace(terms, external=pairs).by_group(rounds[0].groups, epsilon)
        whole = len(pairs.parts) == len(external.parts)
        groups = tuple(
            replace(group, epsilon=stated.epsilon)
            if _near(stated.epsilon, group.epsilon, room=room if whole else math.inf)
            else group
            for group, stated in zip(least, report.groups, strict=True)
        )
    if math.isclose(report.delta, found.delta, rel_tol=_SIX_DIGITS):
        found = replace(found, delta=report.delta)
        groups = tuple(replace(group, delta=report.delta) for group in groups)
    return replace(
        found,
        epsilon=epsilon,
        epsilon_kind="worst-case" if epsilon == public.epsilon else plan.kind.value,
        data_independent=public,
        groups=groups,
        external=report.external,
    )


def _near(stated: float, computed: float, *, room: float) -> bool:
    """Whether it is what was computed, to the digits stated, or by so much more of them."""
    slack = _STEP + _SIX_DIGITS * computed
    return -slack <= stated - computed <= room * slack


def _plan(report: Report, *, delta: float) -> ReleasePlan:
    """The plan of the release; where nothing is drawn any numbers will do but for the order.

    External parts say what they cost at that of the ledgers.
    """
    drawn, kind = report.sanitized, ReleaseKind(report.sanitized.release)
    beside = next((part["order"] for part in report.external if part["order"]), 2.0)
    order, beta, sigma = drawn.order or beside, drawn.beta or 1e-3, drawn.sigma_release or 1.0
    return analysis_of(report.analysis).plan(ReleasePlan(kind, delta, order, beta, sigma))


def _labels_delta(report: Report) -> float:
    """δ without what external parts add to it."""
    if not report.external:
        return report.delta
    if report.crosscheck is not None:
        return report.crosscheck.delta
    parts = (Decimal(repr(float(part["delta"]))) for part in report.external)
    return float(Decimal(repr(report.delta)) - sum(parts))


@dataclass(frozen=True, kw_only=True)
class _AtOneOrder(ExternalCurve):
    """A curve of which one order is told: nothing is charged at another."""

    @property
    def highest(self) -> float:
        return math.inf

    def rdp(self, orders: Floats) -> Floats:
        return np.where(orders == self.curve.highest, self.curve.rdp[-1], np.inf)


@dataclass(frozen=True, kw_only=True)
class _AtLeast(ExternalCurve):
    """A curve of which an order is told that was not that of the total: no less beyond it."""

    @property
    def highest(self) -> float:
        return math.inf

    def rdp(self, orders: Floats) -> Floats:
        # What is charged twice over need not rise.
        known = self.curve.highest <= orders if self.steps == 1 else self.curve.highest == orders
        return np.where(known, self.curve.rdp[-1], 0.0)


def _external(report: Report) -> tuple[External, bool]:
    """What the parts cost, and whether the report tells all of what was charged."""
    if report.read_as >= SINCE["stated"]:
        stated_costs = [decoded(StatedCost, part["stated"], _STATED) for part in report.external]
        return External(tuple(cost.part for cost in stated_costs)), True
    parts: list[ExternalCurve | ExternalPair] = []
    total_order, told = report.data_independent.order, True
    for part in report.external:
        covers = part["covers"]
        if part["epsilon"] is not None:
            stated = (float(part["epsilon"]), float(part["delta"]))
            parts.append(
                ExternalPair(adjacency=Adjacency.REPLACE_ONE, covers=covers, stated=stated)
            )
            continue
        kind: type[ExternalCurve] = _AtOneOrder
        order, rdp = total_order, part["total_rdp"]
        if order is None or rdp is None:
            if report.read_as >= SINCE["total_rdp"]:
                raise UsageError("a total with a curve has an order, and a cost there")
            kind, told, order, rdp = _AtLeast, False, part["order"], part["rdp"]
        curve = RdpCurve(np.array([order]), np.array([rdp]))
        parts.append(kind(adjacency=Adjacency(part["adjacency"]), covers=covers, curve=curve))
    return External(tuple(parts)), told


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
    if name == "record" and report.spent is not None and report.spent.runs:
        spent = report.spent
        return (
            f"{len(spent.runs)} runs together: epsilon {spent.epsilon:g} at delta {spent.delta:g}"
        )
    if name == "prior" and report.prior is not None:
        weight = report.prior.weight
        votes = "" if weight is None else f" of {weight} votes each"
        return f"{report.prior.guesses} guesses{votes} for {report.queries} rows"
    if name == "textbook" and crosscheck is not None:
        numbers = {
            word: getattr(crosscheck, f"{word}_epsilon")
            for word in ("rdp", "exact", "basic", "advanced")
        }
        given = [f"{word} {value:g}" for word, value in numbers.items() if value is not None]
        return ", ".join(given) or "no theorem applies"
    if name == "headline":
        return f"epsilon {report.epsilon:g} at delta {report.delta:g}, {report.epsilon_kind}"
    if name == "facts" and report.tool != __version__:
        return f"as its parameters give it; pate {shortened(report.tool)} wrote it"
    return "as its parameters give it"


def _record_faults(report: Report) -> Iterator[str]:
    """The account holds this run as it is, and costs what its runs do."""
    spent = report.spent
    if spent is None:
        return
    if spent.attempts is not None:
        yield from _attempt_faults(report, spent, spent.attempts)
        return
    if report.read_as >= SINCE["stated"] and not spent.runs:
        yield "it tells of no run"
        return
    again = Spent.of(spent.runs)
    for name, stated, found in (
        ("epsilon", spent.epsilon, again.epsilon),
        ("delta", spent.delta, again.delta),
        ("sum_epsilon", spent.sum_epsilon, again.sum_epsilon),
        ("sum_delta", spent.sum_delta, again.sum_delta),
        ("method", spent.method, again.method),
    ):
        if not _alike(stated, found):
            yield f"spent.{name} is {_shown(stated)}, its runs give {_shown(found)}"
    asked = [run.asked for run in spent.runs if run.asked is not None]
    if report.epsilon_kind == TOTAL:
        for facts, each in zip_longest(report.rounds, asked):
            if (
                facts is None
                or each is None
                or any(
                    facts[name] != getattr(each, name)
                    for name in ("mechanism", "queries", "max_answers")
                )
            ):
                yield "its runs are not those of rounds"
                return
    elif report.private:
        own = next((run for run in spent.runs if run.id == report.run), None)
        yield from own_run_faults(report, own)


def own_run_faults(report: Report, own: Run | None) -> Iterator[str]:
    """This run, where it stands among those of the account."""
    if own is None:
        if report.labels is not None:
            yield "this run is not among its runs"
        return
    tested = report.tested
    outcome = Outcome.LABELLED if tested is None or tested.passed else Outcome.REFUSED
    expected: dict[str, Any] = {"time": report.time, "delta": _labels_delta(report)}
    if own.kind is RunKind.RELEASE:
        expected |= {"outcome": Outcome.RELEASED, "sigma_release": report.sanitized.sigma_release}
    elif tested is not None:
        expected |= {"kind": RunKind.TARGET, "epsilon": tested.target, "outcome": outcome}
        expected |= {"refusal_epsilon": tested.refusal_epsilon}
    else:
        composed = report.analysis == "composition"
        kind = RunKind.COMPOSITION if composed else RunKind.WORST_CASE
        if any("rule" in done for done in report.rounds):
            kind = RunKind.SESSION
        expected |= {"kind": kind}
        expected |= {"epsilon": report.data_independent.epsilon, "outcome": outcome}
        expected |= {"sigma_release": report.sanitized.sigma_release, "answers": report.answers}
        expected |= {"beta": report.sanitized.beta}
    for name, value in expected.items():
        if not _alike(getattr(own, name), value):
            yield f"{name} of this run is {_shown(getattr(own, name))} there, and {_shown(value)}"
    if own.asked is not None and len(report.rounds) == 1:
        for name in ("mechanism", "queries", "max_answers"):
            if getattr(own.asked, name) != report.rounds[0][name]:
                yield f"{name} of this run are others there"


def _attempt_faults(report: Report, spent: Spent, attempts: int) -> Iterator[str]:
    """Up to version 6 a report tells how many attempts there were, and what they cost."""
    for name, total, own in (
        ("epsilon", spent.epsilon, report.epsilon),
        ("delta", spent.delta, report.delta),
    ):
        if total < own or (attempts == 1 and total != own):
            yield f"spent.{name} is {total:g}, this attempt alone cost {own:g}"
    if attempts > 1 and spent.epsilon <= report.epsilon:
        yield f"{attempts} attempts cost no more than this one, {report.epsilon:g}"


def _target_faults(report: Report) -> Iterator[str]:
    tested, met = report.tested, report.met_target
    if met is not None and (tested is not None or report.epsilon > met):
        yield f"epsilon {report.epsilon:g} does not meet the target {met:g} without a test"
    if tested is None:
        return
    if tested.delta != report.delta:
        yield f"it was tested at delta {tested.delta:g}, the report says {report.delta:g}"
    if report.data_independent.epsilon <= tested.target:
        yield f"the labels cost at most {tested.target:g} for all votes, so no test was needed"
    if not tested.passed and report.answers:
        yield f"{report.answers} answers after a refusal"


def _total_faults(report: Report) -> Iterator[str]:
    """What the external parts say of themselves at several orders must agree.

    Since version 7 they say all of it, and are written again.
    """
    if report.read_as >= SINCE["stated"]:
        return
    external, _ = _external(report)
    own, total = report.sanitized.order, report.data_independent.order
    for stated, part in zip(report.external, external.parts, strict=True):
        if own not in (None, stated["order"]):
            yield f"a part is charged at order {stated['order']:g}, the draw at {own:g}"
        if isinstance(part, ExternalPair):
            at = {"rdp": stated["order"], "total_rdp": total}
            for name, order in at.items():
                found = None if order is None else float(part.rdp(np.array([order]))[0])
                if not _same_cost(stated[name], found) and (
                    name == "rdp" or report.read_as >= SINCE["total_rdp"]
                ):
                    yield f"the {name} of a part is {stated[name]}, its epsilon gives {found}"
        elif stated["delta"] != 0.0:
            yield "a curve holds without a delta"
        elif stated["order"] == total and stated["total_rdp"] not in (None, stated["rdp"]):
            yield f"a part has two costs at order {total:g}"


def _same_cost(stated: float | None, computed: float | None) -> bool:
    if stated is None or computed is None:
        return stated is computed
    return math.isclose(stated, computed, rel_tol=_SIX_DIGITS)


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
        yield Check("labels", SKIPPED, why)
        return
    if known is None:
        yield Check("labels", OPEN, "the report names no hash of labels")
        try:
            known = report.with_labels(labels).labels
        except UsageError:
            return
    else:
        found = LabelFile.of(digest_of(labels), known.format)
        other = "" if found == known else f", the report names {known.sha256}"
        yield Check("labels", FAILED if other else OK, f"SHA-256 {found.sha256}{other}")
    if known is None or len(report.rounds) != 1:
        return
    yield from _inside(report, labels, known.format)


def _inside(
    report: Report, labels: str | PathLike[str], label_format: LabelFormat
) -> Iterator[Check]:
    """Rows, answers and, where the format has any, parameters of the labels of one round."""
    try:
        counts = count_labels(labels, label_format, report.label_set)
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
    yield Check(
        "labels by count",
        FAILED if faults else OK,
        faults[0] if faults else f"{counts.queries} rows, {report.answers} answers",
    )
    targeted = report.tested is not None or report.met_target is not None
    if not FORMATS[label_format].metadata:
        yield Check(
            "labels by parameters",
            OPEN if targeted else SKIPPED,
            f"{label_format} holds none"
            + (f", and so not the target; {' and '.join(formats_with('metadata'))} do" * targeted),
        )
        return
    if counts.metadata is None:
        yield Check("labels by parameters", FAILED, "they name none")
        return
    apart = list(_other_parameters(report, counts.metadata))
    if targeted and not apart and "target_epsilon" not in counts.metadata:
        yield Check("labels by parameters", OPEN, "of an earlier version: they name no target")
        return
    yield Check(
        "labels by parameters",
        FAILED if apart else OK,
        f"their metadata give another {apart[0]}" if apart else "as the report has them",
    )


def _other_parameters(report: Report, metadata: Mapping[str, Any]) -> Iterator[str]:
    """Names of what the labels say otherwise."""
    (done,) = report.rounds
    expected: dict[str, Any] = {name: str(done[name]) for name in ("queries", "max_answers")}
    # Also what labels say of a prior of which the report says nothing.
    expected |= dict.fromkeys(name for name in metadata if name.startswith("prior_"))
    expected |= {name: str(value) for name, value in done["mechanism"].items()}
    if "prior" in done:
        expected |= PriorFacts(**done["prior"]).texts()
    expected["private"] = str(report.private).lower()
    if report.label_set is not None:
        expected |= report.label_set.texts()
    elif report.label_names is not None:
        expected["label_names"] = list(report.label_names)
    charge = charge_of(report, delta=_labels_delta(report))
    # Labels of earlier versions say nothing of it, also beside a later release of their ledger.
    needed = "target_epsilon" in charge and report.read_as >= SINCE["met_target"]
    expected |= {name: charge.get(name) for name in CHARGE if needed or name in metadata}
    for name, value in expected.items():
        if metadata.get(name) != value:
            yield name


# --- the prior -----------------------------------------------------------------------------------


def _several(given: _Guesses | Sequence[_Guesses] | None) -> Sequence[_Guesses]:
    if given is None:
        return ()
    if isinstance(given, list | tuple):
        return given
    return (given,)


def _prior(report: Report, given: Sequence[_Guesses]) -> Iterator[Check]:
    """Whether the guesses that are given are those that the report names, by their hash."""
    known = {done["prior"]["sha256"] for done in report.rounds if "prior" in done}
    if not given and known:
        yield Check("prior by hash", SKIPPED, "its file was not given")
    found = [content_of(each) for each in given]
    for each in found:
        other = ""
        if each not in known:
            other = f", the report names {' and '.join(sorted(known)) or 'none'}"
        yield Check("prior by hash", FAILED if other else OK, f"SHA-256 {each}{other}")
    left = sorted(known.difference(found))
    if left and known.intersection(found):
        told = f"not given: SHA-256 {' and '.join(left)}; give `prior` once for each"
        yield Check("prior of other rounds", SKIPPED, told)


# --- another library -----------------------------------------------------------------------------


def _library(crosscheck: Crosscheck | None, wanted: bool | None) -> Iterator[Check]:
    name = "dp-accounting"
    there = importlib.util.find_spec(_LIBRARY) is not None
    if wanted and not there:
        raise UsageError("dp-accounting is not installed; pip install 'pate-cli[accounting]'")
    if wanted is False or not there:
        why = "not asked" if wanted is False else "not installed (pip install pate-cli[accounting])"
        yield Check(name, SKIPPED, why)
        return
    if crosscheck is None:
        yield Check(name, SKIPPED, "the report has no textbook numbers")
        return
    try:
        yield from _asked_of_library(crosscheck, name)
    except Exception as error:  # whatever another library raises is no fault of the report
        yield Check(name, OPEN, f"it failed: {type(error).__name__}")


def _asked_of_library(crosscheck: Crosscheck, name: str) -> Iterator[Check]:
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
            yield Check(name, SKIPPED, "the report has no textbook number")
            return
        # Its steps are rounded up to the grid, each by one interval at most.
        slack = 1e-3 * sum(step["count"] for step in steps) + 2.0 * _STEP
        near = theirs <= min(given) + slack
        yield Check(
            name, OK if near else FAILED, f"it gives {theirs:.6g}, a textbook {min(given):g}"
        )
    else:
        yield Check(name, SKIPPED, "the steps are of both kinds" if kinds else "nothing was asked")
