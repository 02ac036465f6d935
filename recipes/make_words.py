"""Makes words.safetensors, which tells which tags go together, from the data folder.

    HARMONIUM_DATA=FOLDER python recipes/make_words.py            # writes it
    HARMONIUM_DATA=FOLDER python recipes/make_words.py --check    # compares it

The same data on the same machine gives the same bits. It takes the tags of MTG-Jamendo (its
training and validation artists), of 4Q (AllMusic's editors), MajorMiner and HetRec Last.fm, in one
vocabulary. What is learnt from MTG-Jamendo is CC BY-NC-SA 4.0, and so is the file.

Two things are learnt, and `harmonium.library.model.words.Words` takes the mean of their log-odds:

- RBMs over tags, by multi-prediction. Whoever asks knows a few tags that a track has, and none that
  it lacks. So training observes one or a few present tags, now and then of one kind only. Every
  collection has its own biases of the tags (V). The members differ in their random numbers.
- How often one tag is given beside another, by collection: the first that has both counts.

An artist's tracks count as √n of n; those with the same tags are one row with their weight.
"""

import argparse
import gzip
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
from builtin_model.vocabulary import shared_vocabulary
from numpy.typing import NDArray

from harmonium import rbm
from harmonium.data.datasets import load
from harmonium.data.datasets.dataset import data_folders
from harmonium.data.tag_names import normalise_tag
from harmonium.estimators.model_files import rounded_to_half, to_bytes
from harmonium.files import write_atomically
from harmonium.library.model.words import GAIN_STEPS, NO_GAIN, WORDS_FILE
from harmonium.logistic import log_odds

Floats = NDArray[np.float32]

SETTINGS: dict[str, Any] = {
    "members": 2,
    "n_hidden": 100,
    "learning_rate": 0.015,
    "batch_size": 400,
    "max_epochs": 30,
}
SMOOTHING = 30.0  # tracks added to the counts of each pair of tags, as if independent
LEAST_TOGETHER = 8.0  # tracks that have one tag, and may have the other, for a pair to count
FEWEST = 10  # items of a collection that must have a tag
FEATURE = "feature"  # the group of audio features in the shared vocabulary
NOTE = "CC BY-NC-SA 4.0; see words-LICENSE.md. Harmonium works without this file."

JAMENDO = {  # as MTG-Jamendo writes them → as people do
    "acidjazz": "acid jazz", "alternativerock": "alternative rock", "bluesrock": "blues rock",
    "bossanova": "bossa nova", "classicrock": "classic rock", "darkambient": "dark ambient",
    "darkwave": "dark wave", "deephouse": "deep house", "drumnbass": "drum and bass",
    "easylistening": "easy listening", "hardrock": "hard rock", "hiphop": "hip hop",
    "instrumentalpop": "instrumental pop", "instrumentalrock": "instrumental rock",
    "jazzfusion": "jazz fusion", "newage": "new age", "newwave": "new wave",
    "popfolk": "pop folk", "poprock": "pop rock", "postrock": "post rock",
    "punkrock": "punk rock", "rocknroll": "rock and roll", "singersongwriter": "singer songwriter",
    "synthpop": "synth pop", "triphop": "trip hop", "worldfusion": "world fusion",
    "acousticbassguitar": "acoustic bass guitar", "acousticguitar": "acoustic guitar",
    "classicalguitar": "classical guitar", "doublebass": "double bass",
    "drummachine": "drum machine", "electricguitar": "electric guitar",
    "electricpiano": "electric piano", "pipeorgan": "pipe organ", "dream": "dreamy",
    "melancholic": "melancholy", "relaxing": "relaxed", "space": "spacey", "summer": "summery",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Lists:
    """The tags of some items of a collection."""

    name: str
    tags: tuple[str, ...]
    kinds: tuple[str, ...]
    """Of the tags, (C,)."""
    Y: Floats
    """(n, C): 1 given, 0 not given, NaN unknown."""
    artists: NDArray[np.str_]
    """(n,)"""
    split: NDArray[np.str_]
    """(n,) train, validation or test."""

    def rows(self, which: NDArray[np.generic]) -> "Lists":
        """Some of the items."""
        parts = {name: getattr(self, name)[which] for name in ("Y", "artists", "split")}
        return replace(self, **parts)

    def weights(self) -> NDArray[np.float64]:
        """(n,) 1 / √n of an artist's n items; their mean is 1."""
        _, number, n = np.unique(self.artists, return_inverse=True, return_counts=True)
        return n[number] ** -0.5 / np.mean(n[number] ** -0.5)


def jamendo(folder: str | Path | None = None) -> Lists:
    """MTG-Jamendo. A kind of which a track has no tag is unknown there."""
    paths = [path / "jamendo" / "tags.tsv.gz" for path in data_folders(folder)]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        sys.exit("jamendo/tags.tsv.gz is missing; HARMONIUM_DATA names the data folder.")
    table = pl.read_csv(gzip.decompress(path.read_bytes()), separator="\t", infer_schema=False)
    given = [[_jamendo_tag(word) for word in words.split(",")] for words in table["tags"]]
    kinds = dict(sorted({pair for pairs in given for pair in pairs}, key=lambda pair: pair[::-1]))
    Y = _table([[tag for tag, _ in pairs] for pairs in given], list(kinds))
    artists, split = table["artist"].to_numpy(), table["split"].to_numpy()
    lists = Lists("jamendo", tuple(kinds), tuple(kinds.values()), Y, artists, split)
    return replace(lists, Y=unknown_kinds(lists.Y, lists.kinds))


def _jamendo_tag(word: str) -> tuple[str, str]:
    kind, name = word.split(":")
    return shared_tag(JAMENDO.get(name, name)), kind


def shared_tag(word: str, collection: str | None = None) -> str:
    """The spelling of a word in the shared vocabulary, or its own; audio features are no tags."""
    vocabulary = shared_vocabulary()
    tag = vocabulary.tag(word, collection)
    return normalise_tag(word) if tag is None or vocabulary.groups[tag] == FEATURE else tag


def _table(given: Sequence[Sequence[str]], tags: Sequence[str]) -> Floats:
    at = {tag: place for place, tag in enumerate(tags)}
    Y = np.zeros((len(given), len(tags)), np.float32)
    for row, some in zip(Y, given, strict=True):
        row[[at[tag] for tag in some]] = 1
    return Y


def unknown_kinds(Y: Floats, kinds: Sequence[str]) -> Floats:
    """The same with NaN for all tags of a kind where an item has none of it."""
    Y = Y.copy()
    for kind in set(kinds):
        columns = np.flatnonzero(np.array(kinds) == kind)
        none = np.flatnonzero(~(Y[:, columns] == 1).any(axis=1))
        Y[np.ix_(none, columns)] = np.nan
    return Y


def others(known: Lists, folder: str | Path | None = None) -> list[Lists]:
    """4Q, MajorMiner and HetRec, in the shared vocabulary and that of the first collection."""
    kinds = dict(zip(known.tags, known.kinds, strict=True)) | dict(shared_vocabulary().groups)
    found = []
    for name in ("4q", "majorminer", "hetrec"):
        options = {"normalise": True} if name == "hetrec" else {}
        data = load(name, folder, **options)
        labels = data.labels()
        Y: dict[str, Floats] = {}
        for word, column in zip(labels.tags, labels.values.T, strict=True):
            tag = shared_tag(word, name)
            if tag in kinds:  # of two words for one tag, either will do
                Y[tag] = np.fmax(Y.get(tag, column), column)
        tags = tuple(tag for tag in kinds if tag in Y and np.nansum(Y[tag]) >= FEWEST)
        table = np.stack([Y[tag] for tag in tags], axis=1)
        artists = data.items if name == "hetrec" else data.artists
        lists = Lists(
            name,
            tags,
            tuple(kinds[tag] for tag in tags),
            table,
            artists.cast(pl.String).to_numpy(),
            np.full(len(table), "train"),
        )
        if name == "hetrec":  # nobody was asked for every kind
            lists = replace(lists, Y=unknown_kinds(table, lists.kinds))
        found.append(lists.rows(np.nansum(lists.Y, axis=1) > 0))
    return found


@dataclass(frozen=True)
class PresentObserved(rbm.MultiPrediction):
    """Observes one present tag of each item, or a few; seldom none; now and then absent ones."""

    kinds: tuple[int, ...] = ()
    one: float = 0.5  # share of the items of which one tag is observed, at least
    one_kind: float = 0.5  # share of which only tags of one kind are
    none_observed: float = 0.1
    absent_too: float = 0.1

    def noise(self, params: rbm.Params, unknown: bool) -> tuple[int, int]:
        """A number for each tag, and five for the choices above."""
        return 1, len(self.kinds) + 5

    def observed(self, y: jax.Array, noise: jax.Array) -> jax.Array:
        """Which known tags are observed, (B, C)."""
        n, kinds = len(self.kinds), jnp.array(self.kinds)
        by_tag, (one, q, one_kind, none, absent) = noise[:, :n], noise[:, n:].T[:, :, None]
        present = y == 1
        first = jnp.argmin(jnp.where(present, by_tag, 2.0), axis=1)[:, None]
        same_kind = (kinds[None, :] == kinds[first]) | (one_kind >= self.one_kind)
        some = (jnp.arange(n)[None, :] == first) | (by_tag < jnp.where(one < self.one, 0.0, q))
        chosen = present & same_kind & some
        chosen |= (y == 0) & (absent < self.absent_too) & (by_tag < 0.5 * q)
        return chosen & (none >= self.none_observed)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Several collections in one vocabulary."""

    tags: tuple[str, ...]
    kinds: tuple[str, ...]
    parts: Sequence[Lists]
    """In all tags; NaN where a collection lacks one. A tag is at home in the first that has it."""

    def home(self) -> NDArray[np.intp]:
        """(C,) number of the collection in which a tag is at home."""
        return np.argmax([~np.isnan(part.Y).all(axis=0) for part in self.parts], axis=0)


def join(parts: Sequence[Lists]) -> Corpus:
    """One corpus of several collections; a tag has the kind that its first collection gives it."""
    kinds: dict[str, str] = {}
    for part in parts:
        kinds |= {t: k for t, k in zip(part.tags, part.kinds, strict=True) if t not in kinds}
    wide = []
    for part in parts:
        Y = np.full((len(part.Y), len(kinds)), np.nan, np.float32)
        Y[:, [list(kinds).index(tag) for tag in part.tags]] = part.Y
        wide.append(replace(part, tags=tuple(kinds), kinds=tuple(kinds.values()), Y=Y))
    return Corpus(tuple(kinds), tuple(kinds.values()), wide)


def learn_members(corpus: Corpus, settings: dict[str, Any]) -> list[rbm.Params]:
    """The RBMs, which differ in their random numbers."""
    rows = [_distinct(part) for part in corpus.parts]
    batch = rbm.Batch(
        u=np.zeros((sum(len(first) for first, _ in rows), 0), np.float32),
        a=np.repeat(np.arange(len(rows)), [len(first) for first, _ in rows])[:, None].astype("i4"),
        y=np.concatenate([p.Y[first] for p, (first, _) in zip(corpus.parts, rows, strict=True)]),
        w=np.concatenate([weight for _, weight in rows]).astype(np.float32),
    )
    numbers = {kind: i for i, kind in enumerate(dict.fromkeys(corpus.kinds))}
    # the biases of each collection start at the tags' rates there
    V = np.stack([rate_odds(part.Y, part.weights()) for part in corpus.parts])
    epochs, found = settings["max_epochs"], []
    for seed in range(settings["members"]):
        rng = np.random.default_rng(seed)
        U = rng.normal(0, 0.05, (settings["n_hidden"], len(corpus.tags)))
        c, W = np.full(len(U), -1.0), np.zeros((len(U), 0))
        d = -U.sum(axis=0) / (1 + np.e)
        start = rbm.Params(*(part.astype(np.float32) for part in (U, W, V, c, d)))
        result = rbm.train(
            start,
            batch,
            gradient=PresentObserved(1, kinds=tuple(numbers[kind] for kind in corpus.kinds)),
            optimiser=rbm.Optimiser(),
            schedule=rbm.Schedule("cosine", settings["learning_rate"], epochs),
            penalty=rbm.Penalty.none(start),
            seed=seed,
            batch_size=settings["batch_size"],
            max_epochs=epochs,
            patience=epochs,
            on_epoch=lambda _: print(".", end="", file=sys.stderr, flush=True),
        )
        found.append(rbm.Params(*(np.asarray(part) for part in result.params)))
    print(file=sys.stderr)
    return found


def _distinct(part: Lists) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """One item for each artist and list of tags, and the weight of all such; its mean is 1."""
    _, artist = np.unique(part.artists, return_inverse=True)
    bits = np.packbits(np.stack([part.Y == 1, np.isnan(part.Y)]), axis=2)
    key = np.concatenate([artist[:, None].astype(np.int64), *bits.astype(np.int64)], axis=1)
    _, first, number = np.unique(key, axis=0, return_index=True, return_inverse=True)
    weight = np.bincount(number.ravel(), part.weights())
    return first, weight / weight.mean()


def rate_odds(Y: Floats, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """(C,) log-odds of the tags' rates; 0 where none is known."""
    known = ~np.isnan(Y)
    rates = ((w @ np.nan_to_num(Y)) + 0.5) / ((w @ known) + 1)
    return np.where(known.any(axis=0), log_odds(rates), 0.0)


def learn_gains(corpus: Corpus) -> NDArray[np.float64]:
    """What log-odds of tag j gain from k, at [k, j]; NaN where no collection has both."""
    gains = np.full((len(corpus.tags),) * 2, np.nan)
    for part in corpus.parts:
        w, known = part.weights()[:, None], ~np.isnan(part.Y)
        present = (part.Y == 1).astype(np.float64)
        rates = (w.T @ present + 0.5) / (w.T @ known + 1)
        n = (w * present).T @ known
        beside = ((w * present).T @ present + SMOOTHING * rates) / (n + SMOOTHING)
        found = log_odds(beside) - log_odds(rates)
        gains = np.where(np.isnan(gains) & (n >= LEAST_TOGETHER), found, gains)
    return gains


def make(corpus: Corpus, settings: dict[str, Any] | None = None) -> bytes:
    """The file."""
    settings = SETTINGS | (settings or {})
    home = corpus.home()
    at_home = np.arange(len(corpus.tags))
    members = learn_members(corpus, settings)
    gains = np.rint(np.clip(learn_gains(corpus), -7.9, 7.9) * GAIN_STEPS)
    odds = np.stack([rate_odds(part.Y, part.weights()) for part in corpus.parts])
    arrays = {
        "U": np.stack([member.U for member in members]),
        "c": np.stack([member.c for member in members]),
        "d": np.stack([member.d + member.V[home, at_home] for member in members]),
        "rates": odds[home, at_home].astype(np.float32),
    }
    arrays = {name: rounded_to_half(array).astype(np.float16) for name, array in arrays.items()}
    arrays["gains"] = np.where(np.isnan(gains), NO_GAIN, gains).astype(np.int8)
    about = {
        "tags": corpus.tags,
        "licence": NOTE,
        "items": {part.name: len(part.Y) for part in corpus.parts},
    }
    return to_bytes(arrays, about)


def main() -> int:
    """Make the file; 1 where --check finds that it differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    arguments = parser.parse_args()
    tracks = jamendo()
    corpus = join([tracks.rows(tracks.split != "test"), *others(tracks)])
    for part in corpus.parts:
        n_tags = int((~np.isnan(part.Y)).any(axis=0).sum())
        print(f"{part.name}: {len(part.Y):,} items, {n_tags} tags", file=sys.stderr)
    data = make(corpus)
    if not arguments.check:
        write_atomically(WORDS_FILE, data)
        print(f"{WORDS_FILE.name}: {len(data):,} bytes, {len(corpus.tags)} tags")
    elif not WORDS_FILE.exists() or WORDS_FILE.read_bytes() != data:
        print(f"{WORDS_FILE.name} differs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
