"""`pate demo`: labels and a report from real votes that come with the program."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pate_cli.cli import terminal
from pate_cli.cli.command import command
from pate_cli.core.errors import OutputError
from pate_cli.files.addresses import public_name
from pate_cli.verbs.keywords import FileName

_PACKAGE = Path(__file__).resolve().parents[1]
_FILES = ("adult.parquet", "labels.csv", "labels.report.json", "adult.parquet.spent.json")
_TARGET = 1.5  # The votes of the demo fail the release test once in 10^11 runs.


@command(None, ())
def demo(*, folder: FileName | None = None) -> None:
    """Label real votes that come with pate, and explain the result.

    250 random forests, each trained on its own 100 census records, vote on whether people earn more
    than 50,000 dollars. The votes of the demo are public; your own votes are not.
    """
    import pyarrow.parquet as pq

    import pate_cli as pate
    from pate_cli.disclosure.entry import RecordPlace
    from pate_cli.disclosure.explain import summary_of
    from pate_cli.disclosure.record import RecordFile

    terminal.refuse_closed()
    place = Path(tempfile.mkdtemp(prefix="pate-demo-")) if folder is None else Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    if any(place.iterdir()):
        raise OutputError(f"{public_name(place)} is not empty; name a new folder for the demo")
    votes, labels, report, spent = (place / name for name in _FILES)
    with terminal.outputs(force=False) as out:
        out.reserve(votes, mode=0o600)
        out.reserve(labels)
        out.reserve(report)
        # The demo has its own record, without earlier runs on the sample.
        account = RecordPlace(RecordFile(spent), votes=votes.name, named=True)
        done = pate.aggregate(_sample(votes.name), target_epsilon=_TARGET, record=account)
        out.write(votes, _sample(votes.name).read_bytes())
        with out.open(labels) as file:
            done.labels.write(file, labels)
        out.write(report, done.report.to_json().encode())
    answered = done.labels.labels >= 0
    truth = pq.read_table(_sample("adult_truth.parquet"))["label"].to_numpy()
    right = (done.labels.labels == truth)[answered].mean()
    terminal.write(
        "250 random forests voted on census records: does somebody earn over 50,000 dollars?\n"
        f"The demo did the same as this command in {public_name(place)}:\n\n"
        f"  pate aggregate {votes.name} --target-epsilon {_TARGET} --output {labels.name}\n\n"
    )
    kept = [f"{votes.name} (if these were your votes)"]
    told = summary_of(
        done.report,
        publish=[labels.name, report.name],
        secret=kept,
        records=[spent.name],
        rows=len(done.labels),
    )
    terminal.print_words([told])
    terminal.write(
        f"\n{right:.0%} of the labels are right. Next: {_PACKAGE / 'docs' / 'tutorial.md'}\n"
    )


def _sample(name: str) -> Path:
    """Return the path of sample votes: in the installed package, or in the source repository."""
    installed = _PACKAGE / "sample_votes" / name
    return installed if installed.exists() else _PACKAGE.parent / "sample_votes" / name
