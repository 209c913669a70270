"""The signatures and docstrings of the public functions, which are called verbs here.

A verb first checks its arguments (the code for this is in `keywords.py`), and then calls the
function that does the work. The decorator `verb` names the function that does the work, which is
imported only when the verb is called, because help and completion only need signatures. help.ini
says what the parameters of all verbs mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pate_cli.core.words import (
    DELTA,
    MIN_AGREEMENT,
    MIN_PASS,
    Analysis,
    Bound,
    Layout,
    MechanismName,
    OrderChoice,
    ReleaseKind,
)
from pate_cli.verbs.keywords import (
    Count,
    Delta,
    Epsilon,
    File,
    Guesses,
    Order,
    Share,
    Votes,
    like,
    verb,
)

if TYPE_CHECKING:
    from pate_cli.disclosure.entry import RecordPlace
    from pate_cli.disclosure.explain import Explanation
    from pate_cli.disclosure.external import Other
    from pate_cli.disclosure.guarantee import Quote
    from pate_cli.disclosure.ledger import Ledger
    from pate_cli.disclosure.record import SpendRecord
    from pate_cli.disclosure.report import Report
    from pate_cli.disclosure.verification import Verification
    from pate_cli.mechanisms import Amount, MechanismChoice
    from pate_cli.mechanisms.base import Mechanism
    from pate_cli.planning.cost import Compared, VoteCost
    from pate_cli.planning.plan import Plan, VoterPlan
    from pate_cli.planning.sensitivity import Sensitivity
    from pate_cli.planning.tune import Tuned
    from pate_cli.run.publication import Into
    from pate_cli.verbs.aggregate import Aggregation
    from pate_cli.verbs.release import Released
    from pate_cli.verbs.reports import RecordCost
    from pate_cli.votes.facts import Groups
    from pate_cli.votes.join import Queries
    from pate_cli.votes.names import Aliases, LabelNames


@verb("aggregate.labelled")
def aggregate(
    votes: Votes,
    mechanism: Mechanism | MechanismChoice | MechanismName | str = MechanismName.CONFIDENT,
    *,
    target_epsilon: Epsilon | None = None,
    delta: Delta = DELTA,
    max_queries: Count | None = None,
    max_answers: Count | None = None,
    threshold: Amount | float | str | None = None,
    sigma1: Amount | float | str | None = None,
    sigma2: Amount | float | str | None = None,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    label_names: LabelNames | None = None,
    id_column: str | None = None,
    ensemble: str | None = None,
    disjoint_from: str | Sequence[str] = (),
    budget: Epsilon | None = None,
    record: File | RecordPlace | bool | None = None,
    refusal_epsilon: Epsilon | None = None,
    bound: Bound | str = Bound.AUTO,
    min_pass: Share = MIN_PASS,
    max_epsilon: Epsilon | None = None,
    queries: Queries | None = None,
    normalise: bool = False,
    aliases: Aliases | None = None,
    accept_unmatched: bool = False,
    groups: Groups | None = None,
    teachers_per_record: int = 1,
    votes_per_teacher: Count | None = None,
    assigned: bool = False,
    teacher_epsilon: Epsilon | None = None,
    teacher_delta: Delta | None = None,
    prior: Guesses | None = None,
    prior_weight: Amount | float | str | None = None,
    predictions: Guesses | None = None,
    confidence: float | None = None,
    laplace_scale: Amount | float | str | None = None,
    query_epsilon: float | None = None,
    query_delta: float | None = None,
    refusals: int | None = None,
    budget_delta: Delta | None = None,
    budget_order: Order | None = None,
    accept_lost_record: bool = False,
    release: ReleaseKind | str | None = None,
    order: Order | None = None,
    beta: float | None = None,
    sigma_release: float | None = None,
    analysis: Analysis | str = Analysis.TIGHT,
    keep_ledger: bool = False,
    workers: Count = 1,
    engine: str = "local",
    checkpoint: File | None = None,
    seed: int | None = None,
    into: Into = None,
    progress: Callable[..., None] | bool | None = None,
) -> Aggregation:
    """Label queries by the noisy vote of the teachers, and return labels and a public report.

    `quote` takes the arguments of `aggregate`, and returns the largest possible cost before you
    run. `votes` may be a file, an array, a table, a data frame, or the result of `open_votes`.
    Before the run draws noise, pate writes the run to the record of these teachers. If the run
    fails when it is already in the record, its full cost stays there (unless the votes were not
    valid). With several `workers`, importing your main module must have no effect. A `checkpoint`
    is deleted at the end of the run, so save labels that you only have in memory.

        >>> done = pate.aggregate("sample_votes/demo.parquet", max_queries=300, seed=1)
        >>> done.labels
        <Labels: 163 of 300 queries labelled, 700 not asked>
        >>> done.report
        <Report: epsilon 1.3788 at delta 1e-05, 163 of 300 queries answered>
        >>> done = pate.aggregate("sample_votes/demo.parquet", max_queries=300, into="found.csv")

    Raises:
        RefusedError: the release test failed; the error carries the public report.
        UnreachableError: all runs of the record together would cost more than the `budget`, or this
            run could cost more than `max_epsilon`.
        PateError: the votes cannot be read, a parameter is out of range, or the run cannot go on.
    """


@like(aggregate, "aggregate.quoted_for")
def quote(**asked: Any) -> Quote:
    """Return the largest possible cost of a run of `aggregate`, and spend nothing.

    Use `quote` before a run. `quote` takes the arguments of `aggregate`, and reads every row of the
    votes. `quote` refuses every mistake that `aggregate` would refuse before drawing noise.

        >>> pate.quote("sample_votes/demo.parquet", max_queries=300)
        <Quote: at most epsilon 1.3788 at delta 1e-05, whatever the votes>

    Raises:
        PateError: `aggregate` would refuse these arguments or votes before spending anything.
    """


@verb("planning.measured_cost")
def cost(
    votes: Votes,
    mechanism: Mechanism | MechanismChoice | MechanismName | str = MechanismName.CONFIDENT,
    *,
    orders: Sequence[float] | OrderChoice | str = OrderChoice.DEFAULT,
    target_epsilon: Epsilon | None = None,
    delta: Delta = DELTA,
    max_queries: Count | None = None,
    max_answers: Count | None = None,
    threshold: Amount | float | str | None = None,
    sigma1: Amount | float | str | None = None,
    sigma2: Amount | float | str | None = None,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    label_names: LabelNames | None = None,
    id_column: str | None = None,
    refusal_epsilon: Epsilon | None = None,
    bound: Bound | str = Bound.AUTO,
    queries: Queries | None = None,
    normalise: bool = False,
    aliases: Aliases | None = None,
    accept_unmatched: bool = False,
    groups: Groups | None = None,
    teachers_per_record: int = 1,
    votes_per_teacher: Count | None = None,
    assigned: bool = False,
    prior: Guesses | None = None,
    prior_weight: Amount | float | str | None = None,
    predictions: Guesses | None = None,
    confidence: float | None = None,
    laplace_scale: Amount | float | str | None = None,
    analysis: Analysis | str = Analysis.TIGHT,
    workers: Count = 1,
    engine: str = "local",
) -> VoteCost:
    """Return the cost of labels from these votes for each mechanism step, order and query. SECRET.

    The result is secret because it depends on the votes. With `target_epsilon`, the result also has
    the probability that `aggregate` passes its release test, computed for the queries that
    `aggregate` would ask.

        >>> pate.cost("sample_votes/demo.parquet", max_queries=300)
        <VoteCost: epsilon 0.5564 at delta 1e-05 for 172.2 expected answers; SECRET>

    Raises:
        PateError: the votes cannot be read, a parameter is out of range, or pate cannot go on for
            another reason.
    """


@like(cost, "planning.compared")
def compare(**asked: Any) -> Compared:
    """Compare the costs of all mechanisms at the same expected number of answers. SECRET.

    All mechanisms are compared at the expected number of answers of the mechanism that you name.
    If you give a parameter that several mechanisms have, all of them use your value.
    Parameters of mechanisms that you do not give have default values.

        >>> pate.compare("sample_votes/demo.parquet", max_queries=300)
        <Compared: 5 mechanisms at 172.2 expected answers; SECRET>

    Raises:
        PateError: the votes cannot be read, a parameter is out of range, or pate cannot go on for
            another reason.
    """


@verb("planning.sensitivity")
def smooth_sensitivity(
    votes: Votes,
    mechanism: Mechanism | MechanismChoice | MechanismName | str = MechanismName.CONFIDENT,
    *,
    order: Order | None = None,
    beta: float | None = None,
    delta: Delta = DELTA,
    max_queries: Count | None = None,
    threshold: Amount | float | str | None = None,
    sigma1: Amount | float | str | None = None,
    sigma2: Amount | float | str | None = None,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    label_names: LabelNames | None = None,
    id_column: str | None = None,
    queries: Queries | None = None,
    normalise: bool = False,
    aliases: Aliases | None = None,
    accept_unmatched: bool = False,
    groups: Groups | None = None,
    teachers_per_record: int = 1,
    votes_per_teacher: Count | None = None,
    assigned: bool = False,
    prior: Guesses | None = None,
    prior_weight: Amount | float | str | None = None,
    predictions: Guesses | None = None,
    confidence: float | None = None,
    laplace_scale: Amount | float | str | None = None,
    analysis: Analysis | str = Analysis.TIGHT,
    workers: Count = 1,
    engine: str = "local",
) -> Sensitivity:
    """Return the smooth sensitivity of the RDP cost of labels from these votes. SECRET.

    Smooth sensitivity is an upper bound on how much one training record could change the RDP cost
    of the labels. Give the `order` and the `beta` of the sanitized ε that you want. With `analysis`
    paper, the result is that of Algorithms 3 to 5 of the 2018 paper.

        >>> pate.smooth_sensitivity("sample_votes/demo.parquet", max_queries=300)
        <Sensitivity: 0.00480444 nats at order 11, beta 0.0133; SECRET>

    Raises:
        ValidityError: with `analysis` paper, condition C5 or C6 of the 2018 paper is not met.
        PateError: the votes cannot be read, a parameter is out of range, or pate cannot go on for
            another reason.
    """


@verb("planning.planned")
def plan(
    *,
    classes: int | None = None,
    labels: int | None = None,
    teachers: int | None = None,
    target_epsilon: Epsilon | None = None,
    record_epsilon: Epsilon | None = None,
    answers: int | None = None,
    queries: int | None = None,
    delta: Delta = DELTA,
    agreement: tuple[float, float] | float | str | None = None,
    mechanism: MechanismName | str = MechanismName.CONFIDENT,
    groups: Groups | None = None,
    teachers_per_record: int = 1,
    votes_per_teacher: Count | None = None,
    assigned: bool = False,
    teacher_epsilon: Epsilon | None = None,
    teacher_delta: Delta | None = None,
    prior_accuracy: float | None = None,
    prior_weight: Amount | float | str | None = None,
) -> Plan | VoterPlan:
    """Return settings and expected answers for a run, before there are votes. Public.

    Give two of `teachers`, `target_epsilon` and `answers`, and the plan finds the third number. If
    you give `teachers`, `target_epsilon` and `answers`, the plan says whether the three numbers are
    compatible. The plan reads no votes. `plan` makes up votes for several probabilities that a
    teacher is right (`agreement`). With `votes_per_teacher`, the plan says how often labels are
    right if each teacher votes on few queries.

        >>> planned = pate.plan(teachers=250, classes=10, queries=1000, target_epsilon=2)
        >>> planned.settings["mechanism"]
        'confident'

    Raises:
        UnreachableError: no number of teachers, or no epsilon, reaches the goal.
        UsageError: two of `teachers`, `target_epsilon` and `answers` are left out, or keywords
            contradict each other.
    """


@verb("planning.tuned")
def tune(
    votes: Votes | None = None,
    *,
    target_epsilon: Epsilon | None = None,
    answers: float | None = None,
    min_agreement: Share = MIN_AGREEMENT,
    delta: Delta = DELTA,
    release: ReleaseKind | str | None = None,
    bound: Bound | str = Bound.AUTO,
    max_queries: Count | None = None,
    mechanism: MechanismName | str | None = None,
    threshold: Amount | float | str | None = None,
    sigma1: Amount | float | str | None = None,
    sigma2: Amount | float | str | None = None,
    prior: Guesses | None = None,
    prior_weight: Amount | float | str | None = None,
    layout: Layout | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    label_names: LabelNames | None = None,
    id_column: str | None = None,
    queries: Queries | None = None,
    normalise: bool = False,
    aliases: Aliases | None = None,
    accept_unmatched: bool = False,
    groups: Groups | None = None,
    teachers_per_record: int = 1,
    votes_per_teacher: Count | None = None,
    assigned: bool = False,
    synthetic: str | None = None,
    public_votes: bool = False,
    progress: Callable[..., None] | bool | None = None,
    interrupted: Callable[[], None] | None = None,
) -> Tuned:
    """Find the best settings for a target epsilon or for a number of answers.

    The best settings for a target epsilon have the most expected answers. The best settings for a
    number of answers have the least epsilon. Use `tune` on public or made-up votes. On private
    votes the result is SECRET, because settings that fit the votes reveal something about them. If
    you have no votes yet, use `plan`. To run with the settings of a result `tuned`, call
    `aggregate(votes, **tuned.settings)`.

        >>> pate.tune(synthetic="teachers=100,classes=4,queries=400", target_epsilon=4,
        ...           release="none", mechanism="gnmax")
        <Tuned: 400.0 expected answers at epsilon 3.9865>

    Raises:
        UnreachableError: no settings meet the goal; the message says what comes closest.
    """


@verb("release.released")
def release(
    given: Ledger | Report | SpendRecord | File | Sequence[Ledger | Report | SpendRecord | File],
    *,
    external: Sequence[Other] = (),
    again: bool = False,
    unverified: bool = False,
    release: ReleaseKind | str | None = None,
    order: Order | None = None,
    beta: float | None = None,
    sigma_release: float | None = None,
    ensemble: str | None = None,
    budget: Epsilon | None = None,
    record: File | RecordPlace | bool | None = None,
    budget_delta: Delta | None = None,
    budget_order: Order | None = None,
    accept_lost_record: bool = False,
    seed: int | None = None,
) -> Released:
    """Publish one (epsilon, delta) for several runs on votes of the same teachers.

    If you only give ledgers, the report has the worst-case cost of all runs in the ledgers
    together. With `release` upper, the report also has a sanitized ε, which depends on the votes
    and has noise added. (`aggregate` with `keep_ledger` makes a ledger.) If you also give reports
    or records, the report has one epsilon for all runs in the inputs together.

        >>> votes = "sample_votes/demo.parquet"
        >>> first = pate.aggregate(votes, max_queries=100, seed=2, order=8, release="none")
        >>> second = pate.aggregate(votes, "gnmax", max_queries=20, seed=3, order=8, release="none")
        >>> pate.release([first.ledger, second.ledger]).report
        <Report: epsilon 0.9459 at delta 1e-05, 75 of 120 queries answered>

    The release and all runs of the inputs enter one record. If you name no record, pate uses a
    record among the inputs, or else the record to which the runs in the ledgers were written. If
    the record of a ledger is unknown, pate makes a new record beside the ledger. If there are
    several records, pate adds all their runs to the record that you name, or else to the first
    record. Every other record then accepts no more runs. With `record` False, or if the ledgers are
    in memory and name no record, pate does not know whether a sanitized ε was drawn from the
    ledgers before, so the report has no guarantee.

    Raises:
        ParameterError: the delta of the ledgers is less than the total error of the floating-point
            noise in all runs, plus the least delta of every external curve.
        SpentError: a sanitized ε was already drawn from one of the runs in the ledgers, and `again`
            is False.
        UnreachableError: all runs together cost more than the `budget`.
        LedgerError: a ledger, a record or an external file is damaged, or the inputs do not fit
            together.
        MismatchError: a report or a record does not verify, or two inputs disagree about a run.
    """


def session(
    *,
    mechanism: MechanismName | str = MechanismName.CONFIDENT,
    target_epsilon: Epsilon | None = None,
    delta: Delta = DELTA,
    max_queries: Count | None = None,
    max_epsilon: Epsilon | None = None,
    threshold: Amount | float | str | None = None,
    sigma1: Amount | float | str | None = None,
    sigma2: Amount | float | str | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    label_names: LabelNames | None = None,
    normalise: bool = False,
    aliases: Aliases | None = None,
    groups: Groups | None = None,
    teachers_per_record: int = 1,
    votes_per_teacher: Count | None = None,
    assigned: bool = False,
    teacher_epsilon: Epsilon | None = None,
    teacher_delta: Delta | None = None,
    prior_weight: Amount | float | str | None = None,
    laplace_scale: Amount | float | str | None = None,
    query_epsilon: float | None = None,
    query_delta: float | None = None,
    ensemble: str | None = None,
    disjoint_from: str | Sequence[str] = (),
    budget: Epsilon | None = None,
    record: File | RecordPlace | bool | None = None,
    budget_delta: Delta | None = None,
    budget_order: Order | None = None,
    accept_lost_record: bool = False,
    seed: int | None = None,
) -> None:
    """Define the signature of `Session`."""


@verb("reports.record_cost")
def spent(
    record: SpendRecord | File | None = None,
    *,
    ensemble: str | None = None,
    budget: Epsilon | None = None,
    budget_delta: Delta | None = None,
    budget_order: Order | None = None,
    reports: Sequence[Report | File] | None = None,
) -> RecordCost:
    """Return all runs on the votes of some teachers, and their total cost. Public.

    Use `spent` to see what was published so far, and how much of a budget is left.

        >>> given = {"layout": "counts", "record": "account.spent.json"}
        >>> done = pate.aggregate([[40, 38, 22]] * 30, "gnmax", **given)
        >>> pate.spent("account.spent.json", reports=[done.report])
        <RecordCost: 1 run, epsilon 1.6495 at delta 1e-05 together>

    Raises:
        LedgerError: there is no record, or it is damaged.
        ReportError: a report is missing or damaged.
        UsageError: neither a record nor an ensemble is given, or both are.
    """


@verb("reports.verified")
def verify(
    report: Report | File | bytes,
    labels: File | None = None,
    *,
    prior: Guesses | Sequence[Guesses] | None = None,
    record: SpendRecord | File | None = None,
    with_dp_accounting: bool | None = None,
) -> Verification:
    """Check a report: its schema, its numbers, and the hash of its labels.

    Use `verify` on a report that you received, or before you publish a report. `verify` needs
    neither votes nor ledger. From the settings in the report, `verify` computes again every number
    that does not depend on votes.

        >>> done = pate.aggregate("sample_votes/demo.parquet", max_queries=300, into="bought.csv")
        >>> pate.verify(done.report, "bought.csv", with_dp_accounting=False)
        <Verification: holds: epsilon 1.3788 at delta 1e-05>

    Raises:
        ReportError: the report cannot be read, violates the schema, or has so many teachers that
            computing its cost again would take too long.
        UsageError: dp-accounting is asked for but not installed, or the labels or the prior come
            through a pipe (they are read more than once).
        VoteError: the labels or the prior cannot be read.
        LedgerError: the record is missing or cannot be read.
    """


@verb("reports.explained")
def explain(
    report: Report | File, *, title: str | None = None, unit: str | None = None
) -> Explanation:
    """Explain in plain sentences what a report guarantees, to whom, and under which conditions.

    Use `explain` before you publish a report, or to understand a report of somebody else. `explain`
    first computes every number of the report again. If a number or a sentence of the report is
    false, the explanation only says so, and the explanation's attribute `failed` names the checks
    that failed.

        >>> done = pate.aggregate("sample_votes/demo.parquet", max_queries=300)
        >>> [section.title for section in pate.explain(done.report).sections][:3]
        ['What is promised', 'What was done', 'Who is protected']
        >>> pate.explain(done.report).save("page.html")  # to be read, printed and signed

    Raises:
        ReportError: the file has no report, or computing the numbers of the report again would
            take too long.
    """
