"""Harmonium learns which tags people give to music, and tags the music nobody has tagged yet.

The public names are loaded when first used, so that ``import harmonium`` stays fast.
"""

from importlib import import_module
from typing import Any

from harmonium import estimators

__version__ = "1.0.0"

_PUBLIC = {"Library": "harmonium.library"}
_PUBLIC |= dict.fromkeys(("AudioFeatures", "ClipNormaliser"), "harmonium.audio.transformers")
_PUBLIC |= dict.fromkeys(estimators.__all__, "harmonium.estimators")

__all__ = ["__version__", "load", *_PUBLIC]


def load(path: Any) -> Any:
    """A fitted model of any class, from a file that its ``save`` wrote."""
    from harmonium.estimators.model_files import load_model

    return load_model(path)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'harmonium' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
