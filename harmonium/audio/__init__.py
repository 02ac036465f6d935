"""From sound to numbers: 389 of them for a clip, 189 about timbre and 200 about rhythm.

docs/features.md has the definitions. The transformers for scikit-learn are
``harmonium.AudioFeatures`` and ``harmonium.ClipNormaliser``.
"""

from harmonium.audio.decoding import Clip as Clip
from harmonium.audio.decoding import decode as decode
from harmonium.audio.extraction import Extraction as Extraction
from harmonium.audio.extraction import extract_files as extract_files
from harmonium.audio.extractors import Extractor as Extractor
from harmonium.audio.extractors import available_extractors as available_extractors
from harmonium.audio.extractors import features_of_file as features_of_file
from harmonium.audio.extractors import get_extractor as get_extractor
from harmonium.audio.extractors import paper_extractor as paper_extractor
from harmonium.audio.extractors import register as register
from harmonium.audio.paper import FeatureParameters as FeatureParameters
from harmonium.audio.paper import clip_features as clip_features
from harmonium.audio.paper import feature_names as feature_names
