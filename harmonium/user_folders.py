"""The folders that the system has for a user's data and caches, on Linux, macOS and Windows."""

import os
from pathlib import Path

from platformdirs import user_cache_path, user_data_path


def user_data_folder() -> Path:
    """Where what a user wants to keep goes: the library, fetched datasets."""
    return user_data_path("harmonium", appauthor=False)


def user_cache_folder() -> Path:
    """$HARMONIUM_CACHE, or where what can be computed again goes."""
    if named := os.environ.get("HARMONIUM_CACHE"):
        return Path(named).expanduser()
    return user_cache_path("harmonium", appauthor=False, opinion=False)
