"""The datasets for experiments, and what a run uses of them."""

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar, cast

import numpy as np
import polars as pl
from joblib import Memory
from pydantic import ConfigDict, Field, StrictInt

from harmonium import __version__
from harmonium.arrays import Codes, Floats, Places
from harmonium.data.coded import codes_in, encode
from harmonium.data.datasets import Dataset, DatasetInfo, info, load
from harmonium.data.triples import Triples
from harmonium.engine import available_cores
from harmonium.errors import DataError
from harmonium.files import user_cache_folder
from harmonium.synthetic import make_collection

SMOOTHED = 2
"""Increased whenever the same triples and settings are smoothed to something else, so that cached
smoothed tags are not reused."""

SMOOTHING_TARGETS = ("new_user", "any_user")  # `TagSmoother`'s, its default first

Result = TypeVar("Result")

GENERATED = "generated"  # the name of the dataset that is generated, not read


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """A dataset, and what to use of it."""

    __pydantic_config__ = ConfigDict(extra="forbid")
    name: str  # as `harmonium data list` shows it, or "generated"
    label: str = ""  # in tables and figures; by default the name
    n_tags: Annotated[StrictInt, Field(ge=1)] | None = None  # the most popular tags only
    min_positives: Annotated[StrictInt, Field(ge=1)] = 5  # tags on fewer clips are left out
    groups: Literal["artist", "track", "item"] = "artist"  # folds never split one
    options: dict[str, Any] = field(default_factory=dict)  # of the loader or the generator

    def __hash__(self) -> int:
        return hash((self.name, self.label, self.n_tags))

    @property
    def n_clips(self) -> int | None:
        """The most clips that the dataset can have, if known before it is read."""
        if self.name != GENERATED:
            return info(self.name).items
        parameters = inspect.signature(make_collection).parameters
        n_clips = 1
        for size in ("n_tracks", "clips_per_track"):
            n_clips *= self.options.get(size, parameters[size].default)
        return n_clips

    @property
    def has_triples(self) -> bool:
        """Whether the dataset says who gave a tag, so that its tags can be smoothed."""
        return self.name == GENERATED or info(self.name).triples is not None

    @property
    def has_audio(self) -> bool:
        """Whether the features come from sound, so that timbre and rhythm are known."""
        return self.name == GENERATED or info(self.name).audio


_SPECS = (
    DatasetSpec(name="majorminer", label="majorminer-104", options={"features": "mfcc"}),
    DatasetSpec(name="majorminer", label="majorminer-1022", options={"features": "all"}),
    DatasetSpec(name="emotify", label="emotify", groups="track"),
    DatasetSpec(name="msd", label="msd-50", n_tags=50, options={"n_tags": 50}),
    DatasetSpec(name="msd", label="msd-70", n_tags=70, options={"n_tags": 70}),
    DatasetSpec(name="msd", label="msd-100", n_tags=100, options={"n_tags": 100}),
    DatasetSpec(name="hetrec-msd", label="hetrec-msd", n_tags=100),
    DatasetSpec(name="mulan:cal500", label="cal500", groups="item"),
    DatasetSpec(name="mulan:scene", label="scene", groups="item"),
    DatasetSpec(name="mulan:birds", label="birds", groups="item"),
    DatasetSpec(name="mulan:bibtex", label="bibtex", groups="item"),
    DatasetSpec(name="mulan:emotions", label="emotions", groups="item"),
    DatasetSpec(name="mulan:yeast", label="yeast", groups="item"),
    DatasetSpec(name="4q", label="4q"),
    DatasetSpec(name="gtzan", label="gtzan", groups="item"),
    DatasetSpec(name="mturk", label="mturk", n_tags=77, groups="track"),
    DatasetSpec(name="mturk", label="mturk-27", n_tags=27, groups="track"),
    DatasetSpec(name="majmin", label="majmin", n_tags=77, groups="track"),
    DatasetSpec(
        name=GENERATED,
        label="generated",
        n_tags=40,
        groups="track",
        options={"n_tracks": 48, "clips_per_track": 3, "n_users": 60},
    ),
)

CATALOGUE = {spec.label: spec for spec in _SPECS}
"""The datasets that a recipe can name without describing them."""


@dataclass(frozen=True, eq=False)
class PreparedDataset:
    """A dataset, ready for training and testing."""

    X: Floats  # (n_clips, n_features)
    Y: Floats  # (n_clips, n_tags) labels: 0, 1, NaN
    tags: tuple[str, ...]
    groups: Codes  # (n_clips,) the group of each clip; folds never split a group
    counts: Floats
    """(n_clips, n_tags) how many people gave the tag, or which share of the clip's listeners where
    the labels go by shares; the SVM prefers clips with many."""
    n_timbre: int  # number of timbre features, which come first; 0 if unknown
    source: Dataset

    def features(self, group: str) -> Floats:
        """All features, or one group of them."""
        if group == "all":
            return self.X
        if not self.n_timbre:
            raise DataError(
                f"features = '{group}' needs a dataset with audio, whose features are known to be "
                "about timbre or rhythm: emotify or generated."
            )
        if group == "timbre":
            return self.X[:, : self.n_timbre]
        return self.X[:, self.n_timbre :]

    def smoothed(
        self, train: Places, settings: Mapping[str, Any] = MappingProxyType({}), *, seed: int
    ) -> Floats:
        """(n_clips, n_tags) smoothed tags of the training clips; NaN for all other clips.

        The smoother sees only the triples of the training clips. Its result is kept in the user's
        cache, for the other models that learn from it; by both targets, which need one training.
        """
        settings = {"random_state": seed, **settings}
        target = settings.pop("target", SMOOTHING_TARGETS[0])
        if target not in SMOOTHING_TARGETS:
            raise DataError(
                f"'target' must be {' or '.join(map(repr, SMOOTHING_TARGETS))}. Got {target!r}."
            )
        triples = self.source.triples
        if triples is None:
            raise DataError(
                f"'{self.source.name}' says how many people gave a tag but not who: there is "
                "nothing to smooth. Use a dataset with triples, or leave smoothing out."
            )
        item_of_clip = self._smoothed_items()
        track_of_clip = item_of_clip if self.source.tracks is None else self.source.tracks
        train_items = item_of_clip.gather(train)
        train_tracks = track_of_clip.gather(train)
        items = train_items.unique(maintain_order=True)
        users, judged = self._judgements(triples)
        in_training = judged.is_in(items.implode())
        kept = triples.select_tags(self.tags).select_items(items)
        values = _cached(smooth_items)(
            codes={"user": kept.user, "item": kept.item, "tag": kept.tag},
            names={
                "users": kept.users.to_list(),
                "items": kept.items.to_list(),
                "tags": kept.tags.to_list(),
            },
            items=items.to_list(),
            pairs=(users.filter(in_training).to_list(), judged.filter(in_training).to_list()),
            tracks=dict(zip(train_items, train_tracks, strict=True)),
            settings=settings,
            version=(__version__, SMOOTHED),
        )
        targets = np.full(self.Y.shape, np.nan, np.float32)
        targets[train] = values[target][codes_in(train_items, items)]
        return targets

    def _smoothed_items(self) -> pl.Series:
        """The item of each clip whose tags are smoothed, (n_clips,).

        In HetRec's join with the MSD, tags are the artist's, so that one of an artist's tracks
        stands for all. Artists are not grouped: two spellings may have different tags.
        """
        items = self.source.items
        if self.source.name == "hetrec-msd":
            assert self.source.artists is not None
            artist = encode(self.source.artists).codes
            _, first_track = np.unique(artist, return_index=True)
            items = items.gather(first_track[artist])
        return items

    def _judgements(self, triples: Triples) -> tuple[pl.Series, pl.Series]:
        """The users and items of all pairs in which a user judged an item."""
        if self.source.seen is not None:
            return self.source.seen["user"], self.source.seen["item"]
        return triples.users.gather(triples.user), triples.items.gather(triples.item)


def _cached(function: Callable[..., Result]) -> Callable[..., Result]:
    """The function with its results in the user's cache, by the contents of its arguments."""
    memory = Memory(user_cache_folder() / "smoothed", verbose=0)
    return cast(Callable[..., Result], memory.cache(function))


def smooth_items(
    *,
    codes: dict[str, Codes],
    names: dict[str, list[str]],
    items: list[str],
    pairs: tuple[list[str], list[str]],
    tracks: dict[str, str],
    settings: dict[str, Any],
    version: tuple[str, int],
) -> dict[str, Floats]:
    """Smoothed tags of items, (n_items, n_tags), by target.

    Everything is given as arrays and lists, whose contents are the same in every process.
    """
    from harmonium.estimators import TagSmoother

    triples = Triples(
        user=codes["user"],
        item=codes["item"],
        tag=codes["tag"],
        users=pl.Series(names["users"], dtype=pl.String),
        items=pl.Series(names["items"], dtype=pl.String),
        tags=pl.Series(names["tags"], dtype=pl.String),
    )
    smoother = TagSmoother(**settings).fit(triples, pairs=pairs, tracks=tracks)
    return {
        target: smoother.set_params(target=target).smooth(items).values
        for target in SMOOTHING_TARGETS
    }


@lru_cache(maxsize=2)
def load_dataset(spec: DatasetSpec) -> PreparedDataset:
    """Read a dataset; kept in memory for the next runs on it."""
    data = _source(spec)
    labels = data.labels(spec.n_tags)
    kept = np.flatnonzero(np.nansum(labels.values, axis=0) >= spec.min_positives)
    if not len(kept):
        raise DataError(
            f"No tag of '{spec.label}' has {spec.min_positives} positive clips. "
            "Lower 'min_positives'."
        )
    tags = labels.tags.gather(kept)
    X = data.features
    n_timbre = 0
    if X is None:
        from harmonium.audio import FeatureParameters

        X = _sound_features(data, engine="serial")
        n_timbre = FeatureParameters().n_timbre
    return PreparedDataset(
        X=X,
        Y=labels.values[:, kept],
        tags=tuple(tags),
        groups=data.groups(spec.groups),
        counts=_counts(data, tags),
        n_timbre=n_timbre,
        source=data,
    )


def _counts(data: Dataset, tags: pl.Series) -> Floats:
    """How often these tags were given, in the labels' unit: people or shares."""
    counts = data.counts.matrix[:, codes_in(tags, data.tags)].toarray().astype(np.float32)
    if data.info.min_share is None or data.listeners is None:
        return counts
    return counts / np.maximum(data.listeners, 1)[:, None].astype(np.float32)


def extract_features(
    spec: DatasetSpec, *, progress: Callable[[int, int], None] | None = None
) -> None:
    """Compute the features of a dataset's sound files on all cores, so that runs find them ready.

    ``progress`` is called with (files done, files).
    """
    _sound_features(_source(spec, jobs=available_cores()), engine="processes", progress=progress)


def _source(spec: DatasetSpec, *, jobs: int = 1) -> Dataset:
    """The whole dataset; the generated one's sound is written to the user's cache."""
    if spec.name != GENERATED:
        return load(spec.name, **spec.options)
    collection = make_collection(**spec.options)
    options = json.dumps(spec.options, sort_keys=True)
    name = hashlib.blake2b(options.encode(), digest_size=6).hexdigest()
    folder = user_cache_folder() / "generated" / name
    collection.write(folder, jobs=jobs)
    return Dataset(
        info=DatasetInfo(
            name=GENERATED,
            title="The generated collection",
            summary="Music, listeners and tags made by harmonium.synthetic.",
            files={},
            citation="",
            licence="",
            homepage="",
            how_to_get="",
        ),
        items=collection.triples.items,
        counts=collection.triples.counts(),
        triples=collection.triples,
        tracks=collection.clips["track"],
        artists=collection.clips["artist"],
        audio=[folder / path for path in collection.clips["path"]],
    )


def _sound_features(
    data: Dataset, *, engine: str, progress: Callable[[int, int], None] | None = None
) -> Floats:
    """The features of the sound files, (n_files, 389), from the user's cache if they are there."""
    from harmonium.audio import extract_files  # here, because reports never need it

    if data.audio is None:
        raise DataError(f"Dataset '{data.name}' has neither features nor audio to train on.")
    cache = user_cache_folder()
    extraction = extract_files(data.audio, engine=engine, cache=cache, progress=progress)
    if extraction.failures:
        failure = extraction.failures[0]
        raise DataError(f"{failure.path} cannot be used: {failure.reason}")
    return extraction.features
