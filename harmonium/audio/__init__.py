"""From sound to numbers: 389 of them for a clip, 189 about timbre and 200 about rhythm.

- ``clip_features`` computes them, ``feature_names`` says what each is.
- ``FeatureParameters`` holds every number that the definitions depend on.
- ``decode`` reads a window of a file.
- ``features_of_file`` does both, with the paper's extractor or any other: ``register`` gives a
  function a name, ``get_extractor`` and ``available_extractors`` find it.
- ``extract_files`` does it for many files, in parallel and with a cache.

The transformers for scikit-learn are ``harmonium.AudioFeatures`` and ``harmonium.ClipNormaliser``.
docs/features.md has the definitions.
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
