"""From sound to numbers: 389 of them for a clip, 189 about timbre and 200 about rhythm.

- ``clip_features`` computes them, ``feature_names`` says what each is.
- ``FeatureParameters`` holds every number that the definitions depend on.

docs/features.md has the definitions.
"""

from harmonium.audio.features import clip_features, feature_names
from harmonium.audio.parameters import FeatureParameters

__all__ = ["FeatureParameters", "clip_features", "feature_names"]
