"""A library of many tracks, in SQLite and in PostgreSQL side by side: time and memory.

    python benchmarks/collection.py [--tracks 100000] [--triples 1000000] [--postgres URL]

Stores tracks with made-up features, imports a CSV file of triples (users, paths, tags), imports it
once more, reads all triples, undoes the import, and tags all tracks with a small
`DiscriminativeRBM`. Each step runs in its own process, so that its peak of memory is its own;
the time is that of the step, without the start of Python. The PostgreSQL server is started for this
from the system's package, with its usual settings, unless a URL of an empty database is given.
`collection_search.py` times searching.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import polars as pl

TESTS = Path(__file__).parent.parent / "tests" / "collection"
N_USERS, N_TAGS = 1000, 100


def make_tracks(place: str, table: Path, n_tracks: int) -> str:
    from collection_search import add_tracks

    from harmonium.library import Library

    with Library.open(place) as library:
        add_tracks(library, n_tracks)
        return f"{library.tracks.count():,} tracks"


def import_triples(place: str, table: Path, n_tracks: int) -> str:
    from harmonium.library import Library
    from harmonium.library.imports import import_table

    with Library.open(place) as library:
        report = import_table(library, table)
        return f"{report.n_added:,} of {report.n_rows:,} rows are new"


def read_triples(place: str, table: Path, n_tracks: int) -> str:
    from harmonium.library import Library

    with Library.open(place) as library:
        return f"{library.opinions.triples().height:,} triples"


def undo_import(place: str, table: Path, n_tracks: int) -> str:
    from harmonium.library import Library

    with Library.open(place) as library:
        (change,) = library.changes.list(1)
        return f"{library.changes.undo(change.id).ended:,} ended"


def tag_all(place: str, table: Path, n_tracks: int) -> str:
    from collection_search import add_model

    from harmonium.library import Library
    from harmonium.library.model.tagger import tag_library

    with Library.open(place) as library:
        add_model(library)
        return f"{tag_library(library):,} tracks, {N_TAGS} tags"


STEPS: dict[str, Callable[[str, Path, int], str]] = {
    "store tracks and features": make_tracks,
    "import triples": import_triples,
    "import them again": import_triples,
    "read all triples": read_triples,
    "undo the import": undo_import,
    "train a small model, tag all": tag_all,
}


def write_table(path: Path, n_tracks: int, n_triples: int) -> None:
    """Distinct triples of users, paths and tags, in no order."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(N_USERS * n_tracks * N_TAGS, size=n_triples + n_triples // 50)
    drawn = np.unique(drawn)
    rng.shuffle(drawn)
    drawn = drawn[:n_triples]
    tags, rest = drawn % N_TAGS, drawn // N_TAGS
    frame = pl.DataFrame({"user": rest % N_USERS, "path": rest // N_USERS, "tag": tags})
    frame.select(
        pl.format("user {}", "user").alias("user"),
        pl.format("/music/{}.flac", pl.col("path").cast(pl.String).str.zfill(6)).alias("path"),
        pl.format("tag {}", pl.col("tag").cast(pl.String).str.zfill(2)).alias("tag"),
    ).write_csv(path)


def run_step(name: str, place: str, table: Path, n_tracks: int) -> None:
    """In a process of its own: do it, and print what it took."""
    began = time.perf_counter()
    what = STEPS[name](place, table, n_tracks)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"what": what, "seconds": seconds, "peak": peak}))


def measure(name: str, place: str, table: Path, n_tracks: int) -> dict:
    arguments = ["--step", name, "--place", place, "--table", str(table)]
    command = [sys.executable, __file__, *arguments, "--tracks", str(n_tracks)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def postgres(url: str | None) -> Iterator[str | None]:
    """A database to use, or None where there is no server."""
    if url:
        yield url
        return
    sys.path.insert(0, str(TESTS))
    import postgres_server

    if reason := postgres_server.why_not():
        print(f"Without PostgreSQL: {reason}.")
        yield None
        return
    with postgres_server.server(options="") as started:
        yield started


def size_of(place: str) -> float:
    """MiB of a library."""
    if "://" not in place:
        return sum(file.stat().st_size for file in Path(place).parent.glob("library.db*")) / 2**20
    import psycopg

    with psycopg.connect(place) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    return (row[0] if row else 0) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tracks", type=int, default=100_000)
    parser.add_argument("--triples", type=int, default=1_000_000)
    parser.add_argument("--postgres", metavar="URL", help="an empty database")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    parser.add_argument("--table", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        run_step(options.step, options.place, options.table, options.tracks)
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        table = folder / "triples.csv"
        write_table(table, options.tracks, options.triples)
        places = {"SQLite": str(folder / "library.db")}
        if url := stack.enter_context(postgres(options.postgres)):
            places["PostgreSQL"] = url
        heads = [f"{name} s | MiB" for name in places]
        print(f"| step | {' | '.join(heads)} | result |\n|---|{'---|' * (2 * len(places) + 1)}")
        for name in STEPS:
            found = [measure(name, place, table, options.tracks) for place in places.values()]
            cells = [f"{one['seconds']:.1f} | {one['peak']:.0f}" for one in found]
            print(f"| {name} | {' | '.join(cells)} | {found[0]['what']} |", flush=True)
        sizes = [f"{name} {size_of(place):,.0f} MiB" for name, place in places.items()]
        print(f"\nThe library on disk: {', '.join(sizes)}")


if __name__ == "__main__":
    main()
