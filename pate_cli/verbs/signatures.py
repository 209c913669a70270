"""The verbs of the library as people call them: ordinary signatures, and what each is for.

A verb checks what it is given (`door`) and hands it to the function that does the work, whose name
stands above it and which is imported when the verb is called: help and completion need the
signatures alone. What a parameter means stands in help.ini, once for all verbs.
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
from pate_cli.verbs.door import like, verb
from pate_cli.verbs.keywords import Count, Delta, Epsilon, File, Guesses, Order, Share, Votes

if TYPE_CHECKING:
    from pate_cli.disclosure.entry import RecordPlace
    from pate_cli.disclosure.explain import Explanation
    from pate_cli.disclosure.external import Other
    from pate_cli.disclosure.facts import Quote
    from pate_cli.disclosure.ledger import Ledger
    from pate_cli.disclosure.record import SpendRecord
    from pate_cli.disclosure.report import Report
    from pate_cli.disclosure.verification import Verification
    from pate_cli.mechanisms import MechanismChoice
    from pate_cli.mechanisms.amounts import Amount
    from pate_cli.mechanisms.base import Mechanism
    from pate_cli.planning.cost import Compared, VoteCost
    from pate_cli.planning.plan import Plan
    from pate_cli.planning.sensitivity import Sensitivity
    from pate_cli.planning.tune import Tuned
    from pate_cli.run.publication import Into
    from pate_cli.verbs.aggregate import Aggregation
    from pate_cli.verbs.release import Released
    from pate_cli.verbs.reports import RecordCost
    from pate_cli.votes.groups import Groups
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
    """Label queries by the teachers' noisy vote; labels, a public report, perhaps a secret ledger.

    The one verb that gives labels. `quote` says first what they may cost at most, and takes the
    very same. `votes` may also be an array, a table, a data frame, or what `open_votes` yields. A
    run stands in its record before anything is drawn, and counts in full whatever happens. Several
    `workers` need a main module that can be imported without doing anything. With a `checkpoint`
    and labels in memory, `end` the checkpoint of the result once they are safe.

        >>> done = pate.aggregate("sample_votes/demo.parquet", max_queries=300, seed=1)
        >>> done.labels
        <Labels: 163 of 300 queries labelled, 700 not asked>
        >>> done.report
        <Report: epsilon 1.3788 at delta 1e-05, 163 of 300 queries answered>
        >>> done = pate.aggregate("sample_votes/demo.parquet", max_queries=300, into="found.csv")

    Raises:
        RefusedError: the release test failed; the error carries the public report.
        UnreachableError: what all runs of the record cost together would exceed the `budget`, or
            this one `max_epsilon`.
        PateError: votes that cannot be read, numbers out of range, and whatever else is refused.
    """


@like(aggregate, "aggregate.quoted_for")
def quote(**asked: Any) -> Quote:
    """Say what `aggregate` would cost whatever the votes; every row is checked, nothing is spent.

    Use it before a run: it takes what the run takes, and refuses whatever the run would refuse
    before it spends.

        >>> pate.quote("sample_votes/demo.parquet", max_queries=300)
        <Quote: at most epsilon 1.3788 at delta 1e-05, whatever the votes>

    Raises:
        PateError: as `aggregate` would.
    """


@verb("measure.measured_cost")
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
    """Say what the votes would cost by step, order and query. SECRET: it describes the votes.

    With `target_epsilon`, also how `aggregate` would fare; the rows are those that it would ask.

        >>> pate.cost("sample_votes/demo.parquet", max_queries=300)
        <VoteCost: epsilon 0.5564 at delta 1e-05 for 172.2 expected answers; SECRET>

    Raises:
        PateError: as `aggregate` would.
    """


@like(cost, "measure.compared")
def compare(**asked: Any) -> Compared:
    """Compare every mechanism that applies at as many expected answers as one gives. SECRET.

    Each takes the given parameters that it knows, and its defaults otherwise.

        >>> pate.compare("sample_votes/demo.parquet", max_queries=300)
        <Compared: 6 mechanisms at 172.2 expected answers; SECRET>

    Raises:
        PateError: as `cost`.
    """


@verb("measure.sensitivity")
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
    """Say how far one record could move the cost of the votes, smoothed over distances. SECRET.

    `order` and `beta` are those of the sanitized bound that it is for; `analysis` paper follows
    Algorithms 3 to 5 of the 2018 paper.

        >>> pate.smooth_sensitivity("sample_votes/demo.parquet", max_queries=300)
        <Sensitivity: 0.00480444 nats at order 11, beta 0.0133; SECRET>

    Raises:
        ValidityError: the published conditions C5 or C6 fail.
        PateError: as `cost`.
    """


@verb("settings.planned")
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
    teacher_epsilon: Epsilon | None = None,
    teacher_delta: Delta | None = None,
    prior_accuracy: float | None = None,
    prior_weight: Amount | float | str | None = None,
) -> Plan:
    """Say before the first vote which settings to use, and what may be expected. Public.

    Of `teachers`, `target_epsilon` and `answers` one is left out and found; with all three the
    plan says whether they go together. It looks at made-up teachers over a range of agreement, and
    at no votes.

        >>> planned = pate.plan(teachers=250, classes=10, queries=1000, target_epsilon=2)
        >>> planned.settings["mechanism"]
        <MechanismName.CONFIDENT: 'confident'>

    Raises:
        UnreachableError: no number of teachers, or no epsilon, reaches the goal.
        UsageError: more or less than one of the three is left out, or contradictions.
    """


@verb("settings.tuned")
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
    """Find the settings that give the most answers for an epsilon, or cost the least for so many.

    Use it on public or made-up votes. On private ones the result is SECRET: settings chosen on
    votes tell about them. Before there are votes, `plan` answers.
    `aggregate(votes, **tuned.settings)` runs what was found.

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

    Of ledgers, each labelled with `keep_ledger`, it is what all rounds cost whatever the votes, and
    if it is asked for a sanitized value of these votes beside it. Where reports or records are
    among what is given, it is the total of all runs that they tell of.

        >>> votes = "sample_votes/demo.parquet"
        >>> first = pate.aggregate(votes, max_queries=100, seed=2, order=8, release="none")
        >>> second = pate.aggregate(votes, "gnmax", max_queries=20, seed=3, order=8, release="none")
        >>> pate.release([first.ledger, second.ledger]).report
        <Report: epsilon 0.9459 at delta 1e-05, 75 of 120 queries answered>

    What is released is entered in the record that is given, in that of the ledgers' votes, or
    beside a ledger whose record is not known; and so is all that is given. Of several records the
    one that is named, or the first, takes over the runs of the others, which take none from then
    on. With `record` False earlier draws are not charged, and the report promises nothing.

    Raises:
        ParameterError: a delta too small beside what floating-point noise adds over all rounds.
        SpentError: the rounds were released before.
        UnreachableError: all of it together costs more than the `budget`.
        LedgerError: a ledger, a record or an external file is damaged, or does not fit the others.
        MismatchError: a report or a record does not verify, or two of them tell otherwise of a run.
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
    teacher_epsilon: Epsilon | None = None,
    teacher_delta: Delta | None = None,
    prior_weight: Amount | float | str | None = None,
    laplace_scale: Amount | float | str | None = None,
    query_epsilon: float | None = None,
    query_delta: float | None = None,
    ensemble: str | None = None,
    budget: Epsilon | None = None,
    record: File | RecordPlace | bool | None = None,
    budget_delta: Delta | None = None,
    budget_order: Order | None = None,
    accept_lost_record: bool = False,
    seed: int | None = None,
) -> None:
    """Take the settings of a `Session`, whose signature this is."""


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
    """Show all runs on the votes of some teachers, and what they cost together. Public.

    Use it to see what was published so far and what is left of a budget.

        >>> given = {"layout": "counts", "record": "account.spent.json"}
        >>> done = pate.aggregate([[40, 38, 22]] * 30, "gnmax", **given)
        >>> pate.spent("account.spent.json", reports=[done.report])
        <RecordCost: 1 run, epsilon 1.6495 at delta 1e-05 together>

    Raises:
        LedgerError: there is no record, or a damaged one.
        ReportError: no report, or a damaged one.
        UsageError: neither a record nor an ensemble, or both.
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
    """Check a report from outside: its schema, its numbers from its own settings, its labels.

    Use it on what you are given, or before you publish. It needs neither votes nor ledger, and
    computes every number again that does not depend on them.

        >>> done = pate.aggregate("sample_votes/demo.parquet", max_queries=300, into="bought.csv")
        >>> pate.verify(done.report, "bought.csv", with_dp_accounting=False)
        <Verification: holds: epsilon 1.3788 at delta 1e-05>

    Raises:
        ReportError: no report, or one against the schema, or of more teachers than can be charged
            again in reasonable time.
        UsageError: the library is asked for and not installed; labels or a prior that come by a
            pipe, for they are read more than once.
        VoteError: the labels or the prior cannot be read.
        LedgerError: the record is not there, or cannot be read.
    """


@verb("reports.explained")
def explain(report: Report | File) -> Explanation:
    """Say what a report promises, to whom and on what conditions, in plain sentences.

    Use it before a report is published, or to understand somebody else's. It computes every number
    again first: of a report that does not hold it says that, and nothing else.

        >>> done = pate.aggregate("sample_votes/demo.parquet", max_queries=300)
        >>> [section.title for section in pate.explain(done.report).sections][:3]
        ['What is promised', 'What was done', 'Who is protected']
        >>> pate.explain(done.report).save("page.html")  # to be read, printed and signed

    Raises:
        ReportError: no report in the file, or one that takes too long to compute again.
    """
