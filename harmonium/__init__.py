"""Harmonium learns which tags people give to music, and tags the music nobody has tagged yet.

The public names are loaded when first used, so that ``import harmonium`` stays fast.
"""

from typing import TYPE_CHECKING, Any

from harmonium.lazy import lazy_names

if TYPE_CHECKING:
    from harmonium.audio.transformers import AudioFeatures as AudioFeatures
    from harmonium.audio.transformers import ClipNormaliser as ClipNormaliser
    from harmonium.estimators import ChainTagger as ChainTagger
    from harmonium.estimators import CooccurrenceTagger as CooccurrenceTagger
    from harmonium.estimators import DiscriminativeRBM as DiscriminativeRBM
    from harmonium.estimators import GenerativeRBM as GenerativeRBM
    from harmonium.estimators import LogisticTagger as LogisticTagger
    from harmonium.estimators import MLPTagger as MLPTagger
    from harmonium.estimators import NaiveBayesTagger as NaiveBayesTagger
    from harmonium.estimators import SVMTagger as SVMTagger
    from harmonium.estimators import TagRBM as TagRBM
    from harmonium.estimators import TagSmoother as TagSmoother
    from harmonium.estimators import paper_options as paper_options
    from harmonium.library import Library as Library

__version__ = "1.0.0"

_NAMES = {
    "audio.transformers": ["AudioFeatures", "ClipNormaliser"],
    "estimators": [
        "ChainTagger",
        "CooccurrenceTagger",
        "DiscriminativeRBM",
        "GenerativeRBM",
        "LogisticTagger",
        "MLPTagger",
        "NaiveBayesTagger",
        "SVMTagger",
        "TagRBM",
        "TagSmoother",
        "paper_options",
    ],
    "library": ["Library"],
}
__all__ = ["__version__", "load", *(name for names in _NAMES.values() for name in names)]


def load(path: Any) -> Any:
    """A fitted model of any class, from a file that its ``save`` wrote."""
    from harmonium.estimators.model_files import load_model

    return load_model(path)


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__, _NAMES)
