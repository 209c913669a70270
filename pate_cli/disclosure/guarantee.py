"""The guarantee in words: which readings of a published ε are true, and which are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pate_cli.core.words import PublicFact, ReleaseKind
from pate_cli.disclosure.figures import nats, shown
from pate_cli.disclosure.report import PublicPrior, Statement
from pate_cli.disclosure.total import Spent

if TYPE_CHECKING:
    from pate_cli.disclosure.ledger import Round

# What was read off the votes, what one vote can do, and what settles it.
_READ_OFF = {
    PublicFact.CLASSES: ("the number of classes", "one vote can add a class", "--classes N"),
    PublicFact.QUERIES: (
        "the list of queries",
        "one vote can make a query appear",
        "--queries FILE",
    ),
}


def adjacency(rounds: Sequence[Round], *, external: bool = False) -> str:
    """Who is protected: what two neighbouring vote files differ in; rounds agree on who it is.

    What is `external` protects records and knows of no teachers: with it, a total does no more.
    """
    prior = _GUESSES if any(done.said_prior for done in rounds) else ""
    asked = _ONE_BY_ONE if any(done.rule for done in rounds) else ""
    return _between_files(rounds) + prior + asked + (_ONE_RECORD if external else "")


_ONE_BY_ONE = (
    " Queries came one by one: after the same answers the next is the same for both, and which it "
    "is may have followed from them. What is promised holds however they were chosen; when asking "
    "stops was fixed beforehand."
)


_GUESSES = " So are the guesses of the prior and the votes they have."
_PRESUPPOSED = (
    "The guesses of the prior must be public, or a function of what was released before this run "
    "and is paid for. If the votes, or any private record, shaped them in another way, everything "
    "is void."
)
VOID: Final = (
    " All of it is void if the votes, or any private record, shaped the guesses of the prior, but "
    "for what was released and paid for before."
)
"""What a summary that claims something adds."""


def public_prior(rounds: Sequence[Round]) -> PublicPrior | None:
    """What is said of the priors of all rounds, if any of them has one."""
    priors = [done.said_prior for done in rounds]
    given = [prior for prior in priors if prior is not None]
    if not given:
        return None
    same = len(given) == len(rounds)
    weights, digests = {prior.weight for prior in given}, {prior.sha256 for prior in given}
    return PublicPrior(
        weight=given[0].weight if same and len(weights) == 1 else None,
        guesses=sum(prior.guesses for prior in given),
        sha256=given[0].sha256 if same and len(digests) == 1 else None,
        presupposed=_PRESUPPOSED,
    )


_ONE_RECORD = (
    " With the external parts, what is protected is one record: it is replaced by another, and the "
    "vote files are then neighbours or the same."
)


def _between_files(rounds: Sequence[Round]) -> str:
    where, classes, given = "on every query", "one class", ", the classes"
    if not any("classes" in done.mechanism for done in rounds):
        given = ""  # names that nobody listed
    if any(done.label_set is not None for done in rounds):
        given = ", the labels"
        where = "on every query, and on each label of a query that has several,"
        classes = "one answer"
    done = rounds[0]
    teachers_per_record = done.teachers_per_record
    if done.groups:
        return (
            "Neighbouring vote files differ in the teachers that one record of one group has "
            "trained, at most teachers_per_record of that group in groups and none of another: "
            f"{where} at most its votes_per_record may move from {classes} to another, appear "
            f"or go missing. The queries{given}, the teachers, their groups and weights are "
            "public, the same for both."
        )
    if done.votes_together:
        who = f"one teacher, whose vote counts for up to {teachers_per_record}"
        most = f"{teachers_per_record} votes of {classes}"
    elif teachers_per_record == 1:
        who, most = "one teacher", "one vote"
    else:
        who = f"{teachers_per_record} teachers, as one record may have trained so many"
        most = f"{teachers_per_record} votes"
    return (
        f"Neighbouring vote files differ in {who}: {where} at most {most} may move from "
        f"{classes} to another, appear or go missing. The queries{given} and the number of "
        "teachers are public, the same for both."
    )


def read_off_warning(fact: PublicFact) -> str:
    """Why nothing holds where this fact was read off the votes, and what settles it."""
    what, why, flag = _READ_OFF[fact]
    return (
        f"{what[0].upper()}{what[1:]} was read off the votes: {why}, and with it what is "
        f"published, so no statement holds. Give {flag}."
    )


FIXED: Final = "mechanisms, queries and caps of all rounds were fixed beforehand"
"""What the worst case of several rounds rests on: settings that no earlier label has shaped."""
_EXTERNAL = (
    "The numbers above include the external parts as their files state them. This presupposes that "
    "each protects every record that the teachers were trained on, at that cost; that "
    "its noise is independent of all other noise; and, for the statement all-votes, that its cost "
    "was fixed beforehand. What it does may depend on whatever was released before it."
)
_NOT_PRIVATE = (
    "Nothing: the noise came from a fixed seed, so whoever knows or guesses it can undo it. "
    "For tests and papers only."
)


UNRECORDED: Final = (
    "No record of earlier draws from these rounds was kept: they may not be charged, so no "
    "statement holds. Leave out --no-record."
)


DRAWS: Final = "draws"
"""The word for them among what is unsettled in a report."""

_TOO_LOW = (
    "up to version 4 of the report, the conditional bound gave distances between those that it "
    "computed the cost of the next larger one, to which a neighbour's coin does not keep"
)


def gap_of(read_off: Sequence[PublicFact], *, recorded: bool, too_low: bool = False) -> str | None:
    """Why no statement can be claimed at all; None where nothing stands in the way.

    `too_low`: the conditional bound was that of an earlier version, which was none.
    """
    gaps = [_TOO_LOW] if too_low else []
    if read_off:
        facts, reasons, flags = (
            " and ".join(parts) for parts in zip(*map(_READ_OFF.__getitem__, read_off), strict=True)
        )
        was = "was" if len(read_off) == 1 else "were"
        gaps.append(f"{facts} {was} read off the votes, and {reasons}; give {flags}")
    if not recorded:
        gaps.append(
            "earlier draws from these rounds, of which no record was kept, may not be charged; "
            "leave out --no-record"
        )
    return "; ".join(gaps) or None


def covers(kind: ReleaseKind, *, earlier: int = 0, external: int = 0) -> str:
    """What the headline ε accounts for."""
    parts = ["all labels"]
    if kind is not ReleaseKind.NONE:
        parts.append("the sanitized epsilon")
    if earlier:
        parts.append(f"{earlier} earlier release{'s' if earlier > 1 else ''} from the same votes")
    if external:
        parts.append(f"{external} external part{'s' if external > 1 else ''} on the same records")
    return " and ".join(parts) + (" together" if len(parts) > 1 else "")


def statements(
    kind: ReleaseKind,
    *,
    private: bool,
    sound: bool,
    rounds: int,
    external: int = 0,
    gap: str | None = None,
    by_group: bool = False,
    data_independent: bool = True,
) -> tuple[Statement, ...]:
    """The readings of theory in accounting/THEORY.md, section 7, and which of them hold.

    `sound` is False for the published analysis, whose data-dependent cost bounds nothing. None
    holds where there is a `gap`. With
    several rounds a later one may have been shaped by the labels of an earlier one: the charge then
    depends on the labels, and only the ex-post statement is left of the data-dependent ones.
    `by_group`: each group of teachers has an ε of its own; `data_independent`: so is the headline.
    `external` parts are rounds as well, with a statement on what is presupposed of them.
    """
    private = private and gap is None
    rounds += external
    drawn = kind is not ReleaseKind.NONE
    own = []
    if by_group and data_independent:
        text = (
            "For vote files that differ in a record of a group, everything released is (epsilon of "
            "that group in groups, delta)-differentially private, whatever the votes"
            + ("." if rounds == 1 else f", if {FIXED}.")
        )
        own = [Statement(id="by-group", holds=private and (sound or not drawn), text=text)]
    elif by_group:
        text = (
            "For vote files D, D' that differ in a record of a group with epsilon g in groups, "
            "every event S and every number e: Pr_D[S and g <= e] <= exp(e) * Pr_D'[S and g <= e] "
            "+ delta" + ("." if rounds == 1 else f", if {FIXED}.")
        )
        own = [Statement(id="by-group", holds=private and sound and drawn, text=text)]
    if external:
        own.append(Statement(id="external", holds=private, text=_EXTERNAL))
    return (
        Statement(
            id="all-votes",
            holds=private and (sound or not drawn),
            text=(
                "Everything released is (data_independent.epsilon, delta)-differentially private, "
                "whatever the votes" + ("." if rounds == 1 else f", if {FIXED}.")
            ),
        ),
        Statement(
            id="this-file",
            holds=private and sound and drawn and rounds == 1,
            text=(
                "For this vote file and each of its neighbours, in both directions, what was "
                "released is (eps, delta - delta_failure)-indistinguishable for an exact eps, and "
                "sanitized.epsilon is at least that eps except with probability delta_failure."
                + (
                    ""
                    if rounds == 1
                    else " Not claimed for several rounds, whose charge depends on the labels"
                    + (", or external parts." if external else ".")
                )
            ),
        ),
        Statement(
            id="released-epsilon",
            holds=private and sound and drawn,
            text=(
                "For all neighbouring vote files D, D', every event S and every number e: "
                "Pr_D[S and sanitized.epsilon <= e] <= exp(e) * Pr_D'[S and sanitized.epsilon <= e]"
                " + delta."
                + ("" if rounds == 1 else " Rounds may have been chosen on earlier labels.")
            ),
        ),
        Statement(
            id="sanitized-for-all-votes",
            holds=False,
            text=(
                "(sanitized.epsilon, delta)-differential privacy whatever the votes: not claimed, "
                "since sanitized.epsilon describes this vote file."
            ),
        ),
        *own,
    )


def summary(
    *,
    kind: ReleaseKind,
    private: bool,
    epsilon: float,
    delta: float,
    data_independent: bool,
    sound: bool,
    rounds: int,
    external: int = 0,
    gap: str | None = None,
    by_group: bool = False,
) -> str:
    """One sentence on the headline number, and more where it includes or is divided."""
    if not private:
        return _NOT_PRIVATE
    if gap is not None:
        return f"Nothing is claimed: {gap}."
    pair = f"epsilon = {nats(epsilon)} at delta = {shown(delta)}"
    if not sound:
        return f"{pair} repeats the published analysis and is not a bound (see warnings)."
    own = " Each group of teachers has its own in groups, none above it." if by_group else ""
    if external:
        pair = f"In total, with {external} external part{'s' if external > 1 else ''}, {pair}"
        rounds += external
    if data_independent:
        premise = "" if rounds == 1 else f", if {FIXED}"
        return f"{pair} holds whatever the votes{premise} (statement all-votes).{own}"
    which = (
        "statements this-file and released-epsilon"
        if rounds == 1
        else "the ex-post statement released-epsilon"
    )
    return f"{pair} is a sanitized upper bound for these votes ({which}).{own}"


UNTRACKED: Final = "; earlier runs: not tracked"
"""What is added to what a report covers where no record is kept."""


TOTAL: Final = "total"
"""The kind of a headline that is all that a record tells of."""


def total_headline(epsilon: float, delta: float) -> str:
    """One sentence on a report of all runs."""
    return (
        f"epsilon = {nats(epsilon)} at delta = {shown(delta)} is what all runs of the record cost "
        "together, whatever the votes (statement total)."
    )


def total_summary(spent: Spent) -> str:
    """What is added to the headline where the record tells of more runs than this one."""
    pair = f"epsilon = {nats(spent.epsilon)} at delta = {shown(spent.delta)}"
    return f" All {spent.count} runs in its record together: {pair} (statement total)."


def total_statements(spent: Spent, *, holds: bool) -> tuple[Statement, ...]:
    """What an account promises (accounting/THEORY.md, section 20)."""
    event = "For all neighbouring vote files D, D', every event S and every number e"
    total = Statement(
        id="total",
        holds=holds,
        text=(
            f"{event}: Pr_D[S and spent.epsilon <= e] <= exp(e) * Pr_D'[S and spent.epsilon <= e] "
            "+ spent.delta, S being of all that the runs in spent.runs released: (spent.epsilon, "
            "spent.delta)-differential privacy where no refusal lowers it. This presupposes that "
            "which runs there were and their settings did not follow from what earlier ones "
            "released."
        ),
    )
    if spent.sum_epsilon is None:
        return (total,)
    return (
        total,
        Statement(
            id="sum",
            holds=holds,
            text=(
                f"{event}: Pr_D[S and spent.sum_epsilon <= e] <= exp(e) * Pr_D'[S and "
                "spent.sum_epsilon <= e] + d, however the runs were chosen, d being a bound on "
                "spent.sum_delta that was fixed beforehand."
            ),
        ),
    )


def tested_covers(*, passed: bool) -> str:
    """What the ε of a tested budget accounts for."""
    return "all labels, and whether they passed" if passed else "the refusal"


def met(target: float) -> str:
    """What the summary of labels that needed no test adds."""
    return f" The target {shown(target)} is met without a test."


def tested_statements(*, holds: bool) -> tuple[Statement, ...]:
    """What a tested budget promises, whether or not the labels passed (THEORY.md, section 10)."""
    return (
        Statement(
            id="all-votes",
            holds=holds,
            text=(
                "What is released, labels or the refusal, is (tested.target, delta)-differentially "
                "private, whatever the votes."
            ),
        ),
        Statement(
            id="refusal",
            holds=holds,
            text=(
                "For all neighbouring vote files D, D': Pr_D[refused] <= "
                "exp(tested.refusal_epsilon) * Pr_D'[refused]. If what follows a refusal is (e, d)-"
                "differentially private, all of it together is (max(tested.target, "
                "tested.refusal_epsilon + e), delta + d)-differentially private."
            ),
        ),
    )


def tested_summary(
    *,
    passed: bool,
    private: bool,
    target: float,
    refusal_epsilon: float,
    delta: float,
    gap: str | None,
) -> str:
    """One sentence on what came out."""
    if not private:
        return _NOT_PRIVATE
    if gap is not None:
        return f"Nothing is claimed: {gap}."
    if passed:
        return (
            f"epsilon = {shown(target)} at delta = {shown(delta)} holds whatever the votes "
            "(statement all-votes): it was stated in advance and the labels passed its test."
        )
    return (
        f"The labels did not pass the test of the target {shown(target)} and none are released; "
        f"this cost epsilon = {shown(refusal_epsilon)} at delta = {shown(delta)} (statement "
        "refusal)."
    )
