"""Which analysis a word is, and that the published one is not loaded before it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pate_cli.core.words import Analysis
from pate_cli.verbs.request import analysis_of


@pytest.mark.parametrize("word", [*Analysis, *(word.value for word in Analysis)])
def test_a_word_is_the_analysis_of_its_name(word):
    assert analysis_of(word).name is Analysis(word)


def test_the_published_one_is_loaded_where_it_is_asked_for():
    lines = (
        "import sys, pate_cli.verbs.measure, pate_cli.verbs.aggregate, pate_cli.verbs.release",
        "from pate_cli.verbs.request import analysis_of as of",
        "of('tight')",
        "print('pate_cli.paper' in sys.modules)",
        "of('paper')",
        "print('pate_cli.paper' in sys.modules)",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]
