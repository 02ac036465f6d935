"""The built-in model, for music that nobody has tagged, and beside a library's own model.

It is an ordinary model file, with a report of its tags: groups, other words for them, scores and
thresholds. A library that was indexed with the extractor that it needs gets it as its first model.
A model trained later holds a copy of it: its tags stay beside one's own.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from harmonium.data.tag_names import builtin_tree
from harmonium.errors import ModelFileError
from harmonium.library.library import Library
from harmonium.library.store.models import UNREACHABLE, StoredModel
from harmonium.library.store.schema import EXTRACTOR

FILE = Path(__file__).with_name("model.safetensors")
NAME = "shipped"
"""What the model is called in libraries, and its report in the file."""
PART, PLACES = "shipped.model", "shipped.places"
"""The arrays of a library's own model that hold this file, and where in the vocabulary its tags
are."""
OTHER = "other"
"""The group of a tag whose group is not known."""


@cache
def builtin_model() -> StoredModel:
    """The model of the package, as if it were stored; it has no number."""
    return model_of_file(FILE.read_bytes(), extractor_key())


def extractor_key() -> str:
    """The key of the features that it takes."""
    from harmonium.library.index import extractor_key as key_of

    return key_of("musicnn")


def use_builtin(library: Library) -> StoredModel | None:
    """The library's model; the built-in one if it has none and has its features; else None.

    A library that has the built-in model of an older version gets the present one.
    """
    model = library.models.current()
    if model is not None and model.name == NAME and model.bytes != builtin_model().bytes:
        model = None
    if model is None and library.settings.get(EXTRACTOR) == extractor_key():
        model = builtin_model().without(library.hidden_tags(), library.renamed_tags())
        model = replace(model, id=library.models.add(model))
    return model


def model_of_file(data: bytes, extractor: str) -> StoredModel:
    """The model in a file like that of the package."""
    from harmonium.estimators.model_files import from_bytes

    way_out = "Install Harmonium again."
    about = from_bytes(data, name="The built-in model", way_out=way_out)[1].get(NAME)
    if about is None:
        raise ModelFileError(f"The built-in model is another file. {way_out}")
    tags = [{**tag, "learnt": tag["threshold"] is not None} for tag in about["tags"]]
    thresholds = [UNREACHABLE if tag["threshold"] is None else tag["threshold"] for tag in tags]
    aucs = [tag["auc"] for tag in tags if "auc" in tag]
    return StoredModel(
        name=NAME,
        vocabulary=[tag["tag"] for tag in tags],
        thresholds=np.array(thresholds, np.float32),
        extractor=extractor,
        bytes=data,
        report={
            **about,
            "tags": tags,
            "own": 0,
            "precision": {tag["tag"]: tag["precision"] for tag in tags if "auc" in tag},
            "mean_auc": float(np.mean(aucs)),
            "tracks": sum(about["clips"].values()),
            "left_out": [],
        },
    )


@cache
def tag_groups() -> dict[str, str]:
    """Tag → genre, mood, instrument, voice, era or sound; for the tags of which it is known."""
    tree = builtin_tree()
    genres = dict.fromkeys([*tree.aliases, *tree.parents], "genre")
    return genres | {tag["tag"]: tag["group"] for tag in builtin_model().report["tags"]}
