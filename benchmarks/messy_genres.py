"""Does `harmonium write` keep its promise where people filled the genre field as people do?

    HARMONIUM_DATA=... python benchmarks/messy_genres.py [--draws 5] [--clean] [--moods 60]

Emotify's 400 clips are the tracks of a library, each with its true genre (one of four) and moods
(those that a quarter of its listeners marked). Half of the tracks, drawn by chance, are tagged.
Their genre fields are dressed: of ten, two say nothing (Other, Unknown, a number …) or are empty,
four have the name in some spelling, two have two genres in one text ("Rock/Pop"), two have other
words for it ("Poprock", "Classical Music"). A table says which moods they have. `import
--from-files`, `import`, `train`, `tag` and `write --predicted` do the rest, without files. What
would be written to the other half is compared with its true labels. --clean leaves the genres as
they are. --moods has only so many of the tagged tracks in the table: the others have a genre alone.

The built-in model has learnt from Emotify's moods. So another one takes its place here, which is
made in the same way from 4Q and GTZAN alone.

The rival writes every tag that was learnt here where its probability is as high as was asked for.

right: the share of what was written that is right, ± its standard error over the draws in which
anything was; expected: the same by the probabilities; found: the share of moods that were found,
and of tracks that got a right genre. A word of two genres is right for both. Built-in tags that
Emotify has no labels for cannot be judged, and are only counted.
"""

import argparse
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from harmonium.audio import extract_files
from harmonium.data.datasets import load
from harmonium.data.tag_names import normalise_tag
from harmonium.files import user_cache_folder
from harmonium.library import Library, tagger
from harmonium.library.store.tracks import Track
from harmonium.library.write import wanted_tags

sys.path.insert(0, str(Path(__file__).parents[1] / "recipes"))
from builtin_model.corpus import listening_corpus
from builtin_model.making import make

FIRST = 100
ASKED = (0.8, 0.9)
VAGUE = ("Other", "Unknown", "", "Misc", "", "12", "genre", "")
NAMES = {
    "rock": ("Rock", "Rock", "rock", "ROCK", " Rock"),
    "pop": ("Pop", "Pop", "pop", "POP", "Pop "),
    "classical": ("Classical", "Classical", "classical", "CLASSICAL", "Classical "),
    "electronic": ("Electronic", "Electronic", "electronic", "ELECTRONIC", " electronic"),
}
TWO = {
    "rock": ("Rock/Pop", "Pop/Rock", "Rock; Pop"),
    "pop": ("Pop/Rock", "Rock/Pop", "Pop, Rock"),
    "classical": ("Classical/Pop", "Classical; Electronic"),
    "electronic": ("Electronic/Pop", "Pop; Electronic"),
}
OTHER_WORDS = {
    "rock": ("Poprock", "Rock & Roll", "Rockmusic"),
    "pop": ("Poprock", "Pop Music", "Popmusic"),
    "classical": ("Classical Music", "Classicalmusic", "Clasical"),
    "electronic": ("Electronica", "Electronicmusic", "Electro"),
}


def true_genres() -> dict[str, set[str]]:
    """Tag → the genres for which it is right."""
    found: dict[str, set[str]] = {}
    for genre in NAMES:
        for text in (genre, *OTHER_WORDS[genre]):
            found.setdefault(normalise_tag(text), set()).add(genre)
    return found | {"pop/rock": {"pop", "rock"}, "rock/pop": {"pop", "rock"}}


def dressed(genre: str, rng: np.random.Generator) -> str:
    """What the genre field of a track says."""
    ways = (VAGUE,) * 2 + (NAMES[genre],) * 4 + (TWO[genre],) * 2 + (OTHER_WORDS[genre],) * 2
    return str(rng.choice(ways[rng.integers(len(ways))]))


def use_model_without_emotify(folder: Path) -> None:
    """Let a model that has not heard the clips be the built-in one of this process."""
    new = folder / "builtin"
    shutil.copytree(tagger.BUILTIN_FILE.parent, new)
    made = make(listening_corpus(("4q", "gtzan")))
    (new / tagger.BUILTIN_FILE.name).write_bytes(made.to_bytes())
    tagger.BUILTIN_FILE = new / tagger.BUILTIN_FILE.name


def results(
    place: Path, data: Any, X: Any, seed: int, clean: bool, n_moods: int
) -> Iterator[tuple[tuple[str, str], tuple[float, ...]]]:
    """((kind, way), (written, right, expected, there, not judged)) of one draw."""
    rng = np.random.default_rng(seed)
    genres = [item.partition("_")[0] for item in data.items]
    labels = data.labels()
    tagged = np.zeros(len(genres), bool)
    tagged[rng.permutation(len(genres))[: len(genres) // 2]] = True
    texts = [genre.capitalize() if clean else dressed(genre, rng) for genre in genres]
    told = np.isin(np.arange(len(genres)), rng.permutation(np.flatnonzero(tagged))[:n_moods])
    with Library.open(place / f"{seed}.db") as library:
        files = [
            Track(
                f"/music/{item}.ogg",
                f"{i:010}",
                title=item,
                file_tags={"genre": [texts[i]]} if tagged[i] and texts[i] else {},
            )
            for i, item in enumerate(data.items)
        ]
        ids = np.array(library.tracks.put(files))
        library.tracks.put_features(ids, X, extractor=tagger.builtin_extractor())
        library.settings.set("extractor", tagger.builtin_extractor())
        moods = [
            "; ".join(np.array(labels.tags)[labels.values[i] == 1]) for i in range(len(genres))
        ]
        table = place / f"{seed}.csv"
        pl.DataFrame({"path": data.items, "mood": moods}).filter(told).write_csv(table)
        library.import_file_tags()
        library.import_tags(table)
        library.train()
        library.tag_all()
        model = library.models.current(whole=False)
        assert model is not None
        assert model.id is not None
        others = np.flatnonzero(~tagged)
        P = library.predictions.probabilities(model.id, ids[others])
        words, of_mood = true_genres(), {normalise_tag(t): j for j, t in enumerate(labels.tags)}
        row_of = {int(ids[i]): i for i in others}

        def truth(tag: str, row: int) -> bool | None:
            if tag in of_mood:
                return bool(labels.values[row, of_mood[tag]] == 1)
            return genres[row] in words[tag] if tag in words else None

        def judged(kind: str, written: Any) -> tuple[float, ...]:
            known = [
                (right, p) for tag, row, p in written if (right := truth(tag, row)) is not None
            ]
            there = {
                "genre": float(len(others)),
                "mood": float(np.nansum(labels.values[others] == 1)),
            }[kind]
            # of a track, one genre is there to be found, whatever it is called
            found = sum(right for right, _ in known)
            if kind == "genre":
                found = len({row for tag, row, _ in written if truth(tag, row)})
            right, expected = (
                (sum(column) for column in zip(*known, strict=True)) if known else (0, 0)
            )
            return len(known), right, expected, found, there, len(written) - len(known)

        kinds = library.kinds()
        own = [(j, tag) for j, tag in enumerate(model.vocabulary[: model.n_own]) if model.learnt[j]]
        for asked in ASKED:
            plan = wanted_tags(library, ids[others].tolist(), people=False, precision=asked)
            chosen = [
                (tag, row_of[one], p) for one, tags in plan.items() for tag, p in tags.items()
            ]
            rival = [
                (tag, row, float(P[k, j]))
                for k, row in enumerate(others.tolist())
                for j, tag in own
                if P[k, j] >= asked
            ]
            for way, written in ((f"{asked}", chosen), (f"p ≥ {asked}", rival)):
                for kind in ("genre", "mood"):
                    some = [one for one in written if kinds.get(one[0]) == kind]
                    yield (kind, way), judged(kind, some)
        print(f"draw {seed}: {', '.join(tag for _, tag in own)}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5, help="draws of the tagged half (5)")
    parser.add_argument("--clean", action="store_true", help="leave the genres as they are")
    parser.add_argument("--moods", type=int, default=200, help="tracks with moods (200)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    began, data = time.perf_counter(), load("emotify")
    X = extract_files(data.audio or [], extractor="musicnn", cache=user_cache_folder()).features
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    with tempfile.TemporaryDirectory() as name:
        use_model_without_emotify(Path(name))
        print(f"model made, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        for seed in range(FIRST, FIRST + options.draws):
            for key, row in results(Path(name), data, X, seed, options.clean, options.moods):
                found.setdefault(key, []).append(row)
    print("| kind | asked | written | in draws | right | expected | found | not judged |")
    print("|---|---|---|---|---|---|---|---|")
    for (kind, way), rows in sorted(found.items()):
        n, right, expected, hits, there, unjudged = np.array(rows, float).T
        shares = right[n > 0] / n[n > 0]
        error = f" ± {shares.std(ddof=1) / np.sqrt(len(shares)):.3f}" if len(shares) > 1 else ""
        total = max(n.sum(), 1)
        cells = (kind, way, f"{n.sum():.0f}", f"{len(shares)}", f"{right.sum() / total:.3f}{error}")
        more = (f"{expected.sum() / total:.3f}", f"{hits.sum() / there.sum():.3f}")
        print("|", " | ".join((*cells, *more, f"{unjudged.sum():.0f}")), "|")
    print(f"\n{time.perf_counter() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
