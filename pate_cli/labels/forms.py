"""Rows of labels where a query has several: a list of them a query, or one of them a row."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import UsageError
from pate_cli.core.formulas import as_text, refuse_escapes
from pate_cli.core.label_set import UNDECIDED, LabelSet
from pate_cli.core.words import LabelFormat, LabelsAs

_NEEDS_QUOTES: Final = re.compile(r'[",\r\n]')


def json_ids(ids: list[Any]) -> list[str]:
    """Ids as JSON writes them."""
    # A line feed inside a text is escaped, so that a bare one can stand between the texts.
    return json.dumps(ids, separators=("\n", ":"))[1:-1].split("\n")


def csv_ids(ids: list[Any]) -> Iterable[str]:
    """Ids as fields of CSV."""
    if isinstance(ids[0], int):
        return map(str, ids)
    return map(csv_field, ids) if _NEEDS_QUOTES.search("".join(ids)) else ids


def csv_field(text: str) -> str:
    """One field by RFC 4180, section 2, rules 5 to 7."""
    if _NEEDS_QUOTES.search(text):
        return '"' + text.replace('"', '""') + '"'
    return text


def text_ids(ids: list[Any]) -> Iterable[str]:
    """The same, no formulas among them; numbers are none."""
    return csv_ids(ids if isinstance(ids[0], int) else list(map(as_text, ids)))


def text_field(text: str) -> str:
    """One field that is no formula."""
    return csv_field(as_text(text))


@dataclass(frozen=True)
class SetForm(ABC):
    """What the forms share.

    Attributes:
        label_set: the labels of a query.
        sources: who may have given a label, by code.
        escaped: whether CSV holds no formulas.
    """

    label_set: LabelSet
    sources: tuple[str, ...]
    escaped: bool = False

    @abstractmethod
    def fields(self) -> list[Any]:
        """The fields of a schema after the id."""

    def ids(self, ids: NDArray[Any]) -> NDArray[Any]:
        """The ids of rows, given those of queries."""
        return ids

    @abstractmethod
    def arrays(self, decided: NDArray[np.int8], codes: NDArray[np.uint8]) -> list[Any]:
        """Arrow arrays of those fields; what is said of queries, and by whom [queries, labels]."""

    @abstractmethod
    def text(
        self,
        ids: NDArray[Any],
        decided: NDArray[np.int8],
        codes: NDArray[np.uint8],
        label_format: LabelFormat,
    ) -> str:
        """The same as lines of CSV or JSONL."""

    def header(self, label_format: LabelFormat) -> bytes:
        """What a file of lines begins with."""
        del label_format
        return b""

    @property
    def _title_type(self) -> Any:
        import pyarrow as pa

        return pa.int32() if self.label_set.names is None else pa.string()

    def _titles(self, places: NDArray[Any]) -> Any:
        """An Arrow array of what the labels at these places are called."""
        import pyarrow as pa

        if self.label_set.names is None:
            return pa.array(places, pa.int32())
        return pa.array(self.label_set.names, pa.string()).take(pa.array(places, pa.int64()))


@dataclass(frozen=True)
class ListsForm(SetForm):
    """A row a query: `labels`, those that are given, and `unanswered`, those nothing is said of."""

    def fields(self) -> list[Any]:
        """See SetForm."""
        import pyarrow as pa

        kind = pa.list_(pa.field("item", self._title_type, nullable=False))
        return [pa.field(name, kind, nullable=False) for name in ("labels", "unanswered")]

    def arrays(self, decided: NDArray[np.int8], codes: NDArray[np.uint8]) -> list[Any]:
        """See SetForm."""
        import pyarrow as pa

        del codes
        found = []
        for field, chosen in zip(self.fields(), (decided == 1, decided == UNDECIDED), strict=True):
            ends = np.concatenate([[0], np.cumsum(np.count_nonzero(chosen, axis=1))])
            lists = pa.ListArray.from_arrays(
                pa.array(ends, pa.int32()), self._titles(np.nonzero(chosen)[1])
            )
            found.append(lists.cast(field.type))
        return found

    def text(
        self,
        ids: NDArray[Any],
        decided: NDArray[np.int8],
        codes: NDArray[np.uint8],
        label_format: LabelFormat,
    ) -> str:
        """See SetForm."""
        del codes, label_format
        titles = self.label_set.titles
        sets, places = np.unique(decided, axis=0, return_inverse=True)
        behind = np.empty(len(sets), dtype=object)
        for place, each in enumerate(sets.tolist()):
            given = [title for title, said in zip(titles, each, strict=True) if said == 1]
            silent = [title for title, said in zip(titles, each, strict=True) if said == UNDECIDED]
            parts = json.dumps({"labels": given, "unanswered": silent}, separators=(",", ":"))
            behind[place] = f",{parts[1:]}\n"
        pieces = ['{"query_id":'] * (3 * len(ids))
        pieces[1::3] = json_ids(ids.tolist())
        pieces[2::3] = behind[places.reshape(-1)].tolist()
        return "".join(pieces)


@dataclass(frozen=True)
class PairsForm(SetForm):
    """A row a query and label: `label`, `yes` (null where nothing is said) and `source`."""

    def fields(self) -> list[Any]:
        """See SetForm."""
        import pyarrow as pa

        return [
            pa.field("label", self._title_type, nullable=False),
            pa.field("yes", pa.bool_(), nullable=True),
            pa.field("source", pa.string(), nullable=False),
        ]

    def ids(self, ids: NDArray[Any]) -> NDArray[Any]:
        """See SetForm."""
        return np.repeat(ids, self.label_set.count)

    def arrays(self, decided: NDArray[np.int8], codes: NDArray[np.uint8]) -> list[Any]:
        """See SetForm."""
        import pyarrow as pa

        said = decided.reshape(-1)
        sources = pa.DictionaryArray.from_arrays(codes.reshape(-1), pa.array(self.sources))
        return [
            self._titles(np.tile(np.arange(self.label_set.count), len(decided))),
            pa.array(said == 1, mask=said == UNDECIDED),
            sources.dictionary_decode(),
        ]

    def header(self, label_format: LabelFormat) -> bytes:
        """See SetForm."""
        return b"query_id,label,yes,source\n" if label_format is LabelFormat.CSV else b""

    def text(
        self,
        ids: NDArray[Any],
        decided: NDArray[np.int8],
        codes: NDArray[np.uint8],
        label_format: LabelFormat,
    ) -> str:
        """See SetForm."""
        style = _ESCAPED if self.escaped else _STYLES[label_format]
        titles, sources = self.label_set.titles, self.sources
        # What stands behind the id is the same text for every row of one label, answer and source.
        shape = (self.label_set.count, 3, len(sources))
        columns = np.broadcast_to(np.arange(shape[0]), decided.shape)
        keys = np.ravel_multi_index((columns, decided + 1, codes), shape).reshape(-1)
        found, places = np.unique(keys, return_inverse=True)
        behind = np.empty(len(found), dtype=object)
        for place, key in enumerate(found.tolist()):
            label, said, code = np.unravel_index(key, shape)
            behind[place] = style.behind(titles[label], style.answers[said], sources[code])
        pieces = [style.before] * (3 * keys.size)
        pieces[1::3] = [each for each in style.ids(ids.tolist()) for _ in range(shape[0])]
        pieces[2::3] = behind[places.reshape(-1)].tolist()
        return "".join(pieces)


@dataclass(frozen=True)
class _PairStyle:
    """How a format writes a pair: an id, then everything behind it; answers are none, no, yes."""

    ids: Callable[[list[Any]], Iterable[str]]
    before: str
    answers: tuple[str, str, str]
    behind: Callable[[str | int, str, str], str]


def _csv_behind(title: str | int, answer: str, source: str) -> str:
    return f",{csv_field(str(title))},{answer},{source}\n"


def _escaped_behind(title: str | int, answer: str, source: str) -> str:
    return f",{text_field(str(title))},{answer},{source}\n"


def _json_behind(title: str | int, answer: str, source: str) -> str:
    return f',"label":{json.dumps(title)},"yes":{answer},"source":"{source}"}}\n'


_STYLES: Final[Mapping[LabelFormat, _PairStyle]] = {
    LabelFormat.CSV: _PairStyle(csv_ids, "", ("", "false", "true"), _csv_behind),
    LabelFormat.JSONL: _PairStyle(
        json_ids, '{"query_id":', ("null", "false", "true"), _json_behind
    ),
}


_ESCAPED: Final = _PairStyle(text_ids, "", ("", "false", "true"), _escaped_behind)


def check_form(
    label_format: LabelFormat,
    labels_as: LabelsAs | None,
    label_set: LabelSet | None,
    *,
    escaped: bool = False,
) -> None:
    """UsageError for lists in CSV, which has none, or for either word about single labels.

    And for formulas that are `escaped` in any other format, which has none.
    """
    if escaped:
        refuse_escapes(label_format)
    if label_set is None and labels_as is not None:
        raise UsageError("`labels_as` goes with several labels a query; these have one")
    if label_format is LabelFormat.CSV and labels_as is LabelsAs.LISTS:
        raise UsageError(
            f"CSV has no lists of labels; give `labels_as` {LabelsAs.PAIRS}, or write Parquet or "
            "JSONL"
        )


def form_of(
    label_format: LabelFormat,
    labels_as: LabelsAs | None,
    label_set: LabelSet | None,
    sources: tuple[str, ...],
    *,
    escaped: bool = False,
) -> SetForm | None:
    """The form of a file, None for single labels: lists, or pairs if asked for or in CSV.

    UsageError as `check_form`.
    """
    check_form(label_format, labels_as, label_set, escaped=escaped)
    if label_set is None:
        return None
    if labels_as is None:
        labels_as = LabelsAs.PAIRS if label_format is LabelFormat.CSV else LabelsAs.LISTS
    kind = ListsForm if labels_as is LabelsAs.LISTS else PairsForm
    return kind(label_set, sources, escaped)
