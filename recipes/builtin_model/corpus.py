"""Collections with different tags, as one matrix of features and one of labels.

A tag that a collection does not have is unknown there. Then musicnn's two networks count: the
probabilities of their hundred tags are soft labels for every clip. What volume changes most is
removed from the features (`volume`).

Audio features, such as the energy, come after the tags. Networks say what VibeNet estimates; people
say in which quadrant of arousal and valence a clip of 4Q is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from builtin_model.vocabulary import SharedVocabulary, shared_vocabulary
from builtin_model.volume import DIRECTIONS, Volume, learn_volume
from harmonium.data.datasets import Dataset, info, load
from harmonium.data.datasets.dataset import locate, read_table
from harmonium.data.datasets.loaders import HEADS, N_EMBEDDING

Floats = NDArray[np.float32]

FEWEST = 10
"""How many clips of a collection must have a tag."""
SINGERS = ("female voice", "male voice")
QUADRANTS = {"energy": ("Q1", "Q2"), "valence": ("Q1", "Q4")}
"""Where in the plane of arousal and valence each is high."""


@dataclass(frozen=True, eq=False)
class Corpus:
    """Clips of several collections; rows are clips."""

    X: Floats
    """(n, 400) musicnn's features, without ``volume``."""
    Y: Floats
    """(n, C) what people say: 1, 0, or NaN if the collection does not have the tag."""
    heads: Floats
    """(n, C) what networks say: musicnn's about tags, VibeNet about audio features; else NaN."""
    tags: tuple[str, ...]
    collection: NDArray[np.str_]
    """(n,)"""
    group: NDArray[np.str_]
    """(n,) clips of one group may be by one artist."""
    volume: Volume | None = None
    """What was removed from the features."""

    def rows(self, which: NDArray[np.generic]) -> "Corpus":
        """Some of the clips, by number or by mask."""
        per_clip = ("X", "Y", "heads", "collection", "group")
        return replace(self, **{name: getattr(self, name)[which] for name in per_clip})

    def of(self, *collections: str) -> "Corpus":
        """The clips of some collections."""
        return self.rows(np.isin(self.collection, collections))

    def targets(self, heads: bool = True) -> Floats:
        """(n, C) what people say; if nobody was asked, what the networks say if they count."""
        return np.where(np.isnan(self.Y), self.heads, self.Y) if heads else self.Y

    def with_tags(self, which: NDArray[np.bool_]) -> "Corpus":
        """The same clips with some of the tags, by a mask (C,)."""
        tags = tuple(tag for tag, chosen in zip(self.tags, which, strict=True) if chosen)
        return replace(self, Y=self.Y[:, which], heads=self.heads[:, which], tags=tags)

    def split(self) -> "tuple[Corpus, Corpus]":
        """The same clips with only tags, and with only audio features."""
        is_feature = np.isin(self.tags, shared_vocabulary().features)
        return self.with_tags(~is_feature), self.with_tags(is_feature)

    def judged(self) -> Floats:
        """(n, C) what answers are judged by: people where any was asked for the tag, else heads."""
        return np.where(np.isnan(self.Y).all(axis=0), self.heads, self.Y)


def listening_corpus(
    collections: Sequence[str] = ("4q", "gtzan", "emotify"),
    folder: str | Path | None = None,
    *,
    n_directions: int = DIRECTIONS,
) -> Corpus:
    """The collections of the data folder, with the words of the shared vocabulary.

    Emotify's clips are heard by the extractor musicnn. It is the only collection whose volume can
    be changed: without it, or with no directions of `volume` to take out, the features are left as
    they are.
    """
    corpus = join(_listened(name, folder) for name in collections)
    if "emotify" not in collections or not n_directions:
        return corpus
    volume = learn_volume(load("emotify", folder).audio or [], n_directions)
    return replace(corpus, X=volume.taken_out(corpus.X), volume=volume)


def join(parts: Iterable[Corpus]) -> Corpus:
    """One corpus from several with the same tags, without tags that no clip has."""
    parts = list(parts)
    per_clip = ("X", "Y", "heads", "collection", "group")
    X, Y, heads, collection, group = (
        np.concatenate([getattr(part, name) for part in parts]) for name in per_clip
    )
    there = ~np.isnan(np.where(np.isnan(Y), heads, Y)).all(axis=0)
    tags = tuple(parts[0].tags[j] for j in np.flatnonzero(there))
    return Corpus(X, Y[:, there], heads[:, there], tags, collection, group)


def labelled(
    data: Dataset,
    X: Floats,
    heads: Floats,
    group: Sequence[str],
    features: tuple[Floats, Floats] | None = None,
) -> Corpus:
    """A dataset in the words of the shared vocabulary.

    X, heads : (n, 400) and (n, 100), as musicnn gives them
    group : (n,) clips of one group may be by one artist
    features : what `audio_features` gives
    """
    vocabulary = shared_vocabulary()
    labels = data.labels()
    often = np.nansum(labels.values == 1, axis=0) >= FEWEST
    Y = np.full((len(data), len(vocabulary.tags)), np.nan, np.float32)
    for word, column, enough in zip(labels.tags, labels.values.T, often, strict=True):
        tag = vocabulary.tag(word, data.name)
        if tag is not None and enough and tag not in vocabulary.features:
            place = vocabulary.tags.index(tag)
            Y[:, place] = np.fmax(Y[:, place], column)  # either of two words for one tag is enough
    soft = shared_heads(heads, vocabulary)
    if features is not None:
        places = [vocabulary.tags.index(name) for name in vocabulary.features]
        Y[:, places], soft[:, places] = features
    return Corpus(
        X,
        Y,
        soft,
        vocabulary.tags,
        np.full(len(data), data.name),
        np.array([f"{data.name}: {name}" for name in group]),
    )


def audio_features(data: Dataset, folder: str | Path | None) -> tuple[Floats, Floats]:
    """What people and what VibeNet say about the features of the clips, both (n, 7); else NaN."""
    (path,), name = locate(info("4q"), folder), data.name
    features, items = shared_vocabulary().features, data.items.to_list()
    people, values = np.full((2, len(items), len(features)), np.nan, np.float32)
    if (file := path / f"{name}_audio_features.tsv").exists():
        rows = {row[0]: row[1:] for row in read_table(file).select("item", *features).iter_rows()}
        values[:] = [rows[item] for item in items]
    if (file := path / f"{name}_quadrants.tsv").exists():
        quadrants = dict(read_table(file).select("item", "quadrant").iter_rows())
        for feature, high in QUADRANTS.items():
            place = features.index(feature)
            people[:, place] = [quadrants[item] in high for item in items]
    return people, values


def shared_heads(heads: Floats, vocabulary: SharedVocabulary) -> Floats:
    """The networks' probabilities (n, 100) in the words of the vocabulary, (n, C).

    If several of a network's words mean the same tag, the probability that any of them is given is
    1 - Π(1 - p). A man or a woman who sings is a voice. If both networks have a tag, it is the mean
    of theirs.
    """
    networks = []
    for network in ("MSD", "MTT"):
        none = np.full((len(heads), len(vocabulary.tags)), np.nan)
        for column, head in enumerate(HEADS):
            whose, word = head.split(": ")
            tag = vocabulary.tag(word)
            if whose == network and tag is not None:
                place = vocabulary.tags.index(tag)
                absent = np.fmin(none[:, place], 1.0)  # NaN: no word for it so far
                none[:, place] = absent * (1.0 - heads[:, column])
        voice, *singers = (vocabulary.tags.index(tag) for tag in ("voice", *SINGERS))
        none[:, voice] *= none[:, singers].prod(axis=1)
        networks.append(1.0 - none)
    known = ~np.isnan(networks)
    mean = np.where(known, networks, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.where(known.any(axis=0), mean, np.nan).astype(np.float32)


def _listened(name: str, folder: str | Path | None) -> Corpus:
    if name == "emotify":
        return _emotify(folder)
    data = load(name, folder, features="both")
    assert data.features is not None
    X, heads = np.split(data.features, [N_EMBEDDING], axis=1)
    if data.artists is not None:
        groups = data.artists.to_list()
    else:
        parts = {row: part for part, rows in data.splits.items() for row in rows.tolist()}
        groups = [parts[row] for row in range(len(data))]
    return labelled(data, X, heads, groups, audio_features(data, folder))


def _emotify(folder: str | Path | None) -> Corpus:
    from harmonium.audio import extract_files
    from harmonium.files import user_cache_folder

    data = load("emotify", folder)
    heard = extract_files(data.audio or [], extractor="musicnn", cache=user_cache_folder())
    excerpts, features = data.items.to_list(), audio_features(data, folder)
    return labelled(data, heard.features, heard.heads, excerpts, features)
