"""Draw the tool's pictures from the sample votes: `python sample_votes/make_figures.py [FOLDER]`.

The votes here are public, so the pictures may be shown; the tool cannot know that, and writes
"secret" above every one that it draws. Three more are ours: what public guesses are worth, what
clocks that all teachers share, and how many votes a query needs if many people vote on few.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import crowd
import prior
import tokens
from ensembles import FOLDER

from pate_cli.disclosure.pictures import encode_picture

PICTURES = {
    "adult_cost.png": "cost adult --threshold 300 --sigma1 200 --sigma2 40 --max-queries 1500",
    "digits_cost.png": "cost digits",
    "demo_cost.svg": "cost demo",
    "adult_sensitivity.png": "smooth-sensitivity adult",
    "digits_sensitivity.png": "smooth-sensitivity digits",
    "glyph_like_cost.png": "cost glyph_like --delta 1e-8",
}


def draw(name: str, words: str, folder: Path) -> bool:
    """Run `pate` for one picture; False where its votes have not been made."""
    command = []
    for word in words.split():
        votes = FOLDER / f"{word}.parquet"
        if word.startswith("glyph_like") and not votes.exists():
            return False
        command.append(str(votes) if votes.exists() else word)
    more = ["--plot", name, "--force", "--quiet"]
    subprocess.run(
        [sys.executable, "-m", "pate_cli", *command, *more],
        check=True,
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )
    return True


def main() -> None:
    """Draw all of them into the folder named, or .figures beside the samples."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else FOLDER.parent / ".figures")
    folder.mkdir(parents=True, exist_ok=True)
    for name, words in PICTURES.items():
        told = "drawn" if draw(name, words, folder) else "left out: make samples makes its votes"
        sys.stdout.write(f"{folder / name}: {told}\n")
    for name, script in (("digits_prior.svg", prior), ("tokens.svg", tokens), ("crowd.svg", crowd)):
        path = folder / name
        path.write_bytes(encode_picture(script.picture(script.curves()), path))
        sys.stdout.write(f"{path}: drawn\n")


if __name__ == "__main__":
    main()
