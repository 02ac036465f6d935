"""A person's own music: its files, their tags, and what the model says about them.

`Library` is loaded when first used, so that the tags of files can be read without a database.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harmonium.library.library import Library

__all__ = ["Library"]


def __getattr__(name: str) -> Any:
    if name == "Library":
        return import_module("harmonium.library.library").Library
    raise AttributeError(f"module 'harmonium.library' has no attribute '{name}'")
