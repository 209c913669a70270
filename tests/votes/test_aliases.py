"""Aliases in memory and in files: texts that stand for names."""

from __future__ import annotations

import gzip
import json
import os
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pate_cli.core.errors import ParameterError, UsageError, VoteError
from pate_cli.votes import aliases, open_votes
from pate_cli.votes.aliases import aliases_of
from refusals import refusal

ALIASES = {"Katze": "cat", "1": "cat", "Hund, groß": "dog"}
CSV = 'alias,name\nKatze,cat\n1,cat\n"Hund, groß",dog\n'
FILES = {
    "a.json": json.dumps(ALIASES).encode(),
    "bom.json": b"\xef\xbb\xbf" + json.dumps(ALIASES, ensure_ascii=False, indent=2).encode(),
    "a.csv": CSV.encode(),
    "turned.csv": b'name,alias\ncat,Katze\ncat,1\ndog,"Hund, gro\xc3\x9f"\n',
    "a.tsv": "alias\tname\nKatze\tcat\n1\tcat\nHund, groß\tdog\n".encode(),
    "a.csv.gz": gzip.compress(CSV.encode()),
    "a.jsonl": "".join(
        json.dumps({"alias": alias, "name": name}) + "\n" for alias, name in ALIASES.items()
    ).encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_aliases(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    assert aliases_of(path) == aliases_of(str(path)) == aliases_of(ALIASES) == ALIASES


def test_whole_numbers_are_their_digits_and_others_no_texts(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"alias": [1, 2], "name": ["cat", "dog"]}), path)
    assert aliases_of(path) == {"1": "cat", "2": "dog"}
    pq.write_table(pa.table({"alias": ["a", "b"], "name": [1.5, 2.5]}), path)
    assert "row 0 has no alias, or no name; both are texts" in refusal(VoteError, aliases_of, path)


@pytest.mark.parametrize(
    ("name", "content", "kind", "text"),
    [
        ("a.json", '{"a": "cat", "a": "dog"}', ParameterError, "'a' stands for 'cat', and for 'd"),
        ("a.csv", "alias,name\na,cat\na,dog\n", ParameterError, "'a' stands for 'cat', and for 'd"),
        ("a.csv", "alias,name\na,cat\na,\n", VoteError, "a.csv: row 1 has no alias, or no name"),
        ("a.csv", "alias,name\na,bird\n", ParameterError, "'a' stands for 'bird', which is none"),
        ("a.csv", "alias,name\n,cat\n", VoteError, "a.csv: row 0 has no alias, or no name"),
        ("a.json", '{"": "cat"}', ParameterError, "alias 0 is empty, or no text"),
        ("a.csv", "alias,name\ncat,dog\n", ParameterError, "'cat' stands for 'dog', and for 'cat"),
        ("a.json", '{"a": ["cat"]}', ParameterError, "'a' stands for ['cat'], which is none of"),
        ("a.json", '{"a": "cat",\n3}', VoteError, "a.json: line 2 is not as in a JSON object"),
        ("a.json", '{"a": ' + "[" * 99999, VoteError, "a.json: "),
        ("a.csv", "from,to\na,cat\n", VoteError, "the aliases are a table with the columns alias"),
        ("a.csv", "alias,name,b\na,cat,1\n", VoteError, "the aliases are a table with the columns"),
        ("a.txt", "[1, 2]", VoteError, "a.txt: "),
    ],
)
def test_files_that_are_refused(tmp_path, name, content, kind, text):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(kind) as refused:
        open_votes([["cat"]], label_names=("cat", "dog"), aliases=path).__enter__()
    assert text in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_is_no_file_of_aliases(tmp_path):
    assert "no such file" in refusal(VoteError, aliases_of, tmp_path / "gone.json")
    assert "must map texts to names, or be a file" in refusal(ParameterError, aliases_of, 3)
    assert "must map texts to names" in refusal(ParameterError, aliases_of, [("a", "cat")])
    assert "a path of text" in refusal(ParameterError, aliases_of, _Bytes())


def test_in_csv_a_number_is_a_class_and_no_alias(tmp_path):
    """1 is the second class wherever all teachers answer in numbers."""
    path = tmp_path / "v.csv"
    path.write_text("a,b\ncat,1\n")
    with pytest.raises(VoteError, match="in CSV '1' of `aliases` looks like the number of a class"):
        open_votes(path, label_names="cat,dog", aliases={"1": "cat"}).__enter__()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize(("name", "there"), [("a.json", True), ("a.csv", False)])
def test_a_pipe_is_read_once(tmp_path, name, there):
    pipe = tmp_path / name
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(pipe.write_bytes, FILES[name])
        if there:
            assert aliases_of(pipe) == ALIASES
        else:
            told = "is a pipe without a JSON object; give a file of the aliases"
            assert told in refusal(VoteError, aliases_of, pipe)


def test_a_file_that_is_too_long_is_not_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(aliases, "_LONGEST", 5)
    (tmp_path / "a.json").write_text('{"a":"cat"}')
    assert "has over" in refusal(VoteError, aliases_of, tmp_path / "a.json")


class _Bytes:
    def __fspath__(self):
        return b"a.json"


@pytest.mark.parametrize("word", [{"normalise": True}, {"aliases": {"a": "cat"}}])
def test_both_need_names_of_classes(word):
    (name,) = word
    with pytest.raises(UsageError, match=f"^`{name}` goes with `label_names`$"):
        open_votes([[0, 1]], **word).__enter__()
    with pytest.raises(UsageError, match=f"^`{name}` is for votes that are texts, and those on"):
        open_votes([[0, 1]], layout="multilabel", label_names="a,b", **word).__enter__()
    with open_votes(
        [["cat"], ["dog"]], label_names="cat,dog", layout="labels", teachers=1
    ) as votes:
        with pytest.raises(UsageError):
            open_votes(votes, **word).__enter__()
        with pytest.raises(ParameterError, match="is open already"):
            open_votes(votes, label_names="cat,dog", **word).__enter__()
