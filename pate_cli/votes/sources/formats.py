"""Telling the format of a file by its first bytes, and refusing what is never opened."""

from __future__ import annotations

import codecs
import enum
import re
from pathlib import PurePath
from typing import Any, NoReturn

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError

HEAD = 1 << 12
"""Bytes that tell a format."""


class Format(enum.Enum):
    """What a file may be. The first two are read where they are, others turned into them."""

    NPY = "NPY"
    PARQUET = "Parquet"
    CSV = "CSV"
    JSONL = "JSONL"
    ARROW = "Arrow"
    ZIP = "ZIP"
    GZIP = "gzip"
    ZSTD = "zstd"
    BZIP2 = "bzip2"


@dataclass(frozen=True)
class SourceFile:
    """One file: a local path, or a path on a pyarrow filesystem; `name` is for messages."""

    name: str
    path: str
    filesystem: Any = None


def damaged(name: str, kind: Format, error: BaseException) -> VoteError:
    """What is wrong with a file that pyarrow cannot read; its own words might quote the votes."""
    if isinstance(error, NotImplementedError):
        return VoteError(
            f"{name}: the {kind.value} file has a column of a type that cannot be read, or is "
            "damaged; store whole numbers as integers of 64 bits or fewer"
        )
    return VoteError(f"{name}: the {kind.value} file is truncated or damaged")


_MAGIC = {
    b"\x93NUMPY": Format.NPY,
    b"PAR1": Format.PARQUET,
    b"ARROW1": Format.ARROW,
    b"\xff\xff\xff\xff": Format.ARROW,  # a stream, which begins with a message
    b"PK\x03\x04": Format.ZIP,
    b"PK\x05\x06": Format.ZIP,  # with nothing in it
    b"\x1f\x8b": Format.GZIP,
    b"\x28\xb5\x2f\xfd": Format.ZSTD,
    b"BZh": Format.BZIP2,
}
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BINARIES = (Format.PARQUET, Format.ARROW)
_SUFFIXES = {
    ".parquet": Format.PARQUET,
    ".parq": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".csv": Format.CSV,
    ".tsv": Format.CSV,
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".arrow": Format.ARROW,
    ".feather": Format.ARROW,
    ".ipc": Format.ARROW,
}
_NO_TEXT = {".npy", ".npz", *(end for end, kind in _SUFFIXES.items() if kind in _BINARIES)}
_PACKED = re.compile(r"\.(gz|zst|bz2)$", re.IGNORECASE)
_PICKLES = {".pkl", ".pickle", ".joblib", ".pt", ".pth"}
_BLANK = b" \t\r\n"
# Control characters that no text has.
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def plain_suffix(name: str) -> str:
    """The suffix of a name, in small letters, without that of a compression."""
    return PurePath(_PACKED.sub("", name)).suffix.lower()


def suffix_format(name: str) -> Format | None:
    """The format of tables that the suffix of a name speaks of, if it does."""
    return _SUFFIXES.get(plain_suffix(name))


def format_of(start: bytes, name: str) -> Format:
    """The format of the file `name` that begins with `start`, of HEAD bytes unless it ends before.

    Raises:
        VoteError: an empty file, one that is never opened, or none of these formats.
    """
    if not start:
        raise VoteError(f"{name}: the file is empty (0 bytes)")
    for magic, kind in _MAGIC.items():
        if start.startswith(magic):
            return kind
    if is_utf16(start):
        start = codecs.getincrementaldecoder("utf-16")("replace").decode(start).encode()
    if start.startswith(_OLD_WORKBOOK):
        refuse_workbook(name)
    if start.startswith(b"FEA1"):
        raise VoteError(
            f"{name}: is Feather version 1; read it once and write it anew "
            "(pyarrow.feather.write_feather)"
        )
    if start.startswith(b"\x80") or plain_suffix(name) in _PICKLES:
        refuse_closed(name)
    text = start.removeprefix(codecs.BOM_UTF8)
    if plain_suffix(name) in _NO_TEXT or _BINARY.search(text):
        raise VoteError(
            f"{name}: is none of NPY, NPZ, Parquet, Arrow, CSV and JSONL; convert it to one of them"
        )
    if suffix_format(name) is Format.JSONL or text.lstrip(_BLANK)[:1] in (b"{", b"["):
        return Format.JSONL
    return Format.CSV


def is_utf16(start: bytes) -> bool:
    """Whether a text begins with the mark of UTF-16."""
    return start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def refuse_workbook(name: str) -> NoReturn:
    """VoteError for the file of a spreadsheet."""
    raise VoteError(f"{name}: is the workbook of a spreadsheet; save the sheet as CSV UTF-8")


def refuse_closed(name: str, *, torch: bool = False) -> NoReturn:
    """VoteError for a pickle, or an archive of torch around one, with the line that converts it."""
    path = PurePath(name)
    suffix = path.suffix.lower()
    file, target = path.name, "votes.npy"
    if suffix in _PICKLES:
        target = path.with_suffix(".npy").name
    if torch or suffix in (".pt", ".pth"):
        loaded = f"torch, numpy; array = torch.load({file!r}, weights_only=True).numpy()"
    elif suffix == ".joblib":
        loaded = f"joblib, numpy; array = joblib.load({file!r})"
    else:
        loaded = f"numpy; array = numpy.load({file!r}, allow_pickle=True)"
    raise VoteError(
        f"{name}: is a pickle, which can run code and is never opened; only if you trust it: "
        f'python -c "import {loaded}; numpy.save({target!r}, array)"'
    )
