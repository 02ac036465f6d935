"""How much does `harmonium write` add, and how much of it is right, before and after teaching?

    HARMONIUM_DATA=... python benchmarks/coverage.py         about half an hour
    python benchmarks/coverage.py --collections emotify --draws 1
    PYTHONPATH=../before python benchmarks/coverage.py       the rule of another checkout

The clips of a collection are the tracks of a library, with their features and artists. The genre
fields of some tracks are dressed as people fill them: of ten, two say nothing (Other, a number …)
or are empty, four have the name in some spelling, two have two genres in one text ("Rock/Pop"), two
have other words for it ("RnB", "Clasical"). `import --from-files`, `train`, `tag` and `write
--predicted` do the rest, without files and without decoding sound. What would be written to tracks
of other artists is compared with their true genres. A draw chooses the artists: those of the first
25 tracks are among those of 50, and so on. The tracks judged are the same for all sizes.

Emotify, 4Q and GTZAN have musicnn's features, so there is a built-in model. It is made in the same
way as the package's, without the collection in question, and without the correction of volume, for
which sound would be decoded. MajorMiner has other features (MFCCs), so its tags are learnt from the
library alone. The rule was chosen by draws 0 to 5 of the first three; what is shown begins with
draw 100. If there is too little to learn from, the built-in model stays in use.

    write       what `harmonium write --precision` adds; 0 tracks: before teaching
    p ≥ asked   a rival: every genre that the model predicts, where its probability is that high

written: tags per draw; precision: the share of them that is right, ± its standard error over draws;
recall: the share of (track, genre) pairs for which a right tag is written. A word of two genres is
right for both, and a genre above a true one is right, too (rock for metal). Tags that the
collection has no labels for cannot be judged, and are only counted.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonium.audio import extract_files
from harmonium.data.datasets import load
from harmonium.data.genres import builtin_tree
from harmonium.data.tag_names import kind_of, normalise_tag
from harmonium.errors import DataError
from harmonium.experiments.datasets import CATALOGUE, load_dataset
from harmonium.files import user_cache_folder
from harmonium.library import Library
from harmonium.library.model import builtin
from harmonium.library.store.tracks import Track
from harmonium.library.writing.wanted import TagSources, wanted_tags

sys.path.insert(0, str(Path(__file__).parents[1] / "recipes"))
from builtin_model.corpus import listening_corpus
from builtin_model.making import make
from builtin_model.vocabulary import shared_vocabulary

FIRST = 100
SIZES = (25, 50, 100, 200)
ASKED = (0.8, 0.9)
LISTENING = ("4q", "gtzan", "emotify")
COLLECTIONS = ("emotify", "4q", "gtzan", "majorminer")

VAGUE = ("Other", "Unknown", "", "Misc", "", "12", "genre", "")
OTHER_WORDS = {
    "blues": ("Blues Music",),
    "classical": ("Classical Music", "Classicalmusic", "Clasical"),
    "country": ("Country Music", "Country & Western"),
    "electronic": ("Electronica", "Electronicmusic", "Electro"),
    "hip hop": ("Rap", "HipHop"),
    "jazz": ("Jaz", "Jazz Music"),
    "metal": ("Heavy Metal", "Metall"),
    "pop": ("Poprock", "Pop Music", "Popmusic"),
    "pop/rock": ("Pop", "Rock", "Poprock"),
    "r&b": ("RnB", "R & B"),
    "rock": ("Poprock", "Rock & Roll", "Rockmusic"),
    "traditional pop": ("Vocal", "Traditional Vocal"),
    "world": ("International", "World Music"),
}
NEIGHBOURS = {
    "blues": "rock",
    "classical": "soundtrack",
    "country": "folk",
    "disco": "pop",
    "electronic": "pop",
    "hip hop": "r&b",
    "jazz": "blues",
    "metal": "rock",
    "pop": "rock",
    "pop/rock": "folk",
    "r&b": "soul",
    "reggae": "world",
    "rock": "pop",
}
"""A genre → the one that a second word is, if the track has no other."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Collection:
    """Clips with features, artists and true genres."""

    name: str
    X: NDArray[np.float32]
    groups: NDArray[np.int64]  # (n,) clips of one group may be by one artist
    genres: list[set[str]]  # (n,) as the built-in model's vocabulary spells them
    extractor: str

    @cached_property
    def known(self) -> frozenset[str]:
        """The genres that its people could give."""
        return frozenset().union(*self.genres)

    @cached_property
    def meanings(self) -> Mapping[str, set[str]]:
        """Tag → the genres for which it is right."""
        meanings: dict[str, set[str]] = {}
        for genre in self.known:
            for word in (genre, *OTHER_WORDS.get(genre, ()), f"{genre} music"):
                meanings.setdefault(normalise_tag(word), set()).add(genre)
        for genre in self.known:
            meanings[genre] = {genre, *(meanings[genre] if "/" in genre else ())}
        return meanings

    def meaning(self, tag: str) -> set[str]:
        """The genres for which a tag is right; empty if the labels cannot say."""
        whole = self.meanings.get(tag) or self.meanings.get(shared_vocabulary().tag(tag) or "")
        if whole:
            return whole
        parts = [self.meanings.get(part.strip(), set()) for part in tag.split("/")]
        return set().union(*parts) if all(parts) else set()

    def dressed(self, row: int, rng: np.random.Generator) -> str:
        """What the genre field of a track says."""
        genres = sorted(self.genres[row])
        genre = str(rng.choice(genres))
        ways = ("vague",) * 2 + ("plain",) * 4 + ("two",) * 2 + ("other",) * 2
        way = rng.choice(ways)
        if way == "vague":
            return str(rng.choice(VAGUE))
        if way == "other":
            return str(rng.choice(OTHER_WORDS.get(genre, (f"{genre.capitalize()} Music",))))
        if way == "two":
            others = [other for other in genres if other != genre]
            second = str(rng.choice(others)) if others else NEIGHBOURS.get(genre, "pop")
            return rng.choice(["/", "; ", ", "]).join([genre.capitalize(), second.capitalize()])
        return str(rng.choice([genre, genre.capitalize(), genre.title(), f"{genre.capitalize()} "]))


def collection(name: str) -> Collection:
    """The clips of a collection that have a genre."""
    if name == "majorminer":
        return _majorminer()
    data = load(name, features="both") if name != "emotify" else load(name)
    vocabulary = shared_vocabulary()
    if name == "emotify":
        genres = [{item.partition("_")[0]} for item in data.items]
        heard = extract_files(data.audio or [], extractor="musicnn", cache=user_cache_folder())
        X = heard.features
    else:
        labels = data.labels()
        tags = [vocabulary.tag(word, name) for word in labels.tags]
        is_genre = [tag is not None and vocabulary.groups[tag] == "genre" for tag in tags]
        genres = [
            {str(tags[j]) for j in np.flatnonzero((row == 1) & np.array(is_genre))}
            for row in labels.values
        ]
        assert data.features is not None
        X = data.features[:, :400]
    artists = range(len(data)) if data.artists is None else data.artists.to_list()
    return _of(name, X, list(artists), genres, builtin.builtin_extractor())


def _majorminer() -> Collection:
    data = load_dataset(CATALOGUE["majorminer-104"])
    kinds = builtin.builtin_kinds()
    places = [j for j, tag in enumerate(data.tags) if kind_of(tag, kinds) == "genre"]
    genres = [{data.tags[j] for j in places if row[j] == 1} for row in data.Y]
    return _of("majorminer", data.X, list(data.groups), genres, "made up")


def _of(name: str, X: Any, artists: list[Any], genres: list[set[str]], extractor: str) -> Any:
    rows = [row for row, its in enumerate(genres) if its]
    groups = np.unique(np.array(artists)[rows], return_inverse=True)[1]
    return Collection(
        name=name,
        X=np.asarray(X, np.float32)[rows],
        groups=groups,
        genres=[genres[row] for row in rows],
        extractor=extractor,
    )


@contextmanager
def model_without(name: str, folder: Path) -> Iterator[None]:
    """Let a model that has not heard a collection be the built-in one."""
    if name not in LISTENING:
        yield
        return
    place = folder / f"without-{name}"
    if not (place / builtin.BUILTIN_FILE.name).exists():
        shutil.copytree(builtin.BUILTIN_FILE.parent, place, dirs_exist_ok=True)
        others = [other for other in LISTENING if other != name]
        made = make(listening_corpus(others, n_directions=0))
        (place / builtin.BUILTIN_FILE.name).write_bytes(made.to_bytes())
    before = builtin.BUILTIN_FILE
    builtin.BUILTIN_FILE = place / before.name
    builtin.builtin_model.cache_clear()
    yield
    builtin.BUILTIN_FILE = before
    builtin.builtin_model.cache_clear()


@dataclass(frozen=True, kw_only=True, eq=False)
class Draw:
    """The artists of a collection in a random order: the first are taught, the others judged."""

    collection: Collection
    order: NDArray[np.intp]  # the rows of tracks to teach, the first ones first
    judged: NDArray[np.intp]
    texts: list[str]  # (n,) what the genre fields would say

    @classmethod
    def of(cls, collection: Collection, seed: int) -> "Draw":
        """A draw."""
        rng = np.random.default_rng(seed)
        n_groups = int(collection.groups.max()) + 1
        rank = rng.permutation(n_groups)[collection.groups]
        order = np.argsort(rank, kind="stable")
        last = rank[order[SIZES[-1] - 1]]
        return cls(
            collection=collection,
            order=order[: SIZES[-1]],
            judged=np.flatnonzero(rank > last),
            texts=[collection.dressed(row, rng) for row in range(len(collection.genres))],
        )

    @contextmanager
    def library(self, folder: Path, n_taught: int) -> Iterator[tuple[Library, NDArray[np.int64]]]:
        """A library that learnt the genres of so many tracks; and the numbers of all tracks."""
        texts = [""] * len(self.texts)
        for row in self.order[:n_taught]:
            texts[row] = self.texts[row]
        with (
            tempfile.TemporaryDirectory(dir=folder) as place,
            Library.open(Path(place) / "library.db") as library,
        ):
            ids = self._fill(library, texts)
            builtin.use_builtin(library)
            if n_taught:
                library.import_file_tags()
                with suppress(DataError):  # too few tracks or artists
                    library.train()
            if library.models.current() is not None:
                library.tag_all()
            yield library, ids

    def _fill(self, library: Library, texts: list[str]) -> NDArray[np.int64]:
        tracks = [
            Track(
                f"/music/{row}.ogg",
                f"{row:010}",
                title=str(row),
                artist=f"artist {group}",
                file_tags={"genre": [text]} if text else {},
            )
            for row, (group, text) in enumerate(zip(self.collection.groups, texts, strict=True))
        ]
        ids = np.array(library.tracks.put(tracks))
        library.tracks.put_features(ids, self.collection.X, extractor=self.collection.extractor)
        library.settings.set("extractor", self.collection.extractor)
        return ids


@dataclass(frozen=True, kw_only=True)
class Score:
    """How what was written compares with the truth."""

    written: int  # that can be judged
    right: int
    hit: int  # true (track, genre) pairs for which a right tag was written
    there: int  # true pairs
    unjudged: int
    tags: int  # different tags written


def with_broader(genres: set[str]) -> set[str]:
    """Genres, and those above them in the built-in tree."""
    tree = builtin_tree()
    return genres.union(*({tree.canonical(genre), *tree.ancestors(genre)} for genre in genres))


def score(collection: Collection, written: Mapping[int, list[str]], judged: Any) -> Score:
    """Compare the tags written to rows with the truth."""
    n_right = n_judged = n_unjudged = n_hit = 0
    for row in judged:
        truth = collection.genres[row]
        above = with_broader(truth)
        hit: set[str] = set()
        for tag in written.get(int(row), ()):
            meaning = collection.meaning(tag)
            n_judged += bool(meaning)
            n_unjudged += not meaning
            n_right += bool(meaning & above)
            hit |= meaning & truth
        n_hit += len(hit)
    return Score(
        written=n_judged,
        right=n_right,
        hit=n_hit,
        there=sum(len(collection.genres[row]) for row in judged),
        unjudged=n_unjudged,
        tags=len({tag for tags in written.values() for tag in tags}),
    )


@dataclass
class Results:
    """All scores, by collection, tracks taught, precision asked and way."""

    scores: dict[tuple[str, int, float, str], list[Score]] = field(default_factory=dict)

    def add(self, key: tuple[str, int, float, str], result: Score) -> None:
        """Add the score of a draw."""
        self.scores.setdefault(key, []).append(result)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each key."""
        return [self._row(key, scores) for key, scores in sorted(self.scores.items())]

    def _row(self, key: tuple[str, int, float, str], scores: list[Score]) -> dict[str, Any]:
        n = np.array([each.written for each in scores])
        right = np.array([each.right for each in scores])
        shares = right[n > 0] / n[n > 0]
        error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else None
        name, size, asked, way = key
        return {
            "collection": name,
            "taught": size,
            "asked": asked,
            "way": way,
            "written": float(n.mean()),
            "tags": float(np.mean([each.tags for each in scores])),
            "precision": float(right.sum() / n.sum()) if n.sum() else None,
            "error": error,
            "recall": sum(each.hit for each in scores) / sum(each.there for each in scores),
            "unjudged": float(np.mean([each.unjudged for each in scores])),
        }


def chosen_ways(library: Library, ids: Any, asked: float) -> Iterator[tuple[str, Any]]:
    """(way, row → the genres written) for a library."""
    model = library.models.current(whole=False)
    if model is None:
        yield "write", {}
        yield "p ≥ asked", {}
        return
    row_of = {int(number): row for row, number in enumerate(ids)}
    table = library.snapshot().tags
    sources = TagSources(people=False, precision=asked)
    wanted = wanted_tags(library, ids.tolist(), sources)
    yield (
        "write",
        {
            row_of[number]: [tag for tag in tags.predicted if table[tag].kind == "genre"]
            for number, tags in wanted.items()
        },
    )
    P = library.predictions.probabilities(model.id, ids.tolist())
    genres = [tag for tag in table.trained if tag.kind == "genre" and tag.curve is not None]
    reached = {
        row: [tag.name for tag in genres if P[row, tag.place] >= asked] for row in range(len(P))
    }
    yield "p ≥ asked", reached


def measure(name: str, draws: int, sizes: list[int], folder: Path, results: Results) -> None:
    """Add the scores of a collection."""
    with model_without(name, folder):
        clips = collection(name)
        for seed in range(FIRST, FIRST + draws):
            draw = Draw.of(clips, seed)
            for size in sizes:
                if not size and name not in LISTENING:
                    continue
                with draw.library(folder, size) as (library, ids):
                    for asked in ASKED:
                        for way, written in chosen_ways(library, ids, asked):
                            result = score(clips, written, draw.judged)
                            results.add((name, size, asked, way), result)
                print(f"{name}, draw {seed}, {size} tracks", file=sys.stderr, flush=True)


def show(rows: list[dict[str, Any]]) -> None:
    """Print the results as a table."""
    print("| collection | taught | asked | way | written | tags | precision | recall | unjudged |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        precision = "" if row["precision"] is None else f"{row['precision']:.3f}"
        if row["error"] is not None:
            precision += f" ± {row['error']:.3f}"
        print(
            f"| {row['collection']} | {row['taught']} | {row['asked']} | {row['way']} "
            f"| {row['written']:.0f} | {row['tags']:.1f} | {precision} | {row['recall']:.3f} "
            f"| {row['unjudged']:.0f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collections", nargs="+", default=list(COLLECTIONS), choices=COLLECTIONS)
    parser.add_argument("--draws", type=int, default=3, help="draws of artists (3)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[0, *SIZES], help="tracks taught")
    parser.add_argument("--models", type=Path, help="where built-in models are kept for next time")
    parser.add_argument("--json", type=Path, help="where the results go, too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    results = Results()
    with tempfile.TemporaryDirectory() as name:
        folder = options.models or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        for chosen in options.collections:
            measure(chosen, options.draws, options.sizes, folder, results)
    rows = results.rows()
    show(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(f"\n{time.perf_counter() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
