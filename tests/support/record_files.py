"""Record files as they would be, had their runs been entered one after the other."""

import json
import shutil
import tempfile
from pathlib import Path

from pate_cli.disclosure.entry import state_folder
from pate_cli.disclosure.record import KIND
from pate_cli.files import journal
from pate_cli.files.document import encoded


def written(path, record):
    """Write a record in the place of whatever is there."""
    return journal_of(path, [{"enter": encoded(run)} for run in record.runs])


def forget():
    """Let the user's state directory know of no record."""
    shutil.rmtree(state_folder() / "seen", ignore_errors=True)


def unlink(path):
    """Remove a record, if it is there, as if it had never been."""
    Path(path).unlink(missing_ok=True)
    forget()


def journal_of(path, events):
    """Write a journal of such lines in the place of whatever is there, whatever they say."""
    forget()
    content, chain = b"", ""
    for event in ({"kind": KIND, "version": 1}, *events):
        text = json.dumps(event, separators=(",", ":")).encode()[:-1]
        chain = journal._hash(chain, text)
        content += text + journal._tail(chain)
    Path(path).write_bytes(content)
    return path


def content(record):
    """The bytes of a record file."""
    with tempfile.TemporaryDirectory() as folder:
        return Path(written(Path(folder, "r.json"), record)).read_bytes()
