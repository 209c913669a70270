"""`pate demo` writes into a folder of its own; what it writes is tested with the wheel."""

from __future__ import annotations


def test_nothing_is_written_among_other_files(pate, refused, folder, leftovers):
    (folder / "mine.txt").write_text("mine")
    line = refused(pate("demo", "."), 6)
    assert line == "pate: . is not empty; name a new folder for the demo"
    assert "mine.txt" in leftovers()


def test_a_file_is_no_folder(pate, refused, folder):
    (folder / "mine.txt").write_text("mine")
    assert "mine.txt: File exists" in refused(pate("demo", "mine.txt"), 6)
