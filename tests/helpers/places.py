"""Folders that tests read from."""

from pathlib import Path

HELPERS = Path(__file__).parent
PROJECT = HELPERS.parents[1]
DOCS = PROJECT / "docs"
