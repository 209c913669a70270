"""However busy the machine, a command ends with its own exit code.

A thread of a library's that still gives something back when the interpreter has ended takes the
process with it: a signal in place of an exit code, once in fifty times or so. Only
`make test-all` runs these commands, two hundred times each.
"""

import shlex
import subprocess
import sys

import pytest

from face import inputs
from slices import whole

TIMES = 200
RUN = "--mechanism gnmax --sigma2 40 --no-record --force"
ENDINGS = {
    "verify csv": ("verify r.csv.json l.csv", 0),
    "verify parquet": ("verify r.parquet.json l.parquet", 0),
    "verify jsonl": ("verify r.jsonl.json l.jsonl", 0),
    "verify arrow": ("verify r.arrow.json l.arrow", 0),
    "cost of csv": ("cost counts.csv --mechanism gnmax --sigma2 40 --max-queries 5", 0),
    "cost of jsonl": ("cost counts.jsonl --mechanism gnmax --sigma2 40 --max-queries 5", 0),
    "cost of arrow": ("cost counts.arrow --mechanism gnmax --sigma2 40 --max-queries 5", 0),
    "cost of parts": ("cost parts_parquet --mechanism gnmax --sigma2 40 --max-queries 5", 0),
    "labels of parquet": (f"aggregate counts.parquet {RUN} -o x.parquet --report x.json", 0),
    "labels of packed csv": (f"aggregate counts.csv.gz {RUN} -o y.csv --report y.json", 0),
    "two processes": (f"aggregate counts.parquet {RUN} --workers 2 -o z.csv --report z.json", 0),
    "a cluster": (f"aggregate counts.parquet {RUN} --engine dask --workers 2 -o d.csv", 0),
    "a store": ("cost STORE --mechanism gnmax --sigma2 40 --max-queries 5", 0),
    "a bad row": ("cost bad.csv", 3),
    "guesses": (f"aggregate counts.csv {RUN} --prior prior.csv -o p.csv --report p.json", 0),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder that all of them run in."""
    place = tmp_path_factory.mktemp("ends") / "made"
    inputs.write_inputs(place)
    (place / "bad.csv").write_text((place / "counts.csv").read_text() + "q60,1,2\n")
    for kind in ("csv", "parquet", "jsonl", "arrow"):
        assert _code(place, f"aggregate counts.npy {RUN} -o l.{kind} --report r.{kind}.json") == 0
    return place


def _code(place, line):
    words = [sys.executable, "-m", "pate_cli", *shlex.split(line)]
    return subprocess.run(words, cwd=place, capture_output=True, check=False).returncode


@pytest.fixture(scope="module")
def busy():
    """Two processes that leave no core idle."""
    spin = [sys.executable, "-c", "while True: pass"]
    spinning = [subprocess.Popen(spin) for _ in range(2)]
    yield
    for process in spinning:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def stored(s3_server, made):
    """The address of the same votes on a store."""
    query, client = s3_server
    client.create_dir("ends")
    with client.open_output_stream("ends/counts.parquet") as file:
        file.write((made / "counts.parquet").read_bytes())
    return f"'s3://x:y@ends/counts.parquet?{query}'"


@whole
@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize("name", ENDINGS)
def test_a_command_ends_with_its_own_exit_code(name, made, request):
    line, code = ENDINGS[name]
    if "STORE" in line:
        line = line.replace("STORE", request.getfixturevalue("stored"))
    assert [_code(made, line) for _ in range(TIMES)] == [code] * TIMES
