from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from pate_cli.core.errors import VoteError
from pate_cli.votes import VoteFile, open_votes


@pytest.fixture(scope="session")
def read() -> Callable[..., tuple[VoteFile, list[Any], NDArray[np.int64]]]:
    """Open and read everything: the file, all ids and all counts; batches follow each other."""

    def read_all(source: Any, **options: Any) -> tuple[VoteFile, list[Any], NDArray[np.int64]]:
        with open_votes(source, **options) as votes:
            batches = list(votes.batches())
        assert all(b.counts.dtype == np.int64 and b.counts.flags.c_contiguous for b in batches)
        ends = np.cumsum([0, *(len(b.counts) for b in batches)]).tolist()
        assert [b.first_row for b in batches] == ends[:-1]
        assert ends[-1] == votes.queries
        ids = [query for b in batches for query in b.ids]
        return votes, ids, np.concatenate([b.counts for b in batches])

    return read_all


@pytest.fixture(scope="session")
def drain(read: Callable[..., Any]) -> Callable[..., NDArray[np.int64]]:
    """Open, read everything, return all counts stacked."""
    return lambda source, **options: read(source, **options)[2]


@pytest.fixture
def refusal(drain: Callable[..., Any], tmp_path: Path) -> Callable[..., str]:
    """Return the message a source is refused with, folders cut off; it must be one line."""

    def message(source: Any, **options: Any) -> str:
        with pytest.raises(VoteError) as caught:
            drain(source, **options)
        assert caught.value.exit_code == 3
        text = str(caught.value)
        assert "\n" not in text
        return text.replace(f"{tmp_path}/", "")

    return message


@pytest.fixture
def npy(tmp_path: Path) -> Callable[..., Path]:
    def save(values: Any, name: str = "v.npy") -> Path:
        path = tmp_path / name
        np.save(path, np.asarray(values))
        return path

    return save


@pytest.fixture
def parquet(tmp_path: Path) -> Callable[..., Path]:
    def save(columns: dict[str, Any] | pa.Table, name: str = "v.parquet", **options: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        table = columns if isinstance(columns, pa.Table) else pa.table(columns)
        pq.write_table(table, path, **options)
        return path

    return save


@pytest.fixture
def histograms() -> NDArray[np.int64]:
    """40 queries, 25 teachers, 4 classes: enough to be recognised as counts."""
    return np.random.default_rng(5).multinomial(25, [0.1, 0.2, 0.3, 0.4], size=40)
