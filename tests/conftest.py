"""Shared fixtures. Tests that need the real datasets read their folder from HARMONIUM_DATA."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the public datasets; the test is skipped where there is none."""
    folder = os.environ.get("HARMONIUM_DATA")
    if not folder:
        pytest.skip("HARMONIUM_DATA is not set: the public datasets are not at hand")
    return Path(folder)
