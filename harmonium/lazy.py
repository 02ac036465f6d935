"""Packages whose names are loaded when they are first used, so that importing them is fast."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package, from the names in each of its modules.

    Type checkers must not see it, or they would take every name for ``Any``: define it only if not
    ``TYPE_CHECKING``, else import the names.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return load
