"""A lattice that is sound and coarse, so that tests on it are quick."""

from dataclasses import replace

from pate_cli.accounting.score_grid import QUICK

COARSE = replace(QUICK, quick=False)
