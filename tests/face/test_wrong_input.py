"""Wrong input is refused in one line that names the file, the row and a way out."""

from __future__ import annotations

import pytest

from face import runner, wrong


@pytest.mark.parametrize("name", wrong.WRONG)
def test_wrong_input_is_refused_by_name(name, shown, frozen, tmp_path):
    asked = wrong.WRONG[name]
    ran, left = runner.refused(tmp_path / "here", shown, asked)
    assert ran.exit_code == frozen["wrong"][name]
    assert ran.exit_code not in (0, 1)
    line = ran.stderr.splitlines()[-1]
    assert line.startswith("pate: ")
    missing = [word for word in asked.says.split(" … ") if word not in line]
    assert not missing, line
    assert ran.stdout == ""
    assert left == []


def test_forty_kinds_are_refused(frozen):
    assert list(frozen["wrong"]) == list(wrong.WRONG)
    assert len(wrong.WRONG) >= 40
