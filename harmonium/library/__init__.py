"""A person's own music: its files, their tags, and what the model says about them.

`Library` and the modules are loaded when first used, so that the tags of files can be read without
a database.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harmonium.library import (  # noqa: F401
        doctor,
        edits,
        export,
        filetags,
        imports,
        index,
        models,
        snapshot,
        tagging,
        tags,
        track_finder,
        writing,
    )
    from harmonium.library.library import Library

__all__ = ["Library"]


def __getattr__(name: str) -> Any:
    if name == "Library":
        return import_module("harmonium.library.library").Library
    if find_spec(f"harmonium.library.{name}") is None:
        raise AttributeError(f"module 'harmonium.library' has no attribute '{name}'")
    return import_module(f"harmonium.library.{name}")
