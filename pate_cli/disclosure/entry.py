"""How pate finds the record of a run's teachers, and writes to it the run and how the run ended.

A record lies beside its votes unless the user names another record. In the user's state folder,
`pate` keeps a note on each record: the record's path, its number of lines and their hash, all as
`pate` last saw them. With a note, a run finds the record of votes that were moved, copied or
linked. With a note, a run also notices if the record of its votes is gone, or was replaced by an
older copy. A note is a file of mode 0600; its name is a quick fingerprint of the votes,
or a hash of the record's path. Nothing public contains a hash of votes. Notes about records only
help users who forget that their votes have a record. If the state folder cannot be read or written,
runs go on without notes.

Votes have one record. If the user names another record, the named record takes over all runs of the
old record. A record whose runs were taken over names the new record, and accepts no further run.

A run enters the record before it uses its votes. The way a run ends may depend on the votes, or on
a release test whose outcome somebody has seen. If a failed run cost nothing, somebody could try it
again and again. A run is only removed from the record if the file of votes turned out to contain no
votes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import unquote, urlsplit

from pate_cli.core.errors import (
    LedgerError,
    OutputError,
    ParameterError,
    UsageError,
    VoteError,
    quoted,
)
from pate_cli.disclosure.ledger import check_neighbours
from pate_cli.disclosure.record import RecordFile, Sighting, SpendRecord, queries_in
from pate_cli.disclosure.runs import (
    Budget,
    Outcome,
    Run,
    Spent,
    fixed_late,
    named_where_disjoint,
    people_of,
    total_of,
)
from pate_cli.files.addresses import is_address, public_name, refuse_address
from pate_cli.files.document import Refusal, decoded, encoded
from pate_cli.files.journal import locked
from pate_cli.files.outputs import make_folder, writing
from pate_cli.files.protected import places_of

_ENSEMBLE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_BLOCK: Final = 1 << 16
_BLOCKS: Final = 16
_MOST_MEMBERS: Final = 1000
_LARGEST: Final = 1 << 16


@dataclass(frozen=True)
class RecordPlace:
    """The place of the record of some teachers, even if the record has no line yet.

    Attributes:
        file: the file of the record; None if a run has no record.
        earlier: records that are closed when a run enters `file`: earlier records of the votes,
            whose runs `file` takes over, and perhaps an empty file with the ensemble's name, which
            will only say that `file` is the record of this ensemble.
        votes: the name of the file, folder or pattern of files with the votes, without its path;
            None if the votes came from memory or standard input.
        named: whether the user named the record, or the ensemble.
        ensemble: the name of the ensemble of the run; None if the user named none.
        disjoint_from: ensembles of the record that the user declares disjoint from `ensemble`.
    """

    file: RecordFile | None = None
    earlier: tuple[RecordFile, ...] = ()
    votes: str | None = None
    named: bool = False
    ensemble: str | None = None
    disjoint_from: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        votes: Any,
        *,
        record: str | os.PathLike[str] | RecordPlace | bool | None,
        ensemble: str | None = None,
        disjoint_from: str | Sequence[str] = (),
        seeded: bool = False,
        accept_lost: bool = False,
    ) -> Self | RecordPlace:
        """Find the record of votes: the one that the user named, or else the one beside the votes.

        If the votes were moved, copied or linked, their record is where pate last saw it.

        Args:
            votes: a path, an address, a pattern of file names, or votes in memory; a file or folder
                on disk has its record beside it.
            record: the file of the record; False for no record.
            ensemble: a name for the teachers; the record is then a file with this name in the
                user's state folder.
            disjoint_from: names of other ensembles that share no person with `ensemble`. The run
                enters the record of the first ensemble in `disjoint_from`. The record of the first
                ensemble in `disjoint_from` takes over all runs in the records of `ensemble` and of
                the other ensembles in `disjoint_from`.
            seeded: whether the noise has a seed; a run with a seed is a test, and enters a record
                only if the user names the record.
            accept_lost: whether to begin a new record if the record of the votes is gone.

        Raises:
            UsageError: the record is named in two ways, or the name is not allowed.
            LedgerError: the record is damaged, gone or rolled back; or the votes have several
                records, and the user named none.
        """
        if isinstance(record, RecordPlace):
            return record
        name, path = _on_disk(votes)
        if record is False or seeded:
            path = None  # The record of the votes must not change.
        # A pattern of file names has no record beside it, but notes may lead from its files to one.
        known = [] if path is None or not path.exists() else [record_beside(path)]
        keys = () if path is None else keys_of_votes(path)
        own = told_record(record, ensemble)
        if not isinstance(disjoint_from, Iterable):
            raise ParameterError(
                f"`disjoint_from` must be names of ensembles, got {quoted(disjoint_from)}"
            )
        others = (disjoint_from,) if isinstance(disjoint_from, str) else tuple(disjoint_from)
        if ensemble in others:
            raise UsageError("`disjoint_from` must name other ensembles than `ensemble`")
        # The record of the first of these ensembles takes over the records of the others.
        told = [path for path in (*map(_ensemble_file, others), own) if path is not None]
        first, places = next(iter(told), None), [*told[1:], *known]
        found = cls.found(first, places, keys=keys, votes=name, accept_lost=accept_lost)
        before = [name for one in recall(keys) for name in (one.ensemble, *one.earlier)]
        if found.file is not None:
            names = dict.fromkeys(name for name in (ensemble, *before) if name is not None)
            found.file.ensembles = tuple(names)
            _refuse_same_votes(before, found.record.runs, ensemble, others)
        earlier = found.earlier
        if others and own is not None and (signpost := RecordFile(own)).empty:
            earlier += (signpost,)
        return replace(found, earlier=earlier, ensemble=ensemble, disjoint_from=others)

    @classmethod
    def found(
        cls,
        told: Path | None,
        known: Sequence[Path] = (),
        *,
        keys: Sequence[str] = (),
        votes: str | None = None,
        together: bool = False,
        accept_lost: bool = False,
    ) -> Self:
        """Find the record of votes, in the given files or where pate last saw their record.

        Args:
            told: the file of the record that the user named; None if the user named none.
            known: other files that may be records of these teachers. If there is no record yet, and
                the user named none, the first file in `known` becomes the new record.
            keys: fingerprints of the votes. SECRET.
            votes: the name of the file, folder or pattern of files with the votes, without its
                path; None if the votes came from memory or standard input.
            together: whether the user states that all records that are found are of the same
                teachers, so that one record may take over the runs of the other records.
            accept_lost: whether to begin a new record if an old record is gone.

        Raises:
            LedgerError: a record is damaged, gone or rolled back; or there are several records and
                the user named none; or another record took over the runs of a record, and this
                other record was not found.
        """
        seen = list(recall(keys))
        named = [*([] if told is None else [told]), *known]
        places = [*named, *(Path(one.record) for one in seen)]
        for path in places:  # The list grows: a record that was taken over leads to the next one.
            more = list(recall([key_of_record(path)]))
            seen += more
            places += [other for one in more if (other := Path(one.record)) not in places]
        files = _files(places)
        there = [file for file in files if file.goes_on_in is None and not file.empty]
        chosen = next(iter(files), None)
        if told is None:
            chosen = _longest(there, first=together) or chosen
        if not accept_lost:
            _refuse_lost(seen, files, chosen)
        earlier = tuple(file for file in there if file is not chosen)
        if chosen is not None:
            chosen.keys = (*keys, *(key_of_record(file.path) for file in earlier))
        return cls(chosen, earlier, votes, named=told is not None)

    @property
    def files(self) -> tuple[RecordFile, ...]:
        """Return a tuple with the file of the record; an empty tuple without a record."""
        return () if self.file is None else (self.file,)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Return the paths of the record and of all records that it takes over.

        No output of a run may replace a file at one of the returned paths.
        """
        return tuple(file.path for file in (*self.files, *self.earlier))

    @property
    def record(self) -> SpendRecord:
        """Return the runs of the record, and of all records that it takes over."""
        known = (file.record for file in (*self.files, *self.earlier))
        return functools.reduce(operator.or_, known, SpendRecord())

    @property
    def joined(self) -> str | None:
        """Return a phrase that names the record of a run, and the records whose runs it takes over.

        There is a phrase if the record takes over the runs of other records, or if the run joins an
        old record that the user did not name. The result is None for a run without a record, and
        for a record that takes over no runs and is new or was named by the user.
        """
        if self.file is None:
            return None
        if taken := " and ".join(file.name for file in self.earlier if not file.empty):
            return (
                f"the record {self.file.name} takes over the runs of {taken}, which takes no "
                "further runs"
            )
        if self.named or self.file.empty:
            return None
        return f"this run joins the record {self.file.name}"

    def twin(self, teachers: int) -> str | None:
        """Return a warning if a new record has as many teachers as another record in its folder.

        Two records of the same teachers would each have only a part of the cost.

        Args:
            teachers: the number of teachers of the new record.

        Returns:
            One line, which says how all runs on the same teachers can share one record. None if the
            user named the record, if the record exists already, or if no record beside it has the
            same number of teachers.
        """
        if self.named or self.file is None or not self.file.empty:
            return None
        path = self.file.path
        for other in sorted({*path.parent.glob("*.spent.json")} - {path}):
            with contextlib.suppress(LedgerError):
                told = (run.settings for run in SpendRecord.read(other).runs)
                if teachers in (each and each.mechanism.get("teachers") for each in told):
                    return (
                        f"{path.name} begins a new record, but the record {other.name} beside "
                        f"it also has {teachers} teachers. If both records are of the same "
                        "teachers, give the same `ensemble` in all runs, so that they share "
                        "one record"
                    )
        return None


@contextlib.contextmanager
def held(files: Sequence[RecordFile]) -> Iterator[None]:
    """Lock records while the block runs, after reading the lines that other processes appended.

    At the end, pate notes the number of lines of each record, and their hash. Later runs compare
    each record with the note on the record, and so notice lost lines.

    Raises:
        LedgerError: a record has lost lines that were read before.
        OutputError: no lock is available, or a record cannot be written.
    """
    with locked([file.path for file in files]):
        for file in files:
            file.catch_up()
        yield
        for file in reversed(files):  # The first of `files` takes over the others, so it is last.
            if not file.empty:
                remember([key_of_record(file.path), *file.keys], file.sighting)


def told_record(record: str | os.PathLike[str] | bool | None, ensemble: str | None) -> Path | None:
    """Return the file of the record that `record` or `ensemble` names; None if no file is named.

    Raises:
        ParameterError: `record` is no path.
        UsageError: `record` and `ensemble` are both given, `record` is an address, or `ensemble` is
            not an allowed name.
    """
    if record is not None and ensemble is not None:
        raise UsageError("`record` and `ensemble` both name the record; give one of them")
    if isinstance(record, str | os.PathLike):
        refuse_address(record, "a record needs a lock, which only local files have")
        return Path(record)
    if record is not None and record is not False:
        raise ParameterError(f"`record` must be a path or False (no record), got {quoted(record)}")
    return None if ensemble is None else _ensemble_file(ensemble)


def _ensemble_file(name: str) -> Path:
    """Return the file of the record of an ensemble.

    If another record took over all runs of the file with the ensemble's name, the result is the
    file of the other record.
    """
    if not isinstance(name, str) or not _ENSEMBLE.fullmatch(name):
        raise UsageError(
            f"{quoted(name)} is not the name of an ensemble: a name has up to 100 letters, "
            "digits, '.', '_' and '-', and begins with a letter or a digit"
        )
    return _heir(RecordFile(state_folder() / f"{name}.spent.json")).path


def _heir(file: RecordFile) -> RecordFile:
    """Return the record that has the runs of `file` now; `file` itself if no record took them."""
    passed = {file.path}
    while file.successor is not None and file.successor not in passed:
        other = RecordFile(file.successor)
        if other.empty or file.record.missing_in(other.record):  # `other` did not take over `file`.
            break
        file = other
        passed.add(file.path)
    return file


def record_beside(votes: str | os.PathLike[str]) -> Path:
    """Return the path of the record beside a file or folder of votes: `<name>.spent.json`.

    Links are followed, so that all names of one file have the same record.
    """
    at = Path(os.path.realpath(votes))
    return at.parent / f"{at.name}.spent.json"


def _files(places: Sequence[Path]) -> list[RecordFile]:
    """Return the record at the first path, and the records at those other paths that exist.

    If two paths lead to the same file, it is returned once.
    """
    files: list[RecordFile] = []
    known = set[Any]()
    for path in places:
        at = places_of(path)
        if not files or (at and known.isdisjoint(at) and os.access(path, os.F_OK)):
            files.append(RecordFile(path))
            known |= at
    return files


def _refuse_lost(
    seen: Sequence[Sighting], files: Sequence[RecordFile], chosen: RecordFile | None
) -> None:
    """Raise LedgerError if a record lost lines, or if its runs moved to a record not in `files`."""
    for one in seen:
        if not any(file.tells_of(one) for file in files):
            raise LedgerError(
                f"the record {public_name(one.record)} is gone, or lost some of the {one.lines} "
                "lines that it had; restore it from a copy. To begin a new record, as if nothing "
                "had been spent, give `accept_lost_record`"
            )
    for file in files:
        others = {None, *(other.path for other in files if other is not file)}
        if file is not chosen and file.successor not in others:
            file.refuse_run()


def _refuse_same_votes(
    before: Iterable[str | None],
    runs: Sequence[Run],
    ensemble: str | None,
    others: Sequence[str],
) -> None:
    """Raise UsageError if the votes belong to an ensemble that the new run declares disjoint.

    Args:
        before: the ensembles of earlier runs on the same votes, as far as they are known.
        runs: all runs of the record.
        ensemble: the ensemble of the new run.
        others: ensembles that the new run declares disjoint from `ensemble`.
    """
    if ensemble is None:
        return
    known, people = {run.ensemble for run in runs} - {None}, people_of(runs, ensemble, others)
    for name in before:
        if name in known and not any(name in each for each in people):
            raise UsageError(
                f"these votes already ran as ensemble {name}, which is declared disjoint from "
                f"{ensemble}; the same votes cannot belong to both ensembles, so give `ensemble` "
                f"{name}"
            )


def _longest(files: Sequence[RecordFile], *, first: bool) -> RecordFile | None:
    """Return the record that contains all lines of the other records; None without any record.

    If no record contains all lines of the other records, return the first record if `first` is
    True, else raise LedgerError.
    """
    longest = max(files, key=lambda file: file.sighting.lines, default=None)
    for file in files:
        if longest is not None and not longest.tells_of(file.sighting):
            if first:
                return files[0]
            raise LedgerError(
                f"{longest.name} and {file.name} are two records of these teachers; name the "
                "record to keep, with `record` or `ensemble`: the record that you name then has "
                "the runs of both"
            )
    return longest


def _on_disk(votes: Any) -> tuple[str | None, Path | None]:
    """Return a name of votes for messages and records, and their path if they are on disk."""
    if not isinstance(votes, str | os.PathLike) or os.fspath(votes) == "-":
        return None, None
    name = os.fspath(votes)
    shown = re.split(r"[/\\]", public_name(name).rstrip("/\\"))[-1] or None
    path = unquote(urlsplit(name).path) if name.startswith("file://") else name
    try:
        found = [] if is_address(path) else _named_by(Path(path))
        there = any(each.is_file() or each.is_dir() for each in found)
    except (OSError, ValueError):
        there = False
    return shown, Path(path) if there else None


# --- records as the user last saw them -----------------------------------------------------------


def state_folder() -> Path:
    """Return the user's own folder for files that pate keeps.

    The folder is `$PATE_HOME`, or if this variable is not set, the folder `pate` in
    `$XDG_STATE_HOME`, in `%LOCALAPPDATA%` or in `~/.local/state`.

    Raises:
        UsageError: there is no home folder.
    """
    if own := os.environ.get("PATE_HOME"):
        return Path(own)
    home = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        return (Path(home) if home else Path.home() / ".local" / "state") / "pate"
    except RuntimeError:
        raise UsageError(
            "there is no home folder in which pate could keep a record; name a file with `record`"
        ) from None


def keys_of_votes(path: Path) -> tuple[str, ...]:
    """Return fingerprints of a file of votes, or of all files of a folder or pattern of names.

    A fingerprint is a hash of the size and some blocks of a file, or of all blocks of a small file.
    The result is empty if the files cannot be read.
    """
    try:
        inside = (sorted(at.iterdir()) if at.is_dir() else [at] for at in _named_by(path))
        files = [*chain.from_iterable(inside)][:_MOST_MEMBERS]
        return tuple(_fingerprint(each) for each in files if each.is_file())
    except OSError:
        return ()


def _named_by(path: Path) -> list[Path]:
    """Return the path if it exists; else all files and folders that match it as a pattern."""
    if path.exists():
        return [path]
    return sorted(Path(path.anchor).glob(os.fspath(path.relative_to(path.anchor))))


def key_of_record(path: Path) -> str:
    """Return a hash of the path of a record, under which its note is stored."""
    return hashlib.sha256(b"record " + os.fsencode(os.path.realpath(path))).hexdigest()


def recall(keys: Iterable[str]) -> Iterator[Sighting]:
    """Yield, for each key, the note on a record that is stored under the key, if there is one.

    A note has a record's path, number of lines and hash. Its key comes from `keys_of_votes` or
    `key_of_record`.
    """
    with contextlib.suppress(UsageError):
        folder = state_folder() / "seen"
        for key in keys:
            with contextlib.suppress(OSError, ValueError, RecursionError, LedgerError):
                with (folder / key).open("rb") as file:
                    data = json.loads(file.read(_LARGEST))
                yield decoded(Sighting, data, Refusal(LedgerError, "no sighting: "))


def remember(keys: Iterable[str], seen: Sighting) -> None:
    """Store `seen`, a note on a record, under each key, in place of any older note."""
    with contextlib.suppress(OSError, UsageError):
        folder = state_folder() / "seen"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for key in keys:
            draft = folder / f"{key}.{os.getpid()}"
            draft.touch(0o600)
            draft.write_text(json.dumps(encoded(seen)))
            draft.replace(folder / key)


def _fingerprint(path: Path) -> str:
    """Return a hash of the size of a file, its first and last block, and some blocks between."""
    size = path.stat().st_size
    step = max(_BLOCK, (size - _BLOCK) // (_BLOCKS - 1))
    digest = hashlib.sha256(b"votes %d " % size)
    with path.open("rb") as file:
        for at in (*range(0, size, step), max(size - _BLOCK, 0)):
            file.seek(at)
            digest.update(file.read(_BLOCK))
    return digest.hexdigest()


class Entry:
    """The entry of one run in its record; without a record, nothing is written.

    If a run stops before its outcome is in the record, the run stays pending in the record, and its
    full cost counts.
    """

    def __init__(
        self,
        place: RecordPlace,
        run: Run | None,
        *,
        budget: Budget | None,
        beside: SpendRecord | None = None,
        refuse: Callable[[SpendRecord], None] = lambda record: None,
    ) -> None:
        """Prepare the entry, and refuse a run that the record or the budget does not allow.

        A run with the id of an earlier run is the earlier run, started again.

        Args:
            place: the place of the record.
            run: the run to enter; None if only the runs in `beside` are entered.
            budget: the most that all runs of the record may cost together; None without a limit.
            beside: other known runs, which also enter the record.
            refuse: a function that raises an error if the content of the record forbids the run.

        Raises:
            UnreachableError: earlier runs and this run together cost more than `budget`.
            UsageError: there is a budget, but no record that has the cost of earlier runs; or the
                record has a Rényi filter, and would take over runs that began without this filter.
            LedgerError: runs in the record have other `teachers_per_record` or `groups` than this
                run, so that they have no total cost; or the record is closed because another record
                took over its runs.
        """
        if budget is not None and place.file is None:
            raise UsageError(
                "`budget` needs a record of all runs; name the record with `ensemble` or `record`"
            )
        self._place, self._budget, self._refuse = place, budget, refuse
        told: dict[str, Any] = {"ensemble": place.ensemble, "disjoint_from": place.disjoint_from}
        self._run = run and replace(run, budget=budget, votes=place.votes, **told)
        self._beside, self._fresh = beside or SpendRecord(), False
        self._check()

    def enter(self) -> None:
        """Write the run to the record on disk.

        If the record already has this run with an outcome, the outcome stays. The runs of earlier
        records of the votes are entered, too; the earlier records then accept no further run. If
        the record has less of a run than an earlier record or an input has, the rest is added.

        Raises:
            UnreachableError: other processes have spent too much of the budget meanwhile.
            OutputError: the record cannot be written; the run has drawn nothing.
        """
        file, earlier = self._place.file, self._place.earlier
        if file is None:
            return
        folder = Path(os.path.realpath(state_folder()))
        if file.path.parent == folder:  # The folder of a record elsewhere must exist.
            with writing(str(folder)):
                make_folder(folder, 0o700)
        try:
            with held([file, *earlier]):
                self._check()
                record = self.record
                file.amend(*record.runs)
                new = [*record.missing_in(file.record)]
                if new:
                    own = None if self._run is None else self._run.id
                    self._fresh = new[-1].id == own
                    if new[-1].total_epsilon is None:
                        new[-1] = new[-1].totalled(total_of(record.runs))
                    # A session of an earlier record cannot go on in this record, which does not
                    # contain its queries. So its entry has no hash by which a session is found.
                    file.enter(
                        *(run if run.id == own else replace(run, session=None) for run in new)
                    )
                for other in earlier:
                    other.go_on_in(file)
        except BaseException as error:
            if not self._noted(error) and isinstance(error, OutputError):
                error.add_note(
                    "pate keeps the record of all runs in this file; name another file with "
                    "`record`"
                )
            raise

    @contextlib.contextmanager
    def standing(self, *, until_read: bool) -> Iterator[None]:
        """Add a note to any error that ends the block: the record has the cost of the run.

        With `until_read`, the run is removed from the record if the file of votes turns out to
        contain no votes, because nobody can have learnt anything from the run.
        """
        try:
            yield
        except BaseException as error:
            if not (until_read and isinstance(error, VoteError) and self._withdrawn()):
                self._noted(error)
            raise

    def settle(self, outcome: Outcome, *, answers: int | None = None) -> Spent | None:
        """Write the outcome to the record; return the cost of all runs, or None without a record.

        If the record already has an outcome of this run, this first outcome stays.

        Raises:
            OutputError: the record cannot be written; the run stays pending in the record.
        """
        file = self._place.file
        self._run = self._run and replace(self._run, outcome=outcome, answers=answers)
        if file is None:
            return None
        with held([file]):
            spent = Spent.of(self.record.runs)
            ended = self._run and self._run.totalled(spent)
            if ended is not None:
                file.settle(ended)
        # Another record may have taken over the run before it ended. If that record cannot be
        # written, the run stays pending in it, and its full cost counts.
        with contextlib.suppress(LedgerError, OutputError, OSError):
            if ended is not None and (heir := _heir(file)) is not file:
                with held([heir]):
                    heir.settle(ended)
        return replace(spent, runs=named_where_disjoint(self.record.runs))

    @property
    def record(self) -> SpendRecord:
        """Return the runs of the record as it was last read, the runs in `beside`, and this run."""
        own = () if self._run is None else (self._run,)
        return self._place.record | self._beside | SpendRecord(own)

    def _check(self) -> None:
        """Raise an error if the content of the record forbids the run."""
        file, own = self._place.file, self._run
        if file is not None:
            file.refuse_run()
        self._refuse(self._place.record | self._beside)
        runs = self.record.runs
        latest = {run.id: run for run in runs}
        for known, run in ((one, run) for one in self._place.files for run in one.record.runs):
            # A copy whose session cannot go on costs the same, however many queries it lacks.
            if run.session is not None and queries_in(latest[run.id]) > queries_in(run):
                raise LedgerError(
                    f"{known.name} lacks queries of session {run.id} that another record or report "
                    "contains; give the record that contains all queries of the session as "
                    "`record`"
                )
        check_neighbours(run.settings for run in runs if run.settings is not None)
        foreign = self._beside.missing_in(self._place.record)
        together = [one.record.runs for one in (*self._place.files, *self._place.earlier)]
        together += [(run,) for run in foreign if run.external is None]
        if file is not None and fixed_late(together):
            raise UsageError(
                f"`budget_order` must be fixed before the first run, but {file.name} would take "
                "over runs with another `budget_order`, or without `budget_order`; give the record "
                "of these runs as `record`, or no record"
            )
        for name in sorted({*self._place.disjoint_from} - {run.ensemble for run in runs}):
            raise UsageError(
                f"`disjoint_from` names {name}, which has no run in the record; correct the name, "
                "or leave it out"
            )
        if self._budget is not None and file is not None:
            others = [run for run in runs if own is None or run.id != own.id]
            self._budget.refuse(others, [] if own is None else [own], record=file.name)

    def _noted(self, error: BaseException) -> bool:
        """Return whether the record has the run.

        If the record has the run, add a note to `error`, which states the cost of the run.
        """
        file, run = self._place.file, self._run
        if file is None or run is None:
            return False
        # The change of the record that failed may have taken place nevertheless.
        with contextlib.suppress(OSError, OutputError, LedgerError):
            run = SpendRecord.read(file.path).known(run.id)
        if run is not None:
            counted = f"the run at epsilon {run.counted:g} stays in {file.name}"
            error.add_note(f"{counted}, and its cost counts")
        return run is not None

    def _withdrawn(self) -> bool:
        """Remove this run from the record if it is still pending; return True if it is gone."""
        file, own = self._place.file, self._run
        if file is None or own is None or not self._fresh:
            return file is None
        with contextlib.suppress(OSError, OutputError, LedgerError), held([file]):
            known = file.record.known(own.id)
            # Another process may have continued the same run and finished it.
            if known is not None and known.outcome is Outcome.PENDING:
                file.strike(known)
                return True
        return False
