"""The command lines that are frozen, by what they show; `<` and `>` are the shell's.

A case is one line or several in the same folder. What is random has a seed. Of a line that ends in
`# fresh` only what does not depend on chance is kept.
"""

OF_100 = "--teachers 100"
YES = "yes.npy --layout multilabel --teachers 100"
SEEDED = "--no-record --seed 5"
OUT = "-o labels.csv --report report.json"
RUN = f"{OUT} {SEEDED}"
CHEAP = f"--mechanism gnmax --sigma2 30 {RUN}"
SAFE = "--threshold 70 --sigma1 40 --sigma2 20"
VERIFY = "verify --without-dp-accounting"
SHARP = "--mechanism gnmax --sigma2 12"
FACTS = {
    "lnmax": "--mechanism lnmax --laplace-scale 20",
    "gnmax": "--mechanism gnmax --sigma2 30",
    "confident": SAFE,
    "interactive": f"--mechanism interactive {SAFE} --student student.npy --confidence 0.8",
    "stability": "--mechanism stability --query-epsilon 0.5 --query-delta 1e-9",
    "sparse-vector": "--mechanism sparse-vector --query-epsilon 0.4 --query-delta 1e-9 "
    "--refusals 5",
    "open-vocabulary": "--mechanism open-vocabulary --threshold 90 --sigma2 8",
}
TESTED = {
    "lnmax": "--mechanism lnmax --laplace-scale 10",
    "gnmax": SHARP,
    "confident": "--threshold 60 --sigma1 40 --sigma2 20",
    "interactive": "--mechanism interactive --threshold 60 --sigma1 40 --sigma2 20 "
    "--student student.npy",
}
TARGETS = {"lnmax": 2, "gnmax": 2, "confident": 1.2, "interactive": 1.2}
"""Below what the worst votes would cost, so that they have to be tested."""
SCORED = ("lnmax", "gnmax", "confident", "interactive")

LINES: dict[str, str | list[str]] = {}


def _mechanisms():
    for name, facts in FACTS.items():
        votes = "words.parquet" if name == "open-vocabulary" else "counts.npy"
        LINES[f"{name}: worst case"] = f"aggregate {votes} {facts} {RUN}"
        LINES[f"{name}: price"] = f"aggregate {votes} {facts} --no-record --dry-run"
    LINES["first rows, another delta"] = (
        f"aggregate counts.npy {SAFE} {RUN} --max-queries 25 --delta 1e-7"
    )
    for name in SCORED:
        facts, votes = FACTS[name], "counts.npy" if name == "interactive" else "clear.npy"
        LINES[f"{name}: upper"] = f"aggregate {votes} {facts} {RUN} --release upper"
        for bound in ("conditional", "two-tail") if name == "gnmax" else ("two-tail",):
            LINES[f"{name}: target, {bound}"] = (
                f"aggregate counts.npy {TESTED[name]} {RUN} --max-queries 40 "
                f"--target-epsilon {TARGETS[name]} --bound {bound}"
            )
        LINES[f"{name}: cost"] = f"cost counts.npy {facts}"
        LINES[f"{name}: smooth sensitivity"] = f"smooth-sensitivity counts.npy {facts}"

    LINES["confident: upper, order and noise given"] = (
        f"aggregate clear.npy {SAFE} {RUN} --release upper --order 12 --beta 0.02 --sigma-release 9"
    )
    LINES["gnmax: target met by any votes"] = f"aggregate counts.npy {CHEAP} --target-epsilon 9"
    LINES["gnmax: target refused"] = (
        f"aggregate counts.npy {SHARP} {RUN} --max-queries 60 --target-epsilon 1 "
        "--refusal-epsilon 0.4 --bound two-tail"
    )
    LINES["gnmax: target of two classes"] = (
        f"aggregate two.npy {SHARP} {RUN} --max-queries 60 --target-epsilon 2.5 --bound conditional"
    )


def _more_of_a_run():
    LINES["prior: classes"] = f"aggregate counts.npy {CHEAP} --prior prior.npy --prior-weight 15"
    LINES["prior: probabilities"] = (
        f"aggregate counts.npy {SAFE} {RUN} --prior prior_shares.npy --prior-weight 15%"
    )
    LINES["prior: by id"] = f"aggregate counts.parquet {CHEAP} --prior prior.csv --prior-weight 15"
    LINES["prior: target"] = (
        f"aggregate counts.npy {SHARP} {RUN} --prior prior.npy --prior-weight 15 "
        "--max-queries 60 --target-epsilon 2.5 --bound two-tail"
    )
    LINES["prior: cost"] = "cost counts.npy --mechanism gnmax --sigma2 30 --prior prior.npy"
    LINES["groups: weights"] = (
        f"aggregate teachers.npy --layout labels --classes 4 {SAFE} {RUN} --groups groups.csv"
    )
    LINES["groups: price"] = (
        "aggregate teachers.npy --layout labels --classes 4 --mechanism gnmax --sigma2 60 "
        "--groups groups.csv --no-record --dry-run"
    )
    LINES["records of k teachers: worst case"] = (
        f"aggregate counts.npy {CHEAP} --teachers-per-record 3"
    )
    LINES["records of k teachers: target"] = (
        f"aggregate counts.npy {SHARP} {RUN} --teachers-per-record 2 --max-queries 40 "
        "--target-epsilon 5 --bound two-tail"
    )
    LINES["records of k teachers: upper"] = (
        f"aggregate counts.npy {CHEAP} --teachers-per-record 2 --release upper"
    )
    LINES["cap: worst case"] = f"aggregate counts.npy {SAFE} {RUN} --max-answers 12"
    LINES["cap: upper"] = f"aggregate counts.npy {SAFE} {RUN} --max-answers 12 --release upper"
    LINES["cap: target"] = (
        f"aggregate counts.npy {TESTED['confident']} {RUN} --max-answers 30 --max-queries 60 "
        "--target-epsilon 1.3 --bound two-tail"
    )
    LINES["noise in percent"] = f"aggregate counts.npy --mechanism gnmax --sigma2 30% {RUN}"
    LINES["paper's analysis"] = (
        f"aggregate counts.npy {SAFE} {RUN} --analysis paper --ledger k.ledger"
    )
    LINES["paper's cost"] = f"cost counts.npy {SAFE} --analysis paper"
    LINES["cost at one order"] = f"cost counts.npy {SAFE} --order 8"
    LINES["cost of first rows, by query"] = (
        f"cost counts.parquet {SAFE} --max-queries 20 --per-query by_query.csv"
    )
    LINES["cost side by side"] = f"cost counts.npy {SAFE} --compare # fresh"
    LINES["curve of a run"] = [
        f"aggregate counts.npy {FACTS['gnmax']} {OUT} --no-record # fresh",
        "explain report.json --export-rdp curve.json",
    ]
    LINES["several labels: binary"] = f"aggregate {YES} {SAFE} {RUN} --max-queries 20"
    LINES["several labels: lists"] = (
        f"aggregate {YES} --mechanism gnmax --sigma2 40 --max-queries 10 "
        f"-o labels.jsonl --report report.json {SEEDED} --label-names red,green,blue"
    )
    LINES["several labels: array"] = (
        f"aggregate {YES} --mechanism gnmax --sigma2 90 -o labels.npy --report report.json {SEEDED}"
    )
    LINES["several labels: by teacher"] = (
        f"aggregate yes_by_teacher.npy --layout multilabel-by-teacher --teachers 100 {SAFE} {RUN} "
        "--max-queries 20"
    )
    LINES["several labels: counts"] = (
        f"aggregate yes_counts.npy --layout multilabel-counts --teachers 100 {SAFE} {RUN} "
        "--max-queries 20"
    )
    LINES["several labels: target"] = (
        f"aggregate {YES} {TESTED['confident']} {RUN} --max-queries 15 "
        "--target-epsilon 2.5 --bound two-tail"
    )


# The same votes, so the same labels: in every layout, format and way in.
SAME_BY_ID = {
    **{f"counts as {kind}": f"aggregate counts.{kind} {CHEAP}" for kind in (
        "csv", "parquet", "jsonl", "arrow", "feather", "tsv", "csv.gz")},
    "counts between semicolons": f"aggregate semicolon.csv {CHEAP}",
    "counts behind a byte order mark": f"aggregate marked.csv {CHEAP}",
    "counts with line ends of DOS": f"aggregate dos.csv {CHEAP}",
    "counts in lists": f"aggregate lists.parquet {CHEAP} --layout counts",
    "counts in lists of JSON": f"aggregate lists.jsonl {CHEAP} --layout counts",
    **{f"labels as {kind}": f"aggregate teachers.{kind} --classes 4 --layout labels {CHEAP}"
       for kind in ("csv", "parquet", "jsonl", "arrow", "parquet.gz")},
    **{f"long as {kind}": f"aggregate long.{kind} --classes 4 --layout long {CHEAP}"
       for kind in ("csv", "parquet", "jsonl", "arrow", "jsonl.gz")},
    **{f"sparse as {kind}": f"aggregate sparse.{kind} --layout sparse --classes 4 {OF_100} {CHEAP}"
       for kind in ("parquet", "jsonl", "arrow")},
    **{f"a folder of {kind}": f"aggregate parts_{kind} {CHEAP}"
       for kind in ("parquet", "csv", "jsonl", "arrow")},
    "a glob of parts": f"aggregate parts_csv/part-*.csv {CHEAP}",
    "a pipe of CSV": f"aggregate - {CHEAP} < counts.csv",
    "a pipe of Parquet": f"aggregate - {CHEAP} < counts.parquet",
    "a pipe of JSON lines, packed": (
        f"aggregate - --classes 4 --layout long {CHEAP} < long.jsonl.gz"
    ),
    "another column of ids": f"aggregate renamed.csv {CHEAP} --id-column name",
}  # fmt: skip
SAME_BY_PLACE = {
    **{f"counts as {kind}": f"aggregate counts.{kind} {CHEAP}"
       for kind in ("npy", "npz", "npy.gz")},
    "counts of the other byte order": f"aggregate swapped.npy {CHEAP}",
    "counts column by column, as floats": f"aggregate fortran.npy {CHEAP}",
    "counts without ids": f"aggregate numbered.csv {CHEAP}",
    "labels as npy": f"aggregate teachers.npy --classes 4 --teachers 100 --layout labels {CHEAP}",
    "labels by teacher": (
        f"aggregate by_teacher.npy --layout labels-by-teacher --classes 4 {OF_100} {CHEAP}"
    ),
    "scores": f"aggregate scores.npy --layout scores --teachers 100 {CHEAP}",
    "scores by teacher": (
        f"aggregate scores_by_teacher.npy --layout scores-by-teacher {OF_100} {CHEAP}"
    ),
    "a pipe of NPY": f"aggregate - --layout counts {CHEAP} < counts.npy",
}  # fmt: skip
NAMED = "--label-names ant,bee,cow,dog"
SAME_IN_WORDS = {
    "names of columns": f"aggregate named.csv {CHEAP} {NAMED}",
    "names from a file": f"aggregate named.parquet {CHEAP} --label-names @names.txt",
    "words of teachers as csv": f"aggregate words.csv --layout labels {CHEAP} {NAMED}",
    "words of teachers as parquet": f"aggregate words.parquet --layout labels {CHEAP} {NAMED}",
    "words in long form": f"aggregate long_words.csv --layout long {CHEAP} {NAMED}",
    "words that normalise, and aliases": (
        f"aggregate loud.parquet --layout labels {CHEAP} {NAMED} --normalise --aliases aliases.json"
    ),
}  # fmt: skip


def _ways_in_and_out():
    for name, line in (SAME_BY_ID | SAME_BY_PLACE | SAME_IN_WORDS).items():
        LINES[f"in: {name}"] = line
    LINES["in: missing votes"] = (
        f"aggregate gaps.npy --layout labels --classes 4 --teachers 100 {CHEAP}"
    )
    LINES["in: queries that are listed"] = (
        f"aggregate long.csv --classes 4 --layout long --queries asked.csv --teachers 100 {CHEAP}"
    )
    plain = "aggregate counts.parquet --mechanism gnmax --sigma2 30 --report report.json"
    for kind in ("csv", "parquet", "npy", "jsonl", "arrow"):
        LINES[f"out: {kind}"] = f"{plain} {SEEDED} -o labels.{kind}"
        LINES[f"out: {kind} on stdout"] = f"{plain} {SEEDED} -o - --format {kind} > labels.{kind}"
    LINES["out: report on stdout"] = (
        f"aggregate counts.parquet --mechanism gnmax --sigma2 30 {SEEDED} -o labels.csv"
    )
    LINES["out: names"] = f"{plain} {SEEDED} {NAMED} -o labels.jsonl"
    LINES["out: workers"] = f"{plain} {SEEDED} -o labels.csv --workers 2"


def _accounts():
    small = "aggregate counts.npy --mechanism gnmax --sigma2 40"
    kept = f"--order 8 --release none {SEEDED} --ledger"
    release = "release a.ledger b.ledger --no-record --seed 5"
    LINES["ledgers: released for all votes, by a draw, with another mechanism"] = [
        f"{small} --max-queries 20 {kept} a.ledger -o labels_a.csv --report a.report.json",
        f"aggregate counts.npy {SAFE} --max-queries 30 {kept} b.ledger -o labels_b.csv "
        "--report b.report.json",
        f"{release} --release none --report all.report.json",
        f"{release} --release upper --beta 0.02 --sigma-release 9 --report drawn.report.json",
        f"{release} --release none --external other.json --report more.report.json",
    ]
    fresh = "-o labels.csv --report report.json # fresh"
    more = "-o labels2.csv --report report2.report.json # fresh"
    spend = "--spend year.spent.json"
    LINES["record: two runs, what they cost, and released"] = [
        f"{small} --max-queries 20 {spend} {fresh}",
        f"{small} --max-queries 30 {spend} {more}",
        "spent year.spent.json # fresh",
        "spent year.spent.json --verify report.json # fresh",
        "release year.spent.json --report release.report.json",
        "explain release.report.json --export-rdp curve.json",
        "release year.spent.json --external pair.json --report more.report.json",
    ]
    LINES["record: beside the votes"] = [
        f"{small} --max-queries 20 {fresh}",
        "spent counts.npy # fresh",
    ]
    LINES["record: of an ensemble"] = [
        f"{small} --max-queries 20 --ensemble clinics {fresh}",
        "spent --ensemble clinics # fresh",
    ]
    june = small.replace("counts.npy", "swapped.npy")  # the same votes would be refused
    LINES["record: disjoint ensembles"] = [
        f"{small} --max-queries 20 --ensemble may {fresh}",
        f"{june} --max-queries 30 --ensemble june --disjoint-from may --budget 1.2 {more}",
        "spent --ensemble june # fresh",
        f"{VERIFY} report2.report.json # fresh",
        "explain report2.report.json",
    ]
    LINES["record: a budget refuses"] = [
        f"{small} --max-queries 20 {spend} --budget 0.9 {fresh}",
        f"{small} --max-queries 60 {spend} --budget 0.9 {more}",
    ]
    LINES["verify and explain: what holds"] = [
        f"{small} --max-queries 20 --no-record {fresh}",
        f"{VERIFY} report.json",
        f"{VERIFY} report.json labels.csv",
        "explain report.json",
        "explain report.json --html page.html",
        f"{small} --max-queries 30 --no-record {more}",
        f"{VERIFY} report.json labels2.csv",
    ]
    for kind in ("parquet", "npy", "jsonl", "arrow"):
        LINES[f"verify: {kind}"] = [
            f"{small} --max-queries 20 --no-record -o labels.{kind} --report report.json # fresh",
            f"{VERIFY} report.json labels.{kind}",
        ]
    LINES["explain: a target"] = [
        f"aggregate counts.npy {SHARP} {RUN} --max-queries 60 --target-epsilon 2.5 "
        "--bound two-tail",
        "explain report.json",
    ]


def _sessions():
    settings = "session --teachers 100 --classes 4 --mechanism gnmax --sigma2 40"
    seeded = "--no-record --seed 5 --report report.json"
    LINES["session: by target"] = f"{settings} --target-epsilon 2 {seeded} < asks.jsonl"
    LINES["session: by number"] = f"{settings} --max-queries 9 {seeded} < asks.jsonl"
    LINES["session: confident"] = (
        f"session --teachers 100 --classes 4 {SAFE} --target-epsilon 2 {seeded} < asks.jsonl"
    )
    LINES["session: words and guesses"] = (
        f"session --teachers 100 {NAMED} --mechanism gnmax --sigma2 40 --prior-weight 10 "
        f"--max-queries 9 {seeded} < asks_in_words.jsonl"
    )
    LINES["session: goes on in its record"] = [
        f"{settings} --target-epsilon 2 --spend s.spent.json < asks.jsonl > first.jsonl # fresh",
        f"{settings} --target-epsilon 2 --spend s.spent.json < asks.jsonl > again.jsonl # fresh",
        "spent s.spent.json # fresh",
    ]
    LINES["session: ends when all is spent"] = f"{settings} --max-queries 2 {seeded} < asks.jsonl"


def _planning():
    LINES["plan: answers"] = (
        "plan --teachers 100 --classes 4 --queries 60 --target-epsilon 2 # fresh"
    )
    LINES["plan: teachers"] = (
        "plan --classes 4 --queries 60 --answers 30 --target-epsilon 2 # fresh"
    )
    LINES["tune: given settings, worst case"] = (
        "tune counts.npy --answers 20 --release none --threshold 70 --sigma1 40 --sigma2 20"
    )
    LINES["tune: given settings, target"] = (
        "tune counts.npy --target-epsilon 2.5 --release target --bound two-tail --max-queries 40 "
        "--threshold 70 --sigma1 40 --sigma2 20"
    )


for _add in (_mechanisms, _more_of_a_run, _ways_in_and_out, _accounts, _sessions, _planning):
    _add()


def lines_of(name):
    """The lines of a case, in order."""
    found = LINES[name]
    return [found] if isinstance(found, str) else found
