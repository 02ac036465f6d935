"""Search and tagging in a library of many tracks.

    python benchmarks/collection_search.py [--tracks 100000] [--triples 300000] [--library PLACE]

Makes a library (a temporary SQLite file, or PLACE, which must be new) of tracks with
made-up features, a model of made-up weights with 100 tags, and people's tags. Tags all tracks with
the model, noting the memory, then asks questions, each many times in this process: the time is from
the text of the question to the tracks found, without the start of Python. Then it does what the
page does, with everything in memory: it lists tracks, counts the tags of a result, and after an
answer about a track does both again. The last column is time of the processor, which other work
on the machine hardly changes.
"""

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from harmonium import DiscriminativeRBM
from harmonium.library import Library
from harmonium.library.model.tagger import tag_library
from harmonium.library.snapshot import Question
from harmonium.library.store.models import StoredModel
from harmonium.library.store.reports import ModelReport
from harmonium.library.store.tracks import Track

N_FEATURES, N_TAGS, N_PEOPLE = 389, 100, 50
EXTRACTOR = "made up"
TAGS = [f"tag {j:02}" for j in range(N_TAGS)]
QUESTIONS = ('"tag 01"', '"tag 01" "tag 02" -"tag 03"', '("tag 01" OR "tag 02") -"tag 03" "tag 04"')


def timed(what: str, work: Callable[[], object]) -> None:
    began = time.perf_counter()
    work()
    print(f"{what}: {time.perf_counter() - began:.1f} s", flush=True)


def add_tracks(library: Library, n_tracks: int) -> None:
    rng = np.random.default_rng(0)
    for start in range(0, n_tracks, 5000):
        n = min(5000, n_tracks - start)
        files = [
            Track(f"/music/{i:06}.flac", f"{i:064x}", title=f"Song {i}", artist=f"Artist {i % 999}")
            for i in range(start, start + n)
        ]
        with library.begin():
            ids = library.tracks.put(files)
            features = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
            library.tracks.put_features(ids, features, extractor=EXTRACTOR)
    library.settings.set("extractor", EXTRACTOR)


def add_opinions(library: Library, n_tracks: int, n_triples: int) -> None:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "person": [f"person {i}" for i in rng.integers(N_PEOPLE, size=n_triples)],
            "track_id": rng.integers(1, n_tracks + 1, n_triples),
            "tag": [TAGS[j] for j in rng.integers(N_TAGS, size=n_triples)],
        }
    )
    with library.begin():
        change = library.changes.begin("import", "made up")
    library.opinions.add_triples(frame, change=change)


def add_model(library: Library) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, N_FEATURES)).astype(np.float32)
    Y = (X[:, :N_TAGS] > 1).astype(np.float32)
    model = DiscriminativeRBM(validation_fraction=0.0, max_epochs=10, random_state=0)
    model.fit(X, pl.DataFrame(Y, schema=TAGS))
    stored = StoredModel(
        name="DiscriminativeRBM",
        vocabulary=TAGS,
        thresholds=np.full(N_TAGS, 0.5, np.float32),
        extractor=EXTRACTOR,
        bytes=model.to_bytes(),
        report=ModelReport(),
    )
    library.models.add(stored)


def ask(what: str, work: Callable[[], object], rounds: int) -> None:
    seconds = []
    processor = []
    for _ in range(rounds):
        began = time.perf_counter()
        began_processor = time.process_time()
        work()
        processor.append(1000 * (time.process_time() - began_processor))
        seconds.append(1000 * (time.perf_counter() - began))
    first, median, worst = seconds[0], statistics.median(seconds), max(seconds)
    own = statistics.median(processor)
    print(f"| {what} | {first:.0f} | {median:.0f} | {worst:.0f} | {own:.0f} |", flush=True)


def ask_page(library: Library, rounds: int) -> None:
    """What the page asks for, with everything in memory."""
    question = Question(QUESTIONS[0])
    snapshot = library.snapshot()
    snapshot.search(question, 50, shown_tags=True)
    found = snapshot.find(question)
    ask("a page of 50", lambda: snapshot.page(found, 0, 50, shown_tags=True), rounds)
    ask("the counts of its tags", lambda: snapshot.facets(found), rounds)
    tracks = iter(range(1, rounds + 1))

    def click() -> None:
        track = next(tracks)
        library.say(track, yes=[TAGS[track % N_TAGS]])
        after = library.snapshot()
        after.search(question, 50, shown_tags=True)
        after.facets(after.find(question))

    with library.learner.paused():
        ask("a click, then both", click, rounds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tracks", type=int, default=100_000)
    parser.add_argument("--triples", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--library", help="the place of a new library, as postgresql://…")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = options.library or str(Path(folder) / "library.db")
        with Library.open(place) as library:
            timed("tracks stored", lambda: add_tracks(library, options.tracks))
            timed("tags stored", lambda: add_opinions(library, options.tracks, options.triples))
            timed("model", lambda: add_model(library))
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            timed("all tracks tagged", lambda: tag_library(library))
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            print(f"peak memory {before / 1024:.0f} MiB before, {after / 1024:.0f} MiB after\n")
            print("| question | first, ms | median, ms | longest, ms | processor, ms |")
            print("|---|---|---|---|---|")
            for text in QUESTIONS:
                ask(f"`{text}`", lambda text=text: library.search(text), options.rounds)
            ask("like another track", lambda: library.search(like=7), options.rounds)
            ask_page(library, options.rounds)


if __name__ == "__main__":
    main()
