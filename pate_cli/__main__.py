"""Entry point of `pate` and of `python -m pate_cli`."""

from __future__ import annotations

from pate_cli.cli.app import app


def main() -> None:
    """Run the command line."""
    app(prog_name="pate")


if __name__ == "__main__":
    main()
