"""Datasets that recipes call by one name."""

import inspect

from harmonium.data.datasets import info
from harmonium.experiments.specs import GENERATED, DatasetSpec
from harmonium.synthetic import make_collection

CATALOGUE = {
    spec.label: spec
    for spec in (
        DatasetSpec(name="majorminer", label="majorminer-104", options={"features": "mfcc"}),
        DatasetSpec(name="majorminer", label="majorminer-1022", options={"features": "all"}),
        DatasetSpec(name="emotify", label="emotify", groups="track"),
        DatasetSpec(name="msd", label="msd-50", n_tags=50, options={"n_tags": 50}),
        DatasetSpec(name="msd", label="msd-100", n_tags=100, options={"n_tags": 100}),
        DatasetSpec(name="hetrec-msd", label="hetrec-msd", n_tags=100),
        DatasetSpec(name="mulan:cal500", label="cal500", groups="item"),
        DatasetSpec(name="mturk", label="mturk", n_tags=77, groups="item"),
        DatasetSpec(name="majmin", label="majmin", n_tags=77, groups="item"),
        DatasetSpec(
            name=GENERATED,
            label="generated",
            n_tags=40,
            groups="track",
            options={"n_tracks": 48, "clips_per_track": 3, "n_users": 60},
        ),
    )
}


def n_items(spec: DatasetSpec) -> int | None:
    """How many clips the dataset has at most, where that is known before it is read."""
    if spec.name == GENERATED:
        usual = inspect.signature(make_collection).parameters
        return int(
            spec.options.get("n_tracks", usual["n_tracks"].default)
            * spec.options.get("clips_per_track", usual["clips_per_track"].default)
        )
    return info(spec.name).items


def has_listeners(spec: DatasetSpec) -> bool:
    """Whether the dataset says who gave a tag, so that its tags can be smoothed."""
    return spec.name == GENERATED or info(spec.name).triples is not None


def has_audio(spec: DatasetSpec) -> bool:
    """Whether the features are computed from sound, and so are known to be timbre and rhythm."""
    return spec.name == GENERATED or info(spec.name).audio
