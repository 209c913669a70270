"""The table of parameters: help, range, group, and names that people try, by name.

Types and defaults stand in the signatures of the verbs, where readers look for them. To add a
parameter, write it into a signature and add its entry here; the option of the command line, both
helps, completion, checks, "did you mean", docstrings and the reference page follow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pate_cli.core.words import (
    BUDGET_DELTA,
    CEILING,
    CONFIDENCE,
    LAPLACE_SHARE,
    PRIOR_SHARE,
    REFUSALS,
    SIGMA1_SHARE,
    SIGMA2_SHARE,
    THRESHOLD_SHARE,
)
from pate_cli.verbs.parameters.parameter import Parameter

HEADINGS: Final = (
    "Arguments",
    "Goal",
    "Question",
    "Search",
    "Runs",
    "Checks",
    "Privacy",
    "Mechanism",
    "Votes",
    "Without private votes",
    "Record",
    "Record of all runs",
    "Output",
    "With a target",
    "Sanitized epsilon",
    "Sanitized epsilon, and several runs",
    "For --release upper",
    "Public guesses",
    "Teachers that share records",
    "For --mechanism interactive",
    "For --mechanism lnmax",
    "For --mechanism stability and sparse-vector",
    "Large files, tests and papers",
    "Python alone",
)
"""Groups of parameters, in the order of the help."""

_AMOUNT: Final = "N|N%"
_RULE: Final = "with a target, by a public rule"


def _group(
    heading: str, /, *, everyday: bool = True, hidden: bool = False, **rows: Parameter | str
) -> dict[str, Parameter]:
    """Return the parameters under one heading of the help; a text alone is a parameter's help."""
    return {
        name: replace(
            Parameter(row) if isinstance(row, str) else row,
            group=heading,
            everyday=everyday,
            hidden=hidden,
        )
        for name, row in rows.items()
    }


_EVERYDAY: Final = (
    _group(
        "Arguments",
        votes=Parameter(
            "A file (NPY, NPZ, Parquet, CSV, JSON lines, Arrow; also packed), a folder or glob of "
            "parts, an address such as s3://..., or - for a pipe.",
            "VOTES",
            python="Or an array, a table, a data frame, or what `open_votes` yields.",
            argument=True,
        ),
        report=Parameter("A report: a file, an address, or - for stdin.", "REPORT", argument=True),
        folder=Parameter(
            "A new or empty folder to write to. Left out, a temporary one.",
            "[FOLDER]",
            argument=True,
        ),
    )
    | _group(
        "Privacy",
        target_epsilon=Parameter(
            "Epsilon, stated in advance, nats. pate chooses settings and queries, then runs a "
            "release test. If it fails you get no labels (exit 8) and pay half of it.",
            "E",
            above=0,
            tried=("epsilon", "eps", "target"),
        ),
        delta=Parameter(
            "Delta of the guarantee, below 1 / number of training records.", above=0, below=1
        ),
        max_queries=Parameter(
            "How many queries to ask. Left out, the target decides; without one, all.",
            least=1,
            tried=("limit", "rows", "num_queries"),
        ),
        max_answers=Parameter(
            "Stop after so many answers (of several labels: those of so many queries); the cap "
            "lowers epsilon in the worst case.",
            least=1,
        ),
    )
    | _group(
        "Mechanism",
        mechanism=Parameter(
            "confident: only queries on which enough teachers agree; gnmax, lnmax: every query; "
            "interactive: where teachers correct your student; stability, sparse-vector: almost "
            "unanimous teachers; open-vocabulary: classes that nobody listed.",
            "NAME",
            short="-m",
            tried=("aggregator", "method"),
        ),
        threshold=Parameter(
            f"Votes the plurality should have. Left out, {THRESHOLD_SHARE:.0%} of the teachers; "
            f"{_RULE}.",
            _AMOUNT,
        ),
        sigma1=Parameter(
            "Standard deviation of the threshold's noise, votes. Left out, "
            f"{SIGMA1_SHARE:.0%}; {_RULE}.",
            _AMOUNT,
            tried=("sigma_threshold",),
        ),
        sigma2=Parameter(
            "Standard deviation of the noise on each count, votes. Left out, "
            f"{SIGMA2_SHARE:.0%}; {_RULE}.",
            _AMOUNT,
            tried=("sigma_gnmax", "sigma", "noise"),
        ),
    )
    | _group(
        "Votes",
        layout=Parameter(
            "What one row is: counts, labels, long, scores, ...; inferred where there is no doubt.",
            "LAYOUT",
        ),
        classes=Parameter(
            "Number of classes. Read from the votes it is not public: the report makes no claim.",
            tried=("num_classes", "n_classes"),
        ),
        teachers=Parameter(
            "Number of teachers; if given, votes may be missing.",
            tried=("num_teachers", "n_teachers"),
        ),
        label_names=Parameter(
            "Names of the classes, class 0 first; @FILE has one a line. Votes may then be texts; "
            "one that is no name is a missing vote.",
            "A,B|@FILE",
            tried=("names", "class_names"),
        ),
        id_column=Parameter(
            "Column that names the queries, if it is not query_id; also in the labels.",
            "NAME",
        ),
    )
    | _group(
        "Record of all runs",
        ensemble=Parameter(
            "Name of these teachers, under which a record is kept in a folder of yours.",
            "NAME",
        ),
        budget=Parameter(
            "The most epsilon that all runs of the record may cost together; a run beyond it is "
            "refused (exit 5).",
            above=0,
        ),
        record=Parameter(
            "Record of all runs on these teachers. Left out, VOTES.spent.json beside the votes or "
            "ledgers.",
            "FILE",
            python="A run stands in it before anything is drawn, and counts in full whatever "
            "happens. False keeps none, and the report says so.",
            option="--spend",
            off="--no-record",
            without="Keep no record; the report says that earlier runs are not tracked.",
            excludes=("ensemble",),
            tried=("record_file",),
        ),
    )
)

_TARGET: Final = _group(
    "With a target",
    everyday=False,
    refusal_epsilon=Parameter(
        "Epsilon that a failed release test costs. Left out, half the target.", above=0
    ),
    bound="How the release test bounds the cost of the votes. two-tail: quick. conditional: "
    "sharper, slower. auto: conditional where it takes a minute at most.",
    min_pass=Parameter(
        "Refuse (exit 5), before anything is drawn or spent, a run that would pass its release "
        "test with a smaller probability even if teachers agreed well. 0 starts every run.",
        least=0,
        most=1,
    ),
    max_epsilon=Parameter(
        "Refuse (exit 5), before anything is drawn or spent, a run that could cost more. Left "
        f"out, {CEILING:g} for runs without `seed` that publish a target or the worst case.",
        above=0,
    ),
)
_ADVANCED: Final = (
    _group(
        "Votes",
        everyday=False,
        queries=Parameter(
            "In long form, the public ids of the queries to ask, in order: an array, or a table "
            "with query_id. One without a vote is asked, too.",
            "FILE",
        ),
        normalise=Parameter(
            "Match texts with names also where case, blanks, quotes, final punctuation or Unicode "
            "form differ.",
            tried=("normalize",),
        ),
        aliases=Parameter(
            "Public: other texts and the names they stand for, a JSON object or a table of alias "
            "and name.",
            "FILE",
        ),
        accept_unmatched="Go on where most votes are no name of a class; else they are refused.",
    )
    | _group(
        "Teachers that share records",
        everyday=False,
        groups=Parameter(
            "Public groups of the teachers: a table of group and, as needed, weight, "
            "teachers_per_record, teacher_id. Each group gets its own epsilon.",
            "FILE",
        ),
        teachers_per_record="Largest number of teachers that one training record may have reached. "
        "Left out, one.",
    )
    | _group(
        "Public guesses",
        everyday=False,
        prior=Parameter(
            "Public guesses, a class or probabilities for each query, which the teachers correct "
            "(gnmax, confident, interactive). Neither the votes nor any private data may have "
            "shaped them.",
            "FILE",
        ),
        prior_weight=Parameter(
            f"How many votes a guess has, or a share of the teachers. Left out, {PRIOR_SHARE}.",
            _AMOUNT,
        ),
    )
    | _group(
        "Record of all runs",
        everyday=False,
        budget_delta=Parameter(
            f"The most delta that all runs may cost together. Left out, {BUDGET_DELTA:g}, a "
            "hundred runs at the default.",
            above=0,
            below=1,
        ),
        budget_order=Parameter(
            "Compose RDP costs at this order instead of epsilons: sharper for many runs. Fixed "
            "with `budget_delta` before the first run of the record.",
            above=1,
        ),
        accept_lost_record="Begin a record anew where the one that the votes had is gone, or lost "
        "runs. What was spent before is then charged nowhere.",
    )
    | _group(
        "Sanitized epsilon, and several runs",
        everyday=False,
        release="none: publish the worst case alone; upper: also a sanitized bound of these votes, "
        "too low with probability delta/10 only.",
        order="Renyi order, above 1. Left out, a public rule chooses it. Runs whose ledgers are to "
        "be composed need one order for all.",
    )
    | _group(
        "For --release upper",
        everyday=False,
        beta="β of the smooth sensitivity: one vote changes it by at most a factor e^β. Left "
        "out, a public rule chooses it.",
        sigma_release="Noise of the sanitized epsilon, in smooth sensitivities. Left out, a public "
        "rule chooses it.",
    )
    | _group(
        "Large files, tests and papers",
        everyday=False,
        workers=Parameter(
            "Processes that share a large file; labels do not depend on them.",
            python="More than one needs a main module that can be imported without doing anything.",
            least=1,
            tried=("jobs", "n_jobs", "processes"),
        ),
        engine=Parameter(
            "local, dask (a Dask cluster on this machine), or the address of a scheduler, whose "
            "workers must see the votes under the same names.",
            "NAME|ADDRESS",
        ),
        checkpoint=Parameter(
            "Folder that keeps the run until it has ended: cut short, the same command goes on "
            "there, with the same labels. Mode 0700. SECRET.",
            "FOLDER",
            python="With labels in memory, `end` the result's checkpoint once they are safe.",
        ),
        seed="Reproducible noise for tests and papers. Nothing drawn with it is private, and the "
        "report says so.",
        analysis="tight: sharp and sound. paper: as published in 2018, to compare with; no bound.",
    )
)
_OF_MECHANISMS: Final = (
    _group(
        "For --mechanism interactive",
        everyday=False,
        predictions=Parameter(
            "Your student's probabilities for each query, which interactive needs.",
            "FILE",
            option="--student",
        ),
        confidence=Parameter(
            "Where teachers do not object, labels of which the student is surer than this come "
            f"out, with source student. Left out, {CONFIDENCE}.",
        ),
    )
    | _group(
        "For --mechanism lnmax",
        everyday=False,
        laplace_scale=Parameter(
            "Laplace noise on each count, the 2017 paper's 1/gamma, in votes or as a share. Left "
            f"out, {LAPLACE_SHARE:.0%}.",
            _AMOUNT,
        ),
    )
    | _group(
        "For --mechanism stability and sparse-vector",
        everyday=False,
        query_epsilon="Epsilon of each query of stability, of each unanswered one of "
        "sparse-vector. Left out, a public rule chooses it.",
        query_delta="Delta of each such query; it must be smaller than `delta`. Left out, all "
        "queries together have half of `delta`.",
        refusals=f"sparse-vector: stop after so many unanswered queries. Left out, {REFUSALS}.",
    )
)
_PYTHON: Final = _group(
    "Python alone",
    hidden=True,
    into="Where labels and report go as one: a path or a `Destination`. None keeps them in memory.",
    keep_ledger="Keep the costs of the votes as a ledger for a later `release`. SECRET.",
    progress="Called with the number of rows of each finished part. With a target, whose test "
    "reads the rows first, it is called with (0, all) and then with shares of `all`.",
    interrupted="Called when a search is broken off, before its best so far is priced.",
)
_OUTPUT: Final = _group(
    "Output",
    out=Parameter(
        "Labels: a path or address whose suffix is the format; - is stdout. Left out, "
        "<votes>.labels.parquet.",
        "FILE",
        option="--output",
        short="-o",
        tried=("labels", "into"),
    ),
    dry_run="Check all, say what the run would cost, spend nothing.",
    force="Replace outputs of earlier runs.",
    quiet=Parameter("No progress, notes or summary.", short="-q"),
    as_json=Parameter("JSON, also on a terminal.", option="--json", excludes=("as_table",)),
    as_table=Parameter("The table of a terminal, also through a pipe.", option="--table"),
) | _group(
    "Output",
    everyday=False,
    label_format=Parameter(
        "Format of the labels, where the suffix does not tell.", option="--format"
    ),
    ledger=Parameter(
        "Also keep the ledger here (mode 0600), to compose several runs. SECRET.", "FILE"
    ),
    plot=Parameter(
        "Also draw a picture (.pdf, .png, .svg; mode 0600); needs pate-cli[plot].", "FILE"
    ),
)
_SILENT: Final = _group(
    "Output",
    quiet=Parameter(
        "Print nothing: the exit code says it, and stderr why.",
        short="-q",
        excludes=("as_json", "as_table"),
    ),
)
_SHARED: Final = _EVERYDAY | _TARGET | _ADVANCED | _OF_MECHANISMS | _PYTHON | _OUTPUT

_REPORT: Final = _group(
    "Output",
    report=Parameter(
        "Public report (JSON); - is stdout. Left out, beside the labels, with a copy for a pipe.",
        "FILE",
    ),
)


def _own(
    heading: str, /, *, everyday: bool = True, **rows: Parameter | str
) -> dict[str, Parameter]:
    """Return what one verb says of parameters under a heading.

    A text alone replaces the help of the shared parameter of that name, if there is one.
    """
    return {
        name: replace(
            replace(_SHARED.get(name, Parameter("")), help=row) if isinstance(row, str) else row,
            group=heading,
            everyday=everyday,
        )
        for name, row in rows.items()
    }


_SEARCHED: Final = "in votes or as a share of the teachers. Left out, it is searched."
_OWN: Final = {
    "aggregate": _REPORT,
    "session": _own(
        "Privacy",
        target_epsilon="Epsilon of all that is answered, however queries are chosen. It decides "
        "how many may be asked; then asking ends (exit 5).",
        max_queries="Ask no more than so many; alone, epsilon follows from it.",
        max_epsilon="Refuse (exit 5) a session that could cost more. Left out, "
        f"{CEILING:g} without `seed`.",
    )
    | _own(
        "Public guesses",
        everyday=False,
        prior_weight="How many votes the guess has that a query may come with. Left out, none may.",
    )
    | _own(
        "Output",
        report=Parameter("Public report (JSON), written at the end.", "FILE"),
        strict="End at the first line that is no query (exit 2 or 3), instead of answering it by "
        "an error.",
    ),
    "plan": _own(
        "Goal",
        teachers="How many teachers; found if left out.",
        target_epsilon="Epsilon, stated in advance, nats; found if left out.",
        answers="How many answers you want where teachers agree in the middle of the range; found "
        "if left out.",
        queries=Parameter("How many queries there are. Left out, as many as it takes.", "N"),
        classes="How many classes a query has.",
        labels=Parameter(
            "How many labels a query has, each yes or no; answers and rows are then pairs of a "
            "query and a label.",
            excludes=("classes",),
        ),
        agreement=Parameter(
            "How often a teacher is right on average: a share, or a range such as 0.6:0.9. Left "
            "out, 0.5:0.95, of two classes 0.65:0.95.",
            "LOW:HIGH",
        ),
    )
    | _own(
        "Public guesses",
        everyday=False,
        prior_accuracy="How often a public guess is right, if there are any.",
    )
    | _own(
        "Output",
        plot="Also draw answers against epsilon, and epsilon against teachers (.pdf, .png, .svg); "
        "needs pate-cli[plot].",
    ),
    "tune": _own(
        "Arguments",
        votes=Parameter(
            "The votes, as `aggregate` takes them; none with `synthetic`.",
            "[VOTES]",
            argument=True,
        ),
    )
    | _own(
        "Goal",
        target_epsilon="Find the most expected answers at this epsilon or less.",
        answers="Find the least epsilon for so many expected answers.",
        min_agreement=Parameter(
            "Least expected share of answers that equal the plurality.", least=0, most=1
        ),
        release="How the epsilon becomes publishable. target: stated in advance and tested; none: "
        "the worst case, by the rows and a cap on answers; upper: a sanitized bound. Left out, the "
        "better one of target and none.",
    )
    | _own(
        "Search",
        mechanism="confident or gnmax. Left out, the better one.",
        threshold=f"Threshold, {_SEARCHED}",
        sigma1=f"Standard deviation of the threshold's noise, {_SEARCHED}",
        sigma2=f"Standard deviation of the noise on each count, {_SEARCHED}",
        prior_weight=f"Votes of a guess of the prior, {_SEARCHED}",
    )
    | _own(
        "Without private votes",
        synthetic=Parameter(
            "Made-up votes, such as teachers=250,classes=10,queries=1000,agreement=0.85; also "
            "spread, confusion, imbalance, seed, and prior=0.85 for made-up guesses.",
            "NAME=N,...",
        ),
        public_votes="You assert that the votes are public, so that the result may be published.",
    ),
    "release": _own(
        "Arguments",
        given=Parameter(
            "Ledgers, reports and records of runs on the same teachers, or their files.",
            "FILE...",
            argument=True,
            several=True,
        ),
    )
    | _own(
        "Runs",
        external=Parameter(
            "Add what else was trained on the same records: JSON of adjacency, and of orders and "
            "rdp or epsilon and delta. May be given several times.",
            "FILE",
            several=True,
        ),
        again="Draw once more from ledgers that were released before; all draws are charged.",
        unverified="Take reports and records that do not verify, too. The report then says so and "
        "promises nothing.",
    )
    | _own(
        "Sanitized epsilon",
        release=_SHARED["release"],
        order=_SHARED["order"],
        beta=_SHARED["beta"],
        sigma_release=_SHARED["sigma_release"],
    )
    | _own(
        "Output",
        report=Parameter(
            "Public report (JSON), or - for stdout. Left out, <first>.report.json at a terminal, "
            "and stdout in a pipe.",
            "FILE",
        ),
    ),
    "spent": _own(
        "Arguments",
        record=Parameter(
            "A record, or votes that have one beside them.",
            "[RECORD]",
            argument=True,
            excludes=("ensemble",),
        ),
    )
    | _own(
        "Record",
        ensemble="Name of the teachers whose record it is, instead.",
        budget="Say how much of this epsilon is left. Left out, the budget of the last run.",
        budget_delta=f"Delta of that budget. Left out, {BUDGET_DELTA:g}.",
        budget_order="Renyi order of that budget, if it has one.",
        reports=Parameter(
            "Hold a report against the record (exit 10 if it is charged otherwise, or not at "
            "all). May be given several times.",
            "REPORT",
            option="--verify",
            several=True,
        ),
    )
    | _own(
        "Output",
        plot="Also draw the total over time (.pdf, .png, .svg); needs pate-cli[plot].",
    ),
    "verify": _SILENT
    | _own(
        "Arguments",
        labels=Parameter(
            "The labels that came with the report: a file or an address.",
            "[LABELS]",
            argument=True,
        ),
    )
    | _own(
        "Checks",
        prior=Parameter(
            "The guesses of its prior, to be checked by their hash; once for each of several.",
            "FILE",
            several=True,
        ),
        record=Parameter(
            "The record of the same teachers, where you keep it: it alone tells whether runs are "
            "missing.",
            "FILE",
            option="--spend",
        ),
        with_dp_accounting=Parameter(
            "Also ask Google's dp_accounting for the textbook numbers. Left out, where it is "
            "installed (pip install pate-cli[accounting]).",
            off="--without-dp-accounting",
            without="Do not, even where it is installed.",
        ),
        strict="Exit 11 if anything could not be checked.",
    ),
    "explain": _SILENT
    | _own(
        "Output",
        html=Parameter("Write a page to read, print and sign instead; - is stdout.", "FILE"),
        export_rdp=Parameter(
            "Write the RDP curve for all votes (JSON) instead, for other accountants; - is stdout.",
            "FILE",
        ),
    ),
    "cost": _own(
        "Question",
        order=Parameter("One Renyi order only. Left out, many.", excludes=("orders",)),
        orders="Renyi orders to try. moments: 2 to 9, the 2017 paper's.",
        compare=Parameter(
            "All mechanisms side by side, at as many expected answers as this one.",
            excludes=("per_query", "plot", "target_epsilon"),
        ),
        per_query=Parameter(
            "Also write the cost of every query (.parquet, .csv, .jsonl, .arrow; mode 0600).",
            "FILE",
        ),
    ),
}
_ALIKE: Final = {
    "compare": "cost",
    "session_settings": "session",
}
"""Functions that share the entries of another one."""


def said_of(function: str, name: str) -> Parameter:
    """Return what the table says of a parameter of a verb or command.

    A verb's own entries come before those that it shares with others.

    Raises:
        LookupError: the table says nothing of it.
    """
    own = _OWN.get(_ALIKE.get(function, function), {})
    said = own.get(name) or _SHARED.get(name)
    if said is None:
        raise LookupError(f"the table of parameters has no entry for {name} of {function}")
    return said


def anywhere(name: str) -> Parameter | None:
    """Return what the table says of a name, for whatever verb; None if it knows no such name."""
    tables = (_SHARED, *_OWN.values())
    return next((table[name] for table in tables if name in table), None)
