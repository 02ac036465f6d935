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
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from harmonium.audio import extract_files
from harmonium.data.datasets import load
from harmonium.data.tag_names import normalise_tag
from harmonium.files import user_cache_folder
from harmonium.library import Library
from harmonium.library.model import builtin
from harmonium.library.store.tracks import Track
from harmonium.library.writing.wanted import TagSources, wanted_tags

sys.path.insert(0, str(Path(__file__).parents[1] / "recipes"))
from builtin_model.corpus import listening_corpus
from builtin_model.making import make

Written = tuple[str, int, float]  # tag, row, probability

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
    shutil.copytree(builtin.BUILTIN_FILE.parent, new)
    made = make(listening_corpus(("4q", "gtzan")))
    (new / builtin.BUILTIN_FILE.name).write_bytes(made.to_bytes())
    builtin.BUILTIN_FILE = new / builtin.BUILTIN_FILE.name


class Truth(NamedTuple):
    """Emotify's genres and moods."""

    genres: list[str]
    moods: Any

    def right(self, tag: str, row: int) -> bool | None:
        """Whether a tag holds for a clip; None if its labels do not say."""
        moods = {normalise_tag(name): j for j, name in enumerate(self.moods.tags)}
        if tag in moods:
            return bool(self.moods.values[row, moods[tag]] == 1)
        words = true_genres()
        return self.genres[row] in words[tag] if tag in words else None

    def judge(self, kind: str, written: list[Written], rows: Any) -> tuple[float, ...]:
        """(written, right, expected, found, there, not judged) of the tags of a kind."""
        answers = [(self.right(tag, row), row, p) for tag, row, p in written]
        known = [(right, row, p) for right, row, p in answers if right is not None]
        right, expected = sum(one[0] for one in known), sum(one[2] for one in known)
        # A track has one genre to be found, whatever it is called.
        found = len({row for yes, row, _ in known if yes}) if kind == "genre" else right
        there = len(rows) if kind == "genre" else np.sum(self.moods.values[rows] == 1)
        return len(known), right, expected, found, float(there), len(written) - len(known)


def fill(library: Library, data: Any, X: Any, texts: list[str], moods: pl.DataFrame) -> Any:
    """Make tracks with these genres in their files, and import a table of moods; their numbers."""
    files = [
        Track(
            f"/music/{item}.ogg",
            f"{i:010}",
            title=item,
            file_tags={"genre": [text]} if text else {},
        )
        for i, (item, text) in enumerate(zip(data.items, texts, strict=True))
    ]
    ids = np.array(library.tracks.put(files))
    library.tracks.put_features(ids, X, extractor=builtin.builtin_extractor())
    library.settings.set("extractor", builtin.builtin_extractor())
    library.import_file_tags()
    table = Path(library.place).with_suffix(".csv")
    moods.write_csv(table)
    library.import_tags(table)
    return ids


def results(
    place: Path, data: Any, X: Any, seed: int, clean: bool, n_moods: int
) -> Iterator[tuple[tuple[str, str], tuple[float, ...]]]:
    """((kind, way), `Truth.judge`) of one draw."""
    rng = np.random.default_rng(seed)
    truth = Truth([item.partition("_")[0] for item in data.items], data.labels())
    tagged = np.zeros(len(data.items), bool)
    tagged[rng.permutation(len(tagged))[: len(tagged) // 2]] = True
    texts = [genre.capitalize() if clean else dressed(genre, rng) for genre in truth.genres]
    texts = [text if known else "" for text, known in zip(texts, tagged, strict=True)]
    told = np.isin(np.arange(len(tagged)), rng.permutation(np.flatnonzero(tagged))[:n_moods])
    names = np.array(truth.moods.tags)
    moods = ["; ".join(names[row == 1]) for row in truth.moods.values]
    with Library.open(place / f"{seed}.db") as library:
        table = pl.DataFrame({"path": data.items, "mood": moods}).filter(told)
        ids = fill(library, data, X, texts, table)
        library.train()
        library.tag_all()
        model = library.models.current(whole=False)
        assert model is not None
        assert model.id is not None
        others = np.flatnonzero(~tagged)
        P = library.predictions.probabilities(model.id, ids[others])
        own = [
            (j, output.name)
            for j, output in enumerate(model.outputs)
            if output.source == "tracks" and output.threshold is not None
        ]
        row_of, kinds = {int(ids[i]): int(i) for i in others}, library.tags.kinds()
        for asked in ASKED:
            sources = TagSources(people=False, precision=asked)
            chosen = []
            for number, tags in wanted_tags(library, ids[others].tolist(), sources).items():
                chosen += [(tag, row_of[number], p) for tag, p in tags.predicted.items()]
            learnt = [(tag, row, P[k, j]) for k, row in enumerate(others) for j, tag in own]
            rival = [one for one in learnt if one[2] >= asked]
            for way, written in ((f"{asked}", chosen), (f"p ≥ {asked}", rival)):
                for kind in ("genre", "mood"):
                    some = [one for one in written if kinds.get(one[0]) == kind]
                    yield (kind, way), truth.judge(kind, some, others)
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
