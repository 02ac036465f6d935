"""The built-in model and its vocabulary.

The built-in model is an ordinary model file with a report of its tags: kinds, other words for them,
scores and thresholds. A library indexed with the right extractor gets it as its first model.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from harmonium.arrays import Mask
from harmonium.data.genres import builtin_tree
from harmonium.data.tag_names import KINDS, NO_TAG, words_that_are_not_tags
from harmonium.errors import ModelFileError
from harmonium.estimators import model_files
from harmonium.files import read_toml
from harmonium.library.library import Library
from harmonium.library.store.models import Output, StoredModel
from harmonium.library.store.reports import ModelReport
from harmonium.library.store.schema import EXTRACTOR

BUILTIN_FILE = Path(__file__).parents[1] / "builtin" / "model.safetensors"
BUILTIN = "shipped"  # what the built-in model is called in libraries, and its report in the file
PART = "shipped.model"  # array of a library's own model: the built-in model's file
PLACES = "shipped.places"  # and where its tags are in the vocabulary
FEATURE = "feature"  # the kind of audio features; people's tags of these names are moods
SPOKEN = ("comedy", "comedy/spoken", "spoken word")  # genres that may not be music


@cache
def builtin_model() -> StoredModel:
    """The package's model, as if it were stored; it has no number."""
    return model_of_file(BUILTIN_FILE.read_bytes(), builtin_extractor())


def builtin_extractor() -> str:
    """The key of the features that the built-in model takes."""
    from harmonium.audio.extractors import extractor_key

    return extractor_key("musicnn")


def use_builtin(library: Library) -> StoredModel | None:
    """The library's model, else the built-in one if the library has its features, else None."""
    # A library with an older version of the built-in model gets the new one.
    model = library.models.current()
    if model is not None and model.name == BUILTIN and model.bytes != builtin_model().bytes:
        model = None
    if model is None and library.settings.get(EXTRACTOR) == builtin_extractor():
        model = builtin_model().renamed(library.tags.renamed())
        model = replace(model, id=library.models.add(model))
    return model


def model_of_file(data: bytes, extractor: str) -> StoredModel:
    """The model in a file like the package's."""
    way_out = "Install Harmonium again."
    about = model_files.from_bytes(data, name="The built-in model", way_out=way_out)[1].get(BUILTIN)
    if about is None:
        raise ModelFileError(f"The built-in model's file has changed. {way_out}")
    tags = [{**tag, "learnt": tag["threshold"] is not None} for tag in about["tags"]]
    report = ModelReport.from_json({**about, "tags": tags, "own": 0})
    scored = [tag for tag in report.tags if tag.auc is not None]
    report = replace(
        report,
        tracks=sum(about["clips"].values()),
        mean_auc=float(np.mean([tag.auc for tag in scored])),
        precision={tag.tag: tag.precision for tag in scored},
    )
    thresholds = [np.nan if tag.threshold is None else tag.threshold for tag in report.tags]
    return StoredModel(
        name=BUILTIN,
        vocabulary=[tag.tag for tag in report.tags],
        thresholds=np.array(thresholds, np.float32),
        extractor=extractor,
        bytes=data,
        report=report,
    )


@cache
def _vocabulary() -> dict[str, Any]:
    """Kind → the built-in tags of that kind, and other words for them."""
    tables = read_toml(BUILTIN_FILE.with_name("vocabulary.toml"), "The built-in vocabulary")
    return {kind: tables[kind] for kind in (*KINDS, FEATURE) if kind in tables}


@cache
def builtin_vocabulary(kind: str) -> tuple[str, ...]:
    """The built-in tags of a kind."""
    return tuple(_vocabulary()[kind]["tags"])


@cache
def builtin_aliases() -> dict[str, str]:
    """Other words → the built-in tags that they mean."""
    return {
        word: tag
        for table in _vocabulary().values()
        for tag, words in table.get("also", {}).items()
        for word in words
    }


@cache
def builtin_kinds() -> dict[str, str]:
    """Tag → its kind, for the genres of the built-in tree and the words of the built-in model."""
    tree = builtin_tree()
    kinds = dict.fromkeys(words_that_are_not_tags(), NO_TAG)
    kinds |= dict.fromkeys([*tree.aliases, *tree.parents], "genre")
    own: dict[str, str] = {}
    for kind, table in _vocabulary().items():
        own |= dict.fromkeys(table["tags"], "mood" if kind == FEATURE else kind)
    aliases = {word: own[tag] for word, tag in builtin_aliases().items()}
    return kinds | aliases | own


def musical_outputs(outputs: Sequence[Output], features: Collection[str]) -> Mask:
    """(n_outputs,) what only music has: genres, and built-in tags except audio features."""
    kinds = builtin_kinds()
    musical = []
    for output in outputs:
        is_musical = output.source == "built-in" or kinds.get(output.name) == "genre"
        musical.append(is_musical and output.name not in (*SPOKEN, *features))
    return np.array(musical, bool)
