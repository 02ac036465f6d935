"""From sound to numbers: 389 of them for a clip, 189 about timbre and 200 about rhythm.

docs/features.md has the definitions. The transformers for scikit-learn are
``harmonium.AudioFeatures`` and ``harmonium.ClipNormaliser``.
"""

from harmonium.audio.decoding import Clip, decode
from harmonium.audio.extraction import Extraction, extract_files
from harmonium.audio.extractors import (
    Extractor,
    FeatureParameters,
    available_extractors,
    clip_features,
    feature_names,
    features_of_file,
    get_extractor,
    paper_extractor,
    register,
)

__all__ = [
    "Clip",
    "Extraction",
    "Extractor",
    "FeatureParameters",
    "available_extractors",
    "clip_features",
    "decode",
    "extract_files",
    "feature_names",
    "features_of_file",
    "get_extractor",
    "paper_extractor",
    "register",
]
